//! Other tools' formats, read by those tools where they are installed.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use memgauge_model::experiment::Experiment;
use memgauge_model::note::Code;
use memgauge_model::result::{Finding, Health, HealthStatus, Host, Report};
use memgauge_render::{Appearance, Document, Format};
use memgauge_testing::{not_tested, not_tested_in_part};
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::hosts::HostError;

fn saved(name: &str) -> Report {
    let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/results/{name}.json"))).unwrap();
    let mut report = memgauge_render::read(&bytes).unwrap();
    report.run.id = format!("run-{name}");
    report.run.host = Some(Host { hostname: Some(name.into()), machine_id_hash: None });
    report
}

#[test]
fn ocptv_has_a_run_with_steps_and_every_value_once() {
    let mut report = saved("interrupted");
    report.health = Some(Health { status: HealthStatus::Failure, ..Health::default() });
    let run = ExportRun::from_report(&report);
    let text = String::from_utf8(ocptv(&[run.clone(), ExportRun::from_report(&saved("two-nodes"))]).unwrap()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let begins: Vec<usize> = lines.iter().enumerate().filter(|(_, l)| l.get("schemaVersion").is_some()).map(|(i, _)| i).collect();
    assert_eq!(begins.len(), 2);
    let first = &lines[..begins[1]];
    let numbers: Vec<u64> = first.iter().map(|l| l["sequenceNumber"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..first.len() as u64).collect::<Vec<_>>());
    let measured: Vec<f64> = first.iter().filter_map(|l| l["testStepArtifact"]["measurement"]["value"].as_f64()).collect();
    let mut expected: Vec<&Row> = run.rows.iter().collect();
    expected.sort_by_key(|row| row.cell.experiment);
    assert_eq!(measured, expected.iter().filter_map(|row| row.value).collect::<Vec<_>>());
    let errors = first.iter().filter(|l| l["testStepArtifact"]["error"]["symptom"] == "not-measured").count();
    assert_eq!(errors, run.rows.iter().filter(|row| row.value.is_none()).count());
    assert!(errors > 0, "the sample has values that were not measured");
    // It was interrupted: what it did find does not decide about the machine.
    let end = |lines: &[Value]| lines[lines.len() - 1]["testRunArtifact"]["testRunEnd"].clone();
    assert_eq!(end(first), serde_json::json!({"status": "ERROR", "result": "NOT_APPLICABLE"}));
    assert_eq!(end(&lines), serde_json::json!({"status": "COMPLETE", "result": "NOT_APPLICABLE"}));
}

/// A complete health check that found a slow CPU.
fn checked() -> Report {
    let mut report = saved("two-nodes");
    let finding = |code: &str, severity| Finding { code: Code::from_word(code), severity, message: format!("about {code}"), advice: None };
    let findings = vec![finding("slower-than-siblings", HealthStatus::Failure), finding("prefetchers-off", HealthStatus::Warning)];
    report.health = Some(Health { status: HealthStatus::Failure, findings, ..Health::default() });
    report
}

#[test]
fn findings_of_a_health_check_are_diagnoses() {
    let ended = |run: ExportRun| {
        let text = String::from_utf8(ocptv(&[run]).unwrap()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let diagnoses: Vec<_> = lines.iter().map(|l| &l["testStepArtifact"]["diagnosis"]).filter(|d| !d.is_null()).cloned().collect();
        (diagnoses, lines[lines.len() - 1]["testRunArtifact"]["testRunEnd"]["result"].clone())
    };
    let (diagnoses, result) = ended(ExportRun::from_report(&checked()));
    let expected = [("slower-than-siblings", "FAIL"), ("prefetchers-off", "UNKNOWN")]
        .map(|(code, kind)| serde_json::json!({"verdict": code, "type": kind, "message": format!("about {code}")}));
    assert_eq!((diagnoses, result.as_str()), (expected.to_vec(), Some("FAIL")));
    // A store knows the status only.
    let (diagnoses, _) = ended(ExportRun { findings: Vec::new(), ..ExportRun::from_report(&checked()) });
    assert_eq!(diagnoses, [serde_json::json!({"verdict": "health-failure", "type": "FAIL"})]);
}

/// Prometheus' own linter reads what is exported of a fleet.
#[test]
fn promtool_accepts_the_gauges_of_hosts() {
    let runs = ["two-nodes", "vm-2-cpus", "cxl-hmat", "degraded", "interrupted"].map(|name| ExportRun::from_report(&saved(name)));
    let text = openmetrics(&runs).unwrap();
    let child =
        Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = child else { not_tested!("promtool is not installed") };
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
}

/// By the specification's own schema, where Python has jsonschema.
#[test]
fn ocptv_follows_the_schema_of_the_specification() {
    if !Command::new("python3").args(["-c", "import jsonschema"]).output().is_ok_and(|o| o.status.success()) {
        not_tested!("python3 has no jsonschema");
    }
    let folder = TempDir::new().unwrap();
    let mut runs: Vec<ExportRun> =
        ["interrupted", "two-nodes", "cxl-hmat", "degraded", "pmem", "scan"].map(|name| ExportRun::from_report(&saved(name))).into();
    runs.push(ExportRun::from_report(&checked()));
    let file = folder.path().join("runs.jsonl");
    fs::write(&file, ocptv(&runs).unwrap()).unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let output = Command::new("python3").arg(tests.join("check_ocptv.py")).arg(tests.join("ocptv")).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).trim().parse::<usize>().unwrap() > 100);
}

