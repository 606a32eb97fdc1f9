//! The levels of the memory hierarchy in a curve over the working set.

use serde::{Deserialize, Serialize};

use crate::experiment::{Coordinates, Metric};
use crate::units::Bytes;

/// The levels that one curve over the working set shows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelSummary {
    /// Coordinates that the curve's points share.
    pub at: Coordinates,
    /// Whether the `value` of a level is a latency (ns) or a bandwidth (GB/s).
    pub metric: Option<Metric>,
    /// Whether each point is its fastest sample instead of its median, because the CPU was shared with other work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_fastest: bool,
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
    /// The name of the cache, `memory` beyond the last cache, or `?` for a level that the machine's description does not explain.
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
