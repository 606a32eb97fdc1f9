//! CSV holds every number of a result once, with all its digits.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::LineState;
use memgauge_model::result::{PairMatrix, Quality, QualityLevel, QualityReason, Report};
use memgauge_render::{Appearance, Document, Format, Named};
use memgauge_testing::not_tested_in_part;
use proptest::prelude::*;
use serde_json::Value;

use crate::samples;

type Row = BTreeMap<String, String>;

fn rows(report: &Report) -> Vec<Row> {
    read(&report.render(Format::CSV, &Appearance::default()).unwrap())
}

fn read(bytes: &[u8]) -> Vec<Row> {
    csv::Reader::from_reader(bytes).deserialize().map(Result::unwrap).collect()
}

/// Whether a column holds this value of JSON.
fn same(column: &str, json: &Value) -> bool {
    match json {
        Value::Null => column.is_empty(),
        Value::Number(n) => column.parse::<f64>().ok() == n.as_f64(),
        Value::String(text) => column == text,
        Value::Bool(truth) => column == truth.to_string(),
        Value::Array(list) => column == list.iter().map(|v| v.as_str().unwrap()).collect::<Vec<_>>().join(";"),
        Value::Object(_) => false,
    }
}

/// The fields of a measurement and their columns. The memory's place is a column of its own.
const FIELDS: [(&str, &str); 34] = [
    ("experiment", "/experiment"),
    ("metric", "/metric"),
    ("cpu", "/at/cpu"),
    ("cpu_node", "/at/cpu_node"),
    ("memory_dir", "/at/memory_dir"),
    ("holder_cpu", "/at/holder_cpu"),
    ("holder_node", "/at/holder_node"),
    ("sharer_cpu", "/at/sharer_cpu"),
    ("state", "/at/state"),
    ("cpus", "/at/cpus"),
    ("load_nodes", "/at/load_nodes"),
    ("order", "/at/order"),
    ("mix", "/at/mix"),
    ("delay_cycles", "/at/delay_cycles"),
    ("region", "/at/region"),
    ("prefetch", "/at/prefetch"),
    ("working_set_bytes", "/at/working_set"),
    ("value", "/value"),
    ("low", "/ci95_low"),
    ("high", "/ci95_high"),
    ("unit", "/unit"),
    ("n", "/n"),
    ("min", "/min"),
    ("max", "/max"),
    ("mad", "/mad"),
    ("quality", "/quality/level"),
    ("reasons", "/quality/reasons"),
    ("not_measured", "/not_measured/cause"),
    ("limit", "/verdict/limit"),
    ("kernel", "/evidence/kernel"),
    ("threads", "/evidence/threads"),
    ("buffer_bytes", "/evidence/buffer"),
    ("pages", "/evidence/pages/obtained"),
    ("placement", "/evidence/placement/status"),
];

/// Compares CSV with JSON: each measurement is one row, in the same order, and no row is left over.
fn compare(report: &Report) -> Result<(), TestCaseError> {
    let json: Value = serde_json::from_slice(&report.render(Format::JSON, &Appearance::default()).unwrap()).unwrap();
    let rows = rows(report);
    let mut left = rows.iter().filter(|row| !["counters", "pages"].contains(&row["method"].as_str()) && !row["metric"].contains("-p"));
    for (list, repeat) in [("results", "false"), ("repeats", "true")] {
        for m in json[list].as_array().into_iter().flatten() {
            let row = left.next().ok_or_else(|| TestCaseError::fail("a row is missing"))?;
            prop_assert_eq!(&row["repeat"], repeat);
            for (column, pointer) in FIELDS {
                let value = m.pointer(pointer).unwrap_or(&Value::Null);
                prop_assert!(same(&row[column], value), "{}: {} is not {}", column, row[column], value);
            }
            prop_assert_eq!(row["detail"].is_empty(), m.get("not_measured").is_none());
        }
    }
    for matrix in &report.matrices {
        let json = serde_json::to_value(matrix).unwrap();
        for (i, reader) in matrix.cpus.iter().enumerate() {
            for (j, holder) in matrix.cpus.iter().enumerate().filter(|(j, _)| *j != i) {
                let row = left.next().ok_or_else(|| TestCaseError::fail("a pair is missing"))?;
                prop_assert_eq!((&row["cpu"], &row["holder_cpu"]), (&reader.to_string(), &holder.to_string()));
                // As it is written, not as the 32 bits read back.
                let written = &json["values"][i][j];
                prop_assert!(row["value"].parse().ok() == matrix.values[i][j], "{} is not {}", row["value"], written);
                prop_assert!(row["value"].len() <= 8, "{} has more digits than were measured", row["value"]);
                let letter = matrix.quality[i].get(j..=j).unwrap();
                prop_assert_eq!(
                    &row["quality"],
                    match letter {
                        "g" => "good",
                        "d" => "degraded",
                        _ => "none",
                    }
                );
                prop_assert_eq!(row["value"].is_empty(), !row["not_measured"].is_empty());
                prop_assert_eq!(row["value"].is_empty(), !row["detail"].is_empty());
            }
        }
    }
    prop_assert!(left.next().is_none(), "a row is left over");
    Ok(())
}

