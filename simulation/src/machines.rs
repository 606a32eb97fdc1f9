//! Machines: regular ones of any shape, random ones, and faults.

use memgauge_model::policy::MemoryPolicy;
use memgauge_model::topology::{Allowed, Cache, Cpu, Identity, Machine, Node, Topology};
use memgauge_model::units::{Bytes, IdSet};

use crate::random::Random;

/// The shape of a regular machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Packages.
    pub packages: u32,
    /// Nodes of each package.
    pub nodes: u32,
    /// Last-level caches of each node.
    pub domains: u32,
    /// Cores behind each last-level cache.
    pub cores: u32,
    /// Hardware threads of each core.
    pub threads: u32,
    /// Bytes of each last-level cache.
    pub cache: Bytes,
}

impl Shape {
    /// One of the shapes that servers have: 1 or 2 packages of 1, 2 or 4 nodes, 1 to 8 last-level caches of 4 or 8 cores.
    pub fn random(random: &mut Random) -> Self {
        let nodes = random.pick(&[1, 1, 2, 4]);
        // All caches of a package are divided among its nodes.
        let domains = (random.pick(&[1, 2, 4, 8]) / nodes).max(1);
        Self {
            packages: random.pick(&[1, 2]),
            nodes,
            domains,
            cores: if domains == 1 { random.pick(&[8, 16]) } else { random.pick(&[4, 8]) },
            threads: random.pick(&[1, 2]),
            cache: Bytes::mib(u64::from(random.pick(&[16, 32]))),
        }
    }

    /// Cores in all.
    pub const fn all_cores(&self) -> u32 {
        self.packages * self.nodes * self.domains * self.cores
    }

    /// The machine of this shape.
    pub fn machine(&self) -> Machine {
        let (all, in_node, in_package) = (self.all_cores(), self.domains * self.cores, self.nodes * self.domains * self.cores);
        let siblings = |core: u32| (0..self.threads).map(|thread| core + thread * all).collect::<IdSet>();
        let with_siblings =
            |cores: std::ops::Range<u32>| cores.flat_map(|core| siblings(core).iter().collect::<Vec<_>>()).collect::<IdSet>();
        let cpu = |id: u32| {
            let core = id % all;
            Cpu {
                id,
                package: core / in_package,
                die: None,
                cluster: None,
                core: core % in_package,
                siblings: siblings(core),
                node: core / in_node,
                kind: None,
                capacity: None,
                max_mhz: None,
            }
        };
        let cache = |level, size, ways, cpus| Cache { level, size, line: Some(64), ways: Some(ways), cpus };
        let mut caches: Vec<Cache> = (0..all).map(|core| cache(1, Bytes::kib(48), 12, siblings(core))).collect();
        caches.extend((0..all).map(|core| cache(2, Bytes::mib(1), 16, siblings(core))));
        caches.extend((0..all / self.cores).map(|d| cache(3, self.cache, 16, with_siblings(d * self.cores..(d + 1) * self.cores))));
        let memory = Bytes::gib(64);
        let count = self.packages * self.nodes;
        let node = |id: u32| Node {
            id,
            cpus: with_siblings(id * in_node..(id + 1) * in_node),
            memory: Some(memory),
            free: Some(memory),
            distances: (0..count).map(|other| (other, distance(id, other, self.nodes))).collect(),
            ..Node::default()
        };
        let nodes: Vec<Node> = (0..count).map(node).collect();
        let ids: IdSet = (0..count).collect();
        Machine {
            identity: Identity { arch: "x86_64".into(), model_name: Some("Simulated".into()), ..Identity::default() },
            topology: Topology {
                cpus: (0..all * self.threads).map(cpu).collect(),
                offline: IdSet::new(),
                caches,
                nodes,
                smt_active: Some(self.threads > 1),
                cxl_memory: Vec::new(),
                persistent: Vec::new(),
            },
            allowed: Allowed {
                cpus: (0..all * self.threads).collect(),
                isolated: IdSet::new(),
                nodes: ids.clone(),
                memory: Some(Bytes(memory.0 * u64::from(count))),
                node_limited_by: Default::default(),
                memory_limited_by: "simulated memory".into(),
                node_memory: ids.iter().map(|id| (id, memory)).collect(),
                cpu_quota: None,
                settings: memgauge_model::topology::SettingsFrom::Here,
                memory_policy: Some(MemoryPolicy::default()),
                memory_policy_unknown: None,
            },
        }
    }
}

