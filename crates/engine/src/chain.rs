//! Writes the order of a chase into memory: in each chased line, the address of the next one.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use memgauge_core::experiment::ChaseOrder;
use memgauge_core::pattern::{ChaseLayout, Cycle};
use memgauge_core::units::{Bytes, IdSet};
use memgauge_linux::cpu;
use memgauge_linux::memory::Buffer;

use crate::session::CellError;

/// Slots whose links one thread writes at a time when the whole buffer is one window: 8 MiB at a stride of 128 B.
const LINKS_AT_A_TIME: usize = 1 << 16;

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
        // SAFETY: as this function's own contract says; lines are aligned for a pointer.
        unsafe { self.0.add(from).cast::<*mut u8>().write(self.0.add(to)) };
    }
}

/// What a chain is written by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Order {
    pub(crate) bytes: Bytes,
    pub(crate) window: Bytes,
    pub(crate) stride: Bytes,
    pub(crate) line: Bytes,
    pub(crate) order: ChaseOrder,
    pub(crate) seed: u64,
    /// Where in each line the pointer is.
    pub(crate) within: usize,
    /// All sets of a cache alike ([`ChaseLayout::evenly`]).
    pub(crate) even: bool,
}

/// Writes a chain into the first bytes of `buffer`, in parallel on `cpus`, and returns the offset of its first pointer.
pub(crate) fn write(buffer: &Buffer, order: &Order, cpus: &IdSet) -> Result<usize, CellError> {
    let layout = layout(buffer, order)?;
    if !order.within.is_multiple_of(size_of::<*mut u8>()) || (order.within + size_of::<*mut u8>()) as u64 > order.line.0 {
        return Err(CellError::Cannot(format!("a pointer at byte {} does not lie in a line of {}", order.within, order.line)));
    }
    // Lines are handed out from their byte `within` on: a link is stored there, and leads to the same byte of the next.
    let lines = Lines(buffer.as_ptr().wrapping_add(order.within));
    let next = layout.next_entries();
    if let [next] = next[..] {
        let mut cycle = Cycle::default();
        layout.shuffle(0, &mut cycle);
        let slots = layout.slots();
        let pieces = slots.div_ceil(LINKS_AT_A_TIME);
        in_parallel(pieces, cpus, |range| {
            let slots = range.start * LINKS_AT_A_TIME..slots.min(range.end * LINKS_AT_A_TIME);
            // SAFETY: the layout's lines lie within `buffer_bytes`, and the pointer within its line, both checked above; each slot is handed to one thread.
            layout.links(0, &cycle, slots, next, |from, to| unsafe { lines.link(from, to) });
        });
    } else {
        in_parallel(layout.windows(), cpus, |range| {
            let mut cycle = Cycle::default();
            for window in range {
                // SAFETY: as above; each window is handed to one thread.
                layout.fill_window(window, next[window], &mut cycle, |from, to| unsafe { lines.link(from, to) });
            }
        });
    }
    Ok(layout.start() + order.within)
}

/// For each window of a chain, where its last line is: the one whose link leads to the next window.
pub(crate) struct Exits(Vec<usize>);

/// As [`write`], for a chain of several windows that [`relink`] can shorten.
pub(crate) fn write_with_exits(buffer: &Buffer, order: &Order, cpus: &IdSet) -> Result<Exits, CellError> {
    let layout = layout(buffer, order)?;
    let (lines, next) = (Lines(buffer.as_ptr()), layout.next_entries());
    let exits: Vec<AtomicUsize> = (0..layout.windows()).map(|_| AtomicUsize::new(0)).collect();
    in_parallel(layout.windows(), cpus, |range| {
        let mut cycle = Cycle::default();
        for window in range {
            layout.fill_window(window, next[window], &mut cycle, |from, to| {
                if to == next[window] {
                    exits[window].store(from, Ordering::Relaxed);
                }
                // SAFETY: the layout's offsets lie within `buffer_bytes`, which `layout` checked; each window is handed to one thread.
                unsafe { lines.link(from, to) };
            });
        }
    });
    Ok(Exits(exits.into_iter().map(AtomicUsize::into_inner).collect()))
}

