//! What will be done: every default decided, every cell bound to CPUs, nodes, buffers and kernels.
//!
//! The types are here; the decisions are in the submodules, one a measurement.

use serde::{Deserialize, Serialize};

use crate::directory::MemoryDir;
use crate::note::Note;
use crate::result::{ChaseOrder, Coordinates, Experiment};
use crate::spec::{Hops, LineContent, PageRequest};
use crate::traffic::{Form, Mix, Width};
use crate::units::{Bytes, IdSet};

mod check;
mod cost;
mod decide;
mod load;
mod load_nodes;
mod prefetch;
pub mod quick;
mod scan;
mod sizes;
mod sweep;
mod transfers;
pub use decide::{PlanError, plan};
pub use sweep::{BandwidthSweep, LatencySweep};
pub use transfers::{End, Transfers};

/// A kernel as the planner sees it: the kernels crate lists those that this CPU can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRow {
    /// Its name, such as `load-avx2`.
    pub name: String,
    /// The mix it produces.
    pub mix: Mix,
    /// Its width.
    pub width: Width,
    /// How it goes over memory.
    pub form: Form,
}

/// Everything that will be done, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// When a cell's measuring ends.
    pub stop: StopRule,
    /// Seed of the chase orders; every buffer derives its own from it.
    pub seed: u64,
    /// CPUs kept busy so that other packages' caches and links stay awake while one package is measured.
    pub keep_awake: IdSet,
    /// The CPUs kept busy were named: they are busy also where their own package is measured, but for those that measure themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_awake_named: bool,
    /// Directories whose files are buffers, as the kernel described them when the plan was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<MemoryDir>,
    /// Estimate of the whole run in seconds: intervals of most cells are narrow before their budget is spent.
    pub estimated_s: f64,
    /// The same with all budgets spent, as on a machine that is never quiet. Of a health check the time after which it ends. 0 in files
    /// of versions that did not say it.
    #[serde(default)]
    pub most_s: f64,
    /// Seconds after which the run ends, whatever is measured by then, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_s: Option<f64>,
    /// What buffers contain, line after line and then again, as hexadecimal digits; what the kernels and the allocation leave where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<LineContent>,
    /// Name of the shared-memory word for whose value 1 each cell waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_signal: Option<String>,
    /// What the user says that the machine's memory could transfer at most, in 10^9 bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_gbs: Option<f64>,
    /// Count hardware events while measured windows run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counters: bool,
    /// What the reader should know about the plan.
    pub notes: Vec<Note>,
}

impl Plan {
    /// The directory that a buffer's file is in.
    pub fn directory_of(&self, buffer: &BufferPlan) -> Option<&MemoryDir> {
        let path = buffer.directory.as_ref()?;
        self.directories.iter().find(|d| d.file.path == *path)
    }
}

/// When a cell's measuring ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StopRule {
    /// Relative half-width of the 95 % interval of the median to stop at.
    pub relative_half_width: f64,
    /// The most seconds of measuring for one cell.
    pub budget_s: f64,
    /// Measure for the whole budget even when the interval is narrow.
    pub fixed_time: bool,
}

/// Cells that make one table or one curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// One experiment: coordinates and the work to do there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cell {
    /// Where in the table it stands.
    pub at: Coordinates,
    /// What is done.
    pub work: Work,
}

