//! Results with prefetchers on and off.

use memgauge_core::experiment::{ChaseOrder, Metric, PrefetchRequest};
use memgauge_core::result::Measurement;

/// Which result is looked for.
#[derive(Clone, Copy)]
pub(crate) struct PrefetchCell {
    pub(crate) node: Option<u32>,
    pub(crate) state: Option<PrefetchRequest>,
    pub(crate) metric: Metric,
    pub(crate) order: Option<ChaseOrder>,
}

/// Finds a result. A state that could not be set has one result for all orders.
pub(crate) fn find<'a>(ms: &[&'a Measurement], cell: PrefetchCell) -> Option<&'a Measurement> {
    let of_cell = |m: &&Measurement| (m.at.memory_node(), m.at.prefetch, m.metric) == (cell.node, cell.state, cell.metric);
    let candidates = || ms.iter().copied().filter(of_cell);
    candidates().find(|m| m.at.order == cell.order).or_else(|| candidates().find(|m| m.at.order.is_none()))
}
