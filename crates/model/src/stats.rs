//! Statistics without assumptions about distributions: medians, order statistics, clusters.
//!
//! Timings are neither normal nor symmetric, so results are medians with intervals from order statistics (T. Hoefler, R. Belli,
//! "Scientific Benchmarking of Parallel Computing Systems", SC'15, rules 5 to 7). Values that are not finite are left out everywhere.

use std::ops::Range;

use crate::estimate::{Estimate, Mode, NotMeasured};

/// A sample rounded to six significant digits: a millionth of it is less than any clock resolves, and files stay small.
pub fn significant(sample: f64) -> f64 {
    format!("{sample:.5e}").parse().unwrap_or(sample)
}

/// The finite values, ascending.
pub fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = samples.iter().copied().filter(|x| x.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The value below which the share `q` (0 to 1) of ascending `sorted` lies, interpolated linearly between neighbours (R. Hyndman,
/// Y. Fan, "Sample Quantiles in Statistical Packages", 1996, definition 7). `None` without samples, or if `q` is not between 0 and 1.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let position = sorted.len().checked_sub(1)? as f64 * q;
    let (low, high) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    Some(low + (high - low) * position.fract())
}

/// The arithmetic mean; `None` of nothing.
pub fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// The median; `None` without finite samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    quantile(&sorted(samples), 0.5)
}

/// Median of the absolute deviations from the median, not scaled to a standard deviation; `None` without finite samples.
pub fn mad(samples: &[f64]) -> Option<f64> {
    let centre = median(samples)?;
    let deviations: Vec<f64> = samples.iter().map(|x| (x - centre).abs()).collect();
    median(&deviations)
}

/// The 0.975 quantile of the normal distribution.
pub const NORMAL_95: f64 = 1.959_964;
/// Above this many samples the binomial distribution is approximated by the normal one. Its standard deviation is then 16 ranks, and the
/// error a fraction of a rank.
const LARGE: usize = 1000;

/// Non-parametric 95 % interval of the median of independent samples, ascending: the narrowest pair of order statistics, symmetric in
/// rank, that covers it with at least 95 %, by the binomial distribution with p = 1/2 (H. A. David, H. N. Nagaraja, "Order Statistics",
/// 7.1). `None` below six samples: even smallest to largest covers the median in only 1 - 2 * 2^-n of cases, 93.75 % of five.
pub fn median_interval(sorted: &[f64]) -> Option<(f64, f64)> {
    let n = sorted.len();
    let below = ranks_outside(n)?;
    Some((sorted[below], sorted[n - 1 - below]))
}

/// How many samples to leave out at either end: the largest k with P(X <= k) <= 2.5 %, X binomial (n, 1/2).
fn ranks_outside(n: usize) -> Option<usize> {
    if n > LARGE {
        return Some((n as f64 / 2.0 - NORMAL_95 * (n as f64).sqrt() / 2.0) as usize - 1);
    }
    let mut probability = 0.5_f64.powi(n as i32);
    let mut tail = probability;
    if tail > 0.025 {
        return None;
    }
    let mut count = 0;
    loop {
        probability *= (n - count) as f64 / (count + 1) as f64;
        tail += probability;
        if tail > 0.025 {
            return Some(count);
        }
        count += 1;
    }
}

/// The 0.975 quantile of Student's t with `freedom` degrees of freedom (at least one).
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    TABLE.get(freedom.saturating_sub(1)).copied().unwrap_or_else(|| {
        // Cornish-Fisher expansion; right to 0.003 from 11 degrees on.
        let f = freedom as f64;
        NORMAL_95 + 2.372 / f + 2.823 / (f * f)
    })
}

/// When the spread of the allocations' medians is estimated, one in this many at each end is replaced by its neighbour (winsorizing), so
/// that a single disturbed burst does not widen the interval (K. Yuen, "The two-sample trimmed t for unequal population variances", 1974).
const TRIM_ONE_IN: usize = 10;

/// The fewest groups whose samples reach far enough: of fewer, all lie on one side of the long-run median in more than 5 % of runs (2 * 2^-n).
const FEWEST_GROUPS: usize = 6;

