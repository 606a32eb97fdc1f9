//! Fleets of simulated hosts: the sick ones are found, the healthy ones are not named, and what is not known is said.
#![allow(clippy::unwrap_used, reason = "a panic is the failure report of its test")]

use std::collections::BTreeSet;

use memgauge_analysis::fleet::{Duplicate, FleetField, FleetOutliers, GroupLevel, SlowPlace};
use memgauge_fleet::{baseline, outliers};
use memgauge_model::experiment::Metric;
use memgauge_model::result::DifferentField;
use memgauge_simulation::fleet::{BIOSES, FleetShape, HostFault, SimulatedFleet, fleet};

/// The fleet of issue 17: 10,000 hosts, 60 numbers each.
fn large() -> FleetShape {
    FleetShape {
        hosts: 10_000,
        sick: 0.01,
        lacking: 0.05,
        degraded: 0.01,
        other_bios: Some((0.3, 0.06)),
        duplicates: true,
        ..FleetShape::default()
    }
}

/// Sick hosts that are not named, and healthy ones that are.
fn mistakes(fleet: &SimulatedFleet, found: &FleetOutliers) -> (Vec<String>, Vec<String>) {
    let named: BTreeSet<&str> = found.slow.iter().map(|slow| slow.name.host.as_str()).collect();
    let missed = fleet.sick.iter().filter(|(host, _)| !named.contains(host.as_str())).map(|(host, fault)| format!("{host} {fault:?}"));
    let wrong = named.iter().filter(|host| !fleet.sick.contains_key(**host)).map(|host| (*host).to_owned());
    (missed.collect(), wrong.collect())
}

#[test]
fn in_a_large_fleet_the_sick_hosts_are_found_and_few_others() {
    let fleet = fleet(&large(), 17);
    assert!(fleet.rows.len() > 590_000 && fleet.sick.len() > 70, "{} rows, {} sick", fleet.rows.len(), fleet.sick.len());
    let found = outliers(&fleet.rows);
    let (missed, wrong) = mistakes(&fleet, &found);
    assert!(missed.is_empty(), "{missed:?}");
    assert!(wrong.len() <= 10, "{wrong:?}");

    // Who lacks numbers is unknown or named, and never passes.
    let unknown: BTreeSet<&str> = found.unknown.iter().map(|unknown| unknown.name.host.as_str()).collect();
    let named: BTreeSet<&str> = found.slow.iter().map(|slow| slow.name.host.as_str()).collect();
    let passed: Vec<_> = fleet.uncertain.iter().filter(|h| !unknown.contains(h.as_str()) && !named.contains(h.as_str())).collect();
    assert!(passed.is_empty(), "{passed:?}");
    assert_eq!(found.as_siblings as usize + found.slow.len() + found.unknown.len(), found.hosts as usize);

    // Two populations, by BIOS and nothing else, in the bandwidths and nothing else.
    let [populations] = &found.populations[..] else { panic!("{:?}", found.populations) };
    assert_eq!(populations.fields, [FleetField::Property(DifferentField::Firmware)]);
    assert_eq!([0, 1].map(|i| populations.populations[i].values.clone()), BIOSES.map(|bios| vec![bios.to_owned()]));
    assert!(populations.numbers.iter().all(|n| n.metric == Metric::Bandwidth && (n.ratio - 0.94).abs() < 0.005), "{populations:?}");
    assert_eq!(populations.numbers.len(), 30);

    assert!(
        matches!(&found.duplicates[..], [
        Duplicate::OneIdManyNames { hosts, .. },
        Duplicate::OneNameManyIds { host, machine_id_hashes },
    ] if hosts[..] == ["n00000", "n09999"] && host == "n00001" && machine_id_hashes.len() == 2),
        "{:?}",
        found.duplicates
    );
    assert_eq!(found.hosts, 10_000, "one name with two ids is two hosts");
    assert_eq!(found.groups.iter().map(|g| (g.level, g.hosts > 2_500)).collect::<Vec<_>>(), [(GroupLevel::Kernel, true); 2]);
}

#[test]
fn what_is_wrong_is_said_in_the_fields_words() {
    let fleet = fleet(&FleetShape { hosts: 2_000, sick: 0.05, ..FleetShape::default() }, 5);
    let found = outliers(&fleet.rows);
    let mut right = 0;
    for slow in &found.slow {
        let Some((fault, by)) = fleet.sick.get(&slow.name.host) else { continue };
        let expected = match fault {
            HostFault::Whole => (SlowPlace::WholeHost, None),
            HostFault::Bandwidth => (SlowPlace::WholeHost, Some(Metric::Bandwidth)),
            HostFault::Node(node) => (SlowPlace::Node { node: *node }, None),
            HostFault::Cache(cache) => (SlowPlace::CacheDomain { cpus: (2 * cache..2 * cache + 2).collect() }, Some(Metric::Bandwidth)),
            HostFault::Link => (SlowPlace::Link { from: 0, to: 1 }, None),
        };
        // One slow number is of one quantity.
        right += usize::from(slow.place == expected.0 && (slow.metric == expected.1 || *fault == HostFault::Cache(3)));
        let worst = &slow.numbers[0];
        let share = if worst.metric == Metric::Bandwidth { 1.0 - worst.ratio } else { worst.ratio - 1.0 };
        assert!((share - by).abs() < 0.06, "{} is {share} slower and not {by}", slow.name.host);
        assert!(worst.ratio_low.unwrap() < worst.ratio && worst.ratio < worst.ratio_high.unwrap());
    }
    assert!(right * 100 >= fleet.sick.len() * 95, "{right} of {}", fleet.sick.len());
}

