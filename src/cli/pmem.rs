//! `memgauge pmem`: its command line.

use std::path::PathBuf;

use clap::Args;
use memgauge_model::experiment::Experiment;
use memgauge_model::spec::{PmemSpec, Spec, Task};

use super::options::{Prefetch, with_default};
use super::output::panels;
use super::request::{Common, PmemPaths, Request};

/// What it measures.
const EXPERIMENTS: [Experiment; 6] = [
    Experiment::IdleLatency,
    Experiment::Bandwidth,
    Experiment::BandwidthRamp,
    Experiment::AccessSize,
    Experiment::PersistLatency,
    Experiment::LoadedLatency,
];

const AFTER_HELP: &str = "\
For every node with CPUs and every directory: idle latency in sequential and random order, ten bandwidths (sequential and random; reads, \
non-temporal writes, 2:1 non-temporal, 1:1, 2:1), and the number of writers that is fastest. Each CPU's file has 400,000 KiB or, where that \
is more, four times the caches; or what there is room for. The files have no names and disappear at the end, however the run ends.

Persistent memory is measured where the file system is mounted with DAX. Any other directory (tmpfs, the page cache, an emulated \
device) is measured too, and is marked as a volatile stand-in in every output.

Examples:
  memgauge pmem /mnt/pmem0                   one file system, from every node
  memgauge pmem /mnt/pmem0 /mnt/pmem1        several: local and remote
  memgauge pmem --ramp --loaded --out today /mnt/pmem0
  memgauge pmem --plan /mnt/pmem0            how long, and what device
  memgauge pmem --within 2m /mnt/pmem0       everything, more coarsely";

#[derive(Debug, Args)]
#[command(
    mut_arg("budget", |budget| with_default(budget, "0.48s")),
    mut_arg("node", |arg| arg.help("Nodes whose CPUs measure, such as 0,2 [default: all nodes with CPUs]")),
    mut_arg("size", |arg| arg.help("Size of each file: that of the chase and those of the loaders [default: 400000K or more for loaders, see below]")),
    mut_arg("pages", |arg| arg.hide(true)),
    mut_arg("machine", |arg| arg.hide(true).conflicts_with("directories")),
    mut_arg("panels", |arg| panels(arg, &EXPERIMENTS)),
    after_help = AFTER_HELP
)]
pub(super) struct PmemArgs {
    /// Directories whose files are measured
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Also measure the bandwidth of growing numbers of CPUs: 1, 2, 4, 6 … all of each node, reads and 2:1
    #[arg(long, help_heading = "What")]
    ramp: bool,
    /// Also measure latency under load at 20 delays, sequential and random
    #[arg(long, help_heading = "What")]
    loaded: bool,
    /// Write a text file of each run, the result as JSON and CSV, figures and a summary to FOLDER, which must be new or empty
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    out: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    prefetch: Prefetch,
}

impl PmemArgs {
    pub(super) fn request(self) -> Request {
        let file = self.common.size;
        let mut request = self.common.request(Spec { prefetch: self.prefetch.prefetch, ..Spec::new(Task::pmem()) });
        // The memory is where the files are.
        let cpu_nodes = request.spec.nodes.take();
        request.spec.task = Task::Pmem(PmemSpec { file, directories: Vec::new(), cpu_nodes, ramp: self.ramp, loaded: self.loaded });
        request.pmem = Some(PmemPaths { directories: self.directories, out: self.out });
        request
    }
}
