mod decode_rate;

use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment, MemoryPlace, Metric, PrefetchRequest, Unit};
use memgauge_model::interleave::{Goal, Reading, Search, Trial, Weights};
use memgauge_model::note::Note;
use memgauge_model::result::{CurvePoint, CurveSummary, InterleaveSummary, Measurement, PageKind, QualityLevel, QualityReason, Report};
use memgauge_model::topology::{Cpu, Machine, OperatingSystem};
use memgauge_model::traffic::Mix;
use memgauge_model::units::{Bytes, IdSet};

use super::*;
use crate::conclusions::limit::tests::{bandwidth, machine, report};

/// One node of 16 cores of one or two hardware threads, numbered as Linux does.
fn server(threads: u32) -> Machine {
    let mut machine = machine();
    let first = machine.topology.cpus[0].clone();
    let cpu = |id: u32| Cpu {
        id,
        core: id % 16,
        node: 0,
        package: 0,
        siblings: (0..threads).map(|t| id % 16 + 16 * t).collect(),
        ..first.clone()
    };
    machine.topology.cpus = (0..16 * threads).map(cpu).collect();
    machine.topology.nodes.truncate(1);
    machine.topology.nodes[0].cpus = (0..16 * threads).collect();
    machine.topology.caches.clear();
    machine.allowed.cpus = (0..16 * threads).collect();
    machine.allowed.nodes = IdSet::one(0);
    machine
}

/// A ramp that grows by 10 GB/s with each thread up to `flat_from` threads.
fn ramp(counts: &[u32], flat_from: u32) -> Vec<Measurement> {
    let point = |n: &u32| Measurement {
        experiment: Experiment::BandwidthRamp,
        ..bandwidth(&format!("0-{}", n - 1), None, Mix::AllReads, 10.0 * f64::from((*n).min(flat_from)), None)
    };
    counts.iter().map(point).collect()
}

fn unreliable(m: &mut Measurement) {
    m.quality.level = QualityLevel::Unreliable;
    m.quality.reasons = vec![QualityReason::BurstsDisturbed];
}

fn advice(machine: Machine, results: Vec<Measurement>) -> Advice {
    advise(&[("a.json", &report(machine, results))], &[], None)
}

fn about(advice: &Advice, topic: Topic) -> Vec<&Recommendation> {
    advice.recommendations.iter().filter(|r| r.topic == topic).collect()
}

fn gap(advice: &Advice, topic: Topic) -> &Gap {
    advice.gaps.iter().find(|gap| gap.topic == topic).unwrap()
}

/// A latency with an interval of half a percent to each side.
fn latency(experiment: Experiment, at: Coordinates, ns: f64) -> Measurement {
    Measurement { experiment, metric: Metric::Latency, unit: Unit::Nanoseconds, at, ..bandwidth("0", None, Mix::AllReads, ns, None) }
}

fn idle(cpu_node: u32, memory: u32, order: ChaseOrder, ns: f64) -> Measurement {
    let at = Coordinates {
        cpu_node: Some(cpu_node),
        cpu: Some(2 * cpu_node),
        memory: Some(MemoryPlace::Node(memory)),
        order: Some(order),
        ..Coordinates::default()
    };
    latency(Experiment::IdleLatency, at, ns)
}

#[test]
fn the_fewest_threads_on_the_plateau_are_advised() {
    let counts: Vec<u32> = (1..=16).collect();
    for flat_from in [1, 5, 12] {
        let advice = advice(server(1), ramp(&counts, flat_from));
        let [threads] = about(&advice, Topic::Threads)[..] else { panic!("{advice:?}") };
        let Action::UseThreads { threads: n, of, share, knee, .. } = threads.action else { panic!("{threads:?}") };
        // 95 % of 12 threads is 11.4 of them.
        assert_eq!((n, of, share.value), (flat_from, 16, 1.0), "{threads:?}");
        assert_eq!(knee, (flat_from > 1).then_some(flat_from));
        assert_eq!((threads.sureness, threads.numbers[0].at.cpus.as_ref().unwrap().len()), (Sureness::Shown, flat_from as usize));
    }
    let advice = advice(server(1), ramp(&counts, 16));
    let Action::UseThreads { threads, knee, .. } = about(&advice, Topic::Threads)[0].action else { panic!() };
    assert_eq!((threads, knee), (16, None), "a straight line has no knee");
}

