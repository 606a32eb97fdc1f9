//! A plan for people: what will be done, before anything is measured.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_core::directory::MemoryDir;
use memgauge_core::experiment::{ChaseOrder, Hops, LineState};
use memgauge_core::plan::{BufferPlan, Cell as PlanCell, Delays, Loader, OwnTraffic, Plan, Step, Traffic, Work};
use memgauge_core::topology::Machine;
use memgauge_core::traffic::{Access, LineUse};
use memgauge_core::units::{Bytes, IdSet};

use super::curve::nodes_name;
use super::grid::{Cell, Column, LONGEST, grid};
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

/// Budgets below this are shorter than a burst.
const LEAST_SHOWN_S: f64 = 0.05;
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
        // A run that is to end soon may leave cells no more than the fewest bursts.
        let most =
            if stop.budget_s < LEAST_SHOWN_S { "or the fewest bursts".into() } else { format!("at most {}", seconds(stop.budget_s)) };
        format!("each cell until its 95 % interval is within ±{width}, {most}")
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
        let lines = table(&rows, page.width);
        page.table(&lines);
        let common = |f: fn(&Row) -> String| rows.first().map(f).filter(|first| rows.iter().all(|r| f(r) == *first));
        // Where there is no room for it in a column.
        if differ(&rows, |r| r.detail.clone()) && !lines.first().is_some_and(|head| head.trim_end().ends_with(HOW)) {
            for (detail, of) in details(&rows) {
                page.text(Style::Plain, INDENT, "    ", &format!("{}: {detail}", of.join(", ")));
            }
        }
        let delay = rows.iter().any(|r| r.delay.is_some()).then(|| DELAY.to_owned());
        let items: Vec<String> =
            [common(|r| format!("pages {}", pages(r))), common(|r| r.detail.clone()), delay].into_iter().flatten().collect();
        page.items(Style::Dim, INDENT, &items);
    } else {
        page.items(Style::Plain, INDENT, &summary(&rows));
    }
    let kernels: BTreeSet<&str> = rows.iter().filter(|r| r.kernels.is_empty()).filter_map(|r| r.mix.as_deref()).collect();
    if !kernels.is_empty() {
        page.text(Style::Dim, INDENT, INDENT, "kernels: chosen where this program runs on the machine itself");
    }
}

/// What the column of delays is.
const DELAY: &str = "delay: core cycles between bursts of four lines";

/// One line of the plan; the states of a transfer share one, and loaders that do different things have one each.
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
    /// How many buffers; one that several CPUs share is one.
    buffers: usize,
    /// Of all buffers that exist at the same time.
    total: Bytes,
    pages: BTreeSet<&'static str>,
    kernels: Vec<String>,
    /// Core cycles between bursts, where that was asked for.
    delay: Option<u32>,
    /// Of a scan.
    regions: Option<u32>,
    detail: String,
}

fn rows(cells: &[PlanCell], directories: &[MemoryDir]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut handoffs: BTreeMap<(u32, u32, u32), usize> = BTreeMap::new();
    for cell in cells {
        let mut of_cell = rows_of(cell);
        if directories.iter().any(|d| d.is_dax() && d.file.device_node.is_none() && Some(&d.file.path) == cell.at.memory_dir.as_ref()) {
            // The nodes planned are those that touch it.
            of_cell.iter_mut().for_each(|row| row.memory.clear());
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
        rows.extend(of_cell);
    }
    rows
}

/// Loaders of a cell that do the same, and their traffic.
struct Group<'a> {
    loaders: Vec<&'a Loader>,
    traffic: &'a Traffic,
}

impl Group<'_> {
    fn own(&self) -> Option<&OwnTraffic> {
        self.loaders.first()?.own.as_deref()
    }
}

