//! The arguments of `memgauge count`.

use std::ffi::OsString;

use clap::Args;

use super::options::without_effect;
use super::output::{ReportOptions, without_figures};

const AFTER_HELP: &str = "\
The program has standard output to itself; the counts go to standard error, and to files with -o. Signals are passed on to the program, \
and memgauge exits with its status: 128 + N if signal N ended it, 127 if there is no such program, 126 if it cannot be run.

An event is one of the kernel's (page-faults, task-clock, cycles, LLC-load-misses), one that sysfs names, a vendor's name from memgauge's \
tables (mem_load_retired.l3_miss, l1d_cache_refill), or a code: cpu/event=0xd1,umask=0x20/ or r20d1.

Examples:
  memgauge count -- ./app input            miss rates, parallelism, latency
  memgauge count -r 10 -- ./app input      medians of ten runs, with intervals
  memgauge count -e page-faults,task-clock -- make
  memgauge count -o counts.json -- ./app";

#[derive(Debug, Args)]
#[command(mut_arg("verbose", without_effect), mut_args(without_figures), after_help = AFTER_HELP)]
pub(crate) struct CountArgs {
    /// Events to count instead of those for the metrics; may be repeated
    #[arg(short, long = "event", value_name = "EVENT,...")]
    events: Vec<String>,
    /// How many times to run the program
    #[arg(short, long = "runs", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD ARGS")]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}

impl CountArgs {
    /// The names of the events, one by one. A comma between slashes belongs to a code.
    pub(crate) fn event_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for list in &self.events {
            let (mut name, mut inside) = (String::new(), false);
            for c in list.chars() {
                match c {
                    ',' if !inside => names.push(std::mem::take(&mut name)),
                    c => {
                        inside ^= c == '/';
                        name.push(c);
                    }
                }
            }
            names.push(name);
        }
        names
    }
}
