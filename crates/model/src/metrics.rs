//! The metrics that are computed from counters: each by name, formula, unit and source.
//!
//! Formulas are over [`Role`]s. The tables of events say which event of a CPU has a role. If none has it, the metric is missing and
//! states that reason.

use serde::{Deserialize, Serialize};

/// What an event stands for in a formula. Its name there is the one in results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Core cycles while not halted.
    Cycles,
    /// Instructions retired.
    Instructions,
    /// Load instructions.
    Loads,
    /// Accesses of the first-level data cache, or loads where a core counts only those.
    L1Accesses,
    /// Those that missed it.
    L1Misses,
    /// Lines that came into the first-level cache.
    L1Replacements,
    /// Accesses of the second-level cache by demand data reads (or by all data accesses, as the event's name says).
    L2Accesses,
    /// Those that missed it.
    L2Misses,
    /// Accesses of the last-level cache.
    LlcAccesses,
    /// Those that missed it.
    LlcMisses,
    /// Loads that missed the second-level cache.
    LoadL2Misses,
    /// Loads that missed the last-level cache.
    LoadLlcMisses,
    /// First-level misses outstanding, summed over cycles.
    L1Outstanding,
    /// Cycles with at least one.
    L1OutstandingCycles,
    /// Demand data reads outstanding beyond the second-level cache, summed over cycles.
    DemandOutstanding,
    /// Cycles with at least one.
    DemandOutstandingCycles,
    /// Data reads outstanding beyond the second-level cache, prefetches included, summed over cycles.
    DataOutstanding,
    /// Cycles with at least one.
    DataOutstandingCycles,
    /// Demand data reads sent beyond the second-level cache.
    DemandRequests,
    /// Completed page walks of loads.
    TlbWalks,
    /// Page walks in progress, summed over cycles.
    TlbWalkCycles,
    /// Reads in flight, summed over cycles (Arm `MEM_ACCESS_RD_PERCYC`).
    ReadsOutstanding,
    /// Reads (Arm `MEM_ACCESS_RD`).
    Reads,
    /// Lines read from memory, by the memory controllers of the whole machine.
    DramReads,
    /// Lines written to memory, likewise.
    DramWrites,
    /// Lines read or written, where the machine does not tell them apart.
    DramTransfers,
    /// Data reads of all cores beyond the last-level cache, by the mesh of the whole machine.
    MeshReads,
    /// Those outstanding, summed over cycles of the mesh.
    MeshOutstanding,
    /// Cycles of the mesh.
    MeshCycles,
}

impl Role {
    /// Counted by the whole machine's memory controllers and not by the threads' cores.
    pub const fn system_wide(self) -> bool {
        use Role::{DramReads, DramTransfers, DramWrites, MeshCycles, MeshOutstanding, MeshReads};
        matches!(self, DramReads | DramWrites | DramTransfers | MeshReads | MeshOutstanding | MeshCycles)
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MetricUnit {
    /// A share of one.
    #[serde(rename = "share")]
    Share,
    /// A plain number.
    #[serde(rename = "number")]
    Number,
    /// Core cycles.
    #[serde(rename = "cycles")]
    Cycles,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// 10^9 bytes a second.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
}

/// What the formulas compute with.
pub struct Inputs<'a> {
    /// The count of a role, or why there is none.
    pub count: &'a dyn Fn(Role) -> Result<f64, String>,
    /// Seconds that the threads ran, added up; 0 if that is not known.
    pub thread_s: f64,
    /// Seconds during which system-wide events were counted.
    pub wall_s: f64,
    /// Hops or lines done.
    pub work: Option<f64>,
}

/// A metric in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// What people read in tables.
    pub title: &'static str,
    /// Its meaning, and how it can mislead.
    pub meaning: &'static str,
    /// Who defines it so.
    pub source: &'static str,
    /// Its unit.
    pub unit: MetricUnit,
    /// Needs work to be related to.
    pub per_work: bool,
    /// The roles it is computed from.
    pub roles: &'static [Role],
    /// How they are combined.
    operation: Operation,
}

