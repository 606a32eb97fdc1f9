//! `memgauge fleet outliers`, `baseline`, `history` and `quick --baseline` as a black box: files of results of simulated hosts are ingested,
//! then asked about.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Instant;

use memgauge_analysis::fleet::{FleetBaseline, FleetField, FleetHistory, FleetOutliers};
use memgauge_model::experiment::Experiment;
use memgauge_model::result::DifferentField;
use memgauge_model::result::Report;
use memgauge_simulation::fleet::{FleetShape, reports};

use crate::support::{program, save, simulated, temporary, text};

fn saved(name: &str) -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results").join(name);
    memgauge_render::read(&fs::read(path).unwrap()).unwrap()
}

/// A folder with `results/` and `fleet/`, and the names of the sick hosts.
fn simulated(name: &str, shape: &FleetShape, seed: u64) -> (PathBuf, BTreeSet<String>) {
    simulated_of(name, saved("two-nodes.json"), shape, seed)
}

/// The same, with other values in place of those of `template`.
fn simulated_of(name: &str, mut template: Report, shape: &FleetShape, seed: u64) -> (PathBuf, BTreeSet<String>) {
    let folder = temporary(name);
    let results = folder.join("results");
    fs::create_dir_all(&results).unwrap();
    (template.plan, template.notes) = (None, Vec::new());
    let mut sick = BTreeSet::new();
    for (i, (report, fault)) in reports(&template, shape, seed).enumerate() {
        if fault.is_some() {
            sick.insert(report.run.host.as_ref().unwrap().hostname.clone().unwrap());
        }
        save(&report, results.join(format!("{i}.json")));
    }
    (folder, sick)
}

fn fleet(arguments: &[&str], folder: &Path) -> Output {
    program().arg("fleet").args(arguments).current_dir(folder).output().unwrap()
}

fn ingest(folder: &Path) {
    let ingested = fleet(&["ingest", "fleet", "results"], folder);
    assert!(ingested.status.success(), "{} {}", text(&ingested.stdout), text(&ingested.stderr));
}

