//! Finding the numbers that advice rests on.

use memgauge_model::experiment::{Experiment, Metric};
use memgauge_model::result::{Measurement, QualityLevel, QualityReason, Report};
use memgauge_model::topology::Topology;
use memgauge_model::traffic::Access;
use memgauge_model::units::IdSet;
use memgauge_model::words::{Command, Knob};

use super::document::{Action, Doubt, Gap, Number, Ratio, Recommendation, ResultFile, Role, Sureness, Topic, Why};
use crate::conclusions::limit;

/// The results by name.
pub(super) struct Results<'a>(pub(super) &'a [(&'a str, &'a Report)]);

/// A measurement and the result that it is in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a> {
    name: &'a str,
    pub(super) report: &'a Report,
    pub(super) m: &'a Measurement,
}

/// The recommendations and gaps of a topic.
#[derive(Debug, Default)]
pub(super) struct TopicAdvice {
    pub(super) recommendations: Vec<Recommendation>,
    pub(super) gaps: Vec<Gap>,
}

impl<'a> Results<'a> {
    /// Whether all of them were measured on Linux.
    pub(super) fn are_of_linux(&self) -> bool {
        self.0.iter().all(|(_, report)| report.machine.identity.system.is_linux())
    }

    /// The document's description of each result.
    pub(super) fn files(&self) -> Vec<ResultFile> {
        let file = |(name, report): &(&str, &Report)| ResultFile {
            name: (*name).to_owned(),
            id: report.run.id.clone(),
            started: report.started.utc.clone(),
            cpu: report.machine.identity.model_name.clone(),
            complete: report.complete,
            system: report.machine.identity.system,
        };
        self.0.iter().map(file).collect()
    }

    /// Measurements of these experiments, file by file. Files that serve as memory are left out.
    pub(super) fn measurements(&self, experiments: &'static [Experiment], metric: Metric) -> impl Iterator<Item = Found<'a>> + use<'a> {
        let found = |(name, report): &(&'a str, &'a Report)| {
            let (name, report) = (*name, *report);
            report.results.iter().map(move |m| Found { name, report, m })
        };
        let all: Vec<_> = self.0.iter().map(found).collect();
        all.into_iter().flatten().filter(move |f| {
            experiments.contains(&f.m.experiment) && f.m.metric == metric && f.m.at.memory_dir.is_none() && f.m.at.load_nodes.is_none()
        })
    }

    /// Each report with its name.
    pub(super) fn reports(&self) -> impl Iterator<Item = (&'a str, &'a Report)> {
        self.0.iter().copied()
    }

    /// Whether it holds for the machine of any result.
    pub(super) fn any_machine(&self, holds: impl Fn(&Topology, &IdSet) -> bool) -> bool {
        self.0.iter().any(|(_, report)| holds(&report.machine.topology, &report.machine.allowed.cpus))
    }
}

impl<'a> Found<'a> {
    /// A measurement of this report.
    pub(super) const fn new(name: &'a str, report: &'a Report, m: &'a Measurement) -> Self {
        Self { name, report, m }
    }

