//! The bursts of a cell: which of them were disturbed, and which its value comes from.
//!
//! A disturbed burst is kept and counted. Its samples count as well unless enough undisturbed ones were measured, so that a number of a busy
//! machine is there, and says what it is.

use std::collections::BTreeMap;

use memgauge_core::conclusions::trend;
use memgauge_core::estimate::Estimate;
use memgauge_core::result::Noise;
use memgauge_core::stats;

use crate::burst::BurstResult;
use crate::team::Disturbance;

/// Share of the threads' time without their CPUs above which a burst is disturbed; as for a whole measurement. A third of a millisecond of
/// one thread: kernel threads come and go in less.
const WAITED: f64 = 0.005;
/// Where the kernel does not tell how long: switches per thread that are normal in a burst.
const SWITCHES: u64 = 2;
/// Share of time given to others by the hypervisor; as for a whole measurement.
const STOLEN: f64 = 0.005;
/// Relative difference of the core's frequency from that of most bursts; as from before to after a measurement.
const FREQUENCY: f64 = 0.02;
/// Undisturbed bursts that are enough to leave the others out: the fewest of which the median is between two others.
const ENOUGH: usize = 3;

/// What befell all bursts of a cell.
#[derive(Default)]
pub(crate) struct Course {
    pub(crate) disturbance: Disturbance,
    /// The least coverage of a burst.
    pub(crate) coverage: Option<f64>,
}

impl Course {
    /// Adds what befell threads that ran outside of a burst.
    pub(crate) fn befell(&mut self, disturbance: &Disturbance) {
        self.disturbance.add(disturbance);
    }

    pub(crate) fn add(&mut self, burst: &BurstResult) {
        self.disturbance.add(&burst.disturbance);
        self.covered(burst.coverage);
    }

    pub(crate) fn covered(&mut self, coverage: Option<f64>) {
        self.coverage = match (self.coverage, coverage) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// What disturbed a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    TakenOff,
    Migrated,
    Stolen,
    Frequency,
}

impl Cause {
    /// What happened, in so many bursts.
    const fn words(self) -> &'static str {
        match self {
            Self::TakenOff => "a thread was taken off its CPU",
            Self::Migrated => "a thread ran on another CPU",
            Self::Stolen => "the hypervisor gave a CPU to others",
            Self::Frequency => "the core's frequency was another",
        }
    }
}

/// What befell a burst.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mark {
    cause: Option<Cause>,
    /// Of the core, in GHz, right after it.
    ghz: Option<f64>,
    disturbance: Disturbance,
    coverage: Option<f64>,
}

impl Mark {
    /// Of a burst, with the core's frequency right after it.
    pub(crate) fn of(burst: &BurstResult, ghz: Option<f64>) -> Self {
        let threads = burst.loads.len() + usize::from(burst.chase.is_some());
        Self::of_threads(threads, burst.disturbance, burst.stolen, burst.coverage, ghz)
    }

    /// Of threads that ran together: what befell them, the share of their time that the hypervisor gave to others, the time in which all ran
    /// over the longest one's, and the frequency of one of their cores right after it.
    pub(crate) fn of_threads(
        threads: usize,
        disturbance: Disturbance,
        stolen: Option<f64>,
        coverage: Option<f64>,
        ghz: Option<f64>,
    ) -> Self {
        let threads = threads as u64;
        let taken_off = match (disturbance.waited(), disturbance.switches) {
            (Some(share), _) => share > WAITED,
            (None, switches) => switches.is_some_and(|n| n > SWITCHES * threads),
        };
        let found = [
            (Cause::Migrated, disturbance.migrations > 0),
            (Cause::Stolen, stolen.is_some_and(|share| share > STOLEN)),
            (Cause::TakenOff, taken_off),
        ];
        let cause = found.into_iter().find_map(|(cause, seen)| seen.then_some(cause));
        Self { cause, ghz, disturbance, coverage }
    }

    /// Whether nothing disturbed the burst, but perhaps for a change of frequency, which takes several to tell.
    pub(crate) const fn is_calm(&self) -> bool {
        self.cause.is_none()
    }
}

/// A burst that samples were taken in.
struct Take {
    /// The allocation that it is of.
    allocation: u32,
    /// Samples of each quantity.
    samples: Vec<Vec<f64>>,
    mark: Mark,
}

/// The bursts of a cell.
pub(crate) struct Takes {
    takes: Vec<Take>,
    /// The fewest bursts that the cell is to have.
    least: usize,
    /// Whether an allocation's bursts are a group of samples, or each burst is.
    by_allocation: bool,
}

