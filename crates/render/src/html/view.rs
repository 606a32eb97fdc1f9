//! What templates show: blocks of the text, as elements of a page.

use crate::text::block::{Block, Style};
use crate::text::column::{Cell, Column};

/// An element of a page.
pub(super) enum View {
    /// A sentence or more, after a sign that may be empty.
    Text {
        class: &'static str,
        sign: String,
        text: String,
        advice: Option<String>,
    },
    Facts(Vec<(String, String)>),
    Commands(Vec<String>),
    Items {
        class: &'static str,
        text: String,
    },
    Table(Table),
}

/// A table.
pub(super) struct Table {
    /// What it is called where headings are not seen: the heading above it.
    pub(super) name: String,
    pub(super) heads: Vec<Head>,
    pub(super) rows: Vec<Vec<Entry>>,
    /// Its script may sort it and search in it.
    pub(super) sorted: bool,
    pub(super) searched: bool,
    /// On a phone each row is a few lines.
    pub(super) stacked: bool,
}

impl Table {
    /// The same with this name.
    pub(super) fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// The rows from this one on, as a table of their own.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let rows = self.rows.split_off(at.min(self.rows.len()));
        let (name, heads) = (format!("{}, the rest", self.name), self.heads.clone());
        Self { name, heads, sorted: rows.len() >= SORTED, rows, ..*self }
    }
}

/// The head of a column.
#[derive(Clone)]
pub(super) struct Head {
    pub(super) text: String,
    /// `n` for numbers.
    pub(super) class: &'static str,
}

/// A cell of a table.
#[derive(Default)]
pub(super) struct Entry {
    /// `n` for numbers, which are aligned at the point.
    pub(super) class: &'static str,
    /// It names its row.
    pub(super) head: bool,
    pub(super) text: String,
    /// After a number: its interval, what firmware claims, marks of footnotes.
    pub(super) after: String,
}

const fn class(style: Style) -> &'static str {
    match style {
        Style::Plain | Style::Bold => "",
        Style::Dim | Style::Detail => "dim",
        Style::Warning => "warning",
        Style::Error => "error",
    }
}

/// Characters that draw a bar or a sketch.
fn is_drawn(text: &str) -> bool {
    text.contains(|c| ('▁'..='▏').contains(&c))
}

/// Adds a block to what is there. Facts and commands in a row are one list; advice belongs to the sentence before it. Headings and parts are
/// not elements of their own.
pub(super) fn add(views: &mut Vec<View>, block: Block) {
    match (block, views.last_mut()) {
        (Block::Part(_) | Block::Heading { .. }, _) => {}
        (Block::Fact { name, text }, Some(View::Facts(facts))) => facts.push((name, text)),
        (Block::Fact { name, text }, _) => views.push(View::Facts(vec![(name, text)])),
        (Block::Command(line), Some(View::Commands(lines))) => lines.push(line),
        (Block::Command(line), _) => views.push(View::Commands(vec![line])),
        (Block::Advice(text), Some(View::Text { advice, .. })) => *advice = Some(text),
        (Block::Advice(text), _) => views.push(View::Text { class: "", sign: "→".to_owned(), text, advice: None }),
        // A sketch of a curve, which the figure draws better.
        (Block::Text { text, .. }, _) if is_drawn(&text) => {}
        (Block::Text { style, sign, text }, _) => views.push(View::Text { class: class(style), sign, text, advice: None }),
        (Block::Items { style, items }, _) => views.push(View::Items { class: class(style), text: items.join(" · ") }),
        (Block::Table(columns), _) => views.push(View::Table(table(&columns))),
    }
}

/// Tables of more rows than this can be sorted.
const SORTED: usize = 3;

/// Without a bar, which the figure draws better.
fn undrawn(text: &str) -> String {
    text.trim_matches(|c: char| c.is_whitespace() || ('▁'..='▏').contains(&c)).to_owned()
}

/// Whether a column has nothing but bars.
fn is_bars(column: &Column) -> bool {
    let bar = |cell: &Cell| matches!(cell, Cell::Text(text) if is_drawn(text) && undrawn(text).is_empty());
    column.cells.iter().any(bar) && column.cells.iter().all(|cell| bar(cell) || cell.is_blank())
}

