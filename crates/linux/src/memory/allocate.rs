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
use super::map::{Backing, Mapping};
use super::node_state::NodeState;
use super::page_maps::PageCounts;
use super::placement::{self, Policy, Rule, Turns};
use super::{file, touch};

/// The share of a buffer that the pages asked for by name must back. Fragmentation may take the rest.
const LARGE_MAJORITY: f64 = 0.9;

impl Buffer {
    /// Allocates memory, binds it to its node, touches it and reads back what was obtained.
    ///
    /// `root` is the root of the sysfs that describes this machine, `/` outside tests. The plan has already kept to the limits on the amount
    /// of memory. Only what the node and the pool hold at this moment is checked here, because the kernel does not refuse a bound allocation
    /// beyond that: it kills the process.
    ///
    /// A buffer in a directory is a file there; see `memory/file.rs`. For other buffers [`PageRequest::Auto`] takes free pages of the
    /// node's 2 MiB pool when there are enough, otherwise transparent huge pages, otherwise base pages; the evidence says why. The sizes of
    /// pools are never changed.
    ///
    /// # Errors
    /// When the size is zero, when the node does not exist or may not be used, when its memory, its pool or the file system has too little
    /// room, when the pages asked for by name are not available, or when memory policies are refused and no CPU of the node may touch the
    /// memory. Each error says what to do.
    pub fn allocate(plan: &BufferPlan, root: &Path) -> Result<Self, MemoryError> {
        Self::allocate_unless(plan, root, &|| false)
    }

    /// The same, given up soon after `interrupted` says so: gigabytes take seconds.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate), and [`MemoryErrorKind::Interrupted`].
    pub fn allocate_unless(plan: &BufferPlan, root: &Path, interrupted: Interrupted<'_>) -> Result<Self, MemoryError> {
        Self::allocate_under(plan, root, &placement::PROCESS, interrupted)
    }

    /// Allocates memory without binding it. The calling thread touches all of it, wherever that thread runs, and the process's memory policy
    /// decides where the pages are, so that `taskset` and `numactl` from outside have their effect. `plan.touch` is not used, and
    /// `plan.node` only to find out what the kernel offers there. [`PageRequest::Auto`] does not try the pools, because the policy may not
    /// reach their pages.
    ///
    /// # Errors
    /// When the size is zero, when the pages asked for by name are not available, when there is not enough memory, or when `interrupted` says
    /// so.
    pub fn allocate_unbound(plan: &BufferPlan, root: &Path, interrupted: Interrupted<'_>) -> Result<Self, MemoryError> {
        let state = NodeState::read(root, plan.node).map_err(|online| error::no_such_node(plan.node, &online))?;
        let len = checked_len(plan)?;
        let (backing, reasons) = match (plan.pages, state.thp.clone()) {
            (PageRequest::Base, _) => (Backing::Base(state.base_page), Vec::new()),
            (PageRequest::Huge2M, _) => (Backing::Pool(2 << 20), Vec::new()),
            (PageRequest::Huge1G, _) => (Backing::Pool(1 << 30), Vec::new()),
            (PageRequest::Thp, thp) => (thp.map_err(|why| error::thp_off(plan, &state, why))?, Vec::new()),
            (PageRequest::Auto, thp) => match thp.and_then(|backing| worth_rounding(backing, len)) {
                Ok(backing) => (backing, Vec::new()),
                Err(why) => (Backing::Base(state.base_page), vec![why]),
            },
        };
        let mut mapping = Mapping::new(len, backing).map_err(|e| error::mapping(plan, backing, &e))?;
        touch::populate(&mut mapping, backing, &IdSet::new(), false, interrupted).map_err(|e| error::touch(plan, backing, &state, &e))?;
        let pages = read_pages(plan, &mapping, backing, &state, &reasons, interrupted)?;
        let mut placement = placement::read_back(&mapping, backing, plan.node, state.only_node, &placement::PROCESS, placement::SAMPLE);
        placement.method = Some(PlacementMethod::AsGiven);
        if !placement.pages_by_node.is_empty() {
            // No node was asked for, so none is wrong.
            (placement.status, placement.problems) = (PlacementStatus::Verified, Vec::new());
        }
        let (node, only_node) = (plan.node, state.only_node);
        Ok(Self { mapping, len, pages, placement, file: None, backing, node, only_node, reserved: false, turns: None })
    }

    pub(super) fn allocate_under(
        plan: &BufferPlan,
        root: &Path,
        policy: &Policy,
        interrupted: Interrupted<'_>,
    ) -> Result<Self, MemoryError> {
        let state = NodeState::read(root, plan.node).map_err(|online| error::no_such_node(plan.node, &online))?;
        let len = checked_len(plan)?;
        if let Some(directory) = &plan.directory {
            return file::allocate(plan, len, directory, &state, policy, interrupted);
        }
        let (backings, mut reasons) = choose_backings(plan, len, &state)?;
        let last = backings.len() - 1;
        for (i, backing) in backings.into_iter().enumerate() {
            match Self::allocate_backed(plan, len, backing, &state, (policy, interrupted), &reasons) {
                // Another process may have taken the pool's pages meanwhile; with auto there are other kinds.
                Err(e) if i < last && matches!(e.kind, MemoryErrorKind::Pages) => reasons.push(e.why),
                outcome => return outcome,
            }
        }
        unreachable!("the last attempt returns")
    }

