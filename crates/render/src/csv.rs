//! CSV: every number of a result in a row of its own, for data frames and databases.

use std::borrow::Cow;

use memgauge_analysis::comparison::{CellComparison, Comparison};
use memgauge_model::axis::Axis;
use memgauge_model::columns::{COLUMNS, Value};
use memgauge_model::counters::ProgramCount;
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::{Coordinates, MemoryPlace, Metric, Unit};
use memgauge_model::printable::escape_within_lines;
use memgauge_model::result::{
    Evidence, Measurement, PageKind, PairMatrix, PlacementStatus, QualityLevel, QualityReason, Report, Residency,
};
use memgauge_model::units::Bytes;
use memgauge_model::wording::{coordinates, reasons, spelled};
use serde::Serialize;

use crate::format::{Format, Named, RenderError};
use crate::text::comparison::what;

impl Format {
    /// A row for each value.
    pub const CSV: Self = Self::new("csv", "csv", "");
}

/// One row for each value, below one header. Cells without a value are empty. Several reports share the header and differ in `run_id`.
pub(crate) fn results_csv(results: &[Named<'_>]) -> Result<Vec<u8>, RenderError> {
    // The header is written apart, so that a result without a value has one too.
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    writer.write_record(header())?;
    results.iter().try_for_each(|result| write(&mut writer, result.report))?;
    finish(writer)
}

/// The bytes that were written, without characters that a terminal would obey.
fn finish(writer: Writer) -> Result<Vec<u8>, RenderError> {
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    // Columns are separated and quoted by characters that stay.
    Ok(match std::str::from_utf8(&bytes).map(escape_within_lines) {
        Ok(Cow::Owned(clean)) => clean.into_bytes(),
        _ => bytes,
    })
}

/// Declares the columns once: the fields of a row, and the header.
macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)+) => {
        /// A row; units are in the names of the columns. `value`, `low`, `high`, `min`, `max`, `mad`, `limit` and `firmware` are in `unit`.
        #[derive(Debug, Clone, Default, Serialize)]
        struct CsvRow<'a> {
            $($(#[$doc])* $name: $type,)+
        }

        const FIELDS: &[&str] = &[$(stringify!($name)),+];
    };
}

/// The coordinates, a value for each of [`COLUMNS`].
type Place = [Option<Value>; COLUMNS.len()];

/// The names of the columns: the place takes several.
fn header() -> Vec<&'static str> {
    let places = || COLUMNS.iter().map(|column| column.name).collect();
    FIELDS.iter().flat_map(|field| if *field == "place" { places() } else { vec![*field] }).collect()
}

columns! {
    // Which run.
    run_id: &'a str,
    host: Option<&'a str>,
    /// UTC.
    started: &'a str,
    /// `KEY=VALUE`, separated by `;`.
    labels: &'a str,
    // Which value.
    /// Whether the cell was measured again: as a control of drift, or to confirm what looked wrong.
    repeat: bool,
    experiment: String,
    /// `latency`, `bandwidth`, or what was counted.
    metric: String,
    /// How it was measured.
    method: String,
    // Where.
    place: Place,
    // The value.
    value: Option<f64>,
    /// The 95 % interval of the median.
    low: Option<f64>,
    high: Option<f64>,
    unit: String,
    n: Option<u32>,
    min: Option<f64>,
    max: Option<f64>,
    mad: Option<f64>,
    converged: Option<bool>,
    // How far to trust it.
    quality: Option<QualityLevel>,
    /// Separated by `;`.
    reasons: String,
    /// Why the value is missing: a stable word.
    not_measured: String,
    /// The same in words.
    detail: String,
    limit: Option<f64>,
    verdict: String,
    firmware: Option<f64>,
    // How it was measured.
    kernel: &'a str,
    threads: Option<u32>,
    buffer_bytes: Option<Bytes>,
    allocations: Option<u32>,
    pages: Option<PageKind>,
    page_bytes: Option<Bytes>,
    placement: Option<PlacementStatus>,
    /// Why the memory is only a stand-in for persistent memory; empty where nothing says so.
    volatile: Option<&'a str>,
    lines_in_flight: Option<f64>,
}

