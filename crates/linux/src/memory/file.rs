//! A buffer in a directory: a shared mapping of a file without a name.
//!
//! Every block of the file is allocated, and every page touched, before the buffer is used. A page that the file system or its device cannot
//! provide is therefore an error here and not a SIGBUS later. tmpfs follows memory policies as anonymous memory does. The page cache does
//! not, so its pages are placed by first touch. A file with DAX is where its device is.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use memgauge_model::directory::{FileBacking, FileEvidence};
use memgauge_model::memory::MemoryError;
use memgauge_model::plan::BufferPlan;
use memgauge_model::result::{PageEvidence, PageKind, Placement, PlacementMethod, PlacementProblem, PlacementSource, PlacementStatus};
use memgauge_model::units::{Bytes, IdSet};

use super::buffer::Buffer;
use super::error;
use super::interrupted::{Interrupted, interruption};
use super::map::{Backing, Mapping};
use super::node_state::NodeState;
use super::placement::{self, Policy, Rule};
use super::{page_maps, touch};
use crate::{cpu, directory, system_call};

/// Bytes written in one call: enough that the cost of the call does not matter, and few enough to share the work among threads.
const ZEROS: usize = 1 << 20;
/// Bytes whose blocks are allocated in one call, which cannot be interrupted: tmpfs clears their pages, in 10 to 50 ms. Whole huge pages, and
/// enough that a file system finds large extents.
const BLOCKS_AT_A_TIME: usize = 64 << 20;

/// Creates a file of `plan.bytes` in `directory`, maps it, allocates and touches all of it, and reads back what was obtained.
pub(super) fn allocate(
    plan: &BufferPlan,
    len: usize,
    directory: &str,
    state: &NodeState,
    policy: &Policy,
    interrupted: Interrupted<'_>,
) -> Result<Buffer, MemoryError> {
    let failed = |e: io::Error| error::file(plan, &e);
    let file = directory::create_nameless(Path::new(directory)).map_err(|e| error::file_space(plan, &e))?;
    let evidence = directory::describe(&file, directory, &state.root).map_err(failed)?.file;
    let backing = Backing::File(state.base_page);
    let dax = evidence.backing == FileBacking::Dax;
    if !dax {
        error::check_room(plan, state, len)?;
    }
    let whole = len.next_multiple_of(state.base_page);
    resize(&file, whole).map_err(|e| error::file_space(plan, &e))?;
    // Huge pages need an address with the alignment of the file's blocks, those of DAX in particular.
    let align = if len >= state.huge_page { state.huge_page } else { state.base_page };
    let mut mapping = Mapping::map_file(&file, whole, align, evidence.map_sync).map_err(failed)?;
    let rule = Rule::choose(len, state);
    let bound = match evidence.backing {
        // Before blocks are allocated, because tmpfs takes pages for them at once.
        FileBacking::Tmpfs => policy.place(&mapping, rule, &IdSet::one(plan.node), state).map_err(|e| error::bind(plan, state, &e))?,
        FileBacking::PageCache => Err("the page cache follows no memory policy".to_owned()),
        FileBacking::Dax => Ok(()),
    };
    let (cpus, strict) = touch::choose_cpus(plan, state, bound.is_ok());
    reserve(&file, whole, &cpus, dax, interrupted).map_err(|e| error::file_space(plan, &e))?;
    touch::populate(&mut mapping, backing, &cpus, strict, interrupted).map_err(|e| {
        // The kernel has one error for a page behind the file's end and for one that the device cannot provide.
        match file.metadata().map(|file| file.len()) {
            Ok(shorter) if shorter < whole as u64 && e.kind() != io::ErrorKind::Interrupted => error::truncated(plan, shorter),
            _ => error::touch(plan, backing, state, &e),
        }
    })?;

    let pages = pages(plan, &mapping, dax, state);
    let placement = if dax {
        on_device(plan.node, &evidence, state.only_node)
    } else {
        placement::bind_and_read_back(&mapping, backing, plan, state, policy, (rule, bound))?
    };
    Ok(Buffer {
        mapping,
        len,
        pages,
        placement,
        file: Some(evidence),
        backing,
        node: plan.node,
        only_node: state.only_node,
        reserved: false,
        turns: None,
    })
}

/// Sets the size of the file. No block is allocated yet.
fn resize(file: &File, len: usize) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes one `rlimit`, and `limit` is one.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0 && limit.rlim_cur < len as u64 {
        // The kernel would kill the process with SIGXFSZ.
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    file.set_len(len as u64)
}

