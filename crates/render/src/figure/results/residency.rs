//! The memory of processes by node over time, and the latency that their accesses are expected to have.

use memgauge_model::experiment_table::PanelName;
use memgauge_model::result::{Report, Residency, ResidencyPoint};

use super::time::Time;
use crate::figure::axis::Axis;
use crate::figure::chart::{Chart, Guide, Sample, Series, reach};
use crate::figure::frame::{Caption, NamedPanel};
use crate::figure::palette::{GREY, MAX_SERIES, Style};
use crate::format::Named;
use crate::number::{bounds, number};

/// Units of memory, and the least of the largest value for which each is used.
const UNITS: [(&str, f64); 3] = [("GiB", (1u64 << 30) as f64), ("MiB", (1u64 << 20) as f64), ("KiB", 0.0)];
/// Bytes of the smallest.
const KIB: f64 = 1024.0;

/// The panels of each result of `where` with more than one reading.
pub(crate) fn panels(results: &[Named<'_>]) -> Vec<NamedPanel> {
    let of = |result: &Named<'_>| {
        let name = if results.len() > 1 { format!("{}: ", result.name) } else { String::new() };
        result.report.residency.as_ref().map(|residency| of_residency(result.report, residency, &name)).unwrap_or_default()
    };
    results.iter().flat_map(of).collect()
}

fn of_residency(report: &Report, residency: &Residency, name: &str) -> Vec<NamedPanel> {
    let time = Time::of(residency.points.iter().map(|point| &point.at)).filter(|_| residency.points.len() > 1);
    let Some(time) = time else { return Vec::new() };
    let about = format!("of {}, since {}", who(residency), report.started.utc.replace('T', " ").replace('Z', " UTC"));
    let mut panels: Vec<NamedPanel> = vec![(PanelName::RESIDENCY, Box::new(memory(residency, &time, name, about.clone())))];
    panels.extend(latency(residency, &time, name, about).map(|chart| -> NamedPanel { (PanelName::EXPECTED_LATENCY, Box::new(chart)) }));
    panels
}

fn who(residency: &Residency) -> String {
    match residency.processes.as_slice() {
        [only] => format!("process {} ({})", only.pid, only.name),
        all => format!("{} processes", all.len()),
    }
}

/// A line for each node. Of more nodes than there are colours, those with most memory.
fn memory(residency: &Residency, time: &Time, name: &str, about: String) -> Chart {
    let mut nodes: Vec<(u32, u64)> = Vec::new();
    for (node, bytes) in residency.points.iter().flat_map(|point| &point.by_node) {
        match nodes.iter_mut().find(|(known, _)| known == node) {
            Some((_, most)) => *most = (*most).max(bytes.0),
            None => nodes.push((*node, bytes.0)),
        }
    }
    nodes.sort_by_key(|(_, most)| std::cmp::Reverse(*most));
    nodes.truncate(MAX_SERIES);
    nodes.sort_unstable();
    let largest = nodes.iter().map(|(_, most)| *most as f64).fold(0.0, f64::max);
    let (unit, size) = UNITS.into_iter().find(|(_, size)| largest >= *size).unwrap_or(("KiB", KIB));
    let size = size.max(KIB);
    let line = |(i, (node, _)): (usize, &(u32, u64))| {
        let of = |point: &ResidencyPoint| point.by_node.get(node).map_or(0.0, |bytes| bytes.0 as f64) / size;
        let samples = residency.points.iter().map(|point| Sample { x: time.at(&point.at), y: of(point), ..Sample::default() }).collect();
        Series { name: Some(format!("node {node}")), style: Style::of_points(i), samples, joined: true }
    };
    let caption = Caption::new(format!("{name}Memory by node"), about);
    let top = (largest / size).max(f64::MIN_POSITIVE);
    let mut chart = Chart::new(caption, time.axis(), Axis::linear(format!("Memory ({unit})"), 0.0, top, 7));
    chart.series = nodes.iter().enumerate().map(line).collect();
    chart
}

/// The expected latency, and that of the best placement.
fn latency(residency: &Residency, time: &Time, name: &str, about: String) -> Option<Chart> {
    let degraded = residency.cost.as_ref().is_some_and(|cost| cost.unreliable);
    let sample = |point: &ResidencyPoint| Some(Sample { x: time.at(&point.at), y: point.latency_ns?, degraded, ..Sample::default() });
    let samples: Vec<Sample> = residency.points.iter().filter_map(sample).collect();
    let (low, high) = reach(samples.iter())?;
    let best = residency.cost.as_ref().map(|cost| cost.best.latency_ns.value);
    let (low, high) = bounds([low, high].into_iter().chain(best))?;
    let room = 0.1 * high;
    let mut caption = Caption::new(format!("{name}Expected latency of an access"), format!("{about}; as if all pages were used alike"));
    caption.notes.extend(degraded.then(|| "Hollow: the prices are unreliable.".to_owned()));
    let mut chart = Chart::new(caption, time.axis(), Axis::linear("Latency (ns)", (low - room).max(0.0), high + room, 7));
    chart.guides.extend(best.map(|best| Guide::level(best, format!("best placement: {} ns", number(best)), GREY)));
    chart.series.push(Series { name: None, style: Style::of_points(0), samples, joined: true });
    Some(chart)
}
