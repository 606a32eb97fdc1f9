//! Curves over the working set, from results: one figure for latencies and one for bandwidths.

use memgauge_analysis::conclusions::levels;
use memgauge_model::experiment::{Coordinates, Metric};
use memgauge_model::experiment_table::PanelName;
use memgauge_model::result::CacheSize;
use memgauge_model::wording;

use super::misses;
use crate::figure::chart::Chart;
use crate::figure::frame::{Caption, NamedPanel, boxed};
use crate::figure::source::{ResultSet, about, common_pages, interval, is_degraded, notes, shared_title};
use crate::figure::working_set::{WorkingSet, WorkingSetLine, WorkingSetPoint};
use crate::groups::Sweep;
use crate::number::value_of;

/// The panels of all results' curves.
pub(crate) fn panels(sets: &[ResultSet<'_>]) -> Vec<NamedPanel> {
    let (counted, captions) = misses::panels(sets);
    let metrics = [(PanelName::LATENCY_BY_SIZE, Metric::Latency), (PanelName::BANDWIDTH_BY_SIZE, Metric::Bandwidth)];
    let mut all: Vec<NamedPanel> = Vec::new();
    for (kind, metric) in metrics {
        all.extend(boxed(charts(sets, metric)).into_iter().map(|panel| (kind, panel)));
    }
    // Below the last chart, because they are about the panels that would follow it.
    if let Some((_, last)) = all.last_mut() {
        last.caption().notes.extend(captions);
    }
    all.extend(counted.into_iter().map(|panel| (PanelName::MISSES, panel)));
    all
}

/// Parts of a curve's coordinates, in words.
const PARTS: [fn(&Coordinates) -> String; 4] = [
    |at| at.cpu.map(|c| format!("CPU {c}")).or_else(|| at.cpus.as_ref().map(wording::cpus)).unwrap_or_default(),
    |at| at.memory_node().map(|n| format!("node {n}")).unwrap_or_default(),
    |at| at.order.map(|o| wording::chase_order(o).to_owned()).unwrap_or_default(),
    |at| at.mix.map(|m| m.to_string()).unwrap_or_default(),
];

/// The charts of one metric.
fn charts(sets: &[ResultSet<'_>], metric: Metric) -> Vec<Chart> {
    let sets = sets.iter().map(|s| s.only(|m| m.metric == metric));
    let sets: Vec<ResultSet<'_>> = sets.filter(|s| !s.ms.is_empty()).collect();
    let latency = metric == Metric::Latency;
    let curves: Vec<(&ResultSet<'_>, Sweep<'_>)> =
        sets.iter().flat_map(|set| set.sweeps(metric).into_iter().map(move |s| (set, s))).collect();
    let Some((_, first)) = curves.first() else { return Vec::new() };
    let differs = |part: fn(&Coordinates) -> String| curves.iter().any(|(_, s)| part(&s.at) != part(&first.at));
    let (differing, shared): (Vec<_>, Vec<_>) = PARTS.into_iter().partition(|part| differs(*part));
    let mut caption = Caption::new("", "");
    notes(&mut caption, &sets, true);
    let caches = shared_caches(&curves).unwrap_or_else(|| {
        caption.notes.push("The caches of these CPUs differ, so their sizes are not drawn.".to_owned());
        Vec::new()
    });
    let shared: Vec<String> = shared.into_iter().map(|part| part(&first.at)).filter(|t| !t.is_empty()).collect();
    let each = curves.iter().any(|(_, s)| s.at.cpus.as_ref().is_some_and(|c| c.len() > 1));
    let each = if each { "working set of each CPU" } else { "" };
    let figure = WorkingSet {
        title: shared_title(&sets, if latency { "Latency by working set" } else { "Bandwidth by working set" }),
        about: about(&[&shared.join(", "), each, &common_pages(&sets)]),
        quantity: if latency { "Latency (ns per dependent load)" } else { "Bandwidth (GB/s)" }.into(),
        unit: if latency { "ns" } else { "GB/s" }.into(),
        logarithmic: latency,
        lines: curves.iter().map(|(set, sweep)| line(set, sweep, &differing)).collect(),
        caches: caches.into_iter().map(|c| (c.name, c.size)).collect(),
        beyond: "Memory".into(),
        notes: caption.notes,
    };
    figure.charts()
}

/// The caches behind all lines; `None` where they differ, because bands would be wrong for all lines but one.
fn shared_caches(curves: &[(&ResultSet<'_>, Sweep<'_>)]) -> Option<Vec<CacheSize>> {
    let mut caches = curves.iter().map(|(set, sweep)| levels::caches(&set.report.machine.topology, &sweep.at));
    let first = caches.next()?;
    caches.all(|other| other == first).then_some(first)
}

/// A curve with its levels; its name has what differs between curves.
fn line(set: &ResultSet<'_>, sweep: &Sweep<'_>, differing: &[fn(&Coordinates) -> String]) -> WorkingSetLine {
    let mut name: Vec<String> = set.name.map(str::to_owned).into_iter().collect();
    name.extend(differing.iter().map(|part| part(&sweep.at)).filter(|t| !t.is_empty()));
    let points = sweep.points.iter().filter_map(|m| {
        let (size, value) = (m.at.working_set?, value_of(&m.estimate)?);
        Some(WorkingSetPoint { size, value, interval: interval(m), degraded: is_degraded(m) })
    });
    let levels = sweep.levels(set.report).map(|found| found.levels.iter().map(|l| (l.from, l.to, l.value)).collect());
    WorkingSetLine { name: name.join(", "), points: points.collect(), plateaus: levels.unwrap_or_default() }
}
