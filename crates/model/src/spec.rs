//! The user's request, before any default is decided.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::directory::MemoryDir;
use crate::experiment::{ChaseOrder, Hops, LineState, Metric, PageRequest, PrefetchRequest};
use crate::integrity::TestPattern;
use crate::traffic::{Access, LineContent, LineUse, Mix, Width};
use crate::units::{Bytes, IdSet};

/// The user's request. `None` and empty lists mean "not given"; the plan then decides.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spec {
    /// Which measurement.
    pub task: Task,
    /// CPUs to measure from.
    pub cpus: Option<IdSet>,
    /// Memory nodes to measure.
    pub nodes: Option<IdSet>,
    /// Bytes of the probe's buffer, or of each loader's.
    pub size: Option<Bytes>,
    /// Chase window of the window-local order.
    pub window: Option<Bytes>,
    /// Distance between chased lines.
    pub stride: Option<Bytes>,
    /// Which pages to back buffers with.
    pub pages: PageRequest,
    /// Directory whose files are used as buffers, as the kernel describes it; if not given, memory without a file.
    pub memory_dir: Option<MemoryDir>,
    /// Numbers of CPUs of a ramp. If empty: 1, 2, 4 … all.
    pub ramp: IdSet,
    /// Mixes of traffic.
    pub mixes: Vec<Mix>,
    /// Width of loads and stores.
    pub width: WidthRequest,
    /// Use one hardware thread of each core.
    pub one_thread_per_core: bool,
    /// Measure each cell for this time, however wide its interval is.
    pub time: Option<Duration>,
    /// The longest time for measuring one cell.
    pub budget: Option<Duration>,
    /// The longest time for the whole run.
    pub within: Option<Duration>,
    /// Relative half-width of the 95 % interval to stop at, such as 0.01.
    pub confidence: Option<f64>,
    /// Injection delays, in core cycles after every four lines: those of the loaded-latency curve (empty: adaptive), or for bandwidth one
    /// cell for each (empty: no delay).
    pub delays: Vec<u32>,
    /// Shares of a loaded-latency curve's peak bandwidth, in percent, at which to find the latency.
    pub at_percent: Vec<u32>,
    /// The bandwidth, in 10^9 bytes a second, at which interleave weights are to give the least latency; if not given, those with the most
    /// bandwidth are found.
    pub demand_gbs: Option<f64>,
    /// Numbers of CPUs of each socket that load while interleave weights are searched, with a search for each; if empty, all but the one that
    /// chases.
    pub threads: Vec<u32>,
    /// Nodes of the loaders' memory in a loaded-latency curve; if not given, the measured node or each loader's own.
    pub load_nodes: Option<IdSet>,
    /// Options of the chase.
    pub chase: ChaseSpec,
    /// Options of the loaders' traffic.
    pub traffic: TrafficSpec,
    /// Options of cache-to-cache transfers.
    pub transfer: TransferSpec,
    /// Options of a scan. [`Spec::size`] is then the amount of memory to scan on each node.
    pub scan: ScanSpec,
    /// Options of a sweep over working sets.
    pub sweep: SweepSpec,
    /// Options of the suite for persistent memory.
    pub pmem: PmemSpec,
    /// CPUs to keep busy so that other packages stay awake; if not given, the first CPU of each other package.
    pub keep_awake: Option<IdSet>,
    /// Name of a shared-memory word (`shm_open`). Every cell waits until its value is 1 before it measures, so that another program can
    /// start it.
    pub start_signal: Option<String>,
    /// Whether hardware events are counted while measured windows run.
    pub counters: bool,
    /// Seed of the chase orders.
    pub seed: Option<u64>,
    /// The machine's memory bandwidth limit as the user gives it, in 10^9 bytes a second.
    pub peak_gbs: Option<f64>,
    /// What to do with hardware prefetchers during the run.
    pub prefetch: PrefetchRequest,
}

/// Which measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Task {
    /// The suite: everything that `memgauge` without a command measures.
    #[default]
    Suite,
    /// Idle latency.
    Latency(LatencyShape),
    /// Bandwidth.
    Bandwidth(BandwidthShape),
    /// Latency under load.
    Loaded,
    /// Weights for memory whose pages are on several nodes in turn.
    Interleave,
    /// Cache-to-cache transfers.
    C2c(TransferShape),
    /// Bandwidth of every region of the nodes' free memory.
    Scan,
    /// Latency and bandwidth over the working set.
    Sweep(SweepShape),
    /// A health check: a selection of nodes and cache domains, in a time that does not grow with the machine.
    Quick,
    /// One CPU's bandwidth and latency from every node, with prefetchers on and off.
    Prefetch,
    /// The suite for persistent memory: every node with CPUs and every directory of [`Spec::pmem`].
    Pmem,
    /// Latency, bandwidth and latency under load of each kind of memory, alone and beside the others; of each node where nodes are named.
    Tiers,
}

