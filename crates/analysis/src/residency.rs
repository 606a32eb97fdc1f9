//! The cost of where the memory of processes lies, by the machine's own latencies and bandwidths.
//!
//! Pages are counted and not accesses: every page of a process, or every touched one if that was watched, is taken to be used alike, by each of its
//! threads for the time that it ran. The expected latency is then the sum, over nodes c of the CPUs and n of the memory, of the share of the
//! threads' time on c, the share of the pages on n, and the latency from c to n.

mod arrange;
mod prices;

use std::collections::BTreeMap;

use memgauge_model::result::{
    BetterPlacement, NotPriced, PageKind, PlacementCost, Prices, ProcessMemory, Remedy, Residency, TranslationCost,
};
use memgauge_model::stats::significant;
use memgauge_model::tiers::gpu_nodes;
use memgauge_model::topology::Machine;
use memgauge_model::units::{Bytes, IdSet};

use self::arrange::{Arrangement, Moves, Placed, Room, arrange};
pub use self::prices::prices;
use self::prices::{Matrix, translation_cost};

/// An improvement of less than this share of the latency is none that anybody acts on.
const NOTABLE: f64 = 0.01;
/// Processes whose remedies are named.
const NAMED: usize = 3;

/// Adds to what was seen what it costs, and what would help.
pub fn price(residency: &mut Residency, machine: &Machine, prices: Option<Prices>) {
    let topology = &machine.topology;
    let node = |cpu: u32| topology.cpu(cpu).map(|cpu| cpu.node);
    let placed: Vec<Placed> = residency.processes.iter().map(|process| Placed::of(process, residency.observed_s, node)).collect();
    let Some(prices) = prices else {
        residency.not_priced = Some(NotPriced::NoPrices);
        return;
    };
    let matrix = Matrix::new(&prices);
    let pages = by_page(&residency.processes, &placed);
    residency.translation = pages.and_then(|shares| translation_cost(&prices.translation_ns, &shares));
    residency.prices = Some(prices);
    let (free, without) = (residency.free.clone(), gpu_nodes(machine));
    let rooms = |of: &[Placed]| Room::new(machine, &free, of, &without);
    match cost(&placed, &matrix, &rooms(&placed)) {
        Err(why) => residency.not_priced = Some(why),
        Ok((cost, best)) => {
            residency.remedies = if residency.started {
                start(&placed, &best).into_iter().collect()
            } else {
                remedies(&residency.processes, &placed, &best, machine)
            };
            residency.cost = Some(cost);
        }
    }
    if is_worth_huge_pages(residency) {
        residency.remedies.push(Remedy::HugePages);
    }
    for (process, own) in residency.processes.iter_mut().zip(&placed) {
        let own = std::slice::from_ref(own);
        process.cost = cost(own, &matrix, &rooms(own)).ok().map(|(cost, _)| cost);
    }
    for point in &mut residency.points {
        point.latency_ns = matrix.of_point(point);
    }
}

/// The cost of all processes together where they are, and the arrangement to advise.
fn cost(placed: &[Placed], matrix: &Matrix, room: &Room) -> Result<(PlacementCost, Arrangement), NotPriced> {
    let now = Arrangement::present(placed);
    if now.pages().is_empty() || now.threads().is_empty() {
        return Err(NotPriced::NothingPlaced);
    }
    if let Some((cpu_node, memory_node)) = now.pairs().find(|pair| matrix.latency(*pair).is_none()) {
        return Err(NotPriced::PairMissing { cpu_node, memory_node });
    }
    let latency_ns = matrix.expected(&now.shares());
    let better = |moves: Moves| {
        let found = arrange(placed, matrix, room, moves);
        let placement = BetterPlacement {
            latency_ns: matrix.expected(&found.shares()),
            saves_ns: matrix.difference(&now.shares(), &found.shares()),
            ceiling_gbs: matrix.ceiling(&found.shares()),
            threads: found.threads(),
            pages: found.pages(),
        };
        (placement, found)
    };
    let [(best_for_threads, threads), (best_for_pages, pages), (mut best, mut both)] =
        [Moves::THREADS, Moves::PAGES, Moves::BOTH].map(better);
    // Several processes are placed one after the other, so that moving more may find less.
    for (other, arrangement) in [(&best_for_pages, &pages), (&best_for_threads, &threads)] {
        if other.latency_ns.value <= best.latency_ns.value {
            (best, both) = (other.clone(), arrangement.clone());
        }
    }
    // Moving threads costs least, moving pages more: what does as much as the best is enough.
    let enough = |other: &BetterPlacement| other.latency_ns.value <= best.latency_ns.value * (1.0 + NOTABLE);
    let unreliable = [&now, &both].iter().any(|arrangement| matrix.is_unreliable(&arrangement.shares()));
    let advised = match () {
        () if unreliable || !is_notable(&best, latency_ns.value) => now.clone(),
        () if enough(&best_for_threads) => threads,
        () if enough(&best_for_pages) => pages,
        () => both,
    };
    let remote = now.shares().iter().filter(|((cpu, memory), _)| cpu != memory).fold(0.0, |sum, (_, share)| sum + share);
    let remote = significant(remote);
    let cost = PlacementCost {
        remote,
        latency_ns,
        unreliable,
        ceiling_gbs: matrix.ceiling(&now.shares()),
        best,
        best_for_threads,
        best_for_pages,
    };
    Ok((cost, advised))
}

