//! Reading thousands of results into a store.

mod files;
mod outcome;
mod queue;
mod text;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use outcome::{INGEST_VERSION, IngestOutcome, SkipReason, Skipped};

use crate::row::{Cell, HostId, Row};
use crate::rows::rows;
use crate::store::{Change, Store, StoreError, StoredRun};
use files::{Content, Files, skip};

/// Rows that are committed together at most: they are in memory together.
const BATCH_ROWS: usize = 500_000;

/// The options of an ingest.
#[derive(Debug, Clone)]
pub struct IngestOptions {
    /// Keep a copy of each result in the fleet's folder.
    pub copy: bool,
    /// Runs that are committed together.
    pub batch: usize,
}

/// Why nothing was ingested.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A name leads to nothing.
    #[error("{}: {error}", .path.display())]
    NoSuchPath {
        /// The name.
        path: PathBuf,
        /// What the operating system said.
        error: std::io::Error,
    },
    /// The folders hold no result.
    #[error("{} holds no file that ends in .json", .0.display())]
    NothingFound(PathBuf),
}

/// A message while an ingest goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IngestEvent {
    /// Another program changes the store. The message is repeated until it is done.
    Waiting,
    /// A batch was committed. The fields count the files.
    Committed {
        /// Files that are done.
        done: usize,
        /// All files.
        files: usize,
    },
}

/// Reads results, and folders of them, into the store of a folder. A run that the store has, by its ID, is not added again. When `stop` is
/// set, what was read is committed and the ingest ends.
///
/// # Errors
/// When a name leads to nothing, or the store cannot be written.
pub fn ingest(
    folder: &Path,
    paths: &[PathBuf],
    options: &IngestOptions,
    stop: &AtomicBool,
    mut tell: impl FnMut(IngestEvent),
) -> Result<IngestOutcome, IngestError> {
    let files = search(paths)?;
    let mut outcome = IngestOutcome {
        ingest_version: INGEST_VERSION,
        fleet: folder.display().to_string(),
        files: files.found.len() as u64,
        skipped: files.skipped,
        ..IngestOutcome::default()
    };
    let waits = || {
        tell(IngestEvent::Waiting);
        !stop.load(Ordering::Relaxed)
    };
    let Some((mut change, recovered)) = Change::begin(folder, waits)? else {
        let runs = Store::open(folder)?.runs()?;
        let hosts: BTreeSet<HostId> = runs.iter().map(|stored| stored.run.id()).collect();
        return Ok(IngestOutcome { interrupted: true, fleet_runs: runs.len() as u64, fleet_hosts: hosts.len() as u64, ..outcome });
    };
    outcome.recovered = recovered;
    change.merge_small()?;
    change.add_columns(stop)?;
    let (mut hosts, known): (BTreeSet<HostId>, HashSet<String>) =
        change.runs()?.iter().map(|stored| (stored.run.id(), stored.run.run_id.clone())).unzip();
    let mut ingest = Ingest {
        change,
        options,
        outcome,
        batch: Vec::new(),
        rows: 0,
        seen: HashMap::new(),
        hosts: BTreeSet::new(),
        cells: BTreeSet::new(),
    };
    let total = files.found.len();
    let mut done = 0;
    queue::in_order(
        &files.found,
        stop,
        |path| files::size(path),
        |path| read(path, &known, options),
        |index, content| {
            done = index + 1;
            if ingest.take(&files.found[index], content)? {
                tell(IngestEvent::Committed { done, files: total });
            }
            Ok::<(), StoreError>(())
        },
    )?;
    ingest.commit()?;
    let Ingest { mut outcome, hosts: new_hosts, .. } = ingest;
    outcome.interrupted = done < total;
    outcome.hosts = new_hosts.len() as u64;
    outcome.fleet_runs = known.len() as u64 + outcome.runs;
    hosts.extend(new_hosts);
    outcome.fleet_hosts = hosts.len() as u64;
    Ok(outcome)
}

