//! Causes in parts of the machine: nodes, links, paths of caches.

use memgauge_model::result::{CauseCode, FindingCode};
use memgauge_model::units::IdSet;
use memgauge_model::words::{Command, Knob, Verb};
use memgauge_model::{wording, words};

use super::case::{Case, EXCLUDED, FITS, SHOWN, TYPICAL, UNLIKELY};
use super::symptoms::{Symptoms, WORSE, percent};
use memgauge_model::result::DifferentField;

/// A loss this large has a cause in the machine even where no other node shows it.
const LARGE: f64 = 0.10;

/// Another number of nodes per package (NPS, SNC) than before.
pub(super) fn nodes_per_package(s: &Symptoms<'_>) -> Option<Case> {
    let (before, after) = s.property(DifferentField::Nodes).filter(|(before, after)| before != after)?;
    let what = format!("the machine has {after} nodes instead of {before}");
    let check = "look at the firmware's setting: nodes per socket (NPS, AMD), sub-NUMA clustering (SNC, Intel), node interleaving";
    let mut case = Case::new(CauseCode::NodesPerPackage, what, check);
    case.add(SHOWN, format!("{before} nodes {}, {after} now", s.when));
    let same_cpus = s.property(DifferentField::Cpus).is_some_and(|(before, after)| before == after);
    case.add_if(same_cpus, TYPICAL, "the number of CPUs is the same");
    case.add_if(!same_cpus, UNLIKELY, "the number of CPUs differs, too");
    Some(case)
}

/// The memory of one node, or of a channel of it, is slow.
pub(super) fn memory_of_one_node(s: &Symptoms<'_>) -> Option<Case> {
    let mut worse = s.worse_nodes();
    // Memory without CPUs is another kind of memory: it is compared with itself.
    let far: Vec<u32> = s.far.iter().filter(|(_, shift)| shift.worst() >= WORSE).map(|(node, _)| *node).collect();
    let is_far = worse.is_empty();
    if is_far {
        worse = far;
    }
    if worse.is_empty() {
        return None;
    }
    let nodes: IdSet = worse.iter().copied().collect();
    let log = s.report.machine.identity.system.words().hardware_log;
    let what = format!("the memory of {} is slow: a module or channel that fails, retries or is throttled", wording::nodes(&nodes));
    let check = words!["look at {log} for memory errors, and measure region by region with "]
        .followed_by(words![Command::new(Verb::Scan).set(Knob::Node, nodes.to_string())]);
    let mut case = Case::new(CauseCode::MemoryOfOneNode, what, check);
    let (bandwidth, latency) = (s.bandwidth_by().unwrap_or(0.0), s.latency_by().unwrap_or(0.0));
    if is_far {
        case.add(TYPICAL, format!("{} worse, and the memory of nodes with CPUs as it should be", wording::nodes(&nodes)));
    } else if s.is_of_some_nodes() {
        let others = s.nodes.len() - worse.len();
        case.add(TYPICAL, format!("{} worse, and {others} of {} nodes as they should be", wording::nodes(&nodes), s.nodes.len()));
    } else if s.nodes.len() > 1 {
        case.add(UNLIKELY, "all nodes are worse alike");
    } else if bandwidth.max(latency) >= LARGE {
        case.add(FITS, format!("a loss of {} is more than settings of the kernel cost", percent(bandwidth.max(latency))));
    }
    case.add_if(bandwidth >= WORSE && latency >= WORSE, FITS, "bandwidth and latency are worse");
    case.add_if(s.found(FindingCode::MemoryStalled), FITS, "memory did not answer for some of the time");
    case.add_if(s.found(FindingCode::SlowerCores), UNLIKELY, "all cores are slower");
    let uneven = s.found(FindingCode::UnequalPopulation) || s.found(FindingCode::NodeMemoryDiffers);
    case.add_if(uneven, UNLIKELY, "the nodes do not have the same memory");
    Some(case)
}

/// The link between packages.
pub(super) fn link(s: &Symptoms<'_>) -> Option<Case> {
    let worst = s.links.iter().copied().max_by(f64::total_cmp).filter(|by| *by >= WORSE)?;
    let what = "the link between packages is slow: fewer lanes, a lower speed, or retries";
    let log = s.report.machine.identity.system.words().hardware_log;
    let check = words!["look at the firmware's setting of link speed and width, and at {log} for link errors; ", Verb::Bandwidth, " "]
        .followed_by(words![Knob::Matrix, " measures all pairs"]);
    let mut case = Case::new(CauseCode::LinkBetweenPackages, what, check);
    if s.worse_nodes().is_empty() {
        case.add(SHOWN, format!("memory of other packages is up to {} slower, and each node's own is as it should be", percent(worst)));
    } else {
        case.add(FITS, format!("memory of other packages is up to {} slower", percent(worst)));
        case.add(UNLIKELY, "the nodes' own memory is slower, too");
    }
    Some(case)
}

/// The path of one last-level cache to memory.
pub(super) fn cache_path(s: &Symptoms<'_>) -> Option<Case> {
    let worse: Vec<u32> = s.caches.iter().filter(|(_, by)| **by >= WORSE).map(|(cpu, _)| *cpu).collect();
    let first = *worse.first()?;
    let by = s.caches[&first];
    let what = format!("the last-level cache of CPU {first} has a slow path to memory");
    let check =
        words!["measure one cache at a time: "].followed_by(words![Command::new(Verb::Bandwidth).set(Knob::Cpus, first.to_string())]);
    let mut case = Case::new(CauseCode::PathOfOneCache, what, check);
    if 2 * worse.len() > s.caches.len() {
        case.add(EXCLUDED, "most caches are slower alike");
    } else {
        case.add(TYPICAL, format!("{} of {} last-level caches are slower, by {}", worse.len(), s.caches.len(), percent(by)));
    }
    case.add_if(s.found(FindingCode::PrefetchersOff), UNLIKELY, "prefetchers are off, which makes the paths of their caches slow");
    let node = s.report.machine.topology.cpu(first).map(|cpu| cpu.node);
    let of_node = node.and_then(|node| s.nodes.get(&node)?.bandwidth);
    case.add_if(of_node.is_some_and(|of_node| of_node < by / 2.0), TYPICAL, "the whole node has its bandwidth, or nearly");
    case.add_if(of_node.is_some_and(|of_node| of_node >= by / 2.0 && of_node >= WORSE), UNLIKELY, "its whole node is slower, too");
    Some(case)
}
