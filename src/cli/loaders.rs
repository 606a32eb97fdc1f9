//! `memgauge bandwidth` and `memgauge loaded`: their command lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use memgauge_model::experiment::Experiment;
use memgauge_model::integrity::TestPattern;
use memgauge_model::spec::{BandwidthShape, BandwidthSpec, CurveSpec, LoadedSpec, Spec, Task, TrafficSpec};
use memgauge_model::traffic::{Access, LineContent, LineUse};
use memgauge_model::units::{Bytes, IdSet, ParseError, parse_duration};

use super::options::{ChaseBuffer, ChaseTiming, Load, Order};
use super::output::panels;
use super::request::{Measuring, Request};
use super::values::{ACCESSES, LINE_USES, MAX_DELAY_CYCLES, one_of};
use crate::contents;
use crate::input;

/// What loaders do.
#[derive(Debug, Args)]
#[command(next_help_heading = "Traffic")]
struct Loaders {
    /// Core cycles to wait after every four lines (injection delay); one result for each value [default: none]
    #[arg(long = "delay", value_name = "CYCLES", value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_DELAY_CYCLES)))]
    delays: Vec<u32>,
    #[command(flatten)]
    load: Load,
    /// Order in which lines are visited
    #[arg(long, value_name = "ORDER", default_value = "sequential", value_parser = one_of(&ACCESSES))]
    access: Access,
    /// With random access: finish a window of this size before the next begins [default: the whole buffer]
    #[arg(long, value_name = "SIZE", requires = "access")]
    random_window: Option<Bytes>,
    /// Visit one line in every SIZE bytes
    #[arg(long, value_name = "SIZE")]
    line_stride: Option<Bytes>,
    /// Use of each line: touch all or part of it, write it back to memory after the store (CLWB, CLFLUSHOPT), or check after each pass that the
    /// data that was read is the data that was written
    #[arg(long = "line", value_name = "USE", default_value = "whole", value_parser = one_of(&LINE_USES))]
    line_use: LineUse,
    /// Patterns that --line check also writes and compares, before it reads [default: random words and their complement]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = one_of(&TestPattern::ALL))]
    patterns: Vec<TestPattern>,
    /// With --line check: compare what was written only after this time [default: as soon as a sweep ends]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    hold: Option<Duration>,
    /// Let all loaders read one buffer; if it is small, this is the bandwidth of shared caches
    #[arg(long)]
    shared_buffer: bool,
    /// Fill buffers with the lines of FILE, again and again: 128 hexadecimal digits each, 64 bytes. Stores write the first line
    #[arg(long, value_name = "FILE", hide = true)]
    contents: Option<PathBuf>,
    /// Wait before each cell until another program writes 1 into the shared-memory word NAME (/dev/shm/NAME; on Windows Local\NAME): 2 = measuring, 3 = done
    #[arg(long, value_name = "NAME", hide = true)]
    start_signal: Option<String>,
}

impl Loaders {
    /// The task that has these delays and this traffic, measured like this.
    ///
    /// # Errors
    /// When the file of contents cannot be read or is not one.
    fn request(self, measuring: Measuring, task: impl FnOnce(Vec<u32>, TrafficSpec) -> Task) -> anyhow::Result<Request> {
        let peak_gbs = self.load.limit.peak_gbs;
        let traffic = TrafficSpec {
            load: self.load.spec(),
            buffer: measuring.common.size,
            access: self.access,
            stride: self.line_stride,
            window: self.random_window,
            line: self.line_use,
            patterns: self.patterns,
            hold: self.hold,
            shared: self.shared_buffer,
            contents: self.contents.map(|path| read_contents(&path)).transpose()?.unwrap_or_default(),
            burst_lines: BTreeMap::new(),
            threads: Vec::new(),
        };
        let spec = Spec { start_signal: self.start_signal, peak_gbs, ..Spec::new(task(self.delays, traffic)) };
        Ok(measuring.request(spec))
    }
}

fn read_contents(path: &Path) -> anyhow::Result<Vec<LineContent>> {
    contents::parse(&input::read_text(path)?).map_err(|why| anyhow!("{}: {why}", path.display()))
}

const BANDWIDTHS: [Experiment; 4] =
    [Experiment::Bandwidth, Experiment::BandwidthMatrix, Experiment::BandwidthRamp, Experiment::BandwidthSearch];

