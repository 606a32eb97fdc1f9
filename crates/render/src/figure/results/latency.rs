//! Idle latency: node matrices, and by CPU.

use std::collections::BTreeSet;

use memgauge_model::experiment::ChaseOrder;
use memgauge_model::topology::Topology;
use memgauge_model::wording;

use super::node_matrix::{node_label, node_map};
use crate::figure::axis::Axis;
use crate::figure::bars::{Bar, BarRow, Bars};
use crate::figure::chart::{Band, Chart, PointLabel, Sample, Series, reach};
use crate::figure::frame::{Panel, boxed};
use crate::figure::labels::{ABOVE, BELOW, LEFT, RIGHT, UPPER_LEFT, UPPER_RIGHT};
use crate::figure::palette::{INK, Style, series};
use crate::figure::source::{ResultSet, caption, sample};
use crate::groups::nodes::{Way, way};
use crate::groups::order_meaning;
use crate::number::number;
use crate::pivot::{Pivot, layers};

/// Fewer pairs than this are easier to compare as bars.
const MIN_MATRIX: usize = 3;

fn order_name(order: Option<ChaseOrder>) -> &'static str {
    order.map_or("order not stated", wording::chase_order)
}

/// A matrix by node of the CPU and node of the memory, for each order of chase; bars for one or two pairs.
pub(crate) fn matrices(set: &ResultSet<'_>) -> Vec<Box<dyn Panel>> {
    let ways = Pivot::new(&set.ms, |m| (way(m), m.at.order));
    if ways.rows.len() < MIN_MATRIX {
        return vec![Box::new(few(set, &ways))];
    }
    boxed(layers(&set.ms, |m| m.at.order).into_iter().map(|(order, ms)| {
        let of_order = ResultSet { ms, ..*set };
        let parts = ["ns per dependent load", order.map_or("", order_meaning)];
        let caption = of_order.caption(&format!("Idle latency, {}", order_name(order)), &parts, false);
        node_map(caption, &of_order)
    }))
}

/// One or two ways from a node to memory as bars, a bar for each order.
fn few(set: &ResultSet<'_>, ways: &Pivot<'_, Way<'_>, Option<ChaseOrder>>) -> Bars {
    let mut rows = Vec::new();
    for way @ (from, memory) in &ways.rows {
        let who = from.cpu.map_or_else(|| format!("node {}", node_label(from.node)), |c| format!("CPU {c}"));
        for (i, order) in ways.columns.iter().enumerate() {
            if let Some(m) = ways.get(way, order) {
                let name = format!("{who}, {}", wording::place(*memory));
                rows.push(BarRow { name, detail: order_name(*order).into(), bars: vec![Bar::for_measurement(Some(m), series(i))] });
            }
        }
    }
    let parts = ["ns per dependent load, with its 95 % interval"];
    Bars { caption: set.caption("Idle latency", &parts, false), unit: "ns", rows, limit_name: None }
}

/// The name of a series and its points.
type Line = (Option<String>, Vec<Sample>);

