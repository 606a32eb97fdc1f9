//! Steps and cells: everything that will be done, in order.

use serde::{Deserialize, Serialize};

use crate::directory::MemoryDir;
use crate::experiment::{ChaseOrder, Coordinates, Experiment, Hops, Metric};
use crate::interleave::{Goal, Weights};
use crate::note::Note;
#[cfg(feature = "schema")]
use crate::plan::loaders::AlikeLoaders;
use crate::plan::loaders::{BufferPlan, Delays, Loader, Probe, Traffic, alike};
use crate::plan::scan::Scan;
use crate::plan::stamp::StampPlan;
use crate::plan::transfers::{Handoff, Transfers};
use crate::protocol::{KEPT_OF_MANY, MANY_CELLS};
use crate::tiers::NodeKind;
use crate::traffic::LineContent;
use crate::units::{Bytes, IdSet};

/// Everything that will be done, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// When a cell's measuring ends.
    pub stop: StopRule,
    /// Seed of the chase orders; every buffer derives its own from it.
    pub seed: u64,
    /// CPUs kept busy so that other packages' caches and links stay awake while one package is measured.
    pub keep_awake: IdSet,
    /// Whether the user named the CPUs to keep busy. They are then busy even while their own package is measured, except for those that
    /// measure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_awake_named: bool,
    /// CPUs, one of each core, whose frequencies are compared while all of them work, before and after everything else; for a health check.
    #[serde(default, skip_serializing_if = "IdSet::is_empty")]
    pub compared_cores: IdSet,
    /// Directories whose files are buffers, as the kernel described them when the plan was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<MemoryDir>,
    /// Which kind of memory each node has, where tiers of memory are compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<NodeKind>,
    /// Estimated time of the whole run in seconds. The intervals of most cells are narrow before their budget is spent.
    pub estimated_s: f64,
    /// The time if every cell spends its whole budget, as on a machine that is never quiet. For a health check, the time after which it
    /// ends. 0 in files of versions that did not state it.
    #[serde(default)]
    pub max_s: f64,
    /// Seconds after which the run ends, whatever has been measured by then; absent if there is no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_s: Option<f64>,
    /// What is measured more coarsely than usual so that the run ends in time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coarsened: Vec<Coarsened>,
    /// The content of the buffers: these lines in turn, repeated, as hexadecimal digits. If empty, the buffers contain what allocation and
    /// kernels leave there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<LineContent>,
    /// Name of a shared-memory word. Each cell waits until its value is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_signal: Option<String>,
    /// The machine's memory bandwidth limit as the user gave it, in 10^9 bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_gbs: Option<f64>,
    /// Whether hardware events are counted while measured windows run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counters: bool,
    /// The stamps at the beginning and at the end of the run; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Box<StampPlan>>,
    /// What the reader should know about the plan.
    pub notes: Vec<Note>,
}

impl Plan {
    /// Samples of each burst that a result keeps at most; `None` if the plan has few cells and they keep as many as always.
    pub fn kept_samples(&self) -> Option<usize> {
        (self.steps.iter().map(|s| s.cells.len()).sum::<usize>() > MANY_CELLS).then_some(KEPT_OF_MANY)
    }

    /// The directory that a buffer's file is in.
    pub fn buffer_directory(&self, buffer: &BufferPlan) -> Option<&MemoryDir> {
        let path = buffer.directory.as_ref()?;
        self.directories.iter().find(|d| d.file.path == *path)
    }
}

/// Something that is measured more coarsely than usual because the time is short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coarsened {
    /// Title of the step; absent if it holds for all steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What there is less of.
    pub what: Coarsening,
    /// How much there is without a limit on time: seconds, bytes or a number.
    pub from: f64,
    /// How much there is now.
    pub to: f64,
}

