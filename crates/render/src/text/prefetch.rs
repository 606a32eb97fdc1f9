//! Prefetchers: their state, and what they are worth.

use std::collections::BTreeSet;

use memgauge_core::experiment::{ChaseOrder, Experiment, PrefetchRequest};
use memgauge_core::prefetchers::{PrefetchGroup, PrefetchState, PrefetchStatus};
use memgauge_core::result::{Measurement, Report};

use super::evidence::evidence;
use super::grid::{Cell, Column, grid};
use super::marks::Marks;
use super::number::value_of;
use super::page::{INDENT, Page, Style};
use super::{Context, cpus_name, machine, node_name, notes};

/// The page of `prefetch status`.
pub(super) fn status(page: &mut Page, report: &Report, state: &PrefetchState) {
    machine::title(page, report);
    page.items(Style::Plain, "", &machine::identity(&report.machine));
    page.heading("Prefetchers", state.register.as_deref().unwrap_or("no register"));
    let names = |list: &[String]| if list.is_empty() { "–".to_owned() } else { list.join(", ") };
    let known: Vec<&PrefetchGroup> = state.groups.iter().filter(|g| g.value.is_some()).collect();
    if !known.is_empty() {
        let columns = vec![
            Column::words("CPUs").with(known.iter().map(|g| Cell::text(super::shortened(&g.cpus)))),
            Column::numbers("value").with(known.iter().map(|g| Cell::number(g.value.clone().unwrap_or_default()))),
            Column::words("on").with(known.iter().map(|g| Cell::text(names(&g.on)))),
            Column::words("off").with(known.iter().map(|g| Cell::text(names(&g.off)))),
        ];
        page.table(&grid(columns, page.width));
    }
    for group in state.groups.iter().filter(|g| g.value.is_none() && g.reason != state.reason) {
        let text = format!("{}: {}", cpus_name(&group.cpus), group.reason.as_deref().unwrap_or("not read"));
        page.text(Style::Plain, INDENT, "    ", &text);
    }
    page.text(Style::Plain, INDENT, "    ", &claim(state));
    if let Some(advice) = &state.advice {
        page.text(Style::Dim, INDENT, "    ", advice);
    }
    if state.register.is_some() {
        let rest = "Further prefetchers (of the last-level cache, of memory controllers and links) have no documented register and are not shown: see the BIOS set-up";
        page.text(Style::Dim, INDENT, "    ", rest);
    }
    notes::list(page, "Notes", report.notes.iter());
}

/// What is known, in one sentence.
fn claim(state: &PrefetchState) -> String {
    let verified: Vec<String> = state.groups.iter().filter(|g| g.value.is_some()).map(|g| cpus_name(&g.cpus)).collect();
    let of = verified.join(", ");
    match state.status {
        PrefetchStatus::On => format!("all documented prefetchers are on, by the registers of {of}"),
        PrefetchStatus::Off => format!("all documented prefetchers are off, by the registers of {of}"),
        PrefetchStatus::Partly => format!("documented prefetchers are partly on, by the registers of {of}"),
        PrefetchStatus::Unknown => {
            format!("nothing can be said of prefetchers: {}", state.reason.as_deref().unwrap_or("the result does not say why"))
        }
    }
}

/// One line below the header of a run that switched them.
pub(super) fn line(page: &mut Page, report: &Report) {
    if let Some(state) = report.environment.prefetch.as_ref().filter(|state| state.asked != PrefetchRequest::Leave) {
        let style = if state.status == PrefetchStatus::Unknown { Style::Warning } else { Style::Plain };
        page.text(style, "", "  ", &format!("Prefetchers asked to be {}: {}", state.asked.name(), claim(state)));
    }
}