    /// The machine's topology.
    pub(super) const fn topology(&self) -> &'a Topology {
        &self.report.machine.topology
    }

    /// Median and interval; `None` if one of them is missing or makes no sense.
    fn ends(&self) -> Option<(f64, f64, f64)> {
        let e = &self.m.estimate;
        let (value, low, high) = (e.value?, e.ci95_low?, e.ci95_high?);
        (low > 0.0 && low <= value && value <= high && high.is_finite()).then_some((value, low, high))
    }

    /// The median; 0 if there is none.
    pub(super) fn value(&self) -> f64 {
        self.m.estimate.value.unwrap_or(0.0)
    }

    /// Whether the number is of memory and not of a cache.
    pub(super) fn is_of_memory(&self) -> bool {
        limit::is_of_memory(self.topology(), self.m)
    }

    /// Whether the number may carry advice: it is reliable, has an interval, and is of memory.
    pub(super) fn is_usable(&self) -> bool {
        self.m.is_reliable() && self.ends().is_some() && self.is_of_memory()
    }

    /// This number over another; `None` if one of them has no interval.
    pub(super) fn over(&self, other: &Self) -> Option<Ratio> {
        let ((a, a_low, a_high), (b, b_low, b_high)) = (self.ends()?, other.ends()?);
        Some(Ratio { value: a / b, low: a_low / b_high, high: a_high / b_low })
    }

    /// Median and interval divided by a number.
    pub(super) fn divided_by(&self, divisor: f64) -> Option<Ratio> {
        let (value, low, high) = self.ends()?;
        Some(Ratio { value: value / divisor, low: low / divisor, high: high / divisor })
    }

    /// How many threads of the loaders were at work.
    pub(super) fn cpus(&self) -> u32 {
        self.m.at.cpus.as_ref().map_or(0, |cpus| cpus.len() as u32)
    }

    /// In which order lines were visited: that of the cell in the plan, unless the experiment has several orders.
    pub(super) fn access(&self) -> Access {
        let planned = || {
            let steps = &self.report.plan.as_ref()?.steps;
            let cell = steps.iter().flat_map(|step| &step.cells).find(|cell| cell.at == self.m.at)?;
            Some(cell.work.traffic()?.form.access)
        };
        self.m.at.access.or_else(planned).unwrap_or_default()
    }

    /// The number for the document.
    pub(super) fn number(&self, role: Role) -> Number {
        let Measurement { experiment, metric, unit, at, estimate, quality, .. } = self.m;
        Number {
            role,
            result: self.name.to_owned(),
            experiment: *experiment,
            metric: *metric,
            unit: *unit,
            at: at.clone(),
            threads: self.m.evidence.threads,
            value: estimate.value,
            ci95_low: estimate.ci95_low,
            ci95_high: estimate.ci95_high,
            quality: quality.level,
            reasons: quality.reasons.clone(),
        }
    }
}

/// The same command with more time for each cell.
pub(super) fn longer(command: Command) -> Command {
    command.set(Knob::Budget, "10s")
}

impl TopicAdvice {
    /// One gap.
    pub(super) fn gap(topic: Topic, why: Why, command: Command) -> Self {
        let mut advice = Self::default();
        advice.add_gap(topic, why, &[], Some(command));
        advice
    }

    /// One gap that no measurement closes.
    pub(super) fn without_command(topic: Topic, why: Why) -> Self {
        let mut advice = Self::default();
        advice.add_gap(topic, why, &[], None);
        advice
    }

    /// Adds a gap with the numbers that carry no advice.
    pub(super) fn add_gap(&mut self, topic: Topic, why: Why, found: &[Found<'_>], command: Option<Command>) {
        let numbers = found.iter().map(|f| f.number(Role::NotUsed)).collect();
        self.gaps.push(Gap { topic, why, numbers, command: command.map(|command| command.to_string()) });
    }

    /// Adds advice with the numbers behind it. Degraded ones make it no more than likely.
    pub(super) fn recommend(&mut self, topic: Topic, action: Action, found: &[(Role, Found<'_>)], mut doubts: Vec<Doubt>) {
        let degraded = found.iter().filter(|(_, f)| f.m.quality.level != QualityLevel::Good);
        let mut reasons: Vec<QualityReason> = degraded.flat_map(|(_, f)| f.m.quality.reasons.iter().copied()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        if found.iter().any(|(_, f)| f.m.quality.level != QualityLevel::Good) {
            doubts.push(Doubt::Degraded { reasons });
        }
        let sureness = if doubts.is_empty() { Sureness::Shown } else { Sureness::Likely };
        let numbers = found.iter().map(|(role, f)| f.number(*role)).collect();
        self.recommendations.push(Recommendation { topic, action, sureness, doubts, numbers });
    }
}

/// Why numbers cannot carry advice.
pub(super) fn why_not(found: &[Found<'_>]) -> Why {
    if !found.is_empty() && found.iter().all(|f| !f.is_of_memory()) { Why::NotMemory } else { Why::Unreliable }
}

/// The nodes whose memory is local to CPUs.
pub(super) fn homes(topology: &Topology, cpus: &IdSet) -> IdSet {
    cpus.iter().flat_map(|cpu| topology.local_nodes(cpu).iter().collect::<Vec<_>>()).collect()
}

/// Whether a node has CPUs and memory.
pub(super) fn is_whole(topology: &Topology, node: u32) -> bool {
    topology.node(node).is_some_and(|n| !n.cpus.is_empty() && n.has_memory())
}
