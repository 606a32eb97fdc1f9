//! What a fleet is read from: the list of a store's batches, and a saved baseline.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use memgauge_core::conclusions::findings::{self, FleetSiblings, References};
use memgauge_core::fleet::FleetBaseline;
use memgauge_core::result::Report;
use memgauge_fleet::{Fingerprint, IngestOptions, Row, Store, baseline, group_for, ingest, rows};
use memgauge_render::{fleet_baseline_csv, fleet_baseline_text, read};

use super::scratch::{SCRATCH, scratch};
use crate::folders::project_folder;

/// What is called with each input.
pub(super) type Run = Box<dyn Fn(&[u8])>;

/// The list of batches in a fleet's folder.
const BATCHES: &str = "memgauge-fleet.json";
/// As many hosts as a group needs.
const HOSTS: u32 = 8;

fn saved() -> Result<(PathBuf, Report)> {
    let path = project_folder().join("tests/results/vm-2-cpus.json");
    let report = read(&fs::read(&path)?).with_context(|| path.display().to_string())?;
    Ok((path, report))
}

/// A store with one batch, in a folder of this name.
fn store(name: &str) -> Result<PathBuf> {
    let folder = scratch(name)?;
    ingest(&folder, &[saved()?.0], &IngestOptions { copy: false, batch: 1 }, &AtomicBool::new(false), |_| {})?;
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

pub(super) fn baselines() -> Result<Vec<Vec<u8>>> {
    let mut report = saved()?.1;
    let mut all: Vec<Row> = Vec::new();
    for host in 0..HOSTS {
        report.run.id = format!("r{host}");
        report.run.host = Some(memgauge_core::result::Host { hostname: Some(format!("host{host}")), machine_id_hash: None });
        all.extend(rows(&report));
    }
    let made = baseline(&all);
    anyhow::ensure!(made.groups.iter().any(|group| !group.numbers.is_empty()), "the baseline of {HOSTS} equal hosts is empty");
    Ok(vec![serde_json::to_vec_pretty(&made)?])
}

/// Judges a result by a baseline, and shows the baseline.
pub(super) fn judged() -> Result<Run> {
    let report = saved()?.1;
    let fingerprint = Fingerprint::from_report(&report);
    Ok(Box::new(move |bytes| {
        let Ok(baseline) = serde_json::from_slice::<FleetBaseline>(bytes) else { return };
        let siblings = group_for(&baseline, &fingerprint).map_or(FleetSiblings::TooFew, FleetSiblings::Group);
        findings::judge(&report, References { fleet: Some(siblings), ..References::default() });
        fleet_baseline_text(&baseline, 80, false, true);
        let _ = fleet_baseline_csv(&baseline);
    }))
}
