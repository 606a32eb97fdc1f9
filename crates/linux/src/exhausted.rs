//! The end of a process that has no memory left for its own data: advice in place of an abort.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

/// What helps. Rust's runtime has said before how much memory it asked for.
const ADVICE: &[u8] =
    b"no memory is left for the program itself: raise the limits on memory (ulimit -v, ulimit -d, memory.max of its control \
    group), or ask for less\n";
/// The status of a program that could not measure.
const STATUS: i32 = 4;

thread_local! {
    /// The size of this thread's last allocation that failed, or 0. Code that can do without the memory goes on, and the next allocation of this
    /// size clears it. Smaller ones do not: Rust's runtime asks for a few bytes (for RUST_BACKTRACE) before it aborts. It needs neither an
    /// allocation nor a destructor, so that an allocator and a handler may use it.
    static FAILED: Cell<usize> = const { Cell::new(0) };
}

/// musl's allocator gives memory back to the kernel whenever a group of blocks is free: some 900 times in a run of a second, and each time the
/// kernel interrupts every CPU on which a thread of this process measures.
#[cfg(target_env = "musl")]
use dlmalloc::GlobalDlmalloc as Allocator;
#[cfg(not(target_env = "musl"))]
use std::alloc::System as Allocator;

/// Runs before `main`: a child between fork and exec may allocate, as with the allocators of C libraries, whatever other threads do meanwhile.
#[cfg(target_env = "musl")]
#[used]
#[unsafe(link_section = ".init_array")]
static ALLOCATE_AFTER_FORK: extern "C" fn() = allocate_after_fork;

#[cfg(target_env = "musl")]
extern "C" fn allocate_after_fork() {
    // SAFETY: nothing has forked yet, and no other thread runs.
    unsafe { dlmalloc::enable_alloc_after_fork() };
}

/// The allocator, which notes what it refused.
struct Noting;

#[global_allocator]
static ALLOCATOR: Noting = Noting;

fn noted(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        FAILED.set(size);
    } else if size >= FAILED.get() {
        FAILED.set(0);
    }
    memory
}

// SAFETY: every call goes to the allocator as it is, which keeps the rules of the trait.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the rules of this function, which are the same.
        noted(unsafe { Allocator.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        noted(unsafe { Allocator.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        noted(unsafe { Allocator.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { Allocator.dealloc(memory, layout) }
    }
}

/// From now on an allocation that nobody can do without ends the program with advice and a status. All other aborts stay what they are.
pub(crate) fn advise() {
    // SAFETY: the handler makes two system calls that are safe in one, and reads a constant-initialised variable of its thread.
    unsafe { libc::signal(libc::SIGABRT, aborted as *const () as libc::sighandler_t) };
}

extern "C" fn aborted(_signal: i32) {
    // The thread that aborts is the one that gets the signal.
    if FAILED.get() != 0 {
        // SAFETY: both are safe in a handler. The text is as long as it says.
        unsafe {
            libc::write(libc::STDERR_FILENO, ADVICE.as_ptr().cast(), ADVICE.len());
            libc::_exit(STATUS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_can_allocate_while_other_threads_do() {
        use std::os::unix::process::CommandExt;
        use std::sync::atomic::{AtomicBool, Ordering};

        let done = AtomicBool::new(false);
        let allocate = || drop(std::hint::black_box(vec![7_u8; 100]));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        allocate()
                    }
                });
            }
            for _ in 0..100 {
                let mut command = std::process::Command::new("true");
                // SAFETY: that allocating is allowed there is what this shows.
                unsafe {
                    command.pre_exec(move || {
                        allocate();
                        Ok(())
                    })
                };
                assert!(command.status().unwrap().success());
            }
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_failure_that_a_thread_survives_is_forgotten() {
        noted(std::ptr::null_mut(), 1000);
        // Another thread's failure is its own, and what the runtime asks for before it aborts is less.
        let other = std::thread::spawn(|| FAILED.get()).join().unwrap();
        drop(std::hint::black_box(Box::new(7)));
        let still = FAILED.get();
        drop(std::hint::black_box(vec![7_u8; 1000]));
        assert_eq!((other, still, FAILED.get()), (0, 1000, 0));
    }
}
