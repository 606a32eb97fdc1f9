//! The samples of a cell, burst by burst: which bursts were disturbed, and which count.
//!
//! A disturbed burst is kept and counted. Its samples count as well unless enough undisturbed ones were measured, so that a busy machine has
//! a number too, which says what it is.

use std::collections::BTreeMap;

use memgauge_analysis::conclusions::trend;
use memgauge_model::estimate::Estimate;
use memgauge_model::protocol::{MAX_FREQUENCY_CHANGE, MAX_STEAL, MAX_WAITED, MIN_UNDISTURBED, NORMAL_SWITCHES};
use memgauge_model::result::{DisturbanceCause, Neighbours, Noise, Samples};
use memgauge_model::stats;

use crate::burst::result::{BurstResult, Conditions};
use crate::burst::slots::BurstWindows;
use crate::neighbours::Others;

/// A burst's conditions, and what disturbed it.
#[derive(Clone, Copy, Default)]
pub(crate) struct BurstConditions {
    conditions: Conditions,
    cause: Option<DisturbanceCause>,
    /// A disturbance beside that: leaving slots out does not remove it.
    beside: Option<DisturbanceCause>,
    /// Frequency of a measuring core in GHz, right after the burst.
    ghz: Option<f64>,
    /// Share of the time that was left out of the samples because threads were off their CPUs; `None` where such time is in the samples, or
    /// samples are not divided so.
    left_out: Option<f64>,
    /// Share of the samples' time during which threads were off their CPUs; `None` if it is left out, or samples do not show it.
    off_cpu: Option<f64>,
    /// Share of the time during which memory did not answer threads that ran.
    stalled: Option<f64>,
    /// Shares that others used of the CPUs that share something with the measured ones.
    neighbours: Option<Neighbours>,
}

impl BurstConditions {
    /// Of a burst with its windows that count, and the frequency of one of its cores right after it.
    pub(crate) fn judge_burst(burst: &BurstResult, windows: &BurstWindows, ghz: Option<f64>) -> Self {
        let threads = burst.loads.len() + usize::from(burst.chase.is_some());
        Self::judge(threads, burst.conditions, burst.others, ghz).with_samples(windows.clean, windows.left_out, windows.stalled)
    }

    /// The same where the samples leave out time off the CPUs, as a share of all. Unless enough time was left for `clean` samples, they
    /// count with the interruptions, which took that share. `stalled` is the share of the time during which memory did not answer.
    pub(crate) fn with_samples(self, clean: bool, share: f64, stalled: Option<f64>) -> Self {
        let cause = match self.cause {
            Some(DisturbanceCause::Migrated) => self.cause,
            _ if clean => self.beside,
            Some(DisturbanceCause::Neighbours) | None => Some(DisturbanceCause::TakenOff),
            cause => cause,
        };
        Self { cause, left_out: clean.then_some(share), off_cpu: (!clean).then_some(share), stalled, ..self }
    }

    /// Of threads that ran together: `others` is what others had of CPUs, `ghz` the frequency of one of the threads' cores right afterwards.
    pub(crate) fn judge(threads: usize, conditions: Conditions, others: Others, ghz: Option<f64>) -> Self {
        let scheduler = &conditions.scheduler;
        let preempted = match (scheduler.waited_share(), scheduler.switches) {
            (Some(share), _) => share > MAX_WAITED,
            (None, switches) => switches.is_some_and(|n| n > u64::from(NORMAL_SWITCHES) * threads as u64),
        };
        let found = [
            (DisturbanceCause::Migrated, scheduler.migrations > 0),
            (DisturbanceCause::Stolen, others.steal.is_some_and(|share| share > MAX_STEAL)),
            (DisturbanceCause::TakenOff, preempted),
            (DisturbanceCause::Neighbours, others.neighbours_busy),
        ];
        let cause = found.into_iter().find_map(|(cause, seen)| seen.then_some(cause));
        let beside = others.neighbours_busy.then_some(DisturbanceCause::Neighbours);
        Self { conditions, cause, beside, ghz, left_out: None, off_cpu: None, stalled: None, neighbours: others.neighbours }
    }