/// What two hundred random fleets gave: sick hosts, those found, healthy hosts, those named, fleets in which a healthy one was named.
#[derive(Debug, Default)]
struct Rates {
    fleets: u32,
    sick: usize,
    found: usize,
    healthy: usize,
    named: usize,
    with_false_name: u32,
}

fn rates(sizes: impl Fn(u64) -> u32, shape: impl Fn(u64) -> FleetShape, fleets: u64) -> Rates {
    let mut rates = Rates::default();
    for seed in 0..fleets {
        let fleet = fleet(&FleetShape { hosts: sizes(seed), ..shape(seed) }, 1_000 + seed);
        let (missed, wrong) = mistakes(&fleet, &outliers(&fleet.rows));
        rates.fleets += 1;
        rates.sick += fleet.sick.len();
        rates.found += fleet.sick.len() - missed.len();
        rates.healthy += sizes(seed) as usize - fleet.sick.len();
        rates.named += wrong.len();
        rates.with_false_name += u32::from(!wrong.is_empty());
    }
    rates
}

/// From 8 to 500 hosts, small fleets as often as large ones.
fn size(seed: u64) -> u32 {
    (8.0 * (500.0_f64 / 8.0).powf(seed as f64 / 199.0)).round() as u32
}

#[test]
fn in_two_hundred_fleets_the_rates_hold() {
    let shape = |seed| FleetShape { sick: 0.03, deviation: [0.004, 0.008, 0.012][seed as usize % 3], ..FleetShape::default() };
    let rates = rates(size, shape, 200);
    assert!(rates.found * 100 >= rates.sick * 97, "{rates:?}");
    assert!(rates.named * 1000 <= rates.healthy, "{rates:?}");
}

#[test]
fn nobody_is_named_where_nobody_is_sick() {
    for deviation in [0.004, 0.010, 0.020] {
        let rates = rates(size, |_| FleetShape { deviation, ..FleetShape::default() }, 200);
        assert!(rates.with_false_name <= 12, "{deviation}: {rates:?}");
    }
}

#[test]
fn heavy_tails_name_few_and_hide_nobody() {
    let shape = |sick| move |_| FleetShape { deviation: 0.008, tails: Some(5), sick, ..FleetShape::default() };
    for hosts in [16, 50, 200] {
        let none = rates(|_| hosts, shape(0.0), 60);
        // Half of them without the margin to the best host.
        assert!(none.with_false_name <= 18, "{hosts}: {none:?}");
        let some = rates(|_| hosts, shape(0.03), 60);
        assert!(some.found * 100 >= some.sick * 98, "{hosts}: {some:?}");
    }
}

/// The tables of docs/method/fleet.md: `cargo test --release -p memgauge-fleet --test fleets -- --ignored --nocapture`.
#[test]
#[ignore = "prints tables, takes minutes"]
fn tables() {
    for (what, tails) in [("normal", None), ("t5", Some(5))] {
        for deviation in [0.008, 0.015] {
            let shape = |sick| move |_| FleetShape { deviation, tails, sick, ..FleetShape::default() };
            for hosts in [8, 16, 50, 200] {
                let none = rates(|_| hosts, shape(0.0), 100);
                let some = rates(|_| hosts, shape(0.03), 100);
                println!(
                    "| {what} | {deviation} | {hosts} | {:.1} % | {:.3} % | {:.1} % of {} | {:.3} % |",
                    100.0 * f64::from(none.with_false_name) / f64::from(none.fleets),
                    100.0 * none.named as f64 / none.healthy as f64,
                    100.0 * some.found as f64 / some.sick as f64,
                    some.sick,
                    100.0 * some.named as f64 / some.healthy as f64
                );
            }
        }
    }
    let start = std::time::Instant::now();
    let fleet = fleet(&large(), 17);
    println!("made {} rows in {:?}", fleet.rows.len(), start.elapsed());
    let start = std::time::Instant::now();
    let found = outliers(&fleet.rows);
    println!("judged in {:?}: {} slow, {} unknown", start.elapsed(), found.slow.len(), found.unknown.len());
    let start = std::time::Instant::now();
    println!("{} groups in {:?}", baseline(&fleet.rows).groups.len(), start.elapsed());
}