/// By node and state: bandwidth, latency in ascending and in random order.
pub(super) fn compare(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let about = context.about("GB/s: 10⁹ bytes a second, ns per dependent load");
    page.heading("Prefetchers on and off", &about);
    let mut marks = Marks::new(context.report, ms);
    let rows: BTreeSet<(Option<u32>, Option<PrefetchRequest>)> = ms.iter().map(|m| (m.at.memory_node, m.at.prefetch)).collect();
    let rows: Vec<_> = rows.into_iter().collect();
    let find = |row: &(Option<u32>, Option<PrefetchRequest>), experiment, order: Option<ChaseOrder>| {
        let same = |m: &&&Measurement| (m.at.memory_node, m.at.prefetch) == *row && m.experiment == experiment && m.at.order == order;
        // A state that could not be set has one result for both orders.
        let any = |m: &&&Measurement| (m.at.memory_node, m.at.prefetch) == *row && m.experiment == experiment && m.at.order.is_none();
        ms.iter().find(same).or_else(|| ms.iter().find(any)).copied()
    };
    let word = |state: Option<PrefetchRequest>| state.map_or("?", PrefetchRequest::name);
    let (sequential, random) = (Some(ChaseOrder::Sequential), Some(ChaseOrder::WindowLocal));
    let columns = vec![
        Column::words("memory").with(rows.iter().map(|r| Cell::text(node_name(r.0)))),
        Column::words("prefetchers").with(rows.iter().map(|r| Cell::text(word(r.1)))),
        Column::numbers("read GB/s").with(rows.iter().map(|r| marks.cell(find(r, Experiment::Bandwidth, None))).collect::<Vec<_>>()),
        Column::numbers("sequential ns")
            .with(rows.iter().map(|r| marks.cell(find(r, Experiment::IdleLatency, sequential))).collect::<Vec<_>>()),
        Column::numbers("random ns").with(rows.iter().map(|r| marks.cell(find(r, Experiment::IdleLatency, random))).collect::<Vec<_>>()),
    ];
    page.table(&grid(columns, page.width));
    marks.print(page, &mut context.advised);
    let mut items = Vec::new();
    for node in rows.iter().map(|r| r.0).collect::<BTreeSet<_>>() {
        let value = |state, experiment, order| find(&(node, Some(state)), experiment, order).and_then(|m| value_of(&m.estimate));
        let ratio = |experiment, order| {
            let (on, off) = (value(PrefetchRequest::On, experiment, order)?, value(PrefetchRequest::Off, experiment, order)?);
            (off > 0.0).then_some(on / off)
        };
        let order = |state| {
            let m = find(&(node, Some(state)), Experiment::IdleLatency, random)?;
            Some(format!("{:.2} {}", m.evidence.prefetch?.random_over_sequential, state.name()))
        };
        let orders: Vec<String> = [PrefetchRequest::On, PrefetchRequest::Off].into_iter().filter_map(order).collect();
        if let (Some(bandwidth), Some(chase)) = (ratio(Experiment::Bandwidth, None), ratio(Experiment::IdleLatency, sequential)) {
            items.push(format!("{}: on : off {bandwidth:.2} in bandwidth, {chase:.2} in sequential latency", node_name(node)));
        }
        if !orders.is_empty() {
            items.push(format!("random : sequential {}", orders.join(", ")));
        }
    }
    if context.report.notes.iter().any(|n| n.code == memgauge_core::conclusions::prefetchers::NOT_EFFECTIVE) {
        let text = "off is what the registers say; latencies contradict them (see the notes)";
        page.text(Style::Warning, "  ! ", "    ", text);
    }
    let cpus = ms.iter().find_map(|m| m.at.cpus.as_ref().filter(|_| m.experiment == Experiment::Bandwidth));
    items.extend(cpus.map(|c| format!("{} read", cpus_name(c))));
    items.extend(ms.iter().find_map(|m| m.at.cpu).map(|c| format!("{} chases", context.cpu_name(c))));
    // Its summary of random : sequential is of prefetchers that are on; here it stands above, by state.
    let rest: Vec<Measurement> = ms
        .iter()
        .map(|m| {
            let mut m = (*m).clone();
            m.evidence.prefetch = None;
            m
        })
        .collect();
    items.extend(evidence(&rest.iter().collect::<Vec<_>>()));
    page.items(Style::Dim, INDENT, &items);
}
