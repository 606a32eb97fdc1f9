//! Latency under load: a chase alongside loaders. The loaders' memory may be on named nodes, to see how much load on one node or tier
//! affects another.

use std::collections::BTreeMap;

use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::{Cell, Delays, LoadCurve, Loader, Probe, Step, Work};
use memgauge_model::spec::{ChaseSpec, CurveSpec};
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;
use memgauge_model::words;
use memgauge_model::words::{Knob, Problem, Way};

use crate::check::{PlanError, check_nodes, invalid, unavailable};
use crate::context::Planner;
use crate::room::Reserved;

/// Points of an adaptive curve: enough for gaps below 10 % of the peak.
pub(super) const CURVE_POINTS: u32 = 12;

impl Planner<'_> {
    /// One curve for each mix. The first CPU chases and the others load; the SMT siblings of the first stay idle.
    pub(super) fn loaded(&mut self, curve: &CurveSpec) -> Result<Step, PlanError> {
        let chaser = curve.cpu.or_else(|| self.cpus.first()).unwrap_or(0);
        let siblings = self.machine.topology.cpu(chaser).map(|c| c.siblings.clone()).unwrap_or_default();
        let others = self.cpus.difference(&siblings).difference(&IdSet::one(chaser));
        if others.is_empty() && self.requested.traffic.threads.is_empty() {
            return unavailable(Problem::new(format!("latency under load needs a second core besides CPU {chaser}"), self.another_core()));
        }
        let loading = self.machine.topology.spread(&others);
        let fixed_node = self.one_node()?;
        let home = match (curve.node, self.requested.chase.touch, fixed_node) {
            (Some(node), ..) => node,
            (None, None, Some(node)) => node,
            _ => self.chase_home(chaser),
        };
        let delays = match curve.delays.as_slice() {
            [] => Delays::Adaptive { points: CURVE_POINTS },
            given => Delays::Cycles(given.to_vec()),
        };
        let mut cells = Vec::new();
        let threads = !self.requested.traffic.threads.is_empty();
        let mixes = if threads { vec![self.requested.traffic.threads[0].mix] } else { self.mixes(&[Mix::AllReads])? };
        for mix in mixes {
            let probe = self.probe(chaser, home)?;
            let reserved = Reserved::Buffer(&probe.buffer);
            let loaders = match &curve.load_nodes {
                _ if threads => self.threads(reserved, &IdSet::one(chaser))?,
                Some(nodes) => self.loaders_on(&loading, nodes, reserved)?,
                None => self.loaders(&loading, fixed_node, reserved)?,
            };
            let mut cell = self.curve_cell(probe, loaders, mix, delays.clone())?;
            cell.at.load_nodes.clone_from(&curve.load_nodes);
            cell.at.mix = (!threads).then_some(mix);
            if let Work::Curve(planned) = &mut cell.work {
                planned.at_percent.clone_from(&curve.at_percent);
            }
            cells.push(cell);
        }
        Ok(self.step(&self.titled("Latency under load"), Experiment::LoadedLatency, cells))
    }

    /// The CPU of this node that chases, and those that load beside it. `None`, with a note, if it has only one core.
    pub(super) fn chaser_and_loaders(&mut self, cpu_node: u32) -> Option<(u32, Vec<u32>)> {
        let all = self.cpus_on(cpu_node);
        let chaser = all.first()?;
        let siblings = self.machine.topology.cpu(chaser).map(|c| c.siblings.clone()).unwrap_or_default();
        let loading = self.machine.topology.spread(&all.difference(&siblings).difference(&IdSet::one(chaser)));
        if loading.is_empty() {
            let message = format!("latency under load from node {cpu_node} needs a second core there besides CPU {chaser}");
            self.notes.push(Note::warning(NoteCode::NoCoreToLoad, message).advise(self.another_core()));
        }
        (!loading.is_empty()).then_some((chaser, loading))
    }

    /// The curve of this chase alongside these loaders.
    pub(super) fn curve_cell(&self, probe: Probe, loaders: Vec<Loader>, mix: Mix, delays: Delays) -> Result<Cell, PlanError> {
        let ChaseSpec { hops, histogram, .. } = self.requested.chase;
        let order = self.requested.orders.first().copied();
        let at = Coordinates { cpus: Some(loaders.iter().map(|l| l.cpu).collect()), order, mix: Some(mix), ..self.chase_at(&probe) };
        let (traffic, at_percent) = (self.traffic(mix)?, Vec::new());
        let order = order.unwrap_or(ChaseOrder::WindowLocal);
        Ok(Cell::new(at, Work::Curve(LoadCurve { probe, loaders, traffic, delays, at_percent, order, hops, histogram })))
    }

    /// Loaders of memory on `nodes`, on the nearest of `cpus`: a node's own CPUs, or for a node without CPUs those of the nearest node that
    /// has some. CPUs that are nearest to several of the nodes are divided among them, in the order of `cpus`.
    pub(super) fn loaders_on(&mut self, cpus: &[u32], nodes: &IdSet, reserved: Reserved<'_>) -> Result<Vec<Loader>, PlanError> {
        let nodes = check_nodes(nodes, self.machine)?;
        if self.requested.traffic.shared {
            return invalid(Problem::new(
                "loaders that share one buffer cannot load several nodes",
                words!["leave out ", Knob::SharedBuffer, " or ", Knob::LoadNode],
            ));
        }
        if self.spec.memory_dir.is_some() {
            return invalid(Problem::new("files are on their own node", words!["leave out ", Knob::MemoryDir, " or ", Knob::LoadNode]));
        }
        let near: BTreeMap<u32, IdSet> = nodes.iter().map(|node| (node, self.nearest(cpus, node))).collect();
        let mut loads: BTreeMap<u32, usize> = nodes.iter().map(|node| (node, 0)).collect();
        let mut homes: Vec<(u32, u32)> = Vec::new();
        for &cpu in cpus {
            let fewest = nodes.iter().filter(|node| near[node].contains(cpu)).min_by_key(|node| loads[node]);
            if let Some(node) = fewest {
                *loads.entry(node).or_default() += 1;
                homes.push((cpu, node));
            }
        }
        if let Some((node, _)) = loads.iter().find(|(_, count)| **count == 0) {
            return unavailable(Problem::new(
                format!("no CPU is left to load the memory of node {node}"),
                Way::name("fewer nodes", Knob::LoadNode).or(words!["more CPUs with ", Knob::Cpus]),
            ));
        }
        self.sizes.loader_buffers(&homes, reserved, &mut self.notes)
    }

    /// Those of `cpus` that are on `node`, or on the nearest node that has some of them.
    fn nearest(&self, cpus: &[u32], node: u32) -> IdSet {
        let far = |home: u32| if home == node { 0 } else { self.machine.topology.distance(node, home) };
        let best = cpus.iter().map(|cpu| far(self.cpu_node(*cpu))).min();
        let nearest = best.and_then(|best| cpus.iter().map(|cpu| self.cpu_node(*cpu)).find(|home| far(*home) == best));
        cpus.iter().copied().filter(|cpu| Some(self.cpu_node(*cpu)) == nearest).collect()
    }
}
