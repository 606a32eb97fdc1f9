//! Horizontal bars with their values beside them.

use memgauge_model::result::{Measurement, QualityLevel};

use super::font::{self, CAPITALS, Weight};
use super::frame::{Caption, LABEL, Panel, Space, shorten};
use super::palette::{Colour, GREY, GRID, INK, text_on};
use super::scene::{Anchor, Area, Point, Scene, Stroke, Text};
use super::source::{interval, is_degraded};
use crate::limit::limit_of_program;
use crate::number::{half_width, number, value_of};

/// Height of a bar, and of the space between rows.
const BAR: f64 = 17.0;
const GAP: f64 = 8.0;
/// Width of the columns of names and details, at most.
const NAMES: f64 = 150.0;
const DETAILS: f64 = 260.0;
/// In a narrower panel, names stand above their bars.
const NARROW: f64 = 520.0;
/// Intervals stretch the axis to this many times the highest value and no further: one wild interval must not flatten all bars.
const REACH: f64 = 1.25;

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    pub(crate) colour: Colour,
    /// `None`: "not measured" stands in its place.
    pub(crate) value: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
    /// After the value: `±0.4` or `(16.0–44.2)`.
    pub(crate) after: String,
    /// Degraded or unreliable; `None` if it is good.
    pub(crate) doubt: Option<QualityLevel>,
    /// The machine's limit, in the bar's unit.
    pub(crate) limit: Option<f64>,
}

impl Bar {
    /// A measurement as a bar; "not measured" where there is none.
    pub(crate) fn for_measurement(m: Option<&Measurement>, colour: Colour) -> Self {
        let value = m.and_then(|m| value_of(&m.estimate));
        // An interval too wide for any memory is not worth printing.
        let half = |m: &Measurement| Some(half_width(&m.estimate)).filter(|h| h.chars().count() <= 16).unwrap_or_default();
        let after = m.map(half).unwrap_or_default();
        Self {
            colour,
            value,
            interval: m.and_then(interval),
            after,
            doubt: m.filter(|m| is_degraded(m)).map(|m| m.quality.level),
            limit: m.and_then(limit_of_program),
        }
    }
}

/// Bars of the same thing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BarRow {
    pub(crate) name: String,
    pub(crate) detail: String,
    pub(crate) bars: Vec<Bar>,
}

/// The bars.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bars {
    pub(crate) caption: Caption,
    pub(crate) unit: &'static str,
    pub(crate) rows: Vec<BarRow>,
    /// Named above the limit, when all bars that have one share it.
    pub(crate) limit_name: Option<String>,
}

impl Bars {
    fn columns(&self) -> (f64, f64) {
        let widest = |text: fn(&BarRow) -> &str, max: f64| {
            self.rows.iter().map(|r| font::width(text(r), LABEL, Weight::Regular)).fold(0.0, f64::max).min(max)
        };
        let (names, details) = (widest(|r| &r.name, NAMES), widest(|r| &r.detail, DETAILS));
        (names, if details > 0.0 { details + 14.0 } else { 0.0 })
    }

    fn label(&self, bar: &Bar) -> (String, String) {
        match bar.value {
            Some(v) => {
                let doubt = match bar.doubt {
                    Some(QualityLevel::Unreliable) => "(unreliable)",
                    Some(_) => "(degraded)",
                    None => "",
                };
                let parts = [bar.after.as_str(), self.unit, doubt];
                (number(v), parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(" "))
            }
            None => ("not measured".to_owned(), String::new()),
        }
    }

    fn has_values(&self) -> bool {
        self.rows.iter().flat_map(|r| &r.bars).any(|b| b.value.is_some())
    }

    fn height(&self, width: f64) -> f64 {
        if !self.has_values() {
            return 0.0;
        }
        let named = if self.common_limit().is_some() { 20.0 } else { 0.0 };
        let title = if self.named_above(width) { BAR } else { 0.0 };
        named + self.rows.iter().map(|r| title + r.bars.len() as f64 * BAR + GAP).sum::<f64>()
    }

