//! Loaded-latency curves: their summary, and where to measure the next point.
//!
//! The terms are those of P. Esmaili-Dokht et al., "A Mess of Memory System Benchmarking, Simulation and Application Profiling", MICRO'24:
//! unloaded latency, saturated region, and over-saturation, where bandwidth falls while load and latency still grow (the curve bends back).

use std::collections::BTreeMap;

use memgauge_model::axis::Axis;
use memgauge_model::estimate::Estimate;
use memgauge_model::experiment::{Coordinates, Experiment, Metric};
use memgauge_model::protocol::IDLE_DELAY_CYCLES;
use memgauge_model::result::{CurvePoint, CurveShare, CurveSummary, Measurement, Report, ShareMissed};

/// A curve whose latency grows by less than this factor is flat. Its loaders do not make requests queue, and it has no knee. The latency of
/// published curves of saturated machines grows by 1.7 or more.
const SATURATED_GROWTH: f64 = 1.3;
/// The smallest distance of a knee from the straight line between the unloaded and the saturated point, with both axes scaled to 1. A
/// straighter curve has no knee.
const KNEE_DISTANCE: f64 = 0.2;
/// The smallest fall of bandwidth below its peak that counts as over-saturation and not as noise.
const FALL: f64 = 0.03;

/// Sums up the points of one curve, in any order. `at` are the coordinates that they share. Points with numbers that are not finite and
/// positive are left out.
///
/// The knee is the point furthest below the straight line from the unloaded point to the saturated one when both axes are scaled to 1 (V.
/// Satopää et al., "Finding a 'Kneedle' in a Haystack", 2011). Before it latency grows more slowly than bandwidth, in shares of the whole
/// range; after it, faster. It is never one of the ends. It is `None` for fewer than three points, for a flat curve and for a straight one.
///
/// `estimates` gives latency and bandwidth by delay. Differences count only if their 95 % intervals do not overlap: a knee has more
/// bandwidth than the unloaded point, and both it and the unloaded point have less latency than the saturated one; an over-saturated curve
/// has less bandwidth than at its peak. Points whose delay is not `reliable` are ignored; if an end of the curve is one
/// of them, no knee is found, because the line that a knee lies below is unknown.
pub fn summarise(
    at: Coordinates,
    points: &[CurvePoint],
    estimates: impl Fn(u32) -> Option<(Estimate, Estimate)>,
    reliable: impl Fn(u32) -> bool,
) -> CurveSummary {
    let latency = |p: &CurvePoint| ends(&estimates(p.delay_cycles)?.0);
    let bandwidth = |p: &CurvePoint| ends(&estimates(p.delay_cycles)?.1);
    let mut by_load: Vec<CurvePoint> = points.iter().copied().filter(CurvePoint::is_sane).collect();
    by_load.sort_by_key(|p| std::cmp::Reverse(p.delay_cycles));
    // A single point is one end of a curve, not both.
    let single_unloaded = by_load.first().is_some_and(|p| p.delay_cycles >= IDLE_DELAY_CYCLES);
    let end_ns = |shown: bool, point: Option<&CurvePoint>| {
        point.filter(|p| (shown || by_load.len() > 1) && reliable(p.delay_cycles)).map(|p| p.latency_ns)
    };
    let (unloaded_ns, saturated_ns) = (end_ns(single_unloaded, by_load.first()), end_ns(!single_unloaded, by_load.last()));
    by_load.retain(|p| reliable(p.delay_cycles));
    let peak = by_load.iter().copied().max_by(|a, b| a.bandwidth_gbs.total_cmp(&b.bandwidth_gbs));
    let both_ends = unloaded_ns.is_some() && saturated_ns.is_some();
    let knee = knee(&by_load).filter(|_| both_ends).filter(|(unloaded, knee, saturated)| {
        let less = |p| apart(latency(p), latency(saturated));
        less(unloaded) && less(knee) && apart(bandwidth(unloaded), bandwidth(knee))
    });
    CurveSummary {
        at,
        unloaded_ns,
        knee: knee.map(|k| k.1),
        saturated_ns,
        peak_gbs: peak.map(|p| p.bandwidth_gbs),
        full_load_by_node: BTreeMap::new(),
        shares: Vec::new(),
        over_saturated: peak.is_some_and(|peak| {
            by_load.iter().any(|p| {
                p.delay_cycles < peak.delay_cycles
                    && p.bandwidth_gbs < (1.0 - FALL) * peak.bandwidth_gbs
                    && apart(bandwidth(p), bandwidth(&peak))
                    && p.latency_ns > peak.latency_ns
            })
        }),
    }
}

