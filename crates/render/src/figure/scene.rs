//! The parts of a figure: shapes and text in user units (1/96 inch), y downwards, later ones on top.

use super::font::{self, CAPITALS, DESCENT, Weight};
use super::palette::{Colour, Marker};

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Area {
    pub(crate) const fn new(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self { x, y, width, height }
    }
    /// Right edge.
    pub fn right(&self) -> f64 {
        self.x + self.width
    }
    /// Lower edge.
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }
    /// Whether the two share more than a border.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.x < other.right() && other.x < self.right() && self.y < other.bottom() && other.y < self.bottom()
    }
    /// Whether the other is inside.
    pub fn holds(&self, other: &Self) -> bool {
        self.x <= other.x && self.y <= other.y && self.right() >= other.right() && self.bottom() >= other.bottom()
    }
    /// The square around a circle.
    pub(crate) fn around(centre: Point, radius: f64) -> Self {
        Self::new(centre.0 - radius, centre.1 - radius, 2.0 * radius, 2.0 * radius)
    }
    pub(crate) fn grown(&self, by: f64) -> Self {
        Self::new(self.x - by, self.y - by, self.width + 2.0 * by, self.height + 2.0 * by)
    }
}

/// A point.
pub(crate) type Point = (f64, f64);

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stroke {
    pub(crate) colour: Colour,
    pub(crate) width: f64,
    pub(crate) dashed: bool,
}

impl Stroke {
    pub(crate) const fn new(colour: Colour, width: f64) -> Self {
        Self { colour, width, dashed: false }
    }
    pub(crate) const fn dashed(self) -> Self {
        Self { dashed: true, ..self }
    }
}

/// Dash and gap of dashed lines.
pub(crate) const DASH: [f64; 2] = [4.0, 3.0];

/// Which end of a text its point is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// One line of text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Text {
    pub(crate) content: String,
    /// On the baseline.
    pub(crate) at: Point,
    pub(crate) size: f64,
    pub(crate) weight: Weight,
    pub(crate) colour: Colour,
    pub(crate) anchor: Anchor,
    /// Reads upwards.
    pub(crate) upwards: bool,
    /// Has a white rim, so that a line behind it does not cut through it.
    pub(crate) rim: bool,
    /// At size and weight, in user units.
    pub(crate) width: f64,
}

/// Width of the white rim of text, to both sides of the outline together.
pub(crate) const RIM: f64 = 3.0;

impl Text {
    pub(crate) fn new(content: impl Into<String>, at: Point, size: f64, colour: Colour) -> Self {
        let content = content.into();
        let width = font::width(&content, size, Weight::Regular);
        Self { content, at, size, weight: Weight::Regular, colour, anchor: Anchor::Start, upwards: false, rim: false, width }
    }
    pub(crate) fn bold(mut self) -> Self {
        self.weight = Weight::SemiBold;
        self.width = font::width(&self.content, self.size, self.weight);
        self
    }
    pub(crate) fn anchored(mut self, anchor: Anchor) -> Self {
        self.anchor = anchor;
        self
    }
    pub(crate) fn upwards(mut self) -> Self {
        self.upwards = true;
        self
    }
    pub(crate) fn rimmed(mut self) -> Self {
        self.rim = true;
        self
    }
    /// The start of its first letter, along the direction of reading.
    pub(crate) fn start(&self) -> Point {
        let before = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => self.width / 2.0,
            Anchor::End => self.width,
        };
        if self.upwards { (self.at.0, self.at.1 + before) } else { (self.at.0 - before, self.at.1) }
    }
    /// The space that it takes.
    pub(crate) fn area(&self) -> Area {
        let (x, y) = self.start();
        let (up, down) = (self.size * CAPITALS, self.size * DESCENT);
        if self.upwards { Area::new(x - up, y - self.width, up + down, self.width) } else { Area::new(x, y - up, self.width, up + down) }
    }
}