/// Which pairs of CPUs a transfer is measured between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferShape {
    /// One pair for each kind of distance, or the pair that is named.
    Representatives,
    /// Every pair of CPUs.
    CpuMatrix,
    /// A near pair, and one pair for every two nodes with CPUs, with the lines' home on each of the two nodes.
    NodeMatrix,
}

/// What the cells of a latency measurement are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyShape {
    /// One CPU, one node.
    One,
    /// Every node with CPUs to every node with memory.
    Matrix,
    /// Every CPU to one node (its own, unless one is named).
    PerCpu,
}

/// What the cells of a bandwidth measurement are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BandwidthShape {
    /// The CPUs named (all by default) to their own nodes, or the node named; the mixes named (all reads by default).
    One,
    /// Every node with CPUs to every node with memory.
    Matrix,
    /// Every mix.
    Peak,
    /// Growing numbers of CPUs: those of [`Spec::ramp`].
    Ramp,
    /// Each mix with several numbers of CPUs and several delays, because too many requests at once can cost bandwidth.
    Search,
}

/// Whose working sets are swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepShape {
    /// That of one CPU: the first of [`Spec::cpus`].
    One,
    /// Those of the CPUs of each last-level cache. They load together, and the first of them chases.
    PerDomain,
    /// Those of all CPUs. They load together, and the first of them chases.
    AllCpus,
}

/// The options of a chase.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChaseSpec {
    /// CPU that chases alongside loaders, or that reads in a transfer; if not given, the first of [`Spec::cpus`].
    pub cpu: Option<u32>,
    /// Node of the chase's buffer, if the loaders' buffers are elsewhere.
    pub node: Option<u32>,
    /// CPU that touches the chase's buffer first; the buffer is on that CPU's node. In a transfer: the lines' home.
    pub touch: Option<u32>,
    /// Orders of an idle chase. If empty: window-local and full-random.
    pub orders: Vec<ChaseOrder>,
    /// Length of the chase, instead of a time; in a transfer, of the reader's chase over each allocation.
    pub hops: Option<Hops>,
    /// Also time batches of this many hops (1, 8 or 64) for a histogram.
    pub histogram: Option<u32>,
}

/// The options of the loaders' traffic.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrafficSpec {
    /// Bytes of each loader's buffer, if a chase beside them has a buffer of another size ([`Spec::size`]).
    pub size: Option<Bytes>,
    /// In which order lines are visited.
    pub access: Access,
    /// Strided access: bytes from one line to the next.
    pub stride: Option<Bytes>,
    /// Random access: bytes of the address window that is visited completely before the next one; if not given, the whole buffer.
    pub window: Option<Bytes>,
    /// What is done with a line.
    pub line: LineUse,
    /// Patterns that are written and compared before checked lines are read; if empty, only what the lines hold and its complement.
    pub patterns: Vec<TestPattern>,
    /// How long checked lines and patterns stay in the memory at least before they are compared.
    pub hold: Option<Duration>,
    /// All loaders use one buffer, which they only read.
    pub shared: bool,
    /// What the buffers contain: these lines in turn, repeated. Stores write the first of them.
    pub contents: Vec<LineContent>,
    /// Lines that a loader loads and stores between two injection delays, by mix; four for a mix that is not named.
    pub burst_lines: BTreeMap<Mix, f64>,
    /// The work of single CPUs. If any is given, all other CPUs are idle.
    pub threads: Vec<ThreadSpec>,
}

/// The work of some CPUs, each with a buffer of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadSpec {
    /// The CPUs.
    pub cpus: IdSet,
    /// Their mix.
    pub mix: Mix,
    /// In which order lines are visited.
    pub access: Access,
    /// Bytes of each buffer.
    pub size: Option<Bytes>,
    /// Where the buffers are.
    pub place: BufferPlace,
    /// Injection delay, in core cycles after every four lines; if not given, the cell's delay.
    pub delay: Option<u32>,
    /// A second buffer, which some of the accesses go to.
    pub second: Option<SecondStream>,
}

