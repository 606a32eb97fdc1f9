//! The state of a node, of its huge-page pools and of transparent huge pages, from sysfs.

use std::path::{Path, PathBuf};

use memgauge_model::topology::PagePool;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::words;
use memgauge_model::words::{Knob, Way, Ways};

use super::map::Backing;
use crate::base_page;
use crate::pools;
use crate::tree::{CPU_DIR, NODE_DIR, POOLS_DIR, Tree, field, kib_field};

/// The folder of the settings of transparent huge pages, below the root.
const THP_DIR: &str = "sys/kernel/mm/transparent_hugepage";

/// The state that affects one allocation, read just before it.
#[derive(Debug)]
pub(super) struct NodeState {
    pub(super) root: PathBuf,
    /// Whether this kernel describes memory nodes.
    numa: bool,
    /// CPUs of the node.
    pub(super) node_cpus: IdSet,
    /// Whether the node is the only one with memory.
    pub(super) only_node: bool,
    /// Memory nodes that this process may use, where the kernel says so.
    pub(super) mems_allowed: Option<IdSet>,
    /// The node's pools.
    pub(super) pools: Vec<PagePool>,
    /// Bytes free or reclaimable on the node; `None` when the kernel does not say.
    pub(super) room: Option<u64>,
    /// Bytes free on the node; `None` when the kernel does not say.
    pub(super) free: Option<u64>,
    /// Transparent huge pages as a backing, or in words why there are none.
    pub(super) thp: Result<Backing, String>,
    /// The setting of transparent huge pages.
    pub(super) thp_setting: String,
    /// Base page in bytes.
    pub(super) base_page: usize,
    /// Huge page that page tables can map, in bytes.
    pub(super) huge_page: usize,
}

impl NodeState {
    /// Whether the kernel says now that this process may use memory of `node`, and that there is any.
    pub(super) fn still_allows(&self, node: u32) -> bool {
        let allows = |now: Self| now.mems_allowed.is_some_and(|nodes| nodes.contains(node));
        let has_memory = || Tree::new(&self.root).ids(&format!("{NODE_DIR}/has_memory")).is_none_or(|nodes| nodes.contains(node));
        Self::read(&self.root, node).is_ok_and(allows) && has_memory()
    }

    /// Reads what affects an allocation on `node`. The error has the nodes that are online, when `node` is not among them.
    pub(super) fn read(root: &Path, node: u32) -> Result<Self, IdSet> {
        let tree = Tree::new(root);
        let list = |file: &str| tree.ids(&format!("{NODE_DIR}/{file}"));
        let online = list("online");
        // A kernel without NUMA has one node, called 0.
        if !online.as_ref().map_or(node == 0, |ids| ids.contains(node)) {
            return Err(online.unwrap_or_else(|| IdSet::one(0)));
        }
        let node_cpus = list(&format!("node{node}/cpulist")).or_else(|| tree.ids(&format!("{CPU_DIR}/online")));
        let status = Tree::new(Path::new("/")).text("proc/self/status").unwrap_or_default();
        let mems = field(&status, "Mems_allowed_list");
        let (thp, thp_setting) = thp(root);
        let meminfo = tree.text(&format!("{NODE_DIR}/node{node}/meminfo"));
        let mut state = Self {
            numa: online.is_some(),
            node_cpus: node_cpus.unwrap_or_default(),
            only_node: list("has_memory").or(online).is_none_or(|ids| ids == IdSet::one(node)),
            mems_allowed: mems.and_then(|m| m.parse().ok()),
            pools: Vec::new(),
            room: meminfo.as_deref().and_then(room),
            free: meminfo.as_deref().and_then(|meminfo| kib_field(meminfo, "MemFree")),
            thp: thp.map(Backing::Thp),
            thp_setting,
            base_page: base_page(),
            huge_page: huge_page(tree) as usize,
            root: root.to_owned(),
        };
        state.pools = pools::pools(tree, &state.pool_folder(node));
        Ok(state)
    }

    /// Whether the pool of `page` bytes on the node has `len` bytes free, or in words why not.
    pub(super) fn pool_for(&self, node: u32, page: u64, len: usize) -> Result<(), String> {
        let needed = (len as u64).div_ceil(page);
        match self.pools.iter().find(|p| p.page.0 == page) {
            None => Err(format!("this kernel has no pool of {} pages", Bytes(page))),
            Some(pool) if self.usable(pool) < needed => Err(format!(
                "node {node}'s pool of {} pages has {} free of {}, and {needed} are needed",
                pool.page,
                self.usable(pool),
                pool.total
            )),
            Some(_) => Ok(()),
        }
    }

