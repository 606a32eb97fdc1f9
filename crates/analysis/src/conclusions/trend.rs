//! Whether samples show a trend over the measurement.

use memgauge_model::estimate::Drift;
use memgauge_model::stats;

/// Fewer groups than this cannot show a trend at the 1 % level: five groups in random order are sorted in 1 of 60 cases.
const MIN_GROUPS: usize = 6;
/// Up to this number of groups the distribution of Kendall's S is computed exactly. Above, it is normal to within a thousandth.
const EXACT: usize = 40;
/// If there are more groups than this, the medians of neighbours are pooled. The number of pairs grows with the square, and a trend over
/// the whole measurement shows in this many groups as well.
const MAX_GROUPS: usize = 256;
/// The probability of an apparent trend among groups in random order, in either direction.
const LEVEL: f64 = 0.01;
/// The normal distribution's quantile for [`LEVEL`].
const Z: f64 = 2.576;
/// The smallest change over the whole measurement that counts. A smaller one is within twice the usual interval, and moves the median by
/// half of itself.
const MIN_CHANGE: f64 = 0.02;
/// The smallest change in median absolute deviations of the groups from the trend. Four of them are 2.7 standard deviations of a normal
/// distribution: a smaller change is within what single groups differ by anyway.
const MIN_MADS: f64 = 4.0;

