//! Idle latency: the CPUs and nodes of its cells, and how many fresh allocations each has.

use memgauge_model::experiment::{ChaseOrder, Experiment, Hops};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::{Probe, Step};
use memgauge_model::spec::{LatencyShape, Task};
use memgauge_model::units::{Bytes, IdSet};

use crate::chase;
use crate::check::PlanError;
use crate::context::{LARGE_MATRIX, Planner};

/// Fresh allocations for a cell of `memgauge latency`: with twelve, Student's factor is near its limit.
const ALLOCATIONS: u32 = 12;
/// Fresh allocations for a cell of the suite: the fewest for which a non-parametric 95 % interval exists.
const SUITE_ALLOCATIONS: u32 = 6;
/// Fresh allocations in a large matrix: the fewest that show an effect of placement at all.
const FEW_ALLOCATIONS: u32 = 3;

/// From this size on clearing a buffer takes several seconds, as behind a memory-side cache.
const SLOW_BUFFER: Bytes = Bytes::gib(16);

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
            // A second buffer that large would mostly be the same memory.
            let allocations = if slow { 1 } else { allocations };
            let allocations = self.requested.chase.hops.map_or(allocations, |hops| self.allocations_for(hops, &probe, allocations));
            cells.push(self.latency_cell(probe, allocations, orders));
        }
        Ok(self.step("Idle latency", experiment, cells))
    }

    /// Fresh allocations for a chase with a given number of hops: as many as fit into the budget, so that long chases are not multiplied.
    fn allocations_for(&self, hops: Hops, probe: &Probe, most: u32) -> u32 {
        ((self.budget() / chase::seconds(hops, probe)) as u32).clamp(1, most)
    }
}

/// These orders, each once.
fn distinct(orders: &[ChaseOrder]) -> Vec<ChaseOrder> {
    let first = |(i, order): &(usize, &ChaseOrder)| !orders[..*i].contains(order);
    orders.iter().enumerate().filter(first).map(|(_, order)| *order).collect()
}
