//! The latest value of each host at each cell.

use std::collections::{BTreeMap, HashMap};
use std::ptr;

use memgauge_core::experiment::Metric;
use memgauge_core::fleet::{GroupLevel, HostName};
use memgauge_core::result::QualityLevel;

use crate::groups::key;
use crate::row::{Cell, HostRun, Row};

/// The hosts of a store, and their latest values.
pub(crate) struct Latest<'a> {
    /// The latest run of each host, by name and machine id.
    pub(crate) hosts: Vec<&'a HostRun>,
    /// What was measured, in the order of cells.
    pub(crate) cells: Vec<CellValues<'a>>,
    /// When the earliest and the latest value was measured; empty without values.
    pub(crate) span: (String, String),
}

/// The latest rows of one cell.
pub(crate) struct CellValues<'a> {
    pub(crate) cell: &'a Cell,
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
        match self.metric {
            Metric::Latency => value.ln(),
            Metric::Bandwidth => -value.ln(),
        }
    }

    /// The value of such a logarithm.
    pub(crate) fn value(&self, cost: f64) -> f64 {
        match self.metric {
            Metric::Latency => cost.exp(),
            Metric::Bandwidth => (-cost).exp(),
        }
    }

    /// By what share a value is worse that costs so much more.
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

/// The latest row of each host at each cell. What was measured before the hardware changed is left out.
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
    let hardware: Vec<_> = hosts.iter().map(|run| key(&run.fingerprint, GroupLevel::Hardware)).collect();
    let counts: Vec<bool> =
        runs.iter().zip(&host_of).map(|(run, &host)| key(&run.fingerprint, GroupLevel::Hardware) == hardware[host as usize]).collect();

    let (cell_of, cells) = numbered(rows, |row| &*row.cell);
    let mut entries: Vec<(u32, u32, u32, u32)> = Vec::with_capacity(rows.len());
    for (row, (&run, &cell)) in run_of.iter().zip(&cell_of).enumerate() {
        if counts[run as usize] {
            entries.push((cell, host_of[run as usize], rank[run as usize], row as u32));
        }
    }
    entries.sort_unstable();
    let mut values: Vec<CellValues<'_>> = cells.into_iter().map(|cell| CellValues { cell, rows: Vec::new() }).collect();
    for (i, &(cell, host, _, row)) in entries.iter().enumerate() {
        // The last of a host at a cell is the latest.
        if entries.get(i + 1).is_none_or(|next| (next.0, next.1) != (cell, host)) {
            values[cell as usize].rows.push((host, &rows[row as usize]));
        }
    }
    values.sort_by(|a, b| a.cell.cmp(b.cell));
    let measured = || values.iter().flat_map(|cell| &cell.rows).map(|(_, row)| row.run.started.as_str());
    let span = (measured().min().unwrap_or_default().to_owned(), measured().max().unwrap_or_default().to_owned());
    Latest { hosts, cells: values, span }
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
