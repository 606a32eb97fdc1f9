//! A change of registers that restores them when it ends.

use std::collections::BTreeMap;

use memgauge_model::prefetchers::Control;

use super::journal::{ChangeKind, Journal, Saved};
use super::msr::{MsrError, MsrFault};
use super::registers::{Leftover, PrefetchError, PrefetchRegisters};
use crate::container::outlives_container;
use crate::journal::Lock;

/// Registers that are being changed, with the lock held and a journal written. Dropping it restores them as far as possible.
#[derive(Debug)]
pub struct PrefetchChange {
    registers: PrefetchRegisters,
    kind: ChangeKind,
    id: String,
    /// The registers before the change.
    saved: Vec<Saved>,
    /// The values they were last set to, by CPU.
    wanted: BTreeMap<u32, u64>,
    /// The leftover of an earlier run.
    leftover: Leftover,
    /// The journal already held an earlier change, which is kept.
    earlier: bool,
    /// Neither restored nor kept yet.
    open: bool,
    _lock: Lock,
}

impl PrefetchChange {
    /// Takes the lock, restores what a killed run has left, reads every register and writes the journal. The change itself is made by
    /// [`Self::set`].
    ///
    /// # Errors
    /// When the journal would end with a container, another process changes prefetchers, a register cannot be read, or the journal cannot be written.
    pub fn begin(registers: PrefetchRegisters, controls: &BTreeMap<u32, Control>, kind: ChangeKind) -> Result<Self, PrefetchError> {
        if !outlives_container(&registers.root, &registers.folder) {
            return Err(PrefetchError::Container(registers.folder));
        }
        let lock = registers.lock(false)?;
        let leftover = registers.undo(ChangeKind::Run, None)?;
        let mut saved = Vec::new();
        for (&cpu, control) in controls {
            let value = registers.msr.read(cpu, control.register)?;
            saved.push(Saved { cpu, register: control.register, mask: control.mask(), value, core: registers.core_of(cpu) });
        }
        let boot = registers.boot_id();
        // Of a run: what it could not restore, because its CPU is offline.
        let before = Journal::read(&registers.folder, kind)?.filter(|j| registers.is_current_boot(j));
        let nanoseconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let id = format!("{}-{nanoseconds}", std::process::id());
        let earlier = kind == ChangeKind::Kept && before.is_some();
        // The journal of an earlier `off` or `on` keeps the values from before that.
        let mut journal = Journal { id: id.clone(), boot, saved: before.map(|j| j.saved).unwrap_or_default() };
        for s in &saved {
            if !journal.saved.iter().any(|old| (old.cpu, old.register) == (s.cpu, s.register)) {
                journal.saved.push(*s);
            }
        }
        journal.write(&registers.folder, kind)?;
        Ok(Self { registers, kind, id, saved, wanted: BTreeMap::new(), leftover, earlier, open: true, _lock: lock })
    }

    /// The id of this change, for its guardian.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The leftover of an earlier run, which has been restored.
    pub const fn leftover(&self) -> &Leftover {
        &self.leftover
    }

    /// Switches every prefetcher off or on. Registers are read back after all of them are written, because the threads of a core share one.
    ///
    /// # Errors
    /// When a register cannot be written or does not keep its value. The caller then ends the change.
    pub fn set(&mut self, off: bool) -> Result<(), PrefetchError> {
        self.wanted.clear();
        for s in &self.saved {
            let now = self.registers.msr.read(s.cpu, s.register)?;
            let value = if off { now | s.mask } else { now & !s.mask };
            if value != now {
                self.registers.msr.write(s.cpu, s.register, value)?;
            }
            self.wanted.insert(s.cpu, value);
        }
        for s in &self.saved {
            let (wrote, read) = (self.wanted[&s.cpu] & s.mask, self.registers.msr.read(s.cpu, s.register)?);
            if read & s.mask != wrote {
                let fault = MsrFault::Forgotten { wrote: self.wanted[&s.cpu], read };
                return Err(MsrError { cpu: s.cpu, register: s.register, fault }.into());
            }
        }
        Ok(())
    }

    /// Checks that the registers still have the values they were set to, and returns those by CPU.
    ///
    /// # Errors
    /// When one has another value, or cannot be read any more.
    pub fn verify(&self) -> Result<BTreeMap<u32, u64>, PrefetchError> {
        let mut values = BTreeMap::new();
        for s in &self.saved {
            let read = self.registers.msr.read(s.cpu, s.register)?;
            if let Some(wrote) = self.wanted.get(&s.cpu)
                && (read ^ wrote) & s.mask != 0
            {
                let fault = MsrFault::Changed { wrote: *wrote, read };
                return Err(MsrError { cpu: s.cpu, register: s.register, fault }.into());
            }
            values.insert(s.cpu, read);
        }
        Ok(values)
    }

    /// Restores every register for a while: the change stays open, and [`Self::set`] may follow.
    ///
    /// # Errors
    /// When one does not take its value.
    pub fn put_back(&mut self) -> Result<(), PrefetchError> {
        self.wanted.clear();
        self.restore_saved()
    }

    /// Leaves the registers as they are, and the journal for [`PrefetchRegisters::restore`].
    pub fn keep(mut self) {
        self.open = false;
    }

    /// Restores every register and reads it back.
    ///
    /// # Errors
    /// When one does not take its value. The journal is kept then.
    pub fn restore(mut self) -> Result<(), PrefetchError> {
        self.open = false;
        self.undo()
    }

    fn undo(&self) -> Result<(), PrefetchError> {
        if !self.earlier {
            let Leftover::Partly(_, offline) = self.registers.undo(self.kind, Some(&self.id))? else { return Ok(()) };
            // Those that were offline before this change are not its own.
            let gone: Vec<MsrError> = self.saved.iter().filter(|s| offline.contains(s.cpu)).map(MsrError::offline).collect();
            if gone.is_empty() {
                return Ok(());
            }
            return Err(PrefetchError::NotRestored(gone, self.registers.folder.join(self.kind.file())));
        }
        // The journal holds the values from before an earlier change, which is kept.
        self.restore_saved()
    }

    fn restore_saved(&self) -> Result<(), PrefetchError> {
        let failed: Vec<MsrError> = self.saved.iter().filter_map(|s| self.registers.restore_register(s).err()).collect();
        if failed.is_empty() {
            return Ok(());
        }
        Err(PrefetchError::NotRestored(failed, self.registers.folder.join(self.kind.file())))
    }
}

impl Drop for PrefetchChange {
    fn drop(&mut self) {
        if self.open {
            // An error cannot be reported here. The journal is kept, so the registers can still be restored.
            let _ = self.undo();
        }
    }
}

#[cfg(test)]
mod tests;
