//! Latency under load: the curve as a table with its knee, and what it says in one line.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_core::estimate::Estimate;
use memgauge_core::experiment::{Coordinates, Metric};
use memgauge_core::result::{CurveShare, CurveSummary, Measurement};
use memgauge_core::units::IdSet;

use super::distribution::distributions;
use super::evidence::evidence;
use super::grid::{Cell, Column, grid};
use super::latency::order_name;
use super::marks::Marks;
use super::number::{bar, bounds, half_width, number, value_of};
use super::page::{INDENT, Page, Style};
use super::{Context, cpus_name};

/// Columns of a full bar.
const BAR: usize = 24;

/// Every curve, in the order of its coordinates.
pub(super) fn curves(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let shared = |m: &Measurement| Coordinates { delay_cycles: None, ..m.at.clone() };
    let keys: BTreeSet<Coordinates> = ms.iter().map(|m| shared(m)).collect();
    for at in keys {
        let points: Vec<&Measurement> = ms.iter().copied().filter(|m| shared(m) == at).collect();
        curve(page, context, &at, &points);
    }
}

fn curve(page: &mut Page, context: &mut Context<'_>, at: &Coordinates, ms: &[&Measurement]) {
    page.heading(&context.title(ms, "Latency under load"), &about(at));
    let mut marks = Marks::new(context.report, ms);
    let mut points: BTreeMap<Option<u32>, (Option<&Measurement>, Option<&Measurement>)> = BTreeMap::new();
    for m in ms {
        let point = points.entry(m.at.delay_cycles).or_default();
        match m.metric {
            Metric::Latency => point.0 = point.0.or(Some(m)),
            Metric::Bandwidth => point.1 = point.1.or(Some(m)),
        }
    }
    let summary = context.report.curves.iter().find(|c| c.at == *at);
    let knee = summary.and_then(|s| s.knee).map(|k| k.delay_cycles);
    let latency = |p: &Option<&Measurement>| p.and_then(|m| value_of(&m.estimate));
    let most = bounds(points.values().filter_map(|p| latency(&p.0))).map(|b| b.1);
    // From the lightest load to the heaviest: long delays first.
    let rows: Vec<_> = points.into_iter().rev().collect();
    let lines = grid(
        vec![
            Column::numbers("delay").with(rows.iter().map(|(d, _)| d.map_or(Cell::Blank, |d| Cell::text(d.to_string())))),
            Column::numbers("GB/s").with(rows.iter().map(|(_, p)| marks.cell(p.1))),
            Column::numbers("ns").with(rows.iter().map(|(_, p)| marks.cell(p.0))),
            Column::numbers("in flight").optional().with(
                rows.iter().map(|(_, p)| p.1.and_then(|m| m.lines_in_flight).map_or(Cell::Blank, |lines| Cell::number(number(lines)))),
            ),
            Column::words("latency").with(rows.iter().map(|(d, p)| {
                let shape = latency(&p.0).zip(most).map(|(v, most)| bar(v / most, BAR)).unwrap_or_default();
                Cell::text(if d.is_some() && *d == knee { format!("{shape} ◂ knee") } else { shape })
            })),
        ],
        page.width,
    );
    page.table(&lines);
    let latencies: Vec<&Measurement> = rows.iter().filter_map(|(_, p)| p.0).collect();
    distributions(page, &latencies, "delay", |m| m.at.delay_cycles.map_or(String::new(), |d| d.to_string()));
    if let Some(summary) = summary {
        say(page, summary);
        shares(page, summary);
    }
    marks.print(page, &mut context.advised);
    page.text(Style::Dim, INDENT, INDENT, "delay: core cycles between bursts of four lines; bandwidth includes the chase");
    if ms.iter().any(|m| m.lines_in_flight.is_some()) {
        let law = "in flight: lines on their way to all CPUs together by Little's law, bandwidth x latency / line (taking the loads' latency for the chase's)";
        page.text(Style::Dim, INDENT, INDENT, law);
    }
    page.items(Style::Dim, INDENT, &evidence(ms));
}

/// Latency at the shares of the peak that were asked for.
fn shares(page: &mut Page, summary: &CurveSummary) {
    if summary.shares.is_empty() {
        return;
    }
    let value = |e: &Estimate| match value_of(e) {
        Some(v) => Cell::Value { number: number(v), half: half_width(e), claim: String::new(), marks: String::new() },
        None => Cell::Blank,
    };
    let of = |cell: fn(&CurveShare) -> Option<String>| {
        summary.shares.iter().map(move |s| cell(s).map_or(Cell::Blank, Cell::text)).collect::<Vec<_>>()
    };
    let lines = grid(
        vec![
            Column::numbers("of the peak").with(of(|s| Some(format!("{} %", s.percent)))),
            Column::numbers("reached").with(of(|s| Some(format!("{:.1} %", 100.0 * s.reached?)))),
            Column::numbers("delay").with(of(|s| Some(s.delay_cycles?.to_string()))),
            Column::numbers("GB/s").with(summary.shares.iter().map(|s| value(&s.bandwidth))),
            Column::numbers("ns").with(summary.shares.iter().map(|s| value(&s.latency))),
        ],
        page.width,
    );
    page.table(&lines);
    for share in &summary.shares {
        if let Some(why) = &share.reason {
            page.text(Style::Warning, "  ! ", "    ", &format!("{} % of the peak was not reached: {why}", share.percent));
        }
    }
}

fn about(at: &Coordinates) -> String {
    let who = at.cpu.map(|c| format!("CPU {c} chases"));
    let place = if at.memory_dir.is_some() { "a file at node" } else { "node" };
    let order = at.order.map(|o| format!(" {}", order_name(o))).unwrap_or_default();
    let home = at.memory_node.map(|n| format!("{order} in {place} {n}"));
    let load = at.cpus.as_ref().map(|c| {
        let verb = if c.len() == 1 { "loads" } else { "load" };
        let what = at.load_nodes.as_ref().map(|nodes| format!(" memory of {}", nodes_name(nodes))).unwrap_or_default();
        format!("{} {verb}{what}", cpus_name(c))
    });
    let mix = at.mix.map(|m| format!(" with {m}")).unwrap_or_default();
    match (who, load) {
        (Some(who), Some(load)) => format!("{who}{}, {load}{mix}", home.unwrap_or_default()),
        (Some(one), None) | (None, Some(one)) => format!("{one}{mix}"),
        (None, None) => String::new(),
    }
}

/// `node 2` or `nodes 1,3`.
pub(crate) fn nodes_name(nodes: &IdSet) -> String {
    if nodes.len() == 1 { format!("node {nodes}") } else { format!("nodes {nodes}") }
}

fn say(page: &mut Page, s: &CurveSummary) {
    let mut items = Vec::new();
    items.extend(s.unloaded_ns.map(|v| format!("unloaded {} ns", number(v))));
    items.extend(
        s.knee.map(|k| format!("knee at {} GB/s with {} ns (delay {})", number(k.bandwidth_gbs), number(k.latency_ns), k.delay_cycles)),
    );
    items.extend(s.saturated_ns.map(|v| format!("saturated {} ns", number(v))));
    items.extend(s.peak_gbs.map(|v| format!("peak {} GB/s", number(v))));
    page.items(Style::Plain, INDENT, &items);
    if s.knee.is_none() && s.peak_gbs.is_some() {
        page.text(Style::Plain, INDENT, INDENT, "no knee: within this load, latency nowhere grows much faster than bandwidth");
    }
    if s.over_saturated {
        page.text(Style::Plain, INDENT, INDENT, "over-saturated: past its peak, more load brings less bandwidth and more latency");
    }
}
