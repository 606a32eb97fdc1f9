//! One number with everything that makes it trustworthy.

use serde::{Deserialize, Serialize};

use crate::counters::Counters;
use crate::distribution::Distribution;
use crate::estimate::Estimate;
use crate::experiment::{Coordinates, Experiment, Method, Metric, Unit};
use crate::experiment_table::Quantity;
use crate::result::evidence::Evidence;

/// One number with everything that makes it trustworthy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measurement {
    /// What was measured.
    pub experiment: Experiment,
    /// Its coordinates.
    pub at: Coordinates,
    /// The quantity.
    pub metric: Metric,
    /// Its unit.
    pub unit: Unit,
    /// The value that firmware (HMAT) claims, in `unit`: read latency, or the bandwidth of loads alone. It is not measured. Absent if
    /// firmware claims nothing or the kernel does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<f64>,
    /// The number and its spread.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Distribution of the times of short batches of hops, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
    /// The samples behind the estimate, by burst, so that they can be resampled later; absent without bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Box<Samples>>,
    /// What was observed while the number was measured.
    pub evidence: Evidence,
    /// Whether to trust it.
    pub quality: Quality,
    /// How it compares with the machine's limit.
    pub verdict: Verdict,
    /// What the CPUs' counters counted during the measurement; absent if they were not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Box<Counters>>,
    /// Lines in flight by Little's law, bandwidth x latency, of all threads together; for bandwidths measured alongside a chase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_in_flight: Option<f64>,
}

impl Measurement {
    /// How it was measured.
    pub fn method(&self) -> Method {
        self.quantity().method
    }

    /// What was measured.
    pub fn quantity(&self) -> &'static Quantity {
        self.experiment.quantity(self.metric)
    }

    /// Whether conclusions may be drawn from it.
    pub fn is_reliable(&self) -> bool {
        self.quality.level <= QualityLevel::Degraded
    }

    /// Whether both are the same quantity at the same coordinates.
    pub fn is_of_same_cell(&self, other: &Self) -> bool {
        self.experiment == other.experiment && self.metric == other.metric && self.at == other.at
    }
}

/// Samples in order of time, in the result's unit, rounded to six significant digits. Of a burst at most 32 are kept, and at most
/// [`KEPT_OF_MANY`](crate::protocol::KEPT_OF_MANY) where the plan has thousands of cells (note `samples-thinned`); they are evenly
/// spaced in time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Samples {
    /// The samples of each burst.
    pub bursts: Vec<Vec<f64>>,
    /// The number of the fresh allocation that each burst used; absent if all bursts used the same one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocations: Vec<u32>,
    /// Indices of the bursts that do not count because they were disturbed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<u32>,
}

impl Samples {
    /// Keeps at most `at_most` samples of each burst, evenly spaced in time.
    pub fn thin(&mut self, at_most: usize) {
        for burst in &mut self.bursts {
            let step = burst.len().div_ceil(at_most.max(1)).max(1);
            *burst = burst.iter().copied().step_by(step).collect();
        }
    }
}

/// Whether to trust a number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quality {
    /// The conclusion.
    pub level: QualityLevel,
    /// Stable words for why it is degraded.
    pub reasons: Vec<QualityReason>,
}

/// The conclusion about a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum QualityLevel {
    /// Nothing was observed that would distort it.
    #[default]
    Good,
    /// Something was observed that may distort it.
    Degraded,
    /// Disturbances are in the number, or left too little of the time undisturbed: it may be wrong by more than its interval says.
    Unreliable,
    /// The number is missing.
    None,
}

