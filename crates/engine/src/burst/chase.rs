//! A pointer chase.

use memgauge_core::pattern::ChaseLayout;
use memgauge_kernels as kernels;
use memgauge_os::clock::Clock;

use super::chain::Ring;
use super::windows::{BLOCK_NS, Schedule, Trace, run_until_end};

/// Batches of hops that a timed chase keeps of one burst, in memory that was touched before: 2 MiB. Later batches run and are not timed.
const MAX_BATCHES: usize = 1 << 18;
/// Batches without a hop that show what reading the clock costs.
const EMPTY_BATCHES: usize = 1001;

/// The times of batches of hops.
#[derive(Clone)]
pub(crate) struct Batches {
    hops: u32,
    ticks: Vec<u64>,
    timed: usize,
    overhead: u64,
}

impl Batches {
    /// The ticks of each batch, and what reading the clock added to each.
    pub(crate) fn ticks(&self) -> (&[u64], u64) {
        (&self.ticks[..self.timed], self.overhead)
    }
}

/// A pointer chase that goes on where it stopped.
#[derive(Clone)]
pub(crate) struct Chase {
    ring: Ring,
    /// The lines to load before each burst, where that is wanted.
    touched: Option<ChaseLayout>,
    batches: Option<Box<Batches>>,
}

impl Chase {
    pub(crate) const fn new(ring: Ring) -> Self {
        Self { ring, touched: None, batches: None }
    }

    /// The same chase, whose bursts begin by loading every line of `layout`, by which its ring was written. These loads do not wait for each
    /// other, so they fill the caches much faster than a lap of the chase, whatever else ran on the CPU since the last burst.
    pub(crate) fn touching(self, layout: ChaseLayout) -> Self {
        assert!(layout.buffer_bytes() <= self.ring.buffer().len(), "the layout is that of the ring");
        Self { touched: Some(layout), ..self }
    }

    /// Whether bursts begin by touching the chase's lines.
    pub(crate) const fn touches(&self) -> bool {
        self.touched.is_some()
    }

    fn touch(&self, layout: &ChaseLayout) {
        let base = self.ring.buffer().as_ptr();
        for line in layout.lines() {
            // SAFETY: `touching` checked that the layout is within the buffer, which lives as long as the ring.
            unsafe { base.add(line).cast::<u64>().read_volatile() };
        }
    }

    /// Where it is.
    pub(crate) const fn position(&self) -> *const u8 {
        self.ring.position()
    }

    /// The same chase, timing batches of `hops` in its next burst.
    pub(crate) fn timing(self, hops: u32) -> Self {
        // Not zeros: those would be mapped only when they are written, in the midst of measuring.
        let ticks = vec![1; MAX_BATCHES];
        Self { batches: Some(Box::new(Batches { hops, ticks, timed: 0, overhead: 0 })), ..self }
    }

    /// The chase without its batches, and the batches.
    pub(crate) fn into_parts(mut self) -> (Self, Option<Box<Batches>>) {
        let batches = self.batches.take();
        (self, batches)
    }

    /// Chases exactly `hops` hops. Returns the ticks that they took and the chase where it stopped.
    pub(crate) fn exactly(self, hops: u64, clock: &Clock) -> (u64, Self) {
        let start = self.position();
        let unrolled = hops as usize / kernels::CHASE_UNROLL * kernels::CHASE_UNROLL;
        let from = clock.stamp();
        // SAFETY: `start` is a line of a ring, whose pointers all lead to its lines; the ring keeps its memory.
        let end = unsafe { kernels::chase_exact(kernels::chase(start, unrolled), hops as usize - unrolled) };
        let ticks = clock.stamp().saturating_sub(from);
        (ticks, self.moved_to(end))
    }

    fn moved_to(self, end: *const u8) -> Self {
        // SAFETY: every caller got `end` by following the ring's pointers from its position.
        Self { ring: unsafe { self.ring.moved_to(end) }, ..self }
    }

    /// Chases in timed batches for the whole burst; the trace's work is batches.
    fn run_timed(self, schedule: &Schedule<'_>, mut batches: Box<Batches>) -> (Trace, Self) {
        let mut position = self.position();
        let hops = batches.hops as usize;
        let clock = schedule.clock;
        let Batches { ticks, timed: done, .. } = batches.as_mut();
        let trace = run_until_end(schedule, BLOCK_NS, |units| {
            let timed = units.min(ticks.len() - *done);
            let room = &mut ticks[*done..*done + timed];
            // SAFETY: `position` is a line of the ring, reached by its own pointers; the ring keeps its memory.
            position = unsafe { kernels::chase_exact(timed_chase(position, hops, room, &clock), (units - timed) * hops) };
            *done += timed;
        });
        let mut empty = [0; EMPTY_BATCHES];
        // SAFETY: `position` is a line of the ring, and no hop is made.
        unsafe { timed_chase(position, 0, &mut empty, &clock) };
        empty.sort_unstable();
        batches.overhead = empty[EMPTY_BATCHES / 2];
        (trace, Self { batches: Some(batches), ..self.moved_to(position) })
    }

    /// Chases for the whole burst; the trace's work is [`kernels::CHASE_UNROLL`] hops. Returns the chase where it stopped.
    pub(crate) fn run(mut self, schedule: &Schedule<'_>) -> (Trace, Self) {
        if let Some(batches) = self.batches.take() {
            return self.run_timed(schedule, batches);
        }
        let mut schedule = *schedule;
        if let Some(layout) = &self.touched {
            self.touch(layout);
            // A chase that touches runs alone, so nobody waits for it: it starts when it is ready.
            schedule.start = schedule.start.max(schedule.clock.now());
        }
        let mut position = self.position();
        let trace = run_until_end(&schedule, BLOCK_NS, |units| {
            // SAFETY: `position` is a line of the ring, reached by its own pointers; the ring keeps its memory.
            position = unsafe { kernels::chase(position, units * kernels::CHASE_UNROLL) };
        });
        (trace, self.moved_to(position))
    }
}

/// [`kernels::chase_timed`] by the clock in use, which may not be a counter of the CPU.
///
/// # Safety
/// `start` is a line of a ring of pointers whose memory outlives the call.
unsafe fn timed_chase(start: *const u8, hops: usize, batches: &mut [u64], clock: &Clock) -> *const u8 {
    if clock.is_counter() {
        // SAFETY: the caller promises that `start` is a line of a ring.
        return unsafe { kernels::chase_timed(start, hops, batches) };
    }
    let mut at = start;
    for batch in batches {
        let from = clock.stamp();
        // SAFETY: `at` is a line of the ring, reached by its own pointers from the caller's `start`.
        at = unsafe { kernels::chase_exact(at, hops) };
        kernels::fence();
        *batch = clock.stamp().saturating_sub(from);
    }
    at
}
