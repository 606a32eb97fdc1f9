//! `memgauge bandwidth`: its command line.

use clap::Args;
use memgauge_core::spec::{BandwidthShape, Spec, Task};

use super::options::Loaders;
use super::request::{Measuring, Request};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  memgauge bandwidth                      all CPUs read their own nodes' memory
  memgauge bandwidth --peak               every mix of reads and writes
  memgauge bandwidth --matrix             from every node with CPUs to every node with memory
  memgauge bandwidth --ramp --mix 2:1     1, 2, 4 ... CPUs
  memgauge bandwidth --search             the highest bandwidth of each mix
  memgauge bandwidth --access random --mix all-reads,2:1
  memgauge bandwidth --line check --time 60s
  memgauge bandwidth --cpu 0 --mix triad --width avx2")]
pub(super) struct BandwidthArgs {
    /// From every node with CPUs to every node with memory
    #[arg(long, group = "shape", conflicts_with = "delays")]
    matrix: bool,
    /// Every mix of reads and writes
    #[arg(long, group = "shape")]
    peak: bool,
    /// 1, 2, 4 ... all CPUs
    #[arg(long, group = "shape", conflicts_with = "delays")]
    ramp: bool,
    /// The highest bandwidth of each mix over several numbers of CPUs and injection delays, because too many requests at once can cost
    /// bandwidth
    #[arg(long, group = "shape", conflicts_with = "delays")]
    search: bool,
    #[command(flatten)]
    loaders: Loaders,
    #[command(flatten)]
    measuring: Measuring,
}

impl BandwidthArgs {
    pub(super) fn request(self) -> anyhow::Result<Request> {
        let shape = match (self.matrix, self.peak, self.ramp, self.search) {
            (true, ..) => BandwidthShape::Matrix,
            (_, true, ..) => BandwidthShape::Peak,
            (_, _, true, _) => BandwidthShape::Ramp,
            (.., true) => BandwidthShape::Search,
            _ => BandwidthShape::One,
        };
        let mut spec = Spec::new(Task::Bandwidth(shape));
        self.loaders.apply(&mut spec)?;
        Ok(self.measuring.request(spec))
    }
}
