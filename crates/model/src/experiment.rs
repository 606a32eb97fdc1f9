//! The types that requests, plans and results share: they say what is measured and where.

use serde::{Deserialize, Serialize};

use crate::interleave::Weights;
use crate::traffic::{Access, LineUse, Mix};
use crate::units::{Bytes, IdSet};

/// An experiment by name. Its cells differ in some coordinates and make up one table or one curve. Everything else about it is in its
/// [row](crate::experiment_table).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// Idle latency by node of the CPU and node of the memory.
    IdleLatency,
    /// Idle latency by CPU.
    IdleLatencyPerCpu,
    /// Bandwidth by mix of traffic.
    Bandwidth,
    /// Bandwidth by mix, number of CPUs and injection delay, in search of the highest.
    BandwidthSearch,
    /// Bandwidth by number of CPUs.
    BandwidthRamp,
    /// Bandwidth by node of the CPUs and node of the memory.
    BandwidthMatrix,
    /// Bandwidth by last-level cache: of the CPUs that share each one.
    BandwidthPerCache,
    /// Bandwidth by size of the blocks that are visited in random order.
    AccessSize,
    /// Time until a stored block is durable, by method and size.
    PersistLatency,
    /// Latency of a chase alongside loaders, and the bandwidth of both, by injection delay.
    LoadedLatency,
    /// Bandwidth and latency of memory whose pages are on several nodes in turn, by weights.
    Interleave,
    /// Cache-to-cache transfers between chosen CPUs: by distance, or between every two nodes.
    CacheToCache,
    /// Cache-to-cache transfers between every two CPUs.
    CacheToCacheMatrix,
    /// Bandwidth of each region of a node's memory.
    MemoryScan,
    /// Latency and bandwidth by state of the prefetchers and node of the memory.
    PrefetchComparison,
    /// Latency and bandwidth by working set: the memory that a loop uses again and again.
    Sweep,
    /// The loop of `memgauge stream`.
    Stream,
    /// The loop of `memgauge chase`.
    Chase,
}

/// How something is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A chase alone.
    IdleLatency,
    /// Loaders alone.
    Bandwidth,
    /// A chase alongside loaders.
    LoadedLatency,
    /// One cache to another.
    CacheToCache,
    /// Each region of a node's memory.
    MemoryScan,
    /// Stores of one CPU, made durable block by block.
    PersistLatency,
}

/// Where the measured memory was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MemoryPlace {
    /// Each CPU used the memory of its own node.
    Own,
    /// The memory policy that the process was started with chose the place: the nearest of its nodes, or its nodes in turn
    /// ([`Coordinates::weights`]).
    Inherited,
    /// This node's memory.
    Node(u32),
    /// A device that is mapped with DAX.
    Device {
        /// Its node; `null` where the kernel does not state it.
        node: Option<u32>,
    },
}

impl MemoryPlace {
    /// The node that the memory was on. `None` if it was on several nodes, or if the node is not known.
    pub const fn node(self) -> Option<u32> {
        match self {
            Self::Own | Self::Inherited => None,
            Self::Node(node) => Some(node),
            Self::Device { node } => node,
        }
    }
}

/// The coordinates of a result in its experiment. Coordinates that do not apply are absent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coordinates {
    /// Node of the CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_node: Option<u32>,
    /// Where the memory was; absent if it differs from thread to thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryPlace>,
    /// Directory whose files were used as memory; absent for memory without a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_dir: Option<String>,
    /// CPU of the probe, or the CPU that reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// CPU that holds the line (cache-to-cache).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_cpu: Option<u32>,
    /// Node of the CPU that holds the line, if the experiment is by node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_node: Option<u32>,
    /// CPU that loads the line after the holder and before the reader, so that the line is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharer_cpu: Option<u32>,
    /// State of the line (cache-to-cache).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<LineState>,
    /// CPUs of the loaders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<IdSet>,
    /// Nodes of the loaders' memory, if they were named. Absent if it is on the same node as the chase's buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_nodes: Option<IdSet>,
    /// Order of the chase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<ChaseOrder>,
    /// Mix of the loaders' traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<Mix>,
    /// In which order the loaders visit lines, where an experiment has several orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Injection delay, in core cycles after every four lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_cycles: Option<u32>,
    /// Number of the region, in the order of allocation (memory scan).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<u32>,
    /// State that the prefetchers of all CPUs were set to, where states are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<PrefetchRequest>,
    /// Bytes of a block that is visited line by line before the next one (access sizes, persist latency).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Bytes>,
    /// How lines are made durable, and whether they are loaded again (persist latency).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<LineUse>,
    /// Weights of the nodes that pages are on in turn (interleave, and memory under an inherited policy that interleaves).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
    /// Working set of each CPU (sweep, stream, chase).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_set: Option<Bytes>,
}

