//! Curves of latency under load.

use std::collections::BTreeMap;

use memgauge_core::experiment::{Coordinates, Metric};
use memgauge_core::result::Measurement;
use memgauge_core::wording;

/// A curve: what its points share, and the points from the lightest load (the longest delay) to the heaviest.
pub(crate) struct LoadedCurve<'a> {
    pub(crate) at: Coordinates,
    pub(crate) measurements: Vec<&'a Measurement>,
    pub(crate) points: Vec<LoadedPoint<'a>>,
}

/// What was measured at one injection delay.
#[derive(Clone, Copy)]
pub(crate) struct LoadedPoint<'a> {
    pub(crate) delay: Option<u32>,
    pub(crate) latency: Option<&'a Measurement>,
    pub(crate) bandwidth: Option<&'a Measurement>,
}

/// The curves among these measurements, in the order of their coordinates.
pub(crate) fn loaded_curves<'a>(ms: &[&'a Measurement]) -> Vec<LoadedCurve<'a>> {
    let mut curves: BTreeMap<Coordinates, Vec<&Measurement>> = BTreeMap::new();
    for &m in ms {
        curves.entry(Coordinates { delay_cycles: None, ..m.at.clone() }).or_default().push(m);
    }
    curves.into_iter().map(|(at, measurements)| LoadedCurve { at, points: points(&measurements), measurements }).collect()
}

/// Who chases where, and who loads what.
pub(crate) fn measured_by(at: &Coordinates) -> String {
    let order = at.order.map(|o| format!(" {}", wording::chase_order(o))).unwrap_or_default();
    let file = if at.memory_dir.is_some() { "a file at " } else { "" };
    let home = at.memory_node().map(|n| format!("{order} in {file}node {n}")).unwrap_or_default();
    let chase = at.cpu.map(|c| format!("CPU {c} chases{home}"));
    let what = at.load_nodes.as_ref().map(|nodes| format!(" memory of {}", wording::nodes(nodes))).unwrap_or_default();
    let load = at.cpus.as_ref().map(|c| format!("{} {}{what}", wording::cpus(c), if c.len() == 1 { "loads" } else { "load" }));
    [chase, load].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn points<'a>(ms: &[&'a Measurement]) -> Vec<LoadedPoint<'a>> {
    let mut points: BTreeMap<Option<u32>, LoadedPoint<'a>> = BTreeMap::new();
    for &m in ms {
        let delay = m.at.delay_cycles;
        let point = points.entry(delay).or_insert(LoadedPoint { delay, latency: None, bandwidth: None });
        match m.metric {
            Metric::Latency => point.latency.get_or_insert(m),
            Metric::Bandwidth => point.bandwidth.get_or_insert(m),
        };
    }
    points.into_values().rev().collect()
}
