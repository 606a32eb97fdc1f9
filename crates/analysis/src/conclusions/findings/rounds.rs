//! Which cells are suspicious after the first round, and which suspicions two more rounds confirm.

use std::collections::BTreeSet;

use memgauge_model::experiment::{Coordinates, Experiment, Metric};
use memgauge_model::plan::{Cell, Plan, Step, StopRule};
use memgauge_model::result::{Compared, ComparedWith, Finding, FindingCode, Health, HealthStatus, Measurement, Report, VerdictStatus};
use memgauge_model::topology::OperatingSystem;
use memgauge_model::wording::reasons;
use memgauge_model::words;
use memgauge_model::words::{Command, Knob, Verb};

use crate::conclusions::findings::rules::Baselines;
use crate::conclusions::findings::run::general;
use crate::conclusions::findings::suspicion::{Suspicion, measure_again, name, unit};
use crate::conclusions::findings::{causes, compare, compared, fleet, history, published, rules};

/// Measurements of a cell that must agree.
const MEASUREMENTS: usize = 3;

/// A plan that measures suspicious cells of `plan` twice more, in at most `seconds`; `None` if there are none, or no time. The worst come
/// first. The planner predicts the time of a cell (`cell_seconds`).
pub fn confirm(
    report: &Report,
    references: Baselines<'_>,
    plan: &Plan,
    seconds: f64,
    cell_seconds: fn(&Cell, &StopRule) -> f64,
) -> Option<Plan> {
    let results: Vec<&Measurement> = report.results.iter().collect();
    let mut suspicions = examine(report, &results, references);
    suspicions.retain(|a| a.finding.severity > HealthStatus::Ok);
    suspicions.sort_by_key(|a| std::cmp::Reverse(a.finding.severity));
    let suspects = suspicions.iter().flat_map(|a| [a.index].into_iter().chain(a.others.iter().copied()));
    let (mut cells, mut spent) = (Vec::new(), 0.0);
    for suspect in suspects {
        let m = results[suspect];
        let place = planned_coordinates(m);
        let same_experiment = |s: &&Step| s.experiment == m.experiment;
        let Some(cell) = plan.steps.iter().filter(same_experiment).flat_map(|s| &s.cells).find(|c| c.at == place) else { continue };
        let cost = 2.0 * cell_seconds(cell, &plan.stop);
        if cells.iter().any(|(e, c)| *e == m.experiment && c == cell) || spent + cost > seconds {
            continue;
        }
        spent += cost;
        cells.push((m.experiment, cell.clone()));
    }
    if cells.is_empty() {
        return None;
    }
    let mut steps = Vec::new();
    for title in ["Suspicious cells again", "Suspicious cells once more"] {
        for (experiment, cell) in &cells {
            let estimated_s = cell_seconds(cell, &plan.stop);
            let again = Cell { repeat: true, ..cell.clone() };
            steps.push(Step { title: title.to_owned(), experiment: *experiment, cells: vec![again], estimated_s });
        }
    }
    Some(Plan { estimated_s: steps.iter().map(|s| s.estimated_s).sum(), steps, ..plan.clone() })
}

