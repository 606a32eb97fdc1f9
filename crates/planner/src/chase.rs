//! Chases: which CPU chases, where its buffer is, how far it goes.

use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment, Hops};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::{Cell, IdleChase, Probe, Step, Work};
use memgauge_model::spec::{ChaseSpec, LatencyShape, Task};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::words;
use memgauge_model::words::{Knob, Problem, Way};

use crate::check::{PlanError, invalid};
use crate::context::{LARGE_MATRIX, Planner};
use crate::sizes::IN_TURN;

/// The assumed time of a hop: a load from DRAM. For estimates of time only.
const NS_PER_HOP: f64 = 100.0;
/// Fresh allocations for a cell of `memgauge latency`: with twelve, Student's factor is near its limit.
const ALLOCATIONS: u32 = 12;
/// Fresh allocations for a cell of the suite: the fewest for which a non-parametric 95 % interval exists.
const SUITE_ALLOCATIONS: u32 = 6;
/// Fresh allocations in a large matrix: the fewest that show an effect of placement at all.
const FEW_ALLOCATIONS: u32 = 3;

/// From this size on clearing a buffer takes several seconds, as behind a memory-side cache.
const SLOW_BUFFER: Bytes = Bytes::gib(16);

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
    pub(super) fn latency(&mut self, shape: LatencyShape) -> Result<Step, PlanError> {
        let orders = distinct(self.requested.orders);
        let matrix = shape == LatencyShape::Matrix;
        let several = self.spec.cpus.is_some() && self.cpus.len() > 1;
        let per_cpu = shape == LatencyShape::PerCpu || (!matrix && several);
        let cpus: Vec<u32> = match () {
            () if matrix => self.cpu_nodes().iter().filter_map(|n| self.cpus_on(n).first()).collect(),
            () if per_cpu => self.cpus.iter().collect(),
            () => self.cpus.first().into_iter().collect(),
        };
        let all = self.device.is_none() && self.requested.chase.touch.is_none() && (matrix || self.spec.nodes.is_some());
        let mut pairs = Vec::new();
        for cpu in cpus {
            let nodes = if all { self.nodes.clone() } else { IdSet::one(self.chase_home(cpu)) };
            pairs.extend(nodes.iter().map(|node| (cpu, node)));
        }
        let experiment = if per_cpu { Experiment::IdleLatencyPerCpu } else { Experiment::IdleLatency };
        let allocations = match pairs.len() {
            n if n > LARGE_MATRIX => FEW_ALLOCATIONS,
            _ if matches!(self.spec.task, Task::Suite(_) | Task::Tiers(_)) => SUITE_ALLOCATIONS,
            _ => ALLOCATIONS,
        };
        let mut cells = Vec::new();
        for (cpu, node) in pairs {
            let probe = self.probe(cpu, node)?;
            let mut orders = orders.clone();
            let slow = probe.buffer.bytes >= SLOW_BUFFER;
            if orders.is_empty() && slow {
                let why = format!("shuffling the lines of {} would take minutes", probe.buffer.bytes);
                self.notes.push(Note::info(NoteCode::NoFullRandom, format!("{why}: the chase is window-local only")));
                orders.push(ChaseOrder::WindowLocal);
            }
            // Another allocation of so much of a node's memory is mostly the same memory.
            let allocations = if slow { 1 } else { allocations };
            let allocations = self.requested.chase.hops.map_or(allocations, |hops| self.allocations_for(hops, &probe, allocations));
            cells.push(self.latency_cell(probe, allocations, orders));
        }
        Ok(self.step("Idle latency", experiment, cells))
    }

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

    /// Fresh allocations for a chase with a given number of hops: as many as fit into the budget, so that long chases are not multiplied.
    pub(super) fn allocations_for(&self, hops: Hops, probe: &Probe, most: u32) -> u32 {
        ((self.budget() / seconds(hops, probe)) as u32).clamp(1, most)
    }
}

/// These orders, each once.
fn distinct(orders: &[ChaseOrder]) -> Vec<ChaseOrder> {
    let first = |(i, order): &(usize, &ChaseOrder)| !orders[..*i].contains(order);
    orders.iter().enumerate().filter(first).map(|(_, order)| *order).collect()
}

/// Why there is no full-random chase over so large a buffer: its links number lines with 32 bits.
fn too_long(buffer: Bytes) -> String {
    format!("a full-random chase over {buffer} has more lines than can be numbered (2^32)")
}
