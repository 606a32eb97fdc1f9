//! Where a run takes place, and who watches its progress.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use memgauge_core::plan::{Cell, Step};
use memgauge_core::topology::Machine;
use memgauge_core::units::Bytes;
use memgauge_os::clock::Clock;

/// The machine, the clock, and when to stop.
pub struct RunContext<'a> {
    /// The machine that the plan was made for.
    pub machine: &'a Machine,
    /// The clock that times.
    pub clock: Clock,
    /// The folder below which `/sys` and `/proc` are; `/` on a live machine.
    pub root: PathBuf,
    /// Set by the caller, from a signal handler for instance, to end the run after the burst in progress.
    pub stop: &'a AtomicBool,
    /// When the run must end. Cells that would not fit before are left out, and the cell in progress ends with what it has.
    pub deadline: Option<Instant>,
}

impl RunContext<'_> {
    /// The machine's cache line: the largest where caches differ, 64 B where the machine does not say.
    pub(crate) fn line(&self) -> Bytes {
        let lines = self.machine.topology.caches.iter().filter_map(|c| c.line);
        Bytes(lines.max().map_or(64, u64::from))
    }
}

/// Watches the progress of a run. Called between bursts only, never while something is being measured.
pub trait Observer {
    /// `cell` of `step` begins.
    fn cell(&mut self, step: &Step, cell: &Cell);
    /// This share of the plan's estimated time is done, 0 to 1.
    fn progress(&mut self, share: f64);
}
