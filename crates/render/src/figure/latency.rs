//! Idle latency: node matrices, and by CPU.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_core::experiment::ChaseOrder;
use memgauge_core::result::Measurement;
use memgauge_core::topology::Topology;

use super::axis::Axis;
use super::bars::{Bars, Row};
use super::chart::{Band, Chart, Mark, Sample, Series};
use super::frame::{Panel, Words};
use super::heat::{Cell, HeatMap};
use super::labels::{ABOVE, BELOW, LEFT, RIGHT, UPPER_LEFT, UPPER_RIGHT};
use super::palette::{INK, series};
use super::source::{MOST_SERIES, Set, about, bar, common_pages, interval, is_degraded, notes, part_of, shared_title};
use crate::text::number::{bounds, number, value_of};

/// Fewer cells than this are easier to compare as bars.
const BARS: usize = 3;

fn order_name(order: Option<ChaseOrder>) -> &'static str {
    match order {
        Some(ChaseOrder::WindowLocal) => "window-local",
        Some(ChaseOrder::FullRandom) => "full-random",
        Some(ChaseOrder::Sequential) => "sequential",
        None => "order not stated",
    }
}

fn order_about(order: Option<ChaseOrder>) -> &'static str {
    match order {
        Some(ChaseOrder::WindowLocal) => "random within a window: translation mostly hidden",
        Some(ChaseOrder::FullRandom) => "random over the whole buffer: translation included",
        Some(ChaseOrder::Sequential) => "ascending: what prefetchers make of it",
        None => "",
    }
}

/// A matrix by node of the CPU and node of the memory, for each order of chase; bars for one or two pairs.
pub(crate) fn matrices(set: Set<'_>) -> Vec<Box<dyn Panel>> {
    let pairs: BTreeSet<Key> = set.ms.iter().map(|m| key(m)).collect();
    if pairs.len() < BARS {
        return vec![Box::new(few(set, &pairs))];
    }
    let orders: BTreeSet<Option<ChaseOrder>> = set.ms.iter().map(|m| m.at.order).collect();
    let mut panels: Vec<Box<dyn Panel>> = Vec::new();
    for order in orders {
        let of_order = Set { ms: set.ms.iter().copied().filter(|m| m.at.order == order).collect(), ..set };
        let words = Words::new(
            of_order.title(&format!("Idle latency, {}", order_name(order))),
            about(&["ns per dependent load", order_about(order), &common_pages(std::slice::from_ref(&of_order))]),
        );
        panels.push(Box::new(node_matrix(words, "ns", &of_order)));
    }
    panels
}

/// Node and CPU that measured.
type Probe = (Option<u32>, Option<u32>);

type Key = (Option<u32>, Option<u32>, Option<u32>);

fn key(m: &Measurement) -> Key {
    (m.at.cpu_node, m.at.cpu, m.at.memory_node)
}

/// Node names for a map: the number, or what stands in for it.
fn node(id: Option<u32>) -> String {
    id.map_or_else(|| "own".to_owned(), |id| id.to_string())
}

/// A matrix of nodes as a heat map, lines where another package begins.
pub(crate) fn node_matrix(mut words: Words, unit: &'static str, set: &Set<'_>) -> HeatMap {
    let rows: BTreeSet<Probe> = set.ms.iter().map(|m| (m.at.cpu_node, m.at.cpu)).collect();
    let columns: BTreeSet<Option<u32>> = set.ms.iter().map(|m| m.at.memory_node).collect();
    let mut cells: BTreeMap<(Probe, Option<u32>), &Measurement> = BTreeMap::new();
    for m in &set.ms {
        cells.entry(((m.at.cpu_node, m.at.cpu), m.at.memory_node)).or_insert(m);
    }
    notes(&mut words, std::slice::from_ref(set), false);
    let nodes: BTreeSet<Option<u32>> = rows.iter().map(|r| r.0).collect();
    let several = rows.len() > nodes.len();
    let row_name = |&(n, cpu): &Probe| match (n, cpu) {
        (n, Some(cpu)) if several => format!("{}, CPU {cpu}", node(n)),
        (n, _) => node(n),
    };
    let topology = &set.report.machine.topology;
    HeatMap {
        words,
        unit,
        row_title: "CPUs of node ↓".into(),
        column_title: "memory of node →".into(),
        row_breaks: breaks(rows.iter().map(|r| package_of_node(topology, r.0))),
        column_breaks: breaks(columns.iter().map(|c| package_of_node(topology, *c))),
        cells: rows
            .iter()
            .flat_map(|r| columns.iter().map(move |c| (*r, *c)))
            .map(|at| cells.get(&at).map_or(Cell::Void, |m| value_of(&m.estimate).map_or(Cell::Missing, Cell::Value)))
            .collect(),
        rows: rows.iter().map(row_name).collect(),
        columns: columns.into_iter().map(node).collect(),
        apart: false,
    }
}

