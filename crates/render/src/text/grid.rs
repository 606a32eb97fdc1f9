//! Matrices of measurements, and columns that several tables have.

use memgauge_model::experiment::MemoryPlace;
use memgauge_model::result::Measurement;
use memgauge_model::stats::median;
use memgauge_model::wording;

pub(super) use super::column::{Cell, Column, Value};
use super::page::Page;
use crate::number::bounds;
use crate::pivot::Pivot;

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
