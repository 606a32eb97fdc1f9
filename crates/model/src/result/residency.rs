//! The result of `memgauge where`: the nodes that the memory of programs lies on, and the cost of that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::policy::MemoryPolicy;
use crate::result::{Moment, PageKind};
use crate::units::{Bytes, IdSet};

/// Where the memory of some processes lies.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Residency {
    /// The processes, the one with most memory first: as they were at the last reading, or, of a program that was started, at the reading with
    /// most memory.
    pub processes: Vec<ProcessMemory>,
    /// Processes whose memory was not seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_seen: Vec<UnseenProcess>,
    /// The program was started to be observed, and has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub started: bool,
    /// For how many seconds their threads were observed.
    pub observed_s: f64,
    /// Memory by node that was free then, or of the page cache, which gives way; empty where the kernel does not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub free: BTreeMap<u32, Bytes>,
    /// Their memory over time; of a single look one point.
    pub points: Vec<ResidencyPoint>,
    /// Whether the kernel moves pages and threads towards each other (`kernel.numa_balancing`); `null` if it does not say.
    pub numa_balancing: Option<bool>,
    /// What accesses cost on this machine; absent if no prices were found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// The cost of the placement of all processes together, each weighted by the time that its threads ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<PlacementCost>,
    /// Why the cost is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_priced: Option<NotPriced>,
    /// The cost of address translation; absent if it was not measured for all pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<TranslationCost>,
    /// What would help.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
}

/// The memory of a process, and the CPUs that its threads ran on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessMemory {
    /// Its number.
    pub pid: u32,
    /// Its name (`/proc/PID/comm`).
    pub name: String,
    /// All of its memory.
    pub memory: MemorySums,
    /// Its largest mappings. Mappings of one file, and unnamed ones that touch, are one.
    pub mappings: Vec<MappingMemory>,
    /// Its memory by the policy in force.
    pub policies: Vec<PolicyMemory>,
    /// The CPUs that its main thread may run on.
    pub allowed_cpus: IdSet,
    /// The nodes that its memory may be on.
    pub allowed_nodes: IdSet,
    /// How many threads it has.
    pub threads: u32,
    /// Seconds that its threads ran while they were observed, by CPU: the one that each was seen on last.
    pub cpu_s: BTreeMap<u32, f64>,
    /// Its threads by the CPU that each was seen on last.
    pub threads_by_cpu: BTreeMap<u32, u32>,
    /// What its placement costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<PlacementCost>,
}

/// Bytes of memory that are present, in several respects.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemorySums {
    /// All that is present, pages of pools included.
    pub present: Bytes,
    /// Of these, what other processes have mapped as well.
    pub shared: Bytes,
    /// All that is present, pages that several processes have mapped in equal parts (PSS); of pages of pools those alone that only this process
    /// has mapped.
    pub proportional: Bytes,
    /// What was swapped out.
    pub swapped: Bytes,
    /// By node.
    pub by_node: BTreeMap<u32, Bytes>,
    /// Of that, what was touched while the process was observed, by node: each mapping's touched part is taken to be spread as the mapping is.
    /// Absent unless it was asked for (`--touched`) and could be watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touched: Option<BTreeMap<u32, Bytes>>,
    /// Present, and on a node that the kernel does not show: memory of devices, or mappings that changed while they were read.
    pub unplaced: Bytes,
    /// By the kind and size of page.
    pub by_page: Vec<PageBytes>,
    /// By the kind of mapping.
    pub by_kind: BTreeMap<MappingKind, Bytes>,
}

/// Memory in one kind of page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageBytes {
    /// The kind. Huge pages of files and of shared memory are of kind `thp`.
    pub kind: PageKind,
    /// The size of a page.
    pub page: Bytes,
    /// The memory.
    pub bytes: Bytes,
}

/// A kind of mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MappingKind {
    /// The heap that the kernel grows for `brk`.
    Heap,
    /// The main thread's stack.
    Stack,
    /// Memory without a file.
    Anonymous,
    /// A file, and what was written to a private mapping of it.
    File,
    /// Memory that is made to be shared: System V, POSIX, memfd, or anonymous.
    Shared,
}

impl MappingKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Heap, Self::Stack, Self::Anonymous, Self::File, Self::Shared];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::Anonymous => "anonymous",
            Self::File => "file",
            Self::Shared => "shared",
        }
    }
}

/// A mapping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MappingMemory {
    /// Its kind.
    pub kind: MappingKind,
    /// Its file, or the name that the program gave it; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The part of it that is present.
    pub present: Bytes,
    /// By node.
    pub by_node: BTreeMap<u32, Bytes>,
    /// Of it, what is in huge pages of any kind.
    pub huge: Bytes,
}

