//! Other places for threads and pages, and the best of them that fit.

use std::collections::BTreeMap;

use memgauge_model::result::ProcessMemory;
use memgauge_model::topology::{Machine, Node};
use memgauge_model::units::{Bytes, IdSet};

use super::prices::{Matrix, Shares};

/// Passes over all processes, each of which may find a better place for one because others have moved.
const PASSES: usize = 4;
/// So many processes, those with most accesses, may change places in pairs.
const EXCHANGED: usize = 24;
/// Two latencies that differ by less than this share are the same: sums of floating-point numbers differ by their order.
const SAME: f64 = 1e-9;

/// The threads and pages of a process.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placed {
    /// Its share of all accesses: that of the time that its threads ran.
    pub(super) weight: f64,
    /// CPUs that its threads keep busy.
    pub(super) busy: f64,
    /// Share of the threads' time by node.
    pub(super) threads: BTreeMap<u32, f64>,
    /// Memory by node.
    pub(super) pages: BTreeMap<u32, Bytes>,
    /// The part of it that its accesses go to.
    pub(super) used: BTreeMap<u32, Bytes>,
    /// The nodes that its memory may be on.
    pub(super) allowed: IdSet,
}

impl Placed {
    pub(super) fn of(process: &ProcessMemory, observed_s: f64, node: impl Fn(u32) -> Option<u32>) -> Self {
        // Of memory that several processes have mapped, each needs room for its part.
        let memory = &process.memory;
        let part = if memory.proportional.0 > 0 { (memory.proportional.0 as f64 / memory.present.0.max(1) as f64).min(1.0) } else { 1.0 };
        let own = |bytes: &Bytes| Bytes((bytes.0 as f64 * part) as u64);
        let part_of = |of: &BTreeMap<u32, Bytes>| -> BTreeMap<u32, Bytes> {
            of.iter().map(|(node, bytes)| (*node, own(bytes))).filter(|(_, bytes)| bytes.0 > 0).collect()
        };
        let ran = process.ran_s();
        Self {
            weight: ran,
            busy: if observed_s > 0.0 { ran / observed_s } else { 0.0 },
            threads: process.threads_by_node(node),
            pages: part_of(&memory.by_node),
            used: part_of(process.used_by_node()),
            allowed: process.allowed_nodes.clone(),
        }
    }

    /// Shares of its accesses by pair of nodes.
    fn shares(&self) -> Shares {
        let bytes = sum(&self.used) as f64;
        let pair = |(cpu, time): (&u32, &f64)| {
            let (cpu, time) = (*cpu, *time);
            self.used.iter().map(move |(memory, of_node)| ((cpu, *memory), time * of_node.0 as f64 / bytes))
        };
        self.threads.iter().flat_map(pair).collect()
    }
}

/// A place for every process.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arrangement(pub(super) Vec<Placed>);

impl Arrangement {
    /// The present one. If no thread ran, processes count by their memory.
    pub(super) fn present(placed: &[Placed]) -> Self {
        let mut all = placed.to_vec();
        if all.iter().all(|one| one.weight <= 0.0) {
            all.iter_mut().for_each(|one| one.weight = sum(&one.pages) as f64);
        }
        let whole: f64 = all.iter().filter(|one| one.counts()).map(|one| one.weight).sum();
        all.iter_mut().for_each(|one| one.weight = if one.counts() && whole > 0.0 { one.weight / whole } else { 0.0 });
        Self(all)
    }

    /// Shares of all accesses by pair of nodes.
    pub(super) fn shares(&self) -> Shares {
        let mut shares = Shares::new();
        for one in self.0.iter().filter(|one| one.weight > 0.0) {
            for (pair, share) in one.shares() {
                *shares.entry(pair).or_default() += one.weight * share;
            }
        }
        shares
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        self.shares().into_keys()
    }

    /// Share of the threads' time by node.
    pub(super) fn threads(&self) -> BTreeMap<u32, f64> {
        let mut nodes: BTreeMap<u32, f64> = BTreeMap::new();
        for one in &self.0 {
            one.threads.iter().for_each(|(node, share)| *nodes.entry(*node).or_default() += one.weight * share);
        }
        nodes.retain(|_, share| *share > 0.0);
        nodes
    }

    /// Memory by node.
    pub(super) fn pages(&self) -> BTreeMap<u32, Bytes> {
        let mut nodes: BTreeMap<u32, Bytes> = BTreeMap::new();
        for (node, bytes) in self.0.iter().flat_map(|one| &one.pages) {
            nodes.entry(*node).or_default().0 += bytes.0;
        }
        nodes
    }
}

