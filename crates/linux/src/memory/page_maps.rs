//! The kernel's description of the pages in a range of addresses: `/proc/self/smaps`, `/proc/self/numa_maps` and the page tables.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead};
use std::os::fd::AsRawFd;

/// `_IOWR('f', 16, struct pm_scan_arg)` of linux/fs.h.
const PAGEMAP_SCAN: u32 = 0xc060_6610;
/// `PAGE_IS_PRESENT`.
const PRESENT: u64 = 1 << 3;
/// `PAGE_IS_HUGE`.
const HUGE: u64 = 1 << 6;
/// Ranges returned by one call. Neighbouring pages of the same kind are one range.
const RANGES: usize = 256;

/// The bytes of a range by the kind of page that backs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PageCounts {
    /// Bytes of the range that mappings cover.
    pub(super) mapped: u64,
    /// Resident, without pool pages.
    pub(super) resident: u64,
    /// In transparent huge pages mapped as such.
    pub(super) thp: u64,
    /// In huge pages of a file, mapped as such.
    pub(super) file_huge: u64,
    /// In pages of a pool.
    pub(super) pool: u64,
    /// Page size of the mapping; that of the pool for pool pages.
    pub(super) page: u64,
}

impl PageCounts {
    /// `bytes` as a share of the range.
    pub(super) fn share(&self, bytes: u64) -> f64 {
        bytes as f64 / self.mapped.max(1) as f64
    }
    /// The share in transparent huge pages.
    pub(super) fn thp_share(&self) -> f64 {
        self.share(self.thp)
    }
}

/// Adds up the smaps entries between `start` and `end`. Entries are in ascending order, and reading stops behind the range.
/// The error says in words why they do not describe the range alone and in full.
pub(super) fn smaps(text: impl BufRead, start: u64, end: u64) -> Result<PageCounts, String> {
    let mut counts = PageCounts::default();
    let mut inside = false;
    for line in text.lines() {
        let line = line.map_err(|e| format!("/proc/self/smaps cannot be read: {e}"))?;
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or("");
        if let Some((low, high)) = range(first) {
            if low >= end {
                break;
            }
            inside = high > start;
            if inside && (low < start || high > end) {
                return Err("the kernel merged the buffer's mapping with another, so smaps does not describe it alone".to_owned());
            }
            counts.mapped += if inside { high - low } else { 0 };
        } else if inside && let Some(bytes) = words.next().and_then(|n| n.parse::<u64>().ok()).map(|kib| kib << 10) {
            match first {
                "Rss:" => counts.resident += bytes,
                "AnonHugePages:" => counts.thp += bytes,
                "ShmemPmdMapped:" | "FilePmdMapped:" => counts.file_huge += bytes,
                "Private_Hugetlb:" | "Shared_Hugetlb:" => counts.pool += bytes,
                "KernelPageSize:" => counts.page = bytes,
                _ => {}
            }
        }
    }
    if counts.mapped == end - start { Ok(counts) } else { Err("smaps does not show the buffer's mapping".to_owned()) }
}

/// Pages by node between `start` and `end`, from the text of numa_maps; `None` when it has no line for the range.
pub(super) fn numa_maps(text: impl BufRead, start: u64, end: u64) -> Option<BTreeMap<u32, u64>> {
    let mut pages = BTreeMap::new();
    let mut found = false;
    for line in text.lines() {
        let line = line.ok()?;
        let mut words = line.split_ascii_whitespace();
        match words.next().and_then(|w| u64::from_str_radix(w, 16).ok()) {
            Some(address) if (start..end).contains(&address) => found = true,
            Some(address) if address >= end => break,
            _ => continue,
        }
        // The policy comes next; it may name nodes too, as in "bind:0", but never as N0=.
        for (node, count) in words.filter_map(|w| w.strip_prefix('N')?.split_once('=')) {
            if let (Ok(node), Ok(count)) = (node.parse::<u32>(), count.parse::<u64>()) {
                *pages.entry(node).or_insert(0) += count;
            }
        }
    }
    found.then_some(pages)
}

