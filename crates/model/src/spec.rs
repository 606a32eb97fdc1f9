//! The user's request, before any default is decided: what every task has, and the task with what it alone has.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::directory::MemoryDir;
use crate::experiment::{ChaseOrder, Hops, LineState, Metric, PageRequest, PrefetchRequest};
use crate::integrity::TestPattern;
use crate::traffic::{Access, LineContent, LineUse, Mix, Width};
use crate::units::{Bytes, IdSet};

/// The user's request. `None` and empty lists mean "not given"; the plan then decides.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Which measurement, with the options that only it has.
    pub task: Task,
    /// CPUs to measure from.
    pub cpus: Option<IdSet>,
    /// Memory nodes to measure.
    pub nodes: Option<IdSet>,
    /// Use one hardware thread of each core.
    pub one_thread_per_core: bool,
    /// Which pages to back buffers with.
    pub pages: PageRequest,
    /// Directory whose files are used as buffers, as the kernel describes it; if not given, memory without a file.
    pub memory_dir: Option<MemoryDir>,
    /// Measure each cell for this time, however wide its interval is.
    pub time: Option<Duration>,
    /// The longest time for measuring one cell.
    pub budget: Option<Duration>,
    /// The longest time for the whole run.
    pub within: Option<Duration>,
    /// Relative half-width of the 95 % interval to stop at, such as 0.01.
    pub confidence: Option<f64>,
    /// Seed of the chase orders.
    pub seed: Option<u64>,
    /// Whether hardware events are counted while measured windows run.
    pub counters: bool,
    /// CPUs to keep busy so that other packages stay awake; if not given, the first CPU of each other package.
    pub keep_awake: Option<IdSet>,
    /// Name of a shared-memory word (`shm_open`). Every cell waits until its value is 1 before it measures, so that another program can
    /// start it.
    pub start_signal: Option<String>,
    /// The machine's memory bandwidth limit as the user gives it, in 10^9 bytes a second.
    pub peak_gbs: Option<f64>,
    /// What to do with hardware prefetchers during the run.
    pub prefetch: PrefetchRequest,
    /// Whether the run has stamps at its beginning and its end.
    pub stamp: bool,
}

impl Spec {
    /// A request for `task` with no other options, and without stamps.
    pub fn new(task: Task) -> Self {
        Self {
            task,
            cpus: None,
            nodes: None,
            one_thread_per_core: false,
            pages: PageRequest::default(),
            memory_dir: None,
            time: None,
            budget: None,
            within: None,
            confidence: None,
            seed: None,
            counters: false,
            keep_awake: None,
            start_signal: None,
            peak_gbs: None,
            prefetch: PrefetchRequest::default(),
            stamp: false,
        }
    }
}

/// Which measurement.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// The suite: everything that `memgauge` without a command measures.
    Suite(SuiteSpec),
    /// Idle latency.
    Latency(LatencySpec),
    /// Bandwidth.
    Bandwidth(BandwidthSpec),
    /// Latency under load.
    Loaded(LoadedSpec),
    /// Weights for memory whose pages are on several nodes in turn.
    Interleave(InterleaveSpec),
    /// Cache-to-cache transfers.
    C2c(TransferSpec),
    /// Bandwidth of every region of the nodes' free memory.
    Scan(ScanSpec),
    /// Latency and bandwidth over the working set.
    Sweep(SweepSpec),
    /// A health check: a selection of nodes and cache domains, in a time that does not grow with the machine.
    Quick(QuickSpec),
    /// One CPU's bandwidth and latency from every node, with prefetchers on and off.
    Prefetch(PrefetchSpec),
    /// The suite for persistent memory: every node with CPUs and every directory.
    Pmem(PmemSpec),
    /// Latency, bandwidth and latency under load of each kind of memory, alone and beside the others; of each node where nodes are named.
    Tiers(TiersSpec),
}

impl Task {
    /// The suite.
    pub fn suite() -> Self {
        Self::Suite(SuiteSpec::default())
    }

