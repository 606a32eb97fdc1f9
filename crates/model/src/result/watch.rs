//! A machine that is watched: its states over minutes or days, by stamps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::result::{Difference, Moment, ProbeComparison, QualityReason, StampProbe};

/// What `memgauge watch` saw.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Watch {
    /// Seconds from the beginning of a stamp to that of the next, at least.
    pub every_s: f64,
    /// How many stamps were taken.
    pub stamps: u64,
    /// How many of them were taken while others used the machine.
    pub busy: u64,
    /// Seconds that all stamps took together.
    pub stamps_s: f64,
    /// The states that were seen. State 1 was seen first.
    pub states: Vec<WatchedState>,
    /// How often another state began than the one before. That the machine becomes busy does not count.
    pub changed: u64,
    /// The last changes: when another state began, the machine became busy, or it was quiet again.
    pub changes: Vec<StateChange>,
    /// What the stamps showed. Of a long watch these are every second, fourth or eighth of them, and so on.
    pub points: Vec<WatchPoint>,
    /// How the bandwidth of others was estimated; absent if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OthersScale>,
}

/// A state of the machine: stamps that do not differ.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchedState {
    /// How many stamps showed it.
    pub stamps: u64,
    /// The number of an earlier state, if this one turned out to be it: its level is the same, and its stamps are counted there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folded: Option<usize>,
    /// Its probes, in the order of [`StampProbe`].
    pub probes: Vec<ProbeLevel>,
}

/// A probe in a state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeLevel {
    /// The probe.
    pub probe: StampProbe,
    /// The unit of the value.
    pub unit: String,
    /// The median of the first stamps that showed the state.
    pub value: f64,
    /// The standard deviation of a single stamp, relative to the value.
    pub scatter: f64,
    /// The largest change that the scatter allows, relative as well. Smaller changes of state are not seen.
    pub allowed: f64,
}

/// The condition of a watched machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Condition {
    /// In a state.
    Quiet {
        /// Its number: 1 is the first.
        state: usize,
    },
    /// Used by others, so that its state is not known.
    Busy,
}

/// Another condition began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateChange {
    /// When the first stamp that shows it began.
    pub at: Moment,
    /// The condition that began.
    #[serde(flatten)]
    pub to: Condition,
    /// Whether the state was seen before.
    pub again: bool,
    /// The number of the state that turned out to be this one, if that is all that was found: nothing changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folded: Option<usize>,
    /// The probes that changed since the state before, the largest change first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeComparison>,
    /// Settings of the system that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Difference>,
    /// What others do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<QualityReason>,
    /// The bandwidth that others seem to use, if it is estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OthersBandwidth>,
}

/// What one stamp showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchPoint {
    /// When the stamp began.
    pub at: Moment,
    /// The condition of the machine; absent if nothing was measured, or this stamp and the one before show different states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// What others did meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<QualityReason>,
    /// The values of the probes that were measured.
    pub probes: BTreeMap<StampProbe, f64>,
    /// The bandwidth that others seem to use, if it is estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OthersBandwidth>,
}

/// How much memory bandwidth others seem to use, by what the latency of memory says.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OthersBandwidth {
    /// In GB/s; 0 if latency is not higher than in the quietest state.
    pub gbs: f64,
    /// Lower end of the 95 % interval; 0 if the stamp does not show that others use any.
    pub low_gbs: f64,
    /// Upper end; `null` if latency may be higher than at the highest load of the curve.
    pub high_gbs: Option<f64>,
}

/// The scale by which latency is read as bandwidth of others: a curve of latency under load of this machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OthersScale {
    /// The file with the curve; absent if it was measured before the watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Memory latency of the quietest state, in ns; `null` until there is one.
    pub quiet_ns: Option<f64>,
    /// The highest bandwidth of the curve, in GB/s.
    pub peak_gbs: f64,
    /// The least bandwidth that a stamp shows in 95 % of the cases, in GB/s; `null` if even the highest of the curve is not seen.
    pub detection_gbs: Option<f64>,
    /// The curve: bandwidth in GB/s, and latency over that at the lowest load.
    pub curve: Vec<OthersPoint>,
}

/// A point of the scale.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OthersPoint {
    /// Bandwidth of the loaders in GB/s.
    pub gbs: f64,
    /// Latency over that at the lowest load. It does not fall as bandwidth grows: points that do by chance are averaged.
    pub ratio: f64,
    /// The standard error of the ratio, relative to it.
    pub error: f64,
}
