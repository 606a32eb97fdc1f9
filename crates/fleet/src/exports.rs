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

use crate::hosts::Hosts;
use crate::row::{HostId, HostRun, Row};
use crate::store::{Store, StoreError, StoredRun, kind};

/// The newest run of each host that is chosen. One name with two machine ids is two hosts.
///
/// # Errors
/// When a file of the store cannot be read, or a host that is named is none or several.
pub fn latest_runs(store: &Store, hosts: &[String], word: Option<&str>) -> Result<Vec<StoredRun>, ExportError> {
    let mut latest: BTreeMap<HostId, StoredRun> = BTreeMap::new();
    for run in chosen(store.runs()?, |run| &run.run, hosts, word)? {
        let id = run.run.id();
        match latest.get(&id) {
            Some(known) if known.run.started >= run.run.started => {}
            _ => drop(latest.insert(id, run)),
        }
    }
    Ok(latest.into_values().collect())
}

/// Those of all runs whose kind contains the word, of the hosts that are named, by names or machine ids; of all hosts if none is.
///
/// # Errors
/// When a host that is named is none or several.
pub fn chosen<T>(mut all: Vec<T>, run: impl Fn(&T) -> &HostRun, hosts: &[String], word: Option<&str>) -> Result<Vec<T>, ExportError> {
    all.retain(|one| word.is_none_or(|word| kind(&run(one).fingerprint).contains(word)));
    if !hosts.is_empty() && !all.is_empty() {
        let known = Hosts::from_runs(all.iter().map(&run));
        let wanted = hosts.iter().map(|host| known.one(host)).collect::<Result<BTreeSet<HostId>, _>>()?;
        all.retain(|one| wanted.iter().any(|host| run(one).is_of(host)));
    }
    Ok(all)
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
        findings: Vec::new(),
    };
    Ok(runs.into_iter().map(export).collect())
}
