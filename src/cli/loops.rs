//! `memgauge stream` and `memgauge chase`: their command lines.

use clap::Args;
use memgauge_model::microbench::{LoopKind, LoopSpec};
use memgauge_model::units::{Bytes, ParseError};

use super::options::{CounterOptions, Order, Pages, without_effect};
use super::output::ReportOptions;

/// What both take.
#[derive(Debug, Args)]
#[command(
    mut_arg("pages", |arg| arg.help("Pages to use: auto takes transparent huge pages, else base pages")),
    mut_arg("verbose", without_effect)
)]
struct LoopOptions {
    /// Sizes of the buffer, a line for each: 512M, 16K,1M or 4K-64M, which doubles; 4K-64M:*4 takes every second of these, 1M-8M:1M goes
    /// in steps [default: 512M, or what limits on memory leave]
    #[arg(value_name = "SIZES", value_parser = parse_sizes)]
    sizes: Option<Sizes>,
    /// The same as SIZES
    #[arg(long = "size", value_name = "SIZES", value_parser = parse_sizes, conflicts_with = "sizes", help_heading = "Memory")]
    size: Option<Sizes>,
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
    counting: CounterOptions,
    #[command(flatten)]
    report: ReportOptions,
}

/// Sizes in the order in which they are named.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sizes(Vec<Bytes>);

/// More sizes than this are a mistake of a step.
const MAX_SIZES: usize = 1000;

/// A list of sizes and ranges: `16K,1M`, `4K-64M`, `4K-64M:*4`, `1M-8M:1M`.
fn parse_sizes(text: &str) -> Result<Sizes, ParseError> {
    let expected = "a list of sizes such as 16K,1M, or a range: 4K-64M (doubling), 4K-64M:*4, 1M-8M:1M";
    let fail = || ParseError { input: text.into(), expected };
    let mut sizes = Vec::new();
    for part in text.split(',') {
        let (range, step) = part.split_once(':').map_or((part, None), |(range, step)| (range, Some(step)));
        let Some((low, high)) = range.split_once('-') else {
            if step.is_some() {
                return Err(fail());
            }
            // What is wrong with one size is said best by itself.
            sizes.push(part.parse()?);
            continue;
        };
        let (low, high): (Bytes, Bytes) = (low.parse()?, high.parse()?);
        let next: Box<dyn Fn(u64) -> Option<u64>> = match step.map(|step| step.strip_prefix('*').ok_or(step)) {
            None => Box::new(|size: u64| size.checked_mul(2)),
            Some(Ok(factor)) => {
                let factor = factor.parse::<u64>().ok().filter(|factor| *factor > 1).ok_or_else(fail)?;
                Box::new(move |size: u64| size.checked_mul(factor))
            }
            Some(Err(step)) => {
                let step = step.parse::<Bytes>().ok().map(|step| step.0).filter(|step| *step > 0).ok_or_else(fail)?;
                Box::new(move |size: u64| size.checked_add(step))
            }
        };
        if low.0 == 0 || low > high {
            return Err(fail());
        }
        let up = std::iter::successors(Some(low.0), |size| next(*size)).take_while(|size| *size <= high.0);
        sizes.extend(up.take(MAX_SIZES + 1).map(Bytes));
    }
    if sizes.len() > MAX_SIZES { Err(fail()) } else { Ok(Sizes(sizes)) }
}

const STREAM_AFTER_HELP: &str = "\
One thread reads a buffer from start to end, again and again, and adds up what it reads. Without options it runs where it is started, in \
the memory that it is given: it pins no CPU and binds no node.

The buffer holds the numbers of SplitMix64 from the seed, 8 bytes each. The checksum is the exclusive or of all of them: the same size and \
seed give the same checksum on every machine. A pass over less than 64 MiB is repeated an odd number of times. In L1 and L2 the checksum may be the limit: memgauge sweep measures caches.

Examples:
  memgauge stream                         512 MiB
  memgauge stream 64M --cpu 1             another size, on CPU 1
  memgauge stream 16K-1G                  a line each for 16K, 32K, 64K ... 1G
  perf stat -e cache-misses memgauge stream 1G --passes 50
  memgauge stream --cpu 0 --node 0        CPU 0, memory of node 0
  memgauge stream 16K-1G -o sizes.svg     the same as a figure
  memgauge stream 1G --format json

Exit status:
  0   measured
  3   what was read is not what was written
  4   could not measure
  64  wrong usage";

#[derive(Debug, Args)]
#[command(mut_arg("panels", without_effect), after_help = STREAM_AFTER_HELP)]
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
  memgauge chase 32K --cpu 1              the first-level cache of CPU 1
  memgauge chase 4K-1G:*4 --pages thp     a line each for 4K, 16K, 64K ... 1G
  memgauge chase 1G --order full-random --pages 4k
  memgauge chase --cpu 0 --node 0         CPU 0, memory of node 0
  perf stat -e dTLB-load-misses memgauge chase 64M --passes 50

Exit status:
  0   measured
  3   the walk did not end where it should
  4   could not measure
  64  wrong usage";

#[derive(Debug, Args)]
#[command(mut_arg("panels", without_effect), after_help = CHASE_AFTER_HELP)]
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

/// A loop to run, once for each size.
pub(crate) struct LoopRequest {
    /// One for each size, of which there is at least one.
    pub(crate) specs: Vec<LoopSpec>,
    pub(crate) report: ReportOptions,
}

impl LoopOptions {
    fn request(self, kind: LoopKind, seed: u64) -> LoopRequest {
        let Self { sizes, size, cpu, node, pages, passes, counting, report } = self;
        let spec = |size| LoopSpec { kind, size, cpu, node, pages: pages.pages, passes, seed, counters: counting.counters };
        let specs = match sizes.or(size) {
            Some(Sizes(sizes)) => sizes.into_iter().map(|size| spec(Some(size))).collect(),
            None => vec![spec(None)],
        };
        LoopRequest { specs, report }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_lists_and_ranges() {
        let kib = |text: &str| parse_sizes(text).unwrap().0.into_iter().map(|size| size.0 / 1024).collect::<Vec<_>>();
        assert_eq!(kib("16K"), [16]);
        assert_eq!(kib("1M,4M,16K"), [1024, 4096, 16]);
        assert_eq!(kib("4K-40K,1M"), [4, 8, 16, 32, 1024]);
        assert_eq!(kib("4K-256K:*4"), [4, 16, 64, 256]);
        assert_eq!(kib("1M-3M:1M"), [1024, 2048, 3072]);
        assert_eq!(parse_sizes("8E-15E").map(|sizes| sizes.0.len()).ok(), parse_sizes("8E").map(|_| 1).ok(), "no overflow");
        for bad in ["", "4K-", "4K-2K", "4K:2", "4K-8K:*1", "4K-8K:0", "0-8K", "4K-8K:*", "1-1G:1", "x"] {
            assert!(parse_sizes(bad).is_err(), "{bad}");
        }
    }
}
