//! Memory nodes.

use std::collections::BTreeMap;

use memgauge_model::topology::{Cpu, HmatAccess, MemorySideCache, Node};
use memgauge_model::units::{Bytes, IdSet};

use crate::interleave::WEIGHTS_DIR;
use crate::meminfo;
use crate::pools::pools;
use crate::tree::{CPU_DIR, NODE_DIR, POOLS_DIR, Tree, kib_field};

/// A node's distance to itself (ACPI SLIT, `LOCAL_DISTANCE`).
const LOCAL_DISTANCE: u32 = 10;

/// The online nodes. A kernel without NUMA has one node with all memory and all CPUs.
pub(crate) fn read(tree: Tree<'_>, online_cpus: &IdSet) -> Vec<Node> {
    let folders = tree.numbered(NODE_DIR, "node");
    let online = tree.ids(&format!("{NODE_DIR}/online")).map(|ids| ids.intersection(&folders)).filter(|ids| !ids.is_empty());
    let online = online.unwrap_or_else(|| folders.clone());
    if online.is_empty() {
        return vec![without_numa(tree, online_cpus)];
    }
    let populated = tree.ids(&format!("{NODE_DIR}/has_memory")).filter(|ids| !ids.is_empty());
    let only = online.len() == 1;
    let mut nodes: Vec<Node> = online
        .iter()
        .map(|id| {
            let node = read_node(tree, id, online_cpus, only);
            let empty = node.memory.is_none() && populated.as_ref().is_some_and(|populated| !populated.contains(id));
            Node { memory: if empty { Some(Bytes(0)) } else { node.memory }, ..node }
        })
        .collect();
    let candidates = column_candidates(tree, &online, &folders);
    for node in &mut nodes {
        let row = tree.text(&format!("{NODE_DIR}/node{}/distance", node.id)).unwrap_or_default();
        node.distances = distances(&row, &candidates, &online);
    }
    if let [only] = nodes.as_mut_slice()
        && only.pools.is_empty()
    {
        only.pools = pools(tree, POOLS_DIR);
    }
    nodes
}

/// Sets the node of each CPU. A CPU that no online node lists is in no node's `cpus`. Its node is the one that its folder links to, if that is
/// online, or else the lowest online node, because its memory must come from some node.
pub(crate) fn assign(tree: Tree<'_>, nodes: &[Node], cpus: &mut [Cpu]) {
    let mut node_by_cpu: BTreeMap<u32, u32> = BTreeMap::new();
    for node in nodes {
        for cpu in node.cpus.iter() {
            node_by_cpu.entry(cpu).or_insert(node.id);
        }
    }
    let lowest = nodes.first().map_or(0, |n| n.id);
    for cpu in cpus {
        cpu.node = node_by_cpu.get(&cpu.id).copied().unwrap_or_else(|| {
            let linked = tree.numbered(&format!("{CPU_DIR}/cpu{}", cpu.id), "node").first();
            linked.filter(|id| nodes.iter().any(|n| n.id == *id)).unwrap_or(lowest)
        });
    }
}

fn without_numa(tree: Tree<'_>, cpus: &IdSet) -> Node {
    let meminfo = meminfo::system(tree).unwrap_or_default();
    Node {
        id: 0,
        cpus: cpus.clone(),
        memory: kib_field(&meminfo, "MemTotal").map(Bytes),
        free: kib_field(&meminfo, "MemFree").map(Bytes),
        distances: BTreeMap::from([(0, LOCAL_DISTANCE)]),
        pools: pools(tree, POOLS_DIR),
        ..Node::default()
    }
}

fn read_node(tree: Tree<'_>, id: u32, online_cpus: &IdSet, only: bool) -> Node {
    let at = |file: &str| format!("{NODE_DIR}/node{id}/{file}");
    let meminfo = meminfo::text_of_node(tree, id, only).unwrap_or_default();
    let cpus = tree.mask_or_ids(&at("cpumap"), &at("cpulist")).unwrap_or_else(|| tree.numbered(&at(""), "cpu"));
    Node {
        id,
        cpus: cpus.intersection(online_cpus),
        memory: kib_field(&meminfo, "MemTotal").map(Bytes),
        free: kib_field(&meminfo, "MemFree").map(Bytes),
        distances: BTreeMap::new(),
        hmat: [0, 1].into_iter().filter_map(|class| hmat(tree, id, class)).collect(),
        memory_side_caches: side_caches(tree, id),
        pools: pools(tree, &at("hugepages")),
        interleave_weight: tree.id(&format!("{WEIGHTS_DIR}/node{id}")).filter(|weight| *weight > 0),
        ..Node::default()
    }
}

/// The nodes that the columns of `distance` may stand for. The kernel prints one column for each online node, in order. The other sets are
/// for recordings that lack the folder of a node because it was removed.
fn column_candidates(tree: Tree<'_>, online: &IdSet, folders: &IdSet) -> Vec<IdSet> {
    let read = |file: &str| tree.ids(&format!("{NODE_DIR}/{file}")).unwrap_or_default();
    let populated = read("has_memory").union(&read("has_normal_memory")).union(&read("has_cpu"));
    vec![online.clone(), read("online"), folders.clone(), populated, read("possible")]
}

/// A row of distances by online node; empty when it is unclear which nodes its columns stand for.
fn distances(row: &str, candidates: &[IdSet], online: &IdSet) -> BTreeMap<u32, u32> {
    let columns: Vec<u32> = row.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let Some(ids) = candidates.iter().find(|ids| ids.len() == columns.len()) else { return BTreeMap::new() };
    ids.iter().zip(columns).filter(|(id, _)| online.contains(*id)).collect()
}

/// The figures that firmware states about this node.
fn hmat(tree: Tree<'_>, id: u32, class: u8) -> Option<HmatAccess> {
    let folder = format!("{NODE_DIR}/node{id}/access{class}/initiators");
    tree.exists(&folder).then(|| access(tree, &folder, class, tree.numbered(&folder, "node")))
}

/// The figures in a folder. The kernel shows 0 for what is not known.
pub(super) fn access(tree: Tree<'_>, folder: &str, class: u8, initiators: IdSet) -> HmatAccess {
    let stated = |file: &str| tree.parsed::<u64>(&format!("{folder}/{file}")).filter(|&n| n > 0);
    HmatAccess {
        class,
        initiators,
        read_latency_ns: stated("read_latency"),
        write_latency_ns: stated("write_latency"),
        read_bandwidth_mbs: stated("read_bandwidth"),
        write_bandwidth_mbs: stated("write_bandwidth"),
        cxl_region: None,
    }
}

fn side_caches(tree: Tree<'_>, id: u32) -> Vec<MemorySideCache> {
    let folder = format!("{NODE_DIR}/node{id}/memory_side_cache");
    let levels = tree.numbered(&folder, "index");
    let read = |level: u32| {
        let size = tree.parsed::<u64>(&format!("{folder}/index{level}/size")).filter(|&n| n > 0)?;
        let line = tree.id(&format!("{folder}/index{level}/line_size")).filter(|&n| n > 0);
        Some(MemorySideCache { level: u8::try_from(level).ok()?, size: Bytes(size), line })
    };
    levels.iter().filter_map(read).collect()
}
