//! What the user asked, before any default is decided.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::directory::MemoryDir;
use crate::traffic::{Mix, Width};
use crate::units::{Bytes, IdSet};

/// What was asked. `None` and empty lists mean "not said": the plan decides.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Which measurement.
    pub task: Task,
    /// CPUs to measure from.
    pub cpus: Option<IdSet>,
    /// Memory nodes to measure.
    pub nodes: Option<IdSet>,
    /// Bytes of the probe's buffer, or of each loader's.
    pub size: Option<Bytes>,
    /// Window of the window-local chase.
    pub window: Option<Bytes>,
    /// Distance between chased lines.
    pub stride: Option<Bytes>,
    /// Which pages to back buffers with.
    pub pages: PageRequest,
    /// Directory whose files are the buffers, as the kernel describes it; memory without a file where it is not said.
    pub memory_dir: Option<MemoryDir>,
    /// Mixes of traffic.
    pub mixes: Vec<Mix>,
    /// Width of loads and stores.
    pub width: WidthRequest,
    /// Use one hardware thread of each core.
    pub one_thread_per_core: bool,
    /// Measure each cell for this long, whatever its interval.
    pub time: Option<Duration>,
    /// The most time for one cell's measuring.
    pub budget: Option<Duration>,
    /// Relative half-width of the 95 % interval to stop at, such as 0.01.
    pub confidence: Option<f64>,
    /// Injection delays of the loaded-latency curve in core cycles; empty = adaptive.
    pub delays: Vec<u32>,
    /// Seed of the chase orders.
    pub seed: Option<u64>,
}

/// Which measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Everything: the main job.
    Suite,
    /// Idle latency.
    Latency(LatencyShape),
    /// Bandwidth.
    Bandwidth(BandwidthShape),
    /// Latency under load.
    Loaded,
    /// Cache-to-cache transfers.
    C2c {
        /// Every pair of CPUs instead of representatives.
        matrix: bool,
    },
}

/// What the cells of a latency measurement are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyShape {
    /// One CPU, one node.
    One,
    /// Every node with CPUs to every node with memory.
    Matrix,
    /// Every CPU to one node (its own, unless one is named).
    PerCpu,
}

/// What the cells of a bandwidth measurement are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BandwidthShape {
    /// The CPUs named (all by default) to their own nodes, or the node named; the mixes named (all reads by default).
    One,
    /// Every node with CPUs to every node with memory.
    Matrix,
    /// Every mix.
    Peak,
    /// 1, 2, 4 … all CPUs.
    Ramp,
}

impl Spec {
    /// A request for `task` with nothing else said.
    pub fn new(task: Task) -> Self {
        Self {
            task,
            cpus: None,
            nodes: None,
            size: None,
            window: None,
            stride: None,
            pages: PageRequest::Auto,
            memory_dir: None,
            mixes: Vec::new(),
            width: WidthRequest::Best,
            one_thread_per_core: false,
            time: None,
            budget: None,
            confidence: None,
            delays: Vec::new(),
            seed: None,
        }
    }
}

/// Which pages to back buffers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PageRequest {
    /// Free 2 MiB pages of an existing pool, else transparent huge pages, else base pages.
    #[default]
    Auto,
    /// Base pages; transparent huge pages refused for the buffer. 4 KiB on x86-64, the kernel's base page elsewhere.
    #[serde(rename = "4k")]
    Base,
    /// Transparent huge pages.
    Thp,
    /// 2 MiB pages of the pool.
    #[serde(rename = "2m")]
    Huge2M,
    /// 1 GiB pages of the pool.
    #[serde(rename = "1g")]
    Huge1G,
}

impl PageRequest {
    /// Every request.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Base, Self::Thp, Self::Huge2M, Self::Huge1G];

    /// The name used on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Base => "4k",
            Self::Thp => "thp",
            Self::Huge2M => "2m",
            Self::Huge1G => "1g",
        }
    }
}

/// Which width of loads and stores to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WidthRequest {
    /// The one that measures fastest.
    #[default]
    Best,
    /// This one.
    Is(Width),
}
