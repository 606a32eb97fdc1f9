//! Measured numbers that advice rests on.

use memgauge_model::experiment::{Coordinates, Experiment, Metric, Unit};
use memgauge_model::result::{QualityLevel, QualityReason};
use serde::{Deserialize, Serialize};

/// What a number shows in a piece of advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// What is advised.
    Advised,
    /// The highest.
    Highest,
    /// The next smaller number of threads.
    Fewer,
    /// All threads.
    All,
    /// One thread on each core.
    OnePerCore,
    /// The knee of a curve.
    Knee,
    /// The lowest load of a curve.
    LowestLoad,
    /// The highest load of a curve.
    HighestLoad,
    /// The own node.
    Own,
    /// Another node.
    Other,
    /// The nearest node alone.
    NearestOnly,
    /// Several nodes in turn.
    Interleaved,
    /// Fewer nodes of each package.
    FewerNodes,
    /// More nodes of each package.
    MoreNodes,
    /// Base pages.
    BasePages,
    /// Huge pages.
    HugePages,
    /// Random within windows.
    WindowLocal,
    /// Random over the whole buffer.
    FullRandom,
    /// Prefetchers on.
    PrefetchersOn,
    /// Prefetchers off.
    PrefetchersOff,
    /// Lines in random order.
    RandomAccess,
    /// A number that does not carry advice.
    NotUsed,
}

/// A measured number and where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Number {
    /// What it shows.
    pub role: Role,
    /// The name of the result that it is in.
    pub result: String,
    /// Its experiment.
    pub experiment: Experiment,
    /// The quantity.
    pub metric: Metric,
    /// Its unit.
    pub unit: Unit,
    /// Its coordinates.
    pub at: Coordinates,
    /// Threads that took part in it.
    pub threads: u32,
    /// The median; `null` if it was not measured.
    pub value: Option<f64>,
    /// Lower end of the 95 % interval.
    pub ci95_low: Option<f64>,
    /// Upper end.
    pub ci95_high: Option<f64>,
    /// Whether to trust it.
    pub quality: QualityLevel,
    /// Why not more.
    pub reasons: Vec<QualityReason>,
}
