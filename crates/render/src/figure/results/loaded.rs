//! Latency under load: curves of latency over bandwidth.

use std::collections::BTreeSet;

use memgauge_model::experiment::Coordinates;
use memgauge_model::result::{CurveSummary, Measurement, QualityLevel};
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;
use memgauge_model::wording;

use crate::figure::axis::Axis;
use crate::figure::chart::{Chart, Guide, PointLabel, Sample, Series, reach};
use crate::figure::frame::{Caption, Panel, boxed, part_of};
use crate::figure::labels::{ABOVE, BELOW, Direction, LEFT, LOWER_LEFT, LOWER_RIGHT, RIGHT, UPPER_LEFT, UPPER_RIGHT};
use crate::figure::palette::{Colour, GREY, INK, MAX_SERIES, Style, text_of};
use crate::figure::source::{ResultSet, caption, interval, is_degraded, is_disturbed};
use crate::groups::{LoadedCurve, LoadedPoint, loaded_curves, measured_by};
use crate::limit::{Limit, MAX_LIMIT_RATIO, bus_moves_what_is_asked, limit, limit_note};
use crate::number::{bounds, number, value_of};

/// Points closer than this share of the plot get one label for their delays.
const CLUSTER: f64 = 0.035;

/// One curve, from the lightest load to the heaviest.
struct Curve<'a> {
    at: Coordinates,
    set_name: Option<&'a str>,
    summary: Option<&'a CurveSummary>,
    /// Delay and sample.
    points: Vec<(Option<u32>, Sample)>,
    /// Delays that have an unreliable number.
    unreliable: BTreeSet<Option<u32>>,
    bandwidths: Vec<&'a Measurement>,
}

impl Curve<'_> {
    /// The end of a number's label, which says if the number is unreliable.
    fn doubt(&self, delay: Option<u32>) -> &'static str {
        if self.unreliable.contains(&delay) { " (unreliable)" } else { "" }
    }
}

/// All curves of all results, in charts of about as many, at most as there are colours. All charts have the same axes, so that they compare.
pub(crate) fn charts(sets: &[ResultSet<'_>]) -> Vec<Box<dyn Panel>> {
    let curves: Vec<Curve<'_>> = sets.iter().flat_map(curves_of).collect();
    let names = names(&curves);
    let list: Vec<Drawn<'_>> =
        curves.iter().zip(names).enumerate().map(|(i, (curve, name))| Drawn { curve, name, style: Style::of_points(i) }).collect();
    let parts = list.len().div_ceil(MAX_SERIES).max(1);
    let axes = axes(sets, &list);
    let chart = |(part, curves)| {
        let mut chart = chart(sets, curves, &axes);
        chart.caption.title.push_str(&part_of(part, parts));
        chart
    };
    boxed(list.chunks(list.len().div_ceil(parts).max(1)).enumerate().map(chart))
}

/// A curve as it is drawn.
struct Drawn<'a> {
    curve: &'a Curve<'a>,
    name: Option<String>,
    style: Style,
}

/// The axes and the limit, which all charts share.
struct Axes {
    x: Axis,
    y: Axis,
    limit: Option<Limit>,
    /// Whether the limit is drawn.
    limit_shown: bool,
}

fn axes(sets: &[ResultSet<'_>], curves: &[Drawn<'_>]) -> Axes {
    let samples = curves.iter().flat_map(|c| &c.curve.points).map(|(_, s)| s);
    let claims = claims(sets, curves);
    let claimed = |vertical: bool| claims.iter().filter(move |guide| guide.vertical == vertical).map(|guide| guide.at);
    let widest = bounds(samples.clone().map(|s| s.x).chain(claimed(true))).map_or(1.0, |b| b.1);
    let highest = bounds(reach(samples).map(|b| b.1).into_iter().chain(claimed(false))).map_or(1.0, |b| b.1);
    let bandwidths: Vec<&Measurement> = curves.iter().flat_map(|c| c.curve.bandwidths.iter().copied()).collect();
    let limit = limit(&bandwidths);
    let shown = limit.as_ref().filter(|l| l.gbs <= widest * MAX_LIMIT_RATIO && bus_moves_what_is_asked(&bandwidths));
    // Room at the right for the names of several curves, which end there.
    let right = shown.map_or(widest, |l| l.gbs.max(widest)) * if curves.len() > 1 { 1.08 } else { 1.0 };
    Axes {
        x: Axis::linear("Bandwidth (GB/s)", 0.0, right, 8),
        y: Axis::linear("Latency (ns)", 0.0, highest, 7),
        limit_shown: shown.is_some(),
        limit,
    }
}

