//! Prefetchers' registers of all CPUs, changed so that they come back: saved in a journal first, written, read back, restored.
//!
//! A change is undone by whoever ends it: by the run itself, by its [`guardian`] when the run was killed, by the next run that finds the
//! journal, or by `memgauge prefetch restore`. A boot undoes it too, and makes the journal void.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memgauge_core::prefetchers::Control;

mod guardian;
mod journal;
mod msr;

pub use guardian::{Guardian, run_guardian};
pub use journal::{ChangeKind, Journal, JournalError, Saved};
pub use msr::{MSR_DEVICES, Msr, MsrError, MsrFault};

/// Where journals are: memory that a boot empties, as registers are reset by it.
pub const JOURNALS: &str = "/run/memgauge";
/// In the folder; held by whoever changes registers.
const LOCK: &str = "prefetch.lock";
/// How long to ask for the lock: the guardian of a run that was killed a moment ago holds it while it restores.
const LOCK_WAIT: Duration = Duration::from_millis(500);
/// Stands for a boot id that cannot be read.
const UNKNOWN_BOOT: &str = "unknown";

/// Where registers and journals are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefetchRegisters {
    msr: Msr,
    /// The folder of journals and lock.
    folder: PathBuf,
    /// The folder below which `/proc` and `/sys` are.
    root: PathBuf,
}

/// Why prefetchers were not changed, or not back.
#[derive(Debug, thiserror::Error)]
pub enum PrefetchError {
    /// A register.
    #[error(transparent)]
    Register(#[from] MsrError),
    /// Registers that could not be restored.
    #[error("not restored: {}; the journal {journal} is kept", join(errors))]
    NotRestored {
        /// Why, by register.
        errors: Vec<MsrError>,
        /// The journal, which says what they were.
        journal: PathBuf,
    },
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The folder of journals.
    #[error("{0}: {1}")]
    Folder(PathBuf, io::Error),
    /// Another program holds the lock.
    #[error("another memgauge ({0}) changes prefetchers at this moment")]
    Busy(String),
    /// The guardian.
    #[error("cannot start the process that would restore the registers if this one were killed: {0}")]
    Guardian(io::Error),
}

fn join(errors: &[MsrError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl PrefetchError {
    /// What the user can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Register(e) => e.advice(),
            Self::NotRestored { .. } => "as root: memgauge prefetch restore, when the reason is gone; a boot restores them as well",
            Self::Journal(JournalError::Damaged(..)) => "remove the file, and boot to be sure of the registers",
            Self::Journal(JournalError::Io(..)) | Self::Folder(..) => "run as root, with a /run that can be written to",
            Self::Busy(_) => "wait for its end",
            Self::Guardian(_) => "the program must be able to start itself (/proc/self/exe)",
        }
    }
}

/// The lock, held while it lives.
#[derive(Debug)]
struct Lock(#[expect(dead_code, reason = "held, not used")] File);

impl Lock {
    /// Takes the lock, or waits for it.
    fn acquire(folder: &Path, wait: bool) -> Result<Self, PrefetchError> {
        let fail = |e| PrefetchError::Folder(folder.to_path_buf(), e);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fail)?;
        let path = folder.join(LOCK);
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = open.map_err(|e| PrefetchError::Folder(path.clone(), e))?;
        let operation = if wait { libc::LOCK_EX } else { libc::LOCK_EX | libc::LOCK_NB };
        let started = Instant::now();
        loop {
            // SAFETY: an open file of this process.
            if unsafe { libc::flock(file.as_raw_fd(), operation) } == 0 {
                break;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EWOULDBLOCK) if started.elapsed() < LOCK_WAIT => std::thread::sleep(LOCK_WAIT / 50),
                Some(libc::EWOULDBLOCK) => {
                    let mut holder = String::new();
                    // Who holds it is for the message only.
                    let _ = file.read_to_string(&mut holder);
                    let holder = holder.trim();
                    return Err(PrefetchError::Busy(if holder.is_empty() { "its process is not known".into() } else { holder.into() }));
                }
                _ => return Err(PrefetchError::Folder(path, error)),
            }
        }
        // As above.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "process {}", std::process::id()));
        Ok(Self(file))
    }
}

/// What became of a journal that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// There was none.
    Nothing,
    /// It was of an earlier boot, which has reset the registers; it was removed.
    EarlierBoot,
    /// So many CPUs' registers were restored.
    Restored(usize),
}

