//! A buffer, and what was read back of it.

use memgauge_model::directory::{FileBacking, FileEvidence};
use memgauge_model::estimate::MemoryFault;
use memgauge_model::memory::MemoryError;
use memgauge_model::plan::BufferPlan;
use memgauge_model::result::{PageEvidence, PhysicalRange, Placement, PlacementMethod, PlacementStatus};

use super::error;
use super::map::{Backing, Mapping, base_page};
use super::placement;
use super::turns::Turns;
use crate::faults::Fault;

/// Memory for a measurement, given back when dropped.
///
/// Every page is present and private, and no two have the same content, so that neither Windows nor a hypervisor that merges equal pages,
/// nor memory that compresses, is what serves reads. The memory is rounded up to whole pages of the kind that backs it, with 64 KiB of
/// reserved addresses below and above. A loop that runs out of its buffer therefore faults instead of measuring a neighbour.
#[derive(Debug)]
pub struct Buffer {
    pub(super) mapping: Mapping,
    pub(super) len: usize,
    pub(super) pages: PageEvidence,
    pub(super) placement: Placement,
    pub(super) file: Option<FileEvidence>,
    pub(super) backing: Backing,
    pub(super) node: u32,
    /// The machine has no other node.
    pub(super) only_node: bool,
    /// It is address space without memory.
    pub(super) reserved: bool,
    /// Its pages are on several nodes in turn.
    pub(super) turns: Option<Turns>,
}

impl Buffer {
    /// Address space that no thread may touch, which says of itself what a model of a machine says: these pages, all of them on the plan's
    /// node.
    ///
    /// # Errors
    /// When there is not enough address space.
    pub fn reserve(plan: &BufferPlan, pages: PageEvidence) -> Result<Self, MemoryError> {
        let (len, backing) = (plan.bytes.0 as usize, Backing::Base(base_page()));
        let mapping = Mapping::reserve(len).map_err(|e| error::mapping(plan, backing, &e))?;
        let placement = Placement {
            status: PlacementStatus::Verified,
            method: Some(PlacementMethod::VirtualAllocNuma),
            pages_by_node: plan.nodes().iter().map(|node| (node, plan.bytes_on(node) / base_page() as u64)).collect(),
            ..Placement::default()
        };
        let turns = plan.weights.clone().map(|weights| Turns { weights, page: backing.turn(len) });
        Ok(Self { mapping, len, pages, placement, file: None, backing, node: plan.node, only_node: false, reserved: true, turns })
    }

    /// The node that it was meant for.
    pub const fn node(&self) -> u32 {
        self.node
    }

    /// The nodes that its pages are meant for, with the share of each.
    pub fn shares(&self) -> Vec<(u32, f64)> {
        let weights = self.turns.as_ref().map(|turns| &turns.weights);
        weights.map_or_else(|| vec![(self.node, 1.0)], |weights| weights.iter().map(|(node, _)| (node, weights.share(node))).collect())
    }

    /// The first byte, aligned to the pages that back the buffer.
    pub fn as_ptr(&self) -> *mut u8 {
        self.mapping.data()
    }

    /// The size that was asked for, in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a buffer of no bytes cannot be allocated")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The pages that back the buffer, read back after they were touched (`QueryWorkingSetEx`).
    pub fn pages(&self) -> &PageEvidence {
        &self.pages
    }

    /// The first fault in its memory since it was allocated; data read from it since then is worthless.
    pub fn fault(&self) -> Option<MemoryFault> {
        let (kind, Fault { offset, .. }) = self.mapping.fault()?;
        Some(MemoryFault { kind, offset, physical: None, directory: self.file.as_ref().map(|file| file.path.clone()) })
    }

    /// The node of its pages, read back after they were touched.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The file behind the buffer; `None` for memory without a file.
    pub fn file(&self) -> Option<&FileEvidence> {
        self.file.as_ref()
    }

    /// The same as [`placement_now`](Self::placement_now) for one of `buffers` that are read back together: fewer pages of each are looked
    /// up, so that all of them take little longer than one.
    pub fn placement_among(&self, buffers: usize) -> Placement {
        self.read_placement(placement::SAMPLE / buffers.max(1))
    }

    /// The node of its pages now. Windows may have taken pages out of memory and put them elsewhere since they were touched.
    pub fn placement_now(&self) -> Placement {
        self.read_placement(placement::SAMPLE)
    }

    fn read_placement(&self, pages: usize) -> Placement {
        if self.reserved || self.file.as_ref().is_some_and(|f| f.backing == FileBacking::Dax) {
            // A file stays where its file system put it, and what was only reserved is nowhere.
            return self.placement.clone();
        }
        let now = match &self.turns {
            Some(turns) => turns.read_back(&self.mapping, self.backing, pages),
            None => placement::read_back(&self.mapping, self.backing, self.node, self.only_node, pages),
        };
        let method = self.placement.method;
        if self.turns.is_some() && now.status == PlacementStatus::Verified {
            // A sample at even distances meets some turns more often than others: the counts are those of all pages.
            return Placement { pages_by_node: self.placement.pages_by_node.clone(), method, ..now };
        }
        Placement { method, ..now }
    }

    /// The physical addresses of the buffer's pages: unknown, with the reason.
    pub fn physical(&self) -> PhysicalRange {
        let reason = Some("Windows shows physical addresses to drivers only".to_owned());
        PhysicalRange { reason, ..PhysicalRange::default() }
    }

    /// The physical address of the byte at `offset`; always `None`, because Windows shows it to drivers only.
    pub fn physical_address(&self, _offset: usize) -> Option<u64> {
        None
    }

    /// The node of the page at `offset` now (`QueryWorkingSetEx`); `None` when Windows does not tell.
    pub fn node_at(&self, offset: usize) -> Option<u32> {
        (offset < self.len()).then(|| placement::node_of(self.as_ptr().wrapping_add(offset / base_page() * base_page())))?
    }
}
