//! A host's topology with measured memory attributes as XML of hwloc 2 (<https://www.open-mpi.org/projects/hwloc/>), for `lstopo`, `hwloc-info`
//! and programs that ask hwloc for the best memory (`HWLOC_XMLFILE`). Latency is in nanoseconds and bandwidth in MiB/s, as hwloc has them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use memgauge_model::experiment::{ChaseOrder, Experiment};
use memgauge_model::printable::is_obeyed;
use memgauge_model::result::{Measurement, Report};
use memgauge_model::topology::{Node, Topology};
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;

use super::run::ExportError;
use crate::row::HostRun;

/// Flags of hwloc's attributes: the higher the better, the lower the better; both are by initiator.
const BANDWIDTH_FLAGS: u32 = 1 | 4;
const LATENCY_FLAGS: u32 = 2 | 4;
/// hwloc's MiB/s in GB/s.
const MIB_PER_GB: f64 = 1e9 / (1 << 20) as f64;

/// The topology and the memory attributes of a result.
///
/// # Errors
/// When the result has neither latency nor bandwidth by node.
pub fn hwloc(report: &Report) -> Result<Vec<u8>, ExportError> {
    let topology = &report.machine.topology;
    let (latency, bandwidth) = (latencies(report), bandwidths(report));
    if latency.is_empty() && bandwidth.is_empty() {
        return Err(ExportError::NoMatrix(HostRun::from_report(report).host));
    }
    let mut xml = Xml {
        text: String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"),
        id: 0,
        nodes: BTreeMap::new(),
    };
    xml.text += "<topology version=\"2.0\">\n";
    xml.machine(report);
    for (name, flags, values) in [("Bandwidth", BANDWIDTH_FLAGS, bandwidth), ("Latency", LATENCY_FLAGS, latency)] {
        let _ = writeln!(xml.text, "  <memattr name=\"{name}\" flags=\"{flags}\">");
        for ((cpu_node, memory_node), value) in values {
            let (Some(id), Some(initiator)) = (xml.nodes.get(&memory_node), topology.node(cpu_node)) else { continue };
            let _ = writeln!(
                xml.text,
                "    <memattr_value target_obj_gp_index=\"{id}\" target_obj_type=\"NUMANode\" value=\"{value:.0}\" initiator_cpuset=\"{}\"/>",
                bitmap(&initiator.cpus)
            );
        }
        xml.text += "  </memattr>\n";
    }
    xml.text += "</topology>\n";
    Ok(xml.text.into_bytes())
}

type Matrix = BTreeMap<(u32, u32), f64>;

/// Values that may be trusted, by nodes of the CPUs and of the memory; the first of each.
fn matrix<'a>(results: impl Iterator<Item = &'a Measurement>) -> Matrix {
    let mut matrix = Matrix::new();
    for m in results.filter(|m| m.is_reliable()) {
        if let (Some(cpu_node), Some(memory_node), Some(value)) = (m.at.cpu_node, m.at.memory_node(), m.estimate.value) {
            matrix.entry((cpu_node, memory_node)).or_insert(value);
        }
    }
    matrix
}

fn latencies(report: &Report) -> Matrix {
    let in_order =
        |order: ChaseOrder| report.results.iter().filter(move |m| m.experiment == Experiment::IdleLatency && m.at.order == Some(order));
    let local = matrix(in_order(ChaseOrder::WindowLocal));
    if local.is_empty() { matrix(in_order(ChaseOrder::FullRandom)) } else { local }
}

/// Of loads alone.
fn bandwidths(report: &Report) -> Matrix {
    let reads = |m: &&Measurement| m.experiment == Experiment::BandwidthMatrix && m.at.mix == Some(Mix::AllReads);
    matrix(report.results.iter().filter(reads)).into_iter().map(|(at, gbs)| (at, gbs * MIB_PER_GB)).collect()
}

/// The text so far.
struct Xml {
    text: String,
    /// hwloc's number of the last object.
    id: u64,
    /// hwloc's numbers of memory nodes.
    nodes: BTreeMap<u32, u64>,
}

impl Xml {
    /// Opens an object, and returns its number.
    fn open(&mut self, depth: usize, kind: &str, index: Option<u32>, cpus: &IdSet, nodes: &IdSet, more: &str) -> u64 {
        self.id += 1;
        let index = index.map(|index| format!(" os_index=\"{index}\"")).unwrap_or_default();
        let (cpus, nodes, id) = (bitmap(cpus), bitmap(nodes), self.id);
        let _ = writeln!(
            self.text,
            "{:1$}<object type=\"{kind}\"{index} cpuset=\"{cpus}\" complete_cpuset=\"{cpus}\" nodeset=\"{nodes}\" complete_nodeset=\"{nodes}\" \
             gp_index=\"{id}\"{more}>",
            "",
            2 * depth
        );
        id
    }

