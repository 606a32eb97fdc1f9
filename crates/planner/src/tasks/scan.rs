//! A scan of memory: which CPUs read which node, how much memory is scanned, and the size of a region.

use memgauge_model::experiment::{Coordinates, Experiment, MemoryPlace};
use memgauge_model::integrity::{self, TestPattern};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::{Cell, Scan, Step, Traffic, Work};
use memgauge_model::spec::ScanSpec;
use memgauge_model::topology::{Node, Topology};
use memgauge_model::traffic::Mix;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::words;
use memgauge_model::words::{Knob, Problem, Way, Ways, Words};

use crate::check::{PlanError, invalid, no_pool, unavailable};
use crate::coarsen::FEWEST_REGIONS;
use crate::context::Planner;
use crate::cost;
use crate::sizes::{approximately, floor_power_of_two};

/// The size of a region: the granularity of the layout of controllers and hot-plugged memory, and the largest page size that CPUs use.
const REGION: Bytes = Bytes::gib(1);
/// The smallest region: several threads need some huge pages each for a pass that is longer than their start.
const MIN_REGION: Bytes = Bytes::mib(1);
/// The number of regions to aim for if the default region is too large.
const WANTED_REGIONS: u64 = 8;
/// Passes over each region. With ten, the interval of the median leaves out the fastest and the slowest.
const PASSES: u32 = 10;
/// Width of the histogram's buckets in GB/s.
const BUCKET_GBS: f64 = 5.0;
/// The share of a node's memory that stays free, in percent, and the least and the most that stay free. A machine in use needs memory for
/// programs that start during the scan. Such programs are not larger on a larger machine.
const MARGIN_PERCENT: u64 = 5;
const MIN_MARGIN: u64 = 2 << 30;
const MAX_MARGIN: u64 = 8 << 30;
/// Above the least no more than one part in this many of what is free.
const MARGIN_ONE_IN: u64 = 2;
/// How long patterns may take if no time limit is given: enough for all of them on 10 GiB, and for the quick ones on a large node.
const CHECK_S: f64 = 600.0;
/// The share of a run's time limit that patterns may take: the rest is for taking and reading the regions.
const CHECK_SHARE: f64 = 0.5;
/// On small nodes the least margin is one part in this many of the node's memory.
const SMALL_NODE: u64 = 4;

/// The memory of a node that may be scanned.
struct NodeRoom {
    bytes: u64,
    limited_by: String,
    margin: u64,
}