/// The two parts of the interval of [`estimate`], and what bounds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Order statistics of all samples, as if each were independent.
    pub pooled: (f64, f64),
    /// The interval from the spread of the allocations' medians; `None` with one allocation.
    pub between: Option<(f64, f64)>,
    /// The interval is cut to these: the smallest and the largest sample. With two to five allocations, the range of the samples below and
    /// above these, but not less than half of a positive smallest sample.
    pub bounds: (f64, f64),
}

impl Interval {
    /// The union of the two, cut to the bounds: the interval that results state. It holds the median of all samples.
    pub fn hull(&self) -> (f64, f64) {
        let (low, high) = self.reach();
        (low.max(self.bounds.0), high.min(self.bounds.1))
    }

    /// The union of both intervals, before the cut. A few allocations that differ do not show how much others would, so their bounds must
    /// not pass for a narrow interval.
    fn reach(&self) -> (f64, f64) {
        let between = self.between.unwrap_or(self.pooled);
        (self.pooled.0.min(between.0), self.pooled.1.max(between.1))
    }
}

/// The 95 % interval of the long-run median from samples grouped by allocation; `None` below six samples.
///
/// Samples of one allocation are not independent: which physical pages a buffer got shifts them together, and more samples of the same
/// pages do not tell by how much. Nor are allocations: neighbours, refresh, temperature and a hypervisor shift everything for seconds at a
/// time, and such noise does not average out however long a run is (its Allan deviation is flat). So the pooled interval of
/// [`median_interval`], which sees only the spread of samples, is combined with a second interval: Student's t times the winsorized
/// standard deviation of the allocations' medians, *not* divided by the root of their number. The result is the union of the two, cut to
/// [`Interval::bounds`]: one disturbed allocation of three makes Student's interval reach below zero and far above every sample. This is
/// the one place that assumes a distribution: order statistics of three to five medians cannot reach 95 % at any width, and medians of
/// several samples are close enough to normal.
///
/// In the simulations of `tests/stats.rs` the interval covers the long-run median at least as often as claimed, even if the allocations of
/// a run differ three times as much as samples do, samples have heavy tails, or one allocation of three is disturbed. On a shared
/// virtual machine, whose memory latency wandered by 2.5 % over three minutes, it covered that time's median in 76 of 100 runs of 12
/// allocations and in 82 of 100 of 20; divided by the root it covered it in 35.
///
/// It does not include what differs between runs of the program but not between the allocations of one run.
pub fn interval(groups: &[Vec<f64>]) -> Option<Interval> {
    let values = sorted(&groups.concat());
    let pooled = median_interval(&values)?;
    let medians = sorted(&groups.iter().filter_map(|group| median(group)).collect::<Vec<_>>());
    let between = (medians.len() > 1).then(|| {
        let trimmed = medians.len() / TRIM_ONE_IN;
        let (low, high) = (medians[trimmed], medians[medians.len() - 1 - trimmed]);
        let winsorized: Vec<f64> = medians.iter().map(|m| m.clamp(low, high)).collect();
        let count = winsorized.len() as f64;
        let mean = winsorized.iter().sum::<f64>() / count;
        let variance = winsorized.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let kept = 1.0 - 2.0 * trimmed as f64 / count;
        // Not divided by the root of their number: what shifts allocations may shift all of a run together.
        let half = student(medians.len() - 2 * trimmed - 1) * variance.sqrt() / kept;
        (mean - half, mean + half)
    });
    Some(Interval { pooled, between, bounds: bounds(&values, medians.len())? })
}

/// The bounds of an interval from ascending samples of this number of groups.
fn bounds(sorted: &[f64], groups: usize) -> Option<(f64, f64)> {
    let (smallest, largest) = (*sorted.first()?, *sorted.last()?);
    if !(2..FEWEST_GROUPS).contains(&groups) {
        return Some((smallest, largest));
    }
    // A range of huge samples may be infinite.
    let range = Some(largest - smallest).filter(|range| range.is_finite()).unwrap_or(0.0);
    let least = if smallest > 0.0 { smallest / 2.0 } else { f64::MIN };
    Some(((smallest - range).max(least), (largest + range).min(f64::MAX)))
}

