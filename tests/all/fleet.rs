//! `memgauge fleet` as a black box: an inbox with everything in it, kills, two ingests at once, exports.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use memgauge_analysis::fleet::FleetHistory;
use memgauge_fleet::{IngestOutcome, SkipReason, Store, read};
use memgauge_model::result::Host;

use crate::support::{program, save, temporary, text};

const VM: &[u8] = include_bytes!("../results/vm-2-cpus.json");

/// Writes runs `first..` of a host each.
fn write_runs(inbox: &Path, runs: std::ops::Range<u32>) {
    fs::create_dir_all(inbox).unwrap();
    let mut report = memgauge_render::read(VM).unwrap();
    for i in runs {
        report.run.id = format!("{i:032x}");
        report.run.host = Some(Host { hostname: Some(format!("n{i}")), machine_id_hash: None });
        save(&report, inbox.join(format!("{i:05}.json")));
    }
}

fn fleet(arguments: &[&str], paths: &[&Path]) -> Output {
    program().arg("fleet").args(arguments).args(paths).output().unwrap()
}

fn outcome(output: &Output) -> IngestOutcome {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr)))
}

/// How many rows each run has.
fn rows_of_runs(fleet: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for row in read(fleet).unwrap() {
        *counts.entry(row.run.run_id.clone()).or_default() += 1;
    }
    counts
}

