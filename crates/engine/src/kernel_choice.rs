//! Which kernel is the fastest for a traffic: what trials depend on, and who wins.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_kernels::{self as kernels, Kernel};
use memgauge_model::plan::{BufferPlan, Loader, Traffic};
use memgauge_model::protocol::{MAX_DISTURBED_TRIALS, TRIAL_ROUNDS};
use memgauge_model::result::KernelTrial;
use memgauge_model::units::{Bytes, IdSet};

/// A kernel is tried again if it is behind the best one by this share at most, by the rounds so far: short bursts scatter by 5 % and seldom by 20 %.
const MARGINS: [f64; 3] = [1.0, 0.2, 0.07];

/// The decision of a trial.
#[derive(Clone)]
pub(crate) struct TrialResult {
    pub(crate) kernel: &'static Kernel,
    /// The speeds of the kernels that were tried.
    pub(crate) tried: Vec<KernelTrial>,
    /// Another kernel may be faster: threads were off their CPUs whenever it was tried, or bursts of the same kernel differed much.
    pub(crate) busy: bool,
}

/// A trial whose outcome later cells use.
pub(crate) struct KnownTrial {
    pub(crate) key: TrialKey,
    pub(crate) won: TrialResult,
    /// How often it was made.
    pub(crate) times: u32,
}

impl KnownTrial {
    /// Whether its outcome stands: a disturbed trial is made again for the next cell, but not for ever.
    pub(crate) const fn is_final(&self) -> bool {
        !self.won.busy || self.times >= MAX_DISTURBED_TRIALS
    }
}

/// The kernels that won trials.
#[derive(Clone)]
pub(crate) struct ChosenKernels {
    /// Each loader's.
    pub(crate) kernels: Vec<&'static Kernel>,
    /// The trials for the first loader's traffic.
    pub(crate) tried: Vec<KernelTrial>,
    /// Disturbed trials chose one of them.
    pub(crate) busy: bool,
}

impl ChosenKernels {
    /// Names of the kernels, each once.
    pub(crate) fn name(&self) -> String {
        let mut seen = BTreeSet::new();
        let names: Vec<&str> = self.kernels.iter().map(|kernel| kernel.name).filter(|name| seen.insert(*name)).collect();
        names.join(" + ")
    }
}

/// A loader's memory, as far as it may make another kernel the fastest: its buffer, and a second one with the percent of the accesses that
/// go there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoaderMemory {
    buffer: BufferPlan,
    second: Option<(BufferPlan, u32)>,
}

impl LoaderMemory {
    pub(crate) fn planned(loader: &Loader) -> Self {
        let second = loader.own.as_deref().and_then(|own| Some((own.second.as_ref()?, own.second_percent)));
        // Where a buffer is and what backs it.
        let kind = |plan: &BufferPlan| BufferPlan { bytes: Bytes(0), touch: IdSet::new(), derived: false, ..plan.clone() };
        Self { buffer: kind(&loader.buffer), second: second.map(|(plan, percent)| (kind(plan), percent)) }
    }

    /// The same with the distance of each node, as `distance` states it, in place of the node: where nodes are alike, so are trials.
    pub(crate) fn by_distance(&self, distance: impl Fn(u32) -> u32) -> Self {
        let far = |plan: &BufferPlan| BufferPlan { node: distance(plan.node), ..plan.clone() };
        Self { buffer: far(&self.buffer), second: self.second.as_ref().map(|(plan, percent)| (far(plan), *percent)) }
    }

    /// Where each buffer is and what backs it.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &BufferPlan> {
        [&self.buffer].into_iter().chain(self.second.as_ref().map(|(plan, _)| plan))
    }
}

/// What the outcome of a trial depends on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrialKey {
    pub(crate) traffic: Traffic,
    /// CPUs by kind of core.
    pub(crate) cpus: BTreeMap<Option<String>, usize>,
    /// Last-level caches that they share.
    pub(crate) caches: usize,
    /// Of all loaders.
    pub(crate) bytes: Bytes,
    pub(crate) memory: Vec<LoaderMemory>,
}