#[test]
fn unreliable_points_give_no_advice_on_threads() {
    let mut results = ramp(&[1, 2, 4, 8, 16], 8);
    unreliable(&mut results[3]);
    let left_out = advice(server(1), results.clone());
    let threads = about(&left_out, Topic::Threads)[0];
    assert!(matches!(threads.action, Action::UseThreads { threads: 16, .. }), "{threads:?}");
    assert_eq!((threads.sureness, &threads.doubts[..]), (Sureness::Likely, &[Doubt::PointsLeftOut { threads: IdSet::one(8) }][..]));
    // Of all threads nothing is known without their point.
    unreliable(&mut results[4]);
    let none = advice(server(1), results.clone());
    assert!(about(&none, Topic::Threads).is_empty());
    let gap_of_threads = gap(&none, Topic::Threads);
    assert_eq!((&gap_of_threads.why, gap_of_threads.numbers.len()), (&Why::Unreliable, 2));
    // A number without an interval carries nothing either, and neither does a cache's.
    results = ramp(&[1, 2, 4], 2);
    results.iter_mut().for_each(|m| m.estimate.ci95_low = None);
    assert_eq!(gap(&advice(server(1), results), Topic::Threads).why, Why::Unreliable);
    results = ramp(&[1, 2, 4], 2);
    results.iter_mut().for_each(|m| m.evidence.buffer = Bytes::mib(1));
    assert_eq!(gap(&advice(server(1), results), Topic::Threads).why, Why::NotMemory);
}

#[test]
fn degraded_and_wide_numbers_make_advice_likely_only() {
    let mut results = ramp(&[1, 2, 4, 8, 16], 8);
    results[3].quality.level = QualityLevel::Degraded;
    results[3].quality.reasons = vec![QualityReason::Steal];
    results[4].estimate.value = Some(82.0);
    results[4].estimate.ci95_high = Some(95.0);
    let advice = advice(server(1), results);
    let threads = about(&advice, Topic::Threads)[0];
    assert_eq!(threads.doubts, [Doubt::IntervalTooWide, Doubt::Degraded { reasons: vec![QualityReason::Steal] }]);
}

#[test]
fn without_numbers_there_are_commands_and_no_advice() {
    let nothing = advice(server(2), Vec::new());
    assert!(nothing.recommendations.is_empty());
    assert_eq!(gap(&nothing, Topic::Threads).command.as_deref(), Some("memgauge bandwidth --ramp -o ramp.json"));
    assert_eq!(gap(&nothing, Topic::Smt).command.as_deref(), Some("memgauge bandwidth --ramp 16,32 -o smt.json"));
    let topics: Vec<Topic> = nothing.gaps.iter().map(|gap| gap.topic).collect();
    assert!(!topics.contains(&Topic::Placement) && !topics.contains(&Topic::Interleave), "it has one node: {topics:?}");
    let two_nodes = advice(machine(), Vec::new());
    assert_eq!(gap(&two_nodes, Topic::Placement).why, Why::NotMeasured);
}

