//! Where a run takes place, how much time it has, and who watches its progress.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memgauge_model::estimate::NotMeasured;
use memgauge_model::plan::{Cell, Step, StopRule};
use memgauge_model::protocol::{STARVED_BUDGETS, burst_windows};
use memgauge_model::result::Measurement;
use memgauge_model::topology::Machine;
use memgauge_model::units::Bytes;
use memgauge_os::clock::Clock;

use crate::cutoff::{Cutoff, Heartbeat, WORKER_TIMEOUT};
use crate::platform::Platform;
use crate::this_machine::ThisMachine;

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
    /// These were just measured, in the order in which the outcome will have them. Their values will not change, their judgements may.
    fn measured(&mut self, _results: &[Measurement]) {}
    /// What to call while memory is set up, which may take long: buffers are touched, chains are written.
    fn heartbeat(&self) -> Option<Heartbeat> {
        None
    }
}

/// The time that a run and each of its cells may take.
pub(crate) struct TimeBudget<'a> {
    pub(crate) context: &'a RunContext<'a>,
    /// When the measuring of the cell in progress ends.
    pub(crate) stop: StopRule,
    /// The longest time, in seconds, for which the point in progress of a curve measures.
    point_s: Option<f64>,
    /// The window of cells and trials.
    pub(crate) window: Duration,
    /// When the cell in progress must end, so that others have their share of the run's time.
    pub(crate) cell_end: Option<Instant>,
    /// Until when the cell in progress may go on with more of the same.
    pub(crate) fill_end: Option<Instant>,
}

impl<'a> TimeBudget<'a> {
    /// No end but that of the run.
    pub(crate) const fn new(context: &'a RunContext<'a>, stop: StopRule, window: Duration) -> Self {
        Self { context, stop, point_s: None, window, cell_end: None, fill_end: None }
    }

    /// A cell begins that measures for so long.
    pub(crate) const fn begin_cell(&mut self, stop: StopRule) {
        (self.stop, self.point_s) = (stop, None);
    }

    /// The longest time, in seconds, for which the cell, or the point of a curve, in progress measures.
    pub(crate) fn budget_s(&self) -> f64 {
        self.point_s.unwrap_or(self.stop.budget_s)
    }

    pub(crate) fn stopped(&self) -> bool {
        self.context.stop.load(Ordering::Relaxed)
    }

    /// Whether the cell must end now: the user stopped the run, or there is no more time.
    pub(crate) fn interrupted(&self) -> bool {
        self.stopped() || self.over()
    }

    /// Why a cell that the end of the run hit has no value.
    pub(crate) fn interruption(&self) -> NotMeasured {
        if self.stopped() { NotMeasured::Interrupted } else { NotMeasured::OutOfTime }
    }

    pub(crate) fn over(&self) -> bool {
        self.left() == Some(Duration::ZERO)
    }

    /// Time until the cell in progress must end, where the run has a deadline.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.until(self.context.deadline.into_iter().chain(self.cell_end).min())
    }

    /// Time that the cell in progress may fill with more of the same, where the run has a deadline.
    pub(crate) fn left_to_fill(&self) -> Option<Duration> {
        self.until(self.fill_end.into_iter().chain(self.context.deadline).min())
    }

    /// Whether there is no time for something that takes as long as `this`.
    pub(crate) fn too_short_for(&self, this: Duration) -> bool {
        self.left().is_some_and(|left| left < this)
    }

    /// Gives the next of the `points` that are still to be measured its share of the cell's time, and at most the cell's budget.
    pub(crate) fn begin_point(&mut self, points: usize) {
        let budget_s = self.stop.budget_s;
        let share = self.left().map_or(budget_s, |left| left.as_secs_f64() / points.max(1) as f64);
        self.point_s = Some(if self.stop.fixed_time { budget_s } else { budget_s.min(share) });
    }

    /// How long to wait for threads that should be done: not far beyond the end of the run.
    pub(crate) fn worker_timeout(&self) -> Duration {
        self.until(self.context.deadline).map_or(WORKER_TIMEOUT, |left| WORKER_TIMEOUT.min(left + Duration::from_secs(1)))
    }

    /// Whether a cell's time is over after `spent`. A cell without any sample gets more: threads of an overcommitted machine may get no CPU
    /// for whole bursts.
    pub(crate) fn cell_over(&self, spent: Duration, sampled: bool) -> bool {
        spent.as_secs_f64() >= self.budget_s() * if sampled { 1.0 } else { STARVED_BUDGETS }
    }

    /// Counted windows of each of at least `bursts` bursts of a cell: a fixed time is shared among them, and so is a short one.
    pub(crate) fn windows(&self, bursts: u32) -> usize {
        match self.stop.fixed_time {
            true => self.fixed_windows(f64::from(bursts), self.window),
            false => burst_windows(self.budget_s(), f64::from(bursts), self.window),
        }
    }

    fn until(&self, end: Option<Instant>) -> Option<Duration> {
        end.map(|end| end.saturating_duration_since(self.context.now()))
    }

    /// Windows of each of `bursts` that fill the budget together.
    pub(crate) fn fixed_windows(&self, bursts: f64, window: Duration) -> usize {
        ((self.budget_s() / bursts / window.as_secs_f64()).ceil() as usize).max(1)
    }
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
