//! Targets for the files of a fleet: the list of a store's batches, its Parquet files, a saved baseline, results of hosts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use memgauge_analysis::conclusions::findings::{self, Baselines, FleetSiblings};
use memgauge_analysis::fleet::FleetBaseline;
use memgauge_fleet::{Fingerprint, IngestOptions, Row, Store, baseline, compared, group_for, history, ingest, outliers, rows};
use memgauge_model::result::{Host, Report};
use memgauge_render::{Outliers, read};
use sha2::{Digest, Sha256};

use super::renderings::{Run, every_format, saved};
use super::scratch::{SCRATCH, scratch};
use crate::folders::project_folder;

/// The list of batches in a fleet's folder.
const BATCHES: &str = "memgauge-fleet.json";
/// As many hosts as a group needs.
const HOSTS: u32 = 8;

/// A store with one batch, in a folder of this name.
fn store(name: &str) -> Result<PathBuf> {
    let folder = scratch(name)?;
    ingest(
        &folder,
        &[project_folder().join("tests/results/vm-2-cpus.json")],
        &IngestOptions { copy: false, batch: 1 },
        &AtomicBool::new(false),
        |_| {},
    )?;
    Ok(folder)
}

pub(super) fn batches() -> Result<Vec<Vec<u8>>> {
    let folder = store(SCRATCH[4])?;
    let list = fs::read(folder.join(BATCHES))?;
    fs::remove_dir_all(folder)?;
    let empty = br#"{"format": "memgauge-fleet", "version": 1, "next": 1, "batches": []}"#;
    Ok(vec![list, empty.to_vec()])
}

/// Reads a store whose list of batches is the input.
pub(super) fn stores() -> Result<Run> {
    let folder = store(SCRATCH[3])?;
    Ok(Box::new(move |bytes| {
        let _ = fs::write(folder.join(BATCHES), bytes);
        if let Ok(store) = Store::open(&folder) {
            let _ = (store.runs(), store.rows());
        }
    }))
}

/// A result as if it were another run, of this host.
fn of_host(report: &Report, host: u32, run: u32) -> Report {
    let mut report = report.clone();
    report.run.id = format!("r{run}");
    report.run.host = Some(Host { hostname: Some(format!("host{host}")), machine_id_hash: None });
    report
}

pub(super) fn baselines() -> Result<Vec<Vec<u8>>> {
    let saved = saved()?;
    let all: Vec<Row> = (0..HOSTS).flat_map(|host| rows(&of_host(&saved, host, host))).collect();
    let made = baseline(&all);
    anyhow::ensure!(made.groups.iter().any(|group| !group.numbers.is_empty()), "the baseline of {HOSTS} equal hosts is empty");
    Ok(vec![serde_json::to_vec_pretty(&made)?])
}

/// Judges a result by a baseline, and shows the baseline.
pub(super) fn judged() -> Result<Run> {
    let report = saved()?;
    let fingerprint = Fingerprint::from_report(&report);
    Ok(Box::new(move |bytes| {
        let Ok(baseline) = serde_json::from_slice::<FleetBaseline>(bytes) else { return };
        let siblings = group_for(&baseline, &fingerprint).map_or(FleetSiblings::TooFew, FleetSiblings::Group);
        findings::judge(&report, Baselines { fleet: Some(siblings), ..Baselines::default() });
        every_format(&baseline);
    }))
}

/// The result as the latest run of a host that has measured often: when its numbers changed.
pub(super) fn histories() -> Result<Run> {
    let saved = saved()?;
    let earlier: Vec<Row> = (0..HOSTS).flat_map(|run| rows(&of_host(&saved, 0, run))).collect();
    Ok(Box::new(move |bytes| {
        let Ok(report) = read(bytes) else { return };
        let all = [earlier.clone(), rows(&of_host(&report, 0, HOSTS))].concat();
        if let Ok(history) = history(&all, "host0", true) {
            every_format(&history);
        }
    }))
}

/// The result as that of one of a group of hosts that are alike: which are slow.
pub(super) fn outlying() -> Result<Run> {
    let saved = saved()?;
    let others: Vec<Row> = (0..HOSTS).flat_map(|host| rows(&of_host(&saved, host, host))).collect();
    Ok(Box::new(move |bytes| {
        let Ok(report) = read(bytes) else { return };
        let all = [others.clone(), rows(&of_host(&report, HOSTS, HOSTS))].concat();
        let found = outliers(&all);
        every_format(&Outliers { found: &found, numbers: &|| compared(&all, &found) });
    }))
}

/// The files of a store's only batch, by their names.
fn tables_of(folder: &Path) -> Result<Vec<String>> {
    let list: serde_json::Value = serde_json::from_slice(&fs::read(folder.join(BATCHES))?)?;
    let files = list.pointer("/batches/0/files").and_then(|files| files.as_array()).context("a batch has files")?;
    let name = |file: &serde_json::Value| file.get("name").and_then(|name| name.as_str()).map(str::to_owned);
    files.iter().map(|file| name(file).context("a file has a name")).collect()
}

/// A list of batches without the sizes of their files.
fn without_sizes(list: &[u8]) -> Result<String> {
    let mut list: serde_json::Value = serde_json::from_slice(list)?;
    let files = list.pointer_mut("/batches/0/files").and_then(|files| files.as_array_mut()).context("a batch has files")?;
    files.iter_mut().filter_map(|file| file.as_object_mut()).for_each(|file| drop(file.remove("bytes")));
    Ok(serde_json::to_string_pretty(&list)?)
}

/// Parquet files, each behind the number of the file that it is.
pub(super) fn parquet_files() -> Result<Vec<Vec<u8>>> {
    let folder = store(SCRATCH[7])?;
    let files = tables_of(&folder)?;
    let read = |(n, name): (usize, &String)| Ok([vec![n as u8], fs::read(folder.join(name))?].concat());
    let all = files.iter().enumerate().map(read).collect::<Result<_>>()?;
    fs::remove_dir_all(folder)?;
    Ok(all)
}

/// Reads a store with the input as one of its Parquet files. Its list has the input's checksum, as in a store that somebody has forged.
pub(super) fn parquet() -> Result<Run> {
    let folder = store(SCRATCH[6])?;
    // A list need not say how large a file is: lists of older programs do not.
    let list = without_sizes(&fs::read(folder.join(BATCHES))?)?;
    let sum = |bytes: &[u8]| -> String { Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect() };
    let mut files = Vec::new();
    for name in tables_of(&folder)? {
        let (path, bytes) = (folder.join(&name), fs::read(folder.join(&name))?);
        let original = sum(&bytes);
        anyhow::ensure!(list.contains(&original), "the list of batches has the checksum of {name}");
        files.push((path, bytes, original));
    }
    Ok(Box::new(move |bytes| {
        let Some((first, bytes)) = bytes.split_first() else { return };
        let Some((path, whole, original)) = files.get(usize::from(*first) % files.len().max(1)) else { return };
        let _ = (fs::write(path, bytes), fs::write(folder.join(BATCHES), list.replace(original, &sum(bytes))));
        if let Ok(store) = Store::open(&folder) {
            let _ = (store.runs(), store.rows());
        }
        let _ = fs::write(path, whole);
    }))
}
