//! A buffer, what was read back of it, and where it is in physical memory (`/proc/self/pagemap`, Documentation/admin-guide/mm/pagemap.rst).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memgauge_model::directory::{FileBacking, FileEvidence};
use memgauge_model::estimate::MemoryFault;
use memgauge_model::memory::MemoryError;
use memgauge_model::plan::BufferPlan;
use memgauge_model::result::{PageEvidence, PhysicalRange, Placement, PlacementMethod, PlacementStatus};

use super::error;
use super::map::{Backing, Mapping};
use super::placement::{self, Turns};
use crate::base_page;
use crate::faults::Fault;
use crate::security::{CAP_SYS_ADMIN, culprit, explained, has_capability};
use crate::tree::Tree;

/// Bits 0 to 54 of an entry: the page frame number, which is 0 for processes without CAP_SYS_ADMIN (since Linux 4.2).
const FRAME: u64 = (1 << 55) - 1;
/// Bit 63 of an entry: the page is in memory.
const PRESENT: u64 = 1 << 63;
/// Entries in one read: 256 KiB of them, for 128 MiB of memory in pages of 4 KiB.
const ENTRIES: usize = 32 << 10;

const PAGEMAP: &str = "/proc/self/pagemap";

/// Memory for a measurement, unmapped when dropped.
///
/// Every page is present and private, and no two have the same content, so that neither the kernel's shared zero page, nor a hypervisor that
/// merges equal pages, nor memory that compresses is what serves reads. The mapping is rounded up to whole pages of the kind that backs it, with a `PROT_NONE` page below and above. A loop that runs out of its
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
            method: Some(PlacementMethod::Mbind),
            pages_by_node: plan.nodes().iter().map(|node| (node, plan.bytes_on(node) / base_page() as u64)).collect(),
            ..Placement::default()
        };
        let turns = plan.weights.clone().map(|weights| Turns { weights, page: base_page() });
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

    /// The pages that back the buffer, read back after they were touched.
    pub fn pages(&self) -> &PageEvidence {
        &self.pages
    }

    /// The first that happened to its memory since it was allocated; whatever was read from it since then is worth nothing.
    pub fn fault(&self) -> Option<MemoryFault> {
        let (kind, Fault { offset, physical, .. }) = self.mapping.fault()?;
        Some(MemoryFault { kind, offset, physical, directory: self.file.as_ref().map(|file| file.path.clone()) })
    }

    /// The node of its pages, read back after they were touched.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The file behind the buffer; `None` for anonymous memory.
    pub fn file(&self) -> Option<&FileEvidence> {
        self.file.as_ref()
    }

    /// The same as [`placement_now`](Self::placement_now) for one of `buffers` that are read back together: fewer pages of each are looked up,
    /// so that all of them take little longer than one.
    pub fn placement_among(&self, buffers: usize) -> Placement {
        self.read_placement(placement::SAMPLE / buffers.max(1))
    }

    /// The node of its pages now. NUMA balancing, a tiering daemon or an administrator may have moved them since they were touched.
    pub fn placement_now(&self) -> Placement {
        self.read_placement(placement::SAMPLE)
    }

    fn read_placement(&self, pages: usize) -> Placement {
        if self.reserved || self.file.as_ref().is_some_and(|f| f.backing == FileBacking::Dax) {
            // A file stays where its file system put it, and what was only reserved is nowhere.
            return self.placement.clone();
        }
        if let Some(turns) = &self.turns {
            let now = turns.read_back(&self.mapping, self.backing, &placement::PROCESS, pages);
            // A sample at even distances meets some turns more often than others: the counts are those of all pages.
            let pages_by_node = self.placement.pages_by_node.clone();
            return if now.status == PlacementStatus::Verified {
                Placement { pages_by_node, method: self.placement.method, ..now }
            } else {
                now
            };
        }
        let now = placement::read_back(&self.mapping, self.backing, self.node, self.only_node, &placement::PROCESS, pages);
        Placement { method: self.placement.method, ..now }
    }

    /// The physical addresses of the buffer's pages, or the reason why they are unknown.
    pub fn physical(&self) -> PhysicalRange {
        if self.mapping.fault().is_some() {
            let reason = Some("pages of it were replaced after an error".to_owned());
            return PhysicalRange { reason, ..PhysicalRange::default() };
        }
        let map = File::open(PAGEMAP).map_err(|e| format!("{PAGEMAP}: {}", explained(&e)));
        map.and_then(|map| range(self.as_ptr() as u64, self.len(), base_page(), |at, to| map.read_exact_at(to, at)))
            .unwrap_or_else(|why| PhysicalRange { reason: Some(why), ..PhysicalRange::default() })
    }

    /// The physical address of the byte at `offset`; `None` when it is unknown.
    pub fn physical_address(&self, offset: usize) -> Option<u64> {
        let page = base_page();
        let at = (self.as_ptr() as usize).checked_add(offset).filter(|_| offset < self.len())?;
        let map = File::open(PAGEMAP).ok()?;
        let range = range((at / page * page) as u64, page, page, |at, to| map.read_exact_at(to, at)).ok()?;
        range.first.map(|first| first + (at % page) as u64)
    }

    /// The node of the page at `offset` now; `None` when the kernel does not tell.
    pub fn node_at(&self, offset: usize) -> Option<u32> {
        (offset < self.len()).then(|| placement::node_of(self.as_ptr().wrapping_add(offset / base_page() * base_page())))?
    }
}