impl Planner<'_> {
    /// One cell for each node.
    pub(super) fn scan(&mut self, request: &ScanSpec) -> Result<Step, PlanError> {
        if request.passes == Some(0) {
            return invalid(words![Knob::Passes, " 0 measures nothing"].advise("give 1 or more"));
        }
        if request.bucket_gbs.is_some_and(|b| !(b.is_finite() && b > 0.0)) {
            return invalid("the width of a histogram's bucket must be more than 0 GB/s");
        }
        let traffic = self.traffic(Mix::AllReads)?;
        let mut cells = Vec::new();
        let mut scanned = Vec::new();
        // A scan takes the memory that the process may have, and no other under an inherited policy.
        let nodes = self.inherited.as_ref().map_or_else(|| self.nodes.clone(), |inherited| inherited.nodes.clone());
        for node in nodes.iter() {
            let cpus = self.scan_cpus(node);
            let allowed = &self.machine.allowed;
            let unknown = allowed.memory.is_none() && !allowed.node_memory.contains_key(&node);
            if unknown && request.memory.is_none() && self.machine.pool_page(self.spec.pages).is_none() {
                let why = &allowed.memory_limited_by;
                return unavailable(Problem::new(
                    format!("how much memory of node {node} may be scanned is not known ({why})"),
                    Way::Give(Knob::Size),
                ));
            }
            let room = self.node_room(node);
            let scan = self.node_scan(request, node, cpus.clone(), &traffic, &room)?;
            scanned.push((node, scan.bytes().0, room.limited_by.into()));
            let at = Coordinates {
                cpu_node: cpus.first().map(|c| self.cpu_node(c)).filter(|&n| cpus.iter().all(|c| self.cpu_node(c) == n)),
                memory: Some(MemoryPlace::Node(node)),
                cpus: Some(cpus),
                mix: Some(Mix::AllReads),
                ..Default::default()
            };
            cells.push(Cell::new(at, Work::Scan(scan)));
        }
        if request.memory.is_none() {
            self.notes.extend(share_note(&scanned, &self.machine.topology));
        }
        Ok(self.step("Memory scan", Experiment::MemoryScan, cells))
    }

    /// Says again how much memory is scanned, if the time allows only less.
    pub(crate) fn say_what_is_scanned(&mut self, steps: &[Step]) {
        let scans = steps.iter().flat_map(|step| &step.cells).filter_map(|cell| cell.work.scan());
        let scans = scans.map(|scan| (scan.region.node, scan.bytes().0, Knob::Within.into()));
        let note = share_note(&scans.collect::<Vec<_>>(), &self.machine.topology);
        self.notes.retain(|note| note.code != NoteCode::ScanShare);
        self.notes.extend(note);
    }

    /// The named CPUs, otherwise the node's own. For a node without CPUs, those of the nearest node that has some.
    fn scan_cpus(&self, node: u32) -> IdSet {
        if self.spec.cpus.is_some() {
            return self.cpus.clone();
        }
        let own = self.cpus_on(node);
        if !own.is_empty() {
            return own;
        }
        let near = self.cpu_nodes().iter().min_by_key(|&home| self.machine.topology.distance(node, home));
        near.map_or_else(|| self.cpus.clone(), |near| self.cpus_on(near))
    }

    fn node_scan(&mut self, request: &ScanSpec, node: u32, cpus: IdSet, traffic: &Traffic, room: &NodeRoom) -> Result<Scan, PlanError> {
        let bytes = match request.memory {
            Some(Bytes(requested)) if requested > room.bytes => {
                let smaller = Ways::from(Way::Smaller(Knob::Size));
                let advice = self.reserve(node, requested).into_iter().fold(smaller, Ways::or);
                let (requested, most, limited_by) = (Bytes(requested), approximately(room.bytes), &room.limited_by);
                return unavailable(Problem::new(
                    format!("{requested} of node {node} are more than the {most} that may be taken there (limited by {limited_by})"),
                    advice,
                ));
            }
            Some(Bytes(requested)) => requested,
            None => room.bytes,
        };
        let region = self.region(request, node, bytes, room)?;
        let regions = u32::try_from(bytes / region).unwrap_or(u32::MAX);
        let mut plan = self.sizes.buffer(Bytes(region), node, false);
        if plan.touch.is_empty() {
            plan.touch.clone_from(&cpus);
        }
        let scan = Scan {
            cpus,
            region: plan,
            regions,
            margin: Bytes(room.margin),
            passes: request.passes.unwrap_or(PASSES),
            traffic: traffic.clone(),
            bucket_gbs: request.bucket_gbs.unwrap_or(BUCKET_GBS),
            integrity: request.integrity,
            patterns: Vec::new(),
            hold_s: request.hold.map_or(0.0, |hold| hold.as_secs_f64()),
        };
        let patterns = if scan.integrity { self.patterns(request, node, &scan) } else { Vec::new() };
        let scan = Scan { patterns, ..scan };
        self.warn_of_caches(node, &scan);
        Ok(scan)
    }

    /// The patterns asked for, otherwise as many as fit the time, but always the first one.
    fn patterns(&mut self, request: &ScanSpec, node: u32, scan: &Scan) -> Vec<TestPattern> {
        let requested = integrity::each_once(&request.patterns);
        if !requested.is_empty() {
            return requested;
        }
        let check_s = self.spec.within.map_or(CHECK_S, |within| within.as_secs_f64() * CHECK_SHARE) / self.nodes.len().max(1) as f64;
        let takes_s = |patterns: &[TestPattern]| cost::check_s(&Scan { patterns: patterns.to_vec(), ..scan.clone() });
        let (mut taken, mut left_out) = (Vec::new(), Vec::new());
        for (name, pattern) in TestPattern::ALL {
            taken.push(pattern);
            if taken.len() > 1 && takes_s(&taken) > check_s {
                taken.pop();
                left_out.push((name, pattern));
            }
        }
        if !left_out.is_empty() {
            let (names, patterns): (Vec<&str>, Vec<TestPattern>) = left_out.into_iter().unzip();
            let (more_s, names) = (takes_s(&patterns), names.join(","));
            let more = if more_s < 90.0 { format!("{more_s:.0} s") } else { format!("{:.0} min", more_s / 60.0) };
            let message = format!("patterns left out on node {node}, because they would take about {more} more: {names}");
            let advice = words!["name them for a scan with them: ", Knob::Patterns, " {names}"];
            self.notes.push(Note::info(NoteCode::PatternsLeftOut, message).advise(advice));
        }
        taken
    }

    /// The command that makes a node's pool large enough for `bytes`; `None` if no pages of a pool are asked for.
    fn reserve(&self, node: u32, bytes: u64) -> Option<String> {
        let page = self.machine.pool_page(self.spec.pages)?;
        let needed = bytes.div_ceil(page.0);
        let pool = self.machine.topology.node(node).and_then(|node| node.pools.iter().find(|pool| pool.page == page));
        let all = pool.map_or(needed, |pool| pool.total_for(needed));
        let Some(how) = self.machine.pool_change(Some(node), page, all) else {
            let (what, boot) = no_pool(page, needed);
            return Some(format!("{what}; {boot}"));
        };
        let boot = if page == Bytes::gib(1) {
            format!(" (when memory is too fragmented: boot with hugepagesz=1G hugepages={all})")
        } else {
            String::new()
        };
        Some(format!("reserve pages {how}{boot}"))
    }

    /// Within the limits of other measurements, and with 5 % of the node left free, at least 2 GiB and at most 8.
    fn node_room(&mut self, node: u32) -> NodeRoom {
        if self.machine.pool_page(self.spec.pages).is_some() {
            // Pages of a pool left free memory when the pool was made, so using them does not reduce it.
            let limited_by = format!("the free {} pages of node {node}'s pool", self.spec.pages.name());
            return NodeRoom { bytes: self.sizes.in_pool(node), limited_by, margin: 0 };
        }
        let found = self.machine.topology.node(node).cloned().unwrap_or_else(|| Node { id: node, ..Node::default() });
        let allowed = &self.machine.allowed;
        let (usual, least) = margin(found.stated_bytes().saturating_sub(found.pooled()));
        let left = found.free.map(|free| free.0.max(allowed.node_memory.get(&node).map_or(0, |b| b.0)));
        let margin = left.map_or(usual, |left| usual.min((left / MARGIN_ONE_IN).max(least)));
        if least < MIN_MARGIN || margin < usual {
            let (what, of) = if margin < usual { ("free", left.unwrap_or(0)) } else { ("in all", found.stated_bytes()) };
            let (of, margin, usual) = (approximately(of), approximately(margin), Bytes(usual.max(MIN_MARGIN)));
            let usual = if usual == Bytes(MIN_MARGIN) { usual.to_string() } else { approximately(usual.0) };
            let message = format!("node {node} has {of} {what}: {margin} of it stay free instead of {usual}");
            self.notes.push(Note::info(NoteCode::ScanMargin, message));
        }
        let mut limits = vec![(allowed.room(), allowed.memory_limited_by.clone())];
        let may_be_taken = allowed.node_memory.get(&node).map(|b| b.0);
        limits.extend(may_be_taken.map(|bytes| (bytes, allowed.limit_of_node(node))));
        limits.extend(found.free.map(|free| {
            // A machine that has run for a while has little free memory, because the kernel keeps files in it that it can read again.
            let left = free.0.max(may_be_taken.unwrap_or_default());
            (left.saturating_sub(margin), format!("free memory of node {node}, less the {} that stay free", approximately(margin)))
        }));
        let (bytes, limited_by) = limits.into_iter().min_by_key(|(bytes, _)| *bytes).unwrap_or_default();
        NodeRoom { bytes, limited_by, margin }
    }

    /// Bytes of a region when `bytes` are scanned.
    fn region(&mut self, request: &ScanSpec, node: u32, bytes: u64, room: &NodeRoom) -> Result<u64, PlanError> {
        let pool_page = self.spec.pages.pool_page();
        let page = pool_page.unwrap_or(MIN_REGION);
        let more = |region: Bytes| match self.reserve(node, region.0) {
            Some(how) => Way::from(how).or_else(Way::LeaveOut(Knob::Pages)),
            None => match self.sizes.pool_for(region.0, node) {
                Some((pages, _)) => Way::from("free some there").or(words![
                    "scan the free pages of its pool with ",
                    Knob::Pages,
                    format!(" {}", pages.name())
                ]),
                None => Way::from("free some there").or("raise the limit").or(Way::Smaller(Knob::Region)),
            },
        };
        let fitting = |region: Bytes, most: u64| {
            if region.0 <= most {
                return Ok(region.0);
            }
            if let Some(size) = request.memory {
                let regions = if request.region.is_none() && page != REGION { WANTED_REGIONS } else { 1 };
                let least = Bytes(region.0 * regions);
                return invalid(words!["a ", Knob::Size, " of {size} has no room for a region of {region}: give {least} or more"]);
            }
            let (all, limited_by, advice) = (approximately(bytes), &room.limited_by, more(region));
            unavailable(Problem::new(
                format!("node {node} has no room for a region of {region}: {all} are to be taken (limited by {limited_by})"),
                advice,
            ))
        };
        if let Some(requested) = request.region {
            if requested < page || !requested.0.is_multiple_of(page.0) {
                return invalid(format!("a region of {requested} is not a multiple of {page}"));
            }
            return fitting(requested, bytes);
        }
        if bytes / REGION.0 >= u64::from(FEWEST_REGIONS) || page == REGION {
            return fitting(REGION, bytes);
        }
        let region = floor_power_of_two(bytes / WANTED_REGIONS);
        fitting(page, region)?;
        let (all, each) = (approximately(bytes), Bytes(region));
        let message = format!(
            "{all} are to be scanned on node {node}: regions have {each} instead of {REGION}, so that there are several to compare"
        );
        self.notes.push(Note::info(NoteCode::ScanRegion, message));
        Ok(region)
    }

    fn warn_of_caches(&mut self, node: u32, scan: &Scan) {
        // The scan reads all other regions between two passes over a region, and reads the part that the caches can hold from the caches.
        let caches = self.sizes.cache_bytes(&scan.cpus);
        if scan.bytes().0 < 4 * caches {
            let (scanned, caches) = (approximately(scan.bytes().0), approximately(caches));
            let message = format!("{scanned} are scanned on node {node}, and caches can hold {caches}: part of what is measured is cache");
            let advice = words!["scan four times the caches at least, with a larger ", Knob::Size];
            self.notes.push(Note::warning(NoteCode::ScanInCache, message).advise(advice));
        }
    }
}