/// The package of a node's CPUs; `None` for memory without CPUs.
fn package_of_node(topology: &Topology, id: Option<u32>) -> Option<u32> {
    let first = topology.node(id?)?.cpus.first()?;
    topology.cpu(first).map(|c| c.package)
}

/// Where a neighbour differs; nowhere when every one does, because lines everywhere say nothing.
pub(crate) fn breaks<T: PartialEq>(of: impl Iterator<Item = T>) -> Vec<usize> {
    let all: Vec<T> = of.collect();
    let found: Vec<usize> = (1..all.len()).filter(|&i| all[i] != all[i - 1]).collect();
    if found.len() + 1 >= all.len() { Vec::new() } else { found }
}

/// One or two pairs of node and memory as bars, a bar for each order.
fn few(set: Set<'_>, pairs: &BTreeSet<Key>) -> Bars {
    let orders: BTreeSet<Option<ChaseOrder>> = set.ms.iter().map(|m| m.at.order).collect();
    let mut rows = Vec::new();
    for pair in pairs {
        for (i, order) in orders.iter().enumerate() {
            let found = set.ms.iter().copied().find(|m| key(m) == *pair && m.at.order == *order);
            let (cpu_node, cpu, memory) = *pair;
            let who = cpu.map_or_else(|| format!("node {}", node(cpu_node)), |c| format!("CPU {c}"));
            let home = if set.directory.is_some() && memory.is_none() { "device".into() } else { format!("node {}", node(memory)) };
            if let Some(m) = found {
                let name = format!("{who}, {home}");
                rows.push(Row { name, detail: order_name(*order).into(), bars: vec![bar(Some(m), series(i))] });
            }
        }
    }
    let sets = [set];
    let mut words =
        Words::new(shared_title(&sets, "Idle latency"), about(&["ns per dependent load, with its 95 % interval", &common_pages(&sets)]));
    notes(&mut words, &sets, false);
    Bars { words, unit: "ns", rows, limit_name: None }
}

/// A series' name and its points.
type Line = (Option<String>, Vec<Sample>);

