//! The arguments of `memgauge where`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use memgauge_model::experiment_table::PanelName;
use memgauge_model::units::parse_duration;

use super::output::{ReportOptions, only_panels};

const AFTER_HELP: &str = "\
Counts the pages of processes by node (numa_maps, smaps), sees on which CPUs their threads run, and says what an access costs by the machine's own \
latencies: now, and with the best placement that fits. Prices come from FILE, from the last check of this machine that has them (memgauge quick keeps \
checks), or are measured. Nothing is moved; your own processes need no root.

With CMD, the command runs, it and its children are observed until it ends, and what is shown is how they lay when they had most memory. The command \
has standard output to itself, and memgauge exits with its status (128 + N if signal N ended it, 127 if there is no such program, 126 if it cannot be \
run).

Examples:
  memgauge where 4711                        a process, for a second
  memgauge where --measure 4711              with prices measured first
  memgauge where --cgroup system.slice/db.service
  memgauge where --touched 4711              only pages that it uses meanwhile
  memgauge where --every 1s -o moves.png 4711
  memgauge where -- ./app input              a program from start to end

Exit status:
  0    all processes were seen
  1    some were not
  4    none was
  64   wrong usage
  130  interrupted before anything was seen";

#[derive(Debug, Args)]
#[command(
    mut_arg("panels", |arg| only_panels(arg, &PanelName::OF_RESIDENCY)),
    group(ArgGroup::new("whose").args(["pids", "cgroup", "command"]).required(true)),
    after_help = AFTER_HELP
)]
pub(crate) struct WhereArgs {
    /// Processes by number
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pids: Vec<u32>,
    /// All processes of a control group and of those below it: its folder, or its path below /sys/fs/cgroup
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Read where memory is every DURATION, until Ctrl-C or until the processes end [default: once; of a command every second]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) every: Option<Duration>,
    /// Observe for DURATION [default: 1s]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, conflicts_with = "command")]
    pub(crate) time: Option<Duration>,
    /// Latencies and bandwidths by node from FILE, a result of this machine as JSON (memgauge latency --matrix)
    #[arg(long, value_name = "FILE", conflicts_with = "measure")]
    pub(crate) prices: Option<PathBuf>,
    /// Measure latencies and bandwidths by node first, in at most 10 s: it loads all CPUs
    #[arg(long)]
    pub(crate) measure: bool,
    /// Count only pages that were touched while they were observed: the kernel is asked to forget earlier accesses (/proc/PID/clear_refs)
    #[arg(long, alias = "sample")]
    pub(crate) touched: bool,
    /// A program and its arguments, observed from start to end
    #[arg(last = true, value_name = "CMD ARGS")]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}
