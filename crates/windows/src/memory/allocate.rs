//! Allocating a buffer: which pages to try, and whether what was obtained is what was asked for.

use std::path::Path;

use memgauge_model::experiment::PageRequest;
use memgauge_model::interleave::Weights;
use memgauge_model::memory::{MemoryError, MemoryErrorKind};
use memgauge_model::plan::BufferPlan;
use memgauge_model::result::{PageEvidence, PageKind, Placement, PlacementMethod, PlacementStatus};
use memgauge_model::units::{Bytes, IdSet};

use super::buffer::Buffer;
use super::error;
use super::interrupted::Interrupted;
use super::map::{Backing, Mapping, base_page};
use super::node_state::NodeState;
use super::placement;
use super::readback::{self, PageCounts};
use super::turns::Turns;
use super::{file, large, touch};

/// The share of a buffer that the pages asked for by name must back.
const LARGE_MAJORITY: f64 = 0.9;

impl Buffer {
    /// Allocates memory that prefers its node, touches it and reads back what was obtained.
    ///
    /// `root` is not used: Windows describes the running machine only. The plan has already kept to the limits on the amount of memory.
    /// The memory available at this moment is checked here too, because Windows would otherwise write other programs' memory to a page file.
    ///
    /// A buffer in a directory is a file there; see [`file`](super::file). For other buffers [`PageRequest::Auto`] takes large pages if
    /// this user has the privilege and enough of them are free, otherwise base pages; the evidence says why.
    ///
    /// # Errors
    /// When the size is zero, when the node does not exist, when there is too little memory or room in the file system, or when
    /// the pages asked for by name are not available. Each error says what to do.
    pub fn allocate(plan: &BufferPlan, root: &Path) -> Result<Self, MemoryError> {
        Self::allocate_unless(plan, root, &|| false)
    }

