//! `memgauge prefetch`: its command line.

use clap::{Args, Subcommand};

use super::output::{ReportOptions, text_only};
use super::request::Common;

const AFTER_HELP: &str = "\
Only registers that vendors document are used: MSR 0x1a4 of Intel CPUs, with the bits of the model, and MSR 0xc0000108 of AMD CPUs that \
announce it. On Linux this needs root, CAP_SYS_RAWIO and the kernel's msr module (modprobe msr); \
on Windows a driver, which memgauge does not have. Writing marks the kernel as tainted until the next \
boot.

Examples:
  memgauge prefetch                       what is on and what is off
  memgauge prefetch status --format json
  memgauge prefetch compare               each node with them on and off
  memgauge prefetch off                   until 'prefetch restore' or a boot
  memgauge latency --prefetch off         off during one run";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, mut_args(text_only), after_help = AFTER_HELP)]
pub(super) struct PrefetchArgs {
    #[command(subcommand)]
    pub(super) command: Option<PrefetchCommand>,
    #[command(flatten)]
    pub(super) report: ReportOptions,
}

#[derive(Debug, Subcommand)]
pub(super) enum PrefetchCommand {
    #[command(flatten)]
    Action(PrefetchAction),
    /// Measure with prefetchers on and off: one CPU's bandwidth and latency from every node; puts them back.
    #[command(
        display_order = 1,
        after_help = "\
The first CPU chases, in sequential and in random order. The CPUs of --cpu read together; without --cpu, the first CPU reads alone."
    )]
    Compare(Box<Common>),
}

/// What to do with the registers.
#[derive(Debug, Subcommand)]
pub(crate) enum PrefetchAction {
    /// Show which prefetchers of which CPUs are on.
    #[command(display_order = 0, mut_args(text_only))]
    Status(ReportOptions),
    /// Switch all documented prefetchers of all CPUs off, until restore or the next boot.
    #[command(mut_args(text_only))]
    Off(ReportOptions),
    /// Switch all documented prefetchers of all CPUs on, until restore or the next boot.
    #[command(mut_args(text_only))]
    On(ReportOptions),
    /// Put back what off, on, or a run that was killed has changed.
    #[command(mut_args(text_only))]
    Restore(ReportOptions),
    /// The process that restores registers when a run is killed.
    #[command(hide = true)]
    Guard {
        /// The change to guard
        id: String,
    },
}
