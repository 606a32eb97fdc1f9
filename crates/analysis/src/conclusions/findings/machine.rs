//! Findings about the machine that no single number shows: memory errors, slow cores, prefetchers that are off, uneven memory.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::{ChaseOrder, Method, PrefetchRequest};
use memgauge_model::result::{Finding, FindingCode, HealthStatus, Measurement, Report};
use memgauge_model::topology::OperatingSystem;
use memgauge_model::units::IdSet;
use memgauge_model::words::Verb;
use memgauge_model::{stats, wording, words};

/// The sizes of sibling nodes normally differ by less than this: firmware reserves a part of the first node.
const MEMORY_DIFFERENCE: f64 = 0.10;

/// Errors that memory controllers counted at any time of the check: between cells and while buffers are made, memory is in use as well.
pub(super) fn memory_errors(report: &Report) -> Option<Finding> {
    let noise = || report.measurements().map(|m| &m.evidence.noise);
    let (errors, dimms): (u64, BTreeSet<&str>) = match &report.environment.memory_errors {
        Some(run) => (run.corrected + run.uncorrected, run.dimms.iter().map(|d| d.dimm.as_str()).collect()),
        // A report of an earlier version has those of cells only; results of one cell share them.
        None => {
            let dimms = noise().flat_map(|n| &n.memory_errors_by_dimm).map(|d| d.dimm.as_str()).collect();
            (noise().filter_map(|n| n.memory_errors).max()?, dimms)
        }
    };
    let of = if dimms.is_empty() { String::new() } else { format!(" of {}", dimms.into_iter().collect::<Vec<_>>().join(", ")) };
    let message = format!("the kernel reported memory errors during the check ({errors}{of})");
    let advice = report.machine.identity.system.words().find_bad_dimm;
    (errors > 0).then(|| Finding::new(FindingCode::MemoryErrors, HealthStatus::Incident, message, advice))
}

/// The median frequency of all cores in GHz, while all of them worked.
pub(super) fn all_cores_ghz(report: &Report) -> Option<f64> {
    stats::median(&report.environment.all_cores_ghz.values().copied().collect::<Vec<_>>())
}

/// Cores of one kind that are slower than most by this share while all work: power and heat are shared, and good cores then
/// differ by less.
const SLOW_CORE: f64 = 0.08;

/// Cores that run at a lower frequency than the others of their kind. On a virtual machine another guest on the other thread of a core looks
/// the same.
pub(super) fn slow_cores(report: &Report) -> Vec<Finding> {
    if report.machine.identity.may_be_virtual() {
        return Vec::new();
    }
    let mut kinds: BTreeMap<Option<&str>, Vec<(u32, f64)>> = BTreeMap::new();
    for (&cpu, &ghz) in &report.environment.all_cores_ghz {
        kinds.entry(report.machine.topology.cpu(cpu).and_then(|c| c.kind.as_deref())).or_default().push((cpu, ghz));
    }
    let slow = |cores: Vec<(u32, f64)>| {
        let usual = stats::median(&cores.iter().map(|c| c.1).collect::<Vec<_>>())?;
        let slow: IdSet = cores.iter().filter(|c| c.1 < usual * (1.0 - SLOW_CORE)).map(|c| c.0).collect();
        let lowest = cores.iter().map(|c| c.1).min_by(f64::total_cmp)?;
        let message =
            format!("cores of CPUs {slow} run at {lowest:.2} GHz or a little more while all cores work; most run at {usual:.2} GHz");
        let log = report.machine.identity.system.words().hardware_log;
        let advice = format!("look at {log} for throttling, and at cooling, power limits and frequency settings of these cores");
        (!slow.is_empty()).then(|| Finding::new(FindingCode::SlowCores, HealthStatus::Warning, message, advice))
    };
    kinds.into_values().filter_map(slow).collect()
}

/// With prefetchers a chase in ascending order is several times as fast as a random one; below this ratio nothing is fetched ahead.
pub(super) const PREFETCHED: f64 = 1.3;

