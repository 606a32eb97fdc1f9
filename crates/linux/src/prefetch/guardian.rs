//! A process that restores registers when the one that changed them is killed.
//!
//! The guardian is this program, started a second time, in a session of its own so that Ctrl-C in a terminal does not reach it. It reads
//! from a pipe whose other end only the run has. The run sends a byte when it is done; end of file without that byte means that the run was
//! killed.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::journal::ChangeKind;
use super::registers::{Leftover, PrefetchError, PrefetchRegisters};

/// Sent by the guardian when it is ready.
const READY: u8 = b'r';
/// Sent by the run when the registers are restored.
const DONE: u8 = b'd';

/// The guardian, as the run sees it. When this is dropped without [`Guardian::dismiss`], the guardian restores the registers. For that it
/// waits for the lock, so the [`PrefetchChange`](super::PrefetchChange) that holds the lock must be dropped first.
#[derive(Debug)]
pub struct Guardian {
    child: Child,
}

impl Guardian {
    /// Starts this program with `arguments`, which must lead to [`run_guardian`], and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be started or ends at once.
    pub fn start(arguments: &[&str]) -> io::Result<Self> {
        // The file of this process, even when another file has its name by now.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("memgauge").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut word = [0];
        let read = child.stdout.as_mut().map_or(Ok(0), |out| out.read(&mut word))?;
        if read == 1 && word[0] == READY {
            return Ok(Self { child });
        }
        let status = child.wait()?;
        Err(io::Error::other(format!("it ended at once ({status})")))
    }

    /// Tells the guardian that the registers are restored, and waits until it has ended.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.child.stdin.take() {
            // A guardian that has already ended needs no message.
            let _ = pipe.write_all(&[DONE]);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Runs as the guardian: waits until the run has ended, and undoes the change `id` unless the run has said that it is done.
///
/// # Errors
/// When registers could not be restored. The journal is kept then.
pub fn run_guardian(registers: &PrefetchRegisters, id: &str) -> Result<Leftover, PrefetchError> {
    // SAFETY: setsid has no preconditions, and SIG_IGN installs no handler that could run.
    unsafe {
        // It fails only for the leader of a process group, and a child is not one.
        libc::setsid();
        // Signals that end a run must not end the process that cleans up after it. SIGPIPE is ignored because nothing may be reading its
        // output.
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(&[READY]).and_then(|()| stdout.flush()).map_err(PrefetchError::Guardian)?;
    let mut word = [0];
    if io::stdin().lock().read_exact(&mut word).is_ok() && word[0] == DONE {
        return Ok(Leftover::Nothing);
    }
    // The run's lock was released when it ended. A program that takes it first undoes the journal itself; the journal then has another id or
    // is gone.
    let _lock = registers.lock(true)?;
    registers.undo(ChangeKind::Run, Some(id))
}
