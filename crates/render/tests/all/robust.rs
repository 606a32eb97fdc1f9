//! No report makes the text renderer panic, write control characters or forget to end its last line.

use std::path::Path;

use memgauge_analysis::comparison::{ComparisonOptions, compare};
use memgauge_model::experiment::{Experiment, MemoryPlace};
use memgauge_model::printable::is_obeyed;
use memgauge_model::result::{Host, Report};
use memgauge_model::units::Bytes;
use memgauge_render::{Appearance, Document, FILE_WIDTH, Format, json_text, read};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::samples;
use crate::shown::{comparison_csv, comparison_html, comparison_text, format, plan_text};

fn show(report: &Report) {
    for (width, colour, verbose) in [(0, false, true), (80, true, true), (80, false, false), (200, false, false), (usize::MAX, false, true)]
    {
        let text = String::from_utf8(report.render(Format::TEXT, &Appearance { width, colour, verbose, ..Appearance::default() }).unwrap())
            .unwrap();
        assert!(text.ends_with('\n') && text.starts_with(if colour { "\x1b[1m" } else { report.tool.name.get(..1).unwrap_or("") }));
        assert!(!text.chars().any(|c| c.is_control() && c != '\n' && !(colour && c == '\x1b')), "control character in\n{text}");
        assert!(!text.contains("NaN") && !text.contains("inf "), "not a number in\n{text}");
    }
    if let Some(plan) = &report.plan {
        assert!(plan_text(plan, &report.machine, 80).ends_with('\n'));
    }
}

/// A report as it is written.
fn json(report: &Report) -> Value {
    serde_json::from_slice(&report.render(Format::JSON, &Appearance::default()).unwrap()).unwrap()
}

/// A report with any values that its types allow.
fn parsed(json: &Value) -> serde_json::Result<Report> {
    serde_json::from_slice(json.to_string().as_bytes())
}

/// Changes the `n`th value below `value`, depth first; counts down `n`.
fn mutate(value: &mut Value, n: &mut usize, how: &impl Fn(&mut Value)) -> bool {
    if *n == 0 {
        how(value);
        return true;
    }
    *n -= 1;
    match value {
        Value::Array(list) => list.iter_mut().any(|v| mutate(v, n, how)),
        Value::Object(map) => map.iter_mut().any(|(_, v)| mutate(v, n, how)),
        _ => false,
    }
}

fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(size).sum(),
        Value::Object(map) => map.values().map(size).sum(),
        _ => 0,
    }
}

fn change(kind: u8) -> impl Fn(&mut Value) {
    move |v: &mut Value| match (kind, &mut *v) {
        (0, _) => *v = Value::Null,
        (1, Value::Array(list)) => list.clear(),
        (1, Value::Object(map)) => map.clear(),
        (1, Value::Number(_)) => *v = 0.into(),
        (1, Value::String(_)) => *v = "".into(),
        (2, Value::Array(list)) => list.reverse(),
        (2, Value::Number(n)) if n.is_f64() => *v = 1e300.into(),
        (2, Value::Number(_)) => *v = u32::MAX.into(),
        (2, Value::String(_)) => *v = format!("a\x1b[2Jb\n{}", "long ".repeat(20_000)).into(),
        (3, Value::Number(n)) if n.is_f64() => *v = (-1e-300).into(),
        (3, Value::Number(_)) => *v = (u64::MAX / 2).into(),
        (3, Value::Array(list)) => list.truncate(1),
        (3, Value::Bool(b)) => *b = !*b,
        (3, Value::String(_)) => *v = "x".repeat(70_000).into(),
        (4, Value::Number(_)) => *v = u64::MAX.into(),
        _ => {}
    }
}

#[test]
fn nothing_that_a_terminal_would_obey_is_in_any_format() {
    const HOSTILE: &str = "n1\x1b]0;pwn\x07\u{7f}\u{9b}2J\u{202e}drow\u{2066}\r";
    let mut report = samples::vm();
    report.run.id = HOSTILE.into();
    report.run.host = Some(Host { hostname: Some(HOSTILE.into()), machine_id_hash: None });
    report.run.labels.insert("rack".into(), HOSTILE.into());
    report.argv.push(HOSTILE.into());
    report.machine.identity.model_name = Some(HOSTILE.into());
    report.results[0].at.memory_dir = Some(HOSTILE.into());
    report.results[0].evidence.kernel = HOSTILE.into();
    for name in ["a.txt", "a.csv", "a.prom", "a.json", "a.html", "a.svg"] {
        let text = String::from_utf8(report.render(format(name), &Appearance::default()).unwrap()).unwrap();
        assert_eq!(text.find(|c| is_obeyed(c) && c != '\n' && c != '\t'), None, "{name}");
        if name == "a.json" {
            assert_eq!(read(text.as_bytes()).unwrap().run, report.run, "it says the same");
        }
    }
    let options = ComparisonOptions { margin: 0.02, ..ComparisonOptions::default() };
    let comparison = compare((HOSTILE, std::slice::from_ref(&report)), ("after", std::slice::from_ref(&report)), options);
    let page = String::from_utf8(comparison_html(&comparison).unwrap()).unwrap();
    let json = String::from_utf8(json_text(&comparison).unwrap()).unwrap();
    let csv = String::from_utf8(comparison_csv(&comparison).unwrap()).unwrap();
    for text in [page, json, csv, comparison_text(&comparison, 80, false, true)] {
        assert_eq!(text.find(|c| is_obeyed(c) && c != '\n' && c != '\t'), None, "{text}");
    }
}

