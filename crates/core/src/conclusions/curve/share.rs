//! The latency at a share of the peak: which delay to measure next, and which point to report.

use crate::conclusions::curve::delays::IDLE_DELAY_CYCLES;
use crate::estimate::Estimate;
use crate::result::{CurvePoint, CurveShare, ShareMissed};

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
    let (side, peak) = lighter_than_peak(points)?;
    let goal = peak * f64::from(percent) / 100.0;
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

/// The point closest to `percent` of the peak in bandwidth. `estimates` gives latency and bandwidth by delay.
pub fn at_share(points: &[CurvePoint], percent: u32, estimates: impl Fn(u32) -> Option<(Estimate, Estimate)>) -> CurveShare {
    let found = lighter_than_peak(points).and_then(|(side, peak)| {
        let goal = peak * f64::from(percent) / 100.0;
        let off = |p: &CurvePoint| (p.bandwidth_gbs - goal).abs();
        let point = side.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)))?;
        Some((point, peak))
    });
    let Some((point, peak)) = found else {
        return CurveShare { percent, missed: Some(ShareMissed::NothingMeasured), ..CurveShare::default() };
    };
    let reached = point.bandwidth_gbs / peak;
    let missed = (reached - f64::from(percent) / 100.0).abs() > CLOSE;
    let too_much = reached > f64::from(percent) / 100.0;
    let missed = missed.then_some(if too_much { ShareMissed::NoLessBandwidth } else { ShareMissed::NotCloser });
    let (latency, bandwidth) = estimates(point.delay_cycles).unwrap_or_default();
    CurveShare { percent, reached: Some(reached), delay_cycles: Some(point.delay_cycles), latency, bandwidth, missed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn measured(machine: &impl Fn(u32) -> (f64, f64), delay: u32) -> CurvePoint {
        let (bandwidth_gbs, latency_ns) = machine(delay);
        CurvePoint { delay_cycles: delay, bandwidth_gbs, latency_ns }
    }

    /// What a search finds, and in how many points.
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
        (at_share(&points, percent, estimates), tried)
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
        let nothing = at_share(&[], 50, |_| None);
        assert_eq!((nothing.reached, nothing.latency.value), (None, None));
        assert!(nothing.missed.is_some());
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
}
