//! Nodes of a package (NPS, SNC): what the nodes of one package differ by, and what results with different numbers of nodes show.

use std::collections::BTreeMap;

use memgauge_model::axis::Axis;
use memgauge_model::experiment::{ChaseOrder, Experiment, MemoryPlace, Metric};
use memgauge_model::result::Report;
use memgauge_model::topology::Topology;
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;
use memgauge_model::words::{Command, Knob, Verb};

use super::document::{Action, Ratio, Role, Topic, Why};
use super::evidence::{Found, Results, TopicAdvice, homes, is_whole, longer, why_not};

/// The command that measures what is needed in each mode.
fn command() -> Command {
    Command::new(Verb::Suite).to("other-mode.json")
}

/// Advises on the number of nodes of a package.
pub(super) fn nodes_per_package(results: &Results<'_>) -> TopicAdvice {
    let mut advice = TopicAdvice::default();
    let mut modes: BTreeMap<u32, Vec<&Report>> = BTreeMap::new();
    for (_, report) in results.reports() {
        if let Some(nodes) = nodes_of_a_package(&report.machine.topology) {
            modes.entry(nodes).or_default().push(report);
        }
    }
    within_package(results, &mut advice);
    let (Some((&fewer, few)), Some((&more, many))) = (modes.first_key_value(), modes.last_key_value()) else { return advice };
    // A virtual machine has the nodes that its configuration says. Other processors than x86 servers have no such switch.
    let has_switch = |report: &&Report| !report.machine.identity.may_be_virtual() && report.machine.identity.arch == "x86_64";
    if fewer < more {
        between_modes(results, (fewer, few), (more, many), &mut advice);
    } else if few.iter().any(has_switch) {
        advice.add_gap(Topic::NodesPerPackage, Why::OneNumberOfNodes { nodes_per_package: fewer }, &[], Some(command()));
    }
    advice
}

/// Nodes with CPUs and memory of each package; `None` if packages differ.
fn nodes_of_a_package(topology: &Topology) -> Option<u32> {
    let nodes: Vec<u32> = topology.nodes.iter().map(|n| n.id).filter(|node| is_whole(topology, *node)).collect();
    let in_package = |package| nodes.iter().filter(|node| package_of(topology, **node) == Some(package)).count();
    let mut counts: Vec<usize> = topology.packages().iter().map(in_package).collect();
    counts.dedup();
    match counts[..] {
        [count] if count > 0 => Some(count as u32),
        _ => None,
    }
}

/// The package of a node's CPUs.
fn package_of(topology: &Topology, node: u32) -> Option<u32> {
    Some(topology.cpu(topology.node(node)?.cpus.first()?)?.package)
}

/// How much farther another node of the same package is than the own one.
fn within_package(results: &Results<'_>, advice: &mut TopicAdvice) {
    let usable: Vec<Found<'_>> = local_or_not(results).into_iter().filter(Found::is_usable).collect();
    let nodes = |f: &Found<'_>| f.m.at.cpu_node.zip(f.m.at.memory_node());
    let same_package = |f: &&Found<'_>| {
        nodes(f).is_some_and(|(cpu, memory)| {
            !f.topology().is_local(cpu, memory)
                && is_whole(f.topology(), memory)
                && package_of(f.topology(), cpu) == package_of(f.topology(), memory)
        })
    };
    let pairs = usable.iter().filter(same_package).filter_map(|other| {
        let rest = |f: &Found<'_>| f.m.at.without(Axis::Memory);
        let is_own = |f: &&Found<'_>| {
            std::ptr::eq(f.report, other.report) && nodes(f).is_some_and(|(cpu, memory)| cpu == memory) && rest(f) == rest(other)
        };
        let own = usable.iter().find(is_own)?;
        Some((*other, *own, other.over(own)?))
    });
    let Some((other, own, latency)) = pairs.max_by(|a, b| a.2.value.total_cmp(&b.2.value)) else { return };
    let Some(nodes_per_package) = nodes_of_a_package(other.topology()) else { return };
    match latency.effect() {
        Some(effect) => {
            let action = Action::SeparateNodesOfPackage { nodes_per_package, latency, effect };
            advice.recommend(Topic::NodesPerPackage, action, &[(Role::Own, own), (Role::Other, other)], Vec::new());
        }
        None => {
            let command = longer(Command::new(Verb::Latency).with(Knob::Matrix)).to("latency.json");
            advice.add_gap(Topic::NodesPerPackage, Why::Open, &[own, other], Some(command));
        }
    }
}

