//! The place that the slow numbers of a host have in common: a node, a link, a cache, a CPU, regions of memory, or everything.

use std::collections::BTreeSet;

use memgauge_analysis::fleet::SlowPlace;
use memgauge_model::experiment::{Experiment, Metric};
use memgauge_model::units::IdSet;

use crate::row::Cell;

/// The place and the quantity that slow numbers have in common.
#[derive(Debug, PartialEq)]
pub(crate) struct Pattern {
    pub(crate) place: SlowPlace,
    /// The quantity, if only one is slow.
    pub(crate) metric: Option<Metric>,
    /// How many numbers of the place are slow, and of how many.
    pub(crate) slow: u32,
    pub(crate) of: u32,
}

/// A place explains the slow numbers if it has at least this share of agreement with them: twice the slow numbers there, over the numbers
/// there and the slow numbers (the measure of L. Dice, 1945).
const MIN_AGREEMENT: f64 = 0.6;
/// How much a slow number counts against a place that it says nothing of. Those of all nodes together are slow because one node is; many
/// more of them have another cause.
const SILENT: f64 = 0.5;

/// Finds the place that agrees best with the slow numbers. `judged`: all numbers of the host that were compared.
pub(crate) fn pattern(judged: &[&Cell], slow: &[&Cell]) -> Pattern {
    let mut best: Option<(f64, Pattern)> = None;
    let mut metrics = vec![None];
    if let [only] = &slow.iter().map(|c| c.metric).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()[..] {
        metrics.push(Some(*only));
    }
    for metric in metrics {
        let of_metric = |c: &&&Cell| metric.is_none_or(|m| m == c.metric);
        let judged: Vec<&Cell> = judged.iter().filter(of_metric).copied().collect();
        for place in candidates(&judged, slow) {
            let speaks = |c: &&&Cell| concerns(c, &place).is_some();
            let is_there = |c: &&&Cell| concerns(c, &place) == Some(true);
            let (there, slow_there) = (judged.iter().filter(is_there).count(), slow.iter().filter(is_there).count());
            let slow_speaking = slow.iter().filter(speaks).count();
            if slow_there == 0 {
                continue;
            }
            let silent = (slow.len() - slow_speaking) as f64;
            let agreement = 2.0 * slow_there as f64 / ((there + slow_speaking) as f64 + SILENT * silent);
            // Of places that agree as well, the first is the largest.
            if agreement >= MIN_AGREEMENT && best.as_ref().is_none_or(|(least, _)| agreement > least + 1e-9) {
                best = Some((agreement, Pattern { place, metric, slow: slow_there as u32, of: there as u32 }));
            }
        }
    }
    best.map_or_else(
        || Pattern { place: SlowPlace::Numbers, metric: None, slow: slow.len() as u32, of: judged.len() as u32 },
        |(_, pattern)| pattern,
    )
}

/// The places that slow numbers may have in common, the largest first. Apart from the whole host, one that holds everything is left out.
fn candidates(judged: &[&Cell], slow: &[&Cell]) -> Vec<SlowPlace> {
    let mut found = vec![SlowPlace::WholeHost];
    let nodes: BTreeSet<u32> = judged.iter().flat_map(|c| [c.at.cpu_node, c.at.memory_node()]).flatten().collect();
    if nodes.len() > 1 {
        found.extend(nodes.iter().map(|&node| SlowPlace::Node { node }));
        let links: BTreeSet<(u32, u32)> = slow.iter().filter_map(|c| link(c)).collect();
        found.extend(links.into_iter().map(|(from, to)| SlowPlace::Link { from, to }));
    }
    let domains: BTreeSet<&IdSet> = judged.iter().filter_map(|c| domain(c)).collect();
    if domains.len() > 1 {
        found.extend(domains.into_iter().map(|cpus| SlowPlace::CacheDomain { cpus: cpus.clone() }));
    }
    let regions: BTreeSet<(u32, u32)> = slow.iter().filter_map(|c| region(c)).collect();
    for node in regions.iter().map(|r| r.0).collect::<BTreeSet<_>>() {
        let of_node: IdSet = regions.iter().filter(|r| r.0 == node).map(|r| r.1).collect();
        let all = judged.iter().filter(|c| region(c).is_some_and(|r| r.0 == node)).count();
        if of_node.len() < all {
            found.push(SlowPlace::Regions { node, regions: of_node });
        }
    }
    let cpus: BTreeSet<u32> = judged.iter().filter_map(|c| c.at.cpu).collect();
    if cpus.len() > 1 {
        found.extend(slow.iter().filter_map(|c| c.at.cpu).collect::<BTreeSet<_>>().into_iter().map(|cpu| SlowPlace::Cpu { cpu }));
    }
    found
}

