//! Which hosts are slower than their siblings.

use memgauge_model::experiment::{Coordinates, Experiment, Metric, Unit};
use memgauge_model::result::PageKind;
use memgauge_model::units::IdSet;
use serde::{Deserialize, Serialize};

use super::group::{FleetField, HostGroup};

/// Hosts that are slower than hosts like them, hosts for which that is not known, and other findings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetOutliers {
    /// [`FLEET_VERSION`](super::FLEET_VERSION) of the program that wrote it.
    pub fleet_version: u32,
    /// How many hosts there are.
    pub hosts: u32,
    /// How many of them have every number that their siblings have, none of it slower.
    pub as_siblings: u32,
    /// When the earliest of the values was measured: UTC, RFC 3339.
    pub measured_from: String,
    /// When the latest was.
    pub measured_to: String,
    /// The groups that hosts were compared with.
    pub groups: Vec<HostGroup>,
    /// Hosts that are slower than their siblings, the worst first.
    pub slow: Vec<SlowHost>,
    /// Hosts for which it is not known whether they are slower, by name.
    pub unknown: Vec<UnknownHost>,
    /// Hosts that fall into several populations.
    pub populations: Vec<Populations>,
    /// Hosts that may be one, and names that may stand for several hosts.
    pub duplicates: Vec<Duplicate>,
    /// Numbers that fewer than eight hosts of a group have with good quality and one kind of pages. Nobody was judged by them.
    pub not_judged: Vec<NotJudged>,
}

/// A host, and its latest run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostName {
    /// Its name.
    pub host: String,
    /// The hash of its machine id; `null` where it is not known.
    pub machine_id_hash: Option<String>,
    /// The id of its latest run.
    pub run_id: String,
    /// When that run began: UTC, RFC 3339.
    pub started: String,
}

/// A host that is slower than its siblings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlowHost {
    /// Which.
    #[serde(flatten)]
    pub name: HostName,
    /// The index of its group in `groups`.
    pub group: u32,
    /// The part of the host that the slow numbers have in common.
    pub place: SlowPlace,
    /// The quantity, if only one is slow.
    pub metric: Option<Metric>,
    /// How many numbers of that place are slow.
    pub slow_numbers: u32,
    /// Of how many.
    pub numbers_there: u32,
    /// Every slow number, the worst first.
    pub numbers: Vec<SlowNumber>,
    /// How many of its numbers could not be judged.
    pub unknown_numbers: u32,
}

/// The part of a host that its slow numbers have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "place", rename_all = "kebab-case")]
pub enum SlowPlace {
    /// They are most of what was measured.
    WholeHost,
    /// A node: its memory, or its CPUs.
    Node {
        /// The node.
        node: u32,
    },
    /// From the CPUs of one node to the memory of another.
    Link {
        /// Node of the CPUs.
        from: u32,
        /// Node of the memory.
        to: u32,
    },
    /// CPUs that share a last-level cache.
    CacheDomain {
        /// The CPUs.
        cpus: IdSet,
    },
    /// One CPU.
    Cpu {
        /// The CPU.
        cpu: u32,
    },
    /// Some regions of a node's memory, as one DIMM would be.
    Regions {
        /// The node.
        node: u32,
        /// Numbers of the regions.
        regions: IdSet,
    },
    /// Nothing that is known.
    Numbers,
}

/// A number that is worse than the siblings'.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlowNumber {
    /// What was measured.
    pub experiment: Experiment,
    /// Its coordinates.
    pub at: Coordinates,
    /// The quantity.
    pub metric: Metric,
    /// The unit of `value` and `siblings_median`.
    pub unit: Unit,
    /// The pages that backed the memory, here and on the siblings; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageKind>,
    /// The host's value.
    pub value: f64,
    /// When it was measured: UTC, RFC 3339.
    pub measured: String,
    /// The median of the group.
    pub siblings_median: f64,
    /// How many hosts of the group have the number, with such pages.
    pub siblings: u32,
    /// `value` over `siblings_median`.
    pub ratio: f64,
    /// Lower end of the ratio's 95 % interval, of both sides; `null` where the value has no interval.
    pub ratio_low: Option<f64>,
    /// Upper end.
    pub ratio_high: Option<f64>,
    /// How many robust standard deviations it is worse than the median.
    pub robust_z: f64,
    /// The probability that a host like its siblings has such a number.
    pub p: f64,
}

