//! The nodes of other processes' memory (`/proc/PID/smaps`, `/proc/PID/numa_maps`), and the CPUs of their threads (`/proc/PID/task`).

mod maps;
mod threads;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufReader, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use memgauge_model::policy::{MemoryPolicy, PolicyMode};
use memgauge_model::result::{PolicyMemory, ProcessMemory, UnseenProcess, WhyUnseen};
use memgauge_model::units::Bytes;

use self::maps::{MapsReader, Pages};
pub use self::threads::ThreadWatch;
use crate::base_page;
use crate::files::read_text;
use crate::mount;
use crate::policy::{kernel_weights, parse_policy};
use crate::processes::stat_fields;
use crate::security::explained;
use crate::tree::{NODE_DIR, Tree, field, kib_field};

/// Files of the kernel that have no end in sight are read in blocks of this size.
const BLOCK: usize = 64 << 10;
/// Groups within groups that are looked at. The kernel allows any depth; none that is used is deeper.
const DEEPEST: usize = 32;

/// Reads where the memory of a process lies.
///
/// # Errors
/// Why it cannot be seen.
pub fn read(root: &Path, pid: u32) -> Result<ProcessMemory, UnseenProcess> {
    let tree = Tree::new(root);
    let folder = format!("proc/{pid}");
    let name = tree.text(&format!("{folder}/comm"));
    let unseen = |error: io::Error| {
        let owner = || fs::metadata(tree.path(&folder)).map(|found| found.uid());
        let why = match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::NotFound, _) | (_, Some(libc::ESRCH)) => WhyUnseen::Gone,
            (io::ErrorKind::PermissionDenied, _) => owner().map_or(WhyUnseen::Gone, |owner| WhyUnseen::Refused { owner }),
            _ => WhyUnseen::Unreadable { error: explained(&error) },
        };
        UnseenProcess { pid, name: name.clone(), why }
    };
    let open = |file: &str| File::open(tree.path(&format!("{folder}/{file}"))).map(|file| BufReader::with_capacity(BLOCK, file));
    let numa_maps = match open("numa_maps") {
        Ok(file) => Some(file),
        // A kernel without NUMA has no such file.
        Err(error) if error.kind() == io::ErrorKind::NotFound && tree.exists(&folder) => None,
        Err(error) => return Err(unseen(error)),
    };
    let pages = Pages {
        base: base_page() as u64,
        transparent: tree.parsed("sys/kernel/mm/transparent_hugepage/hpage_pmd_size").unwrap_or(TRANSPARENT),
        only_node: numa_maps.is_none().then(|| only_node(tree)).flatten(),
    };
    let mut maps = MapsReader::new(open("smaps").map_err(unseen)?, numa_maps, pages);
    maps.read().map_err(unseen)?;
    let (memory, mappings, by_policy) = maps.into_sums();
    if memory.present.0 == 0 && memory.swapped.0 == 0 {
        return Err(UnseenProcess { pid, name, why: WhyUnseen::NoMemory });
    }
    let status = tree.text(&format!("{folder}/status")).unwrap_or_default();
    let ids = |name: &str| field(&status, name).and_then(|ids| ids.parse().ok()).unwrap_or_default();
    Ok(ProcessMemory {
        pid,
        name: name.unwrap_or_default(),
        memory,
        mappings,
        policies: policies(root, by_policy),
        allowed_cpus: ids("Cpus_allowed_list"),
        allowed_nodes: ids("Mems_allowed_list"),
        threads: field(&status, "Threads").and_then(|n| n.parse().ok()).unwrap_or(0),
        ..ProcessMemory::default()
    })
}

/// Makes the kernel forget which pages of a process were touched, so that a later [`read`] has those that were touched since. The kernel then knows
/// less of what it may swap out. It does not drop translations that CPUs have in their TLBs: pages that are used only by these stay untouched.
///
/// # Errors
/// When the process is somebody else's or is gone, or the kernel has no `clear_refs` (`CONFIG_PROC_PAGE_MONITOR`).
pub fn forget_touched(root: &Path, pid: u32) -> io::Result<()> {
    // 1: all pages (Documentation/filesystems/proc.rst).
    File::options().write(true).open(Tree::new(root).path(&format!("proc/{pid}/clear_refs")))?.write_all(b"1")
}

/// Transparent huge pages where the kernel does not state their size: that of x86-64, and of Arm with base pages of 4 KiB.
const TRANSPARENT: u64 = 2 << 20;

/// The node of all memory on a kernel without NUMA, or with one node.
fn only_node(tree: Tree<'_>) -> Option<u32> {
    let nodes = tree.numbered(NODE_DIR, "node");
    if nodes.len() > 1 { None } else { Some(nodes.first().unwrap_or(0)) }
}

/// Policies in words of numa_maps, as data, the one with most memory first.
fn policies(root: &Path, by_policy: BTreeMap<String, u64>) -> Vec<PolicyMemory> {
    let mut all: Vec<PolicyMemory> = Vec::new();
    for (words, present) in by_policy {
        let Some((mode, nodes, _)) = parse_policy(&words) else { continue };
        let weights = if mode == PolicyMode::WeightedInterleave { kernel_weights(root, &nodes) } else { None };
        all.push(PolicyMemory { policy: MemoryPolicy { mode, nodes, weights }, present: Bytes(present) });
    }
    all.sort_by_key(|policy| std::cmp::Reverse(policy.present));
    all
}