/// A comparison, a row for each number. Ratios are `after` over `before`; what is not known is empty.
///
/// # Errors
/// When the writer refuses a row.
pub(crate) fn comparison_csv(comparison: &Comparison) -> Result<Vec<u8>, RenderError> {
    let columns: [CsvColumn<'_, &CellComparison>; 16] = [
        ("experiment", &|cell| cell.experiment.name().to_owned()),
        ("what", &|cell| what(cell)),
        ("where", &|cell| coordinates(&cell.at)),
        ("metric", &|cell| spelled(&cell.metric)),
        ("unit", &|cell| spelled(&cell.unit)),
        ("before", &|cell| cell.before.to_string()),
        ("after", &|cell| cell.after.to_string()),
        ("runs_before", &|cell| cell.runs.0.to_string()),
        ("runs_after", &|cell| cell.runs.1.to_string()),
        ("ratio", &|cell| cell.ratio.to_string()),
        ("ratio_low", &|cell| maybe(cell.ratio_low)),
        ("ratio_high", &|cell| maybe(cell.ratio_high)),
        ("q", &|cell| maybe(cell.q)),
        ("verdict", &|cell| spelled(&cell.verdict)),
        ("open", &|cell| cell.open.as_ref().map(spelled).unwrap_or_default()),
        ("runs_to_settle", &|cell| cell.runs_to_settle.map(|n| n.to_string()).unwrap_or_default()),
    ];
    table_csv(&columns, comparison.cells.iter())
}

/// A column of a table: its name, and what a row has there.
pub(crate) type CsvColumn<'a, Row> = (&'static str, &'a dyn Fn(&Row) -> String);

/// The header and the rows.
pub(crate) fn table_csv<Row>(columns: &[CsvColumn<'_, Row>], rows: impl Iterator<Item = Row>) -> Result<Vec<u8>, RenderError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns.iter().map(|column| column.0))?;
    for row in rows {
        writer.write_record(columns.iter().map(|column| column.1(&row)))?;
    }
    finish(writer)
}

/// Empty where it is not known.
pub(crate) fn maybe(value: Option<f64>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

/// The method of hardware counters, and the unit of plain counts.
const COUNTERS: &str = "counters";
const COUNT: &str = "count";

type Writer = csv::Writer<Vec<u8>>;

fn write(writer: &mut Writer, report: &Report) -> Result<(), RenderError> {
    let labels: Vec<String> = report.run.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let labels = labels.join(";");
    let host = report.run.host.as_ref().and_then(|host| host.hostname.as_deref());
    let run = CsvRow { run_id: &report.run.id, host, started: &report.started.utc, labels: &labels, ..CsvRow::default() };
    for (repeat, measurements) in [(false, &report.results), (true, &report.repeats)] {
        for m in measurements {
            let row = measurement(CsvRow { repeat, volatile: report.stand_in(&m.at).map(cut), ..run.clone() }, m);
            writer.serialize(&row)?;
            details(writer, &row, m)?;
        }
    }
    report.matrices.iter().try_for_each(|matrix| pairs(writer, &run, matrix, report))?;
    report.program.iter().try_for_each(|program| count(writer, &run, program))?;
    report.residency.iter().try_for_each(|residency| where_memory_lies(writer, &run, residency))
}

/// Characters of a text that many rows repeat: longer ones were not made by memgauge.
const REPEATED: usize = 4096;

/// Cuts a text for many rows. The JSON has the whole of it.
fn cut(text: &str) -> &str {
    text.char_indices().nth(REPEATED).map_or(text, |(end, _)| &text[..end])
}

/// `None` for infinity and NaN, which JSON cannot hold either.
fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|v| v.is_finite())
}

fn join(reasons: &[QualityReason]) -> String {
    reasons.iter().map(spelled).collect::<Vec<_>>().join(";")
}

/// The stable word for why a number is missing.
pub fn cause(why: &impl Serialize) -> String {
    let fields = serde_json::to_value(why).unwrap_or_default();
    fields["cause"].as_str().unwrap_or_default().to_owned()
}

fn measurement<'a>(run: CsvRow<'a>, m: &'a Measurement) -> CsvRow<'a> {
    let row = CsvRow {
        experiment: m.experiment.name().to_owned(),
        metric: spelled(&m.metric),
        method: spelled(&m.method()),
        unit: spelled(&m.unit),
        limit: finite(m.verdict.limit),
        verdict: spelled(&m.verdict.status),
        firmware: finite(m.firmware),
        lines_in_flight: finite(m.lines_in_flight),
        ..run
    };
    let trusted = CsvRow { place: place(&m.at), quality: Some(m.quality.level), reasons: join(&m.quality.reasons), ..row };
    estimated(observed(trusted, &m.evidence), &m.estimate)
}

