//! What came out: the result contract. `schema/result.schema.json` is generated from these types.

mod evidence;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use evidence::*;

use crate::counters::{Counters, ProgramCount};
pub use crate::distribution::{Bucket, Distribution, Percentile};
use crate::findings::Health;
use crate::note::Note;
use crate::plan::{LineState, Plan};
use crate::prefetchers::{PrefetchRequest, PrefetchState};
use crate::topology::Machine;
use crate::traffic::{Mix, Rfo};
use crate::units::{Bytes, IdSet};

/// The version of the contract; raised when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// One run of the program: everything that every output format is made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Report {
    /// [`SCHEMA_VERSION`] of the program that wrote it.
    pub schema_version: u32,
    /// The program.
    pub tool: Tool,
    /// Its command line.
    pub argv: Vec<String>,
    /// When it started.
    pub started: Moment,
    /// When it ended.
    pub ended: Moment,
    /// Whether everything that was planned was measured.
    pub complete: bool,
    /// Why not, such as `interrupted by SIGINT`.
    pub incomplete_reason: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// The state it was in.
    pub environment: Environment,
    /// What was to be done; `null` for `info`.
    pub plan: Option<Plan>,
    /// What was measured.
    pub results: Vec<Measurement>,
    /// A program that was counted; absent in every other run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<ProgramCount>>,
    /// Summaries of loaded-latency curves, whose points are in `results`.
    pub curves: Vec<CurveSummary>,
    /// What curves over the working set say of the caches; their points are in `results`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<crate::levels::LevelSummary>,
    /// How the time was spent.
    pub timing: Timing,
    /// What a reader should know.
    pub notes: Vec<Note>,
    /// The verdict of a health check; absent for other commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
}

/// The program that measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tool {
    /// `memgauge`.
    pub name: String,
    /// Release.
    pub version: String,
    /// Commit that it was built from, when the build knew it.
    pub commit: Option<String>,
}

/// A point in time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Moment {
    /// UTC, RFC 3339; a label only.
    pub utc: String,
    /// `CLOCK_MONOTONIC_RAW` in nanoseconds.
    pub monotonic_ns: u64,
}

/// Seconds spent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Timing {
    /// Allocating, first touch, building chains, choosing kernels.
    pub setup_s: f64,
    /// Measuring.
    pub measuring_s: f64,
    /// All.
    pub total_s: f64,
    /// What most of the set-up was spent on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<SetUp>,
}

/// Parts of the set-up, in seconds. What remains is waking threads, watching the machine and computing intervals.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SetUp {
    /// Mapping buffers, first touch, reading back their pages and nodes.
    pub buffers_s: f64,
    /// Laying out chases and writing them into memory.
    pub chains_s: f64,
    /// Waiting for the core's frequency to settle.
    pub warm_up_s: f64,
    /// Bursts that only decide how to measure: which kernel is fastest, whether stores read first.
    pub trials_s: f64,
}

/// The state of the machine that bears on the numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Environment {
    /// Effective user is root.
    pub root: bool,
    /// Effective capabilities that matter here and are held, such as `CAP_SYS_NICE`.
    pub capabilities: Vec<String>,
    /// The clock that timed.
    pub clock: Option<ClockReport>,
    /// Core frequency in GHz, measured by a chain of dependent adds, by CPU.
    pub core_ghz: BTreeMap<u32, f64>,
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
    /// Whether turbo or boost is allowed; `null` when the kernel does not say.
    pub turbo: Option<bool>,
    /// What is limited here, why, and how to lift it.
    pub limits: Vec<Note>,
    /// Whether plain stores of whole lines read them first, as measured along the way; absent where nothing depended on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rfo: Option<RfoEvidence>,
    /// State of the hardware prefetchers, where it was asked for or changed; during the run, or as found where the run measured several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<PrefetchState>,
}

/// Whether plain stores of whole lines read the line first (read for ownership), by comparison with stores that must read and stores that
/// do not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RfoEvidence {
    /// The conclusion.
    pub rfo: Rfo,
    /// Why.
    pub reason: String,
    /// Kernels compared: whole lines, parts of lines, non-temporal.
    pub kernels: Vec<String>,
    /// CPUs that stored.
    pub cpus: Option<IdSet>,
    /// Lines stored whole, in GB/s of lines; `null` when it was not measured.
    pub whole_gbs: Option<f64>,
    /// Lines of which a part was stored, in GB/s of lines.
    pub part_gbs: Option<f64>,
    /// Lines stored by non-temporal stores, in GB/s.
    pub non_temporal_gbs: Option<f64>,
}

impl Default for RfoEvidence {
    fn default() -> Self {
        Self {
            rfo: Rfo::Unknown,
            reason: String::new(),
            kernels: Vec::new(),
            cpus: None,
            whole_gbs: None,
            part_gbs: None,
            non_temporal_gbs: None,
        }
    }
}

