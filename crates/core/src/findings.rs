//! What a health check concludes: siblings against each other, and against the machine's limit, a baseline and rules.
//!
//! A number that looks wrong is suspicious first. It counts when it looks wrong in each of three measurements; and it is a failure only where
//! nothing else than the machine can be blamed ([`crate::limit::blameless`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limit::{blameless, disturbed};
use crate::plan::quick::cell_seconds;
use crate::plan::{Plan, Step};
use crate::result::{ChaseOrder, Coordinates, Experiment, Measurement, Metric, QualityReason, Report, Table, VerdictStatus};
use crate::stats;

mod compare;
mod rules;
pub use rules::{Rule, Rules};

/// The verdict of a health check.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Health {
    /// The worst of the findings.
    pub status: HealthStatus,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
    /// What the numbers were compared with: `siblings`, `limit`, `baseline`, `rules`.
    pub compared_with: Vec<String>,
    /// Numbers that were measured again because they looked wrong.
    pub measured_again: u32,
}

/// How healthy a machine's memory is. The order is from good to bad; of two findings the worse decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HealthStatus {
    /// As it should be, as far as it was compared with anything.
    #[default]
    Ok,
    /// Measured, and there was nothing to compare with.
    Unknown,
    /// Worse than it should be, or worse in a way that something else may explain.
    Warning,
    /// What was measured says nothing about the machine.
    CouldNotMeasure,
    /// Much worse than it should be, three times in a row, with nothing else to blame.
    Failure,
    /// Data was corrupted, or the kernel reported memory errors meanwhile.
    Incident,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Finding {
    /// Stable kebab-case word that scripts can rely on, such as `slower-than-siblings`.
    pub code: String,
    /// How bad it is; `ok` explains only.
    pub severity: HealthStatus,
    /// What was found.
    pub message: String,
    /// What the reader can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    fn new(code: &str, severity: HealthStatus, message: impl Into<String>, advice: &str) -> Self {
        Self { code: code.into(), severity, message: message.into(), advice: (!advice.is_empty()).then(|| advice.to_owned()) }
    }
}

/// What else a machine is compared with.
#[derive(Debug, Clone, Copy, Default)]
pub struct References<'a> {
    /// A result of an earlier run, of this machine or of one like it.
    pub baseline: Option<&'a Report>,
    /// Bands that the user set.
    pub rules: Option<&'a Rules>,
}

/// A cell that looks wrong.
#[derive(Debug, Clone, PartialEq)]
struct Accusation {
    /// The measurement's place in the first round.
    index: usize,
    /// Others that it was compared with and that may be the ones that are wrong.
    others: Vec<usize>,
    finding: Finding,
}

/// Why a cell has no value when the time for all cells was over before its turn.
pub const LEFT_OUT: &str = "left out: the time for the whole run was over";

/// Takes of a cell that must agree.
const TAKES: usize = 3;

/// Differences between two machines, or two parts of one, that alike should not have: what a median's interval leaves out (other pages,
/// other times) is below 3 %.
const LEAST_DIFFERENCE: f64 = 0.03;
/// Node against node, and a machine against its like: more than this is worth a look, and more than twice this is a defect.
const WARN_DIFFERENCE: f64 = 0.05;
const FAIL_DIFFERENCE: f64 = 0.10;
/// Node sizes of siblings differ by less: firmware takes a part of the first node.
const MEMORY_DIFFERENCE: f64 = 0.10;

