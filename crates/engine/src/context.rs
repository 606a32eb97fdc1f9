//! The machine and the clock of a run, its end, and the observer of its progress.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memgauge_model::plan::{Cell, Step};
use memgauge_model::result::Measurement;
use memgauge_model::topology::Machine;
use memgauge_model::units::Bytes;
use memgauge_os::clock::Clock;

use crate::cutoff::{Cutoff, Heartbeat};
use crate::platform::Platform;
use crate::this_machine::ThisMachine;

/// How soon a wait sees that the user stopped the run.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The machine, the clock, and when to stop.
pub struct RunContext<'a> {
    /// The machine that the plan was made for.
    pub machine: &'a Machine,
    /// The clock that times.
    pub clock: Clock,
    /// The folder below which `/sys` and `/proc` are; `/` on a live machine.
    pub root: PathBuf,
    /// Set by the caller, from a signal handler for instance, to end the run after the burst in progress.
    pub stop: &'a Arc<AtomicBool>,
    /// When the run must end. Cells that would not fit before are left out, and the cell in progress ends with what it has.
    pub deadline: Option<Instant>,
    /// The machine itself, or a model of it.
    pub(crate) platform: Box<dyn Platform + 'a>,
}

impl<'a> RunContext<'a> {
    /// A run on `machine` itself, without a deadline.
    pub fn new(machine: &'a Machine, clock: Clock, root: PathBuf, stop: &'a Arc<AtomicBool>) -> Self {
        let platform = Box::new(ThisMachine::new(machine, clock, root.clone()));
        Self { machine, clock, root, stop, deadline: None, platform }
    }

    /// The time now: the machine's, or that of its model.
    pub fn now(&self) -> Instant {
        self.platform.now()
    }

    /// Waits until `moment`, or until the user stops the run.
    pub fn wait_until(&self, moment: Instant) {
        while !self.stop.load(Ordering::Relaxed) {
            let left = moment.saturating_duration_since(self.now());
            if left.is_zero() {
                return;
            }
            self.platform.wait(left.min(LOOK_AGAIN));
        }
    }

    /// The machine's cache line.
    pub(crate) fn line(&self) -> Bytes {
        self.machine.topology.line()
    }

    /// When to give up what would go on beyond the end of the run, or beyond `end`.
    pub(crate) fn cutoff(&self, end: Option<Instant>) -> Cutoff {
        Cutoff::new(self.stop, self.deadline.into_iter().chain(end).min())
    }

    /// Whether the run must end now: the user stopped it, or its time is over.
    pub(crate) fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.deadline.is_some_and(|end| self.now() >= end)
    }
}

/// Watches the progress of a run. Called between bursts only, never while something is being measured.
pub trait Observer {
    /// `cell` of `step` begins.
    fn cell(&mut self, step: &Step, cell: &Cell);
    /// This share of the plan's estimated time is done, 0 to 1.
    fn progress(&mut self, share: f64);
    /// These were just measured, and come in the order of the outcome. Their values will not change, their judgements may.
    fn measured(&mut self, _results: &[Measurement]) {}
    /// The function to call while memory is set up, which may take long: buffers are touched, chains are written.
    fn heartbeat(&self) -> Option<Heartbeat> {
        None
    }
}

/// The observer of a run that nobody watches.
#[derive(Debug, Clone, Copy)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn cell(&mut self, _: &Step, _: &Cell) {}
    fn progress(&mut self, _: f64) {}
}

/// Tells the observer how much of the plan is done.
pub(crate) struct Progress<'a> {
    pub(crate) observer: &'a mut dyn Observer,
    /// The plan's estimate in seconds.
    plan_s: f64,
    /// Estimates of the cells that are done.
    pub(crate) done_s: f64,
    /// The estimate of the cell in progress, and how much of it is done where the cell says.
    pub(crate) cell_s: f64,
    within_s: f64,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(observer: &'a mut dyn Observer, plan_s: f64) -> Self {
        Self { observer, plan_s, done_s: 0.0, cell_s: 0.0, within_s: 0.0 }
    }

    pub(crate) fn begin_cell(&mut self, step: &Step, cell: &Cell) {
        self.cell_s = step.estimated_s / step.cells.len().max(1) as f64;
        self.observer.cell(step, cell);
        self.report();
    }

    pub(crate) fn end_cell(&mut self) {
        self.done_s += self.cell_s;
        self.within_s = 0.0;
    }

    /// Sets how much of the cell in progress is done, 0 to 1; for cells that take minutes.
    pub(crate) fn within_cell(&mut self, share: f64) {
        self.within_s = self.cell_s * share;
        self.report();
    }

    /// Time has passed.
    pub(crate) fn report(&mut self) {
        self.observer.progress(((self.done_s + self.within_s) / self.plan_s.max(1e-9)).min(1.0));
    }
}
