//! The first touch of a buffer, in parallel, by threads on the CPUs that the plan names.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use memgauge_core::plan::BufferPlan;
use memgauge_core::units::IdSet;

use super::map::{Backing, Mapping, base_page};
use super::node_state::NodeState;
use crate::system_call;

/// `MADV_POPULATE_WRITE` (Linux 5.14) faults pages in for writing, and fails where a store would raise SIGBUS.
const MADV_POPULATE_WRITE: i32 = 23;
/// The bytes that a thread touches in one call. Clearing them takes about 5 ms: much longer than the call itself, and short enough to share
/// the work evenly.
const PORTION: usize = 32 << 20;
/// These threads need little stack, and there may be a thousand of them.
const STACK: usize = 128 << 10;

/// The part of a mapping that is still to be touched, shared by the threads.
struct Untouched<'a> {
    mapping: &'a Mapping,
    /// Bytes touched at a time.
    portion: usize,
    /// Distance between touches where pages cannot be populated by one call.
    step: usize,
    /// A store that the kernel cannot serve would raise SIGBUS.
    may_fault: bool,
    next: AtomicUsize,
    failure: Mutex<Option<io::Error>>,
}

/// The CPUs that touch a buffer, and whether no other CPU may. Bound pages are on the right node whichever CPU touches them; other pages only
/// when a CPU of the node does.
pub(super) fn choose_cpus(plan: &BufferPlan, state: &NodeState, bound: bool) -> (IdSet, bool) {
    let local = plan.touch.intersection(&state.node_cpus);
    if bound || local.is_empty() { (plan.touch.clone(), false) } else { (local, true) }
}

/// Makes every page of `mapping` present and private, with one thread on each of `cpus` as long as there is work for it.
///
/// With `strict`, a thread that cannot be pinned does not touch, because the CPU that touches decides the node. The caller touches what is
/// left; the read-back shows whether it is on the right node.
pub(super) fn populate(mapping: &mut Mapping, backing: Backing, cpus: &IdSet, strict: bool) -> io::Result<()> {
    let untouched = Untouched {
        mapping,
        portion: PORTION.next_multiple_of(backing.page()),
        step: if let Backing::Pool(page) = backing { page } else { base_page() },
        may_fault: matches!(backing, Backing::Pool(_) | Backing::File(_)),
        next: AtomicUsize::new(0),
        failure: Mutex::new(None),
    };
    let threads = untouched.mapping.len().div_ceil(untouched.portion);
    std::thread::scope(|scope| {
        for cpu in cpus.iter().take(threads) {
            let untouched = &untouched;
            let touch = move || {
                if crate::cpu::pin_to(cpu).is_ok() || !strict {
                    untouched.touch();
                }
            };
            // A limit on threads is not an error: the threads that run, or the caller, touch everything.
            let _ = std::thread::Builder::new().name(format!("touch-{cpu}")).stack_size(STACK).spawn_scoped(scope, touch);
        }
    });
    untouched.touch();
    match untouched.failure.into_inner() {
        Ok(Some(e)) => Err(e),
        _ => Ok(()),
    }
}

impl Untouched<'_> {
    /// Touches portions until none is left or one failed.
    fn touch(&self) {
        loop {
            let start = self.next.fetch_add(self.portion, Ordering::Relaxed);
            if start >= self.mapping.len() {
                return;
            }
            if let Err(e) = self.touch_portion(start, self.portion.min(self.mapping.len() - start)) {
                self.next.store(self.mapping.len(), Ordering::Relaxed);
                if let Ok(mut failure) = self.failure.lock() {
                    *failure = Some(e);
                }
                return;
            }
        }
    }

    fn touch_portion(&self, start: usize, len: usize) -> io::Result<()> {
        // SAFETY: the portion is inside the mapping, which lives as long as `self`. The call only makes pages present, which are zero.
        let populated = system_call(|| unsafe { libc::madvise(self.mapping.data().add(start).cast(), len, MADV_POPULATE_WRITE) == 0 });
        match populated {
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => self.touch_pages(start, len),
            populated => populated,
        }
    }

    /// Touches pages on kernels before 5.14. The kernel itself stores a zero from `/dev/zero`, so that a page that it cannot provide is an
    /// error and not a SIGBUS.
    fn touch_pages(&self, start: usize, len: usize) -> io::Result<()> {
        let zero = File::open("/dev/zero");
        for offset in (start..start + len).step_by(self.step) {
            // SAFETY: `offset` is less than the length of the mapping, so the address is inside it.
            let byte = unsafe { self.mapping.data().add(offset) };
            match &zero {
                Ok(zero) => store_zero(zero, byte)?,
                Err(e) if self.may_fault => return Err(io::Error::new(e.kind(), format!("/dev/zero: {e}"))),
                // SAFETY: the byte is inside the writable mapping, and nothing else uses it yet. Base pages raise no SIGBUS.
                Err(_) => unsafe { byte.write_volatile(0) },
            }
        }
        Ok(())
    }
}

/// Lets the kernel store a zero at `byte`, which nothing else uses yet.
fn store_zero(zero: &File, byte: *mut u8) -> io::Result<()> {
    // SAFETY: every caller passes one byte inside its own mapping, and the kernel checks that it is writable.
    system_call(|| unsafe { libc::read(zero.as_raw_fd(), byte.cast(), 1) == 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn untouched(mapping: &Mapping) -> Untouched<'_> {
        let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
        Untouched { mapping, portion: PORTION, step: base_page(), may_fault: true, next, failure }
    }

    #[test]
    fn touching_as_for_old_kernels_makes_every_page_present() {
        let mapping = Mapping::new(4 << 20, Backing::Base(base_page())).unwrap();
        let untouched = untouched(&mapping);
        untouched.touch_pages(0, 3 << 20).unwrap();
        assert_eq!(mapping.read_pages().unwrap().resident, 3 << 20);
    }

    #[test]
    fn a_page_that_cannot_be_provided_is_an_error_and_not_a_signal() {
        let mut mapping = Mapping::new(1 << 20, Backing::Base(base_page())).unwrap();
        // SAFETY: only changes the protection of the test's own mapping.
        assert_eq!(unsafe { libc::mprotect(mapping.data().cast(), mapping.len(), libc::PROT_READ) }, 0);
        let e = populate(&mut mapping, Backing::Base(base_page()), &IdSet::one(0), false).unwrap_err();
        assert!(e.raw_os_error().is_some(), "{e}");
        let untouched = untouched(&mapping);
        assert_eq!(untouched.touch_pages(0, mapping.len()).unwrap_err().raw_os_error(), Some(libc::EFAULT));
    }
}
