//! Bandwidth: by mix, by number of CPUs, by node.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_analysis::conclusions::persistent;
use memgauge_model::experiment::{Coordinates, MemoryPlace};
use memgauge_model::interleave::Reading;
use memgauge_model::result::{BestWriters, Measurement, RfoReason, TrafficRates, VerdictStatus};
use memgauge_model::traffic::{Mix, Rfo, StoreKind};
use memgauge_model::wording::{self, reasons};

use super::context::{Context, memory_only};
use super::evidence::{evidence, widest_interval};
use super::faults::checksums;
use super::footnotes::Footnotes;
use super::grid::{Cell, Column, Value};
use super::nodes::node_table;
use super::page::{INDENT, Page, Style};
use crate::groups::nodes::{Prober, node_matrix};
use crate::groups::{highest_by_mix, ramps, thread_count};
use crate::limit::share_of_limit;
use crate::number::{bounds, count, half_width_of, marked, maybe, number, percent, value_of};
use crate::pivot::layers;

/// The unit of the numbers. Only the verbose page says exactly what it means.
const fn about(page: &Page) -> &'static str {
    if page.verbose { "GB/s: 10⁹ bytes loaded and stored a second" } else { "GB/s" }
}

/// Columns of a full bar.
const BAR: usize = 20;

/// One line for each mix.
pub(super) fn by_mix(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let mut ms = ms.to_vec();
    ms.sort_by_key(|m| (m.at.cpus.clone(), m.at.memory, m.at.mix, m.at.delay_cycles));
    let mixes: BTreeSet<_> = ms.iter().map(|m| m.at.mix).collect();
    let title = match (ms.len(), mixes.len()) {
        (1, _) => "Bandwidth",
        (_, 1) if ms.iter().any(|m| m.at.delay_cycles.is_some()) => "Bandwidth by injection delay",
        _ => "Peak bandwidth by mix",
    };
    context.heading(page, &ms, title, &about_with_limit(page, &ms));
    mixes_table(page, context, &ms);
}

/// The best of each mix that a search found.
pub(super) fn search(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let best: Vec<&Measurement> = highest_by_mix(ms).into_values().collect();
    context.heading(page, &best, "Highest bandwidth by mix", &about_with_limit(page, &best));
    mixes_table(page, context, &best);
    let tried: BTreeSet<_> = ms.iter().map(|m| (&m.at.cpus, m.at.delay_cycles)).collect();
    let text = format!("each is the highest of {} combinations of CPUs and delay; all are in the JSON result", tried.len());
    page.paragraph(Style::Dim, &text);
}

/// Whether measurements differ in something.
fn differ(ms: &[&Measurement], text: fn(&Measurement) -> String) -> bool {
    ms.iter().map(|m| text(m)).collect::<BTreeSet<_>>().len() > 1
}

fn memory(m: &Measurement) -> String {
    wording::place(m.at.memory)
}

fn kernel(m: &Measurement) -> String {
    m.evidence.kernel.clone()
}

fn mixes_table(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let mut footnotes = Footnotes::new(context, ms);
    let description = |m: &Measurement| m.at.mix.map(Mix::description);
    page.table([
        Column::text("CPUs", ms.iter().map(|m| loaders(m))).only_if(differ(ms, loaders)),
        Column::text("memory", ms.iter().map(|m| memory(m))).only_if(differ(ms, memory)),
        Column::text("mix", ms.iter().map(|m| m.at.mix.map_or("as given", Mix::name))),
        Column::text("program", ms.iter().map(|m| description(m))).optional(),
        Column::numbers("delay", ms.iter().map(|m| m.at.delay_cycles.map(|d| d.to_string()))),
        Column::numbers("GB/s", ms.iter().map(|m| footnotes.cell(Some(m)))),
        Column::numbers("of limit", ms.iter().map(|m| of_limit(m))),
        Column::numbers("read", ms.iter().map(|m| rate(m, |t| Some(t.app_read_gbs)))).only_if(page.verbose),
        Column::numbers("written", ms.iter().map(|m| rate(m, |t| Some(t.app_write_gbs)))).only_if(page.verbose),
        Column::numbers("bus", ms.iter().map(|m| rate(m, |t| t.bus_estimate_gbs))).only_if(bus_is_known(ms)),
        Column::text("kernel", ms.iter().map(|m| kernel(m))).optional().only_if(page.verbose && differ(ms, kernel)),
    ]);
    limits(page, ms);
    let plain = |m: &&Measurement| m.at.mix.is_some_and(|mix| matches!(mix.stores(), StoreKind::Plain(_)));
    if ms.iter().any(plain) {
        page.paragraph(Style::Detail, "as in MLC, a plain store counts as a read and a write in the names of mixes");
    }
    footnotes.print(page, &mut context.advised);
    checksums(page, ms);
    bus_legend(page, ms);
    let mut items = Vec::new();
    if !differ(ms, loaders) {
        items.extend(ms.first().map(|m| loaders(m)).filter(|l| !l.is_empty()));
    }
    if !differ(ms, memory) && context.report.machine.topology.nodes.len() > 1 {
        items.extend(ms.first().and_then(|m| memory_place(m)));
    }
    items.extend(evidence(ms));
    page.items(Style::Detail, INDENT, &items);
}

