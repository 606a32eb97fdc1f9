//! Options of `memgauge stream` and `memgauge chase`.

use clap::Args;
use memgauge_core::microbench::{LoopKind, LoopSpec};
use memgauge_core::units::Bytes;

use super::probe::OrderArg;
use super::{Counting, Output, Pages};

/// What both take.
#[derive(Debug, Args)]
struct Loop {
    /// Bytes of the buffer: 512M, 16K, 1G or plain bytes
    #[arg(value_name = "SIZE", default_value = "512M")]
    size: Bytes,
    /// CPU to run on [default: wherever this process may run]
    #[arg(long, value_name = "N", help_heading = "Where")]
    cpu: Option<u32>,
    /// Memory node of the buffer [default: what this process's memory policy says]
    #[arg(long, value_name = "N", help_heading = "Where")]
    node: Option<u32>,
    /// Pages to use: auto takes transparent huge pages, else base pages
    #[arg(long, value_name = "KIND", default_value = "auto", help_heading = "Memory")]
    pages: Pages,
    /// Passes to time, each a sample of the median and its interval
    #[arg(long, value_name = "N", default_value = "11", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Precision")]
    passes: u32,
    #[command(flatten)]
    counting: Counting,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
#[command(
    after_help = "One thread reads a buffer from begin to end, again and again, and adds up what it reads. Without options it runs where it is started and
takes the memory that it is given: no CPU is pinned, no node bound.

The buffer's words of 8 bytes are the numbers of SplitMix64 from the seed; the checksum is the exclusive or of all of them, so
the same size and seed give the same checksum on every machine. A pass over less than 64 MiB is repeated an odd number of times.

Examples:
  memgauge stream                         512 MiB
  memgauge stream 16K --cpu 3             the first-level cache of CPU 3
  perf stat -e cache-misses memgauge stream 1G --passes 50
  numactl --cpunodebind 0 --membind 1 memgauge stream
  memgauge stream 1G --format json

Exit status: 0 measured, 3 what was read is not what was written, 4 could not measure, 64 wrong usage."
)]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    common: Loop,
    /// Seed of the buffer's contents
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Memory")]
    seed: u64,
}

#[derive(Debug, Args)]
#[command(
    after_help = "One thread follows pointers through a buffer, each load waiting for the one before. Without options it runs where it is started and
takes the memory that it is given: no CPU is pinned, no node bound.

The pointers are one cycle over the first line of each stride, or one drawn at random. A pass makes whole laps and one hop more;
the final index is the line where the last pass ended, computed as well without reading memory, the same on every machine for the
same size, seed, order and number of passes.

Examples:
  memgauge chase                          512 MiB, random in windows of 512 KiB
  memgauge chase 32K --cpu 3              the first-level cache of CPU 3
  memgauge chase 1G --order full-random --pages 4k
  numactl --cpunodebind 0 --membind 1 memgauge chase
  perf stat -e dTLB-load-misses memgauge chase 64M --passes 50

Exit status: 0 measured, 3 the walk did not end where it should, 4 could not measure, 64 wrong usage."
)]
pub(crate) struct ChaseArgs {
    #[command(flatten)]
    common: Loop,
    /// Order of the chase
    #[arg(long, value_name = "ORDER", default_value = "window-local", help_heading = "Chase")]
    order: OrderArg,
    /// Window in which the window-local chase is random
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
    pub(crate) output: Output,
}

impl Loop {
    fn request(self, kind: LoopKind, seed: u64) -> LoopRequest {
        let Self { size, cpu, node, pages, passes, counting, output } = self;
        let counters = counting.counters;
        LoopRequest { spec: LoopSpec { kind, bytes: size, cpu, node, pages: pages.into(), passes, seed, counters }, output }
    }
}

impl StreamArgs {
    pub(super) fn request(self) -> LoopRequest {
        self.common.request(LoopKind::Stream, self.seed)
    }
}

impl ChaseArgs {
    pub(super) fn request(self) -> LoopRequest {
        let kind = LoopKind::Chase { order: self.order.into(), stride: self.stride, window: self.window };
        self.common.request(kind, self.seed)
    }
}
