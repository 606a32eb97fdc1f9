//! Whatever the layout: one cycle through every slot, window after window.
#![allow(clippy::unwrap_used, reason = "a panic is a test's report, in its helpers too")]

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::ChaseOrder;
use memgauge_model::pattern::{ChaseLayout, Cycle};
use memgauge_model::units::Bytes;
use proptest::prelude::*;

const LINE: usize = 64;

/// All links, built window by window in descending order: the order of building must not matter.
fn links(chase: &ChaseLayout) -> BTreeMap<usize, usize> {
    let mut cycle = Cycle::default();
    let mut links = BTreeMap::new();
    for (window, next) in chase.next_entries().into_iter().enumerate().rev() {
        chase.fill_window(window, next, &mut cycle, |from, to| assert_eq!(links.insert(from, to), None, "two links in one line"));
    }
    links
}

fn lap(chase: &ChaseLayout) -> Vec<usize> {
    let links = links(chase);
    std::iter::successors(Some(chase.start()), |at| links.get(at).copied()).take(chase.slots()).collect()
}

fn chase(order: ChaseOrder, windows: usize, slots: usize, lines: usize, seed: u64) -> ChaseLayout {
    let stride = Bytes((lines * LINE) as u64);
    let window = Bytes(stride.0 * slots as u64);
    ChaseLayout::new(order, Bytes(window.0 * windows as u64 + LINE as u64 - 1), window, stride, Bytes(LINE as u64), seed).unwrap()
}

fn order() -> impl Strategy<Value = ChaseOrder> {
    prop::sample::select(vec![ChaseOrder::WindowLocal, ChaseOrder::FullRandom, ChaseOrder::Sequential])
}

proptest! {
    #[test]
    fn one_lap_visits_every_slot_once_and_returns(
        order in order(), windows in 1usize..12, slots in 2usize..80, lines in 1usize..5, seed: u64,
    ) {
        let chase = chase(order, windows, slots, lines, seed);
        let links = links(&chase);
        prop_assert_eq!(links.len(), windows * slots);
        let visited = lap(&chase);
        prop_assert_eq!(visited.len(), windows * slots);
        prop_assert_eq!(links[visited.last().unwrap()], chase.start(), "not back after n hops");
        prop_assert_eq!(visited.iter().collect::<BTreeSet<_>>().len(), windows * slots, "a line twice");
        let slots_visited: BTreeSet<usize> = visited.iter().map(|at| at / (lines * LINE)).collect();
        prop_assert_eq!(slots_visited.len(), windows * slots, "a slot twice");
        prop_assert!(visited.iter().all(|at| at % LINE == 0 && *at < chase.buffer_bytes()));
    }

    #[test]
    fn a_window_is_left_only_when_all_of_it_was_visited(windows in 2usize..12, slots in 2usize..80, lines in 1usize..4, seed: u64) {
        let chase = chase(ChaseOrder::WindowLocal, windows, slots, lines, seed);
        let visited = lap(&chase);
        let order: Vec<usize> = visited.chunks(slots).map(|part| part[0] / chase.window_bytes()).collect();
        for (part, &window) in visited.chunks(slots).zip(&order) {
            prop_assert_eq!(part[0], chase.entry(window));
            prop_assert!(part.iter().all(|at| at / chase.window_bytes() == window));
        }
        prop_assert_eq!(order, chase.window_order().into_iter().map(|w| w as usize).collect::<Vec<_>>());
    }

    #[test]
    fn links_of_parts_are_the_links_of_the_whole(slots in 2usize..300, cuts in prop::collection::vec(0usize..300, 0..4), seed: u64) {
        let chase = chase(ChaseOrder::FullRandom, 1, slots, 2, seed);
        let mut cycle = Cycle::default();
        let mut whole = Vec::new();
        chase.fill_window(0, chase.entry(0), &mut cycle, |from, to| whole.push((from, to)));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c % slots).chain([0, slots]).collect();
        cuts.sort_unstable();
        let mut parts = Vec::new();
        for ends in cuts.windows(2) {
            chase.links(0, &cycle, ends[0]..ends[1], chase.entry(0), |from, to| parts.push((from, to)));
        }
        prop_assert_eq!(parts, whole);
    }

    #[test]
    fn a_seed_is_one_order(seed: u64) {
        let orders: Vec<_> = [seed, seed, seed ^ 1, seed ^ (1 << 63)].map(|s| lap(&chase(ChaseOrder::WindowLocal, 5, 64, 2, s))).into();
        prop_assert_eq!(&orders[0], &orders[1]);
        prop_assert_ne!(&orders[0], &orders[2]);
        prop_assert_ne!(&orders[0], &orders[3]);
        prop_assert_ne!(&orders[2], &orders[3]);
    }
}

#[test]
fn both_halves_and_all_distances_occur() {
    let chase = chase(ChaseOrder::WindowLocal, 64, 4096, 2, 3);
    let visited = lap(&chase);
    let upper = visited.iter().filter(|at| *at % 128 == 64).count();
    let half = visited.len() / 2;
    // Standard deviation 256 of 262,144 halves.
    assert!(upper.abs_diff(half) < 1500, "{upper} of {}", visited.len());
    // No distance between neighbours is frequent: a stride prefetcher has nothing to find. 8191 distances in 128-byte slots.
    let mut distances: BTreeMap<isize, usize> = BTreeMap::new();
    visited.windows(2).for_each(|w| *distances.entry((w[1] / 128) as isize - (w[0] / 128) as isize).or_default() += 1);
    let most = distances.values().max().unwrap();
    assert!(*most < visited.len() / 2000, "{most} of {} hops go the same distance", visited.len());
    // Windows differ from each other.
    let first: Vec<usize> = visited[..4096].iter().map(|at| at % chase.window_bytes()).collect();
    let second: Vec<usize> = visited[4096..8192].iter().map(|at| at % chase.window_bytes()).collect();
    assert_ne!(first, second);
}

/// `cargo test --release -p memgauge-model --test pattern -- --ignored --nocapture` tells what building costs on this machine.
#[test]
#[ignore = "a timing, for people"]
fn time_to_build() {
    let timed = |chase: &ChaseLayout, windows: usize| {
        let (mut cycle, mut sum, next) = (Cycle::default(), 0, chase.next_entries());
        chase.shuffle(0, &mut cycle, || false);
        let start = std::time::Instant::now();
        (0..windows).for_each(|w| chase.shuffle(w, &mut cycle, || false));
        let shuffled = start.elapsed() / windows as u32;
        let start = std::time::Instant::now();
        (0..windows).for_each(|w| chase.links(w, &cycle, 0..chase.slots_per_window(), next[w], |from, to| sum ^= from ^ to));
        println!("{} slots: shuffle {shuffled:?}, links {:?} ({sum})", chase.slots_per_window(), start.elapsed() / windows as u32);
    };
    timed(&chase(ChaseOrder::WindowLocal, 256, 4096, 2, 3), 256);
    timed(&chase(ChaseOrder::FullRandom, 1, 4 << 20, 2, 3), 1);
    timed(&chase(ChaseOrder::FullRandom, 1, 64 << 20, 2, 3), 1);
}
