//! A buffer and what was read back of it.

use memgauge_core::directory::{FileBacking, FileEvidence};
use memgauge_core::result::{PageEvidence, Placement};

use super::map::{Backing, Mapping};
use super::place;

/// Memory for a measurement, unmapped when dropped.
///
/// Its content is zero until it is written, but every page is present and private: the kernel's shared zero page is not involved. The
/// mapping is rounded up to whole pages of the kind that backs it, with a `PROT_NONE` page below and above. A loop that runs out of its
/// buffer therefore faults instead of measuring a neighbour, and the kernel cannot merge the buffer with other mappings, so its entry in
/// smaps describes the buffer alone.
#[derive(Debug)]
pub struct Buffer {
    pub(super) mapping: Mapping,
    pub(super) len: usize,
    pub(super) pages: PageEvidence,
    pub(super) placement: Placement,
    pub(super) file: Option<FileEvidence>,
    pub(super) backing: Backing,
    pub(super) node: u32,
    /// The machine has no other node with memory.
    pub(super) only_node: bool,
}

impl Buffer {
    /// The first byte, aligned to the pages that back the buffer.
    pub fn as_ptr(&self) -> *mut u8 {
        self.mapping.data()
    }

    /// The size that was asked for, in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a buffer of no bytes cannot be allocated")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The pages that back the buffer, read back after they were touched.
    pub fn pages(&self) -> &PageEvidence {
        &self.pages
    }

    /// The node of its pages, read back after they were touched.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The file behind the buffer; `None` for anonymous memory.
    pub fn file(&self) -> Option<&FileEvidence> {
        self.file.as_ref()
    }

    /// The node of its pages now. NUMA balancing, a tiering daemon or an administrator may have moved them since they were touched.
    pub fn placement_now(&self) -> Placement {
        if self.file.as_ref().is_some_and(|f| f.backing == FileBacking::Dax) {
            // A file stays where its file system put it.
            return self.placement.clone();
        }
        let now = place::read_back(&self.mapping, self.backing, self.node, self.only_node, &place::PROCESS);
        Placement { method: self.placement.method.clone(), ..now }
    }
}