/// Which kernels still take part in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contest {
    /// Kernels that fall far behind drop out.
    DropSlow { rounds: usize },
    /// All kernels run in all rounds.
    KeepAll,
}

impl Contest {
    pub(crate) const fn rounds(self) -> usize {
        match self {
            Self::DropSlow { rounds } => rounds,
            Self::KeepAll => TRIAL_ROUNDS,
        }
    }

    /// Which kernels are worth another round, given their clean rates in `rounds` of them. Disturbances only slow a kernel down, so the best of
    /// its rates counts, and the margin shrinks with the number of rounds. A kernel without a rate may be the fastest.
    pub(crate) fn contenders(self, rates: &[Vec<f64>], rounds: usize) -> Vec<bool> {
        if self == Self::KeepAll {
            return vec![true; rates.len()];
        }
        let best: Vec<f64> = rates.iter().map(|r| r.iter().copied().fold(0.0, f64::max)).collect();
        let highest = best.iter().copied().fold(0.0, f64::max);
        let margin = MARGINS.get(rounds).copied().unwrap_or(0.0);
        rates.iter().zip(best).map(|(rates, best)| rates.is_empty() || best >= highest * (1.0 - margin)).collect()
    }
}

pub(crate) fn candidates(traffic: &Traffic) -> Vec<&'static Kernel> {
    traffic.kernels.iter().filter_map(|name| kernels::find(name)).filter(|k| k.supported()).collect()
}

#[cfg(test)]
mod tests {
    use memgauge_model::experiment::PageRequest;
    use memgauge_model::plan::OwnTraffic;

    use super::*;

    #[test]
    fn a_trial_depends_on_where_the_memory_is() {
        let buffer = |node| BufferPlan { touch: IdSet::one(node), ..BufferPlan::plain(Bytes::mib(1), node, PageRequest::Auto) };
        let loader = |buffer, own| Loader { cpu: 3, buffer, own };
        let plain = LoaderMemory::planned(&loader(buffer(0), None));
        assert_eq!(plain, LoaderMemory::planned(&Loader { cpu: 4, ..loader(buffer(0), None) }), "the key has the CPUs already");
        let second = |node, second_percent| {
            let own = OwnTraffic { traffic: Traffic::default(), delay: None, second: Some(buffer(node)), second_percent };
            LoaderMemory::planned(&loader(buffer(0), Some(Box::new(own))))
        };
        let mut different = vec![
            plain,
            LoaderMemory::planned(&loader(buffer(1), None)),
            LoaderMemory::planned(&loader(BufferPlan { pages: PageRequest::Base, ..buffer(0) }, None)),
            LoaderMemory::planned(&loader(BufferPlan { directory: Some("/mnt/pmem".into()), ..buffer(0) }, None)),
            second(0, 50),
            second(1, 50),
            second(1, 20),
        ];
        while let Some(one) = different.pop() {
            assert!(!different.contains(&one), "{one:?}");
        }
    }

    #[test]
    fn kernels_far_behind_are_not_tried_again() {
        let contenders = |rates: &[Vec<f64>], rounds| Contest::DropSlow { rounds: TRIAL_ROUNDS }.contenders(rates, rounds);
        let rates = [vec![10.0], vec![7.9], vec![8.1], vec![]];
        assert_eq!(contenders(&rates, 0), [true; 4], "nothing is known before the first round");
        assert_eq!(contenders(&rates, 1), [true, false, true, true], "of the last one nothing is known");
        assert_eq!(contenders(&[vec![10.0, 6.0], vec![7.0, 9.4], vec![9.2, 9.2]], 2), [true, true, false], "the best of each counts");
        assert_eq!(contenders(&[vec![], vec![]], 1), [true, true], "a round without any rate says nothing");
        assert_eq!(Contest::KeepAll.contenders(&rates, 1), [true; 4]);
    }
}
