//! A mapping of anonymous memory or of a file, between guard pages, and what backs it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use memgauge_model::estimate::MemoryFaultKind;

use super::interrupted::Interrupted;
use super::page_maps::{self, PageCounts};
use crate::base_page;
use crate::faults::{Fault, Watched};
use crate::system_call;

/// The bit of `mmap`'s flags where the logarithm of the pool's page size begins (`MAP_HUGE_SHIFT`, asm-generic/hugetlb_encode.h).
const MAP_HUGE_SHIFT: u32 = 26;
/// `MADV_COLLAPSE` (Linux 6.1) assembles huge pages at once.
const MADV_COLLAPSE: i32 = 25;
/// Bytes assembled in one call, which cannot be interrupted: copying them takes some 30 ms. Whole huge pages.
const COLLAPSED_AT_A_TIME: usize = 64 << 20;

/// The kind of pages that one attempt backs a buffer with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backing {
    /// Pages of this many bytes from a huge-page pool.
    Pool(usize),
    /// Transparent huge pages of this many bytes.
    Thp(usize),
    /// Base pages of this many bytes, with huge pages refused.
    Base(usize),
    /// A file, mapped in steps of this many bytes.
    File(usize),
}

impl Backing {
    /// The page in bytes.
    pub(super) fn page(self) -> usize {
        match self {
            Self::Pool(page) | Self::Thp(page) | Self::Base(page) | Self::File(page) => page,
        }
    }
}

/// A readable and writable range with a `PROT_NONE` page below and above.
#[derive(Debug)]
pub(super) struct Mapping {
    data: NonNull<u8>,
    len: usize,
    guard: usize,
    watched: Watched,
    /// The file behind it, to ask for its length after a fault.
    file: Option<File>,
}

