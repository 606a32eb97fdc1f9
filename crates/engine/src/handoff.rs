//! Cache-to-cache transfers: one CPU loads (HIT) or stores to (HITM) every line of a window by chasing it, then the other chases the same
//! window once, each line migrating as it is touched. The window slides over a buffer much larger than any cache, so lines are always fresh
//! and lie at many addresses. Where it is asked for, a third CPU loads the window in between, and holder and reader read another buffer after
//! and before, so that the lines move on in their caches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use memgauge_core::experiment::{Coordinates, Experiment, LineState, Metric};
use memgauge_core::plan::{BufferPlan, Handoff, Probe};
use memgauge_core::result::{Evidence, Placement, Pushes};
use memgauge_core::units::{Bytes, IdSet};
use memgauge_kernels as kernels;
use memgauge_linux::clock::Clock;
use memgauge_linux::memory::Buffer;

use crate::pages::combined_pages;
use crate::session::{CellError, Session};
use crate::takes::{Mark, Takes};
use crate::team::{Disturbance, Done, Job};

/// Samples of a cell come from at least this many fresh allocations.
const LEAST_ALLOCATIONS: u32 = 3;
/// One run of hand-offs over one allocation.
const RUN: Duration = Duration::from_millis(150);
/// A partner that has not handed over for this long is gone: its CPU was taken away.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// Looks at the baton between two looks at the clock.
const TURNS_BETWEEN_LOOKS: u64 = 4096;

/// Turns taken so far, counted by all parties: the holder's, that of a sharer, the reader's, and again. On a line of its own.
#[repr(align(128))]
pub(crate) struct Baton {
    turn: AtomicU64,
    /// One party gave up; the others must not wait.
    dropped: AtomicBool,
}

impl Baton {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { turn: AtomicU64::new(0), dropped: AtomicBool::new(false) })
    }

    /// Waits for `turn`; false when the partner is gone.
    fn await_turn(&self, turn: u64, clock: &Clock) -> bool {
        let (begun, mut looks) = (clock.now(), 0u64);
        while self.turn.load(Ordering::Acquire) != turn {
            kernels::spin_hint();
            looks += 1;
            if self.dropped.load(Ordering::Relaxed) {
                return false;
            }
            if looks.is_multiple_of(TURNS_BETWEEN_LOOKS) && clock.now().saturating_sub(begun) > clock.ticks_of(PATIENCE) {
                self.dropped.store(true, Ordering::Relaxed);
                return false;
            }
        }
        true
    }

    fn pass(&self, turn: u64) {
        self.turn.store(turn + 1, Ordering::Release);
    }
}

/// What each party needs: the ring of pointers, how many hops a window has, and when to end.
#[derive(Clone)]
pub(crate) struct Track {
    /// How many take turns.
    pub(crate) parties: u64,
    /// What this party reads in its turn besides the window, and how much of it.
    pub(crate) other: Option<(Arc<Buffer>, usize)>,
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) start: usize,
    pub(crate) hops: usize,
    pub(crate) clock: Clock,
    pub(crate) end: u64,
    pub(crate) baton: Arc<Baton>,
}

impl Track {
    fn position(&self) -> *const u8 {
        (self.buffer.as_ptr() as usize + self.start) as *const u8
    }

    /// Reads all of the other buffer, where there is one.
    fn push(&self) {
        if let Some((other, bytes)) = &self.other {
            // SAFETY: the buffer has as many bytes, is aligned to a page, was written when it was first touched, and only this party uses it.
            std::hint::black_box(unsafe { kernels::checksum_xor(other.as_ptr(), *bytes) });
        }
    }

    /// Loads every window that was taken, so that it is shared.
    fn share(self) {
        let mut at = self.position();
        let mut turn = 1;
        while self.baton.await_turn(turn, &self.clock) {
            // SAFETY: as in `hold`; it is the sharer's turn.
            at = unsafe { kernels::chase_exact(at, self.hops) };
            kernels::fence();
            self.baton.pass(turn);
            turn += self.parties;
        }
    }

    /// Takes every window into this CPU's cache, window after window. The holder decides when to end.
    pub(crate) fn hold(self, state: LineState) {
        let mut at = self.position();
        let mut turn = 0;
        while self.baton.await_turn(turn, &self.clock) {
            if self.clock.now() >= self.end {
                self.baton.dropped.store(true, Ordering::Relaxed);
                return;
            }
            // SAFETY: `at` is a line of the ring in `self.buffer`, and every pointer of the ring leads to another line of it. While it is the
            // holder's turn the reader does not touch the buffer; the stores go to bytes 8..16 of each line, beside the pointer.
            at = unsafe {
                match state {
                    LineState::Hit => kernels::chase_exact(at, self.hops),
                    LineState::Hitm => kernels::chase_store(at, self.hops),
                }
            };
            kernels::fence();
            self.push();
            self.baton.pass(turn);
            turn += self.parties;
        }
    }

