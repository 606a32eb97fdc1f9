//! Runs in the formats of other tools.

mod hwloc;
mod ocptv;
mod openmetrics;
mod superbench;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use memgauge_core::result::{HealthStatus, QualityLevel, Report};

pub use hwloc::hwloc;
pub use ocptv::ocptv;
pub use openmetrics::openmetrics;
pub use superbench::{superbench, superbench_baseline};

use crate::row::{HostRun, Row};
use crate::rows::rows;
use crate::store::{Store, StoreError, StoredRun, kind};

/// A run to write in another format.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportRun {
    /// The run.
    pub run: Arc<HostRun>,
    /// The version of memgauge that measured.
    pub memgauge: String,
    /// Its command line.
    pub command: String,
    /// The verdict of a health check; `None` for other runs.
    pub health: Option<HealthStatus>,
    /// Its values.
    pub rows: Vec<Row>,
}

/// Why there is nothing to write.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A median over machines that differ tells nothing.
    #[error("the hosts are of several kinds, and a baseline is of one: choose with --fingerprint one of {}", .0.join(", "))]
    SeveralKinds(Vec<String>),
    /// The format describes one host.
    #[error("this format describes one host, and there are {0}; choose one with --host NAME")]
    SeveralHosts(usize),
    /// The run has nothing that the format can hold.
    #[error("{0} has no latency and no bandwidth by node; measure with memgauge, or with memgauge latency --matrix")]
    NoMatrix(String),
    /// A result cannot be written as JSON.
    #[error("cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The values cannot be written as OpenMetrics.
    #[error(transparent)]
    Render(#[from] memgauge_render::RenderError),
}

impl ExportRun {
    /// The run of a result.
    pub fn of(report: &Report) -> Self {
        Self {
            run: Arc::new(HostRun::of(report)),
            memgauge: report.tool.version.clone(),
            command: report.argv.join(" "),
            health: report.health.as_ref().map(|health| health.status),
            rows: rows(report),
        }
    }

    /// The kind of its hardware: the name of its folder in a store.
    pub fn kind(&self) -> String {
        kind(&self.run.fingerprint)
    }
}

/// The newest run of each host that is chosen: of all hosts if none is named, and of those whose kind contains the word.
///
/// # Errors
/// When a file of the store cannot be read.
pub fn latest_runs(store: &Store, hosts: &[String], word: Option<&str>) -> Result<Vec<StoredRun>, StoreError> {
    let mut latest: BTreeMap<String, StoredRun> = BTreeMap::new();
    let chosen = |run: &StoredRun| {
        (hosts.is_empty() || hosts.contains(&run.run.host)) && word.is_none_or(|word| kind(&run.run.fingerprint).contains(word))
    };
    for run in store.runs()?.into_iter().filter(chosen) {
        match latest.get(&run.run.host) {
            Some(known) if known.run.started >= run.run.started => {}
            _ => drop(latest.insert(run.run.host.clone(), run)),
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

/// Whether a value may be compared: it is there, and disturbances do not make it wrong.
fn is_usable(row: &Row) -> bool {
    row.value.is_some() && row.quality.is_some_and(|quality| quality < QualityLevel::Unreliable)
}
