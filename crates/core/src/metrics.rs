//! What counters mean: each metric by name, formula, unit and source.
//!
//! Formulas are over [`Role`]s. Which event of a CPU has a role is the business of the tables of events; where none has it the metric is
//! missing, with that reason.

use serde::{Deserialize, Serialize};

/// What an event stands for in a formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
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
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 24] = [
        Self::Cycles,
        Self::Instructions,
        Self::Loads,
        Self::L1Accesses,
        Self::L1Misses,
        Self::L2Accesses,
        Self::L2Misses,
        Self::LlcAccesses,
        Self::LlcMisses,
        Self::LoadL2Misses,
        Self::LoadLlcMisses,
        Self::L1Outstanding,
        Self::L1OutstandingCycles,
        Self::DemandOutstanding,
        Self::DemandOutstandingCycles,
        Self::DataOutstanding,
        Self::DataOutstandingCycles,
        Self::DemandRequests,
        Self::TlbWalks,
        Self::TlbWalkCycles,
        Self::ReadsOutstanding,
        Self::Reads,
        Self::DramReads,
        Self::DramWrites,
    ];

    /// The name used in formulas and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::Loads => "loads",
            Self::L1Accesses => "l1-accesses",
            Self::L1Misses => "l1-misses",
            Self::L2Accesses => "l2-accesses",
            Self::L2Misses => "l2-misses",
            Self::LlcAccesses => "llc-accesses",
            Self::LlcMisses => "llc-misses",
            Self::LoadL2Misses => "load-l2-misses",
            Self::LoadLlcMisses => "load-llc-misses",
            Self::L1Outstanding => "l1-outstanding",
            Self::L1OutstandingCycles => "l1-outstanding-cycles",
            Self::DemandOutstanding => "demand-outstanding",
            Self::DemandOutstandingCycles => "demand-outstanding-cycles",
            Self::DataOutstanding => "data-outstanding",
            Self::DataOutstandingCycles => "data-outstanding-cycles",
            Self::DemandRequests => "demand-requests",
            Self::TlbWalks => "tlb-walks",
            Self::TlbWalkCycles => "tlb-walk-cycles",
            Self::ReadsOutstanding => "reads-outstanding",
            Self::Reads => "reads",
            Self::DramReads => "dram-reads",
            Self::DramWrites => "dram-writes",
        }
    }

    /// Counted by the whole machine's memory controllers and not by the threads' cores.
    pub const fn system_wide(self) -> bool {
        matches!(self, Self::DramReads | Self::DramWrites)
    }
}

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// A metric derived from counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CounterMetric {
    /// Instructions per cycle.
    Ipc,
    /// Cycles per hop or line.
    CyclesPerWork,
    /// Instructions per hop or line.
    InstructionsPerWork,
    /// First-level misses per hop or line.
    L1MissesPerWork,
    /// Second-level misses per hop or line.
    L2MissesPerWork,
    /// Last-level misses per hop or line.
    LlcMissesPerWork,
    /// Page walks per hop or line.
    TlbWalksPerWork,
    /// First-level misses per access of it.
    L1MissRate,
    /// Second-level misses per access of it.
    L2MissRate,
    /// Last-level misses per access of it.
    LlcMissRate,
    /// Second-level misses of loads per load.
    L2MissesPerLoad,
    /// Last-level misses of loads per load.
    LlcMissesPerLoad,
    /// First-level misses in flight while there is any.
    L1Mlp,
    /// First-level misses in flight, over all cycles.
    L1MlpAverage,
    /// Demand data reads in flight beyond the second level while there is any.
    OffcoreMlp,
    /// The same over all cycles: what recipes on the web call MLP.
    OffcoreMlpAverage,
    /// Data reads in flight beyond the second level, prefetches included, while there is any.
    OffcoreDataMlp,
    /// Cycles that a demand data read spends beyond the second level.
    MissLatency,
    /// The same in nanoseconds.
    MissLatencyNs,
    /// What recipes on the web call latency per miss; numerator and denominator count different requests.
    ClassicMissLatency,
    /// Reads in flight per cycle (Arm).
    ReadMlp,
    /// Cycles that a read is in flight (Arm).
    ReadLatency,
    /// Page walks per load.
    TlbWalksPerLoad,
    /// Cycles that a page walk takes.
    TlbWalkLatency,
    /// Bytes read from memory, machine-wide.
    DramReadBytes,
    /// Bytes written to memory, machine-wide.
    DramWriteBytes,
    /// Both over time.
    DramBandwidth,
}