/// Why a number may be distorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum QualityReason {
    /// The hypervisor gave more than 0.5 % of the time to other guests.
    Steal,
    /// Other processes used more than 5 % of the CPUs measured.
    BusyMachine,
    /// A measuring thread was taken off its CPU.
    InvoluntarySwitches,
    /// A measuring thread ran on another CPU.
    Migrated,
    /// Core frequency differed by more than 5 % between the first and the last burst.
    FrequencyDrift,
    /// Threads ran together for less than 95 % of the time.
    Coverage,
    /// The interval, before it was cut to what the samples allow, is wider than asked for.
    NotConverged,
    /// Samples fall into several clusters.
    SeveralModes,
    /// Pages were not where they should be.
    PlacementWrong,
    /// Where pages were could not be read back.
    PlacementUnverified,
    /// The buffer may lie partly in a cache.
    PlateauNotReached,
    /// The cell was measured again at the end and the intervals do not overlap, or the samples show a trend.
    Drift,
    /// The kernel reported memory errors during the measurement.
    MemoryErrors,
    /// The kernel migrated pages, or NUMA balancing was active.
    PagesMigrated,
    /// More than a quarter of the bursts were disturbed, including those that do not count.
    BurstsDisturbed,
    /// More bytes per core cycle than any core can load and store: the time, the frequency or the bytes are wrong.
    AboveCore,
    /// The kernel was chosen by trials during which its threads lost their CPUs: another one may be faster.
    KernelChosenBusy,
    /// Others used more than 5 % of the CPUs that share a core, a cache or memory with the measured ones.
    BusyNeighbours,
    /// Threads were off their CPUs for more than a quarter of the time, so the rest may not be representative.
    TimeLeftOut,
    /// Memory did not answer for more than 5 % of the time, although the threads were on their CPUs.
    Stalled,
    /// The stamps at the beginning and at the end of the run show different states of the machine, in what this number depends on.
    StateChanged,
}

impl QualityReason {
    /// Whether it is something that others, or the machine for a moment, did to the number, which no interval shows.
    pub const fn is_of_others(self) -> bool {
        matches!(
            self,
            Self::Steal
                | Self::BusyMachine
                | Self::InvoluntarySwitches
                | Self::Coverage
                | Self::BurstsDisturbed
                | Self::KernelChosenBusy
                | Self::BusyNeighbours
                | Self::TimeLeftOut
                | Self::Stalled
                | Self::StateChanged
        )
    }
}

/// How a number compares with the limit of the machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The conclusion.
    pub status: VerdictStatus,
    /// Why.
    pub reason: VerdictReason,
    /// The limit, in the result's unit; `null` if not known.
    pub limit: Option<f64>,
    /// Where the limit comes from; `null` if not known.
    pub limit_source: Option<LimitSource>,
    /// The part of the machine that the limit is for, when the machine's was divided evenly among nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_share: Option<LimitShare>,
}

/// The conclusion against the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// Why a verdict is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VerdictReason {
    /// The number is missing.
    #[default]
    NotMeasured,
    /// It is a latency, and no limits for latencies are published.
    NotJudged,
    /// The limit is not known.
    LimitUnknown,
    /// As high a share of the limit as can be expected.
    WithinLimit,
    /// More than the limit allows: the limit is wrong.
    AboveLimit,
    /// Loads only: less than published systems reach.
    #[serde(rename = "below-80-percent")]
    Below80Percent,
    /// Loads only: far less than published systems reach.
    #[serde(rename = "below-70-percent")]
    Below70Percent,
    /// Loads and stores: less than published systems reach.
    #[serde(rename = "below-68-percent")]
    Below68Percent,
    /// Loads and stores: far less than published systems reach.
    #[serde(rename = "below-58-percent")]
    Below58Percent,
    /// The buffers may be in caches.
    NotMemory,
    /// It is not a bandwidth at full load.
    NotAllLoad,
    /// Each thread ran its own work, as given by the user.
    ThreadsAsGiven,
    /// Some cores of the nodes were idle.
    NotAllCores,
    /// Whether plain stores read first is not known.
    BusBytesUnknown,
    /// No figures are published for how much of such a limit CPUs reach.
    NoBandForThisMemory,
    /// A region of a scan that is slower than the others of its node.
    WeakRegion,
    /// A region of a scan that is as fast as the others of its node.
    AsOtherRegions,
    /// The data read was not the data written.
    MemoryCorrupted,
    /// It is low, but disturbances are in it.
    Unreliable,
}

/// Who states a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LimitSource {
    /// The user, by `--limit`.
    User,
    /// Firmware's list of memory devices (SMBIOS): populated channels x configured MT/s x 8 B.
    Smbios,
    /// The same, but channels could not be distinguished from slots, or a hypervisor made up the list.
    SmbiosUpperBound,
    /// Firmware's performance attributes (HMAT).
    Hmat,
    /// The other regions of the node, in a scan.
    RegionsOfNode,
}

/// A part of a machine's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitShare {
    /// Nodes that the limit is for.
    pub nodes: u32,
    /// Nodes in all.
    pub total: u32,
}