/// Adds to the curves whose loaders use several nodes what each of these gave at the highest load.
pub fn add_bandwidth_by_node(report: &mut Report) {
    let found: Vec<BTreeMap<u32, f64>> = report.curves.iter().map(|curve| bandwidth_by_node(report, curve).unwrap_or_default()).collect();
    report.curves.iter_mut().zip(found).for_each(|(curve, by_node)| curve.full_load_by_node = by_node);
}

fn bandwidth_by_node(report: &Report, curve: &CurveSummary) -> Option<BTreeMap<u32, f64>> {
    curve.at.load_nodes.as_ref().filter(|nodes| nodes.len() > 1)?;
    let of_curve = |m: &&Measurement| {
        let at = m.at.without(Axis::DelayCycles);
        m.experiment == Experiment::LoadedLatency && m.metric == Metric::Bandwidth && at == curve.at && m.estimate.value.is_some()
    };
    let full = report.results.iter().filter(of_curve).min_by_key(|m| m.at.delay_cycles).filter(|m| m.is_reliable())?;
    let mut cells = report.plan.iter().flat_map(|plan| &plan.steps).flat_map(|step| &step.cells);
    let planned = cells.find(|cell| cell.at == curve.at && cell.work.delays().is_some())?;
    let mut by_node = BTreeMap::new();
    for loader in planned.work.loaders() {
        *by_node.entry(loader.buffer.node).or_default() += full.evidence.gbs_by_cpu.get(&loader.cpu)?;
    }
    Some(by_node)
}

/// The 95 % interval.
fn ends(estimate: &Estimate) -> Option<(f64, f64)> {
    estimate.ci95_low.zip(estimate.ci95_high)
}

/// Whether both intervals are known and the first lies below the second.
fn apart(below: Option<(f64, f64)>, above: Option<(f64, f64)>) -> bool {
    below.zip(above).is_some_and(|(below, above)| below.1 < above.0)
}

/// The knee of points in order of ascending load, between the first and the last of them.
fn knee(by_load: &[CurvePoint]) -> Option<(CurvePoint, CurvePoint, CurvePoint)> {
    let [first, inner @ .., last] = by_load else { return None };
    let largest = |f: fn(&CurvePoint) -> f64| by_load.iter().map(f).fold(f64::MIN, f64::max);
    let (bandwidth, latency) = (largest(|p| p.bandwidth_gbs), largest(|p| p.latency_ns));
    if latency < SATURATED_GROWTH * first.latency_ns || bandwidth <= first.bandwidth_gbs {
        return None;
    }
    // Latencies below the unloaded one are noise. They do not make a point a better knee.
    let gain_and_cost = |p: &CurvePoint| (p.bandwidth_gbs, p.latency_ns.max(first.latency_ns));
    let knee = &inner[furthest_below_line(&by_load.iter().map(gain_and_cost).collect::<Vec<_>>())? - 1];
    Some((*first, *knee, *last))
}

/// The knee of points (gain, cost) in ascending order of cost, such as bandwidth and latency, or bandwidth and threads: the one furthest below
/// the straight line between the ends when both are scaled to 1. It is never one of the ends. `None` if all points are close to that line.
pub fn furthest_below_line(points: &[(f64, f64)]) -> Option<usize> {
    let [first, inner @ .., _] = points else { return None };
    let largest = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).fold(f64::MIN, f64::max);
    let (gain, cost) = (largest(|p| p.0) - first.0, largest(|p| p.1) - first.1);
    let below_line = |p: &(f64, f64)| (p.0 - first.0) / gain - (p.1 - first.1) / cost;
    let (index, knee) = inner.iter().enumerate().max_by(|a, b| below_line(a.1).total_cmp(&below_line(b.1)))?;
    (gain > 0.0 && cost > 0.0 && below_line(knee) >= KNEE_DISTANCE).then_some(index + 1)
}