    /// Whether nothing disturbed the burst, apart from a change of frequency, which takes several bursts to see.
    pub(crate) const fn undisturbed(&self) -> bool {
        self.cause.is_none()
    }
}

struct Burst {
    allocation: u32,
    /// Samples of each quantity.
    samples: Vec<Vec<f64>>,
    conditions: BurstConditions,
}

/// Samples of a burst that a result keeps: a burst of ordinary length has twelve, one of a transfer thousands.
const MAX_KEPT: usize = 32;

/// The unit whose samples may shift together, so that they are one group in the estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupBy {
    Burst,
    Allocation,
}

pub(crate) struct BurstSamples {
    bursts: Vec<Burst>,
    /// How many undisturbed bursts are wanted.
    min_bursts: usize,
    group_by: GroupBy,
}

impl BurstSamples {
    pub(crate) const fn new(group_by: GroupBy, min_bursts: u32) -> Self {
        Self { bursts: Vec::new(), min_bursts: min_bursts as usize, group_by }
    }

    /// Adds a burst of an allocation with its samples, quantity by quantity.
    pub(crate) fn add(&mut self, allocation: u32, samples: Vec<Vec<f64>>, conditions: BurstConditions) {
        self.bursts.push(Burst { allocation, samples, conditions });
    }

    /// Whether any burst left samples of each quantity.
    pub(crate) fn any_samples(&self) -> bool {
        self.bursts.iter().any(has_samples)
    }

    pub(crate) fn last_disturbed(&self) -> bool {
        self.causes().last().is_some_and(Option::is_some)
    }

    /// Whether there are enough undisturbed bursts, or so many disturbed ones that waiting for others is useless.
    pub(crate) fn enough_undisturbed(&self) -> bool {
        self.undisturbed() >= self.min_bursts || self.bursts.len() >= 2 * self.min_bursts
    }

    /// The cause that disturbed each burst, if any. The median of all frequencies shows which of them differ.
    fn causes(&self) -> Vec<Option<DisturbanceCause>> {
        let usual = stats::median(&self.bursts.iter().filter_map(|b| b.conditions.ghz).collect::<Vec<_>>());
        let differs = |ghz: Option<f64>| ghz.zip(usual).is_some_and(|(ghz, usual)| (ghz - usual).abs() > MAX_FREQUENCY_CHANGE * usual);
        let cause = |b: &BurstConditions| b.cause.or_else(|| differs(b.ghz).then_some(DisturbanceCause::Frequency));
        self.bursts.iter().map(|b| cause(&b.conditions)).collect()
    }

    /// Undisturbed bursts that left samples.
    fn undisturbed(&self) -> usize {
        self.bursts.iter().zip(self.causes()).filter(|(burst, cause)| cause.is_none() && has_samples(burst)).count()
    }

    /// Which bursts count: the undisturbed ones where there are enough. Otherwise all, but none with time off the CPU in its samples where
    /// others have none: such samples are worth more, however few they are.
    fn which_count(&self) -> Vec<bool> {
        let undisturbed = self.undisturbed();
        if undisturbed >= MIN_UNDISTURBED.min(self.min_bursts).max(1) {
            return self.causes().iter().map(Option::is_none).collect();
        }
        let without = |burst: &Burst| burst.conditions.left_out.is_some() && has_samples(burst);
        let any = self.bursts.iter().any(without);
        self.bursts.iter().map(|burst| !any || without(burst)).collect()
    }

    fn counting(&self) -> impl Iterator<Item = &Burst> {
        self.bursts.iter().zip(self.which_count()).filter(|(_, counts)| *counts).map(|(burst, _)| burst)
    }

    /// Samples of a quantity that count, in groups of what may shift them together, in the order of time.
    pub(crate) fn groups(&self, quantity: usize) -> Vec<Vec<f64>> {
        let mut groups: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (index, burst) in self.counting().enumerate() {
            let group = if self.group_by == GroupBy::Allocation { burst.allocation as usize } else { index };
            groups.entry(group).or_default().extend(burst.samples.get(quantity).into_iter().flatten());
        }
        groups.into_values().collect()
    }

