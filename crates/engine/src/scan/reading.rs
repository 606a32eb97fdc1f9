//! One pass of several threads over one region. They take portions of it from a common counter until none is left: what counts is how
//! fast the region is read, and a thread that gets less of its CPU or of the memory takes fewer portions instead of making the others wait.
//! No portion is read twice, so a pass finds in the caches only what fits there between two passes.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memgauge_kernels::{self as kernels, Kernel, MAX_STREAMS};
use memgauge_os::clock::Clock;
use memgauge_os::memory::Buffer;

/// About how many portions each thread takes: threads end apart by one portion at most, a 32nd of the time.
const PORTIONS_PER_THREAD: usize = 32;
/// A portion is no larger: some 100 us of one thread's reading, so that all end about together.
const MAX_PORTION: usize = 2 << 20;
/// And no smaller: taking one costs a miss to a contended line, some 100 ns, against 5 us of reading.
const MIN_PORTION: usize = 64 << 10;

/// Parts of a region that threads take until none is left.
pub(super) struct Portions {
    len: usize,
    portion: usize,
    next: AtomicUsize,
}

impl Portions {
    /// `len` bytes for so many threads, in portions of whole multiples of `unit` bytes.
    pub(super) fn new(len: usize, threads: usize, unit: usize) -> Self {
        let portion = (len / (threads.max(1) * PORTIONS_PER_THREAD)).clamp(MIN_PORTION, MAX_PORTION);
        Self { len, portion: portion.next_multiple_of(unit), next: AtomicUsize::new(0) }
    }

    /// The next portion, which belongs to the caller alone.
    pub(super) fn take(&self) -> Option<Range<usize>> {
        let start = self.next.fetch_add(self.portion, Ordering::Relaxed);
        (start < self.len).then(|| start..self.len.min(start + self.portion))
    }
}

/// A region to be read once.
pub(super) struct RegionPass {
    kernel: &'static Kernel,
    region: Arc<Buffer>,
    portions: Portions,
}

impl RegionPass {
    /// `region`, read by `kernel` on so many threads. What is less than a step at the end is left out.
    pub(super) fn new(kernel: &'static Kernel, region: Arc<Buffer>, threads: usize) -> Self {
        let step = step_bytes(kernel);
        let portions = Portions::new(region.len() / step * step, threads, step);
        Self { kernel, region, portions }
    }

    /// Bytes that all threads read together.
    pub(super) fn bytes(&self) -> u64 {
        self.portions.len as u64
    }

    /// Waits for `start` and reads portions until none is left. Returns when it began and ended.
    pub(super) fn run(&self, clock: &Clock, start: u64) -> (u64, u64) {
        while clock.now() < start {
            kernels::spin_hint();
        }
        let began = clock.now();
        while let Some(portion) = self.portions.take() {
            let steps = portion.len() / step_bytes(self.kernel);
            let mut at = [std::ptr::null_mut(); MAX_STREAMS];
            let mut base = self.region.as_ptr() as usize + portion.start;
            for (pointer, stream) in at.iter_mut().zip(self.kernel.streams) {
                *pointer = base as *mut u8;
                base += steps * stream.advance();
            }
            // SAFETY: the streams are one after the other in the portion, which is whole steps of all of them and inside the region, which
            // lives as long as `self`. The kernel is one of those available on this CPU and only reads (`readers` in the scan), and
            // nobody writes to the region meanwhile.
            unsafe { self.kernel.run(&at, steps) };
        }
        (began, clock.now())
    }
}

fn step_bytes(kernel: &Kernel) -> usize {
    kernel.streams.iter().map(|s| s.advance()).sum::<usize>().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_cover_everything_once() {
        for (len, threads, unit) in [(1 << 30, 128, 4096), (16 << 20, 2, 3072), (100_000, 64, 1024), (1024, 1, 1024), (0, 3, 64)] {
            let portions = Portions::new(len, threads, unit);
            let mut end = 0;
            while let Some(portion) = portions.take() {
                assert_eq!(portion.start, end);
                assert!(portion.start.is_multiple_of(unit) && !portion.is_empty());
                end = portion.end;
            }
            assert_eq!(end, len);
            assert!(portions.take().is_none(), "and no more");
        }
    }

    #[test]
    fn threads_of_a_large_machine_all_get_portions() {
        assert!((1 << 30) / Portions::new(1 << 30, 512, 4096).portion >= 512);
        assert_eq!(Portions::new(1 << 30, 2, 4096).portion, MAX_PORTION);
    }
}
