//! The arguments of `memgauge stamp`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::options::without_effect;
use super::output::{ReportOptions, without_figures};

const AFTER_HELP: &str = "\
A stamp is a few quick probes that tell states of a machine apart: a chase over memory and over the last-level cache, reads by one CPU and by \
all, a transfer between caches, the frequency. Results of memgauge have a stamp at their beginning and at their end, so FILE may be any of \
them. Stamps say whether the state is the same; numbers are never scaled by them.

With CMD, a stamp is taken, the command runs, another stamp is taken: one line on standard error says whether the machine was in the same \
state, and memgauge exits with the command's status (128 + N if signal N ended it, 127 if there is no such program, 126 if it cannot be run).

Examples:
  memgauge stamp                          the state now
  memgauge stamp -o monday.json           keep it
  memgauge stamp --check monday.json      is it the same today?
  memgauge stamp -o run.json -- ./bench   the states before and after a program

Exit status:
  0    taken; with --check, the same state
  1    with --check, another state; the first line says in what
  2    with --check, others use the machine now, so that its state is not known
  4    could not measure; with --check, the two stamps do not tell
  64   wrong usage
  130  interrupted";

#[derive(Debug, Args)]
#[command(mut_arg("verbose", without_effect), mut_args(without_figures), after_help = AFTER_HELP)]
pub(crate) struct StampArgs {
    /// Compare the machine now with the last stamp in FILE, which memgauge wrote as JSON
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) check: Option<PathBuf>,
    /// A program and its arguments: stamps are taken before and after it
    #[arg(last = true, value_name = "CMD ARGS")]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}
