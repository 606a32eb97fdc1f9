//! Tables and matrices: columns aligned at the decimal point, those that do not fit left out or moved to a block below.

use memgauge_model::experiment::MemoryPlace;
use memgauge_model::result::Measurement;
use memgauge_model::stats::median;
use memgauge_model::wording;

use super::block::Block;
use super::column::{Alignment, padded};
pub(super) use super::column::{Cell, Column, Value};
use super::page::{INDENT, LONGEST, Page, Style, clean, width};
use crate::number::{DASH, bounds};
use crate::pivot::Pivot;

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

impl Page {
    /// Prints a table, as [`grid`] lays it out.
    pub(super) fn table(&mut self, columns: impl IntoIterator<Item = Column>) {
        if self.keeps_blocks() {
            let columns = with_content(columns);
            self.keep(|| Block::Table(columns));
        } else {
            self.table_lines(&grid(columns, self.width));
        }
    }

    /// Prints a table, or where it is wider than the page two lines for each of its rows.
    pub(super) fn table_or_lines(&mut self, columns: impl IntoIterator<Item = Column>, rows: impl Iterator<Item = [String; 2]>) {
        if self.keeps_blocks() {
            return self.table(columns);
        }
        let lines = grid(columns, self.width);
        if lines.iter().all(|line| INDENT.len() + width(line) <= self.width) {
            return self.table_lines(&lines);
        }
        for [first, second] in rows {
            self.text(Style::Plain, "  ", "    ", &first);
            self.text(Style::Plain, "    ", "    ", &second);
        }
    }

    /// How many of so many rows are shown: all of them on a page that shows everything.
    pub(super) fn shown(&self, all: usize, most: usize) -> usize {
        if self.verbose { all } else { all.min(most) }
    }

    /// Says how many rows are not shown.
    pub(super) fn and_more(&mut self, all: usize, shown: usize) {
        if shown < all {
            self.paragraph(Style::Dim, format!("and {} more: -v", all - shown));
        }
    }

    /// Prints a matrix, `lead` naming its rows; columns that do not fit stand below the others.
    pub(super) fn matrix(&mut self, lead: Column, columns: Vec<Column>) {
        if self.keeps_blocks() {
            self.keep(|| Block::Table([lead].into_iter().chain(columns).collect()));
            return;
        }
        for block in blocks(&lead, &columns, self.width) {
            self.table_lines(&block);
        }
    }
}

/// Without the columns that have none.
fn with_content(columns: impl IntoIterator<Item = Column>) -> Vec<Column> {
    columns.into_iter().filter(|c| c.cells.iter().any(|c| !c.is_blank())).collect()
}

/// The table's lines, head and rule first. Columns without content are left out; so are optional ones, the last first, until it fits.
pub(super) fn grid(columns: impl IntoIterator<Item = Column>, page_width: usize) -> Vec<String> {
    let mut columns = with_content(columns);
    let limit = page_width.saturating_sub(INDENT.len());
    loop {
        let laid: Vec<_> = columns.iter().map(Column::lay_out).collect();
        let gap = GAPS.into_iter().find(|gap| total(&laid, *gap) <= limit);
        if gap.is_none()
            && let Some(i) = columns.iter().rposition(|c| c.optional)
        {
            columns.remove(i);
            continue;
        }
        return draw(&laid, gap.unwrap_or(GAPS[1]));
    }
}