#[test]
fn second_threads_are_judged_by_the_same_cores() {
    let results = |all: f64| {
        let ramp = |cpus, gbs| Measurement { experiment: Experiment::BandwidthRamp, ..bandwidth(cpus, None, Mix::AllReads, gbs, None) };
        vec![ramp("0-15", 100.0), ramp("0-31", all)]
    };
    let effect = |all| match about(&advice(server(2), results(all)), Topic::Smt)[..] {
        [Recommendation { action: Action::UseSecondThreads { cores: 16, threads: 32, effect, .. }, .. }] => Some(*effect),
        _ => None,
    };
    assert_eq!([120.0, 100.5, 80.0].map(effect), [Some(Effect::More), Some(Effect::Same), Some(Effect::Less)]);
    assert_eq!(gap(&advice(server(2), results(103.0)), Topic::Smt).why, Why::Open);
    // The cores of one file and all threads of another: what else differed is not known.
    let [cores, all] = [0, 1].map(|i| report(server(2), vec![results(120.0).remove(i)]));
    let apart = advise(&[("cores.json", &cores), ("all.json", &all)], &[], None);
    assert!(about(&apart, Topic::Smt).is_empty() && gap(&apart, Topic::Smt).why == Why::NotMeasured, "{apart:?}");
    // A file that has both counts, whatever another one says of the cores.
    let slow = report(server(2), vec![Measurement { estimate: results(50.0).remove(1).estimate, ..results(50.0).remove(0) }]);
    let both = report(server(2), results(120.0));
    let advice = advise(&[("slow.json", &slow), ("both.json", &both)], &[], None);
    let [Recommendation { action: Action::UseSecondThreads { bandwidth, .. }, .. }] = about(&advice, Topic::Smt)[..] else {
        panic!("{advice:?}")
    };
    assert_eq!(bandwidth.value, 1.2);
}

#[test]
fn tokens_are_bandwidth_over_bytes_for_each_place() {
    let one = Measurement { experiment: Experiment::BandwidthMatrix, ..bandwidth("0-1", Some(0), Mix::AllReads, 60.0, None) };
    let several = Measurement {
        experiment: Experiment::Interleave,
        at: Coordinates { memory: None, weights: Weights::equal([0, 1]), ..bandwidth("0-1", None, Mix::AllReads, 80.0, None).at },
        ..bandwidth("0-1", None, Mix::AllReads, 80.0, None)
    };
    let mut not_trusted = bandwidth("0-3", None, Mix::AllReads, 900.0, None);
    unreliable(&mut not_trusted);
    let results =
        vec![one, several, bandwidth("0-3", None, Mix::AllReads, 120.0, None), bandwidth("0-3", None, Mix::R2W1, 500.0, None), not_trusted];
    let models = [Model { name: Some("m".into()), bytes: Bytes(40_000_000_000) }, Model { name: None, bytes: Bytes::gib(100) }];
    let advice = advise(&[("a.json", &report(machine(), results))], &models, None);
    let [Recommendation { action: Action::ExpectTokens { ceilings, .. }, numbers, .. }] = about(&advice, Topic::TokensPerSecond)[..] else {
        panic!("{advice:?}")
    };
    let rates: Vec<f64> = ceilings.iter().take(3).map(|c| c.tokens_per_s).collect();
    assert_eq!((rates, numbers.len(), ceilings.len()), (vec![3.0, 2.0, 1.5], 3, 6));
    assert_eq!(ceilings[0].place, WeightsPlace::OwnNodes { nodes: "0-1".parse().unwrap() });
    assert!((ceilings[0].low, ceilings[0].high) == (120.0 * 0.995 / 40.0, 120.0 * 1.005 / 40.0) && ceilings[0].fits);
    // 100 GiB fit into both nodes, and not into one of 64 GiB.
    assert_eq!([ceilings[3].fits, ceilings[5].fits], [true, false]);
}

/// A search on two nodes that measured these bandwidths with the nearest alone, with as many pages on each, and with two on the nearest for
/// each on the other.
fn searched(nearest: f64, equal: f64, two_to_one: f64) -> Report {
    let weights = [Weights::only(0), Weights::equal([0, 1]).unwrap(), Weights::new([(0, 2), (1, 1)]).unwrap()];
    let at = Coordinates { memory: None, ..bandwidth("0-1", None, Mix::AllReads, 1.0, None).at };
    let (mut results, mut search) = (Vec::new(), Search::new(vec![0, 1], Goal::Bandwidth));
    for (weights, gbs) in weights.into_iter().zip([nearest, equal, two_to_one]) {
        search.trials.push(Trial {
            weights: weights.clone(),
            bandwidth_gbs: Reading { value: gbs, half: gbs * 0.005 },
            latency_ns: None,
            measured: 1,
        });
        let measured = bandwidth("0-1", None, Mix::AllReads, gbs, None);
        let at = Coordinates { weights: Some(weights), ..at.clone() };
        results.push(Measurement { experiment: Experiment::Interleave, at, ..measured });
    }
    let mut report = report(machine(), results);
    report.interleaves.extend(InterleaveSummary::from_search(at, &[0, 1], Goal::Bandwidth, None, &search));
    report
}

