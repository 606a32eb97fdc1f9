use crate::conclusions::curve::*;
use proptest::prelude::*;

fn measured(machine: &impl Fn(u32) -> (f64, f64), delay: u32) -> CurvePoint {
    let (bandwidth_gbs, latency_ns) = machine(delay);
    CurvePoint { delay_cycles: delay, bandwidth_gbs, latency_ns }
}

/// The share that a search finds, and the number of points that it tried.
fn search(machine: impl Fn(u32) -> (f64, f64), start: &[u32], percent: u32) -> (CurveShare, u32) {
    let mut points: Vec<CurvePoint> = start.iter().map(|d| measured(&machine, *d)).collect();
    let mut tried = 0;
    while let Some(delay) = next_for_share(&points, percent, tried) {
        assert!(points.iter().all(|p| p.delay_cycles != delay), "{delay} twice");
        points.push(measured(&machine, delay));
        tried += 1;
    }
    let estimates = |delay: u32| {
        let p = measured(&machine, delay);
        let estimate = |value| Estimate { value: Some(value), ..Estimate::default() };
        Some((estimate(p.latency_ns), estimate(p.bandwidth_gbs)))
    };
    (at_share(&points, percent, estimates, |_| true), tried)
}

/// A desktop: demand c / (t + delay), capped.
fn desktop(delay: u32) -> (f64, f64) {
    let demand = 40.0f64.min(12_000.0 / (150.0 + f64::from(delay)));
    (demand, 90.0 + 4.0 * demand / (44.0 - demand))
}

#[test]
fn shares_are_found_from_the_two_ends() {
    for percent in [50, 75, 90] {
        let (share, tried) = search(desktop, &[0, IDLE_DELAY_CYCLES], percent);
        assert!((share.reached.unwrap() - f64::from(percent) / 100.0).abs() <= CLOSE, "{share:?}");
        assert!(tried <= MAX_TRIES && share.missed.is_none());
        assert_eq!(share.latency.value, share.delay_cycles.map(|d| desktop(d).1));
    }
    // A point that is close needs no other.
    assert_eq!(search(desktop, &[0, 450, IDLE_DELAY_CYCLES], 50).1, 0);
}

#[test]
fn of_an_over_saturated_curve_the_lighter_side_answers() {
    // The wave: bandwidth falls towards delay 0, where latency is twice that of the peak.
    let wave = |delay: u32| {
        let d = f64::from(delay);
        if delay < 100 { (300.0 + 0.5 * d, 420.0 - 1.6 * d) } else { (350.0 * 250.0 / (150.0 + d), 110.0 + 15_000.0 / d) }
    };
    let (share, _) = search(wave, &[0, 60, 100, 400, IDLE_DELAY_CYCLES], 90);
    assert!(share.delay_cycles.unwrap() > 100 && (share.reached.unwrap() - 0.9).abs() <= CLOSE, "{share:?}");
}

#[test]
fn what_cannot_be_reached_says_why() {
    // One loader, and a chase that has a third of the peak by itself.
    let (share, tried) = search(|delay| (3.0 + 6.0 * 100.0 / (100.0 + f64::from(delay)), 90.0), &[0, IDLE_DELAY_CYCLES], 10);
    assert!(tried <= MAX_TRIES && (0.3..0.4).contains(&share.reached.unwrap()), "{share:?}");
    assert!(share.missed == Some(ShareMissed::NoLessBandwidth));
    // Loads that are all or nothing.
    let (share, tried) = search(|delay| (if delay < 777 { 40.0 } else { 4.0 }, 90.0), &[0, IDLE_DELAY_CYCLES], 50);
    assert!(tried == MAX_TRIES && share.missed.is_some(), "{share:?}");
    let nothing = at_share(&[], 50, |_| None, |_| true);
    assert_eq!((nothing.reached, nothing.latency.value), (None, None));
    assert_eq!(nothing.missed, Some(ShareMissed::NothingMeasured));
    let point = CurvePoint { delay_cycles: 0, bandwidth_gbs: 40.0, latency_ns: 90.0 };
    let unknown = at_share(&[point], 50, |_| None, |_| false);
    assert_eq!((unknown.reached, unknown.missed), (None, Some(ShareMissed::NothingReliable)));
}

proptest! {
    #[test]
    fn any_smooth_machine_gives_its_shares(cap in 5.0..800.0, ratio in 1.0..8.0, own in 20.0..2000.0, percent in 20u32..=95) {
        let machine = |delay: u32| (f64::min(cap, cap * ratio * own / (own + f64::from(delay))), 100.0);
        let (share, _) = search(machine, &[0, IDLE_DELAY_CYCLES], percent);
        // Two fixed ends and seven tries: bandwidths this steep are still within a twentieth.
        prop_assert!((share.reached.unwrap() - f64::from(percent) / 100.0).abs() < 0.05, "{:?}", share);
    }

    #[test]
    fn any_points_end(values in prop::collection::vec((0u32..5000, prop::num::f64::ANY), 0..12), percent in 1u32..100) {
        let mut points: Vec<CurvePoint> =
            values.into_iter().map(|(d, b)| CurvePoint { delay_cycles: d, bandwidth_gbs: b, latency_ns: b }).collect();
        for tried in 0.. {
            let Some(delay) = next_for_share(&points, percent, tried) else { break };
            prop_assert!(tried < MAX_TRIES && delay <= MAX_DELAY_CYCLES);
            points.push(CurvePoint { delay_cycles: delay, bandwidth_gbs: f64::from(delay % 97), latency_ns: 1.0 });
        }
    }
}
