//! One line of a plan.

use std::collections::BTreeSet;

use memgauge_core::experiment::LineState;
use memgauge_core::plan::{BufferPlan, Cell as PlanCell};
use memgauge_core::units::{Bytes, IdSet};
use memgauge_core::wording;

use crate::number::human;

/// One line of the plan. The states of a transfer share a line; loaders that do different things have a line each.
#[derive(Clone, PartialEq, Default)]
pub(super) struct Row {
    pub(super) cpu: Option<u32>,
    pub(super) holder: Option<u32>,
    pub(super) loaders: IdSet,
    pub(super) cpu_node: Option<u32>,
    pub(super) memory: BTreeSet<u32>,
    /// Each CPU's memory is on its own node, so that naming the nodes would say nothing.
    pub(super) own: bool,
    pub(super) mix: Option<String>,
    pub(super) states: BTreeSet<LineState>,
    /// Of one buffer.
    pub(super) sizes: BTreeSet<Bytes>,
    /// How many buffers. One that several CPUs share counts once.
    pub(super) buffers: usize,
    /// Of all buffers that exist at the same time.
    pub(super) total: Bytes,
    pub(super) pages: BTreeSet<&'static str>,
    pub(super) kernels: Vec<String>,
    /// Core cycles between bursts, where that was asked for.
    pub(super) delay: Option<u32>,
    /// Regions of a scan.
    pub(super) regions: Option<u32>,
    pub(super) detail: String,
}

impl Row {
    /// A line with the cell's coordinates and nothing else.
    pub(super) fn new(cell: &PlanCell) -> Self {
        let at = &cell.at;
        Self { cpu: at.cpu, cpu_node: at.cpu_node, delay: at.delay_cycles, ..Self::default() }
    }

    /// Counts buffers.
    pub(super) fn add_buffers(&mut self, buffers: &[&BufferPlan]) {
        let mut shared: Vec<&BufferPlan> = Vec::new();
        for b in buffers {
            self.memory.insert(b.node);
            self.sizes.insert(b.bytes);
            self.pages.insert(if b.directory.is_some() { "of the file system" } else { b.pages.name() });
            if b.shared {
                if shared.contains(b) {
                    continue;
                }
                shared.push(b);
            }
            self.buffers += 1;
            self.total = Bytes(self.total.0.saturating_add(b.bytes.0));
        }
        if let Some(regions) = self.regions {
            self.buffers = regions as usize;
            self.total = Bytes(self.total.0.saturating_mul(regions.into()));
        }
    }

    /// Where the memory is.
    pub(super) fn memory_text(&self) -> String {
        if self.own {
            return "own nodes".to_owned();
        }
        if self.memory.is_empty() { "device".to_owned() } else { wording::nodes(&self.memory.iter().copied().collect()) }
    }

    /// The kinds of pages.
    pub(super) fn pages_text(&self) -> String {
        self.pages.iter().copied().collect::<Vec<_>>().join(", ")
    }

    /// Number and sizes of the buffers.
    pub(super) fn buffers_text(&self) -> String {
        let sizes = size_range(&self.sizes);
        if self.buffers > 1 && self.holder.is_none() { format!("{} × {sizes}", self.buffers) } else { sizes }
    }
}

/// `512 MiB`, or `256 MiB–1 GiB`.
pub(super) fn size_range(sizes: &BTreeSet<Bytes>) -> String {
    match (sizes.first(), sizes.last()) {
        (Some(low), Some(high)) if low != high => format!("{}–{}", human(*low), human(*high)),
        (Some(one), _) => human(*one),
        _ => String::new(),
    }
}