    /// Whether the interval of every quantity is narrow enough.
    pub(crate) fn converged(&self, relative_half_width: f64) -> bool {
        let quantities = self.bursts.first().map_or(0, |b| b.samples.len());
        quantities > 0 && (0..quantities).all(|q| stats::converged(&self.groups(q), relative_half_width))
    }

    pub(crate) fn estimate(&self, quantity: usize, relative_half_width: f64) -> Estimate {
        stats::estimate(&self.groups(quantity), relative_half_width)
    }

    pub(crate) fn estimate_with_drift(&self, quantity: usize, relative_half_width: f64) -> Estimate {
        // Disturbances come and go: a trend of bursts that they are in is theirs, and says nothing of the machine.
        let undisturbed = self.causes().iter().zip(self.which_count()).all(|(cause, counts)| !counts || cause.is_none());
        let drift = if undisturbed { trend::drift(&self.groups(quantity)) } else { None };
        Estimate { drift, ..self.estimate(quantity, relative_half_width) }
    }

    /// A quantity's samples as results keep them: of each burst at most [`MAX_KEPT`], evenly spaced in time.
    pub(crate) fn keep(&self, quantity: usize) -> Box<Samples> {
        let kept = |burst: &Burst| {
            let all = burst.samples.get(quantity).map_or(&[][..], Vec::as_slice);
            all.iter().step_by(all.len().div_ceil(MAX_KEPT).max(1)).map(|s| stats::significant(*s)).collect()
        };
        let allocations: Vec<u32> = self.bursts.iter().map(|b| b.allocation).collect();
        let which = self.which_count();
        let left_out = which.iter().enumerate().filter(|(_, counts)| !**counts);
        Box::new(Samples {
            bursts: self.bursts.iter().map(kept).collect(),
            left_out: left_out.map(|(index, _)| index as u32).collect(),
            allocations: if allocations.iter().all(|a| *a == 0) { Vec::new() } else { allocations },
        })
    }

    /// The conditions of the bursts that count.
    pub(crate) fn conditions(&self) -> Conditions {
        let mut all = Conditions::default();
        self.counting().for_each(|burst| all.add(&burst.conditions.conditions));
        all
    }

    /// Share of the time of the bursts that count which is in no sample because threads were off their CPUs; `None` where such time is in
    /// samples.
    pub(crate) fn left_out(&self) -> Option<f64> {
        let shares =
            self.counting().map(|burst| burst.conditions.left_out).collect::<Option<Vec<f64>>>().filter(|shares| !shares.is_empty())?;
        Some(shares.iter().sum::<f64>() / shares.len() as f64)
    }

    /// Share of the time in the counting bursts' samples during which threads were off their CPUs; `None` if there is no such time.
    pub(crate) fn off_cpu(&self) -> Option<f64> {
        let shares: Vec<f64> = self.counting().filter_map(|burst| burst.conditions.off_cpu).collect();
        stats::mean(&shares).filter(|_| self.left_out().is_none())
    }

    /// Share of the counting bursts' time during which memory did not answer threads that were on their CPUs; `None` if that is not
    /// known.
    pub(crate) fn stalled(&self) -> Option<f64> {
        stats::mean(&self.counting().filter_map(|burst| burst.conditions.stalled).collect::<Vec<_>>())
    }

    /// Shares that others used of the CPUs that share something with the measured ones, during the bursts that count.
    fn neighbours(&self) -> Option<Neighbours> {
        let seen: Vec<Neighbours> = self.counting().filter_map(|burst| burst.conditions.neighbours).collect();
        let mean = |share: fn(&Neighbours) -> Option<f64>| stats::mean(&seen.iter().filter_map(share).collect::<Vec<_>>());
        let all = Neighbours { core: mean(|n| n.core), cache: mean(|n| n.cache), memory: mean(|n| n.memory) };
        all.most().map(|_| all)
    }

