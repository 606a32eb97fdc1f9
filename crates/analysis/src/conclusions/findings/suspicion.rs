//! Suspicions: numbers that look wrong, and how to describe and compare them.

use memgauge_model::experiment::{ChaseOrder, Experiment, Method, Metric};
use memgauge_model::result::{Finding, HealthStatus, Measurement, Report};
use memgauge_model::words;
use memgauge_model::words::{Knob, Way, Ways};

use crate::conclusions::limit::blameless;

/// A cell that looks wrong.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Suspicion {
    /// The index of the measurement in the first round.
    pub(super) index: usize,
    /// Indices of others that it was compared with and that may be the wrong ones.
    pub(super) others: Vec<usize>,
    pub(super) finding: Finding,
}

/// Reduces a failure to a warning if something other than the machine may be the cause.
pub(super) fn capped(severity: HealthStatus, m: &Measurement, report: &Report) -> HealthStatus {
    let may_fail = blameless(m, &report.machine, &report.environment);
    if severity == HealthStatus::Failure && !may_fail { HealthStatus::Warning } else { severity }
}

/// Advice on numbers that are not reliable.
pub(super) fn measure_again() -> Ways {
    let idle = Way::Say(words!["measure again when the machine is idle (", Knob::WaitQuiet, " 60s waits for it)"]);
    idle.or(words!["longer (", Knob::Budget, ")"])
}

/// A measurement in words.
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
    words.extend(at.load_nodes.as_ref().map(|nodes| format!("memory of nodes {nodes}")));
    words.extend(at.mix.filter(|_| m.method() != Method::IdleLatency).map(|mix| mix.to_string()));
    words.extend(at.delay_cycles.filter(|delay| *delay > 0).map(|delay| format!("delay {delay}")));
    let full_random = m.method() == Method::IdleLatency && at.order == Some(ChaseOrder::FullRandom);
    words.push(if full_random { "full-random latency" } else { m.quantity().noun }.into());
    words.join(", ")
}

pub(super) const fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Latency => "ns",
        Metric::Bandwidth => "GB/s",
    }
}

/// A value with its unit.
pub(super) fn format_value(metric: Metric, value: f64) -> String {
    format!("{value:.1} {}", unit(metric))
}