/// The addresses in an entry's first word, such as `7f0000000000-7f0000200000`.
fn range(word: &str) -> Option<(u64, u64)> {
    let (low, high) = word.split_once('-')?;
    Some((u64::from_str_radix(low, 16).ok()?, u64::from_str_radix(high, 16).ok()?))
}

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    ranges: u64,
    ranges_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Range {
    start: u64,
    end: u64,
    categories: u64,
}

/// Bytes of a mapping by the state of their pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PresentBytes {
    /// Present in the page tables.
    pub(super) present: u64,
    /// Of these, in huge pages.
    pub(super) huge: u64,
}

/// Reads the page tables between `start` and `end` (`PAGEMAP_SCAN`, Linux 6.7). This is needed for pages of a device, which smaps counts partly
/// or not at all, depending on the kernel.
pub(super) fn read_present(mut start: u64, end: u64) -> Result<PresentBytes, String> {
    let refused = |e: io::Error| {
        let why = match e.raw_os_error() {
            Some(libc::ENOTTY) => "this kernel is older than Linux 6.7, which has PAGEMAP_SCAN".to_owned(),
            _ => format!("PAGEMAP_SCAN: {e}"),
        };
        format!("smaps does not show pages of a device, and the page tables cannot be read: {why}")
    };
    let pagemap = File::open("/proc/self/pagemap").map_err(refused)?;
    let mut ranges = [Range::default(); RANGES];
    let mut found = PresentBytes::default();
    while start < end {
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            start,
            end,
            ranges: ranges.as_mut_ptr() as usize as u64,
            ranges_len: RANGES as u64,
            category_mask: PRESENT,
            return_mask: PRESENT | HUGE,
            ..Scan::default()
        };
        // SAFETY: `scan` is the structure that this request takes. It points to `ranges` and states their number; the kernel writes nothing
        // else.
        let count = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN as _, &raw mut scan) };
        let count = usize::try_from(count).map_err(|_| refused(io::Error::last_os_error()))?;
        for range in &ranges[..count.min(RANGES)] {
            let bytes = range.end.saturating_sub(range.start);
            found.present += bytes;
            found.huge += if range.categories & HUGE != 0 { bytes } else { 0 };
        }
        if scan.walk_end <= start {
            return Err(refused(io::ErrorKind::UnexpectedEof.into()));
        }
        start = scan.walk_end;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base_page;
    use crate::memory::map::{Backing, Mapping};
    use crate::memory::touch;
    use memgauge_model::units::IdSet;
    use memgauge_testing::{not_tested, not_tested_in_part};

    fn present(mapping: &Mapping) -> Result<PresentBytes, String> {
        let (start, end) = mapping.range();
        read_present(start, end)
    }

    #[test]
    fn what_is_present_is_what_was_touched() {
        let mut mapping = Mapping::new(8 << 20, Backing::Base(base_page())).unwrap();
        let before = match present(&mapping) {
            Ok(found) => found,
            Err(why) => not_tested!("{why}"),
        };
        assert_eq!(before, PresentBytes::default());
        // Every other page: more ranges than one call returns.
        for page in (0..8 << 20).step_by(2 * base_page()) {
            // SAFETY: a byte of the test's own mapping.
            unsafe { mapping.data().add(page).write_volatile(0) };
        }
        assert_eq!(present(&mapping), Ok(PresentBytes { present: 4 << 20, huge: 0 }));
        touch::populate(&mut mapping, Backing::Base(base_page()), &IdSet::one(0), false, &|| false).unwrap();
        assert_eq!(present(&mapping), Ok(PresentBytes { present: 8 << 20, huge: 0 }));
    }

    #[test]
    fn huge_pages_are_counted() {
        let page = 2 << 20;
        let mut mapping = Mapping::new(4 * page, Backing::Thp(page)).unwrap();
        touch::populate(&mut mapping, Backing::Thp(page), &IdSet::one(0), false, &|| false).unwrap();
        match (present(&mapping), mapping.read_pages()) {
            (Ok(found), Ok(backed)) => assert_eq!((found.present, found.huge), (backed.resident, backed.thp)),
            (Err(why), _) | (_, Err(why)) => not_tested_in_part!("{why}"),
        }
    }
}
