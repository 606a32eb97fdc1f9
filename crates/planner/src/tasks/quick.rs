//! The health check: few cells, chosen so that siblings can be compared, in a time that does not grow with the machine.

use std::collections::BTreeMap;

use memgauge_model::experiment::{Coordinates, Experiment};
use memgauge_model::plan::{Cell, Delays, Loading, Step, Work};
use memgauge_model::protocol::IDLE_DELAY_CYCLES;
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;

use crate::check::PlanError;
use crate::context::Planner;
use crate::cost;
use crate::room::Reserved;

/// Seconds that a check may take by default: schedulers kill their health checks after 60 s.
pub const DEFAULT_WITHIN_S: f64 = 45.0;
/// The largest share of this time that is planned for the first round.
pub const FIRST_ROUND_SHARE: f64 = 0.7;
/// The largest share that is planned for measuring suspicious cells again.
pub const SECOND_ROUND_SHARE: f64 = 0.2;
/// Shares of the time after which the first round and the second round end, whatever has been measured by then.
pub const ROUND_ENDS: [f64; 2] = [0.88, 0.96];
/// Fresh allocations of a latency cell.
const ALLOCATIONS: u32 = 2;
/// The most that is sampled, and the least if the most takes too long. Samples that show a fault that no other number shows are given up last.
const MOST: SampleCounts = SampleCounts { latency: 8, far_latency: 8, mixed: 8, domains: 16, packages: 4, far: 32, nodes: 8 };
const LEAST: SampleCounts = SampleCounts { latency: 2, far_latency: 2, mixed: 1, domains: 2, packages: 2, far: 2, nodes: 2 };

/// How many of each are measured.
#[derive(Clone, Copy)]
struct SampleCounts {
    /// Nodes whose latency is measured.
    latency: usize,
    /// Nodes without CPUs whose latency is measured.
    far_latency: usize,
    /// Nodes whose bandwidth is measured with stores as well.
    mixed: usize,
    /// Last-level caches.
    domains: usize,
    /// Packages that read from each other.
    packages: usize,
    /// Nodes without CPUs whose bandwidth is measured.
    far: usize,
    /// Nodes whose bandwidth is measured.
    nodes: usize,
}

impl SampleCounts {
    /// One sample less, of the kind that matters least; `None` if every kind has its minimum.
    fn fewer(mut self) -> Option<Self> {
        let parts = [
            (&mut self.latency, LEAST.latency),
            (&mut self.far_latency, LEAST.far_latency),
            (&mut self.mixed, LEAST.mixed),
            (&mut self.domains, LEAST.domains),
            (&mut self.packages, LEAST.packages),
            (&mut self.far, LEAST.far),
            (&mut self.nodes, LEAST.nodes),
        ];
        let (part, _) = parts.into_iter().find(|(part, least)| **part > *least)?;
        *part -= 1;
        Some(self)
    }
}

