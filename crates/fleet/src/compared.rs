//! The values of all hosts at the numbers that tell the slow ones, for a figure.

use std::collections::BTreeSet;

use memgauge_analysis::fleet::{ComparedHost, ComparedNumber, FleetOutliers, SlowHost, SlowNumber};
use memgauge_model::experiment::Experiment;
use memgauge_model::result::QualityLevel;

use crate::baseline::number;
use crate::centres::centres;
use crate::groups::Groups;
use crate::latest::{CellValues, latest, name};
use crate::row::Row;

/// The numbers at which slow hosts stand out: of the worst host its worst number, then of each host that is slow at none of these its own. Where
/// no host is slow, the first latency and the first bandwidth of the largest group. `found` is what [`outliers`](crate::outliers) found in
/// these rows.
pub fn compared(rows: &[Row], found: &FleetOutliers) -> Vec<ComparedNumber> {
    let latest = latest(rows);
    let groups = Groups::new(&latest.fingerprints);
    let chosen: Vec<Option<u32>> = (0..latest.hosts.len() as u32).map(|host| groups.chosen(host)).collect();
    let used: BTreeSet<u32> = chosen.iter().flatten().copied().collect();
    let centres = centres(&latest, &groups, &used);
    // `found` names groups by their place among those in use.
    let group_at = |place: u32| used.iter().nth(place as usize).copied();
    let mut all: Vec<ComparedNumber> = Vec::new();
    let mut add = |place: u32, cell: usize, slow: &dyn Fn(&str) -> bool| {
        let values = &latest.cells[cell];
        let Some((group, centre)) = group_at(place).and_then(|group| Some((group, centres[cell].get(&group)?))) else { return };
        let of_group = values.rows.iter().filter(|(host, _)| chosen[*host as usize] == Some(group));
        let hosts = of_group.filter_map(|(host, row)| {
            let host = name(latest.hosts[*host as usize]).host;
            let value = row.value.filter(|value| value.is_finite() && *value > 0.0)?;
            Some(ComparedHost { slow: slow(&host), host, value, interval: row.interval, good: row.quality == Some(QualityLevel::Good) })
        });
        all.push(ComparedNumber { group: place, number: number(values, centre), hosts: hosts.collect() });
    };
    let mut shown: Vec<(u32, &SlowNumber)> = Vec::new();
    for host in &found.slow {
        let is_shown = |(group, shown): &(u32, &SlowNumber)| *group == host.group && has(host, shown);
        if !shown.iter().any(is_shown) {
            shown.extend(host.numbers.first().map(|worst| (host.group, worst)));
        }
    }
    for (place, worst) in &shown {
        let slow = |name: &str| found.slow.iter().any(|host| host.group == *place && host.name.host == name && has(host, worst));
        if let Some(cell) = latest.cells.iter().position(|values| is_of(values, worst)) {
            add(*place, cell, &slow);
        }
    }
    if shown.is_empty() {
        let largest = (0..found.groups.len() as u32).max_by_key(|place| found.groups[*place as usize].hosts);
        let first = |experiments: &[Experiment]| latest.cells.iter().position(|values| experiments.contains(&values.cell.experiment));
        let latency = first(&[Experiment::IdleLatency, Experiment::IdleLatencyPerCpu]);
        let bandwidth = first(&[Experiment::Bandwidth, Experiment::BandwidthMatrix]);
        for (place, cell) in [latency, bandwidth].into_iter().flatten().filter_map(|cell| Some((largest?, cell))) {
            add(place, cell, &|_| false);
        }
    }
    all
}

/// Whether a host is slow at a number.
fn has(host: &SlowHost, number: &SlowNumber) -> bool {
    let same =
        |own: &SlowNumber| (own.experiment, own.metric, &own.at, own.pages) == (number.experiment, number.metric, &number.at, number.pages);
    host.numbers.iter().any(same)
}

fn is_of(values: &CellValues<'_>, number: &SlowNumber) -> bool {
    let cell = values.cell;
    (cell.experiment, cell.metric, &cell.at, values.pages) == (number.experiment, number.metric, &number.at, number.pages)
}