impl PrefetchRegisters {
    /// The registers whose devices are below `devices` ([`MSR_DEVICES`]), with their journals in `folder` ([`JOURNALS`]). `/proc` and `/sys`
    /// are read below `root`.
    pub fn new(devices: impl Into<PathBuf>, folder: impl Into<PathBuf>, root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { msr: Msr::new(devices, &root), folder: folder.into(), root }
    }

    fn boot(&self) -> String {
        let id = fs::read_to_string(self.root.join("proc/sys/kernel/random/boot_id")).unwrap_or_default();
        let id = id.trim();
        if id.is_empty() { UNKNOWN_BOOT.into() } else { id.into() }
    }

    /// Whether a journal is of this boot. Where either boot is not known it is taken for one: the folder is emptied by a boot, and registers
    /// that are restored needlessly have their values of before; a journal that is removed by mistake leaves them changed for good.
    fn is_current_boot(&self, journal: &Journal) -> bool {
        let boot = self.boot();
        journal.boot == boot || [journal.boot.as_str(), &boot].contains(&UNKNOWN_BOOT)
    }

    /// Reads the register of every CPU.
    pub fn read(&self, controls: &BTreeMap<u32, Control>) -> BTreeMap<u32, Result<u64, MsrError>> {
        controls.iter().map(|(&cpu, control)| (cpu, self.msr.read(cpu, control.register))).collect()
    }

    /// The journals that wait to be undone in this boot.
    pub fn waiting(&self) -> Vec<ChangeKind> {
        let waits = |kind: &ChangeKind| Journal::read(&self.folder, *kind).is_ok_and(|j| j.is_some_and(|j| self.is_current_boot(&j)));
        [ChangeKind::Run, ChangeKind::Kept].into_iter().filter(waits).collect()
    }

    /// Undoes what journals of this boot say, that of a run first, and removes them.
    ///
    /// # Errors
    /// [`PrefetchError::Busy`] while another process changes registers; otherwise when a register does not take its value.
    pub fn restore(&self) -> Result<[Leftover; 2], PrefetchError> {
        let _lock = Lock::acquire(&self.folder, false)?;
        Ok([self.undo(ChangeKind::Run, None)?, self.undo(ChangeKind::Kept, None)?])
    }

    /// Undoes the journal, if it is the one of this id where one is given.
    fn undo(&self, kind: ChangeKind, only: Option<&str>) -> Result<Leftover, PrefetchError> {
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
            if let Err(error) = self.put_back(saved) {
                failed.push(error);
                left.push(*saved);
            }
        }
        if failed.is_empty() {
            Journal::remove(&self.folder, kind)?;
            return Ok(Leftover::Restored(journal.saved.len()));
        }
        Journal { saved: left, ..journal }.write(&self.folder, kind)?;
        Err(PrefetchError::NotRestored { errors: failed, journal: self.folder.join(kind.file()) })
    }

    /// Gives a register's masked bits their old values; others stay as they are now.
    fn put_back(&self, saved: &Saved) -> Result<(), MsrError> {
        let now = self.msr.read(saved.cpu, saved.register)?;
        let value = now & !saved.mask | saved.value & saved.mask;
        if now == value { Ok(()) } else { self.msr.write(saved.cpu, saved.register, value) }
    }
}

/// Registers that are being changed, under the lock and with a journal. Restored on drop as far as that is possible.
#[derive(Debug)]
pub struct PrefetchChange {
    place: PrefetchRegisters,
    kind: ChangeKind,
    id: String,
    /// As they were when the change started.
    saved: Vec<Saved>,
    /// What they were last set to.
    wanted: BTreeMap<u32, u64>,
    /// What was found of an earlier run.
    found: Leftover,
    /// The journal was there before, of an earlier change that is kept.
    earlier: bool,
    open: bool,
    _lock: Lock,
}

