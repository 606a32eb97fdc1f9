use memgauge_model::experiment::{Coordinates, MemoryPlace, Unit};
use memgauge_model::note::Severity;
use memgauge_model::topology::HmatAccess;

use super::*;
use crate::conclusions::limit::tests::{bandwidth, machine, report};

fn latency(row: u32, node: u32, ns: f64) -> Measurement {
    let at = Coordinates {
        cpu_node: Some(row),
        memory: Some(MemoryPlace::Node(node)),
        order: Some(ChaseOrder::WindowLocal),
        ..Coordinates::default()
    };
    let of = bandwidth("0", None, Mix::AllReads, ns, None);
    Measurement { experiment: Experiment::IdleLatency, metric: Metric::Latency, unit: Unit::Nanoseconds, at, ..of }
}

fn reads(row: u32, node: u32, gbs: f64) -> Measurement {
    let mut m = bandwidth(if row == 0 { "0-1" } else { "2-3" }, Some(node), Mix::AllReads, gbs, None);
    (m.experiment, m.at.cpu_node) = (Experiment::BandwidthMatrix, Some(row));
    m
}

/// Nodes 0 and 1 have CPUs. Node 2 has none and this latency and bandwidth; its nearest CPUs are those of node 0.
fn compared(far_ns: f64, far_gbs: f64) -> Report {
    let near = |row| [latency(row, row, 100.0), reads(row, row, 200.0)];
    let far = [latency(0, 2, far_ns), reads(0, 2, far_gbs), latency(1, 2, 2.0 * far_ns), reads(1, 2, 0.5 * far_gbs)];
    let mut report = report(machine(), [near(0), near(1)].concat().into_iter().chain(far).collect());
    report.machine.topology.nodes[2].hmat.clear();
    report
}

fn with_tiers(mut report: Report, tiers: [u32; 3]) -> Report {
    report.machine.topology.nodes.iter_mut().zip(tiers).for_each(|(node, tier)| node.memory_tier = Some(tier));
    report
}

fn said(report: &Report) -> Vec<(String, String)> {
    contradictions(report).iter().map(|note| (note.code.word().to_owned(), note.message.to_string())).collect()
}

fn codes(report: &Report) -> Vec<String> {
    said(report).into_iter().map(|(code, _)| code).collect()
}

#[test]
fn a_slow_node_in_the_tier_of_dram_is_never_demoted_to() {
    let shared = with_tiers(compared(240.0, 40.0), [4, 4, 4]);
    let all = contradictions(&shared);
    let [note] = &all[..] else { panic!("{all:?}") };
    assert_eq!(
        note.message.to_string(),
        "node 2 has 2.4 times the latency and 0.20 times the bandwidth of node 0, and the kernel has both in memory tier 4: cold pages are \
         never demoted to node 2"
    );
    assert!(note.code == NoteCode::TierShared && note.severity == Severity::Warning && note.advice.is_some());
    assert!(codes(&with_tiers(compared(240.0, 40.0), [4, 4, 22])).is_empty(), "the kernel is right");
    assert!(codes(&with_tiers(compared(110.0, 190.0), [4, 4, 4])).is_empty(), "not another tier");
    // HBM: more latency and more bandwidth.
    assert!(codes(&with_tiers(compared(130.0, 900.0), [4, 4, 4])).is_empty());
    assert!(codes(&compared(240.0, 40.0)).is_empty(), "a kernel without tiers");
    // Sockets are measured by their own CPUs, or not compared.
    let mut one_socket = with_tiers(compared(110.0, 190.0), [4, 4, 4]);
    one_socket.results.retain(|m| m.at.cpu_node == Some(0));
    one_socket.results.push(latency(0, 1, 300.0));
    assert!(codes(&one_socket).is_empty());
    let mut unreliable = shared.clone();
    unreliable.results.iter_mut().for_each(|m| m.quality.level = memgauge_model::result::QualityLevel::Unreliable);
    assert!(codes(&unreliable).is_empty());
    assert!(notes(&shared).is_empty(), "its plan does not compare tiers");
}

