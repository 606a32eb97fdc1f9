//! The values that hosts of each kind measure, and the group that a further host is compared with.

use std::collections::BTreeSet;

use memgauge_analysis::fleet::{BaselineNumber, FLEET_VERSION, FleetBaseline, GroupBaseline, GroupLevel, MIN_DIFFERENCE};
use memgauge_model::experiment::Metric;

use crate::centres::{GroupCentre, centres};
use crate::groups::{Groups, properties};
use crate::latest::{CellValues, latest};
use crate::row::{Fingerprint, Row};

/// The baseline of each group, from the latest values of its hosts. Each level has its own groups, so that a host without eight siblings of
/// its kernel or firmware finds those of its hardware.
pub fn baseline(rows: &[Row]) -> FleetBaseline {
    let latest = latest(rows);
    let groups = Groups::new(&latest.fingerprints);
    let wanted: BTreeSet<u32> = (0..groups.all.len() as u32).filter(|&group| groups.is_large(group)).collect();
    let centres = centres(&latest, &groups, &wanted);
    let of_group = |&group: &u32| {
        let numbers = latest.cells.iter().zip(&centres);
        let numbers = numbers.filter_map(|(cell, centres)| Some(number(cell, centres.get(&group)?)));
        GroupBaseline { group: groups.all[group as usize].describe(), numbers: numbers.collect() }
    };
    let without_group = (0..latest.hosts.len() as u32).filter(|&host| groups.chosen(host).is_none()).count();
    FleetBaseline {
        fleet_version: FLEET_VERSION,
        hosts: latest.hosts.len() as u32,
        measured_from: latest.span.0.clone(),
        measured_to: latest.span.1.clone(),
        groups: wanted.iter().map(of_group).filter(|group| !group.numbers.is_empty()).collect(),
        hosts_without_group: without_group as u32,
    }
}

/// A group's number at a cell, and the threshold that flags a host.
pub(crate) fn number(values: &CellValues<'_>, found: &GroupCentre) -> BaselineNumber {
    let (cell, pages) = (values.cell, values.pages);
    let centre = found.centre;
    let slowest = found.split.as_ref().map_or(centre, |split| split.slower);
    // The difference that counts, as a logarithm.
    let least = match cell.metric {
        Metric::Latency => (1.0 + MIN_DIFFERENCE).ln(),
        Metric::Bandwidth => -(1.0 - MIN_DIFFERENCE).ln(),
    };
    let half = centre.half_width();
    let ends = [centre.median - half, centre.median + half].map(|cost| cell.value(cost));
    BaselineNumber {
        experiment: cell.experiment,
        at: cell.at.clone(),
        metric: cell.metric,
        unit: cell.unit,
        pages,
        hosts: found.split.as_ref().map_or(centre.n, |split| centre.n + split.slower.n) as u32,
        median: cell.value(centre.median),
        median_low: ends[0].min(ends[1]),
        median_high: ends[0].max(ends[1]),
        spread: centre.spread,
        flagged_beyond: cell.value(slowest.at_score(slowest.flagged_score()).max(slowest.median + least)),
        slower_population: found.split.as_ref().map(|split| cell.value(split.slower.median)),
    }
}

/// The group of a baseline with the most in common with a host. `None` if there is none with its hardware.
pub fn group_for<'b>(baseline: &'b FleetBaseline, fingerprint: &Fingerprint) -> Option<&'b GroupBaseline> {
    // All of them: groups of older baselines state pages.
    let own = properties(fingerprint);
    GroupLevel::ALL.into_iter().find_map(|level| {
        let is_same = |group: &&GroupBaseline| {
            let fields = &group.group.fields;
            group.group.level == level && fields.iter().all(|f| own.iter().any(|(field, value)| *field == f.field && *value == f.value))
        };
        baseline.groups.iter().find(is_same)
    })
}
