//! CPUs, caches and nodes from what Windows answered.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::topology::{Cache, Cpu, Node, Topology};
use memgauge_model::units::{Bytes, IdSet};

use crate::answers::{Answers, CacheKind, CacheRecord, NodeMemory, Record};

/// The topology of these records; `None` when they name no CPU.
///
/// Windows does not report everything, and the rest stays unknown: CPUs that may be added later are not "offline", and the topology has no
/// distances between nodes (Windows reads SLIT and HMAT and shows neither to programs), no pools of large pages, and no capacities or highest
/// frequencies of cores.
pub(crate) fn topology(records: &[Record], answers: &Answers) -> Option<Topology> {
    let online = online(records);
    online.first()?;
    let groups = |pick: fn(&Record) -> Option<&IdSet>| numbered(records.iter().filter_map(pick), &online);
    let packages = groups(|record| if let Record::Package(cpus) = record { Some(cpus) } else { None });
    let dies = groups(|record| if let Record::Die(cpus) = record { Some(cpus) } else { None });
    let modules = groups(|record| if let Record::Module(cpus) = record { Some(cpus) } else { None });
    let cores = cores(records, &online);
    let kinds = kinds(&cores);
    let nodes = nodes(records, answers, &online);
    let lowest_node = nodes.first().map_or(0, |node| node.id);
    let package = |cpu: u32| packages.get(&cpu).copied().unwrap_or(0);
    // Cores and dies are numbered within their package, as on Linux.
    let mut within: BTreeMap<(u32, &'static str), BTreeSet<u32>> = BTreeMap::new();
    let mut number = |cpu: u32, what: &'static str, of: u32| {
        let known = within.entry((package(cpu), what)).or_default();
        known.insert(of);
        u32::try_from(known.range(..of).count()).unwrap_or(u32::MAX)
    };
    let cpus: Vec<Cpu> = online
        .iter()
        .map(|id| {
            let core = cores.iter().find(|core| core.cpus.contains(id));
            let siblings = core.map_or_else(|| IdSet::one(id), |core| core.cpus.clone());
            Cpu {
                id,
                package: package(id),
                die: dies.get(&id).map(|&die| number(id, "die", die)),
                cluster: modules.get(&id).copied(),
                core: number(id, "core", siblings.first().unwrap_or(id)),
                siblings,
                node: nodes.iter().find(|node| node.cpus.contains(id)).map_or(lowest_node, |node| node.id),
                kind: core.and_then(|core| kinds.get(&core.efficiency).cloned()),
                capacity: None,
                max_mhz: None,
            }
        })
        .collect();
    let smt_active = (!cores.is_empty()).then(|| cores.iter().any(|core| core.cpus.len() > 1));
    Some(Topology { cpus, caches: caches(records, &online), nodes, smt_active, ..Topology::default() })
}

/// The active CPUs of all groups; those of the cores, where Windows names no groups.
fn online(records: &[Record]) -> IdSet {
    let active = union(records.iter().filter_map(|record| if let Record::Active(cpus) = record { Some(cpus) } else { None }));
    if !active.is_empty() {
        return active;
    }
    union(records.iter().filter_map(|record| if let Record::Core { cpus, .. } = record { Some(cpus) } else { None }))
}

fn union<'a>(sets: impl Iterator<Item = &'a IdSet>) -> IdSet {
    sets.flat_map(IdSet::iter).collect()
}

/// The number of the set that each CPU is in: Windows names none, so they are numbered by their first CPU.
fn numbered<'a>(sets: impl Iterator<Item = &'a IdSet>, online: &IdSet) -> BTreeMap<u32, u32> {
    let mut sets: Vec<IdSet> = sets.map(|cpus| cpus.intersection(online)).filter(|cpus| !cpus.is_empty()).collect();
    sets.sort_by_key(IdSet::first);
    let mut by_cpu = BTreeMap::new();
    for (number, cpus) in (0u32..).zip(sets) {
        for cpu in cpus.iter() {
            by_cpu.entry(cpu).or_insert(number);
        }
    }
    by_cpu
}

/// A core, with its online threads.
struct Core {
    efficiency: u8,
    cpus: IdSet,
}

fn cores(records: &[Record], online: &IdSet) -> Vec<Core> {
    let core = |record: &Record| match record {
        Record::Core { efficiency, cpus } => Some(Core { efficiency: *efficiency, cpus: cpus.intersection(online) }),
        _ => None,
    };
    records.iter().filter_map(core).filter(|core| !core.cpus.is_empty()).collect()
}

/// The names of the classes of cores; empty when all are alike. Higher classes are faster (`PROCESSOR_RELATIONSHIP.EfficiencyClass`).
fn kinds(cores: &[Core]) -> BTreeMap<u8, String> {
    let classes: BTreeSet<u8> = cores.iter().map(|core| core.efficiency).collect();
    let (Some(&lowest), Some(&highest)) = (classes.first(), classes.last()) else { return BTreeMap::new() };
    if lowest == highest {
        return BTreeMap::new();
    }
    let name = |class: u8| match class {
        _ if class == highest => "performance".to_owned(),
        _ if class == lowest => "efficiency".to_owned(),
        _ => format!("class-{class}"),
    };
    classes.iter().map(|&class| (class, name(class))).collect()
}

fn caches(records: &[Record], online: &IdSet) -> Vec<Cache> {
    let mut caches: Vec<Cache> = Vec::new();
    for record in records {
        let Record::Cache(CacheRecord { level, ways, line, size, kind, cpus }) = record else { continue };
        let cpus = cpus.intersection(online);
        // An instruction cache plays no part in the measurements. A hypervisor may list caches without a size: nothing is known about them.
        if !(1..=9).contains(level) || *kind == CacheKind::Instructions || *size == 0 || cpus.is_empty() {
            continue;
        }
        let cache = Cache { level: *level, size: Bytes(u64::from(*size)), line: *line, ways: *ways, cpus };
        if !caches.contains(&cache) {
            caches.push(cache);
        }
    }
    caches.sort_by_key(|cache| (cache.level, cache.cpus.first()));
    caches
}

/// The nodes with CPUs or memory. A machine that names none has one, number 0.
fn nodes(records: &[Record], answers: &Answers, online: &IdSet) -> Vec<Node> {
    let mut cpus: BTreeMap<u32, IdSet> = BTreeMap::new();
    for record in records {
        if let Record::Node { number, cpus: found } = record {
            // A node is named twice: with the CPUs of its first group, and with all.
            let known = cpus.entry(*number).or_default();
            *known = known.union(&found.intersection(online));
        }
    }
    for (&number, memory) in &answers.nodes {
        if memory.most().is_some_and(|bytes| bytes > 0) {
            cpus.entry(number).or_default();
        }
    }
    cpus.retain(|number, cpus| {
        !cpus.is_empty() || answers.nodes.get(number).is_some_and(|memory| memory.most().is_some_and(|bytes| bytes > 0))
    });
    if cpus.is_empty() {
        cpus.insert(0, online.clone());
    }
    let single = cpus.len() == 1;
    cpus.into_iter()
        .map(|(id, cpus)| {
            let own = answers.nodes.get(&id).copied().unwrap_or_default();
            // All of the memory is on the only node, and Windows states all of it better than the part on a node.
            let (total, free) =
                if single { (answers.total.or(own.total), answers.available.or(own.available)) } else { (own.total, own.available) };
            let memory = NodeMemory { total, available: free }.most();
            Node { id, cpus, memory: memory.map(Bytes), free: free.map(Bytes), ..Node::default() }
        })
        .collect()
}
