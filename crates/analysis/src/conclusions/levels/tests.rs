use super::*;

/// The levels on a machine that shows all of its caches.
fn find(points: &[Point], rising: bool, caches: &[CacheSize]) -> (Vec<Level>, Vec<CacheSize>) {
    super::find(points, rising, caches, Bytes(0))
}

/// Sizes of a sweep with four points in each doubling.
fn sizes(min: u64, max: u64) -> Vec<u64> {
    let octaves = std::iter::successors(Some(min), |n| Some(n * 2)).take_while(|n| *n <= max);
    octaves.flat_map(|base| (0..4).map(move |i| base + base * i / 4)).filter(|n| *n <= max).collect()
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A staircase: the level of the first cache that holds the size. `soft`: the doublings that a level takes to turn into the next.
fn staircase_of(steps: &[(u64, f64)], last: f64, soft: f64) -> Vec<Point> {
    let at = |size: u64| {
        let mut value = steps.first().map_or(last, |s| s.1);
        for (i, (edge, _)) in steps.iter().enumerate() {
            let next = steps.get(i + 1).map_or(last, |s| s.1);
            let beyond = (size as f64 / *edge as f64).log2();
            let share = if soft > 0.0 { (beyond / soft).clamp(0.0, 1.0) } else { f64::from(u8::from(beyond > 0.0)) };
            value *= (next / steps[i].1).powf(share);
        }
        value
    };
    sizes(4 * KIB, GIB).into_iter().map(|s| (Bytes(s), at(s))).collect()
}

fn caches(sizes: &[(&str, u64)]) -> Vec<CacheSize> {
    sizes.iter().map(|(name, size)| CacheSize { name: (*name).into(), size: Bytes(*size) }).collect()
}

fn three() -> Vec<CacheSize> {
    caches(&[("L1d", 48 * KIB), ("L2", MIB), ("L3", 32 * MIB)])
}

fn names(levels: &[Level]) -> Vec<&str> {
    levels.iter().map(|l| l.name.as_str()).collect()
}

/// Fits, spills and whether they agree, of each knee.
fn knees(levels: &[Level]) -> Vec<(u64, u64, Option<bool>)> {
    levels.iter().filter_map(|l| l.knee.as_ref()).map(|k| (k.fits.0, k.spills.0, k.agrees)).collect()
}

/// Numbers that look random, from -1 to 1.
fn noise(seed: u64, n: usize) -> Vec<f64> {
    (0..n as u64).map(|i| memgauge_model::microbench::word(seed, i) as f64 / u64::MAX as f64 * 2.0 - 1.0).collect()
}

#[test]
fn a_staircase_has_its_levels_at_the_caches() {
    let points = staircase_of(&[(48 * KIB, 1.1), (MIB, 3.9), (32 * MIB, 13.0)], 110.0, 0.0);
    let (levels, unseen) = find(&points, true, &three());
    assert_eq!(names(&levels), ["L1d", "L2", "L3", "memory"]);
    assert_eq!(levels.iter().map(|l| l.value).collect::<Vec<_>>(), [1.1, 3.9, 13.0, 110.0]);
    let expected = [(48 * KIB, 56 * KIB, Some(true)), (MIB, MIB + MIB / 4, Some(true)), (32 * MIB, 40 * MIB, Some(true))];
    assert_eq!(knees(&levels), expected);
    assert_eq!(unseen, []);
    assert_eq!((levels[3].from, levels[3].to, &levels[3].knee), (Bytes(40 * MIB), Bytes(GIB), &None));
}

#[test]
fn bandwidth_falls_and_is_read_alike() {
    let mut points = staircase_of(&[(48 * KIB, 440.0), (MIB, 190.0), (32 * MIB, 115.0)], 39.0, 0.3);
    // The smallest working sets pay for the loop.
    (points[0].1, points[1].1, points[2].1) = (250.0, 300.0, 340.0);
    let (levels, _) = find(&points, false, &three());
    assert_eq!(names(&levels), ["L1d", "L2", "L3", "memory"]);
    assert!(levels.windows(2).all(|w| w[0].value > w[1].value), "{levels:?}");
    assert!(knees(&levels).iter().all(|k| k.2 == Some(true)), "{levels:?}");
}

#[test]
fn noise_does_not_move_the_levels() {
    for seed in 0..50 {
        let mut points = staircase_of(&[(48 * KIB, 1.1), (MIB, 3.9), (32 * MIB, 13.0)], 110.0, 0.5);
        for (point, noise) in points.iter_mut().zip(noise(seed, 100)) {
            point.1 *= 1.0 + 0.03 * noise;
        }
        // Some points were badly disturbed.
        for (i, far) in noise(seed + 1000, 4).iter().enumerate() {
            let at = ((far + 1.0) / 2.0 * 70.0) as usize / 4 * 4 + i % 2;
            points[at].1 *= 2.5;
        }
        let (levels, unseen) = find(&points, true, &three());
        assert_eq!(names(&levels), ["L1d", "L2", "L3", "memory"], "seed {seed}: {levels:#?}");
        assert!(unseen.is_empty());
        for (level, value) in levels.iter().zip([1.1, 3.9, 13.0, 110.0]) {
            assert!((level.value / value - 1.0).abs() < 0.04, "seed {seed}: {level:?}");
            assert!(level.low <= level.value && level.value <= level.high);
        }
        assert!(knees(&levels).iter().filter(|k| k.2 == Some(true)).count() >= 2, "seed {seed}: {levels:#?}");
    }
}

#[test]
fn a_cache_without_a_step_is_named() {
    // The curve of the author's virtual machine while its neighbours use the last-level cache.
    let points = staircase_of(&[(48 * KIB, 1.02), (MIB, 3.63)], 146.7, 0.75);
    let (levels, unseen) = find(&points, true, &three());
    assert_eq!(names(&levels), ["L1d", "L2", "memory"]);
    assert_eq!(unseen, caches(&[("L3", 32 * MIB)]));
    assert_eq!(levels[1].knee.as_ref().unwrap().cache.as_ref().unwrap().name, "L2");
}

#[test]
fn a_part_of_a_cache_is_still_that_cache() {
    // A hypervisor shows 32 MiB and leaves 4.
    let points = staircase_of(&[(48 * KIB, 1.1), (MIB, 3.9), (4 * MIB, 13.0)], 110.0, 0.0);
    let (levels, unseen) = find(&points, true, &three());
    assert_eq!(names(&levels), ["L1d", "L2", "L3", "memory"]);
    assert_eq!(knees(&levels)[2], (4 * MIB, 5 * MIB, Some(false)));
    assert_eq!(unseen, []);
}

#[test]
fn a_small_part_of_the_one_cache_left_is_that_cache() {
    // Neighbours left 3 of 32 MiB; the L2 of a guest whose core's other thread was busy.
    let points = staircase_of(&[(48 * KIB, 1.1), (448 * KIB, 4.3), (3 * MIB, 14.8)], 152.0, 0.0);
    let (levels, unseen) = find(&points, true, &three());
    assert_eq!(names(&levels), ["L1d", "L2", "L3", "memory"]);
    assert_eq!((knees(&levels)[2].2, unseen), (Some(false), vec![]));
}

#[test]
fn a_plateau_that_begins_where_a_cache_is_used_up_is_not_that_cache() {
    // A host that moved the CPU between two last-level caches: part of the 32 MiB, then a mixture, then memory.
    let points = staircase_of(&[(48 * KIB, 1.1), (MIB, 3.9), (14 * MIB, 13.0), (48 * MIB, 40.0)], 150.0, 0.0);
    let (levels, unseen) = find(&points, true, &three());
    assert_eq!(names(&levels), ["L1d", "L2", "L3", "?", "memory"]);
    assert_eq!((knees(&levels)[2].2, unseen), (Some(false), vec![]));
}

#[test]
fn the_last_plateau_is_a_cache_that_has_none_yet_or_memory() {
    // Swept to 4 MiB, an eighth of the L3, with half of the L2 left: the last plateau begins within the L2's size.
    let of = |steps: &[(u64, f64)], last, most: u64| {
        let points: Vec<Point> = staircase_of(steps, last, 0.0).into_iter().filter(|p| p.0.0 <= most).collect();
        let (levels, unseen) = find(&points, true, &three());
        (names(&levels).into_iter().map(str::to_owned).collect::<Vec<_>>(), unseen.len())
    };
    assert_eq!(of(&[(48 * KIB, 1.1), (640 * KIB, 3.9)], 14.0, 4 * MIB).0, ["L1d", "L2", "L3"]);
    // Swept to 256 KiB in points that a busy machine has levelled: eight times the L1d is not the L1d.
    let level = |from, to| Level { name: String::new(), from: Bytes(from), to: Bytes(to), value: 1.4, low: 1.4, high: 1.4, knee: None };
    let left = [("L1d", 48 * KIB), ("L2", MIB)].map(|(name, size)| CacheSize { name: name.into(), size: Bytes(size) });
    assert_eq!(last_name(&level(4 * KIB, 256 * KIB), Some(Bytes(32 * MIB)), &left, Bytes(0)), "L2");
    assert_eq!(last_name(&level(4 * KIB, 48 * KIB), Some(Bytes(32 * MIB)), &left, Bytes(0)), "L1d");
    // Neighbours that leave nothing of the L3, and a sweep that ends at twice its size.
    assert_eq!(of(&[(48 * KIB, 1.1), (MIB, 3.9)], 140.0, 64 * MIB), (vec!["L1d".into(), "L2".into(), "memory".into()], 1));
}

#[test]
fn a_last_plateau_is_memory_only_where_a_larger_size_says_so() {
    let last = |steps: &[(u64, f64)], end, soft, most: u64, hidden| {
        let points: Vec<Point> = staircase_of(steps, end, soft).into_iter().filter(|p| p.0.0 <= most).collect();
        let (levels, unseen) = super::find(&points, false, &three(), hidden);
        (levels.last().unwrap().name.clone(), unseen.len())
    };
    // A sweep to 64 MiB that ends before the curve is flat beyond the L3.
    let three_steps = [(48 * KIB, 440.0), (MIB, 190.0), (32 * MIB, 106.8)];
    assert_eq!(last(&three_steps, 39.0, 2.0, 64 * MIB, Bytes(0)), ("L3".into(), 0));
    assert_eq!(last(&three_steps, 39.0, 0.3, GIB, Bytes(0)).0, "memory");
    // A guest that sees 32 MiB of a larger cache, or whose neighbours use all of it: 106.8 GB/s to the end.
    let two_steps = &three_steps[..2];
    assert_eq!(last(two_steps, 106.8, 0.0, 64 * MIB, LARGEST_CACHE), ("L3 or memory".into(), 1));
    assert_eq!(last(&three_steps, 39.0, 0.0, 128 * MIB, LARGEST_CACHE).0, "memory?");
    assert_eq!(last(&three_steps, 39.0, 0.0, GIB, LARGEST_CACHE).0, "memory");
    // All caches have their step, the last one early, and the sweep ends within its size.
    assert_eq!(last(&[(48 * KIB, 440.0), (MIB, 190.0), (4 * MIB, 106.8)], 39.0, 0.0, 20 * MIB, Bytes(0)).0, "memory?");
}

#[test]
fn a_victim_cache_adds_to_the_one_before() {
    // Exclusive: what one core can keep is L2 and L3 together; within one step of the sweep for usual sizes.
    let points = staircase_of(&[(32 * KIB, 1.1), (512 * KIB, 3.9), (16 * MIB + MIB / 2, 13.0)], 95.0, 0.0);
    let (levels, _) = find(&points, true, &caches(&[("L1d", 32 * KIB), ("L2", 512 * KIB), ("L3", 16 * MIB)]));
    assert_eq!(names(&levels), ["L1d", "L2", "L3", "memory"]);
    assert_eq!(knees(&levels)[2], (16 * MIB, 20 * MIB, Some(true)));
}

#[test]
fn ramps_of_a_tlb_make_no_level() {
    // Base pages: the second-level TLB costs a little from 288 KiB on, page walks grow slowly with the working set.
    let mut points = staircase_of(&[(48 * KIB, 1.1), (2 * MIB, 3.9), (32 * MIB, 20.0)], 120.0, 0.4);
    for (size, value) in &mut points {
        let octaves = |from: u64| (size.0 as f64 / from as f64).log2().max(0.0);
        *value += 0.5 * octaves(288 * KIB).min(1.0) + 0.15 * octaves(8 * MIB) + 3.0 * octaves(64 * MIB);
    }
    let (levels, unseen) = find(&points, true, &caches(&[("L1d", 48 * KIB), ("L2", 2 * MIB), ("L3", 32 * MIB)]));
    assert_eq!(names(&levels), ["L1d", "L2", "L3", "memory"], "{levels:#?}");
    assert_eq!(unseen, []);
}

#[test]
fn levels_that_nothing_explains_are_not_named() {
    // A memory-side cache of 256 MiB that sysfs does not list, and a machine that lists nothing at all.
    let points = staircase_of(&[(48 * KIB, 1.1), (MIB, 3.9), (32 * MIB, 13.0), (256 * MIB, 110.0)], 260.0, 0.0);
    let (levels, _) = find(&points, true, &three());
    assert_eq!(names(&levels), ["L1d", "L2", "L3", "?", "memory"]);
    let (levels, unseen) = find(&points, true, &[]);
    assert_eq!(names(&levels), ["?", "?", "?", "?", "?"]);
    assert_eq!(unseen, []);
}

#[test]
fn a_sweep_that_ends_in_a_cache_says_nothing_of_what_is_beyond() {
    let points: Vec<Point> = staircase_of(&[(48 * KIB, 1.1), (MIB, 3.9), (32 * MIB, 13.0)], 110.0, 0.0);
    let points: Vec<Point> = points.into_iter().filter(|p| p.0 <= Bytes(8 * MIB)).collect();
    let (levels, unseen) = find(&points, true, &three());
    assert_eq!(names(&levels), ["L1d", "L2", "L3"]);
    assert_eq!(levels[2].knee, None);
    assert_eq!(unseen, []);
}

#[test]
fn few_points_and_nonsense_are_no_levels() {
    assert_eq!(find(&[], true, &three()).0, []);
    assert_eq!(find(&[(Bytes(4096), 1.0)], true, &three()).0, []);
    let wrong = [(Bytes(0), 1.0), (Bytes(4096), f64::NAN), (Bytes(8192), -1.0), (Bytes(16384), f64::INFINITY)];
    assert_eq!(find(&wrong, true, &three()).0, []);
    let flat: Vec<Point> = sizes(4 * KIB, GIB).into_iter().map(|s| (Bytes(s), 5.0)).collect();
    let (levels, unseen) = find(&flat, true, &three());
    assert_eq!((levels.len(), unseen.len()), (1, 3), "{levels:?}");
}

#[test]
fn recorded_curves_are_understood() {
    // This project's virtual machine (family 26, model 2), half of its CPU used by others: sizes in KiB, ns.
    let latency = include_str!("busy-vm-latency.txt");
    let points: Vec<Point> = latency
        .lines()
        .filter_map(|l| {
            let (size, value) = l.split_once(' ')?;
            Some((Bytes(size.parse::<u64>().ok()? * KIB), value.parse().ok()?))
        })
        .collect();
    assert_eq!(points.len(), 73);
    let (levels, unseen) = find(&points, true, &three());
    assert_eq!(names(&levels), ["L1d", "L2", "memory"]);
    assert_eq!(knees(&levels).iter().map(|k| k.2).collect::<Vec<_>>(), [Some(true), Some(true)]);
    assert_eq!(unseen, caches(&[("L3", 32 * MIB)]));
    assert!((levels[0].value - 1.02).abs() < 0.01 && (levels[2].value - 146.7).abs() < 2.0, "{levels:?}");
}

#[test]
fn unreliable_points_make_no_level() {
    let mut results = Vec::new();
    for (size, ns) in staircase_of(&[(48 * KIB, 1.1), (MIB, 3.9)], 13.0, 0.0) {
        let mut m = crate::conclusions::limit::tests::bandwidth("0", Some(0), memgauge_model::traffic::Mix::AllReads, ns, Some(ns));
        (m.experiment, m.metric, m.at) =
            (Experiment::Sweep, Metric::Latency, Coordinates { working_set: Some(size), ..Coordinates::default() });
        results.push(m);
    }
    let machine = crate::conclusions::limit::tests::machine();
    let values = |results: &[Measurement]| summarise(results, &machine).iter().flat_map(|s| &s.levels).map(|l| l.value).collect::<Vec<_>>();
    assert_eq!(values(&results), [1.1, 3.9, 13.0]);
    // A whole level of points that other processes made slow would be a plateau of its own.
    let unreliable = memgauge_model::result::QualityLevel::Unreliable;
    for m in results.iter_mut().filter(|m| m.at.working_set > Some(Bytes(128 * MIB))) {
        (m.estimate.value, m.quality.level) = (Some(40.0), unreliable);
    }
    assert_eq!(values(&results), [1.1, 3.9, 13.0]);
    results.iter_mut().for_each(|m| m.quality.level = unreliable);
    assert_eq!(summarise(&results, &machine), []);
}
