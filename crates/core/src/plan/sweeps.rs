//! Sweeps over working sets.

use serde::{Deserialize, Serialize};

use crate::experiment::ChaseOrder;
use crate::plan::loaders::{Loader, Probe, Traffic};
use crate::units::Bytes;

/// A pointer chase alone over working sets that all begin where the probe's buffer begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencySweep {
    /// The probe; its buffer holds the largest working set.
    pub probe: Probe,
    /// Order of the chase.
    pub order: ChaseOrder,
    /// The working sets, ascending, in bytes of the lines that are chased. These lines are [`Probe::stride`] apart.
    pub sizes: Vec<Bytes>,
}

impl LatencySweep {
    /// Bytes of the buffer over which the lines of a working set are spread.
    pub const fn range(&self, size: Bytes, line: Bytes) -> Bytes {
        Bytes(size.0 / line.0 * self.probe.stride.0)
    }
}

/// Loaders alone over working sets that all begin where their buffers begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BandwidthSweep {
    /// The loaders; each one's buffer holds the largest working set.
    pub loaders: Vec<Loader>,
    /// Their traffic.
    pub traffic: Traffic,
    /// The working sets of each loader, ascending.
    pub sizes: Vec<Bytes>,
}
