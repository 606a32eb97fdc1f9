//! The time of a run that must end. One rule: what is left to measure gets, in order of its worth, the least that it needs; the rest of the time
//! is divided by what each can use. It is applied anew before each cell and each point, so that one that took longer than planned takes from all
//! that follow, and one that took less leaves its time to them. Cells and points without time are left out.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use memgauge_model::estimate::NotMeasured;
use memgauge_model::plan::{Plan, StopRule, worth};
use memgauge_model::protocol::{STARVED_BUDGETS, burst_windows};
use memgauge_planner::cost::{self, CellCost};

use crate::context::RunContext;
use crate::cutoff::WORKER_TIMEOUT;

/// A cell may take this many times its share where the others have more than they need at least.
const OVERRUN: f64 = 2.0;
/// A plan that exceeds the time left by up to this factor may still fit: estimates err.
const TOLERANCE: f64 = 1.2;

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

    /// Begins a cell that measures for the time of `stop`.
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

    /// Whether the cell must end now: the user stopped the run, or its time is over.
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

    /// Whether the time left is shorter than `this`.
    pub(crate) fn too_short_for(&self, this: Duration) -> bool {
        self.left().is_some_and(|left| left < this)
    }

    /// Gives the next of the `points` that are still to be measured its share of the cell's time, and at most the cell's budget.
    pub(crate) fn begin_point(&mut self, points: usize) {
        let budget_s = self.stop.budget_s;
        let all = CellCost { least_s: 0.0, most_s: points.max(1) as f64 * budget_s };
        let part = self.left().map_or(1.0, |left| part(left.as_secs_f64(), all));
        self.point_s = Some(if self.stop.fixed_time { budget_s } else { part * budget_s });
    }

    /// The order in which to measure `n` points of an axis: upwards, or by their worth where time may end before all of them are measured. Then
    /// points that are `together` come before the others.
    pub(crate) fn point_order(&self, n: usize, together: impl Fn(usize) -> bool) -> Vec<usize> {
        if self.context.deadline.is_some() { worth::point_order(n, together) } else { (0..n).collect() }
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

/// How much of what they can use beyond the least all get of the time that is left, 0 to 1.
fn part(left_s: f64, all: CellCost) -> f64 {
    ((left_s - all.least_s) / (all.most_s - all.least_s).max(1e-9)).clamp(0.0, 1.0)
}

/// Divides the time of a run among its cells.
pub(crate) struct Shares {
    /// The time that each cell takes.
    costs: Vec<CellCost>,
    /// The cells by their worth, those of the same worth in the order of the run.
    by_worth: Vec<usize>,
    /// The cell that is next.
    next: usize,
    stop: StopRule,
}

/// The time of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    /// Seconds that it, or each point of it, measures.
    pub(crate) budget_s: f64,
    /// Seconds after which it ends, with all of its set-up.
    pub(crate) at_most_s: f64,
    /// Seconds that it may fill, if what it does can go on for ever: with an equal part of the time that no cell is planned to need.
    pub(crate) fill_s: f64,
}

impl Shares {
    pub(crate) fn new(plan: &Plan) -> Self {
        let ranks = plan.steps.iter().flat_map(|step| worth::cell_ranks(&step.cells)).collect();
        Self::of(cost::cells(plan), ranks, plan.stop)
    }

    fn of(costs: Vec<CellCost>, ranks: Vec<u32>, stop: StopRule) -> Self {
        let mut by_worth: Vec<usize> = (0..costs.len()).collect();
        by_worth.sort_by_key(|index| ranks[*index]);
        Self { costs, by_worth, next: 0, stop }
    }

