//! A pointer chase: the order of its hops, written into memory as the address of the next line in each chased line, and how it is followed.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use memgauge_kernels as kernels;
use memgauge_model::estimate::NotMeasured;
use memgauge_model::experiment::ChaseOrder;
use memgauge_model::pattern::{ChaseLayout, Cycle};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_os::clock::Clock;
use memgauge_os::cpu;
use memgauge_os::memory::Buffer;

use super::exact::{self, ExactHops};
use super::windows::{BLOCK_NS, Fences, Schedule, Trace, run_until_end};
use crate::cutoff::Cutoff;
use crate::error::{ChainError, wrong_pointer};

/// Slots whose links one thread writes at a time when the whole buffer is one window: 8 MiB at a stride of 128 B.
const LINKS_AT_A_TIME: usize = 1 << 16;

/// Slots of a chase window up to which its order is computed again after every burst, to know where the chase must be: 2 MiB at a stride of
/// 128 B, which takes a tenth of a millisecond.
const COMPUTED_SLOTS: usize = 1 << 14;

/// A ring of pointers in a buffer, and a position on it. Only what writes a chain makes one, so a chase that has a `Ring` may follow it.
///
/// Chains that are written into the same buffer later do not break it: whatever they overwrite leads to another line with a pointer.
#[derive(Debug, Clone)]
pub(crate) struct Ring {
    position: usize,
    /// Hops from the ring's start to the position, modulo a lap.
    hops: u64,
    way: Arc<Way>,
    /// Keeps the memory that `position` points to.
    buffer: Arc<Buffer>,
}

/// The way of a ring through its buffer.
#[derive(Debug)]
struct Way {
    layout: ChaseLayout,
    windows: Vec<u32>,
    offset_in_line: usize,
}

impl Ring {
    /// The ring that `layout` describes, whose pointers are in memory.
    pub(crate) fn new(buffer: &Arc<Buffer>, layout: ChaseLayout, offset_in_line: usize) -> Self {
        let way = Way { layout, windows: layout.window_order(), offset_in_line };
        let position = buffer.as_ptr() as usize + layout.start() + offset_in_line;
        Self { position, hops: 0, way: Arc::new(way), buffer: buffer.clone() }
    }

    pub(crate) fn layout(&self) -> &ChaseLayout {
        &self.way.layout
    }

    /// A line of the ring; its pointer leads to another line of it.
    pub(crate) const fn position(&self) -> *const u8 {
        self.position as *const u8
    }

    /// The same ring at another of its lines.
    ///
    /// # Safety
    /// `position` came from following `hops` pointers from [`Self::position`].
    pub(crate) unsafe fn moved_to(self, position: *const u8, hops: u64) -> Self {
        let hops = (self.hops + hops % self.slots()) % self.slots();
        Self { position: position as usize, hops, ..self }
    }

    fn slots(&self) -> u64 {
        self.layout().slots() as u64
    }

    pub(crate) const fn buffer(&self) -> &Arc<Buffer> {
        &self.buffer
    }

    /// The addresses of its buffer.
    pub(crate) fn memory(&self) -> Range<*const u8> {
        let start: *const u8 = self.buffer.as_ptr();
        start..start.wrapping_add(self.buffer.len())
    }

    /// An error where the chase of `cpu` that came here met a pointer that was not written there, or memory that is not there any more.
    ///
    /// A changed pointer may lead to another line of the ring. If windows are short, this computes where the chase must be; for longer ones
    /// there is [`Self::check_links`].
    pub(crate) fn check(&self, cpu: u32) -> Result<(), NotMeasured> {
        match self.buffer.fault() {
            Some(fault) => Err(NotMeasured::MemoryFailed { cpu, fault }),
            None if !self.memory().contains(&self.position()) || !self.is_where_it_must_be() => Err(wrong_pointer(cpu)),
            None => Ok(()),
        }
    }

    fn is_computed(&self) -> bool {
        self.layout().slots_per_window() <= COMPUTED_SLOTS
    }

    fn is_where_it_must_be(&self) -> bool {
        let Way { layout, windows, offset_in_line } = &*self.way;
        let offset = self.position - self.buffer.as_ptr() as usize;
        !self.is_computed() || offset == layout.after_in(windows, self.hops) + offset_in_line
    }

    /// As [`Self::check_all_links`], for rings whose chases are not checked burst by burst.
    pub(crate) fn check_links(&self, cpu: u32, interrupted: &dyn Fn() -> bool) -> Result<(), NotMeasured> {
        if self.is_computed() { Ok(()) } else { self.check_all_links(cpu, interrupted) }
    }

