//! Which pages of a mapping are present and which of them are huge, from the page tables (`PAGEMAP_SCAN`, Linux 6.7). For pages of a
//! device: smaps counts them on some kernels, partly or not at all.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::map::Mapping;

/// `_IOWR('f', 16, struct pm_scan_arg)` of linux/fs.h.
const PAGEMAP_SCAN: u32 = 0xc060_6610;
/// `PAGE_IS_PRESENT`.
const PRESENT: u64 = 1 << 3;
/// `PAGE_IS_HUGE`.
const HUGE: u64 = 1 << 6;
/// Ranges per call; neighbours of the same kind are one range.
const RANGES: usize = 256;

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

/// Bytes of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Found {
    /// In the page tables.
    pub(super) present: u64,
    /// Of these, in huge pages.
    pub(super) huge: u64,
}

/// Looks through the page tables of `mapping`.
///
/// # Errors
/// In words, when this kernel cannot.
pub(super) fn present(mapping: &Mapping) -> Result<Found, String> {
    let refused = |e: io::Error| {
        let why = match e.raw_os_error() {
            Some(libc::ENOTTY) => "this kernel is older than Linux 6.7, which has PAGEMAP_SCAN".to_owned(),
            _ => format!("PAGEMAP_SCAN: {e}"),
        };
        format!("pages of a device are not in smaps, and page tables cannot be looked through: {why}")
    };
    let pagemap = File::open("/proc/self/pagemap").map_err(refused)?;
    let mut ranges = [Range::default(); RANGES];
    let mut found = Found::default();
    let mut start = mapping.data() as usize as u64;
    let end = start + mapping.len() as u64;
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
        // SAFETY: the structure is the one that this request takes, and points to as many ranges as it says; nothing else is written.
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
    use crate::memory::Backing;
    use crate::memory::map::base_page;
    use crate::memory::touch;
    use memgauge_core::units::IdSet;

    #[test]
    fn what_is_present_is_what_was_touched() {
        let mut mapping = Mapping::new(8 << 20, Backing::Base(base_page())).unwrap();
        let before = match present(&mapping) {
            Ok(found) => found,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        assert_eq!(before, Found::default());
        // Every other page: more ranges than one call returns.
        for page in (0..8 << 20).step_by(2 * base_page()) {
            // SAFETY: a byte of the test's own mapping.
            unsafe { mapping.data().add(page).write_volatile(0) };
        }
        assert_eq!(present(&mapping), Ok(Found { present: 4 << 20, huge: 0 }));
        touch::populate(&mut mapping, Backing::Base(base_page()), &IdSet::one(0), false).unwrap();
        assert_eq!(present(&mapping), Ok(Found { present: 8 << 20, huge: 0 }));
    }

    #[test]
    fn huge_pages_are_told() {
        let page = 2 << 20;
        let mut mapping = Mapping::new(4 * page, Backing::Thp(page)).unwrap();
        touch::populate(&mut mapping, Backing::Thp(page), &IdSet::one(0), false).unwrap();
        match (present(&mapping), mapping.read_pages()) {
            (Ok(found), Ok(backed)) => assert_eq!((found.present, found.huge), (backed.resident, backed.thp)),
            (Err(why), _) | (_, Err(why)) => eprintln!("skipped: {why}"),
        }
    }
}
