//! What the suite for persistent memory comes to.

use serde::{Deserialize, Serialize};

use crate::experiment::Coordinates;
use crate::interleave::Reading;
use crate::units::Bytes;

/// The number of writers with the most bandwidth. The measurements are in the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BestWriters {
    /// The coordinates that all numbers of writers share.
    pub at: Coordinates,
    /// The number of writers.
    pub writers: u32,
    /// Their bandwidth in 10^9 bytes a second, with half of its 95 % interval.
    pub bandwidth_gbs: Reading,
    /// The fewest writers whose interval reaches that bandwidth's interval: fewer have certainly less.
    pub fewest: u32,
}

/// The smallest blocks that reach the memory's bandwidth, if smaller ones do not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccessKnee {
    /// The coordinates that all sizes of blocks share.
    pub at: Coordinates,
    /// The smallest blocks from which on no larger ones have more than 10 % more bandwidth; `null` if these are the smallest of all, or the
    /// largest.
    pub knee: Option<Bytes>,
    /// Bandwidth of the smallest blocks over the highest bandwidth, from 0 to 1.
    pub smallest_share: f64,
}
