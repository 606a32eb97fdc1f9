//! The summary at the top of every result.

use serde::{Deserialize, Serialize};

use crate::result::measurement::{QualityLevel, QualityReason};
use crate::traffic::Mix;

/// The numbers that most readers look for. A number that was not measured is `null`, with the reason in `absent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Idle latency from a CPU to its own node's memory, window-local: the median over nodes, in ns.
    pub idle_latency_local_ns: SummaryValue,
    /// Idle latency from a CPU to another node's memory, window-local: the median over pairs of nodes, in ns.
    pub idle_latency_remote_ns: SummaryValue,
    /// The highest bandwidth of loads alone, in GB/s.
    pub peak_read_gbs: SummaryValue,
    /// The highest bandwidth of any mix, in GB/s.
    pub peak_any_gbs: SummaryValue,
    /// The mix of `peak_any_gbs`.
    pub peak_any_mix: Option<Mix>,
    /// Latency of a line that another core's cache holds unmodified: the median over pairs, in ns.
    pub transfer_hit_ns: SummaryValue,
    /// Latency of a line that another core's cache holds modified: the median over pairs, in ns.
    pub transfer_hitm_ns: SummaryValue,
    /// How far to trust the numbers of this run.
    pub trust: Trust,
}

/// A number of the summary with its interval.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SummaryValue {
    /// The number.
    pub value: Option<f64>,
    /// Lower end of the 95 % interval; of a median over several results, the lowest of theirs.
    pub ci95_low: Option<f64>,
    /// Upper end; of a median over several results, the highest of theirs.
    pub ci95_high: Option<f64>,
    /// The results that the median is over, if the number comes from several. Its ends are then those of all their intervals together, not
    /// of an interval of the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
    /// The worst quality of the results that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<QualityLevel>,
    /// Why the number is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<Absent>,
}

/// The results that a median is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Over {
    /// How many.
    pub count: u32,
    /// Of what.
    pub what: OverWhat,
}

/// The places of several results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OverWhat {
    /// Nodes, each with its own memory.
    Nodes,
    /// CPUs, each with its own node's memory.
    Cpus,
    /// Pairs of two nodes, of a CPU and a node, or of two CPUs.
    Pairs,
    /// Results of one place, such as a pair of CPUs with lines of several nodes.
    Results,
}

/// Why the summary lacks a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Absent {
    /// It was not part of this run.
    NotPlanned,
    /// The machine has one node of CPUs and memory only.
    OneNode,
    /// Its cells have no value. Each of them states the reason.
    NotMeasured,
    /// Its cells have values, but each of them is unreliable.
    Unreliable,
}

/// How far to trust the numbers of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trust {
    /// `none` if no result has a value; `unreliable` if more than a quarter of the results are unreliable; `degraded` if more than a quarter
    /// are degraded, unreliable or missing; otherwise `good`.
    pub level: QualityLevel,
    /// Number of results of good quality.
    pub good: u32,
    /// Number of results of degraded quality.
    pub degraded: u32,
    /// Number of results of unreliable quality.
    #[serde(default)]
    pub unreliable: u32,
    /// Number of results without a value.
    pub missing: u32,
    /// Why results are degraded, the most frequent reason first.
    pub reasons: Vec<TrustReason>,
}

/// Why some results are degraded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrustReason {
    /// The reason.
    pub reason: QualityReason,
    /// Number of results with this reason.
    pub results: u32,
}
