use memgauge_model::experiment::{Coordinates, MemoryPlace, Unit};
use memgauge_model::result::Quality;
use memgauge_model::topology::Machine;

use super::*;
use crate::conclusions::limit::tests::{bandwidth, machine, report};

/// A latency of `value` ns whose interval is 1 ns to each side.
fn latency(experiment: Experiment, at: Coordinates, value: f64) -> Measurement {
    Measurement {
        experiment,
        at,
        metric: Metric::Latency,
        unit: Unit::Nanoseconds,
        estimate: Estimate { value: Some(value), ci95_low: Some(value - 1.0), ci95_high: Some(value + 1.0), ..Estimate::default() },
        ..bandwidth("0", None, Mix::AllReads, 1.0, None)
    }
}

fn idle(cpu_node: u32, memory: u32, value: f64) -> Measurement {
    let at = Coordinates {
        cpu_node: Some(cpu_node),
        memory: Some(MemoryPlace::Node(memory)),
        order: Some(ChaseOrder::WindowLocal),
        ..Coordinates::default()
    };
    latency(Experiment::IdleLatency, at, value)
}

fn transfer(state: LineState, value: f64) -> Measurement {
    latency(Experiment::CacheToCache, Coordinates { state: Some(state), ..Coordinates::default() }, value)
}

fn reading(gbs: f64) -> Measurement {
    bandwidth("0-3", None, Mix::AllReads, gbs, None)
}

fn summary(results: Vec<Measurement>) -> Summary {
    summarise(&report(machine(), results))
}

fn one_node() -> Machine {
    let mut machine = machine();
    machine.topology.nodes.truncate(1);
    machine
}

fn unmeasured(mut m: Measurement) -> Measurement {
    m.estimate = Estimate::default();
    m.quality.level = QualityLevel::None;
    m
}

fn degraded(mut m: Measurement, reasons: &[QualityReason]) -> Measurement {
    m.quality = Quality { level: QualityLevel::Degraded, reasons: reasons.to_vec() };
    m
}

#[test]
fn local_latency_is_the_median_over_nodes_with_the_hull_of_the_intervals() {
    let local = summary(vec![idle(0, 0, 90.0), idle(1, 1, 100.0), idle(0, 1, 140.0)]).idle_latency_local_ns;
    assert_eq!((local.value, local.ci95_low, local.ci95_high), (Some(95.0), Some(89.0), Some(101.0)));
    assert_eq!((local.quality, local.absent), (Some(QualityLevel::Good), None));
}

#[test]
fn a_median_over_several_places_says_over_which() {
    let over = |count, what| Some(Over { count, what });
    let nodes = summary(vec![idle(0, 0, 90.0), idle(1, 1, 100.0), idle(0, 1, 140.0), idle(1, 0, 150.0), idle(1, 0, 150.0)]);
    assert_eq!(nodes.idle_latency_local_ns.over, over(2, OverWhat::Nodes));
    assert_eq!(nodes.idle_latency_remote_ns.over, over(2, OverWhat::Pairs));
    // An interval of one result is its own.
    assert_eq!(summary(vec![idle(0, 0, 90.0)]).idle_latency_local_ns.over, None);
    let by_cpu = |cpu| {
        let mut m = idle(0, 0, 90.0);
        (m.experiment, m.at.cpu) = (Experiment::IdleLatencyPerCpu, Some(cpu));
        m
    };
    assert_eq!(summary(vec![by_cpu(0), by_cpu(1), by_cpu(2)]).idle_latency_local_ns.over, over(3, OverWhat::Cpus));
    let pair = |cpu, ns| {
        let mut m = transfer(LineState::Hit, ns);
        (m.at.cpu, m.at.holder_cpu) = (Some(cpu), Some(0));
        m
    };
    let hit = |results| summary(results).transfer_hit_ns.over;
    assert_eq!(hit(vec![pair(1, 40.0), pair(2, 50.0), pair(2, 60.0)]), over(2, OverWhat::Pairs));
    assert_eq!(hit(vec![pair(1, 40.0), pair(1, 50.0)]), over(2, OverWhat::Results));
}

#[test]
fn only_pages_that_mark_them_show_unreliable_numbers() {
    let unreliable = |m| Measurement { quality: Quality { level: QualityLevel::Unreliable, reasons: vec![QualityReason::Steal] }, ..m };
    let of = |results| with_unreliable(&report(machine(), results));
    let doubted = of(vec![unreliable(idle(0, 0, 90.0)), unreliable(reading(9.0)), unreliable(reading(8.0))]);
    for (value, expected) in [(&doubted.idle_latency_local_ns, 90.0), (&doubted.peak_read_gbs, 9.0)] {
        assert_eq!((value.value, value.quality, value.absent), (Some(expected), Some(QualityLevel::Unreliable), None));
    }
    // If a number has a reliable result, the unreliable ones are left out.
    let reliable = of(vec![unreliable(reading(90.0)), reading(1.0)]).peak_read_gbs;
    assert_eq!((reliable.value, reliable.quality), (Some(1.0), Some(QualityLevel::Good)));
    assert_eq!(of(vec![unmeasured(unreliable(reading(0.0)))]).peak_read_gbs.absent, Some(Absent::NotMeasured));
}

#[test]
fn only_window_local_chases_without_a_file_are_idle_latency() {
    let mut random = idle(0, 0, 200.0);
    random.at.order = Some(ChaseOrder::FullRandom);
    let mut file = idle(0, 0, 300.0);
    file.at.memory_dir = Some("/mnt/pmem0".into());
    assert_eq!(summary(vec![random, file, idle(0, 0, 90.0)]).idle_latency_local_ns.value, Some(90.0));
}