/// How counts are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// A count per hop or line.
    PerWork(Role),
    /// One count over another.
    Ratio(Role, Role),
    /// A ratio in cycles, as nanoseconds: the third role is the cycles that give the frequency.
    RatioInNanoseconds(Role, Role, Role),
    /// The bytes of the lines counted.
    LineBytes(Role),
    /// The bytes of the lines counted, over time.
    LineRate(Role),
    /// The bytes of the lines that both count, over time.
    LineBandwidth(Role, Role),
}

impl Definition {
    /// The formula over roles; `work` stands for hops or lines.
    pub fn formula(&self) -> String {
        match self.operation {
            Operation::PerWork(a) => format!("{a} / work"),
            Operation::Ratio(a, b) => format!("{a} / {b}"),
            Operation::RatioInNanoseconds(a, b, cycles) => format!("{a} / {b} / ({cycles} / time)"),
            Operation::LineBytes(a) => format!("{a} * 64"),
            Operation::LineRate(a) => format!("{a} * 64 / time"),
            Operation::LineBandwidth(a, b) => format!("({a} + {b}) * 64 / time"),
        }
    }
}

/// The metrics, in the order of output: `name: title = formula, unit, source, meaning`.
macro_rules! metrics {
    ($($(#[$doc:meta])+ $metric:ident: $title:literal = $operation:ident($($role:ident),+), $unit:ident, $source:ident, $meaning:literal;)+) => {
        /// A metric derived from counters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case")]
        pub enum CounterMetric {
            $($(#[$doc])+ $metric,)+
        }

        impl CounterMetric {
            /// Every metric, in the order of output.
            pub const ALL: [Self; [$($title),+].len()] = [$(Self::$metric),+];

            /// Its meaning in words, and its formula.
            pub const fn definition(self) -> Definition {
                match self {
                    $(Self::$metric => Definition {
                        title: $title,
                        meaning: $meaning,
                        source: $source,
                        unit: MetricUnit::$unit,
                        per_work: matches!(Operation::$operation($(Role::$role),+), Operation::PerWork(_)),
                        roles: &[$(Role::$role),+],
                        operation: Operation::$operation($(Role::$role),+),
                    },)+
                }
            }
        }
    };
}

const WORK: &str = "counted work of the loop";
const TMA: &str = "Intel perfmon, TMA metrics";
const OWN: &str = "the metric above, converted";
const EVENTS: &str = "the vendors' lists of events";
const RECIPES: &str = "perf recipes on the web";
const AMD_FABRIC: &str = "AMD, nps1_die_to_dram in Linux tools/perf/pmu-events";
const ARM: &str = "Arm PMU architecture, MEM_ACCESS_RD_PERCYC";

metrics! {
    /// Instructions per cycle.
    Ipc: "IPC" = Ratio(Instructions, Cycles), Number, EVENTS, "instructions retired per cycle";
    /// Cycles per hop or line.
    CyclesPerWork: "cycles" = PerWork(Cycles), Number, WORK, "the loop's own cycles";
    /// Instructions per hop or line.
    InstructionsPerWork: "instructions" = PerWork(Instructions), Number, WORK, "the loop's own instructions";
    /// First-level misses per hop or line.
    L1MissesPerWork: "L1 misses" = PerWork(L1Misses), Number, WORK, "1 when each misses once";
    /// Second-level misses per hop or line.
    L2MissesPerWork: "L2 misses" = PerWork(L2Misses), Number, WORK, "1 when each misses once";
    /// Last-level misses per hop or line.
    LlcMissesPerWork: "LLC misses" = PerWork(LlcMisses), Number, WORK, "1 when each misses once";
    /// Page walks per hop or line.
    TlbWalksPerWork: "TLB walks" = PerWork(TlbWalks), Number, WORK, "1 when each needs a page walk";
    /// First-level misses per access of it.
    L1MissRate: "L1 miss rate" = Ratio(L1Misses, L1Accesses), Share, EVENTS, "per access of that level";
    /// Lines that came into the first level, per load.
    L1ReplacementRate: "L1 lines in per load" = Ratio(L1Replacements, Loads), Share, EVENTS,
        "includes loads whose line was already in flight (the event of L1 misses may omit them), stores and prefetches";
    /// Second-level misses per access of it.
    L2MissRate: "L2 miss rate" = Ratio(L2Misses, L2Accesses), Share, EVENTS, "per access of that level";
    /// Last-level misses per access of it.
    LlcMissRate: "LLC miss rate" = Ratio(LlcMisses, LlcAccesses), Share, EVENTS, "per access of that level";
    /// Second-level misses of loads per load.
    L2MissesPerLoad: "L2 misses per load" = Ratio(LoadL2Misses, Loads), Share, EVENTS,
        "per load instruction, as curves over working sets often are";
    /// Last-level misses of loads per load.
    LlcMissesPerLoad: "LLC misses per load" = Ratio(LoadLlcMisses, Loads), Share, EVENTS,
        "per load instruction, as curves over working sets often are";
    /// First-level misses in flight while there is any.
    L1Mlp: "MLP at L1" = Ratio(L1Outstanding, L1OutstandingCycles), Number, TMA, "first-level misses in flight while there is any";
    /// First-level misses in flight, over all cycles.
    L1MlpAverage: "MLP at L1, average" = Ratio(L1Outstanding, Cycles), Number, OWN, "the same over all cycles, idle ones included";
    /// Cycles that a first-level miss takes.
    L1MissLatency: "latency of L1 misses" = Ratio(L1Outstanding, L1Misses), Cycles, RECIPES,
        "mean cycles until the line is there; too long where the event of L1 misses leaves out loads whose line was on its way";
    /// Demand data reads in flight beyond the second level while there is any.
    OffcoreMlp: "MLP off-core" = Ratio(DemandOutstanding, DemandOutstandingCycles), Number, TMA,
        "demand data reads in flight beyond L2 while there is any; prefetches are not counted";
    /// The same over all cycles: what recipes on the web call MLP.
    OffcoreMlpAverage: "MLP off-core, average" = Ratio(DemandOutstanding, Cycles), Number, RECIPES,
        "the classic recipe: over all cycles, idle ones included";
    /// Data reads in flight beyond the second level, prefetches included, while there is any.
    OffcoreDataMlp: "MLP off-core, with prefetch" = Ratio(DataOutstanding, DataOutstandingCycles), Number, TMA,
        "data reads in flight beyond L2, L1 and L2 data prefetches included, while there is any";
    /// Cycles that a demand data read spends beyond the second level.
    MissLatency: "latency beyond L2" = Ratio(DemandOutstanding, DemandRequests), Cycles, TMA,
        "mean cycles of a demand data read beyond L2; both events count the same requests";
    /// The same in nanoseconds.
    MissLatencyNs: "latency beyond L2" = RatioInNanoseconds(DemandOutstanding, DemandRequests, Cycles), Nanoseconds, OWN,
        "the same in nanoseconds, by the frequency that the counters show";
    /// What recipes on the web call latency per miss; numerator and denominator count different requests.
    ClassicMissLatency: "classic latency per miss" = Ratio(DemandOutstanding, LlcMisses), Cycles, RECIPES,
        "the classic recipe, for comparison only: its numerator holds reads that hit the LLC, its denominator other requests too";
    /// Data reads of all cores in flight beyond the last level.
    MeshMlp: "MLP beyond the LLC, average" = Ratio(MeshOutstanding, MeshCycles), Number, TMA,
        "data reads in flight beyond the LLC, of all cores of the machine, over all cycles of the mesh";
    /// Nanoseconds of a data read beyond the last level.
    MeshLatencyNs: "latency of LLC misses" = RatioInNanoseconds(MeshOutstanding, MeshReads, MeshCycles), Nanoseconds, TMA,
        "mean time of a data read beyond the LLC, of all cores of the machine; both events count the same requests";
    /// Reads in flight per cycle (Arm).
    ReadMlp: "MLP of reads" = Ratio(ReadsOutstanding, Cycles), Number, ARM, "reads in flight, over all cycles (newer Armv9 cores)";
    /// Cycles that a read is in flight (Arm).
    ReadLatency: "latency of reads" = Ratio(ReadsOutstanding, Reads), Cycles, ARM,
        "mean cycles of a read, cache hits included (newer Armv9 cores)";
    /// Page walks per load.
    TlbWalksPerLoad: "TLB walks per load" = Ratio(TlbWalks, Loads), Share, EVENTS, "completed page walks";
    /// Cycles that a page walk takes.
    TlbWalkLatency: "latency of TLB walks" = Ratio(TlbWalkCycles, TlbWalks), Cycles, EVENTS, "mean cycles of a page walk";
    /// Bytes read from memory, machine-wide.
    DramReadBytes: "DRAM read" = LineBytes(DramReads), Bytes, EVENTS,
        "by the memory controllers, of the whole machine: other programs' traffic is in it";
    /// Bytes written to memory, machine-wide.
    DramWriteBytes: "DRAM written" = LineBytes(DramWrites), Bytes, EVENTS,
        "by the memory controllers, of the whole machine: other programs' traffic is in it";
    /// Both over time.
    DramBandwidth: "DRAM bandwidth" = LineBandwidth(DramReads, DramWrites), GigabytesPerSecond, EVENTS,
        "by the memory controllers, of the whole machine: other programs' traffic is in it";
    /// Bytes read or written, machine-wide, where the machine does not tell them apart.
    DramTransferBytes: "DRAM read or written" = LineBytes(DramTransfers), Bytes, AMD_FABRIC,
        "by the data fabric, of the whole machine: approximate, and right in mode NPS1 only";
    /// The same over time.
    DramTransferBandwidth: "DRAM transfers" = LineRate(DramTransfers), GigabytesPerSecond, AMD_FABRIC,
        "by the data fabric, of the whole machine: approximate, and right in mode NPS1 only";
}

/// Bytes of a line that a memory controller moves at a time (a CAS of 8 x 8 bytes).
const CAS_BYTES: f64 = 64.0;

impl CounterMetric {
    /// The value.
    ///
    /// # Errors
    /// In words, when an event is missing or the denominator is zero.
    pub fn evaluate(self, inputs: &Inputs<'_>) -> Result<f64, String> {
        let count = inputs.count;
        let ratio = |a: Role, b: Role| -> Result<f64, String> {
            let (a, below) = (count(a)?, count(b)?);
            if below > 0.0 { Ok(a / below) } else { Err(format!("{b} is 0")) }
        };
        let rate =
            |lines: f64| if inputs.wall_s > 0.0 { Ok(lines * CAS_BYTES / inputs.wall_s / 1e9) } else { Err("no time passed".to_owned()) };
        match self.definition().operation {
            Operation::PerWork(a) => {
                let work = inputs.work.filter(|w| *w > 0.0).ok_or("no work was counted")?;
                Ok(count(a)? / work)
            }
            Operation::Ratio(a, b) => ratio(a, b),
            Operation::RatioInNanoseconds(a, b, cycles) => {
                let latency = ratio(a, b)?;
                // Cycles run while the core is not halted; over the time that the threads ran they are the core's frequency.
                let ghz = count(cycles)? / if cycles.system_wide() { inputs.wall_s } else { inputs.thread_s } / 1e9;
                if ghz.is_finite() && ghz > 0.0 { Ok(latency / ghz) } else { Err("the frequency is not known".to_owned()) }
            }
            Operation::LineBytes(a) => Ok(count(a)? * CAS_BYTES),
            Operation::LineRate(a) => rate(count(a)?),
            Operation::LineBandwidth(a, b) => rate(count(a)? + count(b)?),
        }
    }
}

/// Lines in flight by Little's law: concurrency = throughput x latency. GB/s times ns are bytes. (J. Little, "A Proof for the Queuing
/// Formula: L = λW", 1961; J. McCalpin uses it so for memory.) Needs no counters.
pub fn lines_in_flight(bandwidth_gbs: f64, latency_ns: f64, line_bytes: f64) -> f64 {
    bandwidth_gbs * latency_ns / line_bytes
}

#[cfg(test)]
mod tests;