/// The quantity that is reduced if time is short. The variants are in the order of reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Coarsening {
    /// The longest time, in seconds, that a cell or a point of a curve measures. If it is short, bursts are shorter too.
    Seconds,
    /// Fresh allocations of a latency cell, or passes of a scan.
    Repetitions,
    /// Points of a curve or a sweep. The ends stay.
    Points,
    /// Orders of a chase: not full-random, whose layout takes long to make over a large buffer.
    Orders,
    /// Bytes of the largest buffer. A chase still looks whether half of it is as slow as all of it, and doubles it where it is not.
    BufferBytes,
    /// Kernels among which the fastest is found for a mix. The widest stays.
    Kernels,
    /// Regions of a scan: the rest of the memory is not read.
    Regions,
    /// Cells. Of a matrix each node's own memory and one other node's stay.
    Cells,
}

/// When a cell's measuring ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopRule {
    /// A cell is finished when half of the 95 % interval of its median is at most this share of the median.
    pub relative_half_width: f64,
    /// The longest time, in seconds, that one cell measures.
    pub budget_s: f64,
    /// Whether to measure for the whole budget even if the interval is narrow.
    pub fixed_time: bool,
}

/// Cells that make up one table or one curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// Title for people, such as `Idle latency`.
    pub title: String,
    /// What is measured.
    pub experiment: Experiment,
    /// What varies.
    pub cells: Vec<Cell>,
    /// Estimate in seconds.
    pub estimated_s: f64,
}

impl Step {
    /// How much there is of what is measured more coarsely where the time is short.
    pub fn amount(&self, what: Coarsening) -> f64 {
        let each = self.cells.iter().map(|cell| cell.work.amount(what));
        match what {
            Coarsening::Cells => self.cells.len() as f64,
            Coarsening::Regions => each.sum(),
            _ => each.fold(0.0, f64::max),
        }
    }
}

/// One experiment: coordinates and the work to do there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// Its coordinates.
    pub at: Coordinates,
    /// What is done.
    pub work: Work,
    /// Whether it repeats an earlier cell, to check for drift or to confirm what looked wrong.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
}

impl Cell {
    /// A cell that is measured for the first time.
    pub const fn new(at: Coordinates, work: Work) -> Self {
        Self { at, work, repeat: false }
    }
}

/// The work of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// A probe alone: window-local, full-random and sequential chase over the same buffers.
    Latency(IdleChase),
    /// Loaders alone.
    Bandwidth(Loading),
    /// A probe and loaders at several injection delays.
    Curve(LoadCurve),
    /// A probe and loaders over memory whose pages are on several nodes in turn, with weights that are searched for.
    Interleave(Box<InterleaveSearch>),
    /// One CPU's cache to another's.
    Handoff(Handoff),
    /// Every CPU's cache to every other's.
    Transfers(Transfers),
    /// Every region of a node's free memory.
    Scan(Scan),
    /// A probe alone, over working set after working set.
    LatencySweep(LatencySweep),
    /// Loaders alone, over working set after working set.
    BandwidthSweep(BandwidthSweep),
}

impl Work {
    /// The chase, if there is one.
    pub const fn probe(&self) -> Option<&Probe> {
        match self {
            Self::Latency(IdleChase { probe, .. }) | Self::Curve(LoadCurve { probe, .. }) => Some(probe),
            Self::Interleave(search) => Some(&search.probe),
            Self::LatencySweep(sweep) => Some(&sweep.probe),
            _ => None,
        }
    }

    /// The loaders.
    pub fn loaders(&self) -> &[Loader] {
        match self {
            Self::Bandwidth(Loading { loaders, .. }) | Self::Curve(LoadCurve { loaders, .. }) => loaders,
            Self::BandwidthSweep(sweep) => &sweep.loaders,
            Self::Interleave(search) => &search.loaders,
            _ => &[],
        }
    }

    /// The traffic of the loaders that have none of their own.
    pub const fn traffic(&self) -> Option<&Traffic> {
        match self {
            Self::Bandwidth(Loading { traffic, .. }) | Self::Curve(LoadCurve { traffic, .. }) => Some(traffic),
            Self::BandwidthSweep(sweep) => Some(&sweep.traffic),
            Self::Interleave(search) => Some(&search.traffic),
            _ => None,
        }
    }

