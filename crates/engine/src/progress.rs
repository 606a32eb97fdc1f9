//! How far a run is, by the plan's estimates.

use memgauge_core::plan::{Cell, Step};

use crate::context::Observer;

/// Tells the observer how much of the plan is done.
pub(crate) struct Progress<'a> {
    observer: &'a mut dyn Observer,
    /// The plan's estimate in seconds.
    plan_s: f64,
    /// Estimates of the cells that are done.
    done_s: f64,
    /// The estimate of the cell in progress, and how much of it is done where the cell says.
    cell_s: f64,
    within_s: f64,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(observer: &'a mut dyn Observer, plan_s: f64) -> Self {
        Self { observer, plan_s, done_s: 0.0, cell_s: 0.0, within_s: 0.0 }
    }

    /// A cell of a step begins.
    pub(crate) fn begin_cell(&mut self, step: &Step, cell: &Cell) {
        self.cell_s = step.estimated_s / step.cells.len().max(1) as f64;
        self.observer.cell(step, cell);
        self.report();
    }

    /// The cell in progress has ended.
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

    /// Everything is done.
    pub(crate) fn finish(&mut self) {
        self.observer.progress(1.0);
    }

    /// The estimate of the cell in progress, in seconds.
    pub(crate) const fn cell_s(&self) -> f64 {
        self.cell_s
    }

    /// Whether any cell was begun before this one.
    pub(crate) const fn any_done(&self) -> bool {
        self.done_s > 0.0
    }
}
