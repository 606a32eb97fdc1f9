//! Prefetchers: their state, and what they are worth.

use memgauge_model::experiment::{ChaseOrder, Metric, PrefetchRequest};
use memgauge_model::prefetchers::{PrefetchGroup, PrefetchState, PrefetchStatus};
use memgauge_model::result::{Measurement, Report};
use memgauge_model::wording;

use super::block::Part;
use super::context::Context;
use super::evidence::evidence_without_prefetch;
use super::footnotes::Footnotes;
use super::grid::{Cell, Column};
use super::page::{INDENT, Page, Style};
use super::{machine, notes};
use crate::groups::{PrefetchTable, by_prefetch};
use crate::number::value_of;
use crate::pivot::sorted;

/// The page of `prefetch status`.
pub(super) fn status(page: &mut Page, report: &Report, state: &PrefetchState) {
    machine::title(page, report);
    page.items(Style::Plain, "", machine::identity(&report.machine));
    page.part(Part::Places);
    page.heading("Prefetchers", state.register.as_deref().unwrap_or("no register"));
    let names = |list: &[String]| if list.is_empty() { "–".to_owned() } else { list.join(", ") };
    let read: Vec<&PrefetchGroup> = state.groups.iter().filter(|g| g.value.is_some()).collect();
    if !read.is_empty() {
        page.table([
            Column::text("CPUs", read.iter().map(|g| wording::ids(&g.cpus))),
            Column::numbers("value", read.iter().map(|g| Cell::number(g.value.clone().unwrap_or_default()))),
            Column::text("on", read.iter().map(|g| names(&g.on))),
            Column::text("off", read.iter().map(|g| names(&g.off))),
        ]);
    }
    for group in state.groups.iter().filter(|g| g.value.is_none() && g.reason != state.reason) {
        let text = format!("{}: {}", wording::cpus(&group.cpus), group.reason.as_deref().unwrap_or("not read"));
        page.text(Style::Plain, INDENT, "    ", &text);
    }
    page.text(Style::Plain, INDENT, "    ", &claim(state));
    if let Some(advice) = &state.advice {
        page.text(Style::Dim, INDENT, "    ", &advice.to_string());
    }
    if state.register.is_some() {
        let rest = "Other prefetchers (of the last-level cache, of memory controllers and links) have no documented register and are not shown; the BIOS set-up may control them";
        page.text(Style::Dim, INDENT, "    ", rest);
    }
    page.part(Part::Notes);
    notes::list(page, "Notes", report.notes.iter());
}

/// The state of the prefetchers, in one sentence.
pub(super) fn claim(state: &PrefetchState) -> String {
    let verified: Vec<String> = state.groups.iter().filter(|g| g.value.is_some()).map(|g| wording::cpus(&g.cpus)).collect();
    let cpus = verified.join(", ");
    match state.status {
        PrefetchStatus::On => format!("all documented prefetchers are on, by the registers of {cpus}"),
        PrefetchStatus::Off => format!("all documented prefetchers are off, by the registers of {cpus}"),
        PrefetchStatus::Partly => format!("documented prefetchers are partly on, by the registers of {cpus}"),
        PrefetchStatus::Unknown => {
            format!("the state of the prefetchers is not known: {}", state.reason.as_deref().unwrap_or("the result does not say why"))
        }
    }
}

/// One line below the header of a run that switched prefetchers.
pub(super) fn line(page: &mut Page, report: &Report) {
    if let Some(state) = report.environment.prefetch.as_ref().filter(|state| state.requested != PrefetchRequest::Leave) {
        let style = if state.status == PrefetchStatus::Unknown { Style::Warning } else { Style::Plain };
        page.text(style, "", "  ", &format!("Prefetchers were to be {}: {}", state.requested.name(), claim(state)));
    }
}

/// By node and state: bandwidth, latency in ascending and in random order.
pub(super) fn compare(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let about = context.about("GB/s: 10⁹ bytes a second, ns per dependent load");
    page.heading("Prefetchers on and off", &about);
    let mut footnotes = Footnotes::new(context, ms);
    let table = by_prefetch(ms);
    let rows = &table.rows;
    let mut cells = |metric, order| -> Vec<Cell> { rows.iter().map(|row| footnotes.cell(table.find(*row, metric, order))).collect() };
    page.table([
        Column::text("memory", rows.iter().map(|r| wording::node(r.0))),
        Column::text("prefetchers", rows.iter().map(|r| r.1.map_or("?", state_name))),
        Column::numbers("read GB/s", cells(Metric::Bandwidth, None)),
        Column::numbers("sequential ns", cells(Metric::Latency, SEQUENTIAL)),
        Column::numbers("random ns", cells(Metric::Latency, RANDOM)),
    ]);
    footnotes.print(page, &mut context.advised);
    if context.report.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::PrefetchOffNotEffective) {
        let text = "the registers say off, but the latencies contradict them (see the notes)";
        page.text(Style::Warning, "  ! ", "    ", text);
    }
    let mut items: Vec<String> = sorted(rows.iter().map(|r| r.0)).into_iter().flat_map(|node| ratios(&table, node)).collect();
    let cpus = ms.iter().find_map(|m| m.at.cpus.as_ref().filter(|_| m.metric == Metric::Bandwidth));
    items.extend(cpus.map(|c| format!("{} read", wording::cpus(c))));
    items.extend(ms.iter().find_map(|m| m.at.cpu).map(|c| format!("{} chases", context.cpu_name(c))));
    page.items(Style::Dim, INDENT, &items);
    page.items(Style::Detail, INDENT, evidence_without_prefetch(ms));
}

/// What a row measures: prefetchers that cannot be switched are as they are.
const fn state_name(state: PrefetchRequest) -> &'static str {
    match state {
        PrefetchRequest::Leave => "as found",
        other => other.name(),
    }
}

const SEQUENTIAL: Option<ChaseOrder> = Some(ChaseOrder::Sequential);
const RANDOM: Option<ChaseOrder> = Some(ChaseOrder::WindowLocal);

/// The gain from prefetchers for the memory of a node, and the ratio of random to sequential order in each state.
fn ratios(table: &PrefetchTable<'_>, node: Option<u32>) -> Vec<String> {
    let cell = |state, metric, order| table.find((node, Some(state)), metric, order);
    let value = |state, metric, order| cell(state, metric, order).and_then(|m| value_of(&m.estimate));
    let on_over_off = |metric, order| {
        let (on, off) = (value(PrefetchRequest::On, metric, order)?, value(PrefetchRequest::Off, metric, order)?);
        (off > 0.0).then_some(on / off)
    };
    let mut items = Vec::new();
    if let (Some(bandwidth), Some(chase)) = (on_over_off(Metric::Bandwidth, None), on_over_off(Metric::Latency, SEQUENTIAL)) {
        items.push(format!("{}: on : off {bandwidth:.2} in bandwidth, {chase:.2} in sequential latency", wording::node(node)));
    }
    let random_over_sequential = |state: PrefetchRequest| {
        let evidence = cell(state, Metric::Latency, RANDOM).filter(|m| m.is_reliable())?.evidence.prefetch?;
        Some(format!("{:.2} {}", evidence.random_over_sequential, state_name(state)))
    };
    let states: Vec<String> =
        [PrefetchRequest::Leave, PrefetchRequest::On, PrefetchRequest::Off].into_iter().filter_map(random_over_sequential).collect();
    if !states.is_empty() {
        items.push(format!("random : sequential {}", states.join(", ")));
    }
    items
}
