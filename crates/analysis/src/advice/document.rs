//! Advice as data: the contract of `schema/advice.schema.json`.

use memgauge_model::experiment::{ChaseOrder, PrefetchRequest};
use memgauge_model::interleave::Weights;
use memgauge_model::result::{PageKind, QualityReason};
use memgauge_model::topology::OperatingSystem;
use memgauge_model::traffic::Mix;
use memgauge_model::units::{Bytes, IdSet};
use serde::{Deserialize, Serialize};

pub use super::number::{Number, Role};

/// The version of this contract; raised when a field changes its meaning or goes away.
pub const ADVICE_VERSION: u32 = 1;

/// What results of one machine advise.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// Version of this contract.
    pub advice_version: u32,
    /// The results that the advice is from.
    pub results: Vec<ResultFile>,
    /// The recommendations, the most important first.
    pub recommendations: Vec<Recommendation>,
    /// Questions that these results leave open, and why.
    pub gaps: Vec<Gap>,
}

/// A result that advice is from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResultFile {
    /// Its name, as it was given.
    pub name: String,
    /// The run's id.
    pub id: String,
    /// When it started: UTC, RFC 3339.
    pub started: String,
    /// The CPU's model name; `null` if the machine does not state it.
    pub cpu: Option<String>,
    /// Whether everything that was planned was measured.
    pub complete: bool,
    /// The operating system that it was measured on; absent if it is Linux.
    #[serde(default, skip_serializing_if = "OperatingSystem::is_linux")]
    pub system: OperatingSystem,
}

/// What advice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// How many threads to use.
    Threads,
    /// How many tokens a second memory's bandwidth allows.
    TokensPerSecond,
    /// Whether to use more than one hardware thread of a core.
    Smt,
    /// How much load to allow.
    Load,
    /// Whether threads and their memory should be on the same node.
    Placement,
    /// Whether to put pages on several nodes in turn.
    Interleave,
    /// How many nodes firmware should make of a package (NPS, SNC).
    NodesPerPackage,
    /// Whether huge pages help.
    HugePages,
    /// Whether prefetchers help.
    Prefetchers,
}

/// One piece of advice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recommendation {
    /// What it is about.
    pub topic: Topic,
    /// What to do.
    pub action: Action,
    /// How sure it is.
    pub sureness: Sureness,
    /// Why it is not more than likely; empty if it is shown.
    pub doubts: Vec<Doubt>,
    /// The numbers behind it.
    pub numbers: Vec<Number>,
}

/// How sure advice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Sureness {
    /// All its numbers are good, and their intervals leave no other conclusion.
    Shown,
    /// The medians say so, and there are doubts.
    Likely,
}

