//! Symptoms: the parts of the machine whose numbers are worse, and by how much.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::{ChaseOrder, Experiment, Metric};
use memgauge_model::note::Code;
use memgauge_model::result::{Finding, FindingCode, HealthStatus, Measurement, Report, VerdictStatus};
use memgauge_model::stats;
use memgauge_model::units::IdSet;

use crate::conclusions::findings::compare::{families, has_value, is_judged, machine_difference};
use crate::conclusions::findings::fleet;
use crate::conclusions::findings::rules::Baselines;
use crate::conclusions::limit::GOOD_READS;
use memgauge_model::result::DifferentField;

/// Numbers that are worse by less are as they should be.
pub(super) const WORSE: f64 = 0.03;
/// Something that concerns this share of the numbers concerns the check.
pub(super) const MANY: f64 = 0.25;
/// The share of its limit that memory reaches where nothing is wrong: the middle of what published systems reach, most of which is above 80 %.
const USUAL_SHARE: f64 = 0.85;

/// By what shares the numbers of a node are worse than they should be; `None` where nothing says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NodeShift {
    pub(super) bandwidth: Option<f64>,
    pub(super) latency: Option<f64>,
}

impl NodeShift {
    /// The larger of the two; 0 where neither is known.
    pub(super) fn worst(self) -> f64 {
        [self.bandwidth, self.latency].into_iter().flatten().fold(0.0, f64::max)
    }
}

/// How much worse each part of the machine is.
pub(super) struct Symptoms<'a> {
    pub(super) report: &'a Report,
    /// An earlier result of this machine, or one that was given.
    pub(super) before: Option<&'a Report>,
    /// Which it is: `in the check of 2026-11-12`.
    pub(super) when: String,
    /// Local memory, by node.
    pub(super) nodes: BTreeMap<u32, NodeShift>,
    /// Memory of nodes without CPUs, by node.
    pub(super) far: BTreeMap<u32, NodeShift>,
    /// Memory of other packages.
    pub(super) links: Vec<f64>,
    /// Caches, by their first CPU.
    pub(super) caches: BTreeMap<u32, f64>,
    codes: BTreeSet<FindingCode>,
}

impl<'a> Symptoms<'a> {
    pub(super) fn new(report: &'a Report, references: Baselines<'a>, findings: &[Finding]) -> Self {
        let (before, when) = before(report, references);
        let found = |finding: &Finding| match finding.code {
            Code::Known(code) if finding.severity >= HealthStatus::Warning => Some(code),
            _ => None,
        };
        let mut symptoms = Self {
            report,
            before,
            when,
            nodes: BTreeMap::new(),
            far: BTreeMap::new(),
            links: Vec::new(),
            caches: BTreeMap::new(),
            codes: findings.iter().filter_map(found).collect(),
        };
        symptoms.sort_numbers(references);
        symptoms
    }

    /// By what share each number is worse than it should be, and of which part it is.
    fn sort_numbers(&mut self, references: Baselines<'_>) {
        // The best of all tries of a cell: a number counts if it is worse in each of them.
        let tried = |m: &Measurement| {
            let again = self.report.repeats.iter().filter(|again| again.is_of_same_cell(m)).filter_map(|again| again.estimate.value);
            m.estimate.value.into_iter().chain(again).min_by(|a, b| m.metric.cost(*a).total_cmp(&m.metric.cost(*b)))
        };
        let results: Vec<&Measurement> = self.report.results.iter().collect();
        let families = families(self.report, &results, has_value);
        let (mut nodes, mut far) = (BTreeMap::<u32, NodeShift>::new(), BTreeMap::<u32, NodeShift>::new());
        let (mut links, mut caches) = (Vec::new(), BTreeMap::new());
        for (index, m) in results.iter().enumerate().filter(|(_, m)| is_judged(m)) {
            let Some(value) = tried(m) else { continue };
            let earlier = self.before.and_then(|before| before.results.iter().find(|b| b.is_of_same_cell(m))?.estimate.value);
            let by = match earlier {
                Some(usual) => Some(m.metric.worse_by(value, usual)),
                None => {
                    let members = families.iter().find(|members| members.contains(&index));
                    let others = members.into_iter().flatten().filter(|other| **other != index && results[**other].is_reliable());
                    let theirs = stats::median(&others.filter_map(|&other| tried(results[other])).collect::<Vec<_>>());
                    let siblings = theirs.map(|theirs| m.metric.worse_by(value, theirs));
                    let fleet = fleet::group(references).and_then(|group| fleet::worse_by(m, group).flatten());
                    // The limit says little of a number that reaches what machines usually do.
                    let low = matches!(m.verdict.status, VerdictStatus::Warning | VerdictStatus::Failure);
                    let limit =
                        m.verdict.limit.filter(|limit| low && value < limit * GOOD_READS).map(|limit| 1.0 - value / (limit * USUAL_SHARE));
                    [siblings, fleet, limit].into_iter().flatten().max_by(f64::total_cmp)
                }
            };
            let Some(by) = by.filter(|by| by.is_finite()) else { continue };
            let (cpu_node, memory) = (m.at.cpu_node, m.at.memory_node());
            let local = cpu_node.is_some_and(|cpu| memory.is_none_or(|memory| self.report.machine.topology.is_local(cpu, memory)));
            let bare = memory.filter(|node| self.report.machine.topology.node(*node).is_some_and(|node| node.cpus.is_empty()));
            let worst = |slot: &mut Option<f64>| *slot = Some(slot.map_or(by, |known| known.max(by)));
            match (m.experiment, m.metric) {
                (Experiment::BandwidthPerCache, _) => {
                    let first = m.at.cpus.as_ref().and_then(IdSet::first);
                    caches.extend(first.map(|cpu| (cpu, by)));
                }
                (Experiment::Bandwidth, Metric::Bandwidth) if m.at.load_nodes.is_some() => links.push(by),
                (Experiment::IdleLatency, Metric::Latency) if m.at.order != Some(ChaseOrder::FullRandom) => match (local, cpu_node, bare) {
                    (true, Some(node), _) => worst(&mut nodes.entry(node).or_default().latency),
                    (_, _, Some(node)) => worst(&mut far.entry(node).or_default().latency),
                    _ => links.push(by),
                },
                (Experiment::BandwidthMatrix, Metric::Bandwidth) => match (local, cpu_node, bare) {
                    (true, Some(node), _) => worst(&mut nodes.entry(node).or_default().bandwidth),
                    (_, _, Some(node)) => worst(&mut far.entry(node).or_default().bandwidth),
                    _ => {}
                },
                _ => {}
            }
        }
        (self.nodes, self.far, self.links, self.caches) = (nodes, far, links, caches);
    }

