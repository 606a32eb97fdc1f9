//! Hardware counters around a measurement: what was counted, what it means, and why a count is missing.
//!
//! Counts come from the kernel as (value, time enabled, time running) of each thread. If a CPU has fewer counters than there are events,
//! the kernel multiplexes them. The value is then scaled by enabled / running, and the result states the share of the time that was
//! counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::metrics::{self, CounterMetric, MetricUnit, Role};

/// With fewer instructions than this, a count of zero proves nothing.
const ENOUGH_INSTRUCTIONS: f64 = 100_000.0;

/// A hardware event, and how it is requested from the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The vendor's name, such as `mem_load_retired.l1_miss`.
    pub name: String,
    /// Its roles in formulas. An event has several if a core counts several things with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Role>,
    /// The kernel's unit and the code there, such as `cpu/event=0xd1,umask=0x8/`.
    pub code: String,
    /// The source of the code: `sysfs`, the table's source, or `kernel` for its generic events.
    pub source: String,
}

/// Which code was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// User code only.
    #[default]
    User,
    /// User code and the kernel's work on its behalf.
    UserAndKernel,
}

/// Totals of one event over threads and bursts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EventTotals {
    /// What was counted.
    pub raw: u64,
    /// The count, scaled for each thread to include the time when the event had no counter.
    pub scaled: f64,
    /// Nanoseconds during which the event should have been counted.
    pub enabled_ns: u64,
    /// Nanoseconds during which it was counted.
    pub running_ns: u64,
    /// Number of threads whose event never had a counter.
    pub starved: u32,
}

impl EventTotals {
    /// Adds what one thread counted in one period.
    pub fn add(&mut self, value: u64, enabled_ns: u64, running_ns: u64) {
        self.raw += value;
        self.enabled_ns += enabled_ns;
        self.running_ns += running_ns;
        if running_ns > 0 {
            self.scaled += value as f64 * (enabled_ns as f64 / running_ns as f64).max(1.0);
        } else if enabled_ns > 0 {
            self.starved += 1;
        }
    }

    /// Share of the time that the event had a counter, 0 to 1; `None` when it was never enabled.
    pub fn running(&self) -> Option<f64> {
        (self.enabled_ns > 0).then(|| (self.running_ns as f64 / self.enabled_ns as f64).min(1.0))
    }
}

/// The outcome of counting one event.
#[derive(Debug, Clone, PartialEq)]
pub struct EventOutcome {
    /// The event.
    pub event: Event,
    /// Its counts, or why there are none.
    pub outcome: Result<EventTotals, String>,
}

/// Events that the measured code must have caused. A count of zero cannot be right for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExpectedEvents {
    /// It loads.
    pub loads: bool,
    /// It missed the first-level cache.
    pub l1_missed: bool,
    /// It missed the second-level cache.
    pub l2_missed: bool,
    /// It missed the last-level cache.
    pub llc_missed: bool,
}

impl ExpectedEvents {
    fn includes(self, role: Role) -> bool {
        use Role as R;
        match role {
            R::Cycles | R::Instructions => true,
            R::Loads | R::L1Accesses => self.loads,
            R::L1Misses | R::L1Replacements | R::L1Outstanding | R::L1OutstandingCycles | R::L2Accesses => self.l1_missed,
            R::L2Misses
            | R::LoadL2Misses
            | R::LlcAccesses
            | R::DemandOutstanding
            | R::DemandOutstandingCycles
            | R::DataOutstanding
            | R::DataOutstandingCycles
            | R::DemandRequests => self.l2_missed,
            R::LlcMisses | R::LoadLlcMisses | R::DramReads | R::DramTransfers => self.llc_missed,
            R::MeshReads
            | R::MeshOutstanding
            | R::MeshCycles
            | R::TlbWalks
            | R::TlbWalkCycles
            | R::DramWrites
            | R::ReadsOutstanding
            | R::Reads => false,
        }
    }
}

