use super::*;
use memgauge_model::experiment::PageRequest;
use memgauge_model::plan::BufferPlan;
use memgauge_model::protocol::SLOT;
use memgauge_model::stats;
use memgauge_os::clock::Clock;
use memgauge_testing::not_tested;

use crate::burst::chase::Chase;
use crate::burst::slots::{BurstWindows, Role};
use crate::burst::windows::Schedule;

#[test]
fn the_chain_in_memory_is_one_cycle_over_all_lines() {
    let cpus = cpu::process_affinity().unwrap();
    let bytes = Bytes::mib(4);
    let plan = BufferPlan { touch: cpus.clone(), ..BufferPlan::plain(bytes, 0, PageRequest::Auto) };
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
    of_mib(4)
}

fn of_mib(mib: u64) -> Option<(std::sync::Arc<Buffer>, IdSet)> {
    let cpus = cpu::process_affinity().unwrap();
    let plan = BufferPlan { touch: cpus.clone(), ..BufferPlan::plain(Bytes::mib(mib), 0, PageRequest::Auto) };
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
        let (took, after) = chase.clone().exactly(hops, Duration::ZERO, &clock, &Cutoff::default());
        // SAFETY: a line of the chain just written.
        let expected = unsafe { kernels::chase_exact(ring.position(), hops as usize) };
        assert_eq!(after.position(), expected, "{hops} hops");
        assert!(took.hops() == hops && (hops < 512 || took.ticks_per_hop().is_some_and(|ticks| ticks > 0.0)), "{took:?}");
    }
}

/// Both chase over the same ring in turn, on one CPU: the windows are as short as a slot, so that hops that are missing from them show.
#[test]
fn windows_and_exact_hops_agree() {
    const PAIRS: usize = 150;
    let Some((buffer, cpus)) = of_mib(64) else { not_tested!("no memory on node 0") };
    let spec = ChainSpec {
        bytes: Bytes::mib(64),
        window: Bytes::mib(64),
        stride: Bytes(128),
        line: Bytes(64),
        order: ChaseOrder::FullRandom,
        seed: 7,
        offset_in_line: 0,
        even: false,
    };
    let mut chase = Chase::new(write(&buffer, &spec, &cpus, &|| false).unwrap());
    let clock = Clock::calibrate(std::path::Path::new("/"));
    cpu::pin_to(cpus.first().unwrap()).unwrap();
    let (window, windows) = (clock.to_ticks(SLOT), 16);
    let mut ratios = Vec::new();
    for _ in 0..2 * PAIRS {
        let (trace, moved) = chase.run(&Schedule { clock, start: clock.now(), window, windows, counters: None });
        let (exact, moved) = moved.exactly(20_000, Duration::from_micros(500), &clock, &Cutoff::default());
        chase = moved;
        let found = BurstWindows::new(&[&trace], Role::Chase, 4..windows, clock.ns(1), 0);
        // A stall of memory is in the mean over exact hops, and in no window.
        let calm = [found.stalled, exact.stalled()].into_iter().flatten().all(|stalled| stalled < 0.002);
        if calm && found.clean && exact.clean() {
            // Means of both: where memory is slow for short moments, the median of windows is below the mean over all hops.
            let (ticks, blocks) = found.windows.iter().fold((0, 0), |sum, threads| (sum.0 + threads[0].0, sum.1 + threads[0].1));
            ratios.push(ticks as f64 / (blocks * kernels::CHASE_UNROLL as u64) as f64 / exact.ticks_per_hop().unwrap());
        }
        if ratios.len() == PAIRS {
            break;
        }
    }
    println!("windows over exact hops: {:.4?}", stats::median(&ratios));
    match stats::median_interval(&stats::sorted(&ratios)) {
        Some((low, high)) if high - low < 0.015 => {
            assert!(low < 1.01 && high > 0.99, "windows over exact hops: {low} to {high}, {ratios:?}")
        }
        _ => not_tested!("other processes use the CPU or its memory"),
    }
}