impl Takes {
    /// None yet; each burst is a group of samples of its own, and at least so many are to be made.
    pub(crate) const fn by_burst(least: usize) -> Self {
        Self { takes: Vec::new(), least, by_allocation: false }
    }

    /// None yet; bursts of an allocation are a group of samples, and at least so many allocations are to be made.
    pub(crate) const fn by_allocation(least: usize) -> Self {
        Self { takes: Vec::new(), least, by_allocation: true }
    }

    /// Adds a burst of an allocation with its samples, quantity by quantity.
    pub(crate) fn add(&mut self, allocation: u32, samples: Vec<Vec<f64>>, mark: Mark) {
        self.takes.push(Take { allocation, samples, mark });
    }

    pub(crate) fn len(&self) -> usize {
        self.takes.len()
    }

    /// Whether any burst left samples of each quantity.
    pub(crate) fn sampled(&self) -> bool {
        self.takes.iter().any(has_samples)
    }

    /// Whether the last burst was disturbed.
    pub(crate) fn last_disturbed(&self) -> bool {
        self.takes.len().checked_sub(1).is_some_and(|last| self.causes()[last].is_some())
    }

    /// Whether there are as many undisturbed bursts as the cell is to have; or so many disturbed ones that waiting for others is in vain.
    pub(crate) fn settled(&self) -> bool {
        self.calm() >= self.least || self.takes.len() >= 2 * self.least
    }

    /// The median of all frequencies tells which of them is another.
    fn causes(&self) -> Vec<Option<Cause>> {
        let most = stats::median(&self.takes.iter().filter_map(|t| t.mark.ghz).collect::<Vec<_>>());
        let strange = |mark: &Mark| mark.ghz.zip(most).is_some_and(|(ghz, most)| (ghz - most).abs() > FREQUENCY * most);
        self.takes.iter().map(|t| t.mark.cause.or_else(|| strange(&t.mark).then_some(Cause::Frequency))).collect()
    }

    /// Undisturbed bursts that left samples.
    fn calm(&self) -> usize {
        self.takes.iter().zip(self.causes()).filter(|(take, cause)| cause.is_none() && has_samples(take)).count()
    }

    /// Whether disturbed bursts are left out.
    fn leaves_out(&self) -> bool {
        let calm = self.calm();
        calm >= ENOUGH.min(self.least).max(1) && calm < self.takes.len()
    }

    /// The bursts that count.
    fn counting(&self) -> impl Iterator<Item = &Take> {
        let leave = self.leaves_out();
        self.takes.iter().zip(self.causes()).filter(move |(_, cause)| !leave || cause.is_none()).map(|(take, _)| take)
    }

    /// Samples of a quantity that count, in groups of what may shift them together, in the order of time.
    pub(crate) fn groups(&self, quantity: usize) -> Vec<Vec<f64>> {
        let mut groups: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (index, take) in self.counting().enumerate() {
            let group = if self.by_allocation { take.allocation as usize } else { index };
            groups.entry(group).or_default().extend(take.samples.get(quantity).into_iter().flatten());
        }
        groups.into_values().collect()
    }

    /// Whether a quantity's interval is narrow enough.
    pub(crate) fn converged(&self, quantity: usize, relative_half_width: f64) -> bool {
        stats::converged(&self.groups(quantity), relative_half_width)
    }

    /// A quantity's estimate at the end, with its drift.
    pub(crate) fn conclude(&self, quantity: usize, relative_half_width: f64) -> Estimate {
        let groups = self.groups(quantity);
        Estimate { drift: trend::drift(&groups), ..stats::estimate(&groups, relative_half_width) }
    }

    /// What befell the bursts that count.
    pub(crate) fn course(&self) -> Course {
        let mut course = Course::default();
        for take in self.counting() {
            course.befell(&take.mark.disturbance);
            course.covered(take.mark.coverage);
        }
        course
    }

    /// Counts the bursts into a cell's evidence.
    pub(crate) fn tell(&self, noise: &mut Noise) {
        let mut causes: BTreeMap<Cause, u32> = BTreeMap::new();
        for cause in self.causes().into_iter().flatten() {
            *causes.entry(cause).or_insert(0) += 1;
        }
        let disturbed: u32 = causes.values().sum();
        let made = self.takes.len() as u32;
        noise.bursts = Some(made);
        noise.bursts_disturbed = Some(disturbed);
        noise.bursts_repeated = Some(disturbed.min(made.saturating_sub(self.least as u32)));
        noise.bursts_left_out = Some(if self.leaves_out() { made - self.counting().count() as u32 } else { 0 });
        noise.bursts_reason = (disturbed > 0).then(|| {
            let what: Vec<String> = causes.iter().map(|(cause, n)| format!("in {n} {}", cause.words())).collect();
            let then = match self.leaves_out() {
                true => "they do not count",
                false => "they count, because too few others were left",
            };
            format!("{}; {then}", what.join(", "))
        });
    }
}

