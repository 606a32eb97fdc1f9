//! The verdict or the headline in one line, for those who want no page.

use std::collections::BTreeMap;

use memgauge_analysis::conclusions::summary::{peaks, summarise, with_unreliable};
use memgauge_model::experiment::{Experiment, Metric};
use memgauge_model::plan::Plan;
use memgauge_model::result::{Health, Measurement, QualityLevel, Report, SummaryValue};
use memgauge_model::traffic::Mix;
use memgauge_model::wording::reasons;

use super::headline::{by_part, full_random, trust, under_load, value};
use super::page::clean;
use super::{counters, faults, loops, machine, plan, prefetch, residency, state, verdict, watch};
use crate::groups::{Section, corrupted_results};
use crate::number::{count, number, range, unit, value_of};

/// One line: the verdict of a health check, the headline of other runs; a line for each size of a loop.
pub(crate) fn report_line(report: &Report) -> String {
    loops::lines(report).unwrap_or_else(|| clean(&line(report)) + "\n")
}

/// A plan in one line: how much would be measured, and how long that takes.
pub(crate) fn plan_line(plan: &Plan) -> String {
    let cells = plan.steps.iter().map(|step| step.cells.len()).sum();
    format!("{} in {}: {}\n", count(cells, "cell", "cells"), count(plan.steps.len(), "step", "steps"), plan::duration(plan))
}

/// The verdict or the headline, without an end of line.
pub(crate) fn line(report: &Report) -> String {
    if let Some(program) = &report.program {
        return counters::program_line(program);
    }
    if let Some(seen) = &report.watch {
        return watch::claim(report, seen).0;
    }
    if let Some(residency) = &report.residency {
        return residency::claim(report, residency).0;
    }
    if report.plan.is_none() && report.is_empty() && report.complete {
        return match &report.environment.prefetch {
            Some(state) => prefetch::claim(state),
            None => match &report.state {
                Some(state) => state::claim(state).0,
                None => machine::line(&report.machine),
            },
        };
    }
    let mut parts: Vec<String> = report.incomplete.iter().map(|why| format!("INCOMPLETE: {}", reasons::incomplete(why))).collect();
    let corrupted = corrupted_results(report);
    parts.extend((corrupted > 0).then(|| format!("MEMORY CORRUPTED in {}", count(corrupted, "result", "results"))));
    parts.extend(faults::integrity(report).filter(|_| corrupted == 0));
    match &report.health {
        Some(health) => parts.push(in_a_line(report, health)),
        None => {
            let summary = report.summary.clone().unwrap_or_else(|| summarise(report));
            let end = if summary.trust.level == QualityLevel::Unreliable { parts.len() } else { usize::MAX };
            parts.extend(headline(report));
            let stand_in = report.results.iter().any(|m| report.stand_in(&m.at).is_some());
            parts.extend(stand_in.then(|| "volatile stand-in for persistent memory".to_owned()));
            // What matters most stands first.
            parts.insert(end.min(parts.len()), trust(&summary.trust));
            parts.extend(state::changed_during_run(report));
        }
    }
    parts.join(" · ")
}

/// `WARNING: node 1 …; and 2 more findings`: the gravest finding stands for all.
fn in_a_line(report: &Report, health: &Health) -> String {
    let more = match verdict::further(health) {
        0 => String::new(),
        n => format!("; and {}", count(n, "more finding", "more findings")),
    };
    format!("{}{more}", verdict::sentence(report, health))
}

/// The numbers of the summary; if it has none, ranges of the results.
fn headline(report: &Report) -> Vec<String> {
    let summary = with_unreliable(report);
    let named = |name: &str, of: &SummaryValue, unit: &str| Some(format!("{name} {}", value(of, unit)?));
    let other_mix = summary.peak_any_mix.filter(|mix| *mix != Mix::AllReads);
    let latency = named("latency", &summary.idle_latency_local_ns, "ns");
    let [reads, fastest] = peaks(report);
    let part = |m: Option<&Measurement>| m.map(|m| by_part(report, m)).unwrap_or_default();
    let summed = [
        full_random(report).filter(|_| latency.is_some()).map(|ns| format!("random {ns}")),
        named("remote", &summary.idle_latency_remote_ns, "ns"),
        named("read", &summary.peak_read_gbs, "GB/s").map(|read| read + &part(reads)),
        other_mix.and_then(|mix| named(mix.name(), &summary.peak_any_gbs, "GB/s")).map(|any| any + &part(fastest)),
        named("HIT", &summary.transfer_hit_ns, "ns"),
        named("HITM", &summary.transfer_hitm_ns, "ns"),
    ];
    let summed = [latency].into_iter().chain(summed);
    let levels = report.levels.iter().map(|curve| {
        let what = curve.metric.map_or("", |metric| if metric == Metric::Latency { "ns" } else { "GB/s" });
        let levels: Vec<String> = curve.levels.iter().map(|level| format!("{} {}", level.name, number(level.value))).collect();
        format!("{} {what}", levels.join(", "))
    });
    let mut parts: Vec<String> = summed.flatten().chain(levels).collect();
    if parts.is_empty() {
        parts.extend(ranges(report));
    }
    parts.extend(under_load(report).map(|ns| format!("under load {ns}")));
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
    let name = |experiment: Experiment| if several { experiment.name().replace('-', " ") + " " } else { String::new() };
    kinds.into_iter().filter_map(|((_, experiment, unit), values)| Some(format!("{}{} {unit}", name(experiment), range(values)?))).collect()
}
