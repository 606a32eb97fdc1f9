//! The registers of all CPUs, the lock that a program holds while it changes them, and restoring them from a journal.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use memgauge_model::prefetchers::{self, Control};
use memgauge_model::units::IdSet;
use memgauge_model::words;
use memgauge_model::words::{Verb, Ways};

use super::journal::{ChangeKind, Journal, JournalError, Saved};
use super::msr::{Msr, MsrError, MsrFault};
use crate::journal::{self, Lock, LockError};

/// The default folder of journals. A boot empties it, as it resets the registers.
pub const JOURNALS: &str = "/run/memgauge";
/// The file in the folder of journals.
const LOCK: &str = "prefetch.lock";

/// The registers that switch prefetchers, and their journals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefetchRegisters {
    pub(super) msr: Msr,
    /// The folder of journals and lock.
    pub(super) folder: PathBuf,
    /// The folder below which `/proc` and `/sys` are.
    pub(super) root: PathBuf,
}

/// The leftover of an earlier change, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// No journal.
    Nothing,
    /// A journal of an earlier boot, which was removed: the boot has reset the registers.
    EarlierBoot,
    /// A journal of this boot; the registers of this many CPUs were restored.
    Restored(usize),
    /// The same, but for CPUs that are offline: the journal is kept for them.
    Partly(usize, IdSet),
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
    /// The advice to the user.
    pub fn advice(&self) -> Ways {
        let advice = match self {
            Self::Register(e) => return e.advice(),
            Self::NotRestored(..) => {
                return words!["as root: ", Verb::PrefetchRestore, ", when the reason is gone; a boot restores them as well"].into();
            }
            Self::Journal(JournalError::Damaged(..)) => "remove the file, and boot to be sure of the registers",
            Self::Journal(JournalError::NotTrusted(..)) => "find out who made it, remove it, and boot to be sure of the registers",
            Self::Journal(JournalError::Io(..)) | Self::Folder(..) => "run as root, with a /run that can be written to",
            Self::Container(_) => {
                "run it outside of the container, or pass the host's folder in (docker run -v /run/memgauge:/run/memgauge)"
            }
            Self::Busy(_) => "wait until it has ended",
            Self::Guardian(_) => "the program must be able to start itself (/proc/self/exe)",
        };
        advice.into()
    }
}

impl PrefetchRegisters {
    /// The registers whose devices are below `devices` ([`MSR_DEVICES`](super::MSR_DEVICES)), with their journals in `folder` ([`JOURNALS`]). `/proc` and `/sys`
    /// are read below `root`.
    pub fn new(devices: impl Into<PathBuf>, folder: impl Into<PathBuf>, root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { msr: Msr::new(devices, &root), folder: folder.into(), root }
    }

    pub(super) fn boot_id(&self) -> String {
        journal::boot_id(&self.root)
    }

    pub(super) fn is_current_boot(&self, journal: &Journal) -> bool {
        journal::is_of_this_boot(&journal.boot, &self.root)
    }

    /// Takes the lock. With `wait` it waits until the lock is free, otherwise for a moment only.
    pub(super) fn lock(&self, wait: bool) -> Result<Lock, PrefetchError> {
        let path = self.folder.join(LOCK);
        Lock::acquire(&path, wait).map_err(|error| match error {
            LockError::Io(path, e) => PrefetchError::Folder(path, e),
            LockError::NotTrusted(why) => JournalError::NotTrusted(path, why).into(),
            LockError::Busy(holder) => PrefetchError::Busy(holder),
        })
    }