    /// Pages of the pool that can be taken.
    pub(super) fn usable(&self, pool: &PagePool) -> u64 {
        pools::usable(Tree::new(&self.root), pool)
    }

    /// The file that sets the size of the node's pool of `page` bytes.
    pub(super) fn pool_file(&self, node: u32, page: u64) -> PathBuf {
        self.root.join(self.pool_folder(node)).join(pools::folder_name(Bytes(page))).join("nr_hugepages")
    }

    fn pool_folder(&self, node: u32) -> String {
        if self.numa { format!("{NODE_DIR}/node{node}/hugepages") } else { POOLS_DIR.to_owned() }
    }
}

/// Free and reclaimable bytes by a node's meminfo: free pages, the page cache on disk-backed files, and slabs that can shrink.
pub(super) fn room(meminfo: &str) -> Option<u64> {
    let reclaimable: u64 = ["Active(file)", "Inactive(file)", "SReclaimable"].iter().filter_map(|name| kib_field(meminfo, name)).sum();
    kib_field(meminfo, "MemFree").map(|free| free.saturating_add(reclaimable))
}

/// Size of the huge page that one entry of the page tables' second level maps.
fn huge_page(tree: Tree<'_>) -> u64 {
    // Kernels without transparent huge pages do not have the file. On x86-64, and elsewhere with base pages of 4 KiB, the size is 2 MiB.
    tree.parsed::<u64>(&format!("{THP_DIR}/hpage_pmd_size")).filter(|p| p.is_power_of_two()).unwrap_or(2 << 20)
}

/// The file that switches transparent huge pages on and off, below the root.
pub(crate) const THP_SWITCH: &str = "sys/kernel/mm/transparent_hugepage/enabled";

/// The file that switches transparent huge pages off here; `None` where none does.
pub(super) fn thp_switched_off_by(tree: Tree<'_>) -> Option<String> {
    let own = format!("{THP_DIR}/{}/enabled", pools::folder_name(Bytes(huge_page(tree))));
    match tree.chosen(&own).as_deref() {
        Some("never") => Some(own),
        Some(other) if other != "inherit" => None,
        _ => (tree.chosen(THP_SWITCH)? == "never").then(|| THP_SWITCH.to_owned()),
    }
}

/// The bytes of a transparent huge page that madvise can get, or why there are none; and the current setting.
pub(super) fn thp(root: &Path) -> (Result<usize, String>, String) {
    let tree = Tree::new(root);
    let Some(global) = tree.chosen(THP_SWITCH) else {
        return (Err("this kernel has no transparent huge pages".to_owned()), "absent".to_owned());
    };
    let page = huge_page(tree);
    // Since Linux 6.8 each size has its own setting; `inherit` follows the global one.
    let setting = match tree.chosen(&format!("{THP_DIR}/{}/enabled", pools::folder_name(Bytes(page)))) {
        Some(own) if own != "inherit" => own,
        _ => global,
    };
    if setting == "never" {
        return (Err(format!("transparent huge pages of {} are off ('never')", Bytes(page))), setting);
    }
    if live_thp_disabled() == Some(true) {
        let why = "transparent huge pages are disabled for this process (PR_SET_THP_DISABLE of what started it)";
        return (Err(why.to_owned()), setting);
    }
    (Ok(page as usize), setting)
}

/// Advice if the program that started this process has disabled transparent huge pages for it. No setting of the kernel helps then.
pub(crate) fn thp_disabled_advice() -> Ways {
    let start = "start it from a program that leaves them on (systemd: MemoryTHP= of the service, containers: the runtime's setting)";
    Way::from(start).or(words!["take pages of a pool with ", Knob::Pages, " 2m"])
}

/// Whether transparent huge pages are disabled for this process, or the one that recorded the machine; `None` where nothing says.
pub(crate) fn thp_disabled(tree: Tree<'_>) -> Option<bool> {
    if tree.is_live() {
        return live_thp_disabled();
    }
    // Since Linux 5.0.
    field(&tree.text("proc/self/status")?, "THP_enabled").map(|enabled| enabled == "0")
}

fn live_thp_disabled() -> Option<bool> {
    // SAFETY: PR_GET_THP_DISABLE only reads a flag of the process. Its other arguments must be zero, and are.
    let disabled = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) };
    // Since Linux 6.18, 3 means that advised memory, such as memgauge's, still gets them.
    (disabled >= 0).then_some(disabled == 1)
}