impl Placed {
    /// Whether it has both threads and pages, so that its accesses have a price.
    fn counts(&self) -> bool {
        !self.threads.is_empty() && !self.used.is_empty()
    }
}

/// What may move.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moves {
    threads: bool,
    pages: bool,
}

impl Moves {
    pub(super) const BOTH: Self = Self { threads: true, pages: true };
    pub(super) const THREADS: Self = Self { threads: true, pages: false };
    pub(super) const PAGES: Self = Self { threads: false, pages: true };
}

/// What there is room for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Room {
    /// CPUs by node.
    cpus: BTreeMap<u32, f64>,
    /// Bytes by node: free ones, and those that the processes themselves use.
    bytes: BTreeMap<u32, u64>,
}

impl Room {
    /// All CPUs, and the free memory of all nodes but those `without`: as it was when the processes were read, or else with the machine.
    pub(super) fn new(machine: &Machine, free: &BTreeMap<u32, Bytes>, placed: &[Placed], without: &IdSet) -> Self {
        let nodes = &machine.topology.nodes;
        let cpus = nodes.iter().filter(|node| !node.cpus.is_empty()).map(|node| (node.id, node.cpus.len() as f64)).collect();
        let of = |node: &Node| free.get(&node.id).copied().or(node.free).unwrap_or_default().0;
        let mut bytes: BTreeMap<u32, u64> =
            nodes.iter().filter(|node| !without.contains(node.id)).map(|node| (node.id, of(node))).collect();
        for (node, used) in placed.iter().flat_map(|one| &one.pages) {
            *bytes.entry(*node).or_default() += used.0;
        }
        Self { cpus, bytes }
    }

    fn take(&mut self, one: &Placed) {
        for (node, share) in &one.threads {
            self.cpus.entry(*node).and_modify(|cpus| *cpus -= share * one.busy);
        }
        for (node, bytes) in &one.pages {
            self.bytes.entry(*node).and_modify(|room| *room = room.saturating_sub(bytes.0));
        }
    }

    fn give_back(&mut self, one: &Placed) {
        for (node, share) in &one.threads {
            self.cpus.entry(*node).and_modify(|cpus| *cpus += share * one.busy);
        }
        for (node, bytes) in &one.pages {
            *self.bytes.entry(*node).or_default() += bytes.0;
        }
    }
}

/// The best arrangement that is found: one process after the other, those with most accesses first, gets the best place that is left, again while that
/// helps; then each two are placed anew, in either order. Of one process that fits on one node it is the best of all: its latency is linear in the
/// threads' shares and in the pages' shares, so one of the best arrangements has all threads on one node and fills memory in the order of its
/// latency from there.
pub(super) fn arrange(placed: &[Placed], matrix: &Matrix, room: &Room, moves: Moves) -> Arrangement {
    let mut now = Arrangement::present(placed);
    let mut order: Vec<usize> = (0..now.0.len()).filter(|i| now.0[*i].counts()).collect();
    order.sort_by(|a, b| now.0[*b].weight.total_cmp(&now.0[*a].weight));
    let mut left = room.clone();
    now.0.iter().for_each(|one| left.take(one));
    let exchanged = &order[..order.len().min(EXCHANGED)];
    let pairs = exchanged.iter().enumerate().flat_map(|(n, a)| exchanged[n + 1..].iter().map(|b| vec![*a, *b]));
    let singles: Vec<Vec<usize>> = order.iter().map(|one| vec![*one]).collect();
    let all: Vec<Vec<usize>> = singles.iter().cloned().chain(pairs).collect();
    for groups in [&singles, &all] {
        improve(&mut now, &mut left, groups, matrix, moves);
    }
    now
}

/// Places each of these groups of processes better, as far as the others leave room, again while that helps.
fn improve(now: &mut Arrangement, left: &mut Room, groups: &[Vec<usize>], matrix: &Matrix, moves: Moves) {
    for _ in 0..PASSES {
        let mut better = false;
        for group in groups {
            let present: Vec<Placed> = group.iter().map(|i| now.0[*i].clone()).collect();
            present.iter().for_each(|one| left.give_back(one));
            let found = best_places(&present, matrix, left, moves);
            better |= found.is_some();
            for (i, one) in group.iter().zip(found.unwrap_or(present)) {
                left.take(&one);
                now.0[*i] = one;
            }
        }
        if !better {
            return;
        }
    }
}