/// Samples of every kind of result.
static REPORTS: LazyLock<Vec<Report>> = LazyLock::new(|| {
    let mut all: Vec<Report> = samples::all().into_iter().map(|(_, report)| report).collect();
    all.extend([
        samples::sweeps::distributed(),
        samples::sweeps::counted(&[], 1000),
        samples::machines::pairs(24),
        samples::sweeps::loops(),
    ]);
    all.extend([samples::sweeps::prefetch(2), samples::sweeps::node_pairs(3)]);
    all
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn every_number_is_in_one_row_with_all_its_digits(
        which in 0..REPORTS.len(),
        values in prop::collection::vec(prop::option::weighted(0.8, (prop::num::f64::POSITIVE, 0.0..0.1)), 1..40),
        pairs in prop::collection::vec(prop::option::of((0.2..5000.0, 0.0..0.4)), 20),
        detail in "[ -~,;\"\n]{0,20}",
    ) {
        let mut report = REPORTS[which].clone();
        for (m, drawn) in report.results.iter_mut().chain(&mut report.repeats).zip(values.iter().cycle()) {
            match drawn {
                Some((value, width)) => {
                    m.estimate.value = Some(*value);
                    m.estimate.ci95_low = Some(value * (1.0 - width));
                }
                None => {
                    let not_measured = Some(NotMeasured::NoMemory { failure: None, node: None, bytes: None, detail: format!("x{detail}").into() });
                    m.estimate = Estimate { not_measured, ..Estimate::default() };
                    m.quality = Quality { level: QualityLevel::None, reasons: vec![] };
                }
            }
        }
        let mut matrix = PairMatrix::new(vec![0, 3, 4, 7, 8], LineState::Hitm, Some(1));
        let places = matrix.cpus.clone();
        let places = places.iter().flat_map(|a| places.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b);
        for ((reader, holder), drawn) in places.zip(&pairs) {
            let Some((value, width)) = drawn else { continue };
            let (low, high) = (value * (1.0 - width), value * (1.0 + width));
            let level = if *width > 0.2 { QualityLevel::Degraded } else { QualityLevel::Good };
            let estimate = Estimate { value: Some(*value), ci95_low: Some(low), ci95_high: Some(high), ..Estimate::default() };
            matrix.set(reader, holder, &estimate, &Quality { level, reasons: vec![QualityReason::Steal] });
        }
        report.matrices.push(matrix);
        compare(&report)?;
    }
}

#[test]
fn counters_and_percentiles_have_rows_of_their_own() {
    let report = samples::sweeps::counted(&[], 1000);
    let counters = report.results.iter().find_map(|m| m.counters.as_ref()).unwrap();
    let expected: usize = report.results.iter().filter_map(|m| m.counters.as_ref()).map(|c| c.metrics.len() + c.events.len()).sum();
    let rows = rows(&report);
    let counted: Vec<_> = rows.iter().filter(|r| r["method"] == "counters").collect();
    assert_eq!(counted.len(), expected);
    let metric = counters.metrics.iter().find(|m| m.value.is_some()).unwrap();
    assert_eq!(
        counted.iter().find(|r| r["metric"] == memgauge_model::wording::spelled(&metric.metric)).unwrap()["value"].parse().ok(),
        metric.value
    );
    for row in counted {
        assert_eq!(row["value"].is_empty(), row["not_measured"] == "not-counted", "{row:?}");
        assert!(row["low"].is_empty() && row["limit"].is_empty() && !row["working_set_bytes"].is_empty());
    }
    let report = samples::sweeps::distributed();
    let wanted = report.results.iter().find_map(|m| m.distribution.as_ref()).unwrap().percentile(99.0);
    let p99 = self::rows(&report).into_iter().find(|r| r["metric"] == "latency-p99").unwrap();
    assert_eq!((p99["value"].parse().ok(), p99["unit"].as_str()), (wanted, "ns"));
}

#[test]
fn several_results_share_one_header_and_runs_tell_them_apart() {
    let (mut a, mut b) = (samples::vm(), samples::vm());
    (a.run.id, b.run.id) = ("a".into(), "b".into());
    b.run.labels = [("rack".into(), "12".into()), ("row".into(), "a,b".into())].into();
    let bytes = [Named { name: "a", report: &a }, Named { name: "b", report: &b }].render(Format::CSV, &Appearance::default()).unwrap();
    let rows = read(&bytes);
    assert_eq!(rows.len(), a.results.len() + b.results.len());
    assert!(rows[..a.results.len()].iter().all(|r| r["run_id"] == "a" && r["labels"].is_empty()));
    assert!(rows[a.results.len()..].iter().all(|r| r["run_id"] == "b" && r["labels"] == "rack=12;row=a,b"));
    // A machine that was only described has a header and no row.
    let empty = samples::info().render(Format::CSV, &Appearance::default()).unwrap();
    assert!(empty.starts_with(b"run_id,") && empty.iter().filter(|b| **b == b'\n').count() == 1);
}

/// What people read CSV with, where `python3` has it.
#[test]
fn pandas_and_duckdb_read_it_without_loss() {
    let library = |name: &str| Command::new("python3").args(["-c", &format!("import {name}")]).output().is_ok_and(|o| o.status.success());
    let folder = std::env::temp_dir().join(format!("memgauge-csv-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut files = Vec::new();
    for (i, report) in REPORTS.iter().enumerate().filter(|(_, r)| !r.is_empty()) {
        let base = folder.join(i.to_string());
        for format in [Format::JSON, Format::CSV] {
            let path = base.with_extension(format.name());
            fs::write(&path, report.render(format, &Appearance::default()).unwrap()).unwrap();
            files.push(path);
        }
    }
    for name in ["pandas", "duckdb"] {
        if !library(name) {
            not_tested_in_part!("CSV in {name}: python3 has no such library");
            continue;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_csv.py");
        let output = Command::new("python3").arg(script).arg(name).args(&files).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.trim().parse::<u32>().unwrap() > 1000, "{name} compared {said} numbers");
    }
    fs::remove_dir_all(folder).unwrap();
}
