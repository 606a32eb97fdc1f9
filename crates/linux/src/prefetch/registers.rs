//! The registers of all CPUs, the lock that a program holds while it changes them, and restoring them from a journal.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memgauge_core::prefetchers::Control;

use super::journal::{ChangeKind, Journal, JournalError, Saved};
use super::msr::{Msr, MsrError};
use crate::system_call;
use crate::trusted;

/// The default folder of journals. A boot empties it, as it resets the registers.
pub const JOURNALS: &str = "/run/memgauge";
/// The file in the folder of journals.
const LOCK: &str = "prefetch.lock";
/// How long to wait for the lock. The guardian of a run that was just killed holds it while it restores.
const LOCK_WAIT: Duration = Duration::from_millis(500);
/// Stands for a boot id that cannot be read.
const UNKNOWN_BOOT: &str = "unknown";

/// The registers that switch prefetchers, and their journals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefetchRegisters {
    pub(super) msr: Msr,
    /// The folder of journals and lock.
    pub(super) folder: PathBuf,
    /// The folder below which `/proc` and `/sys` are.
    pub(super) root: PathBuf,
}

/// What an earlier change had left, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// No journal.
    Nothing,
    /// A journal of an earlier boot, which was removed: the boot has reset the registers.
    EarlierBoot,
    /// A journal of this boot; the registers of this many CPUs were restored.
    Restored(usize),
}

/// Why prefetchers were not changed, or not restored.
#[derive(Debug, thiserror::Error)]
pub enum PrefetchError {
    /// A register cannot be read or written.
    #[error(transparent)]
    Register(#[from] MsrError),
    /// Some registers were not restored: why, for each of them, and the journal, which holds their former values.
    #[error("not restored: {}; the journal {} is kept", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "), .1.display())]
    NotRestored(Vec<MsrError>, PathBuf),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The folder of journals cannot be used.
    #[error("{0}: {1}")]
    Folder(PathBuf, io::Error),
    /// The folder of journals ends with the container.
    #[error(
        "{} belongs to this container: if the container were killed, registers would stay changed and their former values would be lost",
        .0.display()
    )]
    Container(PathBuf),
    /// Another program holds the lock.
    #[error("another memgauge ({0}) is changing prefetchers")]
    Busy(String),
    /// The guardian cannot be started.
    #[error("cannot start the process that would restore the registers if this one were killed: {0}")]
    Guardian(io::Error),
}

impl PrefetchError {
    /// What the user can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Register(e) => e.advice(),
            Self::NotRestored(..) => "as root: memgauge prefetch restore, when the reason is gone; a boot restores them as well",
            Self::Journal(JournalError::Damaged(..)) => "remove the file, and boot to be sure of the registers",
            Self::Journal(JournalError::NotTrusted(..)) => "find out who made it, remove it, and boot to be sure of the registers",
            Self::Journal(JournalError::Io(..)) | Self::Folder(..) => "run as root, with a /run that can be written to",
            Self::Container(_) => {
                "run it outside of the container, or pass the host's folder in (docker run -v /run/memgauge:/run/memgauge)"
            }
            Self::Busy(_) => "wait until it has ended",
            Self::Guardian(_) => "the program must be able to start itself (/proc/self/exe)",
        }
    }
}

impl PrefetchRegisters {
    /// The registers whose devices are below `devices` ([`MSR_DEVICES`]), with their journals in `folder` ([`JOURNALS`]). `/proc` and `/sys`
    /// are read below `root`.
    pub fn new(devices: impl Into<PathBuf>, folder: impl Into<PathBuf>, root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { msr: Msr::new(devices, &root), folder: folder.into(), root }
    }

    pub(super) fn boot_id(&self) -> String {
        let id = fs::read_to_string(self.root.join("proc/sys/kernel/random/boot_id")).unwrap_or_default();
        let id = id.trim();
        if id.is_empty() { UNKNOWN_BOOT.into() } else { id.into() }
    }

    /// Whether a journal is from this boot. A journal counts as one from this boot when either boot is unknown: a boot empties the folder, and
    /// restoring registers without need does no harm, but removing a journal by mistake would leave them changed.
    pub(super) fn is_current_boot(&self, journal: &Journal) -> bool {
        let boot = self.boot_id();
        journal.boot == boot || [journal.boot.as_str(), &boot].contains(&UNKNOWN_BOOT)
    }

