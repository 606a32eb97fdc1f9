//! A buffer in a directory: a view of a file that Windows deletes when its last handle is closed.
//!
//! The file has its whole size before it is mapped, which on NTFS and ReFS allocates its blocks, and every page is touched before the
//! buffer is used. A page that the file system or its device cannot provide is therefore an error here and not an exception later. The view
//! prefers its node (`MapViewOfFileExNuma`), as other buffers do. A file on a DAX volume is where its device is.
//!
//! The file is temporary (`FILE_ATTRIBUTE_TEMPORARY`), which asks Windows to keep its content in memory as long as there is enough of it.

use std::io;
use std::path::Path;

use memgauge_model::directory::{FileBacking, FileEvidence};
use memgauge_model::memory::MemoryError;
use memgauge_model::plan::BufferPlan;
use memgauge_model::result::{PageEvidence, PageKind, Placement, PlacementMethod, PlacementProblem, PlacementSource, PlacementStatus};
use memgauge_model::units::Bytes;

use super::buffer::Buffer;
use super::error;
use super::interrupted::Interrupted;
use super::map::{Backing, Mapping, base_page};
use super::node_state::NodeState;
use super::placement;
use super::readback::{self, PageCounts};
use super::touch;
use crate::directory;

/// 2 MiB: the alignment at which a device can be mapped in large pages.
const LARGE: usize = 2 << 20;

/// Creates a file of `plan.bytes` in `directory`, maps it, touches all of it, and reads back what was obtained.
pub(super) fn allocate(
    plan: &BufferPlan,
    len: usize,
    directory: &str,
    state: &NodeState,
    interrupted: Interrupted<'_>,
) -> Result<Buffer, MemoryError> {
    let failed = |e: io::Error| error::file(plan, &e);
    let file = directory::create_temporary(Path::new(directory)).map_err(|e| error::file_space(plan, &e))?;
    let described = directory::describe(&file, directory).map_err(failed)?;
    let evidence = described.file;
    let backing = Backing::File(base_page());
    let dax = evidence.backing == FileBacking::Dax;
    if !dax {
        error::check_room(plan, state, len)?;
    }
    let whole = len.next_multiple_of(base_page());
    if let Some(Bytes(free)) = described.free.filter(|free| free.0 < whole as u64) {
        return Err(error::no_space(plan, free));
    }
    file.set_len(whole as u64).map_err(|e| error::file_space(plan, &e))?;
    let align = if len >= LARGE { LARGE } else { base_page() };
    let mut mapping = Mapping::map_file(file, whole, align, plan.node).map_err(|e| error::file_space(plan, &e))?;
    touch::populate(&mut mapping, backing, &plan.touch, interrupted).map_err(|e| error::touch(plan, backing, &e))?;

    let counts = readback::query(&mapping.sample(base_page(), placement::SAMPLE)).map(|pages| PageCounts::count(&pages));
    let pages = pages(plan, dax, counts.map_err(|e| e.to_string()));
    let placement =
        if dax { on_device(plan.node, &evidence, state.only_node) } else { placement::read_preferred(plan, &mapping, backing, state)? };
    let (node, only_node) = (plan.node, state.only_node);
    Ok(Buffer { mapping, len, pages, placement, file: Some(evidence), backing, node, only_node, reserved: false, turns: None })
}

/// The memory behind the file's pages, as far as Windows shows it.
fn pages(plan: &BufferPlan, dax: bool, counts: Result<PageCounts, String>) -> PageEvidence {
    let requested = plan.pages;
    let kind = if dax { PageKind::Dax } else { PageKind::File };
    match counts {
        Ok(counts) if counts.resident > 0 => {
            let large = 2 * counts.large >= counts.resident;
            let (pages, page) = if large { (counts.large, LARGE) } else { (counts.resident - counts.large, base_page()) };
            let (share, page) = (Some(counts.share(pages)), Some(Bytes(page as u64)));
            PageEvidence { requested, obtained: Some(kind), share, page, reason: None }
        }
        unknown => {
            let why = unknown.err().unwrap_or_else(|| "found none of its pages in memory".to_owned());
            let reason = Some(format!("QueryWorkingSetEx: {why}"));
            PageEvidence { requested, obtained: dax.then_some(kind), reason, ..PageEvidence::default() }
        }
    }
}

/// The placement of a file with DAX. Microsoft does not document what `QueryWorkingSetEx` says of pages of a device, so the node is that of
/// the device, where it is known.
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
