//! One number with everything that makes it trustworthy.

use crate::counters::Counters;
use crate::distribution::Distribution;
use crate::estimate::Estimate;
use crate::experiment::{Coordinates, Experiment, Metric, Unit};
use crate::result::evidence::Evidence;
use serde::{Deserialize, Serialize};

/// One number with everything that makes it trustworthy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Measurement {
    /// What was measured.
    pub experiment: Experiment,
    /// Where it stands.
    pub at: Coordinates,
    /// The quantity.
    pub metric: Metric,
    /// Its unit.
    pub unit: Unit,
    /// What firmware (HMAT) claims of it, in `unit`: read latency, or read bandwidth of loads only. Not measured; absent where firmware
    /// claims nothing or the kernel does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<f64>,
    /// The number and its spread.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// How the times of short batches of hops are distributed, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
    /// Proof of what was measured.
    pub evidence: Evidence,
    /// Whether to trust it.
    pub quality: Quality,
    /// How it stands against the machine's limit.
    pub verdict: Verdict,
    /// What the CPUs' counters showed meanwhile; absent where they were not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Box<Counters>>,
    /// Lines in flight by Little's law, bandwidth x latency, of all threads together; for bandwidths measured beside a chase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_in_flight: Option<f64>,
}

/// Whether to trust a number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Quality {
    /// The conclusion.
    pub level: QualityLevel,
    /// Stable words for why it is degraded.
    pub reasons: Vec<QualityReason>,
}

/// The conclusion about a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QualityLevel {
    /// Nothing seen that would distort it.
    #[default]
    Good,
    /// Something seen that may distort it.
    Degraded,
    /// There is no number.
    None,
}

/// Why a number may be distorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QualityReason {
    /// The hypervisor gave more than 0.5 % of the time to others.
    Steal,
    /// Other processes used more than 5 % of the CPUs measured.
    BusyMachine,
    /// A measuring thread was taken off its CPU.
    InvoluntarySwitches,
    /// A measuring thread ran on another CPU.
    Migrated,
    /// Core frequency differed by more than 2 % before and after.
    FrequencyDrift,
    /// Threads ran together for less than 95 % of the time.
    Coverage,
    /// The interval is wider than asked for.
    NotConverged,
    /// Samples fall into several clusters.
    SeveralModes,
    /// Pages were not where they should be.
    PlacementWrong,
    /// Where pages were could not be read back.
    PlacementUnverified,
    /// The buffer may lie partly in a cache.
    PlateauNotReached,
    /// The same cell measured again at the end differs by more than both intervals allow, or samples went up or down while they were taken.
    Drift,
    /// Memory errors were reported meanwhile.
    MemoryErrors,
    /// The kernel migrated pages or NUMA balancing was at work.
    PagesMigrated,
    /// More than a quarter of the bursts were disturbed, whether or not they count.
    BurstsDisturbed,
    /// More bytes a core cycle than any core loads and stores: time, frequency or bytes were misread.
    AboveCore,
}

/// How a number stands against what the machine could do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verdict {
    /// The conclusion.
    pub status: VerdictStatus,
    /// Stable word for why, such as `limit-unknown`.
    pub reason: String,
    /// The limit, in the result's unit; `null` when unknown.
    pub limit: Option<f64>,
    /// Where the limit comes from, such as `hmat`; `null` when unknown.
    pub limit_source: Option<String>,
}

/// The conclusion against the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictStatus {
    /// As it should be.
    Ok,
    /// Below the soft threshold.
    Warning,
    /// Below the hard threshold.
    Failure,
    /// No limit is known to judge by.
    #[default]
    Unknown,
}
