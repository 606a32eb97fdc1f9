//! Contradictions between the measured numbers and the kernel's and firmware's view of tiers of memory: tiers, demotion, interleave weights,
//! claims.

use memgauge_model::experiment::{ChaseOrder, Experiment, Metric};
use memgauge_model::interleave::{MAX_TOTAL, Weights};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::result::{Measurement, Report};
use memgauge_model::topology::{Machine, Topology};
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;
use memgauge_model::words;
use memgauge_model::words::{Command, Verb, Way, Ways};

use crate::conclusions::findings::Bounds;

/// Memory is of another tier if its latency or its bandwidth is worse by this factor: sockets whose DIMMs differ are not tiers.
const APART: f64 = 1.25;
/// The other quantity may be better by this share and still counts as the same.
const SAME: f64 = 0.03;
/// Firmware's figures are of the unloaded path and of the channels' rate, so a measured number differs from them; by this factor it does not.
const FAR_OFF: f64 = 1.5;
/// Weights that cost less than this share of the bandwidth are good enough.
const LOST: f64 = 0.10;

const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";
const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";

/// How many times another number this one is; the second number is the least that the intervals allow.
fn over(a: Bounds, b: Bounds) -> (f64, f64) {
    (a.value / b.value, a.low / b.high)
}

/// The bounds of a number that can be divided by.
fn bounds(m: &Measurement) -> Option<Bounds> {
    Bounds::new(m).filter(|bounds| bounds.value.is_finite() && bounds.value > 0.0)
}

/// A node as the CPUs that are nearest to it measured it.
#[derive(Debug, Clone)]
struct Measured {
    node: u32,
    /// The node of these CPUs.
    cpu_node: u32,
    /// The kernel's tier.
    tier: Option<u32>,
    latency_ns: Option<Bounds>,
    /// Reads. `None` if not every core of the node read.
    read_gbs: Option<Bounds>,
}

/// A note for each contradiction, with the remedy; none for a report that does not compare tiers.
pub fn notes(report: &Report) -> Vec<Note> {
    let compares_tiers = report.plan.as_ref().is_some_and(|plan| !plan.tiers.is_empty());
    if compares_tiers { contradictions(report) } else { Vec::new() }
}

fn contradictions(report: &Report) -> Vec<Note> {
    let (nodes, machine) = (measured(report), &report.machine);
    let mut all = shared_tiers(&nodes, &machine.topology);
    all.extend(wrong_order(&nodes));
    all.extend(demotion_off(&nodes, report));
    all.extend(weights(&nodes, report));
    all.extend(nodes.iter().filter_map(|node| claims(node, &machine.topology)));
    all
}

/// Every node that the CPUs nearest to it measured. A node with CPUs is measured by its own.
fn measured(report: &Report) -> Vec<Measured> {
    let topology = &report.machine.topology;
    let at = |m: &Measurement, row: u32, node: u32| m.at.cpu_node == Some(row) && m.at.memory_node() == Some(node);
    let latency = |row, node| {
        let mut found = report.results.iter().filter(|m| m.experiment == Experiment::IdleLatency && m.metric == Metric::Latency);
        found.find(|m| at(m, row, node) && m.at.order == Some(ChaseOrder::WindowLocal)).and_then(bounds)
    };
    let reads = |row, node| {
        let mut found = report.results.iter().filter(|m| m.experiment == Experiment::BandwidthMatrix && m.at.mix == Some(Mix::AllReads));
        found.find(|m| at(m, row, node) && reads_with_all_cores(topology, row, m)).and_then(bounds)
    };
    let rows: IdSet = report.results.iter().filter_map(|m| m.at.cpu_node).collect();
    let of_row = |row, node| {
        let (latency_ns, read_gbs) = (latency(row, node), reads(row, node));
        let tier = topology.node(node).and_then(|n| n.memory_tier);
        latency_ns.or(read_gbs).map(|_| Measured { node, cpu_node: row, tier, latency_ns, read_gbs })
    };
    // Without a latency a row is last.
    let ns = |m: &Measured| m.latency_ns.map_or(f64::INFINITY, |ns| ns.value);
    let nearest = |node: u32, has_cpus: bool| {
        let rows = rows.iter().filter(|row| !has_cpus || *row == node);
        rows.filter_map(|row| of_row(row, node)).min_by(|a, b| ns(a).total_cmp(&ns(b)))
    };
    topology.nodes.iter().filter_map(|n| nearest(n.id, !n.cpus.is_empty())).collect()
}

/// Whether every core of the node took part: fewer may not fill its memory.
fn reads_with_all_cores(topology: &Topology, row: u32, m: &Measurement) -> bool {
    let cores = |cpus: &IdSet| topology.one_per_core(cpus).len();
    topology.node(row).zip(m.at.cpus.as_ref()).is_some_and(|(node, cpus)| cores(cpus) >= cores(&node.cpus))
}

