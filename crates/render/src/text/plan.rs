//! A plan for people: what will be done, before anything is measured.

mod row;
mod rows;

use std::collections::BTreeSet;

use memgauge_model::directory::MemoryDir;
use memgauge_model::experiment::LineState;
use memgauge_model::plan::{Cell as PlanCell, IdleChase, LoadCurve, Plan, Step, Work};
use memgauge_model::topology::Machine;
use memgauge_model::units::IdSet;
use memgauge_model::wording;

use self::row::Row;
use super::block::Block;
use super::grid::Column;
use super::layout::lay_out;
use super::page::{INDENT, LONGEST, Page, Style};
use super::{evidence, machine, notes, places, tiers};
use crate::number::{count, human, percent, seconds, sizes};

/// With more lines than this a step is summed up.
const LISTED_CELLS: usize = 24;

/// The plan where it is all that is asked for.
pub(crate) fn plan_blocks(plan: &Plan, machine: &Machine) -> Vec<Block> {
    blocks_under(&format!("nothing is measured; the run would take {}", duration(plan)), plan, machine)
}

/// The plan as text of `width` columns, without colours, where it is measured next.
pub fn plan_of_run_text(plan: &Plan, machine: &Machine, width: usize) -> String {
    lay_out(&blocks_under(&format!("the run takes {}", duration(plan)), plan, machine), width, false)
}

fn blocks_under(heading: &str, plan: &Plan, machine: &Machine) -> Vec<Block> {
    let mut page = Page::new(true);
    page.heading("Plan", heading);
    page.items(Style::Plain, "", machine::identity(machine));
    page.items(Style::Plain, "", rules(plan));
    for dir in &plan.directories {
        page.items(Style::Plain, "", &[evidence::file(&dir.file)]);
        page.items(Style::Plain, INDENT, places::device(dir));
    }
    tiers::nodes(&mut page, plan, machine);
    for (i, step) in plan.steps.iter().enumerate() {
        one_step(&mut page, i + 1, step, &plan.directories);
    }
    if plan.steps.is_empty() {
        page.gap();
        page.line(Style::Plain, "No step: there is nothing to measure.");
    }
    notes::list(&mut page, "Notes", plan.notes.iter());
    page.into_blocks()
}

/// How long the run takes: `about 19 s`, or `about 40 s, at most 63 s` where that depends on how quiet the machine is.
pub fn duration(plan: &Plan) -> String {
    let (about, longest) = (seconds(plan.estimated_s), seconds(plan.max_s));
    if plan.max_s > NOTABLE_RATIO * plan.estimated_s { format!("about {about}, at most {longest}") } else { format!("about {about}") }
}

/// A budget below this is shorter than a burst.
const MIN_BUDGET_S: f64 = 0.05;
/// The longest time is printed, too, when it is this many times the estimate.
const NOTABLE_RATIO: f64 = 1.2;

/// How long each cell is measured, and what else holds for all of them.
pub(crate) fn rules(plan: &Plan) -> Vec<String> {
    let mut items = vec![stopping_rule(plan), format!("seed {}", plan.seed)];
    items.extend(plan.within_s.map(|s| format!("ends after {}, whatever has been measured by then", seconds(s))));
    let tests = |cell: &PlanCell| matches!(&cell.work, Work::Scan(scan) if scan.integrity);
    if plan.within_s.is_some() && plan.steps.iter().flat_map(|s| &s.cells).any(tests) {
        items.push("patterns are written and compared again while time is left".into());
    }
    items.extend(plan.stamp.as_ref().map(|stamp| format!("a stamp before and after, at most {} each", seconds(stamp.at_most_s))));
    if !plan.keep_awake.is_empty() {
        items.push(format!("{} kept awake during the run", wording::cpus(&plan.keep_awake)));
    }
    items.extend(plan.start_signal.as_ref().map(|name| format!("each cell waits for 1 in the shared memory {name}")));
    items
}