/// What the formulas compute with.
pub struct Inputs<'a> {
    /// The count of a role, or why there is none.
    pub of: &'a dyn Fn(Role) -> Result<f64, String>,
    /// Seconds in which the threads ran, together; 0 where that is not known.
    pub thread_s: f64,
    /// Seconds over which system-wide events were counted.
    pub wall_s: f64,
    /// Hops or lines done.
    pub work: Option<f64>,
}

/// A metric in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// What people read in tables.
    pub title: &'static str,
    /// The formula over roles; `work` stands for hops or lines.
    pub formula: &'static str,
    /// What it says, and its trap.
    pub meaning: &'static str,
    /// Who defines it so.
    pub source: &'static str,
    /// Its unit.
    pub unit: MetricUnit,
    /// Needs work to be related to.
    pub per_work: bool,
    /// The roles it is computed from.
    pub roles: &'static [Role],
}

/// Bytes of a line that a memory controller moves at a time (a CAS of 8 x 8 bytes).
const CAS_BYTES: f64 = 64.0;

impl CounterMetric {
    /// Every metric, in the order in which they are shown.
    pub const ALL: [Self; 27] = [
        Self::Ipc,
        Self::CyclesPerWork,
        Self::InstructionsPerWork,
        Self::L1MissesPerWork,
        Self::L2MissesPerWork,
        Self::LlcMissesPerWork,
        Self::TlbWalksPerWork,
        Self::L1MissRate,
        Self::L2MissRate,
        Self::LlcMissRate,
        Self::L2MissesPerLoad,
        Self::LlcMissesPerLoad,
        Self::L1Mlp,
        Self::L1MlpAverage,
        Self::OffcoreMlp,
        Self::OffcoreMlpAverage,
        Self::OffcoreDataMlp,
        Self::MissLatency,
        Self::MissLatencyNs,
        Self::ClassicMissLatency,
        Self::ReadMlp,
        Self::ReadLatency,
        Self::TlbWalksPerLoad,
        Self::TlbWalkLatency,
        Self::DramReadBytes,
        Self::DramWriteBytes,
        Self::DramBandwidth,
    ];

