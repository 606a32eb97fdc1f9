//! Other activity on the machine while a cell is measured.

use std::path::{Path, PathBuf};

use memgauge_model::result::Noise;
use memgauge_model::units::IdSet;
use memgauge_os::noise::NoiseProbe;

use crate::burst::workers::SchedulerNoise;
use crate::neighbours::{NeighbourCpus, NeighbourWatch};

/// The kernel's noise counters around a cell or a part of it.
#[derive(Default)]
pub(crate) struct NoiseWatch {
    probe: Option<NoiseProbe>,
    neighbours: NeighbourWatch,
    root: PathBuf,
    ghz_before: Option<f64>,
}

impl NoiseWatch {
    /// Watches nothing but the frequency.
    pub(crate) fn blind(ghz: f64) -> Self {
        Self { ghz_before: Some(ghz), ..Self::default() }
    }

    /// Begins to watch while all of `cpus` work, and their neighbours; one of them runs at `ghz`.
    pub(crate) fn start(root: &Path, cpus: &IdSet, neighbours: &NeighbourCpus, ghz: f64) -> Self {
        let neighbours = NeighbourWatch::start(root, neighbours);
        Self { probe: Some(NoiseProbe::start(root, cpus)), neighbours, root: root.to_owned(), ..Self::blind(ghz) }
    }

    /// Until [`Self::resume`], what happens does not count: this process works on other CPUs as well.
    pub(crate) fn pause(&mut self) {
        self.probe.iter_mut().for_each(NoiseProbe::pause);
        self.neighbours.pause(&self.root);
    }

    pub(crate) fn resume(&mut self) {
        self.neighbours.resume(&self.root);
        self.probe.iter_mut().for_each(NoiseProbe::resume);
    }

    /// Does something that does not count.
    pub(crate) fn while_paused<T>(&mut self, set_up: impl FnOnce() -> T) -> T {
        self.pause();
        let result = set_up();
        self.resume();
        result
    }

    /// Ends watching. `scheduler` is what happened to the measuring threads.
    pub(crate) fn finish(&mut self, scheduler: &SchedulerNoise) -> Noise {
        let noise = self.probe.take().map(|probe| probe.finish(scheduler.switches)).unwrap_or_default();
        let neighbours = std::mem::take(&mut self.neighbours).finish(&self.root);
        let (migrations, waited) = (Some(scheduler.migrations), scheduler.waited_share());
        Noise { migrations, waited, neighbours, ghz_before: self.ghz_before, ..noise }
    }
}
