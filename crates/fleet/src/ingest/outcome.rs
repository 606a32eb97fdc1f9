//! The outcome of an ingest, as data.

use serde::{Deserialize, Serialize};

use crate::store::Recovered;

/// The version of [`IngestOutcome`]; raised when a field changes its meaning or goes away.
pub const INGEST_VERSION: u32 = 1;

/// What an ingest did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IngestOutcome {
    /// [`INGEST_VERSION`] of the program that wrote it.
    pub ingest_version: u32,
    /// The fleet's folder, as it was named.
    pub fleet: String,
    /// Whether a signal ended it before the last file; what was read until then is committed.
    pub interrupted: bool,
    /// Files that were found.
    pub files: u64,
    /// Runs that were added.
    pub runs: u64,
    /// The hosts of these runs.
    pub hosts: u64,
    /// Values that were added.
    pub values: u64,
    /// Rows that were added for what was not measured.
    pub not_measured: u64,
    /// Files whose runs the fleet had before.
    pub already: Vec<String>,
    /// Files that were left out.
    pub skipped: Vec<Skipped>,
    /// What was left of an ingest that had been killed.
    pub recovered: Recovered,
    /// All runs of the fleet now.
    pub fleet_runs: u64,
    /// All hosts of the fleet now.
    pub fleet_hosts: u64,
}

/// A file that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skipped {
    /// Its path.
    pub file: String,
    /// Why.
    pub reason: SkipReason,
    /// More about it: the message of the operating system or of the parser, or the other file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Why a file was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// The operating system refused to read it.
    Unreadable,
    /// It is a device, a pipe or the like.
    NotAFile,
    /// It is larger than any result.
    TooLarge,
    /// It has no content.
    Empty,
    /// It ends too early: a part of a result.
    CutOff,
    /// It is not JSON.
    NotJson,
    /// It is JSON of another program.
    NotAResult,
    /// It has the schema of an older memgauge.
    OldSchema,
    /// It has the schema of a newer memgauge.
    NewSchema,
    /// It has the right schema version and breaks the schema.
    Damaged,
    /// It has no result: `memgauge info`, `count`, or a plan.
    NoResults,
    /// Another file of this ingest has the same run.
    Duplicate,
    /// It is a folder of a fleet, whose files are not looked at.
    FleetFolder,
}

impl SkipReason {
    /// Whether the file holds nothing that the fleet could have. A duplicate does: its run is there. The folder of a fleet is not a result.
    pub fn is_loss(self) -> bool {
        !matches!(self, Self::Duplicate | Self::FleetFolder)
    }
}

impl IngestOutcome {
    /// Files that could not be used.
    pub fn unusable(&self) -> usize {
        self.skipped.iter().filter(|skipped| skipped.reason.is_loss()).count()
    }

    /// Whether not a single file could be used.
    pub fn is_useless(&self) -> bool {
        self.runs == 0 && self.already.is_empty() && self.unusable() > 0
    }
}
