//! Curves over the working set: the levels found as a table, the curve as one line of a sketch and as a table of its points.

use memgauge_model::experiment::{Coordinates, Metric};
use memgauge_model::result::{Level, LevelSummary, Measurement};
use memgauge_model::units::Bytes;
use memgauge_model::wording;
use memgauge_model::words::Knob;

use super::context::Context;
use super::evidence::evidence;
use super::footnotes::Footnotes;
use super::grid::{Cell, Column};
use super::page::{INDENT, Page, Style};
use crate::groups::{Sweep, sweeps};
use crate::number::{bounds, human, range, size, unit, value_of};

/// Columns of a full bar.
const BAR: usize = 24;
/// More points than this are not all listed.
const LISTED: usize = 24;

/// Every curve, in the order of its coordinates.
pub(super) fn tables(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    for sweep in sweeps(ms) {
        one_sweep(page, context, &sweep);
    }
}

fn one_sweep(page: &mut Page, context: &mut Context<'_>, sweep: &Sweep<'_>) {
    let all = &sweep.points[..];
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return };
    let latency = sweep.metric == Metric::Latency;
    let title = if latency { "Latency by working set" } else { "Bandwidth by working set" };
    page.heading(title, &context.about(&about(&sweep.at, latency)));
    let unit = unit(first.unit);
    let levels = sweep.levels(context.report);
    if let Some(levels) = levels {
        level_table(page, levels, unit);
    }
    let scale = Scale::for_points(latency, all);
    if let (false, Some(from), Some(to)) = (all.is_empty(), first.at.working_set, last.at.working_set) {
        page.gap();
        page.sketch((size(from), size(to)), all.iter().map(|m| value_of(&m.estimate).map(|v| scale.share(v))).collect());
    }
    let listed = listed(all, levels);
    let mut footnotes = Footnotes::new(context, &listed);
    let shape = |m: &&Measurement| {
        let level = m.at.working_set.zip(levels).and_then(|(bytes, levels)| level_ending_at(levels, bytes));
        Cell::named_bar(value_of(&m.estimate).map(|v| scale.share(v)), BAR, level)
    };
    page.table([
        Column::numbers("working set", listed.iter().map(|m| m.at.working_set.map(size))),
        Column::numbers(unit, listed.iter().map(|m| footnotes.cell(Some(m)))),
        Column::text(if latency { "latency" } else { "bandwidth" }, listed.iter().map(shape)).optional(),
    ]);
    footnotes.print(page, &mut context.advised);
    let drawn = if scale.logarithmic { "bars and sketch are logarithmic" } else { "bars and sketch begin at 0" };
    let mut items = vec![drawn.to_owned(), "all working sets are parts of one allocation".to_owned()];
    items.extend(working_set_of_chase(first));
    if listed.len() < all.len() {
        let text = format!("{} of {} sizes are listed; all are in the JSON result (-o FILE.json)", listed.len(), all.len());
        page.paragraph(Style::Dim, text);
    }
    items.extend(evidence(all));
    page.items(Style::Detail, INDENT, &items);
}

/// The points of a curve that get a line.
pub(super) fn listed<'a>(all: &[&'a Measurement], summary: Option<&LevelSummary>) -> Vec<&'a Measurement> {
    all.iter().copied().filter(|m| all.len() <= LISTED || is_landmark(m, summary)).collect()
}

/// Whether a size gets a line where there are many: powers of two and the edges of levels.
fn is_landmark(m: &Measurement, summary: Option<&LevelSummary>) -> bool {
    let Some(size) = m.at.working_set else { return true };
    let mut knees = summary.into_iter().flat_map(|s| &s.levels).filter_map(|l| l.knee.as_ref());
    size.0.is_power_of_two() || knees.any(|k| k.fits == size || k.spills == size)
}

/// Says what the numbers are, who measures, and where.
fn about(at: &Coordinates, latency: bool) -> String {
    format!("{}, {}", if latency { "ns per dependent load" } else { "GB/s" }, measured_by(at))
}

/// Says who measures, and where.
pub(super) fn measured_by(at: &Coordinates) -> String {
    let home = at.memory_node().map(|n| format!(" in node {n}")).unwrap_or_default();
    if let Some(mix) = at.mix {
        let who = at.cpus.as_ref().map(|c| format!(" by {}", wording::cpus(c))).unwrap_or_default();
        let each = if at.cpus.as_ref().is_some_and(|c| c.len() > 1) { ", working set of each CPU" } else { "" };
        return format!("{mix}{who}{home}{each}");
    }
    let order = at.order.map(wording::chase_order).unwrap_or("pointer chase");
    let who = at.cpu.map(|c| format!(" by CPU {c}")).unwrap_or_default();
    format!("{order}{who}{home}")
}