/// Idle latencies by node.
fn local_or_not<'a>(results: &Results<'a>) -> Vec<Found<'a>> {
    results.measurements(&[Experiment::IdleLatency], Metric::Latency).filter(|f| f.m.at.order == Some(ChaseOrder::WindowLocal)).collect()
}

/// Compares the local latency and the highest read bandwidth of results with different numbers of nodes of a package.
fn between_modes(results: &Results<'_>, few: (u32, &[&Report]), many: (u32, &[&Report]), advice: &mut TopicAdvice) {
    let is_of = |reports: &[&Report], f: &Found<'_>| reports.iter().any(|report| std::ptr::eq(*report, f.report));
    let latencies = local_or_not(results);
    let local = |reports: &[&Report]| {
        let is_local = |f: &&Found<'_>| f.m.at.cpu_node.is_some() && f.m.at.cpu_node == f.m.at.memory_node();
        let mut own: Vec<Found<'_>> = latencies.iter().filter(is_local).filter(|f| is_of(reports, f) && f.is_usable()).copied().collect();
        own.sort_by(|a, b| a.value().total_cmp(&b.value()));
        own.get(own.len().saturating_sub(1) / 2).copied()
    };
    let experiments = &[Experiment::Bandwidth, Experiment::BandwidthRamp, Experiment::BandwidthSearch];
    let of_all_nodes = |f: &Found<'_>| {
        let (topology, at) = (f.topology(), &f.m.at);
        let used = homes(topology, at.cpus.as_ref().unwrap_or(&IdSet::new()));
        let all = topology.nodes.iter().filter(|n| is_whole(topology, n.id)).count();
        at.mix == Some(Mix::AllReads) && at.memory == Some(MemoryPlace::Own) && used.len() == all && f.is_usable()
    };
    let reads: Vec<Found<'_>> = results.measurements(experiments, Metric::Bandwidth).filter(of_all_nodes).collect();
    let highest = |reports: &[&Report]| reads.iter().filter(|f| is_of(reports, f)).copied().max_by(|a, b| a.value().total_cmp(&b.value()));
    let latency_pair = local(few.1).zip(local(many.1));
    let bandwidth_pair = highest(few.1).zip(highest(many.1));
    let ratio = |pair: Option<(Found<'_>, Found<'_>)>| pair.and_then(|(few, many)| many.over(&few));
    let (latency, bandwidth) = (ratio(latency_pair), ratio(bandwidth_pair));
    let (latency_effect, bandwidth_effect) = (latency.and_then(Ratio::effect), bandwidth.and_then(Ratio::effect));
    let pairs = [latency_pair, bandwidth_pair].into_iter().flatten();
    let numbers: Vec<(Role, Found<'_>)> = pairs.flat_map(|(few, many)| [(Role::FewerNodes, few), (Role::MoreNodes, many)]).collect();
    if latency_effect.or(bandwidth_effect).is_some() {
        let action = Action::ChooseNodesPerPackage { fewer: few.0, more: many.0, latency, latency_effect, bandwidth, bandwidth_effect };
        advice.recommend(Topic::NodesPerPackage, action, &numbers, Vec::new());
    } else {
        let found: Vec<Found<'_>> = numbers.iter().map(|(_, f)| *f).collect();
        let why = if found.is_empty() { why_not(&[]) } else { Why::Open };
        advice.add_gap(Topic::NodesPerPackage, why, &found, Some(Command::new(Verb::Suite).set(Knob::Budget, "4s").to("mode.json")));
    }
}