    /// The injection delays of a curve.
    pub const fn delays(&self) -> Option<&Delays> {
        match self {
            Self::Curve(LoadCurve { delays, .. }) => Some(delays),
            _ => None,
        }
    }

    /// The scan of a node's memory.
    pub const fn scan(&self) -> Option<&Scan> {
        match self {
            Self::Scan(scan) => Some(scan),
            _ => None,
        }
    }

    /// The buffer of a chase that other cells may chase over as well.
    pub const fn shared_chase(&self) -> Option<&BufferPlan> {
        match self {
            Self::Latency(IdleChase { probe, .. }) | Self::Curve(LoadCurve { probe, .. }) => Some(&probe.buffer),
            Self::Handoff(handoff) => Some(&handoff.buffer),
            _ => None,
        }
    }

    /// Where the results of a cell at `at` stand if it fails: one for each order of an idle chase.
    pub fn places(&self, at: &Coordinates) -> Vec<Coordinates> {
        match self {
            Self::Latency(IdleChase { probe, orders, .. }) => {
                probe.orders(orders).iter().map(|order| Coordinates { order: Some(*order), ..at.clone() }).collect()
            }
            _ => vec![at.clone()],
        }
    }

    /// How much there is of what is measured more coarsely where the time is short.
    pub fn amount(&self, what: Coarsening) -> f64 {
        match (what, self) {
            (Coarsening::Repetitions, Self::Latency(IdleChase { allocations, .. })) => f64::from(*allocations),
            (Coarsening::Repetitions, Self::Scan(scan)) => f64::from(scan.passes),
            (Coarsening::Points, Self::Curve(LoadCurve { delays: Delays::Adaptive { points }, .. })) => f64::from(*points),
            (Coarsening::Points, Self::Curve(LoadCurve { delays: Delays::Cycles(list), .. })) => list.len() as f64,
            (Coarsening::Points, Self::LatencySweep(sweep)) => sweep.sizes.len() as f64,
            (Coarsening::Points, Self::BandwidthSweep(sweep)) => sweep.sizes.len() as f64,
            (Coarsening::Orders, Self::Latency(IdleChase { orders, .. })) if orders.is_empty() => 2.0,
            (Coarsening::Orders, Self::Latency(IdleChase { orders, .. })) => orders.len() as f64,
            (Coarsening::BufferBytes, work) => work.buffers().iter().map(|b| b.bytes.0).max().unwrap_or(0) as f64,
            // All kernels are tried for each of the weights.
            (Coarsening::Kernels, Self::Interleave(_)) => 0.0,
            (Coarsening::Kernels, work) => work.traffic().map_or(0, |traffic| traffic.kernels.len()) as f64,
            (Coarsening::Regions, Self::Scan(scan)) => f64::from(scan.regions),
            _ => 0.0,
        }
    }

    /// The metric that it measures, for results without a value.
    pub const fn metric(&self) -> Metric {
        match self {
            Self::Bandwidth(Loading { traffic, .. }) if traffic.form.line.persists().is_some() => Metric::Latency,
            Self::Bandwidth(_) | Self::BandwidthSweep(_) | Self::Scan(_) => Metric::Bandwidth,
            Self::Latency(_) | Self::Curve(_) | Self::Interleave(_) | Self::Handoff(_) | Self::Transfers(_) | Self::LatencySweep(_) => {
                Metric::Latency
            }
        }
    }

    /// The CPUs that work.
    pub fn cpus(&self) -> IdSet {
        match self {
            Self::Handoff(handoff) => [handoff.holder, handoff.reader].into_iter().chain(handoff.sharer).collect(),
            Self::Transfers(transfers) => transfers.ends.iter().map(|e| e.cpu).collect(),
            Self::Scan(scan) => scan.cpus.clone(),
            _ => self.loaders().iter().map(|l| l.cpu).chain(self.probe().map(|p| p.cpu)).collect(),
        }
    }

