//! A number that looks wrong, and what is needed to say so.

use crate::conclusions::limit::blameless;
use crate::experiment::{ChaseOrder, Experiment, Method, Metric};
use crate::result::{Finding, HealthStatus, Measurement, Report};

/// A cell that looks wrong.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Suspicion {
    /// The measurement's place in the first round.
    pub(super) index: usize,
    /// Others that it was compared with and that may be the ones that are wrong.
    pub(super) others: Vec<usize>,
    pub(super) finding: Finding,
}

/// Differences between two machines, or two parts of one, that alike should not have: what a median's interval leaves out (other pages,
/// other times) is below 3 %.
pub(super) const MIN_DIFFERENCE: f64 = 0.03;

/// Node against node, and a machine against its like: more than this is worth a look, and more than twice this is a defect.
pub(super) const WARN_DIFFERENCE: f64 = 0.05;

pub(super) const FAIL_DIFFERENCE: f64 = 0.10;

/// Everything but repeats.
pub(super) fn first_round(report: &Report) -> Vec<&Measurement> {
    report.results.iter().collect()
}

/// A failure that something else may explain is a warning.
pub(super) fn capped(severity: HealthStatus, m: &Measurement, report: &Report) -> HealthStatus {
    let may_fail = blameless(m, &report.machine, &report.environment);
    if severity == HealthStatus::Failure && !may_fail { HealthStatus::Warning } else { severity }
}

/// What a measurement is, for people.
pub(super) fn name(m: &Measurement) -> String {
    let at = &m.at;
    let mut words = Vec::new();
    match (m.experiment, &at.cpus, at.cpu, at.cpu_node) {
        (Experiment::BandwidthPerCache, Some(cpus), ..) => words.push(format!("CPUs {cpus} behind one cache")),
        (_, _, Some(cpu), _) => words.push(format!("CPU {cpu}")),
        (_, _, _, Some(node)) => words.push(format!("node {node}")),
        (_, Some(cpus), ..) => words.push(format!("CPUs {cpus}")),
        _ => words.push("all".into()),
    }
    if let Some(memory) = at.memory_node() {
        words.push(if at.cpu_node == Some(memory) { "own memory".into() } else { format!("memory of node {memory}") });
    }
    words.extend(at.mix.filter(|_| m.method() != Method::IdleLatency).map(|mix| mix.to_string()));
    words.push(
        match (m.method(), m.metric, at.order) {
            (Method::IdleLatency, _, Some(ChaseOrder::FullRandom)) => "full-random latency",
            (Method::IdleLatency, ..) => "idle latency",
            (Method::LoadedLatency, Metric::Latency, _) => "latency under load",
            (Method::LoadedLatency, ..) => "bandwidth beside a chase",
            (Method::Bandwidth | Method::MemoryScan, ..) => "bandwidth",
            (Method::CacheToCache, ..) => "transfer",
        }
        .into(),
    );
    words.join(", ")
}

/// A value with its unit.
pub(super) fn format_value(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Latency => format!("{value:.1} ns"),
        Metric::Bandwidth => format!("{value:.1} GB/s"),
    }
}

/// By how much `value` is worse than `reference`: less bandwidth, more latency.
pub(super) fn worse_by(metric: Metric, value: f64, reference: f64) -> f64 {
    match metric {
        Metric::Bandwidth => (reference - value) / reference,
        Metric::Latency => (value - reference) / reference,
    }
}