    /// Reads the register of every CPU.
    pub fn read(&self, controls: &BTreeMap<u32, Control>) -> BTreeMap<u32, Result<u64, MsrError>> {
        controls.iter().map(|(&cpu, control)| (cpu, self.msr.read(cpu, control.register))).collect()
    }

    /// The journals of this boot that have not been undone.
    pub fn waiting(&self) -> Vec<ChangeKind> {
        let waits = |kind: &ChangeKind| Journal::read(&self.folder, *kind).is_ok_and(|j| j.is_some_and(|j| self.is_current_boot(&j)));
        [ChangeKind::Run, ChangeKind::Kept].into_iter().filter(waits).collect()
    }

    /// Restores the registers from the journals of this boot, that of a run first, and removes the journals.
    ///
    /// # Errors
    /// [`PrefetchError::Busy`] while another process changes registers, and otherwise when a register does not take its value.
    pub fn restore(&self) -> Result<[Leftover; 2], PrefetchError> {
        // Without a journal there is nothing to lock, and no folder to make.
        if [ChangeKind::Run, ChangeKind::Kept].iter().all(|kind| matches!(Journal::read(&self.folder, *kind), Ok(None))) {
            return Ok([Leftover::Nothing, Leftover::Nothing]);
        }
        let _lock = Lock::acquire(&self.folder, false)?;
        Ok([self.undo(ChangeKind::Run, None)?, self.undo(ChangeKind::Kept, None)?])
    }

    /// Restores the registers from a journal. With `only`, nothing is done unless the journal has that id.
    pub(super) fn undo(&self, kind: ChangeKind, only: Option<&str>) -> Result<Leftover, PrefetchError> {
        let Some(journal) = Journal::read(&self.folder, kind)? else { return Ok(Leftover::Nothing) };
        if only.is_some_and(|id| id != journal.id) {
            return Ok(Leftover::Nothing);
        }
        if !self.is_current_boot(&journal) {
            Journal::remove(&self.folder, kind)?;
            return Ok(Leftover::EarlierBoot);
        }
        let mut failed = Vec::new();
        let mut left = Vec::new();
        for saved in &journal.saved {
            if let Err(error) = self.restore_register(saved) {
                failed.push(error);
                left.push(*saved);
            }
        }
        if failed.is_empty() {
            Journal::remove(&self.folder, kind)?;
            return Ok(Leftover::Restored(journal.saved.len()));
        }
        Journal { saved: left, ..journal }.write(&self.folder, kind)?;
        Err(PrefetchError::NotRestored(failed, self.folder.join(kind.file())))
    }

    /// Restores the bits of a register that were changed. Its other bits stay as they are now.
    pub(super) fn restore_register(&self, saved: &Saved) -> Result<(), MsrError> {
        let now = self.msr.read(saved.cpu, saved.register)?;
        let value = now & !saved.mask | saved.value & saved.mask;
        if now == value { Ok(()) } else { self.msr.write(saved.cpu, saved.register, value) }
    }
}

/// The lock. It is held until this value is dropped.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held, not used")] File);

impl Lock {
    /// Takes the lock. With `wait` it waits until the lock is free, otherwise for a moment only.
    pub(super) fn acquire(folder: &Path, wait: bool) -> Result<Self, PrefetchError> {
        let fail = |e| PrefetchError::Folder(folder.to_path_buf(), e);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fail)?;
        let path = folder.join(LOCK);
        let open = trusted::open(&path, OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600));
        let mut file =
            open.map_err(|e| PrefetchError::Folder(path.clone(), e))?.map_err(|why| JournalError::NotTrusted(path.clone(), why))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restoring_nothing_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("memgauge-no-journal-{}", std::process::id()));
        let restored = PrefetchRegisters::new("/nonexistent", &folder, "/").restore().unwrap();
        assert_eq!(restored, [Leftover::Nothing, Leftover::Nothing]);
        assert!(!folder.exists(), "neither the folder nor a lock");
    }
}
