//! A chart of lines and points over two axes, labelled directly.

use super::axis::{Axis, Scale, Tick};
use super::font::{self, CAPITALS, DESCENT, Weight};
use super::frame::{Caption, LABEL, Panel, Space, WIDTH, part_of, shorten};
use super::guides;
use super::labels::{ABOVE, BELOW, Direction, LEFT, LOWER_LEFT, LOWER_RIGHT, Placer, RIGHT, UPPER_LEFT, UPPER_RIGHT};
use super::palette::{BAND, Colour, GREY, GRID, INK, MAX_SERIES, Style, WHITE, text_of};
use super::scene::{Anchor, Area, Point, Scene, Stroke, Text};
use crate::number::bounds;

/// Height of the plot over the width of the panel, and its bounds.
const ASPECT: f64 = 340.0 / WIDTH;
const HEIGHTS: (f64, f64) = (190.0, 420.0);
/// Room above the highest value, for labels.
const HEADROOM: f64 = 26.0;
/// Space between labels of the horizontal axis, at least.
const APART: f64 = 8.0;
/// Radius of points.
const RADIUS: f64 = 3.2;
/// Radius of rings around them.
const RING: f64 = 6.5;
/// Lines of more points than this are drawn without them.
const MARKED: usize = 160;
/// Height of a label's box.
const TALL: f64 = LABEL * (CAPITALS + DESCENT);

/// A point with its intervals.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Sample {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) x_interval: Option<(f64, f64)>,
    pub(crate) y_interval: Option<(f64, f64)>,
    /// Shown hollow.
    pub(crate) degraded: bool,
    /// Disturbed, so that no line is drawn to it.
    pub(crate) apart: bool,
}

/// Intervals stretch an axis by this share of what the values span, or of a quarter of the highest one, and no further: one wild interval
/// must not flatten everything else.
const REACH: f64 = 0.5;

/// The range that a vertical axis should hold: all values, and their intervals within reason.
pub(crate) fn reach<'a>(samples: impl Iterator<Item = &'a Sample> + Clone) -> Option<(f64, f64)> {
    let (lowest, highest) = bounds(samples.clone().map(|s| s.y))?;
    let room = REACH * (highest - lowest).max(0.25 * highest.abs());
    let ends = samples.filter_map(|s| s.y_interval).flat_map(|(low, high)| [low, high]);
    bounds(ends.map(|v| v.clamp(lowest - room, highest + room)).chain([lowest, highest]))
}

/// Points of one colour and shape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: Option<String>,
    pub(crate) style: Style,
    pub(crate) samples: Vec<Sample>,
    /// Joined by a line.
    pub(crate) joined: bool,
}

/// A part of the horizontal axis with a name, such as a cache. Every other one is shaded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Band {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Longest first; what does not fit above the band is left out.
    pub(crate) names: Vec<String>,
    pub(crate) shaded: bool,
}

/// A dashed line across the plot, such as a limit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Guide {
    pub(crate) at: f64,
    pub(crate) vertical: bool,
    pub(crate) name: String,
    pub(crate) colour: Colour,
}

/// A label at a point.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PointLabel {
    pub(crate) at: (f64, f64),
    pub(crate) name: String,
    pub(crate) colour: Colour,
    /// A ring around the point.
    pub(crate) ring: bool,
    /// May be left out if it does not fit.
    pub(crate) optional: bool,
    pub(crate) directions: Vec<Direction>,
}

impl Guide {
    pub(crate) const fn vertical(at: f64, name: String, colour: Colour) -> Self {
        Self { at, vertical: true, name, colour }
    }
    pub(crate) const fn level(at: f64, name: String, colour: Colour) -> Self {
        Self { at, vertical: false, name, colour }
    }
}

impl PointLabel {
    pub(crate) fn new(at: (f64, f64), name: String, colour: Colour, directions: &[Direction]) -> Self {
        Self { at, name, colour, ring: false, optional: false, directions: directions.to_vec() }
    }
    pub(crate) fn optional_if(self, optional: bool) -> Self {
        Self { optional, ..self }
    }
}

