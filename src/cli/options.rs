//! Options that several commands share.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Arg, Args};
use memgauge_model::distribution::DEFAULT_BATCH;
use memgauge_model::experiment::{ChaseOrder, Hops, PageRequest, PrefetchRequest};
use memgauge_model::spec::{ChaseSpec, LoadSpec, Spec, WidthRequest};
use memgauge_model::traffic::Mix;
use memgauge_model::units::{Bytes, IdSet, ParseError, parse_duration};

use super::values::{MixParser, ORDERS, PAGES, PREFETCH, WIDTHS, one_of, parse_gbs, parse_percent};

/// Where to measure.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where")]
pub(super) struct Placement {
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

impl Placement {
    pub(super) fn apply(self, spec: &mut Spec) {
        spec.cpus = self.cpu;
        spec.nodes = self.node;
        spec.one_thread_per_core = self.one_thread_per_core;
    }
}

/// What to do with prefetchers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where")]
pub(super) struct Prefetch {
    /// Hardware prefetchers during the run. As root, on and off write documented registers of all CPUs and put them back afterwards, which
    /// taints the kernel
    #[arg(long, value_name = "STATE", default_value = "leave", value_parser = one_of(&PREFETCH))]
    pub(super) prefetch: PrefetchRequest,
}

/// Which pages the buffers have.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory")]
pub(super) struct Pages {
    /// Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages
    #[arg(long, value_name = "KIND", default_value = "auto", value_parser = one_of(&PAGES))]
    pub(super) pages: PageRequest,
}

/// How long to measure, and how exactly; see [`with_default`].
#[derive(Debug, Args)]
#[command(next_help_heading = "Precision")]
pub(super) struct Precision {
    /// Measure each cell for exactly this long: 2s, 500ms
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    time: Option<Duration>,
    /// Measure one cell for at most this long [default: 4s, or 1s in large matrices]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "time")]
    budget: Option<Duration>,
    /// End the whole run after this time: everything is measured more coarsely until it fits, and the plan says how
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    within: Option<Duration>,
    /// Stop when the 95 % interval is within this share of the median: 0.5%, 2% [default: 1%, in a virtual
    /// machine 5%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    confidence: Option<f64>,
    /// Seed of the random orders; the same seed repeats them exactly
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl Precision {
    pub(super) fn apply(self, spec: &mut Spec) {
        spec.time = self.time;
        spec.budget = self.budget;
        spec.within = self.within;
        spec.confidence = self.confidence;
        spec.seed = self.seed;
    }
}

/// Hardware counters.
#[derive(Debug, Args)]
#[command(next_help_heading = "Counters")]
pub(super) struct CounterOptions {
    /// Count hardware events in exactly the measured windows: miss rates, parallelism, latency per miss, DRAM bytes. Events that this machine
    /// cannot count are left out, and a note says why
    #[arg(long)]
    pub(super) counters: bool,
}

/// Lines that a chase visits, and who touches them first.
#[derive(Debug, Args)]
#[command(next_help_heading = "Chase")]
pub(super) struct ChaseBuffer {
    #[command(flatten)]
    pub(super) lines: ChaseLines,
    // Options that are hidden are for scripts that were written for mlc.
    /// CPU that touches the chase's buffer first; the buffer is on that CPU's node [default: CPUs of the buffer's node]
    #[arg(long, value_name = "N", hide = true)]
    pub(super) touch_cpu: Option<u32>,
}

impl ChaseBuffer {
    /// A chase over these lines of a buffer of this size.
    pub(super) const fn chase(&self, buffer: Option<Bytes>, timing: &ChaseTiming) -> ChaseSpec {
        let ChaseLines { stride, window } = self.lines;
        ChaseSpec { buffer, stride, window, touch: self.touch_cpu, hops: timing.hops, histogram: timing.histogram }
    }
}

/// Lines that a chase visits.
#[derive(Debug, Args)]
#[command(next_help_heading = "Chase")]
pub(super) struct ChaseLines {
    /// Window within which the window-local chase is random [default: 512K]
    #[arg(long, value_name = "SIZE")]
    pub(super) window: Option<Bytes>,
    /// Distance between chased lines [default: two lines]
    #[arg(long, value_name = "SIZE")]
    pub(super) stride: Option<Bytes>,
}

/// The order of a chase.
#[derive(Debug, Args)]
#[command(next_help_heading = "Chase")]
pub(super) struct Order {
    /// Order of the lines that the chase visits
    #[arg(long, value_name = "ORDER", default_value = "window-local", value_parser = one_of(&ORDERS))]
    pub(super) order: ChaseOrder,
}

impl Order {
    /// The order, unless it is the default.
    pub(super) fn not_default(&self) -> Option<ChaseOrder> {
        Some(self.order).filter(|order| *order != ChaseOrder::WindowLocal)
    }
}

/// How a chase is timed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Chase")]
pub(super) struct ChaseTiming {
    /// Chase N hops instead of for a fixed time: exactly N in each of several new buffers, after 20 ms that warm it up, or at least N
    /// for each point of a curve. pass = as many hops as the buffer has lines
    #[arg(long, value_name = "N|pass", value_parser = parse_hops, conflicts_with_all = ["time", "budget"])]
    pub(super) hops: Option<Hops>,
    /// Also time single batches of BATCH hops (1, 8 or 64) and show their distribution [default BATCH: 8]
    #[arg(long, value_name = "BATCH", num_args = 0..=1, default_missing_value = BATCH)]
    pub(super) histogram: Option<u32>,
}

const BATCH: &str = "8";
const _: () = assert!(DEFAULT_BATCH == 8, "the help and the default agree");

/// A number of hops, or `pass`.
fn parse_hops(text: &str) -> Result<Hops, ParseError> {
    match text.trim() {
        "pass" => Ok(Hops::OnePass),
        number => match number.parse() {
            Ok(hops) if hops > 0 => Ok(Hops::Count(hops)),
            _ => Err(ParseError { input: text.into(), expected: "a number of hops above 0, such as 1000000, or 'pass'" }),
        },
    }
}

/// The help of the option that names mixes.
fn mixes() -> String {
    format!("Mix of reads and writes: {}; may be repeated; help says what each of them does", Mix::list(", "))
}

/// What loads memory.
#[derive(Debug, Args)]
#[command(next_help_heading = "Traffic")]
pub(super) struct Load {
    #[arg(long = "mix", value_name = "MIX", value_delimiter = ',', value_parser = MixParser, help = mixes())]
    mixes: Vec<Mix>,
    /// Width of loads and stores; best = the fastest here, as measured
    #[arg(long, default_value = "best", value_parser = one_of(&WIDTHS))]
    width: WidthRequest,
    #[command(flatten)]
    pub(super) limit: Limit,
}

impl Load {
    pub(super) fn spec(mut self) -> LoadSpec {
        let mut seen = BTreeSet::new();
        self.mixes.retain(|m| seen.insert(*m));
        LoadSpec { mixes: self.mixes, width: self.width }
    }
}

/// What bandwidths are judged by.
#[derive(Debug, Args)]
#[command(next_help_heading = "Traffic")]
pub(super) struct Limit {
    /// Peak bandwidth of all the machine's memory, to judge results by: populated channels x MT/s x 8 B / 1000 [default: what firmware
    /// states about the memory devices, which on Linux only root may read]
    #[arg(long = "limit", value_name = "GB/s", value_parser = parse_gbs)]
    pub(super) peak_gbs: Option<f64>,
}

/// Takes an option out of the help of a command where it changes nothing.
pub(crate) fn without_effect(option: Arg) -> Arg {
    option.hide(true)
}

/// Puts a command's own default into the help of an option that several commands share.
pub(super) fn with_default(option: Arg, default: &str) -> Arg {
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    let text = help.split(" [default: ").next().unwrap_or_default();
    option.help(format!("{text} [default: {default}]"))
}
