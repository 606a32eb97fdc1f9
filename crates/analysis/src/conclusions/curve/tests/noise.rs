//! Knees are found in true curves, and not in noise.

use memgauge_model::stats;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::conclusions::curve::*;

const DELAYS: [u32; 10] = [0, 50, 100, 200, 300, 500, 700, 1300, 5000, IDLE_DELAY_CYCLES];
/// Bursts of a point and windows of a burst, as in a run.
const SAMPLES: [usize; 2] = [6, 12];

/// The shift of bursts and windows by noise, as standard deviations of logarithms, and the number of bursts in a hundred whose latency another
/// program makes several times as high.
#[derive(Clone, Copy)]
struct Noise {
    burst: f64,
    window: f64,
    disturbed: u64,
}

struct Random(Xoshiro256PlusPlus);

impl Random {
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
    /// The estimate from a measurement of `value`.
    fn measure(&mut self, value: f64, noise: Noise) -> Estimate {
        let groups: Vec<Vec<f64>> = (0..SAMPLES[0])
            .map(|_| {
                let disturbed = if self.0.next_u64() % 100 < noise.disturbed { 1.0 + 3.0 * self.uniform() } else { 1.0 };
                let level = value * disturbed * (noise.burst * self.normal()).exp();
                (0..SAMPLES[1]).map(|_| level * (noise.window * self.normal()).exp()).collect()
            })
            .collect();
        let (low, high) = stats::interval(&groups).unwrap().hull();
        Estimate { value: stats::median(&groups.concat()), ci95_low: Some(low), ci95_high: Some(high), ..Estimate::default() }
    }
}

/// Curves of a machine (bandwidth and latency by delay) in how many of a hundred there is a knee.
fn knees(machine: fn(u32) -> (f64, f64), noise: Noise, curves: u64) -> f64 {
    let found = (0..curves).filter(|seed| {
        let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(*seed));
        let estimates = DELAYS.map(|delay| {
            let (bandwidth, latency) = machine(delay);
            let calm = Noise { disturbed: 0, ..noise };
            (delay, (random.measure(latency, noise), random.measure(bandwidth, calm)))
        });
        let points = estimates.clone().map(|(delay_cycles, (latency, bandwidth))| CurvePoint {
            delay_cycles,
            bandwidth_gbs: bandwidth.value.unwrap(),
            latency_ns: latency.value.unwrap(),
        });
        let by_delay = |delay| estimates.iter().find(|e| e.0 == delay).map(|e| e.1.clone());
        summarise(Coordinates::default(), &points, by_delay, |_| true).knee.is_some()
    });
    100.0 * found.count() as f64 / curves as f64
}

const QUIET: Noise = Noise { burst: 0.005, window: 0.01, disturbed: 0 };
const BUSY: Noise = Noise { burst: 0.05, window: 0.3, disturbed: 20 };
const VERY_BUSY: Noise = Noise { burst: 0.3, window: 0.6, disturbed: 50 };

#[test]
fn noise_has_no_knee() {
    // A machine whose latency does not depend on the load, and one on which nothing does.
    let flat_latency = |delay: u32| (12_000.0 / (150.0 + f64::from(delay)), 150.0);
    type Machine = fn(u32) -> (f64, f64);
    let machines: [(Machine, u64); 2] = [(flat_latency, 1000), (|_| (30.0, 150.0), 300)];
    for (machine, curves) in machines {
        for noise in [QUIET, BUSY, VERY_BUSY] {
            let share = knees(machine, noise, curves);
            println!("{} disturbed: {share} % have a knee", noise.disturbed);
            assert!(share <= 1.0, "{share} %");
        }
    }
}

#[test]
fn true_knees_are_found_through_noise() {
    let desktop = |delay: u32| {
        let demand = 40.0f64.min(12_000.0 / (150.0 + f64::from(delay)));
        (demand, 90.0 + 12.0 * demand / (44.0 - demand))
    };
    for noise in [QUIET, Noise { burst: 0.03, window: 0.1, disturbed: 0 }] {
        let share = knees(desktop, noise, 300);
        assert!(share >= 99.0, "{share} %");
    }
}
