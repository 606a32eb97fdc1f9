//! Ratios of two sets of runs with their intervals, a row for each number.

use memgauge_analysis::comparison::{CellComparison, Comparison, ComparisonVerdict};
use memgauge_model::wording::number_of;
use memgauge_model::words::Verb;

use super::axis::Axis;
use super::font::{self, CAPITALS, Weight};
use super::frame::{Caption, LABEL, Panel, Space, shorten};
use super::layout::Figure;
use super::palette::{BAND, Colour, GREY, GRID, INK, series};
use super::scene::{Anchor, Area, Point, Scene, Stroke, Text};
use crate::appearance::{FigureOptions, Picture};
use crate::format::RenderError;
use crate::number::percent;
use crate::text::comparison::{change, place, what};

/// Height of a row.
const ROW: f64 = 20.0;
/// In a narrower panel, names stand above their rows, which are so high.
const NARROW: f64 = 520.0;
const NARROW_ROW: f64 = 34.0;
/// Width for a number below the axis.
const TICK: f64 = 36.0;
/// Room below the rows for the axis.
const AXIS: f64 = 44.0;
/// The widest name.
const NAMES: f64 = 390.0;
/// Rows of a panel; more are on further ones.
const ROWS: usize = 40;
/// The axis goes no further than this many times the largest change, ends of intervals not counted. Intervals beyond that are cut.
const REACH: f64 = 1.5;
/// Radius of points.
const RADIUS: f64 = 3.6;

/// A figure of a comparison: what changed, the largest changes first, with their intervals and the margin.
///
/// # Errors
/// When there is nothing to draw, or it is too large for a bitmap.
pub(crate) fn comparison_figure(comparison: &Comparison, picture: Picture, options: &FigureOptions) -> Result<Vec<u8>, RenderError> {
    if comparison.cells.is_empty() {
        return Err(RenderError::NothingToDraw("the sides have no number in common".to_owned()));
    }
    let runs = |n: usize| number_of(n as u64, "run", "runs");
    let (before, after) = (&comparison.before, &comparison.after);
    let source = format!("before: {} ({}) · after: {} ({})", before.name, runs(before.runs.len()), after.name, runs(after.runs.len()));
    Figure::new(&Verb::Compare.to_string(), panels(comparison), vec![source]).drawn_as(options.clone()).write(picture)
}

/// The panels of that figure.
pub(crate) fn panels(comparison: &Comparison) -> Vec<Box<dyn Panel>> {
    let mut cells: Vec<&CellComparison> = comparison.cells.iter().collect();
    cells.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    let parts = cells.len().div_ceil(ROWS);
    let panel = |(part, cells): (usize, &[&CellComparison])| {
        let of = if parts > 1 { format!(" ({} of {parts})", part + 1) } else { String::new() };
        Box::new(Ratios::new(comparison, cells, &of)) as Box<dyn Panel>
    };
    cells.chunks(ROWS).enumerate().map(panel).collect()
}

struct Ratio {
    name: String,
    value: f64,
    interval: Option<(f64, f64)>,
    colour: Colour,
    label: String,
}

struct Ratios {
    caption: Caption,
    margin: f64,
    /// The range of the axis, the same in all panels.
    span: (f64, f64),
    /// The widest name and the widest label of all panels, so that their axes begin and end alike.
    widest: (f64, f64),
    rows: Vec<Ratio>,
}

/// A row's name.
fn name(cell: &CellComparison) -> String {
    format!("{}, {}", what(cell), place(&cell.at))
}

/// What stands at the end of a row.
fn label(cell: &CellComparison) -> String {
    format!("{} {}", change(cell.ratio), word(cell.verdict))
}

/// Blue, orange and grey: more, less, not known.
fn colour(verdict: ComparisonVerdict) -> Colour {
    match verdict {
        ComparisonVerdict::Better => series(0),
        ComparisonVerdict::Worse => series(1),
        ComparisonVerdict::Same => INK,
        ComparisonVerdict::Inconclusive => GREY,
    }
}

const fn word(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Better => "better",
        ComparisonVerdict::Worse => "worse",
        ComparisonVerdict::Same => "the same",
        ComparisonVerdict::Inconclusive => "inconclusive",
    }
}

/// Every change and the margin, and intervals within reason.
fn span(comparison: &Comparison) -> (f64, f64) {
    let values = comparison.cells.iter().map(|c| (c.ratio - 1.0).abs()).fold(1.5 * comparison.margin, f64::max);
    let clip = |ratio: f64| (ratio - 1.0).clamp(-REACH * values, REACH * values);
    let ends = comparison.cells.iter().flat_map(|c| [c.ratio_low.unwrap_or(c.ratio), c.ratio_high.unwrap_or(c.ratio)]).map(clip);
    ends.fold((-comparison.margin, comparison.margin), |(low, high), v| (low.min(v), high.max(v)))
}

