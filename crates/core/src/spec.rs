//! What the user asked, before any default is decided.

use crate::directory::MemoryDir;
use crate::experiment::{ChaseOrder, Hops, LineState, Metric, PageRequest, PrefetchRequest};
use crate::traffic::{Access, LineContent, LineUse, Mix, Width};
use crate::units::{Bytes, IdSet};
use std::time::Duration;

/// What was asked for. `None` and empty lists mean "not said": the plan decides.
#[derive(Debug, Clone, PartialEq)]
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
    /// Directory whose files are the buffers, as the kernel describes it; memory without a file where it is not said.
    pub memory_dir: Option<MemoryDir>,
    /// Mixes of traffic.
    pub mixes: Vec<Mix>,
    /// Width of loads and stores.
    pub width: WidthRequest,
    /// Use one hardware thread of each core.
    pub one_thread_per_core: bool,
    /// Measure each cell for this long, whatever its interval.
    pub time: Option<Duration>,
    /// The most time for one cell's measuring.
    pub budget: Option<Duration>,
    /// The most time for the whole run.
    pub within: Option<Duration>,
    /// Relative half-width of the 95 % interval to stop at, such as 0.01.
    pub confidence: Option<f64>,
    /// Injection delays in core cycles after every four lines: of the loaded-latency curve (empty = adaptive), or of bandwidth, one cell
    /// each (empty = no delay).
    pub delays: Vec<u32>,
    /// Shares of a loaded-latency curve's peak bandwidth, in percent, at which to find the latency.
    pub at_percent: Vec<u32>,
    /// Nodes of the loaders' memory beside a chase; where it is not said, the node measured or each loader's own.
    pub load_nodes: Option<IdSet>,
    /// What else was asked of the chase.
    pub chase: ChaseSpec,
    /// What else was asked of the loaders' traffic.
    pub traffic: TrafficSpec,
    /// What else was asked of cache-to-cache transfers.
    pub transfer: TransferSpec,
    /// What else was asked of a scan; [`Spec::size`] is then the most memory of a node to take.
    pub scan: ScanSpec,
    /// What else was asked of a sweep over working sets.
    pub sweep: SweepSpec,
    /// CPUs to keep busy so that other packages stay awake; the first of each other package where it is not said.
    pub keep_awake: Option<IdSet>,
    /// Name of a shared-memory word (`shm_open`) for whose value 1 every cell waits before it measures, so that another program can start it.
    pub start_signal: Option<String>,
    /// Whether hardware events are counted while measured windows run.
    pub counters: bool,
    /// Seed of the chase orders.
    pub seed: Option<u64>,
    /// What the machine's memory could transfer at most, in 10^9 bytes a second, as the user knows it.
    pub peak_gbs: Option<f64>,
    /// What to do with hardware prefetchers for the time of the run.
    pub prefetch: PrefetchRequest,
}

/// Which measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Everything: the main job.
    Suite,
    /// Idle latency.
    Latency(LatencyShape),
    /// Bandwidth.
    Bandwidth(BandwidthShape),
    /// Latency under load.
    Loaded,
    /// Cache-to-cache transfers.
    C2c(TransferShape),
    /// Bandwidth of every region of the nodes' free memory.
    Scan,
    /// Latency and bandwidth over the working set.
    Sweep(SweepShape),
    /// A health check: samples of nodes and cache domains, within a time that does not grow with the machine.
    Quick,
    /// One CPU's bandwidth and latency from every node, with prefetchers on and off.
    Prefetch,
}

/// Which pairs of CPUs a transfer is measured between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferShape {
    /// One pair for each way of being near or far; the pair that is named where one is.
    Representatives,
    /// Every pair of CPUs.
    CpuMatrix,
    /// A near pair, and a pair for every two nodes with CPUs, lines homed at each of both.
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
    /// 1, 2, 4 … all CPUs.
    Ramp,
    /// Each mix with several numbers of CPUs and several delays: too many requests at once can cost bandwidth.
    Search,
}

/// Whose working set is swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepShape {
    /// One CPU's: the first of [`Spec::cpus`].
    One,
    /// Of each last-level cache the CPUs behind it: they load together, and the first of them chases.
    PerDomain,
    /// All CPUs': they load together, and the first of them chases.
    AllCpus,
}

