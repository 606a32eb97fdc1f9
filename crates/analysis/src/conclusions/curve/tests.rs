use super::*;
use proptest::prelude::*;

mod noise;
mod share;

/// The delays of the classic list, smallest load last.
const DELAYS: [u32; 19] = [0, 2, 8, 15, 50, 100, 200, 300, 400, 500, 700, 1000, 1300, 1700, 2500, 3500, 5000, 9000, 20000];

fn point((delay_cycles, bandwidth_gbs, latency_ns): (u32, f64, f64)) -> CurvePoint {
    CurvePoint { delay_cycles, bandwidth_gbs, latency_ns }
}

fn summary(points: &[(u32, f64, f64)]) -> CurveSummary {
    within(points, 0.005, 0.005)
}

/// The summary where the intervals reach these shares of the values to both sides.
fn within(points: &[(u32, f64, f64)], of_latency: f64, of_bandwidth: f64) -> CurveSummary {
    let points: Vec<CurvePoint> = points.iter().copied().map(point).collect();
    let estimate =
        |v: f64, part: f64| Estimate { ci95_low: Some(v * (1.0 - part)), ci95_high: Some(v * (1.0 + part)), ..Estimate::default() };
    let estimates = |delay| {
        let p = points.iter().find(|p| p.delay_cycles == delay)?;
        Some((estimate(p.latency_ns, of_latency), estimate(p.bandwidth_gbs, of_bandwidth)))
    };
    summarise(Coordinates::default(), &points, estimates, |_| true)
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
fn a_single_point_is_one_end() {
    let ends = |s: CurveSummary| (s.unloaded_ns, s.saturated_ns, s.peak_gbs);
    assert_eq!(ends(summary(&[(0, 40.0, 300.0)])), (None, Some(300.0), Some(40.0)));
    assert_eq!(ends(summary(&[(IDLE_DELAY_CYCLES, 1.0, 90.0)])), (Some(90.0), None, Some(1.0)));
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
    let wave = [(0, 300.0, 420.0), (20, 330.0, 380.0), (60, 350.0, 260.0), (150, 320.0, 150.0), (400, 200.0, 120.0), (20000, 9.0, 110.0)];
    let s = summary(&wave);
    assert!(s.over_saturated);
    assert_eq!((s.peak_gbs, s.saturated_ns), (Some(350.0), Some(420.0)));
    assert_eq!(s.knee.unwrap().delay_cycles, 150);
    let noise = [(0, 345.0, 260.0), (60, 350.0, 259.0), (150, 320.0, 150.0), (20000, 9.0, 110.0)];
    assert!(!summary(&noise).over_saturated, "1.4 % less than the peak");
    // 6 and 9 % of 300 and 350 GB/s.
    assert!(
        within(&wave, 0.005, 0.06).over_saturated && !within(&wave, 0.005, 0.09).over_saturated,
        "no fall where both may be off as much"
    );
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
