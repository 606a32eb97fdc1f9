//! What was published about machines like this one.

use serde::{Deserialize, Serialize};

use crate::experiment::Unit;

/// Kinds of numbers that results and published values have in common, so that they can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Comparable {
    /// Idle latency of the own node, random over the whole buffer: address translation is included.
    IdleLocalRandom,
    /// The same with address translation hidden.
    IdleLocalTranslationHidden,
    /// Idle latency of another socket's node, random over the whole buffer.
    IdleRemoteRandom,
    /// Loads of all CPUs of a socket from its own memory, with the same channels and speed.
    ReadPerSocket,
    /// A modified line from another core of the socket.
    TransferSameSocket,
    /// A modified line from a core of another socket.
    TransferOtherSocket,
}

/// Published values of machines like this one, next to the measured value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedSpan {
    /// What is compared.
    pub comparable: Comparable,
    /// The CPU generation.
    pub microarch: String,
    /// The kind of memory, such as `DDR5`; absent where neither the sources nor the generation tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Whether the published values are of virtual machines; `null` if they are of both, or if it is not known.
    pub virtual_machines: Option<bool>,
    /// How many values.
    pub n: u32,
    /// How many of them are of virtual machines.
    #[serde(default)]
    pub virtual_values: u32,
    /// How many are of bare metal. Of the rest it is not known.
    #[serde(default)]
    pub metal_values: u32,
    /// How many may be of machines with another number of NUMA nodes in a socket, because theirs or this machine's is not known.
    #[serde(default)]
    pub other_nodes_possible: u32,
    /// How many of them are our estimates without hits in the last-level cache.
    pub corrected: u32,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Their unit, and that of `measured`.
    pub unit: Unit,
    /// The median of what was measured.
    pub measured: f64,
    /// Where it is.
    pub position: Position,
}

/// Kinds of numbers in a report that cannot be compared with anything published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unreferenced {
    /// Why.
    pub reason: NoReference,
    /// The CPU generation, where it is known.
    pub microarch: Option<String>,
    /// The numbers.
    pub comparables: Vec<Comparable>,
}

/// Why a published reference is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NoReference {
    /// memgauge cannot tell the CPU's generation.
    GenerationUnknown,
    /// Its table has no value of the generation.
    GenerationNotInTable,
    /// The values that it has are of other methods, memory, channels or NUMA modes.
    NothingComparable,
}

/// The position of a value relative to a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Position {
    /// Below it.
    Below,
    /// In it.
    Within,
    /// Above it.
    Above,
}
