//! The levels of the memory hierarchy that a curve over the working set shows.

use crate::experiment::{Coordinates, Metric};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// What one curve over the working set says of the hierarchy.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LevelSummary {
    /// Coordinates that the curve's points share.
    pub at: Coordinates,
    /// Whether `value` of a level is nanoseconds or 10^9 bytes a second.
    pub metric: Option<Metric>,
    /// Whether each point's fastest sample was taken instead of its median, because the CPU was shared with other work ([`SHARED`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_fastest: bool,
    /// The levels, nearest first.
    pub levels: Vec<Level>,
    /// Caches of the machine's description at which the curve has no step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<CacheSize>,
}

/// A cache as the machine describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CacheSize {
    /// `L1d`, `L2`, `L3`.
    pub name: String,
    /// Bytes of it that one CPU of the curve can fill: all of it, or its part where several CPUs of the curve share it.
    pub size: Bytes,
}

/// One level: a plateau and where it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Level {
    /// The cache's name, `memory` for what is beyond the last one, `?` for a level that the machine's description does not explain.
    pub name: String,
    /// The smallest working set on the plateau.
    pub from: Bytes,
    /// The largest.
    pub to: Bytes,
    /// The median of the points on the plateau.
    pub value: f64,
    /// The lower end of the 95 % interval of that median; of the points where there are fewer than six.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Where the curve leaves the plateau; absent for the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<Knee>,
}

/// Where a curve leaves a plateau.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Knee {
    /// The largest working set that is still on the level.
    pub fits: Bytes,
    /// The smallest that is not.
    pub spills: Bytes,
    /// The cache that it is taken for; absent where none is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheSize>,
    /// Whether that cache's size is between `fits` and `spills`, or one step of the sweep beside; `null` without a cache.
    pub agrees: Option<bool>,
}

/// A point of a curve: working set and value.
pub type Point = (Bytes, f64);
