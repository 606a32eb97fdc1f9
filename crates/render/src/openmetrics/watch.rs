//! What a watch of the machine saw last.

use std::collections::BTreeMap;

use memgauge_model::result::{Condition, StampProbe, Watch};
use memgauge_model::wording::spelled;

use super::encode::{Family, Labels, Unit, label, with};

/// The gauges of a watch, by name.
#[derive(Default)]
pub(super) struct WatchGauges(BTreeMap<&'static str, Gauges>);

/// Gauges of one name.
struct Gauges {
    help: &'static str,
    unit: Unit,
    samples: BTreeMap<Labels, f64>,
}

impl WatchGauges {
    pub(super) fn add(&mut self, watch: &Watch, shared: &Labels) {
        let last = watch.points.last();
        let state = last.and_then(|point| point.condition).and_then(|condition| match condition {
            Condition::Quiet { state } => Some(state as f64),
            Condition::Busy => None,
        });
        self.insert("state", "Number of the state that the last stamp shows; none while others use the machine", Unit::None, shared, state);
        let busy = last.map(|point| f64::from(!point.busy.is_empty()));
        self.insert("state_busy", "Whether others used the machine during the last stamp: 1 or 0", Unit::None, shared, busy);
        let changes = watch.changed as f64;
        self.insert("state_changes", "How often another state began since the watch did", Unit::None, shared, Some(changes));
        self.insert("stamps", "Stamps since the watch began", Unit::None, shared, Some(watch.stamps as f64));
        for (probe, value) in last.iter().flat_map(|point| &point.probes) {
            let (name, help, unit) = match probe {
                StampProbe::MemoryLatency | StampProbe::CacheLatency | StampProbe::Transfer => {
                    ("stamp_latency", "Latency in the last stamp; comparable with stamps only", Unit::Seconds)
                }
                StampProbe::ReadsOfOneCpu | StampProbe::ReadsOfAllCpus => {
                    ("stamp_bandwidth", "Bandwidth in the last stamp; comparable with stamps only", Unit::BytesPerSecond)
                }
                StampProbe::Frequency => ("stamp_frequency", "Frequency of a core in the last stamp", Unit::Hertz),
            };
            self.insert(name, help, unit, &with(shared, [label("probe", spelled(probe))]), Some(*value));
        }
        let Some(scale) = &watch.others else { return };
        let others = last.and_then(|point| point.others);
        let of_others = [
            ("others_bandwidth", "Memory bandwidth that others seem to use", others.map(|o| o.gbs)),
            ("others_bandwidth_low", "Memory bandwidth that others seem to use: lower end of the 95 % interval", others.map(|o| o.low_gbs)),
            (
                "others_bandwidth_high",
                "Memory bandwidth that others seem to use: upper end of the 95 % interval",
                others.and_then(|o| o.high_gbs),
            ),
            ("others_detection_limit", "The least bandwidth of others that one stamp detects", scale.detection_gbs),
        ];
        for (name, help, value) in of_others {
            self.insert(name, help, Unit::BytesPerSecond, shared, value);
        }
    }

    fn insert(&mut self, name: &'static str, help: &'static str, unit: Unit, labels: &Labels, value: Option<f64>) {
        let Some(value) = value.and_then(|value| unit.in_base(value)) else { return };
        let gauges = self.0.entry(name).or_insert_with(|| Gauges { help, unit, samples: BTreeMap::new() });
        gauges.samples.entry(labels.clone()).or_insert(value);
    }

    pub(super) fn families(self) -> impl Iterator<Item = Family> {
        self.0.into_iter().map(|(name, gauges)| Family::new(name, gauges.help, gauges.unit, gauges.samples))
    }
}
