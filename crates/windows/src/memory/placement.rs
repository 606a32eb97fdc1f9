//! Reads back on which node pages are.

use std::collections::BTreeMap;

use memgauge_model::memory::MemoryError;
use memgauge_model::plan::BufferPlan;
use memgauge_model::result::{Placement, PlacementMethod, PlacementProblem, PlacementSource, PlacementStatus};

use super::error;
use super::map::{Backing, Mapping, base_page};
use super::node_state::NodeState;
use super::readback::{self, Page};
use super::turns::Turns;
use crate::answers::available_on;

/// The most pages looked up. A larger buffer is sampled evenly, with its first and last page.
pub(super) const SAMPLE: usize = 8192;
/// The share of pages that must be found for a read-back to count. Windows may be taking a few of them out of the working set at the
/// moment.
const MIN_FOUND: f64 = 0.99;

/// The node of the page at `address`; `None` when Windows does not tell or the page is not in memory.
pub(super) fn node_of(address: *mut u8) -> Option<u32> {
    Some((*readback::query(&[address]).ok()?.first()?)?.node)
}

/// Reads back on which nodes the mapping's pages are, looking up `most` of them. The caller fills in the method.
pub(super) fn read_back(mapping: &Mapping, backing: Backing, node: u32, only_node: bool, most: usize) -> Placement {
    let pages = readback::query(&mapping.sample(step(backing), most)).map_err(|e| e.to_string());
    interpret(pages, node, only_node)
}

/// Reads back the placement of memory that prefers the plan's node.
///
/// # Errors
/// When pages are elsewhere because the node has no room for them.
pub(super) fn read_preferred(plan: &BufferPlan, mapping: &Mapping, backing: Backing, state: &NodeState) -> Result<Placement, MemoryError> {
    let mut placement = read_back(mapping, backing, plan.node, state.only_node, SAMPLE);
    placement.method = Some(PlacementMethod::VirtualAllocNuma);
    if let (Some(PlacementProblem::Elsewhere { pages, of, .. }), Some(free)) = (placement.problems.first(), available_on(plan.node))
        && is_full(mapping.len(), (*pages, *of), free)
    {
        return Err(error::went_elsewhere(plan, free, &placement));
    }
    Ok(placement)
}

/// Whether what is free on a node now is less than what of a buffer is elsewhere: `pages` of the `of` that were looked up.
pub(super) fn is_full(len: usize, (pages, of): (u64, u64), free: u64) -> bool {
    (free as f64) < len as f64 * (pages as f64 / of.max(1) as f64)
}

/// The distance between pages that are looked up: a large page is one page, as it is in one place.
pub(super) fn step(backing: Backing) -> usize {
    if let Backing::Large(page) = backing { page } else { base_page() }
}

/// What the pages that were looked up say of a buffer for one node.
fn interpret(pages: Result<Vec<Option<Page>>, String>, node: u32, only_node: bool) -> Placement {
    match pages.and_then(|pages| by_node(&pages)) {
        Ok(pages) => conclude(node, pages),
        Err(_) if only_node => {
            // Not read back, but certain: the machine has only this node.
            Placement { status: PlacementStatus::Verified, source: Some(PlacementSource::OnlyNode), ..Placement::default() }
        }
        Err(why) => not_read_back(&why),
    }
}

fn by_node(pages: &[Option<Page>]) -> Result<BTreeMap<u32, u64>, String> {
    let mut nodes = BTreeMap::new();
    for page in pages.iter().flatten() {
        *nodes.entry(page.node).or_insert(0u64) += 1;
    }
    let found: u64 = nodes.values().sum();
    if (found as f64) < MIN_FOUND * pages.len() as f64 {
        return Err(format!("found {found} of {} pages", pages.len()));
    }
    Ok(nodes)
}

fn conclude(node: u32, pages_by_node: BTreeMap<u32, u64>) -> Placement {
    let elsewhere: u64 = pages_by_node.iter().filter(|(n, _)| **n != node).map(|(_, count)| count).sum();
    let of: u64 = pages_by_node.values().sum();
    let problem = (elsewhere > 0).then_some(PlacementProblem::Elsewhere { pages: elsewhere, of, node });
    looked_up(pages_by_node, problem)
}

fn looked_up(pages_by_node: BTreeMap<u32, u64>, problem: Option<PlacementProblem>) -> Placement {
    let status = if problem.is_some() { PlacementStatus::Wrong } else { PlacementStatus::Verified };
    let problems = problem.into_iter().collect();
    Placement { status, method: None, source: Some(PlacementSource::QueryWorkingSetEx), pages_by_node, problems }
}

