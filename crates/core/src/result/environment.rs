//! The state of the machine, as far as it affects the numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::note::Note;
use crate::prefetchers::PrefetchState;
use crate::traffic::Rfo;
use crate::units::IdSet;

/// The state of the machine, as far as it affects the numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Environment {
    /// Effective user is root.
    pub root: bool,
    /// The effective capabilities that matter here, such as `CAP_SYS_NICE`.
    pub capabilities: Vec<String>,
    /// The clock that was used.
    pub clock: Option<ClockReport>,
    /// Core frequency in GHz, measured by a chain of dependent adds, by CPU.
    pub core_ghz: BTreeMap<u32, f64>,
    /// The same while all cores worked at once, the highest of two readings: what else ran there can only have slowed a core down. For
    /// health checks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub all_cores_ghz: BTreeMap<u32, f64>,
    /// `/proc/sys/kernel/numa_balancing`; `null` when the kernel has none.
    pub numa_balancing: Option<bool>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub thp: Option<String>,
    /// `/sys/kernel/mm/transparent_hugepage/defrag`.
    pub thp_defrag: Option<String>,
    /// Frequency governors in use.
    pub governors: Vec<String>,
    /// Energy/performance preferences in use.
    pub energy_preferences: Vec<String>,
    /// Whether turbo or boost is allowed; `null` if the kernel does not state it.
    pub turbo: Option<bool>,
    /// What is limited on this machine, why, and how to lift the limit.
    pub limits: Vec<Note>,
    /// Whether plain stores of whole lines read them first, as a calibration found; absent if no result depended on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rfo: Option<RfoEvidence>,
    /// State of the hardware prefetchers, if it was asked for or changed. It is the state during the run or, if the run measured several
    /// states, the state before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<PrefetchState>,
}

/// Whether plain stores of whole lines read the line first (read for ownership). It is found by comparison with stores that must read and
/// with stores that do not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RfoEvidence {
    /// The conclusion.
    pub rfo: Rfo,
    /// Why.
    pub reason: RfoReason,
    /// Kernels compared: whole lines, parts of lines, non-temporal.
    pub kernels: Vec<String>,
    /// CPUs that stored.
    pub cpus: Option<IdSet>,
    /// Whole lines stored, in GB/s; `null` if it was not measured.
    pub whole_gbs: Option<f64>,
    /// Lines of which a part was stored, in GB/s of whole lines.
    pub part_gbs: Option<f64>,
    /// Whole lines stored by non-temporal stores, in GB/s.
    pub non_temporal_gbs: Option<f64>,
}

/// Why the calibration came to its conclusion about plain stores, or to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RfoReason {
    /// This CPU lacks one of the kinds of stores to compare.
    #[default]
    NoKernels,
    /// The CPUs got too little time.
    TooLittleTime,
    /// The rounds disagree, as on a busy machine.
    RoundsDisagree,
    /// Non-temporal stores are hardly faster than stores of parts of lines: something other than memory limits them.
    NotMemoryBound,
    /// Stores of whole lines are as slow as those of parts, which must read.
    AsSlowAsParts,
    /// Stores of whole lines are as fast as non-temporal ones, which do not read.
    AsFastAsNonTemporal,
    /// Stores of whole lines are neither as slow as the one nor as fast as the other.
    Between,
}

/// The clock that was used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockReport {
    /// `tsc`, `cntvct` or `monotonic-raw`.
    pub source: String,
    /// Ticks a second.
    pub hz: f64,
    /// Uncertainty of `hz`, in parts per million.
    pub error_ppm: f64,
    /// The smallest step seen between two readings, in nanoseconds.
    pub resolution_ns: f64,
    /// The cost of one reading, in nanoseconds.
    pub overhead_ns: f64,
    /// Why a better clock was not used, when one was not.
    pub reason: Option<String>,
}
