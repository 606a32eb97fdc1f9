//! What people ask a fleet's files with, where `python3` has it: DuckDB with views.sql, pandas, Polars.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a panic in a test is its failure report; a test that is skipped prints why")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use memgauge_fleet::{IngestOptions, Row, ingest, read};
use memgauge_model::result::Host;
use memgauge_render::{Appearance, Document, Format};
use memgauge_testing::not_tested_in_part;
use serde_json::json;
use tempfile::TempDir;

/// A fleet that version 0.1.0 began, without some of today's columns, with every saved result, and with ten more runs on hosts like that of
/// one of them; one host has two.
fn fleet(folder: &Path) -> Vec<Row> {
    let inbox = folder.join("inbox");
    fs::create_dir(&inbox).unwrap();
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/results");
    let saved = ["cxl-hmat", "degraded", "eight-nodes", "interrupted", "pmem", "scan", "two-nodes", "vm-2-cpus"];
    for (i, name) in saved.iter().chain(["two-nodes"; 10].iter()).enumerate() {
        let mut report = memgauge_render::read(&fs::read(results.join(format!("{name}.json"))).unwrap()).unwrap();
        report.run.id = format!("run-{i}");
        // The last three have one name; one of them is another machine.
        let id = format!("{:064x}", if i == 17 { 16 } else { i });
        report.run.host = Some(Host { hostname: Some(format!("h{}", i.min(15))), machine_id_hash: (i > 7).then_some(id) });
        report.started.utc = format!("2026-03-14T09:26:{i:02}.250Z");
        for m in &mut report.results {
            let value = m.estimate.value.map(|v| v * (1.0 + 0.001 * i as f64));
            m.estimate.value = value;
        }
        fs::write(inbox.join(format!("{i}.json")), report.render(Format::JSON, &Appearance::default()).unwrap()).unwrap();
    }
    let fleet = folder.join("it's a fleet");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores/0.1.0"), &fleet);
    // Several batches.
    let options = IngestOptions { copy: false, batch: 7 };
    ingest(&fleet, &[inbox], &options, &AtomicBool::new(false), |_| {}).unwrap();
    read(&fleet).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() { copy(&entry.path(), &to) } else { fs::copy(entry.path(), to).map(drop).unwrap() }
    }
}

#[test]
fn duckdb_pandas_and_polars_read_it_without_loss() {
    let library = |name: &str| Command::new("python3").args(["-c", &format!("import {name}")]).output().is_ok_and(|o| o.status.success());
    let folder = TempDir::new().unwrap();
    let rows = fleet(folder.path());
    assert!(rows.len() > 500 && rows.iter().any(|row| row.value.is_none()));
    let expected: Vec<_> = rows
        .iter()
        .map(|row| {
            let cell = &row.cell;
            let (low, high) = row.interval.unzip();
            json!({
                "run_id": row.run.run_id, "host": row.run.host, "machine_id_hash": row.run.machine_id_hash, "pages": row.pages, "started": row.run.started, "complete": row.run.complete,
                "host_nodes": row.run.fingerprint.nodes, "experiment": cell.experiment, "metric": cell.metric, "unit": cell.unit, "at": cell.at,
                "cpu_node": cell.at.cpu_node, "mix": cell.at.mix, "working_set_bytes": cell.at.working_set,
                "value": row.value, "low": low, "high": high, "quality": row.quality, "not_measured": row.not_measured,
            })
        })
        .collect();
    let file = folder.path().join("expected.json");
    fs::write(&file, serde_json::to_vec(&expected).unwrap()).unwrap();
    for (name, needs) in [("duckdb", "duckdb"), ("pandas", "pandas, pyarrow"), ("polars", "polars")] {
        if !library(needs) {
            not_tested_in_part!("a fleet in {name}: python3 has no {needs}");
            continue;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_parquet.py");
        let output = Command::new("python3").arg(script).arg(name).arg(folder.path().join("it's a fleet")).arg(&file).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim().parse(), Ok(rows.len()), "{name} compared other rows");
    }
}