    /// Idle latency with these cells.
    pub fn latency(shape: LatencyShape) -> Self {
        Self::Latency(LatencySpec { shape, ..LatencySpec::default() })
    }

    /// Bandwidth with these cells.
    pub fn bandwidth(shape: BandwidthShape) -> Self {
        Self::Bandwidth(BandwidthSpec { shape, ..BandwidthSpec::default() })
    }

    /// Latency under load.
    pub fn loaded() -> Self {
        Self::Loaded(LoadedSpec::default())
    }

    /// Interleave weights.
    pub fn interleave() -> Self {
        Self::Interleave(InterleaveSpec::default())
    }

    /// Transfers with these cells.
    pub fn c2c(shape: TransferShape) -> Self {
        Self::C2c(TransferSpec { shape, ..TransferSpec::default() })
    }

    /// A scan.
    pub fn scan() -> Self {
        Self::Scan(ScanSpec::default())
    }

    /// A sweep with these cells.
    pub fn sweep(shape: SweepShape) -> Self {
        Self::Sweep(SweepSpec { shape, ..SweepSpec::default() })
    }

    /// A health check.
    pub fn quick() -> Self {
        Self::Quick(QuickSpec::default())
    }

    /// A comparison of prefetchers.
    pub fn prefetch() -> Self {
        Self::Prefetch(PrefetchSpec::default())
    }

    /// The suite for persistent memory.
    pub fn pmem() -> Self {
        Self::Pmem(PmemSpec::default())
    }

    /// A comparison of tiers.
    pub fn tiers() -> Self {
        Self::Tiers(TiersSpec::default())
    }

    /// The options of its chase, where it has all of them.
    pub const fn chase_mut(&mut self) -> Option<&mut ChaseSpec> {
        match self {
            Self::Latency(latency) => Some(&mut latency.chase),
            Self::Loaded(loaded) => Some(&mut loaded.chase),
            _ => None,
        }
    }

    /// Hops of each batch that is timed, if a histogram was asked for.
    pub const fn histogram(&self) -> Option<u32> {
        match self {
            Self::Latency(latency) => latency.chase.histogram,
            Self::Loaded(loaded) => loaded.chase.histogram,
            Self::Tiers(tiers) => tiers.histogram,
            _ => None,
        }
    }
}

/// The options of the suite.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SuiteSpec {
    /// Bytes of a chase's buffer and of each loader's.
    pub buffer: Option<Bytes>,
    /// What loaders load and store.
    pub load: LoadSpec,
}

/// The options of idle latency.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LatencySpec {
    /// The cells.
    pub shape: LatencyShape,
    /// How to chase.
    pub chase: ChaseSpec,
    /// Orders of the chase. If empty: window-local and full-random.
    pub orders: Vec<ChaseOrder>,
}

/// The cells of a latency measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LatencyShape {
    /// One CPU, one node.
    #[default]
    One,
    /// Every node with CPUs to every node with memory.
    Matrix,
    /// Every CPU to one node (its own, unless one is named).
    PerCpu,
}

/// The options of bandwidth.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BandwidthSpec {
    /// The cells.
    pub shape: BandwidthShape,
    /// Injection delays, in core cycles after every four lines: one cell for each. If empty: no delay.
    pub delays: Vec<u32>,
    /// The loaders' traffic.
    pub traffic: TrafficSpec,
}

/// The cells of a bandwidth measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BandwidthShape {
    /// The CPUs named (all by default) to their own nodes, or the node named; the mixes named (all reads by default).
    #[default]
    One,
    /// Every node with CPUs to every node with memory.
    Matrix,
    /// Every mix.
    Peak,
    /// These numbers of CPUs. If empty: 1, 2, 4 … all.
    Ramp(IdSet),
    /// Each mix with several numbers of CPUs and several delays, because too many requests at once can cost bandwidth.
    Search,
}

