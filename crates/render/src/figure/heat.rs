//! A matrix as a heat map, its cells legible as long as there is room for text.

use memgauge_core::result::Measurement;

use super::axis::Axis;
use super::font::{self, CAPITALS, Weight};
use super::frame::{Caption, LABEL, Panel, WIDTH};
use super::palette::{Colour, EMPTY, GREY, INK, Map, WHITE, text_on};
use super::scene::{Anchor, Area, Item, Point, Scene, Stroke, Text};
use crate::number::{number, value_of};

/// Up to this many rows and columns, cells show their numbers.
const LEGIBLE: usize = 64;
/// A map without numbers is about this wide.
const DENSE: f64 = 1024.0;
/// Low cells get colours of their own when all others are higher by at least this factor …
const LOW_GAP: f64 = 1.5;
/// … and when they are at most this share of all.
const MINORITY: f64 = 0.4;
/// Width of the bars that explain colours, and the space to their left.
const BAR: f64 = 14.0;
const GAP: f64 = 22.0;

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell {
    Value(f64),
    /// It could not be measured.
    Missing,
    /// There is nothing to measure, such as a CPU's transfer to itself.
    Void,
}

impl Cell {
    /// The cell of a measurement; [`Cell::Void`] where there is none.
    pub(crate) fn for_measurement(m: Option<&Measurement>) -> Self {
        m.map_or(Self::Void, |m| value_of(&m.estimate).map_or(Self::Missing, Self::Value))
    }
}

/// Where a row or column differs from the one before. Empty when all differ, because lines everywhere say nothing.
pub(crate) fn breaks<T: PartialEq>(keys: impl Iterator<Item = T>) -> Vec<usize> {
    let all: Vec<T> = keys.collect();
    let found: Vec<usize> = (1..all.len()).filter(|&i| all[i] != all[i - 1]).collect();
    if found.len() + 1 >= all.len() { Vec::new() } else { found }
}

/// The matrix.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct HeatMap {
    pub(crate) caption: Caption,
    pub(crate) unit: &'static str,
    pub(crate) row_title: String,
    pub(crate) column_title: String,
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<String>,
    /// Row by row.
    pub(crate) cells: Vec<Cell>,
    /// Rows and columns before which a line is drawn, such as where a package begins.
    pub(crate) row_breaks: Vec<usize>,
    pub(crate) column_breaks: Vec<usize>,
    /// Whether a low minority of cells gets colours of its own, so that the others keep the whole range.
    pub(crate) separate_low: bool,
}

/// Values and the colours that they span.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    low: f64,
    high: f64,
    map: Map,
}

impl Range {
    fn colour(&self, value: f64) -> Colour {
        let share = (value - self.low) / (self.high - self.low);
        self.map.at(if self.high > self.low { share } else { 0.5 })
    }
}

/// Where everything is.
struct Layout {
    caption: Caption,
    map: Area,
    cell: (f64, f64),
    /// Size of the numbers; `None` without.
    text: Option<f64>,
    ranges: Vec<Range>,
    size: (f64, f64),
}

