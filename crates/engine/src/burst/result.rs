//! The request for a burst, and its result.

use std::time::Duration;

use memgauge_model::estimate::NotMeasured;
use memgauge_model::protocol::{MAX_BURST, SETTLE_WINDOWS};

use super::chase::Chase;
use super::exact::ExactHops;
use super::load::Load;
use super::windows::Trace;
use super::workers::SchedulerNoise;
use crate::error::Result;
use crate::neighbours::Others;

/// The counted windows of a burst.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BurstShape {
    pub(crate) windows: usize,
    pub(crate) window: Duration,
}

impl BurstShape {
    pub(crate) fn counted(&self) -> Duration {
        self.window * self.windows as u32
    }

    /// Of all windows, with those that settle.
    pub(crate) fn whole(&self) -> Duration {
        self.window * (self.windows + SETTLE_WINDOWS) as u32
    }

    /// The same time in bursts of nearly the same length, none longer than [`MAX_BURST`].
    pub(crate) fn bursts(self) -> impl Iterator<Item = Self> {
        let count = self.counted().as_nanos().div_ceil(MAX_BURST.as_nanos()).max(1) as usize;
        (0..count).map(move |nth| Self { windows: self.windows * (nth + 1) / count - self.windows * nth / count, ..self })
    }

    pub(crate) const fn counted_windows(&self) -> std::ops::Range<usize> {
        SETTLE_WINDOWS..SETTLE_WINDOWS + self.windows
    }
}

/// The conditions under which threads ran together, in one burst or in several.
#[derive(Clone, Copy, Default)]
pub(crate) struct Conditions {
    pub(crate) scheduler: SchedulerNoise,
    /// Time during which all threads ran, divided by the longest thread's time; the least of several bursts.
    pub(crate) coverage: Option<f64>,
}

impl Conditions {
    pub(crate) fn add(&mut self, other: &Self) {
        self.scheduler.add(&other.scheduler);
        self.coverage = match (self.coverage, other.coverage) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

pub(crate) struct BurstResult {
    /// The chase's trace, and the chase to go on with.
    pub(crate) chase: Option<(Trace, Chase)>,
    /// The loaders' results, in the order of the loaders.
    pub(crate) loads: Vec<Loaded>,
    /// Without those of threads that only kept a package awake.
    pub(crate) conditions: Conditions,
    pub(crate) others: Others,
}

pub(crate) struct Loaded {
    pub(crate) cpu: u32,
    pub(crate) trace: Trace,
    pub(crate) load: Load,
}

/// A chase that made hops, or fewer where the run is to end, and goes on from there.
pub(crate) struct ChasedHops {
    pub(crate) took: ExactHops,
    pub(crate) chase: Chase,
    pub(crate) scheduler: SchedulerNoise,
}

impl BurstResult {
    /// An error where memory that was measured is not what it was. `probe` is the CPU of the chase.
    pub(crate) fn check(&self, probe: Option<u32>) -> Result {
        if let (Some((_, chase)), Some(cpu)) = (&self.chase, probe) {
            chase.check(cpu)?;
        }
        let fault = self.loads.iter().find_map(|l| Some(NotMeasured::MemoryFailed { cpu: l.cpu, fault: l.load.fault()? }));
        fault.map_or(Ok(()), Err)
    }

    pub(crate) fn take_loads(&mut self) -> Vec<(u32, Load)> {
        self.loads.drain(..).map(|l| (l.cpu, l.load)).collect()
    }
}
