//! `memgauge tiers`: its command line.

use clap::Args;
use memgauge_model::experiment::Experiment;
use memgauge_model::spec::{Spec, Task, TiersSpec};

use super::options::{ChaseTiming, Load, Prefetch, with_default};
use super::output::panels;
use super::request::{Common, Request};

const AFTER_HELP: &str = "\
Nodes are grouped by kind: DRAM, HBM, CXL, persistent memory as memory, and nodes without CPUs whose kind of memory is unknown. The evidence \
is printed: devices (DAX, CXL), the kernel's memory tiers, firmware's claims (HMAT) and distances. A kind that is inferred only \
from firmware's figures is marked as a guess.

From every node with CPUs: idle latency and bandwidth (reads, 2:1) of every node; latency under load of the nearest node of each kind, of \
DRAM while another tier is loaded and the reverse, and of both loaded together.

Examples:
  memgauge tiers                      all kinds of memory, from every socket
  memgauge tiers --node 0,2           these nodes, whatever they are
  memgauge tiers --mix all-reads,2:1  curves for two mixes
  memgauge tiers --histogram          also percentiles of latency under load
  memgauge tiers --plan               what each node is, and the time it takes";

#[derive(Debug, Args)]
#[command(
    mut_arg("budget", |budget| with_default(budget, "0.48s")),
    mut_arg("node", |arg| arg.help("Memory nodes to compare, such as 0,2, each as a tier [default: the nearest of each kind]")),
    mut_arg("panels", |arg| panels(arg, &[Experiment::IdleLatency, Experiment::BandwidthMatrix, Experiment::LoadedLatency])),
    after_help = AFTER_HELP
)]
pub(super) struct TiersArgs {
    #[command(flatten)]
    timing: ChaseTiming,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    prefetch: Prefetch,
    #[command(flatten)]
    common: Common,
}

impl TiersArgs {
    pub(super) fn request(self) -> Request {
        let (prefetch, peak_gbs) = (self.prefetch.prefetch, self.load.limit.peak_gbs);
        let ChaseTiming { hops, histogram } = self.timing;
        let task = Task::Tiers(TiersSpec { buffer: self.common.size, hops, histogram, load: self.load.spec() });
        self.common.request(Spec { prefetch, peak_gbs, ..Spec::new(task) })
    }
}

#[cfg(test)]
mod tests {
    use memgauge_model::traffic::Mix;

    use crate::cli::tests::{refused, spec};

    #[test]
    fn nodes_mixes_and_percentiles() {
        let got = spec("memgauge tiers --node 0,2 --mix all-reads,2:1 --histogram");
        let tiers = options!(got.task, Tiers);
        assert_eq!((got.nodes, tiers.histogram), (Some("0,2".parse().unwrap()), Some(8)));
        assert_eq!(tiers.load.mixes, [Mix::AllReads, Mix::R2W1]);
        assert!(refused("memgauge tiers --memory-dir /tmp").contains("unexpected argument"));
    }
}
