//! Bandwidth: one CPU set, all mixes, all pairs of nodes, growing numbers of CPUs, or a search.

use memgauge_model::experiment::{Coordinates, Experiment};
use memgauge_model::plan::{Cell, Loading, Step, Work};
use memgauge_model::spec::{BandwidthShape, Task};
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;
use memgauge_model::words;
use memgauge_model::words::{Command, Knob, Verb, Way};

use crate::check::{PlanError, invalid};
use crate::context::Planner;
use crate::loaders::{SEARCH_DELAYS, with_delays};
use crate::room::Reserved;

impl Planner<'_> {
    pub(super) fn bandwidth(&mut self, shape: &BandwidthShape, delays: &[u32]) -> Result<Step, PlanError> {
        if matches!(shape, BandwidthShape::Matrix | BandwidthShape::Ramp(_) | BandwidthShape::Search) && !delays.is_empty() {
            return invalid(words![Knob::Delay, " is for one CPU set and node at a time"].advise(words![
                "leave out ",
                Knob::Delay,
                ", or ",
                Knob::Matrix,
                ", ",
                Knob::Ramp,
                " or ",
                Knob::Search
            ]));
        }
        let threads = !self.requested.traffic.threads.is_empty();
        let (experiment, title, default): (_, _, &[Mix]) = match shape {
            _ if threads => (Experiment::Bandwidth, "Bandwidth of given threads", &[]),
            BandwidthShape::One => (Experiment::Bandwidth, "Bandwidth", &[Mix::AllReads]),
            BandwidthShape::Peak => (Experiment::Bandwidth, "Peak bandwidth by mix", &Mix::PEAK),
            BandwidthShape::Matrix => (Experiment::BandwidthMatrix, "Bandwidth by node", &[Mix::AllReads]),
            BandwidthShape::Ramp(_) => (Experiment::BandwidthRamp, "Bandwidth by number of CPUs", &[Mix::AllReads]),
            BandwidthShape::Search => (Experiment::BandwidthSearch, "Highest bandwidth by mix", &Mix::PEAK),
        };
        let columns = if *shape == BandwidthShape::Matrix { self.columns() } else { vec![self.one_node()?] };
        let cells = if threads { self.threads_alone(delays)? } else { self.bandwidth_cells(shape, delays, default, &columns)? };
        Ok(self.step(&self.titled(title), experiment, cells))
    }

    /// A cell for each mix, set of CPUs, column and delay.
    pub(super) fn bandwidth_cells(
        &mut self,
        shape: &BandwidthShape,
        delays: &[u32],
        default: &[Mix],
        columns: &[Option<u32>],
    ) -> Result<Vec<Cell>, PlanError> {
        let topology = &self.machine.topology;
        let order = topology.spread(&self.cpus);
        let rows: Vec<(Option<u32>, Vec<u32>)> = match shape {
            BandwidthShape::One | BandwidthShape::Peak => vec![(None, order)],
            BandwidthShape::Search => self.search_cpu_sets(&order).into_iter().map(|cpus| (None, cpus)).collect(),
            BandwidthShape::Matrix => self.cpu_nodes().iter().map(|row| (Some(row), topology.spread(&self.cpus_on(row)))).collect(),
            BandwidthShape::Ramp(named) => ramp(named, order.len())?.into_iter().map(|n| (None, order[..n].to_vec())).collect(),
        };
        let delays = if *shape == BandwidthShape::Search { &SEARCH_DELAYS } else { delays };
        let mut cells = Vec::new();
        for mix in self.mixes(default)? {
            for (row, cpus) in &rows {
                for &column in columns {
                    cells.extend(with_delays(self.bandwidth_cell(cpus, *row, column, mix)?, delays));
                }
            }
        }
        Ok(cells)
    }

    /// The coordinates of traffic.
    pub(super) fn traffic_at(&self, cpu_node: Option<u32>, node: Option<u32>, cpus: IdSet, mix: Mix) -> Coordinates {
        let (memory, weights) = self.memory_place(node);
        Coordinates { cpu_node, memory, weights, cpus: Some(cpus), mix: Some(mix), ..Coordinates::default() }
    }

    pub(super) fn bandwidth_cell(&mut self, cpus: &[u32], row: Option<u32>, node: Option<u32>, mix: Mix) -> Result<Cell, PlanError> {
        let loaders = self.loaders(cpus, node, Reserved::Bytes(0))?;
        let at = self.traffic_at(row, node, cpus.iter().copied().collect(), mix);
        Ok(Cell::new(at, Work::Bandwidth(Loading { loaders, traffic: self.traffic(mix)?, delay: 0 })))
    }

    /// The requested node, for measurements that use one node at a time, or that of the inherited policy.
    pub(super) fn one_node(&self) -> Result<Option<u32>, PlanError> {
        if let Some(device) = self.device {
            return Ok(device);
        }
        if let Some(node) = self.inherited_node() {
            return Ok(Some(node));
        }
        match &self.spec.nodes {
            // In the suite, named nodes only restrict what is measured. Each CPU uses the nearest of them.
            _ if matches!(self.spec.task, Task::Suite(_)) => Ok(None),
            Some(nodes) if nodes.len() > 1 => invalid(
                words![Knob::Node, " names {nodes}, and this measures one node's memory at a time"]
                    .advise(Way::from("name one").or(words!["use '", Command::new(Verb::Bandwidth).with(Knob::Matrix), "'"])),
            ),
            nodes => Ok(nodes.as_ref().and_then(IdSet::first)),
        }
    }
}

/// The numbers of CPUs of a ramp over `n` CPUs: those that are named, otherwise 1, 2, 4 … and `n`.
fn ramp(named: &IdSet, n: usize) -> Result<Vec<usize>, PlanError> {
    let Some(most) = named.last() else {
        let doubled = std::iter::successors(Some(1), |c| Some(c * 2)).take_while(|c| *c < n);
        return Ok(doubled.chain([n]).collect());
    };
    if named.contains(0) {
        return invalid(words![Knob::Ramp, ": 0 CPUs measure nothing"].advise("name numbers from 1 on"));
    }
    if most as usize > n {
        return invalid(
            words![Knob::Ramp, " names {most} CPUs, and {n} are measured from"]
                .advise(Way::from("name smaller numbers").or(words!["more CPUs with ", Knob::Cpus])),
        );
    }
    Ok(named.iter().map(|count| count as usize).collect())
}