fn curves_of<'a>(set: &ResultSet<'a>) -> Vec<Curve<'a>> {
    let curve = |curve: LoadedCurve<'a>| Curve {
        set_name: set.name,
        summary: curve.summary(&set.report.curves),
        points: curve.points.iter().filter_map(|p| Some((p.delay, point(p)?))).collect(),
        unreliable: curve.points.iter().filter(|p| is_unreliable(p)).map(|p| p.delay).collect(),
        bandwidths: curve.points.iter().filter_map(|p| p.bandwidth).collect(),
        at: curve.at,
    };
    loaded_curves(&set.ms).into_iter().map(curve).collect()
}

fn is_unreliable(p: &LoadedPoint<'_>) -> bool {
    [p.latency, p.bandwidth].into_iter().flatten().any(|m| m.quality.level == QualityLevel::Unreliable)
}

/// Latency over bandwidth; `None` where one of them has no value.
fn point(p: &LoadedPoint<'_>) -> Option<Sample> {
    let (latency, bandwidth) = (p.latency?, p.bandwidth?);
    Some(Sample {
        x: value_of(&bandwidth.estimate)?,
        y: value_of(&latency.estimate)?,
        x_interval: interval(bandwidth),
        y_interval: interval(latency),
        degraded: is_degraded(latency) || is_degraded(bandwidth),
        apart: is_disturbed(latency) || is_disturbed(bandwidth),
    })
}

