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
    let groups = group(cpus, |c| l1.get(&c.id).copied());
    let mhz: Vec<(u64, Option<u32>, Option<u32>)> = groups
        .iter()
        .map(|(size, members)| {
            let mhz = || members.iter().filter_map(|c| c.max_mhz);
            (*size, mhz().min(), mhz().max())
        })
        .collect();
    let fast_and_slow = match mhz.as_slice() {
        [(a, Some(a_min), Some(a_max)), (b, Some(b_min), Some(b_max))] if b_min > a_max || a_min > b_max => {
            Some(if b_min > a_max { (*b, *a) } else { (*a, *b) })
        }
        _ => None,
    };
    let name = |size: u64| match fast_and_slow {
        Some((fast, _)) => (if size == fast { "performance" } else { "efficiency" }).to_owned(),
        None => format!("l1d-{}k", size / 1024),
    };
    several(cpus.iter().filter_map(|c| Some((c.id, name(*l1.get(&c.id)?)))).collect())
}

/// Capacities that differ, when nothing else names the design. They are not used on x86, where favoured cores of one design differ in capacity,
/// nor when part numbers show that all cores are the same.
fn by_capacity(cpus: &[Cpu], info: &CpuInfo) -> Option<Kinds> {
    let has_names = info.first("vendor_id").is_some() || info.first("CPU part").is_some();
    if has_names {
        return None;
    }
    several(cpus.iter().filter_map(|c| Some((c.id, format!("capacity-{}", c.capacity?)))).collect())
}

fn group<K: Ord>(cpus: &[Cpu], key: impl Fn(&Cpu) -> Option<K>) -> BTreeMap<K, Vec<&Cpu>> {
    let mut groups: BTreeMap<K, Vec<&Cpu>> = BTreeMap::new();
    for cpu in cpus {
        if let Some(key) = key(cpu) {
            groups.entry(key).or_default().push(cpu);
        }
    }
    groups
}

/// The kinds, when there is more than one.
fn several(kinds: Kinds) -> Option<Kinds> {
    let first = kinds.values().next()?;
    kinds.values().any(|kind| kind != first).then_some(kinds)
}