/// Says how much of the nodes' memory is scanned. `scanned` holds node, bytes and what limits them.
fn share_note(scanned: &[(u32, u64, Words)], topology: &Topology) -> Option<Note> {
    let memory = |node: &u32| topology.node(*node).map_or(0, Node::stated_bytes);
    let all: u64 = scanned.iter().map(|(node, ..)| memory(node)).sum();
    let bytes: u64 = scanned.iter().map(|(_, bytes, _)| bytes).sum();
    let nodes: IdSet = scanned.iter().map(|(node, ..)| *node).collect();
    let share = bytes as f64 / all as f64 * 100.0;
    let (what, limit) = match scanned {
        [] => return None,
        [(node, _, limited_by)] => (format!("node {node}"), words!["limited by "].followed_by(limited_by.clone())),
        _ => {
            let share_of = |(node, bytes, _): &&(u32, u64, Words)| bytes * 1000 / memory(node).max(1);
            let (node, bytes, limited_by) = scanned.iter().min_by_key(share_of)?;
            let least = words![format!("least of node {node} ({}, limited by ", approximately(*bytes))];
            (format!("nodes {nodes}"), least.followed_by(limited_by.clone()).followed_by(")"))
        }
    };
    let (bytes, of) = (approximately(bytes), approximately(all));
    let scanned = words!["{bytes} of the {of} of {what} are scanned ({share:.0} %), "];
    let message = scanned.followed_by(limit).followed_by("; what is in use or stays free is not");
    (all > 0).then(|| Note::info(NoteCode::ScanShare, message))
}

/// How much memory of a node stays free, and the least: less than usual on a small node.
fn margin(memory: u64) -> (u64, u64) {
    let share = memory / 100 * MARGIN_PERCENT;
    let least = MIN_MARGIN.min(memory / SMALL_NODE);
    (share.min(MAX_MARGIN).max(least), least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_percent_stay_free_at_least_two_gibibytes_and_at_most_eight_and_less_on_small_nodes() {
        assert_eq!(margin(1 << 40), (8 << 30, 2 << 30));
        assert_eq!(margin(100 << 30), ((100u64 << 30) / 100 * 5, 2 << 30));
        assert_eq!(margin(16 << 30), (2 << 30, 2 << 30));
        assert_eq!(margin(8 << 30), (2 << 30, 2 << 30));
        assert_eq!(margin(4 << 30), (1 << 30, 1 << 30));
        assert_eq!(margin(0), (0, 0));
    }
}
