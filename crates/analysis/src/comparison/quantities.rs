//! Quantities that can be compared: values at the same coordinates, curves at equal bandwidth.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::axis::Axis;
use memgauge_model::experiment::{Coordinates, Experiment, Metric, Unit};
use memgauge_model::result::{CurvePoint, CurveSummary, Measurement, QualityLevel, Report, Samples};
use memgauge_model::stats::median;

use super::effect::RunSamples;
use super::outcome::{Aspect, NotCompared, WhyNotCompared};

/// One quantity with its runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QuantityRuns {
    pub(super) experiment: Experiment,
    pub(super) at: Coordinates,
    pub(super) aspect: Aspect,
    pub(super) metric: Metric,
    pub(super) unit: Unit,
    pub(super) before: Vec<RunSamples>,
    pub(super) after: Vec<RunSamples>,
}

type Key = (Experiment, Coordinates, Metric);

/// Shares of the lower of the two sides' peaks at which curves are compared: idle, half, near saturation.
const SHARES_OF_PEAK: [f64; 4] = [0.25, 0.5, 0.75, 0.9];

/// The quantities that both sides have, in the order of the first report, and those that cannot be compared.
pub(super) fn pair(before: &[&Report], after: &[&Report]) -> (Vec<QuantityRuns>, Vec<NotCompared>) {
    let (values_before, values_after) = (values(before), values(after));
    let order = keys(before).into_iter().chain(keys(after));
    let (mut seen, mut pairs, mut not_compared) = (BTreeSet::new(), Vec::new(), Vec::new());
    for key in order.filter(|key| seen.insert(key.clone())) {
        let (experiment, at, metric) = key.clone();
        let mut missing = |why| not_compared.push(NotCompared { experiment, at: at.clone(), aspect: None, metric, why });
        match (values_before.get(&key), values_after.get(&key)) {
            (Some(a), Some(b)) if a.runs.is_empty() || b.runs.is_empty() => missing(WhyNotCompared::Unreliable),
            (Some(a), Some(b)) => {
                pairs.push(QuantityRuns {
                    experiment,
                    at,
                    aspect: Aspect::Value,
                    metric,
                    unit: a.unit,
                    before: a.runs.clone(),
                    after: b.runs.clone(),
                });
            }
            (Some(_), None) => missing(WhyNotCompared::OnlyBefore),
            (None, Some(_)) => missing(WhyNotCompared::OnlyAfter),
            (None, None) => {}
        }
    }
    curves(before, after, (&mut pairs, &mut not_compared));
    matrices(before, after, (&mut pairs, &mut not_compared));
    (pairs, not_compared)
}

/// Points of adaptive curves are compared as curves.
fn is_single(m: &Measurement) -> bool {
    m.experiment != Experiment::LoadedLatency || m.at.delay_cycles.is_none()
}

fn keys(reports: &[&Report]) -> Vec<Key> {
    let measurements = reports.iter().flat_map(|r| &r.results).filter(|m| is_single(m) && m.estimate.value.is_some());
    measurements.map(|m| (m.experiment, m.at.clone(), m.metric)).collect()
}

struct Values {
    unit: Unit,
    /// One for each run with a reliable value.
    runs: Vec<RunSamples>,
}

fn values(reports: &[&Report]) -> BTreeMap<Key, Values> {
    let mut all: BTreeMap<Key, Values> = BTreeMap::new();
    for report in reports {
        let mut reliable: BTreeMap<Key, Vec<RunSamples>> = BTreeMap::new();
        for m in report.results.iter().filter(|m| is_single(m)) {
            let Some(value) = m.estimate.value else { continue };
            let key = (m.experiment, m.at.clone(), m.metric);
            all.entry(key.clone()).or_insert_with(|| Values { unit: m.unit, runs: Vec::new() });
            if m.quality.level < QualityLevel::Unreliable {
                let allocations = m.samples.as_deref().map(by_allocation).unwrap_or_default();
                reliable.entry(key).or_default().push(RunSamples { value, allocations });
            }
        }
        for (key, values) in reliable {
            all.entry(key).and_modify(|known| known.runs.extend(one_run(values)));
        }
    }
    all
}

