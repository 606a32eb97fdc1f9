//! What a measuring command line asks for.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use memgauge_model::spec::Spec;
use memgauge_model::units::{Bytes, parse_duration};

use super::options::{CounterOptions, Pages, Placement, Precision, Prefetch};
use super::output::ReportOptions;

/// A measurement, or a plan for one.
pub(crate) struct Request {
    /// Everything but directories, which only the kernel can describe.
    pub(crate) spec: Spec,
    /// The directory whose files are the buffers.
    pub(crate) memory_dir: Option<PathBuf>,
    pub(crate) run: RunOptions,
    /// What a health check compares with; `None` for other commands.
    pub(crate) quick: Option<ReferenceFiles>,
    /// Where the result of a scheduled health check is kept.
    pub(crate) state: Option<StateRequest>,
    /// Whether a health check is compared with earlier ones of this machine, and kept for the next.
    pub(crate) history: bool,
    /// What the suite for persistent memory measures, and where its files go; `None` for other commands.
    pub(crate) pmem: Option<PmemPaths>,
    /// Set the kernel's interleave weights to those that were found.
    pub(crate) apply_weights: bool,
}

/// Paths of the suite for persistent memory.
pub(crate) struct PmemPaths {
    /// Directories whose files are measured.
    pub(crate) directories: Vec<PathBuf>,
    /// A folder for a file of each run.
    pub(crate) out: Option<PathBuf>,
}

/// Files that a health check compares with.
#[derive(Debug, Args)]
#[command(next_help_heading = "Verdict")]
pub(crate) struct ReferenceFiles {
    /// Compare with a result that memgauge quick wrote as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
    /// Judge by the hosts like this one: a fleet's folder, or what memgauge fleet baseline wrote as JSON
    #[arg(long, value_name = "FLEET")]
    pub(crate) baseline: Option<PathBuf>,
    /// Judge by the rules in FILE (TOML, see below)
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
}

/// A folder that keeps the results of scheduled checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateRequest {
    pub(crate) folder: PathBuf,
    /// How many results stay.
    pub(crate) keep: usize,
    /// How long another check that uses the folder is waited for.
    pub(crate) lock_wait: Duration,
}

impl Request {
    pub(super) fn new(spec: Spec, run: RunOptions) -> Self {
        let spec = Spec { stamp: !run.no_stamp, ..spec };
        Self { spec, memory_dir: None, run, quick: None, state: None, history: false, pmem: None, apply_weights: false }
    }
}

/// What every command takes that measures by a plan.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) report: ReportOptions,
    /// Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Precision")]
    pub(crate) wait_quiet: Option<Duration>,
    /// Take no stamp at the beginning and the end: nothing then tells whether the machine's state changed meanwhile
    #[arg(long, help_heading = "Precision")]
    no_stamp: bool,
    /// Show what would be measured, and for how long; measure nothing
    #[arg(long, help_heading = "Plan")]
    pub(crate) plan: bool,
    /// Plan for a recorded machine: a directory that holds its sys/ and proc/
    #[arg(long, value_name = "DIR", requires = "plan", help_heading = "Plan")]
    pub(crate) machine: Option<PathBuf>,
}

/// What most measuring commands take.
#[derive(Debug, Args)]
pub(super) struct Common {
    #[command(flatten)]
    placement: Placement,
    /// Size of the buffer; for bandwidth, of each CPU's buffer: 512M, 2G, 16K [default: four times the caches]
    #[arg(long, value_name = "SIZE", help_heading = "Memory")]
    pub(super) size: Option<Bytes>,
    #[command(flatten)]
    pages: Pages,
    #[command(flatten)]
    precision: Precision,
    #[command(flatten)]
    run: RunOptions,
}

impl Common {
    pub(super) fn request(self, mut spec: Spec) -> Request {
        self.placement.apply(&mut spec);
        spec.pages = self.pages.pages;
        self.precision.apply(&mut spec);
        Request::new(spec, self.run)
    }
}

/// What latency, bandwidth and both together take besides.
#[derive(Debug, Args)]
pub(super) struct Measuring {
    #[command(flatten)]
    counting: CounterOptions,
    #[command(flatten)]
    pub(super) common: Common,
    #[command(flatten)]
    prefetch: Prefetch,
    /// Use files in DIR as buffers: persistent memory (a file system mounted with -o dax), a tmpfs, or the page cache of any other file
    /// system, which is DRAM. The files have no names and disappear at the end of the run
    #[arg(long, value_name = "DIR", conflicts_with = "machine", help_heading = "Memory")]
    memory_dir: Option<PathBuf>,
}

impl Measuring {
    pub(super) fn request(self, mut spec: Spec) -> Request {
        spec.counters = self.counting.counters;
        spec.prefetch = self.prefetch.prefetch;
        Request { memory_dir: self.memory_dir, ..self.common.request(spec) }
    }
}
