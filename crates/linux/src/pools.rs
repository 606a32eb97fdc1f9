//! Pools of huge pages, of a node or of the whole machine.

use memgauge_model::topology::PagePool;
use memgauge_model::units::Bytes;

use crate::tree::{POOLS_DIR, Tree};

/// The pools in a folder with entries such as `hugepages-2048kB`, smallest pages first.
pub(crate) fn pools(tree: Tree<'_>, folder: &str) -> Vec<PagePool> {
    let read = |name: &String| {
        let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let page = Bytes(kib.checked_mul(1024).filter(|&n| n > 0)?);
        let count = |file: &str| tree.parsed(&format!("{folder}/{name}/{file}"));
        Some(PagePool { page, total: count("nr_hugepages")?, free: count("free_hugepages")? })
    };
    let mut pools: Vec<PagePool> = tree.names(folder).iter().filter_map(read).collect();
    pools.sort_by_key(|pool| pool.page);
    pools
}

/// How sysfs calls the folder of pages of this size, of pools and of transparent huge pages.
pub(crate) fn folder_name(page: Bytes) -> String {
    format!("hugepages-{}kB", page.0 >> 10)
}

/// Pages of a node's pool that can be taken: those free on the node, less what other mappings have reserved. The kernel counts reservations
/// for the whole machine only.
pub(crate) fn usable(tree: Tree<'_>, pool: &PagePool) -> u64 {
    let count = |file: &str| tree.parsed::<u64>(&format!("{POOLS_DIR}/{}/{file}", folder_name(pool.page)));
    match (count("free_hugepages"), count("resv_hugepages")) {
        (Some(free), Some(reserved)) => pool.free.min(free.saturating_sub(reserved)),
        _ => pool.free,
    }
}
