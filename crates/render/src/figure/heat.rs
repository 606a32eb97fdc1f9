//! A matrix as a heat map, its cells legible as long as there is room for text.

use memgauge_model::experiment::Metric;
use memgauge_model::result::Measurement;
use memgauge_model::stats::median;

use super::axis::{Axis, Scale};
use super::font::{self, CAPITALS, Weight};
use super::frame::{Caption, HALF, LABEL, Panel, Space};
use super::palette::{Colour, EMPTY, GREY, INK, Map, NEUTRAL, STRUCK, WHITE, text_on};
use super::scene::{Anchor, Area, Item, Point, Scene, Stroke, Text};
use super::source::interval;
use crate::number::{number, percent, range, unit, value_of};
use crate::pivot::Pivot;

/// Up to this many rows and columns, cells show their numbers. More of them would make a figure wider than a page.
const NUMBERED: usize = 32;
/// The same where the width was asked for, if there is room.
const LEGIBLE: usize = 64;
/// A map without numbers is about this wide.
const DENSE: f64 = 1024.0;
/// Sizes of numbers in a map whose width was asked for, largest first; the last is 6 pt, below which no text is.
const SHRUNK: [f64; 4] = [LABEL, 10.5, 9.0, 8.0];
/// Low cells get colours of their own when all others are higher by at least this factor …
const LOW_GAP: f64 = 1.5;
/// … and when they are at most this share of all.
const MINORITY: f64 = 0.4;
/// Colours span at least this factor, so that differences of a few percent do not look like those of a remote node.
const LEAST_SPAN: f64 = 1.25;
/// From this factor on, colours are logarithmic.
const WIDE_SPAN: f64 = 4.0;
/// Differences below this share are one colour even where intervals are narrower: two runs of a machine differ by as much.
const LEAST_NOISE: f64 = 0.02;
/// Width of the bars that explain colours, and the space to their left.
const BAR: f64 = 14.0;
const GAP: f64 = 20.0;
const KEY_HEIGHTS: (f64, f64) = (100.0, 420.0);
/// Space above bars that stand below the map; and the widths of the map and of a cell below which they do.
const BELOW: f64 = 34.0;
const LEAST_MAP: f64 = 190.0;
const LEAST_CELL: f64 = 44.0;
/// What the colours of every map mean.
const DIRECTION: &str = "darker is slower";

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum HeatCell {
    Value(f64),
    /// Measured, but unreliable: shown with a sign and without a colour of the scale.
    Unreliable(f64),
    /// It could not be measured.
    Missing,
    /// There is nothing to measure, such as a CPU's transfer to itself.
    Void,
}

impl HeatCell {
    /// The cell of a measurement; [`HeatCell::Void`] where there is none.
    pub(crate) fn for_measurement(m: Option<&Measurement>) -> Self {
        let value =
            |m: &Measurement| value_of(&m.estimate).map_or(Self::Missing, if m.is_reliable() { Self::Value } else { Self::Unreliable });
        m.map_or(Self::Void, value)
    }

    /// Its number, if it has one.
    fn number(&self) -> Option<f64> {
        match self {
            Self::Value(v) | Self::Unreliable(v) => Some(*v).filter(|v| v.is_finite()),
            Self::Missing | Self::Void => None,
        }
    }

    /// What stands before its number.
    const fn sign(&self) -> &'static str {
        if matches!(self, Self::Unreliable(_)) { "~" } else { "" }
    }
}

/// The share of their values by which cells differ without a reason: the median width of their intervals.
pub(crate) fn noise(ms: &[&Measurement]) -> f64 {
    let width = |m: &&Measurement| Some((interval(m)?.1 - interval(m)?.0) / value_of(&m.estimate).filter(|v| *v > 0.0)?);
    median(&ms.iter().filter(|m| m.is_reliable()).filter_map(width).collect::<Vec<_>>()).unwrap_or(0.0)
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
    pub(crate) cells: Vec<HeatCell>,
    /// Rows and columns before which a line is drawn, such as where a package begins.
    pub(crate) row_breaks: Vec<usize>,
    pub(crate) column_breaks: Vec<usize>,
    /// Whether a low minority of cells gets colours of its own, so that the others keep the whole range.
    pub(crate) separate_low: bool,
    /// Higher values are better, as of bandwidth.
    pub(crate) more_is_faster: bool,
    /// The share of the values by which cells differ without a reason.
    pub(crate) noise: f64,
}

