//! The machine as the operating system describes it, and the part of it that this process may use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::PageRequest;
use crate::installed::InstalledMemory;
use crate::persistent::PersistentRegion;
use crate::policy::MemoryPolicy;
use crate::units::{Bytes, IdSet};

/// Everything that is read from a machine before a plan is made, live or from a recorded folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// Its identity.
    pub identity: Identity,
    /// Its CPUs, caches and memory nodes.
    pub topology: Topology,
    /// The part of it that this process may use.
    pub allowed: Allowed,
}

/// The properties that identify a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Identity {
    /// Instruction set, as the kernel names it: `x86_64`, `aarch64`, `riscv64`.
    pub arch: String,
    /// `GenuineIntel`, `AuthenticAMD`, `ARM` …; `null` if the machine does not state it.
    pub vendor: Option<String>,
    /// The CPU's model name.
    pub model_name: Option<String>,
    /// Family, model, stepping and microcode (x86), or implementer, part, variant and revision (Arm).
    pub model: BTreeMap<String, String>,
    /// The operating system; absent if it is Linux.
    #[serde(default, skip_serializing_if = "OperatingSystem::is_linux")]
    pub system: OperatingSystem,
    /// Kernel release; on Windows its version and name.
    pub kernel: Option<String>,
    /// System vendor, product and BIOS version from DMI, as far as they can be read without root.
    pub firmware: BTreeMap<String, String>,
    /// The hypervisor's name; `null` when there is none, or when that is not known.
    pub hypervisor: Option<String>,
    /// Why it is not known whether there is a hypervisor; absent where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor_unknown: Option<String>,
    /// The technology that encrypts all memory, such as `AMD SEV-SNP`; absent where the kernel shows none, which does not exclude one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_encryption: Option<String>,
    /// Its memory devices as firmware lists them.
    #[serde(default, skip_serializing_if = "InstalledMemory::is_silent")]
    pub installed: InstalledMemory,
}

/// The name of a hypervisor that the CPU shows and that nothing names.
pub const UNKNOWN_HYPERVISOR: &str = "unknown hypervisor";
/// The name of a hypervisor that only firmware's table shows, which root alone may read.
pub const HYPERVISOR_OF_FIRMWARE: &str = "unknown hypervisor, as firmware states";
/// Stands for the name of a hypervisor if it is not known whether there is one.
pub const HYPERVISOR_NOT_KNOWN: &str = "not known";

/// The name of a hypervisor as far as every user sees it: that of some is in files that only root may read.
pub fn common_hypervisor(name: &str) -> &str {
    match name {
        // Monitors on KVM. The clocks, which everybody may read, say KVM.
        "Firecracker" | "Cloud Hypervisor" | "QEMU/KVM" => "KVM",
        HYPERVISOR_OF_FIRMWARE => HYPERVISOR_NOT_KNOWN,
        other => other,
    }
}

impl Identity {
    /// Whether the machine is virtual; `None` where that is not known.
    pub const fn is_virtual(&self) -> Option<bool> {
        match (&self.hypervisor, &self.hypervisor_unknown) {
            (Some(_), _) => Some(true),
            (None, Some(_)) => None,
            (None, None) => Some(false),
        }
    }

    /// Whether the machine is virtual, or not known not to be: planned and judged with a guest's care.
    pub const fn may_be_virtual(&self) -> bool {
        !matches!(self.is_virtual(), Some(false))
    }

    /// Maker and design of its cores by number (Arm), from which names are derived: later versions know more names.
    pub fn core_design(&self) -> Option<(&str, &str)> {
        Some((self.model.get("implementer")?.as_str(), self.model.get("part")?.as_str()))
    }

    /// The hypervisor as far as every user sees it; `None` on metal.
    pub fn hypervisor_for_all(&self) -> Option<&str> {
        let unknown = self.hypervisor_unknown.as_ref().map(|_| HYPERVISOR_NOT_KNOWN);
        self.hypervisor.as_deref().map(common_hypervisor).or(unknown)
    }
}

/// An operating system that memgauge runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OperatingSystem {
    /// Linux.
    #[default]
    Linux,
    /// Windows.
    Windows,
}

