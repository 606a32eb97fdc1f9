//! The summary of a loaded-latency curve: its ends, its peak, its knee.

use crate::experiment::Coordinates;
use crate::result::{CurvePoint, CurveSummary};

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
pub fn summarise(at: Coordinates, points: &[CurvePoint]) -> CurveSummary {
    summarise_within(at, points, |_| None)
}

/// The same, with the 95 % intervals of the bandwidths. A curve is over-saturated only if the interval of the peak and that of the point
/// that fell below it do not overlap.
pub fn summarise_within(at: Coordinates, points: &[CurvePoint], interval: impl Fn(u32) -> Option<(f64, f64)>) -> CurveSummary {
    let ends = |p: &CurvePoint| interval(p.delay_cycles).unwrap_or((p.bandwidth_gbs, p.bandwidth_gbs));
    let mut by_load: Vec<CurvePoint> = points.iter().copied().filter(CurvePoint::is_sane).collect();
    by_load.sort_by_key(|p| std::cmp::Reverse(p.delay_cycles));
    let peak = by_load.iter().copied().max_by(|a, b| a.bandwidth_gbs.total_cmp(&b.bandwidth_gbs));
    CurveSummary {
        at,
        unloaded_ns: by_load.first().map(|p| p.latency_ns),
        knee: knee(&by_load),
        saturated_ns: by_load.last().map(|p| p.latency_ns),
        peak_gbs: peak.map(|p| p.bandwidth_gbs),
        shares: Vec::new(),
        over_saturated: peak.is_some_and(|peak| {
            by_load.iter().any(|p| {
                p.delay_cycles < peak.delay_cycles
                    && p.bandwidth_gbs < (1.0 - FALL) * peak.bandwidth_gbs
                    && ends(p).1 < ends(&peak).0
                    && p.latency_ns > peak.latency_ns
            })
        }),
    }
}

