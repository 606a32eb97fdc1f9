//! The first touch of a buffer, in parallel, by threads on the CPUs that the plan names.

use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

use memgauge_model::random::{CONTENT, CONTENT_WORDS, GOLDEN};
use memgauge_model::units::IdSet;
use windows_sys::Win32::System::Diagnostics::Debug::WriteProcessMemory;
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::interrupted::{Interrupted, interruption};
use super::map::{Backing, Mapping, base_page};

/// The bytes that a thread touches in one go. Clearing and filling them takes a few tenths of a millisecond: much longer than starting a
/// thread, and so short that all CPUs share a buffer of one loader; and few enough to be in a second-level cache still when they are
/// filled.
const PORTION: usize = 2 << 20;
/// These threads need little stack, and there may be a thousand of them.
const STACK: usize = 128 << 10;

/// The part of a mapping that is still to be touched, shared by the threads.
struct Untouched<'a> {
    mapping: &'a Mapping,
    /// Bytes that a thread takes at a time.
    portion: usize,
    /// A store that the file system cannot serve would raise an exception.
    may_fault: bool,
    next: AtomicUsize,
    failure: Mutex<Option<io::Error>>,
    interrupted: Interrupted<'a>,
}

/// Makes every page of `mapping` present and private, and fills it with words so that no two pages are equal, with one thread on each
/// of `cpus` as long as there is work for it. The region's preferred node decides where the pages are, whichever CPU touches them; without
/// one it is the node of the thread that touches.
///
/// Looks at `interrupted` before every portion, and is then an error of [`io::ErrorKind::Interrupted`].
pub(super) fn populate(mapping: &mut Mapping, backing: Backing, cpus: &IdSet, interrupted: Interrupted<'_>) -> io::Result<()> {
    let (portion, threads) = shares(mapping.len(), cpus.len());
    let untouched = Untouched {
        mapping,
        portion,
        may_fault: matches!(backing, Backing::File(_)),
        next: AtomicUsize::new(0),
        failure: Mutex::new(None),
        interrupted,
    };
    // A thread that touches may keep the address space locked against the mapping of the next thread's stack, so all start before any
    // touches.
    let gate = RwLock::new(());
    std::thread::scope(|scope| {
        let closed = gate.write();
        for cpu in cpus.iter().take(threads) {
            let (untouched, gate) = (&untouched, &gate);
            let touch = move || {
                // If the thread cannot be pinned, the read-back shows where its pages are.
                let _ = crate::cpu::pin_to(cpu);
                drop(gate.read());
                untouched.touch();
            };
            // A limit on threads is not an error: the threads that run, or the caller, touch everything.
            let _ = std::thread::Builder::new().name(format!("touch-{cpu}")).stack_size(STACK).spawn_scoped(scope, touch);
        }
        drop(closed);
    });
    untouched.touch();
    match untouched.failure.into_inner() {
        Ok(Some(e)) => Err(e),
        _ => Ok(()),
    }
}

/// The bytes that a thread touches at a time, and how many threads share a mapping. Large pages are in memory before they are touched, so
/// any thread may fill any part of one.
fn shares(len: usize, cpus: usize) -> (usize, usize) {
    (PORTION, cpus.min(len.div_ceil(PORTION)))
}

impl Untouched<'_> {
    /// Touches portions until none is left or one failed.
    fn touch(&self) {
        loop {
            let start = self.next.fetch_add(self.portion, Ordering::Relaxed);
            if start >= self.mapping.len() {
                return;
            }
            let len = self.portion.min(self.mapping.len() - start);
            let provide = || if self.may_fault { self.provide(start, len) } else { Ok(()) };
            if let Err(e) = interruption(self.interrupted).and_then(|()| provide()) {
                self.next.store(self.mapping.len(), Ordering::Relaxed);
                if let Ok(mut failure) = self.failure.lock() {
                    *failure = Some(e);
                }
                return;
            }
            self.fill(start, len);
        }
    }

    /// Makes the pages of a file present. Windows itself stores a zero in each, so that a page that the file system cannot provide is an
    /// error here, and not an exception at a store (`EXCEPTION_IN_PAGE_ERROR`).
    fn provide(&self, start: usize, len: usize) -> io::Result<()> {
        let zero = 0_u8;
        for offset in (start..start + len).step_by(base_page()) {
            let (byte, from) = (self.mapping.data().wrapping_add(offset), &raw const zero);
            // SAFETY: the byte is inside the mapping, nothing else uses it yet, and Windows checks that it may be written.
            let stored = unsafe { WriteProcessMemory(GetCurrentProcess(), byte.cast(), from.cast(), 1, null_mut()) };
            if stored == 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Writes words that make every page different. Windows merges equal pages if that is switched on, and compresses pages that it takes from
    /// a process; hypervisors merge equal pages too. Reads of such a buffer would not read as much memory as its size says.
    fn fill(&self, start: usize, len: usize) {
        for at in (start..start + len).step_by(size_of_val(&CONTENT)) {
            let words = CONTENT_WORDS.min((start + len - at) / size_of::<u64>());
            // SAFETY: whole words inside the writable mapping, which begins at a page; committed memory and the pages of a file that were
            // just provided can be stored to, and nothing else uses them yet.
            unsafe {
                let to = self.mapping.data().add(at).cast::<u64>();
                to.copy_from_nonoverlapping(CONTENT.as_ptr(), words);
                if words > 0 {
                    to.write((to as u64).wrapping_mul(GOLDEN));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cpus_share_the_buffer_of_one_loader() {
        assert_eq!(shares(32 << 20, 16), (PORTION, 16));
        assert_eq!(shares(4 << 20, 16).1, 2, "no thread without work");
    }

    #[test]
    fn no_page_is_zero_and_no_two_are_the_same() {
        let backing = Backing::Base(base_page());
        // More than a portion, and not a multiple of one.
        let mut mappings = [PORTION + (3 << 12), 1 << 20].map(|len| Mapping::new(len, backing, None).unwrap());
        let mut seen = std::collections::BTreeSet::new();
        for mapping in &mut mappings {
            populate(mapping, backing, &IdSet::one(0), &|| false).unwrap();
            // SAFETY: the whole mapping was touched, and nothing else uses it.
            let bytes = unsafe { std::slice::from_raw_parts(mapping.data(), mapping.len()) };
            for page in bytes.chunks(4096) {
                assert!(page.chunks(64).all(|line| line.iter().any(|b| *b != line[0])), "a line of one byte");
                assert!(seen.insert(page.to_vec()));
            }
        }
    }

    #[test]
    fn a_page_of_a_file_that_cannot_be_provided_is_an_error_and_not_an_exception() {
        let backing = Backing::File(base_page());
        let mut mapping = Mapping::new(1 << 20, Backing::Base(base_page()), None).unwrap();
        let e = populate(&mut mapping, backing, &IdSet::one(0), &|| true).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::Interrupted);
        populate(&mut mapping, backing, &IdSet::one(0), &|| false).unwrap();
        let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
        let untouched = Untouched { mapping: &mapping, portion: PORTION, may_fault: true, next, failure, interrupted: &|| false };
        // No process has anything at this address.
        let nowhere = 0x1000_usize.wrapping_sub(mapping.data() as usize);
        assert!(untouched.provide(nowhere, 1).unwrap_err().raw_os_error().is_some());
    }
}
