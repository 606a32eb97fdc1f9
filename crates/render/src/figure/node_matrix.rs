//! A matrix by node of the CPUs and node of the memory.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::{MemoryPlace, Metric};
use memgauge_model::result::Measurement;
use memgauge_model::topology::Topology;

use super::frame::Caption;
use super::heat::{HeatCell, HeatMap, breaks, noise};
use super::source::ResultSet;

/// Node and CPU of a row.
type Probe = (Option<u32>, Option<u32>);

/// The number of a node, or `own`.
pub(crate) fn node_label(id: Option<u32>) -> String {
    id.map_or_else(|| "own".to_owned(), |id| id.to_string())
}

/// The number of the memory's node, `own`, or `device` for one that does not state its node.
fn place_label(place: Option<MemoryPlace>) -> String {
    match place {
        Some(MemoryPlace::Device { node: None }) => "device".to_owned(),
        Some(MemoryPlace::Inherited) => "policy".to_owned(),
        _ => node_label(place.and_then(MemoryPlace::node)),
    }
}

/// A matrix of nodes as a heat map, lines where another package begins.
pub(crate) fn node_matrix(caption: Caption, unit: &'static str, set: &ResultSet<'_>) -> HeatMap {
    let rows: BTreeSet<Probe> = set.ms.iter().map(|m| (m.at.cpu_node, m.at.cpu)).collect();
    let columns: BTreeSet<Option<MemoryPlace>> = set.ms.iter().map(|m| m.at.memory).collect();
    let mut cells: BTreeMap<(Probe, Option<MemoryPlace>), &Measurement> = BTreeMap::new();
    for m in &set.ms {
        cells.entry(((m.at.cpu_node, m.at.cpu), m.at.memory)).or_insert(m);
    }
    let nodes: BTreeSet<Option<u32>> = rows.iter().map(|r| r.0).collect();
    let several = rows.len() > nodes.len();
    let row_name = |&(n, cpu): &Probe| match (n, cpu) {
        (n, Some(cpu)) if several => format!("{}, CPU {cpu}", node_label(n)),
        (n, _) => node_label(n),
    };
    let topology = &set.report.machine.topology;
    HeatMap {
        caption,
        unit,
        row_title: "CPUs of node ↓".into(),
        column_title: "memory of node →".into(),
        row_breaks: breaks(rows.iter().map(|r| package_of_node(topology, r.0))),
        column_breaks: breaks(columns.iter().map(|c| package_of_node(topology, c.and_then(MemoryPlace::node)))),
        cells: rows
            .iter()
            .flat_map(|r| columns.iter().map(move |c| (*r, *c)))
            .map(|at| HeatCell::for_measurement(cells.get(&at).copied()))
            .collect(),
        rows: rows.iter().map(row_name).collect(),
        columns: columns.into_iter().map(place_label).collect(),
        separate_low: false,
        more_is_faster: set.ms.iter().any(|m| m.metric == Metric::Bandwidth),
        noise: noise(&set.ms),
    }
}

/// The package of a node's CPUs; `None` for memory without CPUs.
fn package_of_node(topology: &Topology, id: Option<u32>) -> Option<u32> {
    let first = topology.node(id?)?.cpus.first()?;
    topology.cpu(first).map(|c| c.package)
}
