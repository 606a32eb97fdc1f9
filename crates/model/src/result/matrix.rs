//! All pairs of many CPUs as one object: a million results of their own would be gigabytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::estimate::{Estimate, NotMeasured};
use crate::experiment::{ChaseOrder, Coordinates, Experiment, LineState, MemoryPlace, Unit};
use crate::result::evidence::Evidence;
use crate::result::measurement::{Quality, QualityLevel, QualityReason};
use crate::topology::Topology;

/// One number for every two of some CPUs, all measured alike: row after row by reader, in each row holder after holder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairMatrix {
    /// What was measured.
    pub experiment: Experiment,
    /// State of the lines.
    pub state: LineState,
    /// The node that all lines are at home on; absent if each reader's lines are at home on its own node, or the nearest that may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<u32>,
    /// Order of the chase, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<ChaseOrder>,
    /// Directory whose files were used as memory; absent for memory without a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_dir: Option<String>,
    /// The unit of `values`.
    pub unit: Unit,
    /// The CPUs of the rows and of the columns.
    pub cpus: Vec<u32>,
    /// The medians, to four significant digits; `null` where there is nothing to measure or nothing was measured.
    pub values: Vec<Vec<Option<f32>>>,
    /// Half of the width of the 95 % interval in percent of the value, rounded up; `null` where there is none.
    pub half_width_percent: Vec<Vec<Option<u8>>>,
    /// Whether to trust each number, a letter for each holder: `g` good, `d` degraded, `-` none.
    pub quality: Vec<String>,
    /// Why numbers are degraded, and how many of them.
    pub reasons: BTreeMap<QualityReason, u32>,
    /// Why pairs that were measured have no number, an entry for each cause. Pairs in none of them were not measured before the run ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_measured: Vec<PairsNotMeasured>,
    /// Observations while they were measured: over all pairs, the highest share of time that others took, and the sum of events. The
    /// placement of pages was read back once for each buffer.
    pub evidence: Evidence,
}

/// Pairs without a number, for one cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairsNotMeasured {
    /// The cause, with the CPUs of all these pairs, and the largest share of time.
    pub why: NotMeasured,
    /// Reader and holder of each.
    pub pairs: Vec<(u32, u32)>,
}

const GOOD: &str = "g";
const DEGRADED: &str = "d";
const NONE: char = '-';

/// One number of a matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatrixPair {
    /// The CPU that reads.
    pub reader: u32,
    /// The CPU that has the lines.
    pub holder: u32,
    /// The number.
    pub value: f64,
    /// Half of the width of its interval.
    pub half_width: Option<f64>,
}

/// The number of a pair, if it was measured, and whether to trust it.
pub type PairNumber = (Option<f64>, QualityLevel);

impl PairMatrix {
    /// The coordinates that all pairs have in common.
    pub fn shared_coordinates(&self) -> Coordinates {
        Coordinates {
            state: Some(self.state),
            order: self.order,
            memory: self.home.map(MemoryPlace::Node),
            memory_dir: self.memory_dir.clone(),
            ..Coordinates::default()
        }
    }

    /// A matrix without a number, for these CPUs, ascending.
    pub fn new(cpus: Vec<u32>, state: LineState, home: Option<u32>) -> Self {
        let n = cpus.len();
        Self {
            experiment: Experiment::CacheToCacheMatrix,
            state,
            home,
            order: None,
            memory_dir: None,
            unit: Unit::Nanoseconds,
            cpus,
            values: vec![vec![None; n]; n],
            half_width_percent: vec![vec![None; n]; n],
            quality: vec![String::from(NONE).repeat(n); n],
            reasons: BTreeMap::new(),
            not_measured: Vec::new(),
            evidence: Evidence::default(),
        }
    }

