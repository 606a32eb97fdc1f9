//! Persistent memory: how many writers it likes best, and how small accesses may be.

use std::collections::BTreeMap;

use memgauge_model::axis::Axis;
use memgauge_model::experiment::{Coordinates, Experiment};
use memgauge_model::interleave::Reading;
use memgauge_model::result::{AccessKnee, BestWriters, Measurement};
use memgauge_model::traffic::Mix;
use memgauge_model::units::{Bytes, IdSet};

/// Larger blocks that bring less than this share more do not matter.
const MORE: f64 = 0.1;
/// Fewer sizes of blocks make no curve.
const FEWEST_SIZES: usize = 3;

/// Whether it is one of the numbers of writers of a directory.
pub fn is_of_writers(m: &Measurement) -> bool {
    m.experiment == Experiment::BandwidthRamp && m.at.memory_dir.is_some() && m.at.mix == Some(Mix::NtWrite)
}

/// A reliable value with the lower and the upper end of its interval.
fn interval(m: &Measurement) -> Option<(f64, f64, f64)> {
    let value = m.estimate.value.filter(|v| v.is_finite() && *v > 0.0 && m.is_reliable())?;
    Some((value, m.estimate.ci95_low.unwrap_or(value), m.estimate.ci95_high.unwrap_or(value)))
}

/// The best number of writers of each node and directory that was measured with at least two.
pub fn best_writers(results: &[Measurement]) -> Vec<BestWriters> {
    let mut places: BTreeMap<Coordinates, BTreeMap<u32, (f64, f64, f64)>> = BTreeMap::new();
    for m in results.iter().filter(|m| is_of_writers(m)) {
        let writers = m.at.cpus.as_ref().map_or(0, IdSet::len) as u32;
        if let Some(reading) = interval(m).filter(|_| writers > 0) {
            places.entry(m.at.without(Axis::Cpus)).or_default().insert(writers, reading);
        }
    }
    let best = |(at, counts): (Coordinates, BTreeMap<u32, (f64, f64, f64)>)| {
        // Of equals, the fewest.
        let (&writers, &(value, low, high)) = counts.iter().rev().max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
        let fewest = counts.iter().find(|(_, (_, _, other_high))| *other_high >= low).map_or(writers, |(count, _)| *count);
        let bandwidth_gbs = Reading { value, half: (value - low).max(high - value) };
        (counts.len() > 1).then_some(BestWriters { at, writers, bandwidth_gbs, fewest })
    };
    places.into_iter().filter_map(best).collect()
}

/// The knee of each curve over the size of blocks.
pub fn access_knees(results: &[Measurement]) -> Vec<AccessKnee> {
    let mut curves: BTreeMap<Coordinates, BTreeMap<Bytes, f64>> = BTreeMap::new();
    for m in results.iter().filter(|m| m.experiment == Experiment::AccessSize) {
        if let Some((block, (value, ..))) = m.at.block.zip(interval(m)) {
            curves.entry(m.at.without(Axis::Block)).or_default().insert(block, value);
        }
    }
    let knee = |(at, curve): (Coordinates, BTreeMap<Bytes, f64>)| {
        let highest = curve.values().copied().fold(0.0, f64::max);
        let (smallest, largest) = (*curve.first_key_value()?.0, *curve.last_key_value()?.0);
        let enough = |(block, value): &(&Bytes, &f64)| curve.range(**block..).all(|(_, other)| *other <= (1.0 + MORE) * **value);
        let knee = curve.iter().find(enough).map(|(block, _)| *block).filter(|block| *block != smallest && *block != largest);
        (curve.len() >= FEWEST_SIZES).then(|| AccessKnee { at, knee, smallest_share: curve[&smallest] / highest })
    };
    curves.into_iter().filter_map(knee).collect()
}

#[cfg(test)]
mod tests {
    use memgauge_model::estimate::Estimate;
    use memgauge_model::result::QualityLevel;

    use super::*;
    use crate::conclusions::limit::tests::bandwidth;

    /// A measurement of a directory with this value and half of its interval.
    fn measured(experiment: Experiment, value: f64, half: f64) -> Measurement {
        let mut m = bandwidth("16-31", None, Mix::NtWrite, value, None);
        m.experiment = experiment;
        m.at.memory_dir = Some("/mnt/pmem".into());
        m.estimate = Estimate { value: Some(value), ci95_low: Some(value - half), ci95_high: Some(value + half), ..Estimate::default() };
        m
    }

    fn writers(count: u32, value: f64, half: f64) -> Measurement {
        let mut m = measured(Experiment::BandwidthRamp, value, half);
        m.at.cpus = Some((0..count).collect());
        m
    }

    #[test]
    fn few_writers_are_best_for_modules_that_many_disturb() {
        // As published of Optane: most with four, and less with all.
        let results = [(1, 1.9), (2, 3.6), (3, 4.55), (4, 4.6), (8, 4.1), (28, 2.9)].map(|(count, gbs)| writers(count, gbs, 0.06));
        let [best] = &best_writers(&results)[..] else { panic!("one place") };
        assert_eq!((best.writers, best.fewest, best.bandwidth_gbs.value), (4, 3, 4.6));
        assert!((best.bandwidth_gbs.half - 0.06).abs() < 1e-9 && best.at.cpus.is_none() && best.at.memory_dir.is_some());
        assert!(best_writers(&results[..1]).is_empty(), "one number is no choice");
        let mut lucky = results.to_vec();
        lucky[5].estimate.value = Some(99.0);
        lucky[5].quality.level = QualityLevel::Unreliable;
        assert_eq!(best_writers(&lucky)[0].writers, 4, "what is not reliable does not win");
        let equal = [writers(1, 5.0, 0.1), writers(2, 5.0, 0.1)];
        assert_eq!(best_writers(&equal)[0].writers, 1, "of equals the fewest");
    }

    fn knee(gbs: &[f64]) -> Option<AccessKnee> {
        let sizes = [64u64, 128, 256, 512, 1024, 2048, 4096];
        let at = |(size, gbs): (&u64, &f64)| {
            let mut m = measured(Experiment::AccessSize, *gbs, 0.01);
            m.at.block = Some(Bytes(*size));
            m
        };
        let results: Vec<Measurement> = sizes.iter().zip(gbs).map(at).collect();
        access_knees(&results).pop()
    }

    #[test]
    fn blocks_below_the_unit_of_a_module_waste_a_part_of_it() {
        let optane = knee(&[1.5, 3.0, 6.0, 6.1, 6.2, 6.3, 6.3]).unwrap();
        assert_eq!((optane.knee, optane.at.block), (Some(Bytes(256)), None));
        assert!((optane.smallest_share - 1.5 / 6.3).abs() < 1e-9);
        assert_eq!(knee(&[10.0, 10.1, 10.2, 10.1]).unwrap().knee, None, "a line is enough");
        assert_eq!(knee(&[1.0, 2.0, 4.0, 8.0]).unwrap().knee, None, "the curve still grows");
        // A disturbed size does not end the growth.
        assert_eq!(knee(&[1.5, 3.0, 2.9, 6.0, 6.1, 6.2, 6.3]).unwrap().knee, Some(Bytes(512)));
        assert_eq!(knee(&[1.0, 2.0]), None);
    }
}
