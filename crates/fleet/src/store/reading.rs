//! Rows and runs from a store's files. The run and the cell that rows have in common are in memory once.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::iter;
use std::path::Path;
use std::sync::Arc;

use memgauge_model::estimate::{is_possible, is_possible_end};
use memgauge_model::result::QualityLevel;
use memgauge_model::units::Bytes;
use memgauge_os::files::open_regular;
use parquet::data_type::{BoolType, ByteArray, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use serde::de::DeserializeOwned;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as WordError, StrDeserializer};

use super::columns;
use super::error::StoreError;
use super::manifest::{Batch, BatchFile, checksum, pending};
use super::run::StoredRun;
use super::table::Table;
use crate::row::{Cell, Fingerprint, HostRun, Row};

/// Rows for which there is room before any was read: the list of batches may be damaged, and claim any number.
const MOST_RESERVED: usize = 1 << 16;

/// The largest table: 500,000 rows, the most that are written together, take a twentieth of it.
const MAX_TABLE: Bytes = Bytes::gib(1);

/// Opens a committed file, whether it has got its name yet or not.
fn open(path: &Path) -> Result<File, StoreError> {
    let mut last = None;
    // It may get its name between the first two attempts.
    for path in [path, &pending(path), path] {
        match open_regular(path) {
            Ok(file) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => last = Some(error),
            Err(error) => return Err(StoreError::io("cannot be read", path)(error)),
        }
    }
    let gone = last.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    Err(StoreError::io("is in the fleet's list of files and cannot be read; restore it, or ingest the results into a new folder", path)(
        gone,
    ))
}

/// Opens a table, if its file is as it was written. Of a file of another size nothing is read.
fn table(path: &Path, of: &BatchFile) -> Result<Table, StoreError> {
    let unreadable = || StoreError::io("cannot be read", path);
    let other = |detail: String| StoreError::Damaged { path: path.to_owned(), detail };
    let mut file = open(path)?;
    let size = file.metadata().map_err(unreadable())?.len();
    if of.bytes.is_some_and(|bytes| bytes != size) {
        return Err(other("it is not as it was written (another size)".into()));
    }
    if size > MAX_TABLE.0 {
        return Err(other(format!("it is larger than {MAX_TABLE}, which no table of a fleet is")));
    }
    let sum = checksum((&file).take(size)).map_err(unreadable())?;
    file.rewind().map_err(unreadable())?;
    if sum != of.sha256 {
        return Err(other("it is not as it was written (another checksum)".into()));
    }
    Table::open(file).map_err(|e| damaged(path, &e))
}

fn damaged(path: &Path, error: &ParquetError) -> StoreError {
    StoreError::Damaged { path: path.to_owned(), detail: error.to_string() }
}

