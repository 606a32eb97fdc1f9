//! The layout and the size of saved results, and which files are read.

use memgauge_model::result::{KernelTrial, Report};
use memgauge_render::{Appearance, Document, Format, ReadError, read};

use crate::samples;

fn json(report: &Report) -> String {
    String::from_utf8(report.render(Format::JSON, &Appearance::default()).unwrap()).unwrap()
}

#[test]
fn a_result_has_lines_and_its_samples_have_one() {
    let mut report = samples::pmem();
    report.results.truncate(1);
    report.notes.clear();
    let text = json(&report);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..3], ["{", "  \"schema_version\": 2,", "  \"summary\": null,"], "the summary is at the top");
    for line in ["  \"results\": [", "    {", "      \"experiment\": \"idle-latency\",", "  \"notes\": []", "    \"id\": \"\""] {
        assert!(lines.contains(&line), "{line:?} in {text}");
    }
    let at = lines.iter().find(|l| l.starts_with("      \"at\": ")).unwrap();
    assert!(
        at.ends_with(
            r#"{"cpu_node": 0, "memory": {"device": {"node": 1}}, "memory_dir": "/mnt/pmem", "cpu": 0, "order": "window-local"},"#
        )
    );
    let bursts = lines.iter().find(|l| l.starts_with("      \"samples\": ")).unwrap();
    assert!(bursts.starts_with("      \"samples\": {\"bursts\": [[") && bursts.ends_with("\"left_out\": [1]},"), "{bursts}");
    assert!(text.ends_with("}\n") && lines.iter().all(|l| l.trim_end() == *l), "no blanks at the end of a line");
}

/// The default run on a machine of two CPUs: 90 numbers, each with a hundred samples and what is known of it.
#[test]
fn a_suite_with_its_samples_stays_small() {
    let mut report = samples::vm();
    let some = report.results.clone();
    report.results = some.iter().cycle().take(90).cloned().collect();
    for m in &mut report.results {
        m.samples = samples::samples(m, 10, 10);
        let trial = |i: u32| KernelTrial { kernel: format!("load-avx512-{i}"), value: 41.234_567_890_123 };
        m.evidence.kernels_tried = (0..8).map(trial).collect();
    }
    report.repeats = report.results[..1].to_vec();
    let verbose = json(&report);
    report.remove_trials();
    let usual = json(&report);
    assert!(verbose.contains("kernels_tried") && !usual.contains("kernels_tried"));
    assert!(usual.len() < 300_000, "{} bytes", usual.len());
    assert!(usual.lines().count() < 90 * 30, "{} lines", usual.lines().count());
    assert_eq!(read(usual.as_bytes()).unwrap(), report);
}

/// A matrix of dozens of nodes: what its results have alike is said once, and a program that reads the file does not see that.
#[test]
fn many_results_say_once_what_they_have_alike() {
    let mut report = samples::vm();
    let some = report.results.clone();
    report.results = some.iter().cycle().take(1200).cloned().collect();
    report.results[6].estimate.value = Some(1.0 / 3.0);
    report.results[7].evidence.noise.migrations = Some(3);
    report.results[8].evidence.noise.migrations = None;
    report.results[9].evidence.pages.share = Some(0.25);
    let text = json(&report);
    assert!(text.len() < 1200 * 1000 && text.lines().count() < 1600, "{} bytes, {} lines", text.len(), text.lines().count());
    assert!(text.contains("\"value\":0.3333333,"), "seven digits");
    let again = read(text.as_bytes()).unwrap();
    let evidence = |r: &Report| -> Vec<_> { r.results.iter().map(|m| (m.evidence.pages.clone(), m.evidence.noise.clone())).collect() };
    assert!(again.common.is_none() && evidence(&again) == evidence(&report), "each has what is its own");
    assert!(json(&again) == text, "what was rounded once stays as it is");
}

#[test]
fn other_versions_of_the_schema_are_refused() {
    let old = read(include_bytes!("samples/version-1.json")).unwrap_err();
    assert!(matches!(old, ReadError::TooOld(1)), "{old:?}");
    assert_eq!(
        old.to_string(),
        "has schema version 1, and this memgauge reads version 2; render it with the memgauge that wrote it, or measure again"
    );
    let new = json(&samples::vm()).replacen("\"schema_version\": 2", "\"schema_version\": 3", 1);
    let new = read(new.as_bytes()).unwrap_err();
    assert!(matches!(new, ReadError::TooNew(3)), "{new:?}");
    assert_eq!(new.to_string(), "has schema version 3, and this memgauge reads version 2; a newer memgauge wrote it: update memgauge");
}

/// Each row of a table has the labels and the ID: a result of 1 MiB became 307 MB of CSV.
#[test]
fn what_goes_beyond_any_result_is_refused_by_its_name() {
    let refused = |change: &dyn Fn(&mut Report)| {
        let mut report = samples::vm();
        change(&mut report);
        let why = read(json(&report).as_bytes()).unwrap_err().to_string();
        assert!(why.starts_with("is damaged: "), "{why}");
        why
    };
    let why = refused(&|report| drop(report.run.labels.insert("rack".into(), "x".repeat(8192))));
    assert!(why.contains("run.labels has 8196 bytes, and a result's has 8192 at most"), "{why}");
    assert!(refused(&|report| report.run.id = "x".repeat(257)).contains("run.id has 257 bytes"));
    for value in [1e308, 5e-324, -1e13] {
        assert!(refused(&|report| report.results[0].estimate.value = Some(value)).contains("which neither a latency nor a bandwidth is"));
    }
    assert!(refused(&|report| report.results[0].estimate.ci95_high = Some(1e300)).contains("1e300"));
    let mut report = samples::vm();
    report.run.labels.insert("rack".into(), "x".repeat(8188));
    report.results[0].estimate.value = Some(0.0);
    read(json(&report).as_bytes()).unwrap();
}

#[test]
fn what_is_no_result_is_refused() {
    for (text, words) in [
        ("hello", "is not JSON"),
        ("[]", "no result of memgauge"),
        ("{}", "no result of memgauge"),
        ("{\"schema_version\": \"2\"}", "no result of memgauge"),
        ("{\"schema_version\": 2}", "is damaged: missing field"),
    ] {
        let why = read(text.as_bytes()).unwrap_err().to_string();
        assert!(why.contains(words), "{text}: {why}");
    }
}