// SAFETY: a mapping is memory owned by this value and belongs to no thread. The type only gives out its address.
unsafe impl Send for Mapping {}
// SAFETY: shared references only read the address and the length, which never change. Code that dereferences the address must itself
// prevent data races.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves address space of `len` bytes, rounded up to base pages, that is not to be touched.
    pub(super) fn reserve(len: usize) -> io::Result<Self> {
        let guard = base_page();
        let len = len.next_multiple_of(guard);
        let data = NonNull::new(reserve(len, guard, guard)? as *mut u8).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { data, len, guard, watched: Watched::nothing(), file: None })
    }

    /// Maps `len` bytes, rounded up to whole pages of `backing` and aligned to them. Nothing is touched.
    pub(super) fn new(len: usize, backing: Backing) -> io::Result<Self> {
        let (guard, page) = (base_page(), backing.page());
        let len = len.next_multiple_of(page);
        let data = reserve(len, page, guard)?;
        let least = if let Backing::Pool(page) = backing { page } else { base_page() };
        let mapping = |address: *mut u8| {
            NonNull::new(address)
                .map(|data| Self::watching(data, len, guard, least))
                .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
        };
        if let Backing::Pool(page) = backing {
            let pool = libc::MAP_HUGETLB | ((page.trailing_zeros() as i32) << MAP_HUGE_SHIFT) | libc::MAP_FIXED_NOREPLACE;
            // The hole is filled without MAP_FIXED, so that a mapping that another thread puts there meanwhile is never replaced.
            unmap(data, len);
            let mapped = map(data as *mut u8, len, libc::PROT_READ | libc::PROT_WRITE, pool);
            return match mapped {
                Ok(address) if address as usize == data => mapping(address),
                other => {
                    unmap(data - guard, guard);
                    unmap(data + len, guard);
                    // Kernels before 4.17 take the address as a hint only.
                    if let Ok(elsewhere) = other {
                        unmap(elsewhere as usize, len);
                        return Err(io::Error::from_raw_os_error(libc::EEXIST));
                    }
                    other.and_then(mapping)
                }
            };
        }
        let mapping = mapping(data as *mut u8)?;
        // SAFETY: the range was just reserved, and `mapping` owns it.
        system_call(|| unsafe { libc::mprotect(data as *mut libc::c_void, len, libc::PROT_READ | libc::PROT_WRITE) == 0 })?;
        // EINVAL means a kernel without transparent huge pages. Errors do not matter here, because the pages are read back later.
        mapping.advise_all(if matches!(backing, Backing::Thp(_)) { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE });
        mapping.advise_all(libc::MADV_DONTDUMP);
        Ok(mapping)
    }

    /// Maps the first `len` bytes of `file`, rounded up to base pages, at a multiple of `align`. `synchronous` asks for `MAP_SYNC`, which the
    /// kernel must already have granted for this file. Nothing is touched.
    pub(super) fn map_file(file: &File, len: usize, align: usize, synchronous: bool) -> io::Result<Self> {
        let guard = base_page();
        let len = len.next_multiple_of(guard);
        let data = reserve(len, align.max(guard), guard)?;
        let flags = if synchronous { libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC } else { libc::MAP_SHARED } | libc::MAP_FIXED;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: MAP_FIXED replaces only the middle of the reservation that was just made, which nothing uses.
        let address = unsafe { libc::mmap(data as *mut libc::c_void, len, protection, flags, file.as_raw_fd(), 0) };
        if address == libc::MAP_FAILED {
            let e = io::Error::last_os_error();
            // The middle may no longer be reserved, and may belong to another thread by now, so it is left alone.
            unmap(data - guard, guard);
            unmap(data + len, guard);
            return Err(e);
        }
        let data = NonNull::new(address.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let mut mapping = Self::watching(data, len, guard, base_page());
        mapping.file = duplicate(file);
        // Some file systems give huge pages only to mappings that ask for them.
        mapping.advise_all(libc::MADV_HUGEPAGE);
        mapping.advise_all(libc::MADV_DONTDUMP);
        Ok(mapping)
    }

    /// Owns the `len` bytes from `data` on that were just mapped. The smallest part of them that can be mapped anew has `page` bytes.
    fn watching(data: NonNull<u8>, len: usize, guard: usize, page: usize) -> Self {
        // SAFETY: these are whole pages, which the value owns until it is dropped.
        let watched = unsafe { Watched::new(data.as_ptr(), len, page) };
        Self { data, len, guard, watched, file: None }
    }

    /// The first fault of its memory since it was mapped: the kind and the place.
    pub(super) fn fault(&self) -> Option<(MemoryFaultKind, Fault)> {
        let fault @ Fault { poisoned, offset, .. } = self.watched.fault()?;
        // The signal is the same for a page behind the file's end and for one that the device cannot provide.
        let len = self.file.as_ref().and_then(|file| Some(file.metadata().ok()?.len()));
        let kind = match len {
            _ if poisoned => MemoryFaultKind::Poisoned,
            None => MemoryFaultKind::Gone,
            Some(len) if len <= offset => MemoryFaultKind::Truncated,
            Some(_) => MemoryFaultKind::Device,
        };
        Some((kind, fault))
    }

    /// The first usable byte.
    pub(super) fn data(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    /// Usable bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The addresses of the first usable byte and of the one behind the last.
    pub(super) fn range(&self) -> (u64, u64) {
        let start = self.data() as usize as u64;
        (start, start + self.len as u64)
    }

    /// Asks the kernel to assemble huge pages where the page faults got small ones. Returns false when it cannot.
    pub(super) fn collapse(&self, interrupted: Interrupted<'_>) -> bool {
        let pieces = (0..self.len).step_by(COLLAPSED_AT_A_TIME).take_while(|_| !interrupted());
        // The kernel goes on after a page that it cannot assemble, and so does this.
        pieces.filter(|at| self.advise(*at, COLLAPSED_AT_A_TIME.min(self.len - at), MADV_COLLAPSE)).count() > 0
    }

    /// The entry of this mapping in smaps. Entries below it are skipped, and those above are not read: new mappings have low addresses, and
    /// the kernel walks the page tables for each entry that is read.
    pub(super) fn read_pages(&self) -> Result<PageCounts, String> {
        let (start, end) = self.range();
        let file = File::open("/proc/self/smaps").map_err(|e| format!("/proc/self/smaps cannot be read: {e}"))?;
        // An entry has about 700 bytes, and the kernel computes as many entries as fit into the read.
        page_maps::smaps(std::io::BufReader::with_capacity(1024, file), start, end)
    }

    fn advise_all(&self, advice: i32) -> bool {
        self.advise(0, self.len, advice)
    }

    fn advise(&self, at: usize, len: usize, advice: i32) -> bool {
        debug_assert!(at + len <= self.len, "the range is in the mapping");
        // SAFETY: this value owns the mapped range, and every caller names a part of it. None of the kinds of advice used here changes its
        // content.
        unsafe { libc::madvise(self.data().add(at).cast(), len, advice) == 0 }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Before the addresses may be another's.
        self.watched = Watched::nothing();
        unmap(self.data() as usize - self.guard, self.len + 2 * self.guard);
    }
}

/// The file once more, unless the process then comes near its limit on open files: other parts of it have to open files too. The kernel
/// gives descriptors in ascending order.
fn duplicate(file: &File) -> Option<File> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes one `rlimit`, and `limit` is one.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    file.try_clone().ok().filter(|file| known && (file.as_raw_fd() as u64) < limit.rlim_cur / 2)
}

/// Reserves inaccessible address space for `len` bytes at a multiple of `align`, with `guard` bytes below and above. Returns the address of
/// the middle.
fn reserve(len: usize, align: usize, guard: usize) -> io::Result<usize> {
    // Enough for any alignment. The rest below and above becomes the guards.
    let total = len.checked_add(align + guard).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
    let low = map(std::ptr::null_mut(), total, libc::PROT_NONE, libc::MAP_NORESERVE)?;
    let data = (low as usize + guard).next_multiple_of(align);
    // The reservation starts on a page. The aligned address is therefore at most `align` above it, and at least `guard` remains at the end.
    unmap(low as usize, data - guard - low as usize);
    unmap(data + len + guard, low as usize + total - (data + len + guard));
    Ok(data)
}

fn map(at: *mut u8, len: usize, protection: i32, flags: i32) -> io::Result<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    // SAFETY: none of the callers passes MAP_FIXED, so no existing mapping is replaced.
    let address = unsafe { libc::mmap(at.cast(), len, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address.cast()) }
}

/// Unmaps a range that belongs to the caller.
fn unmap(start: usize, len: usize) {
    if len > 0 {
        // SAFETY: every caller passes a range that it mapped itself and no longer uses.
        unsafe { libc::munmap(start as *mut libc::c_void, len) };
    }
}