/// Whether a file of a batch lacks a column that this program writes.
pub(super) fn lacks_columns(folder: &Path, batch: &Batch) -> Result<bool, StoreError> {
    let [runs, measurements] = columns::names();
    for (file, names) in batch.files.iter().zip(iter::once(&runs).chain(iter::repeat(&measurements))) {
        let path = folder.join(&file.name);
        let table = Table::open(open(&path)?).map_err(|e| damaged(&path, &e))?;
        if names.iter().any(|name| !table.has(name)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The runs of batches, in order.
pub(super) fn runs(folder: &Path, batches: &[Batch]) -> Result<Vec<StoredRun>, StoreError> {
    let mut all = Vec::new();
    for batch in batches {
        let Some(file) = batch.files.first() else { continue };
        let path = folder.join(&file.name);
        let table = table(&path, file)?;
        for group in 0..table.groups() {
            all.extend(runs_of(&table, group).map_err(|e| damaged(&path, &e))?);
        }
    }
    Ok(all)
}

fn runs_of(table: &Table, group: usize) -> Result<Vec<StoredRun>, ParquetError> {
    let texts = |name: &str| -> Result<Vec<Option<String>>, ParquetError> {
        table.texts(group, name)?.iter().map(|text| text.as_ref().map(|t| Ok(t.as_utf8()?.to_owned())).transpose()).collect()
    };
    let integers = |name: &str| table.column::<Int64Type>(group, name);
    let (mut host, mut run_id, mut started) = (texts("host")?, texts("run_id")?, texts("started_text")?);
    let (mut machine_id_hash, labels, complete) =
        (texts("machine_id_hash")?, texts("labels")?, table.column::<BoolType>(group, "complete")?);
    let [mut cpu, mut stepping, mut hypervisor] = [texts("host_cpu")?, texts("host_stepping")?, texts("host_hypervisor")?];
    let [mut memory, mut pages, mut microcode] = [texts("host_memory")?, texts("host_pages")?, texts("host_microcode")?];
    let [mut firmware, mut kernel] = [texts("host_firmware")?, texts("host_kernel")?];
    let (cpus, nodes) = (integers("host_cpus")?, integers("host_nodes")?);
    let [mut memgauge, mut command] = [texts("memgauge")?, texts("command")?];
    let health = table.texts(group, "health")?;
    let [mut file, mut copy] = [texts("file")?, texts("copy")?];
    let (measured, not_measured) = (integers("measured")?, integers("not_measured")?);
    let small = |value: Option<i64>| value.and_then(|v| u32::try_from(v).ok()).unwrap_or_default();
    let count = |value: Option<i64>| value.and_then(|v| u64::try_from(v).ok()).unwrap_or_default();
    let run = |i: usize| -> Result<StoredRun, ParquetError> {
        let labels: BTreeMap<String, String> = match &labels[i] {
            Some(json) => serde_json::from_str(json).map_err(|e| ParquetError::General(format!("labels of row {i}: {e}")))?,
            None => BTreeMap::new(),
        };
        let fingerprint = Fingerprint {
            cpu: cpu[i].take(),
            stepping: stepping[i].take(),
            hypervisor: hypervisor[i].take(),
            cpus: small(cpus[i]),
            nodes: small(nodes[i]),
            memory: memory[i].take(),
            pages: pages[i].take(),
            microcode: microcode[i].take(),
            firmware: firmware[i].take(),
            kernel: kernel[i].take(),
        };
        let run = HostRun {
            host: host[i].take().unwrap_or_default(),
            machine_id_hash: machine_id_hash[i].take(),
            run_id: run_id[i].take().unwrap_or_default(),
            started: started[i].take().unwrap_or_default(),
            labels,
            complete: complete[i] == Some(true),
            fingerprint,
        };
        Ok(StoredRun {
            run: Arc::new(run),
            memgauge: memgauge[i].take().unwrap_or_default(),
            command: command[i].take().unwrap_or_default(),
            health: health[i].as_ref().map(word).transpose()?,
            file: file[i].take().unwrap_or_default(),
            copy: copy[i].take(),
            measured: count(measured[i]),
            not_measured: count(not_measured[i]),
        })
    };
    (0..cpus.len()).map(run).collect()
}

/// The rows of those runs of batches that are wanted, in order.
pub(super) fn rows(folder: &Path, batches: &[Batch], wanted: &dyn Fn(&StoredRun) -> bool) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    let mut cells = Cells::default();
    for batch in batches {
        let listed = runs(folder, std::slice::from_ref(batch))?;
        let runs: HashMap<String, Arc<HostRun>> =
            listed.iter().filter(|run| wanted(run)).map(|run| (run.run.run_id.clone(), run.run.clone())).collect();
        if runs.is_empty() {
            continue;
        }
        let all = runs.len() == listed.len();
        rows.reserve(if all { usize::try_from(batch.rows).unwrap_or_default().min(MOST_RESERVED) } else { 0 });
        for file in batch.files.iter().skip(1) {
            let path = folder.join(&file.name);
            let table = table(&path, file)?;
            for group in 0..table.groups() {
                rows_of(&table, group, &runs, all, &mut cells, &mut rows).map_err(|e| damaged(&path, &e))?;
            }
        }
    }
    Ok(rows)
}

/// Appends the rows of a row group whose runs are known. If `all` are, an unknown run is damage.
fn rows_of(
    table: &Table,
    group: usize,
    runs: &HashMap<String, Arc<HostRun>>,
    all: bool,
    cells: &mut Cells,
    rows: &mut Vec<Row>,
) -> Result<(), ParquetError> {
    let texts = |name: &str| table.texts(group, name);
    let numbers = |name: &str| table.column::<DoubleType>(group, name);
    let run_ids = texts("run_id")?;
    let [experiments, metrics, units, places] = [texts("experiment")?, texts("metric")?, texts("unit")?, texts("at")?];
    let (values, lows, highs) = (numbers("value")?, numbers("low")?, numbers("high")?);
    let (qualities, reasons) = (texts("quality")?, texts("not_measured")?);
    let pages = if table.has("pages") { Some(texts("pages")?) } else { None };
    let volatile = if table.has("volatile") { Some(texts("volatile")?) } else { None };
    // The rows of a run follow each other.
    let mut last: Option<(&ByteArray, Option<&Arc<HostRun>>)> = None;
    for (i, id) in run_ids.iter().enumerate() {
        let id = id.as_ref().ok_or_else(|| ParquetError::General(format!("row {i} has no run_id")))?;
        let run = match last {
            Some((known, run)) if known == id => run,
            _ => runs.get(id.as_utf8()?),
        };
        last = Some((id, run));
        let run = match run {
            Some(run) => run.clone(),
            None if all => return Err(ParquetError::General(format!("row {i} is of a run that the list of runs does not have"))),
            None => continue,
        };
        let pages = match &pages {
            Some(pages) => pages[i].as_ref().map(word).transpose()?,
            // Older files have only those of the run, which tell that of a value if they are of one kind.
            None => run.fingerprint.pages.as_deref().and_then(|pages| word_of(pages).ok()),
        };
        if let Some(value) = values[i].filter(|value| !is_possible(*value)) {
            return Err(ParquetError::General(format!("row {i} has the value {value:e}, which neither a latency nor a bandwidth is")));
        }
        rows.push(Row {
            run,
            pages,
            volatile: volatile.as_ref().and_then(|all| all[i].as_ref()).map(|text| text.as_utf8().map(ToOwned::to_owned)).transpose()?,
            cell: cells.get([&experiments[i], &metrics[i], &units[i], &places[i]])?,
            value: values[i],
            interval: lows[i].zip(highs[i]).filter(|(low, high)| is_possible_end(*low) && is_possible_end(*high)),
            quality: qualities[i].as_ref().map(word::<QualityLevel>).transpose()?,
            not_measured: reasons[i].as_ref().map(|text| text.as_utf8().map(ToOwned::to_owned)).transpose()?,
        });
    }
    Ok(())
}

/// An enumeration's value by its word.
fn word<T: DeserializeOwned>(text: &ByteArray) -> Result<T, ParquetError> {
    word_of(text.as_utf8()?).map_err(|e| ParquetError::General(e.to_string()))
}

fn word_of<T: DeserializeOwned>(text: &str) -> Result<T, WordError> {
    let word: StrDeserializer<'_, WordError> = text.into_deserializer();
    T::deserialize(word)
}

/// Cells by their columns, each once.
#[derive(Default)]
struct Cells {
    known: HashMap<Vec<u8>, Arc<Cell>>,
    key: Vec<u8>,
}

impl Cells {
    /// The cell of these texts: experiment, metric, unit and coordinates.
    fn get(&mut self, texts: [&Option<ByteArray>; 4]) -> Result<Arc<Cell>, ParquetError> {
        self.key.clear();
        for text in texts {
            self.key.extend_from_slice(text.as_ref().map_or(&[][..], ByteArray::data));
            self.key.push(0);
        }
        if let Some(cell) = self.known.get(&self.key) {
            return Ok(cell.clone());
        }
        let [experiment, metric, unit, at] =
            texts.map(|text| text.as_ref().ok_or_else(|| ParquetError::General("a row lacks experiment, metric, unit or at".into())));
        let at = serde_json::from_slice(at?.data()).map_err(|e| ParquetError::General(format!("coordinates: {e}")))?;
        let cell = Arc::new(Cell { experiment: word(experiment?)?, at, metric: word(metric?)?, unit: word(unit?)? });
        self.known.insert(self.key.clone(), cell.clone());
        Ok(cell)
    }
}
