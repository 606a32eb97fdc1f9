//! `memgauge reference` as a black box.

use crate::support::{program, refused, run, text};

#[test]
fn generations_are_listed_and_values_have_sources() {
    let list = run("reference");
    assert!(list.status.success());
    let table = text(&list.stdout);
    assert!(
        table.lines().any(|l| l.starts_with("  Zen 4 ") && l.contains("transfer, other socket") && l.contains("CAS ping-pong")),
        "{table}"
    );
    let one = program().args(["reference", "zen 4", "--sources"]).output().unwrap();
    let values = text(&one.stdout);
    assert!(values.contains("Zen 4 ·") && !values.contains("Zen 5") && values.contains("primary: "), "{values}");
    let json = program().args(["reference", "EPYC 9654", "--format", "json"]).output().unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&json.stdout).unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|r| r["cpu_model"].as_str().unwrap().contains("9654") && r["value"].is_number()));
}

#[test]
fn a_name_without_a_value_is_refused_in_a_line() {
    let message = refused("reference abacus", 64);
    assert!(message.contains("'abacus'") && message.lines().count() == 1, "{message}");
}