/// In which way a node is slower than another one, in words. `None` unless it is so in one way at least, and better in none: HBM has more
/// latency and more bandwidth than DRAM, and is neither faster nor slower.
fn slower(slow: &Measured, fast: &Measured) -> Option<String> {
    let latency = slow.latency_ns.zip(fast.latency_ns).map(|(slow, fast)| over(slow, fast));
    let bandwidth = fast.read_gbs.zip(slow.read_gbs).map(|(fast, slow)| over(fast, slow));
    let is_apart = |ratio: Option<(f64, f64)>| ratio.is_some_and(|(ratio, least)| ratio >= APART && least > 1.0);
    let is_better = |ratio: Option<(f64, f64)>| ratio.is_some_and(|(ratio, _)| ratio < 1.0 - SAME);
    let ns = latency.map(|(ratio, _)| format!("{ratio:.1} times the latency"));
    let gbs = bandwidth.map(|(ratio, _)| format!("{:.2} times the bandwidth", 1.0 / ratio));
    let parts: Vec<String> = ns.into_iter().chain(gbs).collect();
    ((is_apart(latency) || is_apart(bandwidth)) && !is_better(latency) && !is_better(bandwidth)).then(|| parts.join(" and "))
}

/// Nodes without CPUs that the kernel has in one tier with the node of the nearest CPUs, although they are slower.
fn shared_tiers(nodes: &[Measured], topology: &Topology) -> Vec<Note> {
    let bare = |m: &&Measured| topology.node(m.node).is_some_and(|n| n.cpus.is_empty());
    let note = |far: &Measured| {
        let near = nodes.iter().find(|near| near.node == far.cpu_node && near.tier == far.tier)?;
        let (tier, how) = (far.tier?, slower(far, near)?);
        let (far, near) = (far.node, near.node);
        let message = format!(
            "node {far} has {how} of node {near}, and the kernel has both in memory tier {tier}: cold pages are never demoted to node {far}"
        );
        let advice = "place pages with numactl, or let the kernel know: it makes tiers from firmware's figures (HMAT), and memory that the \
             driver kmem adds as a DAX device gets a tier of its own";
        Some(Note::warning(NoteCode::TierShared, message).advise(advice))
    };
    nodes.iter().filter(bare).filter_map(note).collect()
}

/// Pairs of nodes that the kernel has in the opposite order.
fn wrong_order(nodes: &[Measured]) -> Vec<Note> {
    let pairs = nodes.iter().flat_map(|upper| nodes.iter().map(move |lower| (upper, lower)));
    let note = |(upper, lower): (&Measured, &Measured)| {
        let (first, second) = upper.tier.zip(lower.tier).filter(|(first, second)| first < second)?;
        let (how, upper, lower) = (slower(upper, lower)?, upper.node, lower.node);
        let message = format!(
            "node {upper} has {how} of node {lower}, and the kernel has it in a faster memory tier ({first} before {second}): pages in use are \
             promoted to the slower node {upper}"
        );
        let advice = "check firmware's figures (HMAT): the kernel orders tiers by them. Until they are right, place pages with numactl";
        Some(Note::warning(NoteCode::TierOrder, message).advise(advice))
    };
    pairs.filter_map(note).collect()
}

/// That the kernel has tiers, and moves no cold pages down.
fn demotion_off(nodes: &[Measured], report: &Report) -> Option<Note> {
    let is_lower = |(far, near): &(&Measured, &Measured)| far.tier > near.tier && near.tier.is_some() && slower(far, near).is_some();
    let pairs = nodes.iter().flat_map(|far| nodes.iter().map(move |near| (far, near)));
    let (far, near) = pairs.into_iter().filter(|_| report.environment.demotion == Some(false)).find(is_lower)?;
    let (far, near) = (far.node, near.node);
    let message = format!(
        "the kernel does not demote cold pages: when node {near} is full, pages are swapped out or dropped although the slower node {far} has room"
    );
    let advice = format!(
        "if programs shall use both nodes without placing pages themselves, {}",
        report.machine.allowed.settings.change(DEMOTION, "1")
    );
    Some(Note::info(NoteCode::DemotionOff, message).advise(advice))
}

