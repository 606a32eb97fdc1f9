//! How the times of batches of hops are distributed: percentiles, one line for each measurement.

use std::collections::BTreeSet;

use memgauge_core::distribution::Distribution;
use memgauge_core::result::Measurement;

use super::grid::{Cell, Column, grid};
use super::page::{INDENT, Page, Style};
use crate::number::{count, number, range};

/// With more lines than this, distributions are left to the JSON result.
const LISTED: usize = 32;
/// Percentiles that a narrow page leaves out.
const OPTIONAL: [f64; 5] = [1.0, 5.0, 25.0, 75.0, 95.0];

/// The distributions of those measurements that have one, each called by a name in a column of this head.
pub(super) fn distributions(page: &mut Page, ms: &[&Measurement], head: &str, name: impl Fn(&Measurement) -> String) {
    let rows: Vec<(&Measurement, &Distribution)> = ms.iter().filter_map(|m| Some((*m, m.distribution.as_ref()?))).collect();
    let Some((_, first)) = rows.first() else { return };
    if rows.len() > LISTED {
        let text = format!("{} are in the JSON result", count(rows.len(), "distribution", "distributions"));
        return page.text(Style::Plain, INDENT, INDENT, &text);
    }
    let sizes: BTreeSet<u32> = rows.iter().map(|(_, d)| d.batch_hops).collect();
    let batch = |hops: &u32| if *hops == 1 { "single hops".to_owned() } else { format!("batches of {hops} hops") };
    let clock = range(rows.iter().map(|(_, d)| d.overhead_ns)).unwrap_or_default();
    page.text(
        Style::Plain,
        INDENT,
        INDENT,
        &format!(
            "distribution of {}: percentiles in ns per hop; {clock} ns per batch for reading the clock are subtracted",
            sizes.iter().map(batch).collect::<Vec<_>>().join(" and of "),
        ),
    );
    let mut columns = vec![Column::text(head).cells(rows.iter().map(|(m, _)| Cell::text(name(m))))];
    columns.push(Column::numbers("batches").cells(rows.iter().map(|(_, d)| Cell::text(d.samples.to_string()))));
    for percent in first.percentiles.iter().map(|p| p.percent) {
        let column = Column::numbers(format!("{percent} %"));
        let column = if OPTIONAL.contains(&percent) { column.optional() } else { column };
        let value = |d: &Distribution| d.percentile(percent).map_or(Cell::Blank, |ns| Cell::number(number(ns)));
        columns.push(column.cells(rows.iter().map(|(_, d)| value(d))));
    }
    columns.push(Column::numbers("max").cells(rows.iter().map(|(_, d)| Cell::number(number(d.max_ns)))));
    page.table(&grid(columns, page.width));
}
