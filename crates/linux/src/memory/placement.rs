//! Binds pages to a node, and reads back where they are.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::sync::atomic::{AtomicI32, Ordering};

use memgauge_model::interleave::Weights;
use memgauge_model::memory::MemoryError;
use memgauge_model::plan::BufferPlan;
use memgauge_model::result::{Placement, PlacementMethod, PlacementProblem, PlacementSource, PlacementStatus};
use memgauge_model::units::IdSet;

use super::error;
use super::map::{Backing, Mapping};
use super::node_state::NodeState;
use super::page_maps;
use crate::base_page;

/// How the kernel chooses the node of a page that is touched first (linux/mempolicy.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// `MPOL_BIND`: these nodes only. If they have no memory left, the kernel kills a process. NUMA balancing does not migrate such pages.
    Only,
    /// `MPOL_PREFERRED`: this node while it has free memory, then others, so that nothing is killed.
    First,
}

impl Rule {
    /// The rule for touching `len` bytes on a node. If twice as much is free now, the kernel finds room for all of them there, unless others
    /// take it at this moment or the node goes offline: then pages go elsewhere, and nothing is killed. If less is free, the kernel has to make
    /// room, and it does that only for pages that must be on this node.
    pub(super) fn choose(len: usize, state: &NodeState) -> Self {
        let ample = state.free.is_some_and(|free| free / 2 >= len as u64);
        if ample && !state.only_node { Self::First } else { Self::Only }
    }

    const fn mode(self) -> libc::c_long {
        match self {
            Self::First => 1,
            Self::Only => 2,
        }
    }
}

/// `MPOL_MF_STRICT`: an error if a page is elsewhere.
const MPOL_MF_STRICT: libc::c_long = 1;
/// `MPOL_MF_MOVE`: pages that are elsewhere are moved. If the kernel cannot make room for them, they stay: it kills nothing for this.
const MPOL_MF_MOVE: libc::c_long = 2;
/// The most pages looked up, which takes about 2 ms. A larger buffer is sampled evenly, with its first and last page.
pub(super) const SAMPLE: usize = 8192;
/// And the fewest of one of many buffers: enough to show that a part of it is elsewhere.
const LEAST_SAMPLE: usize = 64;
/// The share of pages that must be found for a read-back to count. Compaction may be migrating a few of them at the moment.
const MIN_FOUND: f64 = 0.99;

/// Whether this process may use memory policies. A call that was refused once is not tried again, because it takes time and because some
/// systems log each refusal.
#[derive(Debug)]
pub(super) struct Policy {
    /// The error with which `mbind` was refused; 0 while it was not.
    bind_refused: AtomicI32,
    /// The same for `move_pages`.
    query_refused: AtomicI32,
}

/// The policy of this process.
pub(super) static PROCESS: Policy = Policy::new();

impl Policy {
    /// A policy that has not been refused.
    pub(super) const fn new() -> Self {
        Self { bind_refused: AtomicI32::new(0), query_refused: AtomicI32::new(0) }
    }

    /// Sets the rule for the mapping's pages; those that are there stay where they are. `Ok(Err(why))`: policies may not be used here. The
    /// error `EINVAL` means that a node may not, or has gone offline; where all may, something between this process and the kernel's policies
    /// (a filter, an emulator) refuses them.
    pub(super) fn place(&self, mapping: &Mapping, rule: Rule, nodes: &IdSet, state: &NodeState) -> io::Result<Result<(), String>> {
        let refusal = |errno: i32| format!("memory policies are refused here (mbind: {})", io::Error::from_raw_os_error(errno));
        let known = self.bind_refused.load(Ordering::Relaxed);
        if known != 0 {
            return Ok(Err(refusal(known)));
        }
        let Err(e) = mbind(mapping, rule, nodes, 0) else { return Ok(Ok(())) };
        match e.raw_os_error() {
            Some(errno)
                if matches!(errno, libc::EPERM | libc::ENOSYS | libc::EACCES)
                    || (errno == libc::EINVAL && nodes.iter().all(|node| state.still_allows(node))) =>
            {
                self.bind_refused.store(errno, Ordering::Relaxed);
                Ok(Err(refusal(errno)))
            }
            _ => Err(e),
        }
    }

