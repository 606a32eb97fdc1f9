//! The data and unified caches, each of them once.

use std::collections::BTreeMap;

use memgauge_model::topology::{Cache, Cpu};
use memgauge_model::units::{Bytes, IdSet};

use crate::tree::{CPU_DIR, Tree};

/// The caches of these online CPUs.
///
/// Sharing is symmetric, so an `indexN` is not read again for a CPU that shares it with an earlier one. On 1,024 CPUs this halves the work.
pub(crate) fn read(tree: Tree<'_>, cpus: &[Cpu]) -> Vec<Cache> {
    let online: IdSet = cpus.iter().map(|c| c.id).collect();
    let mut covered: BTreeMap<u32, IdSet> = BTreeMap::new();
    let mut found: BTreeMap<(u8, String, IdSet), Cache> = BTreeMap::new();
    for cpu in cpus {
        let folder = format!("{CPU_DIR}/cpu{}/cache", cpu.id);
        for index in tree.numbered(&folder, "index").iter() {
            let covered = covered.entry(index).or_default();
            if covered.contains(cpu.id) {
                continue;
            }
            let at = |file: &str| format!("{folder}/index{index}/{file}");
            let kind = tree.text(&at("type")).unwrap_or_default();
            let shared = tree.mask_or_ids(&at("shared_cpu_map"), &at("shared_cpu_list"));
            let mut shared = shared.map(|ids| ids.intersection(&online)).unwrap_or_default();
            shared.insert(cpu.id);
            let Some(level) = tree.parsed::<u8>(&at("level")).filter(|level| (1..=9).contains(level)) else { continue };
            for id in shared.iter() {
                covered.insert(id);
            }
            // An instruction cache plays no part in the measurements. Some firmware leaves the type out.
            if kind == "Instruction" {
                continue;
            }
            let positive = |file: &str| tree.id(&at(file)).filter(|&n| n > 0);
            let (line, ways, sets) = (positive("coherency_line_size"), positive("ways_of_associativity"), positive("number_of_sets"));
            let stated = tree.text(&at("size")).and_then(|text| text.parse::<Bytes>().ok()).filter(|size| size.0 > 0);
            let computed = || Some(Bytes(u64::from(line?).saturating_mul(u64::from(ways?)).saturating_mul(u64::from(sets?))));
            // Firmware (Arm's PPTT, a hypervisor's leaf 4) may list a cache without its size. Such a cache is left out.
            let Some(size) = stated.or_else(computed) else { continue };
            found.entry((level, kind, shared.clone())).or_insert(Cache { level, size, line, ways, cpus: shared });
        }
    }
    let mut caches: Vec<Cache> = found.into_values().collect();
    caches.sort_by_key(|c| (c.level, c.cpus.first()));
    caches
}
