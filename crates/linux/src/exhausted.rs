//! The end of a process that has no memory left for its own data: advice in place of an abort.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

/// What helps. Rust's runtime has said before how much memory it asked for.
const ADVICE: &[u8] =
    b"no memory is left for the program itself: raise the limits on memory (ulimit -v, ulimit -d, memory.max of its control \
    group), or ask for less\n";
/// The status of a program that could not measure.
const STATUS: i32 = 4;

/// Whether an allocation has failed. Code that can do without the memory goes on, and the flag has no effect.
static FAILED: AtomicBool = AtomicBool::new(false);

/// The system's allocator, which notes what it refused.
struct Noting;

#[global_allocator]
static ALLOCATOR: Noting = Noting;

fn noted(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        FAILED.store(true, Ordering::Relaxed);
    }
    memory
}

// SAFETY: every call goes to the system's allocator as it is, which keeps the rules of the trait.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the rules of this function, which are the same.
        noted(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        noted(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        noted(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// From now on an allocation that nobody can do without ends the program with advice and a status. All other aborts stay what they are.
pub(crate) fn advise() {
    // SAFETY: the handler makes two system calls that are safe in one, and reads an atomic.
    unsafe { libc::signal(libc::SIGABRT, aborted as *const () as libc::sighandler_t) };
}

extern "C" fn aborted(_signal: i32) {
    if FAILED.load(Ordering::Relaxed) {
        // SAFETY: both are safe in a handler. The text is as long as it says.
        unsafe {
            libc::write(libc::STDERR_FILENO, ADVICE.as_ptr().cast(), ADVICE.len());
            libc::_exit(STATUS);
        }
    }
}
