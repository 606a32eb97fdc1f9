//! What Windows shows about pages of this process (`QueryWorkingSetEx`).

use std::io;

use windows_sys::Win32::System::ProcessStatus::{K32QueryWorkingSetEx, PSAPI_WORKING_SET_EX_INFORMATION};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// The known properties of a page that is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Page {
    /// Its node.
    pub(super) node: u32,
    /// It is a large page, or a part of one.
    pub(super) large: bool,
}

impl Page {
    /// Interprets the bits of `PSAPI_WORKING_SET_EX_BLOCK` in the order in which Microsoft documents them: Valid (1 bit), ShareCount (3),
    /// Win32Protection (11), Shared (1), Node (6), Locked (1), LargePage (1), Reserved (7), Bad (1). `None` for a page that is not valid,
    /// whose other bits mean something else.
    pub(super) const fn from_flags(flags: u64) -> Option<Self> {
        const VALID: u64 = 1;
        const NODE: u32 = 1 + 3 + 11 + 1;
        const NODE_BITS: u32 = 6;
        const LARGE: u64 = 1 << (NODE + NODE_BITS + 1);
        if flags & VALID == 0 {
            return None;
        }
        let node = (flags >> NODE) & ((1 << NODE_BITS) - 1);
        Some(Self { node: node as u32, large: flags & LARGE != 0 })
    }
}

/// The pages at these addresses; `None` for one that is not in memory.
pub(super) fn query(addresses: &[*mut u8]) -> io::Result<Vec<Option<Page>>> {
    let asked = |address: &*mut u8| PSAPI_WORKING_SET_EX_INFORMATION { VirtualAddress: address.cast(), ..Default::default() };
    let mut pages: Vec<PSAPI_WORKING_SET_EX_INFORMATION> = addresses.iter().map(asked).collect();
    let bytes = size_of_val(pages.as_slice());
    let size = u32::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the call reads and writes the entries of this list, whose size in bytes it is given. It looks addresses up and accesses none.
    let found = unsafe { K32QueryWorkingSetEx(GetCurrentProcess(), pages.as_mut_ptr().cast(), size) };
    if found == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled the attributes of every entry, and all bits are valid as a number.
    Ok(pages.iter().map(|page| Page::from_flags(unsafe { page.VirtualAttributes.Flags } as u64)).collect())
}

/// The numbers of pages that were looked up, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PageCounts {
    /// Looked up.
    pub(super) asked: u64,
    /// In memory.
    pub(super) resident: u64,
    /// Of these, in large pages.
    pub(super) large: u64,
}

impl PageCounts {
    pub(super) fn count(pages: &[Option<Page>]) -> Self {
        let resident = pages.iter().flatten();
        Self {
            asked: pages.len() as u64,
            resident: resident.clone().count() as u64,
            large: resident.filter(|page| page.large).count() as u64,
        }
    }

    /// `pages` as a share of those looked up.
    pub(super) fn share(&self, pages: u64) -> f64 {
        pages as f64 / self.asked.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attributes as a machine would state them: read-write (4), shared once.
    fn flags(node: u64, large: bool) -> u64 {
        1 | 1 << 1 | 4 << 4 | node << 16 | u64::from(large) << 22 | u64::from(large) << 23
    }

    #[test]
    fn nodes_and_large_pages_are_in_the_documented_bits() {
        for node in [0, 1, 2, 3, 63] {
            for large in [false, true] {
                assert_eq!(Page::from_flags(flags(node, large)), Some(Page { node: node as u32, large }));
            }
        }
        // Shared (bit 15), locked (22) and bad (31) are none of them, and neither is what may be above.
        let others = 1 << 15 | 1 << 22 | 1 << 31 | 0xffff_ffff << 32;
        assert_eq!(Page::from_flags(flags(2, false) | others), Some(Page { node: 2, large: false }));
        assert_eq!(Page::from_flags(flags(3, true) & !1), None, "not valid");
        assert_eq!(Page::from_flags(0), None);
    }

    #[test]
    fn kinds_are_counted() {
        let pages = [flags(0, true), flags(1, true), flags(0, false), 0].map(Page::from_flags);
        let counts = PageCounts::count(&pages);
        assert_eq!(counts, PageCounts { asked: 4, resident: 3, large: 2 });
        assert_eq!((counts.share(counts.large), PageCounts::default().share(0)), (0.5, 0.0));
    }

    #[test]
    fn a_page_in_use_is_in_memory_and_one_that_is_nowhere_is_not() {
        let mut here = 7_u64;
        std::hint::black_box(&mut here);
        let pages = query(&[(&raw mut here).cast(), std::ptr::without_provenance_mut(0x1000)]).unwrap();
        assert!(pages[0].is_some_and(|page| !page.large) && pages[1].is_none(), "{pages:?}");
    }
}
