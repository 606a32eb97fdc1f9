//! How much memory bandwidth others seem to use: the machine's curve of latency under load, read backwards.
//!
//! Latency of memory over that of the quietest state is looked up on the curve. That is an inference: another cause of higher latency, such as a
//! lower frequency of memory, reads as traffic of others.

use memgauge_model::estimate::Estimate;
use memgauge_model::experiment::{Coordinates, Experiment, Metric};
use memgauge_model::result::{Measurement, OthersBandwidth, OthersPoint, OthersScale, Report};
use memgauge_model::stats::NORMAL_95;
use memgauge_model::traffic::Mix;

/// The fewest points of a curve.
const LEAST_POINTS: usize = 3;
/// Standard errors between nothing and what is detected in 95 % of the cases, where 5 % of false alarms are allowed (L. A. Currie, "Limits for
/// Qualitative Detection and Quantitative Determination", 1968).
const DETECTED: f64 = 3.29;
/// No relative standard error is less, so that none outweighs all others.
const LEAST_ERROR: f64 = 1e-3;

/// The scale of a report with a curve of latency under load; of several curves, that of reads with most points. `None` without one whose points have
/// intervals.
pub fn scale(report: &Report, file: Option<String>) -> Option<OthersScale> {
    let curve = |at: &Coordinates| -> Vec<Latency> { report.results.iter().filter_map(|m| point(report, at, m)).collect() };
    let curves = report.curves.iter().map(|summary| (summary.at.mix != Some(Mix::AllReads), curve(&summary.at)));
    let enough = curves.filter(|(_, points)| points.len() >= LEAST_POINTS);
    let (_, points) = enough.min_by_key(|(other, points)| (*other, usize::MAX - points.len()))?;
    let curve = rising(points);
    let peak_gbs = curve.last().map(|p| p.gbs).filter(|gbs| *gbs > 0.0)?;
    Some(OthersScale { file, quiet_ns: None, peak_gbs, detection_gbs: None, curve })
}

/// Latency at a bandwidth of loaders.
#[derive(Debug, Clone, Copy)]
struct Latency {
    gbs: f64,
    /// The logarithm of nanoseconds, and its standard error.
    log: f64,
    error: f64,
}

/// The point of the curve at `at` that this latency belongs to.
fn point(report: &Report, at: &Coordinates, latency: &Measurement) -> Option<Latency> {
    let alike = |m: &&Measurement| m.experiment == Experiment::LoadedLatency && Coordinates { delay_cycles: None, ..m.at.clone() } == *at;
    let Estimate { value, ci95_low, ci95_high, .. } = Some(latency).filter(|m| alike(m) && m.metric == Metric::Latency)?.estimate;
    let (ns, half) = (value?, (ci95_high? - ci95_low?) / 2.0);
    let delay = latency.at.delay_cycles;
    let loads = report.results.iter().filter(alike).find(|m| m.metric == Metric::Bandwidth && m.at.delay_cycles == delay)?;
    // That of the chase is not of others.
    let own = report.machine.topology.line().0 as f64 / ns;
    let gbs = (loads.estimate.value? - own).max(0.0);
    let error = (half / NORMAL_95 / ns).max(LEAST_ERROR);
    (ns > 0.0 && [ns, gbs, error].iter().all(|v| v.is_finite())).then(|| Latency { gbs, log: ns.ln(), error })
}

/// More load is not less latency: neighbours that contradict it are averaged, each with the weight that its interval gives it (isotonic regression, by
/// pooling adjacent violators).
fn rising(mut points: Vec<Latency>) -> Vec<OthersPoint> {
    points.sort_by(|a, b| a.gbs.total_cmp(&b.gbs));
    // Logarithm, weight, number of points.
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for point in &points {
        let mut pool = (point.log, point.error.powi(-2), 1);
        while let Some(before) = pools.pop_if(|before| before.0 >= pool.0) {
            let weight = before.1 + pool.1;
            pool = ((before.0 * before.1 + pool.0 * pool.1) / weight, weight, before.2 + pool.2);
        }
        pools.push(pool);
    }
    let (idle, idle_weight) = pools.first().map_or((0.0, f64::INFINITY), |pool| (pool.0, pool.1));
    // A ratio has the errors of both latencies.
    let fitted = pools.into_iter().enumerate().flat_map(|(i, (log, weight, n))| {
        let variance = 1.0 / weight + if i > 0 { 1.0 / idle_weight } else { 0.0 };
        std::iter::repeat_n((log, variance.sqrt()), n)
    });
    points.iter().zip(fitted).map(|(p, (log, error))| OthersPoint { gbs: p.gbs, ratio: (log - idle).exp(), error }).collect()
}

/// Reads a latency of `ratio` times that of the quietest state as bandwidth. Both together have this relative standard error.
pub fn estimate(scale: &OthersScale, ratio: f64, error: f64) -> OthersBandwidth {
    let reach = NORMAL_95 * error;
    let low_gbs = least(&line(scale, NORMAL_95), ratio / reach.exp()).unwrap_or(scale.peak_gbs);
    let high_gbs = most(&line(scale, -NORMAL_95), ratio * reach.exp());
    let gbs = least(&line(scale, 0.0), ratio).unwrap_or(scale.peak_gbs);
    OthersBandwidth { gbs: gbs.clamp(low_gbs, high_gbs.unwrap_or(scale.peak_gbs).max(low_gbs)), low_gbs, high_gbs }
}

