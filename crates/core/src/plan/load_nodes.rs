//! Loaders whose memory is on named nodes, while a chase goes over another: how far one node's or one tier's load disturbs another.

use std::collections::BTreeMap;

use super::Loader;
use super::check::check_nodes;
use super::decide::{PlanError, Planner};
use crate::units::IdSet;

impl Planner<'_> {
    /// Loaders of memory on `nodes`, by those of `cpus` (in the order to take them) that are nearest: a node's own CPUs, or for a node
    /// without any those of the nearest node that has some. CPUs that are near to several of the nodes are divided among them.
    pub(super) fn loaders_on(&mut self, cpus: &[u32], nodes: &IdSet, beside: u64) -> Result<Vec<Loader>, PlanError> {
        let nodes = check_nodes(nodes, self.machine)?;
        if self.spec.traffic.shared {
            return Err(PlanError::Request(
                "loaders that share one buffer cannot load several nodes; leave out --shared or --load-node".into(),
            ));
        }
        if self.spec.memory_dir.is_some() {
            return Err(PlanError::Request("files are on their own node; leave out --memory-dir or --load-node".into()));
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
            return Err(PlanError::Unavailable(format!(
                "no CPU is left to load the memory of node {node}; name fewer nodes with --load-node, or more CPUs with --cpu"
            )));
        }
        self.sizes.loader_buffers(&homes, beside, &mut self.notes)
    }

    /// Those of `cpus` that are on `node`, or on the nearest node that has some of them.
    fn nearest(&self, cpus: &[u32], node: u32) -> IdSet {
        let distances = self.machine.topology.node(node).map(|n| n.distances.clone()).unwrap_or_default();
        let far = |home: u32| if home == node { 0 } else { distances.get(&home).copied().unwrap_or(u32::MAX) };
        let best = cpus.iter().map(|cpu| far(self.node_of(*cpu))).min();
        let nearest = best.and_then(|best| cpus.iter().map(|cpu| self.node_of(*cpu)).find(|home| far(*home) == best));
        cpus.iter().copied().filter(|cpu| Some(self.node_of(*cpu)) == nearest).collect()
    }
}
