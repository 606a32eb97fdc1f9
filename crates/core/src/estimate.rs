//! A number with its spread.

use serde::{Deserialize, Serialize};

use crate::experiment::PrefetchRequest;
use crate::traffic::Mix;
use crate::units::IdSet;

/// A median with its interval.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The median; `null` if it was not measured.
    pub value: Option<f64>,
    /// Why `value` is `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<NotMeasured>,
    /// How many samples.
    pub n: u32,
    /// The smallest.
    pub min: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// Median of the absolute deviations from the median.
    pub mad: Option<f64>,
    /// Lower end of the non-parametric 95 % interval of the median.
    pub ci95_low: Option<f64>,
    /// Upper end.
    pub ci95_high: Option<f64>,
    /// Whether the interval became as narrow as asked for within the budget.
    pub converged: bool,
    /// The clusters of the samples, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Mode>,
    /// The share of samples whose modified z-score is above 3.5, 0 to 1; absent if there are none. Outliers count like all other samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outliers: Option<f64>,
    /// The drift of the samples over the measurement, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
}

/// A trend of the samples over the measurement: significant, and at least 2 % of the median.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drift {
    /// From the first burst to the last, relative to the median: 0.03 is a rise by 3 %.
    pub change: f64,
    /// Kendall's rank correlation of the bursts' medians with time, -1 to 1.
    pub tau: f64,
}

/// A cluster of samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mode {
    /// Its median.
    pub value: f64,
    /// The share of samples in it, 0 to 1.
    pub share: f64,
}

/// Why a number was not measured. `detail` is the message of the operating system or of a library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum NotMeasured {
    /// The run was interrupted before this was measured.
    Interrupted,
    /// The time given to the run was over, or this one's share of it, before this was measured.
    OutOfTime,
    /// Its threads got no time on their CPUs.
    NoSamples,
    /// A CPU got no time in many bursts.
    NoCpuTime {
        /// The CPU.
        cpu: u32,
    },
    /// CPUs never ran at the same time.
    NeverTogether {
        /// The CPUs.
        cpus: IdSet,
    },
    /// CPUs went offline, or left this process's cpuset or affinity.
    CpusLost {
        /// The CPUs.
        cpus: IdSet,
    },
    /// Memory nodes went offline, or left this process's cpuset.
    NodesLost {
        /// The nodes.
        nodes: IdSet,
    },
    /// Memory could not be allocated.
    NoMemory {
        /// How much was needed, why it was refused, and what to do.
        detail: String,
    },
    /// A thread could not be started, or was lost.
    NoThread {
        /// Its CPU.
        cpu: u32,
        /// What happened.
        detail: String,
    },
    /// No kernel that this CPU runs produces the mix.
    NoKernel {
        /// The mix.
        mix: Mix,
    },
    /// Memory of a node was not scanned: no region of it could be taken, or an error in another region ended the scan before.
    NoRegion {
        /// The node.
        node: u32,
        /// Why.
        detail: String,
    },
    /// The start signal could not be waited for.
    NoStartSignal {
        /// Why.
        detail: String,
    },
    /// Prefetchers could not be switched to the state that the cell needs.
    PrefetchersNotSet {
        /// That state.
        state: PrefetchRequest,
        /// Why.
        detail: String,
    },
    /// An event could not be counted.
    NotCounted {
        /// Why.
        detail: String,
    },
    /// Memory did not keep what was written to it, or reported an error.
    Corrupted {
        /// What was seen.
        detail: String,
    },
    /// An error of this program.
    Internal {
        /// What.
        detail: String,
    },
}
