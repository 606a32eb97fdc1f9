//! Curves over the working set, from results: one figure for latencies and one for bandwidths.

use memgauge_core::conclusions::levels;
use memgauge_core::experiment::{Coordinates, Metric};
use memgauge_core::result::{CacheSize, Measurement};

use super::chart::Chart;
use super::frame::{Panel, Words};
use super::misses;
use super::source::{Set, about, common_pages, interval, is_degraded, notes, shared_title};
use super::working_set::{WorkingSet, WorkingSetLine, WorkingSetPoint};
use crate::text::cpus_name;
use crate::text::latency::order_name;
use crate::text::number::value_of;

/// The panels of all results' curves.
pub(crate) fn panels(sets: &[Set<'_>]) -> Vec<Box<dyn Panel>> {
    let (counted, captions) = misses::panels(sets);
    let mut charts: Vec<Chart> = [Metric::Latency, Metric::Bandwidth].into_iter().flat_map(|metric| of(sets, metric)).collect();
    // Below the last one: what it says is of the panels that would follow.
    if let Some(last) = charts.last_mut() {
        last.words.notes.extend(captions);
    }
    charts.into_iter().map(|c| Box::new(c) as Box<dyn Panel>).chain(counted).collect()
}

/// The curves of one metric: whose, where, and their points.
pub(super) fn curves_of<'a>(sets: &'a [Set<'a>], metric: Metric) -> Vec<(&'a Set<'a>, Coordinates, Vec<&'a Measurement>)> {
    let mut curves: Vec<(&Set<'_>, Coordinates, Vec<&Measurement>)> = Vec::new();
    for set in sets {
        for m in set.ms.iter().filter(|m| m.metric == metric) {
            let at = Coordinates { working_set: None, ..m.at.clone() };
            match curves.iter_mut().find(|c| std::ptr::eq(c.0, set) && c.1 == at) {
                Some(curve) => curve.2.push(m),
                None => curves.push((set, at, vec![m])),
            }
        }
    }
    curves
}

/// The charts of one metric.
fn of(sets: &[Set<'_>], metric: Metric) -> Vec<Chart> {
    let sets: Vec<Set<'_>> = sets
        .iter()
        .map(|s| Set { ms: s.ms.iter().copied().filter(|m| m.metric == metric).collect(), ..*s })
        .filter(|s| !s.ms.is_empty())
        .collect();
    let latency = metric == Metric::Latency;
    let curves = curves_of(&sets, metric);
    let ats: Vec<&Coordinates> = curves.iter().map(|c| &c.1).collect();
    let Some(first) = ats.first() else { return Vec::new() };
    let several = |of: fn(&Coordinates) -> String| ats.iter().any(|at| of(at) != of(first));
    let parts: [fn(&Coordinates) -> String; 4] = [
        |at| at.cpu.map(|c| format!("CPU {c}")).or_else(|| at.cpus.as_ref().map(cpus_name)).unwrap_or_default(),
        |at| at.memory_node.map(|n| format!("node {n}")).unwrap_or_default(),
        |at| at.order.map(|o| order_name(o).to_owned()).unwrap_or_default(),
        |at| at.mix.map(|m| m.to_string()).unwrap_or_default(),
    ];
    let mut words = Words::new("", "");
    notes(&mut words, &sets, true);
    let mut caches: Vec<Vec<CacheSize>> = curves.iter().map(|(set, at, _)| levels::caches(&set.report.machine.topology, at)).collect();
    caches.dedup();
    // Bands behind lines of different caches would be wrong for all but one of them.
    let caches = match caches.as_mut_slice() {
        [same] => std::mem::take(same),
        _ => {
            words.notes.push("The caches of these CPUs differ; their sizes are not drawn.".to_owned());
            Vec::new()
        }
    };
    let lines = curves
        .iter()
        .map(|(set, at, ms)| {
            let mut named: Vec<String> = set.name.map(str::to_owned).into_iter().collect();
            named.extend(parts.iter().filter(|p| several(**p)).map(|p| p(at)).filter(|t| !t.is_empty()));
            let mut points: Vec<WorkingSetPoint> = ms
                .iter()
                .filter_map(|m| {
                    let (size, value) = (m.at.working_set?, value_of(&m.estimate)?);
                    Some(WorkingSetPoint { size, value, interval: interval(m), degraded: is_degraded(m) })
                })
                .collect();
            points.sort_by_key(|p| p.size);
            let found = set.report.levels.iter().find(|l| l.at == *at && l.metric == Some(metric));
            let plateaus = found.map(|f| f.levels.iter().map(|l| (l.from, l.to, l.value)).collect()).unwrap_or_default();
            WorkingSetLine { name: named.join(", "), points, plateaus }
        })
        .collect();
    let shared: Vec<String> = parts.iter().filter(|p| !several(**p)).map(|p| p(first)).filter(|t| !t.is_empty()).collect();
    let each = ats.iter().any(|at| at.cpus.as_ref().is_some_and(|c| c.len() > 1));
    let shared = shared.join(", ");
    let pages = common_pages(&sets);
    let figure = WorkingSet {
        title: shared_title(&sets, if latency { "Latency by working set" } else { "Bandwidth by working set" }),
        about: about(&[&shared, if each { "working set of each CPU" } else { "" }, &pages]),
        quantity: if latency { "Latency (ns per dependent load)" } else { "Bandwidth (GB/s)" }.into(),
        unit: if latency { "ns" } else { "GB/s" }.into(),
        logarithmic: latency,
        lines,
        caches: caches.into_iter().map(|c| (c.name, c.size)).collect(),
        beyond: "Memory".into(),
        notes: words.notes,
    };
    figure.charts()
}
