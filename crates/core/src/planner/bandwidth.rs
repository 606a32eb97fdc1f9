//! Bandwidth: one CPU set, all mixes, all pairs of nodes, growing numbers of CPUs, or a search.

use crate::experiment::{Coordinates, Experiment};
use crate::plan::{Cell, Step, Work};
use crate::planner::check::{PlanError, invalid};
use crate::planner::context::Planner;
use crate::planner::loaders::{SEARCH_DELAYS, with_delay};
use crate::spec::{BandwidthShape, Task};
use crate::traffic::Mix;
use crate::units::IdSet;

impl Planner<'_> {
    pub(super) fn bandwidth(&mut self, shape: BandwidthShape) -> Result<Step, PlanError> {
        if matches!(shape, BandwidthShape::Matrix | BandwidthShape::Ramp | BandwidthShape::Search) && !self.spec.delays.is_empty() {
            return invalid("--delay is for one CPU set and node at a time; leave out --delay, or --matrix, --ramp or --search");
        }
        let order = self.machine.topology.spread(&self.cpus);
        let fixed_node = if shape == BandwidthShape::Matrix { None } else { self.one_node()? };
        let mut cells = Vec::new();
        match shape {
            _ if !self.spec.traffic.threads.is_empty() => cells = self.threads_alone()?,
            BandwidthShape::One | BandwidthShape::Peak => {
                let default: &[Mix] = if shape == BandwidthShape::Peak { &Mix::PEAK } else { &[Mix::AllReads] };
                for mix in self.mixes(default)? {
                    let cell = self.bandwidth_cell(&order, None, fixed_node, mix)?;
                    cells.extend(self.delayed(cell));
                }
            }
            BandwidthShape::Search => {
                for mix in self.mixes(&Mix::PEAK)? {
                    for cpus in self.search_cpu_sets(&order) {
                        let cell = self.bandwidth_cell(&cpus, None, fixed_node, mix)?;
                        cells.extend(SEARCH_DELAYS.map(|delay| with_delay(cell.clone(), delay)));
                    }
                }
            }
            BandwidthShape::Matrix => {
                for mix in self.mixes(&[Mix::AllReads])? {
                    for row in self.cpu_nodes().iter() {
                        let cpus = self.machine.topology.spread(&self.cpus_on(row));
                        for column in self.columns() {
                            cells.push(self.bandwidth_cell(&cpus, Some(row), column, mix)?);
                        }
                    }
                }
            }
            BandwidthShape::Ramp => {
                for mix in self.mixes(&[Mix::AllReads])? {
                    for n in ramp(order.len()) {
                        cells.push(self.bandwidth_cell(&order[..n], None, fixed_node, mix)?);
                    }
                }
            }
        }
        let (experiment, title) = match shape {
            _ if !self.spec.traffic.threads.is_empty() => (Experiment::Bandwidth, "Bandwidth of given threads"),
            BandwidthShape::One => (Experiment::Bandwidth, "Bandwidth"),
            BandwidthShape::Peak => (Experiment::Bandwidth, "Peak bandwidth by mix"),
            BandwidthShape::Matrix => (Experiment::BandwidthMatrix, "Bandwidth by node"),
            BandwidthShape::Ramp => (Experiment::BandwidthRamp, "Bandwidth by number of CPUs"),
            BandwidthShape::Search => (Experiment::BandwidthSearch, "Highest bandwidth by mix"),
        };
        Ok(self.step(&self.titled(title), experiment, cells))
    }

    pub(super) fn bandwidth_cell(&mut self, cpus: &[u32], row: Option<u32>, node: Option<u32>, mix: Mix) -> Result<Cell, PlanError> {
        let loaders = self.loaders(cpus, node, 0)?;
        let at = Coordinates {
            cpu_node: row,
            memory: Some(self.memory_place(node)),
            cpus: Some(cpus.iter().copied().collect()),
            mix: Some(mix),
            ..Default::default()
        };
        Ok(Cell::new(at, Work::Bandwidth { loaders, traffic: self.traffic(mix)?, delay: 0 }))
    }

    /// The requested node, for measurements that use one node at a time.
    pub(super) fn one_node(&self) -> Result<Option<u32>, PlanError> {
        if let Some(device) = self.device {
            return Ok(device);
        }
        match &self.spec.nodes {
            // In the suite, named nodes only restrict what is measured. Each CPU uses the nearest of them.
            _ if self.spec.task == Task::Suite => Ok(None),
            Some(nodes) if nodes.len() > 1 => invalid(format!(
                "--node names {nodes}, and this measures one node's memory at a time; name one, or use 'memgauge bandwidth --matrix'"
            )),
            nodes => Ok(nodes.as_ref().and_then(IdSet::first)),
        }
    }
}

/// 1, 2, 4 … and `n`.
fn ramp(n: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = std::iter::successors(Some(1), |c| Some(c * 2)).take_while(|c| *c < n).collect();
    counts.push(n);
    counts
}