/// Cells of `plan` that look wrong and should be measured twice more, as a plan of its own that takes at most `seconds`; `None` when there
/// are none, or no time. The worst come first.
pub fn confirm(report: &Report, references: References<'_>, plan: &Plan, seconds: f64) -> Option<Plan> {
    let results = first_round(report);
    let mut accusations = examine(report, &results, references);
    accusations.retain(|a| a.finding.severity > HealthStatus::Ok);
    accusations.sort_by_key(|a| std::cmp::Reverse(a.finding.severity));
    let suspects = accusations.iter().flat_map(|a| [a.index].into_iter().chain(a.others.iter().copied()));
    let (mut cells, mut spent) = (Vec::new(), 0.0);
    for suspect in suspects {
        let m = results[suspect];
        let place = cell_of(m);
        let of = |s: &&Step| s.experiment == m.experiment;
        let Some(cell) = plan.steps.iter().filter(of).flat_map(|s| &s.cells).find(|c| c.at == place) else { continue };
        let cost = 2.0 * cell_seconds(cell, plan.stop.budget_s);
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
            let estimated_s = cell_seconds(cell, plan.stop.budget_s);
            let mut cell = cell.clone();
            cell.at.repeat = true;
            steps.push(Step { title: title.to_owned(), experiment: *experiment, cells: vec![cell], estimated_s });
        }
    }
    Some(Plan { estimated_s: steps.iter().map(|s| s.estimated_s).sum(), steps, ..plan.clone() })
}

/// The verdict on everything that was measured, repeats included.
pub fn judge(report: &Report, references: References<'_>) -> Health {
    let results = first_round(report);
    let takes: Vec<Vec<&Measurement>> = results.iter().map(|m| takes(report, m)).collect();
    let rounds: Vec<Vec<Accusation>> = (0..TAKES)
        .map(|take| {
            let view: Vec<&Measurement> = takes.iter().map(|of| of[take.min(of.len() - 1)]).collect();
            examine(report, &view, references)
        })
        .collect();
    let mut findings = Vec::new();
    for accusation in &rounds[0] {
        let again = rounds[1..].iter().map(|round| round.iter().find(|a| same(a, accusation)));
        let Some(again) = again.collect::<Option<Vec<_>>>() else {
            findings.push(Finding::new(
                "not-confirmed",
                HealthStatus::Ok,
                format!("{}; not so when it was measured again", accusation.finding.message),
                "",
            ));
            continue;
        };
        // The mildest of the three is what all of them say.
        let mildest = again.into_iter().chain([accusation]).min_by_key(|a| a.finding.severity).unwrap_or(accusation);
        let mut finding = mildest.finding.clone();
        if takes[accusation.index].len() < TAKES && finding.severity > HealthStatus::Warning {
            finding.severity = HealthStatus::Warning;
            finding.message.push_str("; there was no time to measure it again");
        }
        findings.push(finding);
    }
    let compared_with = compare::compared_with(report, &results, references);
    findings.extend(general(report, &results));
    findings.extend(compare::unlike(report, references));
    if compared_with.is_empty() {
        findings.push(Finding::new(
            "nothing-to-compare-with",
            HealthStatus::Unknown,
            "this machine has no parts to compare with each other, and its limit is not known",
            "give the limit (--limit GB/s), a result to compare with (--against FILE.json) or rules (--rules FILE.toml)",
        ));
    }
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    findings.dedup();
    let again = takes.iter().filter(|of| of.len() > 1).count() as u32;
    let status = findings.iter().map(|f| f.severity).max().unwrap_or_default();
    Health { status, findings, compared_with, measured_again: again }
}

fn same(a: &Accusation, b: &Accusation) -> bool {
    a.index == b.index && a.finding.code == b.finding.code
}

/// Everything but repeats.
fn first_round(report: &Report) -> Vec<&Measurement> {
    report.results.iter().filter(|m| !m.at.repeat).collect()
}

/// A measurement and its repeats that have a value.
fn takes<'a>(report: &'a Report, first: &'a Measurement) -> Vec<&'a Measurement> {
    let at = Coordinates { repeat: true, ..first.at.clone() };
    let same = |m: &&Measurement| m.at == at && m.experiment == first.experiment && m.metric == first.metric && m.estimate.value.is_some();
    [first].into_iter().chain(report.results.iter().filter(same)).collect()
}

/// The coordinates that the plan has for a measurement: a cell has results of several orders, or of several delays.
fn cell_of(m: &Measurement) -> Coordinates {
    let delay_cycles = m.at.delay_cycles.filter(|_| m.experiment != Experiment::LoadedLatency);
    Coordinates { order: None, delay_cycles, repeat: false, ..m.at.clone() }
}

