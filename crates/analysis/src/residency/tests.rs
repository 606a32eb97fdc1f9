//! Made-up machines and placements, whose costs are computed here in another way.

use memgauge_model::random::{bounded, split_mix};
use memgauge_model::result::{AccessShare, MemorySums, PageBytes, PairPrice, PriceSource, Priced, ResidencyPoint, TranslationPrice};
use memgauge_model::topology::{Cpu, Node, Topology};

use memgauge_model::units::Bytes;

use super::arrange::sum;
use super::*;

const GIB: u64 = 1 << 30;

/// A machine whose nodes have this much free memory each and four CPUs; a node of `None` CPUs has memory only.
fn machine(nodes: &[(bool, u64)]) -> Machine {
    let cpu = |id: u32| Cpu {
        id,
        package: id / 4,
        die: None,
        cluster: None,
        core: id,
        siblings: IdSet::one(id),
        node: id / 4,
        kind: None,
        capacity: None,
        max_mhz: None,
    };
    let ids = |node: u32| node * 4..node * 4 + 4;
    let with_cpus: Vec<u32> = (0..nodes.len() as u32).filter(|node| nodes[*node as usize].0).collect();
    let node = |(id, (cpus, free)): (usize, &(bool, u64))| Node {
        id: id as u32,
        cpus: if *cpus { ids(id as u32).collect() } else { IdSet::new() },
        memory: Some(Bytes(64 * GIB)),
        free: Some(Bytes(*free)),
        ..Node::default()
    };
    let topology = Topology {
        cpus: with_cpus.into_iter().flat_map(ids).map(cpu).collect(),
        nodes: nodes.iter().enumerate().map(node).collect(),
        ..Topology::default()
    };
    Machine { identity: Default::default(), topology, allowed: Default::default() }
}

fn prices_of(latency: &[&[f64]], bandwidth: &[&[f64]]) -> Prices {
    let pairs = |rows: &[&[f64]]| {
        let row = |(cpu, row): (usize, &&[f64])| {
            let pair = |(memory, value): (usize, &f64)| PairPrice {
                cpu_node: cpu as u32,
                memory_node: memory as u32,
                price: Priced { value: *value, low: value * 0.99, high: value * 1.01 },
                unreliable: false,
            };
            row.iter().enumerate().map(pair).collect::<Vec<_>>()
        };
        rows.iter().enumerate().flat_map(row).collect::<Vec<_>>()
    };
    Prices {
        from: PriceSource::Measured,
        measured: String::new(),
        latency_ns: pairs(latency),
        bandwidth_gbs: pairs(bandwidth),
        translation_ns: Vec::new(),
    }
}

/// A process with memory by node, whose threads ran on these CPUs for so many seconds.
fn process(pid: u32, pages: &[u64], cpu_s: &[(u32, f64)]) -> ProcessMemory {
    let by_node: BTreeMap<u32, Bytes> = (0..).zip(pages.iter().map(|gib| Bytes(gib * GIB))).filter(|(_, bytes)| bytes.0 > 0).collect();
    let present = Bytes(sum(&by_node));
    ProcessMemory {
        pid,
        memory: MemorySums { present, by_node, ..MemorySums::default() },
        cpu_s: cpu_s.iter().copied().collect(),
        threads_by_cpu: [(0, 1)].into(),
        ..ProcessMemory::default()
    }
}

fn priced(machine: &Machine, processes: Vec<ProcessMemory>, prices: Prices) -> Residency {
    let mut residency = Residency { processes, observed_s: 1.0, ..Residency::default() };
    price(&mut residency, machine, Some(prices));
    residency
}

fn two_nodes() -> (Machine, Prices) {
    (machine(&[(true, 32 * GIB), (true, 32 * GIB)]), prices_of(&[&[100.0, 200.0], &[200.0, 100.0]], &[&[40.0, 10.0], &[10.0, 40.0]]))
}

