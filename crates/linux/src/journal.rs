//! Functions that all journals of former values share. Journals are on disk before the first change, count until the next boot, and are read
//! only if nobody else may have written them. One process at a time changes the values that a journal keeps.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{system_call, trusted};

/// Changes with each boot, which resets registers and weights.
const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";
/// Stands for a boot id that cannot be read.
const UNKNOWN_BOOT: &str = "unknown";
/// How long to wait for a lock. A change takes milliseconds, the guardian of a run that was just killed holds it while it restores, and a
/// process that is just started has a copy of the lock until it runs its program.
const LOCK_WAIT: Duration = Duration::from_millis(500);

/// Why a journal could not be read.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// The system's error.
    Io(io::Error),
    /// Somebody else may have written it.
    NotTrusted(String),
}

/// Why a lock was not taken: the path, and the reason.
#[derive(Debug)]
pub(crate) enum LockError {
    /// The lock's file or its folder cannot be made or opened.
    Io(PathBuf, io::Error),
    /// Somebody else may have made the file.
    NotTrusted(String),
    /// Another process holds the lock: the text that it has written into the file.
    Busy(String),
}

/// The id of this boot of the machine whose `/proc` is below `root`.
pub(crate) fn boot_id(root: &Path) -> String {
    let id = fs::read_to_string(root.join(BOOT_ID)).unwrap_or_default();
    let id = id.trim();
    if id.is_empty() { UNKNOWN_BOOT.into() } else { id.into() }
}

/// Whether a journal with this boot id is from this boot. It counts as one from this boot when either boot is unknown: a boot empties the
/// folder, and restoring without need does no harm, but removing a journal by mistake would leave what was changed.
pub(crate) fn is_of_this_boot(boot: &str, root: &Path) -> bool {
    let now = boot_id(root);
    let unknown = |id: &str| id.is_empty() || id == UNKNOWN_BOOT;
    boot == now || unknown(boot) || unknown(&now)
}

/// The text of a journal; `None` when there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Unreadable> {
    let mut text = String::new();
    match trusted::open(path, OpenOptions::new().read(true)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Unreadable::Io(e)),
        Ok(Err(why)) => Err(Unreadable::NotTrusted(why)),
        Ok(Ok(mut file)) => file.read_to_string(&mut text).map(|_| Some(text)).map_err(Unreadable::Io),
    }
}

/// Writes a journal so that it survives a power cut as far as the file system can ensure that: the file is synchronised before it gets its
/// name, and the folder after that.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    // A killed run may have left this file. It is removed and not written to, because it may be a link.
    remove(&beside)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Removes a journal. One that does not exist is not an error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path).or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })
}

/// A lock. It is held until this value is dropped, or the process ends.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not used")] File);

impl Lock {
    /// Takes the lock in the file `path`, and makes its folder. With `wait` it waits until the lock is free, otherwise for a moment only.
    pub(crate) fn acquire(path: &Path, wait: bool) -> Result<Self, LockError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |e| LockError::Io(path, e)
        };
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io(folder))?;
        let open = trusted::open(path, OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600));
        let mut file = open.map_err(io(path))?.map_err(LockError::NotTrusted)?;
        let operation = if wait { libc::LOCK_EX } else { libc::LOCK_EX | libc::LOCK_NB };
        let started = Instant::now();
        // SAFETY: flock takes a descriptor and a number, and `file` keeps the descriptor open.
        while let Err(error) = system_call(|| unsafe { libc::flock(file.as_raw_fd(), operation) == 0 }) {
            match error.raw_os_error() {
                Some(libc::EWOULDBLOCK) if started.elapsed() < LOCK_WAIT => crate::process::sleep(LOCK_WAIT / 50),
                Some(libc::EWOULDBLOCK) => {
                    let mut holder = String::new();
                    // The holder is named in the message only, so failing to read it is not an error.
                    let _ = file.read_to_string(&mut holder);
                    let holder = holder.trim();
                    return Err(LockError::Busy(if holder.is_empty() { "its process is unknown".into() } else { holder.into() }));
                }
                _ => return Err(LockError::Io(path.to_owned(), error)),
            }
        }
        // The process is written for the message of others only.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "process {}", std::process::id()));
        Ok(Self(file))
    }
}
