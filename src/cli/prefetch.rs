//! Options of `memgauge prefetch`, and the option of the measuring commands.

use clap::{Args, Subcommand, ValueEnum};
use memgauge_core::experiment::PrefetchRequest;
use memgauge_core::spec::{Spec, Task};

use super::{Common, Output, Request};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Registers that the makers document are used and no others: MSR 0x1a4 of Intel CPUs, with the bits of the model, and MSR 0xc0000108 of AMD CPUs
that announce it. It takes root, CAP_SYS_RAWIO and the kernel's msr module (modprobe msr). Writing marks the kernel as tainted until it is booted again.

Examples:
  memgauge prefetch                       what is on and what is off
  memgauge prefetch status --format json
  memgauge prefetch compare               bandwidth and latency of each node, prefetchers on and off
  memgauge prefetch off                   off until 'memgauge prefetch restore', or the next boot
  memgauge latency --prefetch off         off for the time of one run"
)]
pub(crate) struct PrefetchArgs {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Show which prefetchers of which CPUs are on.
    Status(OutputOnly),
    /// Measure one CPU's bandwidth and latency from every node with prefetchers on and off, and put them back.
    Compare(Box<CompareArgs>),
    /// Switch all documented prefetchers of all CPUs off, until restore or the next boot.
    Off(OutputOnly),
    /// Switch all documented prefetchers of all CPUs on, until restore or the next boot.
    On(OutputOnly),
    /// Put back what off, on, or a run that was killed has changed.
    Restore(OutputOnly),
    /// The process that restores registers when a run is killed.
    #[command(hide = true)]
    Guard(GuardArgs),
}

#[derive(Debug, Args)]
pub(crate) struct OutputOnly {
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// The change to guard
    pub(crate) id: String,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The first CPU chases, in ascending order and in random order. The CPUs named with --cpu read together; without it, the first reads alone."
)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    common: Common,
}

impl CompareArgs {
    pub(super) fn request(self) -> Request {
        self.common.request(Spec::new(Task::Prefetch))
    }
}

/// What a measuring command does with prefetchers.
#[derive(Debug, Args)]
pub(super) struct Prefetch {
    /// Hardware prefetchers during the run: on and off write documented registers of all CPUs as root and put them back, which taints the kernel
    #[arg(long, value_name = "STATE", default_value = "leave", help_heading = "Where")]
    prefetch: PrefetchArg,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PrefetchArg {
    Leave,
    Off,
    On,
}

impl Prefetch {
    pub(super) fn apply(&self, spec: &mut Spec) {
        spec.prefetch = match self.prefetch {
            PrefetchArg::Leave => PrefetchRequest::Leave,
            PrefetchArg::Off => PrefetchRequest::Off,
            PrefetchArg::On => PrefetchRequest::On,
        };
    }
}
