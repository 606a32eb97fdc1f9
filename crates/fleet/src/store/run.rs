//! A run as the store's list of runs has it.

use std::sync::Arc;

use memgauge_model::result::HealthStatus;

use crate::row::HostRun;

/// A run, where it came from, and how much of it was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredRun {
    /// The run.
    pub run: Arc<HostRun>,
    /// The version of memgauge that measured.
    pub memgauge: String,
    /// Its command line.
    pub command: String,
    /// The verdict of a health check; `None` for other runs.
    pub health: Option<HealthStatus>,
    /// The file that it was read from: an absolute path.
    pub file: String,
    /// The copy of that file, relative to the fleet's folder; `None` if none is kept.
    pub copy: Option<String>,
    /// Rows with a value.
    pub measured: u64,
    /// Rows without one.
    pub not_measured: u64,
}