#[test]
fn sick_hosts_are_named_the_first_line_counts_and_the_status_says_it() {
    let shape = FleetShape {
        hosts: 120,
        sick: 0.04,
        lacking: 0.05,
        other_bios: Some((0.3, 0.08)),
        slower_by: (0.15, 0.3),
        duplicates: true,
        ..FleetShape::default()
    };
    let (folder, sick) = simulated("outliers", &shape, 3);
    assert!(sick.len() > 2);
    ingest(&folder);
    let json = fleet(&["outliers", "fleet", "--format", "json", "-o", "o.csv", "-o", "o.txt", "-o", "o.svg"], &folder);
    let found: FleetOutliers = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json.status.code(), Some(2));
    let named: BTreeSet<String> = found.slow.iter().map(|s| s.name.host.clone()).collect();
    assert!(sick.is_subset(&named) && named.len() <= sick.len() + 1, "{sick:?} {named:?}");
    assert!(found.populations.iter().any(|p| p.fields == [FleetField::Property(DifferentField::Firmware)]), "{:?}", found.populations);
    assert_eq!(found.duplicates.len(), 2);
    let csv = fs::read_to_string(folder.join("o.csv")).unwrap();
    assert!(named.iter().all(|host| csv.contains(&format!("\n{host},"))), "{csv}");

    let svg = fs::read_to_string(folder.join("o.svg")).unwrap();
    let worst = &found.slow[0];
    assert!(svg.contains(&format!("{}: ", worst.name.host)) && svg.contains("flagged "), "{}: {svg}", worst.name.host);
    let refused = fleet(&["outliers", "fleet", "--panel", "regions", "-o", "o.svg"], &folder);
    assert!(refused.status.code() == Some(64) && text(&refused.stderr).contains("leave --panel out"), "{}", text(&refused.stderr));
    let refused = fleet(&["outliers", "fleet", "--no-title"], &folder);
    assert!(refused.status.code() == Some(64) && text(&refused.stderr).contains("needs a figure"), "{}", text(&refused.stderr));

    let page = fleet(&["outliers", "fleet"], &folder);
    let first = text(&page.stdout).lines().next().unwrap().to_owned();
    assert_eq!(first, format!("{} of 120 hosts are slower than their siblings, {} unknown", found.slow.len(), found.unknown.len()));
    let quiet = fleet(&["outliers", "fleet", "-q"], &folder);
    assert_eq!(text(&quiet.stdout), format!("{first}\n"));
    for columns in ["60", "80", "100"] {
        let narrow = program().args(["fleet", "outliers", "fleet"]).env("COLUMNS", columns).current_dir(&folder).output().unwrap();
        let wide: Vec<&str> = text(&narrow.stdout).lines().filter(|l| l.chars().count() > columns.parse().unwrap()).collect();
        assert!(wide.is_empty(), "{columns}: {wide:#?}");
    }
    assert!(text(&page.stdout).contains("Two populations") && text(&page.stdout).contains("told apart by system and BIOS"));

    let baseline = fleet(&["baseline", "fleet", "-q", "-o", "baseline.json"], &folder);
    assert!(baseline.status.success() && text(&baseline.stdout).lines().count() == 1, "{}", text(&baseline.stdout));
    let made: FleetBaseline = serde_json::from_slice(&fs::read(folder.join("baseline.json")).unwrap()).unwrap();
    assert!(made.groups.len() >= 3 && made.hosts == 120, "{} groups", made.groups.len());
    let history = fleet(&["history", "fleet", "--host", "n00003", "--format", "json"], &folder);
    let told: FleetHistory = serde_json::from_slice(&history.stdout).unwrap();
    assert_eq!((told.runs.len(), told.changes.len(), history.status.code()), (1, 0, Some(0)));
    fs::remove_dir_all(folder).unwrap();
}

/// On a busy machine no number may be reliable; `a_machine_is_judged_by_its_siblings_in_a_fleet` judges a simulated one, which always has some.
#[test]
fn this_machine_is_judged_by_its_siblings() {
    let folder = temporary("quick-baseline");
    let run = |more: &str| simulated::run(&format!("memgauge quick --format json {more}"));
    let own: Report = serde_json::from_slice(&run("").stdout).unwrap();
    // Siblings that are as fast as the simulated machine, and some that are a fifth faster.
    for (name, factor) in [("same", 1.0), ("faster", 1.2)] {
        fs::create_dir_all(folder.join("results")).unwrap();
        for i in 0..12 {
            let mut report = own.clone();
            report.run.id = format!("{i:032x}");
            report.run.host = Some(memgauge_model::result::Host { hostname: Some(format!("n{i}")), machine_id_hash: None });
            for m in &mut report.results {
                let factor = factor * (1.0 + 0.002 * f64::from(i % 3));
                let factor = if m.metric == memgauge_model::experiment::Metric::Latency { 1.0 / factor } else { factor };
                m.quality = memgauge_model::result::Quality::default();
                let estimate = &mut m.estimate;
                [&mut estimate.value, &mut estimate.ci95_low, &mut estimate.ci95_high].into_iter().flatten().for_each(|v| *v *= factor);
            }
            save(&report, folder.join(format!("results/{i}.json")));
        }
        let ingested = fleet(&["ingest", name, "results"], &folder);
        assert!(ingested.status.success(), "{}", text(&ingested.stderr));
        fs::remove_dir_all(folder.join("results")).unwrap();
        let saved = folder.join(format!("{name}.json"));
        assert!(fleet(&["baseline", name, "-q", "-o", saved.to_str().unwrap()], &folder).status.success());
        for reference in [folder.join(name), saved] {
            let output = run(&format!("--baseline {}", reference.display()));
            let report: Report = serde_json::from_slice(&output.stdout).unwrap();
            let health = report.health.unwrap();
            assert!(health.compared_with.iter().any(|c| c == "fleet"), "{health:?}");
            let has = |code: &str| health.findings.iter().any(|f| f.code.word() == code);
            let slower = has("slower-than-fleet");
            assert!(has("fleet-group") && slower == (name == "faster"), "{name}: {health:?}");
            assert_eq!(output.status.code() == Some(0), !slower, "{name}: {health:?}");
        }
    }
    let other = temporary("quick-baseline-other");
    let mut report = saved("two-nodes.json");
    fs::create_dir_all(other.join("results")).unwrap();
    for i in 0..9 {
        report.run.id = format!("{i:032x}");
        save(&report, other.join(format!("results/{i}.json")));
    }
    ingest(&other);
    let output = run(&format!("--baseline {}", other.join("fleet").display()));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report.health.unwrap().findings;
    assert!(findings.iter().any(|f| f.code.word() == "no-siblings-in-fleet"), "{findings:?}");
    assert_ne!(output.status.code(), Some(0), "what was not compared did not pass");
    fs::remove_dir_all(folder).unwrap();
    fs::remove_dir_all(other).unwrap();
}