fn place(at: &Coordinates) -> Place {
    COLUMNS.each_ref().map(|column| match column.value(at)? {
        Value::Text(text) if column.axis == Axis::MemoryDir => Some(Value::Text(cut(&text).to_owned())),
        value => Some(value),
    })
}

fn observed<'a>(row: CsvRow<'a>, evidence: &'a Evidence) -> CsvRow<'a> {
    CsvRow {
        kernel: cut(&evidence.kernel),
        threads: Some(evidence.threads),
        buffer_bytes: Some(evidence.buffer),
        allocations: Some(evidence.allocations),
        pages: evidence.pages.obtained,
        page_bytes: evidence.pages.page,
        placement: Some(evidence.placement.status),
        ..row
    }
}

fn estimated<'a>(row: CsvRow<'a>, e: &Estimate) -> CsvRow<'a> {
    CsvRow {
        value: finite(e.value),
        low: finite(e.ci95_low),
        high: finite(e.ci95_high),
        n: Some(e.n),
        min: finite(e.min),
        max: finite(e.max),
        mad: finite(e.mad),
        converged: e.value.is_some().then_some(e.converged),
        not_measured: e.not_measured.as_ref().map(cause).unwrap_or_default(),
        detail: e.not_measured.as_ref().map(reasons::not_measured).unwrap_or_default(),
        ..row
    }
}

/// Percentiles, and what the CPUs' counters showed during a measurement: rows that share its place and evidence.
fn details(writer: &mut Writer, of: &CsvRow<'_>, m: &Measurement) -> Result<(), RenderError> {
    for percentile in m.distribution.iter().flat_map(|d| &d.percentiles) {
        let metric = format!("{}-p{}", of.metric, percentile.percent);
        writer.serialize(CsvRow { metric, value: finite(Some(percentile.ns)), unit: spelled(&Unit::Nanoseconds), ..bare(of) })?;
    }
    let Some(counters) = &m.counters else { return Ok(()) };
    let events = counters.events.iter().map(|e| (e.event.name.clone(), COUNT.to_owned(), e.value, &e.reason));
    let metrics = counters.metrics.iter().map(|c| (spelled(&c.metric), spelled(&c.unit), c.value, &c.reason));
    for (metric, unit, value, reason) in metrics.chain(events) {
        let mut row = CsvRow { metric, unit, value: finite(value), method: COUNTERS.into(), ..bare(of) };
        if row.value.is_none() {
            row.quality = Some(QualityLevel::None);
            row.not_measured = cause(&NotMeasured::NotCounted { detail: String::new() });
            row.detail = reason.clone().unwrap_or_default();
        }
        writer.serialize(row)?;
    }
    Ok(())
}

/// The row without what is known of its own value.
fn bare<'a>(of: &CsvRow<'a>) -> CsvRow<'a> {
    let row = CsvRow { limit: None, verdict: String::new(), firmware: None, lines_in_flight: None, ..of.clone() };
    CsvRow { n: None, ..estimated(row, &Estimate::default()) }
}

/// All pairs of CPUs, row after row.
fn pairs(writer: &mut Writer, run: &CsvRow<'_>, matrix: &PairMatrix, report: &Report) -> Result<(), RenderError> {
    let at = Coordinates {
        memory: Some(matrix.home.map_or(MemoryPlace::Own, MemoryPlace::Node)),
        memory_dir: matrix.memory_dir.clone(),
        state: Some(matrix.state),
        order: matrix.order,
        ..Coordinates::default()
    };
    let missing = report.incomplete.as_ref().map_or_else(|| "cells-missing".to_owned(), cause);
    let why = report.incomplete.as_ref().map_or_else(|| "the notes of the result say why".to_owned(), reasons::incomplete);
    let why = cut(&why);
    let shared = CsvRow {
        experiment: matrix.experiment.name().to_owned(),
        metric: "latency".into(),
        method: spelled(&matrix.experiment.method(Metric::Latency)),
        unit: spelled(&matrix.unit),
        volatile: report.stand_in(&at).map(cut),
        ..observed(run.clone(), &matrix.evidence)
    };
    // The matrix counts its reasons and does not say which pairs they are of.
    let all: Vec<QualityReason> = matrix.reasons.keys().copied().collect();
    let causes = matrix.why_not();
    for (i, &reader) in matrix.cpus.iter().enumerate() {
        for (j, &holder) in matrix.cpus.iter().enumerate().filter(|(j, _)| *j != i) {
            let at = Coordinates { cpu: Some(reader), holder_cpu: Some(holder), ..at.clone() };
            let row = CsvRow { place: place(&at), ..shared.clone() };
            let value = matrix.value(i, j);
            let half = matrix.half_width_percent.get(i).and_then(|widths| *widths.get(j)?);
            let end = |sign: f64| Some(round(value? * (1.0 + sign * f64::from(half?) / 100.0)));
            let quality = matrix.quality(i, j);
            writer.serialize(match value {
                Some(_) => {
                    let reasons = if quality == QualityLevel::Degraded { join(&all) } else { String::new() };
                    CsvRow { value, low: end(-1.0), high: end(1.0), quality: Some(quality), reasons, ..row }
                }
                None => {
                    let own = causes.get(&(reader, holder)).map(|why| (cause(why), cut(&reasons::not_measured(why)).to_owned()));
                    let (not_measured, detail) = own.unwrap_or_else(|| (missing.clone(), why.to_owned()));
                    CsvRow { quality: Some(QualityLevel::None), not_measured, detail, ..row }
                }
            })?;
        }
    }
    Ok(())
}

