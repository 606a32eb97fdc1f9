//! Causes in the system: pages, limits, NUMA balancing, other programs, the hypervisor, updates.

use std::collections::BTreeMap;

use memgauge_model::result::{CauseCode, FindingCode, Measurement, PageKind, QualityReason, Report};
use memgauge_model::wording::spelled;
use memgauge_model::words;
use memgauge_model::words::{Knob, Verb};

use super::case::{Case, EXCLUDED, FITS, ONLY_SOME, SHOWN, TYPICAL, UNLIKELY};
use super::symptoms::{MANY, Symptoms, percent};
use memgauge_model::result::DifferentField;

/// An update costs less than this.
const MORE_THAN_UPDATES: f64 = 0.10;
/// A thread that had no CPU for a larger share of its time was kept from it.
const KEPT_WAITING: f64 = 0.05;

/// The kind of pages that most numbers were measured with.
fn pages_of(report: &Report) -> Option<PageKind> {
    let mut kinds: BTreeMap<PageKind, usize> = BTreeMap::new();
    report.results.iter().filter_map(|m| m.evidence.pages.obtained).for_each(|kind| *kinds.entry(kind).or_default() += 1);
    kinds.into_iter().max_by_key(|(_, count)| *count).map(|(kind, _)| kind)
}

/// Small pages instead of huge ones.
pub(super) fn pages(s: &Symptoms<'_>) -> Option<Case> {
    let now = pages_of(s.report).filter(|kind| *kind == PageKind::Base)?;
    let check = words![Knob::Pages, " thp or ", Knob::Pages, " 2M measures with huge pages; ", Verb::Info, " says why there are none"];
    let mut case = Case::new(CauseCode::SmallPages, "memory has small pages", check);
    match s.before.and_then(pages_of) {
        Some(then) if then == now => case.add(EXCLUDED, format!("it had them {}, too", s.when)),
        Some(then) => case.add(SHOWN, format!("base pages now, {} {}", then.in_words(), s.when)),
        None => {}
    }
    let thp = s.report.environment.thp.as_deref();
    if let Some((before, after)) = s.property(DifferentField::TransparentHugePages).filter(|(before, after)| before != after) {
        case.add(TYPICAL, format!("transparent huge pages {before} → {after}"));
    } else {
        case.add_if(thp == Some("never"), FITS, "transparent huge pages are off");
    }
    case.add_if(s.is_of_some_parts(), UNLIKELY, ONLY_SOME);
    Some(case)
}

/// Fewer CPUs, or less of their time, than the machine has.
pub(super) fn cpu_limits(s: &Symptoms<'_>) -> Option<Case> {
    let check = words![
        Verb::Info,
        " shows the CPUs that may be used; look at cpu.max and cpuset.cpus of the control group, at taskset, and at CPUs that are offline"
    ];
    let mut case = Case::new(CauseCode::CpuLimits, "not all CPUs, or not all of their time, may be used", check);
    let quota = |report: &Report| report.machine.allowed.cpu_quota.filter(|quota| *quota < report.machine.allowed.cpus.len() as f64);
    if let Some(now) = quota(s.report) {
        match s.before.map(quota) {
            Some(Some(then)) if then <= now => case.add(UNLIKELY, format!("the quota was {then} CPUs {}, too", s.when)),
            Some(Some(then)) => case.add(SHOWN, format!("the control group has a quota of {now} CPUs, and had {then} {}", s.when)),
            Some(None) => case.add(SHOWN, format!("the control group has a quota of {now} CPUs, and had none {}", s.when)),
            None => case.add(TYPICAL + FITS, format!("the control group has a quota of {now} CPUs")),
        }
    }
    for (field, name) in [(DifferentField::AllowedCpus, "allowed"), (DifferentField::Cpus, "online")] {
        let fewer = s.property(field).and_then(|(before, after)| Some((before.parse::<u32>().ok()?, after.parse::<u32>().ok()?)));
        if let Some((before, after)) = fewer.filter(|(before, after)| after < before) {
            case.add(SHOWN, format!("{after} CPUs are {name}, {before} {}", s.when));
        }
    }
    let waited =
        |m: &Measurement| [m.evidence.noise.waited, m.evidence.noise.off_cpu].into_iter().flatten().any(|share| share > KEPT_WAITING);
    case.add_if(s.share(waited) >= MANY, FITS, "threads waited for their CPUs");
    case.add_if(s.is_of_some_parts(), UNLIKELY, ONLY_SOME);
    Some(case)
}

