//! What a store survives.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::AtomicBool;

use memgauge_model::result::{PageKind, Report};
use tempfile::TempDir;

use super::*;
use crate::rows::rows;

fn batch(ids: std::ops::Range<u32>) -> Vec<(StoredRun, Vec<Row>)> {
    let mut report: Report = memgauge_render::read(include_bytes!("../../../../tests/results/vm-2-cpus.json")).unwrap();
    let run = |id: u32| {
        report.run.id = format!("r{id}");
        report.machine.identity.hypervisor = Some(if id.is_multiple_of(2) { "kvm" } else { "xen" }.into());
        let rows = rows(&report);
        let run = StoredRun {
            run: rows[0].run.clone(),
            memgauge: "0.1.0".into(),
            command: "memgauge".into(),
            health: None,
            file: "/x".into(),
            copy: None,
            measured: rows.len() as u64,
            not_measured: 0,
        };
        (run, rows)
    };
    ids.map(run).collect()
}

fn change(folder: &Path) -> (Change, Recovered) {
    Change::begin(folder, || false).unwrap().expect("nobody holds the lock")
}

/// How many rows each run has.
fn counts(folder: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for row in read(folder).unwrap() {
        *counts.entry(row.run.run_id.clone()).or_default() += 1;
    }
    counts
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            files.extend(self::files(&entry));
        } else {
            files.insert(entry.clone(), fs::read(&entry).unwrap());
        }
    }
    files
}

#[test]
fn whatever_is_left_of_a_killed_ingest_is_finished_or_removed() {
    let folder = TempDir::new().unwrap();
    let fleet = folder.path().join("fleet");
    change(&fleet).0.add(&batch(0..4)).unwrap();
    let committed = fs::read(fleet.join(MANIFEST)).unwrap();
    let before = files(&fleet);
    change(&fleet).0.add(&batch(4..9)).unwrap();
    let after = files(&fleet);
    let new: Vec<&PathBuf> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert_eq!(new.len(), 3, "a list of runs, and the values of two kinds of hardware");
    // Killed before the commit, after some or all files were written, whole or in part.
    for written in 0..=new.len() {
        fs::write(fleet.join(MANIFEST), &committed).unwrap();
        for (i, path) in new.iter().enumerate() {
            fs::remove_file(path).unwrap();
            if i < written {
                let bytes = &after[*path];
                fs::write(manifest::pending(path), &bytes[..if i + 1 == written { bytes.len() / 2 } else { bytes.len() }]).unwrap();
            }
        }
        assert_eq!(counts(&fleet).len(), 4, "what is not committed does not count");
        let (mut change, recovered) = change(&fleet);
        assert_eq!((recovered.finished, recovered.removed as usize), (0, written));
        assert_eq!(counts(&fleet).len(), 4);
        change.add(&batch(4..9)).unwrap();
        assert_eq!(files(&fleet), after, "the same files, with the same bytes");
    }
    // Killed after the commit, before some files got their names.
    for named in 0..=new.len() {
        new.iter().skip(named).for_each(|path| fs::rename(path, manifest::pending(path)).unwrap());
        assert_eq!(counts(&fleet).len(), 9, "what is committed counts, whatever its name");
        let (_, recovered) = change(&fleet);
        assert_eq!((recovered.finished as usize, recovered.removed), (new.len() - named, 0));
        assert_eq!(files(&fleet), after);
    }
    let counts = counts(&fleet);
    assert!(counts.values().all(|rows| *rows == counts["r0"]), "{counts:?}");
}

#[test]
fn a_copy_has_its_name_only_with_its_run() {
    let folder = TempDir::new().unwrap();
    let fleet = folder.path().join("fleet");
    let with_copy = |change: &Change, id: u32| {
        let mut runs = batch(id..id + 1);
        runs[0].0.copy = Some(change.copy(&format!("r{id}"), format!("result {id}").as_bytes()).unwrap());
        runs
    };
    let results = |fleet: &Path| -> Vec<String> {
        files(&fleet.join("results")).keys().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    };
    let (mut first, _) = change(&fleet);
    let runs = with_copy(&first, 0);
    first.add(&runs).unwrap();
    assert_eq!(results(&fleet), ["r0.json"]);
    // Killed before the commit: no reader takes the copy for a result of this fleet, and the next ingest removes it.
    let _ = with_copy(&first, 1);
    drop(first);
    assert_eq!(results(&fleet), ["r0.json", "r1.json.tmp"]);
    let (mut second, recovered) = change(&fleet);
    assert_eq!((results(&fleet), recovered), (vec!["r0.json".to_owned()], Recovered { finished: 0, removed: 1 }));
    // Killed after the commit, before the copy got its name.
    let runs = with_copy(&second, 2);
    second.add(&runs).unwrap();
    drop(second);
    let copy = fleet.join("results/r2.json");
    fs::rename(&copy, manifest::pending(&copy)).unwrap();
    let (_, recovered) = change(&fleet);
    assert_eq!((results(&fleet), recovered), (vec!["r0.json".to_owned(), "r2.json".to_owned()], Recovered { finished: 1, removed: 0 }));
    assert_eq!(fs::read(&copy).unwrap(), b"result 2");
}

