//! How the numbers of one host changed over time.

use memgauge_model::experiment::{Coordinates, Experiment, Metric, Unit};
use memgauge_model::result::QualityLevel;
use serde::{Deserialize, Serialize};

use memgauge_model::result::Difference;

/// The numbers of one host over time, and when they changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetHistory {
    /// [`FLEET_VERSION`](super::FLEET_VERSION) of the program that wrote it.
    pub fleet_version: u32,
    /// The host.
    pub host: String,
    /// The hashes of its machine ids: several only where machines are shown as one.
    pub machine_id_hashes: Vec<String>,
    /// Its runs, in order of time.
    pub runs: Vec<HistoryRun>,
    /// Its numbers over time.
    pub series: Vec<Series>,
    /// When numbers or properties changed, in order of time.
    pub changes: Vec<Change>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryRun {
    /// Its id.
    pub run_id: String,
    /// When it began: UTC, RFC 3339.
    pub started: String,
    /// Whether everything that was planned was measured.
    pub complete: bool,
}

/// One number over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// What was measured.
    pub experiment: Experiment,
    /// Its coordinates.
    pub at: Coordinates,
    /// The quantity.
    pub metric: Metric,
    /// The unit of every value.
    pub unit: Unit,
    /// The share by which runs differ from one to the next; `null` with fewer than three runs.
    pub noise: Option<f64>,
    /// The values, in order of time.
    pub points: Vec<SeriesPoint>,
    /// The levels between change points; empty where there are too few values to tell.
    pub levels: Vec<SeriesLevel>,
}

/// The value of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesPoint {
    /// The index of the run in `runs`.
    pub run: u32,
    /// The value; `null` if it was not measured.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How far to trust it; `null` without a value.
    pub quality: Option<QualityLevel>,
    /// Why it was not measured: a stable word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
}

/// A period during which a number stayed the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesLevel {
    /// The index of its first run in `runs`.
    pub first_run: u32,
    /// The index of its last run.
    pub last_run: u32,
    /// How many values.
    pub values: u32,
    /// Their median.
    pub median: f64,
}

/// A time at which numbers or properties of the host changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The index of the last run before, in `runs`.
    pub before: u32,
    /// The index of the first run after.
    pub after: u32,
    /// What differs between these two runs apart from the numbers.
    pub differences: Vec<Difference>,
    /// The numbers that changed, the one that changed most first.
    pub numbers: Vec<ChangedNumber>,
}

/// A number that changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedNumber {
    /// The index of the number in `series`.
    pub series: u32,
    /// The median before.
    pub before: f64,
    /// The median after.
    pub after: f64,
    /// `after` over `before`.
    pub ratio: f64,
    /// Whether it is less bandwidth or more latency.
    pub worse: bool,
}