/// The clock that timed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// A chase alone.
    IdleLatency,
    /// Loaders alone.
    Bandwidth,
    /// A chase beside loaders.
    LoadedLatency,
    /// One cache to another.
    CacheToCache,
    /// Bandwidth of each region of a node's memory.
    MemoryScan,
}

/// What a table of results is; tells tables of the same experiment apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Table {
    /// By node of the CPU and node of the memory.
    NodeMatrix,
    /// By CPU.
    PerCpu,
    /// By mix of traffic.
    PerMix,
    /// By number of CPUs.
    Ramp,
    /// By injection delay.
    Curve,
    /// By pair of CPUs.
    CpuPairs,
    /// By mix, number of CPUs and injection delay, to find the highest.
    Search,
    /// By region of a node's memory.
    Regions,
    /// By last-level cache: the CPUs behind each.
    CacheDomains,
    /// By state of the prefetchers and node of the memory.
    Prefetch,
    /// By working set: how much memory is used again and again.
    WorkingSet,
    /// One loop of `memgauge stream` or `memgauge chase`.
    Loop,
}

/// Where in its table a result stands; what does not apply is absent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Coordinates {
    /// The table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<Table>,
    /// Node of the CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_node: Option<u32>,
    /// Node of the memory; absent when each CPU used its own node's, and when a device with DAX does not state its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_node: Option<u32>,
    /// Directory whose files were the memory; absent for memory without a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_dir: Option<String>,
    /// CPU of the probe, or the CPU that reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// CPU that holds the line (cache-to-cache).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_cpu: Option<u32>,
    /// Node of the CPU that holds the line, where the table is by node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_node: Option<u32>,
    /// CPU that loads the line between holder and reader, so that it is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharer_cpu: Option<u32>,
    /// State of the line (cache-to-cache).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<LineState>,
    /// CPUs of the loaders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<IdSet>,
    /// Nodes of the loaders' memory, where they were named; absent when it is where the chase's is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_nodes: Option<IdSet>,
    /// Order of the chase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<ChaseOrder>,
    /// Mix of the loaders' traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<Mix>,
    /// Injection delay in core cycles between bursts of four lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_cycles: Option<u32>,
    /// Number of the region, in the order in which regions were taken (memory scan).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<u32>,
    /// What the registers of all CPUs were set to, where prefetchers are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<PrefetchRequest>,
    /// This cell is measured a second time, at the end, as a control of drift.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
    /// Bytes that each CPU uses again and again (sweep, stream, chase).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_set: Option<Bytes>,
}

/// Order of a chase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChaseOrder {
    /// Random in a window, windows in random order: translation mostly hidden.
    WindowLocal,
    /// Random over the whole buffer: translation included.
    FullRandom,
    /// Ascending: what prefetchers make of it.
    Sequential,
}

/// The quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Nanoseconds per dependent load, or per line handed over.
    Latency,
    /// Application bytes (read plus written) per second.
    Bandwidth,
}

/// The unit of `value`, `min`, `max`, `mad` and the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// 10^9 bytes a second.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
}

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

/// A median with its interval.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Estimate {
    /// The median; `null` when it was not measured.
    pub value: Option<f64>,
    /// Why `value` is `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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

/// What a loaded-latency curve says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CurveSummary {
    /// Coordinates that its points share.
    pub at: Coordinates,
    /// Latency at the lowest load.
    pub unloaded_ns: Option<f64>,
    /// The knee: the last point before latency grows much faster than bandwidth.
    pub knee: Option<CurvePoint>,
    /// Latency at the highest load.
    pub saturated_ns: Option<f64>,
    /// Highest bandwidth, probe included.
    pub peak_gbs: Option<f64>,
    /// Whether bandwidth fell while load and latency still grew.
    pub over_saturated: bool,
    /// Latency at shares of the peak, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<CurveShare>,
}

/// The point of a curve that is closest to a share of its peak. It is among the results, with its evidence, at its delay.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CurveShare {
    /// What was looked for, in percent of the peak.
    pub percent: u32,
    /// What was reached, as a share of the peak, 0 to 1; `null` when nothing was measured.
    pub reached: Option<f64>,
    /// The delay that reached it.
    pub delay_cycles: Option<u32>,
    /// Latency there, in ns.
    pub latency: Estimate,
    /// Bandwidth there, in GB/s, probe included.
    pub bandwidth: Estimate,
    /// Why it was not reached; absent when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CurvePoint {
    /// Injection delay in core cycles between bursts of four lines.
    pub delay_cycles: u32,
    /// Bandwidth, probe included.
    pub bandwidth_gbs: f64,
    /// Latency.
    pub latency_ns: f64,
}