impl HeatMap {
    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.cells.iter().filter_map(|c| if let Cell::Value(v) = c { Some(*v).filter(|v| v.is_finite()) } else { None })
    }

    /// The ranges of colour: one, or the minority's after the main one.
    fn ranges(&self) -> Vec<Range> {
        let mut sorted: Vec<f64> = self.values().collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else { return Vec::new() };
        let max_low = (sorted.len() as f64 * MINORITY) as usize;
        let gap = |i: &usize| if sorted[i - 1] > 0.0 { sorted[*i] / sorted[i - 1] } else { 1.0 };
        let split =
            (1..=max_low.min(sorted.len() - 1)).max_by(|a, b| gap(a).total_cmp(&gap(b))).filter(|i| self.separate_low && gap(i) >= LOW_GAP);
        match split {
            Some(i) => vec![Range { low: sorted[i], high, map: Map::Main }, Range { low, high: sorted[i - 1], map: Map::Near }],
            None => vec![Range { low, high, map: Map::Main }],
        }
    }

    fn colour(ranges: &[Range], value: f64) -> Colour {
        let range = ranges.iter().rev().find(|r| value >= r.low && value <= r.high).or(ranges.first());
        range.map_or(EMPTY, |r| r.colour(value))
    }

    /// A cell's number: fewer digits where there are many cells.
    fn shown(&self, value: f64) -> String {
        match self.rows.len().max(self.columns.len()) {
            0..=8 => number(value),
            _ if value.abs() >= 9.95 && value.abs() < 1e7 => format!("{value:.0}"),
            _ if value.abs() < 9.95 => format!("{value:.1}"),
            _ => number(value),
        }
    }

    fn layout(&self, at: Point) -> Layout {
        let (r, c) = (self.rows.len(), self.columns.len());
        let larger = r.max(c);
        let widest = |names: &[String], size: f64| names.iter().map(|n| font::width(n, size, Weight::Regular)).fold(0.0, f64::max);
        let (cell, text) = if larger <= LEGIBLE {
            let size = if larger <= 20 { LABEL } else { 10.5 };
            let shown: Vec<String> = self.values().map(|v| self.shown(v)).collect();
            let (low, high): (f64, f64) = match larger {
                0..=4 => (78.0, 44.0),
                5..=12 => (56.0, 38.0),
                13..=24 => (38.0, 28.0),
                _ => (26.0, 22.0),
            };
            ((low.max((widest(&shown, size) + 10.0).ceil()), high), Some(size))
        } else {
            let side = (DENSE / larger as f64).floor().clamp(1.0, 14.0);
            ((side, side), None)
        };
        let ranges = self.ranges();
        let left = widest(std::slice::from_ref(&self.row_title), LABEL).max(widest(&self.rows, LABEL)) + 10.0;
        let (wide, high) = (cell.0 * c as f64, cell.1 * r as f64);
        let keys = if self.keyed(&ranges) { ranges.iter().map(|r| GAP + BAR + 8.0 + key_width(r, high)).sum() } else { 4.0 };
        let width = WIDTH.max(left + wide + keys).max(left + widest(std::slice::from_ref(&self.column_title), LABEL));
        let mut caption = self.caption.clone();
        if let [_, near] = ranges.as_slice() {
            let text = format!("Green: the nearest pairs, up to {} {}, on a scale of their own.", number(near.high), self.unit);
            caption.notes.insert(0, text);
        }
        let above = caption.above(width);
        let map = Area::new(at.0 + left, at.1 + above + 42.0, wide, high);
        let height = above + 42.0 + high + 6.0 + caption.below(width);
        Layout { caption, map, cell, text, ranges, size: (width, height) }
    }

    /// Whether bars explain the colours: not for a few cells that all show their number.
    fn keyed(&self, ranges: &[Range]) -> bool {
        self.cells.len() > 9 && ranges.iter().any(|r| r.high > r.low)
    }

    fn draw_cells(&self, scene: &mut Scene, l: &Layout) {
        let colour = |cell: &Cell| match cell {
            Cell::Value(v) if v.is_finite() => Self::colour(&l.ranges, *v),
            Cell::Value(_) | Cell::Missing => EMPTY,
            Cell::Void => WHITE,
        };
        let Some(size) = l.text else {
            let colours = self.cells.iter().map(colour).collect();
            scene.items.push(Item::Pixels { area: l.map, columns: self.columns.len(), rows: self.rows.len(), colours });
            return;
        };
        // Thin lines between cells, unless they are many.
        let gap = if self.cells.len() <= 1024 { 0.5 } else { 0.25 };
        for (i, cell) in self.cells.iter().enumerate() {
            let (row, column) = (i / self.columns.len().max(1), i % self.columns.len().max(1));
            let area = Area::new(l.map.x + column as f64 * l.cell.0, l.map.y + row as f64 * l.cell.1, l.cell.0, l.cell.1);
            let fill = colour(cell);
            scene.rect(area.grown(-gap), fill);
            let (text, ink) = match cell {
                Cell::Value(v) if v.is_finite() => (self.shown(*v), text_on(fill)),
                Cell::Value(_) | Cell::Missing => ("—".to_owned(), GREY),
                Cell::Void => ("·".to_owned(), GREY),
            };
            let at = (area.x + area.width / 2.0, area.y + area.height / 2.0 + size * CAPITALS / 2.0);
            scene.text(Text::new(text, at, size, ink).anchored(Anchor::Middle));
        }
    }

    fn draw_names(&self, scene: &mut Scene, l: &Layout) {
        let map = &l.map;
        let wide = self.columns.iter().map(|n| font::width(n, LABEL, Weight::Regular)).fold(0.0, f64::max) + 6.0;
        for i in (0..self.columns.len()).step_by(stride(wide, l.cell.0)) {
            let at = (map.x + (i as f64 + 0.5) * l.cell.0, map.y - 7.0);
            scene.text(Text::new(&self.columns[i], at, LABEL, INK).anchored(Anchor::Middle));
        }
        for i in (0..self.rows.len()).step_by(stride(LABEL + 3.0, l.cell.1)) {
            let y = map.y + (i as f64 + 0.5) * l.cell.1 + LABEL * CAPITALS / 2.0;
            scene.text(Text::new(&self.rows[i], (map.x - 8.0, y), LABEL, INK).anchored(Anchor::End));
        }
        scene.text(Text::new(&self.column_title, (map.x, map.y - 26.0), LABEL, GREY));
        scene.text(Text::new(&self.row_title, (map.x - 10.0, map.y - 7.0), LABEL, GREY).anchored(Anchor::End));
        let line = Stroke::new(INK, if self.columns.len() > LEGIBLE { 1.0 } else { 1.5 });
        // Light beside dark, so that it shows on cells of either.
        let rim = Stroke::new(WHITE, line.width * 2.5);
        for &b in &self.column_breaks {
            let x = map.x + b as f64 * l.cell.0;
            scene.line((x, map.y), (x, map.bottom()), rim);
            scene.line((x, map.y), (x, map.bottom()), line);
        }
        for &b in &self.row_breaks {
            let y = map.y + b as f64 * l.cell.1;
            scene.line((map.x, y), (map.right(), y), rim);
            scene.line((map.x, y), (map.right(), y), line);
        }
    }

    fn draw_keys(&self, scene: &mut Scene, l: &Layout) {
        let mut x = l.map.right() + GAP;
        let high = key_height(l.map.height);
        for range in &l.ranges {
            let bar = Area::new(x, l.map.y, BAR, high);
            let steps = high.round().max(1.0) as usize;
            // The highest value is at the top.
            let colours = (0..steps).map(|i| range.map.at(1.0 - (i as f64 + 0.5) / steps as f64)).collect();
            scene.items.push(Item::Pixels { area: bar, columns: 1, rows: steps, colours });
            scene.text(Text::new(self.unit, (x, l.map.y - 7.0), LABEL, GREY));
            for (share, label) in key_ticks(range, high) {
                let y = bar.bottom() - share * bar.height;
                scene.line((bar.right(), y), (bar.right() + 4.0, y), Stroke::new(INK, 1.0));
                scene.text(Text::new(label, (bar.right() + 7.0, y + LABEL * CAPITALS / 2.0), LABEL, INK));
            }
            x += BAR + 8.0 + key_width(range, high) + GAP;
        }
    }
}