/// The options of latency under load.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadedSpec {
    /// How to chase.
    pub chase: ChaseSpec,
    /// Order of the chase; if not given, window-local.
    pub order: Option<ChaseOrder>,
    /// Which CPU chases, and the points of a curve.
    pub curve: CurveSpec,
    /// The loaders' traffic.
    pub traffic: TrafficSpec,
}

/// A curve of latency under load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CurveSpec {
    /// CPU that chases; if not given, the first that may be used.
    pub cpu: Option<u32>,
    /// Node of the chase's buffer, if the loaders' buffers are elsewhere.
    pub node: Option<u32>,
    /// Nodes of the loaders' memory; if not given, the measured node or each loader's own.
    pub load_nodes: Option<IdSet>,
    /// Injection delays of its points, in core cycles after every four lines. If empty: adaptive.
    pub delays: Vec<u32>,
    /// Shares of its peak bandwidth, in percent, at which to find the latency.
    pub at_percent: Vec<u32>,
}

/// The options of a search for interleave weights.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InterleaveSpec {
    /// Bytes of the chase's buffer and of each loader's.
    pub buffer: Option<Bytes>,
    /// What the loaders load and store.
    pub load: LoadSpec,
    /// A bandwidth, in 10^9 bytes a second. The search finds the weights with the least latency at this bandwidth; if it is not given, those
    /// with the most bandwidth.
    pub demand_gbs: Option<f64>,
    /// Numbers of CPUs of each socket that load, with a search for each; if empty, all but the one that chases.
    pub threads: Vec<u32>,
}

/// The options of cache-to-cache transfers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransferSpec {
    /// Which pairs of CPUs.
    pub shape: TransferShape,
    /// The CPU that reads the lines; if not given, the first that may be used.
    pub reader: Option<u32>,
    /// The CPU that holds the lines. Together with the reader it names one pair.
    pub holder: Option<u32>,
    /// A CPU that loads the lines after the holder and before the reader, so that they are shared.
    pub sharer: Option<u32>,
    /// Bytes of the reader's buffer.
    pub buffer: Option<Bytes>,
    /// Bytes that are handed over at a time.
    pub window: Option<Bytes>,
    /// Distance between lines that are read.
    pub stride: Option<Bytes>,
    /// CPU that touches the buffer first: the lines' home is on its node.
    pub touch: Option<u32>,
    /// Length of the reader's chase over each allocation, instead of a time.
    pub hops: Option<Hops>,
    /// Bytes that the holder reads from another buffer after it has loaded or stored the lines, so that they move to an outer cache.
    pub holder_pushes: Bytes,
    /// Bytes that the reader reads from another buffer before it reads the lines.
    pub reader_pushes: Bytes,
    /// States to measure. If empty: both.
    pub states: Vec<LineState>,
    /// Order of the chase; if not given, window-local.
    pub order: Option<ChaseOrder>,
    /// Window within which a window-local chase is random; if not given, what is handed over at a time.
    pub chase_window: Option<Bytes>,
}

impl TransferSpec {
    /// The states to measure.
    pub fn selected_states(&self) -> Vec<LineState> {
        let selected = |state: &LineState| self.states.is_empty() || self.states.contains(state);
        [LineState::Hit, LineState::Hitm].into_iter().filter(selected).collect()
    }
}

/// Which pairs of CPUs a transfer is measured between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransferShape {
    /// One pair for each kind of distance, or the pair that is named.
    #[default]
    Representatives,
    /// Every pair of CPUs.
    CpuMatrix,
    /// A near pair, and one pair for every two nodes with CPUs, with the lines' home on each of the two nodes.
    NodeMatrix,
}

