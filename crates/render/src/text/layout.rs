//! Blocks laid out as text: wrapping, indentation, colour, tables whose columns are aligned at the decimal point.

use super::block::{Block, Fact, Narrow, Style};
use super::column::{Alignment, Cell, Column, padded, width};
use super::page::{INDENT, LONGEST, clean};
use crate::number::{DASH, SUPERSCRIPTS};

/// A table of two numbers needs this many columns. Narrower terminals wrap the lines themselves.
const MIN_WIDTH: usize = 60;

/// The blocks as text of `width` columns.
pub(crate) fn lay_out(blocks: &[Block], width: usize, colour: bool) -> String {
    let mut sheet = Sheet { width: width.max(MIN_WIDTH), colour, out: String::new(), after_table: false };
    blocks.iter().for_each(|block| sheet.block(block));
    sheet.out
}

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

/// What text is written on.
struct Sheet {
    width: usize,
    colour: bool,
    out: String,
    /// The last thing written was a table: an empty line separates it from what follows.
    after_table: bool,
}

impl Sheet {
    fn block(&mut self, block: &Block) {
        match block {
            Block::Part(_) => {}
            Block::Gap => self.gap(),
            Block::Heading { title, about } => self.heading(title, about),
            Block::Text { style, first, rest, text, advice } => {
                self.text(*style, first, rest, text);
                advice.iter().for_each(|advice| self.text(Style::Plain, "    → ", "      ", advice));
            }
            Block::Line { style, text } => self.indented(*style, "", text.trim_end()),
            Block::Facts(facts) => facts.iter().for_each(|Fact { style, indent, name, columns, text }| {
                self.text(*style, &format!("{indent}{name:columns$}"), &" ".repeat(indent.len() + columns), text);
            }),
            Block::Commands(lines) => lines.iter().for_each(|line| self.indented(Style::Plain, INDENT, line.trim_end())),
            Block::Items { style, indent, items } => self.items(*style, indent, items),
            Block::Sketch { from, to, heights } => {
                let beside = INDENT.len() + from.chars().count() + to.chars().count() + 2;
                let curve = sketch(heights, self.width.saturating_sub(beside));
                self.text(Style::Plain, INDENT, INDENT, &format!("{from} {curve} {to}"));
            }
            Block::Table { columns, narrow: Narrow::Below } => {
                matrix(columns, self.width).iter().for_each(|lines| self.table_lines(lines));
            }
            Block::Table { columns, narrow } => self.table(columns, narrow),
        }
    }

