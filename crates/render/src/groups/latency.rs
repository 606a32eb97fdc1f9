//! Idle latencies.

use memgauge_core::experiment::ChaseOrder;

/// What a chase in this order measures.
pub(crate) const fn order_meaning(order: ChaseOrder) -> &'static str {
    match order {
        ChaseOrder::WindowLocal => "random within a window, which hides most of the address translation",
        ChaseOrder::FullRandom => "random over the whole buffer, address translation included",
        ChaseOrder::Sequential => "ascending, helped by prefetchers",
    }
}