#[test]
fn a_process_with_remote_pages_costs_their_share_of_the_difference() {
    let (machine, prices) = two_nodes();
    let residency = priced(&machine, vec![process(7, &[6, 4], &[(0, 0.9), (1, 0.1)])], prices);
    let cost = residency.cost.as_ref().unwrap();
    assert!((cost.remote - 0.4).abs() < 1e-9 && (cost.latency_ns.value - 140.0).abs() < 1e-9, "{cost:?}");
    // Independent intervals of 0.6 ns and 0.8 ns.
    assert!((cost.latency_ns.high - 141.0).abs() < 1e-9 && (cost.latency_ns.low - 139.0).abs() < 1e-9);
    // The link carries 10 GB/s for 40 % of the accesses.
    assert_eq!(cost.ceiling_gbs, Some(25.0));
    assert_eq!((cost.best.latency_ns.value, cost.best_for_pages.latency_ns.value), (100.0, 100.0));
    assert_eq!(cost.best_for_threads.latency_ns.value, 140.0, "most of its pages are where it runs");
    assert!(could_be_better(cost));
    assert_eq!(residency.remedies[0], Remedy::MovePages { pid: 7, from: IdSet::one(1), to: 0 });
    let (machine, prices) = two_nodes();
    let processes = vec![process(7, &[6, 4], &[(0, 1.0)])];
    let mut ended = Residency { processes, observed_s: 1.0, started: true, ..Residency::default() };
    price(&mut ended, &machine, Some(prices));
    assert_eq!(ended.remedies, [Remedy::StartOn { node: 0 }], "a program that has ended has no pages to move");
    // Its pages are elsewhere, so threads move to them: that costs less than moving pages.
    let (machine, prices) = two_nodes();
    let residency = priced(&machine, vec![process(7, &[0, 10], &[(0, 1.0)])], prices);
    assert_eq!(residency.remedies[0], Remedy::MoveThreads { pid: 7, nodes: IdSet::one(1), cpus: "4-7".parse().unwrap() });
}

#[test]
fn there_is_nothing_to_gain_where_all_is_local_or_the_difference_is_within_its_interval() {
    let (machine, prices) = two_nodes();
    let residency = priced(&machine, vec![process(7, &[10, 0], &[(2, 1.0)])], prices);
    assert!(!could_be_better(residency.cost.as_ref().unwrap()) && residency.remedies.is_empty());
    let alike = prices_of(&[&[100.0, 100.5], &[100.5, 100.0]], &[]);
    let (machine, _) = two_nodes();
    let residency = priced(&machine, vec![process(7, &[0, 10], &[(2, 1.0)])], alike);
    assert!(!could_be_better(residency.cost.as_ref().unwrap()) && residency.remedies.is_empty());
}

#[test]
fn nothing_is_advised_by_prices_that_are_unreliable() {
    let (machine, mut prices) = two_nodes();
    prices.latency_ns[3].unreliable = true;
    let residency = priced(&machine, vec![process(7, &[0, 10], &[(2, 1.0)])], prices);
    let cost = residency.cost.as_ref().unwrap();
    assert!(cost.unreliable && !could_be_better(cost) && residency.remedies.is_empty(), "{cost:?}");
}

#[test]
fn what_is_not_known_has_no_price_and_says_why() {
    let (machine, prices) = two_nodes();
    let mut residency = Residency { processes: vec![process(7, &[1, 1], &[(0, 1.0)])], observed_s: 1.0, ..Residency::default() };
    price(&mut residency, &machine, None);
    assert_eq!((residency.cost.is_none(), &residency.not_priced), (true, &Some(NotPriced::NoPrices)));
    let cut = Prices { latency_ns: prices.latency_ns.iter().copied().filter(|p| p.memory_node == 0).collect(), ..prices.clone() };
    let residency = priced(&machine, vec![process(7, &[1, 1], &[(0, 1.0)])], cut);
    assert_eq!(residency.not_priced, Some(NotPriced::PairMissing { cpu_node: 0, memory_node: 1 }));
    let residency = priced(&machine, vec![process(7, &[], &[(0, 1.0)])], prices);
    assert_eq!(residency.not_priced, Some(NotPriced::NothingPlaced));
}

#[test]
fn processes_count_by_the_time_that_they_run_and_share_the_room() {
    let (_, prices) = two_nodes();
    let machine = machine(&[(true, 0), (true, 0)]);
    // Each has its pages on the other's node, and no node has free memory: they can change places.
    let residency = priced(&machine, vec![process(1, &[0, 8], &[(0, 3.0)]), process(2, &[8, 0], &[(4, 1.0)])], prices);
    let cost = residency.cost.as_ref().unwrap();
    assert_eq!(cost.latency_ns.value, 200.0);
    assert_eq!(cost.best_for_threads.latency_ns.value, 100.0);
    assert_eq!(cost.best.threads, [(0, 0.25), (1, 0.75)].into());
    assert_eq!(residency.processes[0].cost.as_ref().unwrap().latency_ns.value, 200.0);
    let asleep = priced(&two_nodes().0, vec![process(1, &[4, 0], &[])], two_nodes().1);
    assert_eq!(asleep.cost.unwrap().latency_ns.value, 100.0, "its thread was seen on CPU 0");
}

