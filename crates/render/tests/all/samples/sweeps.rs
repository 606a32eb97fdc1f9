//! Results that are drawn over the working set, by state of the prefetchers, by region and by node, with counters made by hand.

use memgauge_model::counters::{CountedWork, Counters, CountingContext, Event, EventOutcome, EventTotals, ExpectedEvents, Scope, WorkUnit};
use memgauge_model::distribution::Recorder;
use memgauge_model::experiment::*;
use memgauge_model::experiment::{LineState, PrefetchRequest};
use memgauge_model::metrics::Role;
use memgauge_model::microbench::LoopProof;
use memgauge_model::result::*;
use memgauge_model::topology::Cache;
use memgauge_model::traffic::{Mix, Rfo};
use memgauge_model::units::{Bytes, IdSet};

use super::build::Lab;

/// Hops or lines that every point counted.
const WORK: u64 = 10_000_000;

/// A sweep over three caches, of one CPU, counted except for what `lacks` names.
pub fn counted(lacks: &[Role], running: u64) -> Report {
    let mut lab = Lab::new("Example", "GenuineIntel", None);
    lab.packages(1, 4, 1);
    let cache = |level, size, cpus: std::ops::Range<u32>| Cache { level, size, line: Some(64), ways: Some(16), cpus: cpus.collect() };
    lab.caches = vec![cache(1, Bytes::kib(48), 0..1), cache(2, Bytes::mib(2), 0..1), cache(3, Bytes::mib(32), 0..4)];
    lab.latency(0, 0, 0, 90.0, 95.0);
    lab.bandwidth(Experiment::BandwidthMatrix, Some(0), Some(0), "0", Mix::AllReads, 20.0, "load", Rfo::No);
    let mut report = lab.report();
    let (chase, load) = (report.results[0].clone(), report.results[2].clone());
    let sizes = (0..=72).map(|i: u32| Bytes((4 + u64::from(i % 4)) << (10 + i / 4)));
    let mut results = Vec::new();
    for size in sizes.filter(|s| *s <= Bytes::gib(1)) {
        // How much of each level's accesses miss it: none below its size, all from twice its size on.
        let beyond = |level: Bytes| (size.0 as f64 / level.0 as f64 - 1.0).clamp(0.0, 1.0);
        let missed = [Bytes::kib(48), Bytes::mib(2), Bytes::mib(32)].map(beyond);
        let ns = 1.2 + missed[0] * 3.0 + missed[0] * missed[1] * 18.0 + missed.iter().product::<f64>() * 70.0;
        let at = |of: &Measurement| Coordinates { working_set: Some(size), ..of.at.clone() };
        for (of, value, unit) in [(&chase, ns, WorkUnit::Hop), (&load, 240.0 / (1.0 + ns / 8.0), WorkUnit::Line)] {
            let mut m = Measurement { experiment: Experiment::Sweep, at: at(of), ..of.clone() };
            m.estimate.value = Some(value);
            m.estimate.ci95_low = Some(value * 0.98);
            m.estimate.ci95_high = Some(value * 1.03);
            m.evidence.buffer = size;
            // Prefetchers hide most of a load's misses.
            let seen = if unit == WorkUnit::Hop { 1.0 } else { 0.2 };
            m.counters = Some(Box::new(counters(missed.map(|p| p * seen), unit, lacks, running)));
            results.push(m);
        }
    }
    (report.plan, report.curves, report.results) = (None, Vec::new(), results);
    report.levels = memgauge_analysis::conclusions::levels::summarise(&report.results, &report.machine);
    report
}

