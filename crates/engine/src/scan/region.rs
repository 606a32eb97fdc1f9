//! How the threads of a scan read a region. They take portions of it from a common counter until none is left: what counts is how fast the
//! region is read, and a thread that gets less of its CPU or of the memory takes fewer portions instead of making the others wait. No
//! portion is read twice, so a pass finds in the caches only what fits there between two passes.

use std::sync::Arc;

use memgauge_kernels::{Kernel, MAX_STREAMS};
use memgauge_os::clock::Clock;
use memgauge_os::memory::Buffer;

use crate::buffer_portions::Portions;
use crate::cutoff::Cutoff;

/// A region to be read once.
pub(super) struct RegionPass {
    kernel: &'static Kernel,
    region: Arc<Buffer>,
    portions: Portions,
}

impl RegionPass {
    /// A pass over `region`, or over its first `most` bytes, by `kernel` on `threads` threads. It leaves out a rest that is less than a step.
    pub(super) fn new(kernel: &'static Kernel, region: Arc<Buffer>, most: usize, threads: usize, cutoff: Cutoff) -> Self {
        let step = step_bytes(kernel);
        let portions = Portions::new(region.len().min(most) / step * step, threads, step, cutoff);
        Self { kernel, region, portions }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.portions.bytes() as u64
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use memgauge_model::experiment::PageRequest;
    use memgauge_model::plan::BufferPlan;
    use memgauge_model::units::{Bytes, IdSet};

    use super::*;

    #[test]
    fn a_pass_reads_the_whole_region_or_so_much_of_it() {
        let plan = BufferPlan {
            touch: IdSet::one(memgauge_os::cpu::current_cpu().unwrap()),
            ..BufferPlan::plain(Bytes::mib(4), 0, PageRequest::Auto)
        };
        let region = Arc::new(Buffer::allocate(&plan, Path::new("/")).unwrap());
        let kernel = memgauge_kernels::available().find(|k| k.written_per_iteration() == 0 && step_bytes(k) <= 4096).unwrap();
        for (most, least_read, most_read) in [(usize::MAX, (4 << 20) - 4096, 4 << 20), (1 << 20, (1 << 20) - 4096, 1 << 20)] {
            let pass = RegionPass::new(kernel, region.clone(), most, 1, Cutoff::default());
            let clock = Clock::calibrate(Path::new("/"));
            let (began, ended) = pass.run(&clock, clock.now());
            assert!((least_read..=most_read).contains(&(pass.bytes())) && ended > began, "{} bytes", pass.bytes());
            assert!(pass.portions.take().is_none(), "all of it was read");
        }
    }
}