#[test]
fn memory_that_is_shared_needs_room_once() {
    let (_, prices) = two_nodes();
    let machine = machine(&[(true, 6 * GIB), (true, 0)]);
    // Four processes on node 0 share 4 GiB on node 1, which fit on node 0 although 16 would not.
    let shared = |pid| {
        let mut process = process(pid, &[0, 4], &[(0, 0.5)]);
        process.memory.proportional = Bytes(GIB);
        process
    };
    let residency = priced(&machine, (1..5).map(shared).collect(), prices);
    assert_eq!(residency.cost.unwrap().best_for_pages.latency_ns.value, 100.0);
}

#[test]
fn far_memory_is_used_where_near_memory_is_full() {
    let machine = machine(&[(true, 2 * GIB), (false, 32 * GIB)]);
    let prices = prices_of(&[&[100.0, 300.0]], &[&[40.0, 20.0]]);
    let residency = priced(&machine, vec![process(1, &[4, 8], &[(0, 1.0)])], prices);
    let cost = residency.cost.unwrap();
    // 6 GiB have room near, and 6 stay far.
    assert_eq!(cost.best.pages, [(0, Bytes(6 * GIB)), (1, Bytes(6 * GIB))].into());
    assert!((cost.best.latency_ns.value - 200.0).abs() < 1e-9 && (cost.latency_ns.value - 700.0 / 3.0).abs() < 1e-3);
}

#[test]
fn a_moment_has_the_price_of_its_own_shares() {
    let (machine, prices) = two_nodes();
    let point = |accesses: &[(u32, u32, f64)]| ResidencyPoint {
        accesses: accesses
            .iter()
            .map(|(cpu_node, memory_node, share)| AccessShare { cpu_node: *cpu_node, memory_node: *memory_node, share: *share })
            .collect(),
        ..ResidencyPoint::default()
    };
    let points = vec![point(&[(0, 0, 1.0)]), point(&[(0, 0, 0.5), (0, 1, 0.5)]), point(&[])];
    let mut residency = Residency { processes: vec![process(1, &[1, 1], &[(0, 1.0)])], observed_s: 1.0, points, ..Residency::default() };
    price(&mut residency, &machine, Some(prices));
    assert_eq!(residency.points.iter().map(|point| point.latency_ns).collect::<Vec<_>>(), [Some(100.0), Some(150.0), None]);
}

#[test]
fn memory_that_is_not_touched_costs_nothing_and_may_lie_far() {
    let machine = machine(&[(true, 0), (false, 32 * GIB)]);
    let mut one = process(1, &[6, 2], &[(0, 1.0)]);
    one.memory.touched = Some([(0, Bytes(2 * GIB)), (1, Bytes(2 * GIB))].into());
    let residency = priced(&machine, vec![one], prices_of(&[&[100.0, 300.0]], &[]));
    let cost = residency.cost.unwrap();
    assert_eq!((cost.latency_ns.value, cost.remote), (200.0, 0.5));
    assert_eq!((cost.best.latency_ns.value, cost.best.pages), (100.0, [(0, Bytes(6 * GIB)), (1, Bytes(2 * GIB))].into()));
    let mut idle = process(1, &[6, 2], &[(0, 1.0)]);
    idle.memory.touched = Some([(0, Bytes(0))].into());
    let cost = priced(&machine, vec![idle], prices_of(&[&[100.0, 300.0]], &[])).cost.unwrap();
    assert_eq!(cost.latency_ns.value, 150.0, "nothing was touched: all of it counts");
}

