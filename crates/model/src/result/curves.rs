//! Summaries of curves: of latency under load, and of the levels of the memory hierarchy over the working set.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::experiment::{Coordinates, Metric};
use crate::units::Bytes;

/// Summary of a loaded-latency curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurveSummary {
    /// The coordinates that all its points share.
    pub at: Coordinates,
    /// Latency at the lowest load; `null` if only a point at full load was measured.
    pub unloaded_ns: Option<f64>,
    /// The knee: the last point before latency grows much faster than bandwidth; `null` if the intervals show none above noise.
    pub knee: Option<CurvePoint>,
    /// Latency at the highest load; `null` if only an unloaded point was measured.
    pub saturated_ns: Option<f64>,
    /// Highest bandwidth, probe included.
    pub peak_gbs: Option<f64>,
    /// Whether bandwidth fell while load and latency still grew.
    pub over_saturated: bool,
    /// Bandwidth of the loaders at the highest load by node of their memory, in 10^9 bytes a second, if that is on several nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub full_load_by_node: BTreeMap<u32, f64>,
    /// Latency at shares of the peak, if they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<CurveShare>,
}

/// The point of a curve that is closest to a share of its peak. The results contain it, with its evidence, at its delay.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurveShare {
    /// The share that was asked for, in percent of the peak.
    pub percent: u32,
    /// The share that was reached, 0 to 1; `null` if nothing was measured.
    pub reached: Option<f64>,
    /// The delay at which it was reached.
    pub delay_cycles: Option<u32>,
    /// Latency there, in ns.
    pub latency: Estimate,
    /// Bandwidth there, in GB/s, probe included.
    pub bandwidth: Estimate,
    /// Why no point is close to the share; absent if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<ShareMissed>,
}

/// Why no point of a curve is close to a share of its peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ShareMissed {
    /// No point of the curve was measured.
    NothingMeasured,
    /// Points of the curve were measured, and none of them is reliable.
    NothingReliable,
    /// No delay gave less bandwidth: the chase alone uses as much, or bandwidth jumps past that share.
    NoLessBandwidth,
    /// No delay came closer: bandwidth jumps past that share, or was not steady.
    NotCloser,
}

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// Injection delay, in core cycles after every four lines.
    pub delay_cycles: u32,
    /// Bandwidth, probe included.
    pub bandwidth_gbs: f64,
    /// Latency.
    pub latency_ns: f64,
}

impl CurvePoint {
    /// Whether both numbers are finite and positive.
    pub fn is_sane(&self) -> bool {
        self.bandwidth_gbs.is_finite() && self.bandwidth_gbs > 0.0 && self.latency_ns.is_finite() && self.latency_ns > 0.0
    }
}

/// The levels that one curve over the working set shows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelSummary {
    /// Coordinates that the curve's points share.
    pub at: Coordinates,
    /// Whether the `value` of a level is a latency (ns) or a bandwidth (GB/s).
    pub metric: Option<Metric>,
    /// The levels, nearest first.
    pub levels: Vec<Level>,
    /// Caches that the machine describes but at which the curve has no step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<CacheSize>,
}

/// A cache as the machine describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheSize {
    /// `L1d`, `L2`, `L3`.
    pub name: String,
    /// The part of it that one CPU of the curve can fill: all of it, or an equal part if several CPUs of the curve share it.
    pub size: Bytes,
}

/// One level: a plateau and where it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Level {
    /// The name of the cache, `memory` beyond the last cache, or `?` for a level that the machine's description does not explain. Where the
    /// sweep ends too early to tell, `L3 or memory`, or `memory?`.
    pub name: String,
    /// The smallest working set on the plateau.
    pub from: Bytes,
    /// The largest.
    pub to: Bytes,
    /// The median of the points on the plateau.
    pub value: f64,
    /// Lower end of the 95 % interval of that median; the lowest point if there are fewer than six.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Where the curve leaves the plateau; absent for the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<Knee>,
}

/// Where a curve leaves a plateau.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Knee {
    /// The largest working set that still fits the level.
    pub fits: Bytes,
    /// The smallest working set that does not fit.
    pub spills: Bytes,
    /// The cache that this step is matched with; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheSize>,
    /// Whether the size of that cache is between `fits` and `spills`, or at most one step of the sweep away; `null` without a cache.
    pub agrees: Option<bool>,
}

/// A point of a curve: working set and value.
pub type Point = (Bytes, f64);
