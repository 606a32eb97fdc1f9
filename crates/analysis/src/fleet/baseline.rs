//! What hosts of each kind measure.

use memgauge_model::estimate::is_possible;
use memgauge_model::experiment::{Coordinates, Experiment, Metric, Unit};
use memgauge_model::result::PageKind;
use serde::{Deserialize, Serialize};

use super::group::HostGroup;

/// The usual numbers of each kind of host, and the values beyond which a host is flagged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetBaseline {
    /// [`FLEET_VERSION`](super::FLEET_VERSION) of the program that wrote it.
    pub fleet_version: u32,
    /// How many hosts there are.
    pub hosts: u32,
    /// When the earliest of the values was measured: UTC, RFC 3339.
    pub measured_from: String,
    /// When the latest was.
    pub measured_to: String,
    /// Every group of eight hosts and more, those with the most in common first.
    pub groups: Vec<GroupBaseline>,
    /// How many hosts are in none of them.
    pub hosts_without_group: u32,
}

impl FleetBaseline {
    /// One of its numbers that neither a latency nor a bandwidth can be. `None` for every baseline that memgauge wrote.
    pub fn impossible(&self) -> Option<f64> {
        let numbers = self.groups.iter().flat_map(|group| &group.numbers);
        let mut values = numbers.flat_map(|n| [Some(n.median), Some(n.median_low), Some(n.median_high), n.slower_population]).flatten();
        values.find(|value| !is_possible(*value))
    }
}

/// What the hosts of a group measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupBaseline {
    /// The group.
    #[serde(flatten)]
    pub group: HostGroup,
    /// The numbers that eight of its hosts and more have with good quality.
    pub numbers: Vec<BaselineNumber>,
}

/// What the hosts of a group measure at some coordinates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BaselineNumber {
    /// What was measured.
    pub experiment: Experiment,
    /// Its coordinates.
    pub at: Coordinates,
    /// The quantity.
    pub metric: Metric,
    /// The unit of every value.
    pub unit: Unit,
    /// The pages that backed the memory; values with other pages are separate numbers. Absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageKind>,
    /// How many hosts have it with good quality and are not outliers themselves.
    pub hosts: u32,
    /// Their median.
    pub median: f64,
    /// Lower end of the median's 95 % interval.
    pub median_low: f64,
    /// Upper end.
    pub median_high: f64,
    /// By what share hosts differ: 1.4826 times the median absolute deviation of the logarithms, which is the standard deviation where they
    /// are normally distributed.
    pub spread: f64,
    /// A host is flagged when it is worse than this: below it for bandwidths, above it for latencies.
    pub flagged_beyond: f64,
    /// The median of the slower population, if the hosts fall into two and no known property explains why. `flagged_beyond` is then that of
    /// the slower one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower_population: Option<f64>,
}