/// Whether a placement is better than one with this latency by more than its interval, and by enough to act on.
fn is_notable(better: &BetterPlacement, now_ns: f64) -> bool {
    better.saves_ns.low > 0.0 && better.saves_ns.value >= NOTABLE * now_ns
}

/// Whether another placement would be better by more than chance explains.
pub fn could_be_better(cost: &PlacementCost) -> bool {
    !cost.unreliable && is_notable(&cost.best, cost.latency_ns.value)
}

/// Shares of the memory by size of page, each process weighted as its accesses are; `None` if none has accesses.
fn by_page(processes: &[ProcessMemory], placed: &[Placed]) -> Option<BTreeMap<Bytes, f64>> {
    let mut shares: BTreeMap<Bytes, f64> = BTreeMap::new();
    for (process, one) in processes.iter().zip(Arrangement::present(placed).0) {
        let whole: f64 = process.memory.by_page.iter().map(|pages| pages.bytes.0 as f64).sum();
        for pages in process.memory.by_page.iter().filter(|_| whole > 0.0) {
            *shares.entry(pages.page).or_default() += one.weight * pages.bytes.0 as f64 / whole;
        }
    }
    shares.values().any(|share| *share > 0.0).then_some(shares)
}

/// Whether transparent huge pages would save more than the interval and a notable share of the latency. The price was measured in a large buffer: what
/// has less memory in base pages pays less.
fn is_worth_huge_pages(residency: &Residency) -> bool {
    let (Some(translation), Some(cost), Some(prices)) = (&residency.translation, &residency.cost, &residency.prices) else { return false };
    let TranslationCost { now_ns: now, best_ns: best, best_kind, unreliable, .. } = translation;
    let in_base_pages = |process: &ProcessMemory| {
        process
            .memory
            .by_page
            .iter()
            .filter(|pages| pages.kind == PageKind::Base)
            .fold(0, |sum: u64, pages| sum.saturating_add(pages.bytes.0))
    };
    let buffer = prices.translation_ns.iter().filter(|price| price.kind == PageKind::Base).map(|price| price.buffer.0).min();
    let is_large = |buffer: u64| residency.processes.iter().any(|process| in_base_pages(process) >= buffer);
    let uncertain = (now.value - now.low).hypot(best.high - best.value);
    let saves = now.value - best.value;
    let counts = saves > uncertain && saves >= NOTABLE * (cost.latency_ns.value + now.value);
    *best_kind == PageKind::Thp && !unreliable && !cost.unreliable && counts && buffer.is_some_and(is_large)
}

/// How to get from the present arrangement to the one that is advised: all of it, or that of the processes with most accesses.
fn remedies(processes: &[ProcessMemory], placed: &[Placed], advised: &Arrangement, machine: &Machine) -> Vec<Remedy> {
    let mut moved: Vec<(&ProcessMemory, &Placed, &Placed)> =
        processes.iter().zip(placed).zip(&advised.0).map(|((process, now), then)| (process, now, then)).collect();
    moved.retain(|(_, now, then)| now.threads != then.threads || now.pages != then.pages);
    if moved.len() > NAMED {
        moved.retain(|(_, _, then)| then.weight > 0.0);
        moved.sort_by(|a, b| b.2.weight.total_cmp(&a.2.weight));
    } else {
        // Those with fewer accesses make room for the others.
        moved.sort_by(|a, b| a.2.weight.total_cmp(&b.2.weight));
    }
    let mut all = Vec::new();
    for (process, now, then) in moved.into_iter().take(NAMED) {
        let pid = process.pid;
        if then.threads != now.threads {
            let nodes: IdSet = then.threads.keys().copied().collect();
            let cpus = machine.topology.cpus.iter().filter(|cpu| nodes.contains(cpu.node)).map(|cpu| cpu.id).collect();
            all.push(Remedy::MoveThreads { pid, nodes, cpus });
        }
        // The command moves all pages of some nodes to one.
        let from: IdSet = now.pages.keys().filter(|node| !then.pages.contains_key(node)).copied().collect();
        if let ([to], false) = (keys(&then.pages).as_slice(), from.is_empty()) {
            all.push(Remedy::MovePages { pid, from, to: *to });
        }
    }
    all
}

/// How to start a program that has ended, so that its threads and pages are together on one node.
fn start(placed: &[Placed], advised: &Arrangement) -> Option<Remedy> {
    let moved = advised.0.iter().zip(placed).any(|(then, now)| then.threads != now.threads || then.pages != now.pages);
    let [threads, pages] = [keys(&advised.threads()), keys(&advised.pages())];
    match (threads.as_slice(), pages.as_slice()) {
        ([node], [memory]) if moved && node == memory => Some(Remedy::StartOn { node: *node }),
        _ => None,
    }
}

fn keys<T>(map: &BTreeMap<u32, T>) -> Vec<u32> {
    map.keys().copied().collect()
}

#[cfg(test)]
mod tests;