/// Whether the kernel moves pages and threads towards each other; `None` where it does not say.
pub fn numa_balancing(root: &Path) -> Option<bool> {
    Tree::new(root).parsed::<u32>("proc/sys/kernel/numa_balancing").map(|state| state != 0)
}

/// Memory by node that is free, or of the page cache, which gives way; none where the kernel does not say.
pub fn free_by_node(root: &Path) -> BTreeMap<u32, Bytes> {
    let tree = Tree::new(root);
    let free = |node: u32| {
        let meminfo = tree.text(&format!("{NODE_DIR}/node{node}/meminfo"))?;
        let of = |name: &str| kib_field(&meminfo, name);
        // Shared memory counts as file pages and gives way to nothing.
        let cache = of("FilePages").unwrap_or(0).saturating_sub(of("Shmem").unwrap_or(0));
        Some((node, Bytes(of("MemFree")?.saturating_add(cache))))
    };
    tree.numbered(NODE_DIR, "node").iter().filter_map(free).collect()
}

/// These processes and all that they, or processes that they started, have started and that have not ended, ascending.
pub fn with_children(root: &Path, first: &BTreeSet<u32>) -> BTreeSet<u32> {
    let tree = Tree::new(root);
    // A kernel without CONFIG_PROC_CHILDREN has no such lists.
    let listed = first.iter().any(|pid| tree.exists(&format!("proc/{pid}/task/{pid}/children")));
    let mut by_parent = if listed { BTreeMap::new() } else { all_children(tree) };
    let mut children = |pid: u32| -> Vec<u32> {
        if !listed {
            return by_parent.remove(&pid).unwrap_or_default();
        }
        let threads = tree.names(&format!("proc/{pid}/task"));
        let of = |thread: &String| tree.text(&format!("proc/{pid}/task/{thread}/children")).unwrap_or_default();
        threads.iter().flat_map(|thread| of(thread).split(' ').filter_map(|child| child.parse().ok()).collect::<Vec<u32>>()).collect()
    };
    let (mut found, mut next) = (first.clone(), Vec::from_iter(first.iter().copied()));
    while let Some(pid) = next.pop() {
        next.extend(children(pid).into_iter().filter(|child| found.insert(*child)));
    }
    found
}

/// The children of all processes.
fn all_children(tree: Tree<'_>) -> BTreeMap<u32, Vec<u32>> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in tree.names("proc").into_iter().filter_map(|name| name.parse::<u32>().ok()) {
        let Ok(stat) = read_text(&tree.path(&format!("proc/{pid}/stat"))) else { continue };
        // The parent is the second field after the name.
        let Some(parent) = stat_fields(&stat).and_then(|(_, mut fields)| fields.nth(1)?.parse().ok()) else { continue };
        children.entry(parent).or_default().push(pid);
    }
    children
}

/// The processes of a control group and of those below it. `path` is its folder, or its path below the mount point of control groups.
///
/// # Errors
/// In words, when there is no such group, or its processes cannot be seen.
pub fn of_cgroup(root: &Path, path: &Path) -> Result<BTreeSet<u32>, String> {
    let shown = path.display();
    let groups = || mount::read(Tree::new(root)).into_iter().filter(|mount| mount.kind == "cgroup2" || mount.kind == "cgroup");
    let below = groups().map(|mount| Tree::new(root).path(&mount.point).join(path.strip_prefix("/").unwrap_or(path)));
    let folder = [path.to_owned()].into_iter().chain(below).find(|folder| folder.join("cgroup.procs").is_file());
    let Some(folder) = folder else {
        let points: Vec<String> = groups().map(|mount| mount.point).collect();
        let points = if points.is_empty() { "none is mounted here".to_owned() } else { format!("they are below {}", points.join(", ")) };
        return Err(format!("{shown} is not a control group; {points}"));
    };
    let mut pids = BTreeSet::new();
    let mut hidden = 0;
    let mut folders: Vec<(PathBuf, usize)> = vec![(folder, 0)];
    while let Some((folder, depth)) = folders.pop() {
        // A group may go away meanwhile. Groups of threads have no list of processes.
        let text = read_text(&folder.join("cgroup.procs")).or_else(|error| if depth == 0 { Err(error) } else { Ok(String::new()) });
        let text = text.map_err(|error| format!("{shown}: its processes cannot be read: {}", explained(&error)))?;
        let (unnumbered, numbered): (Vec<u32>, Vec<u32>) =
            text.lines().filter_map(|line| line.trim().parse::<u32>().ok()).partition(|pid| *pid == 0);
        // Processes of another namespace have no number here.
        hidden += unnumbered.len();
        pids.extend(numbered);
        let inner = folder.read_dir().into_iter().flatten().flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(inner.map(|entry| (entry.path(), depth + 1)).filter(|(_, depth)| *depth < DEEPEST));
    }
    match (pids.is_empty(), hidden) {
        (false, _) => Ok(pids),
        (true, 0) => Err(format!("{shown} has no processes")),
        (true, _) => Err(format!("{shown} has processes of another container only, which have no numbers here: ask outside of it")),
    }
}

#[cfg(test)]
mod tests;
