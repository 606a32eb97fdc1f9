//! Reads `/proc/self/smaps` and `/proc/self/numa_maps` for a range of addresses.

use std::collections::BTreeMap;
use std::io::BufRead;

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
///
/// # Errors
/// In words, when the text cannot be read, when it does not cover the range, or when a mapping reaches beyond it.
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
