//! A number with its spread.

use serde::{Deserialize, Serialize};

use crate::experiment::PrefetchRequest;
use crate::traffic::Mix;
use crate::units::IdSet;

/// A median with its interval.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Estimate {
    /// The median; `null` when it was not measured.
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
    /// Whether the interval reached the width asked for within the budget.
    pub converged: bool,
    /// The clusters that the samples fall into, when they fall into several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Mode>,
    /// The share of samples further from the median than 3.5 times the spread (modified z-score), 0 to 1; absent when there are none. They
    /// count like all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outliers: Option<f64>,
    /// How the samples went up or down while they were taken, where they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
}

/// Samples that went up or down while they were taken: more than chance would, and by 2 % or more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Drift {
    /// From the first burst to the last, relative to the median: 0.03 is a rise by 3 %.
    pub change: f64,
    /// Kendall's rank correlation of the bursts' medians with time, -1 to 1.
    pub tau: f64,
}

/// A cluster of samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Mode {
    /// Its median.
    pub value: f64,
    /// The share of samples in it, 0 to 1.
    pub share: f64,
}

/// Why a number was not measured. `detail` is what the operating system or a library said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum NotMeasured {
    /// The run was interrupted before its turn.
    Interrupted,
    /// The time for the whole run was over before its turn.
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
    /// There was no memory for it.
    NoMemory {
        /// What was wanted, why it was refused, and the way out.
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
    /// No region of a node's memory could be taken, or none was left to read.
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
    /// Prefetchers could not be switched as the cell wants them.
    PrefetchersNotSet {
        /// How they were to be.
        state: PrefetchRequest,
        /// Why.
        detail: String,
    },
    /// An event could not be counted.
    NotCounted {
        /// Why.
        detail: String,
    },
    /// Something that should not happen.
    Internal {
        /// What.
        detail: String,
    },
}