impl Coordinates {
    /// The node that the memory was on. `None` if it was on several nodes, or if the node is not known.
    pub fn memory_node(&self) -> Option<u32> {
        self.memory.and_then(MemoryPlace::node)
    }
}

/// Order of a chase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ChaseOrder {
    /// Random within a chase window, and the windows in random order. Address translation is mostly hidden.
    #[default]
    WindowLocal,
    /// Random over the whole buffer. Address translation is included.
    FullRandom,
    /// Ascending. Prefetchers help.
    Sequential,
}

/// The quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Nanoseconds per dependent load, or per line that is transferred.
    Latency,
    /// Application bytes (read plus written) per second.
    Bandwidth,
}

impl Metric {
    /// Its unit in results.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Latency => Unit::Nanoseconds,
            Self::Bandwidth => Unit::GigabytesPerSecond,
        }
    }

    /// The logarithm of a value, turned so that more is worse.
    pub fn cost(self, value: f64) -> f64 {
        match self {
            Self::Latency => value.ln(),
            Self::Bandwidth => -value.ln(),
        }
    }

    /// The value of such a logarithm.
    pub fn value_at(self, cost: f64) -> f64 {
        match self {
            Self::Latency => cost.exp(),
            Self::Bandwidth => (-cost).exp(),
        }
    }

    /// By what share of the reference a value is worse; negative where it is better.
    pub fn worse_by(self, value: f64, reference: f64) -> f64 {
        match self {
            Self::Latency => value / reference - 1.0,
            Self::Bandwidth => 1.0 - value / reference,
        }
    }
}

/// The unit of `value`, `min`, `max`, `mad` and the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// 10^9 bytes a second.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
}

/// The state of the lines in the holder's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LineState {
    /// Loaded and unmodified.
    Hit,
    /// Modified.
    Hitm,
}

/// How far to chase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Hops {
    /// This many hops.
    Count(u64),
    /// Every line of the buffer once.
    OnePass,
}

/// Which pages to back buffers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PageRequest {
    /// Free 2 MiB pages of an existing pool; if there are none, transparent huge pages; failing those, base pages.
    #[default]
    Auto,
    /// Base pages, with transparent huge pages switched off for the buffer. 4 KiB on x86-64, the kernel's base page size elsewhere.
    #[serde(rename = "4k")]
    Base,
    /// Transparent huge pages.
    Thp,
    /// 2 MiB pages of the pool.
    #[serde(rename = "2m")]
    Huge2M,
    /// 1 GiB pages of the pool.
    #[serde(rename = "1g")]
    Huge1G,
}

impl PageRequest {
    /// Every request.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Base, Self::Thp, Self::Huge2M, Self::Huge1G];

    /// The name used on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Base => "4k",
            Self::Thp => "thp",
            Self::Huge2M => "2m",
            Self::Huge1G => "1g",
        }
    }

    /// The size of the pages that come from a pool; `None` for those that do not.
    pub const fn pool_page(self) -> Option<Bytes> {
        match self {
            Self::Huge2M => Some(Bytes::mib(2)),
            Self::Huge1G => Some(Bytes::gib(1)),
            Self::Auto | Self::Base | Self::Thp => None,
        }
    }
}

/// What to do with prefetchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PrefetchRequest {
    /// Nothing. No register is read.
    #[default]
    Leave,
    /// Switch all documented ones on.
    On,
    /// Switch all documented ones off.
    Off,
}

impl PrefetchRequest {
    /// The word on the command line and in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Leave => "leave",
            Self::On => "on",
            Self::Off => "off",
        }
    }
}
