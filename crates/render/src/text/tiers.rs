//! Tiers of memory: the kind of each node, and what tells so.

use memgauge_model::directory::STAND_IN;
use memgauge_model::experiment::{ChaseOrder, Experiment, Metric};
use memgauge_model::plan::Plan;
use memgauge_model::result::{CurveSummary, Measurement, Report};
use memgauge_model::tiers::{KindEvidence, MemoryKind, NodeKind};
use memgauge_model::topology::{Machine, NodeDevice, NodeDeviceKind};
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;
use memgauge_model::wording;

use super::grid::{Cell, Column, Value};
use super::load::{Load, SummaryNumbers};
use super::page::{INDENT, Page, Style};
use crate::number::{doubted, human, number, percent, value_of};

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

/// A way from CPUs to memory that may be behind a link.
struct Link<'a> {
    /// The node of the CPUs.
    from: u32,
    to: u32,
    kind: String,
    latency: Option<&'a Measurement>,
    own_latency: Option<&'a Measurement>,
    reads: Option<&'a Measurement>,
    own_reads: Option<&'a Measurement>,
    reads_and_writes: Option<&'a Measurement>,
}

impl<'a> Link<'a> {
    /// `None` if nothing was measured over it.
    fn new(report: &'a Report, from: u32, to: u32, kind: &str) -> Option<Self> {
        let find = |to: u32, is_wanted: &dyn Fn(&Measurement) -> bool| {
            let there = |m: &&Measurement| m.at.cpu_node == Some(from) && m.at.memory_node() == Some(to) && m.at.load_nodes.is_none();
            report.results.iter().filter(there).find(|m| is_wanted(m))
        };
        let chase = |m: &Measurement| {
            m.experiment == Experiment::IdleLatency && m.metric == Metric::Latency && m.at.order == Some(ChaseOrder::WindowLocal)
        };
        let mix = |mix: Mix| move |m: &Measurement| m.experiment == Experiment::BandwidthMatrix && m.at.mix == Some(mix);
        let link = Self {
            from,
            to,
            kind: kind.to_owned(),
            latency: find(to, &chase),
            own_latency: find(from, &chase),
            reads: find(to, &mix(Mix::AllReads)),
            own_reads: find(from, &mix(Mix::AllReads)),
            reads_and_writes: find(to, &mix(Mix::R2W1)),
        };
        link.latency.or(link.reads).or(link.reads_and_writes).is_some().then_some(link)
    }
    /// Latency that the link adds to that of the CPUs' own node.
    fn added_ns(&self) -> Option<Cell> {
        let (over, own) = (self.latency?, self.own_latency?);
        let added = value_of(&over.estimate)? - value_of(&own.estimate)?;
        Some(Cell::number(doubted(!(over.is_reliable() && own.is_reliable()), added)))
    }
    /// Reads, as a share of those of the CPUs' own node.
    fn share_of_own(&self) -> Option<Cell> {
        let (over, own) = (self.reads?, self.own_reads?);
        let sign = if over.is_reliable() && own.is_reliable() { "" } else { "~" };
        let share = value_of(&over.estimate)? / value_of(&own.estimate)?;
        share.is_finite().then(|| Cell::number(format!("{sign}{}", percent(share))))
    }
}

/// The ways to memory of another package and of each node without CPUs that may be behind a link, from the nearest CPUs. None for a report
/// that does not compare tiers.
fn links<'a>(report: &'a Report) -> Vec<Link<'a>> {
    let topology = &report.machine.topology;
    let Some(kinds) = report.plan.as_ref().map(|plan| &plan.tiers).filter(|kinds| !kinds.is_empty()) else { return Vec::new() };
    let with_cpus = || topology.nodes.iter().filter_map(|n| Some((n.id, topology.cpu(n.cpus.first()?)?.package)));
    // Without a latency a way is last.
    let ns = |link: &Link<'_>| link.latency.and_then(|m| value_of(&m.estimate)).unwrap_or(f64::INFINITY);
    let nearest = |all: Vec<Link<'a>>| all.into_iter().min_by(|a, b| ns(a).total_cmp(&ns(b)));
    let packages = topology.packages();
    let pairs = packages.iter().flat_map(|from| packages.iter().filter(move |to| *to != from).map(move |to| (from, to)));
    let of_package = |wanted: u32| with_cpus().filter(move |(_, package)| *package == wanted).map(|(node, _)| node);
    let between = pairs.filter_map(|(from, to)| {
        let nodes = of_package(from).flat_map(|from| of_package(to).map(move |to| (from, to)));
        nearest(nodes.filter_map(|(from, to)| Link::new(report, from, to, "another package")).collect())
    });
    let beyond = kinds.iter().filter(|kind| topology.node(kind.node).is_some_and(|n| n.cpus.is_empty())).filter_map(|kind| {
        if matches!(kind.kind, MemoryKind::Dram | MemoryKind::Hbm | MemoryKind::Persistent) {
            return None;
        }
        nearest(with_cpus().filter_map(|(from, _)| Link::new(report, from, kind.node, &name(kind))).collect())
    });
    between.chain(beyond).collect()
}

