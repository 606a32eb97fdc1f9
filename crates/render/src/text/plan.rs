//! A plan for people: what will be done, before anything is measured.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_core::directory::MemoryDir;
use memgauge_core::plan::{Cell as PlanCell, Delays, LineState, Plan, Step, Work};
use memgauge_core::result::ChaseOrder;
use memgauge_core::spec::Hops;
use memgauge_core::topology::Machine;
use memgauge_core::units::{Bytes, IdSet};

use super::grid::{Cell, Column, grid};
use super::latency::order_name;
use super::number::{count, human, percent, seconds};
use super::page::{INDENT, Page, Style};
use super::{evidence, ids, machine, node_name, notes, shortened};

/// Beyond this many lines a step is summed up.
const LISTED_CELLS: usize = 24;

/// The plan as text of `width` columns, without colours.
pub fn plan_text(plan: &Plan, machine: &Machine, width: usize) -> String {
    let mut page = Page::new(width, false);
    page.heading("Plan", &format!("nothing is measured; {} when it is", duration(plan)));
    page.items(Style::Plain, "", &machine::identity(machine));
    page.items(Style::Plain, "", &rules(plan));
    for dir in &plan.directories {
        page.items(Style::Plain, "", &[evidence::file(&dir.file)]);
    }
    for (i, step) in plan.steps.iter().enumerate() {
        one_step(&mut page, i + 1, step, &plan.directories);
    }
    if plan.steps.is_empty() {
        page.gap();
        page.line(Style::Plain, "No step: there is nothing to measure.");
    }
    notes::list(&mut page, "Notes", plan.notes.iter());
    page.into_text()
}

/// What the whole takes: `about 19 s`, or `about 40 s, at most 63 s` where much depends on how quiet the machine is.
pub(super) fn duration(plan: &Plan) -> String {
    let (about, most) = (seconds(plan.estimated_s), seconds(plan.most_s));
    if plan.most_s > NOTABLE * plan.estimated_s { format!("about {about}, at most {most}") } else { format!("about {about}") }
}

/// A plan whose longest time is so many times its estimate says both.
const NOTABLE: f64 = 1.2;

fn rules(plan: &Plan) -> Vec<String> {
    let stop = &plan.stop;
    let width = percent(stop.relative_half_width);
    let counted = |c: &PlanCell| matches!(c.work, Work::Latency { hops: Some(_), .. } | Work::Curve { hops: Some(_), .. });
    let rule = if plan.steps.iter().flat_map(|s| &s.cells).any(counted) {
        "each chase for the hops asked".to_owned()
    } else if stop.fixed_time {
        format!("each cell for {}", seconds(stop.budget_s))
    } else {
        format!("each cell until its 95 % interval is within ±{width}, at most {}", seconds(stop.budget_s))
    };
    let works = || plan.steps.iter().flat_map(|s| &s.cells).map(|c| &c.work);
    let rule = match works().next() {
        Some(Work::Scan(scan)) if works().all(|w| matches!(w, Work::Scan(_))) => {
            format!("each region {}, in another order each time", count(scan.passes as usize, "time", "times"))
        }
        _ => rule,
    };
    let mut items = vec![rule, format!("seed {}", plan.seed)];
    items.extend(plan.within_s.map(|s| format!("ends after {}, whatever is measured by then", seconds(s))));
    if !plan.keep_awake.is_empty() {
        items.push(format!("kept awake meanwhile: {}", super::cpus_name(&plan.keep_awake)));
    }
    if let Some(name) = &plan.start_signal {
        items.push(format!("each cell waits for 1 in the shared memory {name}"));
    }
    items
}

fn one_step(page: &mut Page, number: usize, step: &Step, directories: &[MemoryDir]) {
    let about = format!("{}, about {}", count(step.cells.len(), "cell", "cells"), seconds(step.estimated_s));
    page.heading(&format!("{number}  {}", step.title), &about);
    let rows: Vec<Row> = rows(&step.cells, directories);
    if rows.len() <= LISTED_CELLS {
        page.table(&table(&rows, page.width));
        let common = |f: fn(&Row) -> String| rows.first().map(f).filter(|first| rows.iter().all(|r| f(r) == *first));
        let items: Vec<String> = [common(|r| format!("pages {}", pages(r))), common(|r| r.detail.clone())].into_iter().flatten().collect();
        page.items(Style::Dim, INDENT, &items);
    } else {
        page.items(Style::Plain, INDENT, &summary(&rows));
    }
    let kernels: BTreeSet<&str> = rows.iter().filter(|r| r.kernels.is_empty()).filter_map(|r| r.mix.as_deref()).collect();
    if !kernels.is_empty() {
        page.text(Style::Dim, INDENT, INDENT, "kernels: chosen where this program runs on the machine itself");
    }
}

