//! Tiers of memory: the kind of each node, and what tells so.

use memgauge_model::directory::STAND_IN;
use memgauge_model::plan::Plan;
use memgauge_model::result::{CurveSummary, Report};
use memgauge_model::tiers::{KindEvidence, NodeKind};
use memgauge_model::topology::{Machine, NodeDevice, NodeDeviceKind};
use memgauge_model::units::IdSet;
use memgauge_model::wording;

use super::grid::{Cell, Column};
use super::load::{Load, SummaryNumbers};
use super::page::{INDENT, Page, Style};
use crate::number::{human, number};

/// A table of nodes; nothing for a plan that does not compare tiers.
pub(super) fn nodes(page: &mut Page, plan: &Plan, machine: &Machine) {
    let kinds = &plan.tiers;
    if kinds.is_empty() {
        return;
    }
    page.heading("Tiers of memory", "the kind of each node, and the evidence");
    let node = |kind: &NodeKind| machine.topology.node(kind.node);
    let cpus = |kind: &NodeKind| node(kind).filter(|n| !n.cpus.is_empty()).map_or("none".into(), |n| wording::ids(&n.cpus));
    page.table([
        Column::text("node", kinds.iter().map(|kind| kind.node.to_string())),
        Column::text("CPUs", kinds.iter().map(cpus)),
        Column::numbers("memory", kinds.iter().map(|kind| node(kind).and_then(|n| n.memory).map(human))),
        Column::text("kind", kinds.iter().map(name)),
    ]);
    for kind in kinds {
        let first = format!("{INDENT}node {}: ", kind.node);
        page.text(Style::Plain, &first, &" ".repeat(first.len()), &evidence_of(kind));
    }
}

/// The kind of memory of each node, and the evidence for it; nodes that are alike share an entry.
pub(super) fn kinds(kinds: &[NodeKind]) -> Vec<(String, String)> {
    let mut alike: Vec<(String, IdSet)> = Vec::new();
    for kind in kinds {
        let text = format!("{}: {}", name(kind), evidence_of(kind));
        match alike.iter_mut().find(|(known, _)| *known == text) {
            Some((_, nodes)) => nodes.insert(kind.node),
            None => alike.push((text, IdSet::one(kind.node))),
        }
    }
    alike.into_iter().map(|(text, nodes)| (format!("node{} {nodes}", if nodes.len() > 1 { "s" } else { "" }), text)).collect()
}

fn name(kind: &NodeKind) -> String {
    let stand_in = if kind.volatile.is_some() { STAND_IN } else { "" };
    format!("{}{}{stand_in}", wording::memory_kind(kind.kind), if kind.guessed { " (guess)" } else { "" })
}

fn evidence_of(kind: &NodeKind) -> String {
    if kind.evidence.is_empty() {
        return "nothing says what it is".to_owned();
    }
    let volatile = kind.volatile.iter().map(|why| format!("volatile stand-in: {why}"));
    kind.evidence.iter().map(evidence).chain(volatile).collect::<Vec<_>>().join("; ")
}