/// Makes the first windows of a chain that [`write_with_exits`] wrote a chain of their own, as long as `order` says, and returns the
/// offset where it starts. Only the links between windows are written: what a window holds does not depend on how many there are.
pub(crate) fn relink(buffer: &Buffer, order: &Order, exits: &Exits) -> Result<usize, CellError> {
    let layout = layout(buffer, order)?;
    if layout.windows() > exits.0.len() {
        return Err(CellError::Cannot(format!("a chain of {} is longer than the one that was written", order.bytes)));
    }
    let lines = Lines(buffer.as_ptr());
    for (from, to) in exits.0.iter().zip(layout.next_entries()) {
        // SAFETY: both are lines of windows within `buffer_bytes`, which `layout` checked; no other thread uses the buffer.
        unsafe { lines.link(*from, to) };
    }
    Ok(layout.start())
}

/// The order's layout, within the buffer.
pub(crate) fn layout(buffer: &Buffer, order: &Order) -> Result<ChaseLayout, CellError> {
    let layout = ChaseLayout::new(order.order, order.bytes, order.window, order.stride, order.line, order.seed)
        .map_err(|e| CellError::Cannot(e.to_string()))?;
    if layout.buffer_bytes() > buffer.len() {
        return Err(CellError::Cannot(format!("a chase of {} does not fit its buffer of {} bytes", order.bytes, buffer.len())));
    }
    Ok(if order.even { layout.evenly() } else { layout })
}