/// Whether half of the width of the samples' [`interval`], before it was cut to its bounds, is at most `relative_half_width` of their
/// median.
pub fn converged(groups: &[Vec<f64>], relative_half_width: f64) -> bool {
    let value = quantile(&sorted(&groups.concat()), 0.5);
    value.zip(interval(groups)).is_some_and(|(value, interval)| narrow(interval.reach(), value, relative_half_width))
}

fn narrow((low, high): (f64, f64), value: f64, relative_half_width: f64) -> bool {
    (high - low) / 2.0 <= relative_half_width * value.abs()
}

/// Sums up samples grouped by fresh allocation: the median of all samples with the interval of [`interval`], [`converged`] or not.
pub fn estimate(groups: &[Vec<f64>], relative_half_width: f64) -> Estimate {
    let values = sorted(&groups.concat());
    let Some(value) = quantile(&values, 0.5) else {
        return Estimate { not_measured: Some(NotMeasured::NoSamples), ..Estimate::default() };
    };
    let interval = interval(groups);
    let ends = interval.map(|i| i.hull());
    Estimate {
        value: Some(value),
        n: values.len() as u32,
        min: values.first().copied(),
        max: values.last().copied(),
        mad: mad(&values),
        ci95_low: ends.map(|e| e.0),
        ci95_high: ends.map(|e| e.1),
        converged: interval.is_some_and(|i| narrow(i.reach(), value, relative_half_width)),
        modes: modes(&values),
        outliers: outliers(&values),
        ..Estimate::default()
    }
}

/// A modified z-score above this is an outlier (B. Iglewicz, D. Hoaglin, "How to Detect and Handle Outliers", 1993).
const OUTLYING: f64 = 3.5;
/// Median absolute deviations in a standard deviation of normal samples.
const MAD_OF_SIGMA: f64 = 0.6745;
/// The spread counts as at least this share of the median. With a coarse clock most samples are equal, and the next tick is not an outlier.
const MIN_SPREAD: f64 = 0.001;

/// The share of ascending samples that are outliers; `None` if there are none.
pub fn outliers(sorted: &[f64]) -> Option<f64> {
    let (centre, spread) = (quantile(sorted, 0.5)?, mad(sorted)?);
    let far = OUTLYING * spread.max(MIN_SPREAD * centre.abs()) / MAD_OF_SIGMA;
    let outside = sorted.iter().filter(|x| (*x - centre).abs() > far).count();
    (outside > 0).then(|| outside as f64 / sorted.len() as f64)
}

/// A cluster has at least this share of the samples. Rarer samples are outliers.
const MIN_SHARE: f64 = 0.1;
/// A cluster has at least this many samples: fewer may lie close together by chance.
const MIN_COUNT: usize = 3;
/// The medians of clusters differ by at least this factor. Levels of a memory hierarchy and home nodes do; page colours rarely do.
const MIN_RATIO: f64 = 1.1;
/// A gap this many times wider than the span of the samples on both sides is not chance.
const CLEAR_GAP: f64 = 1.5;
/// Fewer samples than this are not divided.
const MIN_SAMPLES: usize = 10;

/// The clusters that positive samples fall into, ascending; empty when there is one, or fewer than ten samples.
///
/// Samples are divided where the sum of absolute deviations of logarithms from the two parts' medians is least. Each part has at least a
/// tenth of all samples (and at least three), and the medians are at least 10 % apart. Then each part is divided likewise. A division needs
/// evidence: a gap wider than one and a half times the span of both parts (few samples, far apart), or a dip test that rejects a single
/// cluster at the 1 % level (J. A. Hartigan, P. M. Hartigan, "The Dip Test of Unimodality", Annals of Statistics 13, 1985): The test is
/// calibrated with the uniform distribution, which of all distributions with one peak is the hardest to tell from two clusters. Clusters
/// that overlap need many samples: 95 and 110 with 3 % noise need 40 to 100 if both are equally frequent, and 1000 if one is three times as
/// frequent.
pub fn modes(samples: &[f64]) -> Vec<Mode> {
    let positive: Vec<f64> = samples.iter().copied().filter(|x| *x > 0.0).collect();
    let values = sorted(&positive);
    let least = ((values.len() as f64 * MIN_SHARE).ceil() as usize).max(MIN_COUNT);
    let logs: Vec<f64> = values.iter().map(|x| x.ln()).collect();
    let mut clusters = Vec::from([Range { start: 0, end: logs.len() }]);
    let mut i = 0;
    while let Some(cluster) = clusters.get(i).cloned() {
        match cut(&logs[cluster.clone()], least) {
            Some(at) => {
                clusters[i] = cluster.start..cluster.start + at;
                clusters.insert(i + 1, cluster.start + at..cluster.end);
            }
            None => i += 1,
        }
    }
    if clusters.len() < 2 {
        return Vec::new();
    }
    let share = |c: &Range<usize>| c.len() as f64 / values.len() as f64;
    clusters.iter().filter_map(|c| Some(Mode { value: quantile(&values[c.clone()], 0.5)?, share: share(c) })).collect()
}

