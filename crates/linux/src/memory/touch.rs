//! The first touch of a buffer, in parallel, by threads on the CPUs that the plan names.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

use memgauge_model::plan::BufferPlan;
use memgauge_model::random::{CONTENT, CONTENT_WORDS, GOLDEN};
use memgauge_model::units::IdSet;

use super::interrupted::{Interrupted, interruption};
use super::map::{Backing, Mapping};
use super::node_state::NodeState;
use super::placement::Turns;
use crate::base_page;
use crate::system_call;

/// `MADV_POPULATE_WRITE` (Linux 5.14) faults pages in for writing, and fails where a store would raise SIGBUS.
const MADV_POPULATE_WRITE: i32 = 23;
/// The bytes that a thread touches in one call. Clearing and filling them takes a few tenths of a millisecond: much longer than the call itself
/// or than starting a thread, but so short that all CPUs share the buffer of one loader. With a thousand of those, one after the other, one
/// thread for each buffer would take many seconds. The bytes are also few enough to be still in a second-level cache when they are filled.
const PORTION: usize = 2 << 20;
/// These threads need little stack, and there may be a thousand of them.
const STACK: usize = 128 << 10;

/// The part of a mapping that is still to be touched, shared by the threads.
struct Untouched<'a> {
    mapping: &'a Mapping,
    /// Bytes that a thread takes at a time.
    portion: usize,
    /// Distance between touches where pages cannot be populated by one call.
    step: usize,
    /// A store that the kernel cannot serve would raise SIGBUS.
    may_fault: bool,
    next: AtomicUsize,
    failure: Mutex<Option<io::Error>>,
    interrupted: Interrupted<'a>,
    /// Pages of this node's turn only.
    turn: Option<(&'a Turns, u32)>,
}

/// The CPUs that touch a buffer, and whether no other CPU may. Bound pages are on the right node whichever CPU touches them; other pages only
/// when a CPU of the node does.
pub(super) fn choose_cpus(plan: &BufferPlan, state: &NodeState, bound: bool) -> (IdSet, bool) {
    let local = plan.touch.intersection(&state.node_cpus);
    if bound || local.is_empty() { (plan.touch.clone(), false) } else { (local, true) }
}

/// Makes every page of `mapping` present and private, and fills it with words so that no two pages are equal, with one thread on each of
/// `cpus` as long as there is work for it.
///
/// With `strict`, a thread that cannot be pinned does not touch, because the CPU that touches decides the node. The caller touches what is
/// left; the read-back shows whether it is on the right node.
///
/// Looks at `interrupted` before every portion, and is then an error of [`io::ErrorKind::Interrupted`].
pub(super) fn populate(
    mapping: &mut Mapping,
    backing: Backing,
    cpus: &IdSet,
    strict: bool,
    interrupted: Interrupted<'_>,
) -> io::Result<()> {
    populate_pages(mapping, backing, (cpus, strict), None, interrupted)
}

/// The same with those pages only whose turn is a node's.
pub(super) fn populate_turn(
    mapping: &mut Mapping,
    backing: Backing,
    cpus: &IdSet,
    turn: (&Turns, u32),
    interrupted: Interrupted<'_>,
) -> io::Result<()> {
    populate_pages(mapping, backing, (cpus, false), Some(turn), interrupted)
}