/// When the measurement of a cell ends.
fn stopping_rule(plan: &Plan) -> String {
    let works = || plan.steps.iter().flat_map(|s| &s.cells).map(|c: &PlanCell| &c.work);
    if let Some(Work::Scan(scan)) = works().next()
        && works().all(|w| matches!(w, Work::Scan(_)))
    {
        return format!("each region {}, in another order each time", count(scan.passes as usize, "time", "times"));
    }
    let stop = &plan.stop;
    let has_hops = |w: &Work| matches!(w, Work::Latency(IdleChase { hops: Some(_), .. }) | Work::Curve(LoadCurve { hops: Some(_), .. }));
    if works().any(has_hops) {
        return "each chase for the number of hops asked for".to_owned();
    }
    if stop.fixed_time {
        return format!("each cell for {}", seconds(stop.budget_s));
    }
    // A run that is to end soon may have no more time for a cell than the fewest bursts take.
    let longest =
        if stop.budget_s < MIN_BUDGET_S { "or for the fewest bursts".into() } else { format!("at most {}", seconds(stop.budget_s)) };
    format!("each cell until its 95 % interval is within ±{}, {longest}", percent(stop.relative_half_width))
}

fn one_step(page: &mut Page, number: usize, step: &Step, directories: &[MemoryDir]) {
    let about = format!("{}, about {}", count(step.cells.len(), "cell", "cells"), seconds(step.estimated_s));
    page.heading(&format!("{number}  {}", step.title), &about);
    let rows = rows::rows(&step.cells, directories);
    if rows.len() <= LISTED_CELLS {
        page.table(table(&rows));
        let common = |f: fn(&Row) -> String| rows.first().map(f).filter(|first| rows.iter().all(|r| f(r) == *first));
        let delay = rows.iter().any(|r| r.delay.is_some()).then(|| DELAY.to_owned());
        let items: Vec<String> =
            [common(|r| format!("pages {}", r.pages_text())), common(|r| r.detail.clone()), delay].into_iter().flatten().collect();
        page.items(Style::Dim, INDENT, &items);
    } else {
        page.items(Style::Plain, INDENT, summary(&rows));
    }
    let kernels: BTreeSet<&str> = rows.iter().filter(|r| r.kernels.is_empty()).filter_map(|r| r.mix.as_deref()).collect();
    if !kernels.is_empty() {
        page.paragraph(Style::Dim, "kernels: chosen when this program runs on the machine itself");
    }
}

/// What the column of delays shows.
const DELAY: &str = "delay: core cycles that a loader waits after every four lines";

fn differ(rows: &[Row], f: fn(&Row) -> String) -> bool {
    rows.iter().any(|r| f(r) != f(&rows[0]))
}

/// Each detail after the CPUs of the lines that have it.
fn details(rows: &[Row]) -> Vec<String> {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for row in rows.iter().filter(|r| !r.detail.is_empty()) {
        let name = match (row.cpu, row.holder) {
            (Some(reader), Some(holder)) => format!("CPU {reader} from {holder}"),
            (Some(cpu), _) => format!("CPU {cpu}"),
            _ => wording::cpus(&row.loaders),
        };
        match all.iter_mut().find(|(detail, _)| *detail == row.detail) {
            Some((_, list)) => list.push(name),
            None => all.push((&row.detail, vec![name])),
        }
    }
    all.into_iter().map(|(detail, names)| format!("{}: {detail}", names.join(", "))).collect()
}

fn table(rows: &[Row]) -> [Column; 11] {
    let chases = rows.iter().any(|r| r.cpu.is_some());
    let reader = if rows.iter().any(|r| r.holder.is_some()) { "reader" } else { "chases" };
    let cpu = |id: Option<u32>| id.map(|id| format!("CPU {id}"));
    let states = |r: &Row| r.states.iter().map(|s| if *s == LineState::Hit { "HIT" } else { "HITM" }).collect::<Vec<_>>().join(", ");
    let loaders = |r: &Row| if r.loaders.is_empty() { String::new() } else { wording::ids(&r.loaders) };
    let detail_fits = rows.iter().all(|r| r.detail.chars().count() <= LONGEST);
    let details = if differ(rows, |r| r.detail.clone()) { details(rows) } else { Vec::new() };
    [
        Column::text(reader, rows.iter().map(|r| cpu(r.cpu))),
        Column::text("holder", rows.iter().map(|r| cpu(r.holder))),
        Column::text(if chases { "load" } else { "CPUs" }, rows.iter().map(loaders)),
        Column::text("memory", rows.iter().map(Row::memory_text)),
        Column::text("mix", rows.iter().map(|r| r.mix.clone())),
        Column::numbers("delay", rows.iter().map(|r| r.delay.map(|d| d.to_string()))),
        Column::text("states", rows.iter().map(states)),
        Column::numbers("buffers", rows.iter().map(Row::buffers_text)),
        Column::text("pages", rows.iter().map(Row::pages_text)).only_if(differ(rows, Row::pages_text)),
        Column::text("kernels", rows.iter().map(|r| r.kernels.join(", "))).optional(),
        // A page too narrow for the column has a line for each detail.
        Column::text("how", rows.iter().map(|r| r.detail.clone())).only_if(detail_fits && !details.is_empty()).or_lines(details),
    ]
}