/// A row for each of these ways that was measured.
pub(super) fn link_table(page: &mut Page, report: &Report) {
    let links = links(report);
    if links.is_empty() {
        return;
    }
    let values = |of: fn(&Link<'_>) -> Option<Value>| links.iter().map(of).collect::<Vec<_>>();
    page.heading("Links to memory", "from the nearest CPUs; 'added' and 'share' compare with their own node's memory");
    page.table([
        Column::text("from", links.iter().map(|link| wording::node(Some(link.from)))),
        Column::text("to", links.iter().map(|link| wording::node(Some(link.to)))),
        Column::text("memory", links.iter().map(|link| link.kind.clone())),
        Column::numbers("ns", values(|link| link.latency.map(Value::of))),
        Column::numbers("added", links.iter().map(Link::added_ns)),
        Column::numbers("reads GB/s", values(|link| link.reads.map(Value::of))),
        Column::numbers("share", links.iter().map(Link::share_of_own)),
        Column::numbers("2:1 GB/s", values(|link| link.reads_and_writes.map(Value::of))).optional(),
    ]);
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
    // The kinds stand in the first table, and two of them make this one too wide for a terminal.
    let nodes = |ids: &IdSet| ids.iter().map(|id| id.to_string()).collect::<Vec<_>>().join(" + ");
    let several = |text: fn(&CurveSummary) -> String| curves.iter().any(|c| text(c) != text(curves[0]));
    let numbers: Vec<SummaryNumbers> = curves.iter().map(|curve| SummaryNumbers::new(&Load::find(report, curve))).collect();
    let column = |head: &str, text: fn(&SummaryNumbers) -> &Option<String>| {
        Column::numbers(head, numbers.iter().map(|n| text(n).clone().map(Cell::number)))
    };
    let at_full_load = |c: &&&CurveSummary| !c.full_load_by_node.is_empty();
    let in_words = |c: &&CurveSummary| {
        let chase = c.at.memory_node().map(|id| id.to_string()).unwrap_or_default();
        format!("{}, chase in {chase}, GB/s by node at full load: {}", wording::node(c.at.cpu_node), by_node(c))
    };
    let several_nodes = curves.iter().filter(at_full_load).map(in_words).collect();
    page.heading("Latency of each tier by what is loaded", "ns per dependent load; GB/s of load and chase together");
    page.table([
        Column::text("CPUs of", curves.iter().map(|c| wording::node(c.at.cpu_node))),
        Column::text("mix", curves.iter().map(|c| c.at.mix.map_or(String::new(), |m| m.to_string())))
            .only_if(several(|c| format!("{:?}", c.at.mix))),
        Column::text("chase in", curves.iter().map(|c| c.at.memory_node().map(node).unwrap_or_default())),
        Column::text("load on node", curves.iter().map(|c| c.at.load_nodes.as_ref().map(nodes).unwrap_or_default())),
        column("unloaded", |n| &n.unloaded_ns),
        column("full load", |n| &n.saturated_ns),
        column("peak GB/s", |n| &n.peak_gbs),
        Column::text("GB/s by node at full load", curves.iter().map(|c| by_node(c)))
            .only_if(curves.iter().any(|c| !c.full_load_by_node.is_empty()))
            .or_lines(several_nodes),
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