#[test]
fn several_nodes_in_turn_are_advised_only_where_they_gain() {
    let advised = |report: &Report| {
        let advice = advise(&[("a.json", report)], &[], None);
        let [Recommendation { action: Action::InterleaveNodes { weights, bandwidth, effect, .. }, .. }] =
            about(&advice, Topic::Interleave)[..]
        else {
            panic!("{advice:?}")
        };
        (weights.to_string(), bandwidth.value, *effect)
    };
    assert_eq!(advised(&searched(60.0, 60.0, 90.0)), ("0=2,1=1".into(), 1.5, Effect::More));
    // The nearest node alone is best: as many pages on each lose.
    assert_eq!(advised(&searched(60.0, 45.0, 50.0)), ("0=1,1=1".into(), 0.75, Effect::Less));
    let mut disturbed = searched(60.0, 60.0, 90.0);
    unreliable(&mut disturbed.results[2]);
    let disturbed = advise(&[("a.json", &disturbed)], &[], None);
    assert!(about(&disturbed, Topic::Interleave).is_empty() && gap(&disturbed, Topic::Interleave).why == Why::Unreliable);
}

/// A search on two nodes for the least latency at 20 GB/s: at that load the nearest alone has 90 ns, as many pages on each have this. At
/// full load they have 100 and 140 GB/s, or with `weak` the nearest alone has 15.
fn searched_for_latency(equal_ns: f64, weak: bool) -> Report {
    let goal = Goal::LatencyAt(20.0);
    let at = Coordinates { memory: None, ..bandwidth("0-1", None, Mix::AllReads, 1.0, None).at };
    let (mut results, mut search) = (Vec::new(), Search::new(vec![0, 1], goal));
    let all = [(Weights::only(0), if weak { 15.0 } else { 100.0 }, 90.0), (Weights::equal([0, 1]).unwrap(), 140.0, equal_ns)];
    for (weights, most, ns) in all {
        let serves = most > 20.0;
        for (delay, gbs, ns) in [(0, most, 4.0 * ns), (900, 12.0, 0.8 * ns), (500, 20.1, ns)].into_iter().take(if serves { 3 } else { 1 }) {
            let at = Coordinates { weights: Some(weights.clone()), delay_cycles: Some(delay), ..at.clone() };
            results.push(latency(Experiment::Interleave, at.clone(), ns));
            results.push(Measurement { experiment: Experiment::Interleave, at, ..bandwidth("0-1", None, Mix::AllReads, gbs, None) });
        }
        let reading = |value: f64| Reading { value, half: value * 0.005 };
        search.trials.push(Trial { weights, bandwidth_gbs: reading(most), latency_ns: serves.then(|| reading(ns)), measured: 1 });
    }
    let mut report = report(machine(), results);
    report.interleaves.extend(InterleaveSummary::from_search(at, &[0, 1], goal, None, &search));
    report
}

