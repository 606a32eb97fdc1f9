//! Hosts that are slower than their siblings: every host's value at the numbers that tell them.

use memgauge_analysis::fleet::{ComparedHost, ComparedNumber, FleetOutliers};
use memgauge_model::experiment::Metric;
use memgauge_model::wording::number_of;
use memgauge_model::words::Verb;

use super::axis::Axis;
use super::chart::{Chart, Guide, PointLabel, Sample, Series, reach};
use super::frame::{Caption, boxed};
use super::labels::{ABOVE, BELOW, LEFT, LOWER_LEFT, LOWER_RIGHT, RIGHT, UPPER_LEFT, UPPER_RIGHT};
use super::layout::Figure;
use super::palette::{GREY, INK, Style};
use crate::appearance::{FigureOptions, Picture};
use crate::format::RenderError;
use crate::number::{bounds, number, unit};
use crate::text::comparison::change;
use crate::text::fleet::{day, number_words};

/// Panels of a figure, at most. The answer as text and JSON has every number.
const PANELS: usize = 12;
/// Slow hosts that are named in a panel, if there is room near them, and those that are named anyway.
const NAMED: usize = 10;
const NAMED_ALWAYS: usize = 3;
/// Siblings that are drawn in a panel: a reader could not distinguish more of them.
const SIBLINGS: usize = 1000;

/// A figure of the hosts that are slower than their siblings: a panel for each of `numbers`, with a point for each host.
///
/// # Errors
/// When there is nothing to draw, or it is too large for a bitmap.
pub(crate) fn fleet_outliers_figure(
    found: &FleetOutliers,
    numbers: &[ComparedNumber],
    picture: Picture,
    options: &FigureOptions,
) -> Result<Vec<u8>, RenderError> {
    if numbers.is_empty() {
        return Err(RenderError::NothingToDraw("no number was measured on eight comparable hosts".to_owned()));
    }
    let panels = boxed(numbers.iter().take(PANELS).map(|of| chart(found, of)));
    let left_out = (numbers.len() > PANELS).then(|| format!("{} more have slow hosts of their own", numbers.len() - PANELS));
    let parts = [
        Some(number_of(u64::from(found.hosts), "host", "hosts")),
        Some(format!("{} slower than their siblings", found.slow.len())),
        Some(format!("{} unknown", found.unknown.len())),
        Some(format!("measured from {} to {}", day(&found.measured_from), day(&found.measured_to))),
        left_out,
    ];
    let source = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    Figure::new(&Verb::FleetOutliers.to_string(), panels, vec![source]).drawn_as(options.clone()).write(picture)
}

/// The hosts that are drawn: all slow ones, and every nth of their siblings. The second value is this n.
fn drawn(hosts: &[ComparedHost]) -> (Vec<&ComparedHost>, usize) {
    let siblings = hosts.iter().filter(|host| !host.slow).count();
    let every = siblings.div_ceil(SIBLINGS).max(1);
    let mut seen = 0;
    let kept = hosts.iter().filter(|host| {
        seen += usize::from(!host.slow);
        host.slow || (seen - 1usize).is_multiple_of(every)
    });
    (kept.collect(), every)
}

