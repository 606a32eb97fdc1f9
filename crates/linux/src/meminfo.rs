//! The kernel's `meminfo` files: the memory of the machine, and of a node.

use crate::tree::{NODE_DIR, Tree, kib_field};

/// The path of the machine's file, below the root.
pub(crate) const SYSTEM: &str = "proc/meminfo";

/// The path of a node's file, below the root.
pub(crate) fn of_node(id: u32) -> String {
    format!("{NODE_DIR}/node{id}/meminfo")
}

/// The text of `/proc/meminfo`. If the running machine hides it, the values of `sysinfo(2)` in the same form; `None` for a recording
/// without it.
pub(crate) fn system(tree: Tree<'_>) -> Option<String> {
    let text = tree.text(SYSTEM).filter(|text| kib_field(text, "MemTotal").is_some());
    text.or_else(|| tree.is_live().then(asked))
}

fn asked() -> String {
    let found = rustix::system::sysinfo();
    // The kernel's type for these depends on the width of a word.
    let kib = |units: u64| units.saturating_mul(u64::from(found.mem_unit).max(1)) >> 10;
    #[allow(clippy::useless_conversion)]
    let (total, free, buffers) = (kib(found.totalram.into()), kib(found.freeram.into()), kib(found.bufferram.into()));
    // Page cache is not stated, so this is less than the kernel's own figure of what is available.
    format!("MemTotal: {total} kB\nMemFree: {free} kB\nMemAvailable: {} kB\n", free.saturating_add(buffers))
}

/// The text about a node's memory: its own, or that of the machine where it is the only node.
pub(crate) fn text_of_node(tree: Tree<'_>, id: u32, only: bool) -> Option<String> {
    let own = tree.text(&of_node(id)).filter(|text| kib_field(text, "MemTotal").is_some());
    own.or_else(|| system(tree).filter(|_| only))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_kernel_says_by_a_call_what_its_file_says() {
        let file = Tree::new(Path::new("/")).text(SYSTEM).unwrap();
        let total = |text: &str| kib_field(text, "MemTotal").unwrap() as f64;
        let asked = asked();
        assert!((total(&asked) / total(&file) - 1.0).abs() < 0.01, "{asked}");
        assert!(kib_field(&asked, "MemFree") <= kib_field(&asked, "MemAvailable"), "{asked}");
    }
}
