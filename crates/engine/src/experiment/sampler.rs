//! The loop that measures round by round until the intervals are narrow or the time is over.

use std::time::Duration;

use super::samples::BurstSamples;
use crate::error::CellError;
use crate::session::Session;

/// How many hops of a chase were made, where a number of hops was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HopCount {
    /// Time decides.
    Unlimited,
    /// None yet.
    None,
    /// Some are missing.
    Some,
    /// All were made.
    All,
}

/// Something that is measured in rounds: bursts, allocations, or runs of transfers.
pub(crate) trait Sampler {
    /// Measures round number `round`. Returns the time that counts against the budget.
    fn sample_round(&mut self, session: &mut Session<'_>, round: u32) -> Result<Duration, CellError>;

    /// The samples so far, by result.
    fn samples(&self) -> impl Iterator<Item = &BurstSamples>;

    /// How far a chase is that is to make a number of hops.
    fn hops(&self) -> HopCount {
        HopCount::Unlimited
    }
}

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StopAfter {
    /// The minimum number of rounds.
    pub(crate) min_rounds: u32,
    /// The time for all rounds where it is not the plan's budget for a cell.
    pub(crate) budget: Option<Duration>,
    /// Go on where too many bursts were disturbed, while there is time.
    pub(crate) want_undisturbed: bool,
}

/// Measures until every interval is narrow enough, the budget is spent or the run is interrupted. Returns how many rounds that took.
pub(crate) fn measure_until_sure(session: &mut Session<'_>, stop: StopAfter, sampler: &mut impl Sampler) -> Result<u32, CellError> {
    let (mut spent, mut rounds) = (Duration::ZERO, 0);
    let (target, fixed_time) = (session.budget.stop.relative_half_width, session.budget.stop.fixed_time);
    loop {
        spent += sampler.sample_round(session, rounds)?;
        rounds += 1;
        let sampled = sampler.samples().any(BurstSamples::any_samples);
        let over = || stop.budget.map_or_else(|| session.budget.cell_over(spent, sampled), |budget| spent >= budget);
        let sure = || sampler.samples().all(|s| (!stop.want_undisturbed || s.enough_undisturbed()) && s.converged(target));
        let enough = match sampler.hops() {
            HopCount::Unlimited => rounds >= stop.min_rounds && (over() || (!fixed_time && sure())),
            // A chase that gets no time at all is given up like any other.
            HopCount::None => over(),
            HopCount::Some => false,
            HopCount::All => true,
        };
        if session.interrupted() || enough {
            return Ok(rounds);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    use memgauge_core::plan::{Cell, Step, StopRule};
    use memgauge_core::spec::{LatencyShape, Spec, Task};
    use memgauge_os::clock::Clock;

    use super::super::samples::{BurstConditions, GroupBy};
    use super::*;
    use crate::context::{Observer, RunContext};

    const ROUND: Duration = Duration::from_millis(100);
    const MIN_ROUNDS: u32 = 6;

    /// Gives the sample of each round, where there is one.
    struct Scripted {
        samples: BurstSamples,
        sample: fn(u32) -> Option<f64>,
        hops: HopCount,
    }

    impl Sampler for Scripted {
        fn sample_round(&mut self, _: &mut Session<'_>, round: u32) -> Result<Duration, CellError> {
            self.samples.add(0, vec![(self.sample)(round).into_iter().collect()], BurstConditions::default());
            Ok(ROUND)
        }

        fn samples(&self) -> impl Iterator<Item = &BurstSamples> {
            std::iter::once(&self.samples)
        }

        fn hops(&self) -> HopCount {
            self.hops
        }
    }

    /// The rounds that a sampler takes with a budget of ten; `budget` replaces the cell's.
    fn rounds(sample: fn(u32) -> Option<f64>, hops: HopCount, fixed_time: bool, budget: Option<Duration>) -> u32 {
        struct Silent;
        impl Observer for Silent {
            fn cell(&mut self, _: &Step, _: &Cell) {}
            fn progress(&mut self, _: f64) {}
        }
        let root = Path::new("/");
        let machine = memgauge_os::topology::read_machine(root).unwrap();
        let mut plan = memgauge_core::planner::plan(&Spec::new(Task::Latency(LatencyShape::One)), &machine, &[]).unwrap();
        plan.stop = StopRule { relative_half_width: 0.01, budget_s: 10.0 * ROUND.as_secs_f64(), fixed_time };
        let stop = AtomicBool::new(false);
        let context = RunContext { machine: &machine, clock: Clock::calibrate(root), root: root.into(), stop: &stop, deadline: None };
        let mut silent = Silent;
        let mut session = Session::new(&plan, &context, &mut silent);
        let mut sampler = Scripted { samples: BurstSamples::new(GroupBy::Burst, MIN_ROUNDS), sample, hops };
        measure_until_sure(&mut session, StopAfter { min_rounds: MIN_ROUNDS, budget, want_undisturbed: true }, &mut sampler).unwrap()
    }

    #[test]
    fn sampling_ends_when_it_is_sure_or_its_time_is_over() {
        let steady: fn(u32) -> Option<f64> = |_| Some(100.0);
        let noisy: fn(u32) -> Option<f64> = |round| Some(if round.is_multiple_of(2) { 50.0 } else { 150.0 });
        let starved: fn(u32) -> Option<f64> = |_| None;
        assert_eq!(rounds(steady, HopCount::Unlimited, false, None), MIN_ROUNDS);
        assert_eq!(rounds(steady, HopCount::Unlimited, true, None), 10, "a fixed time is used up");
        assert_eq!(rounds(noisy, HopCount::Unlimited, false, None), 10);
        assert_eq!(rounds(noisy, HopCount::Unlimited, false, Some(8 * ROUND)), 8);
        assert_eq!(rounds(starved, HopCount::Unlimited, false, None), 80, "without any sample there is more time");
    }

    #[test]
    fn a_number_of_hops_counts_instead_of_time() {
        let steady: fn(u32) -> Option<f64> = |_| Some(100.0);
        assert_eq!(rounds(steady, HopCount::All, false, None), 1);
        assert_eq!(rounds(steady, HopCount::None, false, None), 10, "a chase that gets no time is given up");
    }
}