#[test]
fn tiers_in_the_wrong_order_are_named() {
    let wrong = with_tiers(compared(240.0, 40.0), [4, 22, 3]);
    let all = said(&wrong);
    let before = |upper, lower, first, second| {
        let how = "2.4 times the latency and 0.20 times the bandwidth";
        format!(
            "node {upper} has {how} of node {lower}, and the kernel has it in a faster memory tier ({first} before {second}): pages in use are \
             promoted to the slower node {upper}"
        )
    };
    assert_eq!(all, [("tier-order".to_owned(), before(2, 0, 3, 4)), ("tier-order".to_owned(), before(2, 1, 3, 22))]);
}

#[test]
fn demotion_matters_where_the_kernel_has_tiers() {
    let state = |demotion, tiers| {
        let mut report = with_tiers(compared(240.0, 40.0), tiers);
        report.environment.demotion = demotion;
        contradictions(&report)
    };
    let off = state(Some(false), [4, 4, 22]);
    let [note] = &off[..] else { panic!("{off:?}") };
    assert!(note.code == NoteCode::DemotionOff && note.severity == Severity::Info, "{note:?}");
    assert!(note.advice.as_ref().unwrap().to_string().ends_with("as root: echo 1 > /sys/kernel/mm/numa/demotion_enabled"), "{note:?}");
    assert!(state(Some(true), [4, 4, 22]).is_empty() && state(None, [4, 4, 22]).is_empty());
    assert!(state(Some(false), [4, 4, 4]).iter().all(|note| note.code == NoteCode::TierShared));
}

#[test]
fn weights_that_cost_bandwidth_are_named_with_better_ones() {
    let of = |weights: [u32; 3], gbs| {
        let mut report = compared(240.0, gbs);
        report.machine.topology.nodes.iter_mut().zip(weights).for_each(|(node, weight)| node.interleave_weight = Some(weight));
        contradictions(&report)
    };
    // As many pages on each: both give 40 GB/s. Node 1 has nothing to take turns with.
    let equal = of([1, 1, 1], 40.0);
    let [note] = &equal[..] else { panic!("{equal:?}") };
    assert_eq!(
        note.message.to_string(),
        "the kernel's interleave weights of nodes 0, 2 are 1:1, and their measured read bandwidths 200:40 GB/s: pages in turn give at most 80 \
         of 240 GB/s"
    );
    let advice = note.advice.as_ref().unwrap().to_string();
    assert_eq!(
        advice,
        format!(
            "as root: echo 5 > {WEIGHTS}/node0, as root: echo 1 > {WEIGHTS}/node2; 'memgauge interleave' searches for the best weights"
        )
    );
    assert!(of([5, 1, 1], 40.0).is_empty() && of([4, 1, 1], 45.0).is_empty(), "good enough");
    assert_eq!(proportional(&[(0, 100.0), (2, 100.0)]).unwrap().to_string(), "0=1,2=1");
    assert_eq!(proportional(&[(0, 1000.0), (2, 1.0)]).unwrap().to_string(), "0=32,2=1", "one page at least");
    // Fewer cores than the node has may not fill it.
    let mut part = compared(240.0, 40.0);
    part.machine.topology.nodes.iter_mut().for_each(|node| node.interleave_weight = Some(1));
    part.results.iter_mut().filter(|m| m.at.cpus.is_some()).for_each(|m| m.at.cpus = Some(IdSet::one(0)));
    assert!(contradictions(&part).is_empty());
}

#[test]
fn claims_far_from_what_is_measured_are_named() {
    let claimed = |latency_ns, mbs, region: Option<&str>| {
        let mut report = compared(243.0, 40.0);
        let claim = HmatAccess {
            initiators: IdSet::one(0),
            read_latency_ns: Some(latency_ns),
            read_bandwidth_mbs: Some(mbs),
            cxl_region: region.map(str::to_owned),
            ..HmatAccess::default()
        };
        report.machine.topology.nodes[2].hmat = vec![claim];
        said(&report)
    };
    let of = |text: &str| vec![("firmware-differs".to_owned(), text.to_owned())];
    assert_eq!(claimed(95, 45_000, None), of("firmware claims (HMAT), for node 2 from node 0: 95 ns for reads, and 243 ns are measured"));
    assert_eq!(
        claimed(200, 64_000, Some("region3")),
        of("the kernel computes for region3 (CDAT), for node 2 from node 0: 64.0 GB/s for reads, and 40.0 GB/s are measured")
    );
    assert!(claimed(200, 45_000, None).is_empty());
}
