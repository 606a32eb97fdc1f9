//! A watched machine over time: the probes of its stamps, and the bandwidth that others seem to use.

use memgauge_model::experiment_table::PanelName;
use memgauge_model::result::{Condition, OthersScale, Report, StampProbe, Watch, WatchPoint};
use memgauge_model::stats;

use super::time::Time;
use crate::figure::axis::Axis;
use crate::figure::chart::{Chart, Guide, Sample, Series, reach};
use crate::figure::frame::{Caption, NamedPanel};
use crate::figure::palette::{GREY, Style};
use crate::format::Named;
use crate::number::{bounds, count, number};

/// Changes that are marked. More lines hide what they mark.
const MARKED: usize = 12;
/// This share of the values is drawn where it is, and all others up to so many times as far from the level.
const MOST: f64 = 0.9;
const FAR: f64 = 3.0;
/// In percent.
const LEAST_EDGE: f64 = 10.0;
/// The panels of each watch.
pub(crate) fn panels(results: &[Named<'_>]) -> Vec<NamedPanel> {
    let of = |result: &Named<'_>| {
        let name = if results.len() > 1 { format!("{}: ", result.name) } else { String::new() };
        result.report.watch.as_ref().map(|watch| of_watch(result.report, watch, &name)).unwrap_or_default()
    };
    results.iter().flat_map(of).collect()
}

fn of_watch(report: &Report, watch: &Watch, name: &str) -> Vec<NamedPanel> {
    let Some(time) = Time::of(watch.points.iter().map(|point| &point.at)) else { return Vec::new() };
    let mut panels: Vec<NamedPanel> = vec![(PanelName::STATE, Box::new(state(report, watch, &time, name)))];
    if let Some(scale) = &watch.others {
        panels.push((PanelName::OTHERS, Box::new(others(watch, scale, &time, name))));
    }
    panels
}

fn sample(time: &Time, point: &WatchPoint, y: f64) -> Sample {
    let busy = !point.busy.is_empty();
    Sample { x: time.at(&point.at), y, degraded: busy, apart: busy, ..Sample::default() }
}

/// A line for each probe, over its value in state 1.
fn state(report: &Report, watch: &Watch, time: &Time, name: &str) -> Chart {
    let level = |probe: StampProbe| {
        let known = watch.states.first().and_then(|state| state.probes.iter().find(|p| p.probe == probe)).map(|p| p.value);
        // A machine that was busy all the time has no state.
        known.or_else(|| watch.points.iter().find_map(|point| point.probes.get(&probe).copied()))
    };
    let line = |(i, probe): (usize, StampProbe)| {
        let level = level(probe)?;
        let change = |point: &WatchPoint| Some(sample(time, point, 100.0 * (point.probes.get(&probe)? / level - 1.0)));
        let samples: Vec<Sample> = watch.points.iter().filter_map(change).collect();
        Some(Series { name: Some(probe.name().to_owned()), style: Style::of_points(i), samples, joined: true })
    };
    let mut series: Vec<Series> = StampProbe::ALL.into_iter().enumerate().filter_map(line).collect();
    let beyond = bound(&mut series);
    let (low, high) = reach(series.iter().flat_map(|s| &s.samples)).unwrap_or((-1.0, 1.0));
    let about =
        format!("stamps since {}, each probe relative to its median in state 1", report.started.utc.replace('T', " ").replace('Z', " UTC"));
    let mut caption = Caption::new(format!("{name}State of the machine"), about);
    caption.notes.extend(beyond);
    caption.notes.extend((watch.busy > 0).then(|| "Hollow: others used the machine.".to_owned()));
    let marked = watch.changes.len() <= MARKED;
    caption.notes.extend((!marked).then(|| format!("{} changes of state are not marked.", watch.changes.len())));
    let mut chart = Chart::new(caption, time.axis(), Axis::linear("Change (%)", low.min(-1.0), high.max(1.0), 7));
    chart.series = series;
    if marked {
        let mark = |to: &Condition| match to {
            Condition::Quiet { state } => format!("state {state}"),
            Condition::Busy => "busy".to_owned(),
        };
        chart.guides.extend(watch.changes.iter().map(|change| Guide::vertical(time.at(&change.at), mark(&change.to), GREY)));
    }
    chart
}

/// Moves what lies far out to the edge, so that it does not flatten everything else, and says so.
fn bound(series: &mut [Series]) -> Option<String> {
    let sizes: Vec<f64> = series.iter().flat_map(|s| &s.samples).map(|sample| sample.y.abs()).collect();
    let edge = (FAR * stats::quantile(&stats::sorted(&sizes), MOST)?).max(LEAST_EDGE);
    let far: Vec<&mut Sample> = series.iter_mut().flat_map(|s| &mut s.samples).filter(|sample| sample.y.abs() > edge).collect();
    if far.is_empty() {
        return None;
    }
    let n = far.len();
    far.into_iter().for_each(|sample| sample.y = sample.y.clamp(-edge, edge));
    Some(format!("{} beyond {edge:.0} %: drawn at the edge.", count(n, "value is", "values are")))
}

/// The bandwidth that others seem to use.
fn others(watch: &Watch, scale: &OthersScale, time: &Time, name: &str) -> Chart {
    let estimate = |point: &WatchPoint| {
        let others = point.others?;
        Some(Sample { y_interval: Some((others.low_gbs, others.high_gbs.unwrap_or(scale.peak_gbs))), ..sample(time, point, others.gbs) })
    };
    let samples: Vec<Sample> = watch.points.iter().filter_map(estimate).collect();
    let ends = samples.iter().filter_map(|s| s.y_interval).map(|(_, high)| high);
    let top = bounds(ends.chain(scale.detection_gbs)).map_or(scale.peak_gbs, |b| b.1);
    let mut caption = Caption::new(
        format!("{name}Memory bandwidth that others seem to use"),
        "by the latency of memory and the curve of latency under load, with the 95 % interval",
    );
    match scale.detection_gbs {
        Some(gbs) => caption.notes.push(format!("Less than {} GB/s is not detected by one stamp.", number(gbs))),
        None => caption.notes.push("No bandwidth is detected: latency scatters by more than load changes it.".to_owned()),
    }
    let mut chart = Chart::new(caption, time.axis(), Axis::linear("Bandwidth (GB/s)", 0.0, top.max(f64::MIN_POSITIVE), 7));
    chart.guides.extend(scale.detection_gbs.map(|gbs| Guide::level(gbs, "detected".to_owned(), GREY)));
    chart.series.push(Series { name: None, style: Style::of_points(0), samples, joined: false });
    chart
}