/// What looks wrong in one round.
fn examine(report: &Report, view: &[&Measurement], references: References<'_>) -> Vec<Accusation> {
    let mut found = compare::siblings(report, view);
    found.extend(below_limit(view));
    found.extend(references.baseline.into_iter().flat_map(|baseline| compare::baseline(report, view, baseline)));
    found.extend(references.rules.into_iter().flat_map(|rules| rules::broken(report, view, rules)));
    found
}

/// Bandwidths that the machine's limit says are too low.
fn below_limit(view: &[&Measurement]) -> Vec<Accusation> {
    let low = view.iter().enumerate().filter_map(|(index, m)| {
        let severity = match m.verdict.status {
            VerdictStatus::Failure => HealthStatus::Failure,
            VerdictStatus::Warning => HealthStatus::Warning,
            VerdictStatus::Ok | VerdictStatus::Unknown => return None,
        };
        let (value, limit) = (m.evidence.traffic.and_then(|t| t.bus_estimate_gbs).or(m.estimate.value)?, m.verdict.limit?);
        let message = format!(
            "{}: {value:.1} GB/s, {:.0} % of the {limit:.1} GB/s that its memory could transfer ({})",
            name(m),
            100.0 * value / limit,
            m.verdict.limit_source.as_deref().unwrap_or("source not stated")
        );
        let advice = "look at which channels are populated and how fast they run (memgauge info, as root), and at power limits";
        Some(Accusation { index, others: Vec::new(), finding: Finding::new("below-limit", severity, message, advice) })
    });
    low.collect()
}

/// What is not about single numbers.
fn general(report: &Report, results: &[&Measurement]) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(errors) = report.results.iter().filter_map(|m| m.evidence.noise.memory_errors).max().filter(|n| *n > 0) {
        found.push(Finding::new(
            "memory-errors",
            HealthStatus::Incident,
            format!("the kernel reported memory errors while it was measured ({errors})"),
            "look at /sys/devices/system/edac and the kernel's log for the DIMM",
        ));
    }
    let wrong = report.results.iter().filter(|m| crate::scan::corrupted(m)).count();
    if wrong > 0 {
        found.push(Finding::new(
            crate::scan::CORRUPTED,
            HealthStatus::Incident,
            format!("{wrong} measurements read other data than was written"),
            "take the machine out of service and test its memory",
        ));
    }
    let left_out = |m: &&&Measurement| m.estimate.reason.as_deref() == Some(LEFT_OUT);
    let (late, missing): (Vec<&&Measurement>, Vec<&&Measurement>) =
        results.iter().filter(|m| m.estimate.value.is_none()).partition(left_out);
    if let Some(first) = late.first() {
        let severity = if late.len() == results.len() { HealthStatus::CouldNotMeasure } else { HealthStatus::Unknown };
        let message =
            format!("time was over before {} of {} numbers were measured, the first of them: {}", late.len(), results.len(), name(first));
        found.push(Finding::new("left-out", severity, message, "give it more time (--within), or name fewer CPUs or nodes"));
    }
    if let Some(first) = missing.first() {
        let none = missing.len() == results.len();
        let severity = if none { HealthStatus::CouldNotMeasure } else { HealthStatus::Warning };
        let why = first.estimate.reason.as_deref().unwrap_or("no reason is stated");
        let message = format!("{} of {} numbers could not be measured; {}: {why}", missing.len(), results.len(), name(first));
        found.push(Finding::new("not-measured", severity, message, ""));
    } else if results.is_empty() {
        found.push(Finding::new("not-measured", HealthStatus::CouldNotMeasure, "nothing was measured", ""));
    }
    found.extend(busy(results));
    found.extend(small_nodes(report));
    found.extend(uneven(report));
    found
}

/// Devices that are not spread evenly over sockets and channels. A virtual machine's are made up.
fn uneven(report: &Report) -> Vec<Finding> {
    if report.machine.identity.hypervisor.is_some() {
        return Vec::new();
    }
    let advice =
        "populate channels and sockets alike, with devices of one size and speed; if it was so before, a device is missing or disabled";
    let of = |what| Finding::new("unequal-population", HealthStatus::Warning, what, advice);
    report.machine.identity.installed.uneven().into_iter().map(of).collect()
}

