//! How much memory and CPU time may be taken.
//!
//! Taking too much does not fail: the kernel kills somebody, perhaps not us. So every limit counts (what is free on each node, what the
//! system can spare, every control group from ours to the root, resource limits, commit accounting), and a margin stays free of each.
//! Pages of huge-page pools are outside these amounts: they are taken from the pool and not from free memory.

pub(crate) mod cgroup;

use std::collections::BTreeMap;
use std::path::Path;

use memgauge_core::topology::Node;
use memgauge_core::units::{Bytes, IdSet};

use crate::tree::NODE_DIR;
use crate::tree::{Tree, kib_field};
use cgroup::{Group, Hierarchy, groups};

/// The share of a limit that is taken, in percent: the rest is for page tables, for what others allocate meanwhile, and for the error of
/// the estimate.
const SHARE: u64 = 80;
/// The share of all memory that stays free in any case, in percent.
const RESERVE: u64 = 5;
/// What stays free of the system's memory at least: the most that the kernel keeps back for itself by default (`min_free_kbytes` is
/// clamped to 256 MiB).
const SYSTEM_FLOOR: u64 = 256 << 20;
/// What stays free of a node at least. Less than for the system: nodes of CXL, HBM or guests may have few hundred MiB, and the kernel's
/// reserve is spread over nodes by size.
const NODE_FLOOR: u64 = 64 << 20;
/// Version 1 states "no limit" as the largest multiple of the page size; nothing has this much memory.
const UNLIMITED: u64 = 1 << 62;

/// How much memory may be taken, margins kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// In all.
    pub memory: Bytes,
    /// Which limit was the least, in words.
    pub limited_by: String,
    /// On each allowed node.
    pub node_memory: BTreeMap<u32, Bytes>,
}

/// A limit: how much it leaves, and how to call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Headroom {
    /// Bytes that may be taken, margin kept.
    pub(crate) bytes: u64,
    /// In words.
    pub(crate) name: String,
}

/// Reads how much memory may be taken in all and on each of the nodes `allowed`.
pub fn read_budget(root: &Path, nodes: &[Node], allowed: &IdSet) -> Budget {
    let tree = Tree::new(root);
    let meminfo = tree.text("proc/meminfo").unwrap_or_default();
    let node_memory: BTreeMap<u32, Bytes> =
        nodes.iter().filter(|n| allowed.contains(n.id)).map(|n| (n.id, Bytes(node_room(tree, n, &meminfo)))).collect();
    let on_nodes = node_memory.values().fold(0u64, |sum, b| sum.saturating_add(b.0));
    let mut rooms = vec![Headroom { bytes: on_nodes, name: format!("free memory of the allowed nodes ({allowed})") }];
    rooms.extend(system_room(&meminfo));
    rooms.extend(commit_room(tree, &meminfo));
    rooms.extend(memory_groups(tree));
    rooms.extend(resource_rooms(tree));
    // The nodes come first: of equal rooms they are the one that is named.
    let least = rooms.into_iter().min_by_key(|room| room.bytes);
    let (memory, limited_by) = least.map_or((0, String::new()), |room| (room.bytes, room.name));
    Budget { memory: Bytes(memory), limited_by, node_memory }
}

/// The least CPU time quota of the control groups of this process, in CPUs; `None` without one.
///
/// A quota below the number of threads stops all of them for parts of each period: results then tell of the quota.
pub fn cpu_quota(root: &Path) -> Option<f64> {
    let tree = Tree::new(root);
    let v2 = groups(tree, Hierarchy::V2).into_iter().filter_map(|g| {
        let text = tree.text(&format!("{}/cpu.max", g.folder))?;
        let (quota, period) = text.split_once(' ')?;
        Some((quota.parse().ok()?, period.trim().parse().ok()?))
    });
    let v1 = groups(tree, Hierarchy::V1("cpu")).into_iter().filter_map(|g| {
        let read = |file: &str| tree.parsed::<f64>(&format!("{}/{file}", g.folder));
        Some((read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?))
    });
    v2.chain(v1).filter(|&(quota, period)| quota > 0.0 && period > 0.0).map(|(quota, period)| quota / period).reduce(f64::min)
}

/// `left` less the margin: 80 % of it, and never so much that less than 5 % of `total` or `floor` stay.
fn with_margin(left: u64, total: u64, floor: u64) -> u64 {
    let reserve = (total / 100 * RESERVE).max(floor);
    (left / 100 * SHARE).min(left.saturating_sub(reserve))
}

