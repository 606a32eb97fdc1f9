//! Folders with everything that a fleet's inbox holds after a year.

use super::text::{ingest_line, ingest_text};
use memgauge_model::result::Report;
use memgauge_render::{Appearance, Document, Format};
use tempfile::TempDir;

use super::*;
use crate::store::read;

const TWO_NODES: &[u8] = include_bytes!("../../../../tests/results/two-nodes.json");

fn json(report: &Report) -> Vec<u8> {
    report.render(Format::JSON, &Appearance::default()).unwrap()
}

fn result(id: &str, host: &str) -> Vec<u8> {
    let mut report = memgauge_render::read(TWO_NODES).unwrap();
    report.run.id = id.into();
    report.run.host = Some(memgauge_model::result::Host { hostname: Some(host.into()), machine_id_hash: None });
    json(&report)
}

fn run(fleet: &Path, from: &[&Path], batch: usize, copy: bool) -> Result<IngestOutcome, IngestError> {
    let paths: Vec<PathBuf> = from.iter().map(|p| p.to_path_buf()).collect();
    ingest(fleet, &paths, &IngestOptions { copy, batch }, &AtomicBool::new(false), |_| {})
}

#[test]
fn everything_that_cannot_be_used_is_named_with_its_reason() {
    let folder = TempDir::new().unwrap();
    let (inbox, fleet) = (folder.path().join("inbox"), folder.path().join("fleet"));
    let deep = inbox.join("rack 1").join("n1");
    fs::create_dir_all(&deep).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(inbox.join(name), bytes).unwrap();
    fs::write(deep.join("ok.json"), result("r1", "n1")).unwrap();
    write("a-twin.json", &result("r1", "n1"));
    write("B.JSON", &result("r2", "n2"));
    write("cut.json", &result("r3", "n3")[..5000]);
    write("empty.json", b"\n");
    write("garbage.json", &[0xff; 300]);
    write("other.json", br#"{"tool": "fio", "jobs": []}"#);
    write("old.json", br#"{"schema_version": 1, "run": {"id": "x"}}"#);
    write("new.json", br#"{"schema_version": 9, "run": {"id": "x"}}"#);
    write("damaged.json", br#"{"schema_version": 2, "run": {"id": 7}}"#);
    write("info.json", include_bytes!("../../../../tests/results/info-cxl.json"));
    write("notes.txt", b"not a result");
    let huge = fs::File::create(inbox.join("huge.json")).unwrap();
    huge.set_len(1 << 30).unwrap();
    run(&inbox.join("other fleet"), &[&inbox.join("B.JSON")], 1000, true).unwrap();

    let outcome = run(&fleet, &[&inbox], 1000, false).unwrap();
    let mut reasons: Vec<(String, SkipReason)> =
        outcome.skipped.iter().map(|s| (Path::new(&s.file).file_name().unwrap().to_string_lossy().into_owned(), s.reason)).collect();
    reasons.sort();
    use SkipReason::*;
    let expected = [
        ("cut.json", CutOff),
        ("damaged.json", Damaged),
        ("empty.json", Empty),
        ("garbage.json", NotJson),
        ("huge.json", TooLarge),
        ("info.json", NoResults),
        ("new.json", NewSchema),
        ("ok.json", Duplicate),
        ("old.json", OldSchema),
        ("other fleet", FleetFolder),
        ("other.json", NotAResult),
    ];
    assert_eq!(reasons, expected.map(|(name, reason)| (name.to_owned(), reason)));
    assert_eq!((outcome.files, outcome.runs, outcome.hosts, outcome.unusable()), (12, 2, 2, 9));
    assert!(!outcome.is_useless() && !outcome.interrupted);
    let twin = outcome.skipped.iter().find(|s| s.reason == Duplicate).unwrap();
    assert!(twin.detail.as_ref().unwrap().ends_with("a-twin.json"));
    let text = ingest_text(&outcome);
    assert!(text.contains("2 runs of 2 hosts added") && text.contains("9 files could not be used"), "{text}");
    assert!(text.contains("1 folder left out: a fleet's own folder"), "{text}");
    assert!(text.contains("old.json: schema version 1") && text.contains("The fleet now holds 2 runs of 2 hosts."), "{text}");

    // A folder that holds only a fleet has nothing to read.
    let only = folder.path().join("only");
    fs::create_dir(&only).unwrap();
    run(&only.join("fleet"), &[&inbox.join("B.JSON")], 1000, false).unwrap();
    assert!(matches!(run(&fleet, &[&only], 1000, false), Err(IngestError::NothingFound(_))));

    // The same again changes nothing, and says so.
    let again = run(&fleet, &[&inbox], 1000, false).unwrap();
    assert_eq!((again.runs, again.already.len(), again.fleet_runs, again.unusable()), (0, 3, 2, 9));
    let line = ingest_line(&again);
    assert!(line.contains("3 runs already there"), "{line}");
}

#[test]
fn what_is_read_back_is_what_the_results_hold() {
    let folder = TempDir::new().unwrap();
    let (inbox, fleet) = (folder.path().join("inbox"), folder.path().join("fleet"));
    fs::create_dir(&inbox).unwrap();
    let saved = ["cxl-hmat", "degraded", "eight-nodes", "interrupted", "pmem", "scan", "two-nodes", "vm-2-cpus"];
    let mut expected = Vec::new();
    for name in saved {
        let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/results/{name}.json"))).unwrap();
        let mut report = memgauge_render::read(&bytes).unwrap();
        report.run.id = format!("run {name} 'é'");
        report.run.labels = [("rack".to_owned(), "a,\"b\"".to_owned())].into();
        fs::write(inbox.join(format!("{name}.json")), json(&report)).unwrap();
        expected.extend(rows(&report));
    }
    let outcome = run(&fleet, &[&inbox], 3, true).unwrap();
    assert_eq!(outcome.runs, saved.len() as u64);
    let mut found = read(&fleet).unwrap();
    // Rows of a batch are in the order of their kinds of hardware.
    let place = |row: &Row| saved.iter().position(|name| row.run.run_id == format!("run {name} 'é'")).unwrap();
    found.sort_by_key(place);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!((outcome.values + outcome.not_measured) as usize, expected.len());
    assert!(outcome.not_measured > 0, "the samples have values that were not measured");
    // Values that rows share are in memory once.
    assert!(found.windows(2).filter(|pair| Arc::ptr_eq(&pair[0].run, &pair[1].run)).count() > expected.len() - 2 * saved.len());
    // The copies are the results, and a copy of a store's results makes the same store.
    let copies = fleet.join("results");
    assert_eq!(fs::read_dir(&copies).unwrap().count(), saved.len());
    let second = folder.path().join("second");
    assert_eq!(run(&second, &[&copies], 1000, false).unwrap().runs, saved.len() as u64);
    let only = Store::open(&second).unwrap().rows_of(&["run pmem 'é'".to_owned()].into()).unwrap();
    assert!(!only.is_empty() && only.iter().all(|row| row.run.run_id == "run pmem 'é'"));
}

#[test]
fn runs_without_an_id_are_known_by_their_content() {
    let folder = TempDir::new().unwrap();
    let (inbox, fleet) = (folder.path().join("inbox"), folder.path().join("fleet"));
    fs::create_dir(&inbox).unwrap();
    for name in ["a", "b"] {
        fs::write(inbox.join(format!("{name}.json")), TWO_NODES).unwrap();
    }
    fs::write(inbox.join("c.json"), result("", "n3")).unwrap();
    let outcome = run(&fleet, &[&inbox], 1000, false).unwrap();
    assert_eq!((outcome.runs, outcome.skipped.len()), (2, 1));
    assert_eq!(run(&fleet, &[&inbox], 1000, false).unwrap().already.len(), 3);
}

#[test]
fn results_that_windows_rewrote_are_read_and_packed_ones_named() {
    let folder = TempDir::new().unwrap();
    let (inbox, fleet) = (folder.path().join("inbox"), folder.path().join("fleet"));
    fs::create_dir(&inbox).unwrap();
    let marked = [b"\xEF\xBB\xBF".to_vec(), result("r1", "n1")].concat();
    fs::write(inbox.join("marked.json"), marked).unwrap();
    let text = String::from_utf8(result("r2", "n2")).unwrap();
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(inbox.join("wide.json"), [vec![0xFF, 0xFE], wide].concat()).unwrap();
    fs::write(inbox.join("packed.json"), b"\x1F\x8B\x08\0\0").unwrap();
    let outcome = run(&fleet, &[&inbox], 1000, false).unwrap();
    assert_eq!((outcome.runs, outcome.skipped.len(), outcome.skipped[0].reason), (2, 1, SkipReason::NotJson));
    assert_eq!(outcome.skipped[0].detail.as_deref(), Some("is compressed (gzip); unpack it first (gunzip)"));
}

#[test]
fn wrong_names_are_refused_before_anything_is_written() {
    let folder = TempDir::new().unwrap();
    let (inbox, fleet) = (folder.path().join("inbox"), folder.path().join("fleet"));
    let refused = |result: Result<IngestOutcome, IngestError>| result.unwrap_err().to_string();
    let missing = fs::metadata(&inbox).unwrap_err();
    assert!(refused(run(&fleet, &[&inbox], 10, false)).contains(&missing.to_string()), "in the system's words");
    fs::create_dir(&inbox).unwrap();
    assert!(refused(run(&fleet, &[&inbox], 10, false)).contains("holds no file that ends in .json"));
    assert!(!fleet.exists());
    fs::write(inbox.join("a.json"), result("r", "n")).unwrap();
    // The names in the wrong order.
    assert!(refused(run(&inbox, &[&inbox], 10, false)).contains("holds other files and is not a fleet"));
    assert_eq!(fs::read_dir(&inbox).unwrap().count(), 1);
    // A folder that holds nothing to use.
    fs::write(inbox.join("a.json"), b"{}").unwrap();
    assert!(run(&fleet, &[&inbox], 10, false).unwrap().is_useless());
}

#[test]
fn a_stop_commits_what_was_read_and_the_next_ingest_goes_on() {
    let folder = TempDir::new().unwrap();
    let (inbox, fleet) = (folder.path().join("inbox"), folder.path().join("fleet"));
    fs::create_dir(&inbox).unwrap();
    for i in 0..300 {
        fs::write(inbox.join(format!("{i:04}.json")), result(&format!("r{i}"), "n")).unwrap();
    }
    let stop = AtomicBool::new(false);
    let tell = |event| stop.store(matches!(event, IngestEvent::Committed { .. }), Ordering::Relaxed);
    let outcome = ingest(&fleet, std::slice::from_ref(&inbox), &IngestOptions { copy: false, batch: 5 }, &stop, tell).unwrap();
    assert!(outcome.interrupted && (5..300).contains(&outcome.runs), "{outcome:?}");
    assert_eq!(Store::open(&fleet).unwrap().runs().unwrap().len() as u64, outcome.runs);
    let rest = run(&fleet, &[&inbox], 1000, false).unwrap();
    assert_eq!((rest.runs + outcome.runs, rest.fleet_runs), (300, 300));
}

#[test]
fn a_list_of_files_that_a_reader_cannot_use_is_told_in_few_lines() {
    let skipped = (0..500).map(|i| Skipped { file: format!("\u{1b}[31m{i}.json"), reason: SkipReason::CutOff, detail: None }).collect();
    let text = ingest_text(&IngestOutcome { skipped, files: 500, ..IngestOutcome::default() });
    assert!(text.lines().count() < 20 && text.contains("and 490 more") && !text.contains('\u{1b}'), "{text}");
}
