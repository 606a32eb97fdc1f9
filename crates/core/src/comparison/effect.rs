//! The ratio of two sides with its interval: a hierarchical bootstrap over runs, allocations and bursts.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::stats::median;

/// The samples of one run: the median of each burst, by allocation, and the median of all samples.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunSamples {
    pub(super) value: f64,
    pub(super) allocations: Vec<Vec<f64>>,
}

impl RunSamples {
    /// A run of which only the value is known.
    pub(super) fn single(value: f64) -> Self {
        Self { value, allocations: Vec::new() }
    }
}

/// After over before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effect {
    pub(super) before: f64,
    pub(super) after: f64,
    pub(super) ratio: f64,
    /// What tells how sure it is; `None` where nothing does.
    pub(super) spread: Option<Spread>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    /// The 95 % interval of the ratio.
    pub(super) low: f64,
    pub(super) high: f64,
    /// The probability of such a ratio if there were no difference.
    pub(super) p: f64,
    /// The standard deviation of a run's logarithm, the mean of both sides; `None` if a side has one run.
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
pub(super) fn effect(before: &[RunSamples], after: &[RunSamples], seed: u64) -> Option<Effect> {
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
    Some(Effect { before: a.exp(), after: b.exp(), ratio: (b - a).exp(), spread })
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

/// How much the location of a side varies; `None` if nothing tells.
fn deviation(runs: &[RunSamples], random: &mut impl Rng) -> Option<Deviation> {
    // The units of the highest level of which there are several: what they differ by is known from them alone.
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
    let logs = || runs.iter().map(|r| r.value.ln()).collect::<Vec<_>>();
    let of_runs = || self::variance(&logs()).sqrt().max(MIN_DEVIATION);
    Some(Deviation { variance: variance.max(MIN_DEVIATION.powi(2)), freedom: n - 1.0, run_deviation: (runs.len() > 1).then(of_runs) })
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

/// The probability that Student's t with `freedom` degrees of freedom is further from 0 than `t`: the regularised incomplete beta function
/// (M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions", 26.5.27 and 26.5.8).
fn two_sided(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// The 0.975 quantile of Student's t, by halving the range in which it lies.
pub(super) fn t_quantile(freedom: f64) -> f64 {
    // With one degree of freedom it is 12.7, with half a degree some 150.
    let (mut low, mut high) = (0.0, 1e4);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if two_sided(middle, freedom) > 0.05 { low = middle } else { high = middle }
    }
    high
}

/// I_x(a, b) by its continued fraction, which converges fast below its mean; above it, by symmetry.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (a * x.ln() + b * (1.0 - x).ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)).exp() / a;
    // Lentz's method.
    let away = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..300 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front * fraction
}

/// The logarithm of the gamma function for positive arguments (C. Lanczos, 1964, with g = 7 and nine terms; right to 1e-13).
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let sum = TERMS.iter().zip(1..).fold(0.999_999_999_999_809_9, |sum, (term, i)| sum + term / (x + f64::from(i)));
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t_is_that_of_the_tables() {
        // NIST's table of critical values.
        for (freedom, quantile) in [(1.0, 12.706), (2.0, 4.303), (4.0, 2.776), (8.0, 2.306), (30.0, 2.042), (1000.0, 1.962)] {
            assert!((t_quantile(freedom) - quantile).abs() < 1e-3, "{freedom}: {}", t_quantile(freedom));
        }
        assert!((two_sided(3.355, 8.0) - 0.01).abs() < 1e-4);
        assert!((two_sided(0.0, 8.0) - 1.0).abs() < 1e-12);
    }

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