/// Why advice is not more than likely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "doubt", rename_all = "kebab-case")]
pub enum Doubt {
    /// The intervals do not exclude that the number is on the other side of the threshold.
    IntervalTooWide,
    /// The quality of some of the numbers is degraded.
    Degraded {
        /// Why.
        reasons: Vec<QualityReason>,
    },
    /// Some points of the ramp are unreliable or were not measured.
    PointsLeftOut {
        /// Their numbers of threads.
        threads: IdSet,
    },
    /// The tokens a second that are seen, and the bytes for each, were given and not measured; a cause that fits need not be the one.
    NotMeasuredHere,
    /// The bandwidth of all CPUs together was not measured.
    PartOfMachine {
        /// Cores that read.
        cores: u32,
        /// Cores that may be used.
        of: u32,
    },
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum Action {
    /// Use this number of threads: the fewest that give 95 % of the highest bandwidth of a ramp.
    UseThreads {
        /// The traffic.
        mix: Mix,
        /// How many.
        threads: u32,
        /// The largest number that was measured.
        of: u32,
        /// Their share of the highest bandwidth.
        share: Ratio,
        /// The measured number of threads from which on bandwidth grows more slowly, in shares of the whole range; `null` without a knee.
        knee: Option<u32>,
    },
    /// Expect at most these numbers of tokens a second from models.
    ExpectTokens {
        /// The ceilings, by model and by where its weights are; those of the first model first, its highest first.
        ceilings: Vec<Ceiling>,
        /// What the ceilings leave out.
        leaves_out: Vec<LeftOut>,
    },
    /// Find out why more or fewer tokens a second are seen than the ceiling.
    ExplainTokens {
        /// Tokens a second that the user sees while one sequence is decoded.
        seen_tokens_per_s: f64,
        /// The model's highest ceiling: of the places that it fits in, if there are any.
        ceiling: Ceiling,
        /// What is seen over the ceiling.
        share: Ratio,
        /// The conclusion about it.
        against: AgainstCeiling,
        /// Bytes that are read for each token if the ceiling's bandwidth is used up.
        implied: Bytes,
        /// The possible causes: those that fit, then those without a rate, those with a lower rate than what is seen, those with a higher
        /// one. Empty at the ceiling.
        causes: Vec<PossibleCause>,
    },
    /// Use all hardware threads of the cores, or one.
    UseSecondThreads {
        /// The traffic.
        mix: Mix,
        /// Cores.
        cores: u32,
        /// Hardware threads of these cores.
        threads: u32,
        /// Bandwidth of all hardware threads over that of one on each core.
        bandwidth: Ratio,
        /// The conclusion about the bandwidth.
        effect: Effect,
    },
    /// Keep the load below the knee of a curve.
    StayBelow {
        /// The traffic.
        mix: Mix,
        /// Bandwidth at the knee, in GB/s.
        gbs: f64,
        /// Bandwidth at the knee over the highest one.
        share: Ratio,
        /// Latency at the highest load over that at the knee.
        growth: Ratio,
    },
    /// Keep threads and their memory on the same node, or not.
    KeepLocal {
        /// Latency of the farthest other node over that of the own node; `null` if it was not measured.
        latency: Option<Ratio>,
        /// The conclusion about it.
        latency_effect: Option<Effect>,
        /// Read bandwidth from the slowest other node over that from the own node; `null` if it was not measured.
        bandwidth: Option<Ratio>,
        /// The conclusion about it.
        bandwidth_effect: Option<Effect>,
    },
    /// Put pages on several nodes in turn, or not.
    InterleaveNodes {
        /// The traffic.
        mix: Option<Mix>,
        /// With these weights.
        weights: Weights,
        /// Bandwidth with these weights over that of the nearest node alone.
        bandwidth: Ratio,
        /// The conclusion about it.
        effect: Effect,
    },
    /// Put pages on several nodes in turn for the least latency at a bandwidth, or not.
    InterleaveForLatency {
        /// The traffic.
        mix: Option<Mix>,
        /// With these weights.
        weights: Weights,
        /// The bandwidth that was demanded, in GB/s.
        demand_gbs: f64,
        /// Latency with these weights over that of the nearest node alone, both at the measured load that is closest to the demand.
        latency: Ratio,
        /// The conclusion about it.
        effect: Effect,
    },
    /// Use the other nodes of the package as other nodes, or as one.
    SeparateNodesOfPackage {
        /// Nodes of each package.
        nodes_per_package: u32,
        /// Latency of another node of the same package over that of the own node.
        latency: Ratio,
        /// The conclusion about it.
        effect: Effect,
    },
    /// Choose among numbers of nodes of a package.
    ChooseNodesPerPackage {
        /// The smaller number that was measured.
        fewer: u32,
        /// The larger one.
        more: u32,
        /// Local latency of the larger over that of the smaller number; `null` if it was not measured.
        latency: Option<Ratio>,
        /// The conclusion about it.
        latency_effect: Option<Effect>,
        /// Highest read bandwidth of the larger over that of the smaller number; `null` if it was not measured.
        bandwidth: Option<Ratio>,
        /// The conclusion about it.
        bandwidth_effect: Option<Effect>,
    },
    /// Use huge pages, or do not care.
    UseHugePages {
        /// Order of the chase that was measured.
        order: ChaseOrder,
        /// Latency with huge pages over that with base pages.
        latency: Ratio,
        /// The conclusion about it.
        effect: Effect,
    },
    /// Expect this from larger pages: the part of the latency that is address translation.
    ExpectFromLargerPages {
        /// The pages that were measured.
        pages: PageKind,
        /// Their size; `null` if it could not be read back.
        page: Option<Bytes>,
        /// Random latency over the whole buffer over that within windows, whose translations stay in the TLBs.
        latency: Ratio,
        /// The conclusion about it.
        effect: Effect,
    },
    /// Leave prefetchers on, or switch them off.
    SetPrefetchers {
        /// To what.
        to: PrefetchRequest,
        /// Read bandwidth with prefetchers off over that with them on; `null` if it was not measured.
        bandwidth: Option<Ratio>,
        /// The conclusion about it.
        bandwidth_effect: Option<Effect>,
        /// Latency of a random chase with prefetchers off over that with them on; `null` if it was not measured.
        latency: Option<Ratio>,
        /// The conclusion about it.
        latency_effect: Option<Effect>,
    },
}

/// A ratio of two medians.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// The lower end of the first number's 95 % interval over the upper end of the second's: together they are wider than a 95 % interval.
    pub low: f64,
    /// The upper end of the first number's interval over the lower end of the second's.
    pub high: f64,
}