/// Where to divide ascending logarithms into two clusters of at least `least`; `None` when they are one.
fn cut(logs: &[f64], least: usize) -> Option<usize> {
    let n = logs.len();
    if n < MIN_SAMPLES.max(2 * least) {
        return None;
    }
    let sums: Vec<f64> = std::iter::once(0.0)
        .chain(logs.iter().scan(0.0, |sum, x| {
            *sum += x;
            Some(*sum)
        }))
        .collect();
    // Deviations from a part's median: the sum of its upper half less the sum of its lower half.
    let deviations = |from: usize, to: usize| {
        let (half_up, half_down) = ((from + to).div_ceil(2), (from + to) / 2);
        (sums[to] - sums[half_up]) - (sums[half_down] - sums[from])
    };
    let at =
        (least..=n - least).min_by(|&a, &b| (deviations(0, a) + deviations(a, n)).total_cmp(&(deviations(0, b) + deviations(b, n))))?;
    let apart = quantile(&logs[at..], 0.5)? - quantile(&logs[..at], 0.5)?;
    let spans = (logs[at - 1] - logs[0]) + (logs[n - 1] - logs[at]);
    let clear = logs[at] - logs[at - 1] > CLEAR_GAP * spans;
    (apart >= MIN_RATIO.ln() && (clear || dip(logs) > critical_dip(n))).then_some(at)
}

/// The dip that 1 % of uniform sets of `n` samples exceed: a fit to 10^5 simulated sets each of 10 to 2000 samples, right to 2 %.
fn critical_dip(n: usize) -> f64 {
    let root = (n as f64).sqrt();
    (0.627 - 0.389 / root) / root
}

/// Hartigan's dip: the least over all distributions with one peak of the greatest distance from the distribution of ascending `samples`.
///
/// Left of its peak such a distribution is convex, right of it concave. So take the greatest convex minorant and the least concave
/// majorant of the empirical distribution, find where they are furthest apart, keep the deviation that the parts outside cannot avoid,
/// and go on with what is between, until that adds nothing.
fn dip(samples: &[f64]) -> f64 {
    // Counts of samples below and up to each distinct value: the lower and upper corners of the distribution's steps.
    let mut x: Vec<f64> = samples.to_vec();
    x.dedup();
    let below: Vec<f64> = x.iter().map(|v| samples.partition_point(|s| s < v) as f64).collect();
    let up_to: Vec<f64> = x.iter().map(|v| samples.partition_point(|s| s <= v) as f64).collect();
    let (mut low, mut high) = (0, x.len() - 1);
    let mut dip = 1.0_f64;
    loop {
        let minorant = hull(&x[low..=high], &below[low..=high], 1.0);
        let majorant = hull(&x[low..=high], &up_to[low..=high], -1.0);
        // Where they are furthest apart is a corner of one of them: found between the corners of both that enclose it.
        let width = |&i: &usize| majorant.heights[i] - minorant.heights[i];
        let (left, right) = match (0..=high - low).max_by(|a, b| width(a).total_cmp(&width(b))) {
            Some(i) if width(&i) > dip => (minorant.corner_up_to(i), majorant.corner_from(i)),
            _ => break,
        };
        for i in 0..=left {
            dip = dip.max(up_to[low + i] - minorant.heights[i]);
        }
        for i in right..=high - low {
            dip = dip.max(majorant.heights[i] - below[low + i]);
        }
        if left >= right || right - left == high - low {
            break;
        }
        (low, high) = (low + left, low + right);
    }
    dip / (2 * samples.len()) as f64
}

