//! Weights for memory of several tiers: one search for each socket, mix and number of CPUs.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use memgauge_model::experiment::{Coordinates, Experiment, PageRequest};
use memgauge_model::interleave::{Goal, MAX_TOTAL, Weights};
use memgauge_model::plan::{Cell, InterleaveSearch, Loader, Step, Work};
use memgauge_model::spec::InterleaveSpec;
use memgauge_model::traffic::Mix;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::words;
use memgauge_model::words::{Knob, Problem, Way};

use crate::check::{PlanError, invalid, unavailable};
use crate::context::Planner;
use crate::room::Reserved;

/// Rounds of the longest weights that a buffer of huge pages holds, so that each node has its share of it.
const HUGE_ROUNDS: u64 = 2;
/// Huge pages as most machines have them. Larger ones are rarely placed in turn.
const HUGE_PAGE: Bytes = Bytes::mib(2);

impl Planner<'_> {
    /// A search for each package whose CPUs may be used, over its nearest node and those beyond it.
    pub(super) fn interleave(&mut self, request: &InterleaveSpec) -> Result<Step, PlanError> {
        if self.spec.memory_dir.is_some() {
            return invalid("pages can be placed on nodes in turn only in memory of the loaders' own");
        }
        let mixes = self.mixes(&[Mix::AllReads])?;
        let mut cells = Vec::new();
        for package in self.machine.topology.packages().iter() {
            let of_package = |cpu: &u32| self.machine.topology.cpu(*cpu).is_some_and(|c| c.package == package);
            let cpus: IdSet = self.cpus.iter().filter(of_package).collect();
            let Some(chaser) = cpus.first() else { continue };
            let nodes = self.tiers_of(chaser, &cpus);
            // Nodes of a package that are alike share their load by the kernel's own choice of the nearest.
            let far = |node: &u32| self.machine.topology.node(*node).is_some_and(|n| n.cpus.is_empty());
            if nodes.len() < 2 || (self.spec.nodes.is_none() && !nodes.iter().any(far)) {
                continue;
            }
            let siblings = self.machine.topology.cpu(chaser).map(|c| c.siblings.clone()).unwrap_or_default();
            let others = cpus.difference(&siblings).difference(&IdSet::one(chaser));
            if others.is_empty() {
                return unavailable(Problem::new(
                    format!("weights are found with a chase beside loaders, which need a second core besides CPU {chaser}"),
                    self.another_core(),
                ));
            }
            let loading = self.machine.topology.spread(&others);
            let all = loading.len();
            // A number of threads above all CPUs means all of them, and is measured once.
            let counts: BTreeSet<usize> = request.threads.iter().map(|threads| all.min(*threads as usize)).collect();
            let counts = if counts.is_empty() { BTreeSet::from([all]) } else { counts };
            for mix in &mixes {
                for count in &counts {
                    cells.push(self.interleave_cell(request, chaser, &loading[..*count], &nodes, *mix)?);
                }
            }
        }
        if cells.is_empty() {
            let named = match &self.spec.nodes {
                None => "this machine has".into(),
                Some(nodes) => words![Knob::Node, " {nodes} names"],
            };
            let missing =
                " no second tier of memory: weights need two nodes; one of them may be far, have no CPUs or be another kind of memory";
            return unavailable(named.followed_by(missing).advise(Way::name("nodes", Knob::Node)));
        }
        Ok(self.step(&self.titled("Weighted interleave"), Experiment::Interleave, cells))
    }

    /// The nodes that CPUs interleave over, the nearest first: those named; otherwise their own and the nodes without CPUs that no other
    /// CPUs are nearer to.
    fn tiers_of(&self, chaser: u32, cpus: &IdSet) -> Vec<u32> {
        let topology = &self.machine.topology;
        let own: IdSet = cpus.iter().map(|cpu| self.cpu_node(cpu)).collect();
        let home = self.cpu_node(chaser);
        let nearest = |node: u32| {
            let ways = topology.nodes.iter().filter(|n| !n.cpus.is_empty()).map(|n| topology.distance(node, n.id));
            own.iter().map(|near| topology.distance(node, near)).min() <= ways.min()
        };
        let chosen = |node: &u32| match &self.spec.nodes {
            Some(_) => true,
            None => own.contains(*node) || (topology.node(*node).is_some_and(|n| n.cpus.is_empty()) && nearest(*node)),
        };
        // If one of the named nodes belongs to another package, and none to this one, all of them are for that package.
        let named_elsewhere = self.spec.nodes.is_some()
            && self.nodes.intersection(&own).is_empty()
            && self.nodes.iter().any(|node| topology.node(node).is_some_and(|n| !n.cpus.intersection(&self.cpus).is_empty()));
        let mut nodes: Vec<u32> = self.nodes.iter().filter(chosen).filter(|_| !named_elsewhere).collect();
        nodes.sort_by_key(|node| (Reverse(*node == home), Reverse(own.contains(*node)), topology.distance(*node, home), *node));
        nodes
    }

    fn interleave_cell(
        &mut self,
        request: &InterleaveSpec,
        chaser: u32,
        loading: &[u32],
        nodes: &[u32],
        mix: Mix,
    ) -> Result<Cell, PlanError> {
        let near = nodes[0];
        let mut probe = self.probe(chaser, near)?;
        let mut loaders = self.loaders(loading, Some(near), Reserved::Buffer(&probe.buffer))?;
        // All pages may be on any one of the nodes.
        let room = nodes.iter().filter_map(|node| self.machine.allowed.node_memory.get(node)).map(|bytes| bytes.0).min();
        let room = room.unwrap_or(u64::MAX).min(self.machine.allowed.room()) / (loaders.len() as u64 + 1);
        let round = HUGE_PAGE.0 * u64::from(MAX_TOTAL);
        for buffer in loaders.iter_mut().map(|l| &mut l.buffer).chain([&mut probe.buffer]) {
            let whole = if self.spec.pages == PageRequest::Base { 1 } else { HUGE_ROUNDS * round };
            if request.buffer.is_none() {
                // Whole huge pages, and no more than the smallest node has.
                buffer.bytes = Bytes(buffer.bytes.0.max(whole).min(room / HUGE_PAGE.0 * HUGE_PAGE.0));
            }
            if buffer.bytes.0 > room || buffer.bytes.0 < HUGE_PAGE.0 {
                return unavailable(Problem::new(
                    format!(
                        "each of nodes {} must hold {} buffers of {}, and the smallest of them has room for {} each",
                        nodes.iter().copied().collect::<IdSet>(),
                        loading.len() + 1,
                        buffer.bytes,
                        Bytes(room)
                    ),
                    Way::Smaller(Knob::Size).either_or("fewer CPUs"),
                ));
            }
            buffer.derived = false;
        }
        probe.window = self.sizes.window(probe.buffer.bytes, probe.stride)?;
        let kernel = self.kernel_weights(nodes);
        let at = Coordinates {
            cpu_node: Some(self.cpu_node(chaser)),
            cpus: Some(loaders.iter().map(|l: &Loader| l.cpu).collect()),
            mix: Some(mix),
            ..self.chase_at(&probe)
        };
        let goal = request.demand_gbs.map_or(Goal::Bandwidth, Goal::LatencyAt);
        let (traffic, nodes) = (self.traffic(mix)?, nodes.to_vec());
        let search = InterleaveSearch { probe, loaders, traffic, nodes, kernel, goal };
        Ok(Cell::new(Coordinates { memory: None, ..at }, Work::Interleave(Box::new(search))))
    }

    /// The kernel's weights of these nodes, if it has any.
    fn kernel_weights(&self, nodes: &[u32]) -> Option<Weights> {
        let weight = |node: &u32| Some((*node, self.machine.topology.node(*node)?.interleave_weight?));
        nodes.iter().map(weight).collect::<Option<Vec<_>>>().and_then(Weights::new)
    }
}