impl OperatingSystem {
    /// Whether it is Linux.
    pub const fn is_linux(&self) -> bool {
        matches!(self, Self::Linux)
    }
}

/// CPUs, caches and memory nodes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Topology {
    /// Online CPUs, ascending by id.
    pub cpus: Vec<Cpu>,
    /// Present CPUs that are offline.
    pub offline: IdSet,
    /// Data and unified caches, each once, ascending by level and first CPU.
    pub caches: Vec<Cache>,
    /// Online memory nodes, ascending by id. Ids may have gaps. A kernel without NUMA has one, number 0.
    pub nodes: Vec<Node>,
    /// Whether more than one hardware thread per core is in use; `null` if the kernel does not state it.
    pub smt_active: Option<bool>,
    /// CXL devices with volatile memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cxl_memory: Vec<CxlMemory>,
    /// Regions of persistent memory, whatever their namespaces are used as.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persistent: Vec<PersistentRegion>,
}

/// One logical CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpu {
    /// Its number.
    pub id: u32,
    /// Physical package (socket); `-1` in sysfs becomes 0.
    pub package: u32,
    /// Die within the package, when known.
    pub die: Option<u32>,
    /// Cluster (cores sharing an L2 or a mesh stop), when known.
    pub cluster: Option<u32>,
    /// Core number within the package, as the kernel gives it (not unique across packages).
    pub core: u32,
    /// All online hardware threads of its core, itself included.
    pub siblings: IdSet,
    /// The NUMA node that it belongs to; 0 on kernels without NUMA.
    pub node: u32,
    /// Which kind of core it is on a hybrid machine, such as `performance` and `efficiency`; `null` when all are alike.
    pub kind: Option<String>,
    /// Relative capacity (`cpu_capacity`, 1024 for the largest) if the kernel states it.
    pub capacity: Option<u32>,
    /// Its highest frequency in MHz, if the kernel states it.
    pub max_mhz: Option<u32>,
}

/// A data or unified cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cache {
    /// 1, 2, 3 …
    pub level: u8,
    /// Size of this instance.
    pub size: Bytes,
    /// Line size in bytes.
    pub line: Option<u32>,
    /// Associativity in ways.
    pub ways: Option<u32>,
    /// Online CPUs that share it.
    pub cpus: IdSet,
}

/// A memory node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Node {
    /// Its number.
    pub id: u32,
    /// Its online CPUs; empty for a node of memory only (CXL, HBM, persistent memory).
    pub cpus: IdSet,
    /// The size of its memory; 0 for a node of CPUs only, `null` when not stated.
    pub memory: Option<Bytes>,
    /// Free memory when it was read; `null` when not stated.
    pub free: Option<Bytes>,
    /// SLIT distance to each node, by node id.
    pub distances: BTreeMap<u32, u32>,
    /// Firmware's claims about it (HMAT), by access class.
    pub hmat: Vec<HmatAccess>,
    /// Caches in front of its memory (HBM or DRAM cache mode).
    pub memory_side_caches: Vec<MemorySideCache>,
    /// Huge-page pools on this node.
    pub pools: Vec<PagePool>,
    /// The kernel's weight of the node for weighted interleave; absent where the kernel has no such policy (before Linux 6.9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleave_weight: Option<u32>,
    /// The kernel's tier of its memory; smaller numbers are faster. Absent where the kernel has no tiers (before Linux 6.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_tier: Option<u32>,
    /// Devices whose memory it has, as far as the kernel names them; none for memory that was there at boot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<NodeDevice>,
}

/// A device whose memory serves as ordinary memory of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeDevice {
    /// The kernel's name, such as `dax0.0` or `region0`.
    pub name: String,
    /// What it is part of.
    pub kind: NodeDeviceKind,
    /// The region that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The platform's class of service for it (CXL).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos_class: Option<u32>,
}

/// The kind of a device that has a node's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NodeDeviceKind {
    /// Persistent memory (the kernel's nd bus).
    Nvdimm,
    /// A CXL region.
    Cxl,
    /// Memory that firmware sets apart for specific purposes, such as HBM or CXL.
    SpecificPurpose,
    /// A GPU, whose driver made its memory that of the node.
    Gpu,
    /// A GPU or another accelerator that the kernel has on the node (PCI). Nothing says that the memory is its own.
    PciAccelerator,
    /// Something else.
    Other,
}