impl Ratios {
    fn new(comparison: &Comparison, cells: &[&CellComparison], part: &str) -> Self {
        let rows = cells.iter().map(|cell| Ratio {
            name: name(cell),
            value: cell.ratio - 1.0,
            interval: cell.ratio_low.zip(cell.ratio_high).map(|(low, high)| (low - 1.0, high - 1.0)),
            colour: colour(cell.verdict),
            label: label(cell),
        });
        let widest = |text: fn(&CellComparison) -> String| {
            comparison.cells.iter().map(|cell| font::width(&text(cell), LABEL, Weight::Regular)).fold(0.0, f64::max)
        };
        let about = format!("after over before, with the 95 % interval; shaded: the margin, ±{}", percent(comparison.margin));
        Self {
            caption: Caption::new(format!("What changed{part}"), about),
            margin: comparison.margin,
            span: span(comparison),
            widest: (widest(name), widest(label)),
            rows: rows.collect(),
        }
    }

    /// Where the axis begins and ends in a panel of this width.
    fn ends(&self, width: f64) -> (f64, f64) {
        let names = if width < NARROW { TICK / 3.0 } else { self.widest.0.min(NAMES).min(0.52 * width) + 14.0 };
        (names, width - self.widest.1 - 14.0)
    }

    const fn row(width: f64) -> f64 {
        if width < NARROW { NARROW_ROW } else { ROW }
    }

    fn axis(&self, width: f64) -> Axis {
        let (left, right) = self.ends(width);
        let ticks = ((right - left) / TICK).clamp(3.0, 9.0) as usize;
        Axis::linear("Change (%)", 100.0 * self.span.0, 100.0 * self.span.1, ticks)
    }

    fn is_cut(&self, width: f64) -> bool {
        let axis = self.axis(width);
        self.rows.iter().filter_map(|r| r.interval).any(|(low, high)| 100.0 * low < axis.low || 100.0 * high > axis.high)
    }

    fn with_notes(&self, width: f64) -> Caption {
        let mut caption = self.caption.clone();
        if self.is_cut(width) {
            caption.notes.push("Intervals that end at the edge reach beyond it.".to_owned());
        }
        caption
    }
}

impl Panel for Ratios {
    fn caption(&mut self) -> &mut Caption {
        &mut self.caption
    }

    fn size(&self, space: Space) -> (f64, f64) {
        let width = space.width;
        (width, self.caption.above(width) + Self::row(width) * self.rows.len() as f64 + AXIS + self.with_notes(width).below(width))
    }

    fn draw(&self, scene: &mut Scene, at: Point, space: Space) {
        let width = space.width;
        self.caption.draw_above(scene, at, width);
        let top = at.1 + self.caption.above(width);
        let (narrow, row_height) = (width < NARROW, Self::row(width));
        let bottom = top + row_height * self.rows.len() as f64;
        let ends = self.ends(width);
        let (left, right) = (at.0 + ends.0, at.0 + ends.1);
        let axis = self.axis(width);
        let along = |share: f64| left + axis.share(100.0 * share).clamp(0.0, 1.0) * (right - left);
        let margin = (along(-self.margin), along(self.margin));
        // Lines do not cross names.
        let below_name = |i: usize| (top + row_height * (i + 1) as f64 - ROW, top + row_height * (i + 1) as f64);
        let strips: Vec<(f64, f64)> = if narrow { (0..self.rows.len()).map(below_name).collect() } else { vec![(top, bottom)] };
        for &(from, to) in &strips {
            scene.rect(Area { x: margin.0, y: from, width: margin.1 - margin.0, height: to - from }, BAND);
        }
        for tick in &axis.ticks {
            let x = along(tick.value / 100.0);
            let zero = tick.value.abs() < 1e-9;
            for &(from, to) in &strips {
                scene.line((x, from), (x, to), Stroke::new(if zero { INK } else { GRID }, 1.0));
            }
            if let Some(label) = &tick.label {
                scene.text(Text::new(label, (x, bottom + 16.0), LABEL, GREY).anchored(Anchor::Middle));
            }
        }
        scene.text(Text::new(&axis.title, ((left + right) / 2.0, bottom + 36.0), LABEL, INK).anchored(Anchor::Middle));
        for (i, row) in self.rows.iter().enumerate() {
            let begin = top + row_height * i as f64;
            let middle = begin + row_height - ROW / 2.0;
            let base = middle + LABEL * CAPITALS / 2.0;
            let (room, name_base) = if narrow { (width, base - LABEL - 3.0) } else { (ends.0 - 14.0, base) };
            scene.text(Text::new(shorten(&row.name, room, LABEL), (at.0, name_base), LABEL, INK));
            if let Some((low, high)) = row.interval {
                scene.line((along(low), middle), (along(high), middle), Stroke::new(row.colour, 1.6));
            }
            scene.dot((along(row.value), middle), RADIUS, row.colour, None);
            scene.text(Text::new(&row.label, (right + 14.0, base), LABEL, INK));
        }
    }
}
