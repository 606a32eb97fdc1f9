//! Stamps of made-up machines, whose changes are known.

use memgauge_model::result::{DifferentField, Neighbours, OthersPoint};
use memgauge_model::units::IdSet;

use super::*;

/// A stamp of a machine whose memory has this latency, the nth of a watch.
fn stamp(n: u64, ns: f64) -> Stamp {
    // Stamps scatter by some 0.5 %, always the same way.
    let off = 1.0 + 0.005 * ((n * 7919 % 13) as f64 / 6.0 - 1.0);
    let reading = |probe: StampProbe, value: f64| ProbeReading {
        probe,
        unit: probe.unit().into(),
        value: Some(value),
        not_measured: None,
        rounds: [-1.0, -0.5, 0.0, 0.5, 1.0].map(|step| value * (1.0 + 0.004 * step)).to_vec(),
        cpus: IdSet::one(0),
        bytes: None,
        pages: None,
    };
    let probes = vec![reading(StampProbe::MemoryLatency, ns * off), reading(StampProbe::Frequency, 3.0)];
    Stamp { taken: Moment { utc: String::new(), monotonic_ns: n }, took_s: 0.2, probes, ..Stamp::default() }
}

fn busy(n: u64, ns: f64) -> Stamp {
    let mut stamp = stamp(n, ns);
    stamp.noise.neighbours = Some(Neighbours { memory: Some(0.4), ..Neighbours::default() });
    stamp
}

/// The changes of a watch of these stamps: the number of the stamp and the condition.
fn changes(watcher: &mut Watcher, stamps: impl IntoIterator<Item = Stamp>) -> Vec<(u64, Condition, bool)> {
    let changes = stamps.into_iter().filter_map(|stamp| watcher.see(&stamp, Vec::new()).1);
    changes.map(|change| (change.at.monotonic_ns, change.to, change.again)).collect()
}

#[test]
fn a_state_begins_with_the_first_of_two_stamps_and_is_known_again() {
    let mut watcher = Watcher::new(20.0, None);
    let ns = |n: u64| if (20..40).contains(&n) { 120.0 } else { 100.0 };
    let seen = changes(&mut watcher, (0..60).map(|n| stamp(n, ns(n))));
    let quiet = |state| Condition::Quiet { state };
    assert_eq!(seen, [(0, quiet(1), false), (20, quiet(2), false), (40, quiet(1), true)]);
    let [.., change] = &watcher.watch().changes[..] else { panic!() };
    assert!(change.probes[0].probe == StampProbe::MemoryLatency && (change.probes[0].change + 1.0 / 6.0).abs() < 0.02, "{change:?}");
    assert_eq!(watcher.watch().states.iter().map(|state| state.stamps).collect::<Vec<_>>(), [40, 20]);
    assert_eq!(watcher.watch().changed, 2);
    // A state of few stamps allows much; the nearest one counts.
    let mut three = Watcher::new(20.0, None);
    let ns = |n: u64| [100.0, 120.0, 112.0, 100.0, 112.0][(n / 15) as usize];
    let seen = changes(&mut three, (0..75).map(|n| stamp(n, ns(n))));
    assert_eq!(seen.iter().map(|change| change.1).collect::<Vec<_>>(), [quiet(1), quiet(2), quiet(3), quiet(1), quiet(3)]);
    // One stamp is chance.
    let mut other = Watcher::new(20.0, None);
    let odd = |n: u64| if n % 9 == 8 { 130.0 } else { 100.0 };
    assert_eq!(changes(&mut other, (0..90).map(|n| stamp(n, odd(n)))).len(), 1);
}

#[test]
fn two_stamps_that_disagree_with_each_other_begin_no_state() {
    let mut watcher = Watcher::new(20.0, None);
    let ns = |n: u64| match n {
        20 => 120.0,
        21 => 150.0,
        _ => 100.0,
    };
    assert_eq!(changes(&mut watcher, (0..40).map(|n| stamp(n, ns(n)))).len(), 1);
    // The second may be the first of a state.
    let mut other = Watcher::new(20.0, None);
    let ns = |n: u64| match n {
        0..20 => 100.0,
        20 => 120.0,
        _ => 150.0,
    };
    let seen = changes(&mut other, (0..40).map(|n| stamp(n, ns(n))));
    assert_eq!(seen[1..], [(21, Condition::Quiet { state: 2 }, false)]);
}

#[test]
fn stamps_that_never_agree_are_another_state_all_the_same() {
    let mut watcher = Watcher::new(20.0, None);
    let ns = |n: u64| match n {
        0..20 => 100.0,
        _ if n.is_multiple_of(2) => 130.0,
        _ => 160.0,
    };
    let seen = changes(&mut watcher, (0..30).map(|n| stamp(n, ns(n))));
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!((seen[1].0, seen[1].1), (22, Condition::Quiet { state: 2 }));
}

