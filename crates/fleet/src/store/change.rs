//! Changing a store: batches of runs, one commit each. Whoever changes it holds its lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use memgauge_model::units::Bytes;
use memgauge_os::files;
use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};

use super::columns::{self, Field, Kind, Value};
use super::error::StoreError;
use super::manifest::{Batch, BatchFile, MANIFEST, Manifest, PENDING, checksum, content_id, create_anew, pending, sync_folder};
use super::run::StoredRun;
use super::{partition, reading, table};
use crate::row::{Cell, Row};

const LOCK: &str = "lock";
const RUNS: &str = "runs";
const VALUES: &str = "values";
const COPIES: &str = "results";
const VIEWS: &str = "views.sql";
/// The views, in which `FLEET` stands for the folder.
const VIEWS_TEXT: &str = include_str!("../views.sql");

/// How often to look whether the lock is free.
const LOOK: Duration = Duration::from_millis(100);
/// So many batches of few rows are merged into one: a file is opened for each question, and a fleet that is ingested daily has hundreds.
const MANY_SMALL: usize = 32;
/// A batch of fewer rows is small.
const SMALL_ROWS: u64 = 50_000;
/// Rows of merged batches are in memory together.
const MERGED_ROWS: u64 = 500_000;

/// A store that may be changed, for as long as this value lives.
#[derive(Debug)]
pub(crate) struct Change {
    folder: PathBuf,
    manifest: Manifest,
    /// The lock goes with its file.
    _lock: File,
}

/// What an ingest found of one that was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recovered {
    /// Files of a committed batch that got their names now.
    pub finished: u32,
    /// Files that were not committed, and are removed.
    pub removed: u32,
}

impl Change {
    /// Opens a store to change it, or makes one in a new or empty folder. While another program changes it, `wait` is called again and again.
    /// If it returns `false`, the waiting ends and the result is `None`. Clears up behind an ingest that was killed.
    ///
    /// # Errors
    /// When the folder holds something else, is not only this user's to write to, or cannot be written.
    pub(crate) fn begin(folder: &Path, wait: impl FnMut() -> bool) -> Result<Option<(Self, Recovered)>, StoreError> {
        fs::create_dir_all(folder).map_err(StoreError::io("cannot be made", folder))?;
        // Others could put links in the place of what is written here.
        if let Some(why) = files::why_not_own(folder) {
            return Err(StoreError::NotOwn { folder: folder.to_owned(), why });
        }
        refuse_other_folders(folder)?;
        let path = folder.join(LOCK);
        let lock = files::open_private(&path).map_err(StoreError::io("cannot be written", &path))?;
        if !acquire(&lock, wait).map_err(StoreError::io("cannot be locked", &path))? {
            return Ok(None);
        }
        // Only now: the other program may have changed it.
        let manifest = match Manifest::read(folder)? {
            Some(manifest) => manifest,
            None => {
                let manifest = Manifest::new();
                manifest.commit(folder)?;
                manifest
            }
        };
        let change = Self { folder: folder.to_owned(), manifest, _lock: lock };
        let recovered = change.recover()?;
        change.write_views()?;
        Ok(Some((change, recovered)))
    }

