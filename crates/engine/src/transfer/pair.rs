//! Cache-to-cache transfers of one pair of CPUs.

use std::sync::Arc;
use std::time::Duration;

use memgauge_core::experiment::{Coordinates, Experiment as ExperimentKind, LineState, Metric};
use memgauge_core::plan::{BufferPlan, Handoff, Probe};
use memgauge_core::protocol::{MIN_TRANSFER_ALLOCATIONS, TRANSFER_RUN};
use memgauge_core::result::{Evidence, PageEvidence, Placement, Pushes};
use memgauge_core::units::{Bytes, IdSet};
use memgauge_os::clock::Clock;
use memgauge_os::memory::Buffer;

use super::turns::{Baton, Party, RUN_TIMEOUT};
use crate::burst::chain::Ring;
use crate::burst::workers::{Finished, Job, SchedulerNoise};
use crate::error::CellError;
use crate::experiment::sampler::{Sampler, StopAfter, measure_until_sure};
use crate::experiment::samples::{BurstConditions, BurstSamples, Conditions, GroupBy};
use crate::memory::pages::combined_pages;
use crate::recorder::NewResult;
use crate::session::Session;

/// Windows at the start of a run that find both cores' clocks and predictors cold.
const COLD_WINDOWS: usize = 4;

/// The runs of a pair, each over a fresh allocation.
struct PairSampler<'a> {
    plan: &'a Handoff,
    run: Duration,
    samples: BurstSamples,
    pages: Vec<PageEvidence>,
    placements: Vec<Placement>,
}

impl Sampler for PairSampler<'_> {
    fn sample_round(&mut self, session: &mut Session<'_>, round: u32) -> Result<Duration, CellError> {
        let plan = self.plan;
        let buffer = session.chase_buffer(&plan.buffer, round)?;
        self.pages.push(buffer.pages().clone());
        let probe = Probe { cpu: plan.reader, buffer: plan.buffer.clone(), stride: plan.stride, window: plan.window };
        let ring = session.ring(&probe, probe.buffer.bytes, plan.order, &buffer, u64::from(round))?;
        let (done, steal) = run_at_once(session, &[(plan, ring)], self.run)?;
        let ghz = session.runner.ghz(plan.reader);
        self.placements.push(buffer.placement_now());
        for TransferRun { samples, scheduler, .. } in done {
            let conditions = BurstConditions::judge(parties(plan).len(), Conditions { scheduler, coverage: None }, steal, ghz);
            self.samples.add(round, vec![samples], conditions);
        }
        Ok(self.run)
    }

    fn samples(&self) -> impl Iterator<Item = &BurstSamples> {
        std::iter::once(&self.samples)
    }
}

pub(crate) fn measure(session: &mut Session<'_>, kind: ExperimentKind, at: &Coordinates, plan: &Handoff) -> Result<(), CellError> {
    let parties = parties(plan);
    session.watch(plan.reader, &parties)?;
    let stop = session.budget.stop;
    let fixed = || Duration::from_secs_f64(stop.budget_s / f64::from(MIN_TRANSFER_ALLOCATIONS));
    let mut sampler = PairSampler {
        plan,
        run: if stop.fixed_time { fixed() } else { TRANSFER_RUN },
        samples: BurstSamples::new(GroupBy::Allocation, MIN_TRANSFER_ALLOCATIONS),
        pages: Vec::new(),
        placements: Vec::new(),
    };
    // A disturbed run is repeated over the next allocation, while there is time.
    let stop_after = StopAfter { min_rounds: MIN_TRANSFER_ALLOCATIONS, budget: None, want_undisturbed: true };
    let allocations = measure_until_sure(session, stop_after, &mut sampler)?;
    let estimate = sampler.samples.estimate_with_drift(0, stop.relative_half_width);
    if estimate.value.is_none() {
        return Err(CellError::NeverTogether { cpus: parties });
    }
    let mut noise = session.unwatch(&sampler.samples.conditions().scheduler);
    sampler.samples.disturbances().write_to(&mut noise);
    let evidence = Evidence {
        threads: parties.len() as u32,
        allocations: session.memory.distinct_buffers(&plan.buffer, allocations),
        pages: combined_pages(sampler.pages.iter().map(|p| (p, plan.buffer.bytes))),
        placement: Placement::combined(sampler.placements),
        noise,
        ..transfer_evidence(plan)
    };
    let samples = Some(sampler.samples.keep(0));
    session.record(kind, NewResult { samples, ..NewResult::new(at.clone(), Metric::Latency, estimate, evidence) });
    Ok(())
}

/// The CPUs that take turns.
fn parties(plan: &Handoff) -> IdSet {
    [plan.reader, plan.holder].into_iter().chain(plan.sharer).collect()
}

