//! Which pages of a mapping are present, and which of them are huge, from the page tables (`PAGEMAP_SCAN`, Linux 6.7). It is needed for
//! pages of a device, which smaps counts partly or not at all, depending on the kernel.

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
/// Ranges returned by one call. Neighbouring pages of the same kind are one range.
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

/// Bytes of a mapping by the state of their pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PresentBytes {
    /// Present in the page tables.
    pub(super) present: u64,
    /// Of these, in huge pages.
    pub(super) huge: u64,
}

/// Reads the page tables of `mapping`.
///
/// # Errors
/// In words, when this kernel cannot do that.
pub(super) fn read_present(mapping: &Mapping) -> Result<PresentBytes, String> {
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
    use crate::memory::backing::Backing;
    use crate::memory::map::base_page;
    use crate::memory::touch;
    use memgauge_core::units::IdSet;

    #[test]
    fn what_is_present_is_what_was_touched() {
        let mut mapping = Mapping::new(8 << 20, Backing::Base(base_page())).unwrap();
        let before = match read_present(&mapping) {
            Ok(found) => found,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        assert_eq!(before, PresentBytes::default());
        // Every other page: more ranges than one call returns.
        for page in (0..8 << 20).step_by(2 * base_page()) {
            // SAFETY: a byte of the test's own mapping.
            unsafe { mapping.data().add(page).write_volatile(0) };
        }
        assert_eq!(read_present(&mapping), Ok(PresentBytes { present: 4 << 20, huge: 0 }));
        touch::populate(&mut mapping, Backing::Base(base_page()), &IdSet::one(0), false).unwrap();
        assert_eq!(read_present(&mapping), Ok(PresentBytes { present: 8 << 20, huge: 0 }));
    }

    #[test]
    fn huge_pages_are_counted() {
        let page = 2 << 20;
        let mut mapping = Mapping::new(4 * page, Backing::Thp(page)).unwrap();
        touch::populate(&mut mapping, Backing::Thp(page), &IdSet::one(0), false).unwrap();
        match (read_present(&mapping), mapping.read_pages()) {
            (Ok(found), Ok(backed)) => assert_eq!((found.present, found.huge), (backed.resident, backed.thp)),
            (Err(why), _) | (_, Err(why)) => eprintln!("skipped: {why}"),
        }
    }
}
