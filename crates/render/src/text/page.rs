//! The page that text is written on: wrapping, indentation, colour. It can also keep what is written as blocks, for pages that are no text.

use memgauge_model::printable::is_obeyed;
use memgauge_model::words::Ways;

pub(super) use super::block::Style;
use super::block::{Block, Part};
pub(super) use super::column::width;
use crate::number::{DASH, SUPERSCRIPTS};

impl Style {
    /// SGR parameters: the eight basic colours only, which every terminal theme keeps legible.
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Dim | Self::Detail => Some("2"),
            Self::Warning => Some("33"),
            Self::Error => Some("1;31"),
        }
    }
}

/// A table of two numbers needs this many columns. Narrower terminals wrap the lines themselves.
const MIN_WIDTH: usize = 60;

pub(super) struct Page {
    pub(super) width: usize,
    colour: bool,
    /// Details are shown.
    pub(super) verbose: bool,
    out: String,
    /// The last thing written was a table: an empty line separates it from what follows.
    after_table: bool,
    /// What was written, where it is kept instead of being laid out.
    blocks: Option<Vec<Block>>,
}

impl Page {
    pub(super) fn new(width: usize, colour: bool) -> Self {
        Self { width: width.max(MIN_WIDTH), colour, verbose: true, out: String::new(), after_table: false, blocks: None }
    }

    pub(super) fn into_text(self) -> String {
        self.out
    }

    /// How many lines were written.
    pub(super) fn lines(&self) -> usize {
        self.out.matches('\n').count()
    }

    /// A page that keeps its blocks. It explains everything, and has room for everything.
    pub(super) fn of_blocks() -> Self {
        Self { blocks: Some(Vec::new()), ..Self::new(usize::MAX, false) }
    }

    pub(super) fn into_blocks(self) -> Vec<Block> {
        self.blocks.unwrap_or_default()
    }

    pub(super) const fn keeps_blocks(&self) -> bool {
        self.blocks.is_some()
    }

    /// Keeps a block; `false` on a page of text, which has to write it.
    pub(super) fn keep(&mut self, block: impl FnOnce() -> Block) -> bool {
        self.blocks.as_mut().map(|blocks| blocks.push(block())).is_some()
    }

    /// What follows belongs to this part. It does not change a page of text.
    pub(super) fn part(&mut self, part: Part) {
        self.keep(|| Block::Part(part));
    }

