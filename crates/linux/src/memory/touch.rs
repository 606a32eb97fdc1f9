//! First touch, in parallel, by threads on the CPUs that the plan names.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use memgauge_core::units::IdSet;

use super::Backing;
use super::map::{Mapping, base_page};

/// `MADV_POPULATE_WRITE` (Linux 5.14): fault pages in for writing; fails where a store would raise SIGBUS.
const MADV_POPULATE_WRITE: i32 = 23;
/// What a thread takes at a time: about 5 ms of clearing pages, far more than the call's cost and short enough to share evenly.
const PORTION: usize = 32 << 20;
/// Touching threads need little stack, and there may be a thousand.
const STACK: usize = 128 << 10;

/// The part of a mapping that is still to be touched, shared by the threads.
struct Rest<'a> {
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

/// Makes every page of `mapping` present and private, with one thread on each of `cpus` as far as there is work for it.
///
/// `strictly`: a thread that cannot be pinned must not touch, because who touches decides the node. What no thread could touch
/// is touched by the caller; the read-back tells whether it lies right.
///
/// # Errors
/// What the kernel said when a page could not be had.
pub(super) fn populate(mapping: &mut Mapping, backing: Backing, cpus: &IdSet, strictly: bool) -> io::Result<()> {
    let rest = Rest {
        mapping,
        portion: PORTION.next_multiple_of(backing.page()),
        step: if let Backing::Pool(page) = backing { page } else { base_page() },
        may_fault: matches!(backing, Backing::Pool(_) | Backing::File(_)),
        next: AtomicUsize::new(0),
        failure: Mutex::new(None),
    };
    let threads = rest.mapping.len().div_ceil(rest.portion);
    std::thread::scope(|scope| {
        for cpu in cpus.iter().take(threads) {
            let rest = &rest;
            let touch = move || {
                if crate::cpu::pin_to(cpu).is_ok() || !strictly {
                    rest.touch();
                }
            };
            // A limit on threads is no obstacle: those that run, or the caller, touch all.
            let _ = std::thread::Builder::new().name(format!("touch-{cpu}")).stack_size(STACK).spawn_scoped(scope, touch);
        }
    });
    rest.touch();
    match rest.failure.into_inner() {
        Ok(Some(e)) => Err(e),
        _ => Ok(()),
    }
}

impl Rest<'_> {
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
        loop {
            // SAFETY: the portion lies in the mapping, which lives as long as `self`; its pages are zero before and after.
            if unsafe { libc::madvise(self.mapping.data().add(start).cast(), len, MADV_POPULATE_WRITE) } == 0 {
                return Ok(());
            }
            match io::Error::last_os_error() {
                e if e.raw_os_error() == Some(libc::EINVAL) => return self.touch_pages(start, len),
                e if e.kind() == io::ErrorKind::Interrupted => {}
                e => return Err(e),
            }
        }
    }

    /// For kernels before 5.14. The kernel itself stores a zero from `/dev/zero`, because then a page that cannot be had is an error
    /// and not a SIGBUS.
    fn touch_pages(&self, start: usize, len: usize) -> io::Result<()> {
        let zero = File::open("/dev/zero");
        for offset in (start..start + len).step_by(self.step) {
            // SAFETY: `offset` lies in the mapping.
            let byte = unsafe { self.mapping.data().add(offset) };
            match &zero {
                Ok(zero) => store_zero(zero, byte)?,
                Err(e) if self.may_fault => return Err(io::Error::new(e.kind(), format!("/dev/zero: {e}"))),
                // SAFETY: one writable byte of the mapping, which nobody else uses yet; base pages raise no SIGBUS.
                Err(_) => unsafe { byte.write_volatile(0) },
            }
        }
        Ok(())
    }
}

/// Has the kernel store a zero at `byte`, which nobody else uses yet.
fn store_zero(zero: &File, byte: *mut u8) -> io::Result<()> {
    loop {
        // SAFETY: private helper; the caller passes one byte of its own mapping, and the kernel checks that it is writable.
        if unsafe { libc::read(zero.as_raw_fd(), byte.cast(), 1) } == 1 {
            return Ok(());
        }
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_of_old_kernels_makes_every_page_present() {
        let mapping = Mapping::new(4 << 20, Backing::Base(base_page())).unwrap();
        let rest = Rest {
            mapping: &mapping,
            portion: PORTION,
            step: base_page(),
            may_fault: true,
            next: AtomicUsize::new(0),
            failure: Mutex::new(None),
        };
        rest.touch_pages(0, 3 << 20).unwrap();
        assert_eq!(mapping.read_pages().unwrap().resident, 3 << 20);
    }

    #[test]
    fn a_page_that_cannot_be_had_is_an_error_and_no_signal() {
        let mut mapping = Mapping::new(1 << 20, Backing::Base(base_page())).unwrap();
        // SAFETY: takes away access to the test's own mapping.
        assert_eq!(unsafe { libc::mprotect(mapping.data().cast(), mapping.len(), libc::PROT_READ) }, 0);
        let e = populate(&mut mapping, Backing::Base(base_page()), &IdSet::one(0), false).unwrap_err();
        assert!(e.raw_os_error().is_some(), "{e}");
        let rest = Rest {
            mapping: &mapping,
            portion: PORTION,
            step: base_page(),
            may_fault: true,
            next: AtomicUsize::new(0),
            failure: Mutex::new(None),
        };
        assert_eq!(rest.touch_pages(0, mapping.len()).unwrap_err().raw_os_error(), Some(libc::EFAULT));
    }
}
