//! What is asked of a fleet: which hosts are slow, what is usual, what changed.

use std::path::PathBuf;

use clap::Args;
use memgauge_analysis::fleet::FleetBaseline;
use memgauge_render::Outliers;

use crate::cli::options::without_effect;
use crate::cli::output::{Destination, FigureArgs, shows};

const OUTLIERS_HELP: &str = "\
Each host is compared with the hosts that have its hardware, firmware and kernel; where these are fewer than eight, with those that have \
its hardware and firmware, then with those that have its hardware. Only the latest value of each number of a host counts.

A host is named if a number is worse than the median by more than 3 %, by more than 3.5 robust standard deviations and by more than both \
intervals, and so clearly that at most 5 % of the named hosts are named by chance. That holds for normally distributed numbers; with heavy tails \
it is more. Chance does not repeat: measure a named host again. A host whose numbers are missing or degraded is unknown and does not \
pass. If hosts of one kind fall into two populations, the property that separates them is named.

Examples:
  memgauge fleet outliers fleet/
  memgauge fleet outliers fleet/ -v              every host, every slow number
  memgauge fleet outliers fleet/ -q -o slow.svg  every host where some are slow
  memgauge fleet outliers fleet/ --format json | jq -r '.slow[].host'

Exit status:
  0    no host is slower than its siblings
  1    no host is slower, but some are unknown, or fall into two populations
  2    some hosts are slower than their siblings
  4    the fleet is empty, or cannot be read
  64   wrong usage";

/// Which fleet, and how to show what was found.
#[derive(Debug, Args)]
#[command(
    mut_arg("panels", without_effect),
    mut_args(|arg| if arg.get_id() == "output" { shows::<Outliers<'_>>(arg) } else { arg }),
    after_help = OUTLIERS_HELP
)]
pub(crate) struct OutliersArgs {
    /// The fleet's folder
    #[arg(value_name = "FLEET")]
    pub(crate) fleet: PathBuf,
    #[command(flatten)]
    pub(crate) output: FleetOutput,
    #[command(flatten)]
    pub(crate) figure: FigureArgs,
}

const BASELINE_HELP: &str = "\
For each group of eight hosts and more, and each number: the median, how much hosts differ, and the value beyond which a host is flagged. \
Groups are of three levels: hosts that have hardware, firmware and kernel in common; hardware and firmware; hardware.

Examples:
  memgauge fleet baseline fleet/
  memgauge fleet baseline fleet/ -q -o baseline.json
  memgauge quick --baseline baseline.json                 judge a host by it

Exit status:
  0    shown
  4    no eight hosts are alike, or the fleet cannot be read
  64   wrong usage";

/// Which fleet, and how to show its baseline.
#[derive(Debug, Args)]
#[command(after_help = BASELINE_HELP)]
pub(crate) struct BaselineArgs {
    /// The fleet's folder
    #[arg(value_name = "FLEET")]
    pub(crate) fleet: PathBuf,
    #[command(flatten)]
    pub(crate) output: FleetOutput,
}

const HISTORY_HELP: &str = "\
Change points are found in the logarithms of each number's values over time (PELT, with the noise from run to run). Changes below 3 % are \
not shown, and a single run that differs is ignored. A number needs six values.

Where several machines have one name, their machine ids are listed.

Examples:
  memgauge fleet history fleet/ --host n17
  memgauge fleet history fleet/ --host n17 -v          levels of every number
  memgauge fleet history fleet/ --host n17 -o n17.csv  every value of every run
  memgauge fleet history fleet/ --host 3fa2c1d09e11    one of two with one name

Exit status:
  0    shown
  4    the fleet is empty, or cannot be read
  64   wrong usage, or no single host has this name or machine id";

/// Which host of which fleet, and how to show its history.
#[derive(Debug, Args)]
#[command(after_help = HISTORY_HELP)]
pub(crate) struct HistoryArgs {
    /// The fleet's folder
    #[arg(value_name = "FLEET")]
    pub(crate) fleet: PathBuf,
    /// The host's name, or the first eight or more digits of its machine id
    #[arg(long, value_name = "HOST")]
    pub(crate) host: String,
    /// Show all machines that HOST means as one: a host that was installed again, or renamed
    #[arg(long)]
    pub(crate) as_one: bool,
    #[command(flatten)]
    pub(crate) output: FleetOutput,
}

/// Where an answer goes.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "Output",
    mut_args(shows::<FleetBaseline>),
    mut_arg("quiet", |arg| arg.help("Print only the first line"))
)]
pub(crate) struct FleetOutput {
    #[command(flatten)]
    pub(crate) to: Destination,
    /// Show everything: long lists whole, and each number
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