/// The verdict on all measurements, including repeats.
pub fn judge(report: &Report, references: Baselines<'_>) -> Health {
    let results: Vec<&Measurement> = report.results.iter().collect();
    let measurements: Vec<Vec<&Measurement>> = results.iter().map(|m| repeats(report, m)).collect();
    let rounds: Vec<Vec<Suspicion>> = (0..MEASUREMENTS)
        .map(|round| {
            let view: Vec<&Measurement> = measurements.iter().map(|list| list[round.min(list.len() - 1)]).collect();
            examine(report, &view, references)
        })
        .collect();
    let mut findings = Vec::new();
    for suspicion in &rounds[0] {
        let again = rounds[1..].iter().map(|round| round.iter().find(|a| same(a, suspicion)));
        let tries = tries(&measurements[suspicion.index]);
        let Some(again) = again.collect::<Option<Vec<_>>>() else {
            let message = format!("{}; not confirmed when measured again{tries}", suspicion.finding.message);
            findings.push(Finding::bare(FindingCode::NotConfirmed, HealthStatus::Ok, message));
            continue;
        };
        // All three rounds agree on the mildest severity.
        let mildest = again.into_iter().chain([suspicion]).min_by_key(|a| a.finding.severity).unwrap_or(suspicion);
        let mut finding = mildest.finding.clone();
        finding.message.push_str(&tries);
        if measurements[suspicion.index].len() < MEASUREMENTS && finding.severity > HealthStatus::Warning {
            finding.severity = HealthStatus::Warning;
            finding.message.push_str("; there was no time to measure it again");
        }
        findings.push(finding);
    }
    findings.extend(general(report, &results));
    findings.extend(compare::reference_problems(report, references));
    findings.extend(fleet::about_group(&results, references));
    findings.extend(history::machine_changed(report, references));
    findings.extend(history::fewer_cpus(report, references));
    findings.extend(history::slower_cores(report, references));
    findings.extend(history::smaller_pages(report, &results, references));
    // A cell that was measured again counts as its tries say, and not as the first one does.
    let typical: Vec<&Measurement> = measurements.iter().map(|tries| middle(tries)).collect();
    let compared = compared::compared(report, &typical, references);
    let too_little = too_little(report, &results, references, &compared);
    let severity = if too_little.is_some() { HealthStatus::Unknown } else { HealthStatus::Ok };
    findings.extend(too_little);
    findings.extend(published::unlike(report, severity));
    let compared = compared.into_iter().map(|(compared, _)| compared).chain(published::compared(report, &results));
    let compared: Vec<Compared> = compared.collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    findings.dedup();
    let measured_again = measurements.iter().filter(|list| list.len() > 1).count() as u32;
    let status = findings.iter().map(|f| f.severity).max().unwrap_or_default();
    let compared_with = compared.iter().filter(|c| c.numbers > 0).map(|c| c.with.word().to_owned()).collect();
    let causes = causes::causes(report, references, &findings);
    Health { status, findings, compared_with, compared, measured_again, causes }
}

/// Why the compared numbers are not enough for a verdict; `None` if they are.
fn too_little(
    report: &Report,
    results: &[&Measurement],
    references: Baselines<'_>,
    compared: &[(Compared, Vec<usize>)],
) -> Option<Finding> {
    let numbers: BTreeSet<usize> = compared.iter().flat_map(|(_, indices)| indices.iter().copied()).collect();
    let is_open = compared.iter().any(|(compared, _)| compared.undecided > 0);
    if numbers.is_empty() && !compared.is_empty() {
        let none = results.iter().filter(|m| m.estimate.value.is_some()).all(|m| !m.is_reliable());
        let (severity, message) = match none {
            true => (HealthStatus::CouldNotMeasure, "no number is reliable enough to be compared"),
            false if is_open => (HealthStatus::Unknown, "differences of 10 % and more are within the scatter of the numbers"),
            false => (HealthStatus::Unknown, "too few numbers are reliable enough to be compared"),
        };
        return Some(Finding::new(FindingCode::NumbersNotReliable, severity, message, measure_again()));
    }
    if numbers.is_empty() {
        let plausible = published::plausible(report).unwrap_or_else(|| "nothing to compare with yet".to_owned());
        let (code, message) = match references.kept {
            true => (FindingCode::FirstCheck, format!("{plausible}; kept, so that later checks are compared with it")),
            false => {
                let why = "this machine has no parts to compare with each other, and its limit is not known";
                (FindingCode::NothingToCompareWith, why.to_owned())
            }
        };
        let first = if references.kept { "to judge now, give the limit (" } else { "give the limit (" };
        let advice = words![
            first,
            Knob::Limit,
            " GB/s), a result to compare with (",
            Knob::Against,
            " FILE.json), a fleet (",
            Knob::Baseline,
            " FLEET) or rules (",
            Knob::Rules,
            " FILE.toml)"
        ];
        return Some(Finding::new(code, HealthStatus::Unknown, message, advice));
    }
    // Users who write rules decide what is enough.
    let ruled = compared.iter().any(|(c, _)| c.with == ComparedWith::Rules && c.numbers > 0);
    if ruled || numbers.iter().any(|&index| results[index].metric == Metric::Bandwidth) {
        return None;
    }
    let all = results.iter().filter(|m| compare::is_judged(m)).count();
    let message = match numbers.len() {
        1 => format!("no bandwidth was compared: only a latency was, 1 of {all} numbers"),
        some => format!("no bandwidth was compared: only latencies were, {some} of {all} numbers"),
    };
    let unreliable = results.iter().any(|m| m.metric == Metric::Bandwidth && compare::is_judged(m) && !m.is_reliable());
    let advice = match unreliable || is_open {
        true => measure_again(),
        false => words!["compare with a result that ", Command::new(Verb::Quick).to("FILE.json"), " wrote"].into(),
    };
    Some(Finding::new(FindingCode::TooFewCompared, HealthStatus::Unknown, message, advice))
}