#[test]
fn translation_costs_what_it_does_in_pages_of_each_size() {
    let (machine, mut prices) = two_nodes();
    let price = |kind: PageKind, page: Bytes, value: f64| TranslationPrice {
        kind,
        page,
        buffer: Bytes(GIB),
        price: Priced { value, low: value - 1.0, high: value + 1.0 },
        unreliable: false,
    };
    let [base, huge] = [(PageKind::Base, Bytes::kib(4), 24.0), (PageKind::Thp, Bytes::mib(2), 4.0)];
    prices.translation_ns = vec![price(base.0, base.1, base.2), price(huge.0, huge.1, huge.2)];
    let with_pages = |pages: &[(PageKind, Bytes, u64)], prices: &Prices| {
        let mut one = process(7, &[8, 0], &[(0, 1.0)]);
        one.memory.by_page =
            pages.iter().map(|(kind, page, gib)| PageBytes { kind: *kind, page: *page, bytes: Bytes(gib * GIB) }).collect();
        priced(&machine, vec![one], prices.clone())
    };
    let half = with_pages(&[(base.0, base.1, 4), (huge.0, huge.1, 4)], &prices);
    let cost = half.translation.unwrap();
    assert_eq!((cost.now_ns.value, cost.best_ns.value, cost.best_page, cost.best_kind), (14.0, 4.0, huge.1, PageKind::Thp));
    assert!((cost.now_ns.high - 14.0 - 0.5_f64.sqrt()).abs() < 1e-4, "{cost:?}");
    assert_eq!(half.remedies, [Remedy::HugePages]);
    assert_eq!(with_pages(&[(huge.0, huge.1, 8)], &prices).remedies, []);
    // Pages of a size that was not measured have no price.
    assert_eq!(with_pages(&[(PageKind::Pool, Bytes(GIB), 8)], &prices).translation, None);
    prices.translation_ns[0].unreliable = true;
    let doubtful = with_pages(&[(base.0, base.1, 8)], &prices);
    assert!(doubtful.translation.unwrap().unreliable && doubtful.remedies.is_empty());
}

/// Latencies from each of some nodes to each: local ones from 80 to 120 ns, remote ones up to 400 ns.
fn latencies(nodes: usize, between: &mut impl FnMut(u64, u64) -> u64) -> Vec<Vec<f64>> {
    let mut from = |cpu: usize| -> Vec<f64> {
        (0..nodes).map(|memory| if cpu == memory { between(80, 120) } else { between(120, 400) } as f64).collect()
    };
    (0..nodes).map(&mut from).collect()
}

/// All ways to lay so many GiB onto nodes that hold so many.
fn layouts(gib: u64, room: &[u64]) -> Vec<Vec<u64>> {
    let Some((first, rest)) = room.split_first() else { return if gib == 0 { vec![Vec::new()] } else { Vec::new() } };
    (0..=gib.min(*first)).flat_map(|here| layouts(gib - here, rest).into_iter().map(move |others| [vec![here], others].concat())).collect()
}

#[test]
fn two_processes_get_the_best_of_all_places_for_both() {
    let mut state = 11_u64;
    let mut between = |low: u64, high: u64| {
        state += 1;
        low + bounded(split_mix(state), high - low + 1)
    };
    let (mut best_found, mut machines) = (0, 0);
    while machines < 200 {
        let nodes = between(2, 3) as usize;
        let free: Vec<u64> = (0..nodes).map(|_| between(0, 4)).collect();
        let machine = machine(&free.iter().map(|gib| (true, gib * GIB)).collect::<Vec<_>>());
        let latency = latencies(nodes, &mut between);
        let rows: Vec<&[f64]> = latency.iter().map(Vec::as_slice).collect();
        let pages: [Vec<u64>; 2] = [(); 2].map(|()| (0..nodes).map(|_| between(0, 4)).collect());
        // Each runs on one node, and there are CPUs for both on any.
        let runs = [(); 2].map(|()| (between(0, nodes as u64 - 1) as u32, between(1, 10) as f64 / 10.0));
        if pages.iter().any(|of| of.iter().sum::<u64>() == 0) {
            continue;
        }
        machines += 1;
        let processes = (0..2).map(|i| process(i as u32 + 1, &pages[i], &[(runs[i].0 * 4, runs[i].1)])).collect();
        let cost = priced(&machine, processes, prices_of(&rows, &[])).cost.unwrap();
        let whole = runs[0].1 + runs[1].1;
        let room: Vec<u64> = (0..nodes).map(|node| free[node] + pages[0][node] + pages[1][node]).collect();
        // The lowest latency of one process with its pages so, over the nodes that it may run on.
        let lowest = |i: usize, layout: &[u64]| {
            let on = |cpu: usize| layout.iter().zip(&latency[cpu]).map(|(gib, ns)| *gib as f64 * ns).sum::<f64>();
            runs[i].1 / whole * (0..nodes).map(on).fold(f64::INFINITY, f64::min) / pages[i].iter().sum::<u64>() as f64
        };
        let mut best = f64::INFINITY;
        for first in layouts(pages[0].iter().sum(), &room) {
            let left: Vec<u64> = room.iter().zip(&first).map(|(room, used)| room - used).collect();
            let own = lowest(0, &first);
            for second in layouts(pages[1].iter().sum(), &left) {
                best = best.min(own + lowest(1, &second));
            }
        }
        assert!(cost.best.latency_ns.value >= best * (1.0 - 1e-5), "{} {best}", cost.best.latency_ns.value);
        if cost.best.latency_ns.value <= best * (1.0 + 1e-5) {
            best_found += 1;
        }
    }
    assert!(best_found >= 198, "{best_found} of {machines}");
}

