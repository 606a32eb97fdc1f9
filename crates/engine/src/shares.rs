//! The time of a run that must end is shared among its cells, again before each of them: one that took longer than planned takes from all
//! that follow, by what they need, and one that took less leaves its time to them.

use memgauge_model::plan::Plan;
use memgauge_planner::cost::{self, CellCost};

/// A cell may take this many times its share where the others have more than they need at least.
const OVERRUN: f64 = 2.0;
/// What is planned to take up to so many times the time that is left may still fit: estimates err.
const TOLERANCE: f64 = 1.2;

pub(crate) struct Shares {
    /// Of each cell that has not begun, the last one first; `true` for the first cell of a step.
    left: Vec<(bool, CellCost)>,
    budget_s: f64,
    /// A time that was asked for is not reduced.
    fixed_time: bool,
    begun: bool,
}

/// What a cell gets.
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
        let first = plan.steps.iter().flat_map(|step| (0..step.cells.len()).map(|index| index == 0));
        let mut left: Vec<(bool, CellCost)> = first.zip(cost::cells(plan)).collect();
        left.reverse();
        Self { left, budget_s: plan.stop.budget_s, fixed_time: plan.stop.fixed_time, begun: false }
    }

    /// The share of the next cell, with `seconds` left for it and all that follow. `None` if there is too little time for all of them and
    /// others need it: the first cells of the steps come before the other cells, and earlier ones before later ones. The first cell of a run
    /// is measured in any case.
    pub(crate) fn next(&mut self, seconds: f64) -> Option<Share> {
        let begun = std::mem::replace(&mut self.begun, true);
        let (_, own) = *self.left.last()?;
        let (mut least, mut most, mut fits) = (0.0, 0.0, false);
        let last = self.left.len() - 1;
        for wanted in [true, false] {
            for (index, (_, cost)) in self.left.iter().enumerate().rev().filter(|(_, (first, _))| *first == wanted) {
                if least + cost.least_s <= TOLERANCE * seconds || (index == last && !begun) {
                    (least, most) = (least + cost.least_s, most + cost.most_s);
                    fits |= index == last;
                }
            }
        }
        let cells = self.left.len() as f64;
        self.left.pop();
        let part = ((seconds - least) / (most - least).max(1e-9)).clamp(0.0, 1.0);
        let planned = own.least_s + part * (own.most_s - own.least_s);
        let spare = seconds - (least - own.least_s);
        // Time that no cell is planned to need, half of it for this cell and the rest for those that follow: estimates of setting up err most on
        // machines that others use.
        let unplanned = own.most_s + (seconds - most) / 2.0;
        // Where even the least is too much, all get less in proportion.
        let planned = planned * (seconds / least.max(1e-9)).min(1.0);
        let budget_s = if self.fixed_time { self.budget_s } else { part * self.budget_s };
        let fill_s = planned + (seconds - most).max(0.0) / cells;
        let at_most_s = fill_s.max(spare.min((OVERRUN * planned).max(unplanned))).max(0.0);
        fits.then_some(Share { budget_s, at_most_s, fill_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two steps of three cells, each from 1 to 3 seconds.
    fn shares() -> Shares {
        let cost = CellCost { least_s: 1.0, most_s: 3.0 };
        Shares { left: (0..6).rev().map(|i| (i % 3 == 0, cost)).collect(), budget_s: 2.0, fixed_time: false, begun: false }
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
    fn where_cells_must_go_each_step_keeps_one() {
        let least = |_, _| 1.0;
        assert_eq!(run(3.0, least).1, "xx-x--");
        assert_eq!(run(2.0, least).1, "x--x--");
        assert_eq!(run(0.1, least).1, "x-----", "the first is measured in any case");
    }
}
