//! What was published about machines like this one.

use serde::{Deserialize, Serialize};

use crate::experiment::Unit;

/// What results and published values have in common, so that they can be compared.
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

/// What was published for machines like this one, beside what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedSpan {
    /// What is compared.
    pub comparable: Comparable,
    /// The CPU generation.
    pub microarch: String,
    /// Whether the published values are of virtual machines; `null` if they are of both, or if it is not known.
    pub virtual_machines: Option<bool>,
    /// How many values.
    pub n: u32,
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

/// Where a value is, seen from a span.
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
