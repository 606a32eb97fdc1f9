//! `memgauge scan`: its command line.

use std::time::Duration;

use clap::Args;
use memgauge_model::experiment::Experiment;
use memgauge_model::integrity::TestPattern;
use memgauge_model::spec::{ScanSpec, Spec, Task, WidthRequest};
use memgauge_model::units::{Bytes, parse_duration};

use super::options::{Pages, Placement, Prefetch};
use super::output::panels;
use super::request::{Request, RunOptions};
use super::values::{WIDTHS, one_of, parse_above_0};

const AFTER_HELP: &str = "\
A scan takes at most four fifths of the free memory, one region at a time. It leaves 5 % of the node or 2 GiB free, whichever is more, and \
stops taking memory when it gets scarce. All memory is given back at the end and after Ctrl-C, which keeps what was measured. On Linux, root \
sees physical addresses.

Examples:
  memgauge scan                           each node's free memory
  memgauge scan --node 0 --integrity      one node; also write and compare
  memgauge scan --integrity --patterns random,walking-ones --hold 1m
                                          these, each a minute in memory
  memgauge scan --size 16G --region 256M  16 GiB of each node, smaller regions
  memgauge scan --node 0 --cpu 0-1        a node, read by these CPUs
  memgauge scan --pages 4k -o scan.json   with 4 KiB pages, and keep the result";

const BUCKET: &str = "a width in GB/s above 0, such as 5 or 0.5";

#[derive(Debug, Args)]
#[command(mut_arg("panels", |arg| panels(arg, &[Experiment::MemoryScan])), after_help = AFTER_HELP)]
pub(super) struct ScanArgs {
    /// Size of a region [default: 1G, or less where fewer than four regions would fit]
    #[arg(long, value_name = "SIZE", help_heading = "Scan")]
    region: Option<Bytes>,
    /// How many times to read each region [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Scan")]
    passes: Option<u32>,
    /// Width of the histogram's buckets in GB/s [default: 5]
    #[arg(long, value_name = "GB/S", value_parser = |text: &str| parse_above_0(text, BUCKET), help_heading = "Scan")]
    bucket: Option<f64>,
    /// Also write test patterns to all of it, and compare what is read back
    #[arg(long, help_heading = "Scan")]
    integrity: bool,
    /// Patterns of --integrity, in this order [default: all that fit the time, at most 10 minutes or half of --within]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = one_of(&TestPattern::ALL), requires = "integrity", help_heading = "Scan")]
    patterns: Vec<TestPattern>,
    /// How long each pattern stays in the memory at least before it is compared [default: as long as a sweep takes]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "integrity", help_heading = "Scan")]
    hold: Option<Duration>,
    /// End the scan within this time; patterns for which half of it is too short are left out
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Scan")]
    within: Option<Duration>,
    /// Seed of the order in which regions are read, and of random patterns
    #[arg(long, value_name = "N", help_heading = "Scan")]
    seed: Option<u64>,
    #[command(flatten)]
    placement: Placement,
    #[command(flatten)]
    prefetch: Prefetch,
    /// Take at most this much memory of each node [default: what is free, less a margin]
    #[arg(long, value_name = "SIZE", help_heading = "Memory")]
    size: Option<Bytes>,
    #[command(flatten)]
    pages: Pages,
    /// Width of loads; best = the fastest here, as measured
    #[arg(long, default_value = "best", value_parser = one_of(&WIDTHS), help_heading = "Traffic")]
    width: WidthRequest,
    #[command(flatten)]
    run: RunOptions,
}

impl ScanArgs {
    pub(super) fn request(self) -> Request {
        let mut spec = Spec::new(Task::Scan(ScanSpec {
            memory: self.size,
            region: self.region,
            passes: self.passes,
            width: self.width,
            bucket_gbs: self.bucket,
            integrity: self.integrity,
            patterns: self.patterns,
            hold: self.hold,
        }));
        spec.prefetch = self.prefetch.prefetch;
        self.placement.apply(&mut spec);
        spec.pages = self.pages.pages;
        spec.seed = self.seed;
        spec.within = self.within;
        Request::new(spec, self.run)
    }
}
