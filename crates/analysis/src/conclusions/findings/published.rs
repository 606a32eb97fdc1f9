//! Compares a machine with published values of its CPU's generation: plausible or not, and no verdict rests on them alone.

use memgauge_model::experiment::{Metric, Unit};
use memgauge_model::result::{Compared, ComparedWith, Finding, FindingCode, HealthStatus, Measurement, PublishedSpan, Report};

use crate::conclusions::findings::compare::is_judged;
use crate::conclusions::findings::suspicion::format_value;

/// So many times worse than each published value, a number is not plausible: few values are published of a generation, and those of its
/// virtual machines differ by up to 1.6 times.
const PLAUSIBLE: f64 = 1.25;

/// By what share a number is worse than each published value; negative within their span and beyond its better end.
fn worse_by(span: &PublishedSpan) -> f64 {
    match span.unit {
        Unit::Nanoseconds => span.measured / span.high - 1.0,
        _ => 1.0 - span.measured / span.low,
    }
}

fn is_plausible(span: &PublishedSpan) -> bool {
    match span.unit {
        Unit::Nanoseconds => span.measured <= span.high * PLAUSIBLE,
        _ => span.measured >= span.low / PLAUSIBLE,
    }
}

/// How many numbers there are published values for.
pub(super) fn compared(report: &Report, results: &[&Measurement]) -> Option<Compared> {
    let numbers = report.references.len() as u32;
    let measured = results.iter().filter(|m| is_judged(m)).count() as u32;
    (numbers > 0).then(|| Compared {
        numbers,
        absent: measured.saturating_sub(numbers),
        worst: report.references.iter().map(worse_by).max_by(f64::total_cmp),
        ..Compared::new(ComparedWith::Published)
    })
}

/// `plausible for Zen 5 in virtual machines`; `None` if no value says so, or one says the contrary.
pub(super) fn plausible(report: &Report) -> Option<String> {
    let first = report.references.first().filter(|_| report.references.iter().all(is_plausible))?;
    let virtual_machines = if first.virtual_machines == Some(true) { " in virtual machines" } else { "" };
    Some(format!("plausible for {}{virtual_machines}", first.microarch))
}

/// Numbers that are far worse than what is published, with a severity that says whether anything else judges the machine.
pub(super) fn unlike(report: &Report, severity: HealthStatus) -> Vec<Finding> {
    let far = report.references.iter().filter(|span| !is_plausible(span));
    far.map(|span| {
        let (metric, name) = match span.unit {
            Unit::Nanoseconds => (Metric::Latency, "latency"),
            _ => (Metric::Bandwidth, "bandwidth"),
        };
        let value = |value| format_value(metric, value);
        let message = format!(
            "{name}: {}, and published values of {} are {} to {}",
            value(span.measured),
            span.microarch,
            value(span.low),
            value(span.high)
        );
        let advice =
            "look at power limits, the number of memory modules and their speed; other memory and other NUMA modes explain it, too";
        Finding::new(FindingCode::UnlikePublished, severity, message, advice)
    })
    .collect()
}