/// Values and the colours that they span.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    /// Of the values.
    low: f64,
    high: f64,
    /// Of the colours.
    axis: (f64, f64),
    scale: Scale,
    map: Map,
    more_is_faster: bool,
}

impl Range {
    fn new(low: f64, high: f64, map: Map, more_is_faster: bool) -> Self {
        // A factor is meaningless where a value is 0 or below.
        let (axis, scale) = if low <= 0.0 {
            (if high > low { (low, high) } else { (low - 1.0, high + 1.0) }, Scale::Linear)
        } else if high / low < LEAST_SPAN {
            let (middle, half) = ((low * high).sqrt(), LEAST_SPAN.sqrt());
            ((middle / half, middle * half), Scale::Linear)
        } else {
            ((low.max(high * 1e-6), high), if high / low > WIDE_SPAN { Scale::Logarithmic } else { Scale::Linear })
        };
        Self { low, high, axis, scale, map, more_is_faster }
    }

    /// The position of a value on the scale, from 0 (lowest) to 1 (highest).
    fn share(&self, value: f64) -> f64 {
        let (low, high) = self.axis;
        match self.scale {
            Scale::Linear => (value - low) / (high - low),
            Scale::Logarithmic => (value / low).ln() / (high / low).ln(),
        }
    }

    /// The colour at this position on the scale.
    fn at(&self, share: f64) -> Colour {
        self.map.at(if self.more_is_faster { 1.0 - share } else { share })
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
    /// The width that the map and its keys take.
    needed: f64,
    /// Height of what is drawn between the captions.
    drawn: f64,
    /// Upper left corner of the first key, and the height of all.
    keys_at: Point,
    key_height: f64,
}

/// The widest of these names.
fn widest(names: &[String], size: f64) -> f64 {
    names.iter().map(|n| font::width(n, size, Weight::Regular)).fold(0.0, f64::max)
}

impl HeatMap {
    /// The map of a table; unit and direction are those of its measurements.
    pub(crate) fn of<R: Ord + Clone, C: Ord + Clone>(
        caption: Caption,
        table: &Pivot<'_, R, C>,
        row_name: impl Fn(&R) -> String,
        column_name: impl Fn(&C) -> String,
    ) -> Self {
        let ms = table.measurements();
        Self {
            caption,
            unit: ms.first().map_or("", |m| unit(m.unit)),
            rows: table.rows.iter().map(row_name).collect(),
            columns: table.columns.iter().map(column_name).collect(),
            cells: table.cells().map(HeatCell::for_measurement).collect(),
            more_is_faster: ms.iter().any(|m| m.metric == Metric::Bandwidth),
            noise: noise(&ms),
            ..Self::default()
        }
    }

    /// The reliable values, which the colours span.
    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.cells.iter().filter(|c| matches!(c, HeatCell::Value(_))).filter_map(HeatCell::number)
    }

    /// What the cells with a number show.
    fn numbers(&self) -> Vec<String> {
        self.cells.iter().filter_map(|c| Some(format!("{}{}", c.sign(), self.shown(c.number()?)))).collect()
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
        let range = |low, high, map| Range::new(low, high, map, self.more_is_faster);
        match split {
            Some(i) => vec![range(sorted[i], high, Map::Main), range(low, sorted[i - 1], Map::Near)],
            None => vec![range(low, high, Map::Main)],
        }
    }

    /// Whether all values are one, as far as one can tell.
    fn is_flat(&self, ranges: &[Range]) -> bool {
        matches!(ranges, [only] if only.low > 0.0 && only.high / only.low - 1.0 <= self.noise.max(LEAST_NOISE))
    }