/// A convex or concave hull of points.
struct Hull {
    /// Its corners, ascending.
    corners: Vec<usize>,
    /// Its height at every point.
    heights: Vec<f64>,
}

impl Hull {
    fn corner_up_to(&self, i: usize) -> usize {
        self.corners[self.corners.partition_point(|c| *c <= i) - 1]
    }
    fn corner_from(&self, i: usize) -> usize {
        self.corners[self.corners.partition_point(|c| *c < i)]
    }
}

/// The lower hull (`side` 1) or the upper hull (`side` -1) of points with strictly ascending `x`.
fn hull(x: &[f64], y: &[f64], side: f64) -> Hull {
    let slope = |a: usize, b: usize| side * (y[b] - y[a]) / (x[b] - x[a]);
    let mut corners: Vec<usize> = Vec::new();
    for i in 0..x.len() {
        while let [.., a, b] = corners[..]
            && slope(a, b) >= slope(b, i)
        {
            corners.pop();
        }
        corners.push(i);
    }
    let mut heights = vec![y[0]; x.len()];
    for ends in corners.windows(2) {
        for i in ends[0]..=ends[1] {
            heights[i] = y[ends[0]] + (y[ends[1]] - y[ends[0]]) * (x[i] - x[ends[0]]) / (x[ends[1]] - x[ends[0]]);
        }
    }
    Hull { corners, heights }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_small_sets() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[f64::NAN, f64::INFINITY]), None);
        assert_eq!(median(&[3.0, f64::NAN, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(mad(&[1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0]), Some(1.0));
        assert_eq!(quantile(&[1.0, 2.0], 1.5), None);
        assert_eq!(quantile(&[1.0, 2.0], f64::NAN), None);
    }

    #[test]
    fn interval_ranks_are_those_of_published_tables() {
        // One-based lower rank of the 95 % interval by n (Conover, "Practical Nonparametric Statistics"; Hollander & Wolfe).
        for (n, rank) in [(6, 1), (8, 1), (9, 2), (10, 2), (15, 4), (20, 6), (25, 8), (30, 10), (40, 14), (50, 18), (100, 40)] {
            assert_eq!(ranks_outside(n), Some(rank - 1), "n = {n}");
        }
        assert_eq!(ranks_outside(0), None);
        assert_eq!(ranks_outside(5), None);
    }

    #[test]
    fn large_sets_continue_small_ones() {
        let exact = ranks_outside(LARGE).unwrap();
        let normal = ranks_outside(LARGE + 1).unwrap();
        assert!(exact.abs_diff(normal) <= 1, "{exact} {normal}");
    }

    #[test]
    fn student_continues_its_table() {
        for (freedom, expected) in [(1, 12.706), (10, 2.228), (11, 2.201), (15, 2.131), (30, 2.042), (120, 1.980)] {
            assert!((student(freedom) - expected).abs() < 0.003, "{freedom}");
        }
    }

    #[test]
    fn nothing_measured_is_no_value() {
        for groups in [vec![], vec![vec![]], vec![vec![f64::NAN]]] {
            let e = estimate(&groups, 0.01);
            assert_eq!((e.value, e.n, e.converged), (None, 0, false));
            assert!(e.not_measured.is_some());
        }
    }

    #[test]
    fn few_samples_have_a_value_but_no_interval() {
        let e = estimate(&[vec![1.0, 1.0, 1.0, 1.0, 1.0]], 0.01);
        assert_eq!((e.value, e.ci95_low, e.ci95_high, e.converged), (Some(1.0), None, None, false));
        let e = estimate(&[vec![1.0; 6]], 0.01);
        assert_eq!((e.value, e.ci95_low, e.ci95_high, e.converged), (Some(1.0), Some(1.0), Some(1.0), true));
    }

    #[test]
    fn allocations_that_differ_widen_the_interval() {
        let alike = vec![vec![100.0, 100.2, 99.8, 100.1, 99.9]; 3];
        let e = estimate(&alike, 0.01);
        assert!(e.converged);
        let apart: Vec<Vec<f64>> = [98.0, 100.0, 102.0].iter().map(|shift| alike[0].iter().map(|x| x - 100.0 + shift).collect()).collect();
        let e = estimate(&apart, 0.01);
        assert!(!e.converged);
        // Standard deviation 2, three medians: 100 +- 4.303 * 2. The samples are from 97.8 to 102.2, and the interval is cut to three times that range.
        let (low, high) = interval(&apart).unwrap().reach();
        assert!((low - 91.39).abs() < 0.01 && (high - 108.61).abs() < 0.01, "{low} {high}");
        let close = |end: Option<f64>, expected: f64| (end.unwrap() - expected).abs() < 1e-9;
        assert!(close(e.ci95_low, 93.4) && close(e.ci95_high, 106.6), "{e:?}");
        assert!(!estimate(&apart, 0.05).converged, "their range is within 5 %, but three allocations do not tell what a fourth would be");
    }

    #[test]
    fn one_disturbed_allocation_of_three_does_not_reach_below_zero() {
        let calm = vec![22.4, 22.6, 22.5, 22.7, 22.6];
        let e = estimate(&[calm.clone(), calm, vec![60.0, 61.0, 62.0, 61.0, 90.0]], 0.01);
        // Student's interval is from -60.1 to 130.8.
        assert!(e.value == Some(22.6) && e.ci95_low == Some(11.2) && e.ci95_high.is_some_and(|high| (high - 130.8).abs() < 0.1), "{e:?}");
    }

    #[test]
    fn six_groups_stay_within_their_samples() {
        let groups = |n: u32| (0..n).map(|i| vec![100.0 + f64::from(i); 6]).collect::<Vec<_>>();
        let ends = |n| interval(&groups(n)).unwrap().hull();
        assert_eq!((ends(6), ends(1)), ((100.0, 105.0), (100.0, 100.0)));
        assert!(ends(5).0 < 98.0 && ends(5).1 > 106.0, "{:?}", ends(5));
    }

    #[test]
    fn dips_are_those_of_the_reference() {
        // Computed with diptest 0.12 (Python), which wraps the authors' algorithm as corrected in R's package of that name.
        let uniform = [0.054, 0.441, 0.478, 0.536, 0.539, 0.572, 0.617, 0.639, 0.668, 0.861, 0.876, 0.989];
        assert!((dip(&uniform) - 0.077_323_717_948_717_94).abs() < 1e-12);
        let normal = [
            -2.619, -2.053, -0.88, -0.833, -0.58, -0.545, -0.222, -0.183, -0.088, -0.057, 0.094, 0.116, 0.295, 0.298, 0.454, 0.491, 0.601,
            0.61, 0.637, 0.877, 0.928, 0.952, 1.47, 1.621, 2.817,
        ];
        assert!((dip(&normal) - 0.045_714_285_714_285_72).abs() < 1e-12);
        assert!((dip(&[0.0, 0.1, 0.2, 1.0, 1.1, 1.2]) - 0.2).abs() < 1e-12);
        assert_eq!(dip(&[1.0, 1.0, 2.0, 2.0]), 0.25, "two clusters without width have the greatest dip there is");
        assert_eq!(dip(&[1.0]), 0.5);
    }

    #[test]
    fn clusters_have_their_median_and_share() {
        let mut samples = vec![27.0; 12];
        samples.extend([105.0; 6]);
        assert_eq!(modes(&samples), [Mode { value: 27.0, share: 12.0 / 18.0 }, Mode { value: 105.0, share: 6.0 / 18.0 }]);
        samples.truncate(13);
        assert_eq!(modes(&samples), [], "one of thirteen is an outlier");
    }

    #[test]
    fn three_clusters_are_three() {
        let samples: Vec<f64> = (0..60).map(|i| [27.0, 60.0, 105.0][i % 3] * (1.0 + 0.002 * (i / 3) as f64)).collect();
        let found = modes(&samples);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.iter().all(|m| (m.share - 1.0 / 3.0).abs() < 1e-9));
    }
}