    /// Name, formula, meaning, source.
    pub const fn definition(self) -> Definition {
        use MetricUnit as U;
        use Role as R;
        const TMA: &str = "Intel perfmon, TMA metrics";
        const OWN: &str = "the metric above, converted";
        const EVENTS: &str = "the vendors' lists of events";
        const RECIPES: &str = "perf recipes on the web";
        const fn of(
            title: &'static str,
            formula: &'static str,
            meaning: &'static str,
            source: &'static str,
            unit: MetricUnit,
            roles: &'static [Role],
        ) -> Definition {
            Definition { title, formula, meaning, source, unit, per_work: false, roles }
        }
        const fn per(title: &'static str, formula: &'static str, meaning: &'static str, roles: &'static [Role]) -> Definition {
            Definition { title, formula, meaning, source: "counted work of the loop", unit: MetricUnit::Number, per_work: true, roles }
        }
        match self {
            Self::Ipc => {
                of("IPC", "instructions / cycles", "instructions retired per cycle", EVENTS, U::Number, &[R::Instructions, R::Cycles])
            }
            Self::CyclesPerWork => per("cycles", "cycles / work", "the loop's own cycles", &[R::Cycles]),
            Self::InstructionsPerWork => per("instructions", "instructions / work", "the loop's own instructions", &[R::Instructions]),
            Self::L1MissesPerWork => per("L1 misses", "l1-misses / work", "1 when each misses once", &[R::L1Misses]),
            Self::L2MissesPerWork => per("L2 misses", "l2-misses / work", "1 when each misses once", &[R::L2Misses]),
            Self::LlcMissesPerWork => per("LLC misses", "llc-misses / work", "1 when each misses once", &[R::LlcMisses]),
            Self::TlbWalksPerWork => per("TLB walks", "tlb-walks / work", "1 when each needs a page walk", &[R::TlbWalks]),
            Self::L1MissRate => {
                of("L1 miss rate", "l1-misses / l1-accesses", "per access of that level", EVENTS, U::Share, &[R::L1Misses, R::L1Accesses])
            }
            Self::L2MissRate => {
                of("L2 miss rate", "l2-misses / l2-accesses", "per access of that level", EVENTS, U::Share, &[R::L2Misses, R::L2Accesses])
            }
            Self::LlcMissRate => of(
                "LLC miss rate",
                "llc-misses / llc-accesses",
                "per access of that level",
                EVENTS,
                U::Share,
                &[R::LlcMisses, R::LlcAccesses],
            ),
            Self::L2MissesPerLoad => of(
                "L2 misses per load",
                "load-l2-misses / loads",
                "per load instruction, as curves over working sets often are",
                EVENTS,
                U::Share,
                &[R::LoadL2Misses, R::Loads],
            ),
            Self::LlcMissesPerLoad => of(
                "LLC misses per load",
                "load-llc-misses / loads",
                "per load instruction, as curves over working sets often are",
                EVENTS,
                U::Share,
                &[R::LoadLlcMisses, R::Loads],
            ),
            Self::L1Mlp => of(
                "MLP at L1",
                "l1-outstanding / l1-outstanding-cycles",
                "first-level misses in flight while there is any",
                TMA,
                U::Number,
                &[R::L1Outstanding, R::L1OutstandingCycles],
            ),
            Self::L1MlpAverage => of(
                "MLP at L1, average",
                "l1-outstanding / cycles",
                "the same over all cycles, idle ones included",
                OWN,
                U::Number,
                &[R::L1Outstanding, R::Cycles],
            ),
            Self::OffcoreMlp => of(
                "MLP off-core",
                "demand-outstanding / demand-outstanding-cycles",
                "demand data reads in flight beyond L2 while there is any; prefetches are not counted",
                TMA,
                U::Number,
                &[R::DemandOutstanding, R::DemandOutstandingCycles],
            ),
            Self::OffcoreMlpAverage => of(
                "MLP off-core, average",
                "demand-outstanding / cycles",
                "the classic recipe: over all cycles, idle ones included",
                RECIPES,
                U::Number,
                &[R::DemandOutstanding, R::Cycles],
            ),
            Self::OffcoreDataMlp => of(
                "MLP off-core, with prefetch",
                "data-outstanding / data-outstanding-cycles",
                "data reads in flight beyond L2, L1 and L2 data prefetches included, while there is any",
                TMA,
                U::Number,
                &[R::DataOutstanding, R::DataOutstandingCycles],
            ),
            Self::MissLatency => of(
                "latency beyond L2",
                "demand-outstanding / demand-requests",
                "mean cycles of a demand data read beyond L2; both events count the same requests",
                TMA,
                U::Cycles,
                &[R::DemandOutstanding, R::DemandRequests],
            ),
            Self::MissLatencyNs => of(
                "latency beyond L2",
                "demand-outstanding / demand-requests / (cycles / time)",
                "the same in nanoseconds, by the frequency that the counters show",
                OWN,
                U::Nanoseconds,
                &[R::DemandOutstanding, R::DemandRequests, R::Cycles],
            ),
            Self::ClassicMissLatency => of(
                "classic latency per miss",
                "demand-outstanding / llc-misses",
                "the classic recipe, for comparison only: its numerator holds reads that hit the LLC, its denominator other requests too",
                RECIPES,
                U::Cycles,
                &[R::DemandOutstanding, R::LlcMisses],
            ),
            Self::ReadMlp => of(
                "MLP of reads",
                "reads-outstanding / cycles",
                "reads in flight, over all cycles (newer Armv9 cores)",
                "Arm PMU architecture, MEM_ACCESS_RD_PERCYC",
                U::Number,
                &[R::ReadsOutstanding, R::Cycles],
            ),
            Self::ReadLatency => of(
                "latency of reads",
                "reads-outstanding / reads",
                "mean cycles of a read, cache hits included (newer Armv9 cores)",
                "Arm PMU architecture, MEM_ACCESS_RD_PERCYC",
                U::Cycles,
                &[R::ReadsOutstanding, R::Reads],
            ),
            Self::TlbWalksPerLoad => {
                of("TLB walks per load", "tlb-walks / loads", "completed page walks", EVENTS, U::Share, &[R::TlbWalks, R::Loads])
            }
            Self::TlbWalkLatency => of(
                "latency of TLB walks",
                "tlb-walk-cycles / tlb-walks",
                "mean cycles of a page walk",
                EVENTS,
                U::Cycles,
                &[R::TlbWalkCycles, R::TlbWalks],
            ),
            Self::DramReadBytes => of(
                "DRAM read",
                "dram-reads * 64",
                "by the memory controllers, of the whole machine: other programs' traffic is in it",
                EVENTS,
                U::Bytes,
                &[R::DramReads],
            ),
            Self::DramWriteBytes => of(
                "DRAM written",
                "dram-writes * 64",
                "by the memory controllers, of the whole machine: other programs' traffic is in it",
                EVENTS,
                U::Bytes,
                &[R::DramWrites],
            ),
            Self::DramBandwidth => of(
                "DRAM bandwidth",
                "(dram-reads + dram-writes) * 64 / time",
                "by the memory controllers, of the whole machine: other programs' traffic is in it",
                EVENTS,
                U::GigabytesPerSecond,
                &[R::DramReads, R::DramWrites],
            ),
        }
    }