/// Latency by CPU: points, a series for each result and order, in charts of as many series as there are colours.
pub(crate) fn per_cpu(sets: &[ResultSet<'_>]) -> Vec<Box<dyn Panel>> {
    let ids: BTreeSet<u32> = sets.iter().flat_map(|s| &s.ms).filter_map(|m| m.at.cpu).collect();
    let ids: Vec<u32> = ids.into_iter().collect();
    let measured = "ns per dependent load, each CPU to the node's memory, with its 95 % interval";
    let caption = caption(sets, "Idle latency by CPU", &[measured], true);
    let names: Vec<String> = ids.iter().map(u32::to_string).collect();
    let lines = lines(sets, &ids);
    let mut whole = Chart::new(caption, Axis::indices("CPU", &names, 16), latency_axis(&lines));
    if let [only] = sets {
        whole.bands = groups(&only.report.machine.topology, &ids);
    }
    if let [(_, samples)] = lines.as_slice() {
        whole.point_labels = extremes(samples, &ids);
    }
    for (i, (name, samples)) in lines.into_iter().enumerate() {
        whole.series.push(Series { name, style: Style::of_points(i), samples, joined: false });
    }
    boxed(whole.in_parts(true))
}

/// An axis for all values and, within reason, their intervals.
fn latency_axis(lines: &[Line]) -> Axis {
    let (low, high) = reach(lines.iter().flat_map(|l| &l.1)).unwrap_or((0.0, 1.0));
    // Readers should be able to see a twentieth of the value; a narrower axis would magnify noise.
    let range = high * 0.05;
    let (low, high) = if high - low < range { ((low + high - range) / 2.0, (low + high + range) / 2.0) } else { (low, high) };
    Axis::linear("Latency (ns)", low.max(0.0), high, 6)
}

/// A line for each result and order that has values.
fn lines(sets: &[ResultSet<'_>], ids: &[u32]) -> Vec<Line> {
    let index = |id: u32| ids.binary_search(&id).unwrap_or(0) as f64;
    let orders: BTreeSet<Option<ChaseOrder>> = sets.iter().flat_map(|s| &s.ms).map(|m| m.at.order).collect();
    let mut lines: Vec<Line> = Vec::new();
    for set in sets {
        let table = Pivot::new(&set.ms, |m| (m.at.order, m.at.cpu));
        for order in &orders {
            let samples: Vec<Sample> = table.row(order).filter_map(|m| sample(index(m.at.cpu?), m)).collect();
            if samples.is_empty() {
                continue;
            }
            let parts = [set.name, (orders.len() > 1).then(|| order_name(*order))];
            let name: Vec<&str> = parts.into_iter().flatten().collect();
            lines.push(((!name.is_empty()).then(|| name.join(", ")), samples));
        }
    }
    lines
}

/// Bands of CPUs of the same kind, or of the same node.
fn groups(topology: &Topology, ids: &[u32]) -> Vec<Band> {
    let kinds = topology.cpus.iter().any(|c| c.kind.is_some());
    let group = |id: u32| {
        let cpu = topology.cpu(id)?;
        if kinds { cpu.kind.clone().map(|k| (k.clone(), k)) } else { Some((format!("node {}", cpu.node), cpu.node.to_string())) }
    };
    let groups: Vec<_> = ids.iter().map(|id| group(*id)).collect();
    let cuts: Vec<usize> = (1..groups.len()).filter(|&i| groups[i] != groups[i - 1]).collect();
    if cuts.is_empty() || cuts.len() > 32 {
        return Vec::new();
    }
    let edges: Vec<usize> = [0].into_iter().chain(cuts).chain([groups.len()]).collect();
    edges
        .iter()
        .zip(edges.iter().skip(1))
        .enumerate()
        .map(|(i, (&from, &to))| {
            let names = groups[from].clone().map(|(long, short)| vec![long, short]).unwrap_or_default();
            Band { from: from as f64 - 0.5, to: to as f64 - 0.5, names, shaded: i % 2 == 0 }
        })
        .collect()
}

/// The fastest and the slowest CPU.
fn extremes(samples: &[Sample], ids: &[u32]) -> Vec<PointLabel> {
    let by = |a: &&Sample, b: &&Sample| a.y.total_cmp(&b.y);
    let (Some(low), Some(high)) = (samples.iter().min_by(by), samples.iter().max_by(by)) else { return Vec::new() };
    if samples.len() < 2 {
        return Vec::new();
    }
    let mark = |s: &Sample, first| {
        let cpu = ids.get(s.x as usize).map(|id| format!("CPU {id}: ")).unwrap_or_default();
        let mut directions = vec![first];
        directions.extend([UPPER_LEFT, UPPER_RIGHT, LEFT, RIGHT, ABOVE, BELOW]);
        PointLabel::new((s.x, s.y), format!("{cpu}{} ns", number(s.y)), INK, &directions)
    };
    vec![mark(high, ABOVE), mark(low, BELOW)]
}
