//! The middle of most values and their spread, which a few outliers do not change.

use memgauge_model::significance;

use super::MIN_ROBUST_Z;

/// The median absolute deviation of a normal distribution times this is its standard deviation.
const SIGMA_OF_MAD: f64 = 1.4826;
/// No spread is smaller than this share: differences below it are rounding.
const MIN_SPREAD: f64 = 0.001;
/// The standard error of a median over that of a mean, for normally distributed values.
const MEDIAN_ERROR: f64 = 1.2533;
/// 95 % of a normal distribution lie within this number of standard deviations.
const Z95: f64 = 1.959_964;
/// Rounds of leaving out outliers. Three or four are enough.
const ROUNDS: usize = 10;

/// The middle of values and their spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Centre {
    /// How many values, without outliers.
    pub n: usize,
    /// Their median.
    pub median: f64,
    /// Standard deviation of one value.
    pub spread: f64,
}

impl Centre {
    /// Standard error of the median.
    pub fn error(&self) -> f64 {
        MEDIAN_ERROR * self.spread / (self.n as f64).sqrt()
    }

    /// Half of the median's 95 % interval.
    pub fn half_width(&self) -> f64 {
        Z95 * self.error()
    }

    /// The standard deviation of a further value's distance from the median.
    fn of_difference(&self) -> f64 {
        self.spread.hypot(self.error())
    }

    /// How many standard deviations a value is above the median.
    pub fn score(&self, value: f64) -> f64 {
        (value - self.median) / self.of_difference()
    }

    /// The value with this score.
    pub fn at_score(&self, score: f64) -> f64 {
        self.median + score * self.of_difference()
    }

    /// The probability of such a score or a greater one. A spread from few values is uncertain itself, so that scores are those of
    /// Student's t.
    pub fn probability(&self, score: f64) -> f64 {
        significance::upper_tail(score, freedom(self.n))
    }

    /// The score that is as improbable as 3.5 is where the spread is certain.
    pub fn flagged_score(&self) -> f64 {
        let p = significance::upper_tail(MIN_ROBUST_Z, MOST_FREEDOM);
        significance::upper_quantile(p, freedom(self.n)).max(MIN_ROBUST_Z)
    }

    /// The same with a spread of at least so much.
    pub fn with_spread(self, least: f64) -> Self {
        Self { spread: self.spread.max(least), ..self }
    }
}

/// More degrees of freedom change nothing.
const MOST_FREEDOM: f64 = 1000.0;

/// Degrees of freedom of a spread from `n` values, as simulated fleets show them: docs/method/fleet.md.
fn freedom(n: usize) -> f64 {
    (n as f64 - 3.0).clamp(1.0, MOST_FREEDOM)
}

/// Median and spread of values. Those further from the median than 3.5 spreads are left out, and both are computed again, until nothing
/// changes. `None` without values. The order of `values` is not kept.
pub fn centre(values: &mut [f64]) -> Option<Centre> {
    let mut kept = values.len();
    let mut found = None;
    for _ in 0..ROUNDS {
        let part = &mut values[..kept];
        let Some(median) = median(part) else { break };
        let mut deviations: Vec<f64> = part.iter().map(|v| (v - median).abs()).collect();
        let mad = self::median(&mut deviations)?;
        // In few values the median absolute deviation is too small on average (C. Croux, P. Rousseeuw, "Time-efficient algorithms for two
        // highly robust estimators of scale", 1992).
        let n = kept as f64;
        let small_sample = if kept > 1 { n / (n - 0.8) } else { 1.0 };
        let spread = (SIGMA_OF_MAD * mad * small_sample).max(MIN_SPREAD);
        found = Some(Centre { n: kept, median, spread });
        let within = partition(part, |v| (v - median).abs() <= MIN_ROBUST_Z * spread);
        if within == kept {
            break;
        }
        kept = within;
    }
    found
}

/// Moves what holds to the front; returns how many that are.
fn partition(values: &mut [f64], holds: impl Fn(f64) -> bool) -> usize {
    let mut front = 0;
    for i in 0..values.len() {
        if holds(values[i]) {
            values.swap(i, front);
            front += 1;
        }
    }
    front
}

/// The median, without sorting everything. `None` without values.
pub fn median(values: &mut [f64]) -> Option<f64> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let (below, middle, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    let middle = *middle;
    if n % 2 == 1 {
        return Some(middle);
    }
    let below = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some((below + middle) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_that_of_sorted_values() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn outliers_move_neither_median_nor_spread() {
        let calm: Vec<f64> = (0..40).map(|i| 5.0 + 0.01 * (f64::from(i * 17 % 40) - 19.5) / 19.5).collect();
        let of = |values: &[f64]| centre(&mut values.to_vec()).unwrap();
        let plain = of(&calm);
        let with = of(&[calm.clone(), vec![5.2, 5.3, 5.25, 4.0, 6.0]].concat());
        assert_eq!(with.n, 40, "the five are left out: {with:?}");
        assert!((with.median - plain.median).abs() < 0.001 && (with.spread / plain.spread - 1.0).abs() < 0.05, "{plain:?} {with:?}");
        assert!(with.score(5.2) > 10.0 && with.probability(with.score(5.2)) < 1e-8);
    }

    #[test]
    fn equal_values_have_the_least_spread_and_few_values_a_higher_bar() {
        let equal = centre(&mut [1.0; 9]).unwrap();
        assert_eq!((equal.n, equal.spread), (9, MIN_SPREAD));
        let bar = |n| Centre { n, median: 0.0, spread: 0.01 }.flagged_score();
        assert!(bar(8) > 5.0 && bar(8) > bar(30) && bar(30) > bar(1000), "{} {} {}", bar(8), bar(30), bar(1000));
        assert!((bar(100_000) - 3.5).abs() < 1e-9);
        assert_eq!(centre(&mut []), None);
    }
}
