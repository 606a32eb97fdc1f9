//! What a scan of memory says: the histogram of its regions, and which of them are weak.

use crate::result::{Estimate, Experiment, Measurement, Verdict, VerdictStatus};
use crate::stats;

/// A region is not weak while its interval reaches this close to the median of all, as a share of the median: as much as refresh,
/// the placement of pages over banks and other processes cost now and then.
pub const WEAK_SHARE: f64 = 0.05;
/// Nor while it is within so many median absolute deviations of it. Four of them are 2.7 standard deviations of a normal distribution:
/// three in a thousand on the low side, before the interval is asked for as well.
pub const WEAK_MADS: f64 = 4.0;
/// Of fewer regions none is told from the others.
const LEAST_REGIONS: usize = 3;

/// `reason` of the verdict on a weak region.
pub const WEAK: &str = "weak-region";
/// `reason` of the verdict on any other.
pub const AS_OTHERS: &str = "as-other-regions";
/// `limit_source` of both.
const SOURCE: &str = "regions-of-node";

/// The bandwidth below which a region is weak, from all regions of a node: the median less 5 % of it or less four times the
/// median absolute deviation, whichever is more. `None` for fewer than three regions.
pub fn weak_below(regions: &[f64]) -> Option<f64> {
    let regions = stats::sorted(regions);
    if regions.len() < LEAST_REGIONS {
        return None;
    }
    let median = stats::median(&regions)?;
    Some(median - (WEAK_SHARE * median).max(WEAK_MADS * stats::mad(&regions)?))
}

/// Whether all of a region's interval lies below that; where there are too few passes for an interval, all of them.
pub fn is_weak(estimate: &Estimate, below: f64) -> bool {
    estimate.value.is_some() && estimate.ci95_high.or(estimate.max).is_some_and(|high| high < below)
}

/// Judges the regions of one node against each other.
pub fn judge(regions: &mut [Measurement]) {
    let medians: Vec<f64> = regions.iter().filter_map(|m| m.estimate.value).collect();
    let below = weak_below(&medians);
    for m in regions {
        let (Some(below), Some(_)) = (below, m.estimate.value) else { continue };
        let (status, reason) = if is_weak(&m.estimate, below) { (VerdictStatus::Warning, WEAK) } else { (VerdictStatus::Ok, AS_OTHERS) };
        m.verdict = Verdict { status, reason: reason.into(), limit: Some(below), limit_source: Some(SOURCE.into()) };
    }
}

/// Whether a measurement is of a region that was found weak.
pub fn found_weak(m: &Measurement) -> bool {
    m.experiment == Experiment::MemoryScan && m.verdict.reason == WEAK
}

/// How many values lie in each bucket of this width that has any: (lower end, values), ascending. Values that are not finite are left out.
pub fn histogram(values: &[f64], bucket: f64) -> Vec<(f64, usize)> {
    if !(bucket.is_finite() && bucket > 0.0) {
        return Vec::new();
    }
    let mut buckets: Vec<(f64, usize)> = Vec::new();
    for value in stats::sorted(values) {
        let low = (value / bucket).floor() * bucket;
        match buckets.last_mut() {
            Some((last, count)) if *last == low => *count += 1,
            _ => buckets.push((low, 1)),
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(value: f64, half: f64) -> Estimate {
        Estimate {
            value: Some(value),
            ci95_low: Some(value - half),
            ci95_high: Some(value + half),
            max: Some(value + 2.0 * half),
            ..Estimate::default()
        }
    }

    #[test]
    fn five_percent_below_the_median_at_least() {
        assert_eq!(weak_below(&[100.0, 100.0, 100.0, 60.0]), Some(95.0));
        // Scattered regions: four deviations of 3.
        assert_eq!(weak_below(&[97.0, 103.0, 97.0, 103.0, 100.0]), Some(88.0));
        assert_eq!(weak_below(&[100.0, 60.0]), None);
        assert_eq!(weak_below(&[100.0, 60.0, f64::NAN]), None);
    }

    #[test]
    fn a_region_is_weak_when_all_of_its_interval_is() {
        assert!(is_weak(&region(90.0, 4.0), 95.0));
        assert!(!is_weak(&region(90.0, 6.0), 95.0));
        assert!(!is_weak(&Estimate::default(), 95.0));
        // Two passes have no interval.
        let few = |max| Estimate { value: Some(90.0), max: Some(max), ..Estimate::default() };
        assert!(is_weak(&few(94.0), 95.0) && !is_weak(&few(96.0), 95.0));
    }

    #[test]
    fn buckets_hold_what_lies_in_them() {
        assert_eq!(histogram(&[4.9, 5.0, 9.99, 10.0, 88.5, f64::NAN], 5.0), [(0.0, 1), (5.0, 2), (10.0, 1), (85.0, 1)]);
        assert_eq!(histogram(&[], 5.0), []);
        assert_eq!(histogram(&[1.0], 0.0), []);
    }
}
