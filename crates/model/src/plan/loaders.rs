//! Probes and loaders: their CPUs, buffers and traffic.

use serde::{Deserialize, Serialize};

use crate::experiment::{ChaseOrder, PageRequest};
use crate::integrity::TestPattern;
use crate::interleave::Weights;
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

impl Probe {
    /// The orders of its chase: those asked for. If none was: window-local, and also full-random if the buffer is larger than the window.
    pub fn orders<'a>(&self, asked: &'a [ChaseOrder]) -> &'a [ChaseOrder] {
        match asked {
            [] if self.window < self.buffer.bytes => &[ChaseOrder::WindowLocal, ChaseOrder::FullRandom],
            [] => &[ChaseOrder::WindowLocal],
            asked => asked,
        }
    }
}

/// One CPU's traffic.
#[derive(Debug, Clone, PartialEq)]
pub struct Loader {
    /// The CPU.
    pub cpu: u32,
    /// Its buffer, divided among the mix's streams.
    pub buffer: BufferPlan,
    /// Its own traffic, if that differs from the cell's.
    pub own: Option<Box<OwnTraffic>>,
}

impl Loader {
    /// Its buffers.
    pub fn buffers(&self) -> impl Iterator<Item = &BufferPlan> {
        [&self.buffer].into_iter().chain(self.own.iter().filter_map(|own| own.second.as_ref()))
    }
}

/// Loaders that differ only in their CPU, each with a buffer of its own unless the buffer is shared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AlikeLoaders {
    /// The CPUs, one loader on each.
    #[serde(alias = "cpu", deserialize_with = "alike::cpus")]
    pub cpus: IdSet,
    /// The buffer of each, divided among the mix's streams.
    pub buffer: BufferPlan,
    /// Their own traffic, if that differs from the cell's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Box<OwnTraffic>>,
}

/// The loaders of a cell as a plan writes them: those that follow each other by CPU and are alike together. A matrix of 64 nodes names 65,000.
pub(crate) mod alike {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{AlikeLoaders, Loader};
    use crate::units::IdSet;

    /// A set of CPUs. Plans of memgauge 0.1 before November 2026 name one CPU, as a number.
    pub(crate) fn cpus<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IdSet, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Cpus {
            One(u32),
            Set(IdSet),
        }
        Ok(match Cpus::deserialize(deserializer)? {
            Cpus::One(cpu) => IdSet::one(cpu),
            Cpus::Set(cpus) => cpus,
        })
    }

    pub(crate) fn serialize<S: Serializer>(loaders: &[Loader], serializer: S) -> Result<S::Ok, S::Error> {
        let alike = |a: &Loader, b: &Loader| a.cpu < b.cpu && a.buffer == b.buffer && a.own == b.own;
        let runs = loaders.chunk_by(alike).filter_map(|run| {
            let Loader { buffer, own, .. } = run.first()?.clone();
            Some(AlikeLoaders { cpus: run.iter().map(|l| l.cpu).collect(), buffer, own })
        });
        runs.collect::<Vec<_>>().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Loader>, D::Error> {
        let each = |AlikeLoaders { cpus, buffer, own }| {
            let loader = |cpu| Loader { cpu, buffer: buffer.clone(), own: own.clone() };
            cpus.iter().map(loader).collect::<Vec<_>>()
        };
        Ok(Vec::deserialize(deserializer)?.into_iter().flat_map(each).collect())
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
    /// Patterns that are written to the buffers of checked lines and compared before they are read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<TestPattern>,
    /// How long the contents of checked lines, and patterns, stay in the memory at least before they are compared, in seconds.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub hold_s: f64,
    /// Lines that are loaded and stored between two injection delays; absent if they are four.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_lines: Option<f64>,
    /// Access to blocks: bytes of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Bytes>,
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
    /// Nodes that its pages are on in turn; absent if all of them are on `node`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
    /// Whether [`PageRequest::Auto`] leaves the pools of huge pages to the programs that they were made for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leave_pools: bool,
}

impl BufferPlan {
    /// Memory on one node that is backed by no file, shared by no one, and touched first by whoever allocates it.
    pub const fn plain(bytes: Bytes, node: u32, pages: PageRequest) -> Self {
        Self { bytes, node, pages, touch: IdSet::new(), derived: false, directory: None, shared: false, weights: None, leave_pools: false }
    }

    /// The nodes that its pages are on.
    pub fn nodes(&self) -> IdSet {
        self.weights.as_ref().map_or_else(|| IdSet::one(self.node), Weights::nodes)
    }

    /// About how many of its bytes are on a node.
    pub fn bytes_on(&self, node: u32) -> u64 {
        let share = self.weights.as_ref().map_or(f64::from(u8::from(self.node == node)), |weights| weights.share(node));
        (self.bytes.0 as f64 * share) as u64
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaders_that_are_alike_are_written_once_and_keep_their_order() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Cell(#[serde(with = "alike")] Vec<Loader>);
        let loader = |cpu: u32, node: u32| {
            let plain = BufferPlan::plain(Bytes::mib(32), node, PageRequest::Auto);
            let buffer = BufferPlan { touch: IdSet::one(node), derived: true, ..plain };
            Loader { cpu, buffer, own: None }
        };
        let cell = Cell([(0, 0), (1, 0), (2, 0), (9, 1), (3, 1), (4, 1)].map(|(cpu, node)| loader(cpu, node)).to_vec());
        let json = serde_json::to_value(&cell).unwrap();
        let cpus: Vec<_> = json.as_array().unwrap().iter().map(|run| run["cpus"].clone()).collect();
        assert_eq!(cpus, ["0-2", "9", "3-4"]);
        assert_eq!(serde_json::from_value::<Cell>(json.clone()).unwrap(), cell);
        let mut one = json[1].clone();
        one["cpu"] = one.as_object_mut().unwrap().remove("cpus").map(|_| 9).unwrap().into();
        assert_eq!(serde_json::from_value::<Cell>(serde_json::json!([one])).unwrap().0, [cell.0[3].clone()], "as it was written before");
    }
}