/// The injection delay to measure next, so that points are evenly spread in bandwidth. It lies within the widest gap between neighbours in
/// delay that exceeds `largest_gap_fraction` of the highest bandwidth. The first two are delay 0 and [`IDLE_DELAY_CYCLES`] (unless there is
/// a point with a longer delay). It is never a delay that was measured. `None` if there are `max_points` points or no gap is left to
/// divide.
///
/// Within a gap it aims at the middle in bandwidth. A loader that mostly waits for its delay has the bandwidth c / (t + delay), so 1 /
/// bandwidth is interpolated linearly.
pub fn next_delay(points: &[CurvePoint], max_points: u32, largest_gap_fraction: f64) -> Option<u32> {
    if points.len() >= max_points as usize {
        return None;
    }
    if !points.iter().any(|p| p.delay_cycles == 0) {
        return Some(0);
    }
    if !points.iter().any(|p| p.delay_cycles >= IDLE_DELAY_CYCLES) {
        return Some(IDLE_DELAY_CYCLES);
    }
    let mut by_delay = points.to_vec();
    by_delay.sort_by_key(|p| p.delay_cycles);
    let peak = by_delay.iter().map(|p| p.bandwidth_gbs).fold(0.0, f64::max);
    let gap = |pair: &[CurvePoint]| (pair[0].bandwidth_gbs - pair[1].bandwidth_gbs).abs();
    let pair = by_delay
        .windows(2)
        .filter(|pair| pair[1].delay_cycles - pair[0].delay_cycles >= 2 && gap(pair) > largest_gap_fraction * peak)
        .max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let (near, far) = (pair[0], pair[1]);
    let inverse = |bandwidth: f64| 1.0 / bandwidth.max(peak * 1e-6);
    let (from, to) = (inverse(near.bandwidth_gbs), inverse(far.bandwidth_gbs));
    let middle = inverse((near.bandwidth_gbs + far.bandwidth_gbs) / 2.0);
    let span = f64::from(far.delay_cycles - near.delay_cycles);
    let delay = f64::from(near.delay_cycles) + span * (middle - from) / (to - from);
    Some((delay.round() as u32).clamp(near.delay_cycles + 1, far.delay_cycles - 1))
}

/// A point this close to the wanted bandwidth, as a share of the peak, is close enough: bandwidths of a busy bus scatter by as much.
const CLOSE: f64 = 0.02;
/// The longest delay that is tried. At 4 GHz loaders make one request in 2.5 ms, so that only the chase is left.
const MAX_DELAY_CYCLES: u32 = 10_000_000;
/// The largest number of delays that are tried for one share. Each divides the remaining range by two or more, and interpolation mostly
/// needs two or three.
pub const MAX_TRIES: u32 = 7;

/// The points from the peak to the lightest load, by delay, and the peak. Beyond its peak an over-saturated curve has each bandwidth a
/// second time, at a much higher latency.
fn lighter_than_peak(points: &[CurvePoint]) -> Option<(Vec<CurvePoint>, f64)> {
    let sane = || points.iter().copied().filter(CurvePoint::is_sane);
    let peak = sane().max_by(|a, b| a.bandwidth_gbs.total_cmp(&b.bandwidth_gbs))?;
    let mut side: Vec<CurvePoint> = sane().filter(|p| p.delay_cycles >= peak.delay_cycles).collect();
    side.sort_by_key(|p| p.delay_cycles);
    Some((side, peak.bandwidth_gbs))
}

/// The delay to measure next in search of `percent` of the peak bandwidth; `tried` is the number of delays that were already measured for
/// it. `None` if a point is close enough, nothing lies between two neighbours, no load is light enough, or too many delays were tried.
///
/// The bandwidth of a waiting loader is c / (t + delay), so 1 / bandwidth is linear in the delay until the bus is full. The search
/// interpolates along the line through the next two points with lighter load, if there are two, otherwise along the line through the points
/// on both sides. Every second try is halfway in the logarithm of the delay, so that the search also works on curves of another shape.
pub fn next_for_share(points: &[CurvePoint], percent: u32, tried: u32) -> Option<u32> {
    if tried >= MAX_TRIES {
        return None;
    }
    let (_, peak) = lighter_than_peak(points)?;
    next_for_bandwidth(points, peak * f64::from(percent) / 100.0, tried)
}

