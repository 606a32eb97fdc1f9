//! Options of `memgauge quick`.

use std::path::PathBuf;

use clap::Args;
use memgauge_core::spec::{Spec, Task};

use super::{Common, Request, parse_gbs};
use crate::quick::References;

const QUICK_EXAMPLES: &str = "\
What looks wrong is measured twice more before it counts. Virtual machines, busy ones and runs without root
yield warnings at most. Compared are nodes and last-level caches with each other, bandwidths with what the
memory could transfer, and, where given, a result of before and rules:

  strict = false             # true: failures count on virtual machines and without root, too
  [[rule]]
  experiment = \"bandwidth\"   # or idle-latency, loaded-latency
  mix = \"all-reads\"          # any where it is not said; also: order, cpu-node, memory-node, local, table
  warn-below = 300.0         # GB/s or ns; also: fail-below, warn-above, fail-above
  fail-below = 250.0

Examples:
  memgauge quick                              is this machine's memory as it should be?
  memgauge quick -o today.json                the same, and keep the result
  memgauge quick --against first-day.json     is it as it was?
  memgauge quick --limit 460.8                12 channels of DDR5-4800

Exit status: 0 all well, 1 warning, 2 failure, 3 corrupted data or memory errors, 4 could not measure, 64 wrong usage, 130 interrupted.";

#[derive(Debug, Args)]
#[command(after_help = QUICK_EXAMPLES)]
pub(crate) struct QuickArgs {
    /// Compare with a result that memgauge quick wrote as JSON
    #[arg(long, value_name = "FILE", help_heading = "Verdict")]
    against: Option<PathBuf>,
    /// Judge by the bands in FILE (TOML, see below)
    #[arg(long, value_name = "FILE", help_heading = "Verdict")]
    rules: Option<PathBuf>,
    /// What all memory of the machine could transfer at most, in GB/s: populated channels x MT/s x 8 B / 1000
    /// [default: what firmware states of its memory devices, which only root may read]
    #[arg(long = "limit", value_name = "GB/s", value_parser = parse_gbs, help_heading = "Verdict")]
    peak_gbs: Option<f64>,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    prefetch: super::prefetch::Prefetch,
}

impl QuickArgs {
    pub(super) fn request(self) -> Request {
        let mut spec = Spec::new(Task::Quick);
        self.prefetch.apply(&mut spec);
        spec.peak_gbs = self.peak_gbs;
        Request { quick: Some(References { against: self.against, rules: self.rules }), ..self.common.request(spec) }
    }
}
