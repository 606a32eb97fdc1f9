//! What hardware counters showed over the working set: miss rates and misses, on the axis of the sweep's own curves.

use std::collections::BTreeSet;

use memgauge_core::conclusions::levels;
use memgauge_core::counters::Counters;
use memgauge_core::experiment::{Coordinates, Metric};
use memgauge_core::metrics::CounterMetric;
use memgauge_core::result::Measurement;
use memgauge_core::traffic::Mix;
use memgauge_core::units::Bytes;

use super::axis::Axis;
use super::chart::{Chart, Mark};
use super::frame::Panel;
use super::labels::{ABOVE, BELOW, LEFT, LOWER_RIGHT, RIGHT, UPPER_LEFT};
use super::palette::{series, text_of};
use super::source::{Set, about, is_degraded};
use super::sweep::curves_of;
use super::working_set::{WorkingSet, WorkingSetLine, WorkingSetPoint};
use crate::text::cpus_name;
use crate::text::latency::order_name;
use crate::text::number::{bounds, percent};

/// Curves whose counters are drawn; each has up to three panels.
const MOST_CURVES: usize = 4;
/// Rates below this many per cent get an axis of their own size; above it the axis is all of the 100, so that panels compare.
const LOW_PERCENT: f64 = 20.0;
/// A line of memory where the machine does not say it.
const LINE: u64 = 64;

/// Levels and the metric of each.
type Levels = [(&'static str, CounterMetric); 3];

/// What a panel shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    PerAccess,
    PerLoad,
    Misses,
}

impl Kind {
    const ALL: [Self; 3] = [Self::PerAccess, Self::PerLoad, Self::Misses];

    fn levels(self) -> Levels {
        use CounterMetric as M;
        match self {
            Self::PerAccess => [("L1", M::L1MissRate), ("L2", M::L2MissRate), ("LLC", M::LlcMissRate)],
            Self::PerLoad => [("L1", M::L1MissRate), ("L2", M::L2MissesPerLoad), ("LLC", M::LlcMissesPerLoad)],
            Self::Misses => [("L1", M::L1MissesPerWork), ("L2", M::L2MissesPerWork), ("LLC", M::LlcMissesPerWork)],
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::PerAccess => "Miss rates by working set, per access of the level",
            Self::PerLoad => "Miss rates by working set, per load",
            Self::Misses => "Misses of one pass over the working set",
        }
    }

    /// Whether the panel says something without these: misses of L1 alone are in the panel per access.
    fn is_drawn(self, shown: &[CounterMetric]) -> bool {
        match self {
            Self::PerLoad => shown.iter().any(|m| *m != CounterMetric::L1MissRate),
            _ => !shown.is_empty(),
        }
    }
}

/// One curve of a sweep that was counted.
struct Counted<'a> {
    set: &'a Set<'a>,
    at: Coordinates,
    /// Size, measurement and its counters.
    points: Vec<(Bytes, &'a Measurement, &'a Counters)>,
}

/// The panels, and what has none, in words that stand below the sweep's own.
pub(super) fn panels(sets: &[Set<'_>]) -> (Vec<Box<dyn Panel>>, Vec<String>) {
    let counted: Vec<Counted<'_>> = [Metric::Latency, Metric::Bandwidth]
        .into_iter()
        .flat_map(|metric| curves_of(sets, metric))
        .filter_map(|(set, at, ms)| {
            let mut points: Vec<_> = ms.into_iter().filter_map(|m| Some((m.at.working_set?, m, m.counters.as_deref()?))).collect();
            points.sort_by_key(|p| p.0);
            (!points.is_empty()).then_some(Counted { set, at, points })
        })
        .collect();
    let (mut panels, mut captions): (Vec<Box<dyn Panel>>, BTreeSet<String>) = (Vec::new(), BTreeSet::new());
    for curve in counted.iter().take(MOST_CURVES) {
        if let Some(reason) = curve.points.iter().find_map(|p| p.2.reason.as_ref()).filter(|_| curve.points.iter().all(|p| nothing(p.2))) {
            captions.insert(format!("No miss rates: {reason}."));
            continue;
        }
        for kind in Kind::ALL {
            if kind == Kind::Misses && curve.at.mix.is_some_and(|mix| mix != Mix::AllReads) {
                captions.insert("Misses of a pass are drawn of reads alone: other traffic uses a line more than once a pass.".to_owned());
                continue;
            }
            let shown: Vec<CounterMetric> =
                kind.levels().iter().map(|l| l.1).filter(|m| curve.points.iter().any(|p| p.2.metric(*m).is_some())).collect();
            if kind.is_drawn(&shown) {
                panels.push(Box::new(chart(curve, kind)));
            } else {
                let why =
                    missing(curve, kind.levels().map(|l| l.1).iter().rev()).unwrap_or_else(|| "the result does not say why".to_owned());
                captions.insert(format!("No panel '{}': {why}.", kind.title()));
            }
        }
    }
    if counted.len() > MOST_CURVES {
        let more = counted.len() - MOST_CURVES;
        captions.insert(format!("Counters of {more} more curves are in the JSON result; draw fewer (--cpu, --latency) to see them."));
    }
    (panels, captions.into_iter().collect())
}

fn nothing(counters: &Counters) -> bool {
    counters.events.iter().all(|e| e.value.is_none())
}

/// Why the first of these metrics that is missing everywhere is missing.
fn missing<'m>(curve: &Counted<'_>, mut metrics: impl Iterator<Item = &'m CounterMetric>) -> Option<String> {
    metrics.find_map(|metric| {
        curve.points.iter().flat_map(|p| &p.2.metrics).find(|v| v.metric == *metric && v.value.is_none()).and_then(|v| v.reason.clone())
    })
}