/// The work of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// A probe alone: window-local, full-random and sequential chase over the same buffers.
    Latency {
        /// The probe.
        probe: Probe,
        /// Fresh allocations, at least.
        allocations: u32,
        /// Orders of the chase; none: window-local, and full-random where the buffer is larger than the window.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        orders: Vec<ChaseOrder>,
        /// How far each chase goes, where that was asked for instead of a time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hops: Option<Hops>,
        /// Hops of a batch, where a histogram was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        histogram: Option<u32>,
    },
    /// Loaders alone.
    Bandwidth {
        /// The loaders.
        loaders: Vec<Loader>,
        /// Their traffic.
        traffic: Traffic,
        /// Core cycles between bursts of four lines.
        #[serde(default, skip_serializing_if = "is_zero")]
        delay: u32,
    },
    /// A probe and loaders at several injection delays.
    Curve {
        /// The probe.
        probe: Probe,
        /// The loaders.
        loaders: Vec<Loader>,
        /// Their traffic.
        traffic: Traffic,
        /// Which delays.
        delays: Delays,
        /// Shares of the peak bandwidth, in percent, whose latency is looked for afterwards.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        at_percent: Vec<u32>,
        /// Order of the chase.
        #[serde(default = "window_local", skip_serializing_if = "is_window_local")]
        order: ChaseOrder,
        /// How far the chase goes at each delay, where that was asked for instead of a time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hops: Option<Hops>,
        /// Hops of a batch, where a histogram was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        histogram: Option<u32>,
    },
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
    /// The CPUs that work.
    pub fn cpus(&self) -> IdSet {
        match self {
            Self::Latency { probe, .. } => IdSet::one(probe.cpu),
            Self::Bandwidth { loaders, .. } => loaders.iter().map(|l| l.cpu).collect(),
            Self::Curve { probe, loaders, .. } => loaders.iter().map(|l| l.cpu).chain([probe.cpu]).collect(),
            Self::Handoff(handoff) => [handoff.holder, handoff.reader].into_iter().chain(handoff.sharer).collect(),
            Self::Transfers(transfers) => transfers.ends.iter().map(|e| e.cpu).collect(),
            Self::Scan(scan) => scan.cpus.clone(),
            Self::LatencySweep(sweep) => IdSet::one(sweep.probe.cpu),
            Self::BandwidthSweep(sweep) => sweep.loaders.iter().map(|l| l.cpu).collect(),
        }
    }

    /// Transfers between every two CPUs, to be changed.
    pub(super) const fn transfers_mut(&mut self) -> Option<&mut Transfers> {
        if let Self::Transfers(transfers) = self { Some(transfers) } else { None }
    }

    /// The buffers that exist at the same time; of a scan one of its regions.
    pub fn buffers(&self) -> Vec<&BufferPlan> {
        match self {
            Self::Latency { probe, .. } => vec![&probe.buffer],
            Self::Bandwidth { loaders, .. } => loaders.iter().flat_map(Loader::buffers).collect(),
            Self::Curve { probe, loaders, .. } => loaders.iter().flat_map(Loader::buffers).chain([&probe.buffer]).collect(),
            Self::Handoff(handoff) => vec![&handoff.buffer],
            Self::Transfers(transfers) => transfers.ends.iter().flat_map(|e| &e.buffers).collect(),
            Self::Scan(scan) => vec![&scan.region],
            Self::LatencySweep(sweep) => vec![&sweep.probe.buffer],
            Self::BandwidthSweep(sweep) => sweep.loaders.iter().flat_map(Loader::buffers).collect(),
        }
    }
}

/// A pointer chase from one CPU over one buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Probe {
    /// The CPU that chases.
    pub cpu: u32,
    /// Its buffer.
    pub buffer: BufferPlan,
    /// Distance between chased lines.
    pub stride: Bytes,
    /// Window of the window-local chase.
    pub window: Bytes,
}

/// One CPU's traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Loader {
    /// The CPU.
    pub cpu: u32,
    /// Its buffer, divided among the mix's streams.
    pub buffer: BufferPlan,
    /// What it does where that is not what the cell's loaders do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Box<OwnTraffic>>,
}

impl Loader {
    /// Its buffers.
    pub fn buffers(&self) -> impl Iterator<Item = &BufferPlan> {
        [&self.buffer].into_iter().chain(self.own.iter().filter_map(|own| own.second.as_ref()))
    }
}

/// What one loader does, unlike others of its cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OwnTraffic {
    /// Its traffic.
    pub traffic: Traffic,
    /// Core cycles between bursts of four lines; that of the cell where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<u32>,
    /// A second buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<BufferPlan>,
    /// Percent of the accesses that go to the second buffer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub second_percent: u32,
}