/// The least bandwidth that latency with this relative standard error shows; `None` if that is more than the curve has.
pub fn detection_gbs(scale: &OthersScale, error: f64) -> Option<f64> {
    least(&line(scale, -NORMAL_95), (DETECTED * error).exp())
}

/// Bandwidth and ratio from no load on, so many standard errors above the curve.
fn line(scale: &OthersScale, errors: f64) -> Vec<(f64, f64)> {
    let mut highest: f64 = 1.0;
    let point = |p: &OthersPoint| {
        highest = highest.max(p.ratio * (errors * p.error).exp());
        (p.gbs, highest)
    };
    std::iter::once((0.0, 1.0)).chain(scale.curve.iter().map(point)).collect()
}

/// The least bandwidth at which latency is this many times that of no load; `None` if it is lower on the whole line.
fn least(line: &[(f64, f64)], ratio: f64) -> Option<f64> {
    match line.iter().position(|p| p.1 >= ratio)? {
        0 => Some(0.0),
        above => Some(between(line, above, ratio)),
    }
}

/// The most bandwidth at which latency is no more than this many times that of no load; `None` if it is less on the whole line.
fn most(line: &[(f64, f64)], ratio: f64) -> Option<f64> {
    match line.iter().position(|p| p.1 > ratio)? {
        0 => Some(0.0),
        above => Some(between(line, above, ratio)),
    }
}

/// The bandwidth on the way to the point `above`.
fn between(line: &[(f64, f64)], above: usize, ratio: f64) -> f64 {
    let (before, after) = (line[above - 1], line[above]);
    let rise = after.1 - before.1;
    let share = if rise > 0.0 { ((ratio - before.1) / rise).clamp(0.0, 1.0) } else { 1.0 };
    before.0 + share * (after.0 - before.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> OthersScale {
        let curve = [(0.0, 1.0), (4.0, 1.0), (8.0, 1.2), (10.0, 2.0)].map(|(gbs, ratio)| OthersPoint { gbs, ratio, error: 0.0 });
        OthersScale { peak_gbs: 10.0, curve: curve.to_vec(), ..OthersScale::default() }
    }

    #[test]
    fn latency_is_read_as_bandwidth_and_a_flat_part_says_anything_on_it() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let exact = |ratio| estimate(&sample(), ratio, 0.0);
        let at = exact(1.1);
        assert!(near(at.gbs, 6.0) && near(at.low_gbs, 6.0) && at.high_gbs.is_some_and(|high| near(high, 6.0)), "{at:?}");
        let idle = exact(1.0);
        assert!(near(idle.low_gbs, 0.0) && idle.high_gbs.is_some_and(|high| near(high, 4.0)), "as much as the flat part: {idle:?}");
        let beyond = exact(2.5);
        assert!(near(beyond.gbs, 10.0) && beyond.high_gbs.is_none(), "{beyond:?}");
        let faster = exact(0.9);
        assert!(near(faster.gbs, 0.0) && near(faster.low_gbs, 0.0), "{faster:?}");
    }

    #[test]
    fn scatter_widens_the_interval_and_raises_what_is_detected() {
        let (fine, coarse) = (estimate(&sample(), 1.2, 0.005), estimate(&sample(), 1.2, 0.05));
        assert!(coarse.low_gbs < fine.low_gbs && coarse.high_gbs > fine.high_gbs, "{fine:?} {coarse:?}");
        assert!(detection_gbs(&sample(), 0.01).unwrap() < detection_gbs(&sample(), 0.05).unwrap());
        assert_eq!(detection_gbs(&sample(), 0.5), None, "even the highest load is not seen");
    }

    #[test]
    fn points_that_fall_by_chance_are_averaged_by_their_weight() {
        let points = [(0.5, 100.0, 0.01), (4.0, 90.0, 0.02), (8.0, 120.0, 0.01), (12.0, 119.0, 0.01), (16.0, 200.0, 0.01)];
        let fitted = rising(points.map(|(gbs, ns, error)| Latency { gbs, log: f64::ln(ns), error }).to_vec());
        let ratios: Vec<f64> = fitted.iter().map(|p| p.ratio).collect();
        assert!(ratios[0] == 1.0 && ratios[1] == 1.0, "{ratios:?}");
        // The first two are 97.9 ns together: the second counts a quarter.
        assert!(
            (ratios[2] - 119.5 / 97.9).abs() < 0.001 && ratios[2] == ratios[3] && (ratios[4] - 200.0 / 97.9).abs() < 0.001,
            "{ratios:?}"
        );
        // Those of two points together, of the third alone, and of the first pool in both.
        let expected = [0.00894, 0.00894, 0.01140, 0.01140, 0.01342];
        assert!(fitted.iter().zip(expected).all(|(p, expected)| (p.error - expected).abs() < 1e-5), "{fitted:?}");
    }

    #[test]
    fn a_curve_that_is_not_known_well_widens_the_interval() {
        let mut vague = sample();
        vague.curve.iter_mut().for_each(|p| p.error = 0.05);
        let (known, vague) = (estimate(&sample(), 1.2, 0.01), estimate(&vague, 1.2, 0.01));
        assert!(vague.low_gbs < known.low_gbs && vague.high_gbs > known.high_gbs, "{known:?} {vague:?}");
    }
}
