//! One CPU hands windows of lines to another: the turns that the threads of a transfer take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use memgauge_kernels as kernels;
use memgauge_model::experiment::LineState;
use memgauge_model::plan::{BufferPlan, Handoff};
use memgauge_model::protocol::{LONG_BLOCK, MAX_UNSEEN, MIN_CLEAN};
use memgauge_model::stats;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_os::clock::Clock;
use memgauge_os::memory::Buffer;
use memgauge_os::noise;

use super::chase::Ring;
use super::windows::BLOCK_NS;
use super::workers::{Finished, Job, SchedulerNoise};
use crate::error::Result;

/// Windows at the start of a run that find both cores' clocks and predictors cold.
const COLD_WINDOWS: usize = 4;

/// Lines of a transfer window.
pub(crate) const fn window_hops(plan: &Handoff) -> usize {
    (plan.window.0 / plan.stride.0) as usize
}

/// The CPUs that take turns.
pub(crate) fn participants(plan: &Handoff) -> IdSet {
    [plan.reader, plan.holder].into_iter().chain(plan.sharer).collect()
}

#[derive(Default)]
pub(crate) struct TransferRun {
    /// Nanoseconds per line, by window, without the first windows and without those during which a participant was off its CPU.
    pub(crate) samples: Vec<f64>,
    /// Windows read, the first ones too.
    pub(crate) windows: u64,
    /// Whether the samples have no time off a CPU in them.
    pub(crate) clean: bool,
    /// Share of the windows that were left out.
    pub(crate) left_out: f64,
    /// Share of the reader's time in turns that took much longer than usual although no participant was off its CPU; `None` without turns.
    pub(crate) stalled: Option<f64>,
    pub(crate) ring: Option<Ring>,
    pub(crate) scheduler: SchedulerNoise,
}

/// A transfer, and where its reader goes on.
pub(crate) struct Transfer<'a> {
    pub(crate) plan: &'a Handoff,
    pub(crate) ring: Ring,
}