/// The middle one of all tries by its value; the first if not all could be made with its kind of pages.
fn middle<'a>(tries: &[&'a Measurement]) -> &'a Measurement {
    let alike = tries.iter().filter(|m| m.evidence.pages.obtained == tries[0].evidence.pages.obtained);
    let mut with_value: Vec<(f64, &Measurement)> = alike.filter_map(|m| Some((m.estimate.value?, *m))).collect();
    with_value.sort_by(|a, b| a.0.total_cmp(&b.0));
    if with_value.len() == MEASUREMENTS { with_value[MEASUREMENTS / 2].1 } else { tries[0] }
}

/// `; in 3 tries: 84.4, 51.9, 53.0 GB/s`: the page shows the first of them, and a finding the mildest.
fn tries(measurements: &[&Measurement]) -> String {
    let values: Vec<String> = measurements.iter().filter_map(|m| Some(format!("{:.1}", m.estimate.value?))).collect();
    match measurements.first().filter(|_| values.len() > 1) {
        Some(first) => format!("; in {} tries: {} {}", values.len(), values.join(", "), unit(first.metric)),
        None => String::new(),
    }
}

fn same(a: &Suspicion, b: &Suspicion) -> bool {
    a.index == b.index && a.finding.code == b.finding.code
}

/// A measurement and those of its repeats that have a value.
fn repeats<'a>(report: &'a Report, first: &'a Measurement) -> Vec<&'a Measurement> {
    let again = report.repeats.iter().filter(|m| m.is_of_same_cell(first) && m.estimate.value.is_some());
    [first].into_iter().chain(again).collect()
}

/// The coordinates of a measurement's cell in the plan: a cell has results of several orders, or of several delays.
fn planned_coordinates(m: &Measurement) -> Coordinates {
    let delay_cycles = m.at.delay_cycles.filter(|_| m.experiment != Experiment::LoadedLatency);
    Coordinates { order: None, delay_cycles, ..m.at.clone() }
}

/// The numbers that look wrong in one round.
fn examine(report: &Report, view: &[&Measurement], references: Baselines<'_>) -> Vec<Suspicion> {
    let mut found = compare::siblings(report, view);
    found.extend(below_limit(view, report.machine.identity.system));
    found.extend(references.baseline.into_iter().flat_map(|baseline| compare::baseline(report, view, baseline)));
    found.extend(fleet::worse_than_siblings(report, view, references));
    found.extend(history::slower_than_before(report, view, references.history));
    found.extend(references.rules.into_iter().flat_map(|rules| rules::broken_rules(report, view, rules)));
    found
}

/// Bandwidths that are too low compared with the machine's limit.
fn below_limit(view: &[&Measurement], system: OperatingSystem) -> Vec<Suspicion> {
    let low = view.iter().enumerate().filter_map(|(index, m)| {
        let severity = match m.verdict.status {
            VerdictStatus::Failure => HealthStatus::Failure,
            VerdictStatus::Warning => HealthStatus::Warning,
            VerdictStatus::Ok | VerdictStatus::Unknown => return None,
        };
        let (value, limit) = (m.evidence.traffic.and_then(|t| t.bus_estimate_gbs).or(m.estimate.value)?, m.verdict.limit?);
        let message = format!(
            "{}: {value:.1} GB/s, {:.0} % of the {limit:.1} GB/s that its memory can transfer ({})",
            name(m),
            100.0 * value / limit,
            m.verdict.limit_source.map_or_else(|| "source not stated".into(), |s| reasons::limit_source(s, m.verdict.limit_share))
        );
        let info = words![Verb::Info, system.words().for_memory_devices];
        let advice =
            words!["look at which channels are populated and how fast they run ("].followed_by(info).followed_by("), and at power limits");
        Some(Suspicion { index, others: Vec::new(), finding: Finding::new(FindingCode::BelowLimit, severity, message, advice) })
    });
    low.collect()
}