/// Adds a node without CPUs, such as memory behind CXL, and returns its number. It is nearest to the first node.
pub fn add_far_node(machine: &mut Machine) -> u32 {
    let id = machine.topology.nodes.len() as u32;
    let near = machine.topology.nodes[0].clone();
    let distance = |node: u32| if node == 0 { 14 } else { 28 };
    for node in &mut machine.topology.nodes {
        node.distances.insert(id, distance(node.id));
    }
    let distances = machine.topology.nodes.iter().map(|node| (node.id, distance(node.id))).chain([(id, 10)]).collect();
    machine.topology.nodes.push(Node { id, cpus: IdSet::new(), distances, hmat: Vec::new(), ..near });
    machine.allowed.nodes.insert(id);
    let room = machine.allowed.node_memory[&0];
    machine.allowed.node_memory.insert(id, room);
    id
}

/// The distance that firmware states: 10 to itself, 12 within the package, 32 to another.
const fn distance(a: u32, b: u32, nodes: u32) -> u32 {
    match () {
        () if a == b => 10,
        () if a / nodes == b / nodes => 12,
        () => 32,
    }
}

/// A machine's fault. `less` is a share of the healthy value.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "each variant says what its fields are")]
pub enum Fault {
    /// A DIMM or channel of this node is slow or missing: the node moves so much less.
    Channel { node: u32, less: f64 },
    /// The node moves less and takes longer.
    Node { node: u32, less: f64 },
    /// The link between two packages moves less, in one direction or in both.
    Link { from: u32, to: u32, both: bool, less: f64 },
    /// The path of the last-level cache with this CPU moves less.
    Domain { cpu: u32, less: f64 },
    /// The core of this CPU is slow.
    Core { cpu: u32, less: f64 },
    /// The prefetchers of a package's cores are off; of all cores where no package is given.
    PrefetchersOff { package: Option<u32> },
    /// Each package is one node instead of several, or several instead of one.
    WrongNodes,
}

/// The kinds of faults, for tables.
pub const FAULTS: [&str; 7] = ["channel", "node", "link", "cache domain", "core", "prefetchers off", "nodes per package"];

impl Fault {
    /// A fault of the kind with this index in [`FAULTS`], of 10 to 40 %; `None` where the machine cannot have it.
    pub fn random(kind: usize, shape: &Shape, random: &mut Random) -> Option<Self> {
        let less = random.between(0.10, 0.40);
        let nodes = shape.packages * shape.nodes;
        Some(match kind {
            0 => Self::Channel { node: random.below(nodes), less },
            1 => Self::Node { node: random.below(nodes), less },
            2 if shape.packages > 1 => {
                let from = random.below(2);
                Self::Link { from, to: 1 - from, both: random.below(2) == 0, less }
            }
            3 if shape.domains > 1 => Self::Domain { cpu: random.below(shape.all_cores()), less },
            4 => Self::Core { cpu: random.below(shape.all_cores()), less },
            5 => Self::PrefetchersOff { package: (shape.packages > 1 && random.below(2) == 0).then(|| random.below(shape.packages)) },
            6 if shape.nodes > 1 || shape.domains > 1 => Self::WrongNodes,
            _ => return None,
        })
    }

    /// The shape that the machine has with this fault.
    pub fn shape(&self, healthy: &Shape) -> Shape {
        match self {
            Self::WrongNodes if healthy.nodes > 1 => Shape { nodes: 1, domains: healthy.domains * healthy.nodes, ..*healthy },
            Self::WrongNodes => Shape { nodes: 2, domains: healthy.domains / 2, ..*healthy },
            _ => *healthy,
        }
    }

    /// The index of its kind in [`FAULTS`].
    pub const fn kind(&self) -> usize {
        match self {
            Self::Channel { .. } => 0,
            Self::Node { .. } => 1,
            Self::Link { .. } => 2,
            Self::Domain { .. } => 3,
            Self::Core { .. } => 4,
            Self::PrefetchersOff { .. } => 5,
            Self::WrongNodes => 6,
        }
    }
}
