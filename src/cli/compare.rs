//! `memgauge compare`: which results to compare, or what to measure for it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use memgauge_analysis::comparison::Comparison;

use super::options::without_effect;
use super::output::{Output, shows};
use super::values::parse_percent;

const AFTER_HELP: &str = "\
Each side is a list of results that memgauge wrote as JSON, or folders of them; options stand before --. The ratio of medians has a 95 % interval from a bootstrap \
over runs, allocations and bursts. A number is better or worse if a difference is shown although many numbers are compared at once, the same \
if the whole interval is within the margin, and inconclusive otherwise. All together it is inconclusive if no number is worse, but more than \
a quarter of an experiment's latencies or bandwidths are inconclusive.

With --runs, memgauge does the measuring. Results that are named are compared with the machine as it is now. Of two commands it runs the \
first, measures, runs the second, measures, in the order A B B A, so that a drift of the machine does not look like a difference.

Examples:
  memgauge compare --runs 5 --keep before  measure five times
  memgauge compare --runs 5 before         after the change: again, and compare
  memgauge compare before.json after.json
  memgauge compare before/ -- after/
  memgauge compare -q -o change.html before/ -- after/
  memgauge compare --margin 5% monday/*.json -- friday/*.json
  memgauge compare --runs 5 --measure 'latency --budget 1s' \\
      -- sysctl -q kernel.numa_balancing=0 \\
      --- sysctl -q kernel.numa_balancing=1

Exit status:
  0    the same, or better
  1    inconclusive
  2    worse
  4    could not measure
  64   wrong usage
  130  interrupted";

#[derive(Debug, Args)]
#[command(
    mut_args(|arg| match arg.get_id().as_str() {
        "quiet" => arg.help("Print only the verdict, in one line"),
        "verbose" => arg.help("Show every number, also those that are the same"),
        _ => shows::<Comparison>(arg),
    }),
    mut_arg("panels", without_effect),
    after_help = AFTER_HELP
)]
pub(crate) struct CompareArgs {
    /// Results before the change, or folders of them; with exactly two names and no --, the second is after it
    #[arg(value_name = "BEFORE")]
    pub(crate) before: Vec<PathBuf>,
    /// Results after the change, or folders of them; with --runs, nothing, or two commands with --- between them
    #[arg(last = true, value_name = "AFTER")]
    pub(crate) after: Vec<OsString>,
    /// Runs per side: measure the machine now this often, or in the two states that the commands behind -- make, separated by ---
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: Option<u32>,
    /// What memgauge measures with --runs: its own command line; quotes keep a word with spaces together
    #[arg(long, value_name = "ARGS", default_value = "quick", requires = "runs")]
    pub(crate) measure: String,
    /// Keep the results of --runs in this folder, as before-1.json, after-1.json …
    #[arg(long, value_name = "FOLDER", requires = "runs")]
    pub(crate) keep: Option<PathBuf>,
    /// Differences up to this count as none
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = parse_percent)]
    pub(crate) margin: f64,
    /// Compare runs of unlike machines, and runs in different states of the machine, too
    #[arg(long)]
    pub(crate) across: bool,
    /// Seed of the bootstrap
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}
