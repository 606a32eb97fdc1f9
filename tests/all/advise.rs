//! `memgauge advise` as a black box: saved results, several of them, and wrong input.

use std::fs;
use std::path::Path;
use std::process::Output;

use memgauge_analysis::advice::{Action, Advice, Topic, Why};
use memgauge_model::result::{QualityLevel, Report};

use crate::support::{program, save, temporary, text};

/// A result that the renderers' tests keep, too.
fn kept(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results").join(name).display().to_string()
}

fn advise(arguments: &[&str]) -> Output {
    program().env("COLUMNS", "80").arg("advise").args(arguments).output().unwrap()
}

fn advice(arguments: &[&str]) -> Advice {
    let output = advise(&[arguments, &["--format", "json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_first_line_is_the_answer_and_every_line_fits() {
    let result = kept("two-nodes.json");
    let output = advise(&[&result, "--model-bytes", "8G", "--model", "big=40GB"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.starts_with("All 64 threads are needed for the read bandwidth; big: at most 12.3 tokens/s\n"), "{shown}");
    // Names of files break nowhere.
    assert!(shown.lines().filter(|line| !line.contains(&result)).all(|line| line.chars().count() <= 80), "{shown}");
    for part in ["486.7 ±1.8 GB/s", "own nodes (nodes 0-1)", "KV cache", "other node: 186.4", "memgauge interleave -o interleave.json"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let quiet = advise(&[&result, "-q"]);
    assert_eq!(text(&quiet.stdout), "All 64 threads are needed for the read bandwidth\n");
}

#[test]
fn tokens_a_second_that_are_seen_are_explained_first() {
    let result = kept("two-nodes.json");
    let seen = |rate: &str| advise(&[&result, "--model-bytes", "39G", "--tokens-per-second", rate]);
    let below = seen("6.1");
    assert_eq!(below.status.code(), Some(0), "{}", text(&below.stderr));
    let shown = text(&below.stdout);
    assert!(shown.starts_with("6.10 of at most 11.7 tokens/s: 52 %; this fits: weights on node 0 (5.88)\n"), "{shown}");
    assert!(shown.lines().filter(|line| !line.contains(&result)).all(|line| line.chars().count() <= 80), "{shown}");
    let parts = ["16 threads", "not alone", "\n      memgauge bandwidth --ramp 9-15 -o between.json\n", "memgauge count -- PROGRAM"];
    assert!(parts.iter().all(|part| shown.contains(part)), "{shown}");
    let above = text(&seen("20").stdout).to_owned();
    assert!(above.contains("reads at most 22.9\n  GiB and not 39 GiB") && above.contains("experts"), "{above}");
    let found = advice(&[&result, "--model", "m=39G", "--tokens-per-second", "6.1"]);
    let Action::ExplainTokens { seen_tokens_per_s: 6.1, ceiling, causes, .. } = &found.recommendations[0].action else {
        panic!("{found:?}")
    };
    assert!(ceiling.model.name.as_deref() == Some("m") && causes.iter().all(|cause| cause.rate.is_some() != cause.why.is_some()));
    for (arguments, message) in [
        (&["--tokens-per-second", "6.1"][..], "--tokens-per-second needs the size of the model that decodes; add --model-bytes SIZE"),
        (&["--tokens-per-second", "6.1", "--model-bytes", "8G,9G"], "the rate of one model, and 2 are given; name only that one"),
        (&["--tokens-per-second", "0", "--model-bytes", "8G"], "'0' is not a number of tokens a second, such as 6.1"),
        (&["--tokens-per-second", "inf", "--model-bytes", "8G"], "'inf' is not a number of tokens a second"),
    ] {
        let output = advise(&[&[&result[..]], arguments].concat());
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert!(output.stdout.is_empty() && text(&output.stderr).contains(message), "{}", text(&output.stderr));
    }
}

#[test]
fn files_have_what_standard_output_has() {
    let folder = temporary("advise");
    let result = kept("two-nodes.json");
    let (json, page) = (folder.join("a.json"), folder.join("a.txt"));
    let output = advise(&[&result, "-q", "-o", &json.display().to_string(), "-o", &page.display().to_string()]);
    assert!(output.status.success() && text(&output.stdout).lines().count() == 1, "{}", text(&output.stdout));
    let written: Advice = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(written, advice(&[&result]));
    assert!(written.recommendations.iter().all(|r| !r.numbers.is_empty()), "no advice without a number: {written:?}");
    assert!(fs::read_to_string(&page).unwrap().starts_with("All 64 threads"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_carries_no_advice_is_said_with_status_4() {
    for name in ["info-cxl.json", "pmem.json"] {
        let output = advise(&[&kept(name)]);
        assert_eq!(output.status.code(), Some(4), "{name}");
        let shown = text(&output.stdout);
        assert!(shown.starts_with("No advice: ") && shown.contains("memgauge bandwidth --ramp -o ramp.json"), "{shown}");
    }
    // The same numbers, none of them reliable.
    let folder = temporary("advise-unreliable");
    let mut report: Report = serde_json::from_slice(&fs::read(kept("two-nodes.json")).unwrap()).unwrap();
    report.results.iter_mut().for_each(|m| m.quality.level = QualityLevel::Unreliable);
    let file = folder.join("unreliable.json");
    save(&report, &file);
    let file = file.display().to_string();
    assert_eq!(advise(&[&file]).status.code(), Some(4));
    let found = advice(&[&file, "--model-bytes", "8G"]);
    assert!(found.recommendations.is_empty(), "{found:?}");
    for topic in [Topic::Threads, Topic::TokensPerSecond, Topic::Load, Topic::Placement] {
        let gap = found.gaps.iter().find(|gap| gap.topic == topic).unwrap();
        assert!(gap.why == Why::Unreliable && !gap.numbers.is_empty() && gap.command.is_some(), "{gap:?}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn several_results_complete_each_other() {
    let folder = temporary("advise-several");
    let report: Report = serde_json::from_slice(&fs::read(kept("two-nodes.json")).unwrap()).unwrap();
    let part = |name: &str, keep: fn(&str) -> bool| {
        let mut part = report.clone();
        part.results.retain(|m| keep(serde_json::to_value(m.experiment).unwrap().as_str().unwrap()));
        part.curves.clear();
        let file = folder.join(name);
        fs::write(&file, serde_json::to_vec(&part).unwrap()).unwrap();
        file.display().to_string()
    };
    let (ramp, latency) = (part("ramp.json", |e| e == "bandwidth-ramp"), part("latency.json", |e| e == "idle-latency"));
    let topics = |advice: &Advice| advice.recommendations.iter().map(|r| r.topic).collect::<Vec<_>>();
    assert_eq!(topics(&advice(&[&ramp])), [Topic::Threads, Topic::Smt]);
    let both = advice(&[&ramp, &latency]);
    assert!(topics(&both).contains(&Topic::Threads) && topics(&both).contains(&Topic::Placement), "{both:?}");
    let threads = &both.recommendations[0];
    assert!(matches!(threads.action, Action::UseThreads { threads: 64, of: 64, .. }) && threads.numbers[0].result == ramp, "{threads:?}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn wrong_input_is_refused_in_a_line() {
    let folder = temporary("advise-wrong");
    let result = kept("two-nodes.json");
    let write = |name: &str, bytes: &[u8]| {
        let file = folder.join(name);
        fs::write(&file, bytes).unwrap();
        file.display().to_string()
    };
    let (empty, garbage) = (write("empty.json", b""), write("garbage.json", b"{\"x\": 1}"));
    let old = write("old.json", b"{\"schema_version\": 1}");
    let missing = folder.join("missing.json").display().to_string();
    let directory = folder.join("no-results");
    fs::create_dir(&directory).unwrap();
    let directory = directory.display().to_string();
    let csv = folder.join("a.csv").display().to_string();
    let other = kept("vm-2-cpus.json");
    let cases: [(&[&str], &str); 8] = [
        (&[&missing], "missing.json: cannot be read"),
        (&[&empty], "empty.json"),
        (&[&garbage], "garbage.json"),
        (&[&old], "old.json"),
        (&[&directory], "no-results: holds no file that ends in .json"),
        (&[&result, &other], "another kind of machine"),
        (&[&result, "-o", &csv], "advice is text or JSON; use .txt or .json"),
        (&[&result, &missing], "missing.json"),
    ];
    for (arguments, message) in cases {
        let output = advise(arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(message) && text(&output.stderr).lines().count() == 1, "{}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
    for (option, value) in [("--model-bytes", "0"), ("--model-bytes", "8X"), ("--model", "8G"), ("--model", "m=8B")] {
        let output = advise(&[&result, option, value]);
        assert_eq!(output.status.code(), Some(64));
        assert!(text(&output.stderr).contains("at least 1 MiB"), "{}", text(&output.stderr));
    }
    assert!(text(&advise(&[]).stderr).contains("<RESULT>"));
    fs::remove_dir_all(folder).unwrap();
}