    /// An error where a pointer of the chain is not what was written: reads one line in each slot. Nothing is compared once `interrupted`.
    ///
    /// Each line of the ring is the next of exactly one other, so the sum of all pointers is that of all lines.
    pub(crate) fn check_all_links(&self, cpu: u32, interrupted: &dyn Fn() -> bool) -> Result<(), NotMeasured> {
        let (start, mut sum) = (self.buffer.as_ptr() as usize + self.way.offset_in_line, 0_usize);
        for (slot, line) in self.layout().lines().enumerate() {
            if slot.is_multiple_of(SLOTS_BETWEEN_LOOKS) && interrupted() {
                return Ok(());
            }
            let at = start + line;
            // SAFETY: the layout is within the buffer, which lives as long as the ring; nobody writes to it now.
            sum = sum.wrapping_add(unsafe { (at as *const usize).read_volatile() }).wrapping_sub(at);
        }
        match self.buffer.fault() {
            Some(fault) => Err(NotMeasured::MemoryFailed { cpu, fault }),
            None if sum != 0 => Err(wrong_pointer(cpu)),
            None => Ok(()),
        }
    }
}

/// The buffer's memory, for threads that each write other lines of it.
#[derive(Clone, Copy)]
struct Lines(*mut u8);

// SAFETY: every line is written by exactly one thread: windows, and ranges of slots, are handed out once each.
unsafe impl Sync for Lines {}

impl Lines {
    /// Stores in the line at `from` the address of the line at `to`.
    ///
    /// # Safety
    /// Both are offsets of whole lines inside the buffer, and no other thread writes the line at `from`.
    unsafe fn link(&self, from: usize, to: usize) {
        // SAFETY: the caller promises that both offsets are inside the buffer; lines are aligned for a pointer.
        unsafe { self.0.add(from).cast::<*mut u8>().write(self.0.add(to)) };
    }
}

/// How a chain is laid out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChainSpec {
    pub(crate) bytes: Bytes,
    pub(crate) window: Bytes,
    pub(crate) stride: Bytes,
    pub(crate) line: Bytes,
    pub(crate) order: ChaseOrder,
    pub(crate) seed: u64,
    /// The place of the pointer in each line.
    pub(crate) offset_in_line: usize,
    /// All sets of a cache are used alike ([`ChaseLayout::evenly`]).
    pub(crate) even: bool,
}