/// Explains the column `bus`, and says whether stores read first.
fn bus_legend(page: &mut Page, ms: &[&Measurement]) {
    let rates: Vec<TrafficRates> = ms.iter().filter_map(|m| m.evidence.traffic).collect();
    if !rates.is_empty() {
        let mut text = "bus: estimated traffic on the memory bus, including the reads that stores cause".to_owned();
        if rates.iter().any(|t| t.bus_estimate_gbs.is_none()) {
            text.push_str(" (— where it is not known whether stores read first, or where buffers may stay in caches)");
        }
        page.paragraph(Style::Detail, &text);
    }
    for line in stores_read(ms) {
        page.paragraph(Style::Detail, line);
    }
}

/// Where the memory is that all measurements of a table used.
fn memory_place(m: &Measurement) -> Option<String> {
    match m.at.memory? {
        MemoryPlace::Own => Some("each CPU on its own node".into()),
        MemoryPlace::Inherited => Some(under_policy(m)),
        MemoryPlace::Node(node) => Some(format!("memory of node {node}")),
        MemoryPlace::Device { node } => node.map(|node| format!("device at node {node}")),
    }
}

/// The nodes that the inherited policy put pages on, with how many of those that were looked up.
fn under_policy(m: &Measurement) -> String {
    let what = if m.at.weights.is_some() { "pages on nodes in turn" } else { "each CPU on the nearest node of the policy" };
    let pages: Vec<String> = m.evidence.placement.pages_by_node.iter().map(|(node, pages)| format!("{pages} on node {node}")).collect();
    if pages.is_empty() { what.to_owned() } else { format!("{what}: {}", pages.join(", ")) }
}

/// Whether plain stores read first, and why that is known or not: a line for each conclusion, with the mixes of its rows.
fn stores_read(ms: &[&Measurement]) -> Vec<String> {
    let conclusion = |m: &Measurement| m.evidence.traffic.and_then(|t| Some((t.rfo, t.rfo_reason?)));
    let mut conclusions: Vec<(Rfo, RfoReason)> = Vec::new();
    for found in ms.iter().filter_map(|m| conclusion(m)) {
        if !conclusions.contains(&found) {
            conclusions.push(found);
        }
    }
    let line = |found: &(Rfo, RfoReason)| {
        let mixes = Mix::ALL.into_iter().filter_map(|mix| {
            let rows = || ms.iter().filter(|m| m.at.mix == Some(mix) && conclusion(m).is_some());
            let (such, all) = (rows().filter(|m| conclusion(m) == Some(*found)).count(), rows().count());
            match such {
                0 => None,
                such if such == all => Some(mix.to_string()),
                such => Some(format!("{mix} ({such} of {all} rows)")),
            }
        });
        let mixes: Vec<String> = mixes.collect();
        let what = match found.0 {
            Rfo::Yes => "plain stores read the line first (read for ownership)",
            Rfo::No => "plain stores of whole lines do not read first",
            Rfo::Unknown => "it is not known whether plain stores read first",
        };
        let mixes = if mixes.is_empty() { String::new() } else { format!("{}: ", mixes.join(", ")) };
        format!("{mixes}{what}: {}", reasons::rfo(found.1))
    };
    conclusions.iter().map(line).collect()
}

