//! A process that restores registers when the one that changed them is killed.
//!
//! It is this program started once more, in a session of its own so that Ctrl-C of a terminal does not reach it, and reads from a pipe
//! whose other end only the run has. The run says that it is done; end of file without that means that it was killed.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::{ChangeKind, Leftover, Lock, PrefetchError, PrefetchRegisters};

/// Said by the guardian once it stands.
const READY: u8 = b'r';
/// Said by the run when registers are back.
const DONE: u8 = b'd';

/// The guardian, as the run sees it. Dropped without [`Guardian::dismiss`] it restores, for which it waits for the lock: the
/// [`super::PrefetchChange`] that holds it must be dropped before.
#[derive(Debug)]
pub struct Guardian {
    child: Child,
}

impl Guardian {
    /// Starts this program with `arguments`, which must lead to [`run_guardian`], and waits until it stands.
    ///
    /// # Errors
    /// When it cannot be started or ends at once.
    pub fn start(arguments: &[&str]) -> io::Result<Self> {
        // The file that runs, also when its name has been given to another one meanwhile.
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

    /// Tells it that registers are back, and waits for its end.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.child.stdin.take() {
            // A guardian that is gone already needs no word.
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

/// The guardian's own part: waits for the run's end, and undoes the change of this `id` if the run did not say that it is done.
///
/// # Errors
/// When registers could not be restored; the journal then stays.
pub fn run_guardian(place: &PrefetchRegisters, id: &str) -> Result<Leftover, PrefetchError> {
    // SAFETY: setsid has no preconditions, and SIG_IGN is no handler that could run.
    unsafe {
        // It fails only for the leader of a group, which a started child is not.
        libc::setsid();
        // What ends a run politely must not end the one who cleans up after it. SIGPIPE: nobody may read what it says.
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
    // The run's lock went with it. Who takes it in between undoes the journal itself, which then has another id or is gone.
    let _lock = Lock::acquire(&place.folder, true)?;
    place.undo(ChangeKind::Run, Some(id))
}
