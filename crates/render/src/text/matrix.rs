//! Matrices: rows and columns of nodes or CPUs, in blocks where the page is narrow.

use memgauge_core::experiment::MemoryPlace;
use memgauge_core::stats::median;
use memgauge_core::wording;

use super::grid::{Cell, Column, blocks};
use super::page::Page;
use crate::number::{bounds, number};

/// What is said of a matrix that shows firmware's claims, too.
pub(super) const CLAIMED: &str = "; in brackets: what firmware claims (HMAT)";

/// With more columns than this a matrix shows values only, so that it stays readable.
pub(super) const DETAILED_COLUMNS: usize = 16;

/// Prints a matrix; `corner` is the head of the rows' names. Cells are made column by column, which is the order of their footnotes.
pub(super) fn matrix<R, C, T: Into<Cell>>(
    page: &mut Page,
    corner: &str,
    rows: &[(R, String)],
    columns: &[(C, String)],
    mut cell: impl FnMut(&R, &C) -> T,
) {
    let lead = Column::text(corner, rows.iter().map(|(_, name)| name.as_str()));
    let mut column = |(key, name): &(C, String)| Column::numbers(name.as_str(), rows.iter().map(|(row, _)| cell(row, key)));
    let columns: Vec<Column> = columns.iter().map(&mut column).collect();
    for block in blocks(&lead, &columns, page.width) {
        page.table_lines(&block);
    }
}

/// The names of rows, each a node and CPUs of it: the CPUs are named where a node has several rows.
pub(super) fn row_names<C: Copy>(rows: &[(Option<u32>, Option<C>)], name_cpus: impl Fn(C) -> String) -> Vec<NamedRow<C>> {
    let several = |node: Option<u32>| rows.iter().filter(|r| r.0 == node).count() > 1;
    let name = |&(node, cpus): &(Option<u32>, Option<C>)| match cpus {
        Some(cpus) if node.is_none() => name_cpus(cpus),
        Some(cpus) if several(node) => format!("{}, {}", wording::node(node), name_cpus(cpus)),
        _ => wording::node(node),
    };
    rows.iter().map(|row| (*row, name(row))).collect()
}

/// A node, CPUs of it, and what the two are called.
type NamedRow<C> = ((Option<u32>, Option<C>), String);

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
        Cell::Value { number, claim, marks, .. } if !detailed => Cell::Value { number, half: String::new(), claim, marks },
        other => other,
    }
}

/// Columns of the fastest, median and slowest of each group of latencies.
pub(super) fn spread_columns<'g>(groups: impl Iterator<Item = &'g Vec<f64>> + Clone) -> [Column; 3] {
    let cell = |v: Option<f64>| v.map(|v| Cell::number(number(v)));
    let ends = |group: &Vec<f64>| bounds(group.iter().copied());
    [
        Column::numbers("fastest", groups.clone().map(|g| cell(ends(g).map(|b| b.0)))),
        Column::numbers("median", groups.clone().map(|g| cell(median(g)))),
        Column::numbers("slowest", groups.map(|g| cell(ends(g).map(|b| b.1)))),
    ]
}
