//! How much memory one buffer of a cell may take, and what limits it.

use memgauge_model::directory::MemoryDir;
use memgauge_model::experiment::PageRequest;
use memgauge_model::interleave::Weights;
use memgauge_model::plan::BufferPlan;
use memgauge_model::policy::PolicyMode;
use memgauge_model::spec::{Spec, Task};
use memgauge_model::topology::{Allowed, Node};
use memgauge_model::units::Bytes;

/// The memory that one buffer may use.
pub(super) struct Room {
    pub(super) bytes: u64,
    /// The place that has no more: `node 1`, or a directory.
    pub(super) place: String,
    /// The name of the limit, such as `free memory of node 1`.
    pub(super) limited_by: String,
    /// Pages of a pool that hold more than this, and how many bytes each of the buffers may have of them.
    pub(super) pool: Option<(PageRequest, u64)>,
}

impl Room {
    pub(super) fn in_directory(dir: &MemoryDir, bytes: u64) -> Self {
        Self { bytes, place: dir.file.path.clone(), limited_by: dir.limited_by(), pool: None }
    }

    /// The pages for a buffer of this size, if no pages were asked for.
    pub(super) fn pages(&self, bytes: u64) -> PageRequest {
        self.pool.filter(|_| bytes > self.bytes).map_or(PageRequest::Auto, |(pages, _)| pages)
    }

    /// The most bytes, in a pool or not.
    pub(super) fn most(&self) -> u64 {
        self.pool.map_or(0, |(_, bytes)| bytes).max(self.bytes)
    }
}

/// The memory that other buffers of a cell take.
#[derive(Clone, Copy)]
pub(super) enum Reserved<'a> {
    /// This many bytes, of any node.
    Bytes(u64),
    /// This buffer, of the nodes that it is on.
    Buffer(&'a BufferPlan),
}

impl Reserved<'_> {
    pub(super) const fn in_all(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Buffer(buffer) => buffer.bytes.0,
        }
    }

    pub(super) fn on(self, node: u32) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Buffer(buffer) => buffer.bytes_on(node),
        }
    }
}

/// Free bytes of the node's pool that buffers may come from.
pub(super) fn pool_room(node: &Node, spec: &Spec) -> u64 {
    match spec.pages {
        PageRequest::Auto if !matches!(spec.task, Task::Quick(_)) => {
            [PageRequest::Huge2M, PageRequest::Huge1G].into_iter().map(|pages| pool_bytes(node, pages)).max().unwrap_or(0)
        }
        pages => pool_bytes(node, pages),
    }
}

/// Free bytes of a node's pool that these pages come from.
pub(super) fn pool_bytes(node: &Node, pages: PageRequest) -> u64 {
    let Some(page) = pages.pool_page() else { return 0 };
    node.pools.iter().filter(|pool| pool.page == page).map(|pool| pool.free * page.0).sum()
}

/// The most bytes of memory whose pages are on nodes in turn with these weights, and the node that limits it.
pub(super) fn in_turn(allowed: &Allowed, weights: &Weights) -> Option<(Bytes, u32)> {
    let most = |(node, _)| Some((Bytes((allowed.node_memory.get(&node)?.0 as f64 / weights.share(node)) as u64), node));
    weights.iter().filter_map(most).min()
}

/// The most bytes that the inherited policy gives to memory which nothing else places, and what limits them, in words; `None` if it may
/// be on every node.
pub(super) fn under_policy(allowed: &Allowed) -> Option<(Bytes, String)> {
    let policy = allowed.inherited_policy()?;
    if let Some((bytes, node)) = policy.turns(&allowed.nodes).and_then(|weights| in_turn(allowed, &weights)) {
        return Some((bytes, allowed.limit_of_node(node)));
    }
    let nodes = policy.nodes.intersection(&allowed.nodes);
    if policy.mode != PolicyMode::Bind || nodes == allowed.nodes || nodes.is_empty() {
        return None;
    }
    let bytes = nodes.iter().filter_map(|node| allowed.node_memory.get(&node)).fold(0u64, |sum, room| sum.saturating_add(room.0));
    let limit = match nodes.first() {
        Some(node) if nodes.len() == 1 => allowed.limit_of_node(node),
        _ => format!("free memory of nodes {nodes}, which the inherited memory policy names"),
    };
    Some((Bytes(bytes), limit))
}

#[cfg(test)]
mod tests {
    use memgauge_model::policy::MemoryPolicy;

    use super::*;

    #[test]
    fn room_is_that_of_the_policys_nodes() {
        let allowed = |policy: MemoryPolicy| Allowed {
            nodes: "0-2".parse().unwrap(),
            node_memory: [(0, Bytes::gib(8)), (1, Bytes::gib(4)), (2, Bytes::gib(1))].into(),
            memory_policy: Some(policy),
            ..Allowed::default()
        };
        let room = |mode, nodes: &str| {
            under_policy(&allowed(MemoryPolicy { mode, nodes: nodes.parse().unwrap(), weights: None })).map(|(bytes, _)| bytes)
        };
        assert_eq!(room(PolicyMode::Bind, "2"), Some(Bytes::gib(1)));
        assert_eq!(room(PolicyMode::Bind, "1-2"), Some(Bytes::gib(5)));
        assert_eq!(room(PolicyMode::Interleave, "0-1"), Some(Bytes::gib(8)), "each has half");
        assert_eq!(room(PolicyMode::Preferred, "2"), None, "others have the rest");
        assert_eq!(room(PolicyMode::Bind, "0-2"), None);
        assert_eq!(room(PolicyMode::Default, ""), None);
    }
}
