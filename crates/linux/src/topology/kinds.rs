//! The kinds of cores, on machines that have several.

use std::collections::BTreeMap;

use memgauge_core::topology::{Cache, Cpu};
use memgauge_core::units::IdSet;

use super::identity::{CpuInfo, arm_part};
use crate::tree::Tree;

/// The PMU devices that name the kinds of cores on Intel's hybrid machines, and memgauge's names for them.
const PMUS: [(&str, &str); 3] = [("cpu_core", "performance"), ("cpu_atom", "efficiency"), ("cpu_lowpower", "low-power")];

/// Names the kind of each core when there are several kinds.
pub(crate) fn assign(tree: Tree<'_>, cpus: &mut [Cpu], caches: &[Cache], info: &CpuInfo) {
    let kinds = by_pmu(tree).or_else(|| by_part(cpus, info)).or_else(|| by_l1(cpus, caches, info)).or_else(|| by_capacity(cpus, info));
    let Some(kinds) = kinds else { return };
    for cpu in cpus {
        cpu.kind = kinds.get(&cpu.id).cloned();
    }
}

type Kinds = BTreeMap<u32, String>;

fn by_pmu(tree: Tree<'_>) -> Option<Kinds> {
    let pmu_cpus = |pmu: &str| {
        let places = [format!("sys/devices/{pmu}/cpus"), format!("sys/bus/event_source/devices/{pmu}/cpus")];
        places.iter().find_map(|file| tree.ids(file)).unwrap_or_default()
    };
    let sets: Vec<(IdSet, &str)> = PMUS.iter().map(|(pmu, kind)| (pmu_cpus(pmu), *kind)).filter(|(ids, _)| !ids.is_empty()).collect();
    (sets.len() > 1).then(|| sets.iter().flat_map(|(ids, kind)| ids.iter().map(|id| (id, (*kind).to_owned()))).collect())
}

/// On Arm, each core design has its part number. RISC-V kernels name the design of each hart.
fn by_part(cpus: &[Cpu], info: &CpuInfo) -> Option<Kinds> {
    let name = |id: u32| {
        let field = |key: &str| info.field(id, key);
        match (field("CPU implementer"), field("CPU part")) {
            (Some(implementer), Some(part)) => Some(match arm_part(implementer, part) {
                Some(name) => name.to_ascii_lowercase(),
                None => format!("part-{part}"),
            }),
            _ => field("uarch").or_else(|| field("marchid")).map(str::to_owned),
        }
    };
    several(cpus.iter().filter_map(|c| Some((c.id, name(c.id)?))).collect())
}

/// Intel without the PMUs (recordings, some virtual machines). The core designs of a hybrid differ in the size of their L1 data cache, and the
/// frequencies show which design is which. When they do not, the size is the name.
fn by_l1(cpus: &[Cpu], caches: &[Cache], info: &CpuInfo) -> Option<Kinds> {
    if info.first("vendor_id") != Some("GenuineIntel") {
        return None;
    }
    let l1: BTreeMap<u32, u64> = caches.iter().filter(|c| c.level == 1).flat_map(|c| c.cpus.iter().map(move |id| (id, c.size.0))).collect();
    let mut mhz: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for cpu in cpus {
        if let Some(size) = l1.get(&cpu.id) {
            mhz.entry(*size).or_default().extend(cpu.max_mhz);
        }
    }
    let fast = match Vec::from_iter(mhz).as_slice() {
        [(_, a), (size, b)] if a.iter().max() < b.iter().min() && !a.is_empty() => Some(*size),
        [(size, a), (_, b)] if b.iter().max() < a.iter().min() && !b.is_empty() => Some(*size),
        _ => None,
    };
    let name = |size: u64| match fast {
        Some(fast) => (if size == fast { "performance" } else { "efficiency" }).to_owned(),
        None => format!("l1d-{}k", size / 1024),
    };
    several(cpus.iter().filter_map(|c| Some((c.id, name(*l1.get(&c.id)?)))).collect())
}

/// Capacities that differ, when nothing else names the design. They are not used on x86, where favoured cores of one design differ in capacity,
/// nor when part numbers show that all cores are the same.
fn by_capacity(cpus: &[Cpu], info: &CpuInfo) -> Option<Kinds> {
    if info.first("vendor_id").is_some() || info.first("CPU part").is_some() {
        return None;
    }
    several(cpus.iter().filter_map(|c| Some((c.id, format!("capacity-{}", c.capacity?)))).collect())
}

/// The kinds, when there is more than one.
fn several(kinds: Kinds) -> Option<Kinds> {
    let first = kinds.values().next()?;
    kinds.values().any(|kind| kind != first).then_some(kinds)
}
