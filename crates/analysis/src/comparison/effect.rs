//! The ratio of two sides with its interval: a hierarchical bootstrap over runs, allocations and bursts.

use memgauge_model::significance::{t_quantile, two_sided};
use memgauge_model::stats::median;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The samples of one run: the median of each burst, by allocation, and the median of all samples.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunSamples {
    pub(super) value: f64,
    pub(super) allocations: Vec<Vec<f64>>,
}

impl RunSamples {
    /// A run with nothing known but its value.
    pub(super) fn single(value: f64) -> Self {
        Self { value, allocations: Vec::new() }
    }
}

/// After over before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BeforeAfter {
    pub(super) before: f64,
    pub(super) after: f64,
    pub(super) ratio: f64,
    /// How sure it is; `None` if the samples cannot show it.
    pub(super) spread: Option<Spread>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    /// The 95 % interval of the ratio.
    pub(super) low: f64,
    pub(super) high: f64,
    /// The probability of such a ratio if the sides did not differ.
    pub(super) p: f64,
    /// The standard deviation of a run's logarithm, what its allocations and bursts add included, the mean of both sides; `None` if a side
    /// has one run.
    pub(super) run_deviation: Option<f64>,
}

/// Resamples of each side. The standard error of a standard deviation from 400 is 3.5 %.
const RESAMPLES: u32 = 400;
/// Of the clock and of rounding: no interval is narrower, so that equal numbers do not become certain.
const MIN_DEVIATION: f64 = 1e-6;

/// Compares the runs of two sides. `None` without a positive value on either side.
///
/// The interval is the bootstrap's standard error on logarithms times Student's t. Percentiles of a bootstrap over five runs would cover the
/// truth in some 85 % only (T. Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69, 2015), so the
/// error is widened by the root of n / (n - 1), and t has the degrees of freedom of Welch and Satterthwaite, counted in runs. With one
/// run on a side they are counted in its allocations or, if it has one, in its bursts.
pub(super) fn effect(before: &[RunSamples], after: &[RunSamples], seed: u64) -> Option<BeforeAfter> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (a, b) = (location(before)?, location(after)?);
    let errors = deviation(before, &mut random).zip(deviation(after, &mut random));
    let spread = errors.map(|(x, y)| {
        let (va, vb) = (x.variance, y.variance);
        let error = (va + vb).sqrt();
        let freedom = (va + vb).powi(2) / (va.powi(2) / x.freedom + vb.powi(2) / y.freedom);
        let half = t_quantile(freedom) * error;
        let difference = b - a;
        Spread {
            low: (difference - half).exp(),
            high: (difference + half).exp(),
            p: two_sided(difference / error, freedom),
            run_deviation: x.run_deviation.zip(y.run_deviation).map(|(p, q)| ((p * p + q * q) / 2.0).sqrt()),
        }
    });
    Some(BeforeAfter { before: a.exp(), after: b.exp(), ratio: (b - a).exp(), spread })
}

/// The mean of the logarithms of the runs' values.
fn location(runs: &[RunSamples]) -> Option<f64> {
    let sane = !runs.is_empty() && runs.iter().all(|r| r.value.is_finite() && r.value > 0.0);
    sane.then(|| runs.iter().map(|r| r.value.ln()).sum::<f64>() / runs.len() as f64)
}

struct Deviation {
    /// Of the side's location.
    variance: f64,
    freedom: f64,
    run_deviation: Option<f64>,
}

/// How much the location of a side varies; `None` if the samples cannot show it.
fn deviation(runs: &[RunSamples], random: &mut impl Rng) -> Option<Deviation> {
    // Counts the highest level that has several units (runs, allocations, bursts): only those units show how much they differ.
    let units = match runs {
        [] => return None,
        [one] => match one.allocations.len() {
            0 => return None,
            1 => one.allocations[0].len(),
            several => several,
        },
        several => several.len(),
    };
    if units < 2 {
        return None;
    }
    let middles: Vec<Option<f64>> = runs.iter().map(|r| median(&r.allocations.concat())).collect();
    let locations: Vec<f64> = (0..RESAMPLES).map(|_| resampled(runs, &middles, random)).collect();
    let n = units as f64;
    let variance = variance(&locations) * n / (n - 1.0);
    let variance = variance.max(MIN_DEVIATION.powi(2));
    Some(Deviation { variance, freedom: n - 1.0, run_deviation: (runs.len() > 1).then(|| (variance * n).sqrt()) })
}

/// Of a sample, with Bessel's correction.
fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// The location of as many runs drawn with replacement, each of allocations drawn so, each of bursts drawn so. `middles`: the median of
/// each run's bursts. Resampling moves a run by how far the drawn bursts are from it; its value is the median of all samples.
fn resampled(runs: &[RunSamples], middles: &[Option<f64>], random: &mut impl Rng) -> f64 {
    let mut draw = |n: usize| (random.next_u64() % n as u64) as usize;
    let mut sum = 0.0;
    for _ in runs {
        let i = draw(runs.len());
        let allocations = &runs[i].allocations;
        let mut bursts = Vec::new();
        for _ in allocations {
            let allocation = &allocations[draw(allocations.len())];
            bursts.extend(allocation.iter().map(|_| allocation[draw(allocation.len())]));
        }
        let shift = median(&bursts).zip(middles[i]).map_or(0.0, |(drawn, own)| (drawn / own).ln());
        sum += runs[i].value.ln() + shift;
    }
    sum / runs.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(bursts: &[&[f64]]) -> RunSamples {
        let allocations: Vec<Vec<f64>> = bursts.iter().map(|b| b.to_vec()).collect();
        RunSamples { value: median(&allocations.concat()).unwrap(), allocations }
    }

    #[test]
    fn runs_that_differ_widen_the_interval_more_than_bursts_do() {
        let steady = [run(&[&[100.0, 101.0, 99.0], &[100.0, 100.5, 99.5]]), run(&[&[100.0, 101.0, 99.0]])];
        let apart = [run(&[&[90.0, 90.1, 89.9], &[90.0, 90.1]]), run(&[&[110.0, 110.1, 109.9]])];
        let width = |runs: &[RunSamples]| {
            let spread = effect(runs, runs, 1).unwrap().spread.unwrap();
            spread.high / spread.low
        };
        assert!(width(&apart) > 3.0 * width(&steady), "{} {}", width(&apart), width(&steady));
    }

    #[test]
    fn one_run_is_told_by_its_bursts_and_a_lone_value_by_nothing() {
        let one = [run(&[&[100.0, 101.0, 99.0, 100.0, 100.2]])];
        let spread = effect(&one, &one, 1).unwrap().spread.unwrap();
        assert!(spread.low < 1.0 && spread.high > 1.0 && spread.run_deviation.is_none(), "{spread:?}");
        assert_eq!(effect(&[RunSamples::single(100.0)], &one, 1).unwrap().spread, None);
        assert_eq!(effect(&[RunSamples::single(0.0)], &one, 1), None);
        assert_eq!(effect(&[], &one, 1), None);
    }
}