/// Writes a chain into the first bytes of `buffer`, in parallel on `cpus`.
///
/// Gives up when `interrupted` says so: over gigabytes this takes seconds.
pub(crate) fn write(
    buffer: &Arc<Buffer>,
    spec: &ChainSpec,
    cpus: &IdSet,
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<Ring, ChainError> {
    let layout = layout(buffer, spec)?;
    let pointer_end = spec.offset_in_line + size_of::<*mut u8>();
    if !spec.offset_in_line.is_multiple_of(size_of::<*mut u8>()) || pointer_end as u64 > spec.line.0 {
        return Err(ChainError::PointerOutsideLine { offset: spec.offset_in_line, line: spec.line });
    }
    // Lines begin here at their byte `offset_in_line`: a link is stored there, and leads to the same byte of the next line.
    let lines = Lines(buffer.as_ptr().wrapping_add(spec.offset_in_line));
    let next = layout.next_entries();
    if let [next] = next[..] {
        let mut cycle = Cycle::default();
        layout.shuffle(0, &mut cycle, interrupted);
        if interrupted() {
            return Err(ChainError::Interrupted);
        }
        let slots = layout.slots();
        let pieces = slots.div_ceil(LINKS_AT_A_TIME);
        in_parallel((pieces, LINKS_AT_A_TIME), cpus, interrupted, |range| {
            let slots = range.start * LINKS_AT_A_TIME..slots.min(range.end * LINKS_AT_A_TIME);
            // SAFETY: `layout` checked that its lines are within the buffer, and the pointer is within its line; each slot is handed to one
            // thread.
            layout.links(0, &cycle, slots, next, |from, to| unsafe { lines.link(from, to) });
        });
    } else {
        // SAFETY: `layout` checked that its lines are within the buffer, and the pointer is within its line.
        unsafe { write_windows(&layout, lines, cpus, interrupted, |_, _| {}) };
    }
    if interrupted() { Err(ChainError::Interrupted) } else { Ok(Ring::new(buffer, layout, spec.offset_in_line)) }
}

/// Writes window after window. `leaves` takes each window's last line, whose link leads to the next window.
///
/// # Safety
/// The lines of `layout` are within the buffer.
unsafe fn write_windows(
    layout: &ChaseLayout,
    lines: Lines,
    cpus: &IdSet,
    interrupted: &(dyn Fn() -> bool + Sync),
    leaves: impl Fn(usize, usize) + Sync,
) {
    let next = layout.next_entries();
    in_parallel((layout.windows(), layout.slots_per_window()), cpus, interrupted, |range| {
        let mut cycle = Cycle::default();
        for window in range {
            layout.fill_window(window, next[window], &mut cycle, |from, to| {
                if to == next[window] {
                    leaves(window, from);
                }
                // SAFETY: the caller promises that both lines are within the buffer; each window is handed to one thread.
                unsafe { lines.link(from, to) };
            });
        }
    });
}

/// For each window of a chain, its last line: the one whose link leads to the next window.
pub(crate) struct WindowExits(Vec<usize>);

/// Like [`write`], for a chain of several windows that [`relink`] can shorten.
pub(crate) fn write_with_exits(
    buffer: &Arc<Buffer>,
    spec: &ChainSpec,
    cpus: &IdSet,
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<WindowExits, ChainError> {
    let layout = layout(buffer, spec)?;
    let exits: Vec<AtomicUsize> = (0..layout.windows()).map(|_| AtomicUsize::new(0)).collect();
    // SAFETY: `layout` checked that its lines are within the buffer.
    unsafe {
        write_windows(&layout, Lines(buffer.as_ptr()), cpus, interrupted, |window, from| exits[window].store(from, Ordering::Relaxed));
    };
    if interrupted() {
        return Err(ChainError::Interrupted);
    }
    Ok(WindowExits(exits.into_iter().map(AtomicUsize::into_inner).collect()))
}

/// Makes the first windows of a chain that [`write_with_exits`] wrote a chain of their own, as long as `spec` says. Only the links between
/// windows are written: what a window contains does not depend on how many there are.
pub(crate) fn relink(buffer: &Arc<Buffer>, spec: &ChainSpec, exits: &WindowExits) -> Result<Ring, ChainError> {
    let layout = layout(buffer, spec)?;
    if layout.windows() > exits.0.len() {
        return Err(ChainError::LongerThanWritten { bytes: spec.bytes });
    }
    let lines = Lines(buffer.as_ptr());
    for (from, to) in exits.0.iter().zip(layout.next_entries()) {
        // SAFETY: both are lines of windows that `layout` checked to be within the buffer; no other thread uses the buffer.
        unsafe { lines.link(*from, to) };
    }
    Ok(Ring::new(buffer, layout, spec.offset_in_line))
}

/// The layout of a chain, checked to be within the buffer.
pub(crate) fn layout(buffer: &Buffer, spec: &ChainSpec) -> Result<ChaseLayout, ChainError> {
    let layout = ChaseLayout::new(spec.order, spec.bytes, spec.window, spec.stride, spec.line, spec.seed)?;
    if layout.buffer_bytes() > buffer.len() {
        return Err(ChainError::DoesNotFit { bytes: spec.bytes, buffer: buffer.len() });
    }
    Ok(if spec.even { layout.evenly() } else { layout })
}

/// Slots whose links are written between two looks whether the run is to end: some 30 ms.
const SLOTS_BETWEEN_LOOKS: usize = 1 << 20;

/// Hands out `0..count`, each item of `slots` slots, in small ranges to a thread on each of `cpus`.
fn in_parallel((count, slots): (usize, usize), cpus: &IdSet, interrupted: &(dyn Fn() -> bool + Sync), write: impl Fn(Range<usize>) + Sync) {
    let threads = cpus.len().clamp(1, count.max(1));
    // Many for each thread, so that all end at about the same time.
    let piece = (count / (threads * 64)).min(SLOTS_BETWEEN_LOOKS / slots.max(1)).max(1);
    let next = AtomicUsize::new(0);
    let write_pieces = || {
        loop {
            let from = next.fetch_add(piece, Ordering::Relaxed);
            if from >= count || interrupted() {
                return;
            }
            write(from..(from + piece).min(count));
        }
    };
    if threads == 1 {
        return write_pieces();
    }
    std::thread::scope(|scope| {
        for cpu in cpus.iter().take(threads) {
            let pinned = move || {
                // A thread that cannot be pinned is slower at worst: the memory was placed when it was first touched.
                let _ = cpu::pin_to(cpu);
                write_pieces();
            };
            // If threads are limited, those that run, or the caller, do everything.
            let _ = std::thread::Builder::new().spawn_scoped(scope, pinned);
        }
    });
    write_pieces();
}

/// TimedBatches of hops that a timed chase keeps of one burst, in memory that was touched before: 2 MiB. Later batches run and are not timed.
const MAX_BATCHES: usize = 1 << 18;
/// TimedBatches without a hop that show what reading the clock costs.
const EMPTY_BATCHES: usize = 1001;

/// The times of batches of hops.
#[derive(Clone)]
pub(crate) struct TimedBatches {
    hops: u32,
    ticks: Vec<u64>,
    timed: usize,
    overhead: u64,
}

impl TimedBatches {
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
    batches: Option<Box<TimedBatches>>,
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

    pub(crate) const fn position(&self) -> *const u8 {
        self.ring.position()
    }

    /// As [`Ring::check`].
    pub(crate) fn check(&self, cpu: u32) -> Result<(), NotMeasured> {
        self.ring.check(cpu)
    }

    pub(crate) const fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The same chase, timing batches of `hops` in its next burst.
    pub(crate) fn timing(self, hops: u32) -> Self {
        // Not zeros: those would be mapped only when they are written, in the midst of measuring.
        let ticks = vec![1; MAX_BATCHES];
        Self { batches: Some(Box::new(TimedBatches { hops, ticks, timed: 0, overhead: 0 })), ..self }
    }

    /// The chase without its batches, and the batches.
    pub(crate) fn into_parts(mut self) -> (Self, Option<Box<TimedBatches>>) {
        let batches = self.batches.take();
        (self, batches)
    }

    /// Chases exactly `hops` hops, in blocks, or fewer where `cutoff` passes meanwhile; before them as many as take `settle`, which are not
    /// timed. Returns what they took and the chase where it stopped.
    pub(crate) fn exactly(self, hops: u64, settle: Duration, clock: &Clock, cutoff: &Cutoff) -> (ExactHops, Self) {
        let (mut position, mut made) = (self.position(), 0);
        let took = exact::time_hops(clock, clock, (settle, hops), cutoff, |hops| {
            made += hops as u64;
            let unrolled = hops / kernels::CHASE_UNROLL * kernels::CHASE_UNROLL;
            // SAFETY: `position` is a line of a ring, whose pointers all lead to its lines; the ring keeps its memory.
            position = unsafe { kernels::chase_exact(kernels::chase(position, unrolled), hops - unrolled) };
        });
        (took, self.moved_to(position, made))
    }

    fn moved_to(self, end: *const u8, hops: u64) -> Self {
        // SAFETY: every caller got `end` by following `hops` of the ring's pointers from its position.
        Self { ring: unsafe { self.ring.moved_to(end, hops) }, ..self }
    }

    /// Chases in timed batches for the whole burst; the trace's work is batches.
    fn run_timed(self, schedule: &Schedule<'_>, mut batches: Box<TimedBatches>) -> (Trace, Self) {
        let (mut position, mut made) = (self.position(), 0);
        let hops = batches.hops as usize;
        let clock = schedule.clock;
        let TimedBatches { ticks, timed: done, .. } = batches.as_mut();
        let trace = run_until_end(schedule, BLOCK_NS, Fences::Slots, |units| {
            let timed = units.min(ticks.len() - *done);
            let room = &mut ticks[*done..*done + timed];
            // SAFETY: `position` is a line of the ring, reached by its own pointers; the ring keeps its memory.
            position = unsafe { kernels::chase_exact(timed_chase(position, hops, room, &clock), (units - timed) * hops) };
            *done += timed;
            made += (units * hops) as u64;
        });
        let mut empty = [0; EMPTY_BATCHES];
        // SAFETY: `position` is a line of the ring, and no hop is made.
        unsafe { timed_chase(position, 0, &mut empty, &clock) };
        empty.sort_unstable();
        batches.overhead = empty[EMPTY_BATCHES / 2];
        (trace, Self { batches: Some(batches), ..self.moved_to(position, made) })
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
        let (mut position, mut made) = (self.position(), 0);
        let trace = run_until_end(&schedule, BLOCK_NS, Fences::Slots, |units| {
            // SAFETY: `position` is a line of the ring, reached by its own pointers; the ring keeps its memory.
            position = unsafe { kernels::chase(position, units * kernels::CHASE_UNROLL) };
            made += (units * kernels::CHASE_UNROLL) as u64;
        });
        (trace, self.moved_to(position, made))
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

#[cfg(test)]
mod tests;