/// Latency and bandwidth over the working set of the CPUs behind each of so many last-level caches; each a little slower than the one
/// before.
pub fn domains(n: u32) -> Report {
    let one = counted(&[], 1000);
    let mut lab = Lab::new("Example", "AuthenticAMD", None);
    lab.packages(1, n * 4, 1);
    let cache = |level, size, cpus: std::ops::Range<u32>| Cache { level, size, line: Some(64), ways: Some(16), cpus: cpus.collect() };
    let private = |cpu: u32| [cache(1, Bytes::kib(48), cpu..cpu + 1), cache(2, Bytes::mib(2), cpu..cpu + 1)];
    lab.caches = (0..n * 4).flat_map(private).chain((0..n).map(|d| cache(3, Bytes::mib(32), d * 4..d * 4 + 4))).collect();
    let mut report = lab.report();
    for domain in 0..n {
        for m in one.results.iter().filter(|m| m.at.working_set.is_some_and(|s| s.0.is_power_of_two())) {
            let mut m = m.clone();
            let slower = 1.0 + 0.01 * f64::from(domain);
            let factor = if m.metric == Metric::Latency { slower } else { 4.0 / slower };
            m.counters = None;
            m.at.cpu = m.at.cpu.map(|_| domain * 4);
            m.at.cpus = m.at.cpus.map(|_| (domain * 4..domain * 4 + 4).collect());
            let e = &mut m.estimate;
            for v in [&mut e.value, &mut e.ci95_low, &mut e.ci95_high] {
                *v = v.map(|v| v * factor);
            }
            report.results.push(m);
        }
    }
    (report.plan, report.curves) = (None, Vec::new());
    report.levels = memgauge_analysis::conclusions::levels::summarise(&report.results, &report.machine);
    report
}

/// Counts of loads that miss the three levels with these probabilities.
fn counters(missed: [f64; 3], unit: WorkUnit, lacks: &[Role], running: u64) -> Counters {
    let loads = WORK as f64;
    let l1 = loads * missed[0];
    let l2 = l1 * missed[1];
    let llc = l2 * missed[2];
    let counts = [
        ("cycles", vec![Role::Cycles], loads * 40.0),
        ("instructions", vec![Role::Instructions], loads * 1.1),
        ("loads", vec![Role::Loads, Role::L1Accesses], loads),
        ("l1-miss", vec![Role::L1Misses], l1),
        ("l2-reference", vec![Role::L2Accesses], l1 + 1.0),
        ("l2-miss", vec![Role::L2Misses, Role::LoadL2Misses], l2),
        ("llc-reference", vec![Role::LlcAccesses], l2 + 1.0),
        ("llc-miss", vec![Role::LlcMisses, Role::LoadLlcMisses], llc),
    ];
    let list: Vec<EventOutcome> = counts
        .into_iter()
        .map(|(name, roles, value)| {
            let mut tally = EventTotals::default();
            // Counted for `running` of 1000 nanoseconds only, and scaled by the tally.
            tally.add((value * running as f64 / 1e3) as u64, 1000, running);
            let lacking = roles.iter().any(|r| lacks.contains(r));
            let event = Event { name: name.into(), roles, code: format!("cpu/{name}/"), source: "made by hand".into() };
            EventOutcome { event, outcome: if lacking { Err("is not known to this kernel".into()) } else { Ok(tally) } }
        })
        .collect();
    let account = CountingContext {
        scope: Scope::User,
        threads: 1,
        thread_s: 0.2,
        wall_s: 0.2,
        work: Some(CountedWork { unit, count: WORK }),
        expected: ExpectedEvents::default(),
    };
    Counters::new(&account, &list)
}

/// Both states of the prefetchers on so many nodes.
pub fn prefetch(nodes: u32) -> Report {
    let mut lab = Lab::new("Example", "GenuineIntel", None);
    lab.packages(nodes, 4, 1);
    lab.latency(0, 0, 0, 90.0, 95.0);
    lab.bandwidth(Experiment::BandwidthMatrix, Some(0), Some(0), "0", Mix::AllReads, 20.0, "load", Rfo::No);
    let mut report = lab.report();
    let (chase, load) = (report.results[0].clone(), report.results[2].clone());
    let mut results = Vec::new();
    for (state, speed) in [(PrefetchRequest::On, 1.0), (PrefetchRequest::Off, 0.55)] {
        for node in 0..nodes {
            let far = if node == 0 { 1.0 } else { 1.5 };
            let orders = [
                (None, 13.0 * speed / far),
                (Some(ChaseOrder::Sequential), 11.0 * far / speed),
                (Some(ChaseOrder::WindowLocal), 95.0 * far),
            ];
            for (order, value) in orders {
                let of = if order.is_some() { &chase } else { &load };
                let mut m = of.clone();
                m.experiment = Experiment::PrefetchComparison;
                m.at = Coordinates {
                    cpu_node: Some(0),
                    memory: Some(MemoryPlace::Node(node)),
                    cpu: order.map(|_| 0),
                    cpus: order.is_none().then(|| IdSet::one(0)),
                    prefetch: Some(state),
                    order,
                    ..Coordinates::default()
                };
                (m.estimate.value, m.estimate.ci95_low, m.estimate.ci95_high) = (Some(value), Some(value * 0.98), Some(value * 1.02));
                results.push(m);
            }
        }
    }
    (report.plan, report.curves, report.results) = (None, Vec::new(), results);
    report
}

