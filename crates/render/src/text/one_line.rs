//! The verdict or the headline in one line, for those who want no page.

use std::collections::BTreeMap;

use memgauge_core::conclusions::summary::summarise;
use memgauge_core::experiment::{Experiment, Metric};
use memgauge_core::plan::Plan;
use memgauge_core::result::{Absent, Health, HealthStatus, Measurement, QualityLevel, Report, Summary, SummaryValue, Trust};
use memgauge_core::traffic::Mix;
use memgauge_core::wording::{reasons, spelled};

use super::load::full_load_is_reliable;
use super::page::clean;
use super::{counters, loops, machine, plan, prefetch};
use crate::format::{Format, RenderError};
use crate::groups::{Section, corrupted_results};
use crate::number::{count, half_width_of, number, range, unit, value_of};

/// One line for each report: the verdict of a health check, the headline of other runs, a line for each size of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneLine;

impl Format for OneLine {
    fn name(&self) -> &'static str {
        "line"
    }

    fn render(&self, report: &Report) -> Result<Vec<u8>, RenderError> {
        let text = loops::lines(report).unwrap_or_else(|| clean(&line(report)) + "\n");
        Ok(text.into_bytes())
    }
}

/// A plan in one line: how much would be measured, and how long that takes.
pub fn plan_line(plan: &Plan) -> String {
    let cells = plan.steps.iter().map(|step| step.cells.len()).sum();
    format!("{} in {}: {}\n", count(cells, "cell", "cells"), count(plan.steps.len(), "step", "steps"), plan::duration(plan))
}

/// The verdict or the headline, without an end of line.
pub(crate) fn line(report: &Report) -> String {
    if let Some(program) = &report.program {
        return counters::program_line(program);
    }
    if report.plan.is_none() && report.is_empty() && report.complete {
        return match &report.environment.prefetch {
            Some(state) => prefetch::claim(state),
            None => machine::line(&report.machine),
        };
    }
    let mut parts: Vec<String> = report.incomplete.iter().map(|why| format!("INCOMPLETE: {}", reasons::incomplete(why))).collect();
    let corrupted = corrupted_results(report);
    parts.extend((corrupted > 0).then(|| format!("MEMORY CORRUPTED in {}", count(corrupted, "result", "results"))));
    match &report.health {
        Some(health) => parts.push(verdict(health)),
        None => {
            let summary = report.summary.clone().unwrap_or_else(|| summarise(report));
            parts.extend(headline(report, &summary));
            let stand_in = report.results.iter().any(|m| report.stand_in(&m.at).is_some());
            parts.extend(stand_in.then(|| "volatile stand-in for persistent memory".to_owned()));
            parts.push(trust(&summary.trust));
        }
    }
    parts.join(" · ")
}

/// `WARNING: node 1 …, and 2 more findings`: the gravest finding stands for all.
fn verdict(health: &Health) -> String {
    let findings: Vec<_> = health.findings.iter().filter(|found| found.severity > HealthStatus::Ok).collect();
    let word = super::report::verdict(health.status).0;
    let Some(gravest) = findings.iter().max_by_key(|found| found.severity) else { return word.to_owned() };
    let more = match findings.len() - 1 {
        0 => String::new(),
        n => format!("; and {}", count(n, "more finding", "more findings")),
    };
    format!("{word}: {}{more}", gravest.message)
}

/// What the summary has; ranges of what it does not sum up.
fn headline(report: &Report, summary: &Summary) -> Vec<String> {
    let named = |name: &str, value: &SummaryValue, unit: &str| {
        let Some(v) = value.value else {
            let why = match value.absent? {
                Absent::Unreliable => "not reliable",
                Absent::NotMeasured => "not measured",
                Absent::NotPlanned | Absent::OneNode => return None,
            };
            return Some(format!("{name} {why}"));
        };
        let interval = half_width_of(v, value.ci95_low, value.ci95_high);
        Some(format!("{name} {} {unit} {interval}", number(v)).trim_end().to_owned())
    };
    let other_mix = summary.peak_any_mix.filter(|mix| *mix != Mix::AllReads);
    let under_load = report.curves.iter().filter(|curve| full_load_is_reliable(report, curve)).find_map(|curve| curve.saturated_ns);
    let summed = [
        named("latency", &summary.idle_latency_local_ns, "ns"),
        named("remote", &summary.idle_latency_remote_ns, "ns"),
        named("read", &summary.peak_read_gbs, "GB/s"),
        other_mix.and_then(|mix| named(mix.name(), &summary.peak_any_gbs, "GB/s")),
        named("HIT", &summary.transfer_hit_ns, "ns"),
        named("HITM", &summary.transfer_hitm_ns, "ns"),
    ];
    let levels = report.levels.iter().map(|curve| {
        let what = curve.metric.map_or("", |metric| if metric == Metric::Latency { "ns" } else { "GB/s" });
        let levels: Vec<String> = curve.levels.iter().map(|level| format!("{} {}", level.name, number(level.value))).collect();
        format!("{} {what}", levels.join(", "))
    });
    let mut parts: Vec<String> = summed.into_iter().flatten().chain(levels).collect();
    if parts.is_empty() {
        parts.extend(ranges(report));
    }
    parts.extend(under_load.map(|ns| format!("under load {} ns", number(ns))));
    parts
}

/// `31.2–33.4 GB/s`, of every kind of reliable results; with the kind's name where there are several.
fn ranges(report: &Report) -> Vec<String> {
    let is_point = |m: &Measurement| m.experiment == Experiment::LoadedLatency;
    let mut kinds: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for m in report.results.iter().filter(|m: &&Measurement| m.is_reliable() && !is_point(m)) {
        kinds.entry((Section::for_measurement(m), m.experiment, unit(m.unit))).or_default().extend(value_of(&m.estimate));
    }
    let several = kinds.len() > 1;
    let name = |experiment| if several { spelled(&experiment).replace('-', " ") + " " } else { String::new() };
    kinds.into_iter().filter_map(|((_, experiment, unit), values)| Some(format!("{}{} {unit}", name(experiment), range(values)?))).collect()
}

/// `good`, or how many numbers are not.
fn trust(trust: &Trust) -> String {
    let all = trust.good + trust.degraded + trust.unreliable + trust.missing;
    let word = match trust.level {
        QualityLevel::Good => "good",
        QualityLevel::Degraded => "degraded",
        QualityLevel::Unreliable => "not reliable",
        QualityLevel::None => return "nothing was measured".to_owned(),
    };
    let parts = [(trust.unreliable, "not reliable"), (trust.missing, "missing")];
    let parts: Vec<String> = parts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} of {all} {what}")).collect();
    match parts.join(", ") {
        parts if parts.is_empty() => word.to_owned(),
        // The count says it.
        parts if trust.level == QualityLevel::Unreliable && trust.unreliable > 0 => parts,
        parts => format!("{word}: {parts}"),
    }
}
