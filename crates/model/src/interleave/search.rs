//! The search for weights: few measurements of many ratios, with what each of them is worth.
//!
//! The time that a byte takes is the mean over the tiers, weighted by their shares, of times that grow with the load of each. As a function of
//! the shares it is convex, and so is its inverse's: bandwidth has one hill. Golden section (J. Kiefer, "Sequential minimax search for a
//! maximum", 1953) finds its top along a line; between more than two tiers the lines are each tier's share with the others' in proportion,
//! and what two tiers have between them.
//! Golden section decides by differences, so ratios whose intervals overlap are measured again before one is left behind.

use serde::{Deserialize, Serialize};

use super::weights::{MAX_TOTAL, Weights};

/// A number with half of its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reading {
    /// The number.
    pub value: f64,
    /// Half of the width of its interval.
    pub half: f64,
}

/// Standard deviations in half of a 95 % interval.
const DEVIATIONS: f64 = 1.96;

impl Reading {
    /// All as one: each counts by the inverse of its variance. If they differ by more than their intervals explain, as after a new
    /// allocation, the interval is wider by the Birge ratio (R. T. Birge, "The Calculation of Errors by the Method of Least
    /// Squares", Physical Review 40, 1932). An interval that is less than a thousandth wide counts as that. `None` without any.
    fn pooled(readings: &[Self]) -> Option<Self> {
        let weights: Vec<f64> = readings.iter().map(|r| r.half.max(1e-3 * r.value.abs()).powi(-2)).collect();
        let (sum, weighted) = (weights.iter().sum::<f64>(), || weights.iter().zip(readings));
        let value = weighted().map(|(w, r)| w * r.value).sum::<f64>() / sum;
        let squares = weighted().map(|(w, r)| w * (r.value - value).powi(2)).sum::<f64>() * DEVIATIONS.powi(2);
        let birge = (squares / (readings.len().max(2) - 1) as f64).sqrt();
        (!readings.is_empty()).then(|| Self { value, half: sum.powf(-0.5) * birge.max(1.0) })
    }

    /// This number over another, less 1, with the interval of the quotient.
    pub fn gain_over(self, other: Self) -> Self {
        let quotient = self.value / other.value;
        Self { value: quotient - 1.0, half: quotient * (self.half / self.value).hypot(other.half / other.value) }
    }
}

/// What was measured with some weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// The weights.
    pub weights: Weights,
    /// The most bandwidth, in 10^9 bytes a second.
    pub bandwidth_gbs: Reading,
    /// Latency in nanoseconds: at the demanded bandwidth, if there is a demand, otherwise at the most bandwidth. Absent if the demand was not
    /// reached, or if no CPU was left to chase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Reading>,
    /// How often it was measured.
    pub measured: u32,
}

/// The purpose of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// The most bandwidth.
    Bandwidth,
    /// The least latency at this bandwidth, in 10^9 bytes a second; if nothing reaches it, the most bandwidth.
    LatencyAt(f64),
}

/// The cost, in nanoseconds, of weights that cannot serve the demand. It is much higher than any latency.
const BEYOND: f64 = 1e9;
/// Weights that are as good but for this share need not be finer.
const AS_GOOD: f64 = 0.01;

impl Goal {
    /// What is least for the best weights.
    fn cost(self, trial: &Trial) -> Reading {
        let Reading { value, half } = trial.bandwidth_gbs;
        let relative = half / value;
        match (self, trial.latency_ns) {
            (Self::Bandwidth, _) => Reading { value: 1.0 / value, half: relative / value },
            (Self::LatencyAt(_), Some(latency)) => latency,
            (Self::LatencyAt(demand), None) => Reading { value: BEYOND * demand / value, half: BEYOND * demand / value * relative },
        }
    }

    /// Whether `trial` is at most one per cent worse than `best`.
    pub fn as_good(self, trial: &Trial, best: &Trial) -> bool {
        self.cost(trial).value <= (1.0 + AS_GOOD) * self.cost(best).value
    }
}