/// What a run of a transfer left.
pub(crate) struct TransferRun {
    /// Nanoseconds per line, by window, without the first windows.
    pub(crate) samples: Vec<f64>,
    /// The ring to go on with.
    pub(crate) ring: Option<Ring>,
    pub(crate) scheduler: SchedulerNoise,
}

/// Runs transfers at once, each over its ring. Returns what each left, and the share of the CPUs' time that the hypervisor gave to others.
pub(crate) fn run_at_once(
    session: &mut Session<'_>,
    transfers: &[(&Handoff, Ring)],
    run: Duration,
) -> Result<(Vec<TransferRun>, Option<f64>), CellError> {
    let mut prepared = Vec::with_capacity(transfers.len());
    for (plan, ring) in transfers {
        prepared.push((*plan, ring.clone(), pushed_buffers(session, plan)?));
    }
    // Set once everything is allocated, so that none of the run is lost to it and all end together.
    let end = session.clock().now() + session.clock().to_ticks(run);
    let mut jobs = Vec::with_capacity(3 * transfers.len());
    for (plan, ring, pushed) in prepared {
        jobs.extend(party_jobs(session.clock(), plan, ring, pushed, end));
    }
    let cpus = transfers.iter().fold(IdSet::new(), |all, (plan, _)| all.union(&parties(plan)));
    let (finished, steal) = session.runner.run_jobs(jobs, &cpus, run, run + RUN_TIMEOUT)?;
    session.progress.report();
    let mut finished = finished.into_iter();
    let collect = |(plan, _): &(&Handoff, Ring)| {
        let mut done = TransferRun { samples: Vec::new(), ring: None, scheduler: SchedulerNoise::default() };
        for Finished { value, scheduler } in finished.by_ref().take(parties(plan).len()) {
            done.scheduler.add(&scheduler);
            if let Some((samples, ring)) = value {
                (done.samples, done.ring) = (without_cold_windows(samples), Some(ring));
            }
        }
        done
    };
    Ok((transfers.iter().map(collect).collect(), steal))
}

/// What a reader returns: a sample for each of its turns, and the ring to go on with. Others return nothing.
type ReadWindows = Option<(Vec<f64>, Ring)>;

/// A buffer to read besides the window, and how many bytes of it.
type PushedBuffer = Option<(Arc<Buffer>, usize)>;

/// The jobs of a transfer's parties. The reader and the holder push the two buffers of `pushed`.
fn party_jobs(clock: Clock, plan: &Handoff, ring: Ring, pushed: (PushedBuffer, PushedBuffer), end: u64) -> Vec<(u32, Job<ReadWindows>)> {
    let (hops, baton, state) = ((plan.window.0 / plan.stride.0) as usize, Baton::new(), plan.state);
    let party = Party { parties: parties(plan).len() as u64, pushed: None, ring, hops, clock, end, baton };
    let reader = Party { pushed: pushed.0, ..party.clone() };
    let holder = Party { pushed: pushed.1, ..party.clone() };
    let hold = move || {
        holder.hold(state);
        None
    };
    let mut jobs: Vec<(u32, Job<ReadWindows>)> = vec![(plan.reader, Box::new(move || Some(reader.read()))), (plan.holder, Box::new(hold))];
    if let Some(cpu) = plan.sharer {
        let share = move || {
            party.share();
            None
        };
        jobs.push((cpu, Box::new(share)));
    }
    jobs
}

/// The buffers that the reader and the holder push, like the transfer's.
fn pushed_buffers(session: &mut Session<'_>, plan: &Handoff) -> Result<(PushedBuffer, PushedBuffer), CellError> {
    let mut allocate = |bytes: Bytes| {
        if bytes.is_zero() {
            return Ok(None);
        }
        let buffer = session.allocate(&BufferPlan { bytes, ..plan.buffer.clone() })?;
        let bytes = buffer.len().min(bytes.0 as usize);
        Ok::<_, CellError>(Some((buffer, bytes)))
    };
    Ok((allocate(plan.reader_pushes)?, allocate(plan.holder_pushes)?))
}

/// The samples of a run without its first windows. Where CPUs are shared there may be few at all.
fn without_cold_windows(mut samples: Vec<f64>) -> Vec<f64> {
    let cold = (samples.len() / 2).min(COLD_WINDOWS);
    samples.split_off(cold)
}

/// What the plan of a transfer says of its evidence.
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

/// What is done with each window, in order.
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
    use memgauge_core::experiment::{ChaseOrder, PageRequest};

    use super::*;

    #[test]
    fn the_protocol_is_named_by_its_steps() {
        let buffer = BufferPlan {
            bytes: Bytes::mib(1),
            node: 0,
            pages: PageRequest::Auto,
            touch: IdSet::one(0),
            derived: false,
            directory: None,
            shared: false,
        };
        let mut plan = Handoff {
            holder: 0,
            reader: 1,
            state: LineState::Hit,
            buffer,
            window: Bytes::kib(64),
            stride: Bytes(128),
            order: ChaseOrder::WindowLocal,
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
