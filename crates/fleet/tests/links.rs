//! Links, pipes and endless files in a folder of results or of a fleet: a file behind a link is read, nothing else is waited for or walked in
//! circles, and nothing is written through a link.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a panic is the failure report of its test, and what a test skips it says")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;

use memgauge_fleet::{IngestError, IngestOptions, IngestOutcome, SkipReason, StoreError, ingest, read};
use memgauge_testing::not_tested;
use tempfile::TempDir;

const RESULT: &[u8] = include_bytes!("../../../tests/results/two-nodes.json");
const MANIFEST: &str = "memgauge-fleet.json";

/// Ingests with copies, in a thread of its own: a test whose program waits for a pipe must not hang.
fn add(fleet: &Path, results: &Path) -> Result<IngestOutcome, IngestError> {
    let (fleet, results) = (fleet.to_owned(), [results.to_owned()]);
    in_time(move || ingest(&fleet, &results, &IngestOptions { copy: true, batch: 1000 }, &AtomicBool::new(false), |_| {}))
}

fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (ended, ends) = mpsc::channel();
    std::thread::spawn(move || ended.send(work()));
    ends.recv_timeout(Duration::from_secs(300)).unwrap_or_else(|error| panic!("it waits for something that never comes: {error}"))
}

/// A fleet of one run, and its result.
fn fleet_of_one(folder: &TempDir) -> (PathBuf, PathBuf) {
    let (fleet, result) = (folder.path().join("fleet"), folder.path().join("result.json"));
    fs::write(&result, RESULT).unwrap();
    assert_eq!(add(&fleet, &result).unwrap().runs, 1);
    (fleet, result)
}

/// Makes the result, which has no ID, that of another run: `run`.
fn change_id(result: &Path) {
    fs::write(result, String::from_utf8_lossy(RESULT).replacen("\"id\": \"\"", "\"id\": \"run\"", 1)).unwrap();
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Describes the thing that somebody else puts in the place of a file, and makes it.
type Surprise = (&'static str, fn(&Path));

/// The things that somebody else may put in the place of a file.
const SURPRISES: [Surprise; 3] = [
    ("a pipe", make_pipe),
    ("a link to a device", |path| symlink("/dev/zero", path).unwrap()),
    ("20 GiB", |path| fs::File::create(path).unwrap().set_len(20 << 30).unwrap()),
];

#[test]
fn a_link_is_as_good_as_what_it_leads_to() {
    let folder = TempDir::new().unwrap();
    let (inbox, fleet) = (folder.path().join("inbox"), folder.path().join("fleet"));
    fs::create_dir(&inbox).unwrap();
    let result = folder.path().join("result.json");
    fs::write(&result, RESULT).unwrap();
    for (to, name) in [(result.to_str().unwrap(), "ok.json"), ("/nonexistent", "nothing.json"), ("/dev/zero", "zero.json")] {
        symlink(to, inbox.join(name)).unwrap();
    }
    symlink(&inbox, inbox.join("loop")).unwrap();

    let outcome = add(&fleet, &inbox).unwrap();
    let mut skipped: Vec<(bool, SkipReason)> = outcome.skipped.iter().map(|s| (s.file.ends_with("zero.json"), s.reason)).collect();
    skipped.sort();
    assert_eq!(skipped, [(false, SkipReason::Unreadable), (true, SkipReason::NotAFile)]);
    assert_eq!((outcome.files, outcome.runs), (3, 1));
}

#[test]
fn what_somebody_else_put_in_a_fleet_is_neither_waited_for_nor_read_without_a_bound() {
    for (what, put) in SURPRISES {
        let folder = TempDir::new().unwrap();
        let (fleet, result) = fleet_of_one(&folder);
        let runs = fleet.join("runs/batch-000001.parquet");
        for path in [runs, fleet.join(MANIFEST)] {
            fs::remove_file(&path).unwrap();
            put(&path);
            let said = in_time({
                let fleet = fleet.clone();
                move || read(&fleet).unwrap_err().to_string()
            });
            assert!(said.contains(path.to_str().unwrap()), "{what}: {said}");
            let said = add(&fleet, &result).unwrap_err().to_string();
            assert!(said.contains(path.to_str().unwrap()), "{what}: {said}");
        }
    }
}

#[test]
fn what_stands_where_an_ingest_writes_is_replaced_and_a_lock_that_is_no_file_refused() {
    for (what, put) in SURPRISES {
        let folder = TempDir::new().unwrap();
        let (fleet, result) = fleet_of_one(&folder);
        change_id(&result);
        let (views, waiting) = (fleet.join("views.sql"), fleet.join(format!("{MANIFEST}.tmp")));
        fs::remove_file(&views).unwrap();
        [&views, &waiting].into_iter().for_each(|path| put(path));
        assert_eq!(add(&fleet, &result).unwrap().runs, 1, "{what}");
        assert!(views.symlink_metadata().unwrap().is_file() && fs::metadata(&views).unwrap().len() < 1 << 20, "{what}");
        assert!(!waiting.exists(), "{what}");
    }
    for (what, put) in &SURPRISES[..2] {
        let folder = TempDir::new().unwrap();
        let (fleet, result) = fleet_of_one(&folder);
        fs::remove_file(fleet.join("lock")).unwrap();
        put(&fleet.join("lock"));
        let said = add(&fleet, &result).unwrap_err().to_string();
        assert!(said.contains("lock"), "{what}: {said}");
    }
}

#[test]
fn nothing_is_written_through_a_link_in_a_fleet() {
    let folder = TempDir::new().unwrap();
    let (fleet, result) = fleet_of_one(&folder);
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    // Another run of the same machine: the names of its files are known before.
    change_id(&result);
    let partition = fs::read_dir(fleet.join("values")).unwrap().next().unwrap().unwrap().path();
    let planted = [
        fleet.join(format!("{MANIFEST}.tmp")),
        fleet.join("views.sql.tmp"),
        fleet.join("runs/batch-000002.parquet.tmp"),
        partition.join("batch-000002.parquet.tmp"),
        fleet.join("results/run.json.tmp"),
    ];
    fs::remove_file(fleet.join("views.sql")).unwrap();
    planted.iter().for_each(|path| symlink(&victim, path).unwrap());
    assert_eq!(add(&fleet, &result).unwrap().fleet_runs, 2);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    fs::remove_file(fleet.join("lock")).unwrap();
    symlink(&victim, fleet.join("lock")).unwrap();
    assert!(add(&fleet, &result).unwrap_err().to_string().contains("lock"));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn a_folder_that_others_may_change_is_refused() {
    let folder = TempDir::new().unwrap();
    let (fleet, result) = fleet_of_one(&folder);
    fs::set_permissions(&fleet, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = |words: &str| match add(&fleet, &result) {
        Err(IngestError::Store(error @ StoreError::NotOwn { .. })) if error.is_usage() => {
            assert!(error.to_string().contains(words), "{error}")
        }
        other => panic!("{other:?}"),
    };
    refused("chmod o-w");
    fs::set_permissions(&fleet, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(add(&fleet, &result).unwrap().already.len(), 1);
    if chown(&fleet, Some(65_534), None).is_err() {
        not_tested!("only root can make a folder another user's");
    }
    refused("user ID 65534");
}