/// The files below all paths.
fn search(paths: &[PathBuf]) -> Result<Files, IngestError> {
    let mut files = Files::default();
    for path in paths {
        fs::metadata(path).map_err(|error| IngestError::NoSuchPath { path: path.clone(), error })?;
        let before = files.looked_at();
        files.search(path);
        if files.looked_at() == before {
            return Err(IngestError::NothingFound(path.clone()));
        }
    }
    Ok(files)
}

/// Reads a file. Rows are made by the threads that parse; the rest of a result is dropped at once.
fn read(path: &Path, known: &HashSet<String>, options: &IngestOptions) -> Read {
    match files::read(path, known) {
        Content::New { report, bytes } => {
            let run = stored_run(path, &report);
            let kept = if options.copy { bytes } else { Vec::new() };
            Read::New { run: Box::new(run), rows: rows(&report), bytes: kept }
        }
        Content::Known => Read::Known,
        Content::Unusable(skipped) => Read::Unusable(skipped),
    }
}

/// A file after it was read.
enum Read {
    New { run: Box<StoredRun>, rows: Vec<Row>, bytes: Vec<u8> },
    Known,
    Unusable(Skipped),
}

/// The store's entry for a result.
fn stored_run(path: &Path, report: &memgauge_model::result::Report) -> StoredRun {
    StoredRun {
        run: Arc::new(crate::row::HostRun::from_report(report)),
        memgauge: report.tool.version.clone(),
        command: report.argv.join(" "),
        health: report.health.as_ref().map(|health| health.status),
        file: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string(),
        copy: None,
        measured: 0,
        not_measured: 0,
    }
}

/// The batch that is being put together, and what became of the files so far.
struct Ingest<'a> {
    change: Change,
    options: &'a IngestOptions,
    outcome: IngestOutcome,
    batch: Vec<(StoredRun, Vec<Row>)>,
    /// Rows of the batch.
    rows: usize,
    /// The runs of this ingest, with their files.
    seen: HashMap<String, String>,
    hosts: BTreeSet<HostId>,
    /// The cells of this ingest, each once.
    cells: BTreeSet<Arc<Cell>>,
}

impl Ingest<'_> {
    /// Takes a file's content in. Whether a batch was committed.
    fn take(&mut self, path: &Path, content: Read) -> Result<bool, StoreError> {
        let file = path.display().to_string();
        let (mut run, mut rows, bytes) = match content {
            Read::New { run, rows, bytes } => (*run, rows, bytes),
            Read::Known => {
                self.outcome.already.push(file);
                return Ok(false);
            }
            Read::Unusable(skipped) => {
                self.outcome.skipped.push(skipped);
                return Ok(false);
            }
        };
        if let Some(first) = self.seen.get(&run.run.run_id) {
            self.outcome.skipped.push(skip(path, SkipReason::Duplicate, first));
            return Ok(false);
        }
        self.seen.insert(run.run.run_id.clone(), file);
        if self.options.copy {
            run.copy = Some(self.change.copy(&run.run.run_id, &bytes)?);
        }
        for row in &mut rows {
            match self.cells.get(&row.cell) {
                Some(cell) => row.cell = cell.clone(),
                None => drop(self.cells.insert(row.cell.clone())),
            }
        }
        run.measured = rows.iter().filter(|row| row.value.is_some()).count() as u64;
        run.not_measured = rows.len() as u64 - run.measured;
        self.rows += rows.len();
        self.batch.push((run, rows));
        let full = self.batch.len() >= self.options.batch || self.rows >= BATCH_ROWS;
        if full {
            self.commit()?;
        }
        Ok(full)
    }

    /// Commits the batch. Only what is committed is counted.
    fn commit(&mut self) -> Result<(), StoreError> {
        self.change.add(&self.batch)?;
        for (run, _) in self.batch.drain(..) {
            self.outcome.runs += 1;
            self.outcome.values += run.measured;
            self.outcome.not_measured += run.not_measured;
            self.hosts.insert(run.run.id());
        }
        self.rows = 0;
        Ok(())
    }
}