fn populate_pages(
    mapping: &mut Mapping,
    backing: Backing,
    (cpus, strict): (&IdSet, bool),
    turn: Option<(&Turns, u32)>,
    interrupted: Interrupted<'_>,
) -> io::Result<()> {
    let (portion, threads) = shares(mapping.len(), backing, cpus.len());
    let untouched = Untouched {
        mapping,
        portion,
        step: if let Backing::Pool(page) = backing { page } else { base_page() },
        may_fault: matches!(backing, Backing::Pool(_) | Backing::File(_)),
        next: AtomicUsize::new(0),
        failure: Mutex::new(None),
        interrupted,
        turn,
    };
    // A thread that touches keeps the address space locked against the mapping of the next thread's stack, so all start before any touches.
    let gate = RwLock::new(());
    std::thread::scope(|scope| {
        let closed = gate.write();
        for cpu in cpus.iter().take(threads) {
            let (untouched, gate) = (&untouched, &gate);
            let touch = move || {
                let pinned = crate::cpu::pin_to(cpu).is_ok();
                drop(gate.read());
                if pinned || !strict {
                    untouched.touch();
                }
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

/// The bytes that a thread touches at a time, and how many threads share a mapping.
fn shares(len: usize, backing: Backing, cpus: usize) -> (usize, usize) {
    let portion = PORTION.next_multiple_of(backing.page());
    (portion, cpus.min(len.div_ceil(portion)))
}

impl Untouched<'_> {
    /// Touches portions until none is left or one failed.
    fn touch(&self) {
        loop {
            let start = self.next.fetch_add(self.portion, Ordering::Relaxed);
            if start >= self.mapping.len() {
                return;
            }
            let end = self.mapping.len().min(start + self.portion);
            let touch = || self.runs(start, end).into_iter().try_for_each(|(start, end)| self.touch_portion(start, end - start));
            if let Err(e) = interruption(self.interrupted).and_then(|()| touch()) {
                self.next.store(self.mapping.len(), Ordering::Relaxed);
                if let Ok(mut failure) = self.failure.lock() {
                    *failure = Some(e);
                }
                return;
            }
            self.runs(start, end).into_iter().for_each(|(start, end)| self.fill(start, end - start));
        }
    }

    /// The parts of a portion whose turn it is.
    fn runs(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let Some((turns, node)) = self.turn else { return vec![(start, end)] };
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for at in (start..end).step_by(turns.page).filter(|at| turns.node_at(self.mapping.data() as usize + at) == node) {
            let until = end.min(at + turns.page);
            match runs.last_mut() {
                Some(last) if last.1 == at => last.1 = until,
                _ => runs.push((at, until)),
            }
        }
        runs
    }

    fn touch_portion(&self, start: usize, len: usize) -> io::Result<()> {
        // SAFETY: the portion is inside the mapping, which lives as long as `self`. The call only makes pages present, which are zero.
        let populated = system_call(|| unsafe { libc::madvise(self.mapping.data().add(start).cast(), len, MADV_POPULATE_WRITE) == 0 });
        match populated {
            // The kernel does not know this advice, or a filter of system calls denies all advice.
            Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::EPERM | libc::ENOSYS | libc::EACCES)) => {
                self.touch_pages(start, len)
            }
            populated => populated,
        }
    }

    /// Writes words so that no two pages are equal. Hypervisors and kernels merge equal pages, and memory that compresses (CXL) stores pages of
    /// zeros as nothing: a thread that reads such pages would read less memory than the buffer has.
    fn fill(&self, start: usize, len: usize) {
        for at in (start..start + len).step_by(size_of_val(&CONTENT)) {
            let words = CONTENT_WORDS.min((start + len - at) / size_of::<u64>());
            // SAFETY: whole words inside the writable mapping, which begins at a page; these pages are present, and nothing else uses them yet.
            unsafe {
                let to = self.mapping.data().add(at).cast::<u64>();
                to.copy_from_nonoverlapping(CONTENT.as_ptr(), words);
                if words > 0 {
                    to.write((to as u64).wrapping_mul(GOLDEN));
                }
            }
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
        Untouched { mapping, portion: PORTION, step: base_page(), may_fault: true, next, failure, interrupted: &|| false, turn: None }
    }

    #[test]
    fn every_page_has_one_turn() {
        let mapping = Mapping::new((1 << 20) + 5 * base_page(), Backing::Base(base_page())).unwrap();
        let turns = Turns { weights: "0=3,2=1,5=2".parse().unwrap(), page: base_page() };
        let mut seen = vec![0; mapping.len() / base_page()];
        for node in turns.weights.nodes().iter() {
            let untouched = Untouched { turn: Some((&turns, node)), ..untouched(&mapping) };
            for (start, end) in [(0, 1 << 20), (1 << 20, mapping.len())].into_iter().flat_map(|(from, to)| untouched.runs(from, to)) {
                for at in (start..end).step_by(base_page()) {
                    seen[at / base_page()] += 1;
                    assert_eq!(turns.node_at(mapping.data() as usize + at), node);
                }
            }
        }
        assert!(seen.iter().all(|times| *times == 1), "{seen:?}");
    }

    #[test]
    fn all_cpus_share_the_buffer_of_one_loader() {
        let (page, huge) = (base_page(), 2 << 20);
        assert_eq!(shares(32 << 20, Backing::Thp(huge), 16), (huge, 16));
        assert_eq!(shares(32 << 20, Backing::Base(page), 16).1, 16);
        assert_eq!(shares(4 << 20, Backing::Pool(huge), 16).1, 2, "no thread without work");
        assert_eq!(shares(2 << 30, Backing::Pool(1 << 30), 16), (1 << 30, 2), "a page is cleared by one thread");
        // Each thread waits in its first portion until all have begun one: the buffer is touched by all of them. (The caller touches what they
        // leave.)
        let sharing = |portions: usize| {
            let mut mapping = Mapping::new(portions * PORTION, Backing::Base(page)).unwrap();
            let begun = Mutex::new(std::collections::BTreeSet::new());
            let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
            let wait = || {
                begun.lock().unwrap().insert(std::thread::current().name().unwrap_or_default().to_owned());
                while begun.lock().unwrap().len() < portions.min(16) && std::time::Instant::now() < until {
                    std::thread::yield_now();
                }
                false
            };
            populate(&mut mapping, Backing::Base(page), &(0..16).collect(), false, &wait).unwrap();
            assert_eq!(mapping.read_pages().unwrap().resident, (portions * PORTION) as u64);
            begun.into_inner().unwrap().iter().filter(|name| name.starts_with("touch-")).count()
        };
        assert_eq!(sharing(20), 16);
        assert!(sharing(2) <= 2);
    }

    #[test]
    fn touching_as_for_old_kernels_makes_every_page_present() {
        let mapping = Mapping::new(4 << 20, Backing::Base(base_page())).unwrap();
        let untouched = untouched(&mapping);
        untouched.touch_pages(0, 3 << 20).unwrap();
        assert_eq!(mapping.read_pages().unwrap().resident, 3 << 20);
    }

    #[test]
    fn no_page_is_zero_and_no_two_are_the_same() {
        // More than a portion, and not a multiple of one.
        let mut mappings = [PORTION + (3 << 12), 1 << 20].map(|len| Mapping::new(len, Backing::Base(base_page())).unwrap());
        let mut seen = std::collections::BTreeSet::new();
        for mapping in &mut mappings {
            populate(mapping, Backing::Base(base_page()), &IdSet::one(0), false, &|| false).unwrap();
            // SAFETY: the whole mapping was touched, and nothing else uses it.
            let bytes = unsafe { std::slice::from_raw_parts(mapping.data(), mapping.len()) };
            for page in bytes.chunks(4096) {
                assert!(page.chunks(64).all(|line| line.iter().any(|b| *b != line[0])), "a line of one byte");
                assert!(seen.insert(page.to_vec()));
            }
        }
    }

    #[test]
    fn a_page_that_cannot_be_provided_is_an_error_and_not_a_signal() {
        let mut mapping = Mapping::new(1 << 20, Backing::Base(base_page())).unwrap();
        // SAFETY: only changes the protection of the test's own mapping.
        assert_eq!(unsafe { libc::mprotect(mapping.data().cast(), mapping.len(), libc::PROT_READ) }, 0);
        let e = populate(&mut mapping, Backing::Base(base_page()), &IdSet::one(0), false, &|| false).unwrap_err();
        assert!(e.raw_os_error().is_some(), "{e}");
        let untouched = untouched(&mapping);
        assert_eq!(untouched.touch_pages(0, mapping.len()).unwrap_err().raw_os_error(), Some(libc::EFAULT));
    }
}