/// Memory under one policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyMemory {
    /// The policy.
    pub policy: MemoryPolicy,
    /// What is present under it.
    pub present: Bytes,
}

/// A process whose memory was not seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnseenProcess {
    /// Its number.
    pub pid: u32,
    /// Its name, if it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Why.
    pub why: WhyUnseen,
}

/// Why a process's memory was not seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum WhyUnseen {
    /// There is none with this number, or it ended.
    #[error("there is no such process, or it has ended; the numbers within a container are others than outside")]
    Gone,
    /// It belongs to somebody else.
    #[error("it is user {owner}'s, or does not let itself be looked at: run this as that user, or as root with CAP_SYS_PTRACE")]
    Refused {
        /// The number of its user.
        owner: u32,
    },
    /// It is part of the kernel, or it has ended and waits for its parent.
    #[error("it has no memory of its own: it is a thread of the kernel, or has ended")]
    NoMemory,
    /// Something else.
    #[error("{error}")]
    Unreadable {
        /// The system's error.
        error: String,
    },
}

/// The memory of all processes at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResidencyPoint {
    /// When it was read.
    pub at: Moment,
    /// How many processes were seen.
    pub processes: u32,
    /// Their memory by node. Memory that several of them have mapped counts for each.
    pub by_node: BTreeMap<u32, Bytes>,
    /// Shares of all accesses since the point before; none if no thread ran.
    pub accesses: Vec<AccessShare>,
    /// The latency that an access is expected to have, if it has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
}

/// A share of all accesses, if every page of a process is used alike, by each of its threads for the time that it ran.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccessShare {
    /// Node of the CPU.
    pub cpu_node: u32,
    /// Node of the memory.
    pub memory_node: u32,
    /// The share.
    pub share: f64,
}

/// Prices of accesses on this machine, as they were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prices {
    /// Where the prices are from.
    pub from: PriceSource,
    /// When they were measured, UTC.
    pub measured: String,
    /// Idle latency in ns.
    pub latency_ns: Vec<PairPrice>,
    /// Bandwidth of loads alone by all CPUs of the node, in GB/s; empty where it was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bandwidth_gbs: Vec<PairPrice>,
    /// The latency that address translation adds to a load; empty where it was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub translation_ns: Vec<TranslationPrice>,
}

/// The latency that address translation adds to a load at a random place of a large buffer: its latency there less that within windows whose translations stay in
/// the TLBs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TranslationPrice {
    /// The kind of the buffer's pages.
    pub kind: PageKind,
    /// Their size.
    pub page: Bytes,
    /// The size of the buffer. The price grows with it.
    pub buffer: Bytes,
    /// The price in ns, with its interval.
    #[serde(flatten)]
    pub price: Priced,
    /// One of the two latencies was disturbed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreliable: bool,
}

/// The latency that address translation adds to an access at a random place, by the pages that memory is in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TranslationCost {
    /// In ns, with the pages as they are.
    pub now_ns: Priced,
    /// The kind of pages with the least price.
    pub best_kind: PageKind,
    /// Their size.
    pub best_page: Bytes,
    /// In ns, if all memory were in such pages.
    pub best_ns: Priced,
    /// A price in it is unreliable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreliable: bool,
}

/// Where prices are from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "source", rename_all = "kebab-case")]
pub enum PriceSource {
    /// They were measured by this run.
    Measured,
    /// A result that was named.
    File {
        /// Its name.
        path: String,
    },
    /// The last result of this machine that was kept.
    Kept,
}

/// The price of accesses from a node's CPUs to a node's memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairPrice {
    /// Node of the CPUs.
    pub cpu_node: u32,
    /// Node of the memory.
    pub memory_node: u32,
    /// The price, with its interval.
    #[serde(flatten)]
    pub price: Priced,
    /// It was disturbed so much that it may be wrong by more than its interval says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreliable: bool,
}

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Priced {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The cost of a placement of threads and pages, if all pages are used alike.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlacementCost {
    /// Share of accesses that leave the node of their CPU.
    pub remote: f64,
    /// Expected latency of an access in ns.
    pub latency_ns: Priced,
    /// One of the prices in it is unreliable. Nothing is advised then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreliable: bool,
    /// The bandwidth that loads have at most, in GB/s; absent where the machine's was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_gbs: Option<f64>,
    /// The best placement of threads and pages that was found.
    pub best: BetterPlacement,
    /// The best one if only threads move.
    pub best_for_threads: BetterPlacement,
    /// The best one if only pages move.
    pub best_for_pages: BetterPlacement,
}

/// A placement beside the present one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BetterPlacement {
    /// Expected latency of an access in ns.
    pub latency_ns: Priced,
    /// How much less than now that is, in ns. The interval holds what both have in common once.
    pub saves_ns: Priced,
    /// The bandwidth that loads have at most, in GB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_gbs: Option<f64>,
    /// Share of the threads' time by node.
    pub threads: BTreeMap<u32, f64>,
    /// The memory by node.
    pub pages: BTreeMap<u32, Bytes>,
}

