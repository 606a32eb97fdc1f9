//! How the times of batches of hops are distributed: percentiles, one line for each measurement.

use std::collections::BTreeSet;

use memgauge_model::distribution::Distribution;
use memgauge_model::result::Measurement;

use super::grid::Column;
use super::page::{Page, Style};
use crate::number::{count, range};

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
        return page.paragraph(Style::Plain, &text);
    }
    let sizes: BTreeSet<u32> = rows.iter().map(|(_, d)| d.batch_hops).collect();
    let batch = |hops: &u32| if *hops == 1 { "single hops".to_owned() } else { format!("batches of {hops} hops") };
    let clock = range(rows.iter().map(|(_, d)| d.overhead_ns)).unwrap_or_default();
    let batches = sizes.iter().map(batch).collect::<Vec<_>>().join(" and of ");
    let about = format!("distribution of {batches}: percentiles in ns per hop; {clock} ns per batch for reading the clock are subtracted");
    page.paragraph(Style::Plain, about);
    let mut columns = vec![
        Column::text(head, rows.iter().map(|(m, _)| name(m))),
        Column::numbers("batches", rows.iter().map(|(_, d)| d.samples.to_string())),
    ];
    for percent in first.percentiles.iter().map(|p| p.percent) {
        let values = rows.iter().map(|(_, d)| d.percentile(percent));
        let column = Column::numbers(format!("{percent} %"), values);
        columns.push(if OPTIONAL.contains(&percent) { column.optional() } else { column });
    }
    columns.push(Column::numbers("max", rows.iter().map(|(_, d)| d.max_ns)));
    let interrupted: Vec<(&Measurement, f64)> = rows.iter().filter_map(|(m, d)| Some((*m, d.lowest_mode_ns?))).collect();
    if !interrupted.is_empty() {
        let modes = rows.iter().map(|(_, d)| d.lowest_mode_ns);
        columns.push(Column::numbers("lowest mode", modes));
    }
    page.table(columns);
    if !interrupted.is_empty() {
        let which = if interrupted.len() == rows.len() { "these" } else { "some of these" };
        let text = format!(
            "interruptions are in {which} distributions, because no burst had enough time without them: a hop takes about the lowest mode"
        );
        page.paragraph(Style::Warning, text);
    }
}
