//! The journal: the values of registers before they were changed. It is on disk before the first write, so that any later run can undo the
//! change.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use memgauge_model::prefetchers;

use crate::journal::{self, Unreadable};

/// The first line.
const TITLE: &str = "memgauge prefetch journal 1";
/// The last line. A journal without it is incomplete.
const END: &str = "end";

/// A register of a CPU before the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Saved {
    pub(super) cpu: u32,
    pub(super) register: u32,
    /// The bits that are changed. Only these are restored.
    pub(super) mask: u64,
    pub(super) value: u64,
    /// The first CPU of its core at that time, if the kernel showed it: the topology of a CPU that is offline is not known.
    pub(super) core: Option<u32>,
}

/// How long a change lasts. Each kind has its own journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Until the end of the run that makes it.
    Run,
    /// Until `prefetch restore`: the change of `prefetch off` or `prefetch on`.
    Kept,
}

impl ChangeKind {
    /// The file of its journal.
    pub(super) const fn file(self) -> &'static str {
        match self {
            Self::Run => "prefetch-run.journal",
            Self::Kept => "prefetch-kept.journal",
        }
    }
}

/// The registers before a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Journal {
    /// Tells this change from an earlier or later one.
    pub(super) id: String,
    /// The kernel's boot id. The next boot resets the registers.
    pub(super) boot: String,
    pub(super) saved: Vec<Saved>,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// It is not a complete journal.
    #[error("{0} is damaged: {1}")]
    Damaged(PathBuf, String),
    /// Somebody else may have written it.
    #[error("{0} is not used: {1}")]
    NotTrusted(PathBuf, String),
}

impl Journal {
    fn text(&self) -> String {
        let mut text = format!("{TITLE}\nid {}\nboot {}\n", self.id, self.boot);
        for s in &self.saved {
            // Writing to a string does not fail.
            let core = s.core.map(|core| format!(" core {core}")).unwrap_or_default();
            let _ = writeln!(text, "cpu {} register {:#x} mask {:#x} value {:#x}{core}", s.cpu, s.register, s.mask, s.value);
        }
        text + END + "\n"
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some(TITLE) {
            return Err(format!("it does not begin with '{TITLE}'"));
        }
        let mut named = |name: &str| {
            let line = lines.next().unwrap_or_default();
            line.strip_prefix(name).map(|rest| rest.trim().to_owned()).ok_or_else(|| format!("no '{name}' in '{line}'"))
        };
        let (id, boot) = (named("id ")?, named("boot ")?);
        let mut saved = Vec::new();
        for line in lines {
            if line == END {
                return Ok(Self { id, boot, saved });
            }
            let one = parse_saved(line).ok_or_else(|| format!("line '{line}'"))?;
            // Nothing else is ever changed, so nothing else is to be restored.
            if prefetchers::switching_bits(one.register).is_none_or(|known| one.mask & !known != 0) {
                return Err(format!("register {:#x} with mask {:#x} does not switch prefetchers", one.register, one.mask));
            }
            saved.push(one);
        }
        Err("its end is missing".into())
    }

    /// Writes the journal to `folder`, so that it is on disk when this returns.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub(super) fn write(&self, folder: &Path, kind: ChangeKind) -> Result<(), JournalError> {
        let path = folder.join(kind.file());
        journal::write(&path, &self.text()).map_err(|e| JournalError::Io(path, e))
    }

    /// Reads the journal from `folder`; `None` when there is none.
    ///
    /// # Errors
    /// When it exists and cannot be read, or is not to be trusted.
    pub(super) fn read(folder: &Path, kind: ChangeKind) -> Result<Option<Self>, JournalError> {
        let path = folder.join(kind.file());
        match journal::read(&path) {
            Ok(None) => Ok(None),
            Ok(Some(text)) => Self::parse(&text).map(Some).map_err(|why| JournalError::Damaged(path, why)),
            Err(Unreadable::NotTrusted(why)) => Err(JournalError::NotTrusted(path, why)),
            Err(Unreadable::Io(e)) => Err(JournalError::Io(path, e)),
        }
    }

    /// Removes the journal from `folder`. A journal that does not exist is not an error.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(super) fn remove(folder: &Path, kind: ChangeKind) -> Result<(), JournalError> {
        let path = folder.join(kind.file());
        journal::remove(&path).map_err(|e| JournalError::Io(path, e))
    }
}

fn parse_saved(line: &str) -> Option<Saved> {
    let mut words = line.split_whitespace();
    let mut after = |name: &str| words.next().filter(|w| *w == name).and_then(|_| words.next());
    let hex = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let cpu = after("cpu")?.parse().ok()?;
    let register = u32::try_from(hex(after("register")?)?).ok()?;
    let (mask, value) = (hex(after("mask")?)?, hex(after("value")?)?);
    let core = match words.next() {
        None => None,
        Some("core") => Some(words.next()?.parse().ok()?),
        Some(_) => return None,
    };
    words.next().is_none().then_some(Saved { cpu, register, mask, value, core })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> Journal {
        let saved = |cpu, value, core| Saved { cpu, register: 0xC000_0108, mask: 0x2F, value, core };
        Journal { id: "12-34".into(), boot: "0f3a".into(), saved: vec![saved(0, 0, None), saved(7, u64::MAX, Some(3))] }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(Journal::read(folder, ChangeKind::Run).unwrap(), None);
        journal().write(folder, ChangeKind::Run).unwrap();
        assert_eq!(Journal::read(folder, ChangeKind::Run).unwrap(), Some(journal()));
        assert_eq!(Journal::read(folder, ChangeKind::Kept).unwrap(), None);
        Journal::remove(folder, ChangeKind::Run).unwrap();
        Journal::remove(folder, ChangeKind::Run).unwrap();
        assert_eq!(Journal::read(folder, ChangeKind::Run).unwrap(), None);
    }

    #[test]
    fn a_register_that_does_not_switch_prefetchers_is_refused() {
        // IA32_FEATURE_CONTROL, and a bit of the known register that switches nothing.
        for (register, mask) in [("0x3a", "0x2f"), ("0xc0000108", "0x6f")] {
            let text = journal().text().replace("0xc0000108", register).replace("0x2f", mask);
            assert!(Journal::parse(&text).unwrap_err().contains("does not switch prefetchers"), "{text}");
        }
    }

    #[test]
    fn a_part_of_a_journal_is_refused() {
        let whole = journal().text();
        for end in 0..whole.len() - 1 {
            assert!(Journal::parse(&whole[..end]).is_err(), "{:?}", &whole[..end]);
        }
        assert_eq!(Journal::parse(&whole), Ok(journal()));
        assert!(Journal::parse(&whole.replace("mask 0x2f", "mask 2f")).is_err());
    }
}