    fn gap(&mut self) {
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

    fn heading(&mut self, title: &str, about: &str) {
        self.gap();
        self.paint(Style::Bold, title);
        let one_line = width(title) + 2 + width(about) <= self.width;
        if one_line && !about.is_empty() {
            self.out.push_str("  ");
            self.paint(Style::Dim, about);
        }
        self.out.push('\n');
        if !one_line {
            self.text(Style::Dim, INDENT, INDENT, about);
        }
    }

    fn text(&mut self, style: Style, first: &str, rest: &str, text: &str) {
        self.gap_after_table();
        let mut line = String::new();
        let mut indent = first;
        // Kept with the line, because on a wide page a text of megabytes is one line.
        let mut columns = width(first);
        for word in text.split_whitespace() {
            let of_word = width(word);
            if line.is_empty() {
                line = word.to_owned();
                columns += of_word;
            } else if columns + 1 + of_word <= self.width {
                line.push(' ');
                line.push_str(word);
                columns += 1 + of_word;
            } else {
                self.indented(style, indent, &line);
                indent = rest;
                line = word.to_owned();
                columns = width(rest) + of_word;
            }
        }
        if !line.is_empty() {
            self.indented(style, indent, &line);
        }
    }

    fn indented(&mut self, style: Style, indent: &str, line: &str) {
        self.out.push_str(indent);
        self.paint(style, line);
        self.out.push('\n');
    }

    /// An item that is wider than the page breaks between words.
    fn items(&mut self, style: Style, indent: &str, items: &[String]) {
        let limit = self.width.saturating_sub(width(indent));
        let (mut line, mut columns) = (String::new(), 0_usize);
        for item in items {
            let of_item = width(item);
            if line.is_empty() {
                line.clone_from(item);
                columns = of_item;
            } else if columns + 3 + of_item <= limit {
                line.push_str(" · ");
                line.push_str(item);
                columns += 3 + of_item;
            } else {
                self.text(style, indent, indent, &std::mem::replace(&mut line, item.clone()));
                columns = of_item;
            }
        }
        self.text(style, indent, indent, &line);
    }

    fn table(&mut self, columns: &[Column], narrow: &Narrow) {
        let (lines, left_out) = grid(columns, self.width);
        match narrow {
            Narrow::Lines(rows) if lines.iter().any(|line| INDENT.len() + width(line) > self.width) => {
                for [first, second] in rows {
                    self.text(Style::Plain, "  ", "    ", &clean(first));
                    self.text(Style::Plain, "    ", "    ", &clean(second));
                }
            }
            _ => self.table_lines(&lines),
        }
        for line in left_out.iter().flat_map(|column| &column.instead) {
            self.text(Style::Plain, INDENT, "    ", &clean(line));
        }
    }

    /// A table: indented, its head bold, marks and dashes yellow.
    fn table_lines(&mut self, lines: &[String]) {
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

/// A curve, a character a point; where there are more points than columns, of some of them, the first and the last included.
fn sketch(heights: &[Option<f64>], columns: usize) -> String {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let character = |height: f64| EIGHTHS[((height * 8.0).ceil() as usize).clamp(1, 8) - 1];
    let shown = heights.len().min(columns.max(2));
    let point = |i: usize| heights.get(i * (heights.len() - 1) / (shown - 1).max(1));
    (0..shown).filter_map(point).map(|height| height.map_or(' ', character)).collect()
}

impl Column {
    /// The head and the cells, all of one width.
    fn lay_out(&self) -> (String, Vec<String>) {
        let aligned = Alignment::of(&self.cells);
        let text = |cell: &Cell| match cell {
            Cell::Blank => String::new(),
            Cell::Text(text) => clipped(text),
            Cell::Bar { bar, after } if after.is_empty() => bar.clone(),
            Cell::Bar { bar, after } => clipped(&format!("{bar} {after}")),
            Cell::Value(value) => {
                let (before, behind) = aligned.blanks(value);
                let behind = if value.number == DASH { 0 } else { behind };
                let number = format!("{}{}{}", " ".repeat(before), value.number, " ".repeat(behind));
                padded(&(number + &aligned.tail(value)), aligned.whole + aligned.fraction + aligned.tail, false)
            }
        };
        let texts: Vec<String> = self.cells.iter().map(text).collect();
        let head = clipped(&self.head);
        let full = texts.iter().chain([&head]).map(|t| width(t)).max().unwrap_or(0);
        (padded(&head, full, self.right), texts.iter().map(|text| padded(text, full, self.right)).collect())
    }
}

/// Blanks between columns where there is room, and where there is not.
const GAPS: [usize; 2] = [3, 2];

fn clipped(text: &str) -> String {
    if width(text) <= LONGEST {
        return clean(text);
    }
    clean(text).chars().take(LONGEST - 1).chain(['…']).collect()
}

/// A table's lines, head and rule first, and the columns that are left out: those without content, and optional ones, the last first, until
/// it fits.
fn grid(columns: &[Column], page_width: usize) -> (Vec<String>, Vec<&Column>) {
    let limit = page_width.saturating_sub(INDENT.len());
    let (mut shown, mut left_out): (Vec<&Column>, Vec<&Column>) = columns.iter().partition(|column| column.has_content());
    loop {
        let laid: Vec<_> = shown.iter().map(|column| column.lay_out()).collect();
        let gap = GAPS.into_iter().find(|gap| total(&laid, *gap) <= limit);
        match shown.iter().rposition(|column| column.optional).filter(|_| gap.is_none()) {
            Some(i) => left_out.push(shown.remove(i)),
            None => return (draw(&laid, gap.unwrap_or(GAPS[1])), left_out),
        }
    }
}

/// A matrix whose columns go into as many blocks below each other as the page needs, of about the same number of columns; the first
/// column leads each block.
fn matrix(columns: &[Column], page_width: usize) -> Vec<Vec<String>> {
    let limit = page_width.saturating_sub(INDENT.len());
    let laid: Vec<_> = columns.iter().map(Column::lay_out).collect();
    let Some((lead, laid)) = laid.split_first() else { return Vec::new() };
    let widest = laid.iter().map(|(head, _)| width(head)).max().unwrap_or(0);
    let (gap, fit) = GAPS
        .map(|gap| (gap, (limit.saturating_sub(width(&lead.0)) / (widest + gap)).max(1)))
        .into_iter()
        .min_by_key(|(_, fit)| laid.len().div_ceil(*fit))
        .unwrap_or((GAPS[1], 1));
    let each = laid.len().div_ceil(laid.len().div_ceil(fit).max(1)).max(1);
    laid.chunks(each).map(|block| draw(&[std::slice::from_ref(lead), block].concat(), gap)).collect()
}

fn total(laid: &[(String, Vec<String>)], gap: usize) -> usize {
    laid.iter().map(|(head, _)| width(head) + gap).sum::<usize>().saturating_sub(gap)
}

fn draw(laid: &[(String, Vec<String>)], gap: usize) -> Vec<String> {
    if laid.is_empty() {
        return Vec::new();
    }
    let line = |cells: Vec<&str>| cells.join(&" ".repeat(gap)).trim_end().to_owned();
    let rows = laid.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    let row = |i: usize| line(laid.iter().map(|(_, cells)| cells.get(i).map_or("", String::as_str)).collect());
    let head = [line(laid.iter().map(|(head, _)| head.as_str()).collect()), "─".repeat(total(laid, gap))];
    head.into_iter().chain((0..rows).map(row)).collect()
}

#[cfg(test)]
mod tests {
    use memgauge_model::printable::is_obeyed;

    use super::super::column::Value;
    use super::super::page::Page;
    use super::*;

    /// The page that `write` writes, as text.
    fn written(width: usize, colour: bool, write: impl Fn(&mut Page)) -> String {
        let mut page = Page::new(true);
        write(&mut page);
        lay_out(page.blocks(), width, colour)
    }

    #[test]
    fn words_wrap_with_a_hanging_indent() {
        let text = written(60, false, |page| page.text(Style::Plain, "- ", "  ", &"word ".repeat(14)));
        assert_eq!(text, format!("- {}\n  {}\n", "word ".repeat(11).trim_end(), "word ".repeat(3).trim_end()));
    }

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        let text = written(80, false, |page| {
            page.heading("a\x1b[2Jb", "c\nd");
            page.items(Style::Plain, "", &["x\x07y\u{9b}2J\u{202e}".to_owned()]);
            page.fact(Style::Plain, "", ("n\x1b[2Jm", 9), "x\x1b[2Jy");
        });
        assert!(!text.contains(|c| is_obeyed(c) && c != '\n'));
    }

    #[test]
    fn a_name_longer_than_any_page_is_written_once() {
        let name = "n".repeat(1 << 17);
        let text = written(80, false, |page| page.fact(Style::Plain, "  ", (&name, name.len()), &"word ".repeat(30)));
        assert!(text.contains(&name) && text.len() < name.len() + 10_000, "{}", text.len());
    }

    #[test]
    fn colour_changes_no_character() {
        let write = |colour| {
            written(80, colour, |page| {
                page.heading("Title", "about");
                page.table([Column::text("head", ["1.0 ±0.1 ¹  —²"])]);
            })
        };
        let coloured = write(true);
        assert!(coloured.contains("\x1b[33m¹\x1b[0m"));
        let mut plain = String::new();
        for (i, part) in coloured.split("\x1b[").enumerate() {
            plain.push_str(if i == 0 { part } else { part.split_once('m').unwrap().1 });
        }
        assert_eq!(plain, write(false));
    }

    fn value(number: &str, half: &str, marks: &str) -> Cell {
        Value { number: number.into(), half: half.into(), marks: marks.into(), ..Value::default() }.into()
    }

    #[test]
    fn numbers_align_at_the_point() {
        let column = Column::numbers("ns", [value("98.2", "±0.4", ""), value("1204", "±12", ""), value("—", "", "¹")]);
        let (lines, _) = grid(&[Column::text("n", ["a", "b", "c"]), column], 80);
        assert_eq!(lines[2..], ["a     98.2 ±0.4", "b   1204   ±12", "c      — ¹"]);
    }

    #[test]
    fn optional_columns_go_first_and_empty_ones_always() {
        let columns = [
            Column::text("name", ["x".repeat(40)]),
            Column::text("what", ["y".repeat(40)]).optional(),
            Column::text("empty", [Cell::Blank]),
            Column::numbers("n", [Cell::number("1".into())]),
        ];
        assert!(grid(&columns, 100).0[0].contains("what"));
        let (narrow, left_out) = grid(&columns, 60);
        assert!(!narrow[0].contains("what") && narrow[0].contains('n'));
        assert_eq!(left_out.iter().map(|column| column.head.as_str()).collect::<Vec<_>>(), ["empty", "what"]);
        assert!(!grid(&columns, 200).0[0].contains("empty"));
    }

    #[test]
    fn a_wide_matrix_splits_into_blocks_that_fit() {
        let lead = Column::text("from", (0..3).map(|i| format!("node {i}")));
        let column = |i| Column::numbers(format!("node {i}"), (0..3).map(|_| value("98.2", "±0.4", "")));
        let columns: Vec<Column> = [lead].into_iter().chain((0..20).map(column)).collect();
        let blocks = matrix(&columns, 80);
        assert!(blocks.len() > 2);
        assert!(blocks.iter().flatten().all(|line| width(line) <= 78));
        assert!(blocks.iter().all(|b| b[0].starts_with("from") && b.len() == 5));
        let heads: String = blocks.iter().map(|b| b[0].as_str()).collect();
        assert!((0..20).all(|i| heads.contains(&format!("node {i}"))));
    }
}
