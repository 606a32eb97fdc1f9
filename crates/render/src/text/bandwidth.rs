//! Bandwidth: by mix, by number of CPUs, by node.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_core::directory::FileBacking;
use memgauge_core::result::{Measurement, RfoEvidence, VerdictStatus};
use memgauge_core::traffic::{Mix, Rfo};
use memgauge_core::units::IdSet;

use super::evidence::evidence;
use super::grid::{Cell, Column, blocks, grid};
use super::latency::{DETAILED_COLUMNS, column_name, without_half};
use super::marks::Marks;
use super::number::{bar, bounds, maybe, number, percent, value_of};
use super::page::{INDENT, Page, Style};
use super::{Context, cpus_name, memory_only, node_name};

const ABOUT: &str = "GB/s: 10⁹ bytes loaded and stored a second";
/// Columns of a full bar.
const BAR: usize = 20;

/// One line a mix.
pub(super) fn by_mix(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let mut ms = ms.to_vec();
    ms.sort_by_key(|m| (m.at.cpus.clone(), m.at.memory_node, m.at.mix, m.at.delay_cycles));
    let mixes: BTreeSet<_> = ms.iter().map(|m| m.at.mix).collect();
    let title = match (ms.len(), mixes.len()) {
        (1, _) => "Bandwidth",
        (_, 1) if ms.iter().any(|m| m.at.delay_cycles.is_some()) => "Bandwidth by injection delay",
        _ => "Peak bandwidth by mix",
    };
    let about = context.about(ABOUT);
    page.heading(&context.title(&ms, title), &about);
    mixes_table(page, context, &ms);
}

/// The best of each mix that a search found.
pub(super) fn search(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let mut best: BTreeMap<Option<Mix>, &Measurement> = BTreeMap::new();
    for m in ms {
        let known = best.entry(m.at.mix).or_insert(m);
        if value_of(&m.estimate).unwrap_or(f64::MIN) > value_of(&known.estimate).unwrap_or(f64::MIN) {
            *known = m;
        }
    }
    let best: Vec<&Measurement> = best.into_values().collect();
    let about = context.about(ABOUT);
    page.heading(&context.title(&best, "Highest bandwidth by mix"), &about);
    mixes_table(page, context, &best);
    let tried: BTreeSet<_> = ms.iter().map(|m| (&m.at.cpus, m.at.delay_cycles)).collect();
    let text = format!("the highest of {} numbers of CPUs and delays each; all are in the JSON", tried.len());
    page.text(Style::Dim, INDENT, INDENT, &text);
}

fn mixes_table(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let mut marks = Marks::new(context.report, ms);
    let several = |f: fn(&Measurement) -> String| ms.iter().map(|m| f(m)).collect::<BTreeSet<_>>().len() > 1;
    let mut columns = Vec::new();
    if several(loaders) {
        columns.push(Column::words("CPUs").with(ms.iter().map(|m| Cell::text(loaders(m)))));
    }
    if several(|m| node_name(m.at.memory_node)) {
        columns.push(Column::words("memory").with(ms.iter().map(|m| Cell::text(node_name(m.at.memory_node)))));
    }
    columns.push(Column::words("mix").with(ms.iter().map(|m| Cell::text(m.at.mix.map_or("as given", Mix::name)))));
    if ms.iter().any(|m| m.at.delay_cycles.is_some()) {
        let delays = ms.iter().map(|m| Cell::text(m.at.delay_cycles.map(|d| d.to_string()).unwrap_or_default()));
        columns.push(Column::numbers("delay").with(delays));
    }
    columns.push(Column::numbers("GB/s").with(ms.iter().map(|m| marks.cell(Some(m)))));
    columns.push(Column::numbers("of limit").with(ms.iter().map(|m| of_limit(m))));
    let rates = |f: fn(&Measurement) -> Cell| ms.iter().map(move |m| f(m));
    columns.push(Column::numbers("read").with(rates(|m| rate(m, |t| Some(t.app_read_gbs)))));
    columns.push(Column::numbers("written").with(rates(|m| rate(m, |t| Some(t.app_write_gbs)))));
    columns.push(Column::numbers("bus").with(rates(|m| rate(m, |t| t.bus_estimate_gbs))));
    if several(|m| m.evidence.kernel.clone()) {
        columns.push(Column::words("kernel").optional().with(ms.iter().map(|m| Cell::text(m.evidence.kernel.clone()))));
    }
    let what = ms.iter().map(|m| Cell::text(m.at.mix.map(Mix::description).unwrap_or_default()));
    columns.push(Column::words("what").optional().with(what));
    page.table(&grid(columns, page.width));
    limits(page, ms);
    marks.print(page, &mut context.advised);
    if let Some(passes) = ms.iter().filter_map(|m| m.evidence.checksums).map(|i| i.passes).reduce(|a, b| a + b) {
        let wrong: u64 = ms.iter().filter_map(|m| m.evidence.checksums).map(|i| i.mismatches).sum();
        let text = format!("checksums compared: {passes} passes over buffers, {wrong} wrong");
        page.text(if wrong > 0 { Style::Error } else { Style::Dim }, INDENT, INDENT, &text);
    }
    if ms.iter().any(|m| m.evidence.traffic.is_some()) {
        let unknown = ms.iter().any(|m| m.evidence.traffic.is_some_and(|t| t.bus_estimate_gbs.is_none()));
        let text = "bus: estimate of what crossed the memory bus, reads caused by stores included";
        let text = if unknown {
            format!("{text} (— where it is not known whether they read, or where buffers may stay in caches)")
        } else {
            text.to_owned()
        };
        page.text(Style::Dim, INDENT, INDENT, &text);
    }
    if let Some(text) = context.report.environment.rfo.as_ref().filter(|_| ms.iter().any(|m| stores(m))).map(rfo) {
        page.text(Style::Dim, INDENT, INDENT, &text);
    }
    let mut items = Vec::new();
    if !several(loaders) {
        items.extend(ms.first().map(|m| loaders(m)).filter(|l| !l.is_empty()));
    }
    if !several(|m| node_name(m.at.memory_node)) && context.report.machine.topology.nodes.len() > 1 {
        let on_device = |m: &Measurement| m.evidence.file.as_ref().is_some_and(|f| f.backing == FileBacking::Dax);
        items.extend(ms.first().and_then(|m| match m.at.memory_node {
            Some(node) if on_device(m) => Some(format!("device at node {node}")),
            Some(node) => Some(format!("memory of node {node}")),
            None => (!on_device(m)).then(|| "each CPU on its own node".into()),
        }));
    }
    items.extend(evidence(ms));
    page.items(Style::Dim, INDENT, &items);
}