fn loaders(m: &Measurement) -> String {
    m.at.cpus.as_ref().map(wording::cpus).unwrap_or_default()
}

fn rate(m: &Measurement, rate: fn(TrafficRates) -> Option<f64>) -> Cell {
    match m.evidence.traffic.filter(|_| value_of(&m.estimate).is_some()) {
        // Exactly nothing is not a small number.
        Some(t) => Cell::number(if rate(t) == Some(0.0) { "0".to_owned() } else { maybe(rate(t)) }),
        None => Cell::Blank,
    }
}

/// Whether it is known of any measurement what the bus moved.
fn bus_is_known(ms: &[&Measurement]) -> bool {
    ms.iter().any(|m| value_of(&m.estimate).is_some() && m.evidence.traffic.is_some_and(|t| t.bus_estimate_gbs.is_some()))
}

/// `82 %`, with a word when the verdict is not good; only the word where it is not known what the bus moved.
fn of_limit(m: &Measurement) -> Cell {
    let word = match m.verdict.status {
        VerdictStatus::Warning => "low",
        VerdictStatus::Failure => "too low",
        VerdictStatus::Ok | VerdictStatus::Unknown => "",
    };
    match share_of_limit(m) {
        Some(share) => Value { number: percent(share), marks: word.to_owned(), ..Value::default() }.into(),
        None if value_of(&m.estimate).is_some() && !word.is_empty() => word.into(),
        None => Cell::Blank,
    }
}

/// The unit of the numbers; on a short page also the limit, if there is one.
fn about_with_limit(page: &Page, ms: &[&Measurement]) -> String {
    let limit = limit_texts(ms).pop().filter(|_| !below_the_table(page, ms));
    about(page).to_owned() + &limit.map(|limit| format!("; limit: {limit}")).unwrap_or_default()
}

/// Whether the limits stand below the table.
fn below_the_table(page: &Page, ms: &[&Measurement]) -> bool {
    page.verbose || limit_texts(ms).len() > 1
}

fn limits(page: &mut Page, ms: &[&Measurement]) {
    let list = limit_texts(ms);
    if !list.is_empty() && below_the_table(page, ms) {
        page.paragraph(Style::Dim, format!("limit: {}", list.join("; ")));
    }
}

/// The limits that the percentages refer to, and who states them.
fn limit_texts(ms: &[&Measurement]) -> Vec<String> {
    let mut limits: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for m in ms.iter().filter(|m| value_of(&m.estimate).is_some()) {
        if let Some(limit) = m.verdict.limit.filter(|l| l.is_finite() && *l > 0.0) {
            let stated = m.verdict.limit_source.map(|s| reasons::limit_source(s, m.verdict.limit_share));
            let source = stated.unwrap_or_else(|| "source not stated".to_owned());
            limits.entry(format!("{} GB/s ({source})", number(limit))).or_default().insert(m.at.mix.map(Mix::name).unwrap_or("all"));
        }
    }
    let text = |(limit, mixes): (&String, &BTreeSet<&str>)| match limits.len() {
        1 => limit.clone(),
        _ => format!("{limit} for {}", mixes.iter().copied().collect::<Vec<_>>().join(", ")),
    };
    limits.iter().map(text).collect()
}

/// The node of the CPUs.
fn row_node(m: &Measurement) -> String {
    m.at.cpu_node.map_or_else(String::new, |node| wording::node(Some(node)))
}

/// Numbers of writers, which have a question of their own, and numbers of CPUs.
pub(super) fn ramp(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let (writers, others): (Vec<&Measurement>, Vec<&Measurement>) = ms.iter().copied().partition(|m| persistent::is_of_writers(m));
    for (ms, title, head) in [(writers, "Bandwidth by number of writers", "writers"), (others, "Bandwidth by number of CPUs", "CPUs")] {
        if !ms.is_empty() {
            one_ramp(page, context, &ms, (title, head));
        }
    }
}

