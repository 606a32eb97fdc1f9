//! Chases of any task: where their buffers are, how long they take.

use memgauge_model::experiment::{ChaseOrder, Coordinates, Hops};
use memgauge_model::plan::{Cell, IdleChase, Probe, Work};
use memgauge_model::spec::ChaseSpec;
use memgauge_model::units::Bytes;
use memgauge_model::words;
use memgauge_model::words::{Knob, Problem, Way};

use crate::check::{PlanError, invalid};
use crate::context::Planner;
use crate::sizes::IN_TURN;

/// The assumed time of a hop: a load from DRAM. For estimates of time only.
const NS_PER_HOP: f64 = 100.0;
/// The approximate time of one chase over `buffer`.
pub(super) fn hops_s(hops: Hops, buffer: Bytes, stride: Bytes) -> f64 {
    let hops = match hops {
        Hops::Count(hops) => hops,
        Hops::OnePass => buffer.0 / stride.0,
    };
    hops as f64 * NS_PER_HOP / 1e9
}

/// The approximate time of one chase over the probe's buffer.
pub(super) fn seconds(hops: Hops, probe: &Probe) -> f64 {
    hops_s(hops, probe.buffer.bytes, probe.stride)
}

impl Planner<'_> {
    /// The coordinates of a chase.
    pub(super) fn chase_at(&self, probe: &Probe) -> Coordinates {
        let node = if probe.buffer.weights.is_some() { IN_TURN } else { probe.buffer.node };
        let (memory, weights) = self.memory_place(Some(node));
        Coordinates { cpu_node: Some(self.cpu_node(probe.cpu)), memory, weights, cpu: Some(probe.cpu), ..Coordinates::default() }
    }

    /// A chase alone.
    pub(super) fn latency_cell(&self, probe: Probe, allocations: u32, orders: Vec<ChaseOrder>) -> Cell {
        let ChaseSpec { hops, histogram, .. } = self.requested.chase;
        Cell::new(self.chase_at(&probe), Work::Latency(IdleChase { probe, allocations, orders, hops, histogram }))
    }

    pub(super) fn probe(&mut self, cpu: u32, node: u32) -> Result<Probe, PlanError> {
        let stride = self.sizes.stride()?;
        let buffer = self.sizes.probe_buffer(cpu, node, &mut self.notes)?;
        if self.requested.orders.contains(&ChaseOrder::FullRandom) && self.sizes.too_long(buffer.bytes) {
            return invalid(Problem::new(too_long(buffer.bytes), Way::Smaller(Knob::Size).either_or(words!["another ", Knob::Order])));
        }
        let window = self.sizes.window(buffer.bytes, stride)?;
        Ok(Probe { cpu, buffer, stride, window })
    }

    /// The node of the chase's buffer when none is named: that of the CPU that touches it, otherwise that of the CPU that chases.
    pub(super) fn chase_home(&mut self, cpu: u32) -> u32 {
        match self.requested.chase.touch {
            // Nodes that are named may be those of the loaders.
            Some(touch) if self.device.is_none() && self.machine.allowed.nodes.contains(self.cpu_node(touch)) => self.cpu_node(touch),
            touch => self.local_node(touch.unwrap_or(cpu)),
        }
    }
}

/// Why a full-random chase cannot go over a buffer of this size: its links number lines with 32 bits.
fn too_long(buffer: Bytes) -> String {
    format!("a full-random chase over {buffer} has more lines than can be numbered (2^32)")
}
