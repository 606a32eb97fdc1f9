//! Every number of results: one table of one result, and a table for each section of several.

use memgauge_model::experiment::{Coordinates, Experiment, Metric};
use memgauge_model::result::Measurement;
use memgauge_model::wording::reasons::not_measured;
use memgauge_model::wording::spelled;

use super::view::{Table, View, table};
use crate::format::Named;
use crate::groups::Section;
use crate::limit::share_of_limit;
use crate::number::{maybe, percent, unit, value_of};
use crate::pivot::Pivot;
use crate::text::column::{Cell, Column, Value};
use crate::text::comparison::{place, quantity};

/// The measured quantity, in words.
fn what(m: &Measurement) -> String {
    quantity(m.experiment, m.metric)
}

/// Whether to trust the value, and if not, why; if the value is missing, the reason for that.
fn trust(m: &Measurement) -> String {
    let why: Vec<String> = match (&m.estimate.not_measured, value_of(&m.estimate)) {
        (Some(why), None) => return format!("not measured: {}", not_measured(why)),
        (None, None) => return "not measured".to_owned(),
        _ => m.quality.reasons.iter().map(|reason| spelled(reason).replace('-', " ")).collect(),
    };
    let level = spelled(&m.quality.level);
    if why.is_empty() { level } else { format!("{level}: {}", why.join(", ")) }
}

fn of_limit(m: &Measurement) -> Option<Cell> {
    Some(Cell::number(percent(share_of_limit(m)?)))
}

/// Nobody reads a table of more rows than this in a page.
const ROWS: usize = 2000;

/// The table of every result.
pub(super) struct AllValues {
    pub(super) table: Table,
    /// How many there are, also where the table has the first of them only.
    pub(super) count: usize,
}

/// Every result in a row.
pub(super) fn all(ms: &[Measurement]) -> Option<AllValues> {
    let count = ms.len();
    let ms = &ms[..count.min(ROWS)];
    if ms.is_empty() {
        return None;
    }
    let end = |end: Option<f64>| end.filter(|e| e.is_finite());
    let columns = [
        Column::text("what", ms.iter().map(what)),
        Column::text("where", ms.iter().map(|m| place(&m.at))),
        Column::numbers("value", ms.iter().map(|m| Cell::number(maybe(value_of(&m.estimate))))),
        Column::text("unit", ms.iter().map(|m| unit(m.unit))),
        Column::numbers("95 % from", ms.iter().map(|m| end(m.estimate.ci95_low))),
        Column::numbers("to", ms.iter().map(|m| end(m.estimate.ci95_high))),
        Column::numbers("samples", ms.iter().map(|m| m.estimate.n.to_string())),
        Column::numbers("of limit", ms.iter().map(of_limit)),
        Column::text("trust", ms.iter().map(trust)),
    ];
    Some(AllValues { table: Table { searched: true, ..table(&columns).named("Every number") }, count })
}

/// Identifies the same number in several results: experiment, metric, and coordinates.
type Key<'a> = (Experiment, Metric, &'a Coordinates);

/// Numbers of the same section beside each other: a row for each place, a column for each result.
pub(super) fn beside<'a>(results: &[Named<'a>], section: Section) -> Option<View> {
    let of_result = |(i, result): (usize, &Named<'a>)| result.report.results.iter().map(move |m| (((m.experiment, m.metric, &m.at), i), m));
    let all = || results.iter().enumerate().flat_map(of_result).filter(|(_, m)| Section::for_measurement(m) == section);
    let pivot: Pivot<'a, Key<'a>, usize> = Pivot::of(all()).in_order(all().map(|((key, _), _)| key));
    let rows = &pivot.rows;
    if rows.is_empty() {
        return None;
    }
    let one = |row: &Key<'a>, text: fn(&Measurement) -> String| pivot.row(row).next().map(text);
    let mut columns = vec![
        Column::text("where", rows.iter().map(|row| one(row, |m| place(&m.at)))),
        Column::text("what", rows.iter().map(|row| one(row, what))),
    ];
    for (i, result) in results.iter().enumerate() {
        columns.push(Column::numbers(result.name, rows.iter().map(|row| pivot.get(row, &i).map(Value::of))));
    }
    columns.push(Column::text("unit", rows.iter().map(|row| one(row, |m| unit(m.unit).to_owned()))));
    if results.len() == 2 {
        columns.push(Column::numbers("change", rows.iter().map(|row| change(pivot.get(row, &0)?, pivot.get(row, &1)?))));
    }
    Some(View::Table(Table { searched: rows.len() > SEARCHED, ..table(&columns) }))
}

/// Tables of more rows than this have a search.
const SEARCHED: usize = 20;

/// The second number over the first; nothing where one of them is not reliable.
fn change(first: &Measurement, second: &Measurement) -> Option<Cell> {
    let reliable = |m: &Measurement| value_of(&m.estimate).filter(|v| *v > 0.0 && m.is_reliable());
    let ratio = reliable(second)? / reliable(first)?;
    Some(Cell::number(crate::text::comparison::change(ratio)))
}