    /// Writes into a cell's noise how many bursts were disturbed, by what, and what became of them.
    pub(crate) fn write_disturbances(&self, noise: &mut Noise) {
        noise.disturbed_by.clear();
        for cause in self.causes().into_iter().flatten() {
            *noise.disturbed_by.entry(cause).or_insert(0) += 1;
        }
        let (bursts, disturbed) = (self.bursts.len() as u32, noise.disturbed_by.values().sum::<u32>());
        noise.bursts = Some(bursts);
        noise.bursts_disturbed = Some(disturbed);
        // Bursts beyond the minimum because others were disturbed.
        noise.bursts_repeated = Some(disturbed.min(bursts.saturating_sub(self.min_bursts as u32)));
        noise.bursts_left_out = Some(self.which_count().iter().filter(|counts| !**counts).count() as u32);
        (noise.left_out, noise.off_cpu, noise.stalled) = (self.left_out(), self.off_cpu(), self.stalled());
        // The time of all bursts together is counted in fewer steps, but it has those in it that do not count.
        let some_left_out = noise.disturbed_by.contains_key(&DisturbanceCause::Neighbours) && noise.bursts_left_out != Some(0);
        if some_left_out || noise.neighbours.is_none() {
            noise.neighbours = self.neighbours().or(noise.neighbours);
        }
        // Read in the same state of the machine, unlike what a core showed alone, before the others were busy.
        let ghz: Vec<f64> = self.counting().filter_map(|burst| burst.conditions.ghz).collect();
        if let [first, .., last] = ghz[..] {
            (noise.ghz_before, noise.ghz_after) = (Some(first), Some(last));
        }
    }
}