/// A host for which it is not known whether it is slower.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnknownHost {
    /// Which.
    #[serde(flatten)]
    pub name: HostName,
    /// Why, the weightiest reason first.
    pub reasons: Vec<UnknownReason>,
}

/// Why it is not known whether a host is slower.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum UnknownReason {
    /// There are fewer than eight hosts with its hardware.
    TooFewSiblings {
        /// How many there are, with itself.
        hosts: u32,
    },
    /// None of its numbers is one that eight of its siblings have.
    NothingToCompare,
    /// Its latest run did not measure everything that was planned.
    Incomplete,
    /// Some numbers have no value.
    NotMeasured {
        /// How many.
        numbers: u32,
        /// Why: the stable word of the reason of most of them.
        why: String,
    },
    /// Numbers that its siblings have were never measured, or not since its hardware changed.
    Missing {
        /// How many.
        numbers: u32,
    },
    /// Some numbers were last measured with other kinds of pages than its siblings'.
    OtherPages {
        /// How many.
        numbers: u32,
    },
    /// Some numbers are degraded or unreliable.
    Degraded {
        /// How many.
        numbers: u32,
        /// How many of them are much worse than the siblings': measure this host again.
        look_slow: u32,
    },
    /// It belongs to the slower of two populations. Neither microcode nor firmware nor kernel explains their difference.
    SlowerPopulation {
        /// How many numbers are.
        numbers: u32,
    },
}

/// Hosts of one kind that fall into several populations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Populations {
    /// The hosts.
    pub group: HostGroup,
    /// The properties that distinguish the populations: several if they always occur together; empty if no known property does.
    pub fields: Vec<FleetField>,
    /// Properties that an earlier entry names for these hosts. Their effect is removed before the populations are ordered and their
    /// differences computed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub besides: Vec<FleetField>,
    /// The populations, the fastest first.
    pub populations: Vec<Population>,
    /// The numbers that differ, the one that differs most first.
    pub numbers: Vec<PopulationNumber>,
    /// How many numbers were looked at.
    pub of_numbers: u32,
}

/// One population.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Population {
    /// The value of each of the fields.
    pub values: Vec<String>,
    /// How many hosts.
    pub hosts: u32,
    /// The first names of them, at most eight.
    pub some: Vec<String>,
}

/// A number that differs between populations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PopulationNumber {
    /// What was measured.
    pub experiment: Experiment,
    /// Its coordinates.
    pub at: Coordinates,
    /// The quantity.
    pub metric: Metric,
    /// The unit of the medians.
    pub unit: Unit,
    /// The pages that backed the memory; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageKind>,
    /// The median of each population, as it was measured; `null` if too few of its hosts have the number.
    pub medians: Vec<Option<f64>>,
    /// The worst median over the best, without what the fields in `besides` explain.
    pub ratio: f64,
}

/// Names and machine ids that do not match one to one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "duplicate", rename_all = "kebab-case")]
pub enum Duplicate {
    /// Several names have one machine id: one host under several names, or hosts installed from one image.
    OneIdManyNames {
        /// The hash of the machine id.
        machine_id_hash: String,
        /// The names.
        hosts: Vec<String>,
    },
    /// One name has several machine ids: a host that was installed again, or several hosts of one name. They are judged apart.
    OneNameManyIds {
        /// The name.
        host: String,
        /// The hashes.
        machine_id_hashes: Vec<String>,
    },
}

/// A number that nobody was judged by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotJudged {
    /// The index of the group in `groups`.
    pub group: u32,
    /// What was measured.
    pub experiment: Experiment,
    /// Its coordinates.
    pub at: Coordinates,
    /// The quantity.
    pub metric: Metric,
    /// The pages that backed the memory; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageKind>,
    /// How many hosts of the group have it with good quality.
    pub hosts: u32,
}