impl Planner<'_> {
    pub(super) fn quick(&mut self) -> Result<Vec<Step>, PlanError> {
        let mut samples = MOST;
        let max_s = FIRST_ROUND_SHARE * self.quick_within();
        loop {
            let (notes, coarsened) = (self.notes.clone(), self.coarsened.clone());
            let mut steps = self.quick_steps(samples)?;
            let stop = self.stop_rule(&steps);
            self.lighten(&mut steps, &stop, max_s);
            let over = cost::most(&steps, &stop, self.spec.counters) > max_s;
            match samples.fewer().filter(|_| over) {
                Some(fewer) => samples = fewer,
                None => return Ok(steps),
            }
            (self.notes, self.coarsened) = (notes, coarsened);
        }
    }

    fn quick_steps(&mut self, samples: SampleCounts) -> Result<Vec<Step>, PlanError> {
        let nodes: Vec<u32> = self.cpu_nodes().iter().collect();
        let far = self.far_nodes();
        let sampled = |most| sample(&nodes, most);
        let mut steps = vec![
            self.quick_latency(&sampled(samples.latency), &sample(&far, samples.far_latency))?,
            self.quick_nodes(&sampled(samples.nodes), &sampled(samples.mixed), &sample(&far, samples.far))?,
        ];
        steps.extend(self.quick_domains(samples.domains)?);
        steps.extend(self.quick_packages(samples.packages)?);
        steps.extend(self.quick_loaded()?);
        Ok(steps)
    }

    /// When the whole check ends.
    pub(super) fn quick_within(&self) -> f64 {
        self.spec.within.map_or(DEFAULT_WITHIN_S, |t| t.as_secs_f64())
    }

    /// The measured nodes without CPUs, each with the node with CPUs that reads it: the nearest one. Nodes that are equally near take turns, so
    /// that equally many CPUs read memories that are alike.
    fn far_nodes(&self) -> Vec<(u32, u32)> {
        let topology = &self.machine.topology;
        let mut turns: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        let bare = self.nodes.iter().filter(|n| topology.node(*n).is_some_and(|n| n.cpus.is_empty()));
        bare.filter_map(|far| {
            let best = self.cpu_nodes().iter().map(|reader| topology.distance(reader, far)).min()?;
            let nearest: Vec<u32> = self.cpu_nodes().iter().filter(|reader| topology.distance(*reader, far) == best).collect();
            let turn = turns.entry(nearest.clone()).or_default();
            let reader = nearest[*turn % nearest.len()];
            *turn += 1;
            Some((reader, far))
        })
        .collect()
    }

    /// From the first CPU of each node to its own memory, and from that of the first node to another node's; from the nearest CPUs to memory
    /// without CPUs (`far`: the node of the CPU, and of the memory).
    fn quick_latency(&mut self, nodes: &[u32], far: &[(u32, u32)]) -> Result<Step, PlanError> {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for &node in nodes {
            if let Some(cpu) = self.cpus_on(node).first() {
                pairs.push((cpu, self.local_node(cpu)));
            }
        }
        if let Some((cpu, home)) = pairs.first().copied() {
            let bare = |n: u32| self.machine.topology.node(n).is_some_and(|n| n.cpus.is_empty());
            let mut remote = self.nodes.iter().filter(|n| !self.machine.topology.is_local(home, *n) && !bare(*n));
            // The last one, because nodes of one package have neighbouring numbers.
            pairs.extend(remote.next_back().map(|node| (cpu, node)));
        }
        pairs.extend(far.iter().filter_map(|(reader, node)| Some((self.cpus_on(*reader).first()?, *node))));
        let mut cells = Vec::new();
        for (cpu, node) in pairs {
            let probe = self.probe(cpu, node)?;
            cells.push(self.latency_cell(probe, ALLOCATIONS, Vec::new()));
        }
        Ok(quick_step("Idle latency, sampled", Experiment::IdleLatency, cells))
    }

    /// The cores of each node on its own memory: loads alone, and two reads to one write on the bus. Loads alone of the cores nearest to memory
    /// without CPUs (`far`).
    fn quick_nodes(&mut self, nodes: &[u32], mixed: &[u32], far: &[(u32, u32)]) -> Result<Step, PlanError> {
        let topology = &self.machine.topology;
        let mut cells = Vec::new();
        for &node in nodes {
            let cpus = topology.spread(&topology.one_per_core(&self.cpus_on(node)));
            let Some(home) = cpus.first().map(|cpu| self.local_node(*cpu)) else { continue };
            let mixes = [Mix::AllReads].into_iter().chain(mixed.contains(&node).then_some(Mix::R2W1));
            for mix in mixes {
                if self.kernels.is_empty() || self.kernels.iter().any(|k| k.mix == mix) {
                    cells.push(self.bandwidth_cell(&cpus, Some(node), self.local_to(home), mix)?);
                }
            }
        }
        for &(reader, node) in far {
            let cpus = topology.spread(&topology.one_per_core(&self.cpus_on(reader)));
            cells.push(self.bandwidth_cell(&cpus, Some(reader), Some(node), Mix::AllReads)?);
        }
        Ok(quick_step("Bandwidth by node, sampled", Experiment::BandwidthMatrix, cells))
    }

    /// The cores of each last-level cache on their own memory, if a node has several such caches.
    fn quick_domains(&mut self, most: usize) -> Result<Option<Step>, PlanError> {
        let topology = &self.machine.topology;
        let cores = topology.one_per_core(&self.cpus);
        let mut domains: Vec<IdSet> = Vec::new();
        for cpu in cores.iter() {
            let domain = topology.last_level_cache(cpu).map_or_else(|| IdSet::one(cpu), |c| c.cpus.intersection(&cores));
            if !domains.contains(&domain) {
                domains.push(domain);
            }
        }
        // A cache of one core is not a domain: its bandwidth is that of the core.
        domains.retain(|d| d.len() > 1);
        if domains.len() <= self.cpu_nodes().len() {
            return Ok(None);
        }
        let mut cells = Vec::new();
        for domain in sample(&domains, most) {
            let Some(first) = domain.first() else { continue };
            let (row, home) = (self.cpu_node(first), self.local_node(first));
            let cpus: Vec<u32> = domain.iter().collect();
            cells.push(self.bandwidth_cell(&cpus, Some(row), self.local_to(home), Mix::AllReads)?);
        }
        Ok(Some(quick_step("Bandwidth by last-level cache, sampled", Experiment::BandwidthPerCache, cells)))
    }

    /// The cores of each package on another package's memory, each on the node that has its own node's place there.
    fn quick_packages(&mut self, most: usize) -> Result<Option<Step>, PlanError> {
        let package = |node: u32| {
            let cpu = self.cpus_on(node).first()?;
            self.machine.topology.cpu(cpu).map(|c| c.package)
        };
        let mut packages: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for node in self.cpu_nodes().intersection(&self.nodes).iter() {
            packages.entry(package(node).unwrap_or_default()).or_default().push(node);
        }
        let packages = sample(&packages.into_values().collect::<Vec<_>>(), most);
        let mut cells = Vec::new();
        for (from, to) in packages.iter().flat_map(|from| packages.iter().filter(move |to| *to != from).map(move |to| (from, to))) {
            let mut homes = Vec::new();
            for (place, node) in from.iter().enumerate() {
                let cores = self.machine.topology.one_per_core(&self.cpus_on(*node));
                let target = to[place % to.len()];
                let alike: Vec<u32> = self.nodes.iter().filter(|node| self.machine.topology.is_local(target, *node)).collect();
                homes.extend(
                    cores.iter().enumerate().map(|(turn, cpu)| (cpu, alike.get(turn % alike.len().max(1)).copied().unwrap_or(target))),
                );
            }
            let loaders = self.sizes.loader_buffers(&homes, Reserved::Bytes(0), &mut self.notes)?;
            let at = Coordinates {
                cpus: Some(homes.iter().map(|h| h.0).collect()),
                load_nodes: Some(homes.iter().map(|h| h.1).collect()),
                mix: Some(Mix::AllReads),
                ..Coordinates::default()
            };
            cells.push(Cell::new(at, Work::Bandwidth(Loading { loaders, traffic: self.traffic(Mix::AllReads)?, delay: 0 })));
        }
        Ok((!cells.is_empty()).then(|| quick_step("Bandwidth between packages, sampled", Experiment::Bandwidth, cells)))
    }

    /// Two points: the first CPU chases while the other cores of its node load, fully and next to nothing. Only the second one has a latency
    /// that should equal the idle one.
    fn quick_loaded(&mut self) -> Result<Option<Step>, PlanError> {
        let Some(chaser) = self.cpus.first() else { return Ok(None) };
        let node = self.cpu_node(chaser);
        let cores = self.machine.topology.one_per_core(&self.cpus_on(node));
        let loaders = self.machine.topology.spread(&cores.difference(&IdSet::one(chaser)));
        if loaders.is_empty() {
            return Ok(None);
        }
        let home = self.local_node(chaser);
        let probe = self.probe(chaser, home)?;
        let loaders = self.loaders(&loaders, self.local_to(home), Reserved::Buffer(&probe.buffer))?;
        let cell = self.curve_cell(probe, loaders, Mix::AllReads, Delays::Cycles(vec![0, IDLE_DELAY_CYCLES]))?;
        Ok(Some(quick_step("Latency unloaded and under full load", Experiment::LoadedLatency, vec![cell])))
    }
}

/// A step whose cells run in this order. The time is filled in once all steps are known.
fn quick_step(title: &str, experiment: Experiment, cells: Vec<Cell>) -> Step {
    Step { title: title.into(), experiment, cells, estimated_s: 0.0 }
}

/// At most `most` of `all`, evenly spread, including the first and the last.
fn sample<T: Clone>(all: &[T], most: usize) -> Vec<T> {
    if all.len() <= most {
        return all.to_vec();
    }
    match most {
        0 => Vec::new(),
        1 => all[..1].to_vec(),
        _ => (0..most).map(|i| all[i * (all.len() - 1) / (most - 1)].clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_spread_and_hold_both_ends() {
        let all: Vec<u32> = (0..16).collect();
        assert_eq!(sample(&all, 4), [0, 5, 10, 15]);
        assert_eq!(sample(&all, 16), all);
        assert_eq!(sample(&all, 1), [0]);
        assert_eq!(sample(&all[..3], 8), [0, 1, 2]);
    }
}
