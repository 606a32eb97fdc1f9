//! What else happens on the machine while a cell is measured.

use std::path::Path;

use memgauge_core::result::Noise;
use memgauge_core::units::IdSet;
use memgauge_os::noise::NoiseProbe;

use crate::burst::workers::SchedulerNoise;

/// The kernel's noise counters around a cell or a part of it.
#[derive(Default)]
pub(crate) struct NoiseWatch {
    probe: Option<NoiseProbe>,
    ghz_before: Option<f64>,
}

impl NoiseWatch {
    /// Begins to watch while all of `cpus` work; one of them runs at `ghz`.
    pub(crate) fn start(&mut self, root: &Path, cpus: &IdSet, ghz: f64) {
        *self = Self { probe: Some(NoiseProbe::start(root, cpus)), ghz_before: Some(ghz) };
    }

    /// Until [`Self::resume`], what happens does not count: this process works on other CPUs as well.
    pub(crate) fn pause(&mut self) {
        self.probe.iter_mut().for_each(NoiseProbe::pause);
    }

    pub(crate) fn resume(&mut self) {
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
        Noise { migrations: Some(scheduler.migrations), waited: scheduler.waited_share(), ghz_before: self.ghz_before, ..noise }
    }
}
