//! Statistics against brute force and against simulated machines whose truth is known.
#![allow(clippy::unwrap_used, reason = "a panic is a test's report, in its helpers too")]

use std::f64::consts::TAU;

use memgauge_model::stats::{estimate, interval, mad, median, median_interval, modes, quantile, sorted};
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

struct Random(Xoshiro256PlusPlus);

impl Random {
    fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }
    fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }
}

/// How samples come about: a shift that an allocation's samples share, and each sample's own noise.
struct Model {
    name: &'static str,
    allocation: fn(&mut Random) -> f64,
    sample: fn(&mut Random) -> f64,
}

const MODELS: [Model; 9] = [
    Model { name: "allocations alike", allocation: |_| 0.0, sample: Random::normal },
    Model { name: "moderate", allocation: |r| 0.5 * r.normal(), sample: Random::normal },
    Model { name: "dominant", allocation: |r| 3.0 * r.normal(), sample: Random::normal },
    Model { name: "one-sided heavy noise", allocation: |_| 0.0, sample: heavy },
    Model { name: "one-sided allocations", allocation: |r| 2.0 * r.exponential(), sample: Random::normal },
    Model { name: "one-sided both", allocation: |r| 0.5 * r.exponential(), sample: heavy },
    // Without a mean: a few samples of a hundred are fifty times as far from the median as most.
    Model { name: "Pareto, index 1", allocation: |_| 0.0, sample: pareto },
    Model { name: "Pareto, allocations", allocation: |r| 2.0 * r.normal(), sample: pareto },
    Model {
        name: "one in five disturbed",
        allocation: |r| if r.uniform() < 0.2 { 50.0 } else { 0.5 * r.normal() },
        sample: Random::normal,
    },
];

fn pareto(r: &mut Random) -> f64 {
    1.0 / r.uniform()
}

fn heavy(r: &mut Random) -> f64 {
    0.3 * r.normal() + 0.5 * (1.5 * r.normal()).exp()
}

fn run(model: &Model, r: &mut Random, allocations: usize, samples: usize) -> Vec<Vec<f64>> {
    let mut group = || {
        let shift = 100.0 + (model.allocation)(r);
        (0..samples).map(|_| shift + (model.sample)(r)).collect()
    };
    (0..allocations).map(|_| group()).collect()
}

/// The share of runs whose interval covers the long-run median: of the rule, and of pooled order statistics alone.
fn coverage(model: &Model, allocations: usize, samples: usize) -> (f64, f64) {
    const RUNS: usize = 1200;
    let mut r = Random::new(7 + allocations as u64 * 100 + samples as u64);
    let truth = median(&run(model, &mut r, 50_000, 1).concat()).unwrap();
    let covers = |(low, high): (f64, f64)| f64::from(u8::from(low <= truth && truth <= high)) / RUNS as f64;
    let mut shares = (0.0, 0.0);
    for _ in 0..RUNS {
        let i = interval(&run(model, &mut r, allocations, samples)).unwrap();
        shares.0 += covers(i.hull());
        shares.1 += covers(i.pooled);
    }
    shares
}

#[test]
fn intervals_cover_the_long_run_median() {
    for model in &MODELS {
        for (allocations, samples) in [(3, 5), (3, 20), (5, 5), (5, 20), (6, 10), (8, 20)] {
            let (rule, pooled) = coverage(model, allocations, samples);
            println!("{:24} {allocations} x {samples:2}: {:5.1} %, pooled alone {:5.1} %", model.name, 100.0 * rule, 100.0 * pooled);
            // One-sided noise of both kinds, at eight allocations, is the worst at 90.7 %; the simulation's own error is 0.8 %.
            assert!(rule >= 0.89, "{} with {allocations} x {samples}: {rule}", model.name);
        }
    }
}

#[test]
fn one_disturbed_allocation_of_three_leaves_the_interval_true_and_near_the_data() {
    let mut r = Random::new(21);
    let (mut covered, mut below_zero) = (0, 0);
    const RUNS: usize = 1000;
    for run in 0..RUNS {
        let group = |r: &mut Random, level: f64| (0..5).map(|_| level * (1.0 + 0.01 * r.normal())).collect::<Vec<f64>>();
        let mut groups: Vec<_> = (0..3).map(|_| group(&mut r, 100.0)).collect();
        let slow = 100.0 * (1.5 + r.exponential());
        groups[run % 3] = group(&mut r, slow);
        let samples = sorted(&groups.concat());
        let i = interval(&groups).unwrap();
        let (low, high) = i.hull();
        covered += usize::from(low <= 100.0 && 100.0 <= high);
        below_zero += usize::from(i.between.unwrap().0 < 0.0);
        assert!(samples[0] / 2.0 <= low && high <= 1e-9 + 2.0 * samples[14] - samples[0], "{low} to {high} of {samples:?}");
    }
    println!("one of three disturbed: covered {covered}, Student's interval below zero in {below_zero} of {RUNS}");
    assert!(covered * 100 >= RUNS * 89 && below_zero > RUNS / 4, "{covered} {below_zero}");
}