    /// Whether there is a finding of this kind that counts.
    pub(super) fn found(&self, code: FindingCode) -> bool {
        self.codes.contains(&code)
    }

    /// Nodes whose own memory is worse than it should be. Nodes that are worse alike belong together, also where a small loss is hard to see on some.
    pub(super) fn worse_nodes(&self) -> Vec<u32> {
        let worst = self.nodes.values().map(|shift| shift.worst()).fold(0.0, f64::max);
        let worse = |shift: &NodeShift| worst >= WORSE && shift.worst() >= worst / 2.0;
        self.nodes.iter().filter(|(_, shift)| worse(shift)).map(|(node, _)| *node).collect()
    }

    /// Whether some nodes are worse and others are not.
    pub(super) fn is_of_some_nodes(&self) -> bool {
        let worse = self.worse_nodes().len();
        worse > 0 && worse < self.nodes.len()
    }

    /// Whether every node is worse.
    pub(super) fn is_of_all_nodes(&self) -> bool {
        !self.nodes.is_empty() && self.worse_nodes().len() == self.nodes.len()
    }

    /// Whether only some parts of the machine are worse, which nothing explains that concerns all of them.
    pub(super) fn is_of_some_parts(&self) -> bool {
        let far = self.far.values().map(|shift| shift.worst());
        let mut parts = self.links.iter().chain(self.caches.values()).copied().chain(far);
        self.is_of_some_nodes() || (self.worse_nodes().is_empty() && parts.any(|by| by >= WORSE))
    }

    /// By what share the bandwidth of the worse nodes is less: their median.
    pub(super) fn bandwidth_by(&self) -> Option<f64> {
        self.median_of(|shift| shift.bandwidth)
    }

    /// By what share the latency of the worse nodes is more: their median.
    pub(super) fn latency_by(&self) -> Option<f64> {
        self.median_of(|shift| shift.latency)
    }

    fn median_of(&self, part: fn(NodeShift) -> Option<f64>) -> Option<f64> {
        let worse = self.worse_nodes().into_iter().filter_map(|node| part(self.nodes[&node]));
        stats::median(&worse.collect::<Vec<_>>())
    }

    /// The value of a property then and now, where both are known: `None` where one is not.
    pub(super) fn property(&self, field: DifferentField) -> Option<(String, String)> {
        Some((field.value(self.before?)?, field.value(self.report)?))
    }

    /// The share of the numbers of which this is so.
    pub(super) fn share(&self, so: impl Fn(&Measurement) -> bool) -> f64 {
        let measured: Vec<&Measurement> = self.report.results.iter().filter(|m| has_value(m)).collect();
        if measured.is_empty() { 0.0 } else { measured.iter().filter(|m| so(m)).count() as f64 / measured.len() as f64 }
    }
}

/// The earlier result that shows how the machine was: the one that was given, the newest good check of it, or one of when it had another shape.
fn before<'a>(report: &Report, references: Baselines<'a>) -> (Option<&'a Report>, String) {
    let day =
        |check: &Report| check.started.utc.get(..10).map_or_else(|| "an earlier check".to_owned(), |day| format!("the check of {day}"));
    if let Some(baseline) = references.baseline {
        let file = references.baseline_file.unwrap_or("the baseline");
        let same_cpu =
            machine_difference(report, baseline).is_none() || baseline.machine.identity.model_name == report.machine.identity.model_name;
        if same_cpu {
            return (Some(baseline), format!("in {file}"));
        }
    }
    let good = |check: &&Report| check.health.as_ref().is_some_and(|health| health.status <= HealthStatus::Unknown);
    let check = references.history.iter().rev().find(good).or(references.history.last()).or(references.former);
    (check, check.map_or_else(String::new, |check| format!("in {}", day(check))))
}

/// `7 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
