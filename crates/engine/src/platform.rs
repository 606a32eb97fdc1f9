//! The two seams below which a model can stand in for the machine that is measured: what runs bursts, and what gives memory and tells the
//! time. The one implementation is threads and memory of this machine ([`this_machine`](crate::this_machine)), the other is for tests
//! (the feature `simulate`). Both are called between bursts and never within one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use memgauge_model::plan::{BufferPlan, Plan};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_os::clock::ClockError;
use memgauge_os::cpu::AllowedSets;
use memgauge_os::memory::{Buffer, MemoryError};

use crate::burst::chase::{ChainSpec, Chase, Ring, WindowExits};
use crate::burst::counters::RunCounters;
use crate::burst::handover::{Transfer, TransferRun};
use crate::burst::load::Load;
use crate::burst::prefix::Prefix;
use crate::burst::result::{BurstResult, BurstShape, ChasedHops};
use crate::burst::threads::Threads;
use crate::cutoff::Cutoff;
use crate::error::{ChainError, Result, WorkerError};
use crate::neighbours::{NeighbourCpus, Others};
use crate::noise::NoiseWatch;

/// The services that a run needs from the machine, apart from bursts.
pub(crate) trait Platform: Sync {
    /// The time now.
    fn now(&self) -> Instant;

    /// Lets this time pass.
    fn wait(&self, time: Duration);

    /// The runner of the bursts of `plan`, until `cutoff`.
    fn bursts(&self, plan: &Plan, cutoff: Cutoff) -> Box<dyn Bursts + '_>;

    /// Allocates a buffer.
    fn allocate(&self, plan: &BufferPlan, cutoff: &Cutoff) -> Result<Buffer, MemoryError>;

    /// Whether memory holds what is written to it. A model has no more than addresses.
    fn keeps_contents(&self) -> bool;

    /// Writes a chain into a buffer, in parallel on `cpus`.
    fn write_chain(&self, buffer: &Arc<Buffer>, spec: &ChainSpec, cpus: &IdSet, cutoff: &Cutoff) -> Result<Ring, ChainError>;

    /// Writes the chain of a working set. Returns it with the window that it is random in. `exits` are those of the windows that several
    /// working sets share, once they are written.
    fn write_prefix(&self, prefix: &Prefix<'_>, exits: &mut Option<WindowExits>, cutoff: &Cutoff) -> Result<(Ring, Bytes), ChainError>;

    /// The CPUs and nodes that this process may use now; `None` if these are those of the plan.
    fn allowed(&self) -> Option<AllowedSets>;

    /// Compares the clocks of CPUs.
    fn compare_clocks(&self, cpus: &IdSet) -> Result<(), ClockError>;

    /// The CPUs whose use by others is watched while `cpus` measure, on memory of `nodes`. `own` are all CPUs that this process uses.
    fn neighbours(&self, cpus: &IdSet, own: &IdSet, nodes: &IdSet) -> NeighbourCpus;

    /// Begins to watch what else happens while all of `cpus` work; one of them runs at `ghz`.
    fn watch(&self, cpus: &IdSet, neighbours: &NeighbourCpus, ghz: f64) -> NoiseWatch;
}

/// What runs bursts on the CPUs.
pub(crate) trait Bursts {
    /// From now on bursts have these neighbours.
    fn begin_cell(&mut self, _neighbours: &NeighbourCpus) {}

    /// Runs a chase and loaders together, while `awake` are kept awake.
    fn burst(
        &mut self,
        chase: Option<(u32, Chase)>,
        loads: Vec<(u32, Load)>,
        awake: &IdSet,
        shape: BurstShape,
        timeout: Duration,
    ) -> Result<BurstResult>;

    /// Chases `hops` hops on a CPU, until `interrupted`.
    fn hops(&mut self, cpu: u32, chase: Chase, hops: u64, awake: &IdSet, interrupted: &dyn Fn() -> bool) -> Result<ChasedHops>;

    /// Runs transfers at once for `run`, each for at most `windows` windows. `allocate` gives the buffers that their CPUs push.
    fn transfers(
        &mut self,
        transfers: &[Transfer<'_>],
        allocate: &mut dyn FnMut(&BufferPlan) -> Result<Arc<Buffer>>,
        run: Duration,
        windows: u64,
    ) -> Result<(Vec<TransferRun>, Others)>;

    /// Reads all of a buffer on a CPU, so that its caches hold that and little else.
    fn read_all(&mut self, cpu: u32, buffer: &Arc<Buffer>, timeout: Duration) -> Result<(), WorkerError>;

    /// Waits until the clock of a core has settled, for `longest` at most, and returns its frequency in GHz. It is only read if it is
    /// `settled` already.
    fn warm_up(&mut self, cpu: u32, settled: bool, longest: Duration) -> Result<f64, WorkerError>;

    /// The frequencies of cores in GHz, once those of all have settled; none without the threads for that.
    fn warm_up_all(&mut self, cpus: &IdSet, longest: Duration) -> Vec<(u32, f64)>;

    /// The frequency of a core now, in GHz; `None` when its CPU went away.
    fn ghz(&mut self, cpu: u32) -> Option<f64>;

    /// Hardware counters, where they were asked for.
    fn counters(&mut self) -> Option<&mut RunCounters> {
        None
    }

    /// The threads, for what no model imitates: scans and tests of memory.
    fn threads(&mut self) -> Option<&mut Threads> {
        None
    }
}