/// `most with 4 writers, 4.60 GB/s ±0.06; 3 may have as much`, of each node.
fn most_writers(page: &mut Page, context: &Context<'_>, ms: &[&Measurement]) {
    let best: Vec<&BestWriters> =
        context.report.best_writers.iter().filter(|b| ms.iter().any(|m| Coordinates { cpus: None, ..m.at.clone() } == b.at)).collect();
    for found in &best {
        let from = if best.len() > 1 { format!("from {}: ", wording::node(found.at.cpu_node)) } else { String::new() };
        let Reading { value, half } = found.bandwidth_gbs;
        let fewer = if found.fewest < found.writers { format!("; {} may have as much", found.fewest) } else { String::new() };
        let writers = count(found.writers as usize, "writer", "writers");
        let interval = half_width_of(value, Some(value - half), Some(value + half));
        page.paragraph(Style::Plain, format!("{from}most bandwidth with {writers}: {} GB/s {interval}{fewer}", number(value)));
    }
}

/// One line for each number of CPUs.
fn one_ramp(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement], (title, head): (&str, &str)) {
    let ms: Vec<&Measurement> = ramps(ms).into_values().flatten().collect();
    context.heading(page, &ms, title, &about_with_limit(page, &ms));
    let mut footnotes = Footnotes::new(context, &ms);
    let highest = bounds(ms.iter().filter_map(|m| value_of(&m.estimate))).map(|b| b.1);
    let mixes: BTreeSet<_> = ms.iter().map(|m| m.at.mix).collect();
    let per_cpu = |m: &Measurement| value_of(&m.estimate).map(|v| Cell::number(marked(m, v / thread_count(m).max(1) as f64)));
    let shape = |m: &Measurement| value_of(&m.estimate).zip(highest).map(|(v, highest)| Cell::bar(v / highest, BAR));
    page.table([
        Column::text("mix", ms.iter().map(|m| m.at.mix.map(Mix::name))).only_if(mixes.len() > 1),
        Column::text("from", ms.iter().map(|m| row_node(m))).only_if(differ(&ms, row_node)),
        Column::numbers(head, ms.iter().map(|m| thread_count(m).to_string())),
        Column::numbers("GB/s", ms.iter().map(|m| footnotes.cell(Some(m)))),
        Column::numbers("of limit", ms.iter().map(|m| of_limit(m))),
        Column::numbers("per CPU", ms.iter().map(|m| per_cpu(m))),
        Column::text("", ms.iter().map(|m| shape(m))).optional(),
        Column::text("which", ms.iter().map(|m| m.at.cpus.as_ref().map(wording::ids))).optional(),
        Column::text("kernel", ms.iter().map(|m| kernel(m))).optional().only_if(differ(&ms, kernel)),
    ]);
    most_writers(page, context, &ms);
    limits(page, &ms);
    footnotes.print(page, &mut context.advised);
    let mut items: Vec<String> =
        mixes.iter().filter(|_| mixes.len() == 1).flatten().map(|m| format!("mix {m} ({})", m.description())).collect();
    items.extend(evidence(&ms));
    page.items(Style::Detail, INDENT, &items);
}

/// By node of the CPUs and node of the memory, a matrix a mix.
pub(super) fn matrix(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    context.heading(page, ms, "Bandwidth by node", about(page));
    let mut footnotes = Footnotes::new(context, ms);
    let places = node_matrix(ms).columns;
    let detailed = context.has_room(places.len());
    for (mix, of_mix) in layers(ms, |m| m.at.mix) {
        let mut table = node_matrix(&of_mix);
        table.columns.clone_from(&places);
        let claim = |from: &Prober<'_>, memory: &Option<MemoryPlace>| {
            let claimed = context.claim(from.node, *memory).filter(|_| mix == Some(Mix::AllReads))?;
            claimed.read_bandwidth_mbs.map(|mbs| number(mbs as f64 / 1e3))
        };
        let about = mix.map_or_else(String::new, |m| if page.verbose { format!("{m}: {}", m.description()) } else { m.to_string() });
        node_table(page, &mut footnotes, (&about, "CPUs ↓  memory →"), &table, detailed, claim);
    }
    footnotes.print(page, &mut context.advised);
    if !detailed {
        page.paragraph(Style::Dim, widest_interval(ms.iter(), places.len()).unwrap_or_default());
    }
    page.items(Style::Detail, INDENT, evidence(ms));
    page.items(Style::Dim, INDENT, memory_only(context.report, places.iter().copied()));
}
