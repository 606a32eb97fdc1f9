//! Rules: bands that the user sets for measured numbers.

use memgauge_model::experiment::{ChaseOrder, Experiment, Method, Metric};
use memgauge_model::result::{Finding, FindingCode, HealthStatus, Measurement, Report};
use memgauge_model::traffic::Mix;
use memgauge_model::wording::spelled;
use serde::Deserialize;

use crate::conclusions::findings::suspicion::{Suspicion, capped, format_value, name};
use crate::conclusions::limit::disturbed;
use crate::fleet::GroupBaseline;

/// A file of rules.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rules {
    /// Failures also count on virtual machines and without root, because the author of the rules knows the machines. Failures on a busy
    /// machine never count.
    #[serde(default)]
    pub strict: bool,
    /// The rules.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
}

/// The band for some numbers, in GB/s for bandwidths and ns for latencies.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    /// The experiment; `bandwidth` means `bandwidth-matrix`.
    pub experiment: Experiment,
    /// The quantity; if not given, that of the experiment, and latency for `loaded-latency`.
    pub metric: Option<Metric>,
    /// The mix; if not given, any.
    pub mix: Option<Mix>,
    /// The order of the chase; if not given, window-local.
    pub order: Option<ChaseOrder>,
    /// Node of the CPUs.
    pub cpu_node: Option<u32>,
    /// Node of the memory.
    pub memory_node: Option<u32>,
    /// Whether CPUs and memory must be on the same node; if not given, either.
    pub local: Option<bool>,
    /// Below this is a warning.
    pub warn_below: Option<f64>,
    /// Below this is a failure.
    pub fail_below: Option<f64>,
    /// Above this is a warning.
    pub warn_above: Option<f64>,
    /// Above this is a failure.
    pub fail_above: Option<f64>,
}

impl Rule {
    /// Whether the rule applies to a measurement.
    pub(super) fn applies_to(&self, m: &Measurement) -> bool {
        let at = &m.at;
        let is = |requested: Option<u32>, node: Option<u32>| requested.is_none() || requested == node;
        let experiment = if self.experiment == Experiment::Bandwidth { Experiment::BandwidthMatrix } else { self.experiment };
        let metric = if experiment.method(Metric::Latency) == Method::Bandwidth { Metric::Bandwidth } else { Metric::Latency };
        let order = at.order.is_none() || at.order == Some(self.order.unwrap_or(ChaseOrder::WindowLocal));
        experiment == m.experiment
            && self.metric.unwrap_or(metric) == m.metric
            && (self.mix.is_none() || self.mix == at.mix)
            && order
            && is(self.cpu_node, at.cpu_node)
            && is(self.memory_node, at.memory_node())
            && self.local.is_none_or(|local| local == (at.cpu_node == at.memory_node()))
    }

    /// The severity of a value by this rule, and the band that it is outside of.
    fn judge(&self, value: f64) -> Option<(HealthStatus, String)> {
        let below = |band: Option<f64>| band.filter(|b| value < *b).map(|b| format!("below {b}"));
        let above = |band: Option<f64>| band.filter(|b| value > *b).map(|b| format!("above {b}"));
        let failure = below(self.fail_below).or_else(|| above(self.fail_above)).map(|words| (HealthStatus::Failure, words));
        failure.or_else(|| Some((HealthStatus::Warning, below(self.warn_below).or_else(|| above(self.warn_above))?)))
    }

    /// The rule in words.
    pub(super) fn describe(&self) -> String {
        let mut words = vec![self.experiment.name().to_owned()];
        words.extend(self.metric.as_ref().map(spelled));
        words.extend(self.order.as_ref().map(spelled));
        words.extend(self.mix.map(|m| m.to_string()));
        words.extend(self.cpu_node.map(|n| format!("CPUs of node {n}")));
        words.extend(self.memory_node.map(|n| format!("memory of node {n}")));
        words.extend(self.local.map(|local| if local { "own memory".into() } else { "remote memory".to_owned() }));
        words.join(", ")
    }
}

/// Numbers outside of their bands.
pub(super) fn broken_rules(report: &Report, view: &[&Measurement], rules: &Rules) -> Vec<Suspicion> {
    let mut found = Vec::new();
    for (index, m) in view.iter().enumerate() {
        let Some(value) = m.estimate.value else { continue };
        // If several rules apply to one number, the worst counts, so that each number is flagged once.
        let judged = rules.rules.iter().filter(|rule| rule.applies_to(m)).filter_map(|rule| rule.judge(value)).max_by_key(|(s, _)| *s);
        let Some((severity, band)) = judged else { continue };
        let strict = rules.strict && !disturbed(m);
        let severity = if strict { severity } else { capped(severity, m, report) };
        let message = format!("{}: {} breaks a rule ({band})", name(m), format_value(m.metric, value));
        found.push(Suspicion { index, others: Vec::new(), finding: Finding::bare(FindingCode::RuleBroken, severity, message) });
    }
    found
}

/// The references that a machine is compared with, in addition to itself and its limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Baselines<'a> {
    /// A result of an earlier run, of this machine or of one like it.
    pub baseline: Option<&'a Report>,
    /// The file that it is in, as it is named to readers.
    pub baseline_file: Option<&'a str>,
    /// Bands that the user set.
    pub rules: Option<&'a Rules>,
    /// The hosts like it, if a fleet was given.
    pub fleet: Option<FleetSiblings<'a>>,
    /// Earlier checks of this machine ([`earlier_checks`](super::earlier_checks)).
    pub history: &'a [Report],
    /// The newest earlier check of this machine, if it had another number of CPUs or nodes then.
    pub former: Option<&'a Report>,
    /// This check is kept, and later ones are compared with it.
    pub kept: bool,
}

/// The hosts of a fleet that are like a machine.
#[derive(Debug, Clone, Copy)]
pub enum FleetSiblings<'a> {
    /// The numbers that they measure.
    Group(&'a GroupBaseline),
    /// There are fewer than eight.
    TooFew,
}
