//! `memgauge loaded`: its command line.

use clap::Args;
use memgauge_core::spec::{Spec, Task};
use memgauge_core::units::{IdSet, ParseError};

use super::options::{ChaseBuffer, ChaseTiming, Loaders, Order};
use super::request::{Measuring, Request};

#[derive(Debug, Args)]
#[command(
    mut_arg("delays", |arg| arg.help("Injection delays in core cycles between bursts of four lines, one point each [default: chosen while measuring]")),
    after_help = "The first CPU chases. The others load, except the hardware threads of its own core.

Examples:
  memgauge loaded                         points that are evenly spread in bandwidth
  memgauge loaded --mix all-reads,2:1     a curve for each mix
  memgauge loaded --delay 0,100,500,2000  points at these delays
  memgauge loaded --at 50%,75%,90%        also the latency at these shares of the peak bandwidth
  memgauge loaded --load-node 2           the chase stays in its node while node 2 is loaded"
)]
pub(super) struct LoadedArgs {
    /// Also find the latency at these shares of the peak bandwidth, such as 50%,75%,90%
    #[arg(long = "at", value_name = "PERCENT", value_delimiter = ',', value_parser = parse_share, help_heading = "Curve")]
    at_percent: Vec<u32>,
    /// Nodes of the loaders' memory, while the chase stays in its own: shows how one node or tier disturbs another. The CPUs nearest to
    /// these nodes load
    #[arg(long = "load-node", value_name = "LIST", help_heading = "Curve")]
    load_nodes: Option<IdSet>,
    /// CPU that chases [default: the first of --cpu]
    #[arg(long, value_name = "N", help_heading = "Chase")]
    probe_cpu: Option<u32>,
    /// Node of the chase's buffer; the loaders' buffers stay where they are [default: the node of its CPU]
    #[arg(long, value_name = "N", conflicts_with = "touch_cpu", help_heading = "Chase")]
    probe_node: Option<u32>,
    #[command(flatten)]
    order: Order,
    #[command(flatten)]
    buffer: ChaseBuffer,
    #[command(flatten)]
    timing: ChaseTiming,
    #[command(flatten)]
    loaders: Loaders,
    #[command(flatten)]
    measuring: Measuring,
}

impl LoadedArgs {
    pub(super) fn request(self) -> anyhow::Result<Request> {
        let mut spec = Spec::new(Task::Loaded);
        spec.load_nodes = self.load_nodes;
        spec.at_percent = self.at_percent;
        spec.at_percent.sort_unstable();
        spec.at_percent.dedup();
        spec.chase.cpu = self.probe_cpu;
        spec.chase.node = self.probe_node;
        spec.chase.orders = self.order.not_default().into_iter().collect();
        self.buffer.apply(&mut spec);
        self.timing.apply(&mut spec);
        self.loaders.apply(&mut spec)?;
        Ok(self.measuring.request(spec))
    }
}

/// A share of the peak in whole percent: `75%` or `75`.
fn parse_share(text: &str) -> Result<u32, ParseError> {
    let digits = text.trim().strip_suffix('%').unwrap_or(text.trim()).trim_end();
    let share = digits.parse().ok().filter(|percent| (1..=99).contains(percent));
    share.ok_or_else(|| ParseError { input: text.into(), expected: "whole percent of the peak from 1% to 99%, such as 75%" })
}

#[cfg(test)]
mod tests {
    use memgauge_core::experiment::{ChaseOrder, Hops};

    use super::*;
    use crate::cli::tests::{refused, spec};

    #[test]
    fn shares_are_whole_percent_below_the_peak() {
        for (text, share) in
            [("50%", Some(50)), ("90", Some(90)), (" 7 %", Some(7)), ("100%", None), ("0", None), ("0.5", None), ("x", None)]
        {
            assert_eq!(parse_share(text).ok(), share, "{text}");
        }
    }

    #[test]
    fn a_chase_beside_loaders() {
        assert_eq!(spec("memgauge loaded"), Spec::new(Task::Loaded));
        let got = spec("memgauge loaded --probe-cpu 2 --probe-node 1 --order full-random --hops pass --histogram 1 --start-signal go");
        assert_eq!((got.chase.cpu, got.chase.node, got.chase.histogram), (Some(2), Some(1), Some(1)));
        assert_eq!((got.chase.orders, got.chase.hops), (vec![ChaseOrder::FullRandom], Some(Hops::OnePass)));
        assert_eq!(got.start_signal.as_deref(), Some("go"));
        assert_eq!(spec("memgauge bandwidth --start-signal /go").start_signal.as_deref(), Some("/go"));
        assert!(refused("memgauge loaded --probe-node 1 --touch-cpu 1").contains("cannot be used with"));
    }
}