/// How often a ratio is measured at most to choose a side of it, and at most to choose the best.
const MOST_READINGS: (u32, u32) = (2, 4);
/// Rounds over all tiers' shares, and over the neighbours of the best.
const ROUNDS: (usize, usize) = (3, 5);
/// The golden section.
const GOLDEN: f64 = 0.618_033_988_749_895;
/// Neighbouring ratios that are tried around the best one in a round, for each tier that may have a little more or less.
const NEIGHBOURS: usize = 4;
/// Shares of neighbours differ by no more than this.
const FAR: f64 = 0.08;
/// Trials whose cost is at most this many times the least show how fast the tiers are there.
const NEAR: f64 = 1.2;
/// The power of the mean that blends the tiers' times: between 1, their sum, and infinity, the longest of them.
const BLEND: i32 = 16;
/// The search compares this many of the best ratios to find the best one.
const CONTENDERS: usize = 3;

/// A search in progress. `measure` gives what one measurement of some weights found; an error ends the search, and what was measured until
/// then is in [`Search::trials`].
#[derive(Debug)]
pub struct Search {
    nodes: Vec<u32>,
    goal: Goal,
    /// Every measurement.
    readings: Vec<Trial>,
    /// The measured weights with their results, in the order of measurement.
    pub trials: Vec<Trial>,
}

type Measure<'m, E> = dyn FnMut(&Weights) -> Result<Trial, E> + 'm;

impl Search {
    /// A search over weights of these nodes.
    pub const fn new(nodes: Vec<u32>, goal: Goal) -> Self {
        Self { nodes, goal, readings: Vec::new(), trials: Vec::new() }
    }

    /// Measures each tier alone, all alike, `always` (such as the kernel's weights), and then whatever leads to the best.
    ///
    /// # Errors
    /// The first of `measure`.
    pub fn run<E>(&mut self, always: &[Weights], measure: &mut Measure<'_, E>) -> Result<(), E> {
        let alone: Vec<Weights> = self.nodes.iter().map(|node| Weights::only(*node)).collect();
        for weights in alone.iter().chain(&Weights::equal(self.nodes.iter().copied())).chain(always) {
            self.known(weights, measure)?;
        }
        if self.nodes.len() < 2 {
            return Ok(());
        }
        let alone: Vec<f64> = alone.iter().map(|w| self.find(w).map_or(0.0, |i| self.trials[i].bandwidth_gbs.value)).collect();
        // Every tier ends at the same time if each has as much as it is fast.
        if let Some(start) = self.nearest(&alone) {
            self.known(&start, measure)?;
        }
        let tiers = self.nodes.len();
        for _ in 0..if tiers == 2 { 1 } else { ROUNDS.0 } {
            let before = self.best();
            for tier in 0..if tiers == 2 { 1 } else { tiers } {
                let others: Vec<usize> = (0..tiers).filter(|other| *other != tier).collect();
                self.along(tier, &others, &alone, measure)?;
            }
            // Once a tier is saturated, only the others' shares can improve.
            for (tier, other) in (0..tiers).flat_map(|a| (a + 1..tiers).map(move |b| (a, b))).filter(|_| tiers > 2) {
                self.along(tier, &[other], &alone, measure)?;
            }
            if self.best() == before {
                break;
            }
        }
        for _ in 0..ROUNDS.1 {
            let before = self.best();
            self.by_speeds(measure)?;
            self.around_best(measure)?;
            self.decide(measure)?;
            if self.best() == before {
                break;
            }
        }
        Ok(())
    }

    /// The weights that came out best; `None` before anything was measured.
    pub fn best_trial(&self) -> Option<&Trial> {
        self.best().map(|i| &self.trials[i])
    }

    /// The smallest weights that are as good as the best but for one per cent, and of several the best.
    pub fn recommended(&self) -> Option<&Trial> {
        let best = self.best_trial()?;
        let good = self.trials.iter().filter(|trial| self.goal.as_good(trial, best));
        good.min_by(|a, b| {
            let cost = |t| self.goal.cost(t).value;
            a.weights.total().cmp(&b.weights.total()).then(cost(a).total_cmp(&cost(b)))
        })
    }

    /// Everything that was measured as good as the best but for one per cent, the most pages on the first node first.
    pub fn plateau(&self) -> Vec<&Trial> {
        let Some(best) = self.best_trial() else { return Vec::new() };
        let near = self.nodes.first().copied().unwrap_or_default();
        let mut good: Vec<&Trial> = self.trials.iter().filter(|trial| self.goal.as_good(trial, best)).collect();
        good.sort_by(|a, b| b.weights.share(near).total_cmp(&a.weights.share(near)).then_with(|| a.weights.cmp(&b.weights)));
        good
    }

