//! The native command line → [`Spec`]. One definition an option: name, help and effect side by side.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use memgauge_core::spec::{BandwidthShape, LatencyShape, Spec, Task};
use memgauge_core::traffic::Mix;
use memgauge_core::units::{Bytes, IdSet, parse_duration};

pub(crate) use count::CountArgs;

mod count;
mod curve;
mod loops;
pub(crate) mod prefetch;
mod probe;
mod quick;
mod scan;
mod sweep;
mod threads;
mod traffic;
mod values;

pub(crate) use loops::LoopRequest;
pub(crate) use values::{FormatArg, MOST_CYCLES};
use values::{Pages, WidthArg, parse_gbs, parse_percent};

use crate::quick::References;

const SUITE_EXAMPLES: &str = "\
Examples:
  memgauge                                   measure everything, in under a minute on a small machine
  memgauge -o before.json                    the same, and keep the result
  memgauge latency --matrix                  idle latency from every node to every node
  memgauge bandwidth --mix 2:1 --cpu 0-7     one mix of traffic from eight CPUs
  memgauge loaded --mix all-reads --mix 2:1  two curves of latency under load
  memgauge --plan                            say what would be done, and how long it would take
  memgauge quick                             a verdict in under 45 s
  memgauge render before.json                show a saved result

Exit status: 0 measured, 1 measured in part, 3 memory did not keep what was written (scan), 4 could not measure, 64 wrong usage, 130 interrupted.";

/// Measures how this machine's memory behaves: latency, bandwidth, latency under load, cache-to-cache transfers.
///
/// Without a command the whole suite is measured. Needs no root; says what it could not do, and why.
#[derive(Debug, Parser)]
#[command(name = "memgauge", version, args_conflicts_with_subcommands = true, after_help = SUITE_EXAMPLES, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    suite: SuiteArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the machine as memgauge sees it: CPUs, caches, memory nodes, page pools, and what is limited here.
    Info(InfoArgs),
    /// Measure idle latency: one CPU and node, or all of them.
    Latency(LatencyArgs),
    /// Measure bandwidth: one mix of traffic, all mixes, a node matrix, or 1 to n CPUs.
    Bandwidth(BandwidthArgs),
    /// Measure latency while other CPUs load memory, from idle to saturation.
    Loaded(LoadedArgs),
    /// Measure transfers from one CPU's cache to another's.
    C2c(C2cArgs),
    /// Check the machine's memory in under 45 s: a verdict, findings with advice, and an exit status for schedulers.
    Quick(quick::QuickArgs),
    /// Measure what a file tells each CPU to do.
    Run(threads::RunArgs),
    /// Measure the bandwidth of every GiB of free memory, find weak regions, and check what memory keeps.
    Scan(scan::ScanArgs),
    /// Measure latency and bandwidth over the working set, and find the caches in them.
    Sweep(sweep::SweepArgs),
    /// Read a buffer from begin to end: bandwidth of one thread, with a checksum of what was read.
    Stream(loops::StreamArgs),
    /// Follow pointers through a buffer: nanoseconds per hop of one thread, with the place where it ended.
    Chase(loops::ChaseArgs),
    /// Count hardware events of a program and its children: miss rates, parallelism, latency per miss.
    Count(CountArgs),
    /// Show, compare and switch hardware prefetchers.
    Prefetch(prefetch::PrefetchArgs),
    /// Show a saved result in another format.
    Render(RenderArgs),
    /// Take the command lines of Intel MLC and print its tables: memgauge mlc --help, man mlc.
    #[command(disable_help_flag = true)]
    Mlc(MlcArgs),
}

