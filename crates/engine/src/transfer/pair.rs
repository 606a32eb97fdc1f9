//! Cache-to-cache transfers of one pair of CPUs, which hand a window of lines from one to the next.
//!
//! One CPU loads (HIT) or stores to (HITM) every line of a window by chasing it, then the other chases the same window once, each line
//! migrating as it is touched. The window slides over a buffer much larger than any cache, so lines are always fresh and at many addresses.
//! Where it is asked for, a third CPU loads the window in between, and holder and reader read another buffer after and before, so that the
//! lines move on in their caches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use memgauge_core::experiment::{Coordinates, LineState, Metric};
use memgauge_core::plan::{BufferPlan, Handoff, Probe};
use memgauge_core::protocol::{LONG_BLOCK, MAX_BURST, MAX_UNSEEN, MIN_CLEAN, MIN_TRANSFER_ALLOCATIONS, transfer_run};
use memgauge_core::result::{Evidence, Measurement, PageEvidence, Placement, Pushes};
use memgauge_core::stats;
use memgauge_core::units::{Bytes, IdSet};
use memgauge_kernels as kernels;
use memgauge_os::clock::Clock;
use memgauge_os::memory::Buffer;
use memgauge_os::noise;

use crate::burst::chase::Ring;
use crate::burst::result::Conditions;
use crate::burst::windows::BLOCK_NS;
use crate::burst::workers::{Finished, Job, SchedulerNoise};
use crate::error::{CellError, Result};
use crate::experiment::disturbance::{BurstConditions, BurstSamples, GroupBy};
use crate::experiment::sampling::{Sampler, StopAfter, hop_count, measure_until_sure};
use crate::memory::combined_pages;
use crate::neighbours::Others;
use crate::session::Session;