    fn colour(&self, ranges: &[Range], value: f64) -> Colour {
        // A colour of the scale would say high or low.
        if self.is_flat(ranges) {
            return NEUTRAL;
        }
        let range = ranges.iter().rev().find(|r| value >= r.low && value <= r.high).or(ranges.first());
        range.map_or(EMPTY, |r| r.at(r.share(value)))
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

    fn layout(&self, at: Point, space: Space) -> Layout {
        let (r, c) = (self.rows.len(), self.columns.len());
        let larger = r.max(c);
        let ranges = self.ranges();
        let left = widest(std::slice::from_ref(&self.row_title), LABEL).max(widest(&self.rows, LABEL)) + 10.0;
        let keys = |high| if self.keyed(&ranges) { ranges.iter().map(|r| key_width(r, high)).sum() } else { 4.0 };
        // Labels may be longest at any height.
        let widest_keys = (0..=16).map(|i| keys(KEY_HEIGHTS.0 + 20.0 * f64::from(i))).fold(0.0, f64::max);
        let beside = space.width - left - widest_keys;
        // If the keys would leave too little room for the map, they stand below it.
        let keys_below = space.fixed && self.keyed(&ranges) && beside < LEAST_MAP.min(LEAST_CELL * c as f64);
        let keys = |high| if keys_below { 4.0 } else { keys(high) };
        let room = if keys_below { space.width - left - keys(0.0) } else { beside } / c.max(1) as f64;
        let (low, high): (f64, f64) = match larger {
            0..=2 => (80.0, 50.0),
            3..=4 => (78.0, 44.0),
            5..=12 => (56.0, 38.0),
            13..=24 => (38.0, 28.0),
            _ => (26.0, 22.0),
        };
        let numbered = larger <= if space.fixed { LEGIBLE } else { NUMBERED };
        let numbers = if numbered { self.numbers() } else { Vec::new() };
        let needs = |size: f64| (widest(&numbers, size) + if space.fixed { 4.0 } else { 10.0 }).ceil();
        let (cell, text) = if !numbered {
            let side = (DENSE / larger as f64).floor().clamp(1.0, 14.0).min(if space.fixed { room } else { f64::INFINITY });
            ((side, side), None)
        } else if !space.fixed {
            let size = if larger <= 20 { LABEL } else { 10.5 };
            ((low.max(needs(size)), high), Some(size))
        } else {
            // As large as there is room for, without numbers where they would be illegible.
            let size = SHRUNK.into_iter().find(|size| needs(*size) <= room);
            let wide = size.map_or(room, |size| low.max(needs(size)).min(room));
            ((wide, if size.is_some() { high.min(wide.max(LABEL + 4.0)) } else { wide.min(high) }), size)
        };
        let (wide, high) = (cell.0 * c as f64, cell.1 * r as f64);
        let needed = (left + wide + keys(high)).max(left + widest(std::slice::from_ref(&self.column_title), LABEL));
        let width = if space.fixed { space.width } else { space.width.max(needed) };
        let mut caption = self.caption.clone();
        let blank = self.cells.iter().all(|c| c.number().is_none());
        if blank {
            caption.notes.insert(0, "No values to draw.".to_owned());
        } else if self.is_flat(&ranges) {
            let percent = percent(self.noise.max(LEAST_NOISE));
            let values = range(ranges.iter().flat_map(|r| [r.low, r.high])).unwrap_or_default();
            let text = format!("One colour: {values} {}, which differ by less than {percent}, as by chance.", self.unit);
            caption.notes.insert(0, text);
        } else if let [_, near] = ranges.as_slice() {
            let text = format!("Green: the nearest pairs, up to {} {}, on a scale of their own.", number(near.high), self.unit);
            caption.notes.insert(0, text);
        }
        if self.cells.iter().any(|c| matches!(c, HeatCell::Unreliable(_))) {
            let text = if text.is_some() { "~ and grey: unreliable, not on the scale." } else { "Grey: unreliable, or not measured." };
            caption.notes.insert(0, text.to_owned());
        }
        let above = caption.above(width);
        let map = Area::new(at.0 + left, at.1 + above + 42.0, wide, high);
        let keyed = if self.keyed(&ranges) { key_height(if keys_below { 0.0 } else { high }) } else { 0.0 };
        let (keys_at, ends) =
            if keys_below { ((at.0, map.bottom() + BELOW), high + BELOW + keyed) } else { ((map.right() + GAP, map.y), high.max(keyed)) };
        let drawn = if blank { 0.0 } else { 42.0 + ends + 6.0 };
        let height = above + drawn + caption.below(width);
        Layout { caption, map, cell, text, ranges, size: (width, height), needed, drawn, keys_at, key_height: keyed }
    }

    /// Whether bars explain the colours.
    fn keyed(&self, ranges: &[Range]) -> bool {
        !ranges.is_empty() && !self.is_flat(ranges)
    }

    fn draw_cells(&self, scene: &mut Scene, l: &Layout) {
        let colour = |cell: &HeatCell| match cell {
            HeatCell::Value(v) if v.is_finite() => self.colour(&l.ranges, *v),
            HeatCell::Value(_) | HeatCell::Unreliable(_) | HeatCell::Missing => EMPTY,
            HeatCell::Void => WHITE,
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
            if let (Some(v), Some(from), Some(to)) = (cell.number(), self.rows.get(row), self.columns.get(column)) {
                let title = |title: &str, name: &str| format!("{} {name}", title.trim_end_matches([' ', '↓', '→']));
                let (row, column) = (title(&self.row_title, from), title(&self.column_title, to));
                scene.hint(area, format!("{row}\n{column}\n{}{} {}", cell.sign(), number(v), self.unit));
            }
            if *cell == HeatCell::Void {
                // Not a value: struck out, so that it looks like none of the colours.
                let inner = area.grown(-gap);
                scene.line((inner.x, inner.bottom()), (inner.right(), inner.y), Stroke::new(STRUCK, 1.0));
                continue;
            }
            let (text, ink) = match cell.number() {
                Some(v) => (format!("{}{}", cell.sign(), self.shown(v)), text_on(fill)),
                None => ("—".to_owned(), GREY),
            };
            let at = (area.x + area.width / 2.0, area.y + area.height / 2.0 + size * CAPITALS / 2.0);
            scene.text(Text::new(text, at, size, ink).anchored(Anchor::Middle));
        }
    }

    fn draw_names(&self, scene: &mut Scene, l: &Layout) {
        let map = &l.map;
        let wide = self.columns.iter().map(|n| font::width(n, LABEL, Weight::Regular)).fold(0.0, f64::max) + 6.0;
        // The same names at both sides of a square.
        let (across, down) = (stride(wide, l.cell.0), stride(LABEL + 3.0, l.cell.1));
        let (across, down) = if self.rows.len() == self.columns.len() { (across.max(down), across.max(down)) } else { (across, down) };
        for i in (0..self.columns.len()).step_by(across) {
            let at = (map.x + (i as f64 + 0.5) * l.cell.0, map.y - 7.0);
            scene.text(Text::new(&self.columns[i], at, LABEL, INK).anchored(Anchor::Middle));
        }
        for i in (0..self.rows.len()).step_by(down) {
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
        let (mut x, top) = l.keys_at;
        let high = l.key_height;
        for range in &l.ranges {
            let bar = Area::new(x, top, BAR, high);
            let steps = high.round().max(1.0) as usize;
            // The highest value is at the top.
            let colours = (0..steps).map(|i| range.at(1.0 - (i as f64 + 0.5) / steps as f64)).collect();
            scene.items.push(Item::Pixels { area: bar, columns: 1, rows: steps, colours });
            scene.text(Text::new(self.unit, (x, top - 10.0), LABEL, GREY));
            for (share, label) in key_ticks(range, high) {
                let y = bar.bottom() - share * bar.height;
                scene.line((bar.right(), y), (bar.right() + 4.0, y), Stroke::new(INK, 1.0));
                scene.text(Text::new(label, (bar.right() + 7.0, y + LABEL * CAPITALS / 2.0), LABEL, INK));
            }
            x += key_width(range, high);
            let beside = (x - GAP - 2.0, bar.y + bar.height / 2.0);
            scene.text(Text::new(DIRECTION, beside, LABEL, GREY).anchored(Anchor::Middle).upwards());
        }
    }
}

/// Every how many names fit.
fn stride(needs: f64, step: f64) -> usize {
    ((needs / step).ceil().max(1.0) as usize).next_power_of_two()
}

/// A bar of colours is as high as its map, within reason.
fn key_height(map: f64) -> f64 {
    map.clamp(KEY_HEIGHTS.0, KEY_HEIGHTS.1)
}

fn key_ticks(range: &Range, high: f64) -> Vec<(f64, String)> {
    let (low, top) = range.axis;
    let axis = match range.scale {
        Scale::Linear => Axis::linear("", low, top, ((key_height(high) / 45.0) as usize).max(2)),
        Scale::Logarithmic => Axis::decades("", low, top),
    };
    let labelled = axis.ticks.into_iter().filter_map(|t| Some((range.share(t.value), t.label?)));
    let mut inside: Vec<(f64, String)> = Vec::new();
    for tick in labelled.filter(|(s, _)| (-1e-9..=1.0 + 1e-9).contains(s)) {
        let apart = (LABEL + 3.0) / key_height(high);
        if inside.last().is_none_or(|last| tick.0 - last.0 >= apart) {
            inside.push(tick);
        }
    }
    if inside.len() >= 2 { inside } else { vec![(0.0, number(low)), (1.0, number(top))] }
}

/// Width of a bar with the space before it, its labels, and what its colours mean.
fn key_width(range: &Range, high: f64) -> f64 {
    let labels: Vec<String> = key_ticks(range, high).into_iter().map(|t| t.1).collect();
    GAP + BAR + 8.0 + widest(&labels, LABEL).max(14.0) + 18.0
}

impl Panel for HeatMap {
    fn is_small(&self) -> bool {
        self.layout((0.0, 0.0), Space { width: 0.0, ..Space::default() }).needed <= HALF
    }

    fn caption(&mut self) -> &mut Caption {
        &mut self.caption
    }

    fn size(&self, space: Space) -> (f64, f64) {
        self.layout((0.0, 0.0), space).size
    }

    fn draw(&self, scene: &mut Scene, at: Point, space: Space) {
        let l = self.layout(at, space);
        l.caption.draw_above(scene, at, l.size.0);
        let above = l.caption.above(l.size.0);
        if l.drawn > 0.0 {
            self.draw_cells(scene, &l);
            self.draw_names(scene, &l);
            if self.keyed(&l.ranges) {
                self.draw_keys(scene, &l);
            }
        }
        l.caption.draw_below(scene, (at.0, at.1 + above + l.drawn), l.size.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(values: &[f64], more_is_faster: bool) -> HeatMap {
        let cells = values.iter().map(|v| HeatCell::Value(*v)).collect();
        HeatMap { cells, more_is_faster, rows: vec!["0".into()], columns: vec![String::new(); values.len()], ..HeatMap::default() }
    }

    fn colours(values: &[f64], more_is_faster: bool) -> Vec<Colour> {
        let map = map(values, more_is_faster);
        let ranges = map.ranges();
        values.iter().map(|v| map.colour(&ranges, *v)).collect()
    }

    /// How different two colours are, from 0 to 765.
    fn apart(a: Colour, b: Colour) -> i32 {
        a.iter().zip(b).map(|(x, y)| (i32::from(*x) - i32::from(y)).abs()).sum()
    }

    #[test]
    fn small_differences_are_small_differences_of_colour() {
        let one = colours(&[150.2, 151.0, 152.1], false);
        assert!(one.iter().all(|c| *c == NEUTRAL), "within noise: {one:?}");
        assert!(colours(&[150.0, 155.4], false).iter().all(|c| *c != NEUTRAL));
        let near = colours(&[150.2, 155.4], false);
        let far = colours(&[100.0, 200.0], false);
        assert!(apart(near[0], near[1]) < 150 && apart(far[0], far[1]) > 400, "{near:?} {far:?}");
        let noisy = HeatMap { noise: 0.3, ..map(&[150.0, 180.0], false) };
        assert!(noisy.is_flat(&noisy.ranges()) && !map(&[150.0, 180.0], false).is_flat(&noisy.ranges()));
    }

    #[test]
    fn darker_is_slower_whatever_the_quantity() {
        let light = |c: Colour| c.iter().map(|v| u32::from(*v)).sum::<u32>();
        let latency = colours(&[100.0, 140.0, 200.0], false);
        let bandwidth = colours(&[100.0, 140.0, 200.0], true);
        assert!(light(latency[0]) > light(latency[1]) && light(latency[1]) > light(latency[2]));
        assert!(light(bandwidth[0]) < light(bandwidth[1]) && light(bandwidth[1]) < light(bandwidth[2]));
    }

    #[test]
    fn unreliable_cells_have_a_sign_and_no_colour_of_the_scale() {
        let reliable = map(&[100.0, 140.0, 200.0], false);
        let mut with_one = reliable.clone();
        with_one.cells.push(HeatCell::Unreliable(950.0));
        with_one.columns.push(String::new());
        assert_eq!(with_one.ranges(), reliable.ranges());
        assert_eq!(with_one.numbers(), ["100.0", "140.0", "200.0", "~950.0"]);
        let mut scene = Scene::new("map");
        with_one.draw(&mut scene, (0.0, 0.0), Space::default());
        assert!(scene.texts().iter().any(|(text, _)| text.starts_with("~950")), "{:?}", scene.texts());
    }

    #[test]
    fn wide_spans_are_logarithmic() {
        let range = Range::new(10.0, 1000.0, Map::Main, false);
        assert!((range.share(100.0) - 0.5).abs() < 1e-9);
        let narrow = Range::new(100.0, 300.0, Map::Main, false);
        assert!((narrow.share(200.0) - 0.5).abs() < 1e-9);
        let labels: Vec<String> = key_ticks(&range, 300.0).into_iter().map(|t| t.1).collect();
        assert_eq!(labels, ["10", "20", "50", "100", "200", "500", "1000"]);
    }
}
