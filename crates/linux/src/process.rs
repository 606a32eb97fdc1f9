//! Preparations of the process before it does anything else, because of limits that it was started with.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Less stack than this does not hold the command line's parser in a debug build, which takes about half of it.
const ENOUGH_STACK: u64 = 1 << 20;
/// The usual limit on a stack (`ulimit -s`), for the thread that replaces a main thread with too little.
const STACK: usize = 8 << 20;

/// Advice if no more threads can be started.
pub const MORE_THREADS: &str = "raise the limit on threads (ulimit -u; pids.max or TasksMax of its control group)";
/// Advice if the stack is too small to begin.
pub const MORE_STACK: &str = "raise the limit on stacks (ulimit -s) or on threads (ulimit -u)";

/// Runs `main`, in a thread with a stack of its own where the limit on the main thread's (`RLIMIT_STACK`) is too low for it: the kernel
/// would end the process with SIGSEGV. Allocations of threads are made to share one arena where address space is limited (`RLIMIT_AS`),
/// because glibc reserves 64 MiB of it for each thread otherwise. If no memory is left, the program prints advice. A program whose file has
/// capabilities may read its own `/proc/self`.
///
/// # Errors
/// When that thread cannot be started.
pub fn run<T: Send>(main: impl FnOnce() -> T + Send) -> io::Result<T> {
    if limit(libc::RLIMIT_AS as _).is_some_and(|limit| limit.rlim_cur != libc::RLIM_INFINITY) {
        share_one_arena();
    }
    open_own_proc();
    crate::exhausted::advise();
    if limit(libc::RLIMIT_STACK as _).is_none_or(|limit| limit.rlim_cur >= ENOUGH_STACK) {
        return Ok(main());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("main".to_owned()).stack_size(STACK).spawn_scoped(scope, main)?;
        thread.join().map_err(|panic| std::panic::resume_unwind(panic))
    })
}

/// Makes the kernel warn with SIGXCPU before it kills the process at the limit on CPU time (`RLIMIT_CPU`, `ulimit -t`): a second early for
/// each of `cpus` CPUs, but not before half of the time.
pub(crate) fn warn_of_cpu_limit(cpus: usize) {
    let Some(limit) = limit(libc::RLIMIT_CPU as _).filter(|limit| limit.rlim_cur != libc::RLIM_INFINITY) else { return };
    let early = (cpus as u64).clamp(1, (limit.rlim_max / 2).max(1));
    let soft = limit.rlim_cur.min(limit.rlim_max.saturating_sub(early)).max(1);
    // A lower soft limit is always allowed; if it is refused all the same, nobody is warned.
    set_soft_limit(libc::RLIMIT_CPU as _, soft);
}

/// Raises the limit on open files as far as no privilege is needed: events on many threads take many descriptors.
pub(crate) fn raise_file_limit() {
    if let Some(limit) = limit(libc::RLIMIT_NOFILE as _).filter(|limit| limit.rlim_cur < limit.rlim_max) {
        set_soft_limit(libc::RLIMIT_NOFILE as _, limit.rlim_max);
    }
}

/// A kind of limit, as the C library's functions number it.
pub(crate) type Resource = u32;

/// Limits that this process has changed for itself, as they were.
static BEFORE: Mutex<Vec<(Resource, libc::rlimit)>> = Mutex::new(Vec::new());

/// Changes a soft limit for this process, and not for the programs that it runs ([`limits_before`]). A refusal leaves it as it was.
fn set_soft_limit(resource: Resource, soft: u64) {
    let Some(now) = limit(resource as _) else { return };
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the call reads one `rlimit`.
    let set = unsafe { libc::setrlimit(resource as _, &libc::rlimit { rlim_cur: soft, ..now }) } == 0;
    if set && !before.iter().any(|(known, _)| *known == resource) {
        before.push((resource, now));
    }
}

/// Does something, such as starting a program, with the limits that this process was started with, and goes on with its own. A limit that
/// cannot be set stays what it is.
///
/// Limits are not set between `fork` and `execve`: in an SELinux domain with only what measuring needs, the start was refused then (lab job
/// `selinux`).
pub(crate) fn with_limits_before<T>(run: impl FnOnce() -> T) -> T {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let own: Vec<_> = before.iter().filter_map(|(resource, _)| Some((*resource, limit(*resource as _)?))).collect();
    let set = |limits: &[(Resource, libc::rlimit)]| {
        for (resource, limit) in limits {
            // SAFETY: the call reads one `rlimit`.
            unsafe { libc::setrlimit(*resource as _, limit) };
        }
    };
    set(&before);
    let result = run();
    set(&own);
    result
}

/// Whether terminals interpret escape sequences; one that does not says so in `TERM`.
pub const fn interprets_escapes() -> bool {
    true
}

/// Sleeps at least this long. Unlike `std::thread::sleep` it does not panic if a filter of system calls denies `clock_nanosleep`.
pub fn sleep(time: Duration) {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}

/// Whether standard output was closed when the program was started (`>&-`).
pub fn standard_output_was_closed() -> bool {
    OUTPUT_CLOSED.load(Ordering::Relaxed)
}

static OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs before `main`: Rust's runtime opens /dev/null in place of a closed descriptor, and nobody can tell afterwards.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_AT_OUTPUT: extern "C" fn() = look_at_output;

extern "C" fn look_at_output() {
    // SAFETY: the call asks for a descriptor's flags; it takes numbers and touches no memory of ours. Nothing here needs the runtime.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    OUTPUT_CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Whether the program has privileges that the user who started it does not have: it is setuid, or its file has capabilities (`AT_SECURE`).
pub fn has_more_privileges_than_its_user() -> bool {
    // SAFETY: the call takes a number and touches no memory of ours.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The folder where programs keep their state: `/var/lib` for root, `$XDG_STATE_HOME` or `~/.local/state` for others (XDG base directories).
/// `None` where the environment does not say, or is not to be trusted.
pub fn state_folder() -> Option<PathBuf> {
    if has_more_privileges_than_its_user() {
        return None;
    }
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib"));
    }
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

/// Gives the files below `/proc/self` back to the user. The kernel gives them to root where a program's file has capabilities, and physical
/// addresses (`/proc/self/pagemap`) could not be read although the capability for that is there. Nobody gets at the process that way: reading
/// its memory or tracing it takes the same capabilities. A setuid program stays as it is.
fn open_own_proc() {
    // SAFETY: the calls take numbers and touch no memory of ours.
    unsafe {
        if has_more_privileges_than_its_user() && libc::getuid() == libc::geteuid() && libc::getgid() == libc::getegid() {
            libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
        }
    }
}

#[cfg(target_env = "gnu")]
fn share_one_arena() {
    // SAFETY: the call sets a number of the allocator; no other thread runs yet.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Other C libraries have no arena for each thread.
#[cfg(not(target_env = "gnu"))]
fn share_one_arena() {}

/// A limit of this process, by its number, whose type differs between C libraries.
fn limit(which: u32) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes one `rlimit`, and `limit` is one.
    (unsafe { libc::getrlimit(which as _, &raw mut limit) } == 0).then_some(limit)
}