/// Sums up each curve in a line; prints nothing for a report that does not compare tiers.
pub(super) fn loads(page: &mut Page, report: &Report) {
    let kinds = report.plan.as_ref().map(|plan| &plan.tiers[..]).unwrap_or_default();
    let mut curves: Vec<&CurveSummary> = report.curves.iter().filter(|c| c.at.load_nodes.is_some()).collect();
    if kinds.is_empty() || curves.is_empty() {
        return;
    }
    // One tier alone, then beside another, then both.
    curves.sort_by_key(|c| (c.at.cpu_node, c.at.mix, c.at.memory, c.at.load_nodes.as_ref().map(IdSet::len), c.at.load_nodes.clone()));
    let node = |id: u32| {
        let kind = kinds.iter().find(|kind| kind.node == id);
        let what = |kind: &NodeKind| format!(" {}{}", wording::memory_kind(kind.kind), if kind.volatile.is_some() { STAND_IN } else { "" });
        format!("{id}{}", kind.map(what).unwrap_or_default())
    };
    let nodes = |ids: &IdSet| ids.iter().map(node).collect::<Vec<_>>().join(" + ");
    let several = |text: fn(&CurveSummary) -> String| curves.iter().any(|c| text(c) != text(curves[0]));
    let numbers: Vec<SummaryNumbers> = curves.iter().map(|curve| SummaryNumbers::new(&Load::find(report, curve))).collect();
    let column = |head: &str, text: fn(&SummaryNumbers) -> &Option<String>| {
        Column::numbers(head, numbers.iter().map(|n| text(n).clone().map(Cell::number)))
    };
    page.heading("Latency of each tier by what is loaded", "ns per dependent load; GB/s of load and chase together");
    page.table([
        Column::text("CPUs of", curves.iter().map(|c| wording::node(c.at.cpu_node))),
        Column::text("mix", curves.iter().map(|c| c.at.mix.map_or(String::new(), |m| m.to_string())))
            .only_if(several(|c| format!("{:?}", c.at.mix))),
        Column::text("chase in", curves.iter().map(|c| c.at.memory_node().map(node).unwrap_or_default())),
        Column::text("load on", curves.iter().map(|c| c.at.load_nodes.as_ref().map(nodes).unwrap_or_default())),
        column("unloaded", |n| &n.unloaded_ns),
        column("full load", |n| &n.saturated_ns),
        column("peak GB/s", |n| &n.peak_gbs),
        Column::text("GB/s by node at full load", curves.iter().map(|c| by_node(c)))
            .only_if(curves.iter().any(|c| !c.full_load_by_node.is_empty())),
    ]);
}

/// `0: 214, 2: 47.1`: what each node gave of a load on several.
fn by_node(curve: &CurveSummary) -> String {
    curve.full_load_by_node.iter().map(|(node, gbs)| format!("{node}: {}", number(*gbs))).collect::<Vec<_>>().join(", ")
}

fn evidence(evidence: &KindEvidence) -> String {
    match evidence {
        KindEvidence::Device(found) => device(found),
        KindEvidence::Cpus => "it has CPUs".to_owned(),
        KindEvidence::Installed { kinds } => format!("firmware lists only {} (SMBIOS)", kinds.join(", ")),
        KindEvidence::CxlPresent { devices } => {
            format!("this machine has CXL memory ({}), and nothing says on which node", devices.join(", "))
        }
        KindEvidence::MemoryTier { tier, of_cpus } => {
            let other = of_cpus.map(|other| format!(" (nodes with CPUs: {other}; smaller is faster)")).unwrap_or_default();
            format!("the kernel's memory tier {tier}{other}")
        }
        KindEvidence::Claim { read_latency_ns, read_bandwidth_mbs, of_cpus_mbs } => {
            let gbs = |mbs: u64| format!("{} GB/s", number(mbs as f64 / 1e3));
            let figures = [read_latency_ns.map(|ns| format!("{ns} ns")), read_bandwidth_mbs.map(gbs)];
            let other = of_cpus_mbs.map(|other| format!(" (nodes with CPUs: from {})", gbs(other))).unwrap_or_default();
            format!("firmware claims {} for reads{other}", figures.into_iter().flatten().collect::<Vec<_>>().join(" and "))
        }
        KindEvidence::Distance { from, distance } => format!("distance {distance} from node {from}"),
    }
}

fn device(device: &NodeDevice) -> String {
    let NodeDevice { name, kind, region, qos_class } = device;
    let what = match kind {
        NodeDeviceKind::Nvdimm => "persistent memory",
        NodeDeviceKind::Cxl => "CXL",
        NodeDeviceKind::SpecificPurpose => "memory that firmware sets apart (specific purpose)",
        NodeDeviceKind::Gpu => "GPU",
        NodeDeviceKind::PciAccelerator => "GPU or other accelerator on this node (PCI)",
        NodeDeviceKind::Other => "a device with memory",
    };
    let region = region.as_ref().map(|region| format!(" in {region}")).unwrap_or_default();
    let class = qos_class.map(|class| format!(", class of service {class}")).unwrap_or_default();
    format!("{what} {name}{region}{class}")
}
