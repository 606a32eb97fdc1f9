//! The kinds of cores, on machines that have several.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use memgauge_kernels::{CoreType, core_type};
use memgauge_model::topology::{Cache, Cpu};
use memgauge_model::units::IdSet;

use super::arm;
use super::cpuinfo::CpuInfo;
use crate::cpu::pin_to;
use crate::tree::Tree;

/// The PMU devices that name the kinds of cores on Intel's hybrid machines, and memgauge's names for them.
const PMUS: [(&str, &str); 3] = [("cpu_core", PERFORMANCE), ("cpu_atom", EFFICIENCY), ("cpu_lowpower", LOW_POWER)];
const PERFORMANCE: &str = "performance";
const EFFICIENCY: &str = "efficiency";
const LOW_POWER: &str = "low-power";

/// Names the kind of each core when there are several kinds.
pub(crate) fn assign(tree: Tree<'_>, cpus: &mut [Cpu], caches: &[Cache], info: &CpuInfo) {
    let told = || by_cpuid(cpus, || tree.is_live().then(core_type).flatten(), |id| pin_to(id).is_ok());
    let kinds = by_pmu(tree)
        .or_else(told)
        .map(|kinds| apart_without_l3(kinds, caches))
        .or_else(|| by_part(cpus, info))
        .or_else(|| by_l1(cpus, caches, info).map(|kinds| apart_without_l3(kinds, caches)))
        .or_else(|| by_l3(cpus, caches, info))
        .or_else(|| by_capacity(cpus, info));
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

/// The kind of each CPU, as the CPU states it. A CPU is asked on itself, so that those that this process may not use stay unknown.
fn by_cpuid(cpus: &[Cpu], core_type: impl Fn() -> Option<CoreType> + Sync, pin: impl Fn(u32) -> bool + Sync) -> Option<Kinds> {
    core_type()?;
    let name = |core| match core {
        CoreType::Performance => PERFORMANCE.to_owned(),
        CoreType::Efficiency => EFFICIENCY.to_owned(),
    };
    let ask = || cpus.iter().filter(|cpu| pin(cpu.id)).filter_map(|cpu| Some((cpu.id, name(core_type()?)))).collect();
    // In a thread of its own, whose end is also that of its binding.
    several(thread::scope(|scope| thread::Builder::new().spawn_scoped(scope, ask).ok()?.join().ok())?)
}

/// Meteor Lake's low-power cores are efficiency cores on another die, without the L3 that the others have: cores of a kind that have no L3 are
/// another kind where some of it have one.
fn apart_without_l3(mut kinds: Kinds, caches: &[Cache]) -> Kinds {
    let at = |levels: &dyn Fn(u8) -> bool| caches.iter().filter(|c| levels(c.level)).fold(IdSet::new(), |all, c| all.union(&c.cpus));
    let with_l3 = at(&|level| level == 3);
    // Nothing is known of a CPU that states no cache at all.
    let without = at(&|level| level < 3).difference(&with_l3);
    let mixed: BTreeSet<String> = with_l3.iter().filter_map(|id| kinds.get(&id).cloned()).collect();
    for id in without.iter() {
        if let Some(kind) = kinds.get_mut(&id).filter(|kind| mixed.contains(*kind)) {
            *kind = if kind == EFFICIENCY { LOW_POWER.to_owned() } else { format!("{kind}-without-l3") };
        }
    }
    kinds
}

/// On Arm, each core design has its part number. RISC-V kernels name the design of each hart.
fn by_part(cpus: &[Cpu], info: &CpuInfo) -> Option<Kinds> {
    let name = |id: u32| {
        let field = |key: &str| info.field(id, key);
        match (field("CPU implementer"), field("CPU part")) {
            (Some(implementer), Some(part)) => Some(match arm::part(implementer, part) {
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
        Some(fast) => (if size == fast { PERFORMANCE } else { EFFICIENCY }).to_owned(),
        None => format!("l1d-{}k", size / 1024),
    };
    several(cpus.iter().filter_map(|c| Some((c.id, name(*l1.get(&c.id)?)))).collect())
}

/// Cores of one maker are of two kinds if their L3s have two sizes and one kind is faster: AMD's compact cores, and those below a stacked
/// cache. Only both together distinguish kinds: firmware may leave out a part of an L3, and favoured cores of one kind have higher frequencies.
fn by_l3(cpus: &[Cpu], caches: &[Cache], info: &CpuInfo) -> Option<Kinds> {
    info.first("vendor_id")?;
    let l3: BTreeMap<u32, u64> = caches.iter().filter(|c| c.level == 3).flat_map(|c| c.cpus.iter().map(move |id| (id, c.size.0))).collect();
    let mut mhz: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for cpu in cpus {
        mhz.entry(*l3.get(&cpu.id)?).or_default().push(cpu.max_mhz?);
    }
    // Ascending by the size of the L3.
    let [(_, slow), (large, fast)] = Vec::from_iter(mhz).try_into().ok()?;
    let below = |a: &[u32], b: &[u32]| a.iter().max() < b.iter().min();
    let name: &dyn Fn(u64) -> String = if below(&slow, &fast) {
        &|size| (if size == large { PERFORMANCE } else { EFFICIENCY }).to_owned()
    } else if below(&fast, &slow) {
        // The larger cache is stacked on cores of the same design, which run slower below it.
        &|size| format!("l3-{}m", size >> 20)
    } else {
        return None;
    };
    several(cpus.iter().filter_map(|c| Some((c.id, name(*l3.get(&c.id)?)))).collect())
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn each_cpu_is_asked_on_itself() {
        let cpu = |id| Cpu {
            id,
            package: 0,
            die: None,
            cluster: None,
            core: id,
            siblings: IdSet::one(id),
            node: 0,
            kind: None,
            capacity: None,
            max_mhz: None,
        };
        let cpus: Vec<Cpu> = (0..4).map(cpu).collect();
        let at = AtomicU32::new(0);
        let told = |types: fn(u32) -> Option<CoreType>| {
            // CPU 2 may not be used.
            by_cpuid(&cpus, || types(at.load(Ordering::Relaxed)), |id| id != 2 && at.swap(id, Ordering::Relaxed) < 4)
        };
        let hybrid = told(|id| Some(if id < 3 { CoreType::Performance } else { CoreType::Efficiency })).unwrap();
        assert_eq!(Vec::from_iter(hybrid), [(0, "performance".to_owned()), (1, "performance".to_owned()), (3, "efficiency".to_owned())]);
        assert_eq!(told(|_| Some(CoreType::Performance)), None, "all alike");
        assert_eq!(told(|_| None), None);
    }
}
