//! Columns of tables, and what stands in their cells.

use memgauge_model::result::{Measurement, QualityLevel};
use unicode_width::UnicodeWidthStr;

use crate::number::{DASH, doubted, half_width, number, value_of};

/// What stands in a cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Blank,
    Text(String),
    Value(Value),
    /// A sketch of a number, which figures draw better, and what stands after it.
    Bar {
        bar: String,
        after: String,
    },
}

/// A number and what stands beside it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Value {
    /// Digits, or a dash.
    pub(crate) number: String,
    /// `±0.4` or `(16.0–44.2)`, or empty.
    pub(crate) half: String,
    /// The firmware's claim, or empty.
    pub(crate) claim: String,
    /// Numbers of footnotes, or empty.
    pub(crate) marks: String,
}

impl Value {
    /// The number with its interval; a dash without one. An unreliable one has a sign.
    pub(crate) fn of(m: &Measurement) -> Self {
        let Some(value) = value_of(&m.estimate) else { return Self { number: DASH.to_owned(), ..Self::default() } };
        let number = doubted(m.quality.level == QualityLevel::Unreliable, value);
        Self { number, half: half_width(&m.estimate), ..Self::default() }
    }

    /// Columns before the point, and from it on.
    fn widths(&self) -> (usize, usize) {
        let whole = self.number.split('.').next().map_or(0, width);
        (whole, width(&self.number) - whole)
    }
}

/// A number with the digits that its size asks for.
impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::number(number(value))
    }
}

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

/// A text, or nothing where an option is empty.
impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Blank, Into::into)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Cell {
    /// A number without interval.
    pub(crate) fn number(number: String) -> Self {
        Self::Value(Value { number, ..Value::default() })
    }
    /// A bar of eighths of blocks, which fills `share` (0 to 1) of `columns`.
    pub(crate) fn bar(share: f64, columns: usize) -> Self {
        const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        let bar = if share.is_finite() {
            let eighths = ((share.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize).max(1);
            format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
        } else {
            String::new()
        };
        Self::Bar { bar, after: String::new() }
    }
    /// A bar with a name after it.
    pub(crate) fn named_bar(share: Option<f64>, columns: usize, name: Option<&str>) -> Self {
        match Self::bar(share.unwrap_or(f64::NAN), columns) {
            Self::Bar { bar, .. } => Self::Bar { bar, after: name.map(|name| format!("◂ {name}")).unwrap_or_default() },
            other => other,
        }
    }
    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::Blank => true,
            Self::Text(t) => t.is_empty(),
            Self::Bar { bar, after } => bar.is_empty() && after.is_empty(),
            // A dash says that something was not measured.
            Self::Value(_) => false,
        }
    }
}

/// A column.
pub(crate) struct Column {
    pub(crate) head: String,
    /// Numbers, aligned to the right.
    pub(crate) right: bool,
    pub(super) optional: bool,
    pub(crate) cells: Vec<Cell>,
    /// Lines that stand below the table where the column is not shown.
    pub(super) instead: Vec<String>,
}

impl Column {
    /// A column of texts, aligned to the left.
    pub(crate) fn text(head: impl Into<String>, cells: impl IntoIterator<Item = impl Into<Cell>>) -> Self {
        let cells = cells.into_iter().map(Into::into).collect();
        Self { head: head.into(), right: false, optional: false, cells, instead: Vec::new() }
    }
    /// A column of numbers, aligned to the right.
    pub(crate) fn numbers(head: impl Into<String>, cells: impl IntoIterator<Item = impl Into<Cell>>) -> Self {
        Self { right: true, ..Self::text(head, cells) }
    }
    /// May be left out where the page is narrow.
    pub(crate) fn optional(self) -> Self {
        Self { optional: true, ..self }
    }
    /// The same, with these lines below the table instead.
    pub(crate) fn or_lines(self, instead: Vec<String>) -> Self {
        Self { optional: true, instead, ..self }
    }
    /// Whether any cell has something.
    pub(super) fn has_content(&self) -> bool {
        self.cells.iter().any(|cell| !cell.is_blank())
    }
    /// Left out unless this holds.
    pub(crate) fn only_if(mut self, shown: bool) -> Self {
        self.cells.retain(|_| shown);
        self
    }
}

/// How many columns the parts of a column's numbers take, so that those of a kind are below each other.
#[derive(Default)]
pub(crate) struct Alignment {
    pub(crate) whole: usize,
    pub(crate) fraction: usize,
    half: usize,
    pub(crate) tail: usize,
}

impl Alignment {
    pub(crate) fn of(cells: &[Cell]) -> Self {
        let values = || cells.iter().filter_map(|cell| if let Cell::Value(value) = cell { Some(value) } else { None });
        let mut all = Self::default();
        for value in values() {
            let (whole, fraction) = value.widths();
            all.whole = all.whole.max(whole);
            all.fraction = all.fraction.max(fraction);
            all.half = all.half.max(if value.half.is_empty() { 0 } else { width(&value.half) + 1 });
        }
        all.tail = values().map(|value| width(&all.tail(value))).max().unwrap_or(0);
        all
    }

    /// Blanks before a number and behind it that bring the points below each other.
    pub(crate) fn blanks(&self, value: &Value) -> (usize, usize) {
        let (whole, fraction) = value.widths();
        (self.whole - whole, self.fraction - fraction)
    }

    /// The text after a number, its parts in columns of their own.
    pub(crate) fn tail(&self, Value { half, claim, marks, .. }: &Value) -> String {
        let mut tail = if half.is_empty() { String::new() } else { format!(" {half}") };
        if !claim.is_empty() {
            tail = format!("{} ({claim})", padded(&tail, self.half, false));
        }
        if !marks.is_empty() {
            tail = format!("{tail} {marks}");
        }
        tail
    }
}

/// Columns that a text takes in a terminal.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// A text with blanks before or behind it, so that it is at least `columns` wide.
pub(crate) fn padded(text: &str, columns: usize, right: bool) -> String {
    let blanks = " ".repeat(columns.saturating_sub(width(text)));
    if right { format!("{blanks}{text}") } else { format!("{text}{blanks}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        let bar = |share, columns| if let Cell::Bar { bar, .. } = Cell::bar(share, columns) { bar } else { String::new() };
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.0, 4), "▏");
        assert_eq!(bar(9.0, 2), "██");
        assert!(Cell::bar(f64::NAN, 2).is_blank());
    }
}