/// A table, its rows named by their first column.
pub(super) fn table(columns: &[Column]) -> Table {
    let columns: Vec<&Column> = columns.iter().filter(|column| !is_bars(column)).collect();
    let heads = columns.iter().map(|c| Head { text: c.head.clone(), class: if c.right { "n" } else { "" } }).collect();
    let count = columns.iter().map(|c| c.cells.len()).max().unwrap_or(0);
    let mut rows: Vec<Vec<Entry>> = (0..count).map(|_| Vec::with_capacity(columns.len())).collect();
    for (i, column) in columns.iter().enumerate() {
        let widths = Widths::from_column(column);
        for (row, cell) in rows.iter_mut().zip(&column.cells) {
            row.push(Entry { head: i == 0, ..entry(cell, column.right, &widths) });
        }
    }
    Table { name: String::new(), heads, rows, sorted: count >= SORTED, searched: false, stacked: false }
}

/// Characters that the parts of a column's numbers take at most.
#[derive(Default)]
struct Widths {
    fraction: usize,
    half: usize,
    after: usize,
}

fn fraction(number: &str) -> usize {
    number.split_once('.').map_or(0, |(_, digits)| digits.chars().count() + 1)
}

impl Widths {
    fn from_column(column: &Column) -> Self {
        let mut widths = Self::default();
        for cell in &column.cells {
            if let Cell::Value { number, half, .. } = cell {
                widths.fraction = widths.fraction.max(fraction(number));
                widths.half = widths.half.max(half.chars().count());
            }
        }
        for cell in &column.cells {
            if let Cell::Value { half, claim, marks, .. } = cell {
                widths.after = widths.after.max(after(half, claim, marks, widths.half).chars().count());
            }
        }
        widths
    }
}

/// What stands after a number, its parts in columns of their own.
fn after(half: &str, claim: &str, marks: &str, half_width: usize) -> String {
    let mut text = if half.is_empty() && claim.is_empty() { String::new() } else { format!(" {half}") };
    if !claim.is_empty() {
        text = format!("{text:0$} ({claim})", half_width + 1);
    }
    if !marks.is_empty() {
        text = format!("{text} {marks}");
    }
    text
}

fn entry(cell: &Cell, right: bool, widths: &Widths) -> Entry {
    let class = if right { "n" } else { "" };
    match cell {
        Cell::Blank => Entry { class, ..Entry::default() },
        Cell::Text(text) => Entry { class, text: undrawn(text), ..Entry::default() },
        Cell::Value { number, half, claim, marks } => {
            // Blanks behind what is aligned to the right bring the points below each other.
            let gap = " ".repeat(widths.fraction - fraction(number));
            let after = format!("{gap}{}", after(half, claim, marks, widths.half));
            Entry { class, text: number.clone(), after: format!("{after:0$}", gap.len() + widths.after), ..Entry::default() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_left_to_figures() {
        let bars = Column::text("shape", ["██▌", "█"]);
        let named = Column::text("latency", ["██▌", "█▌ ◂ knee"]);
        let table = table(&[Column::text("size", ["1", "2"]), bars, named]);
        let shown: Vec<&str> = table.rows.iter().flatten().map(|entry| entry.text.as_str()).collect();
        assert_eq!(shown, ["1", "", "2", "◂ knee"]);
    }

    #[test]
    fn points_are_below_each_other() {
        let value =
            |number: &str, half: &str| Cell::Value { number: number.into(), half: half.into(), claim: String::new(), marks: String::new() };
        let column = Column::numbers("ns", [value("98.2", "±0.4"), value("1204", "±12"), value("9.81", "")]);
        let table = table(&[Column::text("where", ["a", "b", "c"]), column]);
        let shown: Vec<String> = table.rows.iter().map(|row| format!("{:>12}", format!("{}{}", row[1].text, row[1].after))).collect();
        assert_eq!(shown, ["  98.2  ±0.4", "1204    ±12 ", "   9.81     "]);
        assert!(table.rows.iter().all(|row| row[0].head && !row[1].head));
    }
}