/// The properties that many cells share, and the ranges of those that differ.
fn summary(rows: &[Row]) -> Vec<String> {
    let pages: BTreeSet<&str> = rows.iter().flat_map(|r| r.pages.iter().copied()).collect();
    let details: BTreeSet<&str> = rows.iter().map(|r| r.detail.as_str()).filter(|d| !d.is_empty()).collect();
    let buffers = sizes(rows.iter().flat_map(|r| r.sizes.iter().copied())).unwrap_or_default();
    let mut items = places(rows);
    items.extend(load(rows));
    items.push(format!("buffers {buffers}"));
    items.extend(rows.iter().map(|r| r.total).max().map(|largest| format!("at most {} at a time", human(largest))));
    items.push(format!("pages {}", pages.into_iter().collect::<Vec<_>>().join(", ")));
    if details.len() <= 3 {
        items.extend(details.into_iter().map(str::to_owned));
    }
    items
}

/// CPUs and memory of many cells.
fn places(rows: &[Row]) -> Vec<String> {
    let cpus: IdSet = rows.iter().filter_map(|r| r.cpu).collect();
    let holders: IdSet = rows.iter().filter_map(|r| r.holder).collect();
    let loaders = rows.iter().fold(IdSet::new(), |all, r| all.union(&r.loaders));
    let cpu_nodes: IdSet = rows.iter().filter_map(|r| r.cpu_node).collect();
    let memory: IdSet = rows.iter().flat_map(|r| r.memory.iter().copied()).collect();
    let mut items = Vec::new();
    if holders.is_empty() && cpu_nodes.len() > 1 && !memory.is_empty() {
        items.push(format!("CPUs of {} × memory of {}", wording::nodes(&cpu_nodes), wording::nodes(&memory)));
    } else if !memory.is_empty() {
        items.push(format!("memory of {}", wording::nodes(&memory)));
    }
    if !holders.is_empty() {
        let pairs = count(rows.len(), "pair", "pairs");
        items.push(format!("{pairs} of readers {} and holders {}", wording::ids(&cpus), wording::ids(&holders)));
        return items;
    }
    if !cpus.is_empty() {
        items.push(format!("chasing: {}", wording::cpus(&cpus)));
    }
    if !loaders.is_empty() {
        items.push(format!("loading: {}", wording::cpus(&loaders)));
    }
    items
}

/// Mixes, numbers of CPUs and delays of many cells.
fn load(rows: &[Row]) -> Vec<String> {
    let mut items = Vec::new();
    let mixes: BTreeSet<&str> = rows.iter().filter_map(|r| r.mix.as_deref()).collect();
    if !mixes.is_empty() {
        items.push(format!("{} {}", if mixes.len() == 1 { "mix" } else { "mixes" }, mixes.into_iter().collect::<Vec<_>>().join(", ")));
    }
    let loader_counts: BTreeSet<usize> = rows.iter().map(|r| r.loaders.len()).filter(|n| *n > 0).collect();
    if loader_counts.len() > 1 {
        items.push(format!("{} CPUs at once", abbreviated(loader_counts.iter().map(usize::to_string))));
    }
    let delays: BTreeSet<u32> = rows.iter().filter_map(|r| r.delay).collect();
    if !delays.is_empty() {
        items.push(format!("delays {} (core cycles between bursts of four lines)", abbreviated(delays.iter().map(u32::to_string))));
    }
    items
}

/// All of a list, or its ends where it is long.
fn abbreviated(list: impl Iterator<Item = String>) -> String {
    let list: Vec<String> = list.collect();
    match list.as_slice() {
        [first, .., last] if list.len() > LISTED_CELLS => format!("{first}…{last} ({} of them)", list.len()),
        _ => list.join(", "),
    }
}