    /// The runs that the store has.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        reading::runs(&self.folder, &self.manifest.batches)
    }

    /// Commits runs with their rows. After an error the store is as it was before.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn add(&mut self, runs: &[(StoredRun, Vec<Row>)]) -> Result<(), StoreError> {
        if runs.is_empty() {
            return Ok(());
        }
        let copies: Vec<PathBuf> = runs.iter().filter_map(|(run, _)| Some(self.folder.join(run.copy.as_ref()?))).collect();
        if !copies.is_empty() {
            // The originals may go as soon as their runs are committed: the copies must outlast a power cut before that.
            let folders = [self.folder.join(COPIES), self.folder.clone()];
            folders.iter().try_for_each(|folder| sync_folder(folder).map_err(StoreError::io("cannot be written", folder)))?;
        }
        self.commit(runs, &BTreeSet::new())?;
        copies.iter().try_for_each(|copy| take_name(copy))
    }

    /// Keeps a copy of a run's result, and returns its name relative to the folder. It gets that name when its run is committed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn copy(&self, run_id: &str, bytes: &[u8]) -> Result<String, StoreError> {
        let safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let usable = !run_id.is_empty() && run_id.len() <= 64 && run_id.chars().all(safe);
        let name = if usable { run_id.to_owned() } else { format!("run-{}", content_id(run_id.as_bytes())) };
        let name = format!("{COPIES}/{name}.json");
        let path = self.folder.join(&name);
        let failed = |error| StoreError::io("cannot be written", path.clone())(error);
        fs::create_dir_all(self.folder.join(COPIES)).map_err(failed)?;
        let mut file = create_anew(&pending(&path)).map_err(failed)?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(name)
    }

    /// Merges small batches, if there are many.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub(crate) fn merge_small(&mut self) -> Result<(), StoreError> {
        while let Some(small) = to_merge(&self.manifest.batches) {
            self.merge(&small)?;
        }
        Ok(())
    }

    /// Writes batches of older programs again, with the columns that they lack: Polars refuses a folder whose files have different columns,
    /// and pandas shows those of the first. A batch at a time; once `stop` is set, the rest is left to the next ingest.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub(crate) fn add_columns(&mut self, stop: &AtomicBool) -> Result<(), StoreError> {
        for batch in self.manifest.batches.clone() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            if reading::lacks_columns(&self.folder, &batch)? {
                self.merge(&[batch])?;
            }
        }
        Ok(())
    }

    /// Commits batches as one.
    fn merge(&mut self, small: &[Batch]) -> Result<(), StoreError> {
        let mut by_run: HashMap<String, Vec<Row>> = HashMap::new();
        for row in reading::rows(&self.folder, small, &|_| true)? {
            by_run.entry(row.run.run_id.clone()).or_default().push(row);
        }
        let runs = reading::runs(&self.folder, small)?;
        let runs: Vec<(StoredRun, Vec<Row>)> = runs
            .into_iter()
            .map(|run| {
                let rows = by_run.remove(&run.run.run_id).unwrap_or_default();
                (run, rows)
            })
            .collect();
        self.commit(&runs, &small.iter().map(|batch| batch.number).collect())
    }

    /// Commits runs in place of the batches with these numbers.
    fn commit(&mut self, runs: &[(StoredRun, Vec<Row>)], replaced: &BTreeSet<u32>) -> Result<(), StoreError> {
        let number = self.manifest.next;
        let mut files = Vec::new();
        let written = self.write_batch(number, runs, &mut files);
        let rows = runs.iter().map(|(_, rows)| rows.len() as u64).sum();
        let place = self.manifest.batches.iter().position(|batch| replaced.contains(&batch.number));
        let (old, mut batches): (Vec<Batch>, Vec<Batch>) =
            self.manifest.batches.iter().cloned().partition(|batch| replaced.contains(&batch.number));
        let place = place.unwrap_or(batches.len());
        batches.insert(place, Batch { number, runs: runs.len() as u64, rows, files: files.clone() });
        let mut manifest = self.manifest.clone();
        (manifest.next, manifest.batches) = (number + 1, batches);
        if let Err(error) = written.and_then(|()| manifest.commit(&self.folder)) {
            // Unless the list was replaced after all, and only what comes after that failed, nothing refers to what was written.
            if Manifest::read(&self.folder).is_ok_and(|found| found.as_ref() == Some(&manifest)) {
                return Err(error);
            }
            files.iter().for_each(|file| drop(fs::remove_file(pending(&self.folder.join(&file.name)))));
            return Err(error);
        }
        self.manifest = manifest;
        // The old files first: in between, readers of all files in the folder miss values, but count none twice.
        old.iter().flat_map(|batch| &batch.files).for_each(|file| drop(fs::remove_file(self.folder.join(&file.name))));
        files.iter().try_for_each(|file| take_name(&self.folder.join(&file.name)))
    }

    /// Writes the files of a batch under names that no reader looks for.
    fn write_batch(&self, number: u32, runs: &[(StoredRun, Vec<Row>)], files: &mut Vec<BatchFile>) -> Result<(), StoreError> {
        let name = format!("batch-{number:06}.parquet");
        let lines: Vec<Vec<Field>> = runs.iter().map(|(run, _)| columns::run(run)).collect();
        self.write_table(
            &format!("{RUNS}/{name}"),
            files,
            lines.len(),
            |row, column| &lines[row][column],
            lines.first().map(Vec::as_slice),
        )?;
        let mut partitions: BTreeMap<String, Vec<&(StoredRun, Vec<Row>)>> = BTreeMap::new();
        for run in runs.iter().filter(|(_, rows)| !rows.is_empty()) {
            partitions.entry(partition::name(&run.0.run.fingerprint)).or_default().push(run);
        }
        for (partition, runs) in partitions {
            let hosts: Vec<Vec<Field>> = runs.iter().map(|(run, _)| columns::host(&run.run)).collect();
            let mut known: BTreeMap<&Arc<Cell>, usize> = BTreeMap::new();
            let mut cells: Vec<Vec<Field>> = Vec::new();
            let mut lines: Vec<(usize, usize, Vec<Field>)> = Vec::new();
            for (host, (_, rows)) in runs.iter().enumerate() {
                for row in rows {
                    let cell = *known.entry(&row.cell).or_insert_with(|| {
                        cells.push(columns::cell(&row.cell));
                        cells.len() - 1
                    });
                    lines.push((host, cell, columns::value(row)));
                }
            }
            let Some((_, _, first)) = lines.first() else { continue };
            let all: Vec<Field> = hosts[0].iter().chain(&cells[0]).chain(first).cloned().collect();
            let (host_columns, cell_columns) = (hosts[0].len(), cells[0].len());
            let value = |row: usize, column: usize| {
                let (host, cell, own) = &lines[row];
                match column.checked_sub(host_columns) {
                    None => &hosts[*host][column],
                    Some(column) => column.checked_sub(cell_columns).map_or_else(|| &cells[*cell][column], |column| &own[column]),
                }
            };
            self.write_table(&format!("{VALUES}/{partition}/{name}"), files, lines.len(), value, Some(&all))?;
        }
        Ok(())
    }

    fn write_table<'a>(
        &self,
        file: &str,
        files: &mut Vec<BatchFile>,
        rows: usize,
        field: impl Fn(usize, usize) -> &'a Field,
        columns: Option<&[Field]>,
    ) -> Result<(), StoreError> {
        let path = self.folder.join(file);
        let failed = |error: io::Error| StoreError::io("cannot be written", path.clone())(error);
        let columns: Vec<(&str, Kind)> = columns.into_iter().flatten().map(|(name, kind, _)| (*name, *kind)).collect();
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).map_err(failed)?;
        files.push(BatchFile { name: file.to_owned(), sha256: String::new(), bytes: None });
        let value = |row: usize, column: usize| -> &'a Value { &field(row, column).2 };
        let written = table::write(&pending(&path), &columns, rows, value).map_err(|error| failed(as_io(error)))?;
        written.sync_all().map_err(failed)?;
        let size = written.metadata().map_err(failed)?.len();
        let sum = files::open_regular(&pending(&path)).and_then(|file| checksum(file.take(size))).map_err(failed)?;
        if let Some(file) = files.last_mut() {
            (file.sha256, file.bytes) = (sum, Some(size));
        }
        // Of a new folder, its own name must last as well.
        [Some(folder), folder.parent()].into_iter().flatten().try_for_each(sync_folder).map_err(failed)
    }

    /// Gives committed files their names, and removes files that are not committed.
    fn recover(&self) -> Result<Recovered, StoreError> {
        let mut recovered = Recovered::default();
        let listed: BTreeSet<PathBuf> =
            self.manifest.batches.iter().flat_map(|batch| &batch.files).map(|file| self.folder.join(&file.name)).collect();
        let copies = self.copies_without_a_name()?;
        for path in listed.iter().chain(&copies) {
            if !path.exists() && pending(path).exists() {
                take_name(path)?;
                recovered.finished += 1;
            }
        }
        let values = folders_in(&self.folder.join(VALUES))?;
        for folder in [self.folder.join(RUNS), self.folder.join(COPIES)].into_iter().chain(values) {
            for path in files_in(&folder)? {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let left = path.extension().is_some_and(|ending| ending == PENDING);
                let replaced = name.starts_with("batch-") && name.ends_with(".parquet") && !listed.contains(&path);
                if left || replaced {
                    fs::remove_file(&path)
                        .map_err(StoreError::io("is left over from an ingest that was killed, and cannot be removed", &path))?;
                    recovered.removed += 1;
                }
            }
        }
        Ok(recovered)
    }

    /// The copies of committed runs, if any copy has not got its name.
    fn copies_without_a_name(&self) -> Result<Vec<PathBuf>, StoreError> {
        let waits = |path: &PathBuf| path.extension().is_some_and(|ending| ending == PENDING);
        if !files_in(&self.folder.join(COPIES))?.iter().any(waits) {
            return Ok(Vec::new());
        }
        Ok(self.runs()?.into_iter().filter_map(|run| Some(self.folder.join(run.copy?))).collect())
    }

    /// Writes the views for this folder, unless they are there.
    fn write_views(&self) -> Result<(), StoreError> {
        let path = self.folder.join(VIEWS);
        let failed = |error| StoreError::io("cannot be written", path.clone())(error);
        let folder = fs::canonicalize(&self.folder).map_err(failed)?;
        let text = VIEWS_TEXT.replace("FLEET", &folder.to_string_lossy().replace('\'', "''"));
        if files::read_regular(&path, Bytes(text.len() as u64)).is_ok_and(|found| found == text.as_bytes()) {
            return Ok(());
        }
        let waiting = pending(&path);
        create_anew(&waiting)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&waiting, &path))
            .map_err(failed)
    }
}