#[derive(Debug, Args)]
#[command(mut_arg("panels", |arg| panels(arg, &BANDWIDTHS)), after_help = "Examples:
  memgauge bandwidth                      all CPUs read their own nodes' memory
  memgauge bandwidth --peak               ten usual mixes of reads and writes
  memgauge bandwidth --matrix             from every node to every node
  memgauge bandwidth --ramp --mix 2:1     1, 2, 4 ... CPUs
  memgauge bandwidth --ramp 1,2           1 and 2 CPUs; or a list: 1,2,4-48:2
  memgauge bandwidth --search             the highest bandwidth of each mix
  memgauge bandwidth --access random --mix all-reads,2:1
  memgauge bandwidth --line check --time 60s
  memgauge bandwidth --cpu 0 --mix triad --width avx2")]
pub(super) struct BandwidthArgs {
    /// From every node with CPUs to every node with memory
    #[arg(long, group = "shape", conflicts_with = "delays")]
    matrix: bool,
    /// Ten usual mixes of reads and writes; others with --mix
    #[arg(long, group = "shape")]
    peak: bool,
    /// Growing numbers of CPUs: 1, 2, 4 ... all, or a LIST such as 1,2,4-48:2
    #[arg(long, value_name = "LIST", group = "shape", conflicts_with = "delays", num_args = 0..=1, default_missing_value = "")]
    ramp: Option<IdSet>,
    /// The highest bandwidth of each mix: over several numbers of CPUs and injection delays, because too many requests at once can cost
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
        let shape = match (self.matrix, self.peak, self.ramp.is_some(), self.search) {
            (true, ..) => BandwidthShape::Matrix,
            (_, true, ..) => BandwidthShape::Peak,
            (_, _, true, _) => BandwidthShape::Ramp(self.ramp.unwrap_or_default()),
            (.., true) => BandwidthShape::Search,
            _ => BandwidthShape::One,
        };
        self.loaders.request(self.measuring, |delays, traffic| Task::Bandwidth(BandwidthSpec { shape, delays, traffic }))
    }
}

#[derive(Debug, Args)]
#[command(
    mut_arg("delays", |arg| arg.help("Core cycles to wait after every four lines (injection delay), one point for each value [default: chosen while measuring]")),
    mut_arg("panels", |arg| panels(arg, &[Experiment::LoadedLatency])),
    after_help = "The first CPU chases. The others load, except the hardware threads of its own core.

Examples:
  memgauge loaded                         points evenly spread in bandwidth
  memgauge loaded --mix all-reads,2:1     a curve for each mix
  memgauge loaded --delay 0,100,500,2000  points at these delays
  memgauge loaded --at 50%,75%,90%        also at these shares of the peak
  memgauge loaded --load-node 0           the chase stays, node 0 is loaded"
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
        let mut at_percent = self.at_percent;
        at_percent.sort_unstable();
        at_percent.dedup();
        let chase = self.buffer.chase(self.measuring.common.size, &self.timing);
        let order = self.order.not_default();
        self.loaders.request(self.measuring, |delays, traffic| {
            let curve = CurveSpec { cpu: self.probe_cpu, node: self.probe_node, load_nodes: self.load_nodes, delays, at_percent };
            Task::Loaded(LoadedSpec { chase, order, curve, traffic })
        })
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
    use memgauge_model::experiment::{ChaseOrder, Hops};

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
        assert_eq!(spec("memgauge loaded"), Spec::new(Task::loaded()));
        let got = spec("memgauge loaded --probe-cpu 2 --probe-node 1 --order full-random --hops pass --histogram 1 --start-signal go");
        let loaded = options!(got.task, Loaded);
        assert_eq!((loaded.curve.cpu, loaded.curve.node, loaded.chase.histogram), (Some(2), Some(1), Some(1)));
        assert_eq!((loaded.order, loaded.chase.hops), (Some(ChaseOrder::FullRandom), Some(Hops::OnePass)));
        assert_eq!(got.start_signal.as_deref(), Some("go"));
        assert_eq!(spec("memgauge bandwidth --start-signal /go").start_signal.as_deref(), Some("/go"));
        assert!(refused("memgauge loaded --probe-node 1 --touch-cpu 1").contains("cannot be used with"));
    }
}