/// Loaders without traffic of their own are one group; the others are one where they do the same over as large buffers.
fn groups<'a>(loaders: &'a [Loader], traffic: &'a Traffic) -> Vec<Group<'a>> {
    type Kind<'k> = Option<(&'k Traffic, Option<u32>, u32, Bytes, Option<(Bytes, u32, Option<&'k str>)>)>;
    fn kind(loader: &Loader) -> Kind<'_> {
        let own = loader.own.as_deref()?;
        let second = own.second.as_ref().map(|b| (b.bytes, b.node, b.directory.as_deref()));
        Some((&own.traffic, own.delay, own.second_percent, loader.buffer.bytes, second))
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    for loader in loaders {
        match groups.iter_mut().find(|g| g.loaders.first().is_some_and(|first| kind(first) == kind(loader))) {
            Some(group) => group.loaders.push(loader),
            None => groups.push(Group { loaders: vec![loader], traffic: loader.own.as_ref().map_or(traffic, |own| &own.traffic) }),
        }
    }
    groups
}

/// The lines of one cell: the first has what is not a loader's, further ones have loaders that do other things.
fn rows_of(cell: &PlanCell) -> Vec<Row> {
    let mut first = empty(cell);
    let (groups, mut buffers) = match &cell.work {
        Work::Bandwidth { loaders, traffic, .. } => (groups(loaders, traffic), Vec::new()),
        Work::BandwidthSweep(sweep) => (groups(&sweep.loaders, &sweep.traffic), Vec::new()),
        Work::Curve { loaders, traffic, probe, .. } => (groups(loaders, traffic), vec![&probe.buffer]),
        Work::Latency { .. } | Work::Handoff(_) | Work::Transfers(_) | Work::Scan(_) | Work::LatencySweep(_) => {
            (Vec::new(), cell.work.buffers())
        }
    };
    describe(&mut first, cell);
    let common = std::mem::take(&mut first.detail);
    let mut rows: Vec<Row> = Vec::new();
    for (i, group) in groups.iter().enumerate() {
        let mut row = if i == 0 { first.clone() } else { empty(cell) };
        row.cpu = row.cpu.filter(|_| i == 0);
        row.loaders = ids(group.loaders.iter().map(|l| l.cpu));
        row.mix = Some(group.traffic.mix.to_string());
        row.kernels.clone_from(&group.traffic.kernels);
        buffers.extend(group.loaders.iter().flat_map(|l| l.buffers()));
        take(&mut row, &buffers);
        buffers.clear();
        let mut parts = vec![if i == 0 { common.clone() } else { String::new() }];
        if let Some(own) = group.own() {
            row.delay = own.delay.or(row.delay);
            parts.extend(what(own));
        }
        parts.retain(|p| !p.is_empty());
        row.detail = parts.join(", ");
        rows.push(row);
    }
    if rows.is_empty() {
        take(&mut first, &buffers);
        first.detail = common;
        rows.push(first);
    }
    let total = rows.iter().fold(0u64, |sum, r| sum.saturating_add(r.total.0));
    rows.iter_mut().for_each(|r| r.total = Bytes(total));
    // CPUs that were given places for their memory, or one for all, need not use their own.
    let placed = cell.at.memory_node.is_some() || cell.at.load_nodes.is_some() || groups.iter().any(|g| g.own().is_some());
    rows.iter_mut().for_each(|r| r.own = !placed && r.memory.len() > 1);
    rows
}

/// What a loader does, unlike others.
fn what(own: &OwnTraffic) -> Vec<String> {
    let mut parts = vec![form(&own.traffic)];
    if let Some(second) = &own.second {
        let place = second.directory.as_ref().map_or_else(|| format!("on node {}", second.node), |d| format!("in {d}"));
        parts.push(format!("{} % of the accesses go to a second buffer {place}", own.second_percent));
    }
    parts
}

/// How traffic goes over its memory; nothing where it goes from line to line.
fn form(traffic: &Traffic) -> String {
    let line = match traffic.form.line {
        LineUse::Whole => "",
        LineUse::Part => "parts of lines",
        LineUse::WrittenBack => "lines written back after each store",
        LineUse::Checked => "checksums of what is read",
    };
    let access = match traffic.form.access {
        Access::Sequential => String::new(),
        Access::Strided => traffic.stride.map_or_else(String::new, |s| format!("one line every {}", human(s))),
        Access::Random => format!("random access{}", traffic.window.map(|w| format!(" in windows of {}", human(w))).unwrap_or_default()),
    };
    [access.as_str(), line].into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Counts buffers; one that is shared once.
fn take(row: &mut Row, buffers: &[&BufferPlan]) {
    let mut shared: Vec<&BufferPlan> = Vec::new();
    for b in buffers {
        row.memory.insert(b.node);
        row.sizes.insert(b.bytes);
        row.pages.insert(if b.directory.is_some() { "of the file system" } else { b.pages.name() });
        if b.shared {
            if shared.contains(b) {
                continue;
            }
            shared.push(b);
        }
        row.buffers += 1;
        row.total = Bytes(row.total.0.saturating_add(b.bytes.0));
    }
    if let Some(regions) = row.regions {
        row.buffers = regions as usize;
        row.total = Bytes(row.total.0.saturating_mul(regions.into()));
    }
}

fn empty(cell: &PlanCell) -> Row {
    let at = &cell.at;
    Row {
        cpu: at.cpu,
        holder: None,
        loaders: IdSet::new(),
        cpu_node: at.cpu_node,
        memory: BTreeSet::new(),
        own: false,
        mix: None,
        states: BTreeSet::new(),
        sizes: BTreeSet::new(),
        buffers: 0,
        total: Bytes(0),
        pages: BTreeSet::new(),
        kernels: Vec::new(),
        delay: at.delay_cycles,
        regions: None,
        detail: String::new(),
    }
}

/// What a cell does, but for its loaders and buffers.
fn describe(row: &mut Row, cell: &PlanCell) {
    match &cell.work {
        Work::Latency { probe, allocations, orders, hops, histogram } => {
            row.cpu = Some(probe.cpu);
            let allocations = count(*allocations as usize, "allocation", "allocations");
            row.detail = format!("window {}, stride {}, {allocations}", human(probe.window), human(probe.stride));
            if !orders.is_empty() {
                let orders: Vec<&str> = orders.iter().map(|o| order_name(*o)).collect();
                row.detail.push_str(&format!(", {}", orders.join(", ")));
            }
            row.detail.push_str(&manner(*hops, *histogram));
        }
        Work::Bandwidth { delay, .. } => row.delay = row.delay.or((*delay > 0).then_some(*delay)),
        Work::Curve { probe, delays, at_percent, order, hops, histogram, .. } => {
            row.cpu = Some(probe.cpu);
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
            if let Some(nodes) = &cell.at.load_nodes {
                row.detail.push_str(&format!(", load on {}", nodes_name(nodes)));
            }
        }
        Work::Handoff(h) => {
            row.cpu = Some(h.reader);
            row.holder = Some(h.holder);
            row.states.insert(h.state);
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
            row.detail = format!("{}, {}, stride {}", working_sets(&sweep.sizes), order_name(sweep.order), human(sweep.probe.stride));
        }
        Work::BandwidthSweep(sweep) => row.detail = working_sets(&sweep.sizes),
        Work::Scan(scan) => {
            row.loaders.clone_from(&scan.cpus);
            row.mix = Some(scan.traffic.mix.to_string());
            row.kernels.clone_from(&scan.traffic.kernels);
            row.regions = Some(scan.regions);
            let check = if scan.integrity { ", patterns written and compared" } else { "" };
            row.detail = format!("{} over each region{check}", count(scan.passes as usize, "pass", "passes"));
        }
    }
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

/// The head of the last column.
const HOW: &str = "how";

fn differ(rows: &[Row], f: fn(&Row) -> String) -> bool {
    rows.iter().any(|r| f(r) != f(&rows[0]))
}

/// Each way of measuring, and the lines that are measured so.
fn details(rows: &[Row]) -> Vec<(&str, Vec<String>)> {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for row in rows.iter().filter(|r| !r.detail.is_empty()) {
        let of = match (row.cpu, row.holder) {
            (Some(reader), Some(holder)) => format!("CPU {reader} from {holder}"),
            (Some(cpu), _) => format!("CPU {cpu}"),
            _ => super::cpus_name(&row.loaders),
        };
        match all.iter_mut().find(|(detail, _)| *detail == row.detail) {
            Some((_, list)) => list.push(of),
            None => all.push((&row.detail, vec![of])),
        }
    }
    all
}

fn table(rows: &[Row], width: usize) -> Vec<String> {
    let chases = rows.iter().any(|r| r.cpu.is_some());
    let reader = if rows.iter().any(|r| r.holder.is_some()) { "reader" } else { "chases" };
    let cpu = |id: Option<u32>| id.map_or(Cell::Blank, |id| Cell::text(format!("CPU {id}")));
    let states = |r: &Row| r.states.iter().map(|s| if *s == LineState::Hit { "HIT" } else { "HITM" }).collect::<Vec<_>>().join(", ");
    let buffers = |r: &Row| {
        if r.buffers > 1 { format!("{} × {}", r.buffers, sizes(&r.sizes)) } else { sizes(&r.sizes) }
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
    let delay = |r: &Row| r.delay.map_or(Cell::Blank, |d| Cell::text(d.to_string()));
    columns.push(Column::numbers("delay").with(rows.iter().map(delay)));
    columns.push(Column::words("states").with(rows.iter().map(|r| Cell::text(states(r)))));
    columns.push(
        Column::numbers("buffers").with(rows.iter().map(|r| Cell::text(if r.holder.is_some() { sizes(&r.sizes) } else { buffers(r) }))),
    );
    if differ(rows, pages) {
        columns.push(Column::words("pages").with(rows.iter().map(|r| Cell::text(pages(r)))));
    }
    columns.push(Column::words("kernels").optional().with(rows.iter().map(|r| Cell::text(r.kernels.join(", ")))));
    if differ(rows, |r| r.detail.clone()) && rows.iter().all(|r| r.detail.chars().count() <= LONGEST) {
        columns.push(Column::words(HOW).optional().with(rows.iter().map(|r| Cell::text(r.detail.clone()))));
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
    let crews: BTreeSet<usize> = rows.iter().map(|r| r.loaders.len()).filter(|n| *n > 0).collect();
    if crews.len() > 1 {
        items.push(format!("{} CPUs at once", some(crews.iter().map(usize::to_string))));
    }
    let delays: BTreeSet<u32> = rows.iter().filter_map(|r| r.delay).collect();
    if !delays.is_empty() {
        items.push(format!("delays {} (core cycles between bursts of four lines)", some(delays.iter().map(u32::to_string))));
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

/// All of a list, or its ends where it is long.
fn some(list: impl Iterator<Item = String>) -> String {
    let list: Vec<String> = list.collect();
    match list.as_slice() {
        [first, .., last] if list.len() > LISTED_CELLS => format!("{first}…{last} ({} of them)", list.len()),
        _ => list.join(", "),
    }
}

/// `73 working sets from 4 KiB to 1 GiB`.
fn working_sets(sizes: &[Bytes]) -> String {
    match (sizes.first(), sizes.last()) {
        (Some(from), Some(to)) => format!("{} from {} to {}", count(sizes.len(), "working set", "working sets"), human(*from), human(*to)),
        _ => "no working set".into(),
    }
}
