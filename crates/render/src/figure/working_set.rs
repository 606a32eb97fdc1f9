//! Latency, bandwidth or another quantity by working set, over the machine's caches.

use memgauge_model::units::Bytes;

use super::axis::Axis;
use super::chart::{Band, Chart, PointLabel, Sample, Series};
use super::frame::{Caption, boxed};
use super::labels::{ABOVE, BELOW, LOWER_RIGHT, UPPER_LEFT};
use super::layout::Figure;
use super::palette::{INK, Style, series, text_of};
use crate::number::{bounds, number};

/// A quantity by working set, as a figure shows it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkingSet {
    /// The title.
    pub title: String,
    /// Says what was measured and how, in grey below the title.
    pub about: String,
    /// The title of the vertical axis, with the unit: `Latency (ns)`.
    pub quantity: String,
    /// The unit beside the numbers of plateaus: `ns`.
    pub unit: String,
    /// Whether the vertical axis is logarithmic, which latencies need because their levels are decades apart.
    pub logarithmic: bool,
    /// The lines.
    pub lines: Vec<WorkingSetLine>,
    /// The machine's caches by growing size: name such as `L2`, and size.
    pub caches: Vec<(String, Bytes)>,
    /// What is beyond the last cache: `DRAM`.
    pub beyond: String,
    /// What is missing or degraded.
    pub notes: Vec<String>,
}

/// One line of a [`WorkingSet`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkingSetLine {
    /// Tells it from the others; empty for a single line.
    pub name: String,
    /// The points by growing size.
    pub points: Vec<WorkingSetPoint>,
    /// Levels that were found: first and last size, and their value.
    pub plateaus: Vec<(Bytes, Bytes, f64)>,
}

/// One point of a [`WorkingSetLine`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkingSetPoint {
    /// The working set.
    pub size: Bytes,
    /// The quantity.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Something may have distorted it: shown hollow.
    pub degraded: bool,
}

/// With more lines than this, labels of plateaus would repeat each other.
const LABELLED: usize = 2;

/// Intervals stretch the axis to this many times the values and no further: one wild point must not flatten the levels.
const REACH: f64 = 1.5;

impl WorkingSet {
    /// The figure.
    pub fn figure(&self) -> Figure {
        Figure::new(&self.title, boxed(self.charts()), Vec::new())
    }

    /// A chart for every few lines, so that each has a colour of its own; all over the same axes.
    pub(super) fn charts(&self) -> Vec<Chart> {
        self.chart_over(None, None).in_parts(true)
    }

    /// The chart of all lines from one size to another, where those are given, whatever the lines span.
    pub(super) fn chart_over(&self, from: Option<Bytes>, to: Option<Bytes>) -> Chart {
        let points = || self.lines.iter().flat_map(|l| &l.points);
        let low = from.or_else(|| points().map(|p| p.size).min()).unwrap_or(Bytes::kib(4));
        let high = to.or_else(|| points().map(|p| p.size).max()).unwrap_or(Bytes::mib(1)).max(Bytes(low.0.saturating_mul(2)));
        let drawn = |v: &f64| !self.logarithmic || *v > 0.0;
        let (lowest, highest) = bounds(points().map(|p| p.value).filter(drawn)).unwrap_or((1.0, 10.0));
        let reach = (lowest / REACH, highest * REACH);
        let intervals = || points().filter_map(|p| p.interval).flat_map(|(low, high)| [low, high]).filter(drawn);
        let ends = intervals().map(|v| v.clamp(reach.0.min(lowest), reach.1.max(highest)));
        let (lowest, highest) = bounds(ends.chain([lowest, highest])).unwrap_or((lowest, highest));
        let x = Axis::bytes("Working set", low, high, 9);
        let y = if self.logarithmic {
            Axis::decades(self.quantity.clone(), lowest, highest)
        } else {
            Axis::linear(self.quantity.clone(), 0.0, highest, 7)
        };
        let caption = Caption { notes: self.notes.clone(), ..Caption::new(self.title.clone(), self.about.clone()) };
        let mut chart = Chart::new(caption, x, y);
        chart.bands = self.bands(low, high);
        for (i, line) in self.lines.iter().enumerate() {
            let sample = |p: &WorkingSetPoint| Sample {
                x: p.size.0 as f64,
                y: p.value,
                y_interval: p.interval.filter(|i| i.0.is_finite() && i.1.is_finite()),
                x_interval: None,
                degraded: p.degraded,
                apart: false,
            };
            let samples = line.points.iter().filter(|p| p.value.is_finite()).map(sample).collect();
            let name = Some(line.name.clone()).filter(|n| !n.is_empty());
            chart.series.push(Series { name, style: Style::of_points(i), samples, joined: true });
            if self.lines.len() <= LABELLED {
                let colour = if self.lines.len() == 1 { INK } else { text_of(series(i)) };
                chart.point_labels.extend(line.plateaus.iter().map(|(from, to, value)| {
                    // The middle of a level on a logarithmic axis.
                    let middle = (from.0.max(1) as f64 * to.0.max(1) as f64).sqrt();
                    let name = format!("{} {}", number(*value), self.unit);
                    PointLabel::new((middle, *value), name, colour, &[ABOVE, BELOW, UPPER_LEFT, LOWER_RIGHT])
                }));
            }
        }
        chart
    }

    fn bands(&self, low: Bytes, high: Bytes) -> Vec<Band> {
        let mut bands: Vec<Band> = Vec::new();
        let mut from = low;
        for (name, size) in &self.caches {
            let to = (*size).min(high);
            if to > from {
                let shaded = bands.len().is_multiple_of(2);
                let names = vec![format!("{name} {size}"), name.clone()];
                bands.push(Band { from: from.0 as f64, to: to.0 as f64, names, shaded });
                from = to;
            }
        }
        if from < high && !bands.is_empty() {
            let shaded = bands.len().is_multiple_of(2);
            bands.push(Band { from: from.0 as f64, to: high.0 as f64, names: vec![self.beyond.clone()], shaded });
        }
        bands
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_chart_has_a_colour_of_its_own_and_all_charts_the_same_axes() {
        let line = |i: u32| WorkingSetLine {
            name: format!("L3 of CPUs {i}"),
            points: (12..20)
                .map(|p| WorkingSetPoint { size: Bytes(1 << p), value: f64::from(i * p), interval: None, degraded: false })
                .collect(),
            plateaus: vec![],
        };
        let figure = WorkingSet { title: "Title".into(), lines: (1..=24).map(line).collect(), ..WorkingSet::default() };
        let charts = figure.charts();
        assert_eq!(charts.len(), 4);
        for (i, chart) in charts.iter().enumerate() {
            let colours: std::collections::BTreeSet<_> = chart.series.iter().map(|s| s.style.colour).collect();
            assert_eq!((colours.len(), chart.series.len()), (6, 6));
            assert_eq!((&chart.x, &chart.y), (&charts[0].x, &charts[0].y));
            assert_eq!(chart.caption.title, format!("Title ({} of 4)", i + 1));
        }
        let names: Vec<_> = charts.iter().flat_map(|c| &c.series).filter_map(|s| s.name.clone()).collect();
        assert_eq!(names, figure.lines.iter().map(|l| l.name.clone()).collect::<Vec<_>>());
    }
}