/// What may be taken on a node: free memory, and half of the page cache of files and of what slabs can give back. The kernel's own
/// `MemAvailable` counts all but the lesser of half and the low watermark; half is the safe end of that, since dirty and busy pages
/// are not told apart per node.
fn node_room(tree: Tree<'_>, node: &Node, system: &str) -> u64 {
    let own = tree.text(&format!("{NODE_DIR}/node{}/meminfo", node.id));
    let text = own.as_deref().unwrap_or(system);
    let of = |name: &str| kib_field(text, name).unwrap_or(0);
    let cache = of("Active(file)").saturating_add(of("Inactive(file)")).saturating_add(of("SReclaimable"));
    let left = node.free.map_or(0, |free| free.0).saturating_add(cache / 2).min(node.memory.0);
    with_margin(left, node.memory.0, NODE_FLOOR)
}

fn system_room(meminfo: &str) -> Option<Headroom> {
    let total = kib_field(meminfo, "MemTotal")?;
    let (left, name) = match kib_field(meminfo, "MemAvailable") {
        Some(left) => (left, "MemAvailable"),
        // Before Linux 3.14.
        None => (kib_field(meminfo, "MemFree")?, "MemFree"),
    };
    Some(Headroom { bytes: with_margin(left, total, SYSTEM_FLOOR), name: format!("available memory ({name}, {})", gib(left)) })
}

/// With strict commit accounting (`vm.overcommit_memory` = 2) mappings fail above the limit, touched or not.
fn commit_room(tree: Tree<'_>, meminfo: &str) -> Option<Headroom> {
    if tree.parsed::<u32>("proc/sys/vm/overcommit_memory") != Some(2) {
        return None;
    }
    let left = kib_field(meminfo, "CommitLimit")?.saturating_sub(kib_field(meminfo, "Committed_AS")?);
    Some(Headroom { bytes: with_margin(left, 0, 0), name: format!("commit limit (vm.overcommit_memory = 2, {} left)", gib(left)) })
}

/// The rooms of every control group that has a memory limit.
pub(crate) fn memory_groups(tree: Tree<'_>) -> Vec<Headroom> {
    let v2 = groups(tree, Hierarchy::V2).into_iter().flat_map(|group| {
        // Above `high` the kernel throttles and reclaims: as good as a limit for a measurement.
        ["memory.max", "memory.high"].into_iter().filter_map(move |file| group_room(tree, &group, file, "memory.current", "inactive_file"))
    });
    let v1 = groups(tree, Hierarchy::V1("memory"))
        .into_iter()
        .filter_map(|group| group_room(tree, &group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"));
    v2.chain(v1).collect()
}

/// What a group leaves: its limit less its use, where page cache that was not used lately does not count as use: the kernel drops it
/// before it kills.
fn group_room(tree: Tree<'_>, group: &Group, limit_file: &str, use_file: &str, cache: &str) -> Option<Headroom> {
    let at = |file: &str| format!("{}/{file}", group.folder);
    let limit = tree.parsed::<u64>(&at(limit_file)).filter(|&n| n < UNLIMITED)?;
    let used = tree.parsed::<u64>(&at(use_file)).unwrap_or(0);
    let stat = tree.text(&at("memory.stat")).unwrap_or_default();
    let cached = stat.lines().find_map(|line| line.strip_prefix(cache)?.trim().parse::<u64>().ok()).unwrap_or(0);
    let left = limit.saturating_sub(used.saturating_sub(cached));
    let name = format!("{limit_file} of control group {} ({}, {} left)", group.name, gib(limit), gib(left));
    Some(Headroom { bytes: with_margin(left, 0, 0), name })
}

/// RLIMIT_AS and RLIMIT_DATA less what the process has.
fn resource_rooms(tree: Tree<'_>) -> Vec<Headroom> {
    let limits = tree.text("proc/self/limits").unwrap_or_default();
    let status = tree.text("proc/self/status").unwrap_or_default();
    let rows = [("Max address space", "VmSize", "RLIMIT_AS (ulimit -v)"), ("Max data size", "VmData", "RLIMIT_DATA (ulimit -d)")];
    let room = |(row, used, name): (&str, &str, &str)| {
        let line = limits.lines().find_map(|line| line.strip_prefix(row))?;
        let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
        let used = kib_field(&status, used).unwrap_or(0);
        let left = limit.saturating_sub(used);
        Some(Headroom { bytes: with_margin(left, 0, 0), name: format!("{name}, {} left", gib(left)) })
    };
    rows.into_iter().filter_map(room).collect()
}

pub(crate) fn gib(bytes: u64) -> String {
    if bytes >= 1 << 30 { format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64) } else { format!("{} MiB", bytes >> 20) }
}

#[cfg(test)]
mod tests;