fn chart(curve: &Counted<'_>, kind: Kind) -> Chart {
    let Counted { set, at, points } = curve;
    let topology = &set.report.machine.topology;
    let line = topology.caches.iter().filter_map(|c| c.line).max().map_or(LINE, u64::from).max(1);
    let value = |size: Bytes, v: f64| if kind == Kind::Misses { v * size.0 as f64 / line as f64 } else { v * 100.0 };
    let (mut lines, mut colours, mut formulas, mut notes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut hidden = false;
    for (i, (name, metric)) in kind.levels().into_iter().enumerate() {
        let mut drawn: Vec<WorkingSetPoint> = points
            .iter()
            .filter_map(|(size, m, counters)| {
                let value = value(*size, counters.metric(metric)?);
                Some(WorkingSetPoint { size: *size, value, interval: None, degraded: is_degraded(m) })
            })
            .filter(|p| p.value.is_finite())
            .collect();
        if drawn.is_empty() {
            let why = missing(curve, [metric].iter()).unwrap_or_else(|| "the result does not say why".to_owned());
            notes.push(format!("Not counted: {name}: {why}."));
            continue;
        }
        if kind == Kind::Misses {
            let before = drawn.len();
            drawn.retain(|p| p.value >= 1.0);
            hidden |= drawn.len() < before;
        }
        formulas.push(format!("{name} = {}", metric.definition().formula));
        lines.push(WorkingSetLine { name: name.to_owned(), points: drawn, plateaus: Vec::new() });
        colours.push(series(i));
    }
    let what = match at.mix {
        Some(mix) => mix.to_string(),
        None => at.order.map(|o| format!("{} chase", order_name(o))).unwrap_or_default(),
    };
    let who = at.cpu.map(|c| format!("CPU {c}")).or_else(|| at.cpus.as_ref().map(cpus_name)).unwrap_or_default();
    if hidden {
        notes.push("Sizes with less than one miss a pass have no point.".to_owned());
    }
    let running = points.iter().filter_map(|p| p.2.running).fold(1.0, f64::min);
    if running < 0.995 {
        notes.push(format!("Counters took turns: each event was counted for at least {} of the time and scaled.", percent(running)));
    }
    let of_lines = if kind == Kind::Misses { "lines of the working set × misses per line or hop".to_owned() } else { formulas.join(", ") };
    let caches = levels::caches(topology, at);
    let figure = WorkingSet {
        title: set.title(kind.title()),
        about: about(&[&what, &who, "user code only", &of_lines]),
        quantity: if kind == Kind::Misses { "Misses a pass" } else { "Missed (%)" }.into(),
        unit: String::new(),
        logarithmic: kind == Kind::Misses,
        lines,
        caches: caches.into_iter().map(|c| (c.name, c.size)).collect(),
        beyond: "Memory".into(),
        notes,
    };
    // The axis of the sweep's own curves, whatever was counted of it.
    let mut chart = figure.chart_over(&figure.lines, points.first().map(|p| p.0), points.last().map(|p| p.0));
    if kind != Kind::Misses {
        let most = bounds(figure.lines.iter().flat_map(|l| &l.points).map(|p| p.value)).map_or(0.0, |b| b.1);
        chart.y = Axis::linear(figure.quantity.clone(), 0.0, if most < LOW_PERCENT { most.max(0.1) } else { most.max(100.0) }, 6);
    }
    if kind == Kind::Misses {
        chart.y.ticks.iter_mut().filter(|t| t.label.is_some()).for_each(|t| t.label = Some(short(t.value)));
    }
    // Where lines end they lie on each other: each is named where it rises.
    for (series, colour) in chart.series.iter_mut().zip(colours) {
        series.colour = colour;
        let most = series.samples.iter().map(|s| s.y).fold(0.0, f64::max);
        let rises = |y: f64| kind == Kind::Misses || y >= most / 2.0;
        if let (Some(name), Some(s)) = (series.name.take(), series.samples.iter().find(|s| rises(s.y))) {
            let directions = vec![LEFT, UPPER_LEFT, ABOVE, RIGHT, LOWER_RIGHT, BELOW];
            chart.marks.push(Mark { at: (s.x, s.y), name, colour: text_of(colour), ring: false, optional: false, directions });
        }
    }
    chart
}

/// A count on an axis: `100`, `10 k`, `1 M`.
fn short(value: f64) -> String {
    let units = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];
    let (size, unit) = units.into_iter().find(|(size, _)| value >= size * 0.999).unwrap_or((1.0, ""));
    format!("{:.0}{unit}", value / size)
}