    /// The share of the next cell, with `left_s` seconds for it and all that follow. `None` if others of more worth need that time. The first
    /// cell of a run is always measured.
    pub(crate) fn next(&mut self, left_s: f64) -> Option<Share> {
        let this = self.next;
        let own = *self.costs.get(this)?;
        self.next += 1;
        let (mut all, mut fits) = (CellCost { least_s: 0.0, most_s: 0.0 }, false);
        for &index in self.by_worth.iter().filter(|index| **index >= this) {
            let cost = self.costs[index];
            if all.least_s + cost.least_s <= TOLERANCE * left_s || index == 0 {
                all = CellCost { least_s: all.least_s + cost.least_s, most_s: all.most_s + cost.most_s };
                fits |= index == this;
            }
        }
        let part = part(left_s, all);
        // If even the least is too much, all get less in proportion.
        let planned_s = (own.least_s + part * (own.most_s - own.least_s)) * (left_s / all.least_s.max(1e-9)).min(1.0);
        let unplanned_s = (left_s - all.most_s).max(0.0);
        let fill_s = planned_s + unplanned_s / (self.costs.len() - this) as f64;
        // Estimates of setting up err most on machines that others use. So a cell may take more than planned, but only what leaves the others the
        // least that they need, and not more than half of the time that no cell is planned to need.
        let overrun_s = (OVERRUN * planned_s).max(own.most_s + (left_s - all.most_s) / 2.0);
        let at_most_s = fill_s.max(overrun_s.min(left_s - (all.least_s - own.least_s))).max(0.0);
        let budget_s = if self.stop.fixed_time { self.stop.budget_s } else { part * self.stop.budget_s };
        fits.then_some(Share { budget_s, at_most_s, fill_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two steps of three cells, each from 1 to 3 seconds. Of each step the first cell is worth most, then the last.
    fn shares() -> Shares {
        let cost = CellCost { least_s: 1.0, most_s: 3.0 };
        let stop = StopRule { relative_half_width: 0.01, budget_s: 2.0, fixed_time: false };
        Shares::of(vec![cost; 6], vec![0, 2, 1, 0, 2, 1], stop)
    }

    /// The seconds of all cells where each takes what `takes` makes of its share, and which of them were measured.
    fn run(within: f64, mut takes: impl FnMut(usize, Share) -> f64) -> (f64, String) {
        let (mut shares, mut spent, mut measured) = (shares(), 0.0, String::new());
        for index in 0..6 {
            let share = shares.next(within - spent);
            measured.push(if share.is_some() { 'x' } else { '-' });
            spent += share.map_or(0.0, |share| takes(index, share).min(share.at_most_s));
        }
        (spent, measured)
    }

    #[test]
    fn the_time_is_shared_among_all_cells() {
        let of_budget = |_, share: Share| 1.0 + share.budget_s;
        assert_eq!(run(30.0, of_budget), (18.0, "xxxxxx".into()), "no more than the budget");
        let (spent, measured) = run(12.0, of_budget);
        assert!((spent - 12.0).abs() < 1e-9 && measured == "xxxxxx", "{spent} {measured}");
        // A cell that ends early leaves its time to the others.
        let mut shares = shares();
        let (early, later) = (shares.next(12.0).unwrap(), shares.next(11.9).unwrap());
        assert!(later.budget_s > early.budget_s, "{early:?} {later:?}");
    }

    #[test]
    fn a_cell_that_overruns_takes_from_all_that_follow_and_starves_none() {
        for late in 0..6 {
            let (spent, measured) = run(12.0, |index, share| if index == late { 100.0 } else { 1.0 + share.budget_s });
            assert!(spent <= 12.0 + 1e-9 && measured == "xxxxxx", "{late}: {spent} {measured}");
        }
        let (spent, measured) = run(12.0, |_, _| 100.0);
        assert!(spent <= 12.0 + 1e-9 && measured == "xxxxxx", "{spent} {measured}");
    }

    #[test]
    fn where_time_is_plenty_a_cell_may_take_many_times_its_estimate() {
        let (spent, measured) = run(60.0, |index, _| if index == 1 { 20.0 } else { 3.0 });
        assert!(spent == 35.0 && measured == "xxxxxx", "{spent} {measured}");
        let (spent, measured) = run(60.0, |_, _| 100.0);
        assert!(spent <= 60.0 && measured == "xxxxxx", "{spent} {measured}");
    }

    #[test]
    fn what_can_go_on_for_ever_fills_the_time_of_all_in_equal_parts() {
        let mut filled = Vec::new();
        let (spent, _) = run(60.0, |_, share| {
            filled.push(share.fill_s);
            share.fill_s
        });
        assert!((spent - 60.0).abs() < 1e-9 && filled.iter().all(|seconds| (seconds - 10.0).abs() < 1e-9), "{filled:?}");
    }

    #[test]
    fn where_cells_must_go_those_of_most_worth_stay() {
        let least = |_, _| 1.0;
        assert_eq!(run(5.0, least).1, "xxxx-x");
        assert_eq!(run(3.0, least).1, "x-xx--");
        assert_eq!(run(2.0, least).1, "x--x--");
        assert_eq!(run(0.1, least).1, "x-----", "the first is always measured");
    }
}
