//! A matrix by node of the CPUs and node of the memory.

use memgauge_model::experiment::MemoryPlace;
use memgauge_model::topology::Topology;

use crate::figure::frame::Caption;
use crate::figure::heat::{HeatMap, breaks};
use crate::figure::source::ResultSet;
use crate::groups::nodes::{Prober, node_matrix};
use crate::pivot::sorted;

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
pub(crate) fn node_map(caption: Caption, set: &ResultSet<'_>) -> HeatMap {
    let table = node_matrix(&set.ms);
    let several = table.rows.len() > sorted(table.rows.iter().map(|from| from.node)).len();
    let row_name = |from: &Prober<'_>| match from.cpus_name().filter(|_| several) {
        Some(cpus) => format!("{}, {cpus}", node_label(from.node)),
        None => node_label(from.node),
    };
    let package = |node| package_of_node(&set.report.machine.topology, node);
    HeatMap {
        row_title: "CPUs of node ↓".into(),
        column_title: "memory of node →".into(),
        row_breaks: breaks(table.rows.iter().map(|from| package(from.node))),
        column_breaks: breaks(table.columns.iter().map(|place| package(place.and_then(MemoryPlace::node)))),
        ..HeatMap::of(caption, &table, row_name, |place| place_label(*place))
    }
}

/// The package of a node's CPUs; `None` for memory without CPUs.
fn package_of_node(topology: &Topology, id: Option<u32>) -> Option<u32> {
    let first = topology.node(id?)?.cpus.first()?;
    topology.cpu(first).map(|c| c.package)
}
