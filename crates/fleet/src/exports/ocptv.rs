//! JSON lines by the Open Compute Project's Test & Validation specification, schema 2.0
//! (<https://github.com/opencomputeproject/ocp-diag-core>, `json_spec/output`).

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::Experiment;
use memgauge_model::printable::escape_json;
use memgauge_model::result::{Finding, HealthStatus};
use memgauge_model::wording::{coordinates, spelled};
use serde_json::{Map, Value, json};

use super::run::{ExportError, ExportRun};
use crate::row::Row;
use crate::store::microseconds;

/// The time of a run that does not state one: the format asks for a time.
const NO_TIME: &str = "1970-01-01T00:00:00Z";

/// Runs as OCPTV: one test run after another, each beginning with its `schemaVersion`. A step is an experiment. A row without a value is an
/// `error`, because the format has no measurement without a value.
///
/// # Errors
/// When the JSON writer refuses something.
pub fn ocptv(runs: &[ExportRun]) -> Result<Vec<u8>, ExportError> {
    let mut text = Vec::new();
    for run in runs {
        let mut lines = Lines { sequence: 0, time: time(run), text: &mut text };
        lines.write("schemaVersion", json!({"major": 2, "minor": 0}))?;
        lines.write("testRunArtifact", json!({"testRunStart": start(run)}))?;
        let mut steps: BTreeMap<Experiment, Vec<&Row>> = BTreeMap::new();
        run.rows.iter().for_each(|row| steps.entry(row.cell.experiment).or_default().push(row));
        let steps_with_values = steps.len();
        for (step, (experiment, rows)) in steps.into_iter().enumerate() {
            let mut artifact = |name: &str, content: Value| {
                let mut artifact = Map::from_iter([("testStepId".to_owned(), json!(step.to_string()))]);
                artifact.insert(name.to_owned(), content);
                lines.write("testStepArtifact", artifact.into())
            };
            artifact("testStepStart", json!({"name": experiment.name()}))?;
            for row in &rows {
                match row.value {
                    Some(value) => artifact("measurement", measurement(row, value))?,
                    None => artifact("error", not_measured(row))?,
                }
            }
            let all = rows.iter().all(|row| row.value.is_some());
            artifact("testStepEnd", json!({"status": if all { "COMPLETE" } else { "ERROR" }}))?;
        }
        if let Some(health) = run.health {
            let mut artifact = |name: &str, content: Value| {
                let mut artifact = Map::from_iter([("testStepId".to_owned(), json!(steps_with_values.to_string()))]);
                artifact.insert(name.to_owned(), content);
                lines.write("testStepArtifact", artifact.into())
            };
            artifact("testStepStart", json!({"name": "health"}))?;
            for diagnosis in diagnoses(run, health) {
                artifact("diagnosis", diagnosis)?;
            }
            artifact("testStepEnd", json!({"status": "COMPLETE"}))?;
        }
        // A test run that did not come to its end has no result: the specification keeps PASS and FAIL for those that did.
        let (status, result) = if run.run.complete { ("COMPLETE", result(run.health)) } else { ("ERROR", "NOT_APPLICABLE") };
        lines.write("testRunArtifact", json!({"testRunEnd": {"status": status, "result": result}}))?;
    }
    Ok(text)
}

/// The artifacts of one test run.
struct Lines<'a> {
    sequence: u64,
    time: &'a str,
    text: &'a mut Vec<u8>,
}

impl Lines<'_> {
    fn write(&mut self, name: &str, content: Value) -> Result<(), ExportError> {
        let mut line = Map::new();
        line.insert(name.to_owned(), content);
        line.insert("sequenceNumber".to_owned(), self.sequence.into());
        line.insert("timestamp".to_owned(), self.time.into());
        self.sequence += 1;
        self.text.extend(escape_json(&serde_json::to_string(&line)?).bytes());
        self.text.push(b'\n');
        Ok(())
    }
}

fn time(run: &ExportRun) -> &str {
    let started = run.run.started.as_str();
    if microseconds(started).is_some() { started } else { NO_TIME }
}

