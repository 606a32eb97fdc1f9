//! A run as it is exported, and why it cannot be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use memgauge_model::result::{Finding, HealthStatus, QualityLevel, Report};
use memgauge_model::words::{Command, Knob, Verb};

use crate::hosts::HostError;
use crate::row::{HostRun, Row};
use crate::rows::{ID_DIGITS, rows};
use crate::store::{StoreError, kind};

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
    /// The findings of the health check; empty if only the store is known, which does not keep them.
    pub findings: Vec<Finding>,
    /// Its values.
    pub rows: Vec<Row>,
}

/// Why there is nothing to write.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The word that was to choose a host means none, or several.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A median over machines that differ tells nothing.
    #[error("the hosts are of several kinds, and a baseline is of one: choose with {} one of {}", Knob::Fingerprint, .0.join(", "))]
    SeveralKinds(Vec<String>),
    /// The format describes one host.
    #[error("this format describes one host, and there are {0}; choose one with {host} HOST, or name its result", host = Knob::Host)]
    SeveralHosts(usize),
    /// The run has nothing that the format can hold.
    #[error("{0} has no latency and no bandwidth by node; measure with memgauge, or with {latency}", latency = Command::new(Verb::Latency).with(Knob::Matrix))]
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
    pub fn from_report(report: &Report) -> Self {
        Self {
            run: Arc::new(HostRun::from_report(report)),
            memgauge: report.tool.version.clone(),
            command: report.argv.join(" "),
            health: report.health.as_ref().map(|health| health.status),
            findings: report.health.as_ref().map_or(Vec::new(), |health| health.findings.clone()),
            rows: rows(report),
        }
    }

    /// The kind of its hardware: the name of its folder in a store.
    pub fn kind(&self) -> String {
        kind(&self.run.fingerprint)
    }
}

/// Whether a value may be compared: it is there, and disturbances do not make it wrong.
pub(super) fn is_usable(row: &Row) -> bool {
    row.value.is_some() && row.quality.is_some_and(|quality| quality < QualityLevel::Unreliable)
}

/// The name of each run's host. If several hosts have the same name, the first digits of the machine id follow it.
pub(super) fn names(runs: &[ExportRun]) -> Vec<String> {
    let mut ids: BTreeMap<&str, BTreeSet<&Option<String>>> = BTreeMap::new();
    for run in runs {
        ids.entry(&run.run.host).or_default().insert(&run.run.machine_id_hash);
    }
    let name = |run: &ExportRun| {
        let host = &run.run;
        let id = host.machine_id_hash.as_ref().filter(|_| ids[host.host.as_str()].len() > 1);
        id.map_or_else(|| host.host.clone(), |id| format!("{}-{}", host.host, id.chars().take(ID_DIGITS).collect::<String>()))
    };
    runs.iter().map(name).collect()
}
