//! The interface of a model that stands in for the machine in tests ([`simulated`](crate::simulated)).

use std::time::Duration;

use memgauge_kernels::Kernel;
use memgauge_model::experiment::{ChaseOrder, LineState};
use memgauge_model::units::Bytes;

/// The model of a machine.
pub trait SimulatedMachine: Sync {
    /// Time since the simulation began.
    fn elapsed(&self) -> Duration;

    /// Time passes.
    fn pass(&self, time: Duration);

    /// The buffer at this address is a new one, whatever was there before.
    fn allocated(&self, _buffer: usize) {}

    /// Frequency of a core in GHz, with its noise, while `busy` CPUs work, it among them.
    fn ghz(&self, cpu: u32, busy: usize) -> f64;

    /// The rates of a chase and loaders that run together, for `windows` windows of length `window`.
    fn burst(&self, chase: Option<ChaseWork>, loads: &[LoadWork], windows: usize, window: Duration) -> BurstRates;

    /// A CPU reads a buffer of this size. If that is more than its caches hold, these hold nothing that its next burst visits.
    fn read_all(&self, cpu: u32, bytes: Bytes);

    /// Hops of a chase that a core still waits for when it reads its clock without a fence. 0: the rates of windows are their results, and no
    /// thread reads a clock in them.
    fn hops_in_flight(&self) -> u32 {
        0
    }

    /// The nanoseconds that a hop takes longer on a thread that was just woken, and how long this lasts.
    fn cold(&self) -> (f64, Duration) {
        (0.0, Duration::ZERO)
    }

    /// Nanoseconds per line in each of the reader's turns, for transfers that run at once.
    fn transfers(&self, work: &[TransferWork], run: Duration) -> Vec<Vec<f64>>;
}

/// A chase in a burst.
#[derive(Debug, Clone)]
pub struct ChaseWork {
    /// The CPU that chases.
    pub cpu: u32,
    /// The address of its buffer, which tells buffers apart.
    pub buffer: usize,
    /// The nodes of its memory, with the share of each.
    pub memory: Vec<(u32, f64)>,
    /// Bytes of the lines that it visits.
    pub bytes: Bytes,
    /// Its order.
    pub order: ChaseOrder,
}

/// A loader in a burst.
#[derive(Debug, Clone)]
pub struct LoadWork {
    /// Its CPU.
    pub cpu: u32,
    /// The address of its buffer, which tells buffers apart.
    pub buffer: usize,
    /// The nodes of its memory, with the share of each.
    pub memory: Vec<(u32, f64)>,
    /// Bytes that it goes over.
    pub bytes: Bytes,
    /// Its loop.
    pub kernel: &'static Kernel,
    /// Core cycles between four lines.
    pub delay: u32,
}

/// A transfer from cache to cache.
#[derive(Debug, Clone, Copy)]
pub struct TransferWork {
    /// The CPU that reads.
    pub reader: u32,
    /// The CPU that had the lines.
    pub holder: u32,
    /// The address of the lines' buffer.
    pub buffer: usize,
    /// The node of the lines' memory.
    pub home: u32,
    /// The state of the lines.
    pub state: LineState,
    /// Lines in a turn.
    pub lines: u64,
}

/// The rates of threads in a burst, window by window.
#[derive(Debug, Clone, Default)]
pub struct BurstRates {
    /// Nanoseconds per hop of the chase.
    pub hop_ns: Vec<f64>,
    /// Lines loaded and stored per nanosecond, by loader.
    pub lines_per_ns: Vec<Vec<f64>>,
    /// Share of each window during which others had the CPUs. The rates are those of the rest of it. Empty: none.
    pub away: Vec<f64>,
    /// Share of the CPUs that share memory with the measured ones that others used; `None` where nobody can tell.
    pub neighbours: Option<f64>,
}
