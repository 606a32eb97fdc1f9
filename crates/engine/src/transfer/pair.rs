//! Cache-to-cache transfers of one pair of CPUs, which hand a window of lines from one to the next.
//!
//! One CPU loads (HIT) or stores to (HITM) every line of a window by chasing it, then the other chases the same window once, each line
//! migrating as it is touched. The window slides over a buffer much larger than any cache, so lines are always fresh and at many addresses.
//! If the plan asks for it, a third CPU loads the window in between, the holder reads another buffer afterwards, and the reader reads one
//! beforehand, so that the lines move on in their caches.

use std::time::Duration;

use memgauge_model::estimate::NotMeasured;
use memgauge_model::experiment::{LineState, Metric};
use memgauge_model::plan::{Handoff, Probe};
use memgauge_model::protocol::{MAX_BURST, MIN_TRANSFER_ALLOCATIONS, transfer_run};
use memgauge_model::result::{Evidence, Measurement, PageEvidence, Placement, Pushes};
use memgauge_model::units::Bytes;

use crate::burst::handover::{Transfer, TransferRun, participants, window_hops};
use crate::burst::result::Conditions;
use crate::error::Result;
use crate::experiment::disturbance::{BurstConditions, BurstSamples, GroupBy};
use crate::experiment::sampling::{Sampler, StopAfter, hop_count, measure_until_sure};
use crate::measured::{Measured, Subject};
use crate::memory::combined_pages;
use crate::neighbours::Others;
use crate::session::Session;

/// The runs of a pair, each over a fresh allocation.
struct PairSampler<'a> {
    plan: &'a Handoff,
    run: Duration,
    samples: BurstSamples,
    /// Windows that the reader read.
    windows: u64,
    pages: Vec<PageEvidence>,
    placements: Vec<Placement>,
}

impl Sampler for PairSampler<'_> {
    fn sample_round(&mut self, session: &mut Session<'_>, round: u32) -> Result<Duration> {
        let plan = self.plan;
        let buffer = session.chase_buffer(&plan.buffer, round)?;
        self.pages.push(buffer.pages().clone());
        let window = plan.chase_window.unwrap_or(plan.window);
        let probe = Probe { cpu: plan.reader, buffer: plan.buffer.clone(), stride: plan.stride, window };
        let mut ring = Some(session.ring(&probe, plan.order, &buffer, u64::from(round))?);
        let mut left = plan.hops.map_or(u64::MAX, |hops| hop_count(hops, &probe).div_ceil(window_hops(plan) as u64));
        let begin = session.context.now();
        let mut time = if plan.hops.is_some() { Duration::MAX } else { self.run };
        // A number of hops, and a long time, take as many runs as they need, so that an interruption waits for one of them only.
        while let Some(from) = ring.take().filter(|_| left > 0 && !time.is_zero()) {
            let run = time.min(self.run).min(MAX_BURST);
            let (done, others) = run_at_once(session, &[Transfer { plan, ring: from }], run, left)?;
            time -= run;
            let ghz = session.runner.ghz(plan.reader);
            for TransferRun { samples, windows, ring: next, scheduler, clean, left_out, stalled } in done {
                let conditions = BurstConditions::judge(participants(plan).len(), Conditions { scheduler, coverage: None }, others, ghz);
                let conditions = conditions.with_samples(clean, left_out, stalled);
                self.samples.add(round, vec![samples], conditions);
                left -= windows;
                self.windows += windows;
                ring = next.filter(|_| windows > 0 && !session.interrupted());
            }
        }
        self.placements.push(buffer.placement_now());
        Ok(if plan.hops.is_some() { session.context.now() - begin } else { self.run })
    }

    fn samples(&self) -> impl Iterator<Item = &BurstSamples> {
        std::iter::once(&self.samples)
    }

    fn hops(&self) -> Option<(u64, u64)> {
        self.plan.hops.map(|_| (self.placements.len() as u64, MIN_TRANSFER_ALLOCATIONS.into()))
    }
}