/// Differences up to this share count as none, as in `memgauge compare`.
const MARGIN: f64 = 0.03;

impl Ratio {
    /// A number over itself.
    pub const ONE: Self = Self { value: 1.0, low: 1.0, high: 1.0 };

    /// What the ratio shows; `None` if its interval leaves that open.
    pub fn effect(self) -> Option<Effect> {
        match self {
            Self { value, low, .. } if low > 1.0 && value > 1.0 + MARGIN => Some(Effect::More),
            Self { value, high, .. } if high < 1.0 && value < 1.0 - MARGIN => Some(Effect::Less),
            Self { low, high, .. } if low >= 1.0 - MARGIN && high <= 1.0 + MARGIN => Some(Effect::Same),
            _ => None,
        }
    }
}

/// What a ratio shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The first number is higher, by more than 3 %.
    More,
    /// The first number is lower, by more than 3 %.
    Less,
    /// They are the same within 3 %.
    Same,
}

/// A language model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Model {
    /// Its name; `null` if only its bytes were given.
    pub name: Option<String>,
    /// Bytes that are read for each token: all weights of a dense model, those of the active experts otherwise.
    pub bytes: Bytes,
}

/// The most tokens a second that a bandwidth allows: bandwidth over bytes for each token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// The model.
    pub model: Model,
    /// Where its weights are.
    pub place: WeightsPlace,
    /// Read bandwidth there, in GB/s.
    pub read_gbs: f64,
    /// Tokens a second, at most.
    pub tokens_per_s: f64,
    /// The same from the lower end of the bandwidth's interval.
    pub low: f64,
    /// The same from the upper end.
    pub high: f64,
    /// Memory of the nodes that the weights are on.
    pub memory: Bytes,
    /// Whether the model is smaller than that memory.
    pub fits: bool,
}

/// Where a model's weights are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "place", rename_all = "kebab-case")]
pub enum WeightsPlace {
    /// Divided among nodes, and each thread reads what is on its own node.
    OwnNodes {
        /// The nodes.
        nodes: IdSet,
    },
    /// All on one node.
    OneNode {
        /// The node.
        node: u32,
    },
    /// All on one node, and read by the threads of another one.
    OtherNode {
        /// The node of the weights.
        node: u32,
        /// The node of the threads.
        cpu_node: u32,
    },
    /// On several nodes in turn, page by page, and every thread reads all of them.
    Interleaved {
        /// The weights of the nodes.
        weights: Weights,
    },
}

/// How tokens a second that are seen compare with their ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AgainstCeiling {
    /// More than 10 % below it.
    Below,
    /// At most 10 % below it: memory's bandwidth is the limit.
    At,
    /// Above its interval, and more than 3 % above it.
    Above,
}

