//! A program that runs in our place: signals sent to this process reach it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

use memgauge_core::counters::ProgramRun;

/// The child that signals are passed on to; 0: none yet, or none any more.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that came before the child was there.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// Signals by which people and schedulers end programs or talk to them.
const PASSED_ON: [i32; 6] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Runs the program to its end. From the first call on, signals that are sent to this process are passed on to it and do nothing else.
/// Those that the terminal sends (Ctrl-C) reach the program anyway, so these are not passed on a second time.
///
/// # Errors
/// When the program cannot be started or a handler not be installed.
pub fn run(command: &mut Command) -> io::Result<ProgramRun> {
    for signal in PASSED_ON {
        install(signal)?;
    }
    let mut child = command.spawn()?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    CHILD.store(pid, Ordering::SeqCst);
    let early = EARLY.swap(0, Ordering::SeqCst);
    if early != 0 {
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(pid, early) };
    }
    // Its number stays its own until it is waited for below; a signal to it after that could reach a stranger.
    loop {
        // SAFETY: a structure of the right type to be filled; all zero is a valid one.
        let waited = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, pid as libc::id_t, &raw mut info, libc::WEXITED | libc::WNOWAIT)
        };
        if waited == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break;
        }
    }
    CHILD.store(0, Ordering::SeqCst);
    let status = child.wait()?;
    Ok(status.code().map_or_else(|| ProgramRun::Killed(status.signal().unwrap_or(0)), ProgramRun::Exited))
}

/// A signal that whoever started us told us to ignore stays ignored, here and in the program.
fn install(signal: i32) -> io::Result<()> {
    // SAFETY: all zero is a valid action: the default one, no flags, an empty mask.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks for the action in force; the structure is of the right type.
    if unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut old) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if old.sa_sigaction == libc::SIG_IGN {
        return Ok(());
    }
    // SAFETY: as above.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = pass_on as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
    new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: a handler of the kind that SA_SIGINFO asks for, which does only what a handler may.
    if unsafe { libc::sigaction(signal, &raw const new, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

extern "C" fn pass_on(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel hands a handler with SA_SIGINFO a valid structure.
    if unsafe { (*info).si_code } == libc::SI_KERNEL {
        return;
    }
    let child = CHILD.load(Ordering::SeqCst);
    if child == 0 {
        EARLY.store(signal, Ordering::SeqCst);
        return;
    }
    // SAFETY: kill and errno are allowed in a handler; errno is put back for whom we interrupted.
    unsafe {
        let errno = *libc::__errno_location();
        libc::kill(child, signal);
        *libc::__errno_location() = errno;
    }
}
