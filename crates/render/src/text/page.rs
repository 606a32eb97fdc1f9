//! The page that a document is written on. It keeps blocks: headings, sentences, tables. They are laid out as text in one place
//! ([`super::layout`]).

use memgauge_model::printable::is_obeyed;
use memgauge_model::words::Ways;

pub(super) use super::block::Style;
use super::block::{Block, Fact, Narrow, Part};
use super::column::Column;

pub(super) struct Page {
    /// Details are shown.
    pub(super) verbose: bool,
    blocks: Vec<Block>,
}

impl Page {
    pub(super) const fn new(verbose: bool) -> Self {
        Self { verbose, blocks: Vec::new() }
    }

    pub(super) fn into_blocks(self) -> Vec<Block> {
        self.blocks
    }

    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// What follows belongs to this part. It does not change text.
    pub(super) fn part(&mut self, part: Part) {
        self.blocks.push(Block::Part(part));
    }

    /// An empty line, unless there is one or the page is still empty.
    pub(super) fn gap(&mut self) {
        self.blocks.push(Block::Gap);
    }

    /// The title of a section and, dimmed, what its numbers are.
    pub(super) fn heading(&mut self, title: &str, about: &str) {
        self.blocks.push(Block::Heading { title: clean(title), about: clean(about) });
    }

    /// One line, as it is.
    pub(super) fn line(&mut self, style: Style, text: &str) {
        self.blocks.push(Block::Line { style, text: clean(text) });
    }

    /// A line to paste into a shell.
    pub(super) fn command(&mut self, text: &str) {
        match self.blocks.last_mut() {
            Some(Block::Commands(lines)) => lines.push(clean(text)),
            _ => self.blocks.push(Block::Commands(vec![clean(text)])),
        }
    }

    /// Adds a name, padded to `columns`, with the facts about it; adds nothing if `text` is empty.
    pub(super) fn fact(&mut self, style: Style, indent: &'static str, (name, columns): (&str, usize), text: &str) {
        if text.is_empty() {
            return;
        }
        // A name from a damaged file may be longer than any page.
        let fact = Fact { style, indent, name: clean(name), columns: columns.min(LONGEST), text: clean(text) };
        match self.blocks.last_mut() {
            Some(Block::Facts(facts)) => facts.push(fact),
            _ => self.blocks.push(Block::Facts(vec![fact])),
        }
    }

    /// Words wrapped at the page's width; `first` and `rest` are the indentations.
    pub(super) fn text(&mut self, style: Style, first: &str, rest: &str, text: &str) {
        if self.shows(style) {
            self.blocks.push(Block::Text { style, first: clean(first), rest: rest.to_owned(), text: clean(text), advice: None });
        }
    }

    /// Words below a heading or a table.
    pub(super) fn paragraph(&mut self, style: Style, text: impl AsRef<str>) {
        self.text(style, INDENT, INDENT, text.as_ref());
    }

    fn shows(&self, style: Style) -> bool {
        style != Style::Detail || self.verbose
    }

    /// A curve in one line of block characters, between the sizes at its ends. `heights`: 0 to 1.
    pub(super) fn sketch(&mut self, (from, to): (String, String), heights: Vec<Option<f64>>) {
        self.blocks.push(Block::Sketch { from, to, heights });
    }

    /// Items joined by a middle dot, broken only between items (an item that is wider than the page breaks between words).
    pub(super) fn items(&mut self, style: Style, indent: &'static str, items: impl IntoIterator<Item = impl AsRef<str>>) {
        let items: Vec<String> = items.into_iter().map(|i| clean(i.as_ref())).filter(|i| !i.is_empty()).collect();
        if !items.is_empty() && self.shows(style) {
            self.blocks.push(Block::Items { style, indent, items });
        }
    }

    /// A remark after its sign, and what to do about it.
    pub(super) fn remark(&mut self, style: Style, sign: &str, text: &dyn std::fmt::Display, advice: Option<&Ways>) {
        let advice = advice.map(|advice| clean(&advice.to_string())).filter(|advice| !advice.is_empty());
        self.blocks.push(Block::Text { style, first: clean(sign), rest: "    ".to_owned(), text: clean(&text.to_string()), advice });
    }

    /// A table. Columns without content are left out; so are optional ones, the last first, until it fits.
    pub(super) fn table(&mut self, columns: impl IntoIterator<Item = Column>) {
        self.add_table(columns, Narrow::Wide);
    }

    /// A table, or where it is wider than the page two lines for each of its rows.
    pub(super) fn table_or_lines(&mut self, columns: impl IntoIterator<Item = Column>, rows: impl Iterator<Item = [String; 2]>) {
        self.add_table(columns, Narrow::Lines(rows.collect()));
    }

    fn add_table(&mut self, columns: impl IntoIterator<Item = Column>, narrow: Narrow) {
        let columns = columns.into_iter().filter(|column| column.has_content() || !column.instead.is_empty()).collect();
        self.blocks.push(Block::Table { columns, narrow });
    }

    /// A matrix, `lead` naming its rows; columns that do not fit stand below the others.
    pub(super) fn matrix(&mut self, lead: Column, columns: Vec<Column>) {
        self.blocks.push(Block::Table { columns: [lead].into_iter().chain(columns).collect(), narrow: Narrow::Below });
    }

    /// The number of rows that are shown: all of them on a page that shows everything.
    pub(super) fn shown(&self, all: usize, most: usize) -> usize {
        if self.verbose { all } else { all.min(most) }
    }

    /// Says how many rows are not shown.
    pub(super) fn and_more(&mut self, all: usize, shown: usize) {
        if shown < all {
            self.paragraph(Style::Dim, format!("and {} more: -v", all - shown));
        }
    }
}

/// Longer texts of a table are cut: they would push everything else off the page.
pub(super) const LONGEST: usize = 60;

/// Indentation of everything below a heading.
pub(super) const INDENT: &str = "  ";

/// The text without what a terminal would obey: a report may come from anywhere.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if is_obeyed(c) { ' ' } else { c }).collect()
}
