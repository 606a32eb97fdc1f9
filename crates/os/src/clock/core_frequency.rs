//! The frequency of the core that the caller runs on.

use std::time::{Duration, Instant};

use super::calibrated::Clock;

/// The frequency in GHz of the core that this runs on, measured in 0.3 ms with chains of dependent additions. Each addition takes one core
/// cycle.
///
/// The result is the median of the faster half of several short chains. An interruption can only make a chain slower, so the faster half is
/// undisturbed, and its median does not depend on a single reading of the clock.
pub fn core_ghz(clock: &Clock) -> f64 {
    // At least 30 µs, so that the cost of the clock does not matter, and 2000 of its steps, so that its resolution does not matter.
    let target_ns = 30_000_f64.max(2000.0 * clock.resolution_ns.min(1000.0));
    let first = chain(clock, 10_000);
    let adds = (target_ns * first) as u64;
    faster_half((0..9).map(|_| chain(clock, adds.max(10_000))).collect())
}

/// Keeps this core busy until its frequency is stable, or for `max`, and returns the last frequency in GHz.
///
/// The frequency is stable when it stays within 1 % over three windows of 20 ms. A window is longer than the step of any frequency governor.
/// Debug builds have shorter windows: they are for tests, which start them a thousand times, and never for numbers.
pub fn warm_up(clock: &Clock, max: Duration) -> f64 {
    const WINDOW: Duration = Duration::from_millis(if cfg!(debug_assertions) { 4 } else { 20 });
    let start = Instant::now();
    let mut windows: Vec<f64> = Vec::new();
    loop {
        let window = Instant::now();
        let mut chains = Vec::new();
        while window.elapsed() < WINDOW && start.elapsed() < max {
            chains.push(chain(clock, 100_000));
        }
        if chains.is_empty() {
            return windows.last().copied().unwrap_or_else(|| core_ghz(clock));
        }
        windows.push(faster_half(chains));
        if let [.., a, b, c] = windows[..] {
            let (low, high) = (a.min(b).min(c), a.max(b).max(c));
            if high <= low * 1.01 {
                return c;
            }
        }
    }
}

/// Runs one chain, and returns its additions per nanosecond.
fn chain(clock: &Clock, adds: u64) -> f64 {
    let start = clock.stamp();
    memgauge_kernels::dependent_adds(adds);
    let ns = clock.ns(clock.stamp().saturating_sub(start));
    adds as f64 / ns.max(1.0)
}

/// The median of the faster half.
fn faster_half(mut ghz: Vec<f64>) -> f64 {
    ghz.sort_by(|a, b| b.total_cmp(a));
    let half = ghz.len().div_ceil(2);
    (ghz[(half - 1) / 2] + ghz[half / 2]) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise;
    use std::path::Path;

    #[test]
    fn the_faster_half_is_what_counts() {
        assert_eq!(faster_half(vec![3.0, 1.0, 2.9, 0.5, 3.1]), 3.0);
        assert_eq!(faster_half(vec![2.0]), 2.0);
        assert_eq!(faster_half(vec![2.0, 1.0]), 2.0);
    }

    #[test]
    fn a_core_has_a_plausible_frequency_and_warms_up_in_time() {
        let clock = Clock::calibrate(Path::new("/"));
        let ghz = core_ghz(&clock);
        assert!(ghz > 0.05 && ghz < 10.0, "{ghz}");
        // By the time of this thread: a busy machine may not let it run.
        let cpu_ns = || noise::thread_cpu_ns().unwrap_or_default();
        let start = cpu_ns();
        let warm = warm_up(&clock, Duration::from_millis(100));
        assert!(cpu_ns() - start < 2_000_000_000);
        assert!(warm > 0.05 && warm < 10.0, "{warm}");
        assert!(warm_up(&clock, Duration::ZERO) > 0.05);
    }
}
