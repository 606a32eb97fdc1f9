//! The columns of a store's two tables: runs, and measurements. A column is declared once, where its value is taken from a run, a cell or a
//! row. Columns of measurements repeat those of their run, so that a question needs no join: in Parquet that costs a few bytes a run.

use std::sync::Arc;

use memgauge_model::columns::{COLUMNS, Column, Read};
use memgauge_model::experiment::{Coordinates, Experiment, Metric, Unit};
use memgauge_model::wording::spelled;
use parquet::data_type::ByteArray;
use serde::Serialize;

use super::moment::microseconds;
use super::partition;
use super::run::StoredRun;
use crate::row::{Cell, HostRun, Row};

/// What a column holds. Every column may lack values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Number,
    Truth,
    /// Microseconds since 1970, UTC.
    Moment,
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Text(ByteArray),
    Integer(i64),
    Number(f64),
    Truth(bool),
}

/// A column's name and kind, and a value of it.
pub(super) type Field = (&'static str, Kind, Value);

fn text(name: &'static str, value: Option<impl AsRef<str>>) -> Field {
    (name, Kind::Text, value.map_or(Value::Null, |v| Value::Text(ByteArray::from(v.as_ref()))))
}

fn word(name: &'static str, value: Option<impl Serialize>) -> Field {
    text(name, value.map(|v| spelled(&v)))
}

fn integer(name: &'static str, value: Option<impl TryInto<i64>>) -> Field {
    (name, Kind::Integer, value.and_then(|v| v.try_into().ok()).map_or(Value::Null, Value::Integer))
}

fn number(name: &'static str, value: Option<f64>) -> Field {
    (name, Kind::Number, value.map_or(Value::Null, Value::Number))
}

fn json(name: &'static str, value: &impl Serialize) -> Field {
    text(name, serde_json::to_string(value).ok())
}

/// The columns that the rows of a run have in common, in both tables.
pub(super) fn host(run: &HostRun) -> Vec<Field> {
    let print = &run.fingerprint;
    vec![
        text("host", Some(&run.host)),
        text("machine_id_hash", run.machine_id_hash.as_ref()),
        text("run_id", Some(&run.run_id)),
        ("started", Kind::Moment, microseconds(&run.started).map_or(Value::Null, Value::Integer)),
        ("complete", Kind::Truth, Value::Truth(run.complete)),
        json("labels", &run.labels),
        text("host_cpu", print.cpu.as_ref()),
        text("host_stepping", print.stepping.as_ref()),
        text("host_hypervisor", print.hypervisor.as_ref()),
        integer("host_cpus", Some(print.cpus)),
        integer("host_nodes", Some(print.nodes)),
        text("host_memory", print.memory.as_ref()),
        text("host_pages", print.pages.as_ref()),
        text("host_microcode", print.microcode.as_ref()),
        text("host_firmware", print.firmware.as_ref()),
        text("host_kernel", print.kernel.as_ref()),
    ]
}

/// A row of the table of runs.
pub(super) fn run(stored: &StoredRun) -> Vec<Field> {
    let mut fields = host(&stored.run);
    fields.extend([
        text("started_text", Some(&stored.run.started)),
        text("partition", Some(partition::name(&stored.run.fingerprint))),
        text("memgauge", Some(&stored.memgauge)),
        text("command", Some(&stored.command)),
        word("health", stored.health),
        text("file", Some(&stored.file)),
        text("copy", stored.copy.as_ref()),
        integer("measured", Some(stored.measured)),
        integer("not_measured", Some(stored.not_measured)),
    ]);
    fields
}

/// The quantity that was measured, and where: columns as those of `memgauge render --format csv`, and `at`, the coordinates as results have them.
pub(super) fn cell(cell: &Cell) -> Vec<Field> {
    let place = |column: &Column| match column.read {
        Read::Number(read) => integer(column.name, read(&cell.at)),
        Read::Text(read) => text(column.name, read(&cell.at)),
    };
    let mut fields = vec![word("experiment", Some(cell.experiment)), word("metric", Some(cell.metric))];
    fields.extend(COLUMNS.iter().map(place));
    fields.extend([json("at", &cell.at), word("unit", Some(cell.unit))]);
    fields
}

/// The value, and how far to trust it.
pub(super) fn value(row: &Row) -> Vec<Field> {
    vec![
        number("value", row.value),
        number("low", row.interval.map(|(low, _)| low)),
        number("high", row.interval.map(|(_, high)| high)),
        word("pages", row.pages),
        text("volatile", row.volatile.as_ref()),
        word("quality", row.quality),
        text("not_measured", row.not_measured.as_ref()),
    ]
}

/// The columns of both tables, runs and measurements.
pub(super) fn names() -> [Vec<&'static str>; 2] {
    let any = Cell { experiment: Experiment::IdleLatency, at: Coordinates::default(), metric: Metric::Latency, unit: Unit::Nanoseconds };
    let row = Row {
        run: Arc::new(HostRun::default()),
        cell: Arc::new(any),
        value: None,
        interval: None,
        pages: None,
        volatile: None,
        quality: None,
        not_measured: None,
    };
    let measurement = host(&row.run).into_iter().chain(cell(&row.cell)).chain(value(&row));
    [run(&StoredRun::default()).into_iter().map(|(name, ..)| name).collect(), measurement.map(|(name, ..)| name).collect()]
}

#[cfg(test)]
mod tests {
    use memgauge_model::result::Report;
    use memgauge_render::{Appearance, Document, Format};

    use super::*;

    #[test]
    fn columns_are_called_as_in_csv() {
        let report: Report = memgauge_render::read(include_bytes!("../../../../tests/results/two-nodes.json")).unwrap();
        let csv = String::from_utf8(report.render(Format::CSV, &Appearance::default()).unwrap()).unwrap();
        let csv: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
        let row = &crate::rows(&report)[0];
        let own: Vec<&str> = cell(&row.cell).iter().chain(&value(row)).map(|(name, ..)| *name).filter(|name| *name != "at").collect();
        let missing: Vec<_> = own.iter().filter(|name| !csv.contains(name)).collect();
        assert!(missing.is_empty(), "CSV has no column {missing:?}");
        // Every place that CSV has a column for.
        let places = csv.iter().skip_while(|name| **name != "cpu").take_while(|name| **name != "value");
        let missing: Vec<_> = places.filter(|name| !own.contains(name)).collect();
        assert!(missing.is_empty(), "the store has no column {missing:?}");
    }
}