/// One value of a run that measured several times at the same coordinates: the median, with all allocations.
fn one_run(values: Vec<RunSamples>) -> Option<RunSamples> {
    let value = median(&values.iter().map(|v| v.value).collect::<Vec<_>>())?;
    Some(RunSamples { value, allocations: values.into_iter().flat_map(|v| v.allocations).collect() })
}

/// The medians of the bursts that count, by allocation.
fn by_allocation(samples: &Samples) -> Vec<Vec<f64>> {
    let mut allocations: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (i, burst) in samples.bursts.iter().enumerate() {
        if samples.left_out.contains(&(i as u32)) {
            continue;
        }
        let allocation = samples.allocations.get(i).copied().unwrap_or(0);
        // Other programs may have written the file: what is not positive has no logarithm.
        allocations.entry(allocation).or_default().extend(median(burst).filter(|m| *m > 0.0));
    }
    allocations.into_values().filter(|bursts| !bursts.is_empty()).collect()
}

/// Bandwidth and latency of points of a curve, ascending by bandwidth.
type Curve = Vec<(f64, f64)>;

/// A curve of one run.
struct RunCurve {
    /// Its reliable points.
    points: Curve,
    knee: Option<CurvePoint>,
}

impl RunCurve {
    /// `None` if no point of it was measured.
    fn from_report(report: &Report, curve: &CurveSummary) -> Option<Self> {
        let is_point = |m: &&Measurement| {
            let same = || m.at.without(Axis::DelayCycles) == curve.at;
            m.experiment == Experiment::LoadedLatency && m.estimate.value.is_some() && same()
        };
        let measured: Vec<&Measurement> = report.results.iter().filter(is_point).collect();
        let mut by_delay: BTreeMap<Option<u32>, (Option<f64>, Option<f64>)> = BTreeMap::new();
        for m in measured.iter().filter(|m| m.is_reliable()) {
            let entry = by_delay.entry(m.at.delay_cycles).or_default();
            match m.metric {
                Metric::Bandwidth => entry.0 = m.estimate.value,
                Metric::Latency => entry.1 = m.estimate.value,
            }
        }
        let mut points: Curve = by_delay.into_values().filter_map(|(gbs, ns)| gbs.zip(ns)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let knee = curve.knee.filter(|_| !points.is_empty());
        (!measured.is_empty()).then_some(Self { points, knee })
    }

    fn peak(&self) -> Option<f64> {
        self.points.last().map(|point| point.0)
    }
}

/// The latency where a curve first has this bandwidth; `None` outside its range.
fn latency_at(curve: &Curve, gbs: f64) -> Option<f64> {
    curve.windows(2).find_map(|pair| {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        (x0 <= gbs && gbs <= x1).then(|| if x1 > x0 { y0 + (y1 - y0) * (gbs - x0) / (x1 - x0) } else { y0 })
    })
}

/// The quantities that can be compared, and those that cannot.
type Comparable<'a> = (&'a mut Vec<QuantityRuns>, &'a mut Vec<NotCompared>);

/// The keys of both sides, and why those that one side lacks are not compared.
fn keys_of<K: Ord + Clone, A, B>(before: &BTreeMap<K, A>, after: &BTreeMap<K, B>) -> Vec<(K, Option<WhyNotCompared>)> {
    let keys: BTreeSet<&K> = before.keys().chain(after.keys()).collect();
    let why = |key: &K| match (before.contains_key(key), after.contains_key(key)) {
        (true, false) => Some(WhyNotCompared::OnlyBefore),
        (false, true) => Some(WhyNotCompared::OnlyAfter),
        _ => None,
    };
    keys.into_iter().map(|key| (key.clone(), why(key))).collect()
}

fn curves(before: &[&Report], after: &[&Report], (pairs, not_compared): Comparable<'_>) {
    let all = |reports: &[&Report]| {
        let mut runs: BTreeMap<Coordinates, Vec<RunCurve>> = BTreeMap::new();
        for report in reports {
            let mut seen = BTreeSet::new();
            for curve in report.curves.iter().filter(|curve| seen.insert(&curve.at)) {
                if let Some(run) = RunCurve::from_report(report, curve) {
                    runs.entry(curve.at.clone()).or_default().push(run);
                }
            }
        }
        runs
    };
    let (before, after) = (all(before), all(after));
    for (at, missing) in keys_of(&before, &after) {
        let of_curve =
            |why| NotCompared { experiment: Experiment::LoadedLatency, at: at.clone(), aspect: None, metric: Metric::Latency, why };
        let (Some(a), Some(b)) = (before.get(&at), after.get(&at)) else {
            not_compared.extend(missing.map(of_curve));
            continue;
        };
        if [a, b].into_iter().any(|runs| runs.iter().all(|run| run.points.is_empty())) {
            not_compared.push(of_curve(WhyNotCompared::Unreliable));
            continue;
        }
        let mut push = |aspect, metric, unit, value: &dyn Fn(&RunCurve) -> Option<f64>| {
            let side = |runs: &[RunCurve]| runs.iter().filter_map(value).map(RunSamples::single).collect::<Vec<_>>();
            let (before, after) = (side(a), side(b));
            let why = match (before.is_empty(), after.is_empty()) {
                (false, false) => {
                    pairs.push(QuantityRuns { experiment: Experiment::LoadedLatency, at: at.clone(), aspect, metric, unit, before, after });
                    return;
                }
                (true, true) => return,
                (false, true) => WhyNotCompared::OnlyBefore,
                (true, false) => WhyNotCompared::OnlyAfter,
            };
            not_compared.push(NotCompared { aspect: Some(aspect), metric, ..of_curve(why) });
        };
        let (latency, bandwidth) = ((Metric::Latency, Unit::Nanoseconds), (Metric::Bandwidth, Unit::GigabytesPerSecond));
        // In every curve, so that each run has a value.
        let peak = a.iter().chain(b).filter_map(RunCurve::peak).fold(f64::INFINITY, f64::min);
        for share in SHARES_OF_PEAK {
            let gbs = (peak * share * 10.0).round() / 10.0;
            push(Aspect::AtBandwidth { gbs }, latency.0, latency.1, &|run| latency_at(&run.points, gbs));
        }
        push(Aspect::PeakBandwidth, bandwidth.0, bandwidth.1, &RunCurve::peak);
        push(Aspect::KneeBandwidth, bandwidth.0, bandwidth.1, &|run| run.knee.map(|k| k.bandwidth_gbs));
        push(Aspect::KneeLatency, latency.0, latency.1, &|run| run.knee.map(|k| k.latency_ns));
    }
}

fn matrices(before: &[&Report], after: &[&Report], (pairs, not_compared): Comparable<'_>) {
    let all = |reports: &[&Report]| {
        let mut runs: BTreeMap<(Experiment, Coordinates), Vec<RunSamples>> = BTreeMap::new();
        for report in reports {
            let mut values: BTreeMap<(Experiment, Coordinates), Vec<f64>> = BTreeMap::new();
            for matrix in &report.matrices {
                let at = Coordinates { cpus: Some(matrix.cpus.iter().copied().collect()), ..matrix.shared_coordinates() };
                values.entry((matrix.experiment, at)).or_default().extend(matrix.pairs().map(|p| p.value));
            }
            for (key, values) in values {
                if let Some(value) = median(&values) {
                    runs.entry(key).or_default().push(RunSamples::single(value));
                }
            }
        }
        runs
    };
    let (mut before, mut after) = (all(before), all(after));
    let (aspect, metric, unit) = (Aspect::PairMedian, Metric::Latency, Unit::Nanoseconds);
    for (key, missing) in keys_of(&before, &after) {
        let sides = before.remove(&key).zip(after.remove(&key));
        let (experiment, at) = key;
        match (sides, missing) {
            (Some((before, after)), _) => pairs.push(QuantityRuns { experiment, at, aspect, metric, unit, before, after }),
            (None, Some(why)) => not_compared.push(NotCompared { experiment, at, aspect: Some(aspect), metric, why }),
            (None, None) => {}
        }
    }
}