/// The options of a scan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScanSpec {
    /// Bytes to scan on each node; if not given, what is free.
    pub memory: Option<Bytes>,
    /// Bytes of a region; if not given, 1 GiB.
    pub region: Option<Bytes>,
    /// How often each region is read; if not given, ten times.
    pub passes: Option<u32>,
    /// Width of loads.
    pub width: WidthRequest,
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
    /// Whose working sets.
    pub shape: SweepShape,
    /// The smallest working set of a CPU; if not given, 4 KiB.
    pub min: Option<Bytes>,
    /// The largest; if not given, 1 GiB or what the memory limits allow.
    pub max: Option<Bytes>,
    /// Sizes in each doubling; if not given, 4.
    pub points_per_octave: Option<u32>,
    /// What to measure. If empty: latency and bandwidth.
    pub metrics: Vec<Metric>,
    /// Distance between chased lines.
    pub stride: Option<Bytes>,
    /// Chase window of the window-local order.
    pub window: Option<Bytes>,
    /// Order of the chase; if not given, window-local.
    pub order: Option<ChaseOrder>,
    /// What loaders load and store.
    pub load: LoadSpec,
}

/// Whose working sets are swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SweepShape {
    /// That of one CPU: the first of [`Spec::cpus`].
    #[default]
    One,
    /// Those of the CPUs of each last-level cache. They load together, and the first of them chases.
    PerDomain,
    /// Those of all CPUs. They load together, and the first of them chases.
    AllCpus,
}

/// The options of a health check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuickSpec {
    /// Bytes of a chase's buffer and of each loader's.
    pub buffer: Option<Bytes>,
}

/// The options of a comparison of prefetchers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrefetchSpec {
    /// Bytes of the chase's buffer and of each reader's.
    pub buffer: Option<Bytes>,
}

/// The options of the suite for persistent memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PmemSpec {
    /// Bytes of the chase's file and of each loader's.
    pub file: Option<Bytes>,
    /// Directories whose files are measured, one after the other.
    pub directories: Vec<MemoryDir>,
    /// Nodes whose CPUs measure; if not given, all of them.
    pub cpu_nodes: Option<IdSet>,
    /// Also the bandwidth of growing numbers of CPUs.
    pub ramp: bool,
    /// Also latency under load.
    pub loaded: bool,
}

/// The options of a comparison of tiers of memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TiersSpec {
    /// Bytes of a chase's buffer and of each loader's.
    pub buffer: Option<Bytes>,
    /// Length of a chase, instead of a time.
    pub hops: Option<Hops>,
    /// Also time batches of this many hops (1, 8 or 64) for a histogram.
    pub histogram: Option<u32>,
    /// What loaders load and store.
    pub load: LoadSpec,
}

/// How to chase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChaseSpec {
    /// Bytes of the buffer.
    pub buffer: Option<Bytes>,
    /// Distance between chased lines.
    pub stride: Option<Bytes>,
    /// Chase window of the window-local order.
    pub window: Option<Bytes>,
    /// CPU that touches the buffer first; the buffer is on that CPU's node.
    pub touch: Option<u32>,
    /// Length of the chase, instead of a time.
    pub hops: Option<Hops>,
    /// Also time batches of this many hops (1, 8 or 64) for a histogram.
    pub histogram: Option<u32>,
}

/// What loaders load and store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadSpec {
    /// Mixes of traffic.
    pub mixes: Vec<Mix>,
    /// Width of loads and stores.
    pub width: WidthRequest,
}

/// The traffic of bandwidth and of latency under load.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrafficSpec {
    /// What they load and store.
    pub load: LoadSpec,
    /// Bytes of each loader's buffer.
    pub buffer: Option<Bytes>,
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
    /// Content of the buffers: these lines in turn, repeated. Stores write the first of them.
    pub contents: Vec<LineContent>,
    /// Lines that a loader loads and stores between two injection delays, by mix; four for a mix that is not named.
    pub burst_lines: BTreeMap<Mix, f64>,
    /// The work of single CPUs. If any is given, all other CPUs are idle.
    pub threads: Vec<ThreadSpec>,
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

/// Which width of loads and stores to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WidthRequest {
    /// The one that measures fastest.
    #[default]
    Best,
    /// This one.
    Is(Width),
}