/// The chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chart {
    pub(crate) caption: Caption,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) bands: Vec<Band>,
    pub(crate) guides: Vec<Guide>,
    pub(crate) point_labels: Vec<PointLabel>,
    /// Each series is a box over the axis, between its first and last sample.
    pub(crate) columns: bool,
}

/// A label and where it goes; with a thin line to its point when it is not beside it.
struct Placed {
    text: Text,
    leader: Option<(Point, Point)>,
}

/// Where things are in a chart.
struct Plot {
    /// Left edge of the panel.
    left: f64,
    /// Of the data, with the room above them.
    area: Area,
    headroom: f64,
    /// Places of the names of vertical guides, in their order.
    header: Vec<guides::Place>,
}

/// The widest label.
fn widest<'a>(ticks: impl Iterator<Item = &'a Tick>) -> f64 {
    ticks.filter_map(|t| t.label.as_deref()).map(|l| font::width(l, LABEL, Weight::Regular)).fold(0.0, f64::max)
}

impl Chart {
    pub(crate) fn new(caption: Caption, x: Axis, y: Axis) -> Self {
        Self { caption, x, y, series: Vec::new(), bands: Vec::new(), guides: Vec::new(), point_labels: Vec::new(), columns: false }
    }

    /// Charts of about as many series, at most as there are colours, all over the same axes, so that they compare. Without any series there
    /// is one chart still, which says why. `labelled`: several charts have the labels of all points.
    pub(crate) fn in_parts(self, labelled: bool) -> Vec<Self> {
        let parts = self.series.len().div_ceil(MAX_SERIES).max(1);
        let each = self.series.len().div_ceil(parts).max(1);
        let part = |i: usize| {
            let series = self.series.iter().skip(i * each).take(each).cloned().collect();
            let point_labels = if parts > 1 && !labelled { Vec::new() } else { self.point_labels.clone() };
            let mut part = Self { series, point_labels, ..self.clone() };
            part.caption.title.push_str(&part_of(i, parts));
            part
        };
        (0..parts).map(part).collect()
    }

    /// Width of the labels and the title left of the plot.
    fn labels_width(&self) -> f64 {
        26.0 + widest(self.y.ticks.iter()) + 8.0
    }

    fn has_values(&self) -> bool {
        self.series.iter().any(|s| !s.samples.is_empty())
    }

    /// The plot within a panel whose caption ends at `top`.
    fn plot(&self, at: Point, top: f64, space: Space) -> Plot {
        let left = self.labels_width().max(space.gutter);
        let right = (widest(self.x.ticks.iter().rev().filter(|t| t.label.is_some()).take(1)) / 2.0 + 2.0).max(12.0);
        let bands = if self.bands.is_empty() { 0.0 } else { 22.0 };
        let high = (space.width * ASPECT).clamp(HEIGHTS.0, HEIGHTS.1);
        let mut area = Area::new(at.0 + left, top + bands, space.width - left - right, high);
        let line =
            |g: &Guide| guides::Line { x: area.x + self.x.share(g.at) * area.width, width: font::width(&g.name, LABEL, Weight::Regular) };
        let lines: Vec<guides::Line> = self.guides.iter().filter(|g| g.vertical).map(line).collect();
        let header = guides::arrange(&lines, area.x + 3.0, area.right()).unwrap_or_default();
        let more = header.iter().map(|p| p.row).max().unwrap_or(0) as f64 * guides::ROW;
        area.height += more;
        Plot { left: at.0, area, headroom: HEADROOM + more, header }
    }

    fn place(&self, plot: &Plot, x: f64, y: f64) -> Point {
        (plot.area.x + self.x.share(x) * plot.area.width, self.height(plot, y))
    }

    fn height(&self, plot: &Plot, y: f64) -> f64 {
        plot.area.bottom() - self.y.share(y) * (plot.area.height - plot.headroom)
    }