    /// Whether names stand above their bars, because beside them they would leave no room.
    fn named_above(&self, width: f64) -> bool {
        width < NARROW && !self.rows.is_empty()
    }

    /// The end of the axis. An interval far above all values ends there, with an arrow.
    fn highest(&self) -> f64 {
        let all = || self.rows.iter().flat_map(|r| &r.bars);
        let values = all().flat_map(|b| [b.value, b.limit]).flatten().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let ends = all().filter_map(|b| b.interval).map(|i| i.1.min(values * REACH));
        ends.filter(|v| v.is_finite()).fold(values, f64::max)
    }

    /// The caption with what a reader must know of clipped intervals.
    fn with_notes(&self) -> Caption {
        let highest = self.highest();
        let clipped = self.rows.iter().flat_map(|r| &r.bars).any(|b| b.value.is_some() && b.interval.is_some_and(|i| i.1 > highest));
        let mut notes = self.caption.notes.clone();
        if !self.has_values() {
            notes.insert(0, "No values to draw.".to_owned());
        } else if clipped {
            notes.push("Intervals with an arrow reach beyond the axis.".to_owned());
        }
        Caption { notes, ..self.caption.clone() }
    }

    /// The limit, when it has a name and all bars that have one have the same.
    fn common_limit(&self) -> Option<f64> {
        self.limit_name.as_ref()?;
        let mut limits = self.rows.iter().flat_map(|r| &r.bars).filter_map(|b| b.limit);
        let first = limits.next()?;
        limits.all(|l| l == first).then_some(first)
    }
}

/// A row's name and detail: above its bars, or to the left of their middle.
fn draw_names(scene: &mut Scene, row: &BarRow, (x, y): Point, (width, names, above): (f64, f64, bool)) {
    let high = if above { BAR } else { row.bars.len() as f64 * BAR };
    let base = y + high / 2.0 + LABEL * CAPITALS / 2.0;
    let room = if above { width / 2.0 } else { names };
    let name = Text::new(shorten(&row.name, room, LABEL), (x, base), LABEL, INK);
    let (beside, room) = if above { (name.width + 10.0, width - name.width - 10.0) } else { (names + 14.0, DETAILS) };
    scene.text(name);
    scene.text(Text::new(shorten(&row.detail, room, LABEL), (x + beside, base), LABEL, GREY));
}

impl Panel for Bars {
    fn caption(&mut self) -> &mut Caption {
        &mut self.caption
    }

    fn size(&self, space: Space) -> (f64, f64) {
        let width = space.width;
        (width, self.caption.above(width) + self.height(width) + self.with_notes().below(width))
    }

