//! The result of a comparison: the contract in `schema/comparison.schema.json`.

use memgauge_model::experiment::{Coordinates, Experiment, Metric, Unit};
use memgauge_model::result::{Difference, ProbeComparison};
use serde::{Deserialize, Serialize};

/// The version of this contract; raised when a field changes its meaning or goes away.
pub const COMPARISON_VERSION: u32 = 1;

/// A comparison of two sets of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// [`COMPARISON_VERSION`] of the program that wrote it.
    pub comparison_version: u32,
    /// Worse if any number is; else inconclusive if more than a quarter of an experiment's latencies or bandwidths are; else better if any
    /// number is; else the same.
    pub verdict: ComparisonVerdict,
    /// Differences within this share count as none, 0 to 1.
    pub margin: f64,
    /// The seed of the bootstrap.
    pub seed: u64,
    /// The runs before.
    pub before: Side,
    /// The runs after.
    pub after: Side,
    /// What the stamps say about the state of the machine in the runs of both sides; absent if they cannot be compared, or the runs are not known
    /// to be of one machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<SidesState>,
    /// Differences between the sides apart from the numbers: machine, firmware, kernel, settings.
    pub differences: Vec<Difference>,
    /// Each quantity that both sides have.
    pub cells: Vec<CellComparison>,
    /// The means of all cells of one metric.
    pub means: Vec<MetricMean>,
    /// Quantities that only one side has, or that are unreliable in every run of a side.
    pub not_compared: Vec<NotCompared>,
}

/// The state of the machine in the runs of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SidesState {
    /// What it is.
    pub state: StateOfSides,
    /// The probes that differ between the sides, the largest change first, if these have no state in common.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ProbeComparison>,
}

/// Whether two sides were measured in one state of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StateOfSides {
    /// All runs are in one state.
    Same,
    /// Runs are in several states, and those of one state are compared.
    Sorted,
    /// Runs are in several states, and all of them are compared, as was asked for.
    Mixed,
    /// The two sides are in different states, so that nothing is called better or worse unless that was asked for.
    Different,
    /// The two sides are in different states, which the commands made that ran in turn.
    MadeByCommands,
}

/// The runs of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side {
    /// Its name in texts, such as the name of a folder; differs from that of the other side.
    pub name: String,
    /// Its runs.
    pub runs: Vec<SideRun>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideRun {
    /// The run's id.
    pub id: String,
    /// When it started, UTC, RFC 3339.
    pub started: String,
    /// Whether everything that was planned was measured.
    pub complete: bool,
    /// Whether it does not count, because the machine was in another state than in the runs that are compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
}

/// What is compared at some coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "aspect", rename_all = "kebab-case")]
pub enum Aspect {
    /// The value that was measured there.
    Value,
    /// The latency of a curve where it has this bandwidth, interpolated between its points.
    AtBandwidth {
        /// In 10^9 bytes a second.
        gbs: f64,
    },
    /// The bandwidth at a curve's knee.
    KneeBandwidth,
    /// The latency at a curve's knee.
    KneeLatency,
    /// The highest bandwidth of a curve.
    PeakBandwidth,
    /// The median over all pairs of a matrix of CPUs.
    PairMedian,
}

/// One quantity on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellComparison {
    /// What was measured.
    pub experiment: Experiment,
    /// Its coordinates.
    pub at: Coordinates,
    /// The aspect that is compared.
    #[serde(flatten)]
    pub aspect: Aspect,
    /// The quantity.
    pub metric: Metric,
    /// The unit of `before` and `after`.
    pub unit: Unit,
    /// The geometric mean of the medians of the runs before.
    pub before: f64,
    /// The same of the runs after.
    pub after: f64,
    /// How many runs of either side have it.
    pub runs: (u32, u32),
    /// `after` over `before`.
    pub ratio: f64,
    /// Lower end of the ratio's 95 % interval; `null` if it is not known how much the numbers vary.
    pub ratio_low: Option<f64>,
    /// Upper end.
    pub ratio_high: Option<f64>,
    /// The probability of such a ratio if the sides did not differ, adjusted for the number of cells (Benjamini and Hochberg).
    pub q: Option<f64>,
    /// The conclusion.
    pub verdict: ComparisonVerdict,
    /// Why it is inconclusive; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Inconclusive>,
    /// How many runs of each side would settle it, as the runs vary; absent where that is not known or more than a hundred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_to_settle: Option<u32>,
}

/// The conclusion about one cell, or about all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonVerdict {
    /// More bandwidth or less latency.
    Better,
    /// Less bandwidth or more latency.
    Worse,
    /// The whole interval is within the margin.
    Same,
    /// Neither is shown.
    Inconclusive,
}

/// Why a comparison is inconclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Inconclusive {
    /// The interval is too wide.
    IntervalTooWide,
    /// The interval excludes 1, but with this number of cells some intervals do so by chance.
    ManyCells,
    /// A side has one run: how much runs differ from each other is not known.
    OneRun,
    /// It is not known how much the numbers vary.
    NoInterval,
    /// The sides were measured in different states of the machine.
    AnotherState,
}

/// The geometric mean of the ratios of all cells of one experiment and metric. Bandwidths and latencies are never mixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetricMean {
    /// What was measured.
    pub experiment: Experiment,
    /// The quantity.
    pub metric: Metric,
    /// How many cells.
    pub cells: u32,
    /// The mean of `after` over `before`.
    pub ratio: f64,
}

/// A quantity that is not compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotCompared {
    /// What was measured.
    pub experiment: Experiment,
    /// Its coordinates.
    pub at: Coordinates,
    /// The aspect that is not compared; absent if that is all of it.
    #[serde(flatten)]
    pub aspect: Option<Aspect>,
    /// The quantity.
    pub metric: Metric,
    /// Why.
    pub why: WhyNotCompared,
}

/// Why a quantity is not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WhyNotCompared {
    /// No run before has it.
    OnlyAfter,
    /// No run after has it.
    OnlyBefore,
    /// It was measured on both sides, but on one of them it is unreliable in every run; of a curve, every point.
    Unreliable,
}

/// How to compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparisonOptions {
    /// Differences within this share count as none, 0 to 1.
    pub margin: f64,
    /// The seed of the bootstrap.
    pub seed: u64,
    /// Whether runs in different states of the machine are compared.
    pub across: bool,
    /// Whether commands made the states of the two sides in turn.
    pub in_turn: bool,
}

impl Default for ComparisonOptions {
    /// 3 %: what runs on one machine commonly differ by.
    fn default() -> Self {
        Self { margin: 0.03, seed: 1, across: false, in_turn: false }
    }
}

impl Comparison {
    /// Whether a side has only one run, so that a difference between the sides may be one between any two runs.
    pub fn has_single_run(&self) -> bool {
        let few = |side: &Side| side.runs.iter().filter(|run| !run.left_out).count() < 2;
        few(&self.before) || few(&self.after)
    }

    /// How many cells have this verdict.
    pub fn count(&self, verdict: ComparisonVerdict) -> usize {
        self.cells.iter().filter(|c| c.verdict == verdict).count()
    }
}