    /// The caption, with a key if the names of series do not fit beside their lines.
    fn complete(&self, plot: &Plot) -> (Caption, Vec<Placed>) {
        let mut caption = self.caption.clone();
        caption.notes.extend(self.own_notes());
        let (placed, all_named) = self.labels(plot, true);
        if all_named {
            return (caption, placed);
        }
        caption.key = self.series.iter().filter_map(|s| Some((s.style, s.name.clone()?))).collect();
        (caption, self.labels(plot, false).0)
    }

    /// Notes that a reader needs to read the axes correctly.
    fn own_notes(&self) -> Vec<String> {
        if !self.has_values() {
            return vec!["No values to draw.".to_owned()];
        }
        let mut notes = Vec::new();
        if self.y.scale == Scale::Linear && self.y.low > 0.0 {
            let first = self.y.ticks.first().and_then(|t| t.label.clone()).unwrap_or_default();
            notes.push(format!("The vertical axis begins at {first}, not at 0."));
        }
        let beyond = |axis: &Axis, interval: Option<(f64, f64)>| interval.is_some_and(|(low, high)| low < axis.low || high > axis.high);
        let clipped = |s: &Sample| beyond(&self.y, s.y_interval) || beyond(&self.x, s.x_interval);
        if !self.columns && self.series.iter().flat_map(|s| &s.samples).any(clipped) {
            notes.push("Intervals with an arrow reach beyond the axis.".to_owned());
        }
        notes
    }

    /// Places of all labels, and whether every series got its name.
    fn labels(&self, plot: &Plot, name_series: bool) -> (Vec<Placed>, bool) {
        let mut placer = self.reserve_data(plot);
        let mut placed = self.name_guides(plot, &mut placer);
        for optional in [false, true] {
            if optional && name_series && !self.name_series(plot, &mut placer, &mut placed) {
                return (placed, false);
            }
            let marks = self.point_labels.iter().filter(|m| m.optional == optional);
            placed.extend(marks.filter_map(|mark| self.place_label(plot, &mut placer, mark)));
        }
        (placed, true)
    }

    /// A placer that keeps labels off the data.
    fn reserve_data(&self, plot: &Plot) -> Placer {
        let mut placer = Placer::new(Area::new(plot.area.x + 3.0, plot.area.y, plot.area.width - 5.0, plot.area.height - 3.0));
        for tick in self.y.ticks.iter().filter(|t| t.label.is_some()) {
            placer.grid(self.height(plot, tick.value));
        }
        for series in &self.series {
            let points: Vec<Point> = series.samples.iter().map(|s| self.place(plot, s.x, s.y)).collect();
            if series.joined {
                let joined: Vec<Point> = points.iter().zip(&series.samples).filter(|(_, s)| !s.apart).map(|(p, _)| *p).collect();
                placer.reserve_line(&joined);
            }
            if self.columns {
                if let (Some(a), Some(b)) = (points.first(), points.last()) {
                    placer.reserve(Area::new(a.0, a.1, b.0 - a.0, plot.area.bottom() - a.1));
                }
                continue;
            }
            for (p, s) in points.iter().zip(&series.samples) {
                placer.reserve(Area::around(*p, RADIUS));
                if let Some((low, high)) = s.y_interval {
                    placer.reserve_line(&[self.place(plot, s.x, low), self.place(plot, s.x, high)]);
                }
                if let Some((low, high)) = s.x_interval {
                    placer.reserve_line(&[self.place(plot, low, s.y), self.place(plot, high, s.y)]);
                }
            }
        }
        for mark in self.point_labels.iter().filter(|m| m.ring) {
            placer.reserve(Area::around(self.place(plot, mark.at.0, mark.at.1), RING));
        }
        placer
    }