fn has_samples(burst: &Burst) -> bool {
    !burst.samples.is_empty() && burst.samples.iter().all(|s| !s.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calm() -> BurstConditions {
        BurstConditions { ghz: Some(4.0), ..BurstConditions::default() }
    }

    fn disturbed(cause: DisturbanceCause) -> BurstConditions {
        BurstConditions { cause: Some(cause), ..calm() }
    }

    fn noise_of(samples: &BurstSamples) -> Noise {
        let mut noise = Noise::default();
        samples.write_disturbances(&mut noise);
        noise
    }

    #[test]
    fn undisturbed_bursts_all_count() {
        let mut samples = BurstSamples::new(GroupBy::Burst, 6);
        (0..6).for_each(|_| samples.add(0, vec![vec![100.0; 12]], calm()));
        let noise = noise_of(&samples);
        assert_eq!(
            (noise.bursts, noise.bursts_disturbed, noise.bursts_repeated, noise.bursts_left_out),
            (Some(6), Some(0), Some(0), Some(0))
        );
        assert!(noise.disturbed_by.is_empty() && samples.enough_undisturbed() && samples.groups(0).len() == 6);
        assert!(samples.keep(0).left_out.is_empty() && samples.keep(0).bursts == vec![vec![100.0; 12]; 6]);
    }

    #[test]
    fn a_disturbed_burst_is_repeated_and_stays_in_the_count() {
        let mut samples = BurstSamples::new(GroupBy::Burst, 6);
        (0..5).for_each(|_| samples.add(0, vec![vec![100.0; 12]], calm()));
        samples.add(0, vec![vec![300.0; 12]], disturbed(DisturbanceCause::TakenOff));
        assert!(samples.last_disturbed() && !samples.enough_undisturbed(), "one more is wanted");
        samples.add(0, vec![vec![100.0; 12]], calm());
        assert!(samples.enough_undisturbed());
        let noise = noise_of(&samples);
        assert_eq!(
            (noise.bursts, noise.bursts_disturbed, noise.bursts_repeated, noise.bursts_left_out),
            (Some(7), Some(1), Some(1), Some(1))
        );
        assert_eq!(noise.disturbed_by, BTreeMap::from([(DisturbanceCause::TakenOff, 1)]));
        assert_eq!(samples.keep(0).left_out, [5], "kept, and marked as not counting");
        assert_eq!(samples.estimate_with_drift(0, 0.01).max, Some(100.0));
    }

    #[test]
    fn where_too_few_are_undisturbed_all_count() {
        let mut samples = BurstSamples::new(GroupBy::Burst, 6);
        for i in 0..12 {
            let conditions = if i % 6 == 0 { calm() } else { disturbed(DisturbanceCause::Stolen) };
            samples.add(0, vec![vec![100.0 + f64::from(i)]], conditions);
        }
        assert!(samples.enough_undisturbed(), "waiting for undisturbed ones is in vain");
        let noise = noise_of(&samples);
        assert_eq!((noise.bursts_disturbed, noise.bursts_left_out, samples.groups(0).len()), (Some(10), Some(0), 12));
        assert_eq!(noise.disturbed_by, BTreeMap::from([(DisturbanceCause::Stolen, 10)]));
    }

    #[test]
    fn bursts_without_their_interruptions_are_undisturbed() {
        let interrupted = || BurstConditions { cause: Some(DisturbanceCause::Stolen), ..calm() };
        let mut samples = BurstSamples::new(GroupBy::Burst, 6);
        (0..6).for_each(|_| samples.add(0, vec![vec![100.0; 5]], interrupted().with_samples(true, 0.5, None)));
        assert!(samples.enough_undisturbed());
        assert_eq!((noise_of(&samples).bursts_disturbed, samples.left_out()), (Some(0), Some(0.5)));
        samples.add(0, vec![vec![900.0; 5]], interrupted().with_samples(false, 1.0, None));
        assert_eq!((noise_of(&samples).bursts_left_out, samples.left_out()), (Some(1), Some(0.5)));
        let mut few = BurstSamples::new(GroupBy::Burst, 6);
        few.add(0, vec![vec![100.0]], calm().with_samples(true, 0.9, None));
        few.add(0, vec![vec![900.0]], calm().with_samples(false, 1.0, None));
        assert_eq!(few.groups(0), [[100.0]], "one sample without interruptions rather than any with them");
        let mut turbo = BurstSamples::new(GroupBy::Burst, 6);
        let at = |ghz| BurstConditions { ghz: Some(ghz), ..calm() }.with_samples(true, 0.1, None);
        [4.0, 3.5, 3.0].into_iter().for_each(|ghz| turbo.add(0, vec![vec![ghz]], at(ghz)));
        assert_eq!(turbo.groups(0).len(), 3, "too few of one frequency: all count");
        few = BurstSamples::new(GroupBy::Burst, 6);
        few.add(0, vec![vec![900.0]], calm().with_samples(false, 1.0, None));
        assert_eq!((few.groups(0).len(), few.left_out()), (1, None));
        assert_eq!(few.off_cpu(), Some(1.0));
    }

    #[test]
    fn bursts_beside_quiet_neighbours_count_where_there_are_enough() {
        let beside = |share: f64| {
            let neighbours = Some(Neighbours { memory: Some(share), ..Neighbours::default() });
            let others = Others { steal: None, neighbours, neighbours_busy: share > 0.05 };
            BurstConditions::judge(1, Conditions::default(), others, Some(4.0)).with_samples(true, 0.01, None)
        };
        let mut samples = BurstSamples::new(GroupBy::Burst, 6);
        (0..4).for_each(|_| samples.add(0, vec![vec![200.0]], beside(0.5)));
        (0..3).for_each(|_| samples.add(0, vec![vec![100.0]], beside(0.01)));
        assert_eq!(samples.groups(0), [[100.0]; 3], "the quiet moments");
        // The watch of the whole cell says what all bursts had.
        let mut noise = Noise { neighbours: Some(Neighbours { memory: Some(0.3), ..Neighbours::default() }), ..Noise::default() };
        samples.write_disturbances(&mut noise);
        assert_eq!(noise.disturbed_by, BTreeMap::from([(DisturbanceCause::Neighbours, 4)]));
        assert!((noise.neighbours.unwrap().memory.unwrap() - 0.01).abs() < 1e-9, "those that count");
        let mut always = BurstSamples::new(GroupBy::Burst, 6);
        (0..6).for_each(|_| always.add(0, vec![vec![200.0]], beside(0.5)));
        noise.neighbours = None;
        always.write_disturbances(&mut noise);
        assert_eq!((always.groups(0).len(), noise.neighbours.unwrap().memory), (6, Some(0.5)));
        assert!(beside(0.5).with_samples(false, 0.5, None).cause == Some(DisturbanceCause::TakenOff), "the graver one");
    }

    #[test]
    fn bursts_of_threads_on_other_cpus_count_as_they_are_only_where_there_are_no_others() {
        let moved = |clean, left_out| disturbed(DisturbanceCause::Migrated).with_samples(clean, left_out, None);
        let mut samples = BurstSamples::new(GroupBy::Burst, 6);
        samples.add(0, vec![vec![900.0]], moved(false, 1.0));
        assert_eq!((samples.groups(0).len(), samples.left_out()), (1, None), "time off the CPU is in its samples");
        samples.add(0, vec![vec![100.0]], moved(true, 0.2));
        assert_eq!((samples.groups(0), samples.left_out()), (vec![vec![100.0]], Some(0.2)));
        assert_eq!(noise_of(&samples).disturbed_by, BTreeMap::from([(DisturbanceCause::Migrated, 2)]));
    }

    #[test]
    fn a_trend_of_disturbed_bursts_is_no_drift() {
        let drift = |cause: Option<DisturbanceCause>| {
            let mut samples = BurstSamples::new(GroupBy::Burst, 6);
            (0..12).for_each(|i| samples.add(0, vec![vec![100.0 + f64::from(i)]], BurstConditions { cause, ..calm() }));
            samples.estimate_with_drift(0, 0.01).drift
        };
        assert!(drift(None).is_some() && drift(Some(DisturbanceCause::TakenOff)).is_none());
    }

    #[test]
    fn another_frequency_than_most_bursts_had_disturbs() {
        let mut samples = BurstSamples::new(GroupBy::Burst, 4);
        for ghz in [4.0, 4.01, 3.5, 3.99, 4.0] {
            samples.add(0, vec![vec![ghz]], BurstConditions { ghz: Some(ghz), ..calm() });
        }
        assert_eq!(samples.groups(0), [[4.0], [4.01], [3.99], [4.0]]);
        assert_eq!(noise_of(&samples).disturbed_by, BTreeMap::from([(DisturbanceCause::Frequency, 1)]));
    }

    #[test]
    fn frequencies_are_compared_in_the_same_state_of_the_machine() {
        let mut samples = BurstSamples::new(GroupBy::Burst, 2);
        // One core alone ran at 4.2 GHz; all of them together run at 3.1.
        let mut noise = Noise { ghz_before: Some(4.2), ..Noise::default() };
        samples.add(0, vec![vec![1.0]], BurstConditions { ghz: Some(3.1), ..calm() });
        samples.write_disturbances(&mut noise);
        assert_eq!((noise.ghz_before, noise.ghz_after), (Some(4.2), None));
        samples.add(0, vec![vec![1.0]], BurstConditions { ghz: Some(3.12), ..calm() });
        samples.write_disturbances(&mut noise);
        assert_eq!((noise.ghz_before, noise.ghz_after), (Some(3.1), Some(3.12)));
    }

    #[test]
    fn bursts_of_an_allocation_are_one_group() {
        let mut samples = BurstSamples::new(GroupBy::Allocation, 3);
        samples.add(0, vec![vec![1.0]], calm());
        samples.add(1, vec![vec![9.0]], disturbed(DisturbanceCause::Migrated));
        samples.add(1, vec![vec![2.0]], calm());
        samples.add(2, vec![vec![3.0]], calm());
        assert_eq!(samples.groups(0), [[1.0], [2.0], [3.0]]);
        samples.add(2, vec![vec![4.0]], calm());
        assert_eq!(samples.groups(0), [vec![1.0], vec![2.0], vec![3.0, 4.0]]);
        assert_eq!(samples.keep(0).allocations, [0, 1, 1, 2, 2]);
    }

    #[test]
    fn bursts_without_samples_are_not_enough() {
        let mut samples = BurstSamples::new(GroupBy::Burst, 6);
        (0..6).for_each(|_| samples.add(0, vec![vec![], vec![1.0]], calm()));
        assert!(!samples.any_samples() && !samples.enough_undisturbed());
    }

    #[test]
    fn long_bursts_are_kept_thinned_and_rounded() {
        let mut samples = BurstSamples::new(GroupBy::Burst, 6);
        samples.add(0, vec![(0..4000).map(|i| 100.0 + f64::from(i) / 3e6).collect()], calm());
        let kept = samples.keep(0);
        assert_eq!((kept.bursts[0].len(), kept.bursts[0][0]), (32, 100.0));
        assert!(kept.bursts[0].iter().all(|s| *s == (s * 1000.0).round() / 1000.0 && *s < 100.002), "{kept:?}");
    }
}
