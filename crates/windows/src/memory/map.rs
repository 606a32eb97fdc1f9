//! Committed memory or a view of a file, between guard ranges, and what backs it.

use std::fs::File;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{NonNull, null, null_mut};
use std::sync::OnceLock;

use memgauge_model::estimate::MemoryFaultKind;
use windows_sys::Win32::Foundation::{ERROR_INVALID_ADDRESS, ERROR_NOT_ENOUGH_MEMORY};
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_READ, FILE_MAP_WRITE, MEM_COMMIT, MEM_LARGE_PAGES, MEM_RELEASE, MEM_RESERVE, MEMORY_MAPPED_VIEW_ADDRESS,
    MapViewOfFileExNuma, PAGE_NOACCESS, PAGE_READWRITE, UnmapViewOfFile, VirtualAlloc, VirtualAllocExNuma, VirtualFree,
};
use windows_sys::Win32::System::SystemInformation::{GetSystemInfo, SYSTEM_INFO};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::large;
use super::turns::{self, Turns};
use crate::faults::{Fault, Watched};

/// The bytes at whose multiples regions begin (`SYSTEM_INFO::dwAllocationGranularity`, 64 KiB on every Windows). The guards have this size.
pub(super) const GRANULE: usize = 64 << 10;
/// How often to look for a hole in the address space. A thread that maps memory may take a part of one before this does, which is rare.
const ATTEMPTS: u32 = 16;
/// Regions of a buffer whose pages are on several nodes in turn. Windows keeps a record of each.
const TURNS: usize = 64 << 10;
/// 1 GiB, the pages of `MEM_EXTENDED_PARAMETER_NONPAGED_HUGE`.
const HUGE: usize = 1 << 30;

/// The bytes of a base page (`SYSTEM_INFO::dwPageSize`).
pub(super) fn base_page() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    *PAGE.get_or_init(|| {
        let mut info = SYSTEM_INFO::default();
        // SAFETY: the call writes one `SYSTEM_INFO`, and `info` is one.
        unsafe { GetSystemInfo(&raw mut info) };
        info.dwPageSize as usize
    })
}

/// The memory to try as the backing of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backing {
    /// Large pages of this many bytes: those of `MEM_LARGE_PAGES`, or 1 GiB.
    Large(usize),
    /// Base pages of this many bytes.
    Base(usize),
    /// A file, mapped in steps of this many bytes.
    File(usize),
}

impl Backing {
    /// The page in bytes.
    pub(super) fn page(self) -> usize {
        match self {
            Self::Large(page) | Self::Base(page) | Self::File(page) => page,
        }
    }

    /// The bytes that follow each other on one node if pages are on several nodes in turn. A preferred node belongs to a region, and
    /// regions begin at multiples of 64 KiB. Large buffers take longer turns, so that they do not have millions of regions.
    pub(super) fn turn(self, len: usize) -> usize {
        (len / TURNS).next_power_of_two().max(self.page()).max(GRANULE)
    }
}

/// A part of the address space, given back when dropped.
#[derive(Debug)]
enum Part {
    /// A region of `VirtualAlloc`, by its first address.
    Region(usize),
    /// A view of a file, by its first address.
    View(usize),
}

impl Drop for Part {
    fn drop(&mut self) {
        // SAFETY: the code that made this value made the region or the view too, and does not use it any more.
        unsafe {
            match *self {
                Self::Region(address) => VirtualFree(address as *mut core::ffi::c_void, 0, MEM_RELEASE),
                Self::View(address) => UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: address as *mut core::ffi::c_void }),
            }
        };
    }
}

/// A readable and writable range with 64 KiB below and above that nothing may access.
#[derive(Debug)]
pub(super) struct Mapping {
    data: NonNull<u8>,
    len: usize,
    // Dropped in this order: the range is not watched once its addresses may be another's, and a file is closed after its view is gone.
    watched: Watched,
    #[expect(dead_code, reason = "it is given back when it is dropped")]
    parts: Vec<Part>,
    /// The section and the file behind it.
    file: Option<(OwnedHandle, File)>,
}