    /// Places the names of the guides: of vertical ones in the rows above the data, of level ones at their right end, or further along when
    /// that is taken.
    fn name_guides(&self, plot: &Plot, placer: &mut Placer) -> Vec<Placed> {
        let mut placed = Vec::new();
        for (guide, from, to) in self.guide_lines(plot) {
            placer.reserve_line(&[from, to]);
            if let (true, Some(left)) = (guide.vertical, self.header_place(plot, guide).map(|p| p.left)) {
                let area = Area::new(left, from.1, font::width(&guide.name, LABEL, Weight::Regular), TALL);
                placer.reserve(area);
                placed.push(Placed { text: label(&guide.name, &area, guide.colour), leader: None });
            }
        }
        for (guide, from, to) in self.guide_lines(plot).filter(|g| !g.0.vertical) {
            let size = (font::width(&guide.name, LABEL, Weight::Regular), TALL);
            let along = |i: u32| (to.0 - size.0 / 2.0 - 4.0 - f64::from(i) / 12.0 * (plot.area.width - size.0), from.1);
            if let Some(area) = (0..12).map(along).find_map(|p| placer.near(p, size, &[ABOVE, BELOW])) {
                placed.push(Placed { text: label(&guide.name, &area, guide.colour), leader: None });
            }
        }
        placed
    }

    /// Where the name of a vertical guide is.
    fn header_place(&self, plot: &Plot, guide: &Guide) -> Option<guides::Place> {
        let index = self.guides.iter().filter(|g| g.vertical).position(|g| g == guide)?;
        plot.header.get(index).copied()
    }

