//! How often each value was seen, with percentiles.

use super::axis::Axis;
use super::chart::{Chart, Guide, Sample, Series};
use super::frame::{Caption, boxed};
use super::layout::Figure;
use super::palette::{GREY, Style};
use crate::number::{bounds, number};

/// A distribution, as a figure shows it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Histogram {
    /// The title.
    pub title: String,
    /// Says what was measured and how, in grey below the title.
    pub about: String,
    /// The title of the horizontal axis, with the unit: `Latency (ns)`.
    pub quantity: String,
    /// The unit beside the numbers: `ns`.
    pub unit: String,
    /// Lower end, upper end and count of each bin, ascending; bins may be of different widths.
    pub bins: Vec<(f64, f64, u64)>,
    /// Name and value: `p99`, 212.0.
    pub percentiles: Vec<(String, f64)>,
    /// What is missing or degraded.
    pub notes: Vec<String>,
}

/// The horizontal axis is logarithmic if the largest value is more than this many times the smallest.
const WIDE: f64 = 20.0;

impl Histogram {
    /// The figure.
    pub fn figure(&self) -> Figure {
        Figure::new(&self.title, boxed([self.chart()]), Vec::new())
    }

    pub(super) fn chart(&self) -> Chart {
        let sane = |b: &&(f64, f64, u64)| b.0.is_finite() && b.1.is_finite() && b.0 <= b.1;
        let bins: Vec<_> = self.bins.iter().filter(sane).filter(|b| b.2 > 0).collect();
        let total: u64 = bins.iter().map(|b| b.2).sum();
        let (low, high) = bounds(bins.iter().flat_map(|b| [b.0, b.1])).unwrap_or((0.0, 1.0));
        let share = |count: u64| if total > 0 { count as f64 / total as f64 * 100.0 } else { 0.0 };
        let highest = bins.iter().map(|b| share(b.2)).fold(0.0, f64::max);
        let lowest = bins.iter().map(|b| b.0).filter(|v| *v > 0.0).fold(high, f64::min);
        let x = if lowest > 0.0 && high / lowest > WIDE {
            Axis::decades(self.quantity.clone(), lowest, high)
        } else {
            Axis::linear(self.quantity.clone(), low, high, 9)
        };
        let caption = Caption { notes: self.notes.clone(), ..Caption::new(self.title.clone(), self.about.clone()) };
        let mut chart = Chart::new(caption, x, Axis::linear("Share of samples (%)", 0.0, highest, 6));
        // Each bin is a box of two corners over the axis, so that bins of any widths can stand side by side.
        for bin in bins {
            let corner = |x: f64| Sample { x, y: share(bin.2), ..Sample::default() };
            let samples = vec![corner(bin.0), corner(bin.1)];
            chart.series.push(Series { name: None, style: Style::of_bars(0), samples, joined: false });
        }
        chart.columns = true;
        // Percentiles that are the same number share a line.
        let mut shown: Vec<(f64, Vec<&str>)> = Vec::new();
        for (name, at) in self.percentiles.iter().filter(|p| p.1.is_finite()) {
            match shown.iter_mut().find(|(other, _)| number(*other) == number(*at)) {
                Some((_, names)) => names.push(name),
                None => shown.push((*at, vec![name])),
            }
        }
        let guide = |(at, names): (f64, Vec<&str>)| Guide::vertical(at, format!("{} {} {}", names.join(", "), number(at), self.unit), GREY);
        chart.guides = shown.into_iter().map(guide).collect();
        chart
    }
}
