//! Interleave weights: bandwidth and latency over the share of the pages beyond the nearest node.

use memgauge_model::interleave::{Goal, Reading, Trial, Weights};
use memgauge_model::result::{InterleaveSummary, Reference};
use memgauge_model::wording;

use crate::figure::axis::Axis;
use crate::figure::chart::{Band, Chart, PointLabel, Sample, Series};
use crate::figure::frame::{Panel, boxed};
use crate::figure::labels::{ABOVE, BELOW, LEFT, LOWER_LEFT, LOWER_RIGHT, RIGHT, UPPER_LEFT, UPPER_RIGHT};
use crate::figure::palette::{GREY, INK, Style};
use crate::figure::source::ResultSet;
use crate::groups::interleave::{by_share, ratio};
use crate::number::{bounds, number};

/// Two charts for each search.
pub(crate) fn panels(set: &ResultSet<'_>) -> Vec<Box<dyn Panel>> {
    boxed(set.report.interleaves.iter().flat_map(|summary| [chart(set, summary, false), chart(set, summary, true)]).flatten())
}

/// Bandwidth, or latency; `None` where there is none.
fn chart(set: &ResultSet<'_>, summary: &InterleaveSummary, latency: bool) -> Option<Chart> {
    let near = *summary.nodes.first()?;
    let reading = |trial: &Trial| if latency { trial.latency_ns } else { Some(trial.bandwidth_gbs) };
    let beyond = |weights: &Weights| 100.0 * (1.0 - weights.share(near));
    let sample = |trial: &Trial| {
        let Reading { value, half } = reading(trial)?;
        Some(Sample { x: beyond(&trial.weights), y: value, y_interval: Some((value - half, value + half)), ..Sample::default() })
    };
    let samples: Vec<Sample> = by_share(summary).into_iter().filter_map(sample).collect();
    let highest = bounds(samples.iter().map(|s| s.y_interval.map_or(s.y, |i| i.1)))?.1;
    let what = match (latency, summary.goal) {
        (false, _) => "Bandwidth",
        (true, Goal::Bandwidth) => "Latency at the most bandwidth",
        (true, Goal::LatencyAt(_)) => "Latency at the demand",
    };
    let others: Vec<String> = summary.nodes.iter().skip(1).map(u32::to_string).collect();
    let axis = format!("Pages on node{} {} (%)", if others.len() > 1 { "s" } else { "" }, others.join(", "));
    let mix = summary.at.mix.map(|m| format!(", {m}")).unwrap_or_default();
    let cpus = summary.at.cpus.as_ref().map(|c| format!("{} load", wording::cpus(c))).unwrap_or_default();
    let demand = if let Goal::LatencyAt(gbs) = summary.goal { format!("demand: {} GB/s", number(gbs)) } else { String::new() };
    let shares: Vec<f64> = summary.plateau.iter().map(&beyond).collect();
    let plateau = bounds(shares).filter(|(from, to)| from < to);
    // Most plateaus are too narrow for words of their own.
    let shaded = if plateau.is_some() { "shaded: within 1 % of the best" } else { "" };
    let caption = set.caption(&format!("{what} by interleave weights{mix}"), &[&cpus, &demand, shaded], false);
    let unit = if latency { "Latency (ns)" } else { "Bandwidth (GB/s)" };
    let mut chart = Chart::new(caption, Axis::linear(axis, 0.0, 100.0, 10), Axis::linear(unit, 0.0, highest, 7));
    // With more than two nodes one share has several ratios, so a line through the points would mean nothing.
    chart.series.push(Series { name: None, style: Style::of_points(usize::from(latency)), samples, joined: summary.nodes.len() == 2 });
    if let Some((from, to)) = plateau {
        chart.bands.push(Band { from, to, names: Vec::new(), shaded: true });
    }
    let directions = [ABOVE, UPPER_RIGHT, UPPER_LEFT, RIGHT, LEFT, BELOW, LOWER_RIGHT, LOWER_LEFT];
    for (weights, name) in marked(summary) {
        let Some(point) = summary.trial(weights).and_then(sample) else { continue };
        let ring = *weights == summary.recommended;
        let label = PointLabel::new((point.x, point.y), format!("{name}: {}", number(point.y)), if ring { INK } else { GREY }, &directions);
        chart.point_labels.push(PointLabel { ring, ..label });
    }
    Some(chart)
}

/// Weights that have a name.
fn marked(summary: &InterleaveSummary) -> Vec<(&Weights, String)> {
    let mut marked = vec![(&summary.recommended, format!("use {}", ratio(summary, &summary.recommended)))];
    for gain in summary.gains.iter().filter(|gain| gain.weights != summary.recommended) {
        let name = match gain.over {
            Reference::NearestOnly | Reference::Equal => ratio(summary, &gain.weights),
            Reference::Kernel => format!("kernel's {}", ratio(summary, &gain.weights)),
        };
        if marked.iter().all(|(known, _)| **known != gain.weights) {
            marked.push((&gain.weights, name));
        }
    }
    marked
}
