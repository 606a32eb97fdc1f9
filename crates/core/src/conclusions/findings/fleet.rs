//! Compares a machine with the hosts of a fleet that are like it.

use crate::conclusions::findings::compare::{Bounds, severity, worse};
use crate::conclusions::findings::rules::{FleetSiblings, References};
use crate::conclusions::findings::suspicion::{Suspicion, capped, format_value, name};
use crate::experiment::Metric;
use crate::fleet::{BaselineNumber, GroupBaseline};
use crate::result::{Finding, HealthStatus, Measurement, Report};
use crate::wording::groups::group_level;

fn group<'a>(references: References<'a>) -> Option<&'a GroupBaseline> {
    match references.fleet? {
        FleetSiblings::Group(group) => Some(group),
        FleetSiblings::TooFew => None,
    }
}

/// What the hosts of a group have at the coordinates of a measurement.
fn counterpart<'a>(m: &Measurement, group: &'a GroupBaseline) -> Option<&'a BaselineNumber> {
    group.numbers.iter().find(|n| n.experiment == m.experiment && n.metric == m.metric && n.at == m.at)
}

/// How a number stands among those of the siblings.
enum Standing {
    AsThey,
    /// Of the slower of two populations.
    Slower,
    /// Worse than where hosts are flagged, by this share of the median.
    Flagged(f64),
}

fn standing(own: Bounds, siblings: &BaselineNumber) -> Standing {
    let (beyond, apart, worse) = match siblings.metric {
        Metric::Bandwidth => (own.value < siblings.flagged_beyond, own.high < siblings.median_low, siblings.median - own.value),
        Metric::Latency => (own.value > siblings.flagged_beyond, own.low > siblings.median_high, own.value - siblings.median),
    };
    if beyond && apart {
        return Standing::Flagged(worse / siblings.median);
    }
    match siblings.slower_population {
        Some(slower) if (own.value - slower).abs() < (own.value - siblings.median).abs() => Standing::Slower,
        _ => Standing::AsThey,
    }
}

/// Numbers that are worse than those of the siblings.
pub(super) fn worse_than_siblings(report: &Report, view: &[&Measurement], references: References<'_>) -> Vec<Suspicion> {
    let Some(group) = group(references) else { return Vec::new() };
    let found = view.iter().enumerate().filter_map(|(index, m)| {
        let siblings = counterpart(m, group)?;
        let own = Bounds::new(m)?;
        let finding = match standing(own, siblings) {
            Standing::AsThey => return None,
            Standing::Slower => {
                let slower = siblings.slower_population.map(|v| format_value(m.metric, v)).unwrap_or_default();
                let message = format!(
                    "{}: {}, of the slower of two populations ({slower} and {})",
                    name(m),
                    format_value(m.metric, own.value),
                    format_value(m.metric, siblings.median)
                );
                let advice = "see memgauge fleet outliers for what tells the two apart";
                Finding::new("slower-population", HealthStatus::Unknown, message, advice)
            }
            Standing::Flagged(by) => {
                let than = format!("the median of {} hosts like it", siblings.hosts);
                let advice = "compare firmware and its settings, memory devices and power limits with those of another host";
                let severity = capped(severity(by, m.metric), m, report);
                Finding::new("slower-than-fleet", severity, worse(m, own.value, by, &than, siblings.median), advice)
            }
        };
        Some(Suspicion { index, others: Vec::new(), finding })
    });
    found.collect()
}

/// Whether any number was compared.
pub(super) fn is_compared(results: &[&Measurement], references: References<'_>) -> bool {
    group(references).is_some_and(|group| results.iter().any(|m| m.estimate.value.is_some() && counterpart(m, group).is_some()))
}

/// Which hosts the machine was compared with, or why with none.
pub(super) fn about_group(results: &[&Measurement], references: References<'_>) -> Option<Finding> {
    let advice = "ingest more results of hosts like this one, made by memgauge quick -o FILE.json";
    let group = match references.fleet? {
        FleetSiblings::Group(group) => group,
        FleetSiblings::TooFew => {
            let message = "the fleet has fewer than eight hosts with this machine's hardware, so nothing was compared with them";
            return Some(Finding::new("no-siblings-in-fleet", HealthStatus::Unknown, message, advice));
        }
    };
    let compared = results.iter().filter(|m| counterpart(m, group).is_some()).count();
    let (all, hosts, level) = (results.len(), group.group.hosts, group_level(group.group.level));
    if compared == 0 {
        let message = format!("{hosts} hosts of the fleet have {level}, but none of the numbers that were measured here");
        return Some(Finding::new("fleet-without-numbers", HealthStatus::Unknown, message, advice));
    }
    let message = format!("{compared} of {all} numbers compared with {hosts} hosts of the fleet that have {level}");
    Some(Finding::new("fleet-group", HealthStatus::Ok, message, ""))
}
