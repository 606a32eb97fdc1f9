//! The latest value of each host at each cell.

use std::collections::{BTreeMap, HashMap};
use std::ptr;

use memgauge_analysis::fleet::{GroupLevel, HostName};
use memgauge_model::experiment::Metric;
use memgauge_model::result::{PageKind, QualityLevel};

use crate::groups::key;
use crate::row::{Cell, Fingerprint, HostRun, Row};

/// The hosts of a store, and their latest values.
pub(crate) struct Latest<'a> {
    /// The latest run of each host, by name and machine id.
    pub(crate) hosts: Vec<&'a HostRun>,
    /// The properties of each host: those of its latest run, with the memory that the latest run as root saw.
    pub(crate) fingerprints: Vec<Fingerprint>,
    /// The measured values, in the order of cells and pages.
    pub(crate) cells: Vec<CellValues<'a>>,
    /// When the earliest and the latest value was measured; empty without values.
    pub(crate) span: (String, String),
}

/// The latest rows of one cell that were measured with one kind of pages. A host is in one of those of a cell.
pub(crate) struct CellValues<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) pages: Option<PageKind>,
    /// The index of the host, and its latest row, by host.
    pub(crate) rows: Vec<(u32, &'a Row)>,
}

impl Row {
    /// The logarithm of a value to conclude from, turned so that more is worse: measured, with good quality.
    pub(crate) fn cost(&self) -> Option<f64> {
        self.any_cost().filter(|_| self.quality == Some(QualityLevel::Good))
    }

    /// The same of a value of any quality.
    pub(crate) fn any_cost(&self) -> Option<f64> {
        let value = self.value.filter(|v| v.is_finite() && *v > 0.0)?;
        Some(self.cell.cost(value))
    }
}

impl Cell {
    /// The logarithm of a value, turned so that more is worse.
    pub(crate) fn cost(&self, value: f64) -> f64 {
        self.metric.cost(value)
    }

    /// The value of such a logarithm.
    pub(crate) fn value(&self, cost: f64) -> f64 {
        self.metric.value_at(cost)
    }

    /// How much worse a value is, as a share, if its cost is higher by `difference`.
    pub(crate) fn worse_by(&self, difference: f64) -> f64 {
        match self.metric {
            Metric::Latency => difference.exp() - 1.0,
            Metric::Bandwidth => 1.0 - (-difference).exp(),
        }
    }
}

/// The name of a host by its latest run.
pub(crate) fn name(run: &HostRun) -> HostName {
    HostName {
        host: run.host.clone(),
        machine_id_hash: run.machine_id_hash.clone(),
        run_id: run.run_id.clone(),
        started: run.started.clone(),
    }
}

/// One name with two machine ids is two hosts: judging them together would hide either.
type HostKey<'a> = (&'a str, Option<&'a str>);

fn host_key(run: &HostRun) -> HostKey<'_> {
    (&run.host, run.machine_id_hash.as_deref())
}

/// The latest row of each host at each cell. Rows from before a change of the hardware are left out.
pub(crate) fn latest(rows: &[Row]) -> Latest<'_> {
    let (run_of, runs) = numbered(rows, |row| &*row.run);
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|&i| (runs[i].started.as_str(), runs[i].run_id.as_str()));
    let mut rank = vec![0; runs.len()];
    order.iter().enumerate().for_each(|(place, &run)| rank[run] = place as u32);
    // The last run that is seen of a host is its latest.
    let latest_runs: BTreeMap<HostKey<'_>, &HostRun> = order.iter().map(|&i| (host_key(runs[i]), runs[i])).collect();
    let host_ids: BTreeMap<HostKey<'_>, u32> = latest_runs.keys().copied().zip(0..).collect();
    let hosts: Vec<&HostRun> = latest_runs.into_values().collect();
    let host_of: Vec<u32> = runs.iter().map(|run| host_ids[&host_key(run)]).collect();
    let (counts, memory) = with_hardware_of_now(&hosts, &runs, &order, &host_of);
    let fingerprint = |(run, memory): (&&HostRun, Option<&String>)| Fingerprint { memory: memory.cloned(), ..run.fingerprint.clone() };
    let fingerprints = hosts.iter().zip(memory).map(fingerprint).collect();

    let (cell_of, cells) = numbered(rows, |row| &*row.cell);
    let mut entries: Vec<(u32, u32, u32, u32)> = Vec::with_capacity(rows.len());
    for (row, (&run, &cell)) in run_of.iter().zip(&cell_of).enumerate() {
        if counts[run as usize] {
            entries.push((cell, host_of[run as usize], rank[run as usize], row as u32));
        }
    }
    entries.sort_unstable();
    let mut of_cells: Vec<Vec<(u32, &Row)>> = vec![Vec::new(); cells.len()];
    for (i, &(cell, host, _, row)) in entries.iter().enumerate() {
        // The last of a host at a cell is the latest.
        if entries.get(i + 1).is_none_or(|next| (next.0, next.1) != (cell, host)) {
            of_cells[cell as usize].push((host, &rows[row as usize]));
        }
    }
    let mut values: Vec<CellValues<'_>> = cells.into_iter().zip(of_cells).flat_map(|(cell, rows)| by_pages(cell, rows)).collect();
    values.sort_by(|a, b| (a.cell, a.pages).cmp(&(b.cell, b.pages)));
    let measured = || values.iter().flat_map(|cell| &cell.rows).map(|(_, row)| row.run.started.as_str());
    let span = (measured().min().unwrap_or_default().to_owned(), measured().max().unwrap_or_default().to_owned());
    Latest { hosts, fingerprints, cells: values, span }
}

