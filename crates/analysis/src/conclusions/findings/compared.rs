//! How many numbers of a check were compared, with what, and how far they are from it.

use memgauge_model::experiment::Metric;
use memgauge_model::result::{Compared, ComparedWith, Measurement, Report, VerdictReason, VerdictStatus};

use crate::conclusions::findings::compare::{
    AmongSiblings, Bounds, FAIL_DIFFERENCE, counterpart, families, has_value, is_judged, machine_difference,
};
use crate::conclusions::findings::fleet;
use crate::conclusions::findings::history::Usual;
use crate::conclusions::findings::rules::Baselines;

/// How far numbers are from what they are compared with; why others were not compared.
#[derive(Default)]
struct Tally {
    worse_by: Vec<(usize, Option<f64>)>,
    unreliable: u32,
    undecided: u32,
    absent: u32,
}

/// The outcome of comparing a number.
enum Outcome {
    /// The number, or what it would be compared with, cannot be relied on.
    Unreliable,
    /// At least 10 % worse, but not flagged: it may be chance, so it has not passed.
    Undecided,
    /// Worse by this share; better if it is negative.
    WorseBy(f64),
}

impl Outcome {
    fn new(by: f64, is_flagged: bool) -> Self {
        if by >= FAIL_DIFFERENCE && !is_flagged { Self::Undecided } else { Self::WorseBy(by) }
    }

    /// Of two numbers with their intervals, each `None` if it cannot be relied on.
    fn of(own: Option<Bounds>, reference: Option<Bounds>, metric: Metric) -> Self {
        let Some((own, reference)) = own.zip(reference) else { return Self::Unreliable };
        Self::new(metric.worse_by(own.value, reference.value), own.worse_than(reference, metric).is_some())
    }
}

impl Tally {
    /// `compare`: the outcome for the number of this index; `None` if there is nothing to compare it with.
    fn new(results: &[&Measurement], compare: impl Fn(usize) -> Option<Outcome>) -> Self {
        let mut tally = Self::default();
        for index in (0..results.len()).filter(|&index| is_judged(results[index])) {
            match compare(index) {
                Some(Outcome::WorseBy(by)) => tally.worse_by.push((index, Some(by))),
                Some(Outcome::Unreliable) => tally.unreliable += 1,
                Some(Outcome::Undecided) => tally.undecided += 1,
                None => tally.absent += 1,
            }
        }
        tally
    }

    /// `None` if there is nothing to compare any number with.
    fn compared(self, with: ComparedWith) -> Option<(Compared, Vec<usize>)> {
        if self.worse_by.is_empty() && self.unreliable + self.undecided == 0 {
            return None;
        }
        let compared = Compared {
            numbers: self.worse_by.len() as u32,
            unreliable: self.unreliable,
            undecided: self.undecided,
            absent: self.absent,
            worst: self.worse_by.iter().filter_map(|(_, by)| *by).max_by(f64::total_cmp),
            ..Compared::new(with)
        };
        Some((compared, self.worse_by.into_iter().map(|(index, _)| index).collect()))
    }
}

/// The references that the numbers of this report were compared with, or would have been if they were reliable, and the indices of the numbers
/// that were compared. A number that is not reliable, has no interval, or is worse by 10 % or more, perhaps by chance, was not compared.
pub(super) fn compared(report: &Report, results: &[&Measurement], references: Baselines<'_>) -> Vec<(Compared, Vec<usize>)> {
    let families = families(report, results, has_value);
    let siblings = Tally::new(results, |index| {
        let members = families.iter().find(|members| members.contains(&index))?;
        let among = AmongSiblings::new(results, members, index);
        let Some(AmongSiblings { own, theirs, others, .. }) = among else { return Some(Outcome::Unreliable) };
        let outcome = |own, theirs| Outcome::of(Some(own), Some(theirs), results[index].metric);
        // Of two parts, either may be the wrong one.
        match outcome(theirs, own) {
            Outcome::Undecided if others.len() == 1 => Some(Outcome::Undecided),
            _ => Some(outcome(own, theirs)),
        }
    });
    let limit = Tally::new(results, |index| {
        let m = results[index];
        let value = m.evidence.traffic.and_then(|t| t.bus_estimate_gbs).or(m.estimate.value)?;
        let share = value / m.verdict.limit?;
        match m.verdict.status {
            VerdictStatus::Unknown => (m.verdict.reason == VerdictReason::Unreliable).then_some(Outcome::Unreliable),
            VerdictStatus::Ok | VerdictStatus::Warning | VerdictStatus::Failure => Some(Outcome::WorseBy(1.0 - share)),
        }
    });
    let mut found: Vec<(Compared, Vec<usize>)> =
        [siblings.compared(ComparedWith::Siblings), limit.compared(ComparedWith::Limit)].into_iter().flatten().collect();
    if let Some(baseline) = references.baseline.filter(|baseline| machine_difference(report, baseline).is_none()) {
        let tally = Tally::new(results, |index| {
            let before = counterpart(report, results[index], baseline)?;
            Some(Outcome::of(Bounds::new(results[index]), Bounds::new(before), before.metric))
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
        let worse_by = indices.into_iter().map(|index| (index, None)).collect();
        let tally = Tally { worse_by, absent: absent as u32, ..Tally::default() };
        found.extend(tally.compared(ComparedWith::Rules));
    }
    if let Some(group) = fleet::group(references) {
        // A fleet's two populations may be far apart, so only its bar decides.
        let tally =
            Tally::new(results, |index| Some(fleet::worse_by(results[index], group)?.map_or(Outcome::Unreliable, Outcome::WorseBy)));
        found.extend(
            tally
                .compared(ComparedWith::Fleet)
                .map(|(compared, indices)| (Compared { count: Some(group.group.hosts), ..compared }, indices)),
        );
    }
    let tally = Tally::new(results, |index| {
        let usual = Usual::of(report, results[index], references.history)?;
        let outcome = |own: Bounds| Outcome::new(usual.worse_by(own.value), usual.slower_by(own).is_some());
        Some(Bounds::new(results[index]).map_or(Outcome::Unreliable, outcome))
    });
    found.extend(tally.compared(ComparedWith::History).map(|(compared, indices)| {
        let since = references.history.first().map(|check| check.started.utc.clone());
        (Compared { since, count: Some(references.history.len() as u32), ..compared }, indices)
    }));
    found
}
