//! Faults in memory that is measured: a device did not provide a page, a page has a hardware error, or a chase met a pointer that led
//! elsewhere.
//!
//! One vectored exception handler serves the process, before all others. A fault of a chase's load makes that chase go on from a line that
//! leads to itself ([`memgauge_kernels::recover`]). A page that cannot be provided (`EXCEPTION_IN_PAGE_ERROR`) in a range that is
//! watched (`Watched`) marks that range, and code that asks the range afterwards learns that the data it read is worthless.
//!
//! Windows cannot replace a single page of a view with other memory, nor replace anything without a moment during which the page is missing.
//! Loops other than chases therefore cannot go on: for them, and for any other fault, the handler does nothing more, and the process ends as
//! it would without it.

use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use windows_sys::Win32::Foundation::{EXCEPTION_ACCESS_VIOLATION, EXCEPTION_IN_PAGE_ERROR, NTSTATUS, STATUS_HARDWARE_MEMORY_ERROR};
use windows_sys::Win32::System::Diagnostics::Debug::{
    AddVectoredExceptionHandler, EXCEPTION_CONTINUE_EXECUTION, EXCEPTION_CONTINUE_SEARCH, EXCEPTION_POINTERS,
};

/// Ranges of a block: the buffers of most runs. A scan of terabytes, and a run on a thousand CPUs, have more blocks.
const RANGES: usize = 512;
/// A page of the offsets that are reported: the smallest page.
const PAGE: usize = 4096;

/// The first fault in a range: what the exception said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// A hardware error; otherwise the page could not be provided.
    pub(crate) poisoned: bool,
    /// The page, as a distance in bytes from the start of the range.
    pub(crate) offset: u64,
}

impl Fault {
    /// As a number that is not 0. Offsets are those of pages, whose lowest bits are 0.
    const fn packed(self) -> u64 {
        self.offset | 1 | (self.poisoned as u64) << 1
    }

    const fn unpacked(packed: u64) -> Option<Self> {
        if packed == 0 { None } else { Some(Self { poisoned: packed & 2 != 0, offset: packed & !3 }) }
    }
}

/// A range that is watched, or a free place. The handler reads it at any time, so it is atomics.
///
/// The writer raises `fills` before it changes any other field. A reader that finds the same count before and after the rest has read one
/// range, and not the start of one and the end of the next.
struct Range {
    fills: AtomicUsize,
    /// 0 where the place is free, 1 while it is being filled.
    start: AtomicUsize,
    end: AtomicUsize,
    /// A [`Fault`], or 0.
    fault: AtomicU64,
}

/// Some ranges, and the block with more of them, or none. Blocks are added and never taken away: the handler may be reading any of them.
struct Block {
    ranges: [Range; RANGES],
    next: AtomicPtr<Block>,
}

static WATCHED: Block = Block::free();

impl Block {
    const fn free() -> Self {
        Self { ranges: [const { Range::free() }; RANGES], next: AtomicPtr::new(null_mut()) }
    }

    fn next(&self) -> Option<&'static Self> {
        // SAFETY: null, or a block that was leaked.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    /// The next block, which is made where there is none.
    fn next_or_new(&self) -> &'static Self {
        self.next().unwrap_or_else(|| {
            let new = Box::into_raw(Box::new(Self::free()));
            match self.next.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: it was just leaked, and is never freed.
                Ok(_) => unsafe { &*new },
                Err(other) => {
                    // SAFETY: it was just leaked, nobody else has seen it, and the other one, which another thread has made, was leaked, too.
                    unsafe {
                        drop(Box::from_raw(new));
                        &*other
                    }
                }
            }
        })
    }

    /// All ranges.
    fn all() -> impl Iterator<Item = &'static Range> {
        std::iter::successors(Some(&WATCHED), |block| block.next()).flat_map(|block| &block.ranges)
    }

    /// A free place, which is now being filled.
    fn place() -> &'static Range {
        let mut block = &WATCHED;
        loop {
            if let Some(place) = block.ranges.iter().find(|range| range.take()) {
                return place;
            }
            block = block.next_or_new();
        }
    }
}

