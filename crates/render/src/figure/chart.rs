//! A chart of lines and points over two axes, labelled directly.

use super::axis::{Axis, Tick};
use super::font::{self, CAPITALS, DESCENT, Weight};
use super::frame::{Caption, LABEL, Panel, WIDTH, shorten};
use super::labels::{ABOVE, BELOW, Direction, LEFT, LOWER_LEFT, LOWER_RIGHT, Placer, RIGHT, UPPER_LEFT, UPPER_RIGHT};
use super::palette::{BAND, Colour, GREY, GRID, INK, WHITE, text_of};
use super::scene::{Anchor, Area, Point, Scene, Stroke, Text};

/// Height of the plot itself.
const HEIGHT: f64 = 340.0;
/// Room above the highest value, for labels.
const HEADROOM: f64 = 26.0;
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
}

/// Points of one colour.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: Option<String>,
    pub(crate) colour: Colour,
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
    /// May be left out where there is no room.
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

impl Chart {
    pub(crate) fn new(caption: Caption, x: Axis, y: Axis) -> Self {
        Self { caption, x, y, series: Vec::new(), bands: Vec::new(), guides: Vec::new(), point_labels: Vec::new(), columns: false }
    }

    /// The plot within a panel whose caption ends at `top`.
    fn plot(&self, at: Point, top: f64) -> Area {
        let widest = |ticks: &[Tick]| {
            ticks.iter().filter_map(|t| t.label.as_deref()).map(|l| font::width(l, LABEL, Weight::Regular)).fold(0.0, f64::max)
        };
        let left = 26.0 + widest(&self.y.ticks) + 8.0;
        let last = self.x.ticks.iter().rev().find_map(|t| t.label.as_deref()).map_or(0.0, |l| font::width(l, LABEL, Weight::Regular));
        let right = (last / 2.0 + 2.0).max(12.0);
        let bands = if self.bands.is_empty() { 0.0 } else { 22.0 };
        Area::new(at.0 + left, top + bands, WIDTH - left - right, HEIGHT)
    }

    fn place(&self, plot: &Area, x: f64, y: f64) -> Point {
        (plot.x + self.x.share(x) * plot.width, self.height(plot, y))
    }

    fn height(&self, plot: &Area, y: f64) -> f64 {
        plot.bottom() - self.y.share(y) * (plot.height - HEADROOM)
    }

    /// The caption, with a key when there is no room for the names of series beside their lines.
    fn complete(&self, plot: &Area) -> (Caption, Vec<Placed>) {
        let mut caption = self.caption.clone();
        let (placed, all_named) = self.labels(plot, true);
        if all_named {
            return (caption, placed);
        }
        caption.key = self.series.iter().filter_map(|s| Some((s.colour, s.name.clone()?))).collect();
        (caption, self.labels(plot, false).0)
    }