/// What distinguishes each curve from the others; nothing for a single one.
fn names(curves: &[Curve<'_>]) -> Vec<Option<String>> {
    // Only what differs within one result: the names of the results tell the machines apart.
    let varies = |f: fn(&Coordinates) -> String| {
        let texts = |result| curves.iter().filter(move |c| c.set_name == result).map(|c| f(&c.at)).collect::<BTreeSet<_>>();
        curves.iter().any(|first| texts(first.set_name).len() > 1)
    };
    let coordinates: [fn(&Coordinates) -> String; 5] = [
        |at| at.mix.map(|m| m.to_string()).unwrap_or_default(),
        |at| at.memory_node().map(|n| format!("memory of node {n}")).unwrap_or_default(),
        |at| at.load_nodes.as_ref().map(|n| format!("load on {}", wording::nodes(n))).unwrap_or_default(),
        |at| at.cpu.map(|c| format!("from CPU {c}")).unwrap_or_default(),
        |at| at.cpus.as_ref().map(wording::cpus).unwrap_or_default(),
    ];
    let results = curves.iter().map(|c| c.set_name).collect::<BTreeSet<_>>().len() > 1;
    let mut telling: Vec<_> = coordinates.into_iter().filter(|p| varies(*p)).collect();
    let tells_apart = |parts: &usize| {
        let name = |c: &Curve<'_>| (c.set_name.map(str::to_owned), telling[..*parts].iter().map(|p| p(&c.at)).collect::<Vec<_>>());
        curves.iter().map(name).collect::<BTreeSet<_>>().len() == curves.len()
    };
    // Two parts are mostly enough: the later ones vary together with the first ones.
    let parts = (2..telling.len()).find(tells_apart).unwrap_or(telling.len());
    telling.truncate(parts);
    let name = |c: &Curve<'_>| {
        let mut parts: Vec<String> = c.set_name.filter(|_| results).map(str::to_owned).into_iter().collect();
        // Names of three parts have no room for more words than these need.
        let brief = |w: String| if telling.len() > 2 { w.replace("memory of ", "").replace("from ", "") } else { w };
        parts.extend(telling.iter().map(|p| brief(p(&c.at))).filter(|w| !w.is_empty()));
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    curves.iter().map(name).collect()
}

fn chart(sets: &[ResultSet<'_>], curves: &[Drawn<'_>], axes: &Axes) -> Chart {
    let shown = axes.limit.as_ref().filter(|_| axes.limit_shown);
    let bandwidths: Vec<&Measurement> = curves.iter().flat_map(|c| c.curve.bandwidths.iter().copied()).collect();
    let mut caption = curves_caption(sets, curves);
    caption.notes.extend(axes.limit.as_ref().filter(|_| shown.is_none()).map(|l| limit_note(l, &bandwidths)));
    for Drawn { curve, name, .. } in curves {
        if curve.summary.is_some_and(|s| s.over_saturated) {
            let which = name.as_ref().map(|n| format!("{n}: ")).unwrap_or_default();
            caption.notes.push(format!("{which}Past the peak, more load brings less bandwidth and more latency."));
        }
    }
    if curves.iter().flat_map(|c| &c.curve.points).any(|(_, s)| s.apart) {
        caption.notes.push("Lines join the points that were not disturbed.".to_owned());
    }
    let mut chart = Chart::new(caption, axes.x.clone(), axes.y.clone());
    for Drawn { curve, name, style } in curves {
        let samples: Vec<Sample> = curve.points.iter().map(|p| p.1).collect();
        chart.point_labels.extend(marks(curve, style.colour, curves.len()));
        chart.series.push(Series { name: name.clone(), style: *style, samples, joined: true });
    }
    if let [Drawn { curve: only, .. }] = curves {
        chart.point_labels.extend(delays(only, chart.x.high, chart.y.high));
        let peak = only.summary.and_then(|s| s.peak_gbs).filter(|p| p.is_finite());
        let doubt = |at: f64| only.points.iter().find(|(_, point)| point.x == at).map_or("", |(delay, _)| only.doubt(*delay));
        chart.guides.extend(peak.map(|at| Guide::vertical(at, format!("peak {} GB/s{}", number(at), doubt(at)), GREY)));
    }
    chart.guides.extend(shown.map(|l| Guide::vertical(l.gbs, format!("limit {}", l.text()), INK)));
    chart.guides.extend(claims(sets, curves));
    chart
}

/// The firmware's claims about reads of each tier that is loaded alone, if there is only one result and it compares tiers.
fn claims(sets: &[ResultSet<'_>], curves: &[Drawn<'_>]) -> Vec<Guide> {
    let [set] = sets else { return Vec::new() };
    if set.report.plan.as_ref().is_none_or(|plan| plan.tiers.is_empty()) {
        return Vec::new();
    }
    let alone = |at: &Coordinates| {
        let node = at.memory_node().filter(|node| at.load_nodes == Some(IdSet::one(*node)) && at.mix == Some(Mix::AllReads))?;
        Some((at.cpu_node?, node))
    };
    let pairs: BTreeSet<(u32, u32)> = curves.iter().filter_map(|drawn| alone(&drawn.curve.at)).collect();
    let mut guides = Vec::new();
    for (from, node) in pairs {
        let Some(claim) = set.report.machine.topology.claim(from, node) else { continue };
        let ns = claim.read_latency_ns.map(|ns| Guide::level(ns as f64, format!("node {node}, claimed: {ns} ns"), GREY));
        let gbs = claim.read_bandwidth_mbs.map(|mbs| mbs as f64 / 1e3);
        let gbs = gbs.map(|gbs| Guide::vertical(gbs, format!("node {node}, claimed: {} GB/s", number(gbs)), GREY));
        guides.extend(ns.into_iter().chain(gbs));
    }
    guides
}

/// Nodes among these whose memory only stands in for persistent memory.
fn stand_ins(sets: &[ResultSet<'_>], curves: &[&Curve<'_>]) -> Vec<String> {
    let [set] = sets else { return Vec::new() };
    let nodes: BTreeSet<u32> = curves.iter().filter(|c| c.at.memory_dir.is_none()).filter_map(|c| c.at.memory_node()).collect();
    let told = |node| {
        Some(format!("The memory of node {node} is a volatile stand-in: {}.", set.report.machine.topology.emulated_persistent(node)?))
    };
    nodes.into_iter().filter_map(told).collect()
}

fn curves_caption(sets: &[ResultSet<'_>], drawn: &[Drawn<'_>]) -> Caption {
    let curves: Vec<&Curve<'_>> = drawn.iter().map(|d| d.curve).collect();
    let mixes: BTreeSet<_> = curves.iter().map(|c| c.at.mix).collect();
    let mix = mixes.iter().next().filter(|_| mixes.len() == 1).copied().flatten().map(|m| format!(", {m}")).unwrap_or_default();
    let cpus: BTreeSet<String> = curves.iter().map(|c| measured_by(&c.at)).collect();
    let cpus = cpus.iter().next().filter(|_| cpus.len() == 1).cloned().unwrap_or_default();
    let rings = match curves.as_slice() {
        // Unreliable numbers show no knee, whether there is one or not.
        _ if curves.iter().all(|c| c.points.iter().all(|(delay, _)| c.unreliable.contains(delay))) => "",
        _ if curves.iter().all(|c| c.summary.is_none_or(|s| s.knee.is_none())) => "no knee up to this load",
        [only] if only.summary.is_some_and(|s| !s.shares.is_empty()) => "rings: knee, and shares of the peak that were asked for",
        _ => "rings: knees",
    };
    let delays = if curves.len() == 1 { "small numbers: injection delay in core cycles" } else { "" };
    let mut caption = caption(sets, &format!("Latency under load{mix}"), &[&cpus, rings, delays], true);
    caption.notes.extend(stand_ins(sets, &curves));
    caption
}

/// Labels at the points that matter: idle, knee, and with several curves the peak.
fn marks(curve: &Curve<'_>, colour: Colour, curve_count: usize) -> Vec<PointLabel> {
    let mut marks = Vec::new();
    let mut mark = |at: (f64, f64), name: String, ring: bool, optional: bool, directions: &[Direction]| {
        if at.0.is_finite() && at.1.is_finite() {
            let colour = if curve_count == 1 { INK } else { text_of(colour) };
            marks.push(PointLabel { at, name, colour, ring, optional, directions: directions.to_vec() });
        }
    };
    if let Some(knee) = curve.summary.and_then(|s| s.knee) {
        let doubt = curve.doubt(Some(knee.delay_cycles));
        let place = format!("{} ns at {} GB/s{doubt}", number(knee.latency_ns), number(knee.bandwidth_gbs));
        let name = if curve_count == 1 { format!("knee: {place}") } else { place };
        let beside = [UPPER_LEFT, LOWER_RIGHT, ABOVE, BELOW, LEFT, RIGHT, LOWER_LEFT];
        mark((knee.bandwidth_gbs, knee.latency_ns), name, true, curve_count > 1, &beside);
    }
    if let Some((delay, first)) = curve.points.first().filter(|_| curve_count == 1 && curve.points.len() > 1) {
        let name = format!("{} ns unloaded{}", number(first.y), curve.doubt(*delay));
        mark((first.x, first.y), name, false, false, &[ABOVE, UPPER_RIGHT, BELOW, LOWER_RIGHT, RIGHT]);
    }
    // What --at looked for.
    for share in curve.summary.iter().filter(|_| curve_count == 1).flat_map(|s| &s.shares) {
        if let (Some(ns), Some(gbs), None) = (value_of(&share.latency), value_of(&share.bandwidth), share.missed) {
            let name = format!("{} %: {} ns", share.percent, number(ns));
            mark((gbs, ns), name, true, false, &[UPPER_LEFT, ABOVE, LEFT, LOWER_RIGHT, BELOW, RIGHT]);
        }
    }
    let peak = curve.points.iter().max_by(|a, b| a.1.x.total_cmp(&b.1.x));
    if let Some((delay, peak)) = peak.filter(|_| curve_count > 1) {
        let name = format!("peak {} GB/s{}", number(peak.x), curve.doubt(*delay));
        mark((peak.x, peak.y), name, false, true, &[RIGHT, LEFT, UPPER_LEFT, LOWER_RIGHT, ABOVE, BELOW]);
    }
    marks
}

/// Delays beside their points; points that are close together share a label.
fn delays(curve: &Curve<'_>, right: f64, top: f64) -> Vec<PointLabel> {
    let mut clusters: Vec<(Sample, Vec<u32>)> = Vec::new();
    for (delay, s) in &curve.points {
        let Some(delay) = delay else { continue };
        match clusters.last_mut() {
            Some((first, list)) if ((s.x - first.x) / right).hypot((s.y - first.y) / top) < CLUSTER => list.push(*delay),
            _ => clusters.push((*s, vec![*delay])),
        }
    }
    let name = |list: &[u32]| match (list.iter().min(), list.iter().max()) {
        (Some(low), Some(high)) if low != high => format!("{high}–{low}"),
        (Some(one), _) => one.to_string(),
        _ => String::new(),
    };
    let directions = [BELOW, RIGHT, LOWER_RIGHT, LEFT, ABOVE, UPPER_LEFT, UPPER_RIGHT, LOWER_LEFT];
    clusters.iter().map(|(s, list)| PointLabel::new((s.x, s.y), name(list), GREY, &directions).optional_if(true)).collect()
}

#[cfg(test)]
mod tests {
    use memgauge_model::experiment::MemoryPlace;

    use super::*;

    #[test]
    fn curves_of_several_sockets_and_tiers_have_names_of_their_own() {
        let curve = |cpu: u32, memory, load| {
            let cpus = Some([cpu + 1, cpu + 2].into_iter().collect());
            let (memory, load_nodes) = (Some(MemoryPlace::Node(memory)), Some(IdSet::one(load)));
            let at = Coordinates { cpu: Some(cpu), cpus, memory, load_nodes, ..Coordinates::default() };
            Curve { at, set_name: None, summary: None, points: vec![], unreliable: BTreeSet::new(), bandwidths: vec![] }
        };
        let of = |curves: &[Curve<'_>]| names(curves).into_iter().flatten().collect::<Vec<_>>();
        let one_socket = [curve(0, 0, 2), curve(0, 2, 0)];
        assert_eq!(of(&one_socket), ["memory of node 0, load on node 2", "memory of node 2, load on node 0"]);
        let both = [curve(0, 0, 2), curve(0, 2, 2), curve(8, 0, 2), curve(8, 2, 2)];
        assert_eq!(of(&both).into_iter().collect::<BTreeSet<_>>().len(), 4, "{:?}", of(&both));
        assert_eq!(of(&both)[3], "memory of node 2, from CPU 8");
        let all = [curve(0, 0, 2), curve(0, 2, 2), curve(0, 2, 0), curve(8, 2, 0)];
        assert_eq!(of(&all)[3], "node 2, load on node 0, CPU 8");
    }
}
