//! `memgauge prefetch`: its command line.

use clap::{Args, Subcommand};
use memgauge_core::spec::{Spec, Task};

use super::output::ReportOptions;
use super::request::{Common, Request};
use crate::exit::UsageError;

const AFTER_HELP: &str = "\
Only registers that vendors document are used: MSR 0x1a4 of Intel CPUs, with the bits of the model, and MSR 0xc0000108 of AMD CPUs that \
announce it. This needs root, CAP_SYS_RAWIO and the kernel's msr module (modprobe msr). Writing marks the kernel as tainted until the next \
boot.

Examples:
  memgauge prefetch                       what is on and what is off
  memgauge prefetch status --format json
  memgauge prefetch compare               bandwidth and latency of each node, prefetchers on and off
  memgauge prefetch off                   off until 'memgauge prefetch restore' or the next boot
  memgauge latency --prefetch off         off during one run";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub(super) struct PrefetchArgs {
    #[command(subcommand)]
    command: Option<PrefetchCommand>,
    #[command(flatten)]
    report: ReportOptions,
}

#[derive(Debug, Subcommand)]
enum PrefetchCommand {
    /// Show which prefetchers of which CPUs are on.
    Status(OnlyReport),
    /// Measure one CPU's bandwidth and latency from every node with prefetchers on and off, and put them back.
    Compare(Box<CompareArgs>),
    /// Switch all documented prefetchers of all CPUs off, until restore or the next boot.
    Off(OnlyReport),
    /// Switch all documented prefetchers of all CPUs on, until restore or the next boot.
    On(OnlyReport),
    /// Put back what off, on, or a run that was killed has changed.
    Restore(OnlyReport),
    /// The process that restores registers when a run is killed.
    #[command(hide = true)]
    Guard(GuardArgs),
}

#[derive(Debug, Args)]
struct OnlyReport {
    #[command(flatten)]
    report: ReportOptions,
}

#[derive(Debug, Args)]
struct GuardArgs {
    /// The change to guard
    id: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The first CPU chases, in sequential and in random order. The CPUs of --cpu read together; without --cpu, the first CPU reads alone.")]
struct CompareArgs {
    #[command(flatten)]
    common: Common,
}

/// What to do with the registers.
pub(crate) enum PrefetchAction {
    /// Show them.
    Status(ReportOptions),
    /// Switch prefetchers off.
    Off(ReportOptions),
    /// Switch prefetchers on.
    On(ReportOptions),
    /// Undo what was switched.
    Restore(ReportOptions),
    /// Guard the change with this ID.
    Guard(String),
}

/// A measurement, or an action.
pub(super) enum PrefetchInvocation {
    Compare(Box<Request>),
    Action(PrefetchAction),
}

impl PrefetchArgs {
    pub(super) fn request(self) -> Result<PrefetchInvocation, UsageError> {
        Ok(PrefetchInvocation::Action(match self.command {
            None => PrefetchAction::Status(self.report),
            Some(PrefetchCommand::Status(only)) => PrefetchAction::Status(only.report),
            Some(PrefetchCommand::Off(only)) => PrefetchAction::Off(only.report),
            Some(PrefetchCommand::On(only)) => PrefetchAction::On(only.report),
            Some(PrefetchCommand::Restore(only)) => PrefetchAction::Restore(only.report),
            Some(PrefetchCommand::Guard(guard)) => PrefetchAction::Guard(guard.id),
            Some(PrefetchCommand::Compare(args)) => {
                return Ok(PrefetchInvocation::Compare(Box::new(args.common.request(Spec::new(Task::Prefetch))?)));
            }
        }))
    }
}