/// All orders of some nodes.
fn permutations(of: &[u32]) -> Vec<Vec<u32>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let without = |first: u32| of.iter().copied().filter(|node| *node != first).collect::<Vec<u32>>();
    of.iter().flat_map(|first| permutations(&without(*first)).into_iter().map(|rest| [vec![*first], rest].concat())).collect()
}

#[test]
fn the_best_placement_is_the_best_of_all_that_fit() {
    let mut state = 7_u64;
    let mut between = |low: u64, high: u64| {
        state += 1;
        low + bounded(split_mix(state), high - low + 1)
    };
    for _ in 0..200 {
        let nodes = between(2, 4) as usize;
        let free: Vec<(bool, u64)> = (0..nodes).map(|node| (node == 0 || between(0, 3) > 0, between(0, 12) * GIB)).collect();
        let machine = machine(&free);
        let latency = latencies(nodes, &mut between);
        let rows: Vec<&[f64]> = latency.iter().map(Vec::as_slice).collect();
        let pages: Vec<u64> = (0..nodes).map(|_| between(0, 8)).collect();
        let with_cpus: Vec<u32> = (0..nodes as u32).filter(|node| free[*node as usize].0).collect();
        let cpu_s: Vec<(u32, f64)> = with_cpus.iter().map(|node| (node * 4, between(0, 10) as f64 / 20.0)).collect();
        if pages.iter().sum::<u64>() == 0 || cpu_s.iter().all(|(_, s)| *s == 0.0) {
            continue;
        }
        let residency = priced(&machine, vec![process(1, &pages, &cpu_s)], prices_of(&rows, &[]));
        let cost = residency.cost.unwrap();
        // The present cost, from the definition.
        let ran: f64 = cpu_s.iter().map(|(_, s)| s).sum();
        let all: u64 = pages.iter().sum();
        let now: f64 = cpu_s
            .iter()
            .flat_map(|(cpu, s)| {
                pages.iter().zip(&latency[(*cpu / 4) as usize]).map(move |(gib, ns)| s / ran * *gib as f64 / all as f64 * ns)
            })
            .sum();
        assert!((cost.latency_ns.value - now).abs() < 1e-5 * now, "{} {now}", cost.latency_ns.value);
        // Threads on any one node, memory filled in any order of the nodes.
        let mut best = f64::INFINITY;
        for order in permutations(&(0..nodes as u32).collect::<Vec<_>>()) {
            for cpu in &with_cpus {
                let (mut left, mut sum) = (all, 0.0);
                for node in &order {
                    let here = (free[*node as usize].1 / GIB + pages[*node as usize]).min(left);
                    sum += here as f64 * latency[*cpu as usize][*node as usize];
                    left -= here;
                }
                best = best.min(sum / all as f64);
            }
        }
        assert!((cost.best.latency_ns.value - best).abs() < 1e-5 * best, "{} {best}", cost.best.latency_ns.value);
        assert!(
            cost.best_for_threads.latency_ns.value >= best * (1.0 - 1e-5) && cost.best_for_pages.latency_ns.value >= best * (1.0 - 1e-5)
        );
        assert!((cost.best.saves_ns.value - (now - best)).abs() < 1e-5 * now);
    }
}