#[test]
fn gauges_of_hosts_have_the_values_of_each() {
    let (a, b) = (saved("two-nodes"), saved("vm-2-cpus"));
    let runs = [ExportRun::from_report(&a), ExportRun::from_report(&b)];
    let text = String::from_utf8(openmetrics(&runs).unwrap()).unwrap();
    assert!(text.ends_with("# EOF\n"));
    // 112.7 ns, in seconds, of node 0 in its own memory.
    let line = text
        .lines()
        .find(|l| l.starts_with("memgauge_idle_latency_seconds{") && l.contains("host=\"two-nodes\"") && l.contains("window-local"))
        .unwrap();
    assert!(line.ends_with("1.127e-7"), "{line}");
    assert!(text.contains("memgauge_run_complete{host=\"vm-2-cpus\",task=\"suite\"}"));
    // A result alone has the same series, without the label.
    let alone = String::from_utf8(a.render(Format::OPENMETRICS, &Appearance::default()).unwrap()).unwrap();
    let names = |text: &str, host: &str| -> Vec<String> {
        let own = text.lines().filter(|l| l.starts_with("memgauge_") && (host.is_empty() || l.contains(&format!("host=\"{host}\""))));
        let values = own.filter(|l| l.starts_with("memgauge_bandwidth_bytes") || l.starts_with("memgauge_idle_latency_seconds"));
        let mut values: Vec<String> = values.map(|l| l.replace(&format!(",host=\"{host}\""), "")).collect();
        values.sort();
        values
    };
    assert_eq!(names(&text, "two-nodes"), names(&alone, ""));
    assert!(names(&alone, "").len() > 5);
}

