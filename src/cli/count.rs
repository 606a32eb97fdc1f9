//! `memgauge count`: its command line.

use std::ffi::OsString;

use clap::Args;

use super::Output;

#[derive(Debug, Args)]
#[command(
    after_help = "The program has standard output to itself; the counts go to standard error, and to files with -o. Signals are passed on to
it, and its exit status is that of memgauge: 128 + N where signal N ended it, 127 where there is no such program, 126 where it cannot be run.

An event is one of the kernel (page-faults, task-clock, cycles, LLC-load-misses), one that sysfs names, a vendor's name from memgauge's
tables (mem_load_retired.l3_miss, l1d_cache_refill), or a code: cpu/event=0xd1,umask=0x20/ or r20d1.

Examples:
  memgauge count -- ./app input            miss rates, parallelism, latency per miss
  memgauge count -r 10 -- ./app input      medians of ten runs, with intervals
  memgauge count -e page-faults,task-clock -- make
  memgauge count -o counts.json -- ./app"
)]
pub(crate) struct CountArgs {
    /// Events to count instead of those that the metrics need; may be repeated
    #[arg(short, long = "event", value_name = "EVENT,...")]
    pub(crate) events: Vec<String>,
    /// How often to run the program
    #[arg(short, long = "runs", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    #[command(flatten)]
    pub(crate) output: Output,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD ARGS")]
    pub(crate) command: Vec<OsString>,
}

impl CountArgs {
    /// The events named, one by one: commas inside slashes belong to a code.
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

    use crate::cli::{Asked, Cli};

    #[test]
    fn events_and_the_program_are_told_apart() {
        let line = ["memgauge", "count", "-e", "cpu/event=0xd1,umask=0x20/,page-faults", "-e", "cycles", "-r", "3", "--", "ls", "-e", "x"];
        let Ok(Asked::Count(args)) = Cli::try_parse_from(line).unwrap().asked() else { panic!("counts") };
        assert_eq!(args.event_names(), ["cpu/event=0xd1,umask=0x20/", "page-faults", "cycles"]);
        assert_eq!((args.runs, args.command), (3, ["ls", "-e", "x"].map(Into::into).to_vec()));
        assert!(Cli::try_parse_from(["memgauge", "count"]).is_err(), "a program is needed");
        assert!(Cli::try_parse_from(["memgauge", "count", "-r", "0", "--", "ls"]).is_err());
    }
}