/// Allocates every block, from the CPUs `cpus`. If the file system takes pages with the blocks and no policy applies, the pages are on the
/// node of these CPUs.
///
/// With `written`, zeros are written to the blocks and the file system's records of them are complete. DAX needs that: the first store to a
/// block that is only allocated changes the records, and under `MAP_SYNC` each page fault then waits until they are on the device.
fn reserve(file: &File, len: usize, cpus: &IdSet, written: bool, interrupted: Interrupted<'_>) -> io::Result<()> {
    let allocated = on_each(&cpus.iter().take(1).collect(), || allocate_blocks(file, len, interrupted))?;
    if allocated && !written {
        return Ok(());
    }
    let next = AtomicUsize::new(0);
    on_each(cpus, || write_blocks(file, len, &next, interrupted))?;
    if written { file.sync_all() } else { Ok(()) }
}

/// Runs `work` in a thread on each of `cpus`, or in the caller when no thread can be started. Returns the error of a thread that failed,
/// otherwise the result of one of them.
fn on_each<T: Send>(cpus: &IdSet, work: impl Fn() -> io::Result<T> + Sync) -> io::Result<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let on = |cpu: u32| {
            let work = move || {
                // On another CPU the placement may be worse, and the read-back shows that.
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

/// Allocates the blocks without writing them. Returns false when the file system cannot do that.
fn allocate_blocks(file: &File, len: usize, interrupted: Interrupted<'_>) -> io::Result<bool> {
    for at in (0..len).step_by(BLOCKS_AT_A_TIME) {
        interruption(interrupted)?;
        let part = BLOCKS_AT_A_TIME.min(len - at);
        // SAFETY: the call changes the file only, and no memory. The range fits, because the file already has it.
        match system_call(|| unsafe { libc::fallocate(file.as_raw_fd(), 0, at as libc::off_t, part as libc::off_t) == 0 }) {
            // NFS before 4.2, ramfs and others.
            Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) => return Ok(false),
            allocated => allocated?,
        }
    }
    Ok(true)
}

/// Writes zeros to one portion after the other, from `next` on, until none is left.
fn write_blocks(file: &File, len: usize, next: &AtomicUsize, interrupted: Interrupted<'_>) -> io::Result<()> {
    let zeros = vec![0; ZEROS];
    loop {
        let at = next.fetch_add(ZEROS, Ordering::Relaxed);
        if at >= len {
            return Ok(());
        }
        interruption(interrupted)?;
        file.write_all_at(&zeros[..ZEROS.min(len - at)], at as u64)?;
    }
}

/// The pages that back the file, as far as the kernel shows them.
fn pages(plan: &BufferPlan, mapping: &Mapping, dax: bool, state: &NodeState) -> PageEvidence {
    let requested = plan.pages;
    let evidence = |kind, whole: u64, huge: u64, all: u64, base: u64| {
        let (bytes, page) = if 2 * huge >= all { (huge, state.huge_page as u64) } else { (whole - huge, base) };
        let share = Some(bytes as f64 / all.max(1) as f64);
        PageEvidence { requested, obtained: Some(kind), share, page: Some(Bytes(page)), reason: None }
    };
    let all = mapping.len() as u64;
    if dax {
        let (start, end) = mapping.range();
        return match page_maps::read_present(start, end) {
            Ok(found) => evidence(PageKind::Dax, found.present, found.huge, all, state.base_page as u64),
            Err(why) => PageEvidence { requested, obtained: Some(PageKind::Dax), share: None, page: None, reason: Some(why) },
        };
    }
    match mapping.read_pages() {
        Ok(backed) => evidence(PageKind::File, backed.resident.max(backed.file_huge), backed.file_huge, all, backed.page),
        Err(why) => PageEvidence { requested, reason: Some(why), ..PageEvidence::default() },
    }
}

/// The placement of a file with DAX. `move_pages` and `numa_maps` do not show pages of a device, so the node is the one that the kernel states
/// for the device.
fn on_device(node: u32, file: &FileEvidence, only_node: bool) -> Placement {
    let (status, source, problem) = match file.device_node {
        Some(device) if device == node => (PlacementStatus::Verified, Some(PlacementSource::Device), None),
        Some(device) => {
            (PlacementStatus::Wrong, Some(PlacementSource::Device), Some(PlacementProblem::DeviceElsewhere { device, planned: node }))
        }
        None if only_node => (PlacementStatus::Verified, Some(PlacementSource::OnlyNode), None),
        None => (PlacementStatus::Unverified, None, Some(PlacementProblem::DeviceNodeUnknown)),
    };
    let problems = problem.into_iter().collect();
    Placement { status, method: Some(PlacementMethod::Device), source, problems, ..Placement::default() }
}

#[cfg(test)]
mod tests;