fn not_read_back(why: &str) -> Placement {
    let problems = vec![PlacementProblem::NotReadBack { detail: format!("QueryWorkingSetEx: {why}") }];
    Placement { status: PlacementStatus::Unverified, problems, ..Placement::default() }
}

impl Turns {
    /// Reads back whether every page, or `most` of them, is on the node whose turn it is. Counts are those of the pages that were looked
    /// up.
    pub(super) fn read_back(&self, mapping: &Mapping, backing: Backing, most: usize) -> Placement {
        let addresses = mapping.sample(step(backing), most);
        let pages = readback::query(&addresses).map_err(|e| e.to_string());
        self.interpret(&addresses.iter().map(|address| *address as usize).collect::<Vec<_>>(), pages)
    }

    fn interpret(&self, addresses: &[usize], pages: Result<Vec<Option<Page>>, String>) -> Placement {
        let (pages, nodes) = match pages.and_then(|pages| Ok((by_node(&pages)?, pages))) {
            Ok((nodes, pages)) => (pages, nodes),
            Err(why) => return not_read_back(&why),
        };
        let elsewhere = |(page, at): &(&Option<Page>, &usize)| page.is_some_and(|page| page.node != self.node_at(**at));
        let out_of_turn = pages.iter().zip(addresses).filter(elsewhere).count() as u64;
        let of = nodes.values().sum();
        looked_up(nodes, (out_of_turn > 0).then_some(PlacementProblem::OutOfTurn { pages: out_of_turn, of }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of these nodes, as `QueryWorkingSetEx` states them; 64 stands for a page that is not in memory.
    fn pages(nodes: &[u64]) -> Result<Vec<Option<Page>>, String> {
        Ok(nodes.iter().map(|node| Page::from_flags(if *node == 64 { 0 } else { 0x43 | node << 16 })).collect())
    }

    #[test]
    fn one_page_elsewhere_is_wrong() {
        let right = interpret(pages(&[1, 1, 1]), 1, false);
        assert_eq!((right.status, right.source), (PlacementStatus::Verified, Some(PlacementSource::QueryWorkingSetEx)));
        assert_eq!(right.pages_by_node, BTreeMap::from([(1, 3)]));
        let wrong = interpret(pages(&[3, 3, 0, 2, 3, 3]), 3, false);
        assert_eq!(wrong.status, PlacementStatus::Wrong);
        assert_eq!(wrong.pages_by_node, BTreeMap::from([(0, 1), (2, 1), (3, 4)]));
        assert_eq!(wrong.problems, [PlacementProblem::Elsewhere { pages: 2, of: 6, node: 3 }]);
    }

    #[test]
    fn pages_that_are_not_in_memory_prove_nothing_but_on_the_only_node() {
        let unknown = interpret(pages(&[0, 64]), 0, false);
        assert_eq!((unknown.status, unknown.source), (PlacementStatus::Unverified, None));
        assert_eq!(unknown.problems, [PlacementProblem::NotReadBack { detail: "QueryWorkingSetEx: found 1 of 2 pages".to_owned() }]);
        for pages in [pages(&[0, 64]), Err("no".to_owned())] {
            let certain = interpret(pages, 0, true);
            assert_eq!((certain.status, certain.source), (PlacementStatus::Verified, Some(PlacementSource::OnlyNode)));
        }
    }

    #[test]
    fn turns_are_those_of_the_weights() {
        let turns = Turns { weights: "0=2,1=1".parse().unwrap(), page: 64 << 10 };
        let page = turns.page;
        // From the second page of a round on: one of node 0, one of node 1, two of node 0.
        let data = 3 * page * 1000 + page;
        assert_eq!(turns.runs(data, 4 * page - 4096), [(0, page, 0), (page, 2 * page, 1), (2 * page, 4 * page - 4096, 0)]);
        let at: Vec<usize> = (0..4).map(|i| data + i * page + 4096).collect();
        assert_eq!(turns.interpret(&at, pages(&[0, 1, 0, 0])).status, PlacementStatus::Verified);
        let wrong = turns.interpret(&at, pages(&[0, 1, 1, 0]));
        assert_eq!(wrong.problems, [PlacementProblem::OutOfTurn { pages: 1, of: 4 }]);
        assert_eq!(turns.interpret(&at, pages(&[0, 1, 64, 0])).status, PlacementStatus::Unverified);
    }
}