/// The drift of samples grouped by burst, in order of time; `None` if there is none.
///
/// It must be significant: by the rank correlation of the groups' medians with time (H. B. Mann, "Nonparametric Tests Against Trend",
/// Econometrica 13, 1945; M. G. Kendall's S, exact for up to 40 groups), at the 1 % level. And it must matter: the slope (the median of the
/// slopes of all pairs: H. Theil, 1950; P. K. Sen, 1968) times the number of groups less one is at least 2 % of the median, and stands out
/// from the spread of the groups about it. Groups that are not independent, because something changes more slowly than a burst lasts, show a trend more often: they did drift.
pub fn drift(groups: &[Vec<f64>]) -> Option<Drift> {
    let medians: Vec<f64> = groups.iter().filter_map(|g| stats::median(g)).collect();
    let pooled = medians.len().div_ceil(MAX_GROUPS).max(1);
    let medians: Vec<f64> = medians.chunks(pooled).filter_map(stats::median).collect();
    let n = medians.len();
    if n < MIN_GROUPS {
        return None;
    }
    let pairs = || (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let s: i64 = pairs().map(|(i, j)| sign(medians[j] - medians[i])).sum();
    if !significant(n, s.unsigned_abs() as usize) {
        return None;
    }
    let slopes: Vec<f64> = pairs().map(|(i, j)| (medians[j] - medians[i]) / (j - i) as f64).collect();
    let slope = stats::median(&slopes)?;
    let about: Vec<f64> = medians.iter().enumerate().map(|(i, m)| m - slope * i as f64).collect();
    let rise = slope * (n - 1) as f64;
    let change = rise / stats::median(&medians).filter(|m| *m > 0.0)?;
    let tau = s as f64 / (n * (n - 1) / 2) as f64;
    (change.abs() >= MIN_CHANGE && rise.abs() >= MIN_MADS * stats::mad(&about)?).then_some(Drift { change, tau })
}

fn sign(x: f64) -> i64 {
    i64::from(x > 0.0) - i64::from(x < 0.0)
}

/// Whether a Kendall's S this far from 0 among `n` values is unlikely to be chance.
fn significant(n: usize, s: usize) -> bool {
    let pairs_in_all = n * (n - 1) / 2;
    if n > EXACT {
        let variance = (n * (n - 1) * (2 * n + 5)) as f64 / 18.0;
        return (s as f64 - 1.0) / variance.sqrt() > Z;
    }
    // The share of the orders of n values that have each number of inversions. The n-th value adds 0 to n - 1 inversions, each equally
    // often.
    let mut shares = vec![1.0];
    for k in 2..=n {
        let mut next = vec![0.0; shares.len() + k - 1];
        for (inversions, share) in shares.iter().enumerate() {
            for more in 0..k {
                next[inversions + more] += share / k as f64;
            }
        }
        shares = next;
    }
    // S is the number of pairs less twice the inversions.
    let tail: f64 = shares.iter().take((pairs_in_all - s.min(pairs_in_all)) / 2 + 1).sum();
    2.0 * tail <= LEVEL
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Groups of samples around 100 with 1 % noise, `change` added from the first to the last.
    fn groups(random: &mut Xoshiro256PlusPlus, count: usize, change: f64) -> Vec<Vec<f64>> {
        let mut uniform = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let at = |i: usize| i as f64 / (count - 1) as f64;
        (0..count).map(|i| (0..12).map(|_| 100.0 * (1.0 + change * at(i)) + 2.0 * (uniform() - 0.5)).collect()).collect()
    }

    #[test]
    fn what_rises_or_falls_is_found_with_its_size() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        for change in [0.05, -0.05, 0.2] {
            for count in [6, 12, 60] {
                let found = drift(&groups(&mut random, count, change)).unwrap();
                assert!((found.change - change).abs() < 0.25 * change.abs() && found.tau.signum() == change.signum(), "{found:?}");
            }
        }
    }

    #[test]
    fn noise_is_no_drift() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(8);
        for count in [6, 12, 60] {
            assert!((0..300).all(|_| drift(&groups(&mut random, count, 0.0)).is_none()), "{count} groups");
        }
        let mut wide = |count: usize| -> Vec<Vec<f64>> { (0..count).map(|_| vec![80.0 + (random.next_u64() % 40) as f64]).collect() };
        let found = (0..1000).filter(|_| drift(&wide(12)).is_some()).count();
        assert!(found <= 20, "{found} of 1000 with 20 % noise, of which 1 % may");
    }

    #[test]
    fn shuffled_noise_of_any_shape_has_no_drift_and_a_true_one_is_found_through_it() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
        let mut uniform = || ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        // Heavy tails; three bursts of ten slower by half; a clock so coarse that most are equal.
        let shapes: [fn(f64, f64) -> f64; 3] = [
            |u, _| 90.0 + 10.0 * u.powf(-0.7),
            |u, v| if u < 0.3 { 150.0 + 5.0 * v } else { 100.0 + 2.0 * v },
            |u, _| 100.0 + 10.0 * (4.0 * u).floor(),
        ];
        for (i, shape) in shapes.iter().enumerate() {
            for count in [6, 12, 60] {
                let mut found = |change: f64| {
                    let at = |i: usize| 1.0 + change * i as f64 / (count - 1) as f64;
                    let mut runs = || (0..count).map(|i| vec![shape(uniform(), uniform()) * at(i)]).collect::<Vec<_>>();
                    (0..250).filter(|_| drift(&runs()).is_some()).count()
                };
                let (chance, true_drifts) = (found(0.0), found(2.0));
                assert!(chance <= 5, "shape {i}, {count} bursts: {chance} of 250 by chance");
                assert!(count < 12 || true_drifts >= 225, "shape {i}, {count} bursts: {true_drifts} of 250 found");
            }
        }
    }

    #[test]
    fn a_step_up_and_down_again_is_no_trend() {
        let hill: Vec<Vec<f64>> = [100.0, 105.0, 110.0, 115.0, 115.1, 110.1, 105.1, 100.1].iter().map(|v| vec![*v]).collect();
        assert_eq!(drift(&hill), None);
        assert_eq!(drift(&[vec![1.0], vec![2.0], vec![3.0], vec![4.0], vec![5.0]]), None, "five are too few");
    }

    #[test]
    fn kendalls_distribution_is_counted_right() {
        // Of 720 orders of six values 1 is sorted and 5 are one swap away; of seven, 5040: 1, 6, and 20 two swaps away.
        assert!(significant(6, 15) && !significant(6, 13), "2 in 720, and 12");
        assert!(significant(7, 19) && !significant(7, 17), "14 in 5040, and 54");
        // Both ways agree where they meet: of 40 values the quantile is 222.2.
        assert!(significant(40, 226) && !significant(40, 218));
    }
}
