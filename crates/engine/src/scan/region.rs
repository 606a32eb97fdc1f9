//! What the threads of a scan do with a region: read all of it, or write a pattern and compare it. They take portions of the region from a
//! common counter until none is left: what counts is how fast the region is read, and a thread that gets less of its CPU or of the memory
//! takes fewer portions instead of making the others wait. No portion is read twice, so a pass finds in the caches only what fits there
//! between two passes.
//!
//! Patterns show whether memory returns what was written to it: every word of a region is written and read back by whichever thread comes
//! first, then the same with the complement, so that every bit was once 0 and once 1.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memgauge_core::result::Mismatch;
use memgauge_kernels::{self as kernels, Kernel, MAX_STREAMS};
use memgauge_os::clock::Clock;
use memgauge_os::cpu;
use memgauge_os::memory::Buffer;

use crate::context::Cutoff;

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
    cutoff: Cutoff,
}

impl Portions {
    /// `len` bytes for so many threads, in portions of whole multiples of `unit` bytes. Once `cutoff` passes none is left.
    pub(super) fn new(len: usize, threads: usize, unit: usize, cutoff: Cutoff) -> Self {
        let portion = (len / (threads.max(1) * PORTIONS_PER_THREAD)).clamp(MIN_PORTION, MAX_PORTION);
        Self { len, portion: portion.next_multiple_of(unit), next: AtomicUsize::new(0), cutoff }
    }

    /// The next portion, which belongs to the caller alone.
    pub(super) fn take(&self) -> Option<Range<usize>> {
        let start = self.next.fetch_add(self.portion, Ordering::Relaxed);
        (start < self.len && !self.cutoff.passed()).then(|| start..self.len.min(start + self.portion))
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
    pub(super) fn new(kernel: &'static Kernel, region: Arc<Buffer>, threads: usize, cutoff: Cutoff) -> Self {
        let step = step_bytes(kernel);
        let portions = Portions::new(region.len() / step * step, threads, step, cutoff);
        Self { kernel, region, portions }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.portions.len as u64
    }

    /// Waits for `start` and reads portions until none is left. Returns when it began and ended.
    pub(super) fn run(&self, clock: &Clock, start: u64) -> (u64, u64) {
        while clock.now() < start {
            std::hint::spin_loop();
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
            // lives as long as `self`. The kernel is one of those available on this CPU and only reads (`fastest_reader` in the scan), and
            // nobody writes to the region meanwhile.
            unsafe { self.kernel.run(&at, steps) };
        }
        (began, clock.now())
    }
}

fn step_bytes(kernel: &Kernel) -> usize {
    kernel.streams.iter().map(|s| s.advance()).sum::<usize>().max(1)
}

/// Patterns: one that depends on the address, and its complement.
pub(super) const PATTERNS: u32 = 2;
/// Mismatches of a region that are listed one by one; a chip that fails gives millions.
const MAX_LISTED: usize = 16;
/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// A region to be written or compared once.
pub(super) struct PatternCheck {
    region: Arc<Buffer>,
    /// The region's place among all, so that no two regions have the same words.
    first_word: u64,
    pattern: u32,
    portions: Portions,
    found: Mutex<PatternMismatches>,
}

/// What was found in a region.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PatternMismatches {
    pub(super) mismatches: u64,
    pub(super) first: Vec<Mismatch>,
}

impl PatternCheck {
    /// Pattern number `pattern` in region number `index`, by so many threads.
    pub(super) fn new(region: Arc<Buffer>, index: usize, pattern: u32, threads: usize, cutoff: Cutoff) -> Self {
        let len = region.len() / WORD * WORD;
        let first_word = index as u64 * (len / WORD) as u64;
        Self { portions: Portions::new(len, threads, kernels::LINE as usize, cutoff), region, first_word, pattern, found: Mutex::default() }
    }