/// A CXL device with volatile memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CxlMemory {
    /// The kernel's name, such as `mem0`.
    pub name: String,
    /// The node whose CPUs it is attached to. Its memory is another node's.
    pub cpu_node: Option<u32>,
    /// Its volatile capacity.
    pub bytes: Bytes,
    /// Its class of service.
    pub qos_class: Option<u32>,
}

/// One access class of HMAT: firmware's claim for the best initiators of a node. Or what the kernel computes for a CXL region of that node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HmatAccess {
    /// 0: any initiator; 1: CPUs only.
    pub class: u8,
    /// The nodes whose accesses these figures describe.
    pub initiators: IdSet,
    /// Read latency.
    pub read_latency_ns: Option<u64>,
    /// Write latency.
    pub write_latency_ns: Option<u64>,
    /// Read bandwidth in MB/s, as sysfs states it.
    pub read_bandwidth_mbs: Option<u64>,
    /// Write bandwidth in MB/s.
    pub write_bandwidth_mbs: Option<u64>,
    /// The CXL region whose figures these are: the kernel computes them from what its devices and switches state (CDAT) and from HMAT. Absent
    /// where firmware states them of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cxl_region: Option<String>,
}

/// A cache in front of a node's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemorySideCache {
    /// Its level; 1 is nearest to memory.
    pub level: u8,
    /// Its size.
    pub size: Bytes,
    /// Line size in bytes.
    pub line: Option<u32>,
}

/// A pool of huge pages on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagePool {
    /// Page size.
    pub page: Bytes,
    /// Pages in the pool.
    pub total: u64,
    /// Pages free.
    pub free: u64,
}

/// The resources that this process may use.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Allowed {
    /// CPUs: online, in the cpuset, and in the affinity mask or isolated.
    pub cpus: IdSet,
    /// Those of `cpus` that the kernel isolates from its scheduler (`isolcpus=`) and that the affinity mask leaves out for that reason only.
    /// They are measured where they are named, or where their node has no others.
    #[serde(default, skip_serializing_if = "IdSet::is_empty")]
    pub isolated: IdSet,
    /// Memory nodes: with memory and in `Mems_allowed`.
    pub nodes: IdSet,
    /// The most memory that this process should use in all. It is the least of the available memory, what its control groups allow and what
    /// its resource limits allow, less a margin that stays free; `null` when nothing states any of these.
    pub memory: Option<Bytes>,
    /// The limit that was the least, in words; why none is known.
    pub memory_limited_by: String,
    /// The most memory to use on each allowed node, less a margin. Nodes without a known limit are left out.
    pub node_memory: BTreeMap<u32, Bytes>,
    /// The reason for the limit on each of these nodes, in words: how much memory is free, and how much of it must stay free.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_limited_by: BTreeMap<u32, String>,
    /// CPU time quota in CPUs (cgroup `cpu.max`), when there is one.
    pub cpu_quota: Option<f64>,
    /// From where the kernel's settings can be changed; absent if from here, by root.
    #[serde(default, skip_serializing_if = "SettingsFrom::is_here")]
    pub settings: SettingsFrom,
    /// The memory policy that the process was started with (`numactl`, `set_mempolicy`): it decides where memory goes if nothing names a
    /// node; `null` if it is not known.
    #[serde(default)]
    pub memory_policy: Option<MemoryPolicy>,
    /// Why the memory policy is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_policy_unknown: Option<String>,
}

/// From where the kernel's settings (files of `/sys` and `/proc/sys`) can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SettingsFrom {
    /// By root, where this process runs.
    #[default]
    Here,
    /// Outside of the container that this process runs in.
    OutsideContainer,
    /// Nowhere that this process sees: `/sys` is read-only.
    ReadOnly,
}

impl SettingsFrom {
    /// Whether root can change them here.
    pub const fn is_here(&self) -> bool {
        matches!(self, Self::Here)
    }

