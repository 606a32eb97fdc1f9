//! How much time there is: for the run, and for a cell.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use memgauge_core::plan::StopRule;
use memgauge_core::protocol::{BURST_WINDOWS, STARVED_BUDGETS, WINDOW};

use crate::context::RunContext;

/// A thread that has not come back this long after its work should have ended is lost.
pub(crate) const WORKER_TIMEOUT: Duration = Duration::from_secs(20);

/// The time that a run and each of its cells may take.
pub(crate) struct TimeBudget<'a> {
    context: &'a RunContext<'a>,
    pub(crate) stop: StopRule,
}

impl<'a> TimeBudget<'a> {
    pub(crate) const fn new(context: &'a RunContext<'a>, stop: StopRule) -> Self {
        Self { context, stop }
    }

    /// Whether the user stopped the run.
    pub(crate) fn stopped(&self) -> bool {
        self.context.stop.load(Ordering::Relaxed)
    }

    /// Whether the run must end now: the user stopped it, or its time is over.
    pub(crate) fn interrupted(&self) -> bool {
        self.stopped() || self.over()
    }

    /// Whether the time of the run is over.
    pub(crate) fn over(&self) -> bool {
        self.left() == Some(Duration::ZERO)
    }

    /// Time until the run must end, where it has a deadline.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.context.deadline.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// How long to wait for threads that should be done: not far beyond the end of the run.
    pub(crate) fn worker_timeout(&self) -> Duration {
        self.left().map_or(WORKER_TIMEOUT, |left| WORKER_TIMEOUT.min(left + Duration::from_secs(1)))
    }

    /// Whether a cell's time is over after `spent`. A cell without any sample gets more: threads of an overcommitted machine may get no CPU
    /// for whole bursts.
    pub(crate) fn cell_over(&self, spent: Duration, sampled: bool) -> bool {
        spent.as_secs_f64() >= self.stop.budget_s * if sampled { 1.0 } else { STARVED_BUDGETS }
    }

    /// Counted windows of each of `bursts` of a cell: a fixed time is shared among them.
    pub(crate) fn windows(&self, bursts: u32) -> usize {
        if self.stop.fixed_time { self.fixed_windows(f64::from(bursts), WINDOW) } else { BURST_WINDOWS }
    }

    /// Windows of each of `bursts` that fill the budget together.
    pub(crate) fn fixed_windows(&self, bursts: f64, window: Duration) -> usize {
        ((self.stop.budget_s / bursts / window.as_secs_f64()).ceil() as usize).max(1)
    }
}
