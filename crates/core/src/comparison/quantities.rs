//! What can be compared: values at the same coordinates, curves at equal bandwidth.

use std::collections::{BTreeMap, BTreeSet};

use super::effect::RunSamples;
use super::outcome::{Aspect, NotCompared, WhyNotCompared};
use crate::experiment::{Coordinates, Experiment, Metric, Unit};
use crate::result::{CurveSummary, Measurement, QualityLevel, Report, Samples};
use crate::stats::median;

/// One quantity with its runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pair {
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
pub(super) fn pair(before: &[Report], after: &[Report]) -> (Vec<Pair>, Vec<NotCompared>) {
    let (values_before, values_after) = (values(before), values(after));
    let order = keys(before).into_iter().chain(keys(after));
    let (mut seen, mut pairs, mut not_compared) = (BTreeSet::new(), Vec::new(), Vec::new());
    for key in order.filter(|key| seen.insert(key.clone())) {
        let (experiment, at, metric) = key.clone();
        let mut missing = |why| not_compared.push(NotCompared { experiment, at: at.clone(), metric, why });
        match (values_before.get(&key), values_after.get(&key)) {
            (Some(a), Some(b)) if a.runs.is_empty() || b.runs.is_empty() => missing(WhyNotCompared::Unreliable),
            (Some(a), Some(b)) => {
                pairs.push(Pair {
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
    pairs.extend(curves(before, after));
    pairs.extend(matrices(before, after));
    (pairs, not_compared)
}

/// Points of adaptive curves are compared as curves.
fn is_single(m: &Measurement) -> bool {
    m.experiment != Experiment::LoadedLatency || m.at.delay_cycles.is_none()
}

fn keys(reports: &[Report]) -> Vec<Key> {
    let measurements = reports.iter().flat_map(|r| &r.results).filter(|m| is_single(m) && m.estimate.value.is_some());
    measurements.map(|m| (m.experiment, m.at.clone(), m.metric)).collect()
}

struct Values {
    unit: Unit,
    /// Of the runs in which the value is reliable.
    runs: Vec<RunSamples>,
}

fn values(reports: &[Report]) -> BTreeMap<Key, Values> {
    let mut all: BTreeMap<Key, Values> = BTreeMap::new();
    for m in reports.iter().flat_map(|r| &r.results).filter(|m| is_single(m)) {
        let Some(value) = m.estimate.value else { continue };
        let values = all.entry((m.experiment, m.at.clone(), m.metric)).or_insert_with(|| Values { unit: m.unit, runs: Vec::new() });
        if m.quality.level < QualityLevel::Unreliable {
            values.runs.push(RunSamples { value, allocations: m.samples.as_deref().map(by_allocation).unwrap_or_default() });
        }
    }
    all
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

/// A curve of one run: bandwidth and latency of its reliable points, ascending by bandwidth.
type Curve = Vec<(f64, f64)>;

fn curve_points(report: &Report, curve: &CurveSummary) -> Curve {
    let point = |m: &Measurement| {
        let same = Coordinates { delay_cycles: None, ..m.at.clone() } == curve.at;
        (m.experiment == Experiment::LoadedLatency && same && m.is_reliable()).then_some(m.estimate.value).flatten()
    };
    let mut by_delay: BTreeMap<Option<u32>, (Option<f64>, Option<f64>)> = BTreeMap::new();
    for m in &report.results {
        if let Some(value) = point(m) {
            let entry = by_delay.entry(m.at.delay_cycles).or_default();
            match m.metric {
                Metric::Bandwidth => entry.0 = Some(value),
                Metric::Latency => entry.1 = Some(value),
            }
        }
    }
    let mut points: Curve = by_delay.into_values().filter_map(|(gbs, ns)| gbs.zip(ns)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// The latency where a curve first has this bandwidth; `None` outside its range.
fn latency_at(curve: &Curve, gbs: f64) -> Option<f64> {
    curve.windows(2).find_map(|pair| {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        (x0 <= gbs && gbs <= x1).then(|| if x1 > x0 { y0 + (y1 - y0) * (gbs - x0) / (x1 - x0) } else { y0 })
    })
}

fn curves(before: &[Report], after: &[Report]) -> Vec<Pair> {
    let all = |reports: &[Report]| {
        let mut runs: BTreeMap<Coordinates, Vec<(Curve, CurveSummary)>> = BTreeMap::new();
        for report in reports {
            for curve in &report.curves {
                runs.entry(curve.at.clone()).or_default().push((curve_points(report, curve), curve.clone()));
            }
        }
        runs
    };
    let (before, after) = (all(before), all(after));
    let mut pairs = Vec::new();
    for (at, a) in &before {
        let Some(b) = after.get(at) else { continue };
        let mut push = |aspect, metric, unit, value: &dyn Fn(&(Curve, CurveSummary)) -> Option<f64>| {
            let side = |runs: &[(Curve, CurveSummary)]| runs.iter().filter_map(value).map(RunSamples::single).collect::<Vec<_>>();
            let (before, after) = (side(a), side(b));
            if !before.is_empty() && !after.is_empty() {
                pairs.push(Pair { experiment: Experiment::LoadedLatency, at: at.clone(), aspect, metric, unit, before, after });
            }
        };
        let (latency, bandwidth) = ((Metric::Latency, Unit::Nanoseconds), (Metric::Bandwidth, Unit::GigabytesPerSecond));
        // In every curve, so that each run has a value.
        let peaks = a.iter().chain(b).filter_map(|(points, _)| points.last().map(|p| p.0));
        let peak = peaks.fold(f64::INFINITY, f64::min);
        if peak.is_finite() {
            for share in SHARES_OF_PEAK {
                let gbs = (peak * share * 10.0).round() / 10.0;
                push(Aspect::AtBandwidth { gbs }, latency.0, latency.1, &|(points, _)| latency_at(points, gbs));
            }
        }
        push(Aspect::PeakBandwidth, bandwidth.0, bandwidth.1, &|(points, _)| points.last().map(|p| p.0));
        push(Aspect::KneeBandwidth, bandwidth.0, bandwidth.1, &|(_, curve)| curve.knee.map(|k| k.bandwidth_gbs));
        push(Aspect::KneeLatency, latency.0, latency.1, &|(_, curve)| curve.knee.map(|k| k.latency_ns));
    }
    pairs
}

fn matrices(before: &[Report], after: &[Report]) -> Vec<Pair> {
    let all = |reports: &[Report]| {
        let mut runs: BTreeMap<(Experiment, Coordinates), Vec<RunSamples>> = BTreeMap::new();
        for matrix in reports.iter().flat_map(|r| &r.matrices) {
            let values: Vec<f64> = matrix.pairs().map(|p| p.value).collect();
            let at = Coordinates {
                state: Some(matrix.state),
                order: matrix.order,
                memory_dir: matrix.memory_dir.clone(),
                cpus: Some(matrix.cpus.iter().copied().collect()),
                ..Coordinates::default()
            };
            if let Some(value) = median(&values) {
                runs.entry((matrix.experiment, at)).or_default().push(RunSamples::single(value));
            }
        }
        runs
    };
    let (before, mut after) = (all(before), all(after));
    let both = before.into_iter().filter_map(|(key, a)| after.remove(&key).map(|b| (key, a, b)));
    both.map(|((experiment, at), before, after)| Pair {
        experiment,
        at,
        aspect: Aspect::PairMedian,
        metric: Metric::Latency,
        unit: Unit::Nanoseconds,
        before,
        after,
    })
    .collect()
}
