//! This machine as what is measured.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memgauge_model::plan::{BufferPlan, Plan};
use memgauge_model::topology::Machine;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_os::clock::{Clock, ClockError};
use memgauge_os::cpu::{self, AllowedSets};
use memgauge_os::memory::{Buffer, MemoryError};

use crate::burst::chase::{self, ChainSpec, Ring, WindowExits};
use crate::burst::counters::RunCounters;
use crate::burst::prefix::{self, Prefix};
use crate::burst::threads::Threads;
use crate::cutoff::Cutoff;
use crate::error::{ChainError, Result};
use crate::neighbours::NeighbourCpus;
use crate::noise::NoiseWatch;
use crate::platform::{Bursts, Platform};

/// This machine, whose `/sys` and `/proc` are below `root`.
pub(crate) struct ThisMachine<'a> {
    machine: &'a Machine,
    clock: Clock,
    root: PathBuf,
}

impl<'a> ThisMachine<'a> {
    pub(crate) const fn new(machine: &'a Machine, clock: Clock, root: PathBuf) -> Self {
        Self { machine, clock, root }
    }
}

impl Platform for ThisMachine<'_> {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wait(&self, time: Duration) {
        memgauge_os::process::sleep(time);
    }

    fn bursts(&self, plan: &Plan, cutoff: Cutoff) -> Box<dyn Bursts + '_> {
        let counters = plan.counters.then(|| {
            let cpus = plan.steps.iter().flat_map(|s| &s.cells).find_map(|cell| cell.work.cpus().first());
            RunCounters::new(&self.root, self.machine, cpus.unwrap_or(0))
        });
        Box::new(Threads::new(self.clock, self.root.clone(), self.machine.identity.may_be_virtual(), counters, cutoff))
    }

    fn allocate(&self, plan: &BufferPlan, cutoff: &Cutoff) -> Result<Buffer, MemoryError> {
        Buffer::allocate_unless(plan, &self.root, &|| cutoff.passed())
    }

    fn keeps_contents(&self) -> bool {
        true
    }

    fn write_chain(&self, buffer: &Arc<Buffer>, spec: &ChainSpec, cpus: &IdSet, cutoff: &Cutoff) -> Result<Ring, ChainError> {
        chase::write(buffer, spec, cpus, &|| cutoff.passed())
    }

    fn write_prefix(&self, prefix: &Prefix<'_>, exits: &mut Option<WindowExits>, cutoff: &Cutoff) -> Result<(Ring, Bytes), ChainError> {
        prefix::write(prefix, exits, &|| cutoff.passed())
    }

    fn allowed(&self) -> Option<AllowedSets> {
        Some(cpu::read_allowed(&self.root, &self.machine.topology))
    }

    fn compare_clocks(&self, cpus: &IdSet) -> Result<(), ClockError> {
        self.clock.cross_cpu_check(cpus).map(|_| ())
    }

    fn neighbours(&self, cpus: &IdSet, own: &IdSet, nodes: &IdSet) -> NeighbourCpus {
        NeighbourCpus::new(&self.machine.topology, cpus, own, nodes)
    }

    fn watch(&self, cpus: &IdSet, neighbours: &NeighbourCpus, ghz: f64) -> NoiseWatch {
        NoiseWatch::start(&self.root, cpus, neighbours, ghz)
    }
}
