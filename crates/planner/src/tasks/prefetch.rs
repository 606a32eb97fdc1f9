//! Prefetchers on and off: one CPU's bandwidth and latency from every node, in both states.

use memgauge_model::experiment::{ChaseOrder, Experiment, PrefetchRequest};
use memgauge_model::plan::Step;
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;

use crate::check::PlanError;
use crate::context::Planner;

/// Fresh allocations of a chase: the fewest for which a non-parametric 95 % interval exists.
const ALLOCATIONS: u32 = 6;

impl Planner<'_> {
    /// For each state a step of bandwidths and a step of latencies.
    ///
    /// The named CPUs read together, and the first of them chases. If none is named, one CPU does both: the effect of prefetchers shows on
    /// one core, before many cores saturate the memory.
    pub(super) fn prefetch(&mut self) -> Result<Vec<Step>, PlanError> {
        let first = self.cpus.first().unwrap_or(0);
        let readers: Vec<u32> = if self.spec.cpus.is_some() { self.cpus.iter().collect() } else { vec![first] };
        let columns = if self.spec.nodes.is_some() { self.columns() } else { self.nodes.iter().map(Some).collect() };
        let mut steps = Vec::new();
        for state in [PrefetchRequest::On, PrefetchRequest::Off] {
            let (mut bandwidths, mut latencies) = (Vec::new(), Vec::new());
            for node in &columns {
                let row = Some(self.cpu_node(first));
                let mut cell = self.bandwidth_cell(&readers, row, *node, Mix::AllReads)?;
                cell.at.prefetch = Some(state);
                bandwidths.push(cell);
                let probe = self.probe(first, node.unwrap_or_else(|| self.cpu_node(first)))?;
                let mut cell = self.latency_cell(probe, ALLOCATIONS, vec![ChaseOrder::Sequential, ChaseOrder::WindowLocal]);
                cell.at.cpus = Some(IdSet::one(first));
                cell.at.prefetch = Some(state);
                latencies.push(cell);
            }
            let name = state.name();
            steps.push(self.step(&format!("Bandwidth, prefetchers {name}"), Experiment::PrefetchComparison, bandwidths));
            steps.push(self.step(&format!("Idle latency, prefetchers {name}"), Experiment::PrefetchComparison, latencies));
        }
        Ok(steps)
    }
}