/// What could explain that tokens a second differ from their ceiling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PossibleCause {
    /// The cause.
    pub cause: Cause,
    /// The most tokens a second that it would allow; `null` if the results do not tell.
    pub rate: Option<CauseRate>,
    /// Why the rate is missing; `null` if it is not.
    pub why: Option<Why>,
    /// A command line that shows whether it is the cause; `null` if the rate says that, or no command shows it.
    pub command: Option<String>,
}

/// A cause of fewer or more tokens a second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum Cause {
    /// Fewer threads read than fill the memory.
    FewerThreads {
        /// Their number, or the numbers that were not measured; empty if none was.
        threads: IdSet,
    },
    /// Weights are where threads do not read them at the highest bandwidth.
    Placement {
        /// Where they are; `null` for the places that were not measured.
        place: Option<WeightsPlace>,
    },
    /// Weights are on base pages.
    BasePages,
    /// Prefetchers are off.
    PrefetchersOff,
    /// Weights are read line by line in random order. Experts and tables of embeddings are read in blocks, which lie between this and the
    /// ceiling.
    RandomAccess,
    /// Something that the ceiling leaves out.
    LeftOut {
        /// What it is.
        what: LeftOut,
    },
}

/// The tokens a second that a cause would allow: the bandwidth that was measured with it over the bytes for each token.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CauseRate {
    /// Tokens a second, at most.
    pub tokens_per_s: f64,
    /// The same from the lower end of the bandwidth's interval.
    pub low: f64,
    /// The same from the upper end.
    pub high: f64,
    /// The rate over the ceiling.
    pub share: Ratio,
    /// How it compares with what is seen.
    pub fit: Fit,
    /// Whether it is a guess: the ceiling times a ratio of fewer CPUs' bandwidths. All CPUs together may lose less.
    pub guessed: bool,
}

/// How a cause's rate compares with the tokens a second that are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// It is within 10 % of what is seen.
    Fits,
    /// It is lower, so this is the cause in part at most.
    Slower,
    /// It is higher, so this alone is not the cause.
    Faster,
}

/// What a ceiling of tokens a second leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    /// Reading and writing the keys and values of earlier tokens.
    KvCache,
    /// Arithmetic, and waiting for it.
    Compute,
    /// Synchronisation of threads.
    Synchronisation,
    /// Batches: several sequences share one reading of the weights.
    Batches,
    /// Experts that a token does not use: only those that it uses are read.
    UnusedExperts,
    /// Caches: what stays in them is not read from memory again.
    Caches,
}

impl LeftOut {
    /// All of it.
    pub const ALL: [Self; 6] = [Self::KvCache, Self::Compute, Self::Synchronisation, Self::Batches, Self::UnusedExperts, Self::Caches];
}

/// A question that the results leave open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// Its topic.
    pub topic: Topic,
    /// Why it is open.
    pub why: Why,
    /// Numbers that were measured but do not support advice.
    pub numbers: Vec<Number>,
    /// A command line that measures it; `null` if measuring does not help.
    pub command: Option<String>,
}

/// Why advice is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Why {
    /// No result has it.
    NotMeasured,
    /// Numbers that it needs are unreliable, have no interval or were not measured.
    Unreliable,
    /// The buffers may be in caches, so the numbers are not memory's.
    NotMemory,
    /// The intervals show neither a difference of more than 3 % nor that there is none.
    Open,
    /// The intervals do not distinguish a knee of the curve from noise.
    NoKnee,
    /// Firmware had one number of nodes for each package in all results.
    OneNumberOfNodes {
        /// Nodes of each package.
        nodes_per_package: u32,
    },
    /// Only one kind of pages was measured.
    OneKindOfPages {
        /// That kind.
        pages: PageKind,
    },
    /// Latencies contradict the registers that say that prefetchers are off.
    PrefetchersStillOn,
    /// The sizes of the models were not given.
    NoModel,
    /// It depends on the program and its model, and not on the memory alone.
    OfTheProgram,
}
