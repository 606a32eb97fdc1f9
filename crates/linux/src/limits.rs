//! How much memory and CPU time may be taken.
//!
//! When a process takes too much, the kernel does not refuse: it kills a process, and not always that one. All limits are therefore read (free
//! memory of each node and of the system, every control group from ours to the root, resource limits, commit accounting), and a margin of
//! each stays free ([`Reserve`]). The pages of huge-page pools are not part of these amounts, because they come from the pool and not from
//! free memory.

use std::collections::BTreeMap;

use memgauge_model::reserve::{self, Reserve};
use memgauge_model::topology::{Allowed, Node};
use memgauge_model::units::{Bytes, IdSet};

use crate::cgroup::{Group, Hierarchy, groups};
use crate::cpu::AllowedSets;
use crate::meminfo;
use crate::policy;
use crate::pools::pools;
use crate::setting;
use crate::tree::{NODE_DIR, POOLS_DIR, Tree, kib_field};

/// Version 1 control groups show "no limit" as the largest multiple of the page size. No machine has this much memory.
const UNLIMITED: u64 = 1 << 62;

/// The room that a limit leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Headroom {
    /// Bytes that may be taken. The margin is already subtracted.
    pub(crate) bytes: u64,
    /// The limit in words.
    pub(crate) name: String,
}

/// The room on a node.
#[derive(Debug, Clone, Copy)]
struct NodeRoom {
    left: u64,
    may_be_taken: u64,
}

/// Reads how much memory may be taken in total and on each of the nodes that may be used, and how much CPU time. The margins are already
/// subtracted.
pub(crate) fn read(tree: Tree<'_>, nodes: &[Node], usable: AllowedSets) -> Allowed {
    let AllowedSets { cpus, isolated, nodes: allowed } = usable;
    let system = meminfo::system(tree);
    let meminfo = system.as_deref().unwrap_or_default();
    let only = nodes.len() == 1;
    let usable = || nodes.iter().filter(|n| allowed.contains(n.id));
    let rooms: BTreeMap<u32, NodeRoom> = usable().filter_map(|n| Some((n.id, node_room(tree, n, only)?))).collect();
    let sum = |of: fn(&NodeRoom) -> u64| rooms.values().fold(0u64, |sum, room| sum.saturating_add(of(room)));
    let (left, on_nodes) = (sum(|room| room.left), sum(|room| room.may_be_taken));
    let name = format!("free memory of the allowed nodes ({allowed}): {}", reserve::in_words(left, on_nodes));
    // The sum says nothing while a part of it is not known.
    let all_known = usable().all(|n| rooms.contains_key(&n.id));
    let mut limits: Vec<Headroom> = all_known.then_some(Headroom { bytes: on_nodes, name }).into_iter().collect();
    limits.extend(system_headroom(meminfo, pooled_in_all(tree, meminfo, nodes)));
    limits.extend(commit_headroom(tree, meminfo));
    limits.extend(memory_groups(tree));
    limits.extend(resource_headroom(tree));
    // The nodes come first, so that they are named when another limit is equal.
    let lowest = limits.into_iter().min_by_key(|limit| limit.bytes);
    let (memory, memory_limited_by) = match lowest {
        Some(limit) => (Some(Bytes(limit.bytes)), limit.name),
        None => (None, nothing_stated(tree, usable().map(|n| n.id).filter(|id| !rooms.contains_key(id)).collect())),
    };
    let (memory_policy, memory_policy_unknown) = match policy::read(tree, &allowed) {
        Ok(policy) => (Some(policy), None),
        Err(why) => (None, Some(why)),
    };
    Allowed {
        cpus,
        isolated,
        nodes: allowed,
        memory,
        memory_limited_by,
        node_memory: rooms.iter().map(|(&id, room)| (id, Bytes(room.may_be_taken))).collect(),
        node_limited_by: rooms.iter().map(|(&id, room)| (id, reserve::in_words(room.left, room.may_be_taken))).collect(),
        cpu_quota: cpu_quota(tree),
        settings: setting::changed_from(tree),
        memory_policy,
        memory_policy_unknown,
    }
}

/// The files that would have stated how much memory these nodes have.
pub(crate) fn nothing_stated(tree: Tree<'_>, nodes: IdSet) -> String {
    let missing: IdSet = nodes.iter().filter(|node| tree.exists(NODE_DIR) && !tree.exists(&meminfo::of_node(*node))).collect();
    let of_nodes = match missing.len() {
        0 => None,
        1 => missing.first().map(|node| format!("/{}", meminfo::of_node(node))),
        _ => Some(format!("meminfo of nodes {missing} in /{NODE_DIR}")),
    };
    let of_all = (!tree.exists(meminfo::SYSTEM)).then(|| format!("/{}", meminfo::SYSTEM));
    match (of_nodes, of_all) {
        (Some(nodes), Some(all)) => format!("{nodes} and {all} are missing"),
        (Some(one), None) | (None, Some(one)) => format!("{one} is missing"),
        (None, None) => "the files that should state it do not".to_owned(),
    }
}

