//! Curves over the working set: the levels found as a table, the curve as one line of a sketch and as a table of its points.

use std::collections::BTreeSet;

use memgauge_core::levels::{Level, LevelSummary};
use memgauge_core::result::{Coordinates, Measurement, Metric};
use memgauge_core::units::Bytes;

use super::evidence::evidence;
use super::grid::{Cell, Column, grid};
use super::latency::order_name;
use super::marks::Marks;
use super::number::{bar, bounds, human, number, range, unit, value_of};
use super::page::{INDENT, Page, Style};
use super::{Context, cpus_name};

/// Columns of a full bar.
const BAR: usize = 24;
/// More points than this are not all listed.
const LISTED: usize = 24;
/// Heights of a sketch.
const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Every curve, in the order of its coordinates.
pub(super) fn sweeps(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let shared = |m: &Measurement| Coordinates { working_set: None, ..m.at.clone() };
    let keys: BTreeSet<(Metric, Coordinates)> = ms.iter().map(|m| (m.metric, shared(m))).collect();
    for (metric, at) in keys {
        let mut points: Vec<&Measurement> = ms.iter().copied().filter(|m| m.metric == metric && shared(m) == at).collect();
        points.sort_by_key(|m| m.at.working_set);
        sweep(page, context, &at, &points);
    }
}

fn sweep(page: &mut Page, context: &mut Context<'_>, at: &Coordinates, ms: &[&Measurement]) {
    let Some(first) = ms.first() else { return };
    let latency = first.metric == Metric::Latency;
    let title = if latency { "Latency by working set" } else { "Bandwidth by working set" };
    page.heading(title, &context.about(&about(at, latency)));
    let unit = unit(first.unit);
    let summary = context.report.levels.iter().find(|l| l.at == *at && l.metric == Some(first.metric));
    if let Some(summary) = summary {
        levels(page, summary, unit);
    }
    let sketch = sketch(ms);
    if let (false, Some(from), Some(to)) =
        (sketch.is_empty(), ms.first().and_then(|m| m.at.working_set), ms.last().and_then(|m| m.at.working_set))
    {
        page.gap();
        page.text(Style::Plain, INDENT, INDENT, &format!("{} {sketch} {}", human(from), human(to)));
    }
    let all = ms;
    let listed: Vec<&Measurement> =
        if all.len() > LISTED { all.iter().copied().filter(|m| tells(m, summary)).collect() } else { all.to_vec() };
    let ms = &listed[..];
    let mut marks = Marks::new(context.report, ms);
    let values: Vec<f64> = all.iter().filter_map(|m| value_of(&m.estimate)).collect();
    let lines = grid(
        vec![
            Column::numbers("working set").with(ms.iter().map(|m| Cell::text(m.at.working_set.map(human).unwrap_or_default()))),
            Column::numbers(unit).with(ms.iter().map(|m| marks.cell(Some(m)))),
            Column::words(if latency { "latency" } else { "bandwidth" }).optional().with(ms.iter().map(|m| {
                let shape = value_of(&m.estimate).map(|v| bar(share(v, &values), BAR)).unwrap_or_default();
                Cell::text(match (m.at.working_set, summary) {
                    (Some(size), Some(summary)) => match edge(summary, size) {
                        Some(name) => format!("{shape} ◂ {name}"),
                        None => shape,
                    },
                    _ => shape,
                })
            })),
        ],
        page.width,
    );
    page.table(&lines);
    marks.print(page, &mut context.advised);
    let scale = if latency { "bars and sketch are logarithmic" } else { "bars and sketch begin at 0" };
    let mut items = vec![scale.to_owned(), "all working sets are parts of one allocation".to_owned()];
    if let Some(spread) = spread(first) {
        items.push(spread);
    }
    if listed.len() < all.len() {
        items.push(format!("{} of {} sizes are listed, all are in the JSON (-o FILE.json)", listed.len(), all.len()));
    }
    items.extend(evidence(all));
    page.items(Style::Dim, INDENT, &items);
}

/// Whether a size is worth a line where there are many: powers of two and the edges of levels.
fn tells(m: &Measurement, summary: Option<&LevelSummary>) -> bool {
    let Some(size) = m.at.working_set else { return true };
    let mut knees = summary.into_iter().flat_map(|s| &s.levels).filter_map(|l| l.knee.as_ref());
    size.0.is_power_of_two() || knees.any(|k| k.fits == size || k.spills == size)
}