/// Whether a mix has plain stores.
fn stores(m: &Measurement) -> bool {
    m.at.mix.is_some_and(|mix| mix.lines().1 > 0 && !mix.non_temporal())
}

/// What was found of reads that plain stores cause.
fn rfo(e: &RfoEvidence) -> String {
    let found = match e.rfo {
        Rfo::Yes => "plain stores read the line first",
        Rfo::No => "plain stores of whole lines do not read first",
        Rfo::Unknown => "it is not known whether plain stores read first",
    };
    let gbs = [("whole lines", e.whole_gbs), ("parts", e.part_gbs), ("non-temporal", e.non_temporal_gbs)];
    let gbs: Vec<String> = gbs.iter().filter_map(|(what, v)| Some(format!("{what} {}", number((*v)?)))).collect();
    if gbs.is_empty() { format!("{found}: {}", e.reason) } else { format!("{found}: {} ({} GB/s)", e.reason, gbs.join(", ")) }
}

fn loaders(m: &Measurement) -> String {
    m.at.cpus.as_ref().map(cpus_name).unwrap_or_default()
}

fn rate(m: &Measurement, f: impl Fn(memgauge_core::result::TrafficRates) -> Option<f64>) -> Cell {
    match m.evidence.traffic.filter(|_| value_of(&m.estimate).is_some()) {
        // Exactly nothing is not a small number.
        Some(t) => Cell::number(if f(t) == Some(0.0) { "0".to_owned() } else { maybe(f(t)) }),
        None => Cell::Blank,
    }
}

/// `82 %`, with a word when the verdict is not good.
fn of_limit(m: &Measurement) -> Cell {
    let word = match m.verdict.status {
        VerdictStatus::Warning => "low",
        VerdictStatus::Failure => "too low",
        VerdictStatus::Ok | VerdictStatus::Unknown => "",
    };
    match (value_of(&m.estimate), m.verdict.limit.filter(|l| l.is_finite() && *l > 0.0)) {
        (Some(v), Some(limit)) => {
            // A limit is the bus's: reads that stores cause count.
            let v = m.evidence.traffic.and_then(|t| t.bus_estimate_gbs).unwrap_or(v);
            Cell::Value { number: percent(v / limit), half: String::new(), claim: String::new(), marks: word.to_owned() }
        }
        (Some(_), None) if !word.is_empty() => Cell::text(word),
        _ => Cell::Blank,
    }
}

/// Names the limits that the percentages refer to.
fn limits(page: &mut Page, ms: &[&Measurement]) {
    let mut known: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for m in ms.iter().filter(|m| value_of(&m.estimate).is_some()) {
        if let Some(limit) = m.verdict.limit.filter(|l| l.is_finite() && *l > 0.0) {
            let source = m.verdict.limit_source.as_deref().unwrap_or("source not stated");
            known.entry(format!("{} GB/s ({source})", number(limit))).or_default().insert(m.at.mix.map(Mix::name).unwrap_or("all"));
        }
    }
    if !known.is_empty() {
        let list: Vec<String> = known
            .iter()
            .map(|(limit, mixes)| {
                if known.len() == 1 {
                    limit.clone()
                } else {
                    format!("{limit} for {}", mixes.iter().copied().collect::<Vec<_>>().join(", "))
                }
            })
            .collect();
        page.text(Style::Dim, INDENT, INDENT, &format!("limit: {}", list.join("; ")));
    }
}