#[test]
fn wrong_folders_files_and_names_are_refused_with_advice() {
    let (folder, _) = simulated("outliers-wrong", &FleetShape { hosts: 5, ..FleetShape::default() }, 1);
    ingest(&folder);
    fs::create_dir(folder.join("empty")).unwrap();
    fs::write(folder.join("no.json"), "{\"fleet_version\": 1}").unwrap();
    for (arguments, status, message) in [
        (&["outliers", "nowhere"][..], 64, "nowhere"),
        (&["outliers", "empty"], 64, "memgauge fleet ingest"),
        (&["baseline", "no.json"], 64, "no.json"),
        (&["baseline", "fleet"], 4, "fewer than eight of the"),
        (&["history", "fleet", "--host", "n0000"], 64, "n00000"),
        (&["history", "fleet"], 64, "--host"),
        (&["baseline", "fleet", "-o", "a.svg"], 64, ".csv"),
    ] {
        let output = fleet(arguments, &folder);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(status) && said.contains(message), "{arguments:?}: {:?} {said}", output.status);
        assert!(!said.contains("panicked"), "{said}");
    }
    let unknown = fleet(&["outliers", "fleet"], &folder);
    assert_eq!(unknown.status.code(), Some(1), "five hosts are no group: unknown, and not well");
    assert!(text(&unknown.stdout).starts_with("0 of 5 hosts are slower than their siblings, 5 unknown\n"), "{}", text(&unknown.stdout));
    for (file, message) in
        [("no.json", "neither a fleet's folder nor a baseline"), ("results/0.json", "neither"), ("gone.json", "cannot be read")]
    {
        let output = program().args(["quick", "--baseline", file]).current_dir(&folder).output().unwrap();
        assert!(output.status.code() == Some(64) && text(&output.stderr).contains(message), "{file}: {}", text(&output.stderr));
    }
    fs::remove_dir_all(folder).unwrap();
}

/// A program that is done: what it said, how long it took, and the most memory that it had.
struct Done {
    stdout: Vec<u8>,
    code: i32,
    seconds: f64,
    peak_mb: f64,
}

fn measured(arguments: &[&str], folder: &Path) -> Done {
    let out = folder.join("stdout");
    let start = Instant::now();
    let mut command = program();
    command.arg("fleet").args(arguments).current_dir(folder).stdout(fs::File::create(&out).unwrap()).stderr(Stdio::null());
    let pid = command.spawn().unwrap().id() as i32;
    // SAFETY: both are plain numbers, for which all zeros are valid, and the call fills them; nothing else waits for this child.
    let (status, usage) = unsafe {
        let (mut status, mut usage) = (0, std::mem::zeroed::<libc::rusage>());
        assert_eq!(libc::wait4(pid, &raw mut status, 0, &raw mut usage), pid);
        (status, usage)
    };
    let seconds = start.elapsed().as_secs_f64();
    let peak_mb = usage.ru_maxrss as f64 * 1024.0 / 1e6;
    Done { stdout: fs::read(out).unwrap(), code: libc::WEXITSTATUS(status), seconds, peak_mb }
}