    /// The same, given up soon after `interrupted` says so: gigabytes take seconds. The one call that takes and clears large pages is not
    /// interrupted.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate), and [`MemoryErrorKind::Interrupted`].
    pub fn allocate_unless(plan: &BufferPlan, _root: &Path, interrupted: Interrupted<'_>) -> Result<Self, MemoryError> {
        let (state, len) = prepare(plan)?;
        if let Some(directory) = &plan.directory {
            return file::allocate(plan, len, directory, &state, interrupted);
        }
        let (backings, mut reasons) = choose_backings(plan, large::page())?;
        let last = backings.len() - 1;
        for (i, backing) in backings.into_iter().enumerate() {
            match Self::allocate_backed(plan, len, backing, &state, interrupted, &reasons) {
                // Free memory may be in too small pieces; with auto there are other kinds.
                Err(e) if i < last && matches!(e.kind, MemoryErrorKind::Pages) => reasons.push(e.why),
                outcome => return outcome,
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Allocates memory without preferring a node. The calling thread touches all of it, wherever that thread runs, so that a node chosen
    /// from outside (`start /node`, a process's affinity) has its effect. `plan.touch` is not used, and `plan.node` only to report on it.
    /// [`PageRequest::Auto`] takes base pages, because large pages are placed before any thread touches them.
    ///
    /// # Errors
    /// When the size is zero, when the pages asked for by name are not available, when there is not enough memory, or when
    /// `interrupted` says so.
    pub fn allocate_unbound(plan: &BufferPlan, _root: &Path, interrupted: Interrupted<'_>) -> Result<Self, MemoryError> {
        let (state, len) = prepare(plan)?;
        let (backing, reasons) = match plan.pages {
            PageRequest::Auto => {
                (Backing::Base(base_page()), vec!["large pages would be placed before the thread that measures touches them".to_owned()])
            }
            _ => (choose_backings(plan, large::page())?.0[0], Vec::new()),
        };
        let mut mapping = Mapping::new(len, backing, None).map_err(|e| error::mapping(plan, backing, &e))?;
        touch::populate(&mut mapping, backing, &IdSet::new(), interrupted).map_err(|e| error::touch(plan, backing, &e))?;
        let pages = read_pages(plan, &mapping, backing, &reasons)?;
        let mut placement = placement::read_back(&mapping, backing, plan.node, state.only_node, placement::SAMPLE);
        placement.method = Some(PlacementMethod::AsGiven);
        if !placement.pages_by_node.is_empty() {
            // No node was asked for, so none is wrong.
            (placement.status, placement.problems) = (PlacementStatus::Verified, Vec::new());
        }
        let (node, only_node) = (plan.node, state.only_node);
        Ok(Self { mapping, len, pages, placement, file: None, backing, node, only_node, reserved: false, turns: None })
    }

    fn allocate_backed(
        plan: &BufferPlan,
        len: usize,
        backing: Backing,
        state: &NodeState,
        interrupted: Interrupted<'_>,
        reasons: &[String],
    ) -> Result<Self, MemoryError> {
        error::check_room(plan, state, len)?;
        let turns = plan.weights.as_ref().map(|weights| turns(plan, weights, len, backing)).transpose()?;
        let mapped = match &turns {
            Some(turns) => Mapping::in_turn(len, backing, turns),
            None => Mapping::new(len, backing, Some(plan.node)),
        };
        let mut mapping = mapped.map_err(|e| error::mapping(plan, backing, &e))?;
        touch::populate(&mut mapping, backing, &plan.touch, interrupted).map_err(|e| error::touch(plan, backing, &e))?;
        let pages = read_pages(plan, &mapping, backing, reasons)?;
        let placement = match &turns {
            // All pages, because a sample at even distances meets some turns more often than others.
            Some(turns) => Placement { method: Some(PlacementMethod::VirtualAllocNuma), ..turns.read_back(&mapping, backing, usize::MAX) },
            None => placement::read_preferred(plan, &mapping, backing, state)?,
        };
        let (node, only_node) = (plan.node, state.only_node && turns.is_none());
        Ok(Self { mapping, len, pages, placement, file: None, backing, node, only_node, reserved: false, turns })
    }
}

/// The state of the node and the size of the buffer, if both are possible.
fn prepare(plan: &BufferPlan) -> Result<(NodeState, usize), MemoryError> {
    let state = NodeState::read(plan.node).map_err(|nodes| error::no_such_node(plan.node, &nodes))?;
    let len = usize::try_from(plan.bytes.0).ok().filter(|&n| n > 0 && n <= isize::MAX as usize / 2);
    Ok((state, len.ok_or_else(|| MemoryError::size(plan))?))
}

/// The turns of nodes that all exist.
fn turns(plan: &BufferPlan, weights: &Weights, len: usize, backing: Backing) -> Result<Turns, MemoryError> {
    for node in weights.nodes().iter() {
        NodeState::read(node).map_err(|nodes| error::no_such_node(node, &nodes))?;
    }
    debug_assert!(plan.weights.is_some(), "only such plans have turns");
    Ok(Turns { weights: weights.clone(), page: backing.turn(len) })
}

/// The kinds of pages to try for this request, in order, and the reasons why better kinds are not among them. `large` is the size of large
/// pages, or why there are none.
fn choose_backings(plan: &BufferPlan, large: Result<usize, String>) -> Result<(Vec<Backing>, Vec<String>), MemoryError> {
    let base = Backing::Base(base_page());
    let named = |page: Bytes| match &large {
        Err(why) => Err(error::large(plan, why.clone())),
        // Pages of 1 GiB need the same privilege. Whether there are any shows when they are asked for.
        Ok(size) if *size as u64 == page.0 || page == Bytes::gib(1) => Ok(Backing::Large(page.0 as usize)),
        Ok(size) => Err(error::other_page(plan, *size)),
    };
    let only = match plan.pages {
        PageRequest::Base => base,
        PageRequest::Thp => return Err(error::no_thp(plan)),
        PageRequest::Huge2M => named(Bytes::mib(2))?,
        PageRequest::Huge1G => named(Bytes::gib(1))?,
        PageRequest::Auto => {
            return Ok(match large {
                Ok(page) => (vec![Backing::Large(page), base], Vec::new()),
                Err(why) => (vec![base], vec![why]),
            });
        }
    };
    Ok((vec![only], Vec::new()))
}

/// Reads back which pages back the mapping. Pages asked for by name must be what was obtained, where that could be read back.
fn read_pages(plan: &BufferPlan, mapping: &Mapping, backing: Backing, reasons: &[String]) -> Result<PageEvidence, MemoryError> {
    let counts = readback::query(&mapping.sample(base_page(), placement::SAMPLE)).map(|pages| PageCounts::count(&pages));
    let pages = evidence(plan.pages, backing, counts.map_err(|e| e.to_string()), reasons);
    let wanted = if matches!(backing, Backing::Large(_)) { PageKind::Large } else { PageKind::Base };
    match (pages.obtained, pages.share) {
        (Some(obtained), Some(share)) if plan.pages != PageRequest::Auto && (obtained != wanted || share < LARGE_MAJORITY) => {
            Err(error::not_obtained(plan, obtained, share))
        }
        _ => Ok(pages),
    }
}

/// What `QueryWorkingSetEx` proves.
fn evidence(requested: PageRequest, backing: Backing, counts: Result<PageCounts, String>, reasons: &[String]) -> PageEvidence {
    let unknown = |why: String| PageEvidence { requested, reason: Some(format!("QueryWorkingSetEx: {why}")), ..PageEvidence::default() };
    let counts = match counts {
        Ok(counts) if counts.resident > 0 => counts,
        Ok(_) => return unknown("found none of its pages in memory".to_owned()),
        Err(why) => return unknown(why),
    };
    let (kind, pages, page) = match backing {
        Backing::Large(page) if 2 * counts.large >= counts.resident => (PageKind::Large, counts.large, page),
        _ => (PageKind::Base, counts.resident - counts.large, base_page()),
    };
    let why = kind == PageKind::Base && requested == PageRequest::Auto && !reasons.is_empty();
    let reason = why.then(|| reasons.join("; "));
    PageEvidence { requested, obtained: Some(kind), share: Some(counts.share(pages)), page: Some(Bytes(page as u64)), reason }
}

#[cfg(test)]
pub(super) mod tests;
