//! `memgauge latency`: its command line.

use clap::Args;
use memgauge_model::experiment::{ChaseOrder, Experiment};
use memgauge_model::spec::{LatencyShape, LatencySpec, Spec, Task};
use memgauge_model::units::IdSet;

use super::options::{ChaseBuffer, ChaseTiming};
use super::output::panels;
use super::request::{Measuring, Request};
use super::values::{ORDERS, one_of};

#[derive(Debug, Args)]
#[command(mut_arg("panels", |arg| panels(arg, &[Experiment::IdleLatency, Experiment::IdleLatencyPerCpu])), after_help = "Examples:
  memgauge latency                        one CPU, its own node
  memgauge latency --matrix               from every node to every node
  memgauge latency --size 16K             the first-level cache
  memgauge latency --cpu 1 --pages 4k     from CPU 1, with 4 KiB pages
  memgauge latency --histogram 1          the distribution of single loads
  memgauge latency --memory-dir /dev/shm  the memory of files")]
pub(super) struct LatencyArgs {
    /// From every node with CPUs to every node with memory
    #[arg(long)]
    matrix: bool,
    /// From every CPU to its own node, or to the node given with --node
    #[arg(long, conflicts_with = "matrix")]
    per_cpu: bool,
    /// Order of the lines that the chase visits; may be repeated [default: window-local and full-random]
    #[arg(long = "order", value_name = "ORDER", value_delimiter = ',', value_parser = one_of(&ORDERS), help_heading = "Chase")]
    orders: Vec<ChaseOrder>,
    #[command(flatten)]
    buffer: ChaseBuffer,
    #[command(flatten)]
    timing: ChaseTiming,
    /// CPUs to keep busy meanwhile [default: one of each other package, so that these packages stay awake]
    #[arg(long, value_name = "LIST", help_heading = "Chase", hide = true)]
    keep_awake: Option<IdSet>,
    #[command(flatten)]
    measuring: Measuring,
}

impl LatencyArgs {
    pub(super) fn request(self) -> Request {
        let shape = match (self.matrix, self.per_cpu) {
            (true, _) => LatencyShape::Matrix,
            (_, true) => LatencyShape::PerCpu,
            _ => LatencyShape::One,
        };
        let chase = self.buffer.chase(self.measuring.common.size, &self.timing);
        let task = Task::Latency(LatencySpec { shape, chase, orders: self.orders });
        self.measuring.request(Spec { keep_awake: self.keep_awake, ..Spec::new(task) })
    }
}

#[cfg(test)]
mod tests {
    use memgauge_model::experiment::Hops;

    use super::*;
    use crate::cli::tests::{refused, spec};

    #[test]
    fn a_chase_alone() {
        let plain = Spec::new(Task::latency(LatencyShape::One));
        assert_eq!(spec("memgauge latency"), plain);
        let got = spec("memgauge latency --order sequential --order full-random --hops 5000 --histogram --touch-cpu 3 --keep-awake 1,5");
        let latency = |spec: Spec| options!(spec.task, Latency);
        let keep_awake = got.keep_awake.clone();
        let got = latency(got);
        assert_eq!(got.orders, [ChaseOrder::Sequential, ChaseOrder::FullRandom]);
        assert_eq!((got.chase.hops, got.chase.histogram, got.chase.touch), (Some(Hops::Count(5000)), Some(8), Some(3)));
        assert_eq!(keep_awake, Some("1,5".parse().unwrap()));
        assert_eq!(latency(spec("memgauge latency --histogram 64 --hops pass")).chase.histogram, Some(64));
        assert_eq!(latency(spec("memgauge latency --histogram --hops pass")).chase.hops, Some(Hops::OnePass));
        for bad in ["0", "1.5", "all", ""] {
            assert!(refused(&format!("memgauge latency --hops {bad}")).contains("above 0"), "{bad}");
        }
        assert!(refused("memgauge latency --hops 1 --time 1s").contains("cannot be used with"));
    }
}