#[test]
fn machines_of_one_name_are_exported_each() {
    let folder = TempDir::new().unwrap();
    let (inbox, fleet) = (folder.path().join("inbox"), folder.path().join("fleet"));
    fs::create_dir(&inbox).unwrap();
    let mut report = saved("two-nodes");
    for (i, id) in [Some("a"), Some("b"), Some("a"), None].into_iter().enumerate() {
        report.run.id = format!("run-{i}");
        report.run.host = Some(Host { hostname: Some("localhost".into()), machine_id_hash: id.map(|id| id.repeat(64)) });
        report.started.utc = format!("2026-03-{:02}T09:26:53Z", i + 1);
        fs::write(inbox.join(format!("{i}.json")), report.render(Format::JSON, &Appearance::default()).unwrap()).unwrap();
    }
    let options = crate::IngestOptions { copy: false, batch: 10 };
    let outcome = crate::ingest(&fleet, &[inbox], &options, &std::sync::atomic::AtomicBool::new(false), |_| {}).unwrap();
    assert_eq!((outcome.runs, outcome.hosts, outcome.fleet_hosts), (4, 3, 3));
    let store = Store::open(&fleet).unwrap();
    let runs = with_rows(&store, latest_runs(&store, &[], None).unwrap()).unwrap();
    let mut ids: Vec<&str> = runs.iter().map(|run| run.run.run_id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["run-1", "run-2", "run-3"]);
    let of = |host: &str| {
        latest_runs(&store, &[host.to_owned()], None).map(|runs| runs.iter().map(|r| r.run.run_id.clone()).collect::<Vec<_>>())
    };
    assert!(matches!(of("localhost"), Err(ExportError::Host(HostError::Several { hosts, .. })) if hosts.len() == 3));
    assert_eq!(of("aaaaaaaa").unwrap(), ["run-2"]);
    // As exports write it.
    assert_eq!(of("localhost-bbbbbbbbbbbb").unwrap(), ["run-1"]);
    let both = ["aaaaaaaaaaaa".to_owned(), "bbbbbbbbbbbb".to_owned()];
    assert_eq!(latest_runs(&store, &both, None).unwrap().len(), 2);
    let gauges = String::from_utf8(openmetrics(&runs).unwrap()).unwrap();
    let lines = String::from_utf8(superbench(&runs).unwrap()).unwrap();
    for name in ["localhost", "localhost-aaaaaaaaaaaa", "localhost-bbbbbbbbbbbb"] {
        assert!(gauges.contains(&format!("memgauge_run_complete{{host=\"{name}\",task=")), "{name}");
        assert!(lines.contains(&format!("\"node\":\"{name}\"")), "{name}");
    }
    // A name that is alone stays as it is.
    assert!(String::from_utf8(superbench(&runs[..1]).unwrap()).unwrap().contains("\"node\":\"localhost\""));
}

/// hwloc's own tools load the file, and report the attributes.
#[test]
fn hwloc_reads_topology_and_attributes() {
    let folder = TempDir::new().unwrap();
    let tool = |name: &str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    for name in ["two-nodes", "eight-nodes", "cxl-hmat", "vm-2-cpus"] {
        let report = saved(name);
        let xml = String::from_utf8(hwloc(&report).unwrap()).unwrap();
        let opened = xml.matches("<object ").count();
        assert_eq!(opened, xml.matches("</object>").count(), "{name}");
        let topology = &report.machine.topology;
        assert_eq!(xml.matches("type=\"PU\"").count(), topology.cpus.len(), "{name}");
        assert_eq!(xml.matches("type=\"NUMANode\" os_index").count(), topology.nodes.len(), "{name}");
        let values = xml.matches("<memattr_value ").count();
        assert!(values > 0, "{name}");
        let file = folder.path().join(format!("{name}.xml"));
        fs::write(&file, &xml).unwrap();
        if !tool("hwloc-info") {
            not_tested_in_part!("hwloc-info is not installed");
            continue;
        }
        let run = |words: &[&str]| {
            let output = Command::new(words[0]).args(&words[1..]).arg("--input").arg(&file).output().unwrap();
            assert!(output.status.success(), "{name}: {words:?}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(output.stderr.is_empty(), "{name}: {words:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let counted = run(&["hwloc-info", "--no-icaches"]);
        let pus = format!("{} PU", topology.cpus.len());
        assert!(counted.contains(&pus), "{name}: {counted}");
        let attributes = run(&["lstopo-no-graphics", "--memattrs"]);
        assert!(attributes.contains("Latency") && attributes.contains("Bandwidth"), "{name}: {attributes}");
        let reported = attributes.lines().filter(|l| l.trim_start().starts_with("NUMANode") && l.contains(" from ")).count();
        // Capacity and locality are hwloc's own, without "from".
        assert_eq!(reported, values, "{name}: {attributes}");
    }
}

#[test]
fn hwloc_is_refused_where_there_is_nothing_by_node() {
    let mut report = saved("two-nodes");
    report.results.retain(|m| m.experiment == Experiment::CacheToCache);
    let refused = hwloc(&report).unwrap_err().to_string();
    assert!(refused.contains("two-nodes has no latency and no bandwidth by node"), "{refused}");
}