/// A latency with its distribution: most hops at 80 to 90 ns, a tenth longer, one of microseconds.
pub fn distributed() -> Report {
    let mut report = super::vm();
    let ticks: Vec<u64> =
        (0..20_000u64).map(|i| 640 + i * 7_919 % 80 + if i % 10 == 3 { 260 } else { 0 } + if i == 7_000 { 90_000 } else { 0 }).collect();
    let mut recorder = Recorder::new(8).unwrap();
    recorder.add(&ticks, 20, 1.0);
    let d = recorder.finish();
    report.results.retain(|m| m.at.order == Some(ChaseOrder::WindowLocal));
    report.results.truncate(1);
    report.results[0].distribution = d;
    (report.plan, report.curves) = (None, Vec::new());
    report
}

/// Transfers of modified lines between all of so many nodes, at home with the holder.
pub fn node_pairs(nodes: u32) -> Report {
    let mut lab = Lab::new("Example", "AuthenticAMD", None);
    lab.packages(nodes, 2, 1);
    lab.handoff(1, 0, 0, LineState::Hitm, 45.0);
    let mut report = lab.report();
    let one = report.results[0].clone();
    let mut results = Vec::new();
    for holder in 0..nodes {
        for reader in (0..nodes).filter(|r| *r != holder) {
            let mut m = one.clone();
            m.at.cpu_node = Some(reader);
            m.at.holder_node = Some(holder);
            m.at.memory = Some(MemoryPlace::Node(holder));
            (m.at.cpu, m.at.holder_cpu) = (Some(reader * 2), Some(holder * 2));
            m.at.state = Some(LineState::Hitm);
            m.estimate.value = Some(110.0 + f64::from(holder.abs_diff(reader)) * 9.0);
            results.push(m);
        }
    }
    (report.plan, report.curves, report.results) = (None, Vec::new(), results);
    report
}

/// A `memgauge chase` alone.
pub fn one_loop() -> Report {
    let mut report = super::vm();
    report.results.truncate(1);
    report.results[0].experiment = Experiment::Chase;
    report.results[0].at = Coordinates { working_set: Some(Bytes::mib(512)), ..Coordinates::default() };
    (report.plan, report.curves) = (None, Vec::new());
    report
}

/// `memgauge chase` and `memgauge stream`, each with its proof; that of the stream shows memory that fails.
pub fn loops() -> Report {
    let mut report = one_loop();
    let at = |m: &Measurement| Coordinates { cpu: Some(0), memory: Some(MemoryPlace::Node(0)), ..m.at.clone() };
    let mut chase = Measurement { at: at(&report.results[0]), ..report.results[0].clone() };
    chase.at.order = Some(ChaseOrder::WindowLocal);
    chase.evidence.proof = Some(LoopProof { passes: 9, laps: 1, hops: Some(4_194_304), final_index: Some(1_234), ..LoopProof::default() });
    let mut stream = Measurement {
        experiment: Experiment::Stream,
        metric: Metric::Bandwidth,
        unit: Unit::GigabytesPerSecond,
        at: at(&chase),
        ..chase.clone()
    };
    stream.at.order = None;
    stream.evidence.proof =
        Some(LoopProof { passes: 3, laps: 2, checksum: Some("00f1e2d3c4b5a697".into()), mismatches: 1, ..LoopProof::default() });
    report.results = vec![chase, stream];
    report
}