/// Why a placement has no price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum NotPriced {
    /// No result of this machine has latencies by node.
    NoPrices,
    /// The latencies that are known lack one that is needed.
    PairMissing {
        /// Node of the CPUs.
        cpu_node: u32,
        /// Node of the memory.
        memory_node: u32,
    },
    /// Nothing is present, or on no node that the kernel shows.
    NothingPlaced,
}

/// What would bring threads and pages together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Remedy {
    /// Let all threads of a running process run on CPUs of these nodes.
    MoveThreads {
        /// The process.
        pid: u32,
        /// The nodes.
        nodes: IdSet,
        /// Their CPUs.
        cpus: IdSet,
    },
    /// Move all pages of a running process that are on some nodes.
    MovePages {
        /// The process.
        pid: u32,
        /// From these nodes.
        from: IdSet,
        /// To this one.
        to: u32,
    },
    /// Start the program with its threads and its memory on one node.
    StartOn {
        /// The node.
        node: u32,
    },
    /// Start the program with its heap in transparent huge pages.
    HugePages,
}

impl Residency {
    /// The memory of all processes together that is present, by node. Memory that several of them have mapped counts for each.
    pub fn by_node(&self) -> BTreeMap<u32, Bytes> {
        sums(self.processes.iter().map(|process| &process.memory.by_node))
    }

    /// The touched part of it, by node, of the processes whose touched pages are known; `None` if those of none are.
    pub fn touched_by_node(&self) -> Option<BTreeMap<u32, Bytes>> {
        let known: Vec<_> = self.processes.iter().filter_map(|process| process.memory.touched.as_ref()).collect();
        (!known.is_empty()).then(|| sums(known))
    }

    /// The memory that accesses go to, by node.
    pub fn used_by_node(&self) -> BTreeMap<u32, Bytes> {
        sums(self.processes.iter().map(ProcessMemory::used_by_node))
    }

    /// The memory of all processes together that is present.
    pub fn present(&self) -> Bytes {
        Bytes(self.processes.iter().fold(0, |sum, process| sum.saturating_add(process.memory.present.0)))
    }
}

/// Memory by node, of all together.
fn sums<'a>(all: impl IntoIterator<Item = &'a BTreeMap<u32, Bytes>>) -> BTreeMap<u32, Bytes> {
    let mut sums: BTreeMap<u32, Bytes> = BTreeMap::new();
    for (node, bytes) in all.into_iter().flatten() {
        let sum = sums.entry(*node).or_default();
        // Files may have been written by others.
        sum.0 = sum.0.saturating_add(bytes.0);
    }
    sums
}

impl ProcessMemory {
    /// Share of the threads' time by node of the CPU: of the time that they ran while they were observed, or, if none of them ran, of threads by
    /// the CPU that each was seen on last. `node` says which node a CPU belongs to.
    pub fn threads_by_node(&self, node: impl Fn(u32) -> Option<u32>) -> BTreeMap<u32, f64> {
        let ran: Vec<(u32, f64)> = self.cpu_s.iter().map(|(cpu, s)| (*cpu, *s)).filter(|(_, s)| *s > 0.0).collect();
        let seen = || self.threads_by_cpu.iter().map(|(cpu, n)| (*cpu, f64::from(*n))).collect();
        let weights: Vec<(u32, f64)> = if ran.is_empty() { seen() } else { ran };
        let mut nodes: BTreeMap<u32, f64> = BTreeMap::new();
        for (cpu, weight) in weights {
            if let Some(node) = node(cpu) {
                *nodes.entry(node).or_default() += weight;
            }
        }
        let sum: f64 = nodes.values().sum();
        nodes.values_mut().for_each(|share| *share /= sum);
        nodes
    }

    /// The memory that its accesses go to, by node: the touched part, if that is known and is anything, or else all.
    pub fn used_by_node(&self) -> &BTreeMap<u32, Bytes> {
        self.touched().unwrap_or(&self.memory.by_node)
    }

    /// The touched part of its memory, by node, if that is known and is anything.
    pub fn touched(&self) -> Option<&BTreeMap<u32, Bytes>> {
        self.memory.touched.as_ref().filter(|touched| touched.values().any(|bytes| bytes.0 > 0))
    }

    /// Seconds that its threads ran while they were observed.
    pub fn ran_s(&self) -> f64 {
        self.cpu_s.values().sum()
    }
}