    /// How to write a value to a file of these settings, which must exist, as advice says it.
    pub fn change(self, file: &str, value: &str) -> String {
        match self {
            Self::Here => format!("as root: echo {value} > {file}"),
            Self::OutsideContainer => format!("outside of this container, as root: set {file} to {value}"),
            Self::ReadOnly => format!("as root, where it is not read-only: set {file} to {value}"),
        }
    }
}

/// Bytes that may be taken if nothing states a limit: more than any machine has, and small enough to be added up.
const NOT_LIMITED: u64 = 1 << 60;

impl Allowed {
    /// The inherited policy, where it is known and does more than leave memory on the node of the CPU that touches it.
    pub fn inherited_policy(&self) -> Option<&MemoryPolicy> {
        self.memory_policy.as_ref().filter(|policy| !policy.is_local())
    }

    /// The most memory that may be used in all, in bytes; more than any machine has where that is not known.
    pub fn room(&self) -> u64 {
        self.memory.map_or(NOT_LIMITED, |memory| memory.0)
    }

    /// The limit on the memory that may be taken on a node, in words.
    pub fn limit_of_node(&self, node: u32) -> String {
        let words = self.node_limited_by.get(&node).map_or_else(String::new, |words| format!(": {words}"));
        format!("free memory of node {node}{words}")
    }
}

impl Node {
    /// Whether it has memory, as far as is known: one whose size is not stated has some.
    pub fn has_memory(&self) -> bool {
        self.memory != Some(Bytes(0))
    }

    /// The size of its memory in bytes, for sums and comparisons among nodes; 0 where it is not stated.
    pub fn stated_bytes(&self) -> u64 {
        self.memory.map_or(0, |memory| memory.0)
    }

    /// Bytes in its pools of huge pages of all sizes. They are part of its memory, and no process gets them unless it asks the pool.
    pub fn pooled(&self) -> u64 {
        self.pools.iter().fold(0u64, |sum, pool| sum.saturating_add(pool.total.saturating_mul(pool.page.0)))
    }
}

impl PagePool {
    /// How many pages the pool must have in all so that this many are free: those in use stay.
    pub const fn total_for(&self, needed: u64) -> u64 {
        self.total.saturating_add(needed.saturating_sub(self.free))
    }
}

impl Machine {
    /// How to set the number of pages in the pool of a node, or in the pool of the machine, to `total`, in the words of advice. `None` if the
    /// kernel shows no such pool.
    pub fn pool_change(&self, node: Option<u32>, page: Bytes, total: u64) -> Option<String> {
        let nodes = self.topology.nodes.iter().filter(|found| node.is_none_or(|node| node == found.id));
        nodes.flat_map(|node| &node.pools).find(|pool| pool.page == page)?;
        // The pools of the only node are those of the machine, which kernels without NUMA have as well.
        let folder = match node.filter(|_| self.topology.nodes.len() > 1) {
            None => "/sys/kernel/mm/hugepages".to_owned(),
            Some(node) => format!("/sys/devices/system/node/node{node}/hugepages"),
        };
        let file = format!("{folder}/hugepages-{}kB/nr_hugepages", page.0 >> 10);
        Some(self.allowed.settings.change(&file, &total.to_string()))
    }

    /// The size of the pages that these come from a pool of, where they do. Windows takes large pages from free memory.
    pub fn pool_page(&self, pages: PageRequest) -> Option<Bytes> {
        pages.pool_page().filter(|_| self.identity.system.is_linux())
    }

    /// The CPUs to use where none are named: all that may be used, but isolated ones only on a node that has no others.
    pub fn default_cpus(&self) -> IdSet {
        let Allowed { cpus, isolated, .. } = &self.allowed;
        let node = |cpu: u32| self.topology.cpu(cpu).map_or(0, |c| c.node);
        let covered: IdSet = cpus.difference(isolated).iter().map(node).collect();
        cpus.iter().filter(|&cpu| !isolated.contains(cpu) || !covered.contains(node(cpu))).collect()
    }
}