/// One line a number of CPUs.
pub(super) fn ramp(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let mut ms = ms.to_vec();
    let threads = |m: &Measurement| m.at.cpus.as_ref().map_or(m.evidence.threads as usize, IdSet::len);
    ms.sort_by_key(|m| (m.at.mix, threads(m)));
    let about = context.about(ABOUT);
    page.heading(&context.title(&ms, "Bandwidth by number of CPUs"), &about);
    let mut marks = Marks::new(context.report, &ms);
    let most = bounds(ms.iter().filter_map(|m| value_of(&m.estimate))).map(|b| b.1);
    let mixes: BTreeSet<_> = ms.iter().map(|m| m.at.mix).collect();
    let mut columns = Vec::new();
    if mixes.len() > 1 {
        columns.push(Column::words("mix").with(ms.iter().map(|m| Cell::text(m.at.mix.map(Mix::name).unwrap_or_default()))));
    }
    columns.push(Column::numbers("CPUs").with(ms.iter().map(|m| Cell::text(threads(m).to_string()))));
    columns.push(Column::numbers("GB/s").with(ms.iter().map(|m| marks.cell(Some(m)))));
    columns.push(Column::numbers("of limit").with(ms.iter().map(|m| of_limit(m))));
    let per_cpu = ms.iter().map(|m| value_of(&m.estimate).map(|v| v / threads(m).max(1) as f64));
    columns.push(Column::numbers("per CPU").with(per_cpu.map(|v| v.map_or(Cell::Blank, |v| Cell::number(number(v))))));
    let bars = ms.iter().map(|m| Cell::text(value_of(&m.estimate).zip(most).map(|(v, most)| bar(v / most, BAR)).unwrap_or_default()));
    columns.push(Column::words("").optional().with(bars));
    let names = ms.iter().map(|m| Cell::text(m.at.cpus.as_ref().map(super::shortened).unwrap_or_default()));
    columns.push(Column::words("which").optional().with(names));
    if ms.iter().any(|m| m.evidence.kernel != ms[0].evidence.kernel) {
        columns.push(Column::words("kernel").optional().with(ms.iter().map(|m| Cell::text(m.evidence.kernel.clone()))));
    }
    page.table(&grid(columns, page.width));
    limits(page, &ms);
    marks.print(page, &mut context.advised);
    let mut items: Vec<String> =
        mixes.iter().filter(|_| mixes.len() == 1).flatten().map(|m| format!("mix {m} ({})", m.description())).collect();
    items.extend(evidence(&ms));
    page.items(Style::Dim, INDENT, &items);
}

/// By node of the CPUs and node of the memory, a matrix a mix.
pub(super) fn matrix(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let about = context.about(ABOUT);
    page.heading(&context.title(ms, "Bandwidth by node"), &about);
    let mut marks = Marks::new(context.report, ms);
    let mixes: BTreeSet<Option<Mix>> = ms.iter().map(|m| m.at.mix).collect();
    let nodes: BTreeSet<Option<u32>> = ms.iter().map(|m| m.at.memory_node).collect();
    let detailed = nodes.len() <= DETAILED_COLUMNS;
    for mix in mixes {
        let of_mix: Vec<&Measurement> = ms.iter().copied().filter(|m| m.at.mix == mix).collect();
        let rows: BTreeSet<(Option<u32>, Option<&IdSet>)> = of_mix.iter().map(|m| (m.at.cpu_node, m.at.cpus.as_ref())).collect();
        let mut cells: BTreeMap<_, &Measurement> = BTreeMap::new();
        for m in &of_mix {
            cells.entry(((m.at.cpu_node, m.at.cpus.as_ref()), m.at.memory_node)).or_insert(*m);
        }
        let several = |node| rows.iter().filter(|r| r.0 == node).count() > 1;
        let lead = Column::words("CPUs ↓  memory →").with(rows.iter().map(|&(node, cpus)| {
            Cell::text(match (node, cpus) {
                (None, Some(cpus)) => cpus_name(cpus),
                (Some(n), Some(cpus)) if several(node) => format!("node {n}, {}", cpus_name(cpus)),
                _ => node_name(node),
            })
        }));
        let mut claimed = false;
        let columns: Vec<Column> = nodes
            .iter()
            .map(|&memory| {
                let values: Vec<Cell> = rows
                    .iter()
                    .map(|&row| {
                        let claim = (mix == Some(Mix::AllReads) && detailed).then(|| context.claimed_gbs(row.0, memory)).flatten();
                        claimed |= claim.is_some();
                        without_half(marks.claimed(cells.get(&(row, memory)).copied(), claim.unwrap_or_default()), detailed)
                    })
                    .collect();
                Column::numbers(column_name(context, memory, detailed)).with(values)
            })
            .collect();
        let about = mix.map_or_else(String::new, |m| format!("{m}: {}", m.description()));
        let about = if claimed { format!("{about}; in brackets: what firmware claims (HMAT)") } else { about };
        page.text(Style::Plain, INDENT, INDENT, &about);
        for block in blocks(&lead, &columns, page.width) {
            page.table(&block);
        }
    }
    marks.print(page, &mut context.advised);
    let mut items = evidence(ms);
    items.extend(memory_only(context.report, nodes.iter().copied().flatten()));
    page.items(Style::Dim, INDENT, &items);
}