    /// An empty line, unless there is one or the page is still empty.
    pub(super) fn gap(&mut self) {
        self.after_table = false;
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn gap_after_table(&mut self) {
        if self.after_table {
            self.gap();
        }
    }

    /// The title of a section and, dimmed, what its numbers are.
    pub(super) fn heading(&mut self, title: &str, about: &str) {
        let (title, about) = (clean(title), clean(about));
        if self.keep(|| Block::Heading { title: title.clone(), about: about.clone() }) {
            return;
        }
        self.gap();
        self.paint(Style::Bold, &title);
        let one_line = width(&title) + 2 + width(&about) <= self.width;
        if one_line && !about.is_empty() {
            self.out.push_str("  ");
            self.paint(Style::Dim, &about);
        }
        self.out.push('\n');
        if !one_line {
            self.paragraph(Style::Dim, &about);
        }
    }

    /// One line, as it is.
    pub(super) fn line(&mut self, style: Style, text: &str) {
        let text = clean(text);
        if self.keep(|| Block::Text { style, sign: String::new(), text: text.trim().to_owned() }) {
            return;
        }
        self.paint(style, text.trim_end());
        self.out.push('\n');
    }

    /// A line to paste into a shell.
    pub(super) fn command(&mut self, text: &str) {
        if !self.keep(|| Block::Command(clean(text))) {
            self.line(Style::Plain, &format!("{INDENT}{text}"));
        }
    }

    /// A name in so many columns with what is known about it; nothing if that is nothing.
    pub(super) fn fact(&mut self, style: Style, indent: &str, (name, columns): (&str, usize), text: &str) {
        if text.is_empty() || self.keep(|| Block::Fact { name: clean(name.trim()), text: clean(text) }) {
            return;
        }
        // A name from a damaged file may be longer than any page.
        let columns = columns.min(LONGEST);
        let first = clean(&format!("{indent}{name:columns$}"));
        self.text(style, &first, &" ".repeat(width(indent) + columns), text);
    }

    /// A table: indented, its head bold, marks and dashes yellow.
    pub(super) fn table_lines(&mut self, lines: &[String]) {
        self.gap_after_table();
        self.after_table = !lines.is_empty();
        for (i, line) in lines.iter().enumerate() {
            self.out.push_str(INDENT);
            match i {
                0 => self.paint(Style::Bold, line),
                1 => self.paint(Style::Dim, line),
                _ => self.paint_marks(line),
            }
            self.out.push('\n');
        }
    }

    /// Words wrapped at the page's width; `first` and `rest` are the indentations.
    pub(super) fn text(&mut self, style: Style, first: &str, rest: &str, text: &str) {
        if style == Style::Detail && !self.verbose {
            return;
        }
        let text = clean(text);
        if self.keep(|| Block::Text { style, sign: clean(first.trim()), text: text.clone() }) {
            return;
        }
        self.gap_after_table();
        let mut line = String::new();
        let mut indent = first;
        for word in text.split_whitespace() {
            if line.is_empty() {
                line = word.to_owned();
            } else if width(indent) + width(&line) + 1 + width(word) <= self.width {
                line.push(' ');
                line.push_str(word);
            } else {
                self.indented(style, indent, &line);
                indent = rest;
                line = word.to_owned();
            }
        }
        if !line.is_empty() {
            self.indented(style, indent, &line);
        }
    }

    /// A curve in one line of block characters. Pages that are no text have a figure instead.
    pub(super) fn sketch(&mut self, text: &str) {
        if !self.keeps_blocks() {
            self.paragraph(Style::Plain, text);
        }
    }

    /// Words below a heading or a table.
    pub(super) fn paragraph(&mut self, style: Style, text: impl AsRef<str>) {
        self.text(style, INDENT, INDENT, text.as_ref());
    }

    fn indented(&mut self, style: Style, indent: &str, line: &str) {
        self.out.push_str(indent);
        self.paint(style, line);
        self.out.push('\n');
    }

    /// Items joined by a middle dot, broken only between items (an item that is wider than the page breaks between words).
    pub(super) fn items(&mut self, style: Style, indent: &str, items: impl IntoIterator<Item = impl AsRef<str>>) {
        if self.keeps_blocks() {
            let items: Vec<String> = items.into_iter().map(|i| clean(i.as_ref())).filter(|i| !i.is_empty()).collect();
            if !items.is_empty() {
                self.keep(|| Block::Items { style, items });
            }
            return;
        }
        let limit = self.width.saturating_sub(width(indent));
        let mut pieces: Vec<String> = Vec::new();
        let mut line = String::new();
        for item in items.into_iter().map(|i| clean(i.as_ref())).filter(|i| !i.is_empty()) {
            if line.is_empty() {
                line = item;
            } else if width(&line) + 3 + width(&item) <= limit {
                line = format!("{line} · {item}");
            } else {
                pieces.push(std::mem::replace(&mut line, item));
            }
        }
        pieces.push(line);
        for piece in pieces.iter().filter(|p| !p.is_empty()) {
            self.text(style, indent, indent, piece);
        }
    }

    /// A remark after its sign, and what to do about it.
    pub(super) fn remark(&mut self, style: Style, sign: &str, text: &dyn std::fmt::Display, advice: Option<&Ways>) {
        self.text(style, sign, "    ", &text.to_string());
        let Some(advice) = advice.map(Ways::to_string).filter(|advice| !advice.is_empty()) else { return };
        if !self.keep(|| Block::Advice(clean(&advice))) {
            self.text(Style::Plain, "    → ", "      ", &advice);
        }
    }

    fn paint(&mut self, style: Style, text: &str) {
        match style.code().filter(|_| self.colour && !text.is_empty()) {
            Some(code) => self.out.extend(["\x1b[", code, "m", text, "\x1b[0m"]),
            None => self.out.push_str(text),
        }
    }

    fn paint_marks(&mut self, line: &str) {
        let special = |c: char| SUPERSCRIPTS.contains(&c) || DASH.contains(c);
        let mut rest = line;
        while let Some(start) = rest.find(special) {
            let end = rest[start..].find(|c| !special(c)).map_or(rest.len(), |n| start + n);
            self.out.push_str(&rest[..start]);
            self.paint(Style::Warning, &rest[start..end]);
            rest = &rest[end..];
        }
        self.out.push_str(rest);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap_with_a_hanging_indent() {
        let mut page = Page::new(60, false);
        page.text(Style::Plain, "- ", "  ", &"word ".repeat(14));
        assert_eq!(page.into_text(), format!("- {}\n  {}\n", "word ".repeat(11).trim_end(), "word ".repeat(3).trim_end()));
    }

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        let mut page = Page::new(80, false);
        page.heading("a\x1b[2Jb", "c\nd");
        page.items(Style::Plain, "", &["x\x07y\u{9b}2J\u{202e}".to_owned()]);
        page.fact(Style::Plain, "", ("n\x1b[2Jm", 9), "x\x1b[2Jy");
        assert!(!page.into_text().contains(|c| is_obeyed(c) && c != '\n'));
    }

    #[test]
    fn a_name_longer_than_any_page_is_written_once() {
        let mut page = Page::new(80, false);
        let name = "n".repeat(1 << 17);
        page.fact(Style::Plain, "  ", (&name, name.len()), &"word ".repeat(30));
        let text = page.into_text();
        assert!(text.contains(&name) && text.len() < name.len() + 10_000, "{}", text.len());
    }

    #[test]
    fn colour_changes_no_character() {
        let write = |colour| {
            let mut page = Page::new(80, colour);
            page.heading("Title", "about");
            page.table_lines(&["head".into(), "────".into(), "1.0 ±0.1 ¹  —²".into()]);
            page.into_text()
        };
        let coloured = write(true);
        assert!(coloured.contains("\x1b[33m¹\x1b[0m"));
        let mut plain = String::new();
        for (i, part) in coloured.split("\x1b[").enumerate() {
            plain.push_str(if i == 0 { part } else { part.split_once('m').unwrap().1 });
        }
        assert_eq!(plain, write(false));
    }
}
