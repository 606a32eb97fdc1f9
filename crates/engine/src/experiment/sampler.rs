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