    /// Chases every window that was handed over: nanoseconds a line, by window.
    fn read(self) -> Vec<f64> {
        self.read_on().0
    }

    /// The same, and the offset where the window after the last one begins.
    pub(crate) fn read_on(self) -> (Vec<f64>, usize) {
        let mut at = self.position();
        let mut turn = self.parties - 1;
        let mut samples = Vec::with_capacity(1 << 14);
        while self.baton.await_turn(turn, &self.clock) {
            self.push();
            // Fenced at both ends: otherwise the second reading would not wait for the hops that are still on their way.
            let from = self.clock.stamp();
            // SAFETY: as in `hold`; it is the reader's turn.
            at = unsafe { kernels::chase_exact(at, self.hops) };
            let ticks = self.clock.stamp().saturating_sub(from);
            samples.push(self.clock.ns(ticks) / self.hops as f64);
            self.baton.pass(turn);
            turn += self.parties;
        }
        (samples, at as usize - self.buffer.as_ptr() as usize)
    }
}

impl Session<'_> {
    pub(crate) fn handoff(&mut self, experiment: Experiment, at: &Coordinates, plan: &Handoff) -> Result<(), CellError> {
        let parties: IdSet = [plan.reader, plan.holder].into_iter().chain(plan.sharer).collect();
        let watch = self.watch(plan.reader, &parties)?;
        let probe = Probe { cpu: plan.reader, buffer: plan.buffer.clone(), stride: plan.stride, window: plan.window };
        let clock = self.clock();
        let (mut takes, mut spent, mut made) = (Takes::by_allocation(LEAST_ALLOCATIONS as usize), Duration::ZERO, 0u32);
        let (mut pages, mut placements) = (Vec::new(), Vec::new());
        let target = self.plan.stop.relative_half_width;
        let run =
            if self.plan.stop.fixed_time { Duration::from_secs_f64(self.plan.stop.budget_s / f64::from(LEAST_ALLOCATIONS)) } else { RUN };
        loop {
            let buffer = self.chase_buffer(&plan.buffer, made)?;
            pages.push(buffer.pages().clone());
            let start = self.chain_start(&probe, probe.buffer.bytes, plan.order, &buffer, u64::from(made))?;
            let (reads, pushes) = (self.other_buffer(plan, plan.reader_pushes)?, self.other_buffer(plan, plan.holder_pushes)?);
            let track = Track {
                parties: parties.len() as u64,
                other: reads,
                buffer: buffer.clone(),
                start,
                hops: (plan.window.0 / plan.stride.0) as usize,
                clock,
                // Set once everything is allocated, so that none of the run is lost to it.
                end: clock.now() + clock.ticks_of(run),
                baton: Baton::new(),
            };
            let (sharer, state) = (Track { other: None, ..track.clone() }, plan.state);
            let holder = Track { other: pushes, ..track.clone() };
            let mut jobs: Vec<(u32, Job<Vec<f64>>)> = vec![
                (plan.reader, Box::new(move || track.read())),
                (
                    plan.holder,
                    Box::new(move || {
                        holder.hold(state);
                        Vec::new()
                    }),
                ),
            ];
            if let Some(cpu) = plan.sharer {
                jobs.push((
                    cpu,
                    Box::new(move || {
                        sharer.share();
                        Vec::new()
                    }),
                ));
            }
            let (mut samples, mut disturbance) = (Vec::new(), Disturbance::default());
            let before = self.stolen(&parties);
            for Done { value, disturbance: seen } in self.team.run(jobs, run + 4 * PATIENCE)? {
                disturbance.add(&seen);
                samples.extend(value);
            }
            let stolen = self.stolen_since(before, &parties, run);
            let mark = Mark::of_threads(parties.len(), disturbance, stolen, None, self.ghz_of(plan.reader));
            placements.push(buffer.placement_now());
            // The first windows find both cores' clocks and predictors cold. Where CPUs are shared there may be few at all.
            let settled = (samples.len() / 2).min(4);
            takes.add(made, vec![samples.split_off(settled)], mark);
            spent += run;
            made += 1;
            self.spent(run);
            self.worked(&parties);
            // A disturbed run is repeated over the next allocation, while there is time.
            let converged = takes.settled() && takes.converged(0, target);
            if self.interrupted() || (made >= LEAST_ALLOCATIONS && self.enough(spent, takes.sampled(), converged)) {
                break;
            }
        }
        let estimate = takes.conclude(0, target);
        if estimate.value.is_none() {
            return Err(CellError::Cannot(format!("CPUs {parties} never ran at the same time")));
        }
        let pushes = Pushes { holder: plan.holder_pushes, reader: plan.reader_pushes };
        let mut noise = self.unwatch(watch, &takes.course().disturbance);
        takes.tell(&mut noise);
        let evidence = Evidence {
            threads: parties.len() as u32,
            kernel: protocol(plan),
            pushes: (plan.holder_pushes.0 > 0 || plan.reader_pushes.0 > 0).then_some(pushes),
            buffer: plan.buffer.bytes,
            window: Some(plan.window),
            stride: Some(plan.stride),
            allocations: self.distinct(&plan.buffer, made),
            pages: combined_pages(pages.iter().map(|p| (p, plan.buffer.bytes))),
            placement: Placement::combined(placements),
            noise,
            ..Default::default()
        };
        self.push(experiment, at.clone(), Metric::Latency, estimate, evidence);
        Ok(())
    }

    /// A buffer of so many bytes like the transfer's.
    pub(crate) fn other_buffer(&mut self, plan: &Handoff, bytes: Bytes) -> Result<Option<(Arc<Buffer>, usize)>, CellError> {
        if bytes.is_zero() {
            return Ok(None);
        }
        let buffer = self.allocate(&BufferPlan { bytes, ..plan.buffer.clone() })?;
        let bytes = buffer.len().min(bytes.0 as usize);
        Ok(Some((buffer, bytes)))
    }
}

