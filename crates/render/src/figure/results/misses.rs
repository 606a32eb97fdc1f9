//! Numbers from hardware counters over the working set: miss rates and misses, on the axis of the sweep's own curves.

use std::collections::BTreeSet;

use memgauge_analysis::conclusions::levels;
use memgauge_model::counters::Counters;
use memgauge_model::experiment::{Coordinates, Metric};
use memgauge_model::metrics::CounterMetric;
use memgauge_model::result::Measurement;
use memgauge_model::traffic::Mix;
use memgauge_model::units::Bytes;
use memgauge_model::wording;
use memgauge_model::words::Knob;

use crate::figure::axis::Axis;
use crate::figure::chart::{Chart, PointLabel};
use crate::figure::frame::Panel;
use crate::figure::labels::{ABOVE, BELOW, LEFT, LOWER_RIGHT, RIGHT, UPPER_LEFT};
use crate::figure::palette::{Colour, series, text_of};
use crate::figure::source::{ResultSet, about, is_degraded};
use crate::figure::working_set::{WorkingSet, WorkingSetLine, WorkingSetPoint};
use crate::groups::Sweep;
use crate::number::{bounds, percent};

/// Curves whose counters are drawn, each in up to three panels.
const MAX_CURVES: usize = 4;
/// An axis goes up to 100 %, so that panels compare, unless all rates are below this many percent.
const LOW_PERCENT: f64 = 20.0;

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
            Self::Misses => "Misses per pass over the working set",
        }
    }

    /// Whether these metrics are worth a panel. Misses of L1 alone are in the panel per access.
    fn is_drawn(self, shown: &[CounterMetric]) -> bool {
        match self {
            Self::PerLoad => shown.iter().any(|m| *m != CounterMetric::L1MissRate),
            _ => !shown.is_empty(),
        }
    }
}

/// One curve of a sweep that was counted.
struct Counted<'a> {
    set: &'a ResultSet<'a>,
    at: Coordinates,
    /// Size, measurement and its counters.
    points: Vec<(Bytes, &'a Measurement, &'a Counters)>,
}

impl<'a> Counted<'a> {
    /// `None` where no counters were asked for.
    fn new(set: &'a ResultSet<'a>, sweep: Sweep<'a>) -> Option<Self> {
        let points: Vec<_> = sweep.points.iter().filter_map(|m| Some((m.at.working_set?, *m, m.counters.as_deref()?))).collect();
        (!points.is_empty()).then_some(Self { set, at: sweep.at, points })
    }

    /// Why nothing was counted at all; `None` where something was.
    fn nothing_because(&self) -> Option<&str> {
        let nothing = self.points.iter().all(|p| p.2.events.iter().all(|e| e.value.is_none()));
        self.points.iter().find_map(|p| p.2.reason.as_deref()).filter(|_| nothing)
    }

    /// Why the first of these metrics that is missing everywhere is missing.
    fn missing_because<'m>(&self, mut metrics: impl Iterator<Item = &'m CounterMetric>) -> String {
        let reason = |metric: &CounterMetric| {
            let values = || self.points.iter().flat_map(|p| &p.2.metrics);
            values().find(|v| v.metric == *metric && v.value.is_none()).and_then(|v| v.reason.clone())
        };
        metrics.find_map(reason).unwrap_or_else(|| "the result does not say why".to_owned())
    }
}

