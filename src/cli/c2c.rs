//! `memgauge c2c`: its command line.

use clap::Args;
use memgauge_model::experiment::{Experiment, LineState};
use memgauge_model::spec::{Spec, Task, TransferShape, TransferSpec};
use memgauge_model::units::Bytes;

use super::options::{ChaseBuffer, Order, Prefetch, with_default};
use super::output::panels;
use super::request::{Common, Request};
use super::values::{STATES, one_of};

#[derive(Debug, Args)]
#[command(
    mut_arg("window", |window| with_default(window, "half of an L2")),
    mut_arg("panels", |arg| panels(arg, &[Experiment::CacheToCache, Experiment::CacheToCacheMatrix])),
    after_help = "Examples:
  memgauge c2c                            one pair for each kind of distance
  memgauge c2c --matrix                   every pair of CPUs, or of --cpu
  memgauge c2c --node-matrix              modified lines between nodes
  memgauge c2c --reader 0 --holder 1      one pair
  memgauge c2c --reader 1 --holder 0 --node 0    lines at home on node 0"
)]
pub(super) struct C2cArgs {
    /// Every pair of CPUs instead of representatives
    #[arg(long, help_heading = "Transfer")]
    matrix: bool,
    /// Modified lines from every node with CPUs to every other, and a near pair
    #[arg(long, conflicts_with = "matrix", help_heading = "Transfer")]
    node_matrix: bool,
    /// CPU that reads the lines [default: the first of --cpu]
    #[arg(long, value_name = "N", help_heading = "Transfer")]
    reader: Option<u32>,
    /// CPU that holds the lines; measures only this one pair
    #[arg(long, value_name = "N", requires = "reader", help_heading = "Transfer")]
    holder: Option<u32>,
    /// A third CPU that loads the lines before the reader does, so that they are shared
    #[arg(long, value_name = "N", requires = "holder", help_heading = "Transfer")]
    sharer: Option<u32>,
    /// State of the lines in the holder's cache; may be repeated [default: both]
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',', value_parser = one_of(&STATES), help_heading = "Transfer")]
    states: Vec<LineState>,
    /// Bytes of another buffer that the holder reads once it has the lines, so that they move to an outer cache
    #[arg(long, value_name = "SIZE", default_value = "0", hide = true)]
    holder_pushes: Bytes,
    /// Bytes of another buffer that the reader reads before it reads the lines
    #[arg(long, value_name = "SIZE", default_value = "0", hide = true)]
    reader_pushes: Bytes,
    #[command(flatten)]
    order: Order,
    #[command(flatten)]
    buffer: ChaseBuffer,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    prefetch: Prefetch,
}

impl C2cArgs {
    pub(super) fn request(self) -> Request {
        let shape = match (self.matrix, self.node_matrix) {
            (true, _) => TransferShape::CpuMatrix,
            (_, true) => TransferShape::NodeMatrix,
            _ => TransferShape::Representatives,
        };
        let task = Task::C2c(TransferSpec {
            shape,
            reader: self.reader,
            holder: self.holder,
            sharer: self.sharer,
            buffer: self.common.size,
            window: self.buffer.lines.window,
            stride: self.buffer.lines.stride,
            touch: self.buffer.touch_cpu,
            hops: None,
            holder_pushes: self.holder_pushes,
            reader_pushes: self.reader_pushes,
            states: self.states,
            order: self.order.not_default(),
            chase_window: None,
        });
        self.common.request(Spec { prefetch: self.prefetch.prefetch, ..Spec::new(task) })
    }
}

#[cfg(test)]
mod tests {
    use memgauge_model::experiment::ChaseOrder;

    use super::*;
    use crate::cli::tests::{refused, spec};

    #[test]
    fn transfers() {
        let transfer = |line: &str| options!(spec(line).task, C2c);
        assert_eq!(spec("memgauge c2c"), Spec::new(Task::c2c(TransferShape::Representatives)));
        assert_eq!(spec("memgauge c2c --node-matrix").task, Task::c2c(TransferShape::NodeMatrix));
        let got = transfer(
            "memgauge c2c --reader 0 --holder 1 --sharer 2 --state hitm --holder-pushes 1M --reader-pushes 64K --order sequential",
        );
        assert_eq!((got.reader, got.holder, got.sharer), (Some(0), Some(1), Some(2)));
        assert_eq!((got.holder_pushes, got.reader_pushes), (Bytes::mib(1), Bytes::kib(64)));
        assert_eq!((got.states, got.order), (vec![LineState::Hitm], Some(ChaseOrder::Sequential)));
        assert_eq!(transfer("memgauge c2c --state hit,hitm").states, [LineState::Hit, LineState::Hitm]);
        assert!(refused("memgauge c2c --holder 1").contains("--reader"));
        assert!(refused("memgauge c2c --matrix --node-matrix").contains("cannot be used with"));
    }
}