    /// The first CPU of the core that a CPU belongs to, while it is online.
    pub(super) fn core_of(&self, cpu: u32) -> Option<u32> {
        let topology = self.root.join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
        // Its name before Linux 5.4.
        let list = |name: &str| std::fs::read_to_string(topology.join(name)).ok()?.trim().parse::<IdSet>().ok();
        list("core_cpus_list").or_else(|| list("thread_siblings_list"))?.first()
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

    /// Restores the registers from the journals of this boot, that of a run first, and removes the journals. If one of them
    /// is kept, the other is removed all the same.
    ///
    /// # Errors
    /// [`PrefetchError::Busy`] while another process changes registers, and otherwise when a register of a CPU that is online does not take its
    /// value.
    pub fn restore(&self) -> Result<[Leftover; 2], PrefetchError> {
        // Without a journal there is nothing to lock, and no folder to make.
        if [ChangeKind::Run, ChangeKind::Kept].iter().all(|kind| matches!(Journal::read(&self.folder, *kind), Ok(None))) {
            return Ok([Leftover::Nothing, Leftover::Nothing]);
        }
        let _lock = self.lock(false)?;
        let run = self.undo(ChangeKind::Run, None);
        if !matches!(run, Ok(_) | Err(PrefetchError::NotRestored(..))) {
            return run.map(|run| [run, Leftover::Nothing]);
        }
        // A run's journal is undone before that of what was there before the run, also when it is undone in parts.
        let first = Journal::read(&self.folder, ChangeKind::Run)?.map(|left| left.saved).unwrap_or_default();
        let kept = self.undo_after(ChangeKind::Kept, None, &first);
        Ok([run?, kept?])
    }

    /// Restores the registers from a journal. With `only`, nothing is done unless the journal has that id.
    pub(super) fn undo(&self, kind: ChangeKind, only: Option<&str>) -> Result<Leftover, PrefetchError> {
        self.undo_after(kind, only, &[])
    }

    /// The same; registers that are to be restored from another journal `first` wait, as those of CPUs that are offline.
    fn undo_after(&self, kind: ChangeKind, only: Option<&str>, first: &[Saved]) -> Result<Leftover, PrefetchError> {
        let Some(journal) = Journal::read(&self.folder, kind)? else { return Ok(Leftover::Nothing) };
        if only.is_some_and(|id| id != journal.id) {
            return Ok(Leftover::Nothing);
        }
        if !self.is_current_boot(&journal) {
            Journal::remove(&self.folder, kind)?;
            return Ok(Leftover::EarlierBoot);
        }
        let (mut restored, mut offline, mut failed, mut left) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for saved in &journal.saved {
            let waits = first.iter().any(|other| (other.cpu, other.register) == (saved.cpu, saved.register));
            match if waits { Err(MsrError::offline(saved)) } else { self.restore_register(saved) } {
                Ok(()) => restored.push(*saved),
                Err(error) if error.fault == MsrFault::Offline => offline.push(*saved),
                Err(error) => {
                    failed.push(error);
                    left.push(*saved);
                }
            }
        }
        // A register that the threads of a core share has its value again.
        let is_same = |one: &Saved, other: &Saved| {
            let value = |saved: &Saved| (saved.core, saved.register, saved.mask, saved.value & saved.mask);
            one.core.is_some() && value(one) == value(other) && prefetchers::is_shared_by_core(one.register)
        };
        offline.retain(|one| !restored.iter().any(|other| is_same(one, other)));
        let waiting: IdSet = offline.iter().map(|saved| saved.cpu).collect();
        left.extend(offline);
        let restored = journal.saved.len() - left.len();
        if left.is_empty() {
            Journal::remove(&self.folder, kind)?;
            return Ok(Leftover::Restored(restored));
        }
        if left.len() < journal.saved.len() {
            Journal { saved: left, ..journal }.write(&self.folder, kind)?;
        }
        if failed.is_empty() {
            return Ok(Leftover::Partly(restored, waiting));
        }
        Err(PrefetchError::NotRestored(failed, self.folder.join(kind.file())))
    }

    /// Restores the bits of a register that were changed. Its other bits stay as they are now.
    pub(super) fn restore_register(&self, saved: &Saved) -> Result<(), MsrError> {
        let now = self.msr.read(saved.cpu, saved.register)?;
        let value = now & !saved.mask | saved.value & saved.mask;
        if now == value { Ok(()) } else { self.msr.write(saved.cpu, saved.register, value) }
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
