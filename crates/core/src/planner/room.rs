//! How much memory one buffer of a cell may take, and what limits it.

use crate::directory::MemoryDir;
use crate::experiment::PageRequest;
use crate::plan::BufferPlan;
use crate::spec::{Spec, Task};
use crate::topology::Node;

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

    /// The pages for a buffer of this size, where no pages were asked for.
    pub(super) fn pages(&self, bytes: u64) -> PageRequest {
        self.pool.filter(|_| bytes > self.bytes).map_or(PageRequest::Auto, |(pages, _)| pages)
    }

    /// The most bytes, in a pool or not.
    pub(super) fn most(&self) -> u64 {
        self.pool.map_or(0, |(_, bytes)| bytes).max(self.bytes)
    }
}

/// What other buffers of a cell take.
#[derive(Clone, Copy)]
pub(super) enum Reserved<'a> {
    /// So much, of any node.
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
        PageRequest::Auto if spec.task != Task::Quick => {
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