/// A matrix whose columns go into as many blocks below each other as the page needs, of about the same number of columns; the first
/// column leads each block.
fn blocks(lead: &Column, columns: &[Column], page_width: usize) -> Vec<Vec<String>> {
    let limit = page_width.saturating_sub(INDENT.len());
    let lead_laid = lead.lay_out();
    let laid: Vec<_> = columns.iter().map(Column::lay_out).collect();
    let widest = laid.iter().map(|(head, _)| width(head)).max().unwrap_or(0);
    let (gap, fit) = GAPS
        .map(|gap| (gap, (limit.saturating_sub(width(&lead_laid.0)) / (widest + gap)).max(1)))
        .into_iter()
        .min_by_key(|(_, fit)| columns.len().div_ceil(*fit))
        .unwrap_or((GAPS[1], 1));
    let each = columns.len().div_ceil(columns.len().div_ceil(fit).max(1)).max(1);
    let drawn = |block: &[(String, Vec<String>)]| {
        let mut all = vec![lead_laid.clone()];
        all.extend_from_slice(block);
        draw(&all, gap)
    };
    laid.chunks(each).map(drawn).collect()
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

/// With more columns than this a matrix shows values only, so that it stays readable.
pub(super) const DETAILED_COLUMNS: usize = 16;

/// Prints measurements in rows and columns by their names; `corner` is the head of the rows' names. Cells are made from the measurement and
/// its place, column by column, which is the order of their footnotes.
pub(super) fn matrix<R: Ord + Clone, C: Ord + Clone>(
    page: &mut Page,
    corner: &str,
    table: &Pivot<'_, R, C>,
    row_name: impl Fn(&R) -> String,
    column_name: impl Fn(&C) -> String,
    mut cell: impl FnMut(Option<&Measurement>, &R, &C) -> Cell,
) {
    let lead = Column::text(corner, table.rows.iter().map(row_name));
    let mut cells = |column| table.rows.iter().map(|row| cell(table.get(row, column), row, column)).collect::<Vec<_>>();
    let columns: Vec<Column> = table.columns.iter().map(|column| Column::numbers(column_name(column), cells(column))).collect();
    page.matrix(lead, columns);
}

/// The head of a column for a node's memory: only the node's number where there are many.
pub(super) fn column_name(memory: Option<MemoryPlace>, detailed: bool) -> String {
    match memory.and_then(MemoryPlace::node) {
        Some(node) if !detailed => node.to_string(),
        _ => wording::place(memory),
    }
}

/// Drops the interval from a cell of a matrix that is too wide for it.
pub(super) fn without_half(cell: Cell, detailed: bool) -> Cell {
    match cell {
        Cell::Value(value) if !detailed => Value { half: String::new(), ..value }.into(),
        other => other,
    }
}

/// Columns of the fastest, median and slowest of each group of latencies.
pub(super) fn spread_columns<'g>(groups: impl Iterator<Item = &'g Vec<f64>> + Clone) -> [Column; 3] {
    let ends = |group: &Vec<f64>| bounds(group.iter().copied());
    [
        Column::numbers("fastest", groups.clone().map(|g| ends(g).map(|b| b.0))),
        Column::numbers("median", groups.clone().map(|g| median(g))),
        Column::numbers("slowest", groups.map(|g| ends(g).map(|b| b.1))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(number: &str, half: &str, marks: &str) -> Cell {
        Value { number: number.into(), half: half.into(), marks: marks.into(), ..Value::default() }.into()
    }

    #[test]
    fn numbers_align_at_the_point() {
        let column = Column::numbers("ns", [value("98.2", "±0.4", ""), value("1204", "±12", ""), value("—", "", "¹")]);
        let lines = grid(vec![Column::text("n", ["a", "b", "c"]), column], 80);
        assert_eq!(lines[2..], ["a     98.2 ±0.4", "b   1204   ±12", "c      — ¹"]);
    }

    #[test]
    fn optional_columns_go_first_and_empty_ones_always() {
        let make = || {
            vec![
                Column::text("name", ["x".repeat(40)]),
                Column::text("what", ["y".repeat(40)]).optional(),
                Column::text("empty", [Cell::Blank]),
                Column::numbers("n", [Cell::number("1".into())]),
            ]
        };
        assert!(grid(make(), 100)[0].contains("what"));
        let narrow = grid(make(), 60);
        assert!(!narrow[0].contains("what") && narrow[0].contains('n'));
        assert!(!grid(make(), 200)[0].contains("empty"));
    }

    #[test]
    fn a_wide_matrix_splits_into_blocks_that_fit() {
        let lead = Column::text("from", (0..3).map(|i| format!("node {i}")));
        let columns: Vec<Column> =
            (0..20).map(|i| Column::numbers(format!("node {i}"), (0..3).map(|_| value("98.2", "±0.4", "")))).collect();
        let blocks = blocks(&lead, &columns, 80);
        assert!(blocks.len() > 2);
        assert!(blocks.iter().flatten().all(|line| width(line) <= 78));
        assert!(blocks.iter().all(|b| b[0].starts_with("from") && b.len() == 5));
        let heads: String = blocks.iter().map(|b| b[0].as_str()).collect();
        assert!((0..20).all(|i| heads.contains(&format!("node {i}"))));
    }
}
