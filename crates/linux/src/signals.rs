//! Signals that ask the program to end.

use std::io;
use std::process::Child;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::{flag, low_level};

/// The signal of Ctrl-C.
pub const INTERRUPT: i32 = SIGINT;
/// The signal of `kill`, and of service managers.
pub const TERMINATE: i32 = SIGTERM;

/// Calls `arrived` with the number of each signal that asks to end, from now on. SIGHUP stays ignored where it was when the program started:
/// `nohup` keeps a run alive that way. The kernel warns by a signal before it ends a process at a limit on CPU time, which is one of them.
///
/// `arrived` runs within a signal handler: it may change atomics, read the monotonic clock and call [`end_now`], and must neither allocate nor
/// lock nor panic.
///
/// # Errors
/// When the kernel refuses a handler.
pub fn watch(arrived: impl Fn(i32) + Send + Sync + 'static) -> io::Result<()> {
    let arrived = Arc::new(arrived);
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGXCPU].into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(SIGHUP)) {
        let arrived = arrived.clone();
        // SAFETY: a handler may only do what is safe in one, which this function asks of `arrived`.
        unsafe { low_level::register(signal, move || arrived(signal)) }?;
    }
    crate::process::warn_of_cpu_limit(std::thread::available_parallelism().map_or(1, usize::from));
    Ok(())
}

/// The usual name of the signal.
pub fn name(signal: i32) -> String {
    match signal {
        SIGINT => "SIGINT".to_owned(),
        SIGTERM => "SIGTERM".to_owned(),
        SIGHUP => "SIGHUP".to_owned(),
        SIGXCPU => "SIGXCPU (the limit on CPU time, ulimit -t)".to_owned(),
        number => format!("signal {number}"),
    }
}

/// The exit status of a program that this signal ended, as shells count it.
pub fn status(signal: i32) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |number| number.saturating_add(128))
}

/// Whether the signal comes again by itself, so that a second one is nobody's wish: the kernel repeats SIGXCPU every second, until it kills the
/// process.
pub const fn is_repeated(signal: i32) -> bool {
    signal == SIGXCPU
}

/// Ends the program at once, from within a handler too.
pub fn end_now(status: i32) -> ! {
    low_level::exit(status)
}

/// Asks a program that this one has started to end, as Ctrl-C does.
///
/// # Errors
/// When it has ended already.
pub fn interrupt_child(child: &Child) -> io::Result<()> {
    kill_process(Pid::from_child(child), Signal::INT).map_err(io::Error::from)
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) fail with a reason. Without a handler, the signal ends the program.
///
/// # Errors
/// When the kernel refuses a handler.
pub fn survive_file_size_limit() -> io::Result<()> {
    flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// Whether this process was started with the signal ignored, as `nohup` does it with SIGHUP. To be asked before a handler is installed.
pub(crate) fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeros is a valid `sigaction`: the default action, no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action the call only writes the current one to `action`, which is a `sigaction`.
    unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN }
}
