//! What a measuring command line asks for.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use memgauge_core::spec::Spec;
use memgauge_core::units::parse_duration;

use super::options::{Counting, Files, Pages, Placement, Planning, Precision, Prefetch, Size};
use super::output::{Output, ReportOptions};
use crate::exit::UsageError;
use crate::host::HostIdentity;

/// A measurement, or a plan for one.
pub(crate) struct Request {
    /// Everything but `memory_dir`, which only the kernel can describe.
    pub(crate) spec: Spec,
    /// The directory whose files are the buffers.
    pub(crate) memory_dir: Option<PathBuf>,
    pub(crate) output: Output,
    pub(crate) identity: HostIdentity,
    pub(crate) planning: Planning,
    /// Keep the kernels that were tried in the result.
    pub(crate) verbose: bool,
    /// How long to wait for idle CPUs.
    pub(crate) wait_quiet: Option<Duration>,
    /// What a health check compares with; `None` for other commands.
    pub(crate) quick: Option<ReferenceFiles>,
}

/// Files that a health check compares with.
#[derive(Debug, Default)]
pub(crate) struct ReferenceFiles {
    /// A saved result.
    pub(crate) baseline: Option<PathBuf>,
    /// Rules.
    pub(crate) rules: Option<PathBuf>,
}

impl Request {
    /// # Errors
    /// When labels are wrong.
    pub(super) fn new(spec: Spec, options: RunOptions) -> Result<Self, UsageError> {
        let RunOptions { wait_quiet, report: ReportOptions { output, host }, verbose, planning } = options;
        Ok(Self { spec, memory_dir: None, output, identity: host.request()?, planning, verbose, wait_quiet, quick: None })
    }

    /// Takes the buffers from files, if that is requested.
    pub(super) fn with_files(self, files: Files) -> Self {
        Self { memory_dir: files.memory_dir, ..self }
    }
}

/// What every command takes that measures by a plan.
#[derive(Debug, Args)]
pub(super) struct RunOptions {
    /// Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Precision")]
    wait_quiet: Option<Duration>,
    #[command(flatten)]
    report: ReportOptions,
    /// Also write to JSON which kernels were tried, and how fast each was
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,
    #[command(flatten)]
    planning: Planning,
}

/// What most measuring commands take.
#[derive(Debug, Args)]
pub(super) struct Common {
    #[command(flatten)]
    placement: Placement,
    #[command(flatten)]
    size: Size,
    #[command(flatten)]
    pages: Pages,
    #[command(flatten)]
    precision: Precision,
    #[command(flatten)]
    run: RunOptions,
}

impl Common {
    pub(super) fn request(self, mut spec: Spec) -> Result<Request, UsageError> {
        self.placement.apply(&mut spec);
        self.size.apply(&mut spec);
        self.pages.apply(&mut spec);
        self.precision.apply(&mut spec);
        Request::new(spec, self.run)
    }
}

/// What latency, bandwidth and both together take besides.
#[derive(Debug, Args)]
pub(super) struct Measuring {
    #[command(flatten)]
    counting: Counting,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    prefetch: Prefetch,
    #[command(flatten)]
    files: Files,
}

impl Measuring {
    pub(super) fn request(self, mut spec: Spec) -> Result<Request, UsageError> {
        spec.counters = self.counting.counters;
        self.prefetch.apply(&mut spec);
        Ok(self.common.request(spec)?.with_files(self.files))
    }
}
