//! A buffer that is a file in a directory: a shared mapping of a file without a name.
//!
//! Every block of the file is allocated, and every page touched, before anybody uses it: where the file system or its device cannot serve
//! a page, that is an error here and not a SIGBUS later. tmpfs heeds memory policies like anonymous memory; the page cache does not, so its
//! pages are placed by first touch; a file with DAX is where its device is.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use memgauge_core::directory::{FileBacking, FileEvidence};
use memgauge_core::plan::BufferPlan;
use memgauge_core::result::{PageEvidence, PageKind, Placement, PlacementStatus};
use memgauge_core::units::{Bytes, IdSet};

use super::error::{self, MemoryError};
use super::map::Mapping;
use super::place::{self, Policy};
use super::system::System;
use super::{Backing, Buffer, scan, touch};
use crate::{cpu, directory};

/// What is written at a time: large enough that calls do not count, small enough to share among threads.
const ZEROS: usize = 1 << 20;

/// Makes a file of `plan.bytes` in `directory`, maps it, allocates and touches all of it, and reads back what it is.
///
/// # Errors
/// When a file cannot be made or mapped there, the file system or the node has not enough room, or the pages cannot be put on the node.
pub(super) fn allocate(plan: &BufferPlan, len: usize, directory: &str, system: &System, policy: &Policy) -> Result<Buffer, MemoryError> {
    let failed = |e: io::Error| error::file(plan, &e);
    let file = directory::nameless(Path::new(directory)).map_err(failed)?;
    let evidence = directory::describe(&file, directory, &system.root).map_err(failed)?.file;
    let backing = Backing::File(system.base_page);
    let dax = evidence.backing == FileBacking::Dax;
    if !dax {
        system.check_room(plan, len)?;
    }
    let whole = len.next_multiple_of(system.base_page);
    resize(&file, whole).map_err(|e| error::file_space(plan, &e))?;
    // Huge pages, of DAX above all, need an address that is as aligned as the file's blocks.
    let align = if len >= system.huge_page { system.huge_page } else { system.base_page };
    let mut mapping = Mapping::of_file(&file, whole, align, evidence.map_sync).map_err(failed)?;
    let bound = match evidence.backing {
        // Before anything is allocated: tmpfs takes pages already when blocks are.
        FileBacking::Tmpfs => policy.bind(mapping.data(), mapping.len(), plan.node).map_err(|e| error::bind(plan, system, &e))?,
        FileBacking::PageCache => Err("the page cache heeds no memory policy".to_owned()),
        FileBacking::Dax => Ok(()),
    };
    let local = plan.touch.intersection(&system.node_cpus);
    let cpus = if bound.is_ok() || local.is_empty() { &plan.touch } else { &local };
    let strictly = bound.is_err() && !local.is_empty();
    reserve(&file, whole, cpus, dax).map_err(|e| error::file_space(plan, &e))?;
    touch::populate(&mut mapping, backing, cpus, strictly).map_err(|e| error::touch(plan, backing, system, &e))?;

    let pages = pages(plan, &mapping, dax, system);
    let placement = if dax {
        on_device(plan.node, &evidence, system.only_node)
    } else {
        let mut placement = place::read_back(&mapping, backing, plan.node, system.only_node, policy);
        placement.method = if bound.is_ok() { "mbind" } else { "first-touch" }.to_owned();
        if let Err(refusal) = bound
            && placement.status != PlacementStatus::Verified
        {
            if local.is_empty() {
                return Err(error::cannot_place(plan, &refusal));
            }
            let seen = placement.reason.take().unwrap_or_else(|| "some pages are on other nodes".to_owned());
            placement.reason = Some(format!("{seen}; {refusal}"));
        }
        placement
    };
    Ok(Buffer { mapping, len, pages, placement, file: Some(evidence), backing, node: plan.node, only_node: system.only_node })
}

/// Gives the file its size; no block is allocated yet.
fn resize(file: &File, len: usize) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: fills the structure that it is given.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0 && limit.rlim_cur < len as u64 {
        // The kernel would kill the process with SIGXFSZ.
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    file.set_len(len as u64)
}