/// One thing drawn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Rect {
        area: Area,
        fill: Colour,
    },
    Line {
        points: Vec<Point>,
        stroke: Stroke,
    },
    Dot {
        centre: Point,
        radius: f64,
        fill: Colour,
        rim: Option<Stroke>,
    },
    /// A closed polygon.
    Shape {
        points: Vec<Point>,
        fill: Colour,
        rim: Option<Stroke>,
    },
    Text(Text),
    /// A cell for each pixel, row by row; drawn without smoothing.
    Pixels {
        area: Area,
        columns: usize,
        rows: usize,
        colours: Vec<Colour>,
    },
}

/// A figure, ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// In user units.
    pub width: f64,
    /// In user units.
    pub height: f64,
    /// Says what the figure shows, for readers who cannot see it.
    pub title: String,
    pub(crate) items: Vec<Item>,
    /// Areas, and the text that appears when the pointer is over one of them; only pages show it.
    pub(crate) hints: Vec<(Area, String)>,
}

impl Scene {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { width: 0.0, height: 0.0, title: title.into(), items: Vec::new(), hints: Vec::new() }
    }
    pub(crate) fn hint(&mut self, area: Area, text: impl Into<String>) {
        self.hints.push((area, text.into()));
    }
    pub(crate) fn rect(&mut self, area: Area, fill: Colour) {
        self.items.push(Item::Rect { area, fill });
    }
    pub(crate) fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
        self.items.push(Item::Line { points: vec![from, to], stroke });
    }
    pub(crate) fn path(&mut self, points: Vec<Point>, stroke: Stroke) {
        if points.len() > 1 {
            self.items.push(Item::Line { points, stroke });
        }
    }
    pub(crate) fn dot(&mut self, centre: Point, radius: f64, fill: Colour, rim: Option<Stroke>) {
        self.items.push(Item::Dot { centre, radius, fill, rim });
    }
    /// A circle without filling, as a closed path.
    pub(crate) fn ring(&mut self, centre: Point, radius: f64, stroke: Stroke) {
        let points = (0..=24).map(|i| {
            let angle = f64::from(i) * std::f64::consts::TAU / 24.0;
            (centre.0 + radius * angle.cos(), centre.1 + radius * angle.sin())
        });
        self.path(points.collect(), stroke);
    }
    /// A mark at a point: the same area, whatever its shape.
    pub(crate) fn mark(&mut self, marker: Marker, centre: Point, radius: f64, fill: Colour, rim: Option<Stroke>) {
        let corners =
            |list: &[Point], by: f64| list.iter().map(|(x, y)| (centre.0 + x * radius * by, centre.1 + y * radius * by)).collect();
        let points = match marker {
            Marker::Circle => return self.dot(centre, radius, fill, rim),
            Marker::Square => corners(&[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)], 0.886),
            Marker::Diamond => corners(&[(0.0, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)], 1.253),
            Marker::Triangle => corners(&[(0.0, -1.0), (0.866, 0.5), (-0.866, 0.5)], 1.4),
        };
        self.items.push(Item::Shape { points, fill, rim });
    }
    pub(crate) fn text(&mut self, text: Text) {
        if !text.content.is_empty() {
            self.items.push(Item::Text(text));
        }
    }
    /// Every text with the space that it takes, for checks of the layout.
    pub fn texts(&self) -> Vec<(&str, Area)> {
        let texts = self.items.iter().filter_map(|item| if let Item::Text(t) = item { Some(t) } else { None });
        texts.map(|t| (t.content.as_str(), t.area())).collect()
    }
    /// The space of every other shape, for the same purpose.
    pub fn shapes(&self) -> Vec<Area> {
        self.items
            .iter()
            .filter_map(|item| match item {
                Item::Rect { area, .. } | Item::Pixels { area, .. } => Some(*area),
                Item::Dot { centre, radius, .. } => Some(Area::around(*centre, *radius)),
                Item::Line { points, .. } | Item::Shape { points, .. } => {
                    let (first, rest) = points.split_first()?;
                    let (mut low, mut high) = (*first, *first);
                    for p in rest {
                        low = (low.0.min(p.0), low.1.min(p.1));
                        high = (high.0.max(p.0), high.1.max(p.1));
                    }
                    Some(Area::new(low.0, low.1, high.0 - low.0, high.1 - low.1))
                }
                Item::Text(_) => None,
            })
            .collect()
    }
}
