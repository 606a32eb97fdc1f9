//! Cache-to-cache transfers: one pair, or every pair.

use serde::{Deserialize, Serialize};

use crate::experiment::{ChaseOrder, Coordinates, Hops, LineState, MemoryPlace};
use crate::plan::loaders::BufferPlan;
use crate::protocol::{MIN_PAIR_RUNS, PAIR_RUN};
use crate::units::Bytes;

/// A transfer from one CPU's cache to another's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Handoff {
    /// The CPU that holds the lines.
    pub holder: u32,
    /// The CPU that reads them.
    pub reader: u32,
    /// Whether the holder modified them.
    pub state: LineState,
    /// The buffer. Its node is the home of the lines.
    pub buffer: BufferPlan,
    /// Transfer window: bytes handed over at a time, at most half of the holder's L2.
    pub window: Bytes,
    /// Distance between lines.
    pub stride: Bytes,
    /// Order of the chase.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub order: ChaseOrder,
    /// Window within which a window-local chase is random, if it is not the transfer window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chase_window: Option<Bytes>,
    /// Length of the reader's chase over each allocation, if it was given instead of a time. It ends with the transfer window in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops: Option<Hops>,
    /// A CPU that loads the lines in between, so that they are shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharer: Option<u32>,
    /// Bytes that the holder reads from another buffer after it has loaded or stored the lines, so that they move to an outer cache.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub holder_pushes: Bytes,
    /// Bytes that the reader reads from another buffer before it reads the lines.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub reader_pushes: Bytes,
}

impl Handoff {
    /// The coordinates of its result: the reader is on `cpu_node`, and the chase has this order by request.
    pub fn place(&self, cpu_node: u32, order: Option<ChaseOrder>) -> Coordinates {
        let BufferPlan { node, weights, directory, .. } = &self.buffer;
        Coordinates {
            cpu_node: Some(cpu_node),
            memory: Some(if weights.is_some() { MemoryPlace::Inherited } else { MemoryPlace::Node(*node) }),
            memory_dir: directory.clone(),
            weights: weights.clone(),
            cpu: Some(self.reader),
            holder_cpu: Some(self.holder),
            sharer_cpu: self.sharer,
            state: Some(self.state),
            order,
            ..Coordinates::default()
        }
    }
}

/// Seconds of the runs that every transfer has at least.
pub const MIN_TRANSFER_S: f64 = MIN_PAIR_RUNS as f64 * PAIR_RUN.as_millis() as f64 / 1e3;

/// Seconds to start them and to look at the machine.
const START_S: f64 = 0.01;

/// Transfers between every two of some CPUs, in both directions. They are made in rounds of pairs that have no core in common
/// ([`Rounds`](crate::pairing::Rounds)). The pairs of a round run at the same time if they do not disturb each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Transfers {
    /// The CPUs.
    pub ends: Vec<TransferEnd>,
    /// States of the lines; every pair is measured in each.
    pub states: Vec<LineState>,
    /// Distance between lines.
    pub stride: Bytes,
    /// Order of the chase, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<ChaseOrder>,
    /// Bytes that each holder reads from another buffer after it has loaded or stored the lines.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub holder_pushes: Bytes,
    /// Bytes that each reader reads from another buffer before it reads the lines.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub reader_pushes: Bytes,
    /// Number of rounds. Each is run once for each direction, state and home.
    pub rounds: u64,
    /// The largest number of pairs in a round.
    pub at_once: u32,
    /// Pairs of reader and holder that are measured in place of all pairs if pairs disturb each other and all of them one by one would take
    /// too long. If empty, all are measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub representatives: Vec<(u32, u32)>,
    /// The longest time, in seconds, that one transfer measures. It has at least three runs.
    pub each_s: f64,
    /// Seconds that all pairs would take one by one.
    pub one_by_one_s: f64,
}

/// A CPU as reader and as holder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransferEnd {
    /// Its number.
    pub cpu: u32,
    /// Its node.
    pub node: u32,
    /// The buffers that it reads as the reader, one for each home of the lines.
    pub buffers: Vec<BufferPlan>,
    /// Transfer window when it is the holder: bytes handed over at a time, at most half of its L2.
    pub window: Bytes,
}

/// Pairs of more CPUs than these are one matrix instead of a result each: 32 CPUs have 2,000 results.
const MOST_LISTED: usize = 32;

impl Transfers {
    /// Whether all pairs are one matrix for each state and home, and no results of their own.
    pub const fn as_matrix(&self) -> bool {
        self.ends.len() > MOST_LISTED
    }

    /// Ordered pairs.
    pub const fn pairs(&self) -> u64 {
        let n = self.ends.len() as u64;
        n * n.saturating_sub(1)
    }

    /// How many homes the lines of a reader may have; the same number for each.
    pub fn homes(&self) -> usize {
        self.ends.first().map_or(0, |e| e.buffers.len())
    }

    /// Results: pairs in each state at each home.
    pub fn results(&self) -> u64 {
        self.pairs() * self.states.len() as u64 * self.homes() as u64
    }

    /// Seconds of one transfer, at most.
    pub const fn one_s(&self) -> f64 {
        self.one_s_within(f64::INFINITY)
    }

    /// The same with at most `budget_s` of measuring, but never less than the fewest runs take.
    pub const fn one_s_within(&self, budget_s: f64) -> f64 {
        self.each_s.min(budget_s).max(MIN_TRANSFER_S) + START_S
    }

    /// Seconds of all rounds in both directions, the pairs of a round at the same time.
    pub fn together_s(&self) -> f64 {
        2.0 * self.rounds as f64 * (self.states.len() * self.homes()) as f64 * self.one_s()
    }

    fn end(&self, cpu: u32) -> Option<&TransferEnd> {
        self.ends.binary_search_by_key(&cpu, |e| e.cpu).ok().map(|i| &self.ends[i])
    }

    /// One transfer and its coordinates; `None` for CPUs or a home that are not among these.
    pub fn transfer(&self, reader: u32, holder: u32, home: usize, state: LineState) -> Option<(Coordinates, Handoff)> {
        let (by, from) = (self.end(reader)?, self.end(holder)?);
        let buffer = by.buffers.get(home)?.clone();
        let handoff = Handoff {
            holder,
            reader,
            state,
            buffer,
            window: from.window,
            stride: self.stride,
            order: self.order.unwrap_or(ChaseOrder::WindowLocal),
            chase_window: None,
            hops: None,
            sharer: None,
            holder_pushes: self.holder_pushes,
            reader_pushes: self.reader_pushes,
        };
        Some((handoff.place(by.node, self.order), handoff))
    }
}
