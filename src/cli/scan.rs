//! Options of `memgauge scan`.

use clap::Args;
use memgauge_core::spec::{ScanSpec, Spec, Task};
use memgauge_core::units::{Bytes, ParseError};

use super::{Output, Pages, Planning, Request, Where, WidthArg};

#[derive(Debug, Args)]
#[command(
    after_help = "Takes four fifths of what is free at most, a region at a time, leaves 5 % of the node or 2 GiB free, whichever is more, and stops
taking when memory gets scarce. All of it is given back at the end and after Ctrl-C, which keeps what was measured. As root the physical addresses are shown.

Examples:
  memgauge scan                           each node's free memory, read by its own CPUs
  memgauge scan --node 1 --integrity      one node; also write patterns and compare
  memgauge scan --size 16G --region 256M  16 GiB of each node in smaller regions
  memgauge scan --node 2 --cpu 0-15       memory without CPUs, read by these
  memgauge scan --pages 1g -o scan.json   the free 1 GiB pages of the pool, all regions in a file"
)]
pub(crate) struct ScanArgs {
    /// Bytes of a region [default: 1G, less where fewer than four would fit]
    #[arg(long, value_name = "SIZE", help_heading = "Scan")]
    region: Option<Bytes>,
    /// How often each region is read [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Scan")]
    passes: Option<u32>,
    /// Width of the histogram's buckets in GB/s [default: 5]
    #[arg(long, value_name = "GB/S", value_parser = parse_bucket, help_heading = "Scan")]
    bucket: Option<f64>,
    /// Afterwards write two patterns to all of it and compare what comes back
    #[arg(long, help_heading = "Scan")]
    integrity: bool,
    #[command(flatten)]
    place: Where,
    /// The most memory of a node to take [default: what is free, less a margin]
    #[arg(long, value_name = "SIZE", help_heading = "Memory")]
    size: Option<Bytes>,
    /// Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages
    #[arg(long, value_name = "KIND", default_value = "auto", help_heading = "Memory")]
    pages: Pages,
    /// Width of loads; best = what measures fastest here
    #[arg(long, default_value = "best", help_heading = "Traffic")]
    width: WidthArg,
    /// Seed of the order in which regions are read
    #[arg(long, value_name = "N", help_heading = "Scan")]
    seed: Option<u64>,
    #[command(flatten)]
    prefetch: super::prefetch::Prefetch,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    planning: Planning,
}

impl ScanArgs {
    pub(super) fn request(self) -> Request {
        let mut spec = Spec::new(Task::Scan);
        self.prefetch.apply(&mut spec);
        self.place.apply(&mut spec);
        spec.size = self.size;
        spec.pages = self.pages.into();
        spec.width = self.width.into();
        spec.seed = self.seed;
        spec.scan = ScanSpec { region: self.region, passes: self.passes, bucket_gbs: self.bucket, integrity: self.integrity };
        Request { spec, memory_dir: None, output: self.output, planning: self.planning, quick: None }
    }
}

/// A width above 0 in GB/s.
fn parse_bucket(text: &str) -> Result<f64, ParseError> {
    let fail = || ParseError { input: text.into(), expected: "a width in GB/s above 0, such as 5 or 0.5" };
    let width = text.trim().parse::<f64>().map_err(|_| fail())?;
    if width.is_finite() && width > 0.0 { Ok(width) } else { Err(fail()) }
}