/// Windows at the start of a run that find both cores' clocks and predictors cold.
const COLD_WINDOWS: usize = 4;

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
            let (done, others) = run_at_once(session, &[(plan, from)], run, left)?;
            time -= run;
            let ghz = session.runner.ghz(plan.reader);
            for TransferRun { samples, windows, ring: next, scheduler, clean, left_out, stalled } in done {
                let conditions = BurstConditions::judge(parties(plan).len(), Conditions { scheduler, coverage: None }, others, ghz);
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

pub(crate) fn measure(session: &mut Session<'_>, at: &Coordinates, plan: &Handoff) -> Result {
    let parties = parties(plan);
    session.watch(plan.reader, &parties)?;
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
    let allocations = measure_until_sure(session, stop_after, &mut sampler)?;
    let estimate = sampler.samples.estimate_with_drift(0, stop.relative_half_width);
    if estimate.value.is_none() {
        return Err(CellError::NeverTogether { cpus: parties });
    }
    let mut noise = session.unwatch(&sampler.samples.conditions().scheduler);
    sampler.samples.write_disturbances(&mut noise);
    let evidence = Evidence {
        threads: parties.len() as u32,
        hops: plan.hops.map(|_| sampler.windows * window_hops(plan) as u64 / u64::from(allocations.max(1))),
        allocations: session.memory.distinct_buffers(&plan.buffer, allocations),
        pages: combined_pages(sampler.pages.iter().map(|p| (p, plan.buffer.bytes))),
        placement: Placement::combined(sampler.placements),
        noise,
        ..transfer_evidence(plan)
    };
    let samples = Some(sampler.samples.keep(0));
    let result = session.recorder.judge(at.clone(), Metric::Latency, estimate, evidence);
    session.recorder.record(Measurement { samples, ..result });
    Ok(())
}

/// Lines of a transfer window.
const fn window_hops(plan: &Handoff) -> usize {
    (plan.window.0 / plan.stride.0) as usize
}

/// The CPUs that take turns.
fn parties(plan: &Handoff) -> IdSet {
    [plan.reader, plan.holder].into_iter().chain(plan.sharer).collect()
}

#[derive(Default)]
pub(crate) struct TransferRun {
    /// Nanoseconds per line, by window, without the first windows and without those during which a party was off its CPU.
    pub(crate) samples: Vec<f64>,
    /// Windows read, the first ones too.
    pub(crate) windows: u64,
    /// There is no time off a CPU in the samples.
    pub(crate) clean: bool,
    /// Share of the windows that were left out.
    pub(crate) left_out: f64,
    /// Share of the reader's time in turns that took much longer than usual although no party was off its CPU; `None` without turns.
    pub(crate) stalled: Option<f64>,
    pub(crate) ring: Option<Ring>,
    pub(crate) scheduler: SchedulerNoise,
}

/// Runs transfers at once, each over its ring and for at most so many windows. Returns what each left, and what others had of CPUs.
pub(crate) fn run_at_once(
    session: &mut Session<'_>,
    transfers: &[(&Handoff, Ring)],
    run: Duration,
    windows: u64,
) -> Result<(Vec<TransferRun>, Others)> {
    #[cfg(feature = "simulate")]
    if let Some(model) = session.context.model() {
        session.add_measuring(run);
        let work = transfers.iter().map(|(plan, ring)| crate::TransferWork {
            reader: plan.reader,
            holder: plan.holder,
            home: ring.buffer().node(),
            state: plan.state,
            lines: plan.window.0 / plan.stride.0,
        });
        let samples = model.transfers(&work.collect::<Vec<_>>(), run);
        model.pass(run);
        let rings = transfers.iter().map(|(_, ring)| Some(ring.clone()));
        let done = samples.into_iter().zip(rings).map(|(samples, ring)| TransferRun {
            windows: samples.len() as u64,
            clean: true,
            samples,
            ring,
            ..TransferRun::default()
        });
        return Ok((done.collect(), Others::default()));
    }
    let mut prepared = Vec::with_capacity(transfers.len());
    for (plan, ring) in transfers {
        prepared.push((*plan, ring.clone(), pushed_buffers(session, plan)?));
    }
    // Set once everything is allocated, so that none of the run is lost to it and all end together.
    let end = session.context.clock.now() + session.context.clock.to_ticks(run);
    let mut jobs = Vec::with_capacity(3 * transfers.len());
    for (plan, ring, pushed) in prepared {
        jobs.extend(party_jobs(session.context.clock, plan, ring, pushed, (end, windows)));
    }
    let cpus = transfers.iter().fold(IdSet::new(), |all, (plan, _)| all.union(&parties(plan)));
    let (finished, others) = session.runner.run_jobs(jobs, &cpus, run, run + RUN_TIMEOUT)?;
    session.progress.report();
    let mut finished = finished.into_iter();
    let collect = |(plan, _): &(&Handoff, Ring)| {
        let mut done = TransferRun::default();
        for Finished { value, scheduler } in finished.by_ref().take(parties(plan).len()) {
            done.scheduler.add(&scheduler);
            if let Some((turns, ring)) = value {
                // Where CPUs are shared there may be few windows at all.
                done.windows = turns.len() as u64;
                let turns = &turns[(turns.len() / 2).min(COLD_WINDOWS)..];
                (done.samples, done.left_out, done.stalled) = uninterrupted(turns);
                done.clean = !done.samples.is_empty() && done.samples.len() as f64 >= MIN_CLEAN * turns.len() as f64;
                if !done.clean {
                    done.samples = turns.iter().map(|turn| turn.ns_per_line).collect();
                }
                done.ring = Some(ring);
            }
        }
        done
    };
    let done: Vec<TransferRun> = transfers.iter().map(collect).collect();
    for ((plan, _), ring) in transfers.iter().zip(done.iter().map(|run| &run.ring)) {
        ring.as_ref().map_or(Ok(()), |ring| ring.check(plan.reader))?;
    }
    Ok((done, others))
}

/// A turn of a reader.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) ns_per_line: f64,
    /// Since the reader's last turn: the others' turns.
    waited_ns: f64,
    /// A party was off its CPU since then.
    away: bool,
}

/// The samples of the turns before and during which no party was off its CPU, the share of the others, and the share of the reader's time in
/// turns that took much longer although no party was away: stalls, as in [`Absence`](crate::burst::absence::Absence). While a party is away, others use
/// its cache: lines that they drive out to a shared cache arrive much sooner. Where the kernel does not know that it was away, which is a
/// hypervisor's secret, a turn or the wait for it takes much longer than it usually does.
fn uninterrupted(turns: &[Turn]) -> (Vec<f64>, f64, Option<f64>) {
    let on_cpus = || turns.iter().filter(|turn| !turn.away);
    let usual = |time: fn(&Turn) -> f64| stats::quantile(&stats::sorted(&on_cpus().map(time).collect::<Vec<_>>()), 0.25).unwrap_or(0.0);
    let (read, waited) = (usual(|turn| turn.ns_per_line), usual(|turn| turn.waited_ns));
    let short = |turn: &&Turn| turn.ns_per_line <= LONG_BLOCK * read && turn.waited_ns <= LONG_BLOCK * waited;
    let samples: Vec<f64> = on_cpus().filter(short).map(|turn| turn.ns_per_line).collect();
    let left_out = 1.0 - samples.len() as f64 / turns.len().max(1) as f64;
    let all: f64 = on_cpus().map(|turn| turn.ns_per_line).sum();
    let stalled: f64 = on_cpus().map(|turn| turn.ns_per_line).filter(|ns| *ns > LONG_BLOCK * read).map(|ns| ns - read).sum();
    (samples, left_out, (all > 0.0).then(|| stalled / all))
}