/// Small batches that become one, if there are many small ones: of the earliest as many as may be in memory together.
fn to_merge(batches: &[Batch]) -> Option<Vec<Batch>> {
    let mut small: Vec<Batch> = batches.iter().filter(|batch| batch.rows < SMALL_ROWS).cloned().collect();
    if small.len() < MANY_SMALL {
        return None;
    }
    let mut rows = 0;
    let fit = small.iter().take_while(|batch| {
        rows += batch.rows;
        rows <= MERGED_ROWS
    });
    small.truncate(fit.count());
    Some(small)
}

/// Gives a file that is committed its name.
fn take_name(path: &Path) -> Result<(), StoreError> {
    fs::rename(pending(path), path).map_err(StoreError::io("cannot get its name", path))
}

/// Refuses a folder that holds files and is not a store.
fn refuse_other_folders(folder: &Path) -> Result<(), StoreError> {
    let own = [LOCK.to_owned(), format!("{MANIFEST}.{PENDING}")];
    let is_other = |path: &PathBuf| path.file_name().is_some_and(|name| own.iter().all(|own| name != own.as_str()));
    // The files first. Another program may be making the store now: its list is there before any other file of it.
    let has_others = entries(folder)?.iter().any(is_other);
    if has_others && Manifest::read(folder)?.is_none() { Err(StoreError::NotEmpty(folder.to_owned())) } else { Ok(()) }
}

