//! Latency under load: curves of latency over bandwidth.

use std::collections::BTreeSet;

use memgauge_core::experiment::Coordinates;
use memgauge_core::result::{CurveSummary, Measurement};
use memgauge_core::wording;

use super::axis::Axis;
use super::chart::{Chart, Guide, PointLabel, Sample, Series};
use super::frame::{Caption, Panel};
use super::labels::{ABOVE, BELOW, Direction, LEFT, LOWER_LEFT, LOWER_RIGHT, RIGHT, UPPER_LEFT, UPPER_RIGHT};
use super::limit::{MAX_LIMIT_RATIO, bus_moves_what_is_asked, limit, limit_note};
use super::palette::{Colour, GREY, INK, series, text_of};
use super::source::{MAX_SERIES, ResultSet, caption, interval, is_degraded, part_of};
use crate::groups::{LoadedCurve, LoadedPoint, loaded_curves, measured_by};
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
    bandwidths: Vec<&'a Measurement>,
}

/// All curves of all results, in charts of as many as there are colours.
pub(crate) fn charts(sets: &[ResultSet<'_>]) -> Vec<Box<dyn Panel>> {
    let curves: Vec<Curve<'_>> = sets.iter().flat_map(curves_of).collect();
    let names = names(&curves);
    let list: Vec<(&Curve<'_>, Option<String>)> = curves.iter().zip(names).collect();
    let parts = list.len().div_ceil(MAX_SERIES);
    let chart = |(part, curves)| {
        let mut chart = chart(sets, curves);
        chart.caption.title.push_str(&part_of(part, parts));
        Box::new(chart) as Box<dyn Panel>
    };
    list.chunks(MAX_SERIES).enumerate().map(chart).collect()
}

fn curves_of<'a>(set: &ResultSet<'a>) -> Vec<Curve<'a>> {
    let curve = |curve: LoadedCurve<'a>| Curve {
        set_name: set.name,
        summary: set.report.curves.iter().find(|c| c.at == curve.at),
        points: curve.points.iter().filter_map(|p| Some((p.delay, point(p)?))).collect(),
        bandwidths: curve.points.iter().filter_map(|p| p.bandwidth).collect(),
        at: curve.at,
    };
    loaded_curves(&set.ms).into_iter().map(curve).collect()
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
    let telling: Vec<_> = coordinates.into_iter().filter(|p| varies(*p)).collect();
    // Two parts are enough: the later ones vary together with the first ones.
    let telling: Vec<_> = telling.iter().copied().take(2).collect();
    let name = |c: &Curve<'_>| {
        let mut parts: Vec<String> = c.set_name.filter(|_| results).map(str::to_owned).into_iter().collect();
        parts.extend(telling.iter().map(|p| p(&c.at)).filter(|w| !w.is_empty()));
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    curves.iter().map(name).collect()
}

