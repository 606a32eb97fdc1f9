use super::*;
use memgauge_core::experiment::PageRequest;
use memgauge_core::plan::BufferPlan;
use memgauge_os::clock::Clock;
use memgauge_testing::not_tested;

use crate::burst::chase::Chase;
use crate::burst::windows::Schedule;

#[test]
fn the_chain_in_memory_is_one_cycle_over_all_lines() {
    let cpus = cpu::process_affinity().unwrap();
    let bytes = Bytes::mib(4);
    let plan = BufferPlan {
        bytes,
        node: 0,
        pages: PageRequest::Auto,
        touch: cpus.clone(),
        derived: false,
        directory: None,
        shared: false,
        weights: None,
    };
    let Ok(buffer) = Buffer::allocate(&plan, std::path::Path::new("/")).map(Arc::new) else {
        not_tested!("no memory on node 0");
    };
    for order in [ChaseOrder::WindowLocal, ChaseOrder::FullRandom, ChaseOrder::Sequential] {
        let order = ChainSpec {
            bytes,
            window: Bytes::kib(64),
            stride: Bytes(128),
            line: Bytes(64),
            order,
            seed: 5,
            offset_in_line: 16,
            even: false,
        };
        let start = write(&buffer, &order, &cpus, &|| false).unwrap().position();
        let slots = 4 << 20 >> 7;
        let mut seen = std::collections::BTreeSet::new();
        let mut at = start;
        for _ in 0..slots {
            assert!(seen.insert(at as usize), "a line is visited twice");
            // SAFETY: `at` is a line of the chain just written.
            at = unsafe { kernels::chase_exact(at, 1) };
        }
        assert_eq!(at, start, "back at the start after {slots} hops");
        // SAFETY: `start` is a line of the chain just written.
        assert_eq!(unsafe { kernels::chase(start, slots) }, start, "the unrolled chase agrees");
    }
}

#[test]
fn a_shortened_chain_is_one_cycle_over_the_windows_left() {
    let Some((buffer, cpus)) = four_mib() else { not_tested!("no memory on node 0") };
    let spec = |mib: u64| ChainSpec {
        bytes: Bytes(mib << 19),
        window: Bytes::kib(64),
        stride: Bytes(128),
        line: Bytes(64),
        offset_in_line: 0,
        order: ChaseOrder::WindowLocal,
        seed: 9,
        even: true,
    };
    let exits = write_with_exits(&buffer, &spec(8), &cpus, &|| false).unwrap();
    for halves in [1, 3, 8, 2] {
        let order = spec(halves);
        let start = relink(&buffer, &order, &exits).unwrap().position();
        let slots = order.bytes.0 as usize / 128;
        let mut seen = std::collections::BTreeSet::new();
        let mut at = start;
        for _ in 0..slots {
            assert!(seen.insert(at as usize), "a line is visited twice");
            assert!((at as usize) < buffer.as_ptr() as usize + order.bytes.0 as usize, "within the first {}", order.bytes);
            // SAFETY: `at` is a line of the chain just written.
            at = unsafe { kernels::chase_exact(at, 1) };
        }
        assert_eq!(at, start, "back at the start after {slots} hops");
    }
    assert!(relink(&buffer, &spec(9), &exits).is_err());
}

fn four_mib() -> Option<(std::sync::Arc<Buffer>, IdSet)> {
    let cpus = cpu::process_affinity().unwrap();
    let plan = BufferPlan {
        bytes: Bytes::mib(4),
        node: 0,
        pages: PageRequest::Auto,
        touch: cpus.clone(),
        derived: false,
        directory: None,
        shared: false,
        weights: None,
    };
    let buffer = Buffer::allocate(&plan, std::path::Path::new("/")).ok()?;
    Some((std::sync::Arc::new(buffer), cpus))
}

#[test]
fn an_exact_chase_makes_as_many_hops_as_asked() {
    let Some((buffer, cpus)) = four_mib() else { not_tested!("no memory on node 0") };
    let order = ChainSpec {
        bytes: Bytes::kib(64),
        window: Bytes::kib(16),
        stride: Bytes(128),
        line: Bytes(64),
        order: ChaseOrder::WindowLocal,
        seed: 5,
        offset_in_line: 0,
        even: false,
    };
    let ring = write(&buffer, &order, &cpus, &|| false).unwrap();
    let clock = Clock::calibrate(std::path::Path::new("/"));
    let chase = Chase::new(ring.clone());
    for hops in [1, 63, 64, 65, 511, 512, 1000] {
        let (took, after) = chase.clone().exactly(hops, &clock, &Cutoff::never());
        // SAFETY: a line of the chain just written.
        let expected = unsafe { kernels::chase_exact(ring.position(), hops as usize) };
        assert_eq!(after.position(), expected, "{hops} hops");
        assert!(took.hops == hops && (hops < 512 || took.ticks_per_hop().is_some_and(|ticks| ticks > 0.0)), "{took:?}");
    }
}

#[test]
fn hops_during_which_the_thread_was_away_do_not_count() {
    // A hundred blocks of 20 ticks with 10 hops each; another takes 320 and one, out of a cache, 60.
    let long = || vec![(60, 10), (320, 10)];
    let of = |away| ExactHops::without_time_away(2380, 1020, away, long(), 20);
    let calm = of(0);
    assert_eq!((calm.ticks_per_hop(), calm.left_out(), calm.clean()), (Some(2380.0 / 1020.0), 0.0, true), "slow, and not away");
    let away = of(300);
    assert_eq!((away.ticks_per_hop(), away.clean()), (Some(2060.0 / 1010.0), true));
    let unseen = of(900);
    assert_eq!((unseen.ticks_per_hop(), unseen.clean()), (Some(2380.0 / 1020.0), false), "it is in the other blocks as well");
}

#[test]
fn batches_are_timed_one_by_one() {
    let Some((buffer, cpus)) = four_mib() else { not_tested!("no memory on node 0") };
    let order = ChainSpec {
        bytes: Bytes::mib(4),
        window: Bytes::mib(4),
        stride: Bytes(128),
        line: Bytes(64),
        order: ChaseOrder::FullRandom,
        seed: 5,
        offset_in_line: 0,
        even: false,
    };
    let ring = write(&buffer, &order, &cpus, &|| false).unwrap();
    let clock = Clock::calibrate(std::path::Path::new("/"));
    let window = clock.to_ticks(std::time::Duration::from_millis(5));
    let schedule = Schedule { clock, start: clock.now(), window, windows: 4, counters: None };
    let (trace, chase) = Chase::new(ring).timing(64).run(&schedule);
    let (_, batches) = chase.into_parts();
    let batches = batches.unwrap();
    let (ticks, overhead) = batches.ticks();
    let (all, units) = trace.whole().unwrap();
    assert!(ticks.len() > 10 && ticks.len() as u64 >= units, "{} batches timed, {units} done", ticks.len());
    assert!(ticks.iter().sum::<u64>() <= all + all / 2, "batches do not overlap");
    assert!(overhead < clock.to_ticks(std::time::Duration::from_micros(5)), "{overhead} ticks for reading the clock");
}
