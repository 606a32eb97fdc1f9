//! Runs a program, and passes signals on to it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

use memgauge_model::counters::ProgramRun;

use crate::{process, signals, system_call};

/// The process id of the child that signals are passed on to; 0 before it has started and after it has ended.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that arrived before the child was started.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// The signals with which people and schedulers end or control programs.
const FORWARDED: [i32; 6] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Runs the program to its end. From the first call on, signals that are sent to this process are passed on to the program and have no other
/// effect. Signals from the terminal (Ctrl-C) reach the program anyway and are not passed on a second time.
///
/// # Errors
/// When the program cannot be started or a handler cannot be installed.
pub fn run(command: &mut Command) -> io::Result<ProgramRun> {
    for signal in FORWARDED {
        install(signal)?;
    }
    // One that closes all descriptors it may have, or that uses `select`, would behave differently with this process's own limits.
    let mut child = process::with_limits_before(|| command.spawn())?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    CHILD.store(pid, Ordering::SeqCst);
    let early = EARLY.swap(0, Ordering::SeqCst);
    if early != 0 {
        // SAFETY: kill takes two numbers. The child has not been waited for, so its number is still its own.
        unsafe { libc::kill(pid, early) };
    }
    // The child keeps its process id until it is waited for below. A signal sent after that could reach another process.
    // SAFETY: the call writes one `siginfo_t`, and `info` is one. All zeros is a valid `siginfo_t`.
    let _ = system_call(|| unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_PID, pid as libc::id_t, &raw mut info, libc::WEXITED | libc::WNOWAIT) == 0
    });
    CHILD.store(0, Ordering::SeqCst);
    let status = child.wait()?;
    Ok(status.code().map_or_else(|| ProgramRun::Killed(status.signal().unwrap_or(0)), ProgramRun::Exited))
}

/// Installs the handler for one signal. A signal that this process was started with as ignored stays ignored, here and in the program.
fn install(signal: i32) -> io::Result<()> {
    if signals::is_ignored(signal) {
        return Ok(());
    }
    // SAFETY: all zeros is a valid `sigaction`. The handler and its flags are set below.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = forward as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
    new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: `forward` has the signature that SA_SIGINFO requires, and only makes calls that are allowed in a handler.
    system_call(|| unsafe { libc::sigaction(signal, &raw const new, std::ptr::null_mut()) == 0 })
}

extern "C" fn forward(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t` to a handler with SA_SIGINFO.
    if unsafe { (*info).si_code } == libc::SI_KERNEL {
        return;
    }
    let child = CHILD.load(Ordering::SeqCst);
    if child == 0 {
        EARLY.store(signal, Ordering::SeqCst);
        return;
    }
    // SAFETY: kill is allowed in a handler, and so is access to errno, which is restored for the code that was interrupted.
    unsafe {
        let errno = *libc::__errno_location();
        libc::kill(child, signal);
        *libc::__errno_location() = errno;
    }
}
