//! OpenMetrics: the same families as of one result, with the label `host`.

use std::collections::BTreeMap;

use memgauge_model::axis::Axis;
use memgauge_model::estimate::Estimate;
use memgauge_model::experiment::Coordinates;
use memgauge_model::result::{Evidence, Measurement, Quality, QualityLevel, Verdict};
use memgauge_render::HostValues;

use super::run::{ExportError, ExportRun, names};
use crate::row::Row;

/// Gauges of the hosts. A host with several runs has those of the first; hosts of one name have their machine ids in the label `host`.
///
/// # Errors
/// When the OpenMetrics writer refuses something.
pub fn openmetrics(runs: &[ExportRun]) -> Result<Vec<u8>, ExportError> {
    let names = names(runs);
    let hosts: BTreeMap<&str, &ExportRun> = names.iter().map(String::as_str).zip(runs).rev().collect();
    let hosts: Vec<HostValues<'_>> = hosts
        .into_iter()
        .map(|(host, run)| HostValues {
            host,
            version: &run.memgauge,
            command: &run.command,
            run_id: &run.run.run_id,
            started: &run.run.started,
            labels: &run.run.labels,
            complete: run.run.complete,
            health: run.health,
            results: run.rows.iter().map(measurement).collect(),
            volatile: run.rows.iter().filter(|row| row.volatile.is_some()).map(place).collect(),
        })
        .collect();
    Ok(memgauge_render::openmetrics_of_hosts(&hosts)?)
}

/// The coordinates of a row without its load.
fn place(row: &Row) -> Coordinates {
    row.cell.at.without(Axis::DelayCycles)
}

/// The measurement of a row, with what the store keeps of it.
fn measurement(row: &Row) -> Measurement {
    let (low, high) = row.interval.unzip();
    Measurement {
        experiment: row.cell.experiment,
        at: row.cell.at.clone(),
        metric: row.cell.metric,
        unit: row.cell.unit,
        firmware: None,
        estimate: Estimate { value: row.value, ci95_low: low, ci95_high: high, ..Estimate::default() },
        distribution: None,
        samples: None,
        evidence: Evidence::default(),
        quality: Quality { level: row.quality.unwrap_or(QualityLevel::None), reasons: Vec::new() },
        verdict: Verdict::default(),
        counters: None,
        lines_in_flight: None,
    }
}