#[test]
fn hops_during_which_the_thread_was_away_do_not_count() {
    // A hundred blocks of 20 ticks with 10 hops each; another takes 320 and one, out of a cache, 60.
    let long = || vec![(60, 10), (320, 10)];
    let of = |away| ExactHops::without_time_away(2380, 1020, Some(away), long(), 20);
    let calm = of(0);
    assert_eq!((calm.stalled(), of(300).stalled()), (Some(340.0 / 2380.0), Some(40.0 / 2380.0)));
    assert_eq!(ExactHops::without_time_away(2380, 1020, None, long(), 20).stalled(), None, "the kernel tells no CPU time");
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
    let clock = Clock::calibrate(std::path::Path::new("/"));
    let window = clock.to_ticks(std::time::Duration::from_millis(5));
    // A thread that is off its CPU throughout the windows has none of them.
    let measured = (0..5).find_map(|_| {
        let ring = write(&buffer, &order, &cpus, &|| false).unwrap();
        let schedule = Schedule { clock, start: clock.now(), window, windows: 4, counters: None };
        let (trace, chase) = Chase::new(ring).timing(64).run(&schedule);
        let (_, batches) = chase.into_parts();
        Some((trace.whole()?, batches.unwrap()))
    });
    let Some(((all, units), batches)) = measured else { not_tested!("no window in five bursts: other processes use the CPU") };
    let (ticks, overhead) = batches.ticks();
    assert!(ticks.len() > 10 && ticks.len() as u64 >= units, "{} batches timed, {units} done", ticks.len());
    assert!(ticks.iter().sum::<u64>() <= all + all / 2, "batches do not overlap");
    assert!(overhead < clock.to_ticks(std::time::Duration::from_micros(5)), "{overhead} ticks for reading the clock");
}

/// A chase over 4 MiB in windows of `window_kib` KiB, or over all of it, after some bursts of each kind.
fn chased(window_kib: u64, changed: bool) -> Option<(Chase, ChaseLayout)> {
    let (buffer, cpus) = four_mib()?;
    let spec = ChainSpec {
        bytes: Bytes::mib(4),
        window: Bytes::kib(window_kib),
        stride: Bytes(128),
        line: Bytes(64),
        order: ChaseOrder::WindowLocal,
        seed: 9,
        offset_in_line: 16,
        even: false,
    };
    let ring = write(&buffer, &spec, &cpus, &|| false).unwrap();
    let layout = layout(&buffer, &spec).unwrap();
    if changed {
        // One bit of one pointer, so that it leads to another line of the same ring.
        let lines: std::collections::BTreeSet<usize> = layout.lines().map(|line| buffer.as_ptr() as usize + 16 + line).collect();
        let at = layout.after(12_345 % layout.slots() as u64) + 16 + buffer.as_ptr() as usize;
        // SAFETY: a line of the chain, which no thread uses now.
        unsafe {
            let pointer = std::ptr::with_exposed_provenance_mut::<usize>(at);
            let flips = (7..22).map(|bit| pointer.read() ^ (1 << bit));
            let wrong = flips.into_iter().find(|wrong| lines.contains(wrong)).expect("a line of the ring one bit away");
            pointer.write(wrong);
        }
    }
    let clock = Clock::calibrate(std::path::Path::new("/"));
    let window = clock.to_ticks(Duration::from_millis(1));
    let schedule = || Schedule { clock, start: clock.now(), window, windows: 3, counters: None };
    let (_, chase) = Chase::new(ring).exactly(100_001, Duration::from_micros(100), &clock, &Cutoff::default());
    let (_, chase) = chase.run(&schedule());
    let (_, chase) = chase.timing(8).run(&schedule());
    Some((chase.into_parts().0, layout))
}

#[test]
fn a_changed_pointer_to_another_line_of_the_ring_is_noticed() {
    let wrong = |outcome: Result<(), NotMeasured>| matches!(outcome, Err(NotMeasured::Corrupted { cpu: Some(3), .. }));
    for window_kib in [64, 2048, 4096] {
        let (Some((good, layout)), Some((bad, _))) = (chased(window_kib, false), chased(window_kib, true)) else {
            not_tested!("no memory on node 0");
        };
        let computed = layout.slots_per_window() <= COMPUTED_SLOTS;
        assert!(good.check(3).is_ok() && good.ring().check_links(3, &|| false).is_ok(), "{window_kib} KiB");
        assert!(bad.ring().memory().contains(&bad.position()), "it ends inside its buffer");
        assert_eq!(wrong(bad.check(3)), computed, "{window_kib} KiB");
        assert_eq!(wrong(bad.ring().check_links(3, &|| false)), !computed, "{window_kib} KiB");
        // If traffic is checked, so is the chase beside it, in short windows too: a burst may not meet the pointer there.
        assert!(good.ring().check_all_links(3, &|| false).is_ok() && wrong(bad.ring().check_all_links(3, &|| false)), "{window_kib} KiB");
    }
}