/// The panels, and notes about panels that are missing.
pub(super) fn panels(sets: &[ResultSet<'_>]) -> (Vec<Box<dyn Panel>>, Vec<String>) {
    let counted =
        |metric| sets.iter().flat_map(move |set| set.sweeps(metric).into_iter().filter_map(move |sweep| Counted::new(set, sweep)));
    let curves: Vec<Counted<'_>> = [Metric::Latency, Metric::Bandwidth].into_iter().flat_map(counted).collect();
    let (mut panels, mut captions): (Vec<Box<dyn Panel>>, BTreeSet<String>) = (Vec::new(), BTreeSet::new());
    for curve in curves.iter().take(MAX_CURVES) {
        if let Some(reason) = curve.nothing_because() {
            captions.insert(format!("No miss rates: {reason}."));
            continue;
        }
        for kind in Kind::ALL {
            if kind == Kind::Misses && curve.at.mix.is_some_and(|mix| mix != Mix::AllReads) {
                captions.insert("Misses per pass are drawn for reads only: other traffic uses a line more than once per pass.".to_owned());
                continue;
            }
            let metrics = kind.levels().map(|l| l.1);
            let shown: Vec<CounterMetric> = metrics.into_iter().filter(|m| curve.points.iter().any(|p| p.2.metric(*m).is_some())).collect();
            if kind.is_drawn(&shown) {
                panels.push(Box::new(chart(curve, kind)));
            } else {
                captions.insert(format!("No panel '{}': {}.", kind.title(), curve.missing_because(metrics.iter().rev())));
            }
        }
    }
    if curves.len() > MAX_CURVES {
        let more = curves.len() - MAX_CURVES;
        let (cpus, latency) = (Knob::Cpus, Knob::Latency);
        captions.insert(format!("Counters of {more} more curves are in the JSON result; draw fewer ({cpus}, {latency}) to see them."));
    }
    (panels, captions.into_iter().collect())
}

fn chart(curve: &Counted<'_>, kind: Kind) -> Chart {
    let topology = &curve.set.report.machine.topology;
    let Lines { lines, colours, formulas, notes } = lines(curve, kind);
    let at = &curve.at;
    let traffic = match at.mix {
        Some(mix) => mix.to_string(),
        None => at.order.map(|o| format!("{} chase", wording::chase_order(o))).unwrap_or_default(),
    };
    let cpus = at.cpu.map(|c| format!("CPU {c}")).or_else(|| at.cpus.as_ref().map(wording::cpus)).unwrap_or_default();
    let misses = kind == Kind::Misses;
    let formula = if misses { "lines of the working set × misses per line or hop".to_owned() } else { formulas.join(", ") };
    let figure = WorkingSet {
        title: curve.set.title(kind.title()),
        about: about(&[&traffic, &cpus, "user code only", &formula]),
        quantity: if misses { "Misses per pass" } else { "Missed (%)" }.into(),
        unit: String::new(),
        logarithmic: misses,
        lines,
        caches: levels::caches(topology, at).into_iter().map(|c| (c.name, c.size)).collect(),
        beyond: "Memory".into(),
        notes,
    };
    // The axis of the sweep's own curves, whatever was counted of it.
    let ends = (curve.points.first().map(|p| p.0), curve.points.last().map(|p| p.0));
    let mut chart = figure.chart_over(ends.0, ends.1);
    if misses {
        chart.y.ticks.iter_mut().filter(|t| t.label.is_some()).for_each(|t| t.label = Some(short(t.value)));
    } else {
        let highest = bounds(figure.lines.iter().flat_map(|l| &l.points).map(|p| p.value)).map_or(0.0, |b| b.1);
        let top = if highest < LOW_PERCENT { highest.max(0.1) } else { highest.max(100.0) };
        chart.y = Axis::linear(figure.quantity.clone(), 0.0, top, 6);
    }
    name_where_they_rise(&mut chart, &colours, kind);
    chart
}

/// What a panel draws.
#[derive(Default)]
struct Lines {
    lines: Vec<WorkingSetLine>,
    /// By level, the same in all panels.
    colours: Vec<Colour>,
    formulas: Vec<String>,
    notes: Vec<String>,
}

/// A line for each level that was counted.
fn lines(curve: &Counted<'_>, kind: Kind) -> Lines {
    let line_size = curve.set.report.machine.topology.line().0.max(1);
    let scale = |size: Bytes| if kind == Kind::Misses { size.0 as f64 / line_size as f64 } else { 100.0 };
    let (mut found, mut hidden) = (Lines::default(), false);
    for (i, (name, metric)) in kind.levels().into_iter().enumerate() {
        let point = |&(size, m, counters): &(Bytes, &Measurement, &Counters)| {
            let value = counters.metric(metric)? * scale(size);
            value.is_finite().then(|| WorkingSetPoint { size, value, interval: None, degraded: is_degraded(m) })
        };
        let mut points: Vec<WorkingSetPoint> = curve.points.iter().filter_map(point).collect();
        if points.is_empty() {
            found.notes.push(format!("Not counted: {name}: {}.", curve.missing_because([metric].iter())));
            continue;
        }
        if kind == Kind::Misses {
            let all = points.len();
            points.retain(|p| p.value >= 1.0);
            hidden |= points.len() < all;
        }
        found.formulas.push(format!("{name} = {}", metric.definition().formula()));
        found.lines.push(WorkingSetLine { name: name.to_owned(), points, plateaus: Vec::new() });
        found.colours.push(series(i));
    }
    if hidden {
        found.notes.push("Sizes with less than one miss per pass have no point.".to_owned());
    }
    let running = curve.points.iter().filter_map(|p| p.2.running).fold(1.0, f64::min);
    if running < 0.995 {
        let share = percent(running);
        found.notes.push(format!("The counters took turns: each event was counted for at least {share} of the time, and scaled."));
    }
    found
}

/// Lines may end at the same place, so each is named where it rises.
fn name_where_they_rise(chart: &mut Chart, colours: &[Colour], kind: Kind) {
    for (series, &colour) in chart.series.iter_mut().zip(colours) {
        series.style.colour = colour;
        let highest = series.samples.iter().map(|s| s.y).fold(0.0, f64::max);
        let rises = |y: f64| kind == Kind::Misses || y >= highest / 2.0;
        if let (Some(name), Some(s)) = (series.name.take(), series.samples.iter().find(|s| rises(s.y))) {
            let directions = [LEFT, UPPER_LEFT, ABOVE, RIGHT, LOWER_RIGHT, BELOW];
            chart.point_labels.push(PointLabel::new((s.x, s.y), name, text_of(colour), &directions));
        }
    }
}

/// A count on an axis: `100`, `10 k`, `1 M`.
fn short(value: f64) -> String {
    let units = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];
    let (size, unit) = units.into_iter().find(|(size, _)| value >= size * 0.999).unwrap_or((1.0, ""));
    format!("{:.0}{unit}", value / size)
}