fn start(run: &ExportRun) -> Value {
    let host = &run.run;
    let print = &host.fingerprint;
    let software = |id: &str, name: &str, version: Option<&String>, kind: &str| {
        version.map(|version| json!({"softwareInfoId": id, "name": name, "version": version, "softwareType": kind}))
    };
    let software = [
        software("memgauge", "memgauge", Some(&run.memgauge), "APPLICATION"),
        software("kernel", "Linux", print.kernel.as_ref(), "SYSTEM"),
        software("firmware", "firmware", print.firmware.as_ref(), "FIRMWARE"),
        software("microcode", "microcode", print.microcode.as_ref(), "FIRMWARE"),
    ];
    let nodes: BTreeSet<u32> = run.rows.iter().filter_map(|row| row.cell.at.memory_node()).collect();
    let hardware: Vec<Value> =
        nodes.into_iter().map(|node| json!({"hardwareInfoId": hardware_id(node), "name": format!("memory node {node}")})).collect();
    let platform: Vec<Value> = print.cpu.iter().chain(&print.memory).map(|info| json!({"info": info})).collect();
    json!({
        "name": "memgauge",
        "version": run.memgauge,
        "commandLine": run.command,
        "parameters": {},
        "dutInfo": {
            "dutInfoId": host.machine_id_hash.as_ref().unwrap_or(&host.host),
            "name": host.host,
            "platformInfos": platform,
            "softwareInfos": software.into_iter().flatten().collect::<Vec<_>>(),
            "hardwareInfos": hardware,
        },
        "metadata": {"run_id": host.run_id, "labels": host.labels},
    })
}

fn hardware_id(node: u32) -> String {
    format!("memory-node-{node}")
}

fn name(row: &Row) -> String {
    format!("{} {}", row.cell.experiment.name(), spelled(&row.cell.metric))
}

fn measurement(row: &Row, value: f64) -> Value {
    let (low, high) = row.interval.map_or((None, None), |(low, high)| (Some(low), Some(high)));
    let metadata = json!({
        "at": row.cell.at,
        "where": coordinates(&row.cell.at),
        "low": low,
        "high": high,
        "quality": row.quality,
    });
    let mut measurement = Map::from_iter([
        ("name".to_owned(), json!(name(row))),
        ("value".to_owned(), json!(value)),
        ("unit".to_owned(), json!(row.cell.unit)),
    ]);
    if let Some(node) = row.cell.at.memory_node() {
        measurement.insert("hardwareInfoId".to_owned(), hardware_id(node).into());
    }
    measurement.insert("metadata".to_owned(), metadata);
    measurement.into()
}

fn not_measured(row: &Row) -> Value {
    let why = row.not_measured.as_deref().unwrap_or_default();
    json!({"symptom": "not-measured", "message": format!("{}, {}: {why}", name(row), coordinates(&row.cell.at)), "softwareInfoIds": ["memgauge"]})
}

/// The conclusions of a health check: each of its findings, or its status if the findings are not known or there are none.
fn diagnoses(run: &ExportRun, health: HealthStatus) -> Vec<Value> {
    if run.findings.is_empty() {
        return vec![json!({"verdict": format!("health-{}", spelled(&health)), "type": kind(health)})];
    }
    let finding = |finding: &Finding| json!({"verdict": finding.code, "type": kind(finding.severity), "message": finding.message});
    run.findings.iter().map(finding).collect()
}

/// The type of a diagnosis.
const fn kind(status: HealthStatus) -> &'static str {
    match status {
        HealthStatus::Ok => "PASS",
        HealthStatus::Failure | HealthStatus::Incident => "FAIL",
        HealthStatus::Warning | HealthStatus::Unknown | HealthStatus::CouldNotMeasure => "UNKNOWN",
    }
}

/// A measurement alone has no verdict; a health check has, unless it could not judge.
const fn result(health: Option<HealthStatus>) -> &'static str {
    match health {
        Some(HealthStatus::Ok) => "PASS",
        Some(HealthStatus::Failure | HealthStatus::Incident) => "FAIL",
        Some(HealthStatus::Warning | HealthStatus::Unknown | HealthStatus::CouldNotMeasure) | None => "NOT_APPLICABLE",
    }
}