/// Whether a number is of a place; `None` if it does not tell such places apart.
fn concerns(cell: &Cell, place: &SlowPlace) -> Option<bool> {
    match place {
        SlowPlace::WholeHost | SlowPlace::Numbers => Some(true),
        SlowPlace::Node { node } => {
            let nodes = [cell.at.cpu_node, cell.at.memory_node()];
            nodes.iter().any(Option::is_some).then(|| nodes.contains(&Some(*node)))
        }
        SlowPlace::Link { from, to } => {
            (cell.at.cpu_node.is_some() && cell.at.memory_node().is_some()).then(|| link(cell) == Some((*from, *to)))
        }
        SlowPlace::CacheDomain { cpus } => domain(cell).map(|own| own == cpus),
        SlowPlace::Cpu { cpu } => cell.at.cpu.map(|own| own == *cpu),
        SlowPlace::Regions { node, regions } => region(cell).map(|own| own.0 == *node && regions.contains(own.1)),
    }
}

/// From the node of CPUs to the memory of another node.
fn link(cell: &Cell) -> Option<(u32, u32)> {
    let (from, to) = (cell.at.cpu_node?, cell.at.memory_node()?);
    (from != to).then_some((from, to))
}

/// CPUs that share a last-level cache.
fn domain(cell: &Cell) -> Option<&IdSet> {
    cell.at.cpus.as_ref().filter(|_| cell.experiment == Experiment::BandwidthPerCache)
}

/// A node and a region of its memory.
fn region(cell: &Cell) -> Option<(u32, u32)> {
    Some((cell.at.memory_node()?, cell.at.region?))
}

#[cfg(test)]
mod tests {
    use memgauge_model::experiment::{Coordinates, MemoryPlace, Unit};

    use super::*;

    fn cell(experiment: Experiment, metric: Metric, at: Coordinates) -> Cell {
        Cell { experiment, at, metric, unit: Unit::GigabytesPerSecond }
    }

    fn nodes(cpu: u32, memory: u32, metric: Metric) -> Cell {
        let at = Coordinates { cpu_node: Some(cpu), memory: Some(MemoryPlace::Node(memory)), ..Coordinates::default() };
        cell(if metric == Metric::Latency { Experiment::IdleLatency } else { Experiment::BandwidthMatrix }, metric, at)
    }

    /// Latencies and bandwidths between the four nodes of a host, then its caches, its CPUs, and regions of node 0.
    fn host() -> Vec<Cell> {
        let mut all = Vec::new();
        for metric in [Metric::Latency, Metric::Bandwidth] {
            all.extend((0..16).map(|i| nodes(i / 4, i % 4, metric)));
        }
        let domain = |i: u32| Coordinates { cpus: Some((4 * i..4 * i + 4).collect()), ..Coordinates::default() };
        all.extend((0..8).map(|i| cell(Experiment::BandwidthPerCache, Metric::Bandwidth, domain(i))));
        let cpu = |i| Coordinates { cpu: Some(i), ..Coordinates::default() };
        all.extend((0..32).map(|i| cell(Experiment::IdleLatencyPerCpu, Metric::Latency, cpu(i))));
        let region = |i| Coordinates { memory: Some(MemoryPlace::Node(0)), region: Some(i), ..Coordinates::default() };
        all.extend((0..32).map(|i| cell(Experiment::MemoryScan, Metric::Bandwidth, region(i))));
        all
    }

    fn found(slow: impl Fn(&Cell) -> bool) -> Pattern {
        let all = host();
        let judged: Vec<&Cell> = all.iter().collect();
        let slow: Vec<&Cell> = all.iter().filter(|c| slow(c)).collect();
        pattern(&judged, &slow)
    }

    #[test]
    fn places_are_found_by_the_numbers_that_are_slow() {
        assert_eq!(found(|_| true).place, SlowPlace::WholeHost);
        let only = found(|c| c.metric == Metric::Bandwidth);
        assert_eq!((only.place, only.metric), (SlowPlace::WholeHost, Some(Metric::Bandwidth)));
        let of_node = |c: &Cell, node| c.at.memory_node() == Some(node) && c.at.region.is_none();
        assert_eq!(found(|c| of_node(c, 2)).place, SlowPlace::Node { node: 2 });
        let bandwidth = found(|c| of_node(c, 3) && c.metric == Metric::Bandwidth);
        assert_eq!((bandwidth.place, bandwidth.metric), (SlowPlace::Node { node: 3 }, Some(Metric::Bandwidth)));
        assert_eq!(found(|c| link(c) == Some((1, 3))), Pattern { place: SlowPlace::Link { from: 1, to: 3 }, metric: None, slow: 2, of: 2 });
        let eight = |c: &Cell| domain(c).is_some_and(|d| d.contains(9));
        assert_eq!(found(eight).place, SlowPlace::CacheDomain { cpus: (8..12).collect() });
        assert_eq!(found(|c| c.at.cpu == Some(17)).place, SlowPlace::Cpu { cpu: 17 });
        let regions: IdSet = (8..12).collect();
        assert_eq!(found(|c| region(c).is_some_and(|r| regions.contains(r.1))).place, SlowPlace::Regions { node: 0, regions });
    }

    #[test]
    fn numbers_without_a_place_in_common_are_only_counted() {
        let few = host();
        let slow = [&few[0], &few[21]];
        let judged: Vec<&Cell> = few[..32].iter().collect();
        assert_eq!(pattern(&judged, &slow), Pattern { place: SlowPlace::Numbers, metric: None, slow: 2, of: 32 });
    }
}