/// Work done while counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedWork {
    /// What is counted.
    pub unit: WorkUnit,
    /// The number of rounds.
    pub count: u64,
}

/// A unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WorkUnit {
    /// A dependent load of a chase.
    Hop,
    /// A 64-byte line read or written by a loader.
    Line,
}

impl WorkUnit {
    /// The word for one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hop => "hop",
            Self::Line => "line",
        }
    }
}

/// One event's count in a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventCount {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// The count, scaled if counters were multiplexed, and in lines of 64 bytes for traffic of memory; `null` if the event was not counted or the count cannot be right.
    pub value: Option<f64>,
    /// The count before scaling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<u64>,
    /// Share of the time that the event had a counter, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<f64>,
    /// Why `value` is `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A metric derived from counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetricValue {
    /// Its name.
    pub metric: CounterMetric,
    /// How it is computed, by the roles of events.
    pub formula: String,
    /// Its unit.
    pub unit: MetricUnit,
    /// The value; `null` when an event that it needs is missing.
    pub value: Option<f64>,
    /// Why it is `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What the CPUs' counters showed while a measurement's windows ran.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counters {
    /// Which code was counted.
    pub scope: Scope,
    /// Threads that were counted.
    pub threads: u32,
    /// Seconds counted, of all threads together.
    pub thread_s: f64,
    /// The work that they did in that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<CountedWork>,
    /// The smallest share of the time that an event had a counter; below 1 the values are scaled estimates.
    pub running: Option<f64>,
    /// Why nothing was counted, when nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The events.
    pub events: Vec<EventCount>,
    /// What they mean.
    pub metrics: Vec<MetricValue>,
}

/// The code, threads and time that were counted.
#[derive(Debug, Clone, PartialEq)]
pub struct CountingContext {
    /// Which code.
    pub scope: Scope,
    /// Threads.
    pub threads: u32,
    /// Seconds of all threads together.
    pub thread_s: f64,
    /// Seconds from start to end. System-wide events were counted for this time.
    pub wall_s: f64,
    /// Work done.
    pub work: Option<CountedWork>,
    /// Events that the code must have caused.
    pub expected: ExpectedEvents,
}

impl Counters {
    /// Nothing was counted, for this reason.
    pub fn missing(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::default() }
    }

    /// Judges counts and derives the metrics.
    pub fn new(context: &CountingContext, counted: &[EventOutcome]) -> Self {
        let events = judge(counted, context.expected);
        let running = events.iter().filter_map(|e| e.running).reduce(f64::min);
        let metrics = evaluate(context, &events);
        let CountingContext { scope, threads, thread_s, work, .. } = *context;
        Self { scope, threads, thread_s, work, running, reason: None, events, metrics }
    }

    /// A metric's value.
    pub fn metric(&self, metric: CounterMetric) -> Option<f64> {
        self.metrics.iter().find(|m| m.metric == metric)?.value
    }

    /// The count of the event with this role.
    pub fn count(&self, role: Role) -> Option<f64> {
        self.events.iter().find(|e| e.event.roles.contains(&role))?.value
    }

    /// The reasons why events have no value, each with the events that share it.
    pub fn gaps(&self) -> BTreeMap<String, Vec<String>> {
        let mut gaps: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (reason, event) in self.events.iter().filter_map(|e| Some((e.reason.as_ref()?, &e.event))) {
            gaps.entry(reason.clone()).or_default().push(event.name.clone());
        }
        gaps
    }
}