    /// Enters the number of a pair; CPUs that are not in the matrix, and estimates without a value, change nothing.
    pub fn set(&mut self, reader: u32, holder: u32, estimate: &Estimate, quality: &Quality) {
        let place = |cpu: u32| self.cpus.binary_search(&cpu).ok();
        let (Some(row), Some(column), Some(value)) = (place(reader), place(holder), estimate.value.filter(|v| *v > 0.0)) else { return };
        let scale = 10_f64.powi(3 - value.log10().floor() as i32);
        self.values[row][column] = Some(((value * scale).round() / scale) as f32);
        let width = estimate.ci95_low.zip(estimate.ci95_high).map(|(low, high)| high - low);
        // Converting a float to an integer saturates.
        self.half_width_percent[row][column] = width.map(|width| (50.0 * width / value).ceil() as u8);
        let letter = if quality.level == QualityLevel::Good { GOOD } else { DEGRADED };
        self.quality[row].replace_range(column..=column, letter);
        quality.reasons.iter().for_each(|reason| *self.reasons.entry(*reason).or_default() += 1);
    }

    /// Enters why a pair has no number.
    pub fn miss(&mut self, reader: u32, holder: u32, why: NotMeasured) {
        let alike = |entry: &&mut PairsNotMeasured| std::mem::discriminant(&entry.why) == std::mem::discriminant(&why);
        let Some(entry) = self.not_measured.iter_mut().find(alike) else {
            return self.not_measured.push(PairsNotMeasured { why, pairs: vec![(reader, holder)] });
        };
        entry.pairs.push((reader, holder));
        match (&mut entry.why, why) {
            (NotMeasured::CpuTakenAway { percent }, NotMeasured::CpuTakenAway { percent: more }) => *percent = more.max(*percent),
            (NotMeasured::NeverTogether { cpus }, NotMeasured::NeverTogether { cpus: more }) => {
                more.iter().for_each(|cpu| cpus.insert(cpu));
            }
            _ => {}
        }
    }

    /// Why pairs have no number, by reader and holder.
    pub fn why_not(&self) -> BTreeMap<(u32, u32), &NotMeasured> {
        self.not_measured.iter().flat_map(|entry| entry.pairs.iter().map(|pair| (*pair, &entry.why))).collect()
    }

    /// Degrades every number, for a reason that all have.
    pub fn degrade(&mut self, reason: QualityReason) {
        self.quality.iter_mut().for_each(|row| *row = row.replace(GOOD, DEGRADED));
        self.reasons.insert(reason, self.pairs().count() as u32);
    }

    /// Every number that was measured.
    pub fn pairs(&self) -> impl Iterator<Item = MatrixPair> {
        let at = |row: usize, column: usize| {
            // Files may have been written by others: rows may be short.
            let value = f64::from((*self.values.get(row)?.get(column)?)?);
            let percent = self.half_width_percent.get(row).and_then(|widths| *widths.get(column)?);
            let half_width = percent.map(|p| value * f64::from(p) / 100.0);
            Some(MatrixPair { reader: self.cpus[row], holder: self.cpus[column], value, half_width })
        };
        let n = self.cpus.len();
        (0..n * n).filter_map(move |i| at(i / n, i % n))
    }

    /// The number of a row and a column as it is written, without the further digits that a float of 32 bits has; `None` where nothing was
    /// measured.
    pub fn value(&self, row: usize, column: usize) -> Option<f64> {
        (*self.values.get(row)?.get(column)?)?.to_string().parse().ok().filter(|v: &f64| v.is_finite())
    }

    /// Whether to trust the number of a row and a column.
    pub fn quality(&self, row: usize, column: usize) -> QualityLevel {
        match self.quality.get(row).and_then(|letters| letters.get(column..=column)) {
            Some(GOOD) => QualityLevel::Good,
            Some(DEGRADED) => QualityLevel::Degraded,
            _ => QualityLevel::None,
        }
    }