#[test]
fn an_inbox_with_everything_in_it() {
    let folder = temporary("fleet-inbox");
    let (inbox, store) = (folder.join("inbox"), folder.join("fleet"));
    write_runs(&inbox, 0..3);
    let whole = fs::read(inbox.join("00000.json")).unwrap();
    for i in 0..12 {
        fs::write(inbox.join(format!("cut-{i}.json")), &whole[..1000 + i]).unwrap();
    }
    fs::write(inbox.join("old.json"), r#"{"schema_version": 1}"#).unwrap();
    let added = fleet(&["ingest"], &[&store, &inbox]);
    assert_eq!(added.status.code(), Some(1), "{}", text(&added.stderr));
    let said = text(&added.stdout);
    assert!(said.lines().next().unwrap().ends_with("; 13 files could not be used"), "{said}");
    assert!(said.contains("12 files left out: cut off") && said.contains("and 2 more; --format json names all"), "{said}");
    assert!(said.contains("old.json: schema version 1") && said.ends_with("The fleet now holds 3 runs of 3 hosts.\n"), "{said}");
    let again = fleet(&["ingest", "--format", "json"], &[&store, &inbox]);
    let again_outcome = outcome(&again);
    assert_eq!((again_outcome.already.len(), again_outcome.skipped.len(), again.status.code()), (3, 13, Some(1)));
    assert_eq!(again_outcome.skipped.iter().filter(|s| s.reason == SkipReason::CutOff).count(), 12);
    // Only what can be used.
    let clean = fleet(&["ingest", "-q"], &[&store, &inbox.join("00001.json")]);
    assert_eq!(clean.status.code(), Some(0));
    assert_eq!(text(&clean.stdout), format!("{}: 0 runs of 0 hosts added; 1 run already there\n", store.display()));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn wrong_names_and_unusable_files_have_their_statuses() {
    let folder = temporary("fleet-wrong");
    let (inbox, store) = (folder.join("inbox"), folder.join("fleet"));
    fs::create_dir_all(&inbox).unwrap();
    let status = |arguments: &[&str], paths: &[&Path], code: i32, message: &str| {
        let output = fleet(arguments, paths);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(message) && said.lines().count() <= 8, "{said}");
    };
    status(&["ingest"], &[&store, &inbox], 64, "holds no file that ends in .json");
    status(&["ingest"], &[&store, &folder.join("none")], 64, "No such file");
    fs::write(inbox.join("a.json"), "{}").unwrap();
    status(&["ingest"], &[&inbox, &inbox], 64, "holds other files and is not a fleet");
    assert!(!store.exists(), "nothing is made for a wrong command line");
    let useless = fleet(&["ingest"], &[&store, &inbox]);
    assert_eq!(useless.status.code(), Some(4), "{}", text(&useless.stdout));
    assert!(text(&useless.stdout).contains("JSON, but no results of memgauge"));
    status(&["export", "--format", "ocptv"], &[&store], 64, "the fleet is empty");
    status(&["export", "--format", "ocptv"], &[&inbox], 64, "is not a fleet");
    status(&["export", "--format", "ocptv"], &[&inbox.join("a.json")], 64, "no result of memgauge");
    let file = folder.join("file");
    fs::write(&file, "").unwrap();
    status(&["ingest"], &[&file, &inbox], 4, "cannot be made");
    fs::remove_dir_all(folder).unwrap();
}

/// Kills between the first and the last commit of an ingest, in the usual run of the tests.
const KILLS: u64 = 12;
/// Attempts for each of them: a run may end before it is killed, or be killed before its first commit.
const ATTEMPTS: u64 = 20;

#[test]
fn an_ingest_that_is_killed_loses_nothing_and_doubles_nothing() {
    let folder = temporary("fleet-kills");
    let (inbox, store) = (folder.join("inbox"), folder.join("fleet"));
    let runs = 200;
    write_runs(&inbox, 0..runs);
    let kills = std::env::var("MEMGAUGE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let seed = std::env::var("MEMGAUGE_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("MEMGAUGE_SEED={seed}");
    let mut random = seed;
    let mut next = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let start = |store: &Path| {
        let mut command = program();
        command.args(["fleet", "ingest", "--batch", "5", "--copy"]).arg(store).arg(&inbox);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    // How long one takes here.
    let begin = Instant::now();
    assert!(start(&folder.join("whole")).wait().unwrap().success());
    let takes = begin.elapsed();
    let whole = rows_of_runs(&folder.join("whole"));
    assert_eq!(whole.len(), runs as usize);
    let (mut in_the_middle, mut most) = (0, 0);
    let mut kill = 0;
    while in_the_middle < kills {
        kill += 1;
        assert!(kill <= kills * ATTEMPTS, "{in_the_middle} of {kill} kills were in the middle of an ingest of {takes:?}");
        // Now and then from the beginning: once everything is in, there is nothing to interrupt.
        if most == runs as usize || kill % 17 == 16 {
            let _ = fs::remove_dir_all(&store);
            most = 0;
        }
        let mut child = start(&store);
        // Several kills for each time through.
        let after = Duration::from_nanos(next((takes.as_nanos() / 3).max(1) as u64));
        std::thread::sleep(after);
        let _ = child.kill();
        let killed = !child.wait().unwrap().success();
        // Before the first commit there may be no store yet.
        let Ok(opened) = Store::open(&store) else { continue };
        let found = rows_of_runs(&store);
        assert_eq!(opened.runs().unwrap().len(), found.len());
        assert!(found.iter().all(|(run, rows)| whole[run] == *rows), "kill {kill}: a run is there in part or twice");
        assert!(found.len() >= most, "kill {kill}: committed runs are gone");
        let ids: Vec<String> = opened.runs().unwrap().iter().map(|run| format!("{}.json", run.run.run_id)).collect();
        let copies = fs::read_dir(store.join("results")).into_iter().flatten().map(|entry| entry.unwrap().file_name());
        let copies: Vec<String> = copies.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.ends_with(".json")).collect();
        assert!(copies.iter().all(|copy| ids.contains(copy)), "kill {kill}: copies of runs that were never committed");
        in_the_middle += u64::from(killed && found.len() > most && found.len() < runs as usize);
        most = found.len();
    }
    let last = fleet(&["ingest", "--batch", "5", "--copy", "--format", "json"], &[&store, &inbox]);
    assert_eq!(last.status.code(), Some(0), "{}", text(&last.stderr));
    assert_eq!(rows_of_runs(&store), whole, "every run once, with all its rows");
    assert_eq!(outcome(&last).fleet_runs, u64::from(runs));
    assert_eq!(fs::read_dir(store.join("results")).unwrap().count(), runs as usize);
    let parquet = fs::read_dir(store.join("runs")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(parquet.into_iter().all(|name| name.to_string_lossy().ends_with(".parquet")), "nothing is left over");
    eprintln!("{in_the_middle} of {kill} kills between the first and the last commit of an ingest of {takes:?}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn two_ingests_at_once_take_turns() {
    let folder = temporary("fleet-two");
    let store = folder.join("fleet");
    let inboxes = [folder.join("a"), folder.join("b")];
    write_runs(&inboxes[0], 0..150);
    write_runs(&inboxes[1], 100..250);
    let children = inboxes.each_ref().map(|inbox| {
        let mut command = program();
        command.args(["fleet", "ingest", "--batch", "3", "--format", "json"]).arg(&store).arg(inbox);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    let outputs = children.map(|child| child.wait_with_output().unwrap());
    let outcomes = outputs.each_ref().map(outcome);
    assert_eq!(outcomes[0].runs + outcomes[1].runs, 250);
    assert_eq!(outcomes[0].already.len() + outcomes[1].already.len(), 50);
    assert_eq!(rows_of_runs(&store).len(), 250);
    let waited = outputs.iter().filter(|output| text(&output.stderr).contains("another ingest is writing")).count();
    assert!(waited <= 1, "one of them goes on at once");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn one_of_two_hosts_of_one_name_is_chosen_by_its_machine_id() {
    let folder = temporary("fleet-one-name");
    let (inbox, store) = (folder.join("inbox"), folder.join("fleet"));
    fs::create_dir_all(&inbox).unwrap();
    let mut report = memgauge_render::read(VM).unwrap();
    for (i, id) in ["3fa2c1d09e11", "3fa2c1d09e11", "b0b1b2b3b4b5"].into_iter().enumerate() {
        report.run.id = format!("{i:032x}");
        report.run.host = Some(Host { hostname: Some("localhost".into()), machine_id_hash: Some(format!("{id:0<64}")) });
        save(&report, inbox.join(format!("{i}.json")));
    }
    assert!(fleet(&["ingest"], &[&store, &inbox]).status.success());
    let runs = |arguments: &[&str]| {
        let output = fleet(&[&["history", "--format", "json"], arguments].concat(), &[&store]);
        let told: FleetHistory = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr)));
        (told.host, told.machine_id_hashes.len(), told.runs.len())
    };
    assert_eq!(runs(&["--host", "3fa2c1d0"]), ("localhost".to_owned(), 1, 2));
    assert_eq!(runs(&["--host", "localhost-b0b1b2b3b4b5"]), ("localhost".to_owned(), 1, 1));
    assert_eq!(runs(&["--host", "localhost", "--as-one"]), ("localhost".to_owned(), 2, 3));
    for (command, advice) in [(&["history"][..], true), (&["export", "--format", "superbench"], false)] {
        let refused = fleet(&[command, &["--host", "localhost"]].concat(), &[&store]);
        let said = text(&refused.stderr);
        assert!(refused.status.code() == Some(64) && refused.stdout.is_empty(), "{said}");
        assert!(said.contains("--host 3fa2c1d09e11 (2 runs") && said.contains("--host b0b1b2b3b4b5 (1 run"), "{said}");
        assert_eq!(said.contains("--as-one"), advice, "{said}");
    }
    let exported = fleet(&["export", "--format", "superbench", "--host", "b0b1b2b3b4b5"], &[&store]);
    assert_eq!(text(&exported.stdout).lines().count(), 1);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn exports_from_a_fleet_and_from_a_result_hold_the_same() {
    let folder = temporary("fleet-export");
    let (inbox, store) = (folder.join("inbox"), folder.join("fleet"));
    write_runs(&inbox, 0..3);
    assert!(fleet(&["ingest"], &[&store, &inbox]).status.success());
    let export = |arguments: &[&str], path: &Path| {
        let output = fleet(&[&["export"], arguments].concat(), &[path]);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    for format in ["ocptv", "superbench", "openmetrics", "hwloc"] {
        let of_fleet = export(&["--format", format, "--host", "n1"], &store);
        let of_result = export(&["--format", format], &inbox.join("00001.json"));
        assert_eq!(of_fleet, of_result, "{format}");
        assert!(of_fleet.len() > 500, "{format}");
    }
    assert_eq!(export(&["--format", "superbench"], &store).lines().count(), 3);
    assert!(export(&["--format", "superbench-baseline"], &store).contains("return_code"));
    let several = fleet(&["export", "--format", "hwloc"], &[&store]);
    assert_eq!(several.status.code(), Some(64));
    assert!(text(&several.stderr).contains("choose one with --host"));
    let none = fleet(&["export", "--format", "ocptv", "--host", "n9"], &[&store]);
    assert_eq!((none.status.code(), text(&none.stderr).contains("no host 'n9'")), (Some(64), true));
    fs::remove_dir_all(folder).unwrap();
}