/// What a reader returns: its turns, and the ring to go on with. Others return nothing.
type ReadWindows = Option<(Vec<Turn>, Ring)>;

/// A buffer to read besides the window, and how many bytes of it.
type PushedBuffer = Option<(Arc<Buffer>, usize)>;

/// The jobs of a transfer's parties. The reader and the holder push the two buffers of `pushed`.
fn party_jobs(
    clock: Clock,
    plan: &Handoff,
    ring: Ring,
    pushed: (PushedBuffer, PushedBuffer),
    (end, windows): (u64, u64),
) -> Vec<(u32, Job<ReadWindows>)> {
    let (hops, baton, state) = (window_hops(plan), Baton::new(), plan.state);
    let party = Party { parties: parties(plan).len() as u64, pushed: None, ring, hops, clock, end, windows, baton };
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
fn pushed_buffers(session: &mut Session<'_>, plan: &Handoff) -> Result<(PushedBuffer, PushedBuffer)> {
    let mut allocate = |bytes: Bytes| {
        if bytes == Bytes(0) {
            return Ok(None);
        }
        let buffer = session.allocate(&BufferPlan { bytes, ..plan.buffer.clone() })?;
        let bytes = buffer.len().min(bytes.0 as usize);
        Ok::<_, CellError>(Some((buffer, bytes)))
    };
    Ok((allocate(plan.reader_pushes)?, allocate(plan.holder_pushes)?))
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

fn protocol_name(plan: &Handoff) -> String {
    let held = match plan.state {
        LineState::Hit => "load",
        LineState::Hitm => "store",
    };
    let push = |bytes: Bytes| (bytes.0 > 0).then_some("push");
    let steps = [Some(held), push(plan.holder_pushes), plan.sharer.map(|_| "share"), push(plan.reader_pushes), Some("chase")];
    steps.into_iter().flatten().collect::<Vec<_>>().join("-then-")
}

/// A party that has not ended its turn for this long is gone: its CPU was taken away.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the workers of a run may take beyond it: each party may wait for the others to be gone.
pub(crate) const RUN_TIMEOUT: Duration = Duration::from_secs(4 * TURN_TIMEOUT.as_secs());
/// Polls of the turn between two readings of the clock.
const POLLS_PER_CLOCK_READING: u64 = 4096;

/// Turns taken so far, counted by all parties: the holder's, that of a sharer, the reader's, and again. On a line of its own.
#[repr(align(128))]
pub(crate) struct Baton {
    turn: AtomicU64,
    /// One party gave up; the others must not wait.
    dropped: AtomicBool,
    /// One more than the last turn whose party was off its CPU in it or since its turn before; 0 for none.
    away: AtomicU64,
}

/// A thread that is off its CPU for less than a block of a burst is not away: interrupts take some 5 µs.
const AWAY_NS: f64 = BLOCK_NS;

/// When a party last looked, and how long it had run by then.
struct Presence {
    ticks: u64,
    ran_ns: Option<u64>,
}

impl Presence {
    fn new(clock: &Clock) -> Self {
        Self { ticks: clock.now(), ran_ns: noise::thread_cpu_ns() }
    }

    /// Whether the thread was off its CPU since the last look.
    fn was_away(&mut self, clock: &Clock) -> bool {
        let now = Self::new(clock);
        let ran = now.ran_ns.zip(self.ran_ns).map(|(now, then)| now.saturating_sub(then) as f64);
        let took = clock.ns(now.ticks.saturating_sub(self.ticks));
        let away = ran.is_some_and(|ran| took - ran > AWAY_NS.max(MAX_UNSEEN * took));
        *self = now;
        away
    }
}

impl Baton {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { turn: AtomicU64::new(0), dropped: AtomicBool::new(false), away: AtomicU64::new(0) })
    }

    /// Waits for `turn`; false when another party is gone.
    fn await_turn(&self, turn: u64, clock: &Clock) -> bool {
        let (started, mut polls) = (clock.now(), 0u64);
        while self.turn.load(Ordering::Acquire) != turn {
            std::hint::spin_loop();
            polls += 1;
            if self.dropped.load(Ordering::Relaxed) {
                return false;
            }
            if polls.is_multiple_of(POLLS_PER_CLOCK_READING) && clock.now().saturating_sub(started) > clock.to_ticks(TURN_TIMEOUT) {
                self.dropped.store(true, Ordering::Relaxed);
                return false;
            }
        }
        true
    }

    /// Hands over to the next party. `away` says whether this one was off its CPU in its turn or since the one before.
    fn pass(&self, turn: u64, away: bool) {
        if away {
            self.away.store(turn + 1, Ordering::Relaxed);
        }
        self.turn.store(turn + 1, Ordering::Release);
    }

    /// Whether a party was away in `turn` or in one of the `others` before it.
    fn any_away(&self, turn: u64, others: u64) -> bool {
        self.away.load(Ordering::Relaxed) > turn.saturating_sub(others)
    }
}

