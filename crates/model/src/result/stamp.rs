//! Stamps: the state of the machine before and after a run.

use serde::{Deserialize, Serialize};

use crate::estimate::NotMeasured;
use crate::result::{Difference, Moment, Noise, PageKind, QualityReason};
use crate::units::{Bytes, IdSet};

/// The state of the machine during a run, by stamps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineState {
    /// The stamps of this run, in the order of time: one at its beginning, and one at its end.
    pub stamps: Vec<Stamp>,
    /// The first stamp compared with the last, or an earlier run's with this one's; absent if there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<StateComparison>,
}

/// A few quick probes that tell states of a machine apart. Its numbers are comparable with those of other stamps
/// only: buffers are smaller and times shorter than those of measurements.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stamp {
    /// When it began.
    pub taken: Moment,
    /// How long it took, in seconds.
    pub took_s: f64,
    /// The readings, in the order of [`StampProbe`].
    pub probes: Vec<ProbeReading>,
    /// What else used the machine meanwhile.
    pub noise: Noise,
}

impl Stamp {
    /// The reading of a probe.
    pub fn reading(&self, probe: StampProbe) -> Option<&ProbeReading> {
        self.probes.iter().find(|reading| reading.probe == probe)
    }
}

/// A probe of a stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StampProbe {
    /// Nanoseconds of a load from memory.
    MemoryLatency,
    /// Nanoseconds of a load from the last-level cache.
    CacheLatency,
    /// GB/s that one CPU reads from memory.
    ReadsOfOneCpu,
    /// GB/s that all CPUs read from memory together.
    ReadsOfAllCpus,
    /// Nanoseconds to load a line that another core has modified.
    Transfer,
    /// GHz of a core that works.
    Frequency,
}

impl StampProbe {
    /// All of them, in the order in which stamps list them.
    pub const ALL: [Self; 6] =
        [Self::MemoryLatency, Self::CacheLatency, Self::ReadsOfOneCpu, Self::ReadsOfAllCpus, Self::Transfer, Self::Frequency];

    /// Its name in tables and sentences.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MemoryLatency => "memory latency",
            Self::CacheLatency => "last-level cache latency",
            Self::ReadsOfOneCpu => "reads by one CPU",
            Self::ReadsOfAllCpus => "reads by all CPUs",
            Self::Transfer => "cache-to-cache transfer",
            Self::Frequency => "core frequency",
        }
    }

    /// The unit of its values.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::MemoryLatency | Self::CacheLatency | Self::Transfer => "ns",
            Self::ReadsOfOneCpu | Self::ReadsOfAllCpus => "GB/s",
            Self::Frequency => "GHz",
        }
    }
}

/// The reading of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeReading {
    /// The probe.
    pub probe: StampProbe,
    /// The unit of its values: `ns`, `GB/s` or `GHz`.
    pub unit: String,
    /// The median of the rounds; `null` if there is none.
    pub value: Option<f64>,
    /// Why `value` is `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<NotMeasured>,
    /// The value of each round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<f64>,
    /// The CPUs that worked. Readings of other CPUs are not comparable.
    pub cpus: IdSet,
    /// The buffer, or the buffers together; absent for a frequency. Readings of other sizes are not comparable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// The pages that backed the buffer of a chase; absent for other probes, and if it is not known. Readings of other pages are not
    /// comparable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageKind>,
}

/// Two stamps compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateComparison {
    /// Whether they show the same state.
    pub verdict: StateVerdict,
    /// Each probe that both have.
    pub probes: Vec<ProbeComparison>,
    /// Probes that cannot be compared: one stamp has no value, or they are of other CPUs, buffers or pages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<StampProbe>,
    /// Settings of the system that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Difference>,
    /// What others did during one of the stamps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<QualityReason>,
    /// The file that the first stamp is from; absent if both are of one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
}

impl StateComparison {
    /// The probes that differ by more than their scatter allows, the largest change first.
    pub fn changes(&self) -> Vec<&ProbeComparison> {
        let mut changes: Vec<&ProbeComparison> = self.probes.iter().filter(|p| p.differs).collect();
        changes.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
        changes
    }
}

/// What two stamps say about the state of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StateVerdict {
    /// No probe and no setting differs, and each probe would have shown a change of 10 %.
    Same,
    /// A probe differs by more than its scatter allows, or a setting differs.
    Another,
    /// Others used the machine during the second stamp, or during one of two of the same run, so that the probes do not tell.
    Busy,
    /// Nothing differs, but a probe cannot be compared or would have missed a change of 10 %, or others used the machine during an earlier run's
    /// stamp.
    Unknown,
}

/// A probe in two stamps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeComparison {
    /// The probe.
    pub probe: StampProbe,
    /// The unit of the values.
    pub unit: String,
    /// Its value in the first stamp.
    pub before: f64,
    /// Its value in the second stamp.
    pub after: f64,
    /// The change, relative to the first value: 0.05 is a rise by 5 %.
    pub change: f64,
    /// The largest change that the scatter of both allows, relative as well. Smaller changes of state are not seen.
    pub allowed: f64,
    /// Whether the change is larger.
    pub differs: bool,
}