    /// What a word should be. Each bit depends on all bits of the word's number, so a line that came back from another address is
    /// noticed whatever bit of the address went wrong (the finalizer of SplitMix64).
    fn word(&self, index: usize) -> u64 {
        let mut z = (self.first_word + index as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        if self.pattern.is_multiple_of(2) { z } else { !z }
    }

    /// Writes portions until none is left, and drops them from the caches, so that what is compared comes from memory.
    pub(super) fn write(&self) {
        let base = self.region.as_ptr();
        while let Some(portion) = self.portions.take() {
            for offset in portion.clone().step_by(WORD) {
                // SAFETY: a whole, aligned word of the region, which lives as long as `self`, in a portion that only this thread has.
                unsafe { base.add(offset).cast::<u64>().write_volatile(self.word(offset / WORD)) };
            }
            for offset in portion.step_by(kernels::LINE as usize) {
                // SAFETY: a line of the region.
                unsafe { kernels::flush(base.add(offset)) };
            }
        }
        kernels::fence();
    }

    /// Compares portions until none is left.
    pub(super) fn compare(&self) {
        let base = self.region.as_ptr();
        let mut own = PatternMismatches::default();
        while let Some(portion) = self.portions.take() {
            for offset in portion.step_by(WORD) {
                // SAFETY: a whole, aligned word of the region; nobody writes to it meanwhile.
                let at = unsafe { base.add(offset).cast::<u64>() };
                let written = self.word(offset / WORD);
                // SAFETY: `at` is a whole, aligned word of the region, and nobody writes to it meanwhile.
                let read = unsafe { at.read_volatile() };
                if read == written {
                    continue;
                }
                own.mismatches += 1;
                if own.first.len() < MAX_LISTED {
                    // SAFETY: `at` is a whole, aligned word of the region. The line is read again, from memory where it can be dropped from the
                    // caches.
                    let reread = unsafe {
                        kernels::flush(at.cast());
                        kernels::fence();
                        at.read_volatile()
                    };
                    let physical = self.region.physical_address(offset);
                    let cpu = cpu::current_cpu().unwrap_or_default();
                    own.first.push(Mismatch { offset: offset as u64, physical, written, read, reread, cpu });
                }
            }
        }
        // A thread that panicked left what it had found.
        self.found.lock().unwrap_or_else(PoisonError::into_inner).add(own);
    }

    pub(super) fn found(&self) -> PatternMismatches {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl PatternMismatches {
    /// Adds what was found elsewhere; of all the first ones are kept.
    pub(super) fn add(&mut self, other: Self) {
        self.mismatches += other.mismatches;
        self.first.extend(other.first);
        self.first.sort_by_key(|m| m.offset);
        self.first.truncate(MAX_LISTED);
    }
}

#[cfg(test)]
mod reading_tests {
    use super::*;

    #[test]
    fn portions_cover_everything_once() {
        for (len, threads, unit) in [(1 << 30, 128, 4096), (16 << 20, 2, 3072), (100_000, 64, 1024), (1024, 1, 1024), (0, 3, 64)] {
            let portions = Portions::new(len, threads, unit, Cutoff::never());
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
        assert!((1 << 30) / Portions::new(1 << 30, 512, 4096, Cutoff::never()).portion >= 512);
        assert_eq!(Portions::new(1 << 30, 2, 4096, Cutoff::never()).portion, MAX_PORTION);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_core::experiment::PageRequest;
    use memgauge_core::plan::BufferPlan;
    use memgauge_core::units::{Bytes, IdSet};

    fn region() -> Arc<Buffer> {
        let plan = BufferPlan {
            bytes: Bytes::mib(1),
            node: 0,
            pages: PageRequest::Auto,
            touch: IdSet::one(cpu::current_cpu().unwrap()),
            derived: false,
            directory: None,
            shared: false,
        };
        Arc::new(Buffer::allocate(&plan, std::path::Path::new("/")).unwrap())
    }

    #[test]
    fn what_was_written_is_found_and_a_flipped_bit_is_reported() {
        let region = region();
        for pattern in 0..PATTERNS {
            PatternCheck::new(region.clone(), 3, pattern, 1, Cutoff::never()).write();
            let again = PatternCheck::new(region.clone(), 3, pattern, 1, Cutoff::never());
            again.compare();
            assert_eq!(again.found(), PatternMismatches::default());
        }
        let offset = 5 * 4096 + 24;
        // SAFETY: an aligned word of the test's own buffer.
        let written = unsafe {
            let word = region.as_ptr().add(offset).cast::<u64>();
            let written = word.read();
            word.write(written ^ 0x40);
            written
        };
        let broken = PatternCheck::new(region.clone(), 3, PATTERNS - 1, 1, Cutoff::never());
        broken.compare();
        let found = broken.found();
        assert_eq!((found.mismatches, found.first.len()), (1, 1));
        let word = found.first[0];
        assert_eq!((word.offset, word.written ^ word.read), (offset as u64, 0x40));
        assert_eq!((word.written, word.reread), (written, word.read), "memory is wrong, and not the reading");
    }

    #[test]
    fn another_regions_words_are_wrong_and_only_the_first_are_listed() {
        let region = region();
        PatternCheck::new(region.clone(), 0, 0, 1, Cutoff::never()).write();
        let other = PatternCheck::new(region.clone(), 1, 0, 1, Cutoff::never());
        other.compare();
        let found = other.found();
        assert_eq!((found.mismatches, found.first.len()), ((1 << 20) / 8, MAX_LISTED));
        assert_eq!(found.first[1].offset, 8);
    }
}