/// One line of the plan; the states of a transfer share one.
#[derive(Clone, PartialEq)]
struct Row {
    cpu: Option<u32>,
    holder: Option<u32>,
    loaders: IdSet,
    cpu_node: Option<u32>,
    memory: BTreeSet<u32>,
    /// Each CPU's memory is on its own node, so that naming the nodes would say nothing.
    own: bool,
    mix: Option<String>,
    states: BTreeSet<LineState>,
    /// Of one buffer each.
    sizes: BTreeSet<Bytes>,
    total: Bytes,
    pages: BTreeSet<&'static str>,
    kernels: Vec<String>,
    /// Of a scan.
    regions: Option<u32>,
    detail: String,
}

fn rows(cells: &[PlanCell], directories: &[MemoryDir]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut handoffs: BTreeMap<(u32, u32, u32), usize> = BTreeMap::new();
    for cell in cells {
        let mut row = row(cell);
        if directories.iter().any(|d| d.is_dax() && d.file.device_node.is_none() && Some(&d.file.path) == cell.at.memory_dir.as_ref()) {
            // The nodes planned are those that touch it.
            row.memory.clear();
        }
        if let Work::Handoff(h) = &cell.work {
            let key = (h.reader, h.holder, h.buffer.node);
            if let Some(&i) = handoffs.get(&key) {
                if let Some(earlier) = rows.get_mut(i) {
                    earlier.states.insert(h.state);
                }
                continue;
            }
            handoffs.insert(key, rows.len());
        }
        rows.push(row);
    }
    rows
}

