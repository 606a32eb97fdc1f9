//! `memgauge count`: its command line.

use std::ffi::OsString;

use clap::Args;

use super::output::ReportOptions;

const AFTER_HELP: &str = "\
The program has standard output to itself; the counts go to standard error, and to files with -o. Signals are passed on to the program, \
and its exit status is that of memgauge: 128 + N if signal N ended it, 127 if there is no such program, 126 if it cannot be run.

An event is one of the kernel's (page-faults, task-clock, cycles, LLC-load-misses), one that sysfs names, a vendor's name from memgauge's \
tables (mem_load_retired.l3_miss, l1d_cache_refill), or a code: cpu/event=0xd1,umask=0x20/ or r20d1.

Examples:
  memgauge count -- ./app input            miss rates, parallelism, latency per miss
  memgauge count -r 10 -- ./app input      medians of ten runs, with intervals
  memgauge count -e page-faults,task-clock -- make
  memgauge count -o counts.json -- ./app";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CountArgs {
    /// Events to count instead of those for the metrics; may be repeated
    #[arg(short, long = "event", value_name = "EVENT,...")]
    pub(crate) events: Vec<String>,
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
        names.retain(|n| !n.is_empty());
        names
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::command::{Cli, Invocation};

    #[test]
    fn events_and_the_program_are_told_apart() {
        let line = ["memgauge", "count", "-e", "cpu/event=0xd1,umask=0x20/,page-faults", "-e", "cycles", "-r", "3", "--", "ls", "-e", "x"];
        let Ok(Invocation::Count(args)) = Cli::try_parse_from(line).unwrap().invocation() else { panic!("counts") };
        assert_eq!(args.event_names(), ["cpu/event=0xd1,umask=0x20/", "page-faults", "cycles"]);
        assert_eq!((args.runs, args.command), (3, ["ls", "-e", "x"].map(Into::into).to_vec()));
        assert!(Cli::try_parse_from(["memgauge", "count"]).is_err(), "a program is needed");
        assert!(Cli::try_parse_from(["memgauge", "count", "-r", "0", "--", "ls"]).is_err());
    }
}
