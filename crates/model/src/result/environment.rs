//! The state of the machine, as far as it affects the numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::note::Note;
use crate::prefetchers::PrefetchState;
use crate::result::integrity::DimmErrors;
use crate::traffic::{Mix, Rfo};
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
    /// `/sys/kernel/mm/numa/demotion_enabled`: whether cold pages move to a slower tier of memory; absent where the kernel does not state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demotion: Option<bool>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub thp: Option<String>,
    /// `/sys/kernel/mm/transparent_hugepage/defrag`.
    pub thp_defrag: Option<String>,
    /// Whether what started this process has disabled transparent huge pages for it (`PR_SET_THP_DISABLE`); absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thp_disabled: Option<bool>,
    /// Frequency governors in use.
    pub governors: Vec<String>,
    /// Energy/performance preferences in use.
    pub energy_preferences: Vec<String>,
    /// Whether turbo or boost is allowed; `null` if the kernel does not state it.
    pub turbo: Option<bool>,
    /// Limits on this machine, why they apply, and how to lift them.
    pub limits: Vec<Note>,
    /// Whether plain stores of whole lines read them first, for each class of loaders (mix, kernel, CPUs, nodes) for which it was measured;
    /// absent if no result depended on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stores_read: Vec<RfoEvidence>,
    /// State of the hardware prefetchers, if it was asked for or changed. It is the state during the run or, if the run measured several
    /// states, the state before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<PrefetchState>,
    /// The other processes that used most CPU time during the run, the busiest first. Absent if none used 5 % of a CPU, and with
    /// `--no-host-identity`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbing_processes: Vec<DisturbingProcess>,
    /// What memory controllers counted from the beginning of the run to its end; absent where no driver reports it (EDAC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_errors: Option<MemoryErrors>,
    /// How often heat throttled cores and packages during the run, as the kernel counts it; absent where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thermal_throttles: Option<u64>,
}

/// Memory errors that the kernel reported (EDAC).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryErrors {
    /// Corrected ones.
    pub corrected: u64,
    /// Uncorrected ones.
    pub uncorrected: u64,
    /// DIMMs that counted some of them; empty if none did, or the driver does not tell them apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dimms: Vec<DimmErrors>,
}

/// Other processes of one name, and what they used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DisturbingProcess {
    /// The name of the program, as the kernel shows it.
    pub name: String,
    /// CPU time during the run over its length, in percent of one CPU.
    pub cpu_percent: f64,
}

/// Whether the plain stores of one kernel, by these CPUs to these nodes, read the line first (read for ownership). It is found by comparison
/// with stores that must read and with stores that do not, which load as much beside. It holds for as many CPUs of the same kind on the same
/// kind of memory, at full speed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RfoEvidence {
    /// The conclusion.
    pub rfo: Rfo,
    /// Why.
    pub reason: RfoReason,
    /// The mix of stores, and of loads next to them.
    pub mix: Mix,
    /// The compared kernels: the measured one, one for parts of lines, a non-temporal one. Only the measured one if no others exist.
    pub kernels: Vec<String>,
    /// CPUs that stored.
    pub cpus: IdSet,
    /// Nodes of the memory.
    pub nodes: IdSet,
    /// The measured kernel's lines, in GB/s; `null` if it was not measured.
    pub whole_gbs: Option<f64>,
    /// Lines that were only partly loaded or stored, counted as whole lines, in GB/s.
    pub part_gbs: Option<f64>,
    /// Whole lines with non-temporal stores, in GB/s.
    pub non_temporal_gbs: Option<f64>,
}

/// Why it is known whether plain stores read first, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RfoReason {
    /// This CPU has no stores of parts of lines, or no non-temporal ones, with the same loads and in the same order, to compare with.
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
    /// Loaders that wait keep memory less busy than those that were compared, which did not read.
    Delayed,
    /// Loaders do different things, or use different kernels.
    DifferentTraffic,
    /// The memory is that of a file.
    Files,
    /// The buffers may stay in caches.
    Caches,
    /// A part of each line is stored, because that was asked for or because the machine's lines are longer. The core reads the rest of it for
    /// plain stores; whether memory does for non-temporal ones is not known.
    PartOfLine,
    /// A string instruction chooses its stores itself.
    StringInstruction,
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