    /// The guides and their ends.
    fn guide_lines<'a>(&'a self, plot: &'a Plot) -> impl Iterator<Item = (&'a Guide, Point, Point)> + 'a {
        let ends = |guide: &'a Guide| {
            if guide.vertical {
                let x = self.place(plot, guide.at, 0.0).0;
                let row = self.header_place(plot, guide).map_or(0, |p| p.row);
                (guide, (x, plot.area.y + row as f64 * guides::ROW), (x, plot.area.bottom()))
            } else {
                let y = self.height(plot, guide.at);
                (guide, (plot.area.x, y), (plot.area.right(), y))
            }
        };
        self.guides.iter().map(ends)
    }

    /// Places a label at its point, or elsewhere with a line to it. An optional one is left out if it does not fit near the point.
    fn place_label(&self, plot: &Plot, placer: &mut Placer, mark: &PointLabel) -> Option<Placed> {
        let point = self.place(plot, mark.at.0, mark.at.1);
        let size = (font::width(&mark.name, LABEL, Weight::Regular), TALL);
        let beside = match (mark.optional, mark.ring) {
            (false, _) => placer.near(point, size, &mark.directions),
            (true, false) => placer.close(point, size, &mark.directions),
            (true, true) => placer.close_to_ring(point, size, &mark.directions),
        };
        let far = if beside.is_none() && !mark.optional { placer.anywhere(point, size) } else { None };
        let leader = far.map(|a| (point, (point.0.clamp(a.x, a.right()), point.1.clamp(a.y - 1.0, a.bottom() + 1.0))));
        let shorter = || mark.name.rsplit_once(", ").or_else(|| mark.name.split_once(": ")).map(|(first, _)| first.to_owned());
        match beside.or(far) {
            Some(area) => Some(Placed { text: label(&mark.name, &area, mark.colour), leader }),
            // In a narrow figure a part of the label says what is there.
            None if !mark.optional => self.place_label(plot, placer, &PointLabel { name: shorter()?, ..mark.clone() }),
            None => None,
        }
    }

    /// Names each series beside its line; `false` when one finds no room.
    fn name_series(&self, plot: &Plot, placer: &mut Placer, placed: &mut Vec<Placed>) -> bool {
        let directions = [RIGHT, UPPER_LEFT, ABOVE, UPPER_RIGHT, LOWER_RIGHT, LEFT, BELOW, LOWER_LEFT];
        for series in &self.series {
            let Some(name) = &series.name else { continue };
            let name = shorten(name, plot.area.width / 3.0, LABEL);
            let size = (font::width(&name, LABEL, Weight::SemiBold), TALL);
            let mut points = series.samples.iter().rev().map(|s| self.place(plot, s.x, s.y));
            let Some(area) = points.find_map(|p| placer.close(p, size, &directions)) else {
                // Where nothing was drawn there is nothing to name; the others still have names.
                if series.samples.is_empty() {
                    continue;
                }
                return false;
            };
            placed.push(Placed { text: label(&name, &area, text_of(series.style.colour)).bold(), leader: None });
        }
        true
    }

    /// Every how many labels of the horizontal axis have room.
    fn label_stride(&self, plot: &Plot) -> usize {
        let labelled: Vec<(f64, f64)> = self
            .x
            .ticks
            .iter()
            .filter_map(|t| Some((self.x.share(t.value) * plot.area.width, font::width(t.label.as_ref()?, LABEL, Weight::Regular))))
            .collect();
        let fits = |stride: &usize| {
            let kept: Vec<&(f64, f64)> = labelled.iter().step_by(*stride).collect();
            kept.windows(2).all(|pair| pair[1].0 - pair[0].0 >= f64::midpoint(pair[0].1, pair[1].1) + APART)
        };
        [1, 2, 3, 4, 5, 8, 10, 16, 20].into_iter().find(fits).unwrap_or(32)
    }

    fn draw_axes(&self, scene: &mut Scene, plot: &Plot) {
        for band in self.bands.iter().filter(|b| b.shaded) {
            let (from, to) = (self.place(plot, band.from, 0.0).0, self.place(plot, band.to, 0.0).0);
            scene.rect(Area::new(from, plot.area.y, to - from, plot.area.height), BAND);
        }
        for band in &self.bands {
            let (from, to) = (self.place(plot, band.from, 0.0).0, self.place(plot, band.to, 0.0).0);
            let fits = |n: &&String| font::width(n, LABEL, Weight::Regular) + 8.0 <= to - from;
            if let Some(name) = band.names.iter().find(fits) {
                scene.text(Text::new(name, ((from + to) / 2.0, plot.area.y - 8.0), LABEL, GREY).anchored(Anchor::Middle));
            }
        }
        for tick in &self.y.ticks {
            let y = self.height(plot, tick.value);
            match &tick.label {
                Some(label) => {
                    scene.line((plot.area.x, y), (plot.area.right(), y), Stroke::new(GRID, 1.0));
                    let at = (plot.area.x - 8.0, y + LABEL * CAPITALS / 2.0);
                    scene.text(Text::new(label, at, LABEL, INK).anchored(Anchor::End));
                }
                None => scene.line((plot.area.x - 3.0, y), (plot.area.x, y), Stroke::new(GREY, 0.75)),
            }
        }
        scene.line((plot.area.x, plot.area.bottom()), (plot.area.right(), plot.area.bottom()), Stroke::new(INK, 1.0));
        let stride = self.label_stride(plot);
        let mut labelled = 0;
        for tick in &self.x.ticks {
            let label = tick.label.as_ref().filter(|_| {
                labelled += 1;
                (labelled - 1usize).is_multiple_of(stride)
            });
            let x = self.place(plot, tick.value, 0.0).0;
            let long = if label.is_some() { 5.0 } else { 3.0 };
            scene.line((x, plot.area.bottom()), (x, plot.area.bottom() + long), Stroke::new(if long > 4.0 { INK } else { GREY }, 1.0));
            if let Some(label) = label {
                scene.text(Text::new(label, (x, plot.area.bottom() + 19.0), LABEL, INK).anchored(Anchor::Middle));
            }
        }
        let middle = (plot.area.x + plot.area.width / 2.0, plot.area.bottom() + 40.0);
        scene.text(Text::new(&self.x.title, middle, LABEL, INK).anchored(Anchor::Middle));
        let upright = (plot.left + 11.0, plot.area.y + plot.area.height / 2.0);
        scene.text(Text::new(&self.y.title, upright, LABEL, INK).anchored(Anchor::Middle).upwards());
    }

    fn draw_series(&self, scene: &mut Scene, plot: &Plot, series: &Series) {
        let points: Vec<Point> = series.samples.iter().map(|s| self.place(plot, s.x, s.y)).collect();
        if self.columns {
            if let (Some(a), Some(b)) = (points.first(), points.last()) {
                scene.rect(Area::new(a.0, a.1, (b.0 - a.0).max(0.5), plot.area.bottom() - a.1), series.style.colour);
            }
            return;
        }
        // Among many points, bars at the ends would hide the points.
        let many = points.len() > MARKED;
        let whisker = Stroke::new(series.style.colour, if many { 0.5 } else { 1.0 });
        for (s, p) in series.samples.iter().zip(&points) {
            if let Some(interval) = s.y_interval {
                let [low, high] = ends(&self.y, interval).map(|(v, clipped)| (self.height(plot, v), clipped));
                draw_whisker(scene, (low, high), (whisker, !many), |along, across| (p.0 + across, along));
            }
            if let Some(interval) = s.x_interval {
                let [low, high] = ends(&self.x, interval).map(|(v, clipped)| (self.place(plot, v, s.y).0, clipped));
                draw_whisker(scene, (low, high), (whisker, !many), |along, across| (along, p.1 + across));
            }
        }
        if series.joined {
            let joined = points.iter().zip(&series.samples).filter(|(_, s)| !s.apart).map(|(p, _)| *p);
            scene.path(joined.collect(), Stroke::new(series.style.colour, 2.0));
        }
        if points.len() <= MARKED || !series.joined {
            let small = if points.len() > MARKED { 0.6 } else { 1.0 };
            let marker = series.style.marker.unwrap_or_default();
            for (s, p) in series.samples.iter().zip(points) {
                scene.hint(Area::around(p, RING), self.hint(series, s));
                if s.degraded {
                    scene.mark(marker, p, RADIUS * small, WHITE, Some(Stroke::new(series.style.colour, 1.5)));
                } else {
                    scene.mark(marker, p, (RADIUS + 0.4) * small, series.style.colour, Some(Stroke::new(WHITE, 1.0)));
                }
            }
        }
    }
}