pub(super) fn numa_balancing(s: &Symptoms<'_>) -> Option<Case> {
    if s.report.environment.numa_balancing != Some(true) {
        return None;
    }
    let check = "switch it off (sysctl kernel.numa_balancing=0) and check again";
    let mut case = Case::new(CauseCode::NumaBalancing, "the kernel's NUMA balancing moves pages", check);
    let moved = |m: &Measurement| m.quality.reasons.contains(&QualityReason::PagesMigrated);
    let share = s.share(moved);
    case.add_if(share >= MANY, SHOWN, format!("pages moved between nodes while {} of the numbers were measured", percent(share)));
    case.add_if(share < MANY, UNLIKELY, "hardly any page moved between nodes during the check");
    if let Some((before, after)) = s.property(DifferentField::NumaBalancing).filter(|(before, after)| before != after) {
        case.add(TYPICAL, format!("it was {before} {}, and is {after}", s.when));
    }
    Some(case)
}

pub(super) fn other_programs(s: &Symptoms<'_>) -> Option<Case> {
    let reasons = [QualityReason::BusyMachine, QualityReason::BusyNeighbours];
    let beside = |m: &Measurement| m.quality.reasons.iter().any(|reason| reasons.contains(reason));
    let share = s.share(beside);
    if share < MANY {
        return None;
    }
    let check = words!["stop them, or wait until they end: ", Knob::WaitQuiet, " 60s"];
    let mut case = Case::new(CauseCode::OtherPrograms, "other programs use the machine", check);
    case.add(
        SHOWN,
        format!("they used CPUs that share a core, a cache or memory with the measured ones in {} of the numbers", percent(share)),
    );
    if let Some(first) = s.report.environment.disturbing_processes.first() {
        case.add(FITS, format!("{} used {:.0} % of a CPU", first.name, first.cpu_percent));
    }
    Some(case)
}

/// The hypervisor, and other guests of its host.
pub(super) fn virtualisation(s: &Symptoms<'_>) -> Option<Case> {
    let name = s.report.machine.identity.hypervisor.as_ref()?;
    let check = "look at the host's load and at how it places this guest (pinned CPUs, memory of one node, huge pages), or measure there";
    let mut case = Case::new(CauseCode::Virtualisation, format!("the hypervisor ({name}) or other guests of its host"), check);
    let metal = s.before.is_some_and(|before| before.machine.identity.is_virtual() == Some(false));
    case.add_if(metal, SHOWN, format!("it was measured without a hypervisor {}", s.when));
    let stolen = |m: &Measurement| m.quality.reasons.contains(&QualityReason::Steal);
    let share = s.share(stolen);
    case.add_if(share >= MANY, SHOWN, format!("it gave CPU time to other guests (steal) in {} of the numbers", percent(share)));
    case.add_if(s.found(FindingCode::MemoryStalled), TYPICAL, "memory did not answer for some of the time");
    case.add_if(s.is_of_some_parts(), UNLIKELY, ONLY_SOME);
    case.add_if(!metal && share < MANY, FITS, "other guests of the host share its memory, which a guest cannot see");
    Some(case)
}

/// A kernel, microcode or firmware that was not there before: it may bring mitigations of CPU vulnerabilities or other settings.
pub(super) fn changed(s: &Symptoms<'_>) -> Option<Case> {
    let fields = [DifferentField::Kernel, DifferentField::Microcode, DifferentField::Firmware];
    let changes: Vec<String> = fields
        .iter()
        .filter_map(|field| {
            let (before, after) = s.property(*field).filter(|(before, after)| before != after)?;
            Some(format!("{} {before} → {after}", spelled(field)))
        })
        .collect();
    if changes.is_empty() {
        return None;
    }
    let check = "boot what was there before and check again; compare the firmware's settings, and /sys/devices/system/cpu/vulnerabilities";
    let what = "an update: other firmware settings, or mitigations of CPU vulnerabilities";
    let mut case = Case::new(CauseCode::KernelOrFirmwareChanged, what, check);
    case.add(TYPICAL, format!("since then: {}", changes.join(", ")));
    case.add_if(s.is_of_all_nodes(), FITS, "all nodes are worse alike");
    case.add_if(s.is_of_some_parts(), UNLIKELY, ONLY_SOME);
    let worst = [s.bandwidth_by(), s.latency_by()].into_iter().flatten().max_by(f64::total_cmp);
    let large = worst.filter(|by| *by >= MORE_THAN_UPDATES);
    case.add_if(large.is_some(), UNLIKELY, format!("a loss of {} is more than updates cost", percent(large.unwrap_or_default())));
    Some(case)
}
