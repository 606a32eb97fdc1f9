//! Plan in, samples out. An experiment is at most one latency probe and any number of loaders for a while ([`burst`]); idle latency has no loaders,
//! bandwidth no probe, loaded latency both. Cache-to-cache hand-off ([`handoff`]) is the only second engine. A [`scan`] reads regions once and
//! not for a time.
//!
//! Nothing here formats, and no default is chosen here: what the plan leaves open (which kernel is fastest, where the curve needs a point)
//! is decided by measuring, and the result says what was decided.

mod bandwidth;
mod buffers;
mod burst;
mod chain;
mod counting;
mod crew;
mod curve;
mod handoff;
mod latency;
mod load;
mod loops;
mod pages;
mod rfo;
mod scan;
mod session;
mod sweep;
mod takes;
mod team;
mod transfers;

pub use loops::{LoopError, run_loop};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use memgauge_core::note::Note;
use memgauge_core::plan::{Cell, Plan, Step};
use memgauge_core::result::{CurveSummary, Measurement, RfoEvidence, Timing};
use memgauge_core::topology::Machine;
use memgauge_os::clock::Clock;

/// Where a run takes place.
pub struct RunContext<'a> {
    /// The machine that the plan was made for.
    pub machine: &'a Machine,
    /// The clock that times.
    pub clock: Clock,
    /// The folder below which `/sys` and `/proc` are; `/` on a live machine.
    pub root: PathBuf,
    /// Set by the caller, from a signal handler for instance, to end the run after the burst in progress.
    pub stop: &'a AtomicBool,
    /// When the run is to end, whatever is done by then: cells that would not fit are left out, and the one in progress ends with what it
    /// has.
    pub deadline: Option<Instant>,
}

/// What came out.
pub struct Outcome {
    /// One or more results a cell; cells that could not be measured have a result without value and with the reason.
    pub results: Vec<Measurement>,
    /// A summary for each loaded-latency curve.
    pub curves: Vec<CurveSummary>,
    /// Whether plain stores read the line first, where that was measured.
    pub rfo: Option<RfoEvidence>,
    /// What a reader should know.
    pub notes: Vec<Note>,
    /// How the time was spent; `total_s` is the caller's.
    pub timing: Timing,
    /// Core frequency in GHz by CPU, as measured along the way.
    pub core_ghz: BTreeMap<u32, f64>,
    /// Whether every cell was measured.
    pub complete: bool,
}

/// Is told how far the run is. Called between bursts only, never while something is being measured.
pub trait Observer {
    /// `cell` of `step` begins.
    fn cell(&mut self, step: &Step, cell: &Cell);
    /// This share of the plan's estimated time is done, 0 to 1.
    fn progress(&mut self, share: f64);
}

/// Measures everything in `plan`. A cell that fails costs that cell, not the run.
pub fn run(plan: &Plan, setting: &RunContext<'_>, observer: &mut dyn Observer) -> Outcome {
    session::Session::new(plan, setting, observer).run()
}