/// A second buffer of a thread, of the same size as the first.
#[derive(Debug, Clone, PartialEq)]
pub struct SecondStream {
    /// Where it is.
    pub place: BufferPlace,
    /// Percent of the accesses that go there: 1 to 99.
    pub percent: u32,
}

/// Where a thread's buffer is.
#[derive(Debug, Clone, PartialEq)]
pub enum BufferPlace {
    /// The node of the CPU.
    Local,
    /// This node.
    Node(u32),
    /// A file in this directory.
    Directory(Box<MemoryDir>),
}

/// The options of cache-to-cache transfers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransferSpec {
    /// The CPU that holds the lines. Together with [`ChaseSpec::cpu`] it names one pair.
    pub holder: Option<u32>,
    /// A CPU that loads the lines after the holder and before the reader, so that they are shared.
    pub sharer: Option<u32>,
    /// Bytes that the holder reads from another buffer after it has loaded or stored the lines, so that they move to an outer cache.
    pub holder_pushes: Bytes,
    /// Bytes that the reader reads from another buffer before it reads the lines.
    pub reader_pushes: Bytes,
    /// States to measure. If empty: both.
    pub states: Vec<LineState>,
    /// Order of the chase; if not given, window-local.
    pub order: Option<ChaseOrder>,
    /// Window within which a window-local chase is random; if not given, the transfer window ([`Spec::window`]).
    pub chase_window: Option<Bytes>,
}

/// The options of a scan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScanSpec {
    /// Bytes of a region; if not given, 1 GiB.
    pub region: Option<Bytes>,
    /// How often each region is read; if not given, ten times.
    pub passes: Option<u32>,
    /// Width of the histogram's buckets in GB/s; if not given, 5.
    pub bucket_gbs: Option<f64>,
    /// Also write patterns to all of the memory and compare what is read back.
    pub integrity: bool,
    /// Which patterns. If empty: those that fit the time.
    pub patterns: Vec<TestPattern>,
    /// How long a pattern stays in the memory at least before it is compared; if not given, no longer than going over it takes.
    pub hold: Option<Duration>,
}

/// The options of a sweep over working sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SweepSpec {
    /// The smallest working set of a CPU; if not given, 4 KiB.
    pub min: Option<Bytes>,
    /// The largest; if not given, 1 GiB or what the memory limits allow.
    pub max: Option<Bytes>,
    /// Sizes in each doubling; if not given, 4.
    pub points_per_octave: Option<u32>,
    /// What to measure. If empty: latency and bandwidth.
    pub metrics: Vec<Metric>,
}

/// The options of the suite for persistent memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PmemSpec {
    /// Directories whose files are measured, one after the other.
    pub directories: Vec<MemoryDir>,
    /// Nodes whose CPUs measure; if not given, all of them.
    pub cpu_nodes: Option<IdSet>,
    /// Also the bandwidth of growing numbers of CPUs.
    pub ramp: bool,
    /// Also latency under load.
    pub loaded: bool,
}

impl ChaseSpec {
    /// The requested orders, each once.
    pub fn distinct_orders(&self) -> Vec<ChaseOrder> {
        let first = |(i, order): &(usize, &ChaseOrder)| !self.orders[..*i].contains(order);
        self.orders.iter().enumerate().filter(first).map(|(_, order)| *order).collect()
    }
}

impl TransferSpec {
    /// The states to measure.
    pub fn selected_states(&self) -> Vec<LineState> {
        let selected = |state: &LineState| self.states.is_empty() || self.states.contains(state);
        [LineState::Hit, LineState::Hitm].into_iter().filter(selected).collect()
    }
}

impl TrafficSpec {
    /// The directories that hold buffers of threads, each once.
    pub fn thread_directories(&self) -> Vec<MemoryDir> {
        let mut all: Vec<MemoryDir> = Vec::new();
        for thread in &self.threads {
            for place in [&thread.place].into_iter().chain(thread.second.as_ref().map(|s| &s.place)) {
                if let BufferPlace::Directory(dir) = place
                    && all.iter().all(|other| other.file.path != dir.file.path)
                {
                    all.push(dir.as_ref().clone());
                }
            }
        }
        all
    }
}

impl Spec {
    /// A request for `task` with no options.
    pub fn new(task: Task) -> Self {
        Self { task, ..Self::default() }
    }
}

/// Which width of loads and stores to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WidthRequest {
    /// The one that measures fastest.
    #[default]
    Best,
    /// This one.
    Is(Width),
}
