//! A fleet's store: Parquet files in a folder, and the list of those that count.
//!
//! ```text
//! memgauge-fleet.json                          the list of batches; replacing it commits a change
//! lock                                         held by whoever changes the store
//! runs/batch-000001.parquet                    a row for each run
//! values/fingerprint=NAME/batch-000001.parquet a row for each value, by kind of hardware
//! results/RUN.json                             copies of results, where they were asked for
//! views.sql                                    views for DuckDB
//! ```
//!
//! A batch is written under names that no reader looks for, then committed by the list, then its files take their names. Whatever moment
//! an ingest is killed at, a batch counts whole or not at all: what is committed and has not its name yet gets it from the next
//! ingest, and what is not committed is removed by it. Copies of results get their names the same way.

mod change;
mod columns;
mod error;
mod manifest;
mod moment;
mod partition;
mod reading;
mod run;
mod table;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(crate) use change::Change;
pub use change::Recovered;
pub use error::StoreError;
pub use run::StoredRun;

use crate::row::Row;
use manifest::Manifest;
pub(crate) use manifest::{MANIFEST, content_id};
pub(crate) use moment::microseconds;
pub(crate) use partition::kind;

/// A fleet's store, as its list of batches was when it was opened.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    manifest: Manifest,
}

/// All rows of a fleet's folder: those of a batch follow those of the batches before it.
///
/// # Errors
/// When the folder is not a store, or a file of it cannot be read.
pub fn read(folder: &Path) -> Result<Vec<Row>, StoreError> {
    Store::open(folder)?.rows()
}

impl Store {
    /// # Errors
    /// When the folder is not a store, or is another version's.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let manifest = Manifest::read(folder)?.ok_or_else(|| StoreError::NoStore(folder.to_owned()))?;
        Ok(Self { folder: folder.to_owned(), manifest })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its runs, in the order in which they were committed.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        self.consistently(|manifest| reading::runs(&self.folder, &manifest.batches))
    }

    /// All its rows.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn rows(&self) -> Result<Vec<Row>, StoreError> {
        self.consistently(|manifest| reading::rows(&self.folder, &manifest.batches, &|_| true))
    }

    /// The rows of runs that are chosen by their IDs. Files without such a run are not read.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn rows_of(&self, run_ids: &BTreeSet<String>) -> Result<Vec<Row>, StoreError> {
        self.consistently(|manifest| reading::rows(&self.folder, &manifest.batches, &|run| run_ids.contains(&run.run.run_id)))
    }

    /// Reads by the list of batches that was opened. If a file of it is gone because an ingest has merged batches since, by the list that
    /// there is now.
    fn consistently<T>(&self, read: impl Fn(&Manifest) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut manifest = self.manifest.clone();
        loop {
            match read(&manifest) {
                Err(error) => match Manifest::read(&self.folder)? {
                    Some(newer) if newer != manifest => manifest = newer,
                    _ => return Err(error),
                },
                done => return done,
            }
        }
    }
}