/// Times a turn, without what reading the clock takes. A clock that is a device of the machine takes microseconds, and a turn may take 50.
struct Stopwatch {
    clock: Clock,
    /// Ticks between two readings with nothing between them.
    cost: u64,
}

impl Stopwatch {
    fn new(clock: Clock) -> Self {
        const READINGS: usize = 101;
        let mut costs: Vec<u64> = (0..READINGS).map(|_| clock.stamp()).collect::<Vec<_>>().windows(2).map(|two| two[1] - two[0]).collect();
        costs.sort_unstable();
        Self { clock, cost: costs[costs.len() / 2] }
    }

    /// The clock before and after `work`, and the ticks that it took.
    fn time(&self, work: impl FnOnce()) -> (u64, u64, u64) {
        // Fenced at both ends: otherwise the second reading would not wait for the hops that are still on their way.
        let from = self.clock.stamp();
        work();
        let to = self.clock.stamp();
        (from, to, to.saturating_sub(from).saturating_sub(self.cost))
    }
}

/// What each party needs: the ring of pointers, how many hops a window has, and when to end.
#[derive(Clone)]
pub(crate) struct Party {
    /// How many take turns.
    pub(crate) parties: u64,
    /// What this party reads in its turn besides the window, and how many bytes of it.
    pub(crate) pushed: Option<(Arc<Buffer>, usize)>,
    pub(crate) ring: Ring,
    pub(crate) hops: usize,
    pub(crate) clock: Clock,
    pub(crate) end: u64,
    /// The largest number of windows handed over.
    pub(crate) windows: u64,
    pub(crate) baton: Arc<Baton>,
}

impl Party {
    /// Reads all of the other buffer, where there is one.
    fn push(&self) {
        if let Some((buffer, bytes)) = &self.pushed {
            // SAFETY: the buffer has as many bytes, is aligned to a page, was written when it was first touched, and only this party uses it.
            std::hint::black_box(unsafe { kernels::checksum_xor(buffer.as_ptr(), *bytes) });
        }
    }

    /// Loads every window that was taken, so that it is shared.
    pub(crate) fn share(self) {
        let mut at = self.ring.position();
        let mut presence = Presence::new(&self.clock);
        let mut turn = 1;
        while self.baton.await_turn(turn, &self.clock) {
            // SAFETY: `at` is a line of the ring, reached by its own pointers. It is the sharer's turn, so nobody writes to the window.
            at = unsafe { kernels::chase_exact(at, self.hops) };
            kernels::fence();
            self.baton.pass(turn, presence.was_away(&self.clock));
            turn += self.parties;
        }
    }

    /// Takes every window into this CPU's cache, window after window. The holder decides when to end.
    pub(crate) fn hold(self, state: LineState) {
        let mut at = self.ring.position();
        let mut presence = Presence::new(&self.clock);
        let mut turn = 0;
        while self.baton.await_turn(turn, &self.clock) {
            if self.clock.now() >= self.end || turn / self.parties >= self.windows {
                self.baton.dropped.store(true, Ordering::Relaxed);
                return;
            }
            // SAFETY: `at` is a line of the ring, reached by its own pointers. While it is the holder's turn no other party touches the
            // buffer; the stores go to bytes 8..16 of each line, beside the pointer.
            at = unsafe {
                match state {
                    LineState::Hit => kernels::chase_exact(at, self.hops),
                    LineState::Hitm => kernels::chase_store(at, self.hops, self.ring.memory()),
                }
            };
            kernels::fence();
            self.push();
            self.baton.pass(turn, presence.was_away(&self.clock));
            turn += self.parties;
        }
    }