    /// Binds a mapping whose pages were touched under [`Rule::First`], and moves those that are elsewhere. The read-back shows what could not
    /// be moved.
    pub(super) fn gather(mapping: &Mapping, nodes: &IdSet) {
        // Asking takes a walk through the page tables. Moving makes every CPU of the machine give back the pages that it keeps for itself.
        for flags in [MPOL_MF_STRICT, MPOL_MF_MOVE, 0] {
            if mbind(mapping, Rule::Only, nodes, flags).is_ok() {
                return;
            }
        }
    }

    /// For each of `addresses` the node of its page, or a negative error number when it has no page.
    fn query_nodes(&self, addresses: &[*mut u8]) -> io::Result<Vec<i32>> {
        let known = self.query_refused.load(Ordering::Relaxed);
        if known != 0 {
            return Err(io::Error::from_raw_os_error(known));
        }
        let mut nodes = vec![i32::MIN; addresses.len()];
        let no_targets = std::ptr::null::<i32>();
        // SAFETY: without target nodes nothing is moved. Both arrays have the number of entries that the call is given.
        let rc = unsafe { libc::syscall(libc::SYS_move_pages, 0, addresses.len(), addresses.as_ptr(), no_targets, nodes.as_mut_ptr(), 0) };
        if rc == 0 {
            return Ok(nodes);
        }
        let e = io::Error::last_os_error();
        if let Some(errno @ (libc::EPERM | libc::ENOSYS | libc::EACCES)) = e.raw_os_error() {
            self.query_refused.store(errno, Ordering::Relaxed);
        }
        Err(e)
    }
}

/// The node of the page at `address`; `None` if the kernel does not tell it or the address has no page.
pub(super) fn node_of(address: *mut u8) -> Option<u32> {
    u32::try_from(*PROCESS.query_nodes(&[address]).ok()?.first()?).ok()
}