#[test]
fn every_single_change_of_a_small_report() {
    let whole = json(&samples::vm());
    let mut shown = 0;
    for kind in 0..5 {
        // Every 17th value, a different one for each kind of change: all would take half a minute and hit the same code again.
        for n in (kind as usize..size(&whole)).step_by(17) {
            let mut changed = whole.clone();
            mutate(&mut changed, &mut n.clone(), &change(kind));
            if let Ok(report) = parsed(&changed) {
                show(&report);
                shown += 1;
            }
        }
    }
    assert!(shown > 160, "only {shown} changed reports could be read: the test no longer tests much");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn many_changes_of_any_report(which in 0usize..7, changes in prop::collection::vec((0.0f64..1.0, 0u8..5), 1..40)) {
        let mut value = json(&samples::all()[which].1);
        let total = size(&value);
        for (place, kind) in changes {
            let mut attempt = value.clone();
            mutate(&mut attempt, &mut ((place * total as f64) as usize), &change(kind));
            // Changes that the contract does not allow are not kept, so that the others add up. (As text, large reports would take seconds each.)
            if Report::deserialize(&attempt).is_ok() {
                value = attempt;
            }
        }
        show(&parsed(&value).unwrap());
    }
}

#[test]
fn empty_and_enormous_reports() {
    let mut empty = samples::vm();
    empty.results.clear();
    empty.machine.topology = Default::default();
    show(&empty);
    empty.plan = None;
    show(&empty);

    // 64 nodes, 1024 CPUs, every pair of nodes: blocks of columns, no line beyond the page, a plan of a page.
    let mut report = samples::eight_nodes();
    let (one, cell) = (report.results[0].clone(), report.plan.as_ref().unwrap().steps[0].cells[0].clone());
    report.results.clear();
    let plan = report.plan.as_mut().unwrap();
    plan.steps.truncate(1);
    plan.steps[0].cells.clear();
    for from in 0..64 {
        for to in 0..64 {
            let mut m = one.clone();
            (m.at.cpu_node, m.at.cpu, m.at.memory) = (Some(from), Some(from * 16), Some(MemoryPlace::Node(to)));
            let mut c = cell.clone();
            c.at = m.at.clone();
            report.results.push(m);
            plan.steps[0].cells.push(c);
        }
    }
    for cpu in 0..1024 {
        let mut m = one.clone();
        m.experiment = Experiment::IdleLatencyPerCpu;
        (m.at.cpu_node, m.at.cpu, m.at.memory) = (Some(cpu / 16), Some(cpu), Some(MemoryPlace::Node(cpu / 16)));
        report.results.push(m);
    }
    show(&report);
    let text = String::from_utf8(
        report.render(Format::TEXT, &Appearance { width: 100, colour: false, verbose: true, ..Appearance::default() }).unwrap(),
    )
    .unwrap();
    assert!(text.lines().count() < 520 && text.lines().all(|l| l.chars().count() <= 100));
    assert!(plan_text(report.plan.as_ref().unwrap(), &report.machine, 100).lines().count() < 20);
}

#[test]
fn working_sets_of_all_that_64_bits_hold() {
    for size in [0, 1, 1 << 62, (1 << 63) - 1, 1 << 63, u64::MAX] {
        let mut report = samples::sweeps::counted(&[], 1000);
        for (i, m) in report.results.iter_mut().enumerate() {
            // All of them, or the largest beside usual ones.
            if i > 8 || size % 2 == 0 {
                m.at.working_set = Some(Bytes(size));
            }
        }
        report.levels = memgauge_analysis::conclusions::levels::summarise(&report.results, &report.machine);
        show(&report);
        assert!(!report.render(format("x.svg"), &Appearance::default()).unwrap().is_empty());
    }
}

#[test]
fn samples_fit_every_usual_terminal() {
    for (name, report) in samples::all() {
        for width in [80, 100, 120] {
            let page = |verbose| {
                String::from_utf8(
                    report.render(Format::TEXT, &Appearance { width, colour: false, verbose, ..Appearance::default() }).unwrap(),
                )
                .unwrap()
            };
            let mut texts = vec![page(true), page(false)];
            texts.extend(report.plan.as_ref().map(|p| plan_text(p, &report.machine, width)));
            for line in texts.iter().flat_map(|t| t.lines()) {
                assert!(line.chars().count() <= width, "{name} at {width}: {line}");
                assert_eq!(line.trim_end(), line, "{name} at {width}: blanks at the end");
            }
        }
    }
}

#[test]
fn formats_by_ending() {
    let name = |path| Format::for_path(Path::new(path), Report::FORMATS).map(Format::name);
    assert_eq!(name("out/a.JSON"), Some("json"));
    assert_eq!(name("a.txt"), Some("text"));
    assert_eq!([name("a.csv"), name("a.prom")], [Some("csv"), Some("openmetrics")]);
    assert_eq!([name("a.xml"), name("json"), name("")], [None; 3]);
    let plain = samples::vm().render(format("a.txt"), &Appearance::default()).unwrap();
    assert_eq!(
        plain,
        samples::vm()
            .render(Format::TEXT, &Appearance { width: FILE_WIDTH, colour: false, verbose: true, ..Appearance::default() })
            .unwrap()
    );
}
