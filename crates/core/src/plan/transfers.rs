//! Cache-to-cache transfers: one pair, or every pair.

use crate::experiment::{ChaseOrder, Coordinates, LineState, MemoryPlace};
use crate::plan::loaders::BufferPlan;
use crate::protocol::{MIN_PAIR_RUNS, PAIR_RUN};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// A transfer from one CPU's cache to another's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Handoff {
    /// The CPU that holds the lines.
    pub holder: u32,
    /// The CPU that reads them.
    pub reader: u32,
    /// Whether the holder modified them.
    pub state: LineState,
    /// The buffer; its node is the lines' home.
    pub buffer: BufferPlan,
    /// Bytes handed over at a time; at most half of the holder's L2.
    pub window: Bytes,
    /// Distance between lines.
    pub stride: Bytes,
    /// Order of the chase.
    #[serde(default, skip_serializing_if = "ChaseOrder::is_window_local")]
    pub order: ChaseOrder,
    /// A CPU that loads the lines in between, so that they are shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharer: Option<u32>,
    /// Bytes that the holder reads elsewhere, in a buffer like this one, after taking the lines.
    #[serde(default, skip_serializing_if = "Bytes::is_zero")]
    pub holder_pushes: Bytes,
    /// Bytes that the reader reads elsewhere before it reads the lines.
    #[serde(default, skip_serializing_if = "Bytes::is_zero")]
    pub reader_pushes: Bytes,
}

/// Seconds of the three runs that a transfer takes at least.
pub(crate) const LEAST_S: f64 = MIN_PAIR_RUNS as f64 * PAIR_RUN.as_millis() as f64 / 1e3;

/// Seconds to start them and to look at the machine.
const START_S: f64 = 0.01;

/// Transfers between every two of some CPUs, in both directions: in rounds of pairs that have no core in common
/// ([`Rounds`](crate::pairing::Rounds)), a round's pairs at once where they do not disturb each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Transfers {
    /// The CPUs.
    pub ends: Vec<End>,
    /// States of the lines, each pair in each.
    pub states: Vec<LineState>,
    /// Distance between lines.
    pub stride: Bytes,
    /// Order of the chase where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<ChaseOrder>,
    /// Bytes that each holder reads elsewhere after taking the lines.
    #[serde(default, skip_serializing_if = "Bytes::is_zero")]
    pub holder_pushes: Bytes,
    /// Bytes that each reader reads elsewhere before it reads the lines.
    #[serde(default, skip_serializing_if = "Bytes::is_zero")]
    pub reader_pushes: Bytes,
    /// Rounds; each is run once for each direction, state and home.
    pub rounds: u64,
    /// The most pairs of a round.
    pub at_once: u32,
    /// Pairs of reader and holder that are measured instead of all when pairs disturb each other and all of them one by one would take too
    /// long; all of them where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub representatives: Vec<(u32, u32)>,
    /// The most seconds of measuring for one transfer, three runs at least.
    pub each_s: f64,
    /// Seconds that all pairs would take one by one.
    pub one_by_one_s: f64,
}

/// A CPU as reader and as holder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct End {
    /// Its number.
    pub cpu: u32,
    /// Its node.
    pub node: u32,
    /// The buffers that it reads as reader, one for each home of the lines.
    pub buffers: Vec<BufferPlan>,
    /// Bytes handed over at a time where it is the holder; at most half of its L2.
    pub window: Bytes,
}

impl Transfers {
    /// Ordered pairs.
    pub const fn pairs(&self) -> u64 {
        let n = self.ends.len() as u64;
        n * n.saturating_sub(1)
    }

    /// Where the lines of a reader may be at home; as many for each.
    pub fn homes(&self) -> usize {
        self.ends.first().map_or(0, |e| e.buffers.len())
    }

    /// Results: pairs in each state at each home.
    pub fn results(&self) -> u64 {
        self.pairs() * self.states.len() as u64 * self.homes() as u64
    }

    /// Seconds of one transfer, at most.
    pub(crate) const fn one_s(&self) -> f64 {
        self.one_s_within(f64::INFINITY)
    }

    /// The same with no more than `budget_s` of measuring, the fewest runs aside.
    pub(crate) const fn one_s_within(&self, budget_s: f64) -> f64 {
        self.each_s.min(budget_s).max(LEAST_S) + START_S
    }

    /// Seconds of all rounds, a round's pairs at once, in both directions.
    pub(crate) fn together_s(&self) -> f64 {
        2.0 * self.rounds as f64 * (self.states.len() * self.homes()) as f64 * self.one_s()
    }

    fn end(&self, cpu: u32) -> Option<&End> {
        self.ends.binary_search_by_key(&cpu, |e| e.cpu).ok().map(|i| &self.ends[i])
    }

    /// One transfer, and where it stands in the table; `None` for CPUs or a home that are not among these.
    pub fn one(&self, reader: u32, holder: u32, home: usize, state: LineState) -> Option<(Coordinates, Handoff)> {
        let (by, from) = (self.end(reader)?, self.end(holder)?);
        let buffer = by.buffers.get(home)?.clone();
        let at = Coordinates {
            cpu_node: Some(by.node),
            memory: Some(MemoryPlace::Node(buffer.node)),
            cpu: Some(reader),
            holder_cpu: Some(holder),
            state: Some(state),
            order: self.order,
            memory_dir: buffer.directory.clone(),
            ..Coordinates::default()
        };
        let handoff = Handoff {
            holder,
            reader,
            state,
            buffer,
            window: from.window,
            stride: self.stride,
            order: self.order.unwrap_or(ChaseOrder::WindowLocal),
            sharer: None,
            holder_pushes: self.holder_pushes,
            reader_pushes: self.reader_pushes,
        };
        Some((at, handoff))
    }
}