#[test]
fn remote_latency_is_between_nodes_with_cpus() {
    // Node 2 has no CPUs: its latency is not that of a remote node.
    let results = vec![idle(0, 0, 90.0), idle(0, 1, 140.0), idle(1, 0, 150.0), idle(0, 2, 400.0)];
    assert_eq!(summary(results).idle_latency_remote_ns.value, Some(145.0));
}

#[test]
fn one_node_has_no_remote_latency() {
    let remote = summarise(&report(one_node(), vec![idle(0, 0, 90.0)])).idle_latency_remote_ns;
    assert_eq!((remote.value, remote.absent), (None, Some(Absent::OneNode)));
    let remote = summary(vec![idle(0, 0, 90.0)]).idle_latency_remote_ns;
    assert_eq!((remote.value, remote.absent), (None, Some(Absent::NotPlanned)));
}

#[test]
fn the_highest_mix_is_named_beside_the_highest_read_bandwidth() {
    let nt = bandwidth("0-3", None, Mix::R2W1Nt, 130.0, None);
    let summary = summary(vec![reading(110.0), reading(120.0), nt]);
    assert_eq!((summary.peak_read_gbs.value, summary.peak_any_gbs.value), (Some(120.0), Some(130.0)));
    assert_eq!(summary.peak_any_mix, Some(Mix::R2W1Nt));
    // The interval is that of the highest result.
    assert_eq!(summary.peak_any_gbs.ci95_low, Some(130.0 * 0.995));
}

#[test]
fn transfers_are_told_apart_by_the_state_of_the_line() {
    let results = vec![transfer(LineState::Hit, 40.0), transfer(LineState::Hitm, 60.0), transfer(LineState::Hitm, 80.0)];
    let summary = summary(results);
    assert_eq!((summary.transfer_hit_ns.value, summary.transfer_hitm_ns.value), (Some(40.0), Some(70.0)));
}

#[test]
fn what_is_missing_says_why() {
    let empty = summary(Vec::new());
    for value in [&empty.idle_latency_local_ns, &empty.peak_read_gbs, &empty.peak_any_gbs, &empty.transfer_hit_ns] {
        assert_eq!((value.value, value.quality, value.absent), (None, None, Some(Absent::NotPlanned)));
    }
    assert_eq!(empty.peak_any_mix, None);
    let failed = summary(vec![unmeasured(idle(0, 0, 0.0)), unmeasured(reading(0.0)), unmeasured(transfer(LineState::Hit, 0.0))]);
    for value in [&failed.idle_latency_local_ns, &failed.peak_read_gbs, &failed.transfer_hit_ns] {
        assert_eq!((value.value, value.absent), (None, Some(Absent::NotMeasured)));
    }
    assert_eq!(failed.transfer_hitm_ns.absent, Some(Absent::NotPlanned));
}

#[test]
fn a_value_has_the_worst_quality_of_its_results() {
    let results = vec![idle(0, 0, 90.0), degraded(idle(1, 1, 100.0), &[QualityReason::Steal])];
    assert_eq!(summary(results).idle_latency_local_ns.quality, Some(QualityLevel::Degraded));
    // A cell without a value does not contribute to the median, nor to its quality.
    let results = vec![idle(0, 0, 90.0), unmeasured(idle(1, 1, 0.0))];
    assert_eq!(summary(results).idle_latency_local_ns.quality, Some(QualityLevel::Good));
}

#[test]
fn trust_is_lost_when_more_than_a_quarter_is_degraded_or_missing() {
    let steal = || degraded(reading(1.0), &[QualityReason::Steal]);
    let quarter = summary(vec![reading(1.0), reading(1.0), reading(1.0), steal()]).trust;
    assert_eq!((quarter.level, quarter.good, quarter.degraded, quarter.missing), (QualityLevel::Good, 3, 1, 0));
    let half = summary(vec![reading(1.0), reading(1.0), unmeasured(reading(0.0)), steal()]).trust;
    assert_eq!((half.level, half.good, half.degraded, half.missing), (QualityLevel::Degraded, 2, 1, 1));
    let unreliable = |m| Measurement { quality: Quality { level: QualityLevel::Unreliable, reasons: vec![QualityReason::Steal] }, ..m };
    let some = summary(vec![unreliable(reading(90.0)), reading(1.0)]);
    assert_eq!((some.trust.level, some.trust.unreliable, some.peak_read_gbs.value), (QualityLevel::Unreliable, 1, Some(1.0)));
    let all = summary(vec![unreliable(idle(0, 0, 90.0)), unreliable(reading(9.0))]);
    for value in [&all.idle_latency_local_ns, &all.peak_read_gbs] {
        assert_eq!((value.value, value.absent), (None, Some(Absent::Unreliable)), "an unreliable value is no headline");
    }
    let none = summary(vec![unmeasured(reading(0.0))]).trust;
    assert_eq!((none.level, none.missing), (QualityLevel::None, 1));
    assert_eq!(summary(Vec::new()).trust.level, QualityLevel::None);
}

#[test]
fn trust_lists_the_most_frequent_reason_first() {
    use QualityReason as R;
    let results = vec![degraded(reading(1.0), &[R::Steal, R::NotConverged]), degraded(reading(1.0), &[R::NotConverged])];
    let reasons = summary(results).trust.reasons;
    let expected = [TrustReason { reason: R::NotConverged, results: 2 }, TrustReason { reason: R::Steal, results: 1 }];
    assert_eq!(reasons, expected);
}