/// What is done with each window, in order.
pub(crate) fn protocol(plan: &Handoff) -> String {
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
    use super::*;
    use crate::chain::{self, Order};
    use memgauge_core::experiment::{ChaseOrder, PageRequest};

    #[test]
    fn three_parties_take_turns_and_push() {
        let cpus = memgauge_linux::cpu::process_affinity().unwrap();
        let plan = BufferPlan {
            bytes: Bytes::mib(1),
            node: 0,
            pages: PageRequest::Auto,
            touch: cpus.clone(),
            derived: false,
            directory: None,
            shared: false,
        };
        let allocate = || Buffer::allocate(&plan, std::path::Path::new("/")).map(Arc::new);
        let (Ok(buffer), Ok(other)) = (allocate(), allocate()) else {
            eprintln!("skipped: no memory on node 0");
            return;
        };
        let order = Order {
            bytes: plan.bytes,
            window: Bytes::kib(64),
            stride: Bytes(128),
            line: Bytes(64),
            order: ChaseOrder::WindowLocal,
            seed: 1,
            within: 0,
            even: false,
        };
        let start = chain::write(&buffer, &order, &cpus).unwrap();
        let clock = Clock::calibrate(std::path::Path::new("/"));
        for parties in [2, 3] {
            let baton = Baton::new();
            let end = clock.now() + clock.ticks_of(Duration::from_millis(300));
            let track = Track { parties, other: None, buffer: buffer.clone(), start, hops: 512, clock, end, baton: baton.clone() };
            let holder = Track { other: Some((other.clone(), 4096)), ..track.clone() };
            let samples = std::thread::scope(|scope| {
                let reader = scope.spawn({
                    let track = track.clone();
                    || track.read()
                });
                if parties == 3 {
                    scope.spawn(|| track.share());
                }
                scope.spawn(|| holder.hold(LineState::Hitm));
                reader.join().unwrap()
            });
            assert!(!samples.is_empty() && samples.iter().all(|ns| *ns > 0.0), "{} windows", samples.len());
            // Whoever noticed the end first, every window that was read had been through all hands.
            let turns = baton.turn.load(Ordering::Acquire);
            assert_eq!(turns / parties, samples.len() as u64, "{turns} turns of {parties} parties");
        }
    }

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
        assert_eq!(protocol(&plan), "load-then-chase");
        (plan.state, plan.sharer) = (LineState::Hitm, Some(2));
        assert_eq!(protocol(&plan), "store-then-share-then-chase");
        (plan.holder_pushes, plan.reader_pushes) = (Bytes(64), Bytes(64));
        assert_eq!(protocol(&plan), "store-then-push-then-share-then-push-then-chase");
    }
}