    /// Whether a trial has both less bandwidth and more latency than another one.
    pub fn dominated(&self, trial: &Trial) -> bool {
        let latency = |t: &Trial| t.latency_ns.map_or(f64::INFINITY, |l| l.value);
        let worse = |other: &Trial| other.bandwidth_gbs.value > trial.bandwidth_gbs.value && latency(other) < latency(trial);
        self.trials.iter().any(worse)
    }

    fn best(&self) -> Option<usize> {
        (0..self.trials.len()).min_by(|a, b| self.cost(*a).value.total_cmp(&self.cost(*b).value))
    }

    fn cost(&self, trial: usize) -> Reading {
        self.goal.cost(&self.trials[trial])
    }

    fn find(&self, weights: &Weights) -> Option<usize> {
        self.trials.iter().position(|t| t.weights == *weights)
    }

    /// The trial of these weights, measured if it was not.
    fn known<E>(&mut self, weights: &Weights, measure: &mut Measure<'_, E>) -> Result<usize, E> {
        match self.find(weights) {
            Some(known) => Ok(known),
            None => {
                let trial = measure(weights)?;
                self.readings.push(trial.clone());
                self.trials.push(trial);
                Ok(self.trials.len() - 1)
            }
        }
    }

    /// Measures once more what was measured.
    fn again<E>(&mut self, trial: usize, measure: &mut Measure<'_, E>) -> Result<(), E> {
        let weights = self.trials[trial].weights.clone();
        self.readings.push(measure(&weights)?);
        let of_these: Vec<&Trial> = self.readings.iter().filter(|reading| reading.weights == weights).collect();
        let all = |of: fn(&Trial) -> Option<Reading>| Reading::pooled(&of_these.iter().filter_map(|t| of(t)).collect::<Vec<_>>());
        let (bandwidth_gbs, latency_ns) = (all(|t| Some(t.bandwidth_gbs)), all(|t| t.latency_ns));
        let known = &mut self.trials[trial];
        known.bandwidth_gbs = bandwidth_gbs.unwrap_or(known.bandwidth_gbs);
        known.latency_ns = latency_ns;
        known.measured += 1;
        Ok(())
    }

    /// Which of two trials costs less. If their intervals overlap, both are measured again until they do not, or often enough.
    fn less<E>(&mut self, a: usize, b: usize, measure: &mut Measure<'_, E>) -> Result<bool, E> {
        loop {
            let (x, y) = (self.cost(a), self.cost(b));
            let apart = (x.value - y.value).abs() > x.half.hypot(y.half);
            let fewer = if self.trials[a].measured <= self.trials[b].measured { a } else { b };
            if apart || a == b || self.trials[fewer].measured >= MOST_READINGS.0 {
                return Ok(x.value < y.value);
            }
            self.again(fewer, measure)?;
        }
    }

