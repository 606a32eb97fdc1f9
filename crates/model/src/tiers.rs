//! Which kind of memory each node has, and what tells so.

use serde::{Deserialize, Serialize};

use crate::topology::{Machine, Node, NodeDevice, NodeDeviceKind, Topology};
use crate::units::IdSet;

/// A kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MemoryKind {
    /// DRAM at a CPU's own memory controllers.
    Dram,
    /// High-bandwidth memory in the CPU's package.
    Hbm,
    /// Memory behind a CXL link.
    Cxl,
    /// Persistent memory that serves as ordinary memory.
    Persistent,
    /// Memory of a GPU that serves as ordinary memory.
    Gpu,
    /// Memory without CPUs, of unknown kind.
    WithoutCpus,
}

/// The kind of a node's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeKind {
    /// The node.
    pub node: u32,
    /// The kind of its memory.
    pub kind: MemoryKind,
    /// Whether the kind is a guess from figures and not stated by a device or by firmware.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guessed: bool,
    /// Why it is only a stand-in for persistent memory, such as an emulated device; absent where nothing says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volatile: Option<String>,
    /// The evidence for the kind, the strongest first.
    pub evidence: Vec<KindEvidence>,
}

/// Evidence for the kind of a node's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "source", rename_all = "kebab-case")]
pub enum KindEvidence {
    /// The memory is that of this device.
    Device(NodeDevice),
    /// The node has CPUs.
    Cpus,
    /// Firmware lists devices of these kinds only (SMBIOS), such as `DDR5`.
    Installed {
        /// The kinds.
        kinds: Vec<String>,
    },
    /// The machine has CXL memory, and nothing says on which node.
    CxlPresent {
        /// The devices, such as `mem0`.
        devices: Vec<String>,
    },
    /// The kernel's tier of memory; smaller numbers are faster.
    MemoryTier {
        /// The node's.
        tier: u32,
        /// That of nodes with CPUs.
        of_cpus: Option<u32>,
    },
    /// What firmware (HMAT) claims of reads by the nearest CPUs.
    Claim {
        /// Latency.
        read_latency_ns: Option<u64>,
        /// Bandwidth in MB/s.
        read_bandwidth_mbs: Option<u64>,
        /// The least bandwidth that it claims of a node with CPUs.
        of_cpus_mbs: Option<u64>,
    },
    /// SLIT distance from the nearest node with CPUs.
    Distance {
        /// That node.
        from: u32,
        /// The distance; 10 is local.
        distance: u32,
    },
}

/// Firmware of Grace Hopper states this distance or more of a GPU's memory (80). Sockets without online CPUs are nearer, also in machines of
/// eight.
const GPU_DISTANCE: u32 = 64;
/// Firmware's claims of HBM are several times those of DRAM; claims of unequally populated nodes differ by less than this.
const HBM_RATIO: u64 = 2;

/// The kind of each node with memory.
pub fn kinds(machine: &Machine) -> Vec<NodeKind> {
    machine.topology.nodes.iter().filter(|node| node.has_memory()).map(|node| kind(machine, node)).collect()
}

/// The kind of a node's memory.
pub fn kind(machine: &Machine, node: &Node) -> NodeKind {
    let topology = &machine.topology;
    let with_cpus = || topology.nodes.iter().filter(|n| !n.cpus.is_empty());
    let of_cpus_mbs = with_cpus().filter_map(bandwidth_claim).min();
    let much_faster = bandwidth_claim(node).zip(of_cpus_mbs).is_some_and(|(own, least)| own >= least.saturating_mul(HBM_RATIO));
    let bare = node.cpus.is_empty();
    let device = |kind| bare && node.devices.iter().any(|d| d.kind == kind);
    let mut evidence: Vec<_> = node.devices.iter().cloned().map(KindEvidence::Device).collect();
    let (kind, guessed) = match () {
        () if device(NodeDeviceKind::Nvdimm) => (MemoryKind::Persistent, false),
        () if device(NodeDeviceKind::Cxl) => (MemoryKind::Cxl, false),
        () if device(NodeDeviceKind::Gpu) => (MemoryKind::Gpu, false),
        () if device(NodeDeviceKind::PciAccelerator) && is_far(topology, node) => (MemoryKind::Gpu, true),
        () if much_faster => (MemoryKind::Hbm, true),
        () if !bare => {
            evidence.push(KindEvidence::Cpus);
            let stated = ddr(machine);
            let certain = stated.is_some() && node.devices.is_empty();
            evidence.extend(stated.map(|kinds| KindEvidence::Installed { kinds }));
            (MemoryKind::Dram, !certain)
        }
        () if node.devices.iter().all(|d| d.kind == NodeDeviceKind::PciAccelerator) && !topology.cxl_memory.is_empty() => {
            let devices = topology.cxl_memory.iter().map(|device| device.name.clone()).collect();
            evidence.push(KindEvidence::CxlPresent { devices });
            (MemoryKind::Cxl, true)
        }
        () => (MemoryKind::WithoutCpus, false),
    };
    evidence.extend(node.memory_tier.map(|tier| {
        let of_cpus = with_cpus().filter_map(|n| n.memory_tier).min();
        KindEvidence::MemoryTier { tier, of_cpus }
    }));
    let claims = || node.hmat.iter();
    let (latency, bandwidth) = (claims().filter_map(|c| c.read_latency_ns).min(), bandwidth_claim(node));
    if latency.or(bandwidth).is_some() {
        evidence.push(KindEvidence::Claim { read_latency_ns: latency, read_bandwidth_mbs: bandwidth, of_cpus_mbs });
    }
    let nearest = with_cpus().filter_map(|n| Some((*n.distances.get(&node.id)?, n.id))).min().filter(|_| bare);
    evidence.extend(nearest.map(|(distance, from)| KindEvidence::Distance { from, distance }));
    let volatile = topology.emulated_persistent(node.id).filter(|_| kind == MemoryKind::Persistent).map(str::to_owned);
    NodeKind { node: node.id, kind, guessed, volatile, evidence }
}

/// Whether its memory is as far from all CPUs as a GPU's.
fn is_far(topology: &Topology, node: &Node) -> bool {
    let distances = topology.nodes.iter().filter(|n| !n.cpus.is_empty()).filter_map(|n| n.distances.get(&node.id));
    distances.min().is_some_and(|distance| *distance >= GPU_DISTANCE)
}

/// The nodes to measure where none are named: all that may be used, but memory of a GPU only where there is nothing else. Traffic there would
/// disturb the GPU's programs.
pub fn default_nodes(machine: &Machine) -> IdSet {
    let without = machine.allowed.nodes.difference(&gpu_nodes(machine));
    if without.is_empty() { machine.allowed.nodes.clone() } else { without }
}

/// The nodes with memory of a GPU.
pub fn gpu_nodes(machine: &Machine) -> IdSet {
    kinds(machine).into_iter().filter(|kind| kind.kind == MemoryKind::Gpu).map(|kind| kind.node).collect()
}

fn bandwidth_claim(node: &Node) -> Option<u64> {
    node.hmat.iter().filter_map(|claim| claim.read_bandwidth_mbs).max()
}

/// The kinds of memory devices that firmware lists, if all of them are DDR.
fn ddr(machine: &Machine) -> Option<Vec<String>> {
    let mut kinds: Vec<String> = machine.identity.installed.devices.iter().map(|d| d.kind.clone()).collect::<Option<_>>()?;
    kinds.sort_unstable();
    kinds.dedup();
    (!kinds.is_empty() && kinds.iter().all(|kind| kind.contains("DDR"))).then_some(kinds)
}

#[cfg(test)]
mod tests;