fn row(cell: &PlanCell) -> Row {
    let at = &cell.at;
    let mut row = Row {
        cpu: at.cpu,
        holder: None,
        loaders: IdSet::new(),
        cpu_node: at.cpu_node,
        memory: BTreeSet::new(),
        own: false,
        mix: None,
        states: BTreeSet::new(),
        sizes: BTreeSet::new(),
        total: Bytes(0),
        pages: BTreeSet::new(),
        kernels: Vec::new(),
        regions: None,
        detail: String::new(),
    };
    let mut buffers = Vec::new();
    match &cell.work {
        Work::Latency { probe, allocations, orders, hops, histogram } => {
            row.cpu = Some(probe.cpu);
            buffers.push(&probe.buffer);
            let allocations = count(*allocations as usize, "allocation", "allocations");
            row.detail = format!("window {}, stride {}, {allocations}", human(probe.window), human(probe.stride));
            if !orders.is_empty() {
                let orders: Vec<&str> = orders.iter().map(|o| order_name(*o)).collect();
                row.detail.push_str(&format!(", {}", orders.join(", ")));
            }
            row.detail.push_str(&manner(*hops, *histogram));
        }
        Work::Bandwidth { loaders, traffic, .. } => {
            row.loaders = ids(loaders.iter().map(|l| l.cpu));
            buffers.extend(loaders.iter().map(|l| &l.buffer));
            row.mix = Some(traffic.mix.to_string());
            row.kernels.clone_from(&traffic.kernels);
        }
        Work::Curve { probe, loaders, traffic, delays, at_percent, order, hops, histogram } => {
            row.cpu = Some(probe.cpu);
            row.loaders = ids(loaders.iter().map(|l| l.cpu));
            buffers.push(&probe.buffer);
            buffers.extend(loaders.iter().map(|l| &l.buffer));
            row.mix = Some(traffic.mix.to_string());
            row.kernels.clone_from(&traffic.kernels);
            row.detail = match delays {
                Delays::Adaptive { points } => format!("up to {points} delays, chosen while measuring"),
                Delays::Cycles(list) => format!("delays {}", list.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
            };
            if !at_percent.is_empty() {
                let list: Vec<String> = at_percent.iter().map(|p| format!("{p} %")).collect();
                row.detail.push_str(&format!(", then those of {} of the peak", list.join(", ")));
            }
            if *order != ChaseOrder::WindowLocal {
                row.detail.push_str(&format!(", {}", order_name(*order)));
            }
            row.detail.push_str(&manner(*hops, *histogram));
        }
        Work::Handoff(h) => {
            row.cpu = Some(h.reader);
            row.holder = Some(h.holder);
            row.states.insert(h.state);
            buffers.push(&h.buffer);
            row.detail = format!("window {}, stride {}", human(h.window), human(h.stride));
            if h.order != ChaseOrder::WindowLocal {
                row.detail.push_str(&format!(", {}", order_name(h.order)));
            }
            if let Some(sharer) = h.sharer {
                row.detail.push_str(&format!(", shared by CPU {sharer}"));
            }
            for (who, bytes) in [("holder", h.holder_pushes), ("reader", h.reader_pushes)] {
                if bytes.0 > 0 {
                    row.detail.push_str(&format!(", {who} pushes {}", human(bytes)));
                }
            }
        }
        Work::Transfers(t) => {
            row.loaders = t.ends.iter().map(|e| e.cpu).collect();
            row.states.extend(&t.states);
            buffers.extend(t.ends.iter().flat_map(|e| &e.buffers));
            let windows: BTreeSet<String> = t.ends.iter().map(|e| human(e.window)).collect();
            let windows: Vec<String> = windows.into_iter().collect();
            row.detail = format!(
                "{} in {}, up to {} at once; window {}, stride {}",
                count(t.pairs() as usize, "ordered pair", "ordered pairs"),
                count(t.rounds as usize, "round", "rounds"),
                t.at_once,
                windows.join(" or "),
                human(t.stride)
            );
            if let Some(order) = t.order {
                row.detail.push_str(&format!(", {}", order_name(order)));
            }
        }
        Work::LatencySweep(sweep) => {
            row.cpu = Some(sweep.probe.cpu);
            buffers.push(&sweep.probe.buffer);
            row.detail = format!("{}, {}, stride {}", working_sets(&sweep.sizes), order_name(sweep.order), human(sweep.probe.stride));
        }
        Work::BandwidthSweep(sweep) => {
            row.loaders = ids(sweep.loaders.iter().map(|l| l.cpu));
            buffers.extend(sweep.loaders.iter().map(|l| &l.buffer));
            row.mix = Some(sweep.traffic.mix.to_string());
            row.kernels.clone_from(&sweep.traffic.kernels);
            row.detail = working_sets(&sweep.sizes);
        }
        Work::Scan(scan) => {
            row.loaders.clone_from(&scan.cpus);
            row.mix = Some(scan.traffic.mix.to_string());
            row.kernels.clone_from(&scan.traffic.kernels);
            row.regions = Some(scan.regions);
            buffers.push(&scan.region);
            let check = if scan.integrity { ", patterns written and compared" } else { "" };
            row.detail = format!("{} over each region{check}", count(scan.passes as usize, "pass", "passes"));
        }
    }
    for b in buffers {
        row.memory.insert(b.node);
        row.sizes.insert(b.bytes);
        row.total = Bytes(row.total.0.saturating_add(b.bytes.0));
        row.pages.insert(if b.directory.is_some() { "of the file system" } else { b.pages.name() });
    }
    row.total = Bytes(row.total.0.saturating_mul(row.regions.unwrap_or(1).into()));
    row.own = at.memory_node.is_none() && row.memory.len() > 1;
    row
}

/// How far a chase goes and what else is timed, where it was asked for.
fn manner(hops: Option<Hops>, histogram: Option<u32>) -> String {
    let hops = hops.map(|hops| match hops {
        Hops::Count(hops) => format!(", {hops} hops each"),
        Hops::OnePass => ", one pass each".to_owned(),
    });
    let batches = histogram.map(|batch| format!(", batches of {batch} timed"));
    [hops, batches].into_iter().flatten().collect()
}

fn sizes(sizes: &BTreeSet<Bytes>) -> String {
    match (sizes.first(), sizes.last()) {
        (Some(low), Some(high)) if low != high => format!("{}–{}", human(*low), human(*high)),
        (Some(one), _) => human(*one),
        _ => String::new(),
    }
}

fn memory(row: &Row) -> String {
    if row.own {
        return "own nodes".to_owned();
    }
    match row.memory.first() {
        None => "device".to_owned(),
        Some(one) if row.memory.len() == 1 => node_name(Some(*one)),
        _ => format!("nodes {}", shortened(&ids(row.memory.iter().copied()))),
    }
}

fn pages(row: &Row) -> String {
    row.pages.iter().copied().collect::<Vec<_>>().join(", ")
}

fn table(rows: &[Row], width: usize) -> Vec<String> {
    let chases = rows.iter().any(|r| r.cpu.is_some());
    let reader = if rows.iter().any(|r| r.holder.is_some()) { "reader" } else { "chases" };
    let cpu = |id: Option<u32>| id.map_or(Cell::Blank, |id| Cell::text(format!("CPU {id}")));
    let states = |r: &Row| r.states.iter().map(|s| if *s == LineState::Hit { "HIT" } else { "HITM" }).collect::<Vec<_>>().join(", ");
    let buffers = |r: &Row| {
        let n = r.regions.map_or(r.loaders.len() + usize::from(r.cpu.is_some()), |n| n as usize);
        if n > 1 { format!("{n} × {}", sizes(&r.sizes)) } else { sizes(&r.sizes) }
    };
    let mut columns = Vec::new();
    if chases {
        columns.push(Column::words(reader).with(rows.iter().map(|r| cpu(r.cpu))));
    }
    columns.push(Column::words("holder").with(rows.iter().map(|r| cpu(r.holder))));
    let loaders = |r: &Row| if r.loaders.is_empty() { Cell::Blank } else { Cell::text(shortened(&r.loaders)) };
    columns.push(Column::words(if chases { "load" } else { "CPUs" }).with(rows.iter().map(loaders)));
    columns.push(Column::words("memory").with(rows.iter().map(|r| Cell::text(memory(r)))));
    columns.push(Column::words("mix").with(rows.iter().map(|r| r.mix.clone().map_or(Cell::Blank, Cell::text))));
    columns.push(Column::words("states").with(rows.iter().map(|r| Cell::text(states(r)))));
    columns.push(
        Column::numbers("buffers").with(rows.iter().map(|r| Cell::text(if r.holder.is_some() { sizes(&r.sizes) } else { buffers(r) }))),
    );
    let differ = |f: fn(&Row) -> String| rows.iter().any(|r| f(r) != f(&rows[0]));
    if differ(pages) {
        columns.push(Column::words("pages").with(rows.iter().map(|r| Cell::text(pages(r)))));
    }
    columns.push(Column::words("kernels").optional().with(rows.iter().map(|r| Cell::text(r.kernels.join(", ")))));
    if differ(|r| r.detail.clone()) {
        columns.push(Column::words("how").optional().with(rows.iter().map(|r| Cell::text(r.detail.clone()))));
    }
    grid(columns, width)
}

/// What many cells have in common, and the ranges of what they have not.
fn summary(rows: &[Row]) -> Vec<String> {
    let cpus = ids(rows.iter().filter_map(|r| r.cpu));
    let holders = ids(rows.iter().filter_map(|r| r.holder));
    let loaders = rows.iter().fold(IdSet::new(), |all, r| all.union(&r.loaders));
    let cpu_nodes = ids(rows.iter().filter_map(|r| r.cpu_node));
    let memory = ids(rows.iter().flat_map(|r| r.memory.iter().copied()));
    let mixes: BTreeSet<&str> = rows.iter().filter_map(|r| r.mix.as_deref()).collect();
    let pages: BTreeSet<&str> = rows.iter().flat_map(|r| r.pages.iter().copied()).collect();
    let details: BTreeSet<&str> = rows.iter().map(|r| r.detail.as_str()).filter(|d| !d.is_empty()).collect();
    let buffers: BTreeSet<Bytes> = rows.iter().flat_map(|r| r.sizes.iter().copied()).collect();
    let mut items = Vec::new();
    if holders.is_empty() && cpu_nodes.len() > 1 && !memory.is_empty() {
        items.push(format!("CPUs of nodes {} × memory of nodes {}", shortened(&cpu_nodes), shortened(&memory)));
    } else if !memory.is_empty() {
        items.push(format!("memory of {} {}", if memory.len() == 1 { "node" } else { "nodes" }, shortened(&memory)));
    }
    if holders.is_empty() {
        if !cpus.is_empty() {
            items.push(format!("chasing: {}", super::cpus_name(&cpus)));
        }
        if !loaders.is_empty() {
            items.push(format!("loading: {}", super::cpus_name(&loaders)));
        }
    } else {
        items.push(format!("{} of readers {} and holders {}", count(rows.len(), "pair", "pairs"), shortened(&cpus), shortened(&holders)));
    }
    if !mixes.is_empty() {
        items.push(format!("{} {}", if mixes.len() == 1 { "mix" } else { "mixes" }, mixes.into_iter().collect::<Vec<_>>().join(", ")));
    }
    items.push(format!("buffers {}", sizes(&buffers)));
    if let Some(most) = rows.iter().map(|r| r.total).max() {
        items.push(format!("at most {} at a time", human(most)));
    }
    items.push(format!("pages {}", pages.into_iter().collect::<Vec<_>>().join(", ")));
    if details.len() <= 3 {
        items.extend(details.into_iter().map(str::to_owned));
    }
    items
}

/// `73 working sets from 4 KiB to 1 GiB`.
fn working_sets(sizes: &[Bytes]) -> String {
    match (sizes.first(), sizes.last()) {
        (Some(from), Some(to)) => format!("{} from {} to {}", count(sizes.len(), "working set", "working sets"), human(*from), human(*to)),
        _ => "no working set".into(),
    }
}