/// Places for some processes that are better than those that they have: each gets the best that those before it leave, in either order.
fn best_places(present: &[Placed], matrix: &Matrix, room: &Room, moves: Moves) -> Option<Vec<Placed>> {
    let now = present.iter().map(|one| Some(one.weight * cost(one, matrix)?)).sum::<Option<f64>>()?;
    let in_order = |backwards: bool| {
        let (mut left, mut all, mut sum) = (room.clone(), Vec::new(), 0.0);
        for i in 0..present.len() {
            let one = &present[if backwards { present.len() - 1 - i } else { i }];
            let (ns, place) = places(one, matrix, &left, moves).min_by(|a, b| a.0.total_cmp(&b.0))?;
            left.take(&place);
            sum += one.weight * ns;
            all.push(place);
        }
        if backwards {
            all.reverse();
        }
        Some((sum, all))
    };
    let orders = if present.len() > 1 { &[false, true][..] } else { &[false][..] };
    let best = orders.iter().filter_map(|backwards| in_order(*backwards)).min_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(sum, _)| *sum < now * (1.0 - SAME)).map(|(_, all)| all)
}

/// The expected latency of a process's accesses, if each has a price.
fn cost(one: &Placed, matrix: &Matrix) -> Option<f64> {
    let shares = one.shares();
    shares.keys().all(|pair| matrix.latency(*pair).is_some()).then(|| matrix.expected(&shares).value)
}

/// The places for a process that there is room for, each with its latency.
fn places<'a>(one: &'a Placed, matrix: &'a Matrix, room: &'a Room, moves: Moves) -> impl Iterator<Item = (f64, Placed)> + 'a {
    let threads =
        if moves.threads { room.cpus.keys().map(|first| spread(one, *first, matrix, room)).collect() } else { vec![one.threads.clone()] };
    let moved = threads.into_iter().filter(|threads| !threads.is_empty()).map(|threads| Placed { threads, ..one.clone() });
    let placed = moved.filter_map(move |moved| if moves.pages { fill(moved, matrix, room) } else { Some(moved) });
    placed.filter_map(|placed| Some((cost(&placed, matrix)?, placed)))
}

/// The threads on a node as far as its CPUs reach, and the rest on those from where that node's memory is nearest.
fn spread(one: &Placed, first: u32, matrix: &Matrix, room: &Room) -> BTreeMap<u32, f64> {
    let far = |node: u32| matrix.latency((node, first)).map_or(f64::INFINITY, |price| price.value);
    let mut nodes: Vec<u32> = room.cpus.keys().copied().filter(|node| *node != first).collect();
    nodes.sort_by(|a, b| far(*a).total_cmp(&far(*b)));
    let (mut left, mut threads) = (1.0, BTreeMap::new());
    for node in [first].into_iter().chain(nodes) {
        let reach = if one.busy > 0.0 { room.cpus[&node].max(0.0) / one.busy } else { 1.0 };
        let share = reach.min(left);
        if share > 0.0 {
            threads.insert(node, share);
            left -= share;
        }
        if left <= SAME {
            return threads;
        }
    }
    // There are not enough CPUs, as now: in the same proportion.
    let placed: f64 = threads.values().sum();
    threads.values_mut().for_each(|share| *share /= placed);
    threads
}

/// The pages on the nodes with the least latency from these threads that have room, those that are used first; `None` without enough room.
fn fill(one: Placed, matrix: &Matrix, room: &Room) -> Option<Placed> {
    let mean = |memory: u32| {
        let prices = one.threads.iter().map(|(cpu, share)| Some(share * matrix.latency((*cpu, memory))?.value));
        prices.sum::<Option<f64>>()
    };
    let allowed = |node: u32| one.allowed.is_empty() || one.allowed.contains(node) || one.pages.contains_key(&node);
    let mut nodes: Vec<(f64, u32, u64)> =
        room.bytes.iter().filter(|(node, _)| allowed(**node)).filter_map(|(node, room)| Some((mean(*node)?, *node, *room))).collect();
    nodes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut used_left, mut left) = (sum(&one.used), sum(&one.pages));
    let (mut used, mut pages) = (BTreeMap::new(), BTreeMap::new());
    for (_, node, room) in nodes {
        let here = room.min(left);
        let used_here = here.min(used_left);
        for (part, map) in [(here, &mut pages), (used_here, &mut used)] {
            if part > 0 {
                map.insert(node, Bytes(part));
            }
        }
        (left, used_left) = (left - here, used_left - used_here);
    }
    (left == 0).then_some(Placed { pages, used, ..one })
}

/// The sum over all nodes.
pub(super) fn sum(pages: &BTreeMap<u32, Bytes>) -> u64 {
    pages.values().map(|bytes| bytes.0).sum()
}
