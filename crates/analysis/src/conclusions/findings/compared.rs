//! How many numbers of a check were compared, with what, and how far they are from it.

use memgauge_model::experiment::Metric;
use memgauge_model::result::{Compared, ComparedWith, Measurement, Report, VerdictReason, VerdictStatus};

use crate::conclusions::findings::compare::{AmongSiblings, Bounds, counterpart, families, has_value, is_judged, machine_difference};
use crate::conclusions::findings::fleet;
use crate::conclusions::findings::history::Usual;
use crate::conclusions::findings::rules::Baselines;

/// How far numbers are from what they are compared with; why others were not compared.
#[derive(Default)]
struct Tally {
    worse_by: Vec<(usize, Option<f64>)>,
    unreliable: u32,
    absent: u32,
}

impl Tally {
    /// `pair`: whether there is something to compare a number with, and by what share it is worse if both can be relied on.
    fn new(results: &[&Measurement], pair: impl Fn(usize) -> Option<Option<f64>>) -> Self {
        let mut tally = Self::default();
        for index in (0..results.len()).filter(|&index| is_judged(results[index])) {
            match pair(index) {
                Some(Some(by)) => tally.worse_by.push((index, Some(by))),
                Some(None) => tally.unreliable += 1,
                None => tally.absent += 1,
            }
        }
        tally
    }

    /// `None` if there is nothing to compare any number with.
    fn compared(self, with: ComparedWith) -> Option<(Compared, Vec<usize>)> {
        if self.worse_by.is_empty() && self.unreliable == 0 {
            return None;
        }
        let compared = Compared {
            numbers: self.worse_by.len() as u32,
            unreliable: self.unreliable,
            absent: self.absent,
            worst: self.worse_by.iter().filter_map(|(_, by)| *by).max_by(f64::total_cmp),
            ..Compared::new(with)
        };
        Some((compared, self.worse_by.into_iter().map(|(index, _)| index).collect()))
    }
}

/// The references that the numbers of this report were compared with, or would have been if they were reliable, and the indices of the numbers
/// that were compared. A number that is not reliable, or has no interval, was not compared.
pub(super) fn compared(report: &Report, results: &[&Measurement], references: Baselines<'_>) -> Vec<(Compared, Vec<usize>)> {
    let differ = |own: Option<Bounds>, reference: Option<Bounds>, metric: Metric| {
        own.zip(reference).map(|(own, reference)| metric.worse_by(own.value, reference.value))
    };
    let families = families(report, results, has_value);
    let siblings = Tally::new(results, |index| {
        let members = families.iter().find(|members| members.contains(&index))?;
        let among = AmongSiblings::new(results, members, index);
        Some(among.and_then(|among| differ(Some(among.own), Some(among.theirs), results[index].metric)))
    });
    let limit = Tally::new(results, |index| {
        let m = results[index];
        let value = m.evidence.traffic.and_then(|t| t.bus_estimate_gbs).or(m.estimate.value)?;
        let share = value / m.verdict.limit?;
        match m.verdict.status {
            VerdictStatus::Unknown => (m.verdict.reason == VerdictReason::Unreliable).then_some(None),
            VerdictStatus::Ok | VerdictStatus::Warning | VerdictStatus::Failure => Some(Some(1.0 - share)),
        }
    });
    let mut found: Vec<(Compared, Vec<usize>)> =
        [siblings.compared(ComparedWith::Siblings), limit.compared(ComparedWith::Limit)].into_iter().flatten().collect();
    if let Some(baseline) = references.baseline.filter(|baseline| machine_difference(report, baseline).is_none()) {
        let tally = Tally::new(results, |index| {
            let before = counterpart(report, results[index], baseline)?;
            Some(differ(Bounds::new(results[index]), Bounds::new(before), before.metric))
        });
        found.extend(tally.compared(ComparedWith::Baseline).map(|(compared, indices)| {
            let file = references.baseline_file.map(str::to_owned);
            (Compared { file, since: Some(baseline.started.utc.clone()), ..compared }, indices)
        }));
    }
    if let Some(rules) = references.rules {
        // A rule is about a number as it is.
        let ruled = |m: &Measurement| has_value(m) && rules.rules.iter().any(|rule| rule.applies_to(m));
        let indices: Vec<usize> = (0..results.len()).filter(|&index| ruled(results[index])).collect();
        let absent = results.iter().filter(|m| has_value(m)).count() - indices.len();
        let tally = Tally { worse_by: indices.into_iter().map(|index| (index, None)).collect(), unreliable: 0, absent: absent as u32 };
        found.extend(tally.compared(ComparedWith::Rules));
    }
    if let Some(group) = fleet::group(references) {
        let tally = Tally::new(results, |index| fleet::worse_by(results[index], group));
        found.extend(
            tally
                .compared(ComparedWith::Fleet)
                .map(|(compared, indices)| (Compared { count: Some(group.group.hosts), ..compared }, indices)),
        );
    }
    let tally = Tally::new(results, |index| {
        let usual = Usual::of(report, results[index], references.history)?;
        Some(Bounds::new(results[index]).map(|own| usual.worse_by(own.value)))
    });
    found.extend(tally.compared(ComparedWith::History).map(|(compared, indices)| {
        let since = references.history.first().map(|check| check.started.utc.clone());
        (Compared { since, count: Some(references.history.len() as u32), ..compared }, indices)
    }));
    found
}