impl Chart {
    /// A point in words: whose it is, and its two values.
    fn hint(&self, series: &Series, s: &Sample) -> String {
        let interval = |axis: &Axis, ends: Option<(f64, f64)>| {
            ends.map_or_else(String::new, |(low, high)| format!(" ({} to {})", axis.name(low), axis.name(high)))
        };
        let value = |axis: &Axis, value: f64, ends| format!("{}: {}{}", axis.title, axis.name(value), interval(axis, ends));
        let mut lines: Vec<String> = series.name.iter().cloned().collect();
        lines.push(value(&self.y, s.y, s.y_interval));
        lines.push(value(&self.x, s.x, s.x_interval));
        lines.extend(s.degraded.then(|| "degraded".to_owned()));
        lines.join("\n")
    }

    /// Bitmaps would show a fine line where two columns touch.
    fn close_seams(&self, scene: &mut Scene, plot: &Plot) {
        for (a, b) in self.series.iter().zip(self.series.iter().skip(1)) {
            if let (Some(left), Some(right)) = (a.samples.last(), b.samples.first())
                && left.x == right.x
                && a.style == b.style
            {
                let (x, top) = self.place(plot, left.x, left.y.min(right.y));
                scene.rect(Area::new(x - 0.25, top, 0.5, plot.area.bottom() - top), a.style.colour);
            }
        }
    }
}

/// A text whose box is this area.
fn label(name: &str, area: &Area, colour: Colour) -> Text {
    Text::new(name, (area.x, area.y + LABEL * CAPITALS), LABEL, colour).rimmed()
}

/// The ends of an interval on an axis, and whether each was cut there.
fn ends(axis: &Axis, (low, high): (f64, f64)) -> [(f64, bool); 2] {
    [(low.max(axis.low), low < axis.low), (high.min(axis.high), high > axis.high)]
}

