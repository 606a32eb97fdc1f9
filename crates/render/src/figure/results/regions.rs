//! A scan of memory: bandwidth of each region, the weak ones named.

use memgauge_analysis::conclusions::scan;
use memgauge_model::result::{LimitSource, Measurement};
use memgauge_model::stats;
use memgauge_model::wording;

use crate::figure::axis::Axis;
use crate::figure::chart::{Chart, Guide, PointLabel, Sample, Series, reach};
use crate::figure::frame::{Panel, boxed};
use crate::figure::labels::{ABOVE, BELOW, LEFT, LOWER_LEFT, LOWER_RIGHT, RIGHT, UPPER_LEFT, UPPER_RIGHT};
use crate::figure::palette::{GREY, INK, Style};
use crate::figure::source::{ResultSet, sample};
use crate::number::{bounds, count, human, number, value_of};
use crate::pivot::layers;

/// Weak regions that are named. The JSON result has all.
const NAMED: usize = 8;

/// A panel for each node.
pub(crate) fn panels(set: &ResultSet<'_>) -> Vec<Box<dyn Panel>> {
    boxed(layers(&set.ms, |m| m.at.memory_node()).into_iter().map(|(node, ms)| chart(ResultSet { ms, ..*set }, node)))
}

fn chart(mut set: ResultSet<'_>, node: Option<u32>) -> Chart {
    set.ms.sort_by_key(|m| m.at.region);
    let values: Vec<f64> = set.ms.iter().filter_map(|m| value_of(&m.estimate)).collect();
    let median = stats::median(&values).filter(|m| m.is_finite());
    let samples: Vec<Sample> = set.ms.iter().enumerate().filter_map(|(i, m)| sample(i as f64, m)).collect();
    // A region is weak below this.
    let weak_below = set.ms.iter().filter(|m| m.verdict.limit_source == Some(LimitSource::RegionsOfNode)).find_map(|m| m.verdict.limit);
    let held = reach(samples.iter()).and_then(|(low, high)| bounds([low, high].into_iter().chain(weak_below)));
    // Regions differ by a few percent: on an axis from 0 they would look alike.
    let (low, high) = held.map_or((0.0, 1.0), |(low, high)| (low - 0.05 * (high - low), high));
    let title = node.map_or_else(|| "Bandwidth by region of memory".to_owned(), |n| format!("Bandwidth by region of node {n}"));
    let size = set
        .ms
        .first()
        .filter(|m| m.evidence.buffer.0 > 0)
        .map(|m| format!("{} of {}", count(set.ms.len(), "region", "regions"), human(m.evidence.buffer)));
    let readers = set.ms.first().and_then(|m| m.at.cpus.as_ref()).map(|c| format!("read by {} together", wording::cpus(c)));
    let parts = [size.unwrap_or_default(), readers.unwrap_or_default()];
    let caption = set.caption(&title, &parts.each_ref().map(String::as_str), true);
    let names: Vec<String> = set.ms.iter().map(|m| m.at.region.map_or_else(|| "?".to_owned(), |r| r.to_string())).collect();
    let x = Axis::indices("Region", &names, 10);
    let mut chart = Chart::new(caption, x, Axis::linear("Bandwidth (GB/s)", low.max(0.0), high, 7));
    let sample = |(i, m): &(usize, &Measurement)| sample(*i as f64, m);
    type Part<'a> = Vec<(usize, &'a Measurement)>;
    let (weak, sound): (Part<'_>, Part<'_>) = set.ms.iter().copied().enumerate().partition(|(_, m)| scan::found_weak(m));
    for (i, part) in [&sound, &weak].into_iter().enumerate() {
        chart.series.push(Series {
            name: None,
            style: Style::of_points(i),
            samples: part.iter().filter_map(sample).collect(),
            joined: false,
        });
    }
    let address = |m: &Measurement| m.evidence.physical.as_ref().and_then(scan::addresses).map(|a| format!(", {a}")).unwrap_or_default();
    chart.point_labels = weak
        .iter()
        .take(NAMED)
        .filter_map(|(i, m)| {
            let Sample { x, y, .. } = sample(&(*i, m))?;
            let name = format!("region {}: {} GB/s{}", names[*i], number(y), address(m));
            let directions = [RIGHT, LEFT, ABOVE, BELOW, UPPER_RIGHT, LOWER_RIGHT, UPPER_LEFT, LOWER_LEFT];
            Some(PointLabel::new((x, y), name, INK, &directions))
        })
        .collect();
    if weak.len() > NAMED {
        let more = count(weak.len() - NAMED, "more weak region is", "more weak regions are");
        chart.caption.notes.push(format!("{more} marked without a name; the JSON result has their addresses."));
    }
    chart.guides.extend(weak_below.map(|at| Guide::level(at, format!("weak below {} GB/s", number(at)), GREY)));
    chart.guides.extend(median.map(|at| Guide::level(at, format!("median {} GB/s", number(at)), GREY)));
    chart
}