/// For each node of CPUs, that the kernel's interleave weights lose much of what it and the nodes without CPUs next to it can give together.
fn weights(nodes: &[Measured], report: &Report) -> Vec<Note> {
    let topology = &report.machine.topology;
    let own = nodes.iter().filter(|m| m.node == m.cpu_node);
    let note = |own: &Measured| {
        let bare = |m: &&Measured| topology.node(m.node).is_some_and(|n| n.cpus.is_empty()) && m.cpu_node == own.node;
        let group: Vec<&Measured> = std::iter::once(own).chain(nodes.iter().filter(bare)).collect();
        let gbs: Vec<f64> = group.iter().map(|m| Some(m.read_gbs?.value)).collect::<Option<_>>()?;
        let kernel: Vec<u32> = group.iter().map(|m| topology.node(m.node)?.interleave_weight).collect::<Option<_>>()?;
        let (sum, total) = (gbs.iter().sum::<f64>(), f64::from(kernel.iter().sum::<u32>()));
        // The node that has its pages read last ends the round.
        let with_kernel = gbs.iter().zip(&kernel).map(|(gbs, weight)| gbs * total / f64::from(*weight)).fold(f64::INFINITY, f64::min);
        if group.len() < 2 || with_kernel >= (1.0 - LOST) * sum {
            return None;
        }
        let better = proportional(&group.iter().map(|m| m.node).zip(gbs.iter().copied()).collect::<Vec<_>>())?;
        let listed = |values: &mut dyn Iterator<Item = String>| values.collect::<Vec<_>>().join(":");
        let message = format!(
            "the kernel's interleave weights of nodes {} are {}, and their measured read bandwidths {} GB/s: pages in turn give at most {with_kernel:.0} of {sum:.0} GB/s",
            listed(&mut group.iter().map(|m| m.node.to_string())).replace(':', ", "),
            listed(&mut kernel.iter().map(ToString::to_string)),
            listed(&mut gbs.iter().map(|gbs| format!("{gbs:.0}"))),
        );
        Some(Note::info(NoteCode::WeightsDiffer, message).advise(set_weights(&better, &report.machine)))
    };
    own.filter_map(note).collect()
}

/// The lines that set weights, and the command that finds the best.
fn set_weights(weights: &Weights, machine: &Machine) -> Ways {
    let settings = machine.allowed.settings;
    let lines: Vec<String> =
        weights.iter().map(|(node, weight)| settings.change(&format!("{WEIGHTS}/node{node}"), &weight.to_string())).collect();
    Way::from(lines.join(", ")).then(words!["'", Command::new(Verb::Interleave), "' searches for the best weights"])
}

/// The smallest weights that are almost as these bandwidths are to each other. Each node has one page at least.
fn proportional(gbs: &[(u32, f64)]) -> Option<Weights> {
    let sum: f64 = gbs.iter().map(|(_, gbs)| gbs).sum();
    let of_total = |total: u32| -> Vec<(u32, f64, f64)> {
        gbs.iter().map(|(node, gbs)| (*node, *gbs, (f64::from(total) * gbs / sum).round().max(1.0))).collect()
    };
    let reached = |weights: &[(u32, f64, f64)]| {
        let total: f64 = weights.iter().map(|(.., weight)| weight).sum();
        weights.iter().map(|(_, gbs, weight)| gbs * total / weight).fold(f64::INFINITY, f64::min)
    };
    // The smallest that lose almost nothing.
    let all = || (2..=MAX_TOTAL).map(of_total);
    let best = all().map(|weights| reached(&weights)).fold(0.0, f64::max);
    let smallest = all().find(|weights| reached(weights) >= (1.0 - SAME) * best)?;
    Weights::new(smallest.into_iter().map(|(node, _, weight)| (node, weight as u32)))
}

/// Firmware's figures of a node that are far from the measured ones.
fn claims(measured: &Measured, topology: &Topology) -> Option<Note> {
    let claim = topology.claim(measured.cpu_node, measured.node)?;
    let is_off = |measured: f64, claimed: f64| !(1.0 / FAR_OFF..=FAR_OFF).contains(&(measured / claimed));
    let latency = measured.latency_ns.zip(claim.read_latency_ns).map(|(ns, claimed)| (ns.value, claimed as f64));
    let bandwidth = measured.read_gbs.zip(claim.read_bandwidth_mbs).map(|(gbs, mbs)| (gbs.value, mbs as f64 / 1e3));
    let off = |pair: Option<(f64, f64)>| pair.filter(|(measured, claimed)| is_off(*measured, *claimed));
    let ns = off(latency).map(|(measured, claimed)| format!("{claimed:.0} ns for reads, and {measured:.0} ns are measured"));
    let gbs = off(bandwidth).map(|(measured, claimed)| format!("{claimed:.1} GB/s for reads, and {measured:.1} GB/s are measured"));
    let figures: Vec<String> = ns.into_iter().chain(gbs).collect();
    let (node, row) = (measured.node, measured.cpu_node);
    let (who, advice) = match &claim.cxl_region {
        Some(region) => (
            format!("the kernel computes for {region} (CDAT)"),
            "compare the device's and the switches' figures (CDAT), and tell their vendors: the kernel makes tiers and automatic interleave weights from them",
        ),
        None => (
            "firmware claims (HMAT)".to_owned(),
            "update firmware, or tell its vendor: the kernel makes tiers and automatic interleave weights from these figures",
        ),
    };
    let message = format!("{who}, for node {node} from node {row}: {}", figures.join("; "));
    (!figures.is_empty()).then(|| Note::warning(NoteCode::FirmwareDiffers, message).advise(advice))
}

#[cfg(test)]
mod tests;
