//! Portions of a buffer that threads take from a common counter until none is left: a thread that gets less of its CPU or of the memory
//! takes fewer instead of making the others wait.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cutoff::Cutoff;

/// About how many portions each thread takes: threads end apart by one portion at most, a 32nd of the time.
const PORTIONS_PER_THREAD: usize = 32;
/// The largest portion: one thread reads it in some 100 us, so all threads end at about the same time.
const MAX_PORTION: usize = 2 << 20;
/// The smallest portion: taking one costs a miss to a contended line, some 100 ns, against 5 us of reading.
const MIN_PORTION: usize = 64 << 10;

/// Parts of a region that threads take until none is left.
pub(crate) struct Portions {
    len: usize,
    portion: usize,
    next: AtomicUsize,
    cutoff: Cutoff,
}

impl Portions {
    /// Divides `len` bytes for `threads` threads into portions of whole multiples of `unit` bytes. Once `cutoff` passes, it hands out none.
    pub(crate) fn new(len: usize, threads: usize, unit: usize, cutoff: Cutoff) -> Self {
        let portion = (len / (threads.max(1) * PORTIONS_PER_THREAD)).clamp(MIN_PORTION, MAX_PORTION);
        Self { len, portion: portion.next_multiple_of(unit), next: AtomicUsize::new(0), cutoff }
    }

    /// Bytes of all portions.
    pub(crate) const fn bytes(&self) -> usize {
        self.len
    }

    /// Whether all were taken.
    pub(crate) fn are_taken(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.len
    }

    /// The next portion, which belongs to the caller alone. Portions that `cutoff` holds back do not count as taken.
    pub(crate) fn take(&self) -> Option<Range<usize>> {
        if self.cutoff.passed() {
            return None;
        }
        let start = self.next.fetch_add(self.portion, Ordering::Relaxed);
        (start < self.len).then(|| start..self.len.min(start + self.portion))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_cover_everything_once() {
        for (len, threads, unit) in [(1 << 30, 128, 4096), (16 << 20, 2, 3072), (100_000, 64, 1024), (1024, 1, 1024), (0, 3, 64)] {
            let portions = Portions::new(len, threads, unit, Cutoff::default());
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
        assert!((1 << 30) / Portions::new(1 << 30, 512, 4096, Cutoff::default()).portion >= 512);
        assert_eq!(Portions::new(1 << 30, 2, 4096, Cutoff::default()).portion, MAX_PORTION);
    }
}
