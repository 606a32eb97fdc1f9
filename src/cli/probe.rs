//! What is asked of the chase and of transfers, beside its window and stride.

use clap::{Args, ValueEnum};
use memgauge_core::distribution::DEFAULT_BATCH;
use memgauge_core::experiment::{ChaseOrder, Hops, LineState};
use memgauge_core::spec::{Spec, TransferShape};
use memgauge_core::units::{Bytes, IdSet, ParseError};

/// Where the chase's buffer is, and how the chase is timed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Chase")]
struct Timing {
    /// Chase N hops instead of for a time: exactly so many in each of several fresh buffers; beside loaders at least so many for each point.
    /// pass = as many as the buffer has lines
    #[arg(long, value_name = "N|pass", value_parser = parse_hops, conflicts_with_all = ["time", "budget"])]
    hops: Option<Hops>,
    /// Also time single batches of BATCH hops (1, 8 or 64) and show how they are distributed [default BATCH: 8]
    #[arg(long, value_name = "BATCH", num_args = 0..=1, default_missing_value = DEFAULT)]
    histogram: Option<u32>,
}

const DEFAULT: &str = "8";
const _: () = assert!(DEFAULT_BATCH == 8, "the help and the default say the same");

/// Who touches the buffer first.
#[derive(Debug, Args)]
#[command(next_help_heading = "Chase")]
struct Touch {
    /// CPU that touches the chase's buffer first; the buffer is on that CPU's node [default: CPUs of the buffer's node]
    #[arg(long, value_name = "N")]
    touch_cpu: Option<u32>,
}

/// For `latency`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Chase")]
pub(super) struct Idle {
    /// Order of the chase; may be repeated [default: window-local and full-random]
    #[arg(long = "order", value_name = "ORDER", value_delimiter = ',')]
    orders: Vec<OrderArg>,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    touch: Touch,
    /// CPUs to keep busy meanwhile [default: one of each other package, so that these stay awake]
    #[arg(long, value_name = "LIST")]
    keep_awake: Option<IdSet>,
}

/// For `loaded`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Chase")]
pub(super) struct Beside {
    /// CPU that chases [default: the first of --cpu]
    #[arg(long, value_name = "N")]
    probe_cpu: Option<u32>,
    /// Node of the chase's buffer; the loaders' buffers stay where they are [default: that of its CPU]
    #[arg(long, value_name = "N", conflicts_with = "touch_cpu")]
    probe_node: Option<u32>,
    /// Order of the chase
    #[arg(long, value_name = "ORDER", default_value = "window-local")]
    order: OrderArg,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    touch: Touch,
}

/// For the commands whose cells another program may start.
#[derive(Debug, Args)]
#[command(next_help_heading = "Start")]
pub(super) struct Signal {
    /// Wait before each cell until another program writes 1 into the shared-memory word NAME (/dev/shm/NAME): 2 = measuring, 3 = done
    #[arg(long, value_name = "NAME")]
    start_signal: Option<String>,
}

/// For `c2c`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Transfer")]
pub(super) struct Transfer {
    /// Every pair of CPUs instead of representatives
    #[arg(long)]
    matrix: bool,
    /// A near pair, and modified lines from every node with CPUs to every other
    #[arg(long, conflicts_with = "matrix")]
    node_matrix: bool,
    /// CPU that reads the lines [default: the first of --cpu]
    #[arg(long, value_name = "N")]
    reader: Option<u32>,
    /// CPU that holds the lines; with --reader this is the one pair
    #[arg(long, value_name = "N", requires = "reader")]
    holder: Option<u32>,
    /// A third CPU that loads the lines in between, so that they are shared
    #[arg(long, value_name = "N", requires = "holder")]
    sharer: Option<u32>,
    /// State in which the holder has the lines; may be repeated [default: both]
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',')]
    states: Vec<StateArg>,
    /// Bytes of another buffer that the holder reads once it has the lines, so that they move to an outer cache
    #[arg(long, value_name = "SIZE", default_value = "0", hide_default_value = true)]
    holder_pushes: Bytes,
    /// Bytes of another buffer that the reader reads before it reads the lines
    #[arg(long, value_name = "SIZE", default_value = "0", hide_default_value = true)]
    reader_pushes: Bytes,
    /// Order in which the lines are visited
    #[arg(long, value_name = "ORDER", default_value = "window-local")]
    order: OrderArg,
    #[command(flatten)]
    touch: Touch,
}

/// Which order, on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OrderArg {
    WindowLocal,
    FullRandom,
    Sequential,
}

impl From<OrderArg> for ChaseOrder {
    fn from(order: OrderArg) -> Self {
        match order {
            OrderArg::WindowLocal => Self::WindowLocal,
            OrderArg::FullRandom => Self::FullRandom,
            OrderArg::Sequential => Self::Sequential,
        }
    }
}

impl OrderArg {
    /// The order where it is not the one of old.
    pub(super) fn other(self) -> Option<ChaseOrder> {
        (self != Self::WindowLocal).then(|| self.into())
    }
}

/// Which state, on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum StateArg {
    Hit,
    Hitm,
}