fn chart(sets: &[ResultSet<'_>], curves: &[(&Curve<'_>, Option<String>)]) -> Chart {
    let all = || curves.iter().flat_map(|(c, _)| &c.points).map(|(_, s)| s);
    let widest = bounds(all().map(|s| s.x)).map_or(1.0, |b| b.1);
    let highest = bounds(all().map(|s| s.y_interval.map_or(s.y, |i| i.1.max(s.y)))).map_or(1.0, |b| b.1);
    let bandwidths: Vec<&Measurement> = curves.iter().flat_map(|(c, _)| c.bandwidths.iter().copied()).collect();
    let limit = limit(&bandwidths);
    let shown = limit.as_ref().filter(|l| l.gbs <= widest * MAX_LIMIT_RATIO && bus_moves_what_is_asked(&bandwidths));
    // Room at the right for the names of several curves, which end there.
    let right = shown.map_or(widest, |l| l.gbs.max(widest)) * if curves.len() > 1 { 1.08 } else { 1.0 };
    let x = Axis::linear("Bandwidth (GB/s)", 0.0, right, 8);
    let y = Axis::linear("Latency (ns)", 0.0, highest, 7);
    let mut caption = curves_caption(sets, curves);
    caption.notes.extend(limit.as_ref().filter(|_| shown.is_none()).map(|l| limit_note(l, &bandwidths)));
    for (curve, name) in curves {
        if curve.summary.is_some_and(|s| s.over_saturated) {
            let which = name.as_ref().map(|n| format!("{n}: ")).unwrap_or_default();
            caption.notes.push(format!("{which}Past the peak, more load brings less bandwidth and more latency."));
        }
    }
    let mut chart = Chart::new(caption, x, y);
    for (i, (curve, name)) in curves.iter().enumerate() {
        let colour = series(i);
        let samples: Vec<Sample> = curve.points.iter().map(|p| p.1).collect();
        chart.point_labels.extend(marks(curve, colour, curves.len()));
        chart.series.push(Series { name: name.clone(), colour, samples, joined: true });
    }
    if let [(only, _)] = curves {
        chart.point_labels.extend(delays(only, chart.x.high, chart.y.high));
        let peak = only.summary.and_then(|s| s.peak_gbs).filter(|p| p.is_finite());
        chart.guides.extend(peak.map(|at| Guide::vertical(at, format!("peak {} GB/s", number(at)), GREY)));
    }
    chart.guides.extend(shown.map(|l| Guide::vertical(l.gbs, format!("limit {}", l.text()), INK)));
    chart
}

fn curves_caption(sets: &[ResultSet<'_>], curves: &[(&Curve<'_>, Option<String>)]) -> Caption {
    let mixes: BTreeSet<_> = curves.iter().map(|(c, _)| c.at.mix).collect();
    let mix = mixes.iter().next().filter(|_| mixes.len() == 1).copied().flatten().map(|m| format!(", {m}")).unwrap_or_default();
    let cpus: BTreeSet<String> = curves.iter().map(|(c, _)| measured_by(&c.at)).collect();
    let cpus = cpus.iter().next().filter(|_| cpus.len() == 1).cloned().unwrap_or_default();
    let rings = match curves {
        _ if curves.iter().all(|(c, _)| c.summary.is_none_or(|s| s.knee.is_none())) => "no knee up to this load",
        [(only, _)] if only.summary.is_some_and(|s| !s.shares.is_empty()) => "rings: knee, and shares of the peak that were asked for",
        _ => "rings: knees",
    };
    let delays = if curves.len() == 1 { "small numbers: injection delay in core cycles" } else { "" };
    caption(sets, &format!("Latency under load{mix}"), &[&cpus, rings, delays], true)
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
        let place = format!("{} ns at {} GB/s", number(knee.latency_ns), number(knee.bandwidth_gbs));
        let name = if curve_count == 1 { format!("knee: {place}") } else { place };
        let beside = [UPPER_LEFT, LOWER_RIGHT, ABOVE, BELOW, LEFT, RIGHT, LOWER_LEFT];
        mark((knee.bandwidth_gbs, knee.latency_ns), name, true, curve_count > 1, &beside);
    }
    if let Some((_, first)) = curve.points.first().filter(|_| curve_count == 1 && curve.points.len() > 1) {
        let name = format!("{} ns unloaded", number(first.y));
        mark((first.x, first.y), name, false, false, &[ABOVE, UPPER_RIGHT, BELOW, LOWER_RIGHT, RIGHT]);
    }
    // What --at looked for.
    for share in curve.summary.iter().filter(|_| curve_count == 1).flat_map(|s| &s.shares) {
        if let (Some(ns), Some(gbs), None) = (value_of(&share.latency), value_of(&share.bandwidth), share.missed) {
            let name = format!("{} %: {} ns", share.percent, number(ns));
            mark((gbs, ns), name, true, false, &[UPPER_LEFT, ABOVE, LEFT, LOWER_RIGHT, BELOW, RIGHT]);
        }
    }
    let peak = curve.points.iter().map(|p| p.1).max_by(|a, b| a.x.total_cmp(&b.x));
    if let Some(peak) = peak.filter(|_| curve_count > 1) {
        let name = format!("peak {} GB/s", number(peak.x));
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