/// Makes a fleet of two hosts of one name that version 0.1.0 wrote: its values have neither machine ids nor their own kinds of pages.
fn write_old(fleet: &Path) {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores/0.1.0");
    let files = files(&old);
    restore(fleet, &files.into_iter().map(|(path, bytes)| (fleet.join(path.strip_prefix(&old).unwrap()), bytes)).collect());
}

/// Makes a folder hold these files and no others.
fn restore(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    let _ = fs::remove_dir_all(folder);
    for (path, bytes) in files {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn stores_of_older_programs_are_read_and_added_to() {
    let folder = TempDir::new().unwrap();
    let fleet = folder.path().join("fleet");
    write_old(&fleet);
    let before = read(&fleet).unwrap();
    assert_eq!(before.len(), 24);
    assert!(before.iter().all(|row| row.pages == Some(PageKind::Pool) && row.run.fingerprint.pages.as_deref() == Some("pool")));
    let ids: BTreeSet<_> = before.iter().map(|row| row.run.machine_id_hash.clone()).collect();
    assert_eq!(ids.len(), 2);
    let (mut changing, _) = change(&fleet);
    changing.add(&batch(0..2)).unwrap();
    let after = read(&fleet).unwrap();
    assert_eq!(after[..24], before[..]);
    assert!(after.len() > 24 && after[24..].iter().all(|row| row.pages == Some(PageKind::Base)));
}

/// Adds the columns that files lack.
fn add_columns(change: &mut Change) {
    change.add_columns(&AtomicBool::new(false)).unwrap();
}

#[test]
fn older_batches_get_the_columns_of_newer_ones_and_no_kill_loses_or_doubles_a_row() {
    let folder = TempDir::new().unwrap();
    let fleet = folder.path().join("fleet");
    write_old(&fleet);
    let lacking = |fleet: &Path| {
        let batches = Store::open(fleet).unwrap().manifest.batches;
        batches.iter().filter(|batch| reading::lacks_columns(fleet, batch).unwrap()).count()
    };
    // A batch of a newer program behind it.
    change(&fleet).0.add(&batch(0..2)).unwrap();
    let (rows, before) = (read(&fleet).unwrap(), files(&fleet));
    assert_eq!((lacking(&fleet), counts(&fleet).len()), (1, 4));
    let (mut changing, _) = change(&fleet);
    changing.add_columns(&AtomicBool::new(true)).unwrap();
    assert_eq!(files(&fleet), before, "an ingest that is to stop leaves it to the next");
    add_columns(&mut changing);
    let after = files(&fleet);
    assert_eq!((lacking(&fleet), read(&fleet).unwrap()), (0, rows.clone()), "the same rows in the same order");
    add_columns(&mut changing);
    assert_eq!(files(&fleet), after, "once is enough");
    drop(changing);

    let only = |all: &BTreeMap<PathBuf, Vec<u8>>, others: &BTreeMap<PathBuf, Vec<u8>>| -> Vec<PathBuf> {
        all.keys().filter(|path| !others.contains_key(*path)).cloned().collect()
    };
    let (gone, new) = (only(&before, &after), only(&after, &before));
    assert_eq!((gone.len(), new.len()), (2, 2), "runs and values");
    let check = |state: &BTreeMap<PathBuf, Vec<u8>>, when: &str| {
        restore(&fleet, state);
        assert_eq!(read(&fleet).unwrap(), rows, "killed {when}: a question before the next ingest");
        add_columns(&mut change(&fleet).0);
        assert_eq!(files(&fleet), after, "killed {when}: the next ingest");
    };
    // Killed before the commit, while files were written, whole or in part.
    for written in 0..=new.len() {
        let mut state = before.clone();
        for (i, path) in new.iter().take(written).enumerate() {
            let bytes = &after[path];
            state.insert(manifest::pending(path), bytes[..if i + 1 == written { bytes.len() / 2 } else { bytes.len() }].to_vec());
        }
        check(&state, &format!("at file {written}"));
    }
    // Killed after the commit, while the old files were removed, then while the new ones got their names.
    let mut state = after.clone();
    for path in &new {
        let bytes = state.remove(path).unwrap();
        state.insert(manifest::pending(path), bytes);
    }
    gone.iter().for_each(|path| drop(state.insert(path.clone(), before[path].clone())));
    check(&state, "after the commit");
    for path in &gone {
        state.remove(path);
        check(&state, "while old files were removed");
    }
    for path in &new {
        let bytes = state.remove(&manifest::pending(path)).unwrap();
        state.insert(path.clone(), bytes);
        check(&state, "while new files got their names");
    }
}

#[test]
fn damage_where_a_file_says_its_columns_is_named() {
    let folder = TempDir::new().unwrap();
    let fleet = folder.path().join("fleet");
    change(&fleet).0.add(&batch(0..1)).unwrap();
    let manifest = Store::open(&fleet).unwrap().manifest;
    let batch = &manifest.batches[0];
    for file in &batch.files {
        let path = fleet.join(&file.name);
        let bytes = fs::read(&path).unwrap();
        let length = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
        for at in (bytes.len() - 8 - length..bytes.len()).step_by(length / 400 + 1) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(&path, &changed).unwrap();
            // The result does not matter, because the damage is found when rows are read; here it must not end the program.
            let _ = reading::lacks_columns(&fleet, batch);
        }
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(reading::lacks_columns(&fleet, batch).unwrap_err().to_string().contains(&*path.to_string_lossy()));
        fs::write(&path, &bytes).unwrap();
    }
}

#[test]
fn many_small_batches_become_one_and_nothing_is_lost() {
    let folder = TempDir::new().unwrap();
    let fleet = folder.path();
    for id in 0..40 {
        change(fleet).0.add(&batch(id..id + 1)).unwrap();
    }
    let old = Store::open(fleet).unwrap();
    let (before, runs) = (counts(fleet), old.runs().unwrap());
    assert_eq!((before.len(), old.manifest.batches.len()), (40, 40));
    // A reader that opened the store before reads what was merged since.
    let (mut merging, _) = change(fleet);
    merging.merge_small().unwrap();
    drop(merging);
    assert_eq!(old.rows().unwrap().len(), before.values().sum::<usize>());
    let merged = Store::open(fleet).unwrap();
    assert_eq!((counts(fleet), merged.manifest.batches.len()), (before, 1));
    assert_eq!(merged.runs().unwrap(), runs, "in the order in which they were added");
    assert_eq!(files(fleet).keys().filter(|path| path.extension().is_some_and(|e| e == "parquet")).count(), 3);
}

#[test]
fn only_one_program_changes_a_store_at_a_time() {
    let folder = TempDir::new().unwrap();
    let (first, _) = change(folder.path());
    let mut waited = 0;
    let second = Change::begin(folder.path(), || {
        waited += 1;
        waited < 3
    });
    assert!(second.unwrap().is_none() && waited == 3);
    drop(first);
    assert!(Change::begin(folder.path(), || false).unwrap().is_some());
}

#[test]
fn damage_is_named_with_its_file() {
    let folder = TempDir::new().unwrap();
    let fleet = folder.path();
    assert!(read(fleet).unwrap_err().to_string().contains("is not a fleet"));
    change(fleet).0.add(&batch(0..3)).unwrap();
    let whole = files(fleet);
    let why = |fleet: &Path| read(fleet).unwrap_err().to_string();
    for (path, bytes) in whole.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "parquet")) {
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        // Windows takes either separator.
        let same = |text: &str| text.replace('\\', "/");
        assert!(same(&why(fleet)).contains(&same(&path.to_string_lossy())), "{}", why(fleet));
        fs::write(path, b"").unwrap();
        assert!(why(fleet).contains("is damaged"), "{}", why(fleet));
        fs::remove_file(path).unwrap();
        assert!(why(fleet).contains("is in the fleet's list of files"), "{}", why(fleet));
        fs::write(path, bytes).unwrap();
    }
    for (manifest, said) in [
        ("", "is damaged"),
        ("{}", "is damaged"),
        (r#"{"format": "x", "version": 1, "next": 1, "batches": []}"#, "not a list of a fleet's batches"),
        (r#"{"format": "memgauge-fleet", "version": 7, "next": 1, "batches": []}"#, "version 7"),
        (
            r#"{"format": "memgauge-fleet", "version": 1, "next": 1, "batches": [{"number": 1, "runs": 1, "rows": 1, "files": [{"name": "../x", "sha256": ""}]}]}"#,
            "not in the fleet's folder",
        ),
    ] {
        fs::write(fleet.join(MANIFEST), manifest).unwrap();
        assert!(why(fleet).contains(said), "{}", why(fleet));
    }
}

#[test]
fn a_single_changed_bit_is_found() {
    let folder = TempDir::new().unwrap();
    let fleet = folder.path();
    change(fleet).0.add(&batch(0..2)).unwrap();
    for (path, bytes) in files(fleet).into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "parquet")) {
        // All over the file: values, lengths, headers of pages, the schema.
        for at in (0..bytes.len()).step_by(bytes.len() / 100 + 1) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(&path, &changed).unwrap();
            assert!(read(fleet).unwrap_err().to_string().contains("is damaged"));
        }
        fs::write(&path, &bytes).unwrap();
    }
    assert!(read(fleet).is_ok());
}
