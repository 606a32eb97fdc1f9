//! The CPUs that are not measured and share a core, a cache or memory with those that are.

use memgauge_model::result::Neighbours;
use memgauge_model::topology::Topology;
use memgauge_model::units::IdSet;

/// CPUs whose work may change a measurement on others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct NeighbourCpus {
    /// The other hardware threads of measured cores.
    pub(crate) core: IdSet,
    /// The other CPUs behind the last-level caches of measured CPUs.
    pub(crate) cache: IdSet,
    /// The other CPUs of the nodes whose CPUs or memory are measured.
    pub(crate) memory: IdSet,
    /// All CPUs behind these caches, the measured ones among them.
    behind_caches: usize,
    /// All CPUs of these nodes.
    of_nodes: usize,
}

impl NeighbourCpus {
    /// Of CPUs that measure with memory on `nodes`. `own` are all CPUs on which the program works meanwhile.
    pub(crate) fn new(topology: &Topology, measured: &IdSet, own: &IdSet, nodes: &IdSet) -> Self {
        let cores: IdSet = measured.iter().filter_map(|cpu| topology.cpu(cpu)).flat_map(|cpu| cpu.siblings.iter()).collect();
        let behind = |cpu: &u32| topology.last_level_cache(*cpu).and_then(|cache| cache.cpus.first());
        let firsts: IdSet = measured.iter().filter_map(|cpu| behind(&cpu)).collect();
        let caches: IdSet = firsts.iter().filter_map(|cpu| topology.last_level_cache(cpu)).flat_map(|cache| cache.cpus.iter()).collect();
        let near: IdSet = measured.iter().filter_map(|cpu| topology.cpu(cpu)).map(|cpu| cpu.node).collect();
        let nodes: IdSet = near.union(nodes).iter().filter_map(|node| topology.node(node)).flat_map(|node| node.cpus.iter()).collect();
        let others = |all: &IdSet| all.difference(own);
        Self { core: others(&cores), cache: others(&caches), memory: others(&nodes), behind_caches: caches.len(), of_nodes: nodes.len() }
    }

    /// All of them.
    pub(crate) fn all(&self) -> IdSet {
        self.core.union(&self.cache).union(&self.memory)
    }

    /// The shares of CPU time that others used in `seconds`. `busy_s` adds up a group's busy time, less what may be rounding.
    ///
    /// The time on hardware threads of measured cores is a share of these threads' time: each of them takes from one measured core. That
    /// on CPUs that share caches or memory is a share of all CPUs that do, because all of them share the same bytes a second.
    pub(crate) fn shares(&self, seconds: f64, busy_s: impl Fn(&IdSet) -> f64) -> Neighbours {
        let share = |group: &IdSet, cpus: usize| {
            let all = seconds * cpus as f64;
            (!group.is_empty() && all > 0.0).then(|| (busy_s(group) / all).clamp(0.0, 1.0))
        };
        Neighbours {
            core: share(&self.core, self.core.len()),
            cache: share(&self.cache, self.behind_caches),
            memory: share(&self.memory, self.of_nodes),
        }
    }
}

#[cfg(test)]
mod tests {
    use memgauge_model::topology::{Cache, Cpu, Node};
    use memgauge_model::units::Bytes;

    use super::*;

    /// Two nodes of four CPUs: two cores of two threads each, behind a cache of their own.
    fn topology() -> Topology {
        let set = |ids: &[u32]| ids.iter().copied().collect::<IdSet>();
        let cpu = |id: u32| Cpu {
            id,
            package: id / 4,
            die: None,
            cluster: None,
            core: id / 2,
            siblings: set(&[id / 2 * 2, id / 2 * 2 + 1]),
            node: id / 4,
            kind: None,
            capacity: None,
            max_mhz: None,
        };
        let node = |id: u32| Node { id, cpus: (4 * id..4 * id + 4).collect(), ..Node::default() };
        let cache = |id: u32| Cache { level: 3, size: Bytes::mib(32), line: None, ways: None, cpus: (4 * id..4 * id + 4).collect() };
        Topology { cpus: (0..8).map(cpu).collect(), nodes: vec![node(0), node(1)], caches: vec![cache(0), cache(1)], ..Topology::default() }
    }

    #[test]
    fn neighbours_share_a_core_a_cache_or_memory() {
        let (one, far) = (IdSet::one(0), IdSet::one(1));
        let near = NeighbourCpus::new(&topology(), &one, &one, &IdSet::one(0));
        let list = |set: &IdSet| set.iter().collect::<Vec<_>>();
        assert_eq!((list(&near.core), list(&near.cache), list(&near.memory)), (vec![1], vec![1, 2, 3], vec![1, 2, 3]));
        let remote = NeighbourCpus::new(&topology(), &one, &one, &far);
        assert_eq!((list(&remote.cache), list(&remote.memory)), (vec![1, 2, 3], vec![1, 2, 3, 4, 5, 6, 7]));
        // A CPU that the program keeps awake does not count as a neighbour.
        let awake = NeighbourCpus::new(&topology(), &one, &[0, 4].into_iter().collect(), &far);
        assert_eq!(list(&awake.memory), [1, 2, 3, 5, 6, 7]);
        let all = NeighbourCpus::new(&topology(), &topology().online(), &topology().online(), &far);
        assert_eq!(all.shares(1.0, |_| 1.0), Neighbours::default(), "no CPU is left to others");
    }

    #[test]
    fn shares_are_of_what_is_shared() {
        let one = IdSet::one(0);
        let near = NeighbourCpus::new(&topology(), &one, &one, &IdSet::one(1));
        // CPU 1 was busy for half of two seconds, and CPU 6 for all of them.
        let busy = |group: &IdSet| f64::from(u8::from(group.contains(1))) + 2.0 * f64::from(u8::from(group.contains(6)));
        let shares = near.shares(2.0, busy);
        assert_eq!((shares.core, shares.cache, shares.memory), (Some(0.5), Some(1.0 / 8.0), Some(3.0 / 16.0)));
        assert_eq!(shares.most(), Some(0.5));
    }
}
