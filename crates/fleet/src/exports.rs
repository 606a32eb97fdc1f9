//! Runs in the formats of other tools.

mod hwloc;
mod ocptv;
mod openmetrics;
mod run;
mod superbench;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use hwloc::hwloc;
pub use ocptv::ocptv;
pub use openmetrics::openmetrics;
pub use run::{ExportError, ExportRun};
pub use superbench::{superbench, superbench_baseline};

use crate::row::{HostId, Row};
use crate::store::{Store, StoreError, StoredRun, kind};

/// The newest run of each host that is chosen: of all hosts if none is named, and of those whose kind contains the word. One name with two
/// machine ids is two hosts.
///
/// # Errors
/// When a file of the store cannot be read.
pub fn latest_runs(store: &Store, hosts: &[String], word: Option<&str>) -> Result<Vec<StoredRun>, StoreError> {
    let mut latest: BTreeMap<HostId, StoredRun> = BTreeMap::new();
    let chosen = |run: &StoredRun| {
        (hosts.is_empty() || hosts.contains(&run.run.host)) && word.is_none_or(|word| kind(&run.run.fingerprint).contains(word))
    };
    for run in store.runs()?.into_iter().filter(chosen) {
        let id = run.run.id();
        match latest.get(&id) {
            Some(known) if known.run.started >= run.run.started => {}
            _ => drop(latest.insert(id, run)),
        }
    }
    Ok(latest.into_values().collect())
}

/// Runs with their rows.
///
/// # Errors
/// When a file of the store cannot be read.
pub fn with_rows(store: &Store, runs: Vec<StoredRun>) -> Result<Vec<ExportRun>, StoreError> {
    let ids: BTreeSet<String> = runs.iter().map(|run| run.run.run_id.clone()).collect();
    let mut by_run: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in store.rows_of(&ids)? {
        by_run.entry(row.run.run_id.clone()).or_default().push(row);
    }
    let export = |stored: StoredRun| ExportRun {
        rows: by_run.remove(&stored.run.run_id).unwrap_or_default(),
        run: stored.run,
        memgauge: stored.memgauge,
        command: stored.command,
        health: stored.health,
    };
    Ok(runs.into_iter().map(export).collect())
}