/// Reads the entries of `len` bytes from `start`. `read(at, to)` reads the file. The error says in words why the addresses are unknown.
fn range(start: u64, len: usize, page: usize, mut read: impl FnMut(u64, &mut [u8]) -> io::Result<()>) -> Result<PhysicalRange, String> {
    let pages = len.div_ceil(page);
    let page = page as u64;
    let (mut first, mut low, mut high, mut contiguous) = (None, u64::MAX, 0, true);
    let mut bytes = vec![0; 8 * ENTRIES.min(pages)];
    let mut expected = None;
    for from in (0..pages).step_by(ENTRIES) {
        let bytes = &mut bytes[..8 * ENTRIES.min(pages - from)];
        read((start / page + from as u64) * 8, bytes).map_err(|e| format!("{PAGEMAP}: {e}"))?;
        for entry in bytes.as_chunks().0 {
            let entry = u64::from_ne_bytes(*entry);
            if entry & PRESENT == 0 {
                return Err("a page of it is not in memory".to_owned());
            }
            let frame = entry & FRAME;
            if frame == 0 {
                return Err(hidden(has_capability(Tree::new(Path::new("/")), CAP_SYS_ADMIN)));
            }
            let address = frame * page;
            first = first.or(Some(address));
            low = low.min(address);
            high = high.max(address + page);
            contiguous &= expected.is_none_or(|e| e == address);
            expected = Some(address + page);
        }
    }
    first.ok_or("it has no pages")?;
    Ok(PhysicalRange { first, low: Some(low), high: Some(high), contiguous: Some(contiguous), reason: None })
}

/// Why the kernel does not show page frames to a process that has the capability for that, or not.
fn hidden(capable: bool) -> String {
    let shown = "the kernel shows page frames only to processes with CAP_SYS_ADMIN";
    if capable { format!("{shown}, and this one has it: {}", culprit()) } else { shown.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    /// Reads a pagemap with these entries for the pages of a buffer, which begins at page 16.
    fn read(entries: &[u64]) -> Result<PhysicalRange, String> {
        range(16 * PAGE, entries.len() * PAGE as usize, PAGE as usize, |at, to| {
            assert_eq!(at % 8, 0);
            for (i, slot) in to.as_chunks_mut().0.iter_mut().enumerate() {
                *slot = entries[at as usize / 8 - 16 + i].to_ne_bytes();
            }
            Ok(())
        })
    }

    #[test]
    fn the_range_is_that_of_all_pages() {
        // Bit 55 (soft-dirty) and 56 (exclusively mapped) are not part of the frame.
        let dirty = PRESENT | 1 << 55 | 1 << 56;
        let found = read(&[dirty | 7, PRESENT | 3, PRESENT | 4]).unwrap();
        assert_eq!((found.first, found.low, found.high), (Some(7 * PAGE), Some(3 * PAGE), Some(8 * PAGE)));
        assert_eq!(found.contiguous, Some(false));
        assert_eq!(read(&[PRESENT | 3, PRESENT | 4]).unwrap().contiguous, Some(true));
    }

    #[test]
    fn more_entries_than_are_read_at_a_time() {
        let entries: Vec<u64> = (0..2 * ENTRIES as u64 + 5).map(|i| PRESENT | (100 + i)).collect();
        let found = read(&entries).unwrap();
        assert_eq!((found.low, found.high), (Some(100 * PAGE), Some((100 + entries.len() as u64) * PAGE)));
        assert_eq!(found.contiguous, Some(true));
    }

    #[test]
    fn hidden_frames_and_absent_pages_are_reported() {
        assert!(read(&[PRESENT]).unwrap_err().contains("CAP_SYS_ADMIN"));
        assert!(read(&[PRESENT | 3, 0]).unwrap_err().contains("not in memory"));
    }

    #[test]
    fn a_buffer_of_this_process_is_somewhere_or_says_why_not() {
        let plan = memgauge_model::plan::BufferPlan {
            touch: memgauge_model::units::IdSet::one(crate::cpu::current_cpu().unwrap()),
            ..memgauge_model::plan::BufferPlan::plain(
                memgauge_model::units::Bytes::mib(4),
                0,
                memgauge_model::experiment::PageRequest::Auto,
            )
        };
        let buffer = Buffer::allocate(&plan, std::path::Path::new("/")).unwrap();
        let range = buffer.physical();
        match (range.first, &range.reason) {
            (Some(first), None) => {
                assert_eq!(buffer.physical_address(5), Some(first + 5));
                assert!(buffer.node_at(5).is_none_or(|node| buffer.placement().pages_by_node.contains_key(&node)));
                assert!(range.low.unwrap() <= first && first < range.high.unwrap());
                assert!(range.high.unwrap() - range.low.unwrap() >= 4 << 20, "{range:?}");
            }
            (None, Some(_)) => assert_eq!(buffer.physical_address(5), None),
            other => panic!("{other:?}"),
        }
        assert_eq!(buffer.physical_address(4 << 20), None);
    }
}