    fn allocate_backed(
        plan: &BufferPlan,
        len: usize,
        backing: Backing,
        state: &NodeState,
        (policy, interrupted): (&Policy, Interrupted<'_>),
        reasons: &[String],
    ) -> Result<Self, MemoryError> {
        if let Some(weights) = &plan.weights {
            return Self::allocate_in_turn(plan, weights, (len, backing), state, (policy, interrupted), reasons);
        }
        if !matches!(backing, Backing::Pool(_)) {
            error::check_room(plan, state, len)?;
        }
        let mut mapping = Mapping::new(len, backing).map_err(|e| error::mapping(plan, backing, &e))?;
        let rule = if matches!(backing, Backing::Pool(_)) { Rule::Only } else { Rule::choose(len, state) };
        let bound = policy.place(&mapping, rule, &IdSet::one(plan.node), state).map_err(|e| error::bind(plan, state, &e))?;
        let (cpus, strict) = touch::choose_cpus(plan, state, bound.is_ok());
        touch::populate(&mut mapping, backing, &cpus, strict, interrupted).map_err(|e| error::touch(plan, backing, state, &e))?;
        let placement = placement::bind_and_read_back(&mapping, backing, plan, state, policy, (rule, bound))?;
        let pages = read_pages(plan, &mapping, backing, state, reasons, interrupted)?;
        let (node, only_node) = (plan.node, state.only_node);
        Ok(Self { mapping, len, pages, placement, file: None, backing, node, only_node, reserved: false, turns: None })
    }

    /// Memory whose pages are on several nodes in turn, as the kernel's policy of weighted interleave would place them. One node after the
    /// other is bound and its pages are touched, which leaves one mapping: a policy for each run of pages would be a mapping each, and a
    /// process has 65,530 of them.
    fn allocate_in_turn(
        plan: &BufferPlan,
        weights: &Weights,
        (len, backing): (usize, Backing),
        state: &NodeState,
        (policy, interrupted): (&Policy, Interrupted<'_>),
        reasons: &[String],
    ) -> Result<Self, MemoryError> {
        let mut mapping = Mapping::new(len, backing).map_err(|e| error::mapping(plan, backing, &e))?;
        let turns = Turns { weights: weights.clone(), page: backing.page() };
        for node in weights.nodes().iter() {
            let here = BufferPlan { node, ..plan.clone() };
            let there = NodeState::read(&state.root, node).map_err(|online| error::no_such_node(node, &online))?;
            let share = (mapping.len() as f64 * weights.share(node)) as usize;
            let rule = match backing {
                Backing::Pool(page) => {
                    there.pool_for(node, page as u64, share).map_err(|why| error::pool(&here, &there, page as u64, share, why))?;
                    Rule::Only
                }
                _ => {
                    error::check_room(&here, &there, share)?;
                    Rule::choose(share, &there)
                }
            };
            let bound = policy.place(&mapping, rule, &IdSet::one(node), &there);
            bound.map_err(|e| error::bind(&here, &there, &e))?.map_err(|refusal| error::cannot_interleave(&here, &refusal))?;
            let touched = touch::populate_turn(&mut mapping, backing, &plan.touch, (&turns, node), interrupted);
            touched.map_err(|e| error::touch(&here, backing, &there, &e))?;
        }
        // The last node's policy would stay otherwise. Automatic balancing leaves bound pages alone.
        let all = weights.nodes();
        let bound = policy.place(&mapping, Rule::Only, &all, state);
        bound.map_err(|e| error::bind(plan, state, &e))?.map_err(|refusal| error::cannot_interleave(plan, &refusal))?;
        let pages = read_pages(plan, &mapping, backing, state, reasons, interrupted)?;
        let placement = Placement { method: Some(PlacementMethod::Mbind), ..turns.read_back(&mapping, backing, policy, usize::MAX) };
        let (node, turns) = (plan.node, Some(turns));
        Ok(Self { mapping, len, pages, placement, file: None, backing, node, only_node: false, reserved: false, turns })
    }
}

/// The size of the buffer, when it is possible.
fn checked_len(plan: &BufferPlan) -> Result<usize, MemoryError> {
    let len = usize::try_from(plan.bytes.0).ok().filter(|&n| n > 0 && n <= isize::MAX as usize / 2);
    len.ok_or_else(|| MemoryError::size(plan))
}

/// The kinds of pages to try for this request, in order, and the reasons why better kinds are not among them.
fn choose_backings(plan: &BufferPlan, len: usize, state: &NodeState) -> Result<(Vec<Backing>, Vec<String>), MemoryError> {
    // Of pages in turn each node holds a part.
    let on_node = plan.weights.as_ref().map_or(len, |weights| (len as f64 * weights.share(plan.node)) as usize);
    let pool = |page: u64| state.pool_for(plan.node, page, on_node).map(|()| Backing::Pool(page as usize));
    let base = Backing::Base(state.base_page);
    let only = match plan.pages {
        PageRequest::Base => base,
        PageRequest::Thp => state.thp.clone().map_err(|why| error::thp_off(plan, state, why))?,
        PageRequest::Huge2M => pool(2 << 20).map_err(|why| error::pool(plan, state, 2 << 20, len, why))?,
        PageRequest::Huge1G => pool(1 << 30).map_err(|why| error::pool(plan, state, 1 << 30, len, why))?,
        PageRequest::Auto => {
            let (mut backings, mut reasons) = (Vec::new(), Vec::new());
            let pool = if plan.leave_pools { Err("pools are left to other programs".to_owned()) } else { pool(2 << 20) };
            for candidate in [pool, state.thp.clone().and_then(|b| worth_rounding(b, len))] {
                match candidate {
                    Ok(backing) => backings.push(backing),
                    Err(why) => reasons.push(why),
                }
            }
            backings.push(base);
            return Ok((backings, reasons));
        }
    };
    Ok((vec![only], Vec::new()))
}

/// Rounding up to a huge page must not take much more than was planned. On kernels with 64 KiB base pages a huge page has 512 MiB.
fn worth_rounding(backing: Backing, len: usize) -> Result<Backing, String> {
    let page = backing.page();
    let waste = len.next_multiple_of(page) - len;
    if waste <= (len / 8).max(2 << 20) {
        Ok(backing)
    } else {
        Err(format!("a transparent huge page has {} here, too much for {}", Bytes(page as u64), Bytes(len as u64)))
    }
}

/// Reads back which pages back the mapping. If too few are huge, it asks the kernel once to assemble huge pages.
fn read_pages(
    plan: &BufferPlan,
    mapping: &Mapping,
    backing: Backing,
    state: &NodeState,
    reasons: &[String],
    interrupted: Interrupted<'_>,
) -> Result<PageEvidence, MemoryError> {
    let mut counts = mapping.read_pages();
    if let (Backing::Thp(_), Ok(c)) = (backing, &counts)
        && c.thp_share() < LARGE_MAJORITY
        && mapping.collapse(interrupted)
    {
        counts = mapping.read_pages();
    }
    let pages = evidence(plan.pages, backing, counts, reasons);
    check_kind(plan, backing, &pages, state)?;
    Ok(pages)
}

/// The evidence from smaps.
fn evidence(requested: PageRequest, backing: Backing, counts: Result<PageCounts, String>, reasons: &[String]) -> PageEvidence {
    let counts = match counts {
        Ok(counts) => counts,
        Err(why) => return PageEvidence { requested, reason: Some(why), ..PageEvidence::default() },
    };
    let thp_page = if let Backing::Thp(page) = backing { page as u64 } else { 0 };
    let (kind, share, page) = if counts.pool > 0 {
        (PageKind::Pool, counts.share(counts.pool), counts.page)
    } else if counts.thp_share() >= 0.5 {
        (PageKind::Thp, counts.thp_share(), thp_page)
    } else {
        (PageKind::Base, counts.share(counts.resident.saturating_sub(counts.thp)), counts.page)
    };
    let mut why: Vec<String> = if kind == PageKind::Base && requested == PageRequest::Auto { reasons.to_vec() } else { Vec::new() };
    if matches!(backing, Backing::Thp(_)) && counts.thp_share() < LARGE_MAJORITY {
        why.push(format!("the kernel backed {:.0} % with transparent huge pages: free memory is fragmented", counts.thp_share() * 100.0));
    }
    let reason = (!why.is_empty()).then(|| why.join("; "));
    PageEvidence { requested, obtained: Some(kind), share: Some(share), page: Some(Bytes(page)).filter(|p| p.0 > 0), reason }
}

/// Pages asked for by name must be what was obtained, where that could be read back.
fn check_kind(plan: &BufferPlan, backing: Backing, pages: &PageEvidence, state: &NodeState) -> Result<(), MemoryError> {
    let wanted = match backing {
        Backing::Pool(_) => PageKind::Pool,
        Backing::Thp(_) => PageKind::Thp,
        Backing::Base(_) => PageKind::Base,
        Backing::File(_) => PageKind::File,
    };
    let (Some(obtained), Some(share)) = (pages.obtained, pages.share) else { return Ok(()) };
    if plan.pages == PageRequest::Auto || (obtained == wanted && share >= LARGE_MAJORITY) {
        return Ok(());
    }
    Err(error::not_obtained(plan, obtained, share, state))
}

#[cfg(test)]
pub(super) mod tests;