    /// The number of each pair and whether to trust it, by the nodes of the two CPUs, which are in the coordinates.
    pub fn between_nodes(&self, topology: &Topology) -> Vec<(Coordinates, Vec<PairNumber>)> {
        let nodes: Vec<Option<u32>> = self.cpus.iter().map(|&cpu| topology.cpu(cpu).map(|c| c.node)).collect();
        let mut pairs: BTreeMap<(Option<u32>, Option<u32>), Vec<PairNumber>> = BTreeMap::new();
        for (row, reader) in nodes.iter().enumerate() {
            for (column, holder) in nodes.iter().enumerate().filter(|(column, _)| *column != row) {
                pairs.entry((*reader, *holder)).or_default().push((self.value(row, column), self.quality(row, column)));
            }
        }
        let at = |(cpu_node, holder_node)| Coordinates { cpu_node, holder_node, ..self.shared_coordinates() };
        pairs.into_iter().map(|(nodes, pairs)| (at(nodes), pairs)).collect()
    }

    /// How many numbers are good, degraded and missing.
    pub fn counts(&self) -> (u32, u32, u32) {
        let count = |letter: &str| self.quality.iter().map(|row| row.matches(letter).count() as u32).sum::<u32>();
        let (good, degraded, all) = (count(GOOD), count(DEGRADED), self.cpus.len() as u32);
        (good, degraded, all * all.saturating_sub(1) - good - degraded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits_and_widths_are_rounded_up() {
        let mut matrix = PairMatrix::new(vec![1, 4, 9], LineState::Hitm, None);
        let estimate = Estimate { value: Some(123.456), ci95_low: Some(122.0), ci95_high: Some(124.9), ..Estimate::default() };
        let degraded = Quality { level: QualityLevel::Degraded, reasons: vec![QualityReason::NotConverged] };
        matrix.set(9, 1, &estimate, &Quality::default());
        matrix.set(1, 4, &Estimate { value: Some(20.0), ..Estimate::default() }, &degraded);
        matrix.set(1, 5, &estimate, &degraded);
        assert_eq!((matrix.values[2][0], matrix.half_width_percent[2][0]), (Some(123.5), Some(2)));
        assert_eq!(matrix.quality, ["-d-", "---", "g--"]);
        assert_eq!((matrix.counts(), matrix.reasons.get(&QualityReason::NotConverged)), ((1, 1, 4), Some(&1)));
        let pairs: Vec<_> = matrix.pairs().map(|p| (p.reader, p.holder, p.half_width.is_some())).collect();
        assert_eq!(pairs, [(1, 4, false), (9, 1, true)]);
        assert_eq!((matrix.value(2, 0), matrix.value(0, 0), matrix.value(9, 9)), (Some(123.5), None, None));
        assert_eq!([(0, 1), (2, 0), (0, 0), (9, 9)].map(|(row, column)| matrix.quality(row, column)), {
            use QualityLevel::*;
            [Degraded, Good, None, None]
        });
        matrix.degrade(QualityReason::PlacementWrong);
        assert_eq!((matrix.counts(), matrix.reasons[&QualityReason::PlacementWrong]), ((0, 2, 4), 2));
    }

    #[test]
    fn each_pair_without_a_number_has_its_cause() {
        let mut matrix = PairMatrix::new(vec![1, 4, 9], LineState::Hitm, None);
        let together = |cpus: &str| NotMeasured::NeverTogether { cpus: cpus.parse().unwrap() };
        matrix.miss(1, 4, NotMeasured::CpuTakenAway { percent: 97 });
        matrix.miss(4, 1, together("1,4"));
        matrix.miss(9, 4, NotMeasured::CpuTakenAway { percent: 92 });
        matrix.miss(9, 1, together("1,9"));
        let taken = NotMeasured::CpuTakenAway { percent: 97 };
        let all = together("1,4,9");
        assert_eq!(matrix.why_not(), [((1, 4), &taken), ((4, 1), &all), ((9, 1), &all), ((9, 4), &taken)].into());
        assert_eq!((matrix.not_measured.len(), matrix.counts()), (2, (0, 0, 6)));
        let again: PairMatrix = serde_json::from_value(serde_json::to_value(&matrix).unwrap()).unwrap();
        assert_eq!(again, matrix);
    }
}
