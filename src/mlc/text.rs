//! The text around and in mlc's tables.

use std::fmt::Write as _;

use memgauge_model::experiment::PageRequest;
use memgauge_model::plan::{Plan, Work};
use memgauge_model::printable::escape_controls;
use memgauge_model::result::{Measurement, Report};
use memgauge_model::topology::OperatingSystem;
use memgauge_model::units::Bytes;
use memgauge_model::wording;
use memgauge_os::process::has_more_privileges_than_its_user;
use memgauge_render::mlc as tables;
use serde::Serialize;

use super::sections::{Section, SectionKind, Translation};

/// The version whose command lines and text these are.
const VERSION: &str = "v3.11b";
/// The name in the banner. Some parsers insist on the original's, so it can be replaced.
const NAME: &str = "memgauge(compatible)";
pub(super) const NAME_VARIABLE: &str = "MEMGAUGE_MLC_BANNER";
pub(super) const VERSION_VARIABLE: &str = "MEMGAUGE_MLC_VERSION";
/// The original's message when it cannot switch prefetchers, with the advice or the reason for this system.
pub(super) fn prefetchers_on(system: OperatingSystem) -> String {
    let why = system.words().no_registers;
    format!("*** Unable to modify prefetchers ({why})\n*** So, enabling random access for latency measurements\n")
}

/// The first line of every run. The environment of a program with more privileges than its user does not count.
pub(super) fn banner() -> String {
    let variable = |name: &str| (!has_more_privileges_than_its_user()).then(|| std::env::var(name).ok()).flatten();
    banner_with(variable)
}

fn banner_with(variable: impl Fn(&str) -> Option<String>) -> String {
    let text = |name: &str, default: &str| variable(name).map_or_else(|| default.to_owned(), |text| escape_controls(&text));
    format!("{} Memory Latency Checker - {}\n", text(NAME_VARIABLE, NAME), text(VERSION_VARIABLE, VERSION))
}

/// The text before a section of a single mode: buffer sizes, and that prefetchers were left on.
pub(super) fn header(kind: SectionKind, translation: &Translation, plans: &[Plan]) -> String {
    let mib = |bytes: Bytes| format!("{:.3}MiB", bytes.0 as f64 / f64::from(1 << 20));
    let works = || plans.iter().flat_map(|p| &p.steps).flat_map(|s| &s.cells).map(|c| &c.work);
    let prefetchers = if translation.prefetchers_on { prefetchers_on(translation.system) } else { String::new() };
    match kind {
        SectionKind::LatencyMatrix | SectionKind::LatencyPerCpu | SectionKind::Idle => {
            let largest = works().flat_map(Work::buffers).map(|b| b.bytes).max().unwrap_or_default();
            format!("Using buffer size of {}\n{prefetchers}", mib(largest))
        }
        SectionKind::Peak | SectionKind::BandwidthMatrix | SectionKind::Loaded | SectionKind::Unloaded => {
            let blank = if kind == SectionKind::BandwidthMatrix { "" } else { "\n" };
            format!(
                "Using buffer size of {size}/thread for reads and an additional {size}/thread for writes\n{prefetchers}{blank}",
                size = mib(largest_buffer(works()))
            )
        }
        SectionKind::C2c | SectionKind::OneTransfer | SectionKind::Scan => String::new(),
    }
}

/// Bytes that a thread reads, or writes, at most. As in the original the line has this size twice, whatever the traffic is.
fn largest_buffer<'a>(works: impl Iterator<Item = &'a Work>) -> Bytes {
    let mut largest = Bytes(0);
    for work in works {
        let Some(traffic) = work.traffic() else {
            largest = largest.max(work.probe().map_or(Bytes(0), |probe| probe.buffer.bytes));
            continue;
        };
        for loader in work.loaders() {
            let mix = loader.own.as_ref().map_or(traffic.mix, |own| own.traffic.mix);
            // The streams of a mix share a buffer equally, and one of them is written.
            let bytes = loader.buffer.bytes;
            let part = if matches!(mix.lines(), (_, 0) | (0, _)) { bytes } else { Bytes(bytes.0 / 2) };
            largest = largest.max(part);
        }
    }
    largest
}

/// The tables of a section.
pub(super) fn body(section: &Section, report: &Report) -> String {
    let pooled = report.plan.as_ref().is_some_and(|p| {
        p.steps
            .iter()
            .flat_map(|s| &s.cells)
            .flat_map(|c| c.work.buffers())
            .any(|b| matches!(b.pages, PageRequest::Huge2M | PageRequest::Huge1G))
    });
    let wording = tables::Wording { large_pages: section.wording.large_pages && pooled, ..section.wording };
    let histograms: String = match section.wording.bucket_log2 {
        Some(log2) => histograms(report, log2),
        None => String::new(),
    };
    histograms
        + &match section.kind {
            SectionKind::LatencyMatrix => tables::latency_matrix(report),
            SectionKind::LatencyPerCpu => tables::latency_per_cpu(report),
            SectionKind::Idle => tables::idle_latency(report),
            SectionKind::Peak => tables::peak(report, wording),
            SectionKind::BandwidthMatrix => tables::bandwidth_matrix(report, wording),
            SectionKind::Loaded => tables::loaded(report, wording),
            SectionKind::Unloaded => tables::unloaded(report, wording, &section.delays),
            SectionKind::C2c => tables::cache_to_cache(report),
            SectionKind::OneTransfer => tables::one_transfer(report),
            SectionKind::Scan => memgauge_render::mlc_scan(report),
        }
}

/// A histogram for each latency that has one.
fn histograms(report: &Report, log2: u32) -> String {
    let Some(hz) = report.environment.clock.as_ref().map(|clock| clock.hz) else { return String::new() };
    let all = report.results.iter().filter_map(|m| m.distribution.as_ref());
    all.map(|distribution| tables::histogram(&distribution.by_cycles(log2, hz), log2)).collect()
}

/// How a number was measured, in one line.
pub(super) fn evidence(m: &Measurement) -> String {
    let e = &m.evidence;
    let mut line = format!("{}, {}", spell(m.experiment), wording::coordinates(&m.at));
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(line, ", {name} {value}");
        }
    };
    let number = |value: Option<f64>| value.map(|v| format!("{v:.2}"));
    add("median", number(m.estimate.value));
    add("from", number(m.estimate.ci95_low));
    add("to", number(m.estimate.ci95_high));
    add("n", Some(m.estimate.n.to_string()));
    add("kernel", Some(e.kernel.clone()));
    add("buffers", Some(e.buffer.to_string()));
    add("pages", e.pages.obtained.map(spell));
    add("placement", Some(spell(e.placement.status)));
    add("quality", Some(spell(m.quality.level)));
    m.quality.reasons.iter().for_each(|reason| add("reason", Some(spell(reason))));
    line
}

/// A value as JSON spells it, such as `idle-latency`.
pub(super) fn spell(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|json| Some(json.as_str()?.to_owned())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_environment_says_reaches_no_terminal_as_a_command() {
        let banner = banner_with(|name| (name == VERSION_VARIABLE).then(|| "v3\x1b]0;x\x07\u{9b}2J".to_owned()));
        assert_eq!(banner, format!("{NAME} Memory Latency Checker - v3\\u{{1b}}]0;x\\u{{7}}\\u{{9b}}2J\n"));
        assert!(banner_with(|_| None).ends_with(" - v3.11b\n"));
    }
}
