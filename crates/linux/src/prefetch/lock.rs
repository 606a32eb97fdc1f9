//! The lock that a program holds while it changes registers.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use super::error::PrefetchError;

/// The file in the folder of journals.
const LOCK: &str = "prefetch.lock";
/// How long to wait for the lock. The guardian of a run that was just killed holds it while it restores.
const LOCK_WAIT: Duration = Duration::from_millis(500);

/// The lock. It is held until this value is dropped.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held, not used")] File);

impl Lock {
    /// Takes the lock. With `wait` it waits until the lock is free, otherwise for a moment only.
    pub(super) fn acquire(folder: &Path, wait: bool) -> Result<Self, PrefetchError> {
        let fail = |e| PrefetchError::Folder(folder.to_path_buf(), e);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fail)?;
        let path = folder.join(LOCK);
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = open.map_err(|e| PrefetchError::Folder(path.clone(), e))?;
        let operation = if wait { libc::LOCK_EX } else { libc::LOCK_EX | libc::LOCK_NB };
        let started = Instant::now();
        loop {
            // SAFETY: flock takes a descriptor and a number, and `file` keeps the descriptor open.
            if unsafe { libc::flock(file.as_raw_fd(), operation) } == 0 {
                break;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EWOULDBLOCK) if started.elapsed() < LOCK_WAIT => std::thread::sleep(LOCK_WAIT / 50),
                Some(libc::EWOULDBLOCK) => {
                    let mut holder = String::new();
                    // The holder is named in the message only, so failing to read it is not an error.
                    let _ = file.read_to_string(&mut holder);
                    let holder = holder.trim();
                    return Err(PrefetchError::Busy(if holder.is_empty() { "its process is unknown".into() } else { holder.into() }));
                }
                _ => return Err(PrefetchError::Folder(path, error)),
            }
        }
        // The process is written for the message of others only.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "process {}", std::process::id()));
        Ok(Self(file))
    }
}