/// The delay to measure next to find the latency at a bandwidth in GB/s, of at most the peak, after `tried` delays; `None` if one point is
/// close, or if none comes closer.
pub fn next_for_bandwidth(points: &[CurvePoint], goal: f64, tried: u32) -> Option<u32> {
    let (side, peak) = lighter_than_peak(points)?;
    if side.iter().any(|p| (p.bandwidth_gbs - goal).abs() <= CLOSE * peak) {
        return None;
    }
    let Some(at) = side.iter().position(|p| p.bandwidth_gbs < goal) else {
        // Even the lightest load has more bandwidth.
        let last = side.last()?.delay_cycles;
        return if last < IDLE_DELAY_CYCLES {
            Some(IDLE_DELAY_CYCLES)
        } else {
            (last < MAX_DELAY_CYCLES).then_some(last.saturating_mul(8).min(MAX_DELAY_CYCLES))
        };
    };
    // The peak comes first, and it is not below the goal.
    let (near, far) = (side[at.checked_sub(1)?], side[at]);
    if far.delay_cycles - near.delay_cycles < 2 {
        return None;
    }
    let (from, to) = (f64::from(near.delay_cycles), f64::from(far.delay_cycles));
    let line = |a: CurvePoint, b: CurvePoint| {
        let part = (1.0 / goal - 1.0 / a.bandwidth_gbs) / (1.0 / b.bandwidth_gbs - 1.0 / a.bandwidth_gbs);
        f64::from(a.delay_cycles) + (f64::from(b.delay_cycles) - f64::from(a.delay_cycles)) * part
    };
    let delay = if tried.is_multiple_of(2) {
        side.get(at + 1).filter(|next| next.bandwidth_gbs < far.bandwidth_gbs).map_or_else(|| line(near, far), |next| line(far, *next))
    } else {
        ((from + 1.0) * (to + 1.0)).sqrt() - 1.0
    };
    Some((delay.round().clamp(0.0, f64::from(MAX_DELAY_CYCLES)) as u32).clamp(near.delay_cycles + 1, far.delay_cycles - 1))
}

/// Of the points whose delay is `reliable`, the one closest to `percent` of their peak in bandwidth. `estimates` gives latency and bandwidth
/// by delay.
pub fn at_share(
    points: &[CurvePoint],
    percent: u32,
    estimates: impl Fn(u32) -> Option<(Estimate, Estimate)>,
    reliable: impl Fn(u32) -> bool,
) -> CurveShare {
    let counted: Vec<CurvePoint> = points.iter().copied().filter(|p| reliable(p.delay_cycles)).collect();
    let found = lighter_than_peak(&counted).and_then(|(side, peak)| {
        let goal = peak * f64::from(percent) / 100.0;
        let off = |p: &CurvePoint| (p.bandwidth_gbs - goal).abs();
        let point = side.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)))?;
        Some((point, peak))
    });
    let Some((point, peak)) = found else {
        let missed = if points.is_empty() { ShareMissed::NothingMeasured } else { ShareMissed::NothingReliable };
        return CurveShare { percent, missed: Some(missed), ..CurveShare::default() };
    };
    let reached = point.bandwidth_gbs / peak;
    let missed = (reached - f64::from(percent) / 100.0).abs() > CLOSE;
    let too_much = reached > f64::from(percent) / 100.0;
    let missed = missed.then_some(if too_much { ShareMissed::NoLessBandwidth } else { ShareMissed::NotCloser });
    let (latency, bandwidth) = estimates(point.delay_cycles).unwrap_or_default();
    CurveShare { percent, reached: Some(reached), delay_cycles: Some(point.delay_cycles), latency, bandwidth, missed }
}

#[cfg(test)]
mod tests;