/// The likely reasons why prefetchers are off.
const SWITCHED_OFF: &str = "hardware prefetchers may be switched off in the firmware's settings or by a tool";

/// Chases in ascending order that were not clearly faster than random ones.
pub(super) fn prefetchers_off(results: &[&Measurement], system: OperatingSystem) -> Option<Finding> {
    let chased = |m: &&&Measurement| m.method() == Method::IdleLatency && m.at.order == Some(ChaseOrder::WindowLocal);
    let ratios: Vec<(u32, f64)> = results
        .iter()
        .filter(chased)
        .filter(|m| m.is_reliable())
        .filter(|m| m.at.prefetch != Some(PrefetchRequest::Off))
        .filter_map(|m| Some((m.at.cpu?, m.evidence.prefetch?.random_over_sequential)))
        .collect();
    let off: IdSet = ratios.iter().filter(|r| r.1 < PREFETCHED).map(|r| r.0).collect();
    let who = if off.len() == ratios.iter().map(|r| r.0).collect::<IdSet>().len() {
        "all CPUs that were tried".into()
    } else {
        format!("CPUs {off}")
    };
    let message = format!("memory is not fetched ahead on {who}: a chase in ascending order is as slow as a random one");
    let advice = match system.words().switches_prefetchers {
        true => words![SWITCHED_OFF, " (", Verb::Prefetch, ", as root)"],
        false => SWITCHED_OFF.into(),
    };
    (!off.is_empty()).then(|| Finding::new(FindingCode::PrefetchersOff, HealthStatus::Warning, message, advice))
}

/// Devices that are not spread evenly over sockets and channels. The devices of a virtual machine are made up.
pub(super) fn uneven(report: &Report) -> Vec<Finding> {
    if report.machine.identity.may_be_virtual() {
        return Vec::new();
    }
    let advice =
        "populate channels and sockets alike, with devices of one size and speed; if it was so before, a device is missing or disabled";
    let finding = |what| Finding::new(FindingCode::UnequalPopulation, HealthStatus::Warning, what, advice);
    report.machine.identity.installed.uneven().into_iter().map(finding).collect()
}

/// Nodes with CPUs that have less memory than their siblings: a device is missing, or was disabled at boot. Nodes of the same channels count
/// together: where they share CPUs, a boot option made them as large as they are.
pub(super) fn small_nodes(report: &Report) -> Vec<Finding> {
    let small = smaller_groups(report, MEMORY_DIFFERENCE);
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    small
        .into_iter()
        .map(|(nodes, memory, largest)| {
            let have = if nodes.len() == 1 { "has" } else { "have" };
            let message =
                format!("{} {have} {:.1} GiB, but others have up to {:.1} GiB", wording::nodes(&nodes), gib(memory), gib(largest));
            Finding::new(FindingCode::NodeMemoryDiffers, HealthStatus::Warning, message, "look for a missing or disabled memory device")
        })
        .collect()
}

/// Nodes with the same channels that have less memory than the largest such group, by more than this share: their memory, and that of the largest.
pub(super) fn smaller_groups(report: &Report, by: f64) -> Vec<(IdSet, u64, u64)> {
    let topology = &report.machine.topology;
    // A group is not compared if the size of one of its nodes is not stated.
    let memory =
        |group: &IdSet| group.iter().filter_map(|id| topology.node(id)).map(|n| n.memory.map(|memory| memory.0)).sum::<Option<u64>>();
    let mut groups: Vec<(IdSet, u64)> =
        topology.channel_groups().into_iter().filter_map(|group| Some((group.clone(), memory(&group)?))).collect();
    let largest = groups.iter().map(|(_, memory)| *memory).max().unwrap_or(0);
    groups.retain(|(_, memory)| (*memory as f64) < largest as f64 * (1.0 - by));
    groups.into_iter().map(|(nodes, memory)| (nodes, memory, largest)).collect()
}
