//! Why prefetchers were not changed, and what to do about it.

use std::io;
use std::path::PathBuf;

use super::journal::JournalError;
use super::msr::MsrError;

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
            Self::Journal(JournalError::Io(..)) | Self::Folder(..) => "run as root, with a /run that can be written to",
            Self::Busy(_) => "wait until it has ended",
            Self::Guardian(_) => "the program must be able to start itself (/proc/self/exe)",
        }
    }
}