    /// Places of all labels, and whether every series got its name.
    fn labels(&self, plot: &Area, name_series: bool) -> (Vec<Placed>, bool) {
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
    fn reserve_data(&self, plot: &Area) -> Placer {
        let mut placer = Placer::new(Area::new(plot.x + 3.0, plot.y, plot.width - 5.0, plot.height - 3.0));
        for tick in self.y.ticks.iter().filter(|t| t.label.is_some()) {
            placer.grid(self.height(plot, tick.value));
        }
        for series in &self.series {
            let points: Vec<Point> = series.samples.iter().map(|s| self.place(plot, s.x, s.y)).collect();
            if series.joined {
                placer.reserve_line(&points);
            }
            if self.columns {
                if let (Some(a), Some(b)) = (points.first(), points.last()) {
                    placer.reserve(Area::new(a.0, a.1, b.0 - a.0, plot.bottom() - a.1));
                }
                continue;
            }
            for (p, s) in points.iter().zip(&series.samples) {
                placer.reserve(Area::around(*p, RADIUS));
                if let Some((low, high)) = s.y_interval {
                    placer.reserve_line(&[self.place(plot, s.x, low), self.place(plot, s.x, high)]);
                }
            }
        }
        for mark in self.point_labels.iter().filter(|m| m.ring) {
            placer.reserve(Area::around(self.place(plot, mark.at.0, mark.at.1), RING));
        }
        placer
    }

    /// Places the names of the guides. Where there is no other way, a name crosses another guide.
    fn name_guides(&self, plot: &Area, placer: &mut Placer) -> Vec<Placed> {
        let mut placed = Vec::new();
        let mut crossing = placer.clone();
        for guide in &self.guides {
            let (from, to) = self.guide_ends(plot, guide);
            placer.reserve_line(&[from, to]);
        }
        for guide in &self.guides {
            let (from, to) = self.guide_ends(plot, guide);
            let size = (font::width(&guide.name, LABEL, Weight::Regular), TALL);
            // At the upper end of a vertical guide, at the right end of a level one; further along when that is taken.
            let mut places = (0..12).map(|i| {
                let along = f64::from(i) / 12.0;
                if guide.vertical {
                    (from.0, plot.y + 8.0 + along * plot.height)
                } else {
                    (to.0 - size.0 / 2.0 - 4.0 - along * (plot.width - size.0), from.1)
                }
            });
            let directions: &[Direction] = if guide.vertical { &[LEFT, RIGHT] } else { &[ABOVE, BELOW] };
            let clear = places.clone().find_map(|p| placer.near(p, size, directions));
            if let Some(area) = clear.or_else(|| places.find_map(|p| crossing.near(p, size, directions))) {
                placer.reserve(area);
                crossing.reserve(area);
                placed.push(Placed { text: label(&guide.name, &area, guide.colour), leader: None });
            }
        }
        placed
    }

    /// Places a label at its point, or elsewhere with a line to it. An optional one is left out where there is no room nearby.
    fn place_label(&self, plot: &Area, placer: &mut Placer, mark: &PointLabel) -> Option<Placed> {
        let point = self.place(plot, mark.at.0, mark.at.1);
        let size = (font::width(&mark.name, LABEL, Weight::Regular), TALL);
        let beside = match (mark.optional, mark.ring) {
            (false, _) => placer.near(point, size, &mark.directions),
            (true, false) => placer.close(point, size, &mark.directions),
            (true, true) => placer.close_to_ring(point, size, &mark.directions),
        };
        let far = if beside.is_none() && !mark.optional { placer.anywhere(point, size) } else { None };
        let leader = far.map(|a| (point, (point.0.clamp(a.x, a.right()), point.1.clamp(a.y - 1.0, a.bottom() + 1.0))));
        beside.or(far).map(|area| Placed { text: label(&mark.name, &area, mark.colour), leader })
    }

    /// Names each series beside its line; `false` when one finds no room.
    fn name_series(&self, plot: &Area, placer: &mut Placer, placed: &mut Vec<Placed>) -> bool {
        let directions = [RIGHT, UPPER_LEFT, ABOVE, UPPER_RIGHT, LOWER_RIGHT, LEFT, BELOW, LOWER_LEFT];
        for series in &self.series {
            let Some(name) = &series.name else { continue };
            let name = shorten(name, plot.width / 3.0, LABEL);
            let size = (font::width(&name, LABEL, Weight::SemiBold), TALL);
            let mut points = series.samples.iter().rev().map(|s| self.place(plot, s.x, s.y));
            let Some(area) = points.find_map(|p| placer.close(p, size, &directions)) else {
                // Where nothing was drawn there is nothing to name; the others still have names.
                if series.samples.is_empty() {
                    continue;
                }
                return false;
            };
            placed.push(Placed { text: label(&name, &area, text_of(series.colour)).bold(), leader: None });
        }
        true
    }

    fn guide_ends(&self, plot: &Area, guide: &Guide) -> (Point, Point) {
        if guide.vertical {
            let x = self.place(plot, guide.at, 0.0).0;
            ((x, plot.y), (x, plot.bottom()))
        } else {
            let y = self.height(plot, guide.at);
            ((plot.x, y), (plot.right(), y))
        }
    }

    fn draw_axes(&self, scene: &mut Scene, plot: &Area, left: f64) {
        for band in self.bands.iter().filter(|b| b.shaded) {
            let (from, to) = (self.place(plot, band.from, 0.0).0, self.place(plot, band.to, 0.0).0);
            scene.rect(Area::new(from, plot.y, to - from, plot.height), BAND);
        }
        for band in &self.bands {
            let (from, to) = (self.place(plot, band.from, 0.0).0, self.place(plot, band.to, 0.0).0);
            let fits = |n: &&String| font::width(n, LABEL, Weight::Regular) + 8.0 <= to - from;
            if let Some(name) = band.names.iter().find(fits) {
                scene.text(Text::new(name, ((from + to) / 2.0, plot.y - 8.0), LABEL, GREY).anchored(Anchor::Middle));
            }
        }
        for tick in &self.y.ticks {
            let y = self.height(plot, tick.value);
            match &tick.label {
                Some(label) => {
                    scene.line((plot.x, y), (plot.right(), y), Stroke::new(GRID, 1.0));
                    let at = (plot.x - 8.0, y + LABEL * CAPITALS / 2.0);
                    scene.text(Text::new(label, at, LABEL, INK).anchored(Anchor::End));
                }
                None => scene.line((plot.x - 3.0, y), (plot.x, y), Stroke::new(GREY, 0.75)),
            }
        }
        scene.line((plot.x, plot.bottom()), (plot.right(), plot.bottom()), Stroke::new(INK, 1.0));
        for tick in &self.x.ticks {
            let x = self.place(plot, tick.value, 0.0).0;
            let long = if tick.label.is_some() { 5.0 } else { 3.0 };
            scene.line((x, plot.bottom()), (x, plot.bottom() + long), Stroke::new(if long > 4.0 { INK } else { GREY }, 1.0));
            if let Some(label) = &tick.label {
                scene.text(Text::new(label, (x, plot.bottom() + 19.0), LABEL, INK).anchored(Anchor::Middle));
            }
        }
        let middle = (plot.x + plot.width / 2.0, plot.bottom() + 40.0);
        scene.text(Text::new(&self.x.title, middle, LABEL, INK).anchored(Anchor::Middle));
        let upright = (left + 11.0, plot.y + plot.height / 2.0);
        scene.text(Text::new(&self.y.title, upright, LABEL, INK).anchored(Anchor::Middle).upwards());
    }

    fn draw_series(&self, scene: &mut Scene, plot: &Area, series: &Series) {
        let points: Vec<Point> = series.samples.iter().map(|s| self.place(plot, s.x, s.y)).collect();
        if self.columns {
            if let (Some(a), Some(b)) = (points.first(), points.last()) {
                scene.rect(Area::new(a.0, a.1, (b.0 - a.0).max(0.5), plot.bottom() - a.1), series.colour);
            }
            return;
        }
        let whisker = Stroke::new(series.colour, 1.0);
        for (s, p) in series.samples.iter().zip(&points) {
            // Intervals that the point itself would hide are left out.
            if let Some((low, high)) = s.y_interval {
                // One that leaves the axis ends at its edge, without a bar across.
                let ends = [low.max(self.y.low), high.min(self.y.high)].map(|end| self.height(plot, end));
                if ends[0] - ends[1] > 2.0 * RADIUS {
                    scene.line((p.0, ends[0]), (p.0, ends[1]), whisker);
                    for (y, _) in ends.into_iter().zip([low >= self.y.low, high <= self.y.high]).filter(|(_, within)| *within) {
                        scene.line((p.0 - 3.0, y), (p.0 + 3.0, y), whisker);
                    }
                }
            }
            if let Some((low, high)) = s.x_interval {
                let (low, high) = (self.place(plot, low, s.y).0, self.place(plot, high, s.y).0);
                if high - low > 2.0 * RADIUS {
                    scene.line((low, p.1), (high, p.1), whisker);
                }
            }
        }
        if series.joined {
            scene.path(points.clone(), Stroke::new(series.colour, 2.0));
        }
        if points.len() <= MARKED || !series.joined {
            let small = if points.len() > MARKED { 0.6 } else { 1.0 };
            for (s, p) in series.samples.iter().zip(points) {
                if s.degraded {
                    scene.dot(p, RADIUS * small, WHITE, Some(Stroke::new(series.colour, 1.5)));
                } else {
                    scene.dot(p, (RADIUS + 0.4) * small, series.colour, Some(Stroke::new(WHITE, 1.0)));
                }
            }
        }
    }
}

impl Chart {
    /// Bitmaps would show a fine line where two columns touch.
    fn close_seams(&self, scene: &mut Scene, plot: &Area) {
        for (a, b) in self.series.iter().zip(self.series.iter().skip(1)) {
            if let (Some(left), Some(right)) = (a.samples.last(), b.samples.first())
                && left.x == right.x
                && a.colour == b.colour
            {
                let (x, top) = self.place(plot, left.x, left.y.min(right.y));
                scene.rect(Area::new(x - 0.25, top, 0.5, plot.bottom() - top), a.colour);
            }
        }
    }
}

/// A text whose box is this area.
fn label(name: &str, area: &Area, colour: Colour) -> Text {
    Text::new(name, (area.x, area.y + LABEL * CAPITALS), LABEL, colour).rimmed()
}

impl Panel for Chart {
    fn size(&self) -> (f64, f64) {
        let plot = self.plot((0.0, 0.0), 0.0);
        let (caption, _) = self.complete(&plot);
        (WIDTH, caption.above(WIDTH) + plot.bottom() + 46.0 + caption.below(WIDTH))
    }