/// Turns counts into values and rejects those that cannot be right. Some counters open but never count, for instance for events that the
/// PMU of a virtual machine does not have. Such a counter shows zero even if there are misses.
pub fn judge(counted: &[EventOutcome], expected: ExpectedEvents) -> Vec<EventCount> {
    let alive = |c: &EventOutcome| c.outcome.as_ref().is_ok_and(|t| t.raw > 0);
    let instructions = counted.iter().find(|c| c.event.roles.contains(&Role::Instructions)).and_then(|c| c.outcome.as_ref().ok());
    let worked = instructions.is_none_or(|t| t.scaled >= ENOUGH_INSTRUCTIONS);
    let beyond_the_core = |c: &EventOutcome| c.event.roles.iter().any(|r| !matches!(r, Role::Cycles | Role::Instructions));
    let some_cache_event_lives = counted.iter().any(|c| beyond_the_core(c) && alive(c));
    let reason = |c: &EventOutcome| {
        let words = match &c.outcome {
            Err(reason) => reason,
            Ok(t) if t.enabled_ns == 0 => "was not enabled while the work ran",
            Ok(t) if t.starved > 0 => "got no counter: others use them (the NMI watchdog, another profiler), or this core has too few",
            Ok(t) if t.raw > 0 || !worked => return None,
            Ok(_) if c.event.roles.iter().any(|&r| expected.includes(r)) => {
                "opened and never counted, although the work caused such events: this PMU does not have it"
            }
            Ok(_) if beyond_the_core(c) && !some_cache_event_lives => {
                "opened and never counted, like every event of its kind here: this PMU may not have it"
            }
            Ok(_) => return None,
        };
        Some(words.to_owned())
    };
    let judged = counted.iter().map(|c| {
        let (totals, reason) = (c.outcome.as_ref().ok(), reason(c));
        let right = totals.filter(|_| reason.is_none());
        let (value, raw) = (right.map(|t| t.scaled), right.map(|t| t.raw));
        EventCount { event: c.event.clone(), value, raw, running: totals.and_then(EventTotals::running), reason }
    });
    judged.collect()
}

/// Every metric that applies, with its value or the reason why there is none.
pub fn evaluate(context: &CountingContext, events: &[EventCount]) -> Vec<MetricValue> {
    let count = |role: Role| -> Result<f64, String> {
        let Some(event) = events.iter().find(|e| e.event.roles.contains(&role)) else {
            return Err(format!("no event for {role} is known for this CPU"));
        };
        event.value.ok_or_else(|| format!("{} {}", event.event.name, event.reason.as_deref().unwrap_or("was not counted")))
    };
    let inputs =
        metrics::Inputs { count: &count, thread_s: context.thread_s, wall_s: context.wall_s, work: context.work.map(|w| w.count as f64) };
    CounterMetric::ALL
        .iter()
        .filter(|m| context.work.is_some() || !m.definition().per_work)
        .map(|&metric| {
            let definition = metric.definition();
            let formula = match context.work {
                Some(work) => definition.formula().replace("work", work.unit.name()),
                None => definition.formula(),
            };
            let (value, reason) = match metric.evaluate(&inputs) {
                Ok(value) => (Some(value), None),
                Err(reason) => (None, Some(reason)),
            };
            MetricValue { metric, formula, unit: definition.unit, value, reason }
        })
        .collect()
}

/// A program whose events were counted from start to end, in one or more runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramCount {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Which code was counted.
    pub scope: Scope,
    /// How each run ended.
    pub runs: Vec<ProgramRun>,
    /// Seconds from start to end.
    pub elapsed_s: Estimate,
    /// The smallest share of the time that an event had a counter; below 1 the values are scaled estimates.
    pub running: Option<f64>,
    /// The events, each with its median over the runs.
    pub events: Vec<EventEstimate>,
    /// The metrics that follow from the events, each with its median over the runs.
    pub metrics: Vec<MetricEstimate>,
}

/// How a run of a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProgramRun {
    /// It ended by itself with this status.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
}

/// An event over several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventEstimate {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// The unit if it is not a plain count: `ns` for the software clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The median count and its spread.
    pub estimate: Estimate,
}

/// A metric over several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetricEstimate {
    /// Its name.
    pub metric: CounterMetric,
    /// How it is computed, by the roles of events.
    pub formula: String,
    /// Its unit.
    pub unit: MetricUnit,
    /// The median and its spread.
    pub estimate: Estimate,
}

#[cfg(test)]
mod tests;