/// The knee of points in order of ascending load.
fn knee(by_load: &[CurvePoint]) -> Option<CurvePoint> {
    let [first, inner @ .., _] = by_load else { return None };
    let largest = |f: fn(&CurvePoint) -> f64| by_load.iter().map(f).fold(f64::MIN, f64::max);
    let (bandwidth, latency) = (largest(|p| p.bandwidth_gbs), largest(|p| p.latency_ns));
    if latency < SATURATED_GROWTH * first.latency_ns || bandwidth <= first.bandwidth_gbs {
        return None;
    }
    // Latencies below the unloaded one are noise. They do not make a point a better knee.
    let below_line = |p: &CurvePoint| {
        let x = (p.bandwidth_gbs - first.bandwidth_gbs) / (bandwidth - first.bandwidth_gbs);
        let y = (p.latency_ns - first.latency_ns).max(0.0) / (latency - first.latency_ns);
        x - y
    };
    inner.iter().copied().max_by(|a, b| below_line(a).total_cmp(&below_line(b))).filter(|p| below_line(p) >= KNEE_DISTANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclusions::curve::delays::{IDLE_DELAY_CYCLES, next_delay};
    use proptest::prelude::*;

    /// The delays of the classic list, smallest load last.
    const DELAYS: [u32; 19] = [0, 2, 8, 15, 50, 100, 200, 300, 400, 500, 700, 1000, 1300, 1700, 2500, 3500, 5000, 9000, 20000];

    fn point((delay_cycles, bandwidth_gbs, latency_ns): (u32, f64, f64)) -> CurvePoint {
        CurvePoint { delay_cycles, bandwidth_gbs, latency_ns }
    }

    fn summary(points: &[(u32, f64, f64)]) -> CurveSummary {
        summarise(Coordinates::default(), &points.iter().copied().map(point).collect::<Vec<_>>())
    }

    /// A server with 16 channels as a model: M/D/1 queueing towards 460 GB/s, 110 ns unloaded.
    fn queue(bandwidth: f64) -> f64 {
        let load = bandwidth / 470.0;
        110.0 + 1.6 * load / (1.0 - load)
    }

    #[test]
    fn a_server_has_its_knee_where_queues_begin_to_grow() {
        let points: Vec<_> = DELAYS
            .iter()
            .map(|&delay| {
                let bandwidth = (460.0f64).min(96.0 * 4.0 * 64.0 * 2.6 / (110.0 + f64::from(delay)));
                (delay, bandwidth, queue(bandwidth))
            })
            .collect();
        let s = summary(&points);
        let knee = s.knee.unwrap();
        assert!(knee.bandwidth_gbs > 0.7 * 460.0 && knee.bandwidth_gbs < 0.97 * 460.0, "{knee:?}");
        assert!(knee.latency_ns < 1.3 * 110.0, "{knee:?}");
        assert_eq!((s.unloaded_ns, s.saturated_ns, s.peak_gbs), (Some(points[18].2), Some(points[0].2), Some(460.0)));
        assert!(!s.over_saturated);
    }

    #[test]
    fn a_typical_table_has_the_knee_that_people_see() {
        // The shape of a two-channel desktop under reads.
        let s = summary(&[
            (0, 33.7, 260.0),
            (8, 33.6, 251.0),
            (50, 33.4, 230.0),
            (100, 31.9, 168.0),
            (200, 26.8, 112.0),
            (300, 20.9, 100.0),
            (500, 13.6, 94.0),
            (1000, 7.5, 91.0),
            (20000, 1.2, 89.0),
        ]);
        assert_eq!(s.knee.unwrap().delay_cycles, 200);
    }

    #[test]
    fn noise_does_not_move_the_knee_far() {
        for sign in [-1.0, 1.0] {
            let noisy: Vec<_> = DELAYS
                .iter()
                .enumerate()
                .map(|(i, &delay)| {
                    let bandwidth = (460.0f64).min(96.0 * 4.0 * 64.0 * 2.6 / (110.0 + f64::from(delay)));
                    let wobble = 1.0 + if i % 2 == 0 { 0.02 * sign } else { -0.02 * sign };
                    (delay, bandwidth * wobble, queue(bandwidth) * wobble)
                })
                .collect();
            let knee = summary(&noisy).knee.unwrap();
            assert!(knee.bandwidth_gbs > 0.7 * 460.0 && knee.latency_ns < 1.35 * 110.0, "{knee:?}");
        }
    }

    #[test]
    fn what_does_not_saturate_has_no_knee() {
        assert_eq!(summary(&[(0, 12.0, 104.0), (100, 9.0, 103.0), (500, 4.0, 99.0), (20000, 0.5, 98.0)]).knee, None, "flat");
        assert_eq!(summary(&[(0, 40.0, 200.0), (100, 30.0, 175.0), (300, 20.0, 150.0), (20000, 1.0, 100.0)]).knee, None, "straight");
        assert_eq!(summary(&[(0, 40.0, 300.0), (20000, 1.0, 100.0)]).knee, None, "two points");
        assert_eq!(summary(&[(0, 40.0, 300.0)]).knee, None, "one point");
    }

    #[test]
    fn nothing_measured_says_nothing() {
        for s in [summary(&[]), summary(&[(0, f64::NAN, 100.0), (5, 3.0, f64::INFINITY), (7, 0.0, 0.0)])] {
            let all = (s.unloaded_ns, s.knee, s.saturated_ns, s.peak_gbs, s.over_saturated);
            assert_eq!(all, (None, None, None, None, false));
        }
    }

    #[test]
    fn a_curve_that_bends_back_is_over_saturated() {
        let wave =
            [(0, 300.0, 420.0), (20, 330.0, 380.0), (60, 350.0, 260.0), (150, 320.0, 150.0), (400, 200.0, 120.0), (20000, 9.0, 110.0)];
        let s = summary(&wave);
        assert!(s.over_saturated);
        assert_eq!((s.peak_gbs, s.saturated_ns), (Some(350.0), Some(420.0)));
        assert_eq!(s.knee.unwrap().delay_cycles, 150);
        let noise = [(0, 345.0, 260.0), (60, 350.0, 259.0), (150, 320.0, 150.0), (20000, 9.0, 110.0)];
        assert!(!summary(&noise).over_saturated, "1.4 % less than the peak");
        let points = wave.map(point);
        let unsure = |half: f64| {
            summarise_within(Coordinates::default(), &points, |delay| {
                let p = points.iter().find(|p| p.delay_cycles == delay)?;
                Some((p.bandwidth_gbs - half, p.bandwidth_gbs + half))
            })
        };
        assert!(unsure(20.0).over_saturated && !unsure(30.0).over_saturated, "50 GB/s are no fall where both may be off by 30");
        let faster = [(0, 300.0, 200.0), (60, 350.0, 259.0), (20000, 9.0, 110.0)];
        assert!(!summary(&faster).over_saturated, "latency fell too");
    }

    #[test]
    fn the_ends_come_first() {
        assert_eq!(next_delay(&[], 9, 0.08), Some(0));
        assert_eq!(next_delay(&[point((0, 30.0, 200.0))], 9, 0.08), Some(IDLE_DELAY_CYCLES));
        let ends = [point((0, 30.0, 200.0)), point((IDLE_DELAY_CYCLES, 0.5, 90.0))];
        assert!(next_delay(&ends, 9, 0.08).is_some());
        assert_eq!(next_delay(&ends, 2, 0.08), None);
    }

    proptest! {
        #[test]
        fn points_spread_evenly_on_any_machine(
            cap in 5.0..800.0, ratio in 0.2..8.0, own in 20.0..2000.0, fall in 0.0..0.3, noise in 0.0..0.02, limit in 0.05..0.2,
        ) {
            // Loaders demand `ratio` times the cap without delay; past the cap, bandwidth falls by up to `fall`.
            let machine = |delay: u32| -> f64 {
                let wobble = 1.0 + noise * f64::from(delay.wrapping_mul(2_654_435_761) >> 16) / 65536.0;
                let demand: f64 = cap * ratio * own / (own + f64::from(delay));
                let over = f64::clamp(demand / cap - 1.0, 0.0, 1.0);
                demand.min(cap * (1.0 - fall * over)) * wobble
            };
            let mut points: Vec<CurvePoint> = Vec::new();
            while let Some(delay) = next_delay(&points, 100, limit) {
                prop_assert!(points.iter().all(|p| p.delay_cycles != delay), "{} twice", delay);
                points.push(point((delay, machine(delay), 100.0)));
            }
            prop_assert!(points.len() < 100, "does not end");
            // Twice the points that a perfect spread takes, the way down from an over-saturated start included, and the two ends.
            prop_assert!(points.len() as f64 <= 2.0 * (1.0 + fall + noise) / limit + 4.0, "{} points for {}", points.len(), limit);
            points.sort_by_key(|p| p.delay_cycles);
            let peak = points.iter().map(|p| p.bandwidth_gbs).fold(0.0, f64::max);
            for pair in points.windows(2) {
                let adjacent = pair[1].delay_cycles == pair[0].delay_cycles + 1;
                prop_assert!(adjacent || (pair[0].bandwidth_gbs - pair[1].bandwidth_gbs).abs() <= limit * peak);
            }
        }

        #[test]
        fn any_points_end(values in prop::collection::vec((0u32..50, prop::num::f64::ANY), 0..12), limit in prop::num::f64::ANY) {
            let mut points: Vec<CurvePoint> = values.into_iter().map(|(d, b)| point((d, b, b))).collect();
            for i in 0.. {
                let Some(delay) = next_delay(&points, 40, limit) else { break };
                prop_assert!(i < 40 && points.iter().all(|p| p.delay_cycles != delay));
                points.push(point((delay, f64::from(delay % 7), 1.0)));
            }
        }
    }
}