    fn draw(&self, scene: &mut Scene, at: Point) {
        let (caption, _) = self.complete(&self.plot(at, at.1));
        let plot = self.plot(at, at.1 + caption.above(WIDTH));
        let (_, placed) = self.complete(&plot);
        caption.draw_above(scene, at, WIDTH);
        self.draw_axes(scene, &plot, at.0);
        for guide in &self.guides {
            let (from, to) = self.guide_ends(&plot, guide);
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
                ring(scene, p, RING, Stroke::new(colour, if colour == WHITE { 3.0 } else { 1.5 }));
            }
        }
        for Placed { text, leader } in placed {
            if let Some((from, to)) = leader {
                scene.line(from, to, Stroke::new(GREY, 0.75));
            }
            scene.text(text);
        }
        caption.draw_below(scene, (at.0, plot.bottom() + 46.0), WIDTH);
    }
}

/// A circle without filling, as a closed path.
fn ring(scene: &mut Scene, centre: Point, radius: f64, stroke: Stroke) {
    let points = (0..=24).map(|i| {
        let angle = f64::from(i) * std::f64::consts::TAU / 24.0;
        (centre.0 + radius * angle.cos(), centre.1 + radius * angle.sin())
    });
    scene.path(points.collect(), stroke);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_without_points_takes_no_name_from_the_others() {
        let mut chart = Chart::new(Caption::default(), Axis::linear("x", 0.0, 10.0, 5), Axis::linear("y", 0.0, 10.0, 5));
        let sample = |x: f64, y: f64| Sample { x, y, ..Sample::default() };
        let series = |name: &str, samples| Series { name: Some(name.into()), colour: INK, samples, joined: true };
        chart.series = vec![
            series("nothing measured", vec![]),
            series("first", vec![sample(1.0, 2.0), sample(9.0, 3.0)]),
            series("second", vec![sample(1.0, 7.0), sample(9.0, 8.0)]),
        ];
        let (caption, placed) = chart.complete(&chart.plot((0.0, 0.0), 0.0));
        let names: Vec<&str> = placed.iter().map(|p| p.text.content.as_str()).collect();
        assert_eq!((names, caption.key.len()), (vec!["first", "second"], 0));
    }
}
