//! The headline: what most readers look for, in a line each, and how far to trust it.

use std::collections::BTreeSet;

use memgauge_core::experiment::{ChaseOrder, Experiment};
use memgauge_core::note::Severity;
use memgauge_core::result::{Absent, CurveSummary, Measurement, QualityLevel, Report, Summary, SummaryValue};
use memgauge_core::traffic::Mix;

use super::load::{full_load_is_reliable, is_point_reliable};
use super::notes::is_told;
use super::page::{Page, Style};
use crate::groups::{Section, where_and_how_at};
use crate::limit::share_of_limit;
use crate::number::{half_width_of, number, percent, value_of};

/// Columns of the longest name and the blanks after it.
const NAMES: usize = 20;

/// Whether a section repeats what the headline says: the only node's latency, or the only pair's transfers, all of them reliable.
pub(super) fn says_all(section: Section, ms: &[&Measurement]) -> bool {
    let places = |m: &Measurement| (m.at.cpu, m.at.memory, m.at.holder_cpu);
    let one_place = ms.iter().all(|m| ms.first().is_some_and(|first| places(first) == places(m)));
    let plain =
        |m: &&Measurement| m.is_reliable() && value_of(&m.estimate).is_some() && m.distribution.is_none() && m.at.memory_dir.is_none();
    let plain_order = |m: &&Measurement| m.at.order != Some(ChaseOrder::Sequential) && m.at.sharer_cpu.is_none();
    matches!(section, Section::IdleLatency | Section::CacheToCache) && one_place && ms.iter().all(plain) && ms.iter().all(plain_order)
}

/// Prints the lines.
pub(super) fn headline(page: &mut Page, report: &Report, summary: &Summary) {
    let lines = [
        ("Idle latency", idle(report, summary)),
        ("Peak bandwidth", bandwidth(report, summary)),
        ("Latency under load", loaded(report)),
        ("Cache to cache", transfers(report, summary)),
        ("Trust", Some(trust(summary))),
    ];
    page.gap();
    for (name, text) in lines.into_iter().filter_map(|(name, text)| Some((name, text?))) {
        page.fact(Style::Bold, "", (name, NAMES), &text);
    }
    // A page that explains everything has all notes at its end.
    let verbose = page.verbose;
    for note in report.notes.iter().filter(|note| !verbose && note.severity > Severity::Info && !is_told(report, note)) {
        page.remark(Style::Warning, "  ! ", &note.message, note.advice.as_deref());
    }
}

/// `98.2 ns ±0.4`; what is missing instead; `None` for what was not asked for.
fn value(value: &SummaryValue, unit: &str) -> Option<String> {
    match (value.value, value.absent) {
        (Some(v), _) => {
            let interval = half_width_of(v, value.ci95_low, value.ci95_high);
            Some(format!("{} {unit} {interval}", number(v)).trim_end().to_owned())
        }
        (None, Some(Absent::Unreliable)) => Some("not reliable".to_owned()),
        (None, Some(Absent::NotMeasured)) => Some("not measured".to_owned()),
        (None, Some(Absent::NotPlanned | Absent::OneNode) | None) => None,
    }
}

fn joined(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

fn idle(report: &Report, summary: &Summary) -> Option<String> {
    let local = value(&summary.idle_latency_local_ns, "ns")?;
    let full_random = report.results.iter().filter(|m| {
        let own_node = m.at.cpu_node.is_some() && m.at.cpu_node == m.at.memory_node();
        m.experiment == Experiment::IdleLatency && m.at.order == Some(ChaseOrder::FullRandom) && own_node && m.is_reliable()
    });
    // Of several nodes the table says it.
    let full_random: Vec<f64> = full_random.filter_map(|m| value_of(&m.estimate)).collect();
    let full_random = full_random.first().filter(|_| full_random.len() == 1);
    let remote = value(&summary.idle_latency_remote_ns, "ns").map(|remote| format!("remote {remote}"));
    joined([Some(local), remote, full_random.map(|ns| format!("{} ns random over the whole buffer", number(*ns)))])
}

fn bandwidth(report: &Report, summary: &Summary) -> Option<String> {
    let read = value(&summary.peak_read_gbs, "GB/s").map(|read| match summary.peak_read_gbs.value {
        Some(_) => format!("{read} {}", Mix::AllReads),
        None => format!("{} {read}", Mix::AllReads),
    });
    let any = summary.peak_any_mix.filter(|mix| *mix != Mix::AllReads);
    let any = any.and_then(|mix| Some(format!("{} {mix}", value(&summary.peak_any_gbs, "GB/s")?)));
    // Of the number that is shown, and of no other.
    let shown = |m: &&Measurement| {
        let reads = Section::for_measurement(m) == Section::Bandwidth && m.at.mix == Some(Mix::AllReads);
        reads && m.is_reliable() && value_of(&m.estimate).is_some_and(|v| summary.peak_read_gbs.value == Some(v))
    };
    let share = report.results.iter().filter(shown).find_map(share_of_limit);
    joined([read, share.map(|share| format!("{} of the limit", percent(share))), any])
}

/// Of the curve of loads alone, or the first one.
fn loaded(report: &Report) -> Option<String> {
    let curve = report.curves.iter().find(|c| c.at.mix == Some(Mix::AllReads)).or_else(|| report.curves.first())?;
    let CurveSummary { saturated_ns, peak_gbs, knee, .. } = curve;
    if saturated_ns.is_some() && !full_load_is_reliable(report, curve) {
        return Some("not reliable".to_owned());
    }
    let full = saturated_ns.zip(*peak_gbs).map(|(ns, gbs)| format!("{} ns at full load, up to {} GB/s", number(ns), number(gbs)));
    let knee = knee.filter(|k| is_point_reliable(report, curve, k.delay_cycles));
    // The memory of nodes needs no name; which files, and in which order they are read, is not to be guessed.
    let place = curve.at.memory_dir.as_ref().map(|_| where_and_how_at(report, &curve.at));
    joined([full, knee.map(|k| format!("knee at {} GB/s", number(k.bandwidth_gbs))), place])
}

fn transfers(report: &Report, summary: &Summary) -> Option<String> {
    let pairs: BTreeSet<_> = report.results.iter().filter_map(|m| Some((m.at.holder_cpu?, m.at.cpu))).collect();
    let several = pairs.len() > 1 || !report.matrices.is_empty();
    // A median over many pairs has the interval of none of them.
    let state = |of: &SummaryValue, name: &str| {
        let text = value(of, "ns")?;
        if of.value.is_none() {
            return Some(format!("{name} {text}"));
        }
        Some(format!("{} {name}", if several { text.replace('(', "(pairs ") } else { text }))
    };
    joined([state(&summary.transfer_hit_ns, "unmodified (HIT)"), state(&summary.transfer_hitm_ns, "modified (HITM)")])
}

/// How many numbers are good, and what most others have in common.
fn trust(summary: &Summary) -> String {
    let t = &summary.trust;
    let all: u64 = [t.good, t.degraded, t.unreliable, t.missing].into_iter().map(u64::from).sum();
    let word = match t.level {
        QualityLevel::Good => "good",
        QualityLevel::Degraded => "degraded",
        QualityLevel::Unreliable => "not reliable",
        QualityLevel::None => "nothing was measured",
    };
    let parts = [(t.degraded, "degraded"), (t.unreliable, "not reliable (~)"), (t.missing, "missing (—)")];
    let rest: String = parts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(", {n} {what}")).collect();
    format!("{word}: {} of {all} good{rest}; ± is the 95 % interval", t.good)
}
