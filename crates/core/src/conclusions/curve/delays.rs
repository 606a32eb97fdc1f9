//! Chooses the next point of an adaptive curve.

use crate::result::CurvePoint;

/// The largest injection delay that an adaptive curve uses. It is so long that loads of the probe hardly ever meet other traffic.
pub const IDLE_DELAY_CYCLES: u32 = 20_000;

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
