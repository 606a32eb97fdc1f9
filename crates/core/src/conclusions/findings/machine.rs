//! Findings that are not about single numbers: errors, cells without a value, other work, uneven memory.

use crate::conclusions::findings::suspicion::name;
use crate::estimate::NotMeasured;
use crate::result::{Finding, HealthStatus, Measurement, QualityReason, Report};
use crate::wording::reasons;

/// Node sizes of siblings differ by less: firmware takes a part of the first node.
pub(super) const MEMORY_DIFFERENCE: f64 = 0.10;

/// What is not about single numbers.
pub(super) fn general(report: &Report, results: &[&Measurement]) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(errors) = report.measurements().filter_map(|m| m.evidence.noise.memory_errors).max().filter(|n| *n > 0) {
        found.push(Finding::new(
            "memory-errors",
            HealthStatus::Incident,
            format!("the kernel reported memory errors while it was measured ({errors})"),
            "look at /sys/devices/system/edac and the kernel's log for the DIMM",
        ));
    }
    let wrong = report.measurements().filter(|m| crate::conclusions::scan::corrupted(m)).count();
    if wrong > 0 {
        found.push(Finding::new(
            crate::conclusions::scan::CORRUPTED,
            HealthStatus::Incident,
            format!("{wrong} measurements read other data than was written"),
            "take the machine out of service and test its memory",
        ));
    }
    let left_out = |m: &&&Measurement| m.estimate.not_measured == Some(NotMeasured::OutOfTime);
    let (late, missing): (Vec<&&Measurement>, Vec<&&Measurement>) =
        results.iter().filter(|m| m.estimate.value.is_none()).partition(left_out);
    if let Some(first) = late.first() {
        let severity = if late.len() == results.len() { HealthStatus::CouldNotMeasure } else { HealthStatus::Unknown };
        let message =
            format!("time was over before {} of {} numbers were measured, the first of them: {}", late.len(), results.len(), name(first));
        found.push(Finding::new("left-out", severity, message, "give it more time (--within), or name fewer CPUs or nodes"));
    }
    if let Some(first) = missing.first() {
        let none = missing.len() == results.len();
        let severity = if none { HealthStatus::CouldNotMeasure } else { HealthStatus::Warning };
        let why = first.estimate.not_measured.as_ref().map_or_else(|| "no reason is stated".into(), reasons::not_measured);
        let message = format!("{} of {} numbers could not be measured; {}: {why}", missing.len(), results.len(), name(first));
        found.push(Finding::new("not-measured", severity, message, ""));
    } else if results.is_empty() {
        found.push(Finding::new("not-measured", HealthStatus::CouldNotMeasure, "nothing was measured", ""));
    }
    found.extend(busy(results));
    found.extend(small_nodes(report));
    found.extend(uneven(report));
    found
}

/// Devices that are not spread evenly over sockets and channels. A virtual machine's are made up.
pub(super) fn uneven(report: &Report) -> Vec<Finding> {
    if report.machine.identity.hypervisor.is_some() {
        return Vec::new();
    }
    let advice =
        "populate channels and sockets alike, with devices of one size and speed; if it was so before, a device is missing or disabled";
    let of = |what| Finding::new("unequal-population", HealthStatus::Warning, what, advice);
    report.machine.identity.installed.uneven().into_iter().map(of).collect()
}

/// Other work on the machine: with much of it the numbers are its, not the memory's.
pub(super) fn busy(results: &[&Measurement]) -> Option<Finding> {
    use QualityReason as R;
    let taken = |m: &&&Measurement| {
        // Bursts that were disturbed and still count show in the other reasons; a clock that changes disturbs them as well, and is nobody's work.
        m.quality.reasons.iter().any(|r| matches!(r, R::BusyMachine | R::Steal | R::InvoluntarySwitches))
    };
    let measured: Vec<_> = results.iter().filter(|m| m.estimate.value.is_some()).collect();
    let busy = measured.iter().filter(|m| taken(m)).count();
    if busy == 0 {
        return None;
    }
    let most = 2 * busy > measured.len();
    let severity = if most { HealthStatus::CouldNotMeasure } else { HealthStatus::Warning };
    let message = format!("others used the CPUs while {busy} of {} numbers were measured", measured.len());
    Some(Finding::new("busy-machine", severity, message, "stop what else runs, or let it finish, and check again"))
}

/// Nodes with CPUs that have less memory than their siblings: a device is missing, or was taken out of service at boot.
pub(super) fn small_nodes(report: &Report) -> Vec<Finding> {
    let nodes: Vec<_> = report.machine.topology.nodes.iter().filter(|n| !n.cpus.is_empty() && n.memory.0 > 0).collect();
    let most = nodes.iter().map(|n| n.memory.0).max().unwrap_or(0);
    let small = nodes.iter().filter(|n| (n.memory.0 as f64) < most as f64 * (1.0 - MEMORY_DIFFERENCE));
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    small
        .map(|n| {
            let message = format!("node {} has {:.1} GiB, and others have up to {:.1} GiB", n.id, gib(n.memory.0), gib(most));
            Finding::new("node-memory-differs", HealthStatus::Warning, message, "look for a missing or disabled memory device")
        })
        .collect()
}