pub(crate) fn measure(session: &mut Session<'_>, subject: Subject<'_>, plan: &Handoff, measured: &mut Measured) -> Result {
    let cpus = participants(plan);
    session.watch(plan.reader, &cpus)?;
    let stop = session.budget.stop;
    let fixed = || Duration::from_secs_f64(stop.budget_s / f64::from(MIN_TRANSFER_ALLOCATIONS));
    let mut sampler = PairSampler {
        plan,
        run: if stop.fixed_time { fixed() } else { transfer_run(stop.budget_s) },
        samples: BurstSamples::new(GroupBy::Allocation, MIN_TRANSFER_ALLOCATIONS),
        windows: 0,
        pages: Vec::new(),
        placements: Vec::new(),
    };
    // A disturbed run is repeated over the next allocation, while there is time.
    let stop_after = StopAfter { min_rounds: MIN_TRANSFER_ALLOCATIONS, budget: None, want_undisturbed: true };
    let allocations = measure_until_sure(session, stop_after, &mut sampler, measured)?;
    let estimate = sampler.samples.estimate_with_drift(0, stop.relative_half_width);
    if estimate.value.is_none() {
        return Err(NotMeasured::NeverTogether { cpus });
    }
    let mut noise = session.unwatch(&sampler.samples.conditions().scheduler);
    sampler.samples.write_disturbances(&mut noise);
    let evidence = Evidence {
        threads: cpus.len() as u32,
        hops: plan.hops.map(|_| sampler.windows * window_hops(plan) as u64 / u64::from(allocations.max(1))),
        allocations: session.memory.distinct_buffers(&plan.buffer, allocations),
        pages: combined_pages(sampler.pages.iter().map(|p| (p, plan.buffer.bytes))),
        placement: Placement::combined(sampler.placements),
        noise,
        ..transfer_evidence(plan)
    };
    let samples = Some(sampler.samples.keep(0));
    let result = subject.judge(subject.at.clone(), Metric::Latency, estimate, evidence);
    measured.add(Measurement { samples, ..result });
    Ok(())
}

/// Runs transfers at once, each for at most `windows` windows. Returns the result of each, and the shares of CPUs that others had.
pub(crate) fn run_at_once(
    session: &mut Session<'_>,
    transfers: &[Transfer<'_>],
    run: Duration,
    windows: u64,
) -> Result<(Vec<TransferRun>, Others)> {
    let Session { runner, memory, noise, .. } = session;
    let done = runner.run_transfers(transfers, &mut |plan| memory.allocate(noise, plan), run, windows);
    session.progress.report();
    done
}

/// The part of a transfer's evidence that its plan determines.
pub(crate) fn transfer_evidence(plan: &Handoff) -> Evidence {
    let pushes = Pushes { holder: plan.holder_pushes, reader: plan.reader_pushes };
    Evidence {
        kernel: protocol_name(plan),
        pushes: (plan.holder_pushes.0 > 0 || plan.reader_pushes.0 > 0).then_some(pushes),
        buffer: plan.buffer.bytes,
        window: Some(plan.window),
        stride: Some(plan.stride),
        ..Default::default()
    }
}

fn protocol_name(plan: &Handoff) -> String {
    let held = match plan.state {
        LineState::Hit => "load",
        LineState::Hitm => "store",
    };
    let push = |bytes: Bytes| (bytes.0 > 0).then_some("push");
    let steps = [Some(held), push(plan.holder_pushes), plan.sharer.map(|_| "share"), push(plan.reader_pushes), Some("chase")];
    steps.into_iter().flatten().collect::<Vec<_>>().join("-then-")
}

#[cfg(test)]
mod tests {
    use memgauge_model::experiment::{ChaseOrder, PageRequest};
    use memgauge_model::plan::BufferPlan;
    use memgauge_model::units::IdSet;

    use super::*;

    #[test]
    fn the_protocol_is_named_by_its_steps() {
        let buffer = BufferPlan { touch: IdSet::one(0), ..BufferPlan::plain(Bytes::mib(1), 0, PageRequest::Auto) };
        let mut plan = Handoff {
            holder: 0,
            reader: 1,
            state: LineState::Hit,
            buffer,
            window: Bytes::kib(64),
            stride: Bytes(128),
            order: ChaseOrder::WindowLocal,
            chase_window: None,
            hops: None,
            sharer: None,
            holder_pushes: Bytes(0),
            reader_pushes: Bytes(0),
        };
        assert_eq!(protocol_name(&plan), "load-then-chase");
        (plan.state, plan.sharer) = (LineState::Hitm, Some(2));
        assert_eq!(protocol_name(&plan), "store-then-share-then-chase");
        (plan.holder_pushes, plan.reader_pushes) = (Bytes(64), Bytes(64));
        assert_eq!(protocol_name(&plan), "store-then-push-then-share-then-push-then-chase");
    }
}
