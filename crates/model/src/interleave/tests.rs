//! The search against simulated tiers: capacity curves with noise, compared with every ratio there is.

use super::*;
use crate::random::{GOLDEN, split_mix};
use crate::stats;

struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        let number = split_mix(self.0);
        self.0 = self.0.wrapping_add(GOLDEN);
        (number >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// Tiers by capacity in GB/s and unloaded latency in ns, and the lines that all threads together keep in flight.
#[derive(Debug, Clone)]
struct Memory {
    tiers: Vec<(f64, f64)>,
    in_flight: f64,
}

const LINE: f64 = 64.0;
/// Nanoseconds for which a tier is busy with a line.
const SERVICE: f64 = 12.0;

impl Memory {
    fn random(tiers: usize, random: &mut Random) -> Self {
        let near = (random.between(50.0, 500.0), random.between(70.0, 120.0));
        let far = |random: &mut Random| (near.0 * random.between(0.05, 1.0), near.1 * random.between(1.2, 4.0));
        let tiers: Vec<(f64, f64)> = [near].into_iter().chain((1..tiers).map(|_| far(random))).collect();
        // From a load that the near tier hardly notices to twice what all of them can serve.
        let all: f64 = tiers.iter().map(|(gbs, _)| gbs).sum();
        Self { in_flight: random.between(0.1, 2.0) * all * near.1 / LINE, tiers }
    }

    fn shares(&self, weights: &Weights) -> Vec<f64> {
        (0..self.tiers.len() as u32).map(|node| weights.share(node)).collect()
    }

    /// Mean latency when so much is moved with these weights; infinite beyond the capacity.
    fn latency(&self, shares: &[f64], gbs: f64) -> f64 {
        let each = self.tiers.iter().zip(shares).map(|((capacity, unloaded), &share)| {
            let used = share * gbs / capacity;
            let waiting = if used < 1.0 { SERVICE * used / (2.0 * (1.0 - used)) } else { f64::INFINITY };
            if share > 0.0 { share * (unloaded + waiting) } else { 0.0 }
        });
        each.sum()
    }

    /// The bandwidth at which lines in flight, latency and bandwidth agree (Little's law).
    fn bandwidth(&self, shares: &[f64]) -> f64 {
        let (mut low, mut high) = (0.0, 2.0 * self.tiers.iter().map(|(gbs, _)| gbs).sum::<f64>());
        for _ in 0..30 {
            let gbs = (low + high) / 2.0;
            if gbs * self.latency(shares, gbs) < self.in_flight * LINE { low = gbs } else { high = gbs }
        }
        low
    }

    /// What is least for the best weights.
    fn cost(&self, shares: &[f64], goal: Goal) -> f64 {
        match goal {
            Goal::LatencyAt(gbs) if self.bandwidth(shares) >= gbs => self.latency(shares, gbs),
            Goal::LatencyAt(gbs) => 1e9 * gbs / self.bandwidth(shares),
            Goal::Bandwidth => 1.0 / self.bandwidth(shares),
        }
    }

    /// Bursts that vary by 3 %, until the interval is as narrow as a cell's, or forty.
    fn measure(&self, weights: &Weights, goal: Goal, random: &mut Random) -> Trial {
        let mut reading = |value: f64| {
            // Ascending.
            let mut bursts: Vec<f64> = Vec::new();
            loop {
                let burst = value * (1.0 + 0.03 * random.normal());
                bursts.insert(bursts.partition_point(|other| *other < burst), burst);
                let interval = stats::median_interval(&bursts).filter(|(low, high)| bursts.len() == 40 || high - low < 0.02 * value);
                if let Some((low, high)) = interval {
                    return Reading { value: stats::quantile(&bursts, 0.5).unwrap(), half: (high - low) / 2.0 };
                }
            }
        };
        let shares = &self.shares(weights);
        let most = self.bandwidth(shares);
        let latency = match goal {
            Goal::Bandwidth => Some(self.latency(shares, most)),
            Goal::LatencyAt(gbs) => (most >= gbs).then(|| self.latency(shares, gbs)),
        };
        Trial { weights: weights.clone(), bandwidth_gbs: reading(most), latency_ns: latency.map(&mut reading), measured: 1 }
    }
}

/// Every ratio of `tiers` weights whose sum is at most the largest.
fn every(tiers: u32) -> Vec<Vec<f64>> {
    let mut all: Vec<Vec<u32>> = vec![vec![]];
    for _ in 0..tiers {
        all = all.into_iter().flat_map(|w| (0..=MAX_TOTAL - w.iter().sum::<u32>()).map(move |next| [&w[..], &[next]].concat())).collect();
    }
    let reduced = all.iter().filter_map(|w| Some((w, Weights::new((0..).zip(w.iter().copied()))?)));
    reduced
        .filter(|(w, weights)| weights.total() == w.iter().sum::<u32>())
        .map(|(_, w)| (0..tiers).map(|node| w.share(node)).collect())
        .collect()
}

#[derive(Debug, Default)]
struct Rates {
    searches: u32,
    best_within: u32,
    small_within: u32,
    most_measured: u32,
    measured: u32,
}

fn search(memory: &Memory, goal: Goal, random: &mut Random) -> (Search, u32) {
    let mut search = Search::new((0..memory.tiers.len() as u32).collect(), goal);
    let mut count = 0;
    let run = search.run(&[], &mut |weights| {
        count += 1;
        Ok::<_, ()>(memory.measure(weights, goal, random))
    });
    run.unwrap();
    (search, count)
}

fn rates(tiers: u32, seeds: std::ops::Range<u64>, goal: impl Fn(&Memory, &mut Random) -> Goal) -> Rates {
    let every = every(tiers);
    let mut rates = Rates::default();
    for seed in seeds {
        let mut random = Random(seed);
        let memory = Memory::random(tiers as usize, &mut random);
        let goal = goal(&memory, &mut random);
        let (search, count) = search(&memory, goal, &mut random);
        let optimum = every.iter().map(|w| memory.cost(w, goal)).fold(f64::INFINITY, f64::min);
        let loss = |trial: &Trial| memory.cost(&memory.shares(&trial.weights), goal) / optimum - 1.0;
        let (best, small) = (loss(search.best_trial().unwrap()), loss(search.recommended().unwrap()));
        rates.searches += 1;
        rates.best_within += u32::from(best <= 0.01);
        rates.small_within += u32::from(small <= 0.02);
        rates.measured += count;
        rates.most_measured = rates.most_measured.max(count);
        if best > 0.01 || small > 0.02 {
            println!("seed {seed}: best {:.2} %, recommended {:.2} % off: {memory:?} {goal:?}", 100.0 * best, 100.0 * small);
        }
    }
    println!("{tiers} tiers, {} ratios: {rates:?}", every.len());
    assert!(f64::from(rates.best_within) >= 0.99 * f64::from(rates.searches), "{rates:?}");
    assert!(f64::from(rates.small_within) >= 0.99 * f64::from(rates.searches), "{rates:?}");
    assert!(rates.most_measured as usize <= every.len() / 5, "{} of {}", rates.most_measured, every.len());
    rates
}

fn demand(memory: &Memory, random: &mut Random) -> Goal {
    Goal::LatencyAt(memory.bandwidth(&memory.shares(&Weights::only(0))) * random.between(0.05, 1.3))
}

#[test]
fn pairs_of_tiers_are_within_one_per_cent_of_the_optimum() {
    rates(2, 1..201, |_, _| Goal::Bandwidth);
    rates(2, 1001..1201, demand);
}

#[test]
fn triples_of_tiers_are_within_one_per_cent_of_the_optimum() {
    rates(3, 2001..2031, |_, _| Goal::Bandwidth);
    rates(3, 3001..3031, demand);
}

#[test]
fn the_near_tier_alone_wins_where_little_is_asked_of_it() {
    for seed in 4001..4101 {
        let mut random = Random(seed);
        let memory = Memory::random(2 + seed as usize % 2, &mut random);
        let goal = Goal::LatencyAt(0.1 * memory.tiers[0].0.min(memory.bandwidth(&memory.shares(&Weights::only(0)))));
        let (search, _) = search(&memory, goal, &mut random);
        assert_eq!(search.recommended().unwrap().weights, Weights::only(0), "seed {seed}: {memory:?}");
    }
}

#[test]
fn an_error_keeps_what_was_measured() {
    let memory = Memory { tiers: vec![(100.0, 90.0), (50.0, 200.0)], in_flight: 500.0 };
    let mut search = Search::new(vec![0, 1], Goal::Bandwidth);
    let (mut left, mut random) = (4, Random(1));
    let run = search.run(&[], &mut |weights| {
        left -= 1;
        if left > 0 { Ok(memory.measure(weights, Goal::Bandwidth, &mut random)) } else { Err("interrupted") }
    });
    assert_eq!((run, search.trials.len()), (Err("interrupted"), 3));
    assert!(search.recommended().is_some());
}

#[test]
fn a_gain_has_the_interval_of_both() {
    let gain = Reading { value: 130.0, half: 1.3 }.gain_over(Reading { value: 100.0, half: 1.0 });
    assert!((gain.value - 0.3).abs() < 1e-9 && (gain.half - 1.3 * 0.01 * 2f64.sqrt()).abs() < 1e-9, "{gain:?}");
}