// SAFETY: a mapping is memory owned by this value and belongs to no thread. The type only gives out its address.
unsafe impl Send for Mapping {}
// SAFETY: shared references only read the address and the length, which never change. Code that dereferences the address must itself
// prevent data races.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves address space of `len` bytes, rounded up to base pages, that is not to be touched.
    pub(super) fn reserve(len: usize) -> io::Result<Self> {
        let len = rounded(len, base_page())?;
        let region = region(0, with_guards(len, 0)?, MEM_RESERVE, PAGE_NOACCESS, None)?;
        Ok(Self { data: address(region + GUARD)?, len, watched: Watched::nothing(), parts: vec![Part::Region(region)], file: None })
    }

    /// Memory of `len` bytes, rounded up to whole pages of `backing` and aligned to them, that prefers `node`. Nothing is touched, but
    /// large pages are taken and cleared at once, by one call that cannot be interrupted.
    pub(super) fn new(len: usize, backing: Backing, node: Option<u32>) -> io::Result<Self> {
        let len = rounded(len, backing.page())?;
        if let Backing::Large(page) = backing {
            // Such memory must be reserved and committed by one call, so a larger reservation cannot have the guards.
            return Self::own(len, in_hole(len, page, |data| Ok(vec![large_region(data, len, page, node)?]))?);
        }
        // The node is a property of the region: it is given with the reservation and ignored when pages of it are committed.
        let start = region(0, with_guards(len, 0)?, MEM_RESERVE, PAGE_NOACCESS, node)?;
        let parts = vec![Part::Region(start)];
        let data = start + GUARD;
        region(data, len, MEM_COMMIT, PAGE_READWRITE, None)?;
        Self::own(len, (data, parts))
    }

    /// The same with one region for each run of pages that are on one node.
    pub(super) fn in_turn(len: usize, backing: Backing, turns: &Turns) -> io::Result<Self> {
        let len = rounded(len, backing.page())?;
        let region_at = |at: usize, len: usize, node: u32| match backing {
            Backing::Large(page) => large_region(at, len, page, Some(node)),
            Backing::Base(_) | Backing::File(_) => region(at, len, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE, Some(node)).map(Part::Region),
        };
        let parts = in_hole(len, backing.page(), |data| {
            turns.runs(data, len).into_iter().map(|(from, to, node)| region_at(data + from, to - from, node)).collect()
        })?;
        Self::own(len, parts)
    }

    /// Maps the first `len` bytes of `file`, rounded up to base pages, at a multiple of `align`, and prefers `node`. Nothing is touched.
    pub(super) fn map_file(file: File, len: usize, align: usize, node: u32) -> io::Result<Self> {
        let len = rounded(len, base_page())?;
        let (high, low) = ((len as u64 >> 32) as u32, len as u32);
        // SAFETY: the file is open, and a section without a name and with the default security is asked for.
        let section = unsafe { CreateFileMappingW(file.as_raw_handle(), null(), PAGE_READWRITE, high, low, null()) };
        if section.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle was just made, and nothing else closes it.
        let section = unsafe { OwnedHandle::from_raw_handle(section) };
        let parts = in_hole(len, align, |data| {
            let (handle, at) = (section.as_raw_handle(), data as *const core::ffi::c_void);
            // SAFETY: the section has `len` bytes. The view is put where nothing else is, or the call fails.
            let view = unsafe { MapViewOfFileExNuma(handle, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, len, at, node) };
            if view.Value.is_null() { Err(io::Error::last_os_error()) } else { Ok(vec![Part::View(view.Value as usize)]) }
        })?;
        let mut mapping = Self::own(len, parts)?;
        mapping.file = Some((section, file));
        Ok(mapping)
    }

    /// Owns the `len` bytes from the given address on, which `parts` are.
    fn own(len: usize, (data, parts): (usize, Vec<Part>)) -> io::Result<Self> {
        let data = address(data)?;
        Ok(Self { data, len, watched: Watched::new(data.as_ptr(), len), parts, file: None })
    }

    /// The fault in its memory since it was mapped: the kind, and the place.
    pub(super) fn fault(&self) -> Option<(MemoryFaultKind, Fault)> {
        let fault = self.watched.fault()?;
        let kind = match (fault.poisoned, &self.file) {
            (true, _) => MemoryFaultKind::Poisoned,
            // Windows does not let anybody truncate a file below the part that is mapped.
            (false, Some(_)) => MemoryFaultKind::Device,
            (false, None) => MemoryFaultKind::Gone,
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

    /// The addresses of `count` places at most, a multiple of `step` apart and spread over the mapping.
    pub(super) fn sample(&self, step: usize, most: usize) -> Vec<*mut u8> {
        turns::sample(self.len / step, most).map(|i| self.data().wrapping_add(i * step)).collect()
    }
}

/// The size of a guard.
const GUARD: usize = GRANULE;

fn too_large() -> io::Error {
    io::Error::from_raw_os_error(ERROR_NOT_ENOUGH_MEMORY as i32)
}

fn rounded(len: usize, page: usize) -> io::Result<usize> {
    len.checked_next_multiple_of(page).ok_or_else(too_large)
}

/// `len` bytes with both guards, and what an alignment may take besides.
fn with_guards(len: usize, align: usize) -> io::Result<usize> {
    rounded(len, GRANULE)?.checked_add(align + 2 * GUARD).ok_or_else(too_large)
}

fn address(address: usize) -> io::Result<NonNull<u8>> {
    NonNull::new(address as *mut u8).ok_or_else(|| io::Error::from_raw_os_error(ERROR_INVALID_ADDRESS as i32))
}

/// Finds room for `len` bytes at a multiple of `align` and for both guards, lets `fill` put its parts at that address, and reserves the
/// guards. Between the look for room and the taking another thread may take some of it; the calls then fail, and another room is tried.
fn in_hole(len: usize, align: usize, fill: impl Fn(usize) -> io::Result<Vec<Part>>) -> io::Result<(usize, Vec<Part>)> {
    let align = align.max(GRANULE);
    let mut outcome = Err(too_large());
    for _ in 0..ATTEMPTS {
        let hole = Part::Region(region(0, with_guards(len, align)?, MEM_RESERVE, PAGE_NOACCESS, None)?);
        let Part::Region(low) = hole else { break };
        let data = (low + GUARD).next_multiple_of(align);
        drop(hole);
        let guard = |at| region(at, GUARD, MEM_RESERVE, PAGE_NOACCESS, None).map(Part::Region);
        outcome = guard(data - GUARD).and_then(|below| {
            let mut parts = vec![below, guard(data + rounded(len, GRANULE)?)?];
            parts.extend(fill(data)?);
            Ok((data, parts))
        });
        match &outcome {
            Err(e) if e.raw_os_error() == Some(ERROR_INVALID_ADDRESS as i32) => {}
            _ => break,
        }
    }
    outcome
}

/// Large pages of `page` bytes at an address that nothing uses.
fn large_region(at: usize, len: usize, page: usize, node: Option<u32>) -> io::Result<Part> {
    if page == HUGE {
        return large::allocate_huge(at, len, node).map(Part::Region);
    }
    region(at, len, MEM_RESERVE | MEM_COMMIT | MEM_LARGE_PAGES, PAGE_READWRITE, node).map(Part::Region)
}

/// Reserves or commits memory at an address, which is the caller's own or nobody's, or at one that Windows chooses (0).
fn region(at: usize, len: usize, kind: u32, protection: u32, node: Option<u32>) -> io::Result<usize> {
    let at = if at == 0 { null_mut() } else { at as *mut core::ffi::c_void };
    // SAFETY: reserving fails if something is at this address, and committing the caller's own memory leaves its content as it is.
    let address = unsafe {
        match node {
            Some(node) => VirtualAllocExNuma(GetCurrentProcess(), at, len, kind, protection, node),
            None => VirtualAlloc(at, len, kind, protection),
        }
    };
    if address.is_null() { Err(io::Error::last_os_error()) } else { Ok(address as usize) }
}