/// Latency by CPU: points, a series for each result and order, in charts of as many as there are colours.
pub(crate) fn per_cpu(sets: &[Set<'_>]) -> Vec<Box<dyn Panel>> {
    let ids: BTreeSet<u32> = sets.iter().flat_map(|s| &s.ms).filter_map(|m| m.at.cpu).collect();
    let ids: Vec<u32> = ids.into_iter().collect();
    let index = |id: u32| ids.binary_search(&id).unwrap_or(0) as f64;
    let mut words = Words::new(
        shared_title(sets, "Idle latency by CPU"),
        about(&["ns per dependent load, each CPU to the node's memory, with its 95 % interval", &common_pages(sets)]),
    );
    notes(&mut words, sets, true);
    let all = || sets.iter().flat_map(|s| &s.ms);
    let ends = all().flat_map(|m| {
        let (low, high) = interval(m).unzip();
        [value_of(&m.estimate), low, high].into_iter().flatten()
    });
    let (low, high) = bounds(ends).unwrap_or((0.0, 1.0));
    // A twentieth of the value is what readers should be able to see; a narrower axis would magnify noise.
    let least = high * 0.05;
    let (low, high) = if high - low < least { ((low + high - least) / 2.0, (low + high + least) / 2.0) } else { (low, high) };
    let names: Vec<String> = ids.iter().map(u32::to_string).collect();
    // All charts have the same axes, so that they compare.
    let empty = Chart::new(words, Axis::indices("CPU", &names, 16), Axis::linear("Latency (ns)", low.max(0.0), high, 6));
    let orders: BTreeSet<Option<ChaseOrder>> = all().map(|m| m.at.order).collect();
    let mut lines: Vec<Line> = Vec::new();
    for set in sets {
        for order in &orders {
            let mut ms: Vec<&Measurement> = set.ms.iter().copied().filter(|m| m.at.order == *order && m.at.cpu.is_some()).collect();
            ms.sort_by_key(|m| m.at.cpu);
            ms.dedup_by_key(|m| m.at.cpu);
            let samples: Vec<Sample> = ms
                .iter()
                .filter_map(|m| {
                    let (x, y) = (index(m.at.cpu?), value_of(&m.estimate)?);
                    Some(Sample { x, y, y_interval: interval(m), degraded: is_degraded(m), x_interval: None })
                })
                .collect();
            if samples.is_empty() {
                continue;
            }
            let parts = [set.name, (orders.len() > 1).then(|| order_name(*order))];
            let name: Vec<&str> = parts.into_iter().flatten().collect();
            lines.push(((!name.is_empty()).then(|| name.join(", ")), samples));
        }
    }
    // Where nothing has a value, an empty chart still says why.
    let parts: Vec<&[Line]> = if lines.is_empty() { vec![&[]] } else { lines.chunks(MOST_SERIES).collect() };
    let of = parts.len();
    let chart = |(part, lines): (usize, &[Line])| {
        let mut chart = empty.clone();
        chart.words.title.push_str(&part_of(part, of));
        if let [only] = sets {
            chart.bands = groups(&only.report.machine.topology, &ids);
        }
        for (i, (name, samples)) in lines.iter().enumerate() {
            if of == 1 && lines.len() == 1 {
                chart.marks = extremes(samples, &ids);
            }
            chart.series.push(Series { name: name.clone(), colour: series(i), samples: samples.clone(), joined: false });
        }
        Box::new(chart) as Box<dyn Panel>
    };
    parts.into_iter().enumerate().map(chart).collect()
}

/// CPUs of a kind, or of a node, that stand together.
fn groups(topology: &Topology, ids: &[u32]) -> Vec<Band> {
    let kinds = topology.cpus.iter().any(|c| c.kind.is_some());
    let of = |id: u32| {
        let cpu = topology.cpu(id)?;
        if kinds { cpu.kind.clone().map(|k| (k.clone(), k)) } else { Some((format!("node {}", cpu.node), cpu.node.to_string())) }
    };
    let groups: Vec<_> = ids.iter().map(|id| of(*id)).collect();
    let cuts: Vec<usize> = (1..groups.len()).filter(|&i| groups[i] != groups[i - 1]).collect();
    if cuts.is_empty() || cuts.len() > 32 {
        return Vec::new();
    }
    let edges: Vec<usize> = [0].into_iter().chain(cuts).chain([groups.len()]).collect();
    edges
        .iter()
        .zip(edges.iter().skip(1))
        .enumerate()
        .map(|(i, (&from, &to))| {
            let names = groups[from].clone().map(|(long, short)| vec![long, short]).unwrap_or_default();
            Band { from: from as f64 - 0.5, to: to as f64 - 0.5, names, shaded: i % 2 == 0 }
        })
        .collect()
}

/// The fastest and the slowest CPU.
fn extremes(samples: &[Sample], ids: &[u32]) -> Vec<Mark> {
    let by = |a: &&Sample, b: &&Sample| a.y.total_cmp(&b.y);
    let (Some(low), Some(high)) = (samples.iter().min_by(by), samples.iter().max_by(by)) else { return Vec::new() };
    if samples.len() < 2 {
        return Vec::new();
    }
    let mark = |s: &Sample, first| {
        let cpu = ids.get(s.x as usize).map(|id| format!("CPU {id}: ")).unwrap_or_default();
        let mut directions = vec![first];
        directions.extend([UPPER_LEFT, UPPER_RIGHT, LEFT, RIGHT, ABOVE, BELOW]);
        Mark { at: (s.x, s.y), name: format!("{cpu}{} ns", number(s.y)), colour: INK, ring: false, optional: false, directions }
    };
    vec![mark(high, ABOVE), mark(low, BELOW)]
}
