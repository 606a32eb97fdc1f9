//! Probes and loaders: their CPUs, buffers and traffic.

use serde::{Deserialize, Serialize};

use crate::experiment::PageRequest;
use crate::traffic::{Form, Mix, Width};
use crate::units::{Bytes, IdSet};

/// A kernel as the planner sees it. The kernels crate lists those that this CPU can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRow {
    /// Its name, such as `load-avx2`.
    pub name: String,
    /// The mix it produces.
    pub mix: Mix,
    /// Its width.
    pub width: Width,
    /// Its access pattern.
    pub form: Form,
}

/// A pointer chase from one CPU over one buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probe {
    /// The CPU that chases.
    pub cpu: u32,
    /// Its buffer.
    pub buffer: BufferPlan,
    /// Distance between chased lines.
    pub stride: Bytes,
    /// Chase window of the window-local order.
    pub window: Bytes,
}

/// One CPU's traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Loader {
    /// The CPU.
    pub cpu: u32,
    /// Its buffer, divided among the mix's streams.
    pub buffer: BufferPlan,
    /// Its own traffic, if that differs from the cell's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Box<OwnTraffic>>,
}

impl Loader {
    /// Its buffers.
    pub fn buffers(&self) -> impl Iterator<Item = &BufferPlan> {
        [&self.buffer].into_iter().chain(self.own.iter().filter_map(|own| own.second.as_ref()))
    }
}

/// The traffic of one loader, if it differs from that of the other loaders of its cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnTraffic {
    /// Its traffic.
    pub traffic: Traffic,
    /// Injection delay, in core cycles after every four lines. If absent, the cell's delay applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<u32>,
    /// A second buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<BufferPlan>,
    /// Percent of the accesses that go to the second buffer.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub second_percent: u32,
}

/// What loaders do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Traffic {
    /// The mix.
    pub mix: Mix,
    /// Kernels to choose from. If there are several, a short trial finds the fastest; that one is measured and named in the result. Empty
    /// in a plan for an instruction set other than this program's.
    pub kernels: Vec<String>,
    /// Its access pattern.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub form: Form,
    /// Strided access: bytes from one line to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride: Option<Bytes>,
    /// Random access: bytes of the address window that is visited completely before the next one. If absent, the window is the whole
    /// buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
}

/// A buffer to allocate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BufferPlan {
    /// Its size.
    pub bytes: Bytes,
    /// The node that its pages must be on. For a file with DAX: the device's, or the touching CPUs' where the kernel does not state it.
    pub node: u32,
    /// Which pages.
    pub pages: PageRequest,
    /// CPUs that touch it first, in parallel. They are the node's own where that is allowed, so that first touch alone places the pages
    /// correctly.
    pub touch: IdSet,
    /// Whether the size was derived from the caches rather than asked for. A derived size may grow when the measured plateau shows that it
    /// is too small.
    pub derived: bool,
    /// Path of the directory that the buffer's file is in; absent for memory without a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Whether all loaders with this plan share one buffer, which they only read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

/// Which injection delays a curve has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Delays {
    /// Chosen while measuring, so that points are evenly spread in bandwidth.
    Adaptive {
        /// The largest number of points.
        points: u32,
    },
    /// These delays, in core cycles after every four lines.
    Cycles(Vec<u32>),
}