    fn draw(&self, scene: &mut Scene, at: Point, space: Space) {
        let width = space.width;
        self.caption.draw_above(scene, at, width);
        if !self.has_values() {
            self.with_notes().draw_below(scene, (at.0, at.1 + self.caption.above(width)), width);
            return;
        }
        let (names, details) = self.columns();
        let above = self.named_above(width);
        let left = at.0 + if above { 1.0 } else { names + details + 12.0 };
        let all = || self.rows.iter().flat_map(|r| &r.bars);
        let widest = |(value, after): (String, String)| font::width(&format!("{value} {after}"), LABEL, Weight::Regular);
        let room = all().map(|b| widest(self.label(b))).fold(0.0, f64::max) + 22.0;
        let full = (at.0 + width - room - left).max(60.0);
        let highest = self.highest();
        let along = |v: f64| left + if highest > 0.0 { (v / highest).clamp(0.0, 1.0) * full } else { 0.0 };
        let mut y = at.1 + self.caption.above(width);
        if let (Some(limit), Some(name)) = (self.common_limit(), &self.limit_name) {
            let text = Text::new(name, (along(limit), y + 12.0), LABEL, GREY).anchored(Anchor::End);
            let over = (at.0 - text.area().x).max(0.0);
            scene.text(Text { at: (text.at.0 + over, text.at.1), ..text });
            y += 20.0;
        }
        let top = y - 2.0;
        for row in &self.rows {
            let high = row.bars.len() as f64 * BAR;
            draw_names(scene, row, (at.0, y), (width, names, above));
            if above {
                y += BAR;
            }
            // One line through all bars that have the same limit.
            let mut bars = 0;
            for same in row.bars.chunk_by(|a, b| a.limit == b.limit) {
                let from = y + bars as f64 * BAR - if bars == 0 && !above { GAP / 2.0 } else { 0.0 };
                bars += same.len();
                let to = y + bars as f64 * BAR + if bars == row.bars.len() && !above { GAP / 2.0 } else { 0.0 };
                if let Some(x) = same.first().and_then(|b| b.limit).map(along) {
                    scene.line((x, from), (x, to), Stroke::new(GREY, 1.0).dashed());
                }
            }
            if above {
                scene.line((left, y), (left, y + high), Stroke::new(INK, 1.0));
            }
            for bar in &row.bars {
                self.draw_bar(scene, bar, y, (left, &along), bar.limit.map(along));
                y += BAR;
            }
            y += GAP;
        }
        if !above {
            scene.line((left, top), (left, y - GAP + 2.0), Stroke::new(INK, 1.0));
        }
        self.with_notes().draw_below(scene, (at.0, y), width);
    }
}

impl Bars {
    fn draw_bar(&self, scene: &mut Scene, bar: &Bar, y: f64, (left, along): (f64, &dyn Fn(f64) -> f64), limit: Option<f64>) {
        let base = y + BAR / 2.0 + LABEL * CAPITALS / 2.0;
        let (value, after) = self.label(bar);
        let mut end = left;
        if let Some(v) = bar.value {
            end = along(v);
            scene.rect(Area::new(left, y + 1.5, (end - left).max(1.0), BAR - 3.0), bar.colour);
        }
        let right = end;
        if let Some((low, high)) = bar.interval.filter(|_| bar.value.is_some()) {
            let clipped = high > self.highest();
            let (low, high) = (along(low), along(high));
            // A shorter whisker would be a blot at the end of the bar.
            if high - low >= 6.0 {
                let ink = Stroke::new(if text_on(bar.colour) == INK { INK } else { GRID }, 1.25);
                let middle = y + BAR / 2.0;
                scene.line((low, middle), (end, middle), ink);
                scene.line((low, middle - 3.0), (low, middle + 3.0), ink);
                scene.line((end, middle), (high, middle), Stroke::new(INK, 1.25));
                let back = if clipped { high - 5.0 } else { high };
                scene.path(vec![(back, middle - 3.0), (high, middle), (back, middle + 3.0)], Stroke::new(INK, 1.25));
                end = end.max(high);
            }
        }
        let ink = if bar.value.is_some() { INK } else { GREY };
        let mut number = Text::new(value, (end + 6.0, base), LABEL, ink);
        let more = Text::new(after, (0.0, base), LABEL, GREY);
        let wide = number.width + 4.0 + more.width;
        if let Some(x) = limit.filter(|x| end < *x + 1.0 && end + 12.0 + wide > *x) {
            if right - left > wide + 12.0 {
                // Inside the bar, because the limit stands where the number would.
                let inside = text_on(bar.colour);
                number = Text { at: (end.min(right) - 6.0 - wide - if end > right { 8.0 } else { 0.0 }, base), colour: inside, ..number };
                let more_at = (number.at.0 + number.width + 4.0, base);
                scene.text(number);
                scene.text(Text { at: more_at, colour: inside, ..more });
                return;
            }
            number.at.0 = x + 6.0;
        }
        let more_at = (number.at.0 + number.width + 4.0, base);
        scene.text(number);
        scene.text(Text { at: more_at, ..more });
    }
}
