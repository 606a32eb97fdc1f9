//! What came out: the result contract. `schema/result.schema.json` is generated from these types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counters::{Counters, ProgramCount};
use crate::directory::FileEvidence;
use crate::note::Note;
use crate::plan::{LineState, Plan};
use crate::spec::PageRequest;
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
    /// How the time was spent.
    pub timing: Timing,
    /// What a reader should know.
    pub notes: Vec<Note>,
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
    /// State of the line (cache-to-cache).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<LineState>,
    /// CPUs of the loaders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<IdSet>,
    /// Order of the chase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<ChaseOrder>,
    /// Mix of the loaders' traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<Mix>,
    /// Injection delay in core cycles between bursts of four lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_cycles: Option<u32>,
    /// This cell is measured a second time, at the end, as a control of drift.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
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
}

/// A cluster of samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Mode {
    /// Its median.
    pub value: f64,
    /// The share of samples in it, 0 to 1.
    pub share: f64,
}

/// Proof of what was measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Evidence {
    /// Threads that took part (probe and loaders).
    pub threads: u32,
    /// The kernel or protocol, such as `chase`, `load-avx2`, `store-then-chase`.
    pub kernel: String,
    /// What else was tried and how fast it was, in the result's unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels_tried: Vec<Trial>,
    /// Bytes of all buffers together.
    pub buffer: Bytes,
    /// Bytes of the chase's window; absent without a chase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
    /// Distance between chased lines; absent without a chase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride: Option<Bytes>,
    /// Fresh allocations that the samples come from.
    pub allocations: u32,
    /// The pages that backed the buffers, read back.
    pub pages: PageEvidence,
    /// The file that the buffers were; absent for memory without a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileEvidence>,
    /// Where the pages were, read back.
    pub placement: Placement,
    /// Time in which all threads ran, over the longest thread's time; `null` with one thread.
    pub coverage: Option<f64>,
    /// Slowest thread's bandwidth over the fastest's; `null` with one loader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// Each loader's own bandwidth in GB/s, by CPU.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gbs_by_cpu: BTreeMap<u32, f64>,
    /// What became of the checksums; absent where none were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<Integrity>,
    /// Bytes by kind; absent for latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficRates>,
    /// Evidence that prefetchers did not help; for chases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<PrefetchEvidence>,
    /// The check of the buffer's size against the measured plateau; for chases whose size was derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plateau: Option<Plateau>,
    /// What disturbed.
    pub noise: Noise,
}

/// Checksums of what loaders read, pass by pass over their buffers, against that of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Integrity {
    /// Passes compared.
    pub passes: u64,
    /// Passes that read something else.
    pub mismatches: u64,
}

/// A kernel tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Trial {
    /// Its name.
    pub kernel: String,
    /// How fast it was, in the result's unit.
    pub value: f64,
}

/// The pages that backed a buffer, as `/proc/self/smaps` tells after first touch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PageEvidence {
    /// What was asked.
    pub requested: PageRequest,
    /// The kind that backs most of the buffer; `null` when it could not be read back.
    pub obtained: Option<PageKind>,
    /// The share of the buffer that `obtained` backs, 0 to 1.
    pub share: Option<f64>,
    /// Size of those pages.
    pub page: Option<Bytes>,
    /// Why the kind is not known or not what was hoped for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A kind of page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PageKind {
    /// The kernel's base page.
    Base,
    /// Transparent huge page.
    Thp,
    /// Page of a huge-page pool.
    Pool,
    /// Page of a file in DRAM: page cache or tmpfs.
    File,
    /// Page of a device mapped by DAX.
    Dax,
}

/// Where a buffer's pages were.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Placement {
    /// The conclusion.
    pub status: PlacementStatus,
    /// How the pages were put there: `mbind`; `first-touch` where policies are refused or not heeded; `device` for DAX, where the file
    /// system chooses.
    pub method: String,
    /// How it was read back: `move_pages`, `numa_maps`; `device` for DAX, whose pages neither shows: the device's node as the kernel states
    /// it; `only-node` where there is no other; `null` when none of them may be used.
    pub source: Option<String>,
    /// Pages checked, by node.
    pub pages_by_node: BTreeMap<u32, u64>,
    /// Why it is not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether pages were where they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementStatus {
    /// Every page checked was on the node asked for.
    Verified,
    /// Some were not.
    Wrong,
    /// It could not be read back.
    #[default]
    Unverified,
}

/// Bytes a second by kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrafficRates {
    /// What the program loaded.
    pub app_read_gbs: f64,
    /// What the program stored.
    pub app_write_gbs: f64,
    /// Estimate of what crossed the memory bus; `null` when it is not known whether plain stores read first.
    pub bus_estimate_gbs: Option<f64>,
    /// Whether plain stores read the line first.
    pub rfo: Rfo,
}

/// Whether prefetchers helped a chase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PrefetchEvidence {
    /// The same buffer chased in ascending order.
    pub sequential_ns: f64,
    /// The random chase's latency over the sequential one's. Far above 1: prefetchers are on, and the random order defeats them. About 1:
    /// they are off, or this machine has none.
    pub random_over_sequential: f64,
}

/// Whether the buffer was large enough to be memory and not cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plateau {
    /// Latency over half of the buffer.
    pub half_ns: f64,
    /// Latency over all of it.
    pub whole_ns: f64,
    /// Whether the two agree: the buffer lies on the plateau.
    pub reached: bool,
}

/// What disturbed a measurement: differences of counters over its time. `null`: this kernel does not tell.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Noise {
    /// Time that the hypervisor gave to others, of all CPU time, 0 to 1.
    pub steal: Option<f64>,
    /// Other processes' share of the CPUs measured, 0 to 1.
    pub others: Option<f64>,
    /// Times that the kernel took a measuring thread off its CPU.
    pub involuntary_switches: Option<u64>,
    /// Share of the measuring threads' time in which they were ready to run and did not, 0 to 1.
    pub waited: Option<f64>,
    /// Measuring threads found on another CPU than planned.
    pub migrations: Option<u64>,
    /// Core frequency of the first CPU before, in GHz.
    pub ghz_before: Option<f64>,
    /// And after.
    pub ghz_after: Option<f64>,
    /// Pages that the kernel migrated between nodes, system-wide.
    pub pages_migrated: Option<u64>,
    /// Hinting faults of NUMA balancing, system-wide.
    pub numa_hint_faults: Option<u64>,
    /// Huge pages that khugepaged assembled, system-wide.
    pub thp_collapsed: Option<u64>,
    /// Time in which some task waited for a CPU (PSI), of the measurement's time, 0 to 1.
    pub cpu_pressure: Option<f64>,
    /// The same for memory.
    pub memory_pressure: Option<f64>,
    /// Corrected and uncorrected memory errors reported (EDAC).
    pub memory_errors: Option<u64>,
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
    /// The same cell measured again at the end differs by more than both intervals allow.
    Drift,
    /// Memory errors were reported meanwhile.
    MemoryErrors,
    /// The kernel migrated pages or NUMA balancing was at work.
    PagesMigrated,
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