/// Which runs were made with the hardware that their hosts have now, and the memory of each host. Only root may read the memory's channels: a
/// run that does not know them counts, unless it is older than one that saw other memory. `order`: the runs by time.
fn with_hardware_of_now<'a>(
    hosts: &[&HostRun],
    runs: &[&'a HostRun],
    order: &[usize],
    host_of: &[u32],
) -> (Vec<bool>, Vec<Option<&'a String>>) {
    let without_memory = |run: &HostRun| Fingerprint { memory: None, ..key(&run.fingerprint, GroupLevel::Hardware) };
    let hardware: Vec<Fingerprint> = hosts.iter().map(|run| without_memory(run)).collect();
    let (mut counts, mut memory, mut changed) = (vec![false; runs.len()], vec![None; hosts.len()], vec![false; hosts.len()]);
    for &i in order.iter().rev() {
        let (run, host) = (runs[i], host_of[i] as usize);
        if without_memory(run) != hardware[host] {
            continue;
        }
        counts[i] = match (&run.fingerprint.memory, memory[host]) {
            (None, _) => !changed[host],
            (Some(own), Some(known)) => own == known,
            (Some(own), None) => {
                memory[host] = Some(own);
                true
            }
        };
        changed[host] |= !counts[i];
    }
    (counts, memory)
}

/// Rows of a cell by the kind of pages that backed the memory: base pages and huge ones differ by far more than hosts do. Rows without a value
/// go with the kind that most have.
fn by_pages<'a>(cell: &'a Cell, rows: Vec<(u32, &'a Row)>) -> Vec<CellValues<'a>> {
    let pages_of = |row: &Row| row.any_cost().map(|_| row.pages);
    let mut counts: BTreeMap<Option<PageKind>, usize> = BTreeMap::new();
    rows.iter().filter_map(|(_, row)| pages_of(row)).for_each(|pages| *counts.entry(pages).or_default() += 1);
    let most = counts.iter().max_by_key(|(_, n)| **n).and_then(|(pages, _)| *pages);
    let mut parts: BTreeMap<Option<PageKind>, Vec<(u32, &Row)>> = BTreeMap::new();
    rows.into_iter().for_each(|(host, row)| parts.entry(pages_of(row).unwrap_or(most)).or_default().push((host, row)));
    parts.into_iter().map(|(pages, rows)| CellValues { cell, pages, rows }).collect()
}

/// Numbers what rows share: the number for each row, and what has each number. Rows of one store share their runs and cells, so most are
/// known by their address.
fn numbered<'a, T: Ord>(rows: &'a [Row], part: impl Fn(&'a Row) -> &'a T) -> (Vec<u32>, Vec<&'a T>) {
    let mut by_address: HashMap<*const T, u32> = HashMap::new();
    let mut by_value: BTreeMap<&T, u32> = BTreeMap::new();
    let mut all = Vec::new();
    let numbers = rows.iter().map(|row| {
        let part = part(row);
        *by_address.entry(ptr::from_ref(part)).or_insert_with(|| {
            *by_value.entry(part).or_insert_with(|| {
                all.push(part);
                all.len() as u32 - 1
            })
        })
    });
    let numbers = numbers.collect();
    (numbers, all)
}
