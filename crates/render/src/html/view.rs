//! The data for templates: blocks of the text, as elements of a page.

use crate::text::block::{Block, Style};
use crate::text::column::{Alignment, Cell, Column, padded};

/// An element of a page.
pub(super) enum View {
    Block(Block),
    Table(Table),
}

impl View {
    pub(super) fn new(block: Block) -> Self {
        match block {
            Block::Table { columns, .. } => Self::Table(table(&columns)),
            Block::Line { style, text } => {
                let text = text.trim().to_owned();
                Self::Block(Block::Text { style, first: String::new(), rest: String::new(), text, advice: None })
            }
            block => Self::Block(block),
        }
    }
}

impl Style {
    /// The class of a text.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Plain | Self::Bold => "",
            Self::Dim | Self::Detail => "dim",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A table.
pub(super) struct Table {
    /// Its name for readers who do not see headings: the heading above it.
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

/// Tables of more rows than this can be sorted.
const SORTED: usize = 3;

/// Whether a column has nothing but bars, which the figure draws better.
fn is_bars(column: &Column) -> bool {
    let bar = |cell: &Cell| matches!(cell, Cell::Bar { after, .. } if after.is_empty());
    column.cells.iter().all(|cell| bar(cell) || cell.is_blank()) && column.cells.iter().any(bar)
}

/// A table, its rows named by their first column.
pub(super) fn table(columns: &[Column]) -> Table {
    let columns: Vec<&Column> = columns.iter().filter(|column| !is_bars(column)).collect();
    let heads = columns.iter().map(|c| Head { text: c.head.clone(), class: if c.right { "n" } else { "" } }).collect();
    let count = columns.iter().map(|c| c.cells.len()).max().unwrap_or(0);
    let mut rows: Vec<Vec<Entry>> = (0..count).map(|_| Vec::with_capacity(columns.len())).collect();
    for (i, column) in columns.iter().enumerate() {
        let aligned = Alignment::of(&column.cells);
        for (row, cell) in rows.iter_mut().zip(&column.cells) {
            row.push(Entry { head: i == 0, ..entry(cell, column.right, &aligned) });
        }
    }
    Table { name: String::new(), heads, rows, sorted: count >= SORTED, searched: false, stacked: false }
}

fn entry(cell: &Cell, right: bool, aligned: &Alignment) -> Entry {
    let class = if right { "n" } else { "" };
    match cell {
        Cell::Blank => Entry { class, ..Entry::default() },
        Cell::Text(text) | Cell::Bar { after: text, .. } => Entry { class, text: text.trim().to_owned(), ..Entry::default() },
        Cell::Value(value) => {
            // Blanks behind what is aligned to the right bring the points below each other.
            let blanks = " ".repeat(aligned.blanks(value).1);
            let after = format!("{blanks}{}", padded(&aligned.tail(value), aligned.tail, false));
            Entry { class, text: value.number.clone(), after, ..Entry::default() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::column::Value;

    #[test]
    fn bars_are_left_to_figures() {
        let bars = Column::text("shape", [0.8, 0.4].map(|share| Cell::bar(share, 3)));
        let named = Column::text("latency", [None, Some("knee")].map(|name| Cell::named_bar(Some(0.5), 3, name)));
        let table = table(&[Column::text("size", ["1", "2"]), bars, named]);
        let shown: Vec<&str> = table.rows.iter().flatten().map(|entry| entry.text.as_str()).collect();
        assert_eq!(shown, ["1", "", "2", "◂ knee"]);
    }

    #[test]
    fn points_are_below_each_other() {
        let value = |number: &str, half: &str| Cell::Value(Value { number: number.into(), half: half.into(), ..Value::default() });
        let column = Column::numbers("ns", [value("98.2", "±0.4"), value("1204", "±12"), value("9.81", "")]);
        let table = table(&[Column::text("where", ["a", "b", "c"]), column]);
        let shown: Vec<String> = table.rows.iter().map(|row| format!("{:>12}", format!("{}{}", row[1].text, row[1].after))).collect();
        assert_eq!(shown, ["  98.2  ±0.4", "1204    ±12 ", "   9.81     "]);
        assert!(table.rows.iter().all(|row| row[0].head && !row[1].head));
    }
}