#[test]
fn pooling_alone_would_be_dishonest() {
    let (_, pooled) = coverage(&MODELS[2], 3, 20);
    assert!(pooled < 0.6, "{pooled}: then the union would not be needed");
}

#[test]
fn allocations_of_two_kinds_are_covered() {
    // A quarter of allocations is slow: the mean of few medians then is no middle.
    let two_kinds = Model { name: "two kinds", allocation: |r| if r.uniform() < 0.25 { 3.0 } else { 0.0 }, sample: Random::normal };
    for (allocations, samples) in [(3, 5), (3, 20), (5, 20)] {
        let (rule, pooled) = coverage(&two_kinds, allocations, samples);
        println!("{} {allocations} x {samples}: {:.1} %", two_kinds.name, 100.0 * rule);
        assert!(rule >= 0.89 && rule > pooled, "{allocations} x {samples}: {rule}, pooled {pooled}");
    }
}

#[test]
fn a_machine_that_wanders_is_covered_better_than_by_averaging() {
    // Memory whose latency wanders slowly (sd 2, half forgotten after ten allocations), measured by runs of twelve allocations in a row.
    let mut r = Random::new(3);
    let (memory, own) = (0.93f64, 2.0 * (1.0 - 0.93f64 * 0.93).sqrt());
    let (mut level, mut rule, mut averaged) = (0.0, 0, 0);
    const RUNS: usize = 400;
    for _ in 0..RUNS {
        let mut group = || {
            level = memory * level + own * r.normal();
            (0..12).map(|_| 100.0 + level + 0.3 * r.normal()).collect::<Vec<f64>>()
        };
        let groups: Vec<_> = (0..12).map(|_| group()).collect();
        let (low, high) = interval(&groups).unwrap().hull();
        rule += usize::from(low <= 100.0 && 100.0 <= high);
        let (middle, half) = ((low + high) / 2.0, (high - low) / 2.0 / 12f64.sqrt());
        averaged += usize::from((middle - 100.0).abs() <= half);
    }
    println!("wandering: {rule} of {RUNS}, {averaged} if spread were divided by the root of the number");
    // A run that is short beside the wandering cannot know all of it; the rule is honest about three times as often.
    assert!(rule * 100 > RUNS * 65 && averaged * 2 < rule, "{rule}, {averaged}");
}

#[test]
fn two_clusters_are_found() {
    let mut r = Random::new(11);
    // Levels, their noise, the first one's share, samples, and in how many of 100 sets they must be found.
    for (low, high, noise, share, n, least) in [
        (27.0, 105.0, 0.03, 0.5, 12, 100),
        (27.0, 105.0, 0.03, 0.25, 15, 100),
        (27.0, 105.0, 0.03, 0.85, 60, 100),
        (27.0, 105.0, 0.03, 0.5, 1000, 100),
        (95.0, 110.0, 0.01, 0.5, 15, 90),
        (95.0, 110.0, 0.01, 0.25, 100, 95),
        (95.0, 110.0, 0.03, 0.5, 100, 95),
        (95.0, 110.0, 0.03, 0.25, 2000, 100),
    ] {
        let mut found = 0;
        for _ in 0..100 {
            let first = (share * f64::from(n)).round();
            let level = |i: i32| if f64::from(i) < first { low } else { high };
            let samples: Vec<f64> = (0..n).map(|i| level(i) * (1.0 + noise * r.normal())).collect();
            let m = modes(&samples);
            let near = |i: usize, x: f64| (m[i].value / x - 1.0f64).abs() < 0.05;
            found += i32::from(m.len() == 2 && near(0, low) && near(1, high) && (m[0].share - share).abs() < 0.1);
        }
        println!("{low}/{high} noise {noise} share {share} n {n}: {found} %");
        assert!(found >= least, "{low}/{high} noise {noise} share {share} n {n}: {found} %");
    }
}

type Noise = fn(&mut Random) -> f64;