/// Waits for the lock. Whether it was got.
fn acquire(lock: &File, mut wait: impl FnMut() -> bool) -> io::Result<bool> {
    while !files::try_lock(lock)? {
        if !wait() {
            return Ok(false);
        }
        std::thread::sleep(LOOK);
    }
    Ok(true)
}

fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

/// The entries of a folder; none if it is not there.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let failed = || StoreError::io("cannot be read", folder);
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry.map_err(failed())?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed()(error)),
    }
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_file()).collect())
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_year_of_daily_ingests_there_are_few_batches() {
        // Of hosts with sixty numbers each: batches of 18,000 rows are small, and 32 of them more than is merged at a time.
        for hosts in [20, 300, 820, 2_000] {
            let mut batches: Vec<Batch> = Vec::new();
            for day in 0..365 {
                batches.push(Batch { number: day, runs: hosts, rows: 60 * hosts, files: Vec::new() });
                while let Some(small) = to_merge(&batches) {
                    let rows = small.iter().map(|batch| batch.rows).sum();
                    assert!(small.len() > 1 && rows <= MERGED_ROWS, "{hosts} hosts: {} batches, {rows} rows", small.len());
                    batches.retain(|batch| !small.contains(batch));
                    batches.insert(0, Batch { number: 1_000 + day, rows, ..small[0].clone() });
                }
            }
            let rows: u64 = batches.iter().map(|batch| batch.rows).sum();
            let small = batches.iter().filter(|batch| batch.rows < SMALL_ROWS).count();
            assert_eq!(rows, 365 * 60 * hosts);
            assert!(small < MANY_SMALL, "{hosts} hosts: {small} of {} batches are small", batches.len());
        }
    }

    #[test]
    fn a_store_that_another_program_is_making_is_no_other_folder() {
        // A thread writes the files of a new store in their order, again and again, while this thread looks all the time.
        let root = tempfile::TempDir::new().unwrap();
        let folders: Vec<PathBuf> = (0..500).map(|i| root.path().join(i.to_string())).collect();
        folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for folder in &folders {
                    fs::write(folder.join(LOCK), "").unwrap();
                    fs::write(pending(&folder.join(MANIFEST)), serde_json::to_vec(&Manifest::new()).unwrap()).unwrap();
                    fs::rename(pending(&folder.join(MANIFEST)), folder.join(MANIFEST)).unwrap();
                    fs::write(folder.join(VIEWS), "").unwrap();
                }
            });
            for folder in &folders {
                while !folder.join(VIEWS).exists() {
                    refuse_other_folders(folder).unwrap();
                }
            }
        });
        fs::remove_file(folders[0].join(MANIFEST)).unwrap();
        assert!(matches!(refuse_other_folders(&folders[0]), Err(StoreError::NotEmpty(_))));
    }
}
