//! `memgauge stream` and `memgauge chase`: their command lines.

use clap::Args;
use memgauge_core::microbench::{LoopKind, LoopSpec};
use memgauge_core::units::Bytes;

use super::options::{Counting, Order, Pages};
use super::output::ReportOptions;

/// What both take.
#[derive(Debug, Args)]
#[command(mut_arg("pages", |arg| arg.help("Pages to use: auto takes transparent huge pages, else base pages")))]
struct LoopOptions {
    /// Size of the buffer: 512M, 16K, 1G or plain bytes [default: 512M, or what limits on memory leave]
    #[arg(value_name = "SIZE")]
    size: Option<Bytes>,
    /// CPU to run on [default: wherever this process may run]
    #[arg(long, value_name = "N", help_heading = "Where")]
    cpu: Option<u32>,
    /// Memory node of the buffer [default: what this process's memory policy says]
    #[arg(long, value_name = "N", help_heading = "Where")]
    node: Option<u32>,
    #[command(flatten)]
    pages: Pages,
    /// Passes to time; each is a sample for the median and its interval
    #[arg(long, value_name = "N", default_value = "11", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Precision")]
    passes: u32,
    #[command(flatten)]
    counting: Counting,
    #[command(flatten)]
    report: ReportOptions,
}

const STREAM_AFTER_HELP: &str = "\
One thread reads a buffer from start to end, again and again, and adds up what it reads. Without options it runs where it is started, in \
the memory that it is given: it pins no CPU and binds no node.

The buffer holds the numbers of SplitMix64 from the seed, 8 bytes each. The checksum is the exclusive or of all of them: the same size and \
seed give the same checksum on every machine. A pass over less than 64 MiB is repeated an odd number of times.

Examples:
  memgauge stream                         512 MiB
  memgauge stream 16K --cpu 3             the first-level cache of CPU 3
  perf stat -e cache-misses memgauge stream 1G --passes 50
  numactl --cpunodebind 0 --membind 1 memgauge stream
  memgauge stream 1G --format json

Exit status:
  0   measured
  3   what was read is not what was written
  4   could not measure
  64  wrong usage";

#[derive(Debug, Args)]
#[command(after_help = STREAM_AFTER_HELP)]
pub(super) struct StreamArgs {
    #[command(flatten)]
    options: LoopOptions,
    /// Seed of the buffer's contents
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Memory")]
    seed: u64,
}

const CHASE_AFTER_HELP: &str = "\
One thread follows pointers through a buffer; each load waits for the one before. Without options it runs where it is started, in the \
memory that it is given: it pins no CPU and binds no node.

The pointers form one cycle over the first line of each stride, or over a random line of each. A pass is a whole number of laps and one \
hop more. The final index is the line where the last pass ended. It is also computed without reading memory, and is the same on every \
machine for the same size, seed, order and number of passes.

Examples:
  memgauge chase                          512 MiB, random in windows of 512 KiB
  memgauge chase 32K --cpu 3              the first-level cache of CPU 3
  memgauge chase 1G --order full-random --pages 4k
  numactl --cpunodebind 0 --membind 1 memgauge chase
  perf stat -e dTLB-load-misses memgauge chase 64M --passes 50

Exit status:
  0   measured
  3   the walk did not end where it should
  4   could not measure
  64  wrong usage";

#[derive(Debug, Args)]
#[command(after_help = CHASE_AFTER_HELP)]
pub(super) struct ChaseArgs {
    #[command(flatten)]
    options: LoopOptions,
    #[command(flatten)]
    order: Order,
    /// Window within which the window-local chase is random
    #[arg(long, value_name = "SIZE", default_value = "512K", help_heading = "Chase")]
    window: Bytes,
    /// Distance between chased lines
    #[arg(long, value_name = "SIZE", default_value = "128", help_heading = "Chase")]
    stride: Bytes,
    /// Seed of the order
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Chase")]
    seed: u64,
}

/// A loop to run.
pub(crate) struct LoopRequest {
    pub(crate) spec: LoopSpec,
    pub(crate) report: ReportOptions,
}

impl LoopOptions {
    fn request(self, kind: LoopKind, seed: u64) -> LoopRequest {
        let Self { size, cpu, node, pages, passes, counting, report } = self;
        let spec = LoopSpec { kind, size, cpu, node, pages: pages.pages, passes, seed, counters: counting.counters };
        LoopRequest { spec, report }
    }
}

impl StreamArgs {
    pub(super) fn request(self) -> LoopRequest {
        self.options.request(LoopKind::Stream, self.seed)
    }
}

impl ChaseArgs {
    pub(super) fn request(self) -> LoopRequest {
        let kind = LoopKind::Chase { order: self.order.order, stride: self.stride, window: self.window };
        self.options.request(kind, self.seed)
    }
}
