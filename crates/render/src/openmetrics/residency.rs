//! The placement of processes' memory, and its cost.

use std::collections::BTreeMap;

use memgauge_model::result::Residency;

use super::encode::{Family, Labels, Unit, label, with};

/// The gauges of looks at processes.
#[derive(Default)]
pub(super) struct ResidencyGauges {
    memory: BTreeMap<Labels, f64>,
    touched: BTreeMap<Labels, f64>,
    processes: BTreeMap<Labels, f64>,
    not_seen: BTreeMap<Labels, f64>,
    remote: BTreeMap<Labels, f64>,
    latency: BTreeMap<Labels, f64>,
    ceiling: BTreeMap<Labels, f64>,
    unreliable: BTreeMap<Labels, f64>,
}

impl ResidencyGauges {
    pub(super) fn add(&mut self, residency: &Residency, shared: &Labels) {
        for (node, bytes) in residency.by_node() {
            self.memory.insert(with(shared, [label("node", node)]), bytes.0 as f64);
        }
        for (node, bytes) in residency.touched_by_node().into_iter().flatten() {
            self.touched.insert(with(shared, [label("node", node)]), bytes.0 as f64);
        }
        self.processes.insert(shared.clone(), residency.processes.len() as f64);
        self.not_seen.insert(shared.clone(), residency.not_seen.len() as f64);
        let Some(cost) = &residency.cost else { return };
        self.remote.insert(shared.clone(), cost.remote);
        self.unreliable.insert(shared.clone(), f64::from(cost.unreliable));
        let placements =
            [("present", cost.latency_ns.value, cost.ceiling_gbs), ("best", cost.best.latency_ns.value, cost.best.ceiling_gbs)];
        for (placement, latency, ceiling) in placements {
            let labels = with(shared, [label("placement", placement)]);
            self.ceiling.extend(ceiling.and_then(|gbs| Some((labels.clone(), Unit::BytesPerSecond.in_base(gbs)?))));
            self.latency.extend(Unit::Seconds.in_base(latency).map(|latency| (labels, latency)));
        }
    }

    pub(super) fn families(self) -> impl Iterator<Item = Family> {
        let families = [
            ("process_memory", "Memory of the processes that is present on a node", Unit::Bytes, self.memory),
            (
                "process_memory_touched",
                "Memory of the processes on a node that was touched while they were observed",
                Unit::Bytes,
                self.touched,
            ),
            ("processes", "Processes whose memory was seen", Unit::None, self.processes),
            ("processes_not_seen", "Processes whose memory was not seen", Unit::None, self.not_seen),
            ("remote_accesses", "Share of accesses that leave the node of their CPU, if all pages are used alike", Unit::None, self.remote),
            ("expected_latency", "Latency that an access is expected to have, if all pages are used alike", Unit::Seconds, self.latency),
            (
                "prices_unreliable",
                "Whether a latency behind the expected one was disturbed while it was measured: 1 or 0",
                Unit::None,
                self.unreliable,
            ),
            ("bandwidth_ceiling", "The most bandwidth that loads have with this placement", Unit::BytesPerSecond, self.ceiling),
        ];
        families.into_iter().filter(|family| !family.3.is_empty()).map(|(name, help, unit, samples)| Family::new(name, help, unit, samples))
    }
}