#[test]
fn a_state_that_turns_out_to_be_an_earlier_one_is_folded_into_it() {
    let mut watcher = Watcher::new(20.0, None);
    // Two stamps are 4 % above, beyond what a machine this steady allows.
    let ns = |n: u64| match n {
        0..20 => 100.0,
        20 | 21 => 104.0,
        _ => 101.0,
    };
    let seen = changes(&mut watcher, (0..60).map(|n| stamp(n, ns(n))));
    let quiet = |state| Condition::Quiet { state };
    assert_eq!(
        seen.iter().map(|(_, to, again)| (*to, *again)).collect::<Vec<_>>(),
        [(quiet(1), false), (quiet(2), false), (quiet(1), true)]
    );
    let watch = watcher.watch();
    assert_eq!((watch.changed, watch.changes.len(), watch.states[0].stamps, watch.states[1].stamps), (0, 1, 60, 0));
    assert_eq!(watch.states[1].folded, Some(1));
    assert!(watch.points.iter().all(|point| point.condition.is_none_or(|condition| condition == quiet(1))));
}

#[test]
fn a_machine_that_becomes_slower_bit_by_bit_is_in_another_state() {
    let mut watcher = Watcher::new(20.0, None);
    let seen = changes(&mut watcher, (0..200).map(|n| stamp(n, 100.0 * (1.0 + n as f64 * 0.0005))));
    assert!((2..=4).contains(&seen.len()), "{seen:?}");
}

#[test]
fn a_busy_machine_is_in_no_state_and_returns_to_the_one_it_was_in() {
    let mut watcher = Watcher::new(20.0, None);
    let seen = changes(&mut watcher, (0..30).map(|n| if (10..20).contains(&n) { busy(n, 140.0) } else { stamp(n, 100.0) }));
    let quiet = Condition::Quiet { state: 1 };
    assert_eq!(seen, [(0, quiet, false), (10, Condition::Busy, false), (20, quiet, true)]);
    assert_eq!((watcher.watch().stamps, watcher.watch().busy, watcher.watch().changed), (30, 10, 0), "it is in the state of before");
    // A single busy stamp is not a condition of the machine.
    let mut other = Watcher::new(20.0, None);
    assert_eq!(changes(&mut other, (0..30).map(|n| if n == 10 { busy(n, 140.0) } else { stamp(n, 100.0) })).len(), 1);
    let mut from_the_beginning = Watcher::new(20.0, None);
    let seen = changes(&mut from_the_beginning, (0..4).map(|n| if n < 2 { busy(n, 140.0) } else { stamp(n, 100.0) }));
    assert_eq!(seen, [(0, Condition::Busy, false), (2, quiet, false)]);
}

#[test]
fn a_setting_is_another_state_at_once() {
    let mut watcher = Watcher::new(20.0, None);
    watcher.see(&stamp(0, 100.0), Vec::new());
    let settings =
        vec![Difference { field: DifferentField::Governor, before: vec!["performance".into()], after: vec!["powersave".into()] }];
    let (_, change) = watcher.see(&stamp(1, 100.0), settings.clone());
    let change = change.unwrap();
    assert_eq!((change.to, change.settings), (Condition::Quiet { state: 2 }, settings));
    let back = vec![Difference { field: DifferentField::Governor, before: vec!["powersave".into()], after: vec!["performance".into()] }];
    let (_, change) = watcher.see(&stamp(2, 100.0), back);
    assert_eq!(change.map(|change| (change.to, change.again)), Some((Condition::Quiet { state: 1 }, true)), "the setting was put back");
}

#[test]
fn higher_latency_is_read_as_bandwidth_of_others_also_while_they_are_seen() {
    let curve = [(0.0, 1.0), (10.0, 1.5)].map(|(gbs, ratio)| OthersPoint { gbs, ratio, error: 0.0 });
    let scale = OthersScale { peak_gbs: 10.0, curve: curve.to_vec(), ..OthersScale::default() };
    let mut watcher = Watcher::new(20.0, Some(scale));
    changes(&mut watcher, (0..30).map(|n| stamp(n, 100.0)));
    let detection = watcher.watch().others.as_ref().unwrap().detection_gbs.unwrap();
    assert!((0.1..1.0).contains(&detection), "{detection}");
    for stamp in [stamp(30, 125.0), busy(31, 125.0)] {
        let others = watcher.see(&stamp, Vec::new()).0.others.unwrap();
        assert!((others.gbs - 5.0).abs() < 0.3 && others.low_gbs > 4.0 && others.high_gbs.is_some_and(|high| high < 6.0), "{others:?}");
    }
}

#[test]
fn a_long_watch_keeps_fewer_of_its_points() {
    let mut watcher = Watcher::new(20.0, None);
    changes(&mut watcher, (0..3 * MOST_POINTS as u64).map(|n| stamp(n, 100.0)));
    let points = &watcher.watch().points;
    assert!(points.len() <= MOST_POINTS && points.len() > MOST_POINTS / 3, "{}", points.len());
    assert!(points.windows(2).all(|two| two[0].at.monotonic_ns < two[1].at.monotonic_ns));
}