fn chart(found: &FleetOutliers, of: &ComparedNumber) -> Chart {
    let (hosts, every) = drawn(&of.hosts);
    let number_of_group = &of.number;
    let sample = |(i, host): &(usize, &ComparedHost)| Sample {
        x: *i as f64,
        y: host.value,
        y_interval: host.interval,
        degraded: !host.good,
        ..Sample::default()
    };
    let all: Vec<(usize, &ComparedHost)> = hosts.iter().copied().enumerate().collect();
    let samples: Vec<Sample> = all.iter().map(sample).collect();
    let lines = [Some(number_of_group.median), Some(number_of_group.flagged_beyond), number_of_group.slower_population];
    let held = reach(samples.iter()).and_then(|(low, high)| bounds([low, high].into_iter().chain(lines.into_iter().flatten())));
    // Hosts of a kind differ by a few percent: on an axis from 0 they would look alike.
    let (low, high) = held.map_or((0.0, 1.0), |(low, high)| (low - 0.05 * (high - low), high));
    let names: Vec<String> = hosts.iter().map(|host| host.host.clone()).collect();
    let quantity = match number_of_group.metric {
        Metric::Latency => "Latency",
        Metric::Bandwidth => "Bandwidth",
    };
    let units = unit(number_of_group.unit);
    let mut chart = Chart::new(
        caption(found, of, every),
        Axis::indices("Host, by name", &names, 10),
        Axis::linear(format!("{quantity} ({units})"), low.max(0.0), high, 7),
    );
    let (slow, siblings): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, host)| host.slow);
    for (i, part) in [&siblings, &slow].into_iter().enumerate() {
        chart.series.push(Series { name: None, style: Style::of_points(i), samples: part.iter().map(sample).collect(), joined: false });
    }
    let mut worst = slow;
    worst.sort_by(|a, b| cost(of, b.1).total_cmp(&cost(of, a.1)));
    let directions = [RIGHT, LEFT, ABOVE, BELOW, UPPER_RIGHT, LOWER_RIGHT, UPPER_LEFT, LOWER_LEFT];
    let label = |(i, host): &(usize, &ComparedHost)| {
        let name = format!("{}: {} {units}, {}", host.host, number(host.value), change(host.value / number_of_group.median));
        PointLabel::new((*i as f64, host.value), name, INK, &directions)
    };
    // Lines to labels further away would cross each other.
    chart.point_labels = worst.iter().take(NAMED).enumerate().map(|(rank, of)| label(of).optional_if(rank >= NAMED_ALWAYS)).collect();
    if worst.len() > NAMED_ALWAYS {
        chart.caption.notes.push(format!("Of {} slow hosts those are named that have room; text and JSON name all.", worst.len()));
    }
    chart.guides = guides(of, units);
    chart
}

/// How much worse than the median, as a ratio.
fn cost(of: &ComparedNumber, host: &ComparedHost) -> f64 {
    match of.number.metric {
        Metric::Latency => host.value / of.number.median,
        Metric::Bandwidth => of.number.median / host.value,
    }
}

fn caption(found: &FleetOutliers, of: &ComparedNumber, every: usize) -> Caption {
    let n = &of.number;
    let alike = found.groups.get(of.group as usize).map(|group| format!(" with {}", group.level.in_words())).unwrap_or_default();
    let slow = of.hosts.iter().filter(|host| host.slow).count();
    let colours = if slow > 0 { "; in orange those that are slower than their siblings" } else { "; none is slower than its siblings" };
    let about =
        format!("{}, the latest value of each of {}{alike}{colours}", unit(n.unit), number_of(of.hosts.len() as u64, "host", "hosts"),);
    let mut caption = Caption::new(sentence(&number_words(n.experiment, n.metric, &n.at)), about);
    if every > 1 {
        caption.notes.push(format!("One of {every} siblings is drawn, and every slow host."));
    }
    let degraded = of.hosts.iter().filter(|host| !host.good).count();
    if degraded > 0 {
        caption.notes.push(format!("Degraded, shown hollow, {degraded} of {}: nobody is judged by these.", of.hosts.len()));
    }
    caption
}

/// With a capital.
fn sentence(words: &str) -> String {
    let mut characters = words.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn guides(of: &ComparedNumber, units: &str) -> Vec<Guide> {
    let n = &of.number;
    let beyond = if n.metric == Metric::Latency { "above" } else { "below" };
    let line = |at: f64, what: &str| Guide::level(at, format!("{what} {} {units}", number(at)), GREY);
    let slower = n.slower_population.map(|median| line(median, "median of the slower population"));
    let median = line(n.median, if slower.is_some() { "median of the faster population" } else { "median" });
    [Some(line(n.flagged_beyond, &format!("flagged {beyond}"))), slower, Some(median)].into_iter().flatten().collect()
}