/// What loaders do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Traffic {
    /// The mix.
    pub mix: Mix,
    /// Kernels to choose from; the fastest of several in a short trial is measured and named in the result. Empty in a plan for another
    /// instruction set than this program's.
    pub kernels: Vec<String>,
    /// How it goes over memory.
    #[serde(default, skip_serializing_if = "Form::is_plain")]
    pub form: Form,
    /// Strided access: bytes from one line to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride: Option<Bytes>,
    /// Random access: the window that is visited completely before the next; all of the buffer where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
}

/// A buffer to allocate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BufferPlan {
    /// Its size.
    pub bytes: Bytes,
    /// The node that its pages must be on. For a file with DAX: the device's, or the touching CPUs' where the kernel does not state it.
    pub node: u32,
    /// Which pages.
    pub pages: PageRequest,
    /// CPUs that touch it first, in parallel: the node's own where allowed, so that first touch alone places it right.
    pub touch: IdSet,
    /// Whether the size was derived from the caches (and may be grown when the plateau shows that it is too small) or asked for.
    pub derived: bool,
    /// Directory whose file it is, by its path; absent for memory without a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// All loaders that have this plan share one buffer, which they only read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

/// Which injection delays a curve has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Delays {
    /// Chosen while measuring, so that points are evenly spread in bandwidth.
    Adaptive {
        /// The most points.
        points: u32,
    },
    /// These, in core cycles between bursts of four lines.
    Cycles(Vec<u32>),
}

/// A transfer from one CPU's cache to another's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Handoff {
    /// The CPU that holds the lines.
    pub holder: u32,
    /// The CPU that reads them.
    pub reader: u32,
    /// Whether the holder modified them.
    pub state: LineState,
    /// The buffer; its node is the lines' home.
    pub buffer: BufferPlan,
    /// Bytes handed over at a time; at most half of the holder's L2.
    pub window: Bytes,
    /// Distance between lines.
    pub stride: Bytes,
    /// Order of the chase.
    #[serde(default = "window_local", skip_serializing_if = "is_window_local")]
    pub order: ChaseOrder,
    /// A CPU that loads the lines in between, so that they are shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharer: Option<u32>,
    /// Bytes that the holder reads elsewhere, in a buffer like this one, after taking the lines.
    #[serde(default, skip_serializing_if = "Bytes::is_zero")]
    pub holder_pushes: Bytes,
    /// Bytes that the reader reads elsewhere before it reads the lines.
    #[serde(default, skip_serializing_if = "Bytes::is_zero")]
    pub reader_pushes: Bytes,
}

/// All the memory of a node that may be taken, region by region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Scan {
    /// The CPUs that read each region together.
    pub cpus: IdSet,
    /// One region.
    pub region: BufferPlan,
    /// How many regions, at most: growing stops earlier when memory gets scarce.
    pub regions: u32,
    /// How much of the node and of the system stays available; growing stops before less would.
    pub margin: Bytes,
    /// How often each region is read.
    pub passes: u32,
    /// What the CPUs do.
    pub traffic: Traffic,
    /// Width of the histogram's buckets in GB/s.
    pub bucket_gbs: f64,
    /// Whether patterns are written and compared afterwards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub integrity: bool,
}

impl Scan {
    /// Bytes of all regions.
    pub const fn bytes(&self) -> Bytes {
        Bytes(self.region.bytes.0.saturating_mul(self.regions as u64))
    }
}

const fn window_local() -> ChaseOrder {
    ChaseOrder::WindowLocal
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_window_local(order: &ChaseOrder) -> bool {
    matches!(order, ChaseOrder::WindowLocal)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// The state in which the holder has the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LineState {
    /// Loaded and unmodified.
    Hit,
    /// Modified.
    Hitm,
}

#[cfg(test)]
mod tests;
