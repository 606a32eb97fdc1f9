//! Compares a machine with the hosts of a fleet that are like it.

use std::collections::BTreeSet;

use memgauge_model::experiment::Metric;
use memgauge_model::result::{Finding, FindingCode, HealthStatus, Measurement, PageKind, Report};
use memgauge_model::wording::spelled;
use memgauge_model::words;
use memgauge_model::words::{Command, Knob, Verb};

use crate::conclusions::findings::compare::{Bounds, is_judged, severity, worse};
use crate::conclusions::findings::rules::{Baselines, FleetSiblings};
use crate::conclusions::findings::suspicion::{Suspicion, capped, format_value, measure_again, name};
use crate::fleet::{BaselineNumber, GroupBaseline};

pub(super) fn group<'a>(references: Baselines<'a>) -> Option<&'a GroupBaseline> {
    match references.fleet? {
        FleetSiblings::Group(group) => Some(group),
        FleetSiblings::TooFew => None,
    }
}

/// The numbers of a group's hosts at the coordinates of a measurement, one for each kind of pages.
fn counterparts<'a>(m: &'a Measurement, group: &'a GroupBaseline) -> impl Iterator<Item = &'a BaselineNumber> {
    group.numbers.iter().filter(|n| n.experiment == m.experiment && n.metric == m.metric && n.at == m.at)
}

/// The number there with the same pages as the measurement, or the first one if the pages of either are not known.
fn counterpart<'a>(m: &'a Measurement, group: &'a GroupBaseline) -> Option<&'a BaselineNumber> {
    let own = m.evidence.pages.obtained;
    counterparts(m, group).find(|n| n.pages.is_none() || own.is_none() || n.pages == own)
}

/// How a number stands among those of the siblings.
enum Standing {
    AsThey,
    /// Of the slower of two populations.
    Slower,
    /// Beyond the value at which hosts are flagged, and worse than the median by this share of it.
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
pub(super) fn worse_than_siblings(report: &Report, view: &[&Measurement], references: Baselines<'_>) -> Vec<Suspicion> {
    let Some(group) = group(references) else { return Vec::new() };
    let found = view.iter().enumerate().filter(|(_, m)| is_judged(m)).filter_map(|(index, m)| {
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
                let advice = words!["see ", Verb::FleetOutliers, " for what tells the two apart"];
                Finding::new(FindingCode::SlowerPopulation, HealthStatus::Unknown, message, advice)
            }
            Standing::Flagged(by) => {
                let than = format!("the median of {} hosts like it", siblings.hosts);
                let advice = "compare firmware and its settings, memory devices and power limits with those of another host";
                let severity = capped(severity(by, m.metric), m, report);
                Finding::new(FindingCode::SlowerThanFleet, severity, worse(m, own.value, by, &than, siblings.median), advice)
            }
        };
        Some(Suspicion { index, others: Vec::new(), finding })
    });
    found.collect()
}

/// By what share a number is worse than the siblings' median, if it can be relied on; `None` if they do not have it.
pub(super) fn worse_by(m: &Measurement, group: &GroupBaseline) -> Option<Option<f64>> {
    let median = counterpart(m, group)?.median;
    Some(Bounds::new(m).map(|own| m.metric.worse_by(own.value, median)))
}

fn is_conclusive(m: &Measurement, group: &GroupBaseline) -> bool {
    Bounds::new(m).is_some() && counterpart(m, group).is_some()
}

/// Which hosts the machine was compared with, or why with none.
pub(super) fn about_group(results: &[&Measurement], references: Baselines<'_>) -> Vec<Finding> {
    let quick = Command::new(Verb::Quick).to("FILE.json");
    let advice = words!["ingest more results of hosts like this one, made by ", quick];
    let group = match references.fleet {
        Some(FleetSiblings::Group(group)) => group,
        Some(FleetSiblings::TooFew) => {
            let message = "the fleet has fewer than eight hosts with this machine's hardware, so nothing was compared with them";
            return vec![Finding::new(FindingCode::NoSiblingsInFleet, HealthStatus::Unknown, message, advice)];
        }
        None => return Vec::new(),
    };
    let mut findings: Vec<Finding> = other_pages(results, group).into_iter().collect();
    let compared = results.iter().filter(|m| is_conclusive(m, group)).count();
    let there = results.iter().filter(|m| m.estimate.value.is_some() && counterpart(m, group).is_some()).count();
    let (all, hosts, level) = (results.len(), group.group.hosts, group.group.level.in_words());
    if compared > 0 {
        let message = format!("{compared} of {all} numbers compared with {hosts} hosts of the fleet that have {level}");
        findings.push(Finding::bare(FindingCode::FleetGroup, HealthStatus::Ok, message));
    } else if there > 0 {
        let message = format!("none of {there} numbers compared with {hosts} hosts of the fleet that have {level}: they are unreliable");
        findings.push(Finding::new(FindingCode::FleetNotCompared, HealthStatus::Unknown, message, measure_again()));
    } else if findings.is_empty() {
        let message = format!("{hosts} hosts of the fleet have {level}, but none of the numbers that were measured here");
        findings.push(Finding::new(FindingCode::FleetWithoutNumbers, HealthStatus::Unknown, message, advice));
    }
    findings
}

/// Numbers that the siblings have with other kinds of pages only.
fn other_pages(results: &[&Measurement], group: &GroupBaseline) -> Option<Finding> {
    let with_others =
        |m: &&&Measurement| m.estimate.value.is_some() && counterpart(m, group).is_none() && counterparts(m, group).next().is_some();
    let found: Vec<&Measurement> = results.iter().filter(with_others).copied().collect();
    let words = |kinds: BTreeSet<PageKind>| kinds.iter().map(spelled).collect::<Vec<_>>().join(" and ");
    let here = words(found.iter().filter_map(|m| m.evidence.pages.obtained).collect());
    let there = words(found.iter().flat_map(|m| counterparts(m, group).filter_map(|n| n.pages)).collect());
    let (n, all) = (found.len(), results.len());
    let message = format!("{n} of {all} numbers not compared with the fleet: pages are {here} here, and {there} on its hosts");
    let advice = words!["measure this machine and the fleet's hosts with the same pages, such as ", Knob::Pages, " thp"];
    (n > 0).then(|| Finding::new(FindingCode::FleetOtherPages, HealthStatus::Unknown, message, advice))
}