/// A result with sixty numbers: those of the sample, bandwidths of eight caches, and latencies of more CPUs.
fn sixty_numbers() -> Report {
    let mut report = saved("two-nodes.json");
    report.results.retain(|m| m.estimate.value.is_some());
    let latency = report.results.iter().find(|m| m.experiment == Experiment::IdleLatency).unwrap().clone();
    let bandwidth = report.results.iter().find(|m| m.experiment == Experiment::Bandwidth).unwrap().clone();
    for cache in 0..8 {
        let mut m = bandwidth.clone();
        (m.experiment, m.at.cpus) = (Experiment::BandwidthPerCache, Some((2 * cache..2 * cache + 2).collect()));
        report.results.push(m);
    }
    for cpu in 100.. {
        if report.results.len() >= 60 {
            break;
        }
        let mut m = latency.clone();
        m.at.cpu = Some(cpu);
        report.results.push(m);
    }
    report.results.truncate(60);
    report
}

/// 10,000 hosts: `cargo test --release --workspace --test all outliers -- --ignored --nocapture`.
#[test]
#[ignore = "writes 10,000 files, takes minutes"]
fn answers_about_ten_thousand_hosts() {
    let shape =
        FleetShape { hosts: 10_000, sick: 0.01, lacking: 0.05, other_bios: Some((0.3, 0.06)), duplicates: true, ..FleetShape::default() };
    let (folder, sick) = simulated_of("outliers-10000", sixty_numbers(), &shape, 17);
    let ingested = measured(&["ingest", "fleet", "results", "--format", "json"], &folder);
    let outcome: memgauge_fleet::IngestOutcome = serde_json::from_slice(&ingested.stdout).unwrap();
    assert_eq!((ingested.code, outcome.runs, outcome.skipped.len()), (0, 10_000, 0));
    assert!(outcome.values > 59 * 10_000, "{} values", outcome.values);
    let outliers = measured(&["outliers", "fleet", "--format", "json"], &folder);
    let answers = [
        measured(&["outliers", "fleet", "-q"], &folder),
        measured(&["baseline", "fleet", "-q"], &folder),
        measured(&["history", "fleet", "--host", "n00007", "-q"], &folder),
    ];
    let found: FleetOutliers = serde_json::from_slice(&outliers.stdout).unwrap();
    let named: BTreeSet<String> = found.slow.iter().map(|s| s.name.host.clone()).collect();
    for (what, done) in
        ["outliers -q", "baseline", "history"].iter().zip(&answers).chain([(&"ingest", &ingested), (&"outliers", &outliers)])
    {
        println!("{what}: {:.2} s, {:.0} MB, status {}", done.seconds, done.peak_mb, done.code);
    }
    let (missed, false_names) = (sick.difference(&named).count(), named.difference(&sick).count());
    println!("{} sick, {missed} missed, {false_names} named in error", sick.len());
    assert!(sick.len() > 50 && missed == 0 && false_names <= 10, "every sick host is slower by 10 % or more");
    assert!(found.populations.iter().any(|p| p.fields == [FleetField::Property(DifferentField::Firmware)]), "{:?}", found.populations);
    assert!(ingested.peak_mb < 1000.0, "{} MB", ingested.peak_mb);
    // The times are promised of the optimised program.
    if !cfg!(debug_assertions) {
        assert!(ingested.seconds < 60.0, "{} s", ingested.seconds);
        assert!(answers.iter().chain([&outliers]).all(|answer| answer.seconds < 2.0), "an answer took longer than 2 s");
    }
    fs::remove_dir_all(folder).unwrap();
}
