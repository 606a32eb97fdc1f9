//! Turns: the CPUs of a transfer hand a window of lines from one to the next.
//!
//! One CPU loads (HIT) or stores to (HITM) every line of a window by chasing it, then the other chases the same window once, each line
//! migrating as it is touched. The window slides over a buffer much larger than any cache, so lines are always fresh and at many addresses.
//! Where it is asked for, a third CPU loads the window in between, and holder and reader read another buffer after and before, so that the
//! lines move on in their caches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use memgauge_core::experiment::LineState;
use memgauge_kernels as kernels;
use memgauge_os::clock::Clock;
use memgauge_os::memory::Buffer;

use crate::burst::chain::Ring;

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
}

impl Baton {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { turn: AtomicU64::new(0), dropped: AtomicBool::new(false) })
    }

    /// Waits for `turn`; false when another party is gone.
    fn await_turn(&self, turn: u64, clock: &Clock) -> bool {
        let (started, mut polls) = (clock.now(), 0u64);
        while self.turn.load(Ordering::Acquire) != turn {
            kernels::spin_hint();
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

    fn pass(&self, turn: u64) {
        self.turn.store(turn + 1, Ordering::Release);
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
        let mut turn = 1;
        while self.baton.await_turn(turn, &self.clock) {
            // SAFETY: `at` is a line of the ring, reached by its own pointers. It is the sharer's turn, so nobody writes to the window.
            at = unsafe { kernels::chase_exact(at, self.hops) };
            kernels::fence();
            self.baton.pass(turn);
            turn += self.parties;
        }
    }

    /// Takes every window into this CPU's cache, window after window. The holder decides when to end.
    pub(crate) fn hold(self, state: LineState) {
        let mut at = self.ring.position();
        let mut turn = 0;
        while self.baton.await_turn(turn, &self.clock) {
            if self.clock.now() >= self.end {
                self.baton.dropped.store(true, Ordering::Relaxed);
                return;
            }
            // SAFETY: `at` is a line of the ring, reached by its own pointers. While it is the holder's turn no other party touches the
            // buffer; the stores go to bytes 8..16 of each line, beside the pointer.
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

    /// Chases every window that was handed over. Returns nanoseconds per line, by window, and the ring where the next window begins.
    pub(crate) fn read(self) -> (Vec<f64>, Ring) {
        let mut at = self.ring.position();
        let mut turn = self.parties - 1;
        let mut samples = Vec::with_capacity(1 << 14);
        while self.baton.await_turn(turn, &self.clock) {
            self.push();
            // Fenced at both ends: otherwise the second reading would not wait for the hops that are still on their way.
            let from = self.clock.stamp();
            // SAFETY: `at` is a line of the ring, reached by its own pointers. It is the reader's turn, so nobody writes to the window.
            at = unsafe { kernels::chase_exact(at, self.hops) };
            let ticks = self.clock.stamp().saturating_sub(from);
            samples.push(self.clock.ns(ticks) / self.hops as f64);
            self.baton.pass(turn);
            turn += self.parties;
        }
        // SAFETY: `at` was reached by following the ring's pointers from its position.
        (samples, unsafe { self.ring.moved_to(at) })
    }
}

#[cfg(test)]
mod tests {
    use memgauge_core::experiment::{ChaseOrder, PageRequest};
    use memgauge_core::plan::BufferPlan;
    use memgauge_core::units::Bytes;

    use super::*;
    use crate::burst::chain::{self, ChainSpec};

    #[test]
    fn three_parties_take_turns_and_push() {
        let cpus = memgauge_os::cpu::process_affinity().unwrap();
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
        let spec = ChainSpec {
            bytes: plan.bytes,
            window: Bytes::kib(64),
            stride: Bytes(128),
            line: Bytes(64),
            order: ChaseOrder::WindowLocal,
            seed: 1,
            offset_in_line: 0,
            even: false,
        };
        let ring = chain::write(&buffer, &spec, &cpus).unwrap();
        let clock = Clock::calibrate(std::path::Path::new("/"));
        for parties in [2, 3] {
            let baton = Baton::new();
            let end = clock.now() + clock.to_ticks(Duration::from_millis(300));
            let party = Party { parties, pushed: None, ring: ring.clone(), hops: 512, clock, end, baton: baton.clone() };
            let holder = Party { pushed: Some((other.clone(), 4096)), ..party.clone() };
            let samples = std::thread::scope(|scope| {
                let reader = scope.spawn({
                    let party = party.clone();
                    || party.read().0
                });
                if parties == 3 {
                    scope.spawn(|| party.share());
                }
                scope.spawn(|| holder.hold(LineState::Hitm));
                reader.join().unwrap()
            });
            assert!(!samples.is_empty() && samples.iter().all(|ns| *ns > 0.0), "{} windows", samples.len());
            // Whichever party noticed the end first, every window that was read had been through all hands.
            let turns = baton.turn.load(Ordering::Acquire);
            assert_eq!(turns / parties, samples.len() as u64, "{turns} turns of {parties} parties");
        }
    }
}