/// Allocates every block, from CPUs of `cpus`: where pages are taken with the blocks and no policy holds, they are those CPUs' node's.
///
/// With `written`, blocks hold zeros on the device afterwards, and its records of them are complete. For DAX: the first store to a block that
/// is only allocated changes the records, and under `MAP_SYNC` each page fault then waits until that is on the device.
fn reserve(file: &File, len: usize, cpus: &IdSet, written: bool) -> io::Result<()> {
    let allocated = on_each(&cpus.iter().take(1).collect(), || allocate_blocks(file, len))?;
    if allocated && !written {
        return Ok(());
    }
    let next = AtomicUsize::new(0);
    on_each(cpus, || write_blocks(file, len, &next))?;
    if written { file.sync_all() } else { Ok(()) }
}

/// Does `work` in a thread on each of `cpus`, or in the caller where no thread can be had; what one of them returns, an error first.
fn on_each<T: Send>(cpus: &IdSet, work: impl Fn() -> io::Result<T> + Sync) -> io::Result<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let on = |cpu: u32| {
            let work = move || {
                // Elsewhere it only places worse, which the read-back tells.
                let _ = cpu::pin_to(cpu);
                work()
            };
            std::thread::Builder::new().name(format!("file-{cpu}")).spawn_scoped(scope, work).ok()
        };
        let threads: Vec<_> = cpus.iter().filter_map(on).collect();
        if threads.is_empty() {
            return work();
        }
        let panicked = || io::Error::other("a thread that allocates blocks panicked");
        let all: io::Result<Vec<T>> = threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(panicked()))).collect();
        all?.pop().ok_or_else(panicked)
    })
}

/// Whether the file system can allocate blocks without writing them, and has.
fn allocate_blocks(file: &File, len: usize) -> io::Result<bool> {
    loop {
        // SAFETY: changes nothing but the file; the length fits, because the file has been given it.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len as libc::off_t) } == 0 {
            return Ok(true);
        }
        match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::Interrupted => {}
            // NFS before 4.2, ramfs and others.
            e if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) => return Ok(false),
            e => return Err(e),
        }
    }
}

/// Writes zeros to portions from `next` on until none is left.
fn write_blocks(file: &File, len: usize, next: &AtomicUsize) -> io::Result<()> {
    let zeros = vec![0; ZEROS];
    loop {
        let at = next.fetch_add(ZEROS, Ordering::Relaxed);
        if at >= len {
            return Ok(());
        }
        file.write_all_at(&zeros[..ZEROS.min(len - at)], at as u64)?;
    }
}

/// What backs the file's pages, as far as the kernel tells.
fn pages(plan: &BufferPlan, mapping: &Mapping, dax: bool, system: &System) -> PageEvidence {
    let requested = plan.pages;
    let known = |kind, whole: u64, huge: u64, all: u64, base: u64| {
        let (bytes, page) = if 2 * huge >= all { (huge, system.huge_page as u64) } else { (whole - huge, base) };
        let share = Some(bytes as f64 / all.max(1) as f64);
        PageEvidence { requested, obtained: Some(kind), share, page: Some(Bytes(page)), reason: None }
    };
    let all = mapping.len() as u64;
    if dax {
        return match scan::present(mapping) {
            Ok(found) => known(PageKind::Dax, found.present, found.huge, all, system.base_page as u64),
            Err(why) => PageEvidence { requested, obtained: Some(PageKind::Dax), share: None, page: None, reason: Some(why) },
        };
    }
    match mapping.read_pages() {
        Ok(backed) => known(PageKind::File, backed.resident.max(backed.file_huge), backed.file_huge, all, backed.page),
        Err(why) => PageEvidence { requested, reason: Some(why), ..PageEvidence::default() },
    }
}

/// Where a file with DAX is: `move_pages` and `numa_maps` do not show pages of a device, so the device's node is what the kernel says.
fn on_device(node: u32, file: &FileEvidence, only_node: bool) -> Placement {
    let (status, source, reason) = match file.device_node {
        Some(of_device) if of_device == node => (PlacementStatus::Verified, Some("device"), None),
        Some(of_device) => {
            (PlacementStatus::Wrong, Some("device"), Some(format!("the device is at node {of_device}, and node {node} was planned")))
        }
        None if only_node => (PlacementStatus::Verified, Some("only-node"), None),
        None => (PlacementStatus::Unverified, None, Some("the kernel does not state the node of the device".to_owned())),
    };
    Placement { status, method: "device".to_owned(), source: source.map(str::to_owned), reason, ..Placement::default() }
}

#[cfg(test)]
mod tests;