    fn close(&mut self, depth: usize) {
        let _ = writeln!(self.text, "{:1$}</object>", "", 2 * depth);
    }

    /// The machine, its packages, cores and CPUs. A node is where its CPUs are: at a package, at a group of its own, or at the machine.
    fn machine(&mut self, report: &Report) {
        let topology = &report.machine.topology;
        let (cpus, nodes) = (topology.online(), topology.nodes.iter().map(|n| n.id).collect::<IdSet>());
        let allowed = format!(" allowed_cpuset=\"{}\" allowed_nodeset=\"{}\"", bitmap(&cpus), bitmap(&nodes));
        self.open(1, "Machine", Some(0), &cpus, &nodes, &allowed);
        let run = HostRun::from_report(report);
        for (name, value) in [("HostName", Some(&run.host)), ("OSRelease", run.fingerprint.kernel.as_ref())] {
            if let Some(value) = value {
                let _ = writeln!(self.text, "    <info name=\"{name}\" value=\"{}\"/>", escaped(value));
            }
        }
        let package_cpus = |package: u32| topology.cpus.iter().filter(|c| c.package == package).map(|c| c.id).collect::<IdSet>();
        let packages: Vec<(u32, IdSet)> = topology.packages().iter().map(|package| (package, package_cpus(package))).collect();
        let within = |node: &Node, cpus: &IdSet| !node.cpus.is_empty() && node.cpus.difference(cpus).is_empty();
        for node in topology.nodes.iter().filter(|node| !packages.iter().any(|(_, cpus)| within(node, cpus))) {
            self.node(2, node, &cpus);
        }
        for (package, cpus) in &packages {
            let own: Vec<&Node> = topology.nodes.iter().filter(|node| within(node, cpus)).collect();
            let local: IdSet = own.iter().map(|n| n.id).collect();
            self.open(2, "Package", Some(*package), cpus, &local, "");
            let model = report.machine.identity.model_name.as_deref().unwrap_or("unknown");
            let _ = writeln!(self.text, "      <info name=\"CPUModel\" value=\"{}\"/>", escaped(model));
            let whole: Vec<&Node> = own.iter().copied().filter(|node| node.cpus == *cpus).collect();
            whole.iter().for_each(|node| self.node(3, node, cpus));
            let mut rest = cpus.clone();
            for node in own.iter().filter(|node| node.cpus != *cpus) {
                self.open(3, "Group", None, &node.cpus, &IdSet::one(node.id), " kind=\"0\" subkind=\"0\"");
                self.node(4, node, &node.cpus);
                self.cores(4, topology, &node.cpus, &IdSet::one(node.id));
                self.close(3);
                rest = rest.difference(&node.cpus);
            }
            self.cores(3, topology, &rest, &local);
            self.close(2);
        }
        self.close(1);
    }

    fn node(&mut self, depth: usize, node: &Node, cpus: &IdSet) {
        let memory = node.memory.map_or_else(String::new, |memory| format!(" local_memory=\"{}\"", memory.0));
        let id = self.open(depth, "NUMANode", Some(node.id), cpus, &IdSet::one(node.id), &memory);
        self.nodes.insert(node.id, id);
        self.close(depth);
    }

    /// The cores that these CPUs belong to, each with its CPUs.
    fn cores(&mut self, depth: usize, topology: &Topology, cpus: &IdSet, nodes: &IdSet) {
        let mut left = cpus.clone();
        while let Some(first) = left.first() {
            let Some(cpu) = topology.cpu(first) else { return };
            let siblings: IdSet = cpu.siblings.iter().chain([first]).filter(|sibling| left.contains(*sibling)).collect();
            self.open(depth, "Core", Some(cpu.core), &siblings, nodes, "");
            for sibling in siblings.iter() {
                self.open(depth + 1, "PU", Some(sibling), &IdSet::one(sibling), nodes, "");
                self.close(depth + 1);
            }
            self.close(depth);
            left = left.difference(&siblings);
        }
    }
}

/// A set as hwloc writes it: words of 32 bits in hexadecimal, the highest first.
fn bitmap(ids: &IdSet) -> String {
    let mut words: Vec<u32> = Vec::new();
    for id in ids.iter() {
        let word = (id / 32) as usize;
        words.resize(words.len().max(word + 1), 0);
        words[word] |= 1 << (id % 32);
    }
    if words.is_empty() {
        return "0x0".into();
    }
    words.iter().rev().map(|word| format!("0x{word:08x}")).collect::<Vec<_>>().join(",")
}

/// A text as the value of an attribute.
fn escaped(text: &str) -> String {
    text.chars().filter(|c| !is_obeyed(*c)).fold(String::new(), |mut all, c| {
        match c {
            '&' => all += "&amp;",
            '<' => all += "&lt;",
            '>' => all += "&gt;",
            '"' => all += "&quot;",
            c => all.push(c),
        }
        all
    })
}