/// Draws an interval: bars across at its ends if `barred`, an arrow where it was cut. One that the point itself would hide is left out.
fn draw_whisker(
    scene: &mut Scene,
    (low, high): ((f64, bool), (f64, bool)),
    (stroke, barred): (Stroke, bool),
    at: impl Fn(f64, f64) -> Point,
) {
    if (high.0 - low.0).abs() <= 2.0 * RADIUS {
        return;
    }
    scene.line(at(low.0, 0.0), at(high.0, 0.0), stroke);
    for ((end, clipped), other) in [(low, high.0), (high, low.0)] {
        if clipped {
            let back = end + (other - end).signum() * 5.0;
            scene.path(vec![at(back, -3.5), at(end, 0.0), at(back, 3.5)], stroke);
        } else if barred {
            scene.line(at(end, -3.0), at(end, 3.0), stroke);
        }
    }
}

impl Panel for Chart {
    fn gutter(&self) -> f64 {
        if self.has_values() { self.labels_width() } else { 0.0 }
    }

    fn caption(&mut self) -> &mut Caption {
        &mut self.caption
    }

    fn size(&self, space: Space) -> (f64, f64) {
        let plot = self.plot((0.0, 0.0), 0.0, space);
        let (caption, _) = self.complete(&plot);
        let drawn = if self.has_values() { plot.area.bottom() + 46.0 } else { 0.0 };
        (space.width, caption.above(space.width) + drawn + caption.below(space.width))
    }

    fn draw(&self, scene: &mut Scene, at: Point, space: Space) {
        let (caption, _) = self.complete(&self.plot(at, at.1, space));
        let top = at.1 + caption.above(space.width);
        caption.draw_above(scene, at, space.width);
        if !self.has_values() {
            // Axes would be invented.
            caption.draw_below(scene, (at.0, top), space.width);
            return;
        }
        let plot = self.plot(at, top, space);
        let (_, placed) = self.complete(&plot);
        self.draw_axes(scene, &plot);
        for (guide, from, to) in self.guide_lines(&plot) {
            scene.line(from, to, Stroke::new(guide.colour, 1.0).dashed());
        }
        for series in &self.series {
            self.draw_series(scene, &plot, series);
        }
        if self.columns {
            self.close_seams(scene, &plot);
        }
        for mark in self.point_labels.iter().filter(|m| m.ring) {
            let p = self.place(&plot, mark.at.0, mark.at.1);
            for colour in [WHITE, mark.colour] {
                scene.ring(p, RING, Stroke::new(colour, if colour == WHITE { 3.0 } else { 1.5 }));
            }
        }
        for Placed { text, leader } in placed {
            if let Some((from, to)) = leader {
                scene.line(from, to, Stroke::new(GREY, 0.75));
            }
            scene.text(text);
        }
        caption.draw_below(scene, (at.0, plot.area.bottom() + 46.0), space.width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_without_points_takes_no_name_from_the_others() {
        let mut chart = Chart::new(Caption::default(), Axis::linear("x", 0.0, 10.0, 5), Axis::linear("y", 0.0, 10.0, 5));
        let sample = |x: f64, y: f64| Sample { x, y, ..Sample::default() };
        let series = |name: &str, samples| Series { name: Some(name.into()), style: Style::of_points(0), samples, joined: true };
        chart.series = vec![
            series("nothing measured", vec![]),
            series("first", vec![sample(1.0, 2.0), sample(9.0, 3.0)]),
            series("second", vec![sample(1.0, 7.0), sample(9.0, 8.0)]),
        ];
        let (caption, placed) = chart.complete(&chart.plot((0.0, 0.0), 0.0, Space::default()));
        let names: Vec<&str> = placed.iter().map(|p| p.text.content.as_str()).collect();
        assert_eq!((names, caption.key.len()), (vec!["first", "second"], 0));
    }
}