fn mbind(mapping: &Mapping, rule: Rule, nodes: &IdSet, flags: libc::c_long) -> io::Result<()> {
    let (mask, maxnode) = mask(nodes);
    // SAFETY: sets the policy of a mapping of ours, and moves its pages at most, whose addresses and content stay. The kernel reads
    // `maxnode - 1` bits of the mask, which has as many.
    let rc = unsafe { libc::syscall(libc::SYS_mbind, mapping.data(), mapping.len(), rule.mode(), mask.as_ptr(), maxnode, flags) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A mask with the bits of `nodes`, and its `maxnode`: the kernel reads one bit less than that number.
fn mask(nodes: &IdSet) -> (Vec<usize>, usize) {
    let bits = usize::BITS as usize;
    let mut words = vec![0usize; nodes.last().unwrap_or(0) as usize / bits + 1];
    nodes.iter().for_each(|node| words[node as usize / bits] |= 1 << (node as usize % bits));
    let maxnode = words.len() * bits + 1;
    (words, maxnode)
}

/// Binds a buffer that was touched under [`Rule::First`], and reads back the placement of any. `bound` is what [`Policy::place`] returned for it.
///
/// # Errors
/// When policies are refused, no CPU of the node may be used, and the pages are not known to be on the node; and when the node had no room
/// for all of them.
pub(super) fn bind_and_read_back(
    mapping: &Mapping,
    backing: Backing,
    plan: &BufferPlan,
    state: &NodeState,
    policy: &Policy,
    (rule, bound): (Rule, Result<(), String>),
) -> Result<Placement, MemoryError> {
    if rule == Rule::First && bound.is_ok() {
        Policy::gather(mapping, &IdSet::one(plan.node));
    }
    let mut placement = read_back(mapping, backing, plan.node, state.only_node, policy, SAMPLE);
    placement.method = Some(if bound.is_ok() { PlacementMethod::Mbind } else { PlacementMethod::FirstTouch });
    if let Err(refusal) = bound
        && placement.status != PlacementStatus::Verified
    {
        if plan.touch.intersection(&state.node_cpus).is_empty() {
            return Err(error::cannot_place(plan, &refusal));
        }
        placement.problems.push(PlacementProblem::PolicyRefused { detail: refusal });
    } else if rule == Rule::First && placement.status == PlacementStatus::Wrong {
        return Err(error::went_elsewhere(plan, &state.root, &placement));
    }
    Ok(placement)
}

/// Reads back on which nodes the mapping's pages are, looking up `most` of them. The caller fills in the method.
pub(super) fn read_back(mapping: &Mapping, backing: Backing, node: u32, only_node: bool, policy: &Policy, most: usize) -> Placement {
    // Both sources count a pool page as one page. Transparent huge pages may be mixed with base pages, so each base page is looked up.
    let page = if let Backing::Pool(page) = backing { page } else { base_page() };
    let mut failures = Vec::new();
    match by_move_pages(mapping, page, policy, most) {
        Ok(pages) => return conclude(node, PlacementSource::MovePages, pages),
        Err(why) => failures.push(format!("move_pages: {why}")),
    }
    match by_numa_maps(mapping) {
        Ok(pages) => return conclude(node, PlacementSource::NumaMaps, pages),
        Err(why) => failures.push(format!("numa_maps: {why}")),
    }
    if only_node {
        // Not read back, but certain: no other node has memory.
        let source = Some(PlacementSource::OnlyNode);
        return Placement { status: PlacementStatus::Verified, source, ..Placement::default() };
    }
    let problems = vec![PlacementProblem::NotReadBack { detail: failures.join("; ") }];
    Placement { status: PlacementStatus::Unverified, problems, ..Placement::default() }
}

/// The node of each page of a buffer whose pages are on several nodes in turn.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    pub(super) weights: Weights,
    /// Bytes of a page as the kernel places it: a huge page at once.
    pub(super) page: usize,
}

impl Turns {
    /// The node of the page at an address.
    pub(super) fn node_at(&self, address: usize) -> u32 {
        self.weights.node_of_page((address / self.page) as u64)
    }

    /// Reads back whether every page, or `most` of them, is on the node whose turn it is. Counts are those of the pages that were looked up.
    pub(super) fn read_back(&self, mapping: &Mapping, backing: Backing, policy: &Policy, most: usize) -> Placement {
        let step = if let Backing::Pool(page) = backing { page } else { base_page() };
        // SAFETY: every index is below the number of pages in the mapping.
        let addresses: Vec<*mut u8> = sample(mapping.len() / step, most).map(|i| unsafe { mapping.data().add(i * step) }).collect();
        let problem = |detail| Placement { problems: vec![PlacementProblem::NotReadBack { detail }], ..Placement::default() };
        let nodes = match policy.query_nodes(&addresses) {
            Ok(nodes) => nodes,
            Err(e) => return problem(format!("move_pages: {e}")),
        };
        let (mut pages_by_node, mut elsewhere) = (BTreeMap::new(), 0);
        for (node, address) in nodes.iter().zip(&addresses).filter_map(|(n, a)| Some((u32::try_from(*n).ok()?, a))) {
            *pages_by_node.entry(node).or_insert(0u64) += 1;
            elsewhere += u64::from(node != self.node_at(*address as usize));
        }
        let of: u64 = pages_by_node.values().sum();
        if (of as f64) < MIN_FOUND * addresses.len() as f64 {
            return problem(format!("move_pages: found {of} of {} pages", addresses.len()));
        }
        let problems = if elsewhere > 0 { vec![PlacementProblem::OutOfTurn { pages: elsewhere, of }] } else { Vec::new() };
        let status = if elsewhere > 0 { PlacementStatus::Wrong } else { PlacementStatus::Verified };
        Placement { status, method: None, source: Some(PlacementSource::MovePages), pages_by_node, problems }
    }
}

fn conclude(node: u32, source: PlacementSource, pages_by_node: BTreeMap<u32, u64>) -> Placement {
    let elsewhere: u64 = pages_by_node.iter().filter(|(n, _)| **n != node).map(|(_, count)| count).sum();
    let all: u64 = pages_by_node.values().sum();
    let (status, problems) = match elsewhere {
        0 => (PlacementStatus::Verified, Vec::new()),
        pages => (PlacementStatus::Wrong, vec![PlacementProblem::Elsewhere { pages, of: all, node }]),
    };
    Placement { status, method: None, source: Some(source), pages_by_node, problems }
}

fn by_move_pages(mapping: &Mapping, page: usize, policy: &Policy, most: usize) -> Result<BTreeMap<u32, u64>, String> {
    let count = mapping.len() / page;
    // SAFETY: every index is below the number of pages in the mapping.
    let addresses: Vec<*mut u8> = sample(count, most).map(|i| unsafe { mapping.data().add(i * page) }).collect();
    let nodes = policy.query_nodes(&addresses).map_err(|e| e.to_string())?;
    let mut pages = BTreeMap::new();
    for node in nodes.iter().filter_map(|&n| u32::try_from(n).ok()) {
        *pages.entry(node).or_insert(0u64) += 1;
    }
    let found: u64 = pages.values().sum();
    if (found as f64) < MIN_FOUND * addresses.len() as f64 {
        return Err(format!("found {found} of {} pages", addresses.len()));
    }
    Ok(pages)
}

fn by_numa_maps(mapping: &Mapping) -> Result<BTreeMap<u32, u64>, String> {
    let (start, end) = mapping.range();
    let file = File::open("/proc/self/numa_maps").map_err(|e| e.to_string())?;
    // An entry has about 100 bytes. The kernel walks the page tables of as many entries as fit into the read.
    let pages = page_maps::numa_maps(BufReader::with_capacity(256, file), start, end);
    pages.filter(|p| !p.is_empty()).ok_or_else(|| "does not show the buffer".to_owned())
}

/// All of `count` indices when they are few, otherwise `most` of them, evenly spread, with the first and the last.
fn sample(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(most.max(LEAST_SAMPLE));
    (0..taken).map(move |i| if taken < 2 { 0 } else { (i as u128 * (count - 1) as u128 / (taken - 1) as u128) as usize })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_a_bit_more_than_they_need() {
        assert_eq!(mask(&IdSet::one(0)), (vec![1], 65));
        assert_eq!(mask(&IdSet::one(63)), (vec![1 << 63], 65));
        assert_eq!(mask(&[1, 64].into_iter().collect()), (vec![2, 1], 129));
        assert_eq!(mask(&IdSet::one(1000)).0.len(), 16);
    }

    #[test]
    fn a_sample_has_both_ends_and_no_index_twice() {
        for count in [0, 1, 2, 100, SAMPLE, SAMPLE + 1, 131_072, 1 << 40] {
            let indices: Vec<usize> = sample(count, SAMPLE).collect();
            assert_eq!(indices.len(), count.min(SAMPLE));
            assert!(indices.windows(2).all(|w| w[0] < w[1]));
            if count > 0 {
                assert_eq!((indices[0], indices[indices.len() - 1]), (0, count - 1));
            }
        }
    }

    #[test]
    fn one_page_elsewhere_is_wrong() {
        assert_eq!(conclude(1, PlacementSource::NumaMaps, BTreeMap::from([(1, 5)])).status, PlacementStatus::Verified);
        let wrong = conclude(1, PlacementSource::NumaMaps, BTreeMap::from([(1, 5), (0, 1)]));
        assert_eq!(wrong.status, PlacementStatus::Wrong);
        assert_eq!(wrong.problems, [PlacementProblem::Elsewhere { pages: 1, of: 6, node: 1 }]);
    }
}
