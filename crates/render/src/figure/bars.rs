//! Horizontal bars with their values beside them.

use memgauge_core::result::{Measurement, QualityLevel};

use super::font::{self, CAPITALS, Weight};
use super::frame::{Caption, LABEL, Panel, WIDTH, shorten};
use super::limit::limit_of_program;
use super::palette::{Colour, GREY, GRID, INK, text_on};
use super::scene::{Anchor, Area, Point, Scene, Stroke, Text};
use super::source::{interval, is_degraded};
use crate::number::{half_width, number, value_of};

/// Height of a bar, and of the space between rows.
const BAR: f64 = 17.0;
const GAP: f64 = 8.0;
/// Width of the columns of names and details, at most.
const NAMES: f64 = 150.0;
const DETAILS: f64 = 260.0;

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    pub(crate) colour: Colour,
    /// `None`: "not measured" stands in its place.
    pub(crate) value: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
    /// After the value: `±0.4` or `(16.0–44.2)`.
    pub(crate) after: String,
    /// How far not to trust it: degraded, unreliable; `None` where it is good.
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
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) detail: String,
    pub(crate) bars: Vec<Bar>,
}

/// The bars.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bars {
    pub(crate) caption: Caption,
    pub(crate) unit: &'static str,
    pub(crate) rows: Vec<Row>,
    /// Named above the limit, when all bars that have one share it.
    pub(crate) limit_name: Option<String>,
}

impl Bars {
    fn columns(&self) -> (f64, f64) {
        let widest = |text: fn(&Row) -> &str, max: f64| {
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

    fn height(&self) -> f64 {
        let named = if self.common_limit().is_some() { 20.0 } else { 0.0 };
        named + self.rows.iter().map(|r| r.bars.len() as f64 * BAR + GAP).sum::<f64>()
    }

    /// The limit, when it has a name and all bars that have one have the same.
    fn common_limit(&self) -> Option<f64> {
        self.limit_name.as_ref()?;
        let mut limits = self.rows.iter().flat_map(|r| &r.bars).filter_map(|b| b.limit);
        let first = limits.next()?;
        limits.all(|l| l == first).then_some(first)
    }
}

impl Panel for Bars {
    fn size(&self) -> (f64, f64) {
        (WIDTH, self.caption.above(WIDTH) + self.height() + self.caption.below(WIDTH))
    }

    fn draw(&self, scene: &mut Scene, at: Point) {
        self.caption.draw_above(scene, at, WIDTH);
        let (names, details) = self.columns();
        let left = at.0 + names + details + 12.0;
        let all = || self.rows.iter().flat_map(|r| &r.bars);
        let widest = |(value, after): (String, String)| font::width(&format!("{value} {after}"), LABEL, Weight::Regular);
        let room = all().map(|b| widest(self.label(b))).fold(0.0, f64::max) + 22.0;
        let full = (at.0 + WIDTH - room - left).max(60.0);
        let ends = all().flat_map(|b| [b.value, b.interval.map(|i| i.1), b.limit]);
        let highest = ends.flatten().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let along = |v: f64| left + if highest > 0.0 { (v / highest).clamp(0.0, 1.0) * full } else { 0.0 };
        let mut y = at.1 + self.caption.above(WIDTH);
        if let (Some(limit), Some(name)) = (self.common_limit(), &self.limit_name) {
            let text = Text::new(name, (along(limit), y + 12.0), LABEL, GREY).anchored(Anchor::End);
            let over = (at.0 - text.area().x).max(0.0);
            scene.text(Text { at: (text.at.0 + over, text.at.1), ..text });
            y += 20.0;
        }
        let top = y - 2.0;
        for row in &self.rows {
            let high = row.bars.len() as f64 * BAR;
            let base = y + high / 2.0 + LABEL * CAPITALS / 2.0;
            scene.text(Text::new(shorten(&row.name, names, LABEL), (at.0, base), LABEL, INK));
            scene.text(Text::new(shorten(&row.detail, DETAILS, LABEL), (at.0 + names + 14.0, base), LABEL, GREY));
            // One line through all bars that have the same limit.
            let mut bars = 0;
            for same in row.bars.chunk_by(|a, b| a.limit == b.limit) {
                let from = y + bars as f64 * BAR - if bars == 0 { GAP / 2.0 } else { 0.0 };
                bars += same.len();
                let to = y + bars as f64 * BAR + if bars == row.bars.len() { GAP / 2.0 } else { 0.0 };
                if let Some(x) = same.first().and_then(|b| b.limit).map(along) {
                    scene.line((x, from), (x, to), Stroke::new(GREY, 1.0).dashed());
                }
            }
            for bar in &row.bars {
                self.draw_bar(scene, bar, y, (left, &along), bar.limit.map(along));
                y += BAR;
            }
            y += GAP;
        }
        scene.line((left, top), (left, y - GAP + 2.0), Stroke::new(INK, 1.0));
        self.caption.draw_below(scene, (at.0, y), WIDTH);
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
        if let Some((low, high)) = bar.interval {
            let (low, high) = (along(low), along(high));
            // A shorter whisker would be a blot at the end of the bar.
            if high - low >= 6.0 {
                let ink = Stroke::new(if text_on(bar.colour) == INK { INK } else { GRID }, 1.25);
                let middle = y + BAR / 2.0;
                scene.line((low, middle), (end, middle), ink);
                scene.line((low, middle - 3.0), (low, middle + 3.0), ink);
                scene.line((end, middle), (high, middle), Stroke::new(INK, 1.25));
                scene.line((high, middle - 3.0), (high, middle + 3.0), Stroke::new(INK, 1.25));
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