/// The CPUs of transfers.
pub(crate) fn all_cpus(transfers: &[Transfer<'_>]) -> IdSet {
    transfers.iter().fold(IdSet::new(), |all, transfer| all.union(&participants(transfer.plan)))
}

/// The jobs of transfers that run at once for `run`, each for at most `windows` windows. `allocate` gives the buffers that are pushed.
pub(crate) fn jobs(
    clock: Clock,
    transfers: &[Transfer<'_>],
    allocate: &mut dyn FnMut(&BufferPlan) -> Result<Arc<Buffer>>,
    run: Duration,
    windows: u64,
) -> Result<Vec<(u32, Job<ReadWindows>)>> {
    let mut pushed = Vec::with_capacity(transfers.len());
    for Transfer { plan, .. } in transfers {
        let mut push = |bytes: Bytes| pushed_buffer(plan, bytes, allocate);
        pushed.push((push(plan.reader_pushes)?, push(plan.holder_pushes)?));
    }
    // Set once everything is allocated, so that none of the run is lost to it and all end together.
    let end = clock.now() + clock.to_ticks(run);
    let mut jobs = Vec::with_capacity(3 * transfers.len());
    for (transfer, pushed) in transfers.iter().zip(pushed) {
        jobs.extend(thread_jobs(clock, transfer, pushed, (end, windows)));
    }
    Ok(jobs)
}

/// A buffer to push, like the transfer's; none of 0 bytes.
fn pushed_buffer(plan: &Handoff, bytes: Bytes, allocate: &mut dyn FnMut(&BufferPlan) -> Result<Arc<Buffer>>) -> Result<PushedBuffer> {
    if bytes == Bytes(0) {
        return Ok(None);
    }
    let buffer = allocate(&BufferPlan { bytes, ..plan.buffer.clone() })?;
    let bytes = buffer.len().min(bytes.0 as usize);
    Ok(Some((buffer, bytes)))
}

/// The samples of each transfer, from the results of its jobs.
pub(crate) fn collect(transfers: &[Transfer<'_>], finished: Vec<Finished<ReadWindows>>) -> Result<Vec<TransferRun>> {
    let mut finished = finished.into_iter();
    let mut all = Vec::with_capacity(transfers.len());
    for Transfer { plan, .. } in transfers {
        let mut done = TransferRun::default();
        for Finished { value, scheduler } in finished.by_ref().take(participants(plan).len()) {
            done.scheduler.add(&scheduler);
            if let Some((turns, ring)) = value {
                // If others share the CPUs, there may be few windows at all.
                done.windows = turns.len() as u64;
                let turns = &turns[(turns.len() / 2).min(COLD_WINDOWS)..];
                (done.samples, done.left_out, done.stalled) = uninterrupted(turns);
                done.clean = !done.samples.is_empty() && done.samples.len() as f64 >= MIN_CLEAN * turns.len() as f64;
                if !done.clean {
                    done.samples = turns.iter().map(|turn| turn.ns_per_line).collect();
                }
                ring.check(plan.reader)?;
                done.ring = Some(ring);
            }
        }
        all.push(done);
    }
    Ok(all)
}

/// A turn of a reader.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) ns_per_line: f64,
    /// Since the reader's last turn: the others' turns.
    waited_ns: f64,
    /// A participant was off its CPU since then.
    away: bool,
}

/// The samples of the turns before and during which no participant was off its CPU, the share of the others, and the share of the reader's
/// time in turns that took much longer although no participant was away: stalls, as in [`Absence`](crate::burst::absence::Absence). While a
/// participant is away, others use its cache: lines that they drive out to a shared cache arrive much sooner. If the kernel does not know
/// that it was away, because a hypervisor keeps it a secret, a turn or the wait for it takes much longer than it usually does.
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

/// A reader's turns, and the ring to go on with. Other participants return `None`.
pub(crate) type ReadWindows = Option<(Vec<Turn>, Ring)>;

/// A buffer to read besides the window, and how many bytes of it.
type PushedBuffer = Option<(Arc<Buffer>, usize)>;

/// The jobs of a transfer's participants. The reader and the holder push the two buffers of `pushed`.
fn thread_jobs(
    clock: Clock,
    Transfer { plan, ring }: &Transfer<'_>,
    pushed: (PushedBuffer, PushedBuffer),
    (end, windows): (u64, u64),
) -> Vec<(u32, Job<ReadWindows>)> {
    let (hops, token, state) = (window_hops(plan), TurnToken::new(), plan.state);
    let participant =
        Participant { participants: participants(plan).len() as u64, pushed: None, ring: ring.clone(), hops, clock, end, windows, token };
    let reader = Participant { pushed: pushed.0, ..participant.clone() };
    let holder = Participant { pushed: pushed.1, ..participant.clone() };
    let hold = move || {
        holder.hold(state);
        None
    };
    let mut jobs: Vec<(u32, Job<ReadWindows>)> = vec![(plan.reader, Box::new(move || Some(reader.read()))), (plan.holder, Box::new(hold))];
    if let Some(cpu) = plan.sharer {
        let share = move || {
            participant.share();
            None
        };
        jobs.push((cpu, Box::new(share)));
    }
    jobs
}

/// A participant that has not ended its turn for this long is gone: its CPU was taken away.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the workers of a run may take beyond it: each participant may wait for the others to be gone.
pub(crate) const RUN_TIMEOUT: Duration = Duration::from_secs(4 * TURN_TIMEOUT.as_secs());
/// Polls of the turn between two readings of the clock.
const POLLS_PER_CLOCK_READING: u64 = 4096;

/// Turns taken so far, counted by all participants: the holder's, that of a sharer, the reader's, and again. On a line of its own.
#[repr(align(128))]
pub(crate) struct TurnToken {
    turn: AtomicU64,
    /// One participant gave up; the others must not wait.
    dropped: AtomicBool,
    /// One more than the last turn whose participant was off its CPU in it or since its turn before; 0 for none.
    away: AtomicU64,
}

/// A thread that is off its CPU for less than a block of a burst is not away: interrupts take some 5 µs.
const AWAY_NS: f64 = BLOCK_NS;

/// When a participant last looked, and how long it had run by then.
struct Liveness {
    ticks: u64,
    ran_ns: Option<u64>,
}

impl Liveness {
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

impl TurnToken {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { turn: AtomicU64::new(0), dropped: AtomicBool::new(false), away: AtomicU64::new(0) })
    }

    /// Waits for `turn`; false when another participant is gone.
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

    /// Hands over to the next participant. `away` says whether this one was off its CPU in its turn or since the one before.
    fn pass(&self, turn: u64, away: bool) {
        if away {
            self.away.store(turn + 1, Ordering::Relaxed);
        }
        self.turn.store(turn + 1, Ordering::Release);
    }

    /// Whether a participant was away in `turn` or in one of the `others` before it.
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

/// One participant of a transfer: its ring of pointers, the hops of a window, and when it ends.
#[derive(Clone)]
pub(crate) struct Participant {
    /// How many take turns.
    pub(crate) participants: u64,
    /// A buffer that this participant reads in its turn besides the window, and how many bytes of it.
    pub(crate) pushed: Option<(Arc<Buffer>, usize)>,
    pub(crate) ring: Ring,
    pub(crate) hops: usize,
    pub(crate) clock: Clock,
    pub(crate) end: u64,
    /// The largest number of windows handed over.
    pub(crate) windows: u64,
    pub(crate) token: Arc<TurnToken>,
}

impl Participant {
    /// Reads all of the other buffer, where there is one.
    fn push(&self) {
        if let Some((buffer, bytes)) = &self.pushed {
            // SAFETY: the buffer has as many bytes, is aligned to a page, was written when it was first touched, and only this participant
            // uses it.
            std::hint::black_box(unsafe { kernels::checksum_xor(buffer.as_ptr(), *bytes) });
        }
    }

    /// Loads every window that was taken, so that it is shared.
    pub(crate) fn share(self) {
        let mut at = self.ring.position();
        let mut liveness = Liveness::new(&self.clock);
        let mut turn = 1;
        while self.token.await_turn(turn, &self.clock) {
            // SAFETY: `at` is a line of the ring, reached by its own pointers. It is the sharer's turn, so nobody writes to the window.
            at = unsafe { kernels::chase_exact(at, self.hops) };
            kernels::fence();
            self.token.pass(turn, liveness.was_away(&self.clock));
            turn += self.participants;
        }
    }

    /// Takes every window into this CPU's cache, window after window. The holder decides when to end.
    pub(crate) fn hold(self, state: LineState) {
        let mut at = self.ring.position();
        let mut liveness = Liveness::new(&self.clock);
        let mut turn = 0;
        while self.token.await_turn(turn, &self.clock) {
            if self.clock.now() >= self.end || turn / self.participants >= self.windows {
                self.token.dropped.store(true, Ordering::Relaxed);
                return;
            }
            // SAFETY: `at` is a line of the ring, reached by its own pointers. While it is the holder's turn no other participant touches
            // the buffer; the stores go to bytes 8..16 of each line, beside the pointer.
            at = unsafe {
                match state {
                    LineState::Hit => kernels::chase_exact(at, self.hops),
                    LineState::Hitm => kernels::chase_store(at, self.hops, self.ring.memory()),
                }
            };
            kernels::fence();
            self.push();
            self.token.pass(turn, liveness.was_away(&self.clock));
            turn += self.participants;
        }
    }

    /// Chases every window that was handed over. Returns its turns, and the ring where the next window begins.
    pub(crate) fn read(self) -> (Vec<Turn>, Ring) {
        let mut at = self.ring.position();
        let mut turn = self.participants - 1;
        let mut turns = Vec::with_capacity(1 << 14);
        let stopwatch = Stopwatch::new(self.clock);
        let (mut last, mut liveness) = (self.clock.now(), Liveness::new(&self.clock));
        while self.token.await_turn(turn, &self.clock) {
            self.push();
            // SAFETY: `at` is a line of the ring, reached by its own pointers. It is the reader's turn, so nobody writes to the window.
            let (from, to, took) = stopwatch.time(|| at = unsafe { kernels::chase_exact(at, self.hops) });
            let ns = |ticks: u64| self.clock.ns(ticks);
            let away = liveness.was_away(&self.clock) || self.token.any_away(turn, self.participants - 1);
            turns.push(Turn { ns_per_line: ns(took) / self.hops as f64, waited_ns: ns(from.saturating_sub(last)), away });
            last = to;
            self.token.pass(turn, false);
            turn += self.participants;
        }
        let hops = (turns.len() * self.hops) as u64;
        // SAFETY: `at` was reached by following `hops` of the ring's pointers from its position.
        (turns, unsafe { self.ring.moved_to(at, hops) })
    }
}

#[cfg(test)]
mod turn_tests {
    use super::*;

    #[test]
    fn turns_before_or_during_which_a_participant_was_away_do_not_count() {
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
    fn a_reader_learns_that_another_participant_was_away() {
        // Holder, sharer and reader take turns 0, 1, 2 and 3, 4, 5.
        let token = TurnToken::new();
        token.pass(0, true);
        token.pass(1, false);
        assert!(token.any_away(2, 2));
        (2..5).for_each(|turn| token.pass(turn, false));
        assert!(!token.any_away(5, 2), "that was a cycle before");
        token.pass(4, true);
        assert!(token.any_away(5, 2));
    }
}

#[cfg(test)]
mod tests;