/// Who measures, and where.
fn about(at: &Coordinates, latency: bool) -> String {
    let home = at.memory_node.map(|n| format!(" in node {n}")).unwrap_or_default();
    if latency {
        let order = at.order.map(order_name).unwrap_or("pointer chase");
        let who = at.cpu.map(|c| format!(" by CPU {c}")).unwrap_or_default();
        return format!("ns per dependent load, {order}{who}{home}");
    }
    let who = at.cpus.as_ref().map(|c| format!(" by {}", cpus_name(c))).unwrap_or_default();
    let each = if at.cpus.as_ref().is_some_and(|c| c.len() > 1) { ", working set of each CPU" } else { "" };
    let mix = at.mix.map(|m| format!("{m}")).unwrap_or_default();
    format!("GB/s, {mix}{who}{home}{each}")
}

/// The levels, and what they say of the caches.
fn levels(page: &mut Page, summary: &LevelSummary, unit: &str) {
    if summary.levels.is_empty() {
        page.text(Style::Warning, INDENT, INDENT, "no level found: the curve is flat nowhere");
        return;
    }
    let last = summary.levels.len() - 1;
    let lines = grid(
        vec![
            Column::words("level").with(summary.levels.iter().map(|l| Cell::text(l.name.clone()))),
            Column::numbers(unit).with(summary.levels.iter().map(|l| Cell::number(number(l.value)))),
            Column::words("95 %").optional().with(summary.levels.iter().map(|l| Cell::text(range([l.low, l.high]).unwrap_or_default()))),
            Column::words("flat").with(summary.levels.iter().map(|l| Cell::text(format!("{} – {}", human(l.from), human(l.to))))),
            Column::words("ends between").with(summary.levels.iter().enumerate().map(|(i, l)| {
                Cell::text(match &l.knee {
                    Some(k) => format!("{} and {}", human(k.fits), human(k.spills)),
                    None if i == last => "not seen".to_owned(),
                    None => String::new(),
                })
            })),
            Column::words("described as").with(summary.levels.iter().map(|l| Cell::text(described(l)))),
        ],
        page.width,
    );
    page.table(&lines);
    if summary.by_fastest {
        let text = "the CPU was shared with other work: levels are those of the fastest millisecond of each size, in which the caches were its own";
        page.text(Style::Warning, INDENT, INDENT, text);
    }
    for cache in &summary.unseen {
        let text = format!("{} of {}: described, and the curve has no step there", cache.name, human(cache.size));
        page.text(Style::Warning, INDENT, INDENT, &text);
    }
}

/// The cache's size as the machine describes it, and whether that is what was seen.
fn described(level: &Level) -> String {
    let Some(knee) = &level.knee else { return String::new() };
    match (&knee.cache, knee.agrees) {
        (Some(cache), Some(true)) => human(cache.size),
        (Some(cache), _) if knee.spills < cache.size => format!("{}: less is seen", human(cache.size)),
        (Some(cache), _) => format!("{}: more is seen", human(cache.size)),
        (None, _) => "no cache".to_owned(),
    }
}

/// The level that ends at this size.
fn edge(summary: &LevelSummary, size: Bytes) -> Option<&str> {
    summary.levels.iter().find(|l| l.knee.as_ref().is_some_and(|k| k.fits == size)).map(|l| l.name.as_str())
}

/// How the lines of a chase's working set lie.
fn spread(m: &Measurement) -> Option<String> {
    let stride = m.evidence.stride.filter(|_| m.metric == Metric::Latency)?;
    Some(format!("working set: bytes of the lines that are chased, one every {}", human(stride)))
}

/// How long a value's bar is, 0 to 1: latencies, whose levels lie decades apart, by their logarithm.
fn share(value: f64, values: &[f64]) -> f64 {
    let Some((low, high)) = bounds(values.iter().copied()) else { return 0.0 };
    if high / low < 4.0 || low <= 0.0 {
        return value / high;
    }
    // The lowest value keeps a bar, too.
    0.08 + 0.92 * (value / low).ln() / (high / low).ln()
}

/// The curve in one line, a character a point.
fn sketch(ms: &[&Measurement]) -> String {
    let values: Vec<f64> = ms.iter().filter_map(|m| value_of(&m.estimate)).collect();
    let height = |v: f64| EIGHTHS[((share(v, &values) * 8.0).ceil() as usize).clamp(1, 8) - 1];
    ms.iter().map(|m| value_of(&m.estimate).map_or(' ', height)).collect()
}
