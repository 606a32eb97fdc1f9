//! Why a fleet's store cannot be read or written.

use memgauge_model::words::{Command, Verb};
use std::io;
use std::path::PathBuf;

/// Why a fleet's store cannot be read or written. Each message names the file and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder holds no store.
    #[error("{} is not a fleet: it has no memgauge-fleet.json; make one with {}", .0.display(), Command::new(Verb::FleetIngest).word("FLEET").word("RESULTS"))]
    NoStore(PathBuf),
    /// The folder holds other files.
    #[error("{} holds other files and is not a fleet; name a new or empty folder, then the results", .0.display())]
    NotEmpty(PathBuf),
    /// Others than this user could change what is written to the folder.
    #[error("{}: {why}", .folder.display())]
    NotOwn {
        /// The folder.
        folder: PathBuf,
        /// Whose it is, or who may write to it, and what to do.
        why: String,
    },
    /// Another version of memgauge wrote the store.
    #[error(
        "{} is a fleet of version {found}, and this memgauge reads version {read}; use the memgauge that wrote it, or ingest the results \
         into a new folder", .folder.display()
    )]
    OtherVersion {
        /// The store's folder.
        folder: PathBuf,
        /// The version of the store.
        found: u32,
        /// The version that this program knows.
        read: u32,
    },
    /// A file of it is not what it should be.
    #[error("{} is damaged: {detail}; restore it from a copy, or ingest the results into a new folder", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The operating system refused something.
    #[error("{} {what}: {error}", .path.display())]
    Io {
        /// The failure, such as `cannot be read`.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl StoreError {
    /// The error for a path, from what the operating system said.
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { what, path, error }
    }

    /// Whether the command line is to blame: it names a folder that does not hold a fleet, or that belongs to another user.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NoStore(_) | Self::NotEmpty(_) | Self::NotOwn { .. })
    }
}