#[derive(Debug, Args)]
pub(crate) struct MlcArgs {
    /// A mode and letters as mlc takes them, such as --loaded_latency -t5 -W3
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Hardware counters, for the commands that can have them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Counters")]
struct Counting {
    /// Count hardware events around exactly the windows that are measured: miss rates, parallelism, latency per miss, DRAM bytes. What this
    /// machine cannot count is left out, and a note says why
    #[arg(long)]
    counters: bool,
}

/// Where to measure.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where")]
struct Where {
    /// CPUs to measure from, such as 0-3,8 [default: all that this process may use]
    #[arg(long, value_name = "LIST")]
    cpu: Option<IdSet>,
    /// Memory nodes to measure, such as 0,2 [default: all that this process may use]
    #[arg(long, value_name = "LIST")]
    node: Option<IdSet>,
    /// Use only the first hardware thread of each core
    #[arg(long)]
    one_thread_per_core: bool,
}

/// Which memory.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory")]
struct Memory {
    /// Bytes of the chase's buffer, or of each CPU's buffer for bandwidth: 512M, 2G, 16K [default: four times the caches]
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages
    #[arg(long, value_name = "KIND", default_value = "auto")]
    pages: Pages,
}

/// Which files, for the commands whose buffers can be files.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory")]
struct Files {
    /// Take all buffers from files in DIR instead: persistent memory (a file system mounted with -o dax), a tmpfs, or the page cache of any
    /// other file system, which is DRAM. The files have no names and are gone afterwards
    #[arg(long, value_name = "DIR", conflicts_with = "machine")]
    memory_dir: Option<PathBuf>,
}

/// How to chase.
#[derive(Debug, Args)]
#[command(next_help_heading = "Chase")]
struct Chase {
    /// Window in which the window-local chase is random [default: 512K; for c2c half of an L2]
    #[arg(long, value_name = "SIZE")]
    window: Option<Bytes>,
    /// Distance between chased lines [default: two lines]
    #[arg(long, value_name = "SIZE")]
    stride: Option<Bytes>,
}

/// What to load with.
#[derive(Debug, Args)]
#[command(next_help_heading = "Traffic")]
struct Load {
    /// Mix of traffic: all-reads, 9:1, 4:1, 3:1, 3:1-x2, 2:1, 1:1, nt-write, 3:1-nt, 2:1-nt-x1, triad (2:1-nt), 1:1-nt, copy, fill; may be repeated
    #[arg(long = "mix", value_name = "MIX", value_delimiter = ',')]
    mixes: Vec<Mix>,
    /// Width of loads and stores; best = what measures fastest here
    #[arg(long, default_value = "best")]
    width: WidthArg,
    /// What all memory of the machine could transfer at most, in GB/s: populated channels x MT/s x 8 B / 1000; bandwidths are judged by it
    /// [default: what firmware states of its memory devices, which only root may read]
    #[arg(long = "limit", value_name = "GB/s", value_parser = parse_gbs)]
    peak_gbs: Option<f64>,
}

/// How long and how exactly.
#[derive(Debug, Args)]
#[command(next_help_heading = "Precision")]
struct Stop {
    /// Measure each cell for exactly this long: 2s, 500ms
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    time: Option<Duration>,
    /// The most time to measure one cell [default: 4s; suite 0.48s, quick 0.5s, large matrices 1s, sweep 0.25s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "time")]
    budget: Option<Duration>,
    /// End the whole run after this time; cells get less, and what is not measured by then is left out [default: none, quick: 45s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    within: Option<Duration>,
    /// Stop when the 95 % interval is within this of the median: 1%, 0.5% [default: 1%; quick 1.5%, sweep 2%, scan 5%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    confidence: Option<f64>,
    /// Seed of the random orders, to repeat a run exactly
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// What to print.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Format on standard output
    #[arg(long, default_value = "text")]
    pub(crate) format: FormatArg,
    /// Also write to FILE, in the format of its ending (.txt, .json; figures: .svg, .png, .pdf); may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// No progress bar, and no text on standard output
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Plan instead of measuring.
#[derive(Debug, Args)]
#[command(next_help_heading = "Plan")]
pub(crate) struct Planning {
    /// Say what would be done and how long it would take, and measure nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// Plan for a recorded machine: a folder that holds its sys/ and proc/
    #[arg(long, value_name = "DIR", requires = "plan")]
    pub(crate) machine: Option<PathBuf>,
}

/// What every measuring command takes.
#[derive(Debug, Args)]
struct Common {
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    stop: Stop,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    planning: Planning,
}

#[derive(Debug, Args)]
struct SuiteArgs {
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    prefetch: prefetch::Prefetch,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// Show a recorded machine: a folder that holds its sys/ and proc/
    #[arg(long, value_name = "DIR")]
    pub(crate) machine: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  memgauge latency                        one CPU, its own node
  memgauge latency --matrix               every node with CPUs to every node with memory
  memgauge latency --size 16K             the first-level cache
  memgauge latency --cpu 8 --node 1 --pages 4k
  memgauge latency --histogram 1          how single loads are distributed
  memgauge latency --memory-dir /mnt/pmem")]
pub(crate) struct LatencyArgs {
    /// Every node with CPUs to every node with memory
    #[arg(long)]
    matrix: bool,
    /// Every CPU to its own node, or to the node named
    #[arg(long, conflicts_with = "matrix")]
    per_cpu: bool,
    #[command(flatten)]
    chase: Chase,
    #[command(flatten)]
    idle: probe::Idle,
    #[command(flatten)]
    counting: Counting,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    prefetch: prefetch::Prefetch,
    #[command(flatten)]
    files: Files,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  memgauge bandwidth                      all CPUs read their own nodes' memory
  memgauge bandwidth --peak               every mix of reads and writes
  memgauge bandwidth --matrix             every node with CPUs to every node with memory
  memgauge bandwidth --ramp --mix 2:1     1, 2, 4 ... CPUs
  memgauge bandwidth --search             the highest bandwidth of each mix
  memgauge bandwidth --access random --mix all-reads,2:1
  memgauge bandwidth --line check --time 60s
  memgauge bandwidth --cpu 0 --mix triad --width avx2")]
pub(crate) struct BandwidthArgs {
    /// Every node with CPUs to every node with memory
    #[arg(long, group = "shape", conflicts_with = "delays")]
    matrix: bool,
    /// Every mix of traffic
    #[arg(long, group = "shape")]
    peak: bool,
    /// 1, 2, 4 ... all CPUs
    #[arg(long, group = "shape", conflicts_with = "delays")]
    ramp: bool,
    /// The highest of each mix over several numbers of CPUs and injection delays: requests that crowd a controller can cost bandwidth
    #[arg(long, group = "shape", conflicts_with = "delays")]
    search: bool,
    /// Injection delays in core cycles between bursts of four lines, a result for each [default: none]
    #[arg(long = "delay", value_name = "CYCLES", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_CYCLES)))]
    delays: Vec<u32>,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    shape: traffic::Shape,
    #[command(flatten)]
    signal: probe::Signal,
    #[command(flatten)]
    counting: Counting,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    prefetch: prefetch::Prefetch,
    #[command(flatten)]
    files: Files,
}

#[derive(Debug, Args)]
#[command(after_help = "The first CPU chases; the others load, except the hardware threads of its own core.

Examples:
  memgauge loaded                         points chosen so that they are evenly spread in bandwidth
  memgauge loaded --mix all-reads,2:1     a curve for each mix
  memgauge loaded --delay 0,100,500,2000  points at these delays
  memgauge loaded --at 50%,75%,90%        and the latency at these shares of the peak bandwidth
  memgauge loaded --load-node 2           the chase stays in its node while node 2 is loaded")]
pub(crate) struct LoadedArgs {
    /// Injection delays in core cycles between bursts of four lines [default: chosen while measuring]
    #[arg(long = "delay", value_name = "CYCLES", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_CYCLES)))]
    delays: Vec<u32>,
    #[command(flatten)]
    curve: curve::Curve,
    #[command(flatten)]
    chase: Chase,
    #[command(flatten)]
    beside: probe::Beside,
    #[command(flatten)]
    signal: probe::Signal,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    shape: traffic::Shape,
    #[command(flatten)]
    counting: Counting,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    prefetch: prefetch::Prefetch,
    #[command(flatten)]
    files: Files,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  memgauge c2c                            one pair for each way of being near or far
  memgauge c2c --matrix --cpu 0-7         every pair of eight CPUs
  memgauge c2c --node-matrix              modified lines from every node to every other
  memgauge c2c --reader 0 --holder 5 --node 1     one pair, lines homed on node 1
  memgauge c2c --reader 0 --holder 5 --sharer 6   the same pair, once CPU 6 has loaded the lines too")]
pub(crate) struct C2cArgs {
    #[command(flatten)]
    transfer: probe::Transfer,
    #[command(flatten)]
    chase: Chase,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    prefetch: prefetch::Prefetch,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  memgauge render before.json                      show a saved result
  memgauge render before.json -q -o before.pdf     draw it
  memgauge render before.json after.json -q -o both.svg")]
pub(crate) struct RenderArgs {
    /// Results that memgauge wrote as JSON; - reads standard input. Figures show several results together, named by their files; text and
    /// JSON show one after another
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What a measuring command line means.
pub(crate) struct Request {
    /// What was asked, but for what only the kernel can say of `memory_dir`.
    pub(crate) spec: Spec,
    pub(crate) memory_dir: Option<PathBuf>,
    pub(crate) output: Output,
    pub(crate) planning: Planning,
    /// What a health check is compared with; `None` for other commands.
    pub(crate) quick: Option<References>,
}

impl Where {
    fn apply(self, spec: &mut Spec) {
        spec.cpus = self.cpu;
        spec.nodes = self.node;
        spec.one_thread_per_core = self.one_thread_per_core;
    }
}

impl Memory {
    fn apply(self, spec: &mut Spec) {
        spec.size = self.size;
        spec.pages = self.pages.into();
    }
}

impl Chase {
    fn apply(self, spec: &mut Spec) {
        spec.window = self.window;
        spec.stride = self.stride;
    }
}

impl Load {
    fn apply(self, spec: &mut Spec) {
        let mut mixes = self.mixes;
        let mut seen = std::collections::BTreeSet::new();
        mixes.retain(|m| seen.insert(*m));
        spec.mixes = mixes;
        spec.width = self.width.into();
        spec.peak_gbs = self.peak_gbs;
    }
}

impl Stop {
    fn apply(self, spec: &mut Spec) {
        spec.time = self.time;
        spec.budget = self.budget;
        spec.within = self.within;
        spec.confidence = self.confidence;
        spec.seed = self.seed;
    }
}

impl Common {
    fn request(self, mut spec: Spec) -> Request {
        self.place.apply(&mut spec);
        self.memory.apply(&mut spec);
        self.stop.apply(&mut spec);
        Request { spec, memory_dir: None, output: self.output, planning: self.planning, quick: None }
    }
}

impl Files {
    fn apply(self, request: Request) -> Request {
        Request { memory_dir: self.memory_dir, ..request }
    }
}

impl SuiteArgs {
    fn request(self) -> Request {
        let mut spec = Spec::new(Task::Suite);
        self.prefetch.apply(&mut spec);
        self.load.apply(&mut spec);
        self.common.request(spec)
    }
}

impl LatencyArgs {
    fn request(self) -> Request {
        let shape = match (self.matrix, self.per_cpu) {
            (true, _) => LatencyShape::Matrix,
            (_, true) => LatencyShape::PerCpu,
            _ => LatencyShape::One,
        };
        let mut spec = Spec::new(Task::Latency(shape));
        spec.counters = self.counting.counters;
        self.prefetch.apply(&mut spec);
        self.chase.apply(&mut spec);
        self.idle.apply(&mut spec);
        self.files.apply(self.common.request(spec))
    }
}

impl BandwidthArgs {
    fn request(self) -> anyhow::Result<Request> {
        let shape = match (self.matrix, self.peak, self.ramp, self.search) {
            (true, ..) => BandwidthShape::Matrix,
            (_, true, ..) => BandwidthShape::Peak,
            (_, _, true, _) => BandwidthShape::Ramp,
            (.., true) => BandwidthShape::Search,
            _ => BandwidthShape::One,
        };
        let mut spec = Spec::new(Task::Bandwidth(shape));
        spec.counters = self.counting.counters;
        self.prefetch.apply(&mut spec);
        self.load.apply(&mut spec);
        self.shape.apply(&mut spec.traffic)?;
        self.signal.apply(&mut spec);
        spec.delays = self.delays;
        Ok(self.files.apply(self.common.request(spec)))
    }
}

impl LoadedArgs {
    fn request(self) -> anyhow::Result<Request> {
        let mut spec = Spec::new(Task::Loaded);
        spec.counters = self.counting.counters;
        self.curve.apply(&mut spec);
        self.prefetch.apply(&mut spec);
        self.chase.apply(&mut spec);
        self.beside.apply(&mut spec);
        self.signal.apply(&mut spec);
        self.load.apply(&mut spec);
        self.shape.apply(&mut spec.traffic)?;
        spec.delays = self.delays;
        Ok(self.files.apply(self.common.request(spec)))
    }
}

impl C2cArgs {
    fn request(self) -> Request {
        let mut spec = Spec::new(Task::C2c(self.transfer.shape()));
        self.prefetch.apply(&mut spec);
        self.chase.apply(&mut spec);
        self.transfer.apply(&mut spec);
        self.common.request(spec)
    }
}

/// What was asked.
pub(crate) enum Asked {
    /// Measure, or plan to.
    Measure(Box<Request>),
    /// Show the machine.
    Info(InfoArgs),
    /// Count a program.
    Count(Box<CountArgs>),
    /// Run one loop.
    Loop(Box<LoopRequest>),
    /// Show a saved result.
    Render(RenderArgs),
    /// Show or switch prefetchers.
    Prefetch(prefetch::PrefetchArgs),
    /// Do what mlc would with these arguments.
    Mlc(Vec<OsString>),
}

impl Cli {
    /// # Errors
    /// When a file that the command line names cannot be read or is wrong.
    pub(crate) fn asked(self) -> anyhow::Result<Asked> {
        let request = match self.command {
            None => self.suite.request(),
            Some(Command::Latency(args)) => args.request(),
            Some(Command::Bandwidth(args)) => args.request()?,
            Some(Command::Loaded(args)) => args.request()?,
            Some(Command::Run(args)) => args.request()?,
            Some(Command::C2c(args)) => args.request(),
            Some(Command::Scan(args)) => args.request(),
            Some(Command::Sweep(args)) => args.request(),
            Some(Command::Quick(args)) => args.request(),
            Some(Command::Prefetch(prefetch::PrefetchArgs { action: Some(prefetch::Action::Compare(args)), .. })) => args.request(),
            Some(Command::Prefetch(args)) => return Ok(Asked::Prefetch(args)),
            Some(Command::Info(args)) => return Ok(Asked::Info(args)),
            Some(Command::Count(args)) => return Ok(Asked::Count(Box::new(args))),
            Some(Command::Stream(args)) => return Ok(Asked::Loop(Box::new(args.request()))),
            Some(Command::Chase(args)) => return Ok(Asked::Loop(Box::new(args.request()))),
            Some(Command::Render(args)) => return Ok(Asked::Render(args)),
            Some(Command::Mlc(args)) => return Ok(Asked::Mlc(args.arguments)),
        };
        Ok(Asked::Measure(Box::new(request)))
    }
}

#[cfg(test)]
mod tests;
