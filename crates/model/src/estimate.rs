//! A number with its spread.

use serde::{Deserialize, Serialize};

use crate::experiment::PrefetchRequest;
use crate::memory::{MemoryError, MemoryErrorKind};
use crate::traffic::Mix;
use crate::units::{Bytes, IdSet};
use crate::words::Problem;

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
    /// Lower end of the 95 % interval of the median. With two to five groups of samples it may lie below the smallest sample.
    pub ci95_low: Option<f64>,
    /// Upper end. With two to five groups it may lie above the largest sample.
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

/// Whether a latency in nanoseconds or a bandwidth in GB/s can have this value. Ratios of two such values, and their sums, are finite numbers.
pub fn is_possible(value: f64) -> bool {
    value == 0.0 || (1e-9..=1e12).contains(&value.abs())
}

/// The same for an end of its interval, and the smallest and the largest of its samples.
pub fn is_possible_end(value: f64) -> bool {
    value.abs() <= 1e12
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

/// How a thread that should have measured failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ThreadFailure {
    /// It could not be started.
    NotStarted,
    /// It could not be bound to its CPU.
    NotBound,
    /// It did not finish in time.
    TimedOut,
    /// It ended unexpectedly.
    Ended,
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
    /// Its threads were off their CPUs for so much of the time that its samples show that, and not memory.
    CpuTakenAway {
        /// How much of the time a thread was off its CPU, in percent; the largest of the threads and of the sources.
        percent: u32,
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
        /// What kind of failure it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<MemoryErrorKind>,
        /// The node whose memory was wanted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<u32>,
        /// How much was wanted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<Bytes>,
        /// How much was needed, why it was refused, and what to do.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        detail: Problem,
    },
    /// A thread could not be started, or was lost.
    NoThread {
        /// Its CPU.
        cpu: u32,
        /// What kind of failure it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<ThreadFailure>,
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
    /// Memory failed while it was measured: its file was truncated, its device failed, or the hardware reported an error.
    MemoryFailed {
        /// The CPU that used it.
        cpu: u32,
        /// The failure and its place.
        fault: MemoryFault,
    },
    /// Memory did not keep what was written to it.
    Corrupted {
        /// The CPU that read it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpu: Option<u32>,
        /// What was seen.
        detail: String,
    },
    /// An error of this program.
    Internal {
        /// What.
        detail: String,
    },
}

impl From<MemoryError> for NotMeasured {
    fn from(error: MemoryError) -> Self {
        if error.kind == MemoryErrorKind::Interrupted {
            return Self::Interrupted;
        }
        Self::NoMemory { failure: Some(error.kind), node: Some(error.node), bytes: error.bytes, detail: error.into() }
    }
}

impl NotMeasured {
    /// Whether others had the CPUs: it may be measured when they are idle.
    pub const fn is_want_of_cpu_time(&self) -> bool {
        matches!(self, Self::NoSamples | Self::NoCpuTime { .. } | Self::CpuTakenAway { .. } | Self::NeverTogether { .. })
    }

    /// Whether no later cell may use the memory of this one: what it holds is not what was written, or a thread that was given up may still
    /// write there.
    pub const fn damaged(&self) -> bool {
        self.is_of_memory() || matches!(self, Self::NoThread { failure: Some(ThreadFailure::TimedOut | ThreadFailure::Ended), .. })
    }

    /// Whether memory is not what it was.
    pub const fn is_of_memory(&self) -> bool {
        matches!(self, Self::Corrupted { .. } | Self::MemoryFailed { .. })
    }

    /// Whether something is wrong with the memory itself (its file or device, or a hardware error), and not only with how much of it is free.
    pub const fn is_fault(&self) -> bool {
        self.is_of_memory() || matches!(self, Self::NoMemory { failure: Some(MemoryErrorKind::File | MemoryErrorKind::System), .. })
    }

    /// Whether memory lost what was written to it: an incident of the hardware.
    pub fn is_corruption(&self) -> bool {
        matches!(self, Self::Corrupted { .. })
            || matches!(self, Self::MemoryFailed { fault, .. } if fault.kind == MemoryFaultKind::Poisoned)
    }
}

/// A failure of memory that was in use, and its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryFault {
    /// What happened.
    pub kind: MemoryFaultKind,
    /// The first page that it happened to, as a distance in bytes from the start of the buffer, which is that of its file.
    pub offset: u64,
    /// The physical address of that page, for hardware errors; `None` where the system does not tell. Linux tells processes with
    /// CAP_SYS_ADMIN, and not for pages of pools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical: Option<u64>,
    /// The directory of the buffer's file; `None` for memory without a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

/// What happened to memory that was in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MemoryFaultKind {
    /// The page is not there any more (SIGBUS with `BUS_ADRERR`, or `EXCEPTION_IN_PAGE_ERROR` without a file), and nothing tells why.
    Gone,
    /// The file ends before the page: another process truncated it. Windows lets nobody truncate a file that is mapped.
    Truncated,
    /// The file still has the page, and its file system or device did not provide it.
    Device,
    /// The hardware reported an error that it could not correct (SIGBUS with `BUS_MCEERR_AR` or `BUS_MCEERR_AO`,
    /// or `STATUS_HARDWARE_MEMORY_ERROR`).
    Poisoned,
}