#[test]
fn a_search_for_latency_is_judged_by_latency() {
    let advised = |report: &Report| {
        let recommended = report.interleaves[0].recommended.to_string();
        let advice = advise(&[("a.json", report)], &[], None);
        let [Recommendation { action: Action::InterleaveForLatency { weights, demand_gbs: 20.0, latency, effect, .. }, .. }] =
            about(&advice, Topic::Interleave)[..]
        else {
            panic!("{advice:?}")
        };
        (recommended, weights.to_string(), latency.value, *effect)
    };
    // Both nodes have more bandwidth than the nearest one, which is of no use at 20 GB/s.
    assert_eq!(advised(&searched_for_latency(180.0, false)), ("0=1".into(), "0=1,1=1".into(), 2.0, Effect::More));
    assert_eq!(advised(&searched_for_latency(72.0, false)), ("0=1,1=1".into(), "0=1,1=1".into(), 0.8, Effect::Less));
    // The nearest node alone cannot serve the demand, and bandwidth says why.
    let weak = advise(&[("a.json", &searched_for_latency(180.0, true))], &[], None);
    let [Recommendation { action: Action::InterleaveNodes { effect: Effect::More, .. }, .. }] = about(&weak, Topic::Interleave)[..] else {
        panic!("{weak:?}")
    };
    let mut disturbed = searched_for_latency(180.0, false);
    disturbed.results.iter_mut().filter(|m| m.at.delay_cycles == Some(500)).for_each(unreliable);
    let disturbed = advise(&[("a.json", &disturbed)], &[], None);
    assert!(about(&disturbed, Topic::Interleave).is_empty() && gap(&disturbed, Topic::Interleave).why == Why::Unreliable);
}

#[test]
fn remote_memory_is_judged_by_its_numbers() {
    let results = |remote: f64| vec![idle(0, 0, ChaseOrder::WindowLocal, 100.0), idle(0, 1, ChaseOrder::WindowLocal, remote)];
    let far = advice(machine(), results(160.0));
    let [placement] = about(&far, Topic::Placement)[..] else { panic!("{far:?}") };
    let Action::KeepLocal { latency: Some(latency), latency_effect, bandwidth: None, .. } = &placement.action else {
        panic!("{placement:?}")
    };
    assert_eq!((latency.value, *latency_effect), (1.6, Some(Effect::More)));
    assert_eq!(placement.numbers.iter().map(|n| n.role).collect::<Vec<_>>(), [Role::Own, Role::Other]);
    assert_eq!(gap(&advice(machine(), results(103.0)), Topic::Placement).why, Why::Open);
    let mut disturbed = results(160.0);
    unreliable(&mut disturbed[1]);
    let disturbed = advice(machine(), disturbed);
    assert!(about(&disturbed, Topic::Placement).is_empty() && gap(&disturbed, Topic::Placement).why == Why::Unreliable);
}

#[test]
fn the_knee_of_a_curve_limits_the_load() {
    let at = Coordinates { cpu: Some(0), cpus: Some("1-3".parse().unwrap()), mix: Some(Mix::AllReads), ..Coordinates::default() };
    let point = |delay, gbs, ns| {
        let at = Coordinates { delay_cycles: Some(delay), ..at.clone() };
        let both = latency(Experiment::LoadedLatency, at.clone(), ns);
        [both, Measurement { experiment: Experiment::LoadedLatency, at, ..bandwidth("1-3", None, Mix::AllReads, gbs, None) }]
    };
    let points = [point(20_000, 5.0, 90.0), point(300, 80.0, 110.0), point(0, 100.0, 300.0)].concat();
    let knee = CurvePoint { delay_cycles: 300, bandwidth_gbs: 80.0, latency_ns: 110.0 };
    let of = |points: Vec<Measurement>, knee| {
        let mut report = report(machine(), points);
        let ends = (Some(90.0), Some(300.0));
        report.curves = vec![CurveSummary {
            at: at.clone(),
            unloaded_ns: ends.0,
            knee,
            saturated_ns: ends.1,
            peak_gbs: Some(100.0),
            over_saturated: false,
            full_load_by_node: Default::default(),
            shares: Vec::new(),
        }];
        advise(&[("a.json", &report)], &[], None)
    };
    let stay = of(points.clone(), Some(knee));
    let Action::StayBelow { gbs, share, growth, .. } = &about(&stay, Topic::Load)[0].action else { panic!("{stay:?}") };
    assert_eq!((*gbs, share.value, growth.value), (80.0, 0.8, 300.0 / 110.0));
    assert_eq!(gap(&of(points.clone(), None), Topic::Load).why, Why::NoKnee);
    let mut disturbed = points;
    unreliable(&mut disturbed[2]);
    let disturbed = of(disturbed, Some(knee));
    assert!(about(&disturbed, Topic::Load).is_empty() && gap(&disturbed, Topic::Load).why == Why::Unreliable);
}