impl From<StateArg> for LineState {
    fn from(state: StateArg) -> Self {
        match state {
            StateArg::Hit => Self::Hit,
            StateArg::Hitm => Self::Hitm,
        }
    }
}

/// A number of hops, or `pass`.
fn parse_hops(text: &str) -> Result<Hops, ParseError> {
    match text.trim() {
        "pass" => Ok(Hops::OnePass),
        number => match number.parse() {
            Ok(hops) if hops > 0 => Ok(Hops::Count(hops)),
            _ => Err(ParseError { input: text.into(), expected: "a number of hops above 0, such as 1000000, or 'pass'" }),
        },
    }
}

impl Timing {
    fn apply(&self, spec: &mut Spec) {
        spec.chase.hops = self.hops;
        spec.chase.histogram = self.histogram;
    }
}

impl Idle {
    pub(super) fn apply(self, spec: &mut Spec) {
        self.timing.apply(spec);
        spec.chase.orders = self.orders.into_iter().map(Into::into).collect();
        spec.chase.touch = self.touch.touch_cpu;
        spec.keep_awake = self.keep_awake;
    }
}

impl Beside {
    pub(super) fn apply(self, spec: &mut Spec) {
        self.timing.apply(spec);
        spec.chase.cpu = self.probe_cpu;
        spec.chase.node = self.probe_node;
        spec.chase.orders = self.order.other().into_iter().collect();
        spec.chase.touch = self.touch.touch_cpu;
    }
}

impl Signal {
    pub(super) fn apply(self, spec: &mut Spec) {
        spec.start_signal = self.start_signal;
    }
}

impl Transfer {
    pub(super) const fn shape(&self) -> TransferShape {
        match (self.matrix, self.node_matrix) {
            (true, _) => TransferShape::CpuMatrix,
            (_, true) => TransferShape::NodeMatrix,
            _ => TransferShape::Representatives,
        }
    }

    pub(super) fn apply(self, spec: &mut Spec) {
        spec.chase.cpu = self.reader;
        spec.chase.touch = self.touch.touch_cpu;
        spec.transfer.holder = self.holder;
        spec.transfer.sharer = self.sharer;
        spec.transfer.holder_pushes = self.holder_pushes;
        spec.transfer.reader_pushes = self.reader_pushes;
        spec.transfer.states = self.states.into_iter().map(Into::into).collect();
        spec.transfer.order = self.order.other();
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use memgauge_core::spec::{LatencyShape, Task};

    use super::*;
    use crate::cli::{Asked, Cli};

    fn spec(line: &str) -> Spec {
        match Cli::try_parse_from(line.split(' ')).unwrap().asked().unwrap() {
            Asked::Measure(request) => request.spec,
            _ => panic!("{line} measures"),
        }
    }

    fn refused(line: &str) -> String {
        Cli::try_parse_from(line.split(' ')).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn a_chase_alone() {
        let plain = Spec::new(Task::Latency(LatencyShape::One));
        assert_eq!(spec("memgauge latency"), plain);
        let got = spec("memgauge latency --order sequential --order full-random --hops 5000 --histogram --touch-cpu 3 --keep-awake 1,5");
        assert_eq!(got.chase.orders, [ChaseOrder::Sequential, ChaseOrder::FullRandom]);
        assert_eq!((got.chase.hops, got.chase.histogram, got.chase.touch), (Some(Hops::Count(5000)), Some(8), Some(3)));
        assert_eq!(got.keep_awake, Some("1,5".parse().unwrap()));
        assert_eq!(spec("memgauge latency --histogram 64 --hops pass").chase.histogram, Some(64));
        assert_eq!(spec("memgauge latency --histogram --hops pass").chase.hops, Some(Hops::OnePass));
        for bad in ["0", "1.5", "all", ""] {
            assert!(refused(&format!("memgauge latency --hops {bad}")).contains("above 0"), "{bad}");
        }
        assert!(refused("memgauge latency --hops 1 --time 1s").contains("cannot be used with"));
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

    #[test]
    fn transfers() {
        assert_eq!(spec("memgauge c2c"), Spec::new(Task::C2c(TransferShape::Representatives)));
        assert_eq!(spec("memgauge c2c --node-matrix").task, Task::C2c(TransferShape::NodeMatrix));
        let got =
            spec("memgauge c2c --reader 0 --holder 1 --sharer 2 --state hitm --holder-pushes 1M --reader-pushes 64K --order sequential");
        assert_eq!((got.chase.cpu, got.transfer.holder, got.transfer.sharer), (Some(0), Some(1), Some(2)));
        assert_eq!((got.transfer.holder_pushes, got.transfer.reader_pushes), (Bytes::mib(1), Bytes::kib(64)));
        assert_eq!((got.transfer.states, got.transfer.order), (vec![LineState::Hitm], Some(ChaseOrder::Sequential)));
        assert_eq!(spec("memgauge c2c --state hit,hitm").transfer.states, [LineState::Hit, LineState::Hitm]);
        assert!(refused("memgauge c2c --holder 1").contains("--reader"));
        assert!(refused("memgauge c2c --matrix --node-matrix").contains("cannot be used with"));
    }
}