#[test]
fn one_cluster_is_one() {
    let shapes: [(&str, Noise); 9] = [
        ("normal 2 %", |r| 100.0 * (1.0 + 0.02 * r.normal())),
        ("normal 5 %", |r| 100.0 * (1.0 + 0.05 * r.normal())),
        ("normal 15 %", |r| 100.0 * (1.0 + 0.15 * r.normal())),
        ("log-normal 10 %", |r| 100.0 * (0.1 * r.normal()).exp()),
        ("log-normal 40 %", |r| 100.0 * (0.4 * r.normal()).exp()),
        ("exponential 10 %", |r| 100.0 * (1.0 + 0.1 * r.exponential())),
        ("exponential 50 %", |r| 100.0 * (1.0 + 0.5 * r.exponential())),
        ("Pareto, index 1.5", |r| 100.0 * (1.0 + 0.05 * r.uniform().powf(-1.0 / 1.5))),
        ("uniform 20 %", |r| 100.0 * (1.0 + 0.2 * r.uniform())),
    ];
    let mut r = Random::new(12);
    for (name, noise) in shapes {
        for n in [12, 20, 30, 60, 100, 300, 1000] {
            let trials = if n <= 100 { 1000 } else { 300 };
            let wrong = (0..trials).filter(|_| !modes(&(0..n).map(|_| noise(&mut r)).collect::<Vec<_>>()).is_empty()).count();
            println!("{name:20} n {n:4}: {:.2} %", 100.0 * wrong as f64 / f64::from(trials));
            // The uniform shape lies on the test's 1 % level by construction; the rest must stay below.
            let allowed = if name.starts_with("uniform") { 0.017 } else { 0.01 };
            assert!(wrong as f64 <= allowed * f64::from(trials), "{name}, n {n}: {wrong} of {trials}");
        }
    }
}

/// P(X <= k), X binomial (n, 1/2), by counting subsets: exact for n < 64.
fn binomial_tail(n: u64, k: u64) -> f64 {
    let choose = |i: u64| (0..i).fold(1u128, |c, j| c * u128::from(n - j) / u128::from(j + 1));
    (0..=k).map(|i| choose(i) as f64).sum::<f64>() / (1u64 << n) as f64
}

proptest! {
    #[test]
    fn median_and_mad_equal_brute_force(samples in prop::collection::vec(-1e6..1e6, 1..60)) {
        // Half of the samples lie on either side, counting ties, and no other value is nearer the middle.
        let m = median(&samples).unwrap();
        let half = samples.len().div_ceil(2);
        prop_assert!(samples.iter().filter(|x| **x <= m).count() >= half);
        prop_assert!(samples.iter().filter(|x| **x >= m).count() >= half);
        let d = mad(&samples).unwrap();
        prop_assert!(samples.iter().filter(|x| (**x - m).abs() <= d).count() >= half);
        prop_assert!(samples.iter().filter(|x| (**x - m).abs() >= d).count() >= half);
    }

    #[test]
    fn quantiles_grow_and_stay_inside(samples in prop::collection::vec(-1e6..1e6, 1..60), a in 0.0..=1.0, b in 0.0..=1.0) {
        let s = sorted(&samples);
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        let (low, high) = (quantile(&s, a).unwrap(), quantile(&s, b).unwrap());
        prop_assert!(s[0] <= low && low <= high && high <= s[s.len() - 1]);
    }

    #[test]
    fn interval_is_the_narrowest_that_covers(n in 6u64..60) {
        let ranks: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let (low, high) = median_interval(&ranks).unwrap();
        let outside = low as u64;
        prop_assert_eq!(high as u64, n - 1 - outside);
        prop_assert!(binomial_tail(n, outside) <= 0.025);
        prop_assert!(binomial_tail(n, outside + 1) > 0.025);
    }

    #[test]
    fn intervals_of_positive_samples_are_positive(groups in prop::collection::vec(prop::collection::vec(1e-3..1e5, 2..12), 3..8)) {
        let e = estimate(&groups, 0.01);
        prop_assert!(e.ci95_low > Some(0.0) && e.ci95_low <= e.value && e.value <= e.ci95_high);
        // Of few groups, and not far beyond the samples.
        let (min, max) = (e.min.unwrap(), e.max.unwrap());
        let beyond = if groups.len() < 6 { (min / 2.0, max + (max - min)) } else { (min, max) };
        prop_assert!(e.ci95_low >= Some(beyond.0) && e.ci95_high <= Some(beyond.1), "{:?}", e);
    }

    #[test]
    fn any_samples_give_a_sane_estimate(groups in prop::collection::vec(prop::collection::vec(prop::num::f64::ANY, 0..12), 0..6)) {
        let finite = sorted(&groups.concat());
        let e = estimate(&groups, 0.01);
        prop_assert_eq!(e.n as usize, finite.len());
        prop_assert_eq!(e.value.is_none(), finite.is_empty());
        prop_assert_eq!(e.ci95_low.is_some(), finite.len() >= 6);
        if let (Some(low), Some(value), Some(high)) = (e.ci95_low, e.value, e.ci95_high) {
            prop_assert!(low.is_finite() && low <= value && value <= high && high.is_finite(), "{:?}", e);
        }
        let share: f64 = e.modes.iter().map(|m| m.share).sum();
        prop_assert!(e.modes.is_empty() || (e.modes.len() > 1 && share < 1.0 + 1e-9 && e.modes.iter().all(|m| m.share >= 0.09)));
    }
}