/// The levels, and what they say of the caches.
fn level_table(page: &mut Page, summary: &LevelSummary, unit: &str) {
    if summary.levels.is_empty() {
        page.paragraph(Style::Warning, "no level found: no part of the curve is flat");
        return;
    }
    let end = |level: &Level| match &level.knee {
        Some(k) => format!("{} and {}", size(k.fits), size(k.spills)),
        None if summary.levels.last() == Some(level) => "not seen".to_owned(),
        None => String::new(),
    };
    page.table([
        Column::text("level", summary.levels.iter().map(|l| l.name.clone())),
        Column::numbers(unit, summary.levels.iter().map(|l| l.value)),
        Column::text("95 %", summary.levels.iter().map(|l| range([l.low, l.high]))).optional(),
        Column::text("flat", summary.levels.iter().map(|l| format!("{} – {}", size(l.from), size(l.to)))),
        Column::text("ends between", summary.levels.iter().map(end)),
        Column::text("described as", summary.levels.iter().map(described)),
    ]);
    if summary.levels.last().is_some_and(|l| l.name.contains("memory") && l.name != "memory") {
        let why = "the sweep ends too early to separate the last level from a cache, whose size hypervisors may understate";
        page.paragraph(Style::Warning, format!("{why}: give {} 1G", Knob::Max));
    }
    for cache in &summary.unseen {
        page.paragraph(
            Style::Warning,
            format!("{} of {}: the machine describes it, but the curve has no step there", cache.name, size(cache.size)),
        );
    }
}

/// The cache's size as the machine describes it, and whether that is what was seen.
fn described(level: &Level) -> String {
    let Some(knee) = &level.knee else { return String::new() };
    match (&knee.cache, knee.agrees) {
        (Some(cache), Some(true)) => size(cache.size),
        (Some(cache), _) if knee.spills < cache.size => format!("{}: less was seen", size(cache.size)),
        (Some(cache), _) => format!("{}: more was seen", size(cache.size)),
        (None, _) => "no cache".to_owned(),
    }
}

/// The level that ends at this size.
fn level_ending_at(summary: &LevelSummary, size: Bytes) -> Option<&str> {
    summary.levels.iter().find(|l| l.knee.as_ref().is_some_and(|k| k.fits == size)).map(|l| l.name.as_str())
}

/// Explains the working set of a chase.
fn working_set_of_chase(m: &Measurement) -> Option<String> {
    let stride = m.evidence.stride.filter(|_| m.metric == Metric::Latency)?;
    Some(format!("working set: bytes of the chased lines, one line every {}", human(stride)))
}

/// From this factor between the highest and the lowest latency on, bars are logarithmic, because levels are decades apart. Below it, a
/// logarithm between the ends of a flat curve would turn its noise into steps.
const WIDE: f64 = 4.0;
/// The lowest value still gets a bar.
const SHORTEST: f64 = 0.08;

/// How values become lengths of bars and heights of the sketch, and what the legend says of it.
struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    /// For all the points of a curve. Bandwidths begin at 0 however far they lie apart, so that half of it is half as long.
    fn for_points(latency: bool, ms: &[&Measurement]) -> Self {
        let (low, high) = bounds(ms.iter().filter_map(|m| value_of(&m.estimate))).unwrap_or((0.0, 0.0));
        Self::between(latency, low, high)
    }

    fn between(latency: bool, low: f64, high: f64) -> Self {
        Self { low, high, logarithmic: latency && low > 0.0 && high / low >= WIDE }
    }

    /// 0 to 1.
    fn share(&self, value: f64) -> f64 {
        if self.logarithmic {
            SHORTEST + (1.0 - SHORTEST) * (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            value / self.high
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_begin_at_0_and_latencies_that_are_decades_apart_do_not() {
        let bandwidth = Scale::between(false, 20.0, 200.0);
        assert!(!bandwidth.logarithmic);
        assert_eq!([100.0, 200.0].map(|v| bandwidth.share(v)), [0.5, 1.0]);
        let steep = Scale::between(true, 1.0, 100.0);
        assert!(steep.logarithmic && (steep.share(10.0) - 0.54).abs() < 1e-9 && (steep.share(1.0) - SHORTEST).abs() < 1e-9);
        let flat = Scale::between(true, 99.0, 100.0);
        assert!(!flat.logarithmic && (flat.share(99.0) - 0.99).abs() < 1e-9, "noise is no step");
        assert!(!Scale::between(true, 0.0, 100.0).logarithmic, "there is no logarithm of 0");
    }
}