fn has_samples(take: &Take) -> bool {
    !take.samples.is_empty() && take.samples.iter().all(|s| !s.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Mark = Mark { cause: None, ghz: Some(4.0), disturbance: Disturbance::NONE, coverage: None };

    fn disturbed(cause: Cause) -> Mark {
        Mark { cause: Some(cause), ..CALM }
    }

    fn told(takes: &Takes) -> Noise {
        let mut noise = Noise::default();
        takes.tell(&mut noise);
        noise
    }

    #[test]
    fn undisturbed_bursts_all_count() {
        let mut takes = Takes::by_burst(6);
        (0..6).for_each(|_| takes.add(0, vec![vec![100.0; 12]], CALM));
        let noise = told(&takes);
        assert_eq!(
            (noise.bursts, noise.bursts_disturbed, noise.bursts_repeated, noise.bursts_left_out),
            (Some(6), Some(0), Some(0), Some(0))
        );
        assert_eq!((noise.bursts_reason, takes.settled(), takes.groups(0).len()), (None, true, 6));
    }

    #[test]
    fn a_disturbed_burst_is_repeated_and_stays_in_the_count() {
        let mut takes = Takes::by_burst(6);
        (0..5).for_each(|_| takes.add(0, vec![vec![100.0; 12]], CALM));
        takes.add(0, vec![vec![300.0; 12]], disturbed(Cause::TakenOff));
        assert!(takes.last_disturbed() && !takes.settled(), "one more is wanted");
        takes.add(0, vec![vec![100.0; 12]], CALM);
        assert!(takes.settled());
        let noise = told(&takes);
        assert_eq!(
            (noise.bursts, noise.bursts_disturbed, noise.bursts_repeated, noise.bursts_left_out),
            (Some(7), Some(1), Some(1), Some(1))
        );
        assert_eq!(noise.bursts_reason.as_deref(), Some("in 1 a thread was taken off its CPU; they do not count"));
        assert_eq!(takes.conclude(0, 0.01).max, Some(100.0));
    }

    #[test]
    fn where_too_few_are_undisturbed_all_count() {
        let mut takes = Takes::by_burst(6);
        for i in 0..12 {
            let mark = if i % 6 == 0 { CALM } else { disturbed(Cause::Stolen) };
            takes.add(0, vec![vec![100.0 + f64::from(i)]], mark);
        }
        assert!(takes.settled(), "waiting for undisturbed ones is in vain");
        let noise = told(&takes);
        assert_eq!((noise.bursts_disturbed, noise.bursts_left_out, takes.groups(0).len()), (Some(10), Some(0), 12));
        assert!(noise.bursts_reason.is_some_and(|why| why.ends_with("they count, because too few others were left")));
    }

    #[test]
    fn another_frequency_than_most_bursts_had_disturbs() {
        let mut takes = Takes::by_burst(4);
        for ghz in [4.0, 4.01, 3.5, 3.99, 4.0] {
            takes.add(0, vec![vec![ghz]], Mark { ghz: Some(ghz), ..CALM });
        }
        assert_eq!(takes.groups(0), [[4.0], [4.01], [3.99], [4.0]]);
        assert!(told(&takes).bursts_reason.is_some_and(|why| why.starts_with("in 1 the core's frequency was another")));
    }

    #[test]
    fn bursts_of_an_allocation_are_one_group() {
        let mut takes = Takes::by_allocation(3);
        takes.add(0, vec![vec![1.0]], CALM);
        takes.add(1, vec![vec![9.0]], disturbed(Cause::Migrated));
        takes.add(1, vec![vec![2.0]], CALM);
        takes.add(2, vec![vec![3.0]], CALM);
        assert_eq!(takes.groups(0), [[1.0], [2.0], [3.0]]);
        takes.add(2, vec![vec![4.0]], CALM);
        assert_eq!(takes.groups(0), [vec![1.0], vec![2.0], vec![3.0, 4.0]]);
    }

    #[test]
    fn bursts_without_samples_are_not_enough() {
        let mut takes = Takes::by_burst(6);
        (0..6).for_each(|_| takes.add(0, vec![vec![], vec![1.0]], CALM));
        assert!(!takes.sampled() && !takes.settled());
    }
}