/// The lowest CPU time quota of the control groups of this process, in CPUs; `None` without a quota.
///
/// A quota below the number of threads stops all of them for a part of each period. Results then depend on the quota.
fn cpu_quota(tree: Tree<'_>) -> Option<f64> {
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

/// Bytes in the pools of huge pages of the whole machine.
fn pooled_in_all(tree: Tree<'_>, meminfo: &str, nodes: &[Node]) -> u64 {
    // Since Linux 4.15.
    kib_field(meminfo, "Hugetlb").unwrap_or_else(|| {
        let of_nodes = nodes.iter().fold(0u64, |sum, node| sum.saturating_add(node.pooled()));
        let of_machine = Node { pools: pools(tree, POOLS_DIR), ..Node::default() }.pooled();
        of_nodes.max(of_machine)
    })
}

/// The room on a node: free memory, half of the page cache, and half of the reclaimable slabs. The kernel's own `MemAvailable`
/// subtracts at most half of these. Half is the safe choice, because the kernel does not show which pages of a node are dirty or in use.
///
/// `None` if the kernel does not state the figures of the node nor, for the machine's only node, those of the machine.
fn node_room(tree: Tree<'_>, node: &Node, only: bool) -> Option<NodeRoom> {
    let text = meminfo::text_of_node(tree, node.id, only)?;
    let memory = node.memory?.0;
    // Older kernels have fewer kinds: what they do not state counts as in use.
    let field = |name: &str| kib_field(&text, name).unwrap_or(0);
    let cache = field("Active(file)").saturating_add(field("Inactive(file)")).saturating_add(field("SReclaimable"));
    let left = node.free?.0.saturating_add(cache / 2).min(memory);
    Some(NodeRoom { left, may_be_taken: Reserve::NODE.may_be_taken(left, memory.saturating_sub(node.pooled())) })
}

/// The room in the whole system. `pooled` bytes of its memory are in pools of huge pages.
fn system_headroom(meminfo: &str, pooled: u64) -> Option<Headroom> {
    // A balloon's memory belongs to the host (since Linux 6.16, and if the balloon does not lower MemTotal itself).
    let held = pooled.saturating_add(kib_field(meminfo, "Balloon").unwrap_or(0));
    let total = kib_field(meminfo, "MemTotal")?.saturating_sub(held);
    let (left, name) = match kib_field(meminfo, "MemAvailable") {
        Some(left) => (left, "MemAvailable"),
        // Before Linux 3.14.
        None => (kib_field(meminfo, "MemFree")?, "MemFree"),
    };
    let bytes = Reserve::SYSTEM.may_be_taken(left, total);
    Some(Headroom { bytes, name: format!("available memory ({name}, {})", reserve::in_words(left, bytes)) })
}

/// With strict commit accounting (`vm.overcommit_memory` = 2), mappings above the limit fail even if they are never touched.
fn commit_headroom(tree: Tree<'_>, meminfo: &str) -> Option<Headroom> {
    if tree.parsed::<u32>("proc/sys/vm/overcommit_memory") != Some(2) {
        return None;
    }
    let left = kib_field(meminfo, "CommitLimit")?.saturating_sub(kib_field(meminfo, "Committed_AS")?);
    Some(Headroom {
        bytes: Reserve::NONE.may_be_taken(left, 0),
        name: format!("commit limit (vm.overcommit_memory = 2, {} left)", gib(left)),
    })
}

/// The room in every control group that has a memory limit.
pub(crate) fn memory_groups(tree: Tree<'_>) -> Vec<Headroom> {
    let v2 = groups(tree, Hierarchy::V2).into_iter().flat_map(|group| {
        // Above `high` the kernel throttles and reclaims, so for a measurement it is a limit too.
        ["memory.max", "memory.high"]
            .into_iter()
            .filter_map(move |file| group_headroom(tree, &group, file, "memory.current", "inactive_file"))
    });
    let v1 = groups(tree, Hierarchy::V1("memory"))
        .into_iter()
        .filter_map(|group| group_headroom(tree, &group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"));
    v2.chain(v1).collect()
}

/// The room in a group: its limit less its use. Inactive page cache does not count as use, because the kernel drops it before it kills
/// a process.
fn group_headroom(tree: Tree<'_>, group: &Group, limit_file: &str, use_file: &str, cache: &str) -> Option<Headroom> {
    let at = |file: &str| format!("{}/{file}", group.folder);
    let limit = tree.parsed::<u64>(&at(limit_file)).filter(|&n| n < UNLIMITED)?;
    let used = tree.parsed::<u64>(&at(use_file)).unwrap_or(0);
    let stat = tree.text(&at("memory.stat")).unwrap_or_default();
    let cached = stat.lines().find_map(|line| line.strip_prefix(cache)?.trim().parse::<u64>().ok()).unwrap_or(0);
    let left = limit.saturating_sub(used.saturating_sub(cached));
    let name = format!("{limit_file} of control group {} ({}, {} left)", group.name, gib(limit), gib(left));
    Some(Headroom { bytes: Reserve::NONE.may_be_taken(left, 0), name })
}

/// The room that RLIMIT_AS and RLIMIT_DATA leave to this process.
fn resource_headroom(tree: Tree<'_>) -> Vec<Headroom> {
    let limits = tree.text("proc/self/limits").unwrap_or_default();
    let status = tree.text("proc/self/status").unwrap_or_default();
    let rows = [("Max address space", "VmSize", "RLIMIT_AS (ulimit -v)"), ("Max data size", "VmData", "RLIMIT_DATA (ulimit -d)")];
    let room = |(row, used, name): (&str, &str, &str)| {
        let line = limits.lines().find_map(|line| line.strip_prefix(row))?;
        let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
        let used = kib_field(&status, used).unwrap_or(0);
        let left = limit.saturating_sub(used);
        Some(Headroom { bytes: Reserve::NONE.may_be_taken(left, 0), name: format!("{name}, {} left", gib(left)) })
    };
    rows.into_iter().filter_map(room).collect()
}

/// A size for messages, in GiB or MiB.
pub(crate) use memgauge_model::reserve::amount as gib;

#[cfg(test)]
mod tests;