    /// Golden section over how much of what one tier and `others` have is on that tier. The others share the rest as in the best trial so
    /// far, or as they are fast.
    fn along<E>(&mut self, tier: usize, others: &[usize], alone: &[f64], measure: &mut Measure<'_, E>) -> Result<(), E> {
        let Some(best) = self.best_trial().map(|t| self.shares(&t.weights)) else { return Ok(()) };
        let sum = |of: &[f64]| others.iter().map(|other| of[*other]).sum::<f64>();
        let ratio = if sum(&best) > 0.0 { best.clone() } else { alone.to_vec() };
        let (rest, both) = (sum(&ratio), sum(&best) + best[tier]);
        if rest <= 0.0 || both <= 0.0 {
            return Ok(());
        }
        let shares = |part: f64| -> Vec<f64> {
            let mut shares = best.clone();
            shares[tier] = both * part;
            others.iter().for_each(|other| shares[*other] = both * (1.0 - part) * ratio[*other] / rest);
            shares
        };
        let (mut low, mut high) = (0.0, 1.0);
        // The finest step between two ratios of the largest sum.
        while high - low > 0.5 / f64::from(MAX_TOTAL) {
            let (left, right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
            let (Some(a), Some(b)) = (self.nearest(&shares(left)), self.nearest(&shares(right))) else { break };
            let (a, b) = (self.known(&a, measure)?, self.known(&b, measure)?);
            if a == b {
                break;
            }
            if self.less(a, b, measure)? { high = right } else { low = left }
        }
        // The section comes close to its ends only, and a tier may be best left out.
        for end in [low, high] {
            if let Some(weights) = self.nearest(&shares(end)) {
                self.known(&weights, measure)?;
            }
        }
        Ok(())
    }

    /// Measures ratios near the best one: a little more or less on each tier, those first that what is known promises most of.
    fn around_best<E>(&mut self, measure: &mut Measure<'_, E>) -> Result<(), E> {
        let Some(best) = self.best() else { return Ok(()) };
        let shares = self.shares(&self.trials[best].weights);
        let speeds = self.speeds(best);
        let mut near: Vec<(f64, f64, Weights)> = Vec::new();
        let tiers = 0..shares.len();
        for (from, to) in tiers.clone().flat_map(|from| tiers.clone().map(move |to| (from, to))).filter(|(from, to)| from != to) {
            for step in [0.005_f64, 0.01, 0.02, 0.03, 0.045, 0.06] {
                let mut moved = shares.clone();
                let taken = step.min(moved[from]);
                moved[from] -= taken;
                moved[to] += taken;
                for weights in self.roundings(&moved) {
                    let far = shares.iter().zip(self.shares(&weights)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    if far <= FAR && self.find(&weights).is_none() && near.iter().all(|(.., known)| *known != weights) {
                        near.push((far, self.slowest(&weights, &speeds), weights));
                    }
                }
            }
        }
        // Between two tiers the nearest on both sides lead on. Between more there are too many, and what is known of their speeds helps.
        let most = NEIGHBOURS * (shares.len() - 1) * shares.len() / 2;
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        let nearest: Vec<Weights> = near.iter().take(most).map(|(.., weights)| weights.clone()).collect();
        near.sort_by(|a, b| a.1.total_cmp(&b.1));
        let fastest = near.into_iter().map(|(.., weights)| weights).take(if self.goal == Goal::Bandwidth { most } else { 0 });
        let both = nearest.into_iter().take(if shares.len() > 2 || self.goal != Goal::Bandwidth { most } else { 0 }).chain(fastest);
        for weights in both {
            self.known(&weights, measure)?;
        }
        Ok(())
    }

    /// Follows what is known about the tiers' speeds to where all of them end at the same time.
    fn by_speeds<E>(&mut self, measure: &mut Measure<'_, E>) -> Result<(), E> {
        for _ in 0..ROUNDS.1 {
            let Some(best) = self.best().filter(|_| self.nodes.len() > 2) else { break };
            let Some(weights) = self.nearest(&self.speeds(best)).filter(|w| self.find(w).is_none()) else { break };
            self.known(&weights, measure)?;
        }
        Ok(())
    }

    fn shares(&self, weights: &Weights) -> Vec<f64> {
        self.nodes.iter().map(|node| weights.share(*node)).collect()
    }

    /// The time for a byte if the tiers have these speeds: that of the slowest, and some of the others' where they are nearly as slow.
    fn slowest(&self, weights: &Weights, speeds: &[f64]) -> f64 {
        let times = self.shares(weights).into_iter().zip(speeds).map(|(share, speed)| (share / speed).powi(BLEND));
        times.sum::<f64>().powf(1.0 / f64::from(BLEND))
    }

    /// The speed of each tier that explains the trials near the best one: least squares of the logarithms, one tier after the other.
    fn speeds(&self, best: usize) -> Vec<f64> {
        let top = self.cost(best).value;
        let mut speeds: Vec<f64> = self.shares(&self.trials[best].weights).iter().map(|share| share.max(1e-3) / top).collect();
        let near: Vec<&Trial> = self.trials.iter().filter(|t| self.goal.cost(t).value < NEAR * top).collect();
        let error = |speeds: &[f64]| -> f64 {
            near.iter().map(|t| (self.slowest(&t.weights, speeds) / self.goal.cost(t).value).ln().powi(2)).sum()
        };
        let (mut step, mut least) = (0.2, error(&speeds));
        while step > 1e-3 {
            let before = least;
            for tier in 0..speeds.len() {
                for factor in [1.0 + step, 1.0 / (1.0 + step)] {
                    let mut other = speeds.clone();
                    other[tier] *= factor;
                    let off = error(&other);
                    if off < least {
                        (speeds, least) = (other, off);
                    }
                }
            }
            if least >= before {
                step /= 2.0;
            }
        }
        speeds
    }

    /// Measures again what may be the best, so that the luckiest measurement does not win.
    fn decide<E>(&mut self, measure: &mut Measure<'_, E>) -> Result<(), E> {
        loop {
            let Some(best) = self.best() else { return Ok(()) };
            let top = self.cost(best);
            let may_be_best = |i: &usize| {
                let cost = self.cost(*i);
                self.trials[*i].measured < MOST_READINGS.1 && cost.value - top.value < cost.half.hypot(top.half)
            };
            let by_cost = |a: &usize, b: &usize| self.cost(*a).value.total_cmp(&self.cost(*b).value);
            let mut first: Vec<usize> = (0..self.trials.len()).collect();
            first.sort_by(by_cost);
            let Some(next) = first.into_iter().take(CONTENDERS).find(may_be_best) else { return Ok(()) };
            self.again(next, measure)?;
        }
    }

    /// The weights whose shares are nearest to these.
    fn nearest(&self, shares: &[f64]) -> Option<Weights> {
        let sum: f64 = shares.iter().sum();
        let off = |w: &Weights| self.shares(w).iter().zip(shares).map(|(got, share)| (got - share / sum).abs()).fold(0.0, f64::max);
        let nearer = |best: (f64, Weights), next: (f64, Weights)| if next.0 < best.0 - 1e-9 { next } else { best };
        self.roundings(shares).map(|w| (off(&w), w)).reduce(nearer).map(|(_, weights)| weights)
    }

    /// For each sum, the weights that give no tier much more than its share.
    fn roundings(&self, shares: &[f64]) -> impl Iterator<Item = Weights> {
        let sum: f64 = shares.iter().sum();
        (1..=MAX_TOTAL).filter_map(move |total| {
            let wanted: Vec<f64> = shares.iter().map(|share| share / sum * f64::from(total)).collect();
            let mut weights: Vec<u32> = wanted.iter().map(|w| *w as u32).collect();
            for _ in weights.iter().sum::<u32>()..total {
                // The next page goes where it is least too much.
                let over = |i: &usize| f64::from(weights[*i] + 1) / wanted[*i].max(1e-9);
                let next = (0..weights.len()).min_by(|a, b| over(a).total_cmp(&over(b)))?;
                weights[next] += 1;
            }
            Weights::new(self.nodes.iter().copied().zip(weights))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_that_contradict_each_other_have_a_wider_interval() {
        // Pages that are allocated anew: every other measurement has 10 % more.
        let weights = Weights::only(0);
        let again = |gbs: [f64; 2], times: usize| {
            let (mut search, mut n) = (Search::new(vec![0, 1], Goal::Bandwidth), 0);
            let mut measure = |weights: &Weights| {
                n += 1;
                let bandwidth_gbs = Reading { value: gbs[n % 2], half: 1.0 };
                Ok::<_, ()>(Trial { weights: weights.clone(), bandwidth_gbs, latency_ns: Some(bandwidth_gbs), measured: 1 })
            };
            let first = search.known(&weights, &mut measure).unwrap();
            (1..times).for_each(|_| search.again(first, &mut measure).unwrap());
            let trial = &search.trials[first];
            assert_eq!((trial.latency_ns, trial.measured as usize), (Some(trial.bandwidth_gbs), times));
            trial.bandwidth_gbs
        };
        for times in [2, 3, 4] {
            let alike = again([100.0, 100.0], times);
            assert!((alike.value - 100.0).abs() < 1e-9 && (alike.half - (times as f64).powf(-0.5)).abs() < 1e-9, "{alike:?}");
            let apart = again([100.0, 110.0], times);
            assert!(apart.value - apart.half < 101.0 && apart.value + apart.half > 109.0, "{times}: {apart:?}");
        }
    }
}