#[test]
fn pages_are_compared_where_both_kinds_were_measured() {
    let with = |pages, order, ns| {
        let mut m = idle(0, 0, order, ns);
        m.evidence.pages.obtained = Some(pages);
        m
    };
    let base =
        report(server(1), vec![with(PageKind::Base, ChaseOrder::FullRandom, 150.0), with(PageKind::Base, ChaseOrder::WindowLocal, 100.0)]);
    let huge = report(server(1), vec![with(PageKind::Thp, ChaseOrder::FullRandom, 110.0)]);
    let both = advise(&[("base.json", &base), ("huge.json", &huge)], &[], None);
    let [pages] = about(&both, Topic::HugePages)[..] else { panic!("{both:?}") };
    assert!(matches!(pages.action, Action::UseHugePages { effect: Effect::Less, order: ChaseOrder::FullRandom, .. }), "{pages:?}");
    assert_eq!([&pages.numbers[0].result, &pages.numbers[1].result], ["base.json", "huge.json"]);
    // With one kind, what translation costs is known, and not what the other kind would save.
    let one = advise(&[("base.json", &base)], &[], None);
    let Action::ExpectFromLargerPages { latency, effect, .. } = &about(&one, Topic::HugePages)[0].action else { panic!("{one:?}") };
    assert_eq!((latency.value, *effect), (1.5, Effect::More));
    let gap_of_pages = gap(&one, Topic::HugePages);
    assert_eq!(gap_of_pages.why, Why::OneKindOfPages { pages: PageKind::Base });
    assert_eq!(gap_of_pages.command.as_deref(), Some("memgauge latency --pages thp -o huge.json"));
    assert!(gap(&one, Topic::Prefetchers).command.is_some());
}

#[test]
fn no_command_is_advised_that_windows_does_not_have() {
    let mut base = idle(0, 0, ChaseOrder::FullRandom, 150.0);
    base.evidence.pages.obtained = Some(PageKind::Base);
    let mut windows = report(server(1), vec![base]);
    windows.machine.identity.system = OperatingSystem::Windows;
    let advice = advise(&[("windows.json", &windows)], &[], None);
    assert_eq!(gap(&advice, Topic::HugePages).command.as_deref(), Some("memgauge latency --pages 2m -o huge.json"));
    assert_eq!(gap(&advice, Topic::Prefetchers).command, None);
}