impl PrefetchChange {
    /// Takes the lock, undoes what a killed run left, reads every register and writes the journal. No register is changed yet.
    ///
    /// # Errors
    /// When another process changes prefetchers, a register cannot be read, or the journal cannot be written.
    pub fn begin(place: PrefetchRegisters, controls: &BTreeMap<u32, Control>, kind: ChangeKind) -> Result<Self, PrefetchError> {
        let lock = Lock::acquire(&place.folder, false)?;
        let found = place.undo(ChangeKind::Run, None)?;
        let mut saved = Vec::new();
        for (&cpu, control) in controls {
            let value = place.msr.read(cpu, control.register)?;
            saved.push(Saved { cpu, register: control.register, mask: control.mask(), value });
        }
        let boot = place.boot();
        let earlier = match kind {
            ChangeKind::Run => None,
            ChangeKind::Kept => Journal::read(&place.folder, kind)?.filter(|j| place.is_current_boot(j)),
        };
        let nanoseconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let id = format!("{}-{nanoseconds}", std::process::id());
        // What is kept from an earlier `off` or `on` are the values before it.
        let mut journal = Journal { id: id.clone(), boot, saved: earlier.as_ref().map(|j| j.saved.clone()).unwrap_or_default() };
        for s in &saved {
            if !journal.saved.iter().any(|old| (old.cpu, old.register) == (s.cpu, s.register)) {
                journal.saved.push(*s);
            }
        }
        journal.write(&place.folder, kind)?;
        let earlier = earlier.is_some();
        Ok(Self { place, kind, id, saved, wanted: BTreeMap::new(), found, earlier, open: true, _lock: lock })
    }

    /// Which change this is, for its guardian.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What was found of an earlier run, and undone.
    pub const fn leftover(&self) -> &Leftover {
        &self.found
    }

    /// Switches every prefetcher off, or on, and reads every register back once all are written: threads of a core share it.
    ///
    /// # Errors
    /// When a register refuses or forgets; the caller then ends the change.
    pub fn set(&mut self, off: bool) -> Result<(), PrefetchError> {
        self.wanted.clear();
        for s in &self.saved {
            let now = self.place.msr.read(s.cpu, s.register)?;
            let value = if off { now | s.mask } else { now & !s.mask };
            if value != now {
                self.place.msr.write(s.cpu, s.register, value)?;
            }
            self.wanted.insert(s.cpu, value);
        }
        for s in &self.saved {
            let (wrote, read) = (self.wanted[&s.cpu] & s.mask, self.place.msr.read(s.cpu, s.register)?);
            if read & s.mask != wrote {
                let fault = MsrFault::Forgotten { cpu: s.cpu, register: s.register, wrote: self.wanted[&s.cpu], read };
                return Err(MsrError { cpu: s.cpu, fault }.into());
            }
        }
        Ok(())
    }

    /// Makes sure that registers still are what they were set to; their values by CPU.
    ///
    /// # Errors
    /// When one is not, or cannot be read any more.
    pub fn verify(&self) -> Result<BTreeMap<u32, u64>, PrefetchError> {
        let mut values = BTreeMap::new();
        for s in &self.saved {
            let read = self.place.msr.read(s.cpu, s.register)?;
            if let Some(wrote) = self.wanted.get(&s.cpu)
                && (read ^ wrote) & s.mask != 0
            {
                let fault = MsrFault::Changed { cpu: s.cpu, register: s.register, wrote: *wrote, read };
                return Err(MsrError { cpu: s.cpu, fault }.into());
            }
            values.insert(s.cpu, read);
        }
        Ok(values)
    }

    /// Leaves registers as they are now, and the journal for [`PrefetchRegisters::restore`].
    pub fn keep(mut self) {
        self.open = false;
    }

    /// Puts every register back and reads it back.
    ///
    /// # Errors
    /// When one does not take its value; the journal then stays.
    pub fn restore(mut self) -> Result<(), PrefetchError> {
        self.open = false;
        self.undo()
    }

    fn undo(&self) -> Result<(), PrefetchError> {
        if !self.earlier {
            return self.place.undo(self.kind, Some(&self.id)).map(|_| ());
        }
        // The journal holds what was before an earlier change; that one stands.
        let failed: Vec<MsrError> = self.saved.iter().filter_map(|s| self.place.put_back(s).err()).collect();
        if failed.is_empty() {
            return Ok(());
        }
        Err(PrefetchError::NotRestored { errors: failed, journal: self.place.folder.join(self.kind.file()) })
    }
}

impl Drop for PrefetchChange {
    fn drop(&mut self) {
        if self.open {
            // Nobody is left to be told; the journal stays, and says it.
            let _ = self.undo();
        }
    }
}

#[cfg(test)]
mod tests;
