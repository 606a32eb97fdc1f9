//! Links in a folder of results: a file behind one is read, and nothing else is waited for or walked in circles.
#![allow(clippy::unwrap_used, reason = "a panic is the failure report of its test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::AtomicBool;

use memgauge_fleet::{IngestOptions, SkipReason, ingest};

#[test]
fn a_link_is_as_good_as_what_it_leads_to() {
    let folder = tempfile::TempDir::new().unwrap();
    let (inbox, fleet) = (folder.path().join("inbox"), folder.path().join("fleet"));
    fs::create_dir(&inbox).unwrap();
    let result = folder.path().join("result.json");
    fs::write(&result, include_bytes!("../../../tests/results/two-nodes.json")).unwrap();
    for (to, name) in [(result.to_str().unwrap(), "ok.json"), ("/nonexistent", "nothing.json"), ("/dev/zero", "zero.json")] {
        symlink(to, inbox.join(name)).unwrap();
    }
    symlink(&inbox, inbox.join("loop")).unwrap();

    let options = IngestOptions { copy: false, batch: 1000 };
    let outcome = ingest(&fleet, std::slice::from_ref(&inbox), &options, &AtomicBool::new(false), |_| {}).unwrap();
    let mut skipped: Vec<(bool, SkipReason)> = outcome.skipped.iter().map(|s| (s.file.ends_with("zero.json"), s.reason)).collect();
    skipped.sort();
    assert_eq!(skipped, [(false, SkipReason::Unreadable), (true, SkipReason::NotAFile)]);
    assert_eq!((outcome.files, outcome.runs), (3, 1));
}