    /// The buffers that exist at the same time; for a scan, one of its regions.
    pub fn buffers(&self) -> Vec<&BufferPlan> {
        match self {
            Self::Handoff(handoff) => vec![&handoff.buffer],
            Self::Transfers(transfers) => transfers.ends.iter().flat_map(|e| &e.buffers).collect(),
            Self::Scan(scan) => vec![&scan.region],
            _ => self.loaders().iter().flat_map(Loader::buffers).chain(self.probe().map(|p| &p.buffer)).collect(),
        }
    }
}

/// A chase alone, over fresh allocations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, description = ""))]
pub struct IdleChase {
    /// The probe.
    pub probe: Probe,
    /// The smallest number of fresh allocations.
    pub allocations: u32,
    /// Orders of the chase. If empty: window-local, and also full-random if the buffer is larger than the chase window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<ChaseOrder>,
    /// Length of each chase, if it was given instead of a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops: Option<Hops>,
    /// Hops per batch, if a histogram was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<u32>,
}

/// Loaders alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, description = ""))]
pub struct Loading {
    /// The loaders.
    #[serde(with = "alike")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<AlikeLoaders>"))]
    pub loaders: Vec<Loader>,
    /// Their traffic.
    pub traffic: Traffic,
    /// Injection delay, in core cycles after every four lines.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub delay: u32,
}

/// A chase beside loaders, at several injection delays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, description = ""))]
pub struct LoadCurve {
    /// The probe.
    pub probe: Probe,
    /// The loaders.
    #[serde(with = "alike")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<AlikeLoaders>"))]
    pub loaders: Vec<Loader>,
    /// Their traffic.
    pub traffic: Traffic,
    /// Which delays.
    pub delays: Delays,
    /// Shares of the peak bandwidth, in percent, at which the latency is determined after the curve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_percent: Vec<u32>,
    /// Order of the chase.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub order: ChaseOrder,
    /// Length of the chase at each delay, if it was given instead of a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops: Option<Hops>,
    /// Hops per batch, if a histogram was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<u32>,
}

/// A search for the weights with which loaders move most, or a chase beside them waits least.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterleaveSearch {
    /// The probe. Its buffer and the loaders' are of the plan's bytes, with pages on the nodes in turn.
    pub probe: Probe,
    /// The loaders.
    #[serde(with = "alike")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<AlikeLoaders>"))]
    pub loaders: Vec<Loader>,
    /// Their traffic.
    pub traffic: Traffic,
    /// The nodes, the nearest first.
    pub nodes: Vec<u32>,
    /// The kernel's weights, which are always measured; absent if the kernel has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Weights>,
    /// The purpose of the weights.
    pub goal: Goal,
}

/// A pointer chase alone over working sets that all begin where the probe's buffer begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencySweep {
    /// The probe; its buffer holds the largest working set.
    pub probe: Probe,
    /// Order of the chase.
    pub order: ChaseOrder,
    /// The working sets, ascending, in bytes of the lines that are chased. These lines are [`Probe::stride`] apart.
    pub sizes: Vec<Bytes>,
}

impl LatencySweep {
    /// Bytes of the buffer that the lines of a working set are spread over.
    pub const fn range(&self, size: Bytes, line: Bytes) -> Bytes {
        Bytes(size.0 / line.0 * self.probe.stride.0)
    }
}

/// Loaders alone over working sets that all begin where their buffers begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BandwidthSweep {
    /// The loaders; each one's buffer holds the largest working set.
    #[serde(with = "alike")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<AlikeLoaders>"))]
    pub loaders: Vec<Loader>,
    /// Their traffic.
    pub traffic: Traffic,
    /// The working sets of each loader, ascending.
    pub sizes: Vec<Bytes>,
}