/// Ends of intervals that were computed from a percentage, without the digits of binary arithmetic.
fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Memory of processes by node, and what accesses to it cost. `detail` names the process; rows without it are of all together.
fn where_memory_lies(writer: &mut Writer, run: &CsvRow<'_>, residency: &Residency) -> Result<(), RenderError> {
    let row = |metric: &str, unit: &str, detail: String| CsvRow {
        experiment: "where".into(),
        method: "pages".into(),
        metric: metric.into(),
        unit: unit.into(),
        detail,
        ..run.clone()
    };
    let names = residency.processes.iter().map(|process| format!("process {} ({})", process.pid, process.name));
    let each = names.zip(&residency.processes).map(|(name, process)| (name, process.memory.by_node.clone(), process.cost.as_ref()));
    for (node, bytes) in residency.touched_by_node().into_iter().flatten() {
        let at = Coordinates { memory: Some(MemoryPlace::Node(node)), ..Coordinates::default() };
        writer.serialize(CsvRow { place: place(&at), value: Some(bytes.0 as f64), ..row("touched-memory", "B", String::new()) })?;
    }
    for (name, by_node, cost) in [(String::new(), residency.by_node(), residency.cost.as_ref())].into_iter().chain(each) {
        for (node, bytes) in by_node {
            let at = Coordinates { memory: Some(MemoryPlace::Node(node)), ..Coordinates::default() };
            writer.serialize(CsvRow { place: place(&at), value: Some(bytes.0 as f64), ..row("memory", "B", name.clone()) })?;
        }
        let Some(cost) = cost else { continue };
        let quality = Some(if cost.unreliable { QualityLevel::Unreliable } else { QualityLevel::Good });
        writer.serialize(CsvRow { value: finite(Some(cost.remote)), ..row("remote", "share", name.clone()) })?;
        for (metric, price) in [("latency", cost.latency_ns), ("best-latency", cost.best.latency_ns)] {
            let [value, low, high] = [price.value, price.low, price.high].map(|v| finite(Some(v)));
            writer.serialize(CsvRow { value, low, high, quality, ..row(metric, "ns", name.clone()) })?;
        }
        if let Some(gbs) = cost.ceiling_gbs {
            writer.serialize(CsvRow { value: finite(Some(gbs)), ..row("bandwidth-ceiling", "GB/s", name.clone()) })?;
        }
    }
    Ok(())
}

/// What `memgauge count` counted of a program.
fn count(writer: &mut Writer, run: &CsvRow<'_>, program: &ProgramCount) -> Result<(), RenderError> {
    let events = program.events.iter().map(|e| (e.event.name.clone(), e.unit.clone().unwrap_or_else(|| COUNT.into()), &e.estimate));
    let metrics = program.metrics.iter().map(|m| (spelled(&m.metric), spelled(&m.unit), &m.estimate));
    let elapsed = [("elapsed".to_owned(), "s".to_owned(), &program.elapsed_s)];
    for (metric, unit, estimate) in elapsed.into_iter().chain(metrics).chain(events) {
        let quality = estimate.value.is_none().then_some(QualityLevel::None);
        let row = CsvRow { experiment: "count".into(), method: COUNTERS.into(), metric, unit, quality, ..run.clone() };
        writer.serialize(estimated(row, estimate))?;
    }
    Ok(())
}
