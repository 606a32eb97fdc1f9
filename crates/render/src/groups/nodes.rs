//! Tables by node of the CPUs and place of the memory.

use memgauge_model::experiment::MemoryPlace;
use memgauge_model::result::Measurement;
use memgauge_model::units::IdSet;
use memgauge_model::wording;

use crate::pivot::Pivot;

/// The CPU or CPUs that measure, and their node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Prober<'a> {
    pub(crate) node: Option<u32>,
    pub(crate) cpu: Option<u32>,
    pub(crate) cpus: Option<&'a IdSet>,
}

impl Prober<'_> {
    /// `CPU 3`, `CPUs 0-15`; `None` where only the node is known.
    pub(crate) fn cpus_name(&self) -> Option<String> {
        self.cpu.map(|cpu| format!("CPU {cpu}")).or_else(|| self.cpus.map(wording::cpus))
    }
}

/// From whom to where.
pub(crate) type Way<'a> = (Prober<'a>, Option<MemoryPlace>);

pub(crate) fn way(m: &Measurement) -> Way<'_> {
    (Prober { node: m.at.cpu_node, cpu: m.at.cpu, cpus: m.at.cpus.as_ref() }, m.at.memory)
}

/// A row for each of those who measure, a column for each place of memory.
pub(crate) type NodeMatrix<'a> = Pivot<'a, Prober<'a>, Option<MemoryPlace>>;

/// The matrix of these measurements.
pub(crate) fn node_matrix<'a>(ms: &[&'a Measurement]) -> NodeMatrix<'a> {
    Pivot::new(ms, way)
}