    /// The value.
    ///
    /// # Errors
    /// In words, when an event is missing or the denominator is zero.
    pub fn evaluate(self, inputs: &Inputs<'_>) -> Result<f64, String> {
        use Role as R;
        let of = inputs.of;
        let ratio = |a: Role, b: Role| -> Result<f64, String> {
            let (a, below) = (of(a)?, of(b)?);
            if below > 0.0 { Ok(a / below) } else { Err(format!("{} is 0", b.name())) }
        };
        let per_work = |a: Role| -> Result<f64, String> {
            let work = inputs.work.filter(|w| *w > 0.0).ok_or("no work was counted")?;
            Ok(of(a)? / work)
        };
        match self {
            Self::Ipc => ratio(R::Instructions, R::Cycles),
            Self::CyclesPerWork => per_work(R::Cycles),
            Self::InstructionsPerWork => per_work(R::Instructions),
            Self::L1MissesPerWork => per_work(R::L1Misses),
            Self::L2MissesPerWork => per_work(R::L2Misses),
            Self::LlcMissesPerWork => per_work(R::LlcMisses),
            Self::TlbWalksPerWork => per_work(R::TlbWalks),
            Self::L1MissRate => ratio(R::L1Misses, R::L1Accesses),
            Self::L2MissRate => ratio(R::L2Misses, R::L2Accesses),
            Self::LlcMissRate => ratio(R::LlcMisses, R::LlcAccesses),
            Self::L2MissesPerLoad => ratio(R::LoadL2Misses, R::Loads),
            Self::LlcMissesPerLoad => ratio(R::LoadLlcMisses, R::Loads),
            Self::L1Mlp => ratio(R::L1Outstanding, R::L1OutstandingCycles),
            Self::L1MlpAverage => ratio(R::L1Outstanding, R::Cycles),
            Self::OffcoreMlp => ratio(R::DemandOutstanding, R::DemandOutstandingCycles),
            Self::OffcoreMlpAverage => ratio(R::DemandOutstanding, R::Cycles),
            Self::OffcoreDataMlp => ratio(R::DataOutstanding, R::DataOutstandingCycles),
            Self::MissLatency => ratio(R::DemandOutstanding, R::DemandRequests),
            Self::MissLatencyNs => {
                let latency = ratio(R::DemandOutstanding, R::DemandRequests)?;
                // Cycles run while the core is not halted; over the time that the threads ran they are the core's frequency.
                let ghz = of(R::Cycles)? / inputs.thread_s / 1e9;
                if ghz.is_finite() && ghz > 0.0 { Ok(latency / ghz) } else { Err("the frequency is not known".to_owned()) }
            }
            Self::ClassicMissLatency => ratio(R::DemandOutstanding, R::LlcMisses),
            Self::ReadMlp => ratio(R::ReadsOutstanding, R::Cycles),
            Self::ReadLatency => ratio(R::ReadsOutstanding, R::Reads),
            Self::TlbWalksPerLoad => ratio(R::TlbWalks, R::Loads),
            Self::TlbWalkLatency => ratio(R::TlbWalkCycles, R::TlbWalks),
            Self::DramReadBytes => Ok(of(R::DramReads)? * CAS_BYTES),
            Self::DramWriteBytes => Ok(of(R::DramWrites)? * CAS_BYTES),
            Self::DramBandwidth => {
                if inputs.wall_s <= 0.0 {
                    return Err("no time passed".to_owned());
                }
                Ok((of(R::DramReads)? + of(R::DramWrites)?) * CAS_BYTES / inputs.wall_s / 1e9)
            }
        }
    }
}

/// Lines in flight by Little's law: concurrency = throughput x latency. GB/s times ns are bytes. (J. Little, "A Proof for the Queuing
/// Formula: L = λW", 1961; J. McCalpin uses it so for memory.) Needs no counters.
pub fn lines_in_flight(bandwidth_gbs: f64, latency_ns: f64, line_bytes: f64) -> f64 {
    bandwidth_gbs * latency_ns / line_bytes
}

#[cfg(test)]
#[path = "metrics/tests.rs"]
mod tests;