impl Topology {
    /// Why the memory of a node, though it is called persistent, is not: it is an emulated device. `None` where nothing says so.
    pub fn emulated_persistent(&self, node: u32) -> Option<&str> {
        let of_node = |region: &&PersistentRegion| region.namespaces.iter().any(|namespace| namespace.memory_node == Some(node));
        self.persistent.iter().find(of_node)?.emulated.as_deref()
    }

    /// The CPU with this number, if it is online.
    pub fn cpu(&self, id: u32) -> Option<&Cpu> {
        self.cpus.binary_search_by_key(&id, |c| c.id).ok().map(|i| &self.cpus[i])
    }
    /// The node with this number.
    pub fn node(&self, id: u32) -> Option<&Node> {
        self.nodes.iter().find(|n| n.id == id)
    }
    /// The nodes whose memory is local to this CPU: those that list it. There are several if nodes share CPUs, as emulated ones do
    /// (`numa=fake`). If none lists it, this is the node that the CPU belongs to.
    pub fn local_nodes(&self, cpu: u32) -> IdSet {
        let listed: IdSet = self.nodes.iter().filter(|n| n.cpus.contains(cpu)).map(|n| n.id).collect();
        if listed.is_empty() { self.cpu(cpu).map(|c| c.node).into_iter().collect() } else { listed }
    }
    /// Whether a node's memory is local to the CPUs of a node: it is the same one, or they share CPUs.
    pub fn is_local(&self, cpu_node: u32, memory_node: u32) -> bool {
        let shared = || Some(!self.node(cpu_node)?.cpus.intersection(&self.node(memory_node)?.cpus).is_empty());
        cpu_node == memory_node || shared() == Some(true)
    }
    /// Nodes with CPUs, in sets: nodes that share CPUs are in one set, all others alone.
    fn overlapping(&self) -> Vec<IdSet> {
        let mut sets: Vec<(IdSet, IdSet)> = Vec::new();
        for node in self.nodes.iter().filter(|n| !n.cpus.is_empty()) {
            let (mut nodes, mut cpus) = (IdSet::one(node.id), node.cpus.clone());
            sets.retain(|(others, shared)| {
                let apart = shared.intersection(&node.cpus).is_empty();
                if !apart {
                    (nodes, cpus) = (nodes.union(others), cpus.union(shared));
                }
                apart
            });
            sets.push((nodes, cpus));
        }
        let mut sets: Vec<IdSet> = sets.into_iter().map(|(nodes, _)| nodes).collect();
        sets.sort_by_key(IdSet::first);
        sets
    }
    /// Sets of nodes that share CPUs.
    pub fn shared_nodes(&self) -> Vec<IdSet> {
        self.overlapping().into_iter().filter(|nodes| nodes.len() > 1).collect()
    }
    /// The nodes with CPUs and memory, in sets that have memory channels of their own as far as the machine shows. Nodes that share CPUs are
    /// parts of one memory. So are the nodes of a package if each has the CPUs of one last-level cache: firmware then makes nodes of caches,
    /// and each of them uses all channels of the package.
    pub fn channel_groups(&self) -> Vec<IdSet> {
        let with_memory: IdSet = self.nodes.iter().filter(|n| n.has_memory()).map(|n| n.id).collect();
        let sets = self.overlapping().into_iter().map(|nodes| nodes.intersection(&with_memory)).filter(|nodes| !nodes.is_empty());
        let cpus = |nodes: &IdSet| nodes.iter().filter_map(|id| self.node(id)).fold(IdSet::new(), |all, n| all.union(&n.cpus));
        let mut packages: BTreeMap<Option<u32>, Vec<IdSet>> = BTreeMap::new();
        for nodes in sets {
            let package = cpus(&nodes).first().and_then(|cpu| self.cpu(cpu)).map(|c| c.package);
            packages.entry(package).or_default().push(nodes);
        }
        let is_cache = |nodes: &IdSet| {
            let own = cpus(nodes);
            let last = own.first().and_then(|cpu| self.last_level_cache(cpu));
            last.is_some_and(|cache| cache.level > 2 && cache.cpus == own)
        };
        let joined = packages.into_values().flat_map(|sets| match sets.as_slice() {
            [_, _, ..] if sets.iter().all(is_cache) => vec![sets.iter().fold(IdSet::new(), |all, nodes| all.union(nodes))],
            _ => sets,
        });
        let mut groups: Vec<IdSet> = joined.collect();
        groups.sort_by_key(IdSet::first);
        groups
    }
    /// SLIT distance from one node to another; the largest number if the machine does not state it.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        self.node(from).and_then(|n| n.distances.get(&to)).copied().unwrap_or(u32::MAX)
    }
    /// Online CPUs.
    pub fn online(&self) -> IdSet {
        self.cpus.iter().map(|c| c.id).collect()
    }
    /// What firmware claims about reads from CPUs of one node to memory of another. The kernel shows it for the best initiators only.
    pub fn claim(&self, cpu_node: u32, memory_node: u32) -> Option<&HmatAccess> {
        self.node(memory_node)?.hmat.iter().find(|access| access.initiators.contains(cpu_node))
    }
    /// Packages, ascending.
    pub fn packages(&self) -> IdSet {
        self.cpus.iter().map(|c| c.package).collect()
    }
    /// The cache line, which is what memory moves: the largest where caches differ, 64 B where the machine does not say.
    pub fn line(&self) -> Bytes {
        Bytes(self.caches.iter().filter_map(|c| c.line).max().map_or(64, u64::from))
    }
    /// Caches of this CPU, nearest first.
    pub fn cpu_caches(&self, cpu: u32) -> impl Iterator<Item = &Cache> {
        self.caches.iter().filter(move |c| c.cpus.contains(cpu))
    }
    /// The last-level cache of this CPU.
    pub fn last_level_cache(&self, cpu: u32) -> Option<&Cache> {
        // Caches are ascending by level, and a thousand CPUs have a thousand caches below the last.
        self.caches.iter().rev().find(|c| c.cpus.contains(cpu))
    }
    /// The first CPU behind the last-level cache of this CPU; the CPU itself if it has none.
    pub fn cache_domain(&self, cpu: u32) -> u32 {
        self.last_level_cache(cpu).and_then(|c| c.cpus.first()).unwrap_or(cpu)
    }
    /// `cpus` reduced to the first hardware thread of each core.
    pub fn one_per_core(&self, cpus: &IdSet) -> IdSet {
        cpus.iter()
            .filter(|&id| self.cpu(id).is_none_or(|c| c.siblings.intersection(cpus).first().is_none_or(|first| first == id)))
            .collect()
    }
    /// `cpus` in the order that load should be added in. One thread of each core comes before second threads. Within these the order is
    /// round-robin over packages, then over last-level caches, because CPUs that share a cache saturate it before they saturate memory.
    pub fn spread(&self, cpus: &IdSet) -> Vec<u32> {
        let firsts = self.one_per_core(cpus);
        let mut order = self.round_robin(&firsts);
        order.extend(self.round_robin(&cpus.difference(&firsts)));
        order
    }

    fn round_robin(&self, cpus: &IdSet) -> Vec<u32> {
        let mut packages: BTreeMap<u32, BTreeMap<u32, Vec<u32>>> = BTreeMap::new();
        for id in cpus.iter() {
            let package = self.cpu(id).map_or(0, |c| c.package);
            packages.entry(package).or_default().entry(self.cache_domain(id)).or_default().push(id);
        }
        interleave(packages.into_values().map(|domains| interleave(domains.into_values().collect())).collect())
    }
}

/// Takes the first of each list, then the second of each, and so on.
fn interleave(lists: Vec<Vec<u32>>) -> Vec<u32> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|i| lists.iter().filter_map(move |list| list.get(i).copied())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_for_where_they_work() {
        let change = |from: SettingsFrom| from.change("/proc/sys/kernel/numa_balancing", "0");
        assert_eq!(change(SettingsFrom::Here), "as root: echo 0 > /proc/sys/kernel/numa_balancing");
        for from in [SettingsFrom::OutsideContainer, SettingsFrom::ReadOnly] {
            let words = change(from);
            assert!(!words.contains("echo") && words.ends_with("set /proc/sys/kernel/numa_balancing to 0"), "{words}");
        }
    }
}