impl Range {
    const fn free() -> Self {
        let [fills, start, end] = [const { AtomicUsize::new(0) }; 3];
        Self { fills, start, end, fault: AtomicU64::new(0) }
    }

    /// Takes the place to fill it, if it is free.
    fn take(&self) -> bool {
        // Most are not, and a look costs less than an exchange.
        self.start.load(Ordering::Relaxed) == 0 && self.start.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// The start of the range in this place, where it has `address`.
    fn around(&self, address: usize) -> Option<usize> {
        let fills = self.fills.load(Ordering::Acquire);
        let [start, end] = [&self.start, &self.end].map(|bound| bound.load(Ordering::Acquire));
        let is_one = self.fills.load(Ordering::Acquire) == fills;
        (is_one && start > 1 && (start..end).contains(&address)).then_some(start)
    }
}

/// A range of memory that is watched until this is dropped.
pub(crate) struct Watched(Option<&'static Range>);

impl Watched {
    /// Not watched.
    pub(crate) const fn nothing() -> Self {
        Self(None)
    }

    /// Watches `len` bytes from `start` on.
    pub(crate) fn new(start: *const u8, len: usize) -> Self {
        install();
        let range = Block::place();
        range.fills.fetch_add(1, Ordering::Release);
        range.end.store(start as usize + len, Ordering::Release);
        range.fault.store(0, Ordering::Relaxed);
        range.start.store(start as usize, Ordering::Release);
        Self(Some(range))
    }

    /// The first that happened to it.
    pub(crate) fn fault(&self) -> Option<Fault> {
        Fault::unpacked(self.0?.fault.load(Ordering::Acquire))
    }
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Watched").field(&self.fault()).finish()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(range) = self.0 {
            range.start.store(0, Ordering::Release);
        }
    }
}

/// Installs the handler, once. If Windows refuses, faults end the process as they would without it.
fn install() {
    static INSTALLED: OnceLock<usize> = OnceLock::new();
    // SAFETY: the handler has the type that is asked for, stays in the program to its end, and does nothing that is not safe in one.
    INSTALLED.get_or_init(|| unsafe { AddVectoredExceptionHandler(1, Some(handle)) } as usize);
}

/// The handler. It reads and writes atomics and changes the context of the thread, and neither allocates nor locks.
unsafe extern "system" fn handle(exception: *mut EXCEPTION_POINTERS) -> i32 {
    // SAFETY: Windows passes what it says about the exception, and the context of the thread that it stopped.
    let (record, context) = unsafe { (&*(*exception).ExceptionRecord, (*exception).ContextRecord) };
    let [_, address, status, ..] = record.ExceptionInformation;
    match record.ExceptionCode {
        EXCEPTION_ACCESS_VIOLATION => {}
        // The third is the status that says why (EXCEPTION_RECORD).
        EXCEPTION_IN_PAGE_ERROR => mark(address, status as NTSTATUS),
        _ => return EXCEPTION_CONTINUE_SEARCH,
    }
    // SAFETY: `context` is that of an exception of this thread, and Windows goes on with what this leaves in it.
    if unsafe { memgauge_kernels::recover(context.cast()) } { EXCEPTION_CONTINUE_EXECUTION } else { EXCEPTION_CONTINUE_SEARCH }
}

/// Marks the watched range that has a page which could not be provided.
fn mark(address: usize, status: NTSTATUS) {
    // The thread that accesses a range keeps it alive, so the place that is found here does not change.
    let Some((range, start)) = Block::all().find_map(|place| Some((place, place.around(address)?))) else { return };
    let offset = (address / PAGE * PAGE).saturating_sub(start) as u64;
    let fault = Fault { poisoned: status == STATUS_HARDWARE_MEMORY_ERROR, offset };
    // The first one stays: it is what went wrong, and others may follow from it.
    let _ = range.fault.compare_exchange(0, fault.packed(), Ordering::Release, Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