/// What was asked of a chase.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChaseSpec {
    /// CPU that chases beside loaders, or that reads in a transfer; the first of [`Spec::cpus`] where it is not said.
    pub cpu: Option<u32>,
    /// Node of the chase's buffer where loaders' buffers are elsewhere.
    pub node: Option<u32>,
    /// CPU that touches the chase's buffer first; the buffer is on that CPU's node. In a transfer: the lines' home.
    pub touch: Option<u32>,
    /// Orders of an idle chase; none: window-local and full-random.
    pub orders: Vec<ChaseOrder>,
    /// How far to chase, instead of a time.
    pub hops: Option<Hops>,
    /// Also time batches of so many hops (1, 8 or 64) for a histogram.
    pub histogram: Option<u32>,
}

/// What was asked of loaders' traffic.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrafficSpec {
    /// In which order lines are visited.
    pub access: Access,
    /// Strided access: bytes from one line to the next.
    pub stride: Option<Bytes>,
    /// Random access: the window that is visited completely before the next; all of the buffer where it is not said.
    pub window: Option<Bytes>,
    /// What is done with a line.
    pub line: LineUse,
    /// All loaders use one buffer, which they only read.
    pub shared: bool,
    /// What buffers contain, line after line and then again; stores write the first of these lines.
    pub contents: Vec<LineContent>,
    /// What single CPUs do; where any is named the others do nothing.
    pub threads: Vec<ThreadSpec>,
}

/// What some CPUs do, each with a buffer of its own.
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
    /// Delay in core cycles after every four lines; that of the cell where it is not said.
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

/// What was asked of cache-to-cache transfers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransferSpec {
    /// The CPU that holds the lines; with [`ChaseSpec::cpu`] this makes one pair.
    pub holder: Option<u32>,
    /// A CPU that loads the lines after the holder and before the reader, so that they are shared.
    pub sharer: Option<u32>,
    /// Bytes that the holder reads elsewhere after taking the lines, so that they move to an outer cache.
    pub holder_pushes: Bytes,
    /// Bytes that the reader reads from another buffer before it reads the lines.
    pub reader_pushes: Bytes,
    /// States to measure; none: both.
    pub states: Vec<LineState>,
    /// Order of the chase; window-local where it is not said.
    pub order: Option<ChaseOrder>,
}

/// What was asked of a scan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScanSpec {
    /// Bytes of a region; 1 GiB where it is not said.
    pub region: Option<Bytes>,
    /// How often each region is read; ten times where it is not said.
    pub passes: Option<u32>,
    /// Width of the histogram's buckets in GB/s; 5 where it is not said.
    pub bucket_gbs: Option<f64>,
    /// Also write patterns to all of it and compare what comes back.
    pub integrity: bool,
}

/// What was asked of a sweep over working sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SweepSpec {
    /// The smallest working set of a CPU; 4 KiB where it is not said.
    pub min: Option<Bytes>,
    /// The largest; 1 GiB, or what may be taken, where it is not said.
    pub max: Option<Bytes>,
    /// Sizes in each doubling; 4 where it is not said.
    pub points_per_octave: Option<u32>,
    /// What to measure; none: latency and bandwidth.
    pub metrics: Vec<Metric>,
}

impl Spec {
    /// A request for `task` with nothing else said.
    pub fn new(task: Task) -> Self {
        Self {
            task,
            cpus: None,
            nodes: None,
            size: None,
            window: None,
            stride: None,
            pages: PageRequest::Auto,
            memory_dir: None,
            mixes: Vec::new(),
            width: WidthRequest::Best,
            one_thread_per_core: false,
            time: None,
            budget: None,
            within: None,
            confidence: None,
            delays: Vec::new(),
            at_percent: Vec::new(),
            load_nodes: None,
            chase: ChaseSpec::default(),
            traffic: TrafficSpec::default(),
            transfer: TransferSpec::default(),
            scan: ScanSpec::default(),
            sweep: SweepSpec::default(),
            keep_awake: None,
            start_signal: None,
            counters: false,
            seed: None,
            peak_gbs: None,
            prefetch: PrefetchRequest::Leave,
        }
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
