//! A stamp: the quick probes before and after a run that tell states of the machine apart.

use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use super::loaders::AlikeLoaders;
use super::loaders::{Loader, Probe, Traffic, alike};
use super::transfers::Handoff;

/// The probes of a stamp. They depend on the machine and on what this process may use of it, and not on what is measured, so that stamps of
/// different runs can be compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StampPlan {
    /// A chase over memory.
    pub memory: Probe,
    /// A chase that stays in the last-level cache; absent if that is not known, or no larger than the cache before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Probe>,
    /// CPUs that read memory: the first alone, and then all of them.
    #[serde(with = "alike")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<AlikeLoaders>"))]
    pub loaders: Vec<Loader>,
    /// Their traffic, with one kernel: no trial chooses it.
    pub traffic: Traffic,
    /// A transfer between the caches of two cores; absent if only one may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Handoff>,
    /// How often each probe runs. The first time warms up and does not count.
    pub rounds: u32,
    /// The longest time of a stamp in seconds: rounds that would end later are left out.
    pub at_most_s: f64,
}

impl StampPlan {
    /// Seconds that both stamps of a run take at most.
    pub fn both_s(&self) -> f64 {
        2.0 * self.at_most_s
    }
}
