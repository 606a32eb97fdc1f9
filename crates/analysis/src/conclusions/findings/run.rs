//! Findings about the run: numbers that are missing or wrong, and what disturbed the others.

use memgauge_model::estimate::NotMeasured;
use memgauge_model::result::{Finding, FindingCode, HealthStatus, Measurement, QualityReason, Report};
use memgauge_model::wording::reasons;
use memgauge_model::words;
use memgauge_model::words::{Knob, Way};

use crate::conclusions::findings::machine;
use crate::conclusions::findings::suspicion::name;
use crate::conclusions::scan;

/// All findings that are not about single numbers.
pub(super) fn general(report: &Report, results: &[&Measurement]) -> Vec<Finding> {
    let mut found: Vec<Finding> = machine::memory_errors(report).into_iter().collect();
    let wrong = report.measurements().filter(|m| scan::corrupted(m)).count();
    if wrong > 0 {
        let message = format!("{wrong} measurements met memory that has errors, or read data that differs from what was written");
        let advice = "take the machine out of service and test its memory";
        found.push(Finding::new(FindingCode::MemoryCorrupted, HealthStatus::Incident, message, advice));
    }
    let left_out = |m: &&&Measurement| m.estimate.not_measured == Some(NotMeasured::OutOfTime);
    let (late, missing): (Vec<&&Measurement>, Vec<&&Measurement>) =
        results.iter().filter(|m| m.estimate.value.is_none()).partition(left_out);
    if let Some(first) = late.first() {
        let severity = if late.len() == results.len() { HealthStatus::CouldNotMeasure } else { HealthStatus::Unknown };
        let (left, all, first) = (late.len(), results.len(), name(first));
        let message = match left {
            1 => format!("the time was over before 1 of {all} numbers was measured: {first}"),
            _ => format!("the time was over before {left} of {all} numbers were measured; the first of them: {first}"),
        };
        let more = Way::Say(words!["give it more time (", Knob::Within, ")"]);
        let advice = more.or("name fewer CPUs or nodes");
        found.push(Finding::new(FindingCode::LeftOut, severity, message, advice));
    }
    if let Some(first) = missing.first() {
        let none = missing.len() == results.len();
        let severity = if none { HealthStatus::CouldNotMeasure } else { HealthStatus::Warning };
        let why = first.estimate.not_measured.as_ref().map_or_else(|| "no reason is stated".into(), reasons::not_measured);
        let message = format!("{} of {} numbers could not be measured; {}: {why}", missing.len(), results.len(), name(first));
        found.push(Finding::bare(FindingCode::NotMeasured, severity, message));
    } else if results.is_empty() {
        found.push(Finding::bare(FindingCode::NotMeasured, HealthStatus::CouldNotMeasure, "nothing was measured"));
    }
    found.extend(busy(results));
    found.extend(stalled(report, results));
    found.extend(machine::slow_cores(report));
    found.extend(machine::prefetchers_off(results, report.machine.identity.system));
    found.extend(machine::small_nodes(report));
    found.extend(machine::uneven(report));
    found
}

/// Memory that left threads without an answer in at least half of the numbers, while nothing else disturbed them. Time that a
/// hypervisor takes from a guest without reporting it looks the same.
fn stalled(report: &Report, results: &[&Measurement]) -> Option<Finding> {
    use QualityReason as R;
    let alone = |m: &&&Measurement| !m.quality.reasons.iter().any(|r| matches!(r, R::Steal | R::BusyMachine | R::BusyNeighbours));
    let measured: Vec<&&Measurement> = results.iter().filter(|m| m.estimate.value.is_some()).filter(alone).collect();
    let stalled: Vec<f64> =
        measured.iter().filter(|m| m.quality.reasons.contains(&R::Stalled)).filter_map(|m| m.evidence.noise.stalled).collect();
    let most = stalled.iter().copied().max_by(f64::total_cmp)?;
    let message = format!(
        "memory did not answer for up to {:.0} % of the time in {} of {} numbers, while the threads were on their CPUs",
        most * 100.0,
        stalled.len(),
        measured.len()
    );
    let log = report.machine.identity.system.words().hardware_log;
    let (severity, advice) = if report.machine.identity.may_be_virtual() {
        (HealthStatus::Unknown, "the host may take CPUs away without saying so: look at its load, or measure there".to_owned())
    } else {
        (HealthStatus::Warning, format!("look at {log} for throttled memory, links that retry and corrected errors"))
    };
    (2 * stalled.len() >= measured.len()).then(|| Finding::new(FindingCode::MemoryStalled, severity, message, advice))
}

/// Other programs on the machine: if they use much of it, the numbers do not describe the memory.
fn busy(results: &[&Measurement]) -> Option<Finding> {
    use QualityReason as R;
    let shared = |m: &&&Measurement| {
        // Disturbed bursts that still count show in these reasons. A changing frequency also disturbs bursts, but is not caused by other
        // programs.
        m.quality.reasons.iter().any(|r| matches!(r, R::BusyMachine | R::Steal | R::InvoluntarySwitches))
    };
    let measured: Vec<_> = results.iter().filter(|m| m.estimate.value.is_some()).collect();
    let busy = measured.iter().filter(|m| shared(m)).count();
    if busy == 0 {
        return None;
    }
    let mostly_busy = 2 * busy > measured.len();
    let severity = if mostly_busy { HealthStatus::CouldNotMeasure } else { HealthStatus::Warning };
    let message = format!("other programs used the CPUs while {busy} of {} numbers were measured", measured.len());
    Some(Finding::new(FindingCode::BusyMachine, severity, message, "stop other programs, or let them finish, and check again"))
}