/// Every how many names fit.
fn stride(needs: f64, step: f64) -> usize {
    ((needs / step).ceil().max(1.0) as usize).next_power_of_two()
}

/// A bar of colours is as high as its map, within reason.
fn key_height(map: f64) -> f64 {
    map.clamp(90.0, 420.0)
}

fn key_ticks(range: &Range, high: f64) -> Vec<(f64, String)> {
    if range.high <= range.low {
        return vec![(0.5, number(range.low))];
    }
    let max_ticks = (key_height(high) / 45.0) as usize;
    let axis = Axis::linear("", range.low, range.high, max_ticks.max(2));
    let share = |v: f64| (v - range.low) / (range.high - range.low);
    let inside: Vec<(f64, String)> = axis.ticks.into_iter().filter_map(|t| Some((share(t.value), t.label?))).collect();
    let inside: Vec<_> = inside.into_iter().filter(|(s, _)| (-1e-9..=1.0 + 1e-9).contains(s)).collect();
    if inside.len() >= 2 { inside } else { vec![(0.0, number(range.low)), (1.0, number(range.high))] }
}

fn key_width(range: &Range, high: f64) -> f64 {
    key_ticks(range, high).iter().map(|(_, l)| font::width(l, LABEL, Weight::Regular)).fold(0.0, f64::max)
}

impl Panel for HeatMap {
    fn size(&self) -> (f64, f64) {
        let layout = self.layout((0.0, 0.0));
        let keys = if self.keyed(&layout.ranges) { key_height(layout.map.height) - layout.map.height } else { 0.0 };
        (layout.size.0, layout.size.1 + keys.max(0.0))
    }

    fn draw(&self, scene: &mut Scene, at: Point) {
        let l = self.layout(at);
        l.caption.draw_above(scene, at, l.size.0);
        self.draw_cells(scene, &l);
        self.draw_names(scene, &l);
        let mut bottom = l.map.bottom();
        if self.keyed(&l.ranges) {
            self.draw_keys(scene, &l);
            bottom = bottom.max(l.map.y + key_height(l.map.height));
        }
        l.caption.draw_below(scene, (at.0, bottom + 6.0), l.size.0);
    }
}