    /// Chases every window that was handed over. Returns its turns, and the ring where the next window begins.
    pub(crate) fn read(self) -> (Vec<Turn>, Ring) {
        let mut at = self.ring.position();
        let mut turn = self.parties - 1;
        let mut turns = Vec::with_capacity(1 << 14);
        let stopwatch = Stopwatch::new(self.clock);
        let (mut last, mut presence) = (self.clock.now(), Presence::new(&self.clock));
        while self.baton.await_turn(turn, &self.clock) {
            self.push();
            // SAFETY: `at` is a line of the ring, reached by its own pointers. It is the reader's turn, so nobody writes to the window.
            let (from, to, took) = stopwatch.time(|| at = unsafe { kernels::chase_exact(at, self.hops) });
            let ns = |ticks: u64| self.clock.ns(ticks);
            let away = presence.was_away(&self.clock) || self.baton.any_away(turn, self.parties - 1);
            turns.push(Turn { ns_per_line: ns(took) / self.hops as f64, waited_ns: ns(from.saturating_sub(last)), away });
            last = to;
            self.baton.pass(turn, false);
            turn += self.parties;
        }
        let hops = (turns.len() * self.hops) as u64;
        // SAFETY: `at` was reached by following the ring's pointers from its position, so many.
        (turns, unsafe { self.ring.moved_to(at, hops) })
    }
}

#[cfg(test)]
mod turn_tests {
    use super::*;

    #[test]
    fn turns_before_or_during_which_a_party_was_away_do_not_count() {
        let turn = |ns_per_line, waited_ns| Turn { ns_per_line, waited_ns, away: false };
        let mut turns = vec![turn(100.0, 60_000.0); 8];
        turns.extend([turn(6000.0, 60_000.0), turn(130.0, 3e6)]);
        let (samples, left_out, stalled) = uninterrupted(&turns);
        assert_eq!(samples, [100.0; 8], "neither a reader that was away nor what it finds after the holder was");
        assert!((left_out - 0.2).abs() < 1e-9);
        assert!(stalled.is_some_and(|share| (share - 5900.0 / 6930.0).abs() < 1e-9), "{stalled:?}");
        // On a busy machine most turns are so: what others have driven out of the holder's cache is found in a shared one.
        turns.extend([Turn { away: true, ..turn(27.0, 9e6) }; 90]);
        assert_eq!(uninterrupted(&turns).0, [100.0; 8]);
        assert_eq!(uninterrupted(&turns[10..]), (vec![], 1.0, None));
    }

    #[test]
    fn a_turn_takes_as_long_by_a_slow_clock() {
        // A window of a thousand lines of 50 ns. The clock's reading would make that 4 to 40 % longer.
        for reading_ns in [2_000, 20_000] {
            let (stopwatch, fast) = (Stopwatch::new(Clock::slowed(reading_ns)), Clock::slowed(0));
            let turn = || {
                let until = fast.now() + 50_000;
                while fast.now() < until {}
            };
            let took: Vec<f64> = (0..51).map(|_| stopwatch.time(turn).2 as f64).collect();
            let median = stats::median(&took).unwrap();
            assert!((median / 50_000.0 - 1.0).abs() < 0.02, "{median} ns where a reading takes {reading_ns} ns");
        }
    }

    #[test]
    fn a_reader_learns_that_another_party_was_away() {
        // Holder, sharer and reader take turns 0, 1, 2 and 3, 4, 5.
        let baton = Baton::new();
        baton.pass(0, true);
        baton.pass(1, false);
        assert!(baton.any_away(2, 2));
        (2..5).for_each(|turn| baton.pass(turn, false));
        assert!(!baton.any_away(5, 2), "that was a cycle before");
        baton.pass(4, true);
        assert!(baton.any_away(5, 2));
    }
}

#[cfg(test)]
mod pair_tests {
    use memgauge_core::experiment::{ChaseOrder, PageRequest};

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

#[cfg(test)]
mod tests;