#[test]
fn prefetchers_are_switched_off_only_where_nothing_is_lost() {
    let results = |off_gbs: f64, off_ns: f64| {
        let at = |state| Coordinates {
            cpu_node: Some(0),
            memory: Some(MemoryPlace::Node(0)),
            cpus: Some(IdSet::one(0)),
            prefetch: Some(state),
            ..Coordinates::default()
        };
        let read = |state, gbs| Measurement {
            experiment: Experiment::PrefetchComparison,
            at: at(state),
            ..bandwidth("0", Some(0), Mix::AllReads, gbs, None)
        };
        let chase = |state, ns| {
            let at = Coordinates { order: Some(ChaseOrder::WindowLocal), ..at(state) };
            latency(Experiment::PrefetchComparison, at, ns)
        };
        use PrefetchRequest::{Off, On};
        vec![read(On, 12.0), chase(On, 100.0), read(Off, off_gbs), chase(Off, off_ns)]
    };
    let to = |off_gbs, off_ns| match about(&advice(server(1), results(off_gbs, off_ns)), Topic::Prefetchers)[..] {
        [Recommendation { action: Action::SetPrefetchers { to, .. }, .. }] => Some(*to),
        _ => None,
    };
    assert_eq!(to(6.0, 100.0), Some(PrefetchRequest::On));
    assert_eq!(to(6.0, 80.0), Some(PrefetchRequest::On), "half the bandwidth is lost");
    assert_eq!(to(12.0, 80.0), Some(PrefetchRequest::Off));
    // While it is not known whether bandwidth is lost, the latency that is gained decides nothing.
    let open = |change: &dyn Fn(&mut Vec<Measurement>), off_ns| {
        let mut results = results(9.6, off_ns);
        change(&mut results);
        let advice = advice(server(1), results);
        assert!(about(&advice, Topic::Prefetchers).is_empty(), "{advice:?}");
        let gap = gap(&advice, Topic::Prefetchers);
        (gap.why.clone(), gap.numbers.len())
    };
    let wide = |results: &mut Vec<Measurement>| results[2].estimate.ci95_high = Some(12.3);
    assert_eq!([95.0, 100.0].map(|ns| open(&wide, ns)), [(Why::Open, 4), (Why::Open, 4)]);
    assert_eq!(open(&|results| unreliable(&mut results[2]), 95.0), (Why::Unreliable, 4));
    assert_eq!(open(&|results| results.retain(|m| m.metric == Metric::Latency), 95.0), (Why::NotMeasured, 2));
    // A loss that is known is enough.
    let mut lost = results(9.6, 120.0);
    wide(&mut lost);
    let advice_of_lost = advice(server(1), lost);
    let [Recommendation { action: Action::SetPrefetchers { to: kept, .. }, .. }] = about(&advice_of_lost, Topic::Prefetchers)[..] else {
        panic!("{advice_of_lost:?}")
    };
    assert_eq!(*kept, PrefetchRequest::On);
    let mut contradicted = report(server(1), results(12.0, 80.0));
    contradicted.notes.push(Note::warning(memgauge_model::note::NoteCode::PrefetchOffNotEffective, "still on"));
    let advice = advise(&[("a.json", &contradicted)], &[], None);
    assert!(about(&advice, Topic::Prefetchers).is_empty() && gap(&advice, Topic::Prefetchers).why == Why::PrefetchersStillOn);
}

/// The machine of two packages with two nodes of one CPU each.
fn split() -> Machine {
    let mut machine = machine();
    machine.topology.nodes.truncate(2);
    let node = machine.topology.nodes[0].clone();
    let of = |id: u32| memgauge_model::topology::Node { id, cpus: IdSet::one(id), ..node.clone() };
    machine.topology.nodes = (0..4).map(of).collect();
    machine.topology.cpus.iter_mut().for_each(|cpu| cpu.node = cpu.id);
    machine
}

#[test]
fn modes_are_compared_only_where_both_were_measured() {
    let local = ChaseOrder::WindowLocal;
    let few = report(machine(), vec![idle(0, 0, local, 100.0), idle(1, 1, local, 102.0)]);
    let four = |n: u32, memory, ns| {
        let mut m = idle(n, memory, local, ns);
        m.at.cpu = Some(n);
        m
    };
    let many = report(split(), vec![four(0, 0, 90.0), four(0, 1, 104.0), four(0, 2, 180.0)]);
    let both = advise(&[("nps1.json", &few), ("nps2.json", &many)], &[], None);
    let actions: Vec<&Action> = about(&both, Topic::NodesPerPackage).iter().map(|r| &r.action).collect();
    let [
        Action::SeparateNodesOfPackage { nodes_per_package: 2, latency: within, .. },
        Action::ChooseNodesPerPackage { fewer: 1, more: 2, latency: Some(between), latency_effect: Some(Effect::Less), .. },
    ] = actions[..]
    else {
        panic!("{actions:?}")
    };
    assert_eq!((within.value, between.value), (104.0 / 90.0, 0.9));
    let mut bare = many;
    bare.machine.identity.arch = "x86_64".into();
    let one = advise(&[("nps2.json", &bare)], &[], None);
    assert_eq!(gap(&one, Topic::NodesPerPackage).why, Why::OneNumberOfNodes { nodes_per_package: 2 });
}