/// Hands out `0..count` in small ranges to a thread on each of `cpus`.
fn in_parallel(count: usize, cpus: &IdSet, work: impl Fn(Range<usize>) + Sync) {
    let threads = cpus.len().clamp(1, count.max(1));
    let piece = (count / (threads * 8)).max(1);
    let taken = AtomicUsize::new(0);
    let toil = || {
        loop {
            let from = taken.fetch_add(piece, Ordering::Relaxed);
            if from >= count {
                return;
            }
            work(from..(from + piece).min(count));
        }
    };
    if threads == 1 {
        return toil();
    }
    std::thread::scope(|scope| {
        for cpu in cpus.iter().take(threads) {
            let pinned = move || {
                // Unpinned it is slower at worst: the memory was placed when it was first touched.
                let _ = cpu::pin_to(cpu);
                toil();
            };
            // A limit on threads is no obstacle: those that run, or the caller, do everything.
            let _ = std::thread::Builder::new().spawn_scoped(scope, pinned);
        }
    });
    toil();
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_core::experiment::PageRequest;
    use memgauge_core::plan::BufferPlan;
    use memgauge_kernels as kernels;
    use memgauge_linux::clock::Clock;

    use crate::burst::{Chase, Schedule};

    #[test]
    fn the_chain_in_memory_is_one_cycle_over_all_lines() {
        let cpus = cpu::process_affinity().unwrap();
        let bytes = Bytes::mib(4);
        let plan =
            BufferPlan { bytes, node: 0, pages: PageRequest::Auto, touch: cpus.clone(), derived: false, directory: None, shared: false };
        let Ok(buffer) = Buffer::allocate(&plan, std::path::Path::new("/")) else {
            eprintln!("skipped: no memory on node 0");
            return;
        };
        for order in [ChaseOrder::WindowLocal, ChaseOrder::FullRandom, ChaseOrder::Sequential] {
            let order =
                Order { bytes, window: Bytes::kib(64), stride: Bytes(128), line: Bytes(64), order, seed: 5, within: 16, even: false };
            let start = buffer.as_ptr().wrapping_add(write(&buffer, &order, &cpus).unwrap()).cast_const();
            let slots = 4 << 20 >> 7;
            let mut seen = std::collections::BTreeSet::new();
            let mut at = start;
            for _ in 0..slots {
                assert!(seen.insert(at as usize), "a line is visited twice");
                // SAFETY: `at` is a line of the chain just written.
                at = unsafe { kernels::chase_exact(at, 1) };
            }
            assert_eq!(at, start, "back at the start after {slots} hops");
            // SAFETY: as above.
            assert_eq!(unsafe { kernels::chase(start, slots) }, start, "the unrolled chase agrees");
        }
    }

    #[test]
    fn a_shortened_chain_is_one_cycle_over_the_windows_left() {
        let Some((buffer, cpus)) = four_mib() else { return };
        let of = |mib: u64| Order {
            bytes: Bytes(mib << 19),
            window: Bytes::kib(64),
            stride: Bytes(128),
            line: Bytes(64),
            within: 0,
            order: ChaseOrder::WindowLocal,
            seed: 9,
            even: true,
        };
        let exits = write_with_exits(&buffer, &of(8), &cpus).unwrap();
        for halves in [1, 3, 8, 2] {
            let order = of(halves);
            let start = buffer.as_ptr().wrapping_add(relink(&buffer, &order, &exits).unwrap()).cast_const();
            let slots = order.bytes.0 as usize / 128;
            let mut seen = std::collections::BTreeSet::new();
            let mut at = start;
            for _ in 0..slots {
                assert!(seen.insert(at as usize), "a line is visited twice");
                assert!((at as usize) < buffer.as_ptr() as usize + order.bytes.0 as usize, "within the first {}", order.bytes);
                // SAFETY: `at` is a line of the chain just written.
                at = unsafe { kernels::chase_exact(at, 1) };
            }
            assert_eq!(at, start, "back at the start after {slots} hops");
        }
        assert!(relink(&buffer, &of(9), &exits).is_err());
    }

    fn four_mib() -> Option<(std::sync::Arc<Buffer>, IdSet)> {
        let cpus = cpu::process_affinity().unwrap();
        let plan = BufferPlan {
            bytes: Bytes::mib(4),
            node: 0,
            pages: PageRequest::Auto,
            touch: cpus.clone(),
            derived: false,
            directory: None,
            shared: false,
        };
        let buffer = Buffer::allocate(&plan, std::path::Path::new("/")).ok();
        if buffer.is_none() {
            eprintln!("skipped: no memory on node 0");
        }
        Some((std::sync::Arc::new(buffer?), cpus))
    }

    #[test]
    fn an_exact_chase_makes_as_many_hops_as_asked() {
        let Some((buffer, cpus)) = four_mib() else { return };
        let order = Order {
            bytes: Bytes::kib(64),
            window: Bytes::kib(16),
            stride: Bytes(128),
            line: Bytes(64),
            order: ChaseOrder::WindowLocal,
            seed: 5,
            within: 0,
            even: false,
        };
        let start = write(&buffer, &order, &cpus).unwrap();
        let clock = Clock::calibrate(std::path::Path::new("/"));
        let chase = Chase::new(buffer.clone(), start);
        for hops in [1, 63, 64, 65, 511, 512, 1000] {
            let (ticks, after) = chase.clone().exactly(hops, &clock);
            // SAFETY: a line of the chain just written.
            let expected = unsafe { kernels::chase_exact(buffer.as_ptr().wrapping_add(start), hops as usize) };
            assert_eq!(after.position(), expected, "{hops} hops");
            assert!(hops < 512 || ticks > 0);
        }
    }

    #[test]
    fn batches_are_timed_one_by_one() {
        let Some((buffer, cpus)) = four_mib() else { return };
        let order = Order {
            bytes: Bytes::mib(4),
            window: Bytes::mib(4),
            stride: Bytes(128),
            line: Bytes(64),
            order: ChaseOrder::FullRandom,
            seed: 5,
            within: 0,
            even: false,
        };
        let start = write(&buffer, &order, &cpus).unwrap();
        let clock = Clock::calibrate(std::path::Path::new("/"));
        let window = clock.ticks_of(std::time::Duration::from_millis(5));
        let schedule = Schedule { clock, start: clock.now(), window, windows: 4, counters: None };
        let (trace, chase) = Chase::new(buffer, start).timing(64).run(&schedule);
        let (_, batches) = chase.into_parts();
        let batches = batches.unwrap();
        let (ticks, overhead) = batches.ticks();
        let (all, units) = trace.whole().unwrap();
        assert!(ticks.len() > 10 && ticks.len() as u64 >= units, "{} batches timed, {units} done", ticks.len());
        assert!(ticks.iter().sum::<u64>() <= all + all / 2, "batches do not overlap");
        assert!(overhead < clock.ticks_of(std::time::Duration::from_micros(5)), "{overhead} ticks for reading the clock");
    }
}