/// Other work on the machine: with much of it the numbers are its, not the memory's.
fn busy(results: &[&Measurement]) -> Option<Finding> {
    use QualityReason as R;
    let taken = |m: &&&Measurement| {
        // Bursts that were disturbed and still count show in the other reasons; a clock that changes disturbs them as well, and is nobody's work.
        m.quality.reasons.iter().any(|r| matches!(r, R::BusyMachine | R::Steal | R::InvoluntarySwitches))
    };
    let measured: Vec<_> = results.iter().filter(|m| m.estimate.value.is_some()).collect();
    let busy = measured.iter().filter(|m| taken(m)).count();
    if busy == 0 {
        return None;
    }
    let most = 2 * busy > measured.len();
    let severity = if most { HealthStatus::CouldNotMeasure } else { HealthStatus::Warning };
    let message = format!("others used the CPUs while {busy} of {} numbers were measured", measured.len());
    Some(Finding::new("busy-machine", severity, message, "stop what else runs, or let it finish, and check again"))
}

/// Nodes with CPUs that have less memory than their siblings: a device is missing, or was taken out of service at boot.
fn small_nodes(report: &Report) -> Vec<Finding> {
    let nodes: Vec<_> = report.machine.topology.nodes.iter().filter(|n| !n.cpus.is_empty() && n.memory.0 > 0).collect();
    let most = nodes.iter().map(|n| n.memory.0).max().unwrap_or(0);
    let small = nodes.iter().filter(|n| (n.memory.0 as f64) < most as f64 * (1.0 - MEMORY_DIFFERENCE));
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    small
        .map(|n| {
            let message = format!("node {} has {:.1} GiB, and others have up to {:.1} GiB", n.id, gib(n.memory.0), gib(most));
            Finding::new("node-memory-differs", HealthStatus::Warning, message, "look for a missing or disabled memory device")
        })
        .collect()
}

/// A failure that something else may explain is a warning.
fn capped(severity: HealthStatus, m: &Measurement, report: &Report) -> HealthStatus {
    let may_fail = blameless(m, &report.machine, &report.environment);
    if severity == HealthStatus::Failure && !may_fail { HealthStatus::Warning } else { severity }
}

/// What a measurement is, for people.
fn name(m: &Measurement) -> String {
    let at = &m.at;
    let mut words = Vec::new();
    match (at.table, &at.cpus, at.cpu, at.cpu_node) {
        (Some(Table::CacheDomains), Some(cpus), ..) => words.push(format!("CPUs {cpus} behind one cache")),
        (_, _, Some(cpu), _) => words.push(format!("CPU {cpu}")),
        (_, _, _, Some(node)) => words.push(format!("node {node}")),
        (_, Some(cpus), ..) => words.push(format!("CPUs {cpus}")),
        _ => words.push("all".into()),
    }
    if let Some(memory) = at.memory_node {
        words.push(if at.cpu_node == Some(memory) { "own memory".into() } else { format!("memory of node {memory}") });
    }
    words.extend(at.mix.filter(|_| m.experiment != Experiment::IdleLatency).map(|mix| mix.to_string()));
    words.push(
        match (m.experiment, m.metric, at.order) {
            (Experiment::IdleLatency, _, Some(ChaseOrder::FullRandom)) => "full-random latency",
            (Experiment::IdleLatency, ..) => "idle latency",
            (Experiment::LoadedLatency, Metric::Latency, _) => "latency under load",
            (Experiment::LoadedLatency, ..) => "bandwidth beside a chase",
            (Experiment::Bandwidth | Experiment::MemoryScan, ..) => "bandwidth",
            (Experiment::CacheToCache, ..) => "transfer",
        }
        .into(),
    );
    words.join(", ")
}

/// A value with its unit.
fn shown(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Latency => format!("{value:.1} ns"),
        Metric::Bandwidth => format!("{value:.1} GB/s"),
    }
}

/// By how much `value` is worse than `reference`: less bandwidth, more latency.
fn worse_by(metric: Metric, value: f64, reference: f64) -> f64 {
    match metric {
        Metric::Bandwidth => (reference - value) / reference,
        Metric::Latency => (value - reference) / reference,
    }
}

#[cfg(test)]
mod tests;
