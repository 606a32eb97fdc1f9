mod causes;
mod history;

use memgauge_model::estimate::NotMeasured;
use memgauge_model::experiment::{ChaseOrder, Experiment, Metric, PageRequest};
use memgauge_model::plan::{BufferPlan, Cell, Loader, Loading, Plan, Step, StopRule, Traffic, Work};
use memgauge_model::result::PrefetchEvidence;
use memgauge_model::result::{
    DimmErrors, Health, HealthStatus, Measurement, MemoryErrors, PageKind, Quality, QualityLevel, QualityReason, Report,
};
use memgauge_model::topology::Machine;
use memgauge_model::traffic::Mix;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_planner::cost::cell_seconds;

use super::*;
use crate::conclusions::limit;
use crate::conclusions::limit::tests::{bandwidth, machine};
use crate::fleet::{BaselineNumber, GroupBaseline, GroupLevel, HostGroup};

/// A machine without SMBIOS, so that siblings are all there is.
fn silent() -> Machine {
    let mut machine = machine();
    machine.identity.installed = memgauge_model::installed::InstalledMemory::unknown("not here");
    machine
}

fn node(node: u32, gbs: f64) -> Measurement {
    let mut m = bandwidth(if node == 0 { "0-1" } else { "2-3" }, Some(node), Mix::AllReads, gbs, Some(gbs));
    m.experiment = Experiment::BandwidthMatrix;
    m.at.cpu_node = Some(node);
    m
}

/// The same cell once more: a repeat, since a measurement of it is there already.
fn again(m: Measurement) -> Measurement {
    m
}

/// The first measurement of each cell, and the others as its repeats.
fn report(machine: Machine, measurements: Vec<Measurement>) -> Report {
    let mut report = limit::tests::report(machine, Vec::new());
    for m in measurements {
        let known = report.results.iter().any(|first| m.is_of_same_cell(first));
        if known { &mut report.repeats } else { &mut report.results }.push(m);
    }
    report
}

fn health(results: Vec<Measurement>) -> Health {
    judge(&report(silent(), results), Baselines::default())
}

fn codes(health: &Health) -> Vec<&str> {
    health.findings.iter().map(|f| f.code.word()).collect()
}

/// The plan that these measurements came from.
fn plan(results: &[Measurement]) -> Plan {
    let buffer = |node| BufferPlan { derived: true, ..BufferPlan::plain(Bytes::mib(64), node, PageRequest::Auto) };
    let cell = |m: &Measurement| {
        let loaders = vec![Loader { cpu: 0, buffer: buffer(m.at.memory_node().unwrap()), own: None }];
        Cell::new(m.at.clone(), Work::Bandwidth(Loading { loaders, traffic: Traffic::default(), delay: 0 }))
    };
    let step = Step {
        title: "Bandwidth by node".into(),
        experiment: Experiment::BandwidthMatrix,
        cells: results.iter().map(cell).collect(),
        estimated_s: 2.0,
    };
    Plan {
        steps: vec![step],
        stop: StopRule { relative_half_width: 0.015, budget_s: 0.5, fixed_time: false },
        seed: 1,
        keep_awake: IdSet::new(),
        compared_cores: IdSet::new(),
        keep_awake_named: false,
        directories: vec![],
        tiers: vec![],
        estimated_s: 2.0,
        max_s: 2.0,
        within_s: None,
        coarsened: Vec::new(),
        contents: vec![],
        start_signal: None,
        peak_gbs: None,
        counters: false,
        stamp: None,
        notes: vec![],
    }
}

#[test]
fn equal_nodes_are_well() {
    let health = health(vec![node(0, 60.0), node(1, 61.0)]);
    assert_eq!((health.status, codes(&health)), (HealthStatus::Ok, vec![]));
    assert_eq!(health.compared_with, ["siblings"]);
}

#[test]
fn a_core_that_is_slower_than_its_like_is_named() {
    let with = |slow: f64, hypervisor: Option<&str>| {
        let mut report = report(silent(), vec![node(0, 60.0), node(1, 61.0)]);
        report.environment.all_cores_ghz = (0..8).map(|cpu| (cpu, if cpu == 5 { slow } else { 3.0 + f64::from(cpu) / 100.0 })).collect();
        report.machine.identity.hypervisor = hypervisor.map(Into::into);
        judge(&report, Baselines::default())
    };
    let health = with(2.6, None);
    assert_eq!((health.status, codes(&health)), (HealthStatus::Warning, vec!["slow-cores"]));
    assert!(health.findings[0].message.contains("CPUs 5 run at 2.60 GHz"), "{health:?}");
    assert!(codes(&with(2.9, None)).is_empty(), "good cores differ by as much");
    assert!(!codes(&with(2.6, Some("kvm"))).contains(&"slow-cores"), "another guest may use the other thread");
    let mut unknown = report(silent(), vec![node(0, 60.0), node(1, 61.0)]);
    unknown.environment.all_cores_ghz = (0..8).map(|cpu| (cpu, if cpu == 5 { 2.6 } else { 3.0 })).collect();
    unknown.machine.identity.hypervisor_unknown = Some("nothing says so".into());
    assert!(!codes(&judge(&unknown, Baselines::default())).contains(&"slow-cores"), "it may be a virtual machine");
}

#[test]
fn a_chase_that_nothing_fetches_ahead_is_a_warning() {
    let chase = |cpu, random_over_sequential| {
        let mut m = node(0, 100.0);
        (m.experiment, m.metric) = (Experiment::IdleLatency, Metric::Latency);
        (m.at.cpu, m.at.order, m.at.mix) = (Some(cpu), Some(ChaseOrder::WindowLocal), None);
        m.evidence.prefetch = Some(PrefetchEvidence { sequential_ns: 100.0 / random_over_sequential, random_over_sequential });
        m
    };
    let found = |ratios: [f64; 2]| health(vec![node(0, 60.0), node(1, 61.0), chase(0, ratios[0]), chase(8, ratios[1])]);
    assert!(!codes(&found([9.0, 5.0])).contains(&"prefetchers-off"));
    let one = found([9.0, 1.02]);
    let finding = one.findings.iter().find(|f| f.code.word() == "prefetchers-off").unwrap();
    assert!(finding.severity == HealthStatus::Warning && finding.message.contains("on CPUs 8"), "{finding:?}");
    let all = found([1.0, 1.02]);
    assert!(all.findings.iter().any(|f| f.message.contains("all CPUs that were tried")), "{all:?}");
    let mut disturbed = chase(0, 1.02);
    disturbed.quality.level = QualityLevel::Unreliable;
    let unknown = health(vec![node(0, 60.0), node(1, 61.0), disturbed, chase(8, 5.0)]);
    assert!(!codes(&unknown).contains(&"prefetchers-off"), "{unknown:?}");
}

#[test]
fn a_slow_node_fails_after_three_measurements_and_only_then() {
    let (slow, good) = (node(1, 50.0), node(0, 60.0));
    let three = vec![good.clone(), slow.clone(), again(slow.clone()), again(slow.clone()), again(good.clone()), again(good.clone())];
    let confirmed = health(three);
    assert_eq!((confirmed.status, codes(&confirmed)), (HealthStatus::Failure, vec!["slower-than-siblings"]));
    assert!(confirmed.findings[0].message.contains("node 1, own memory, all-reads, bandwidth: 50.0 GB/s, 17 % worse"), "{confirmed:?}");
    assert_eq!(confirmed.measured_again, 2);
    let once = health(vec![good.clone(), slow.clone(), again(slow.clone()), again(node(1, 59.9))]);
    assert_eq!((once.status, codes(&once)), (HealthStatus::Ok, vec!["not-confirmed"]));
    let hurried = health(vec![good, slow]);
    assert_eq!(hurried.status, HealthStatus::Warning);
    assert!(hurried.findings[0].message.contains("no time"));
}

#[test]
fn the_mildest_of_three_measurements_counts() {
    let health = health(vec![node(0, 60.0), node(1, 50.0), again(node(1, 56.5)), again(node(1, 50.0))]);
    assert_eq!((health.status, codes(&health)), (HealthStatus::Warning, vec!["slower-than-siblings"]));
}

#[test]
fn differences_below_three_percent_or_within_intervals_are_none() {
    assert_eq!(codes(&health(vec![node(0, 60.0), node(1, 58.3)])), Vec::<&str>::new());
    let mut wide = node(1, 50.0);
    wide.estimate.ci95_high = Some(60.0);
    let open = health(vec![node(0, 60.0), wide]);
    assert_eq!(
        (open.status, codes(&open)),
        (HealthStatus::Unknown, vec!["numbers-not-reliable"]),
        "17 %, perhaps by chance: no fault, and no pass"
    );
    let mut wide = node(1, 55.0);
    wide.estimate.ci95_high = Some(60.0);
    let near = health(vec![node(0, 60.0), wide]);
    assert_eq!((near.status, codes(&near)), (HealthStatus::Ok, vec![]));
    let small = health(vec![node(0, 60.0), node(1, 57.6), again(node(1, 57.6)), again(node(1, 57.6))]);
    assert_eq!((small.status, codes(&small)), (HealthStatus::Ok, vec!["slower-than-siblings"]), "4 %: said, and no warning");
}

#[test]
fn latency_siblings_warn_at_most() {
    let idle = |n: u32, ns: f64| {
        let mut m = node(n, ns);
        (m.experiment, m.metric, m.at.mix, m.at.cpus) = (Experiment::IdleLatency, Metric::Latency, None, None);
        (m.at.cpu, m.at.order) = (Some(n * 2), Some(ChaseOrder::WindowLocal));
        m
    };
    let health = health(vec![idle(0, 90.0), idle(1, 130.0), again(idle(1, 130.0)), again(idle(1, 130.0))]);
    assert_eq!((health.status, codes(&health)), (HealthStatus::Warning, vec!["slower-than-siblings", "too-few-compared"]));
    assert!(health.findings[0].message.contains("CPU 2"), "the slower one is accused: {:?}", health.findings);
}

#[test]
fn nothing_is_concluded_from_a_number_that_disturbances_are_in() {
    let slow = |level| Measurement { quality: Quality { level, reasons: vec![QualityReason::BurstsDisturbed] }, ..node(1, 30.0) };
    let found = |level| health(vec![node(0, 60.0), slow(level), again(slow(level)), again(slow(level))]);
    assert_eq!(codes(&found(QualityLevel::Degraded)), ["slower-than-siblings"]);
    let one = found(QualityLevel::Unreliable);
    assert_eq!((one.status, codes(&one), one.compared_with.len()), (HealthStatus::Unknown, vec!["numbers-not-reliable"], 0));
    let unreliable = |m: Measurement| Measurement { quality: Quality { level: QualityLevel::Unreliable, reasons: Vec::new() }, ..m };
    let both = health(vec![unreliable(node(0, 60.0)), unreliable(node(1, 30.0))]);
    assert_eq!((both.status, both.compared_with.len()), (HealthStatus::CouldNotMeasure, 0), "as fast as it may look, no verdict");
}

#[test]
fn virtual_unprivileged_and_busy_machines_never_fail() {
    let slow = || vec![node(0, 60.0), node(1, 30.0), again(node(1, 30.0)), again(node(1, 30.0))];
    let mut guest = report(silent(), slow());
    guest.machine.identity.hypervisor = Some("KVM".into());
    assert_eq!(judge(&guest, Baselines::default()).status, HealthStatus::Warning);
    let mut unknown = report(silent(), slow());
    unknown.machine.identity.hypervisor_unknown = Some("nothing says so".into());
    assert_eq!(judge(&unknown, Baselines::default()).status, HealthStatus::Warning, "what is not known is not metal");
    let mut unprivileged = report(silent(), slow());
    unprivileged.environment.root = false;
    assert_eq!(judge(&unprivileged, Baselines::default()).status, HealthStatus::Warning);
    let mut busy = slow();
    for m in &mut busy {
        m.quality = Quality { level: QualityLevel::Degraded, reasons: vec![QualityReason::BusyMachine] };
    }
    let busy = health(busy);
    assert_eq!(busy.status, HealthStatus::CouldNotMeasure);
    assert!(codes(&busy).contains(&"busy-machine"));
}

#[test]
fn one_busy_cell_is_a_warning() {
    let mut results = vec![node(0, 60.0), node(1, 60.0), node(0, 40.0)];
    results[2].at.mix = Some(Mix::R2W1);
    results[2].quality = Quality { level: QualityLevel::Degraded, reasons: vec![QualityReason::Steal] };
    let health = health(results);
    assert_eq!((health.status, codes(&health)), (HealthStatus::Warning, vec!["busy-machine"]));
}

#[test]
fn cells_that_could_not_be_measured_are_said() {
    let missing = |n| {
        let mut m = node(n, 60.0);
        m.estimate = memgauge_model::estimate::Estimate {
            not_measured: Some(NotMeasured::NoMemory { failure: None, node: None, bytes: None, detail: "no memory".into() }),
            ..Default::default()
        };
        m
    };
    let part = health(vec![node(0, 60.0), missing(1)]);
    assert_eq!(part.status, HealthStatus::Warning);
    assert!(part.findings.iter().any(|f| f.code.word() == "not-measured" && f.message.contains("no memory")));
    assert_eq!(health(vec![missing(0), missing(1)]).status, HealthStatus::CouldNotMeasure);
    assert_eq!(health(vec![]).status, HealthStatus::CouldNotMeasure);
}

#[test]
fn what_time_did_not_suffice_for_is_said_and_accuses_nobody() {
    let late = |mut m: Measurement| {
        (m.estimate.value, m.estimate.not_measured) = (None, Some(NotMeasured::OutOfTime));
        m
    };
    let some = health(vec![node(0, 100.0), node(1, 100.0), late(node(2, 100.0))]);
    assert_eq!((some.status, codes(&some)), (HealthStatus::Unknown, vec!["left-out"]));
    assert!(some.findings[0].message.contains("1 of 3 numbers"), "{:?}", some.findings);
    let all = health(vec![late(node(0, 100.0)), late(node(1, 100.0))]);
    assert_eq!(all.status, HealthStatus::CouldNotMeasure);
}

#[test]
fn memory_errors_and_corruption_are_incidents() {
    let mut errors = vec![node(0, 60.0), node(1, 60.0)];
    errors[1].evidence.noise.memory_errors = Some(2);
    errors[1].evidence.noise.memory_errors_by_dimm = vec![DimmErrors { dimm: "DIMM_A2".into(), corrected: 2, uncorrected: 0 }];
    let incident = health(errors);
    assert!(incident.status == HealthStatus::Incident && incident.findings[0].message.contains("(2 of DIMM_A2)"), "{incident:?}");
    let dimms = |count| vec![DimmErrors { dimm: "DIMM_A2".into(), corrected: count, uncorrected: 0 }];
    // One while each cell was measured, and three between cells.
    let mut cells = vec![node(0, 60.0), node(1, 60.0)];
    cells.iter_mut().for_each(|m| (m.evidence.noise.memory_errors, m.evidence.noise.memory_errors_by_dimm) = (Some(1), dimms(1)));
    let mut whole = report(silent(), cells);
    whole.environment.memory_errors = Some(MemoryErrors { corrected: 5, uncorrected: 0, dimms: dimms(5) });
    let incident = judge(&whole, Baselines::default());
    assert!(incident.status == HealthStatus::Incident && incident.findings[0].message.contains("(5 of DIMM_A2)"), "{incident:?}");
    // Only while buffers were made.
    let mut between = report(silent(), vec![node(0, 60.0), node(1, 60.0)]);
    between.environment.memory_errors = Some(MemoryErrors { corrected: 0, uncorrected: 1, dimms: Vec::new() });
    assert_eq!(judge(&between, Baselines::default()).status, HealthStatus::Incident);
    between.environment.memory_errors = Some(MemoryErrors::default());
    assert_eq!(judge(&between, Baselines::default()).status, HealthStatus::Ok);
    let mut corrupted = vec![node(0, 60.0), node(1, 60.0)];
    corrupted[0].evidence.checksums = Some(memgauge_model::result::Checksums { passes: 9, mismatches: 1 });
    assert_eq!(codes(&health(corrupted)), ["memory-corrupted"]);
}

#[test]
fn a_slow_cache_domain_warns_and_never_fails() {
    let domain = |first: u32, gbs: f64| {
        let mut m = bandwidth(&format!("{first}-{}", first + 1), Some(0), Mix::AllReads, gbs, Some(gbs));
        (m.experiment, m.at.cpu_node) = (Experiment::BandwidthPerCache, Some(0));
        m
    };
    let take = |slow: f64| vec![domain(0, 40.0), domain(2, slow), domain(4, 40.0)];
    let thrice = |slow| {
        let repeats = take(slow).into_iter().flat_map(|m| [again(m.clone()), again(m)]);
        health(take(slow).into_iter().chain(repeats).collect())
    };
    let found = thrice(20.0);
    assert_eq!((found.status, codes(&found)), (HealthStatus::Warning, vec!["slower-than-siblings"]));
    assert!(found.findings[0].message.contains("CPUs 2-3 behind one cache"), "{found:?}");
    assert_eq!(thrice(39.5).status, HealthStatus::Ok);
}

#[test]
fn stalled_memory_warns_on_metal_only() {
    let found = |stalled: usize, unknown: Option<&str>| {
        let mut of_mix = [node(0, 60.0), node(1, 61.0)];
        of_mix.iter_mut().for_each(|m| m.at.mix = Some(Mix::R2W1));
        let mut report = report(silent(), [node(0, 60.0), node(1, 61.0)].into_iter().chain(of_mix).collect());
        for m in report.results.iter_mut().take(stalled) {
            m.evidence.noise.stalled = Some(0.12);
            m.quality.reasons.push(QualityReason::Stalled);
        }
        report.machine.identity.hypervisor_unknown = unknown.map(Into::into);
        let found = judge(&report, Baselines::default()).findings.into_iter().find(|f| f.code.word() == "memory-stalled");
        found.map(|f| (f.severity, f.message.contains("up to 12 % of the time in 2 of 4 numbers")))
    };
    assert_eq!(found(2, None), Some((HealthStatus::Warning, true)));
    assert_eq!(found(2, Some("nothing says so")), Some((HealthStatus::Unknown, true)), "its host may have taken the CPUs");
    assert_eq!(found(1, None), None, "one of four is a moment");
}

/// Two memories without CPUs, each read three times by the node beside it.
#[test]
fn memories_without_cpus_are_siblings_where_kind_size_and_distance_are_the_same() {
    use memgauge_model::topology::{HmatAccess, Node};
    let found = |second: Bytes, distance: u32, hbm: bool| {
        let mut machine = silent();
        let claim = |node: u32, mbs| HmatAccess {
            class: 0,
            initiators: IdSet::one(node % 2),
            read_bandwidth_mbs: Some(mbs),
            ..HmatAccess::default()
        };
        machine.topology.nodes.truncate(2);
        for (id, memory) in [(2, Bytes::gib(16)), (3, second)] {
            let hmat = hbm.then(|| claim(id, 400_000)).into_iter().collect();
            machine.topology.nodes.push(Node { id, memory: Some(memory), hmat, ..Node::default() });
        }
        for (reader, far, distance) in [(0, 2, 13), (1, 3, distance)] {
            machine.topology.nodes[reader].distances.insert(far, distance);
            if hbm {
                machine.topology.nodes[reader].hmat = vec![claim(reader as u32, 100_000)];
            }
        }
        let far = |reader: u32, gbs: f64| {
            let mut m = node(reader, gbs);
            m.at.memory = Some(memgauge_model::experiment::MemoryPlace::Node(reader + 2));
            m
        };
        let measured = (0..3).flat_map(|_| [node(0, 60.0), node(1, 60.0), far(0, 200.0), far(1, 150.0)]).collect();
        judge(&report(machine, measured), Baselines::default())
            .findings
            .into_iter()
            .map(|f| (f.code.word().to_owned(), f.severity))
            .collect::<Vec<_>>()
    };
    let slower = |severity| vec![("slower-than-siblings".to_owned(), severity)];
    assert_eq!(found(Bytes::gib(16), 13, true), slower(HealthStatus::Failure), "stacks of one package are alike");
    assert_eq!(found(Bytes::gib(16), 13, false), slower(HealthStatus::Warning), "nothing says what they are");
    assert_eq!(found(Bytes::gib(32), 13, false), [], "another size");
    assert_eq!(found(Bytes::gib(16), 23, false), [], "farther away");
}

#[test]
fn a_node_with_less_memory_is_noticed() {
    let mut small = report(silent(), vec![node(0, 60.0), node(1, 60.0)]);
    small.machine.topology.nodes[1].memory = Some(Bytes::gib(48));
    let health = judge(&small, Baselines::default());
    assert_eq!((health.status, codes(&health)), (HealthStatus::Warning, vec!["node-memory-differs"]));
    assert!(health.findings[0].message.contains("node 1 has 48.0 GiB"));
}

#[test]
fn devices_that_are_not_spread_evenly_are_noticed_but_not_in_virtual_machines() {
    let mut uneven = machine();
    let one = uneven.identity.installed.devices[0].clone();
    for (device, bank) in uneven.identity.installed.devices.iter_mut().zip(["P0 CHANNEL A", "P0 CHANNEL B", "P0 CHANNEL C", "P1 CHANNEL A"])
    {
        *device = memgauge_model::installed::MemoryDevice { bank: Some(bank.into()), size: Some(Bytes::gib(32)), ..one.clone() };
    }
    uneven.identity.installed.devices.truncate(4);
    let found = judge(&report(uneven.clone(), vec![node(0, 100.0), node(1, 100.0)]), Baselines::default());
    assert!(codes(&found).contains(&"unequal-population") && found.status == HealthStatus::Warning, "{found:?}");
    uneven.identity.hypervisor = Some("kvm".into());
    let virtual_one = judge(&report(uneven, vec![node(0, 100.0), node(1, 100.0)]), Baselines::default());
    assert!(!codes(&virtual_one).contains(&"unequal-population"), "{virtual_one:?}");
}

#[test]
fn nothing_to_compare_with_is_no_praise() {
    let alone = health(vec![node(0, 60.0)]);
    assert_eq!((alone.status, codes(&alone)), (HealthStatus::Unknown, vec!["nothing-to-compare-with"]));
}

#[test]
fn a_limit_that_is_missed_three_times_fails() {
    let results = vec![node(0, 40.0), again(node(0, 40.0)), again(node(0, 40.0))];
    let mut judged = report(machine(), results);
    crate::conclusions::limit::attach(&mut judged);
    let health = judge(&judged, Baselines::default());
    assert_eq!((health.status, codes(&health)), (HealthStatus::Failure, vec!["below-limit"]));
    assert_eq!(health.compared_with, ["limit"]);
}

#[test]
fn a_baseline_of_the_same_machine_is_compared_cell_by_cell() {
    let before = report(silent(), vec![node(0, 60.0), node(1, 60.0)]);
    let against = |now: &Report| judge(now, Baselines { baseline: Some(&before), ..Baselines::default() });
    // Both nodes are slower, so siblings say nothing.
    let slow = |n| [node(n, 52.0), again(node(n, 52.0)), again(node(n, 52.0))];
    let now = report(silent(), slow(0).into_iter().chain(slow(1)).collect());
    assert_eq!((against(&now).status, codes(&against(&now))), (HealthStatus::Failure, vec!["worse-than-baseline"; 2]));
    // A guest cannot see what its host does, so nothing is its memory's fault.
    let (mut guest, mut guest_before) = (now.clone(), before.clone());
    guest.machine.identity.hypervisor = Some("kvm".into());
    guest_before.machine.identity.hypervisor = Some("kvm".into());
    let warned = judge(&guest, Baselines { baseline: Some(&guest_before), ..Baselines::default() });
    assert_eq!((warned.status, codes(&warned)), (HealthStatus::Warning, vec!["worse-than-baseline"; 2]));
    let faster = report(silent(), vec![node(0, 70.0), node(1, 70.0)]);
    assert_eq!(against(&faster).status, HealthStatus::Ok);
    let mut another = now.clone();
    another.machine.identity.model_name = Some("another".into());
    assert_eq!(codes(&against(&another)), ["baseline-of-another-machine"]);
    let mut sizes = now.clone();
    sizes.results.iter_mut().for_each(|m| (m.evidence.buffer, m.evidence.plateau) = (Bytes::kib(64), None));
    assert_eq!(codes(&against(&sizes)), ["baseline-without-cells"], "one is of memory, and one of a cache");
    let mut pages = now;
    pages.results.iter_mut().for_each(|m| m.evidence.pages.obtained = Some(PageKind::Thp));
    assert_eq!(codes(&against(&pages)), ["baseline-without-cells"]);
}

#[test]
fn numbers_are_compared_with_siblings_that_have_the_same_pages() {
    let number = |node: u32, pages: PageKind, median: f64| {
        let m = self::node(node, median);
        BaselineNumber {
            experiment: m.experiment,
            at: m.at,
            metric: m.metric,
            unit: m.unit,
            pages: Some(pages),
            hosts: 40,
            median,
            median_low: 0.995 * median,
            median_high: 1.005 * median,
            spread: 0.01,
            flagged_beyond: 0.95 * median,
            slower_population: None,
        }
    };
    let group = HostGroup { level: GroupLevel::Kernel, fields: Vec::new(), hosts: 40 };
    let numbers = vec![number(0, PageKind::Thp, 60.0), number(1, PageKind::Thp, 60.0), number(1, PageKind::Base, 40.0)];
    let group = GroupBaseline { group, numbers };
    let judged = |pages: [Option<PageKind>; 2], gbs: [f64; 2]| {
        let one = |i: usize| {
            let mut m = node(i as u32, gbs[i]);
            m.evidence.pages.obtained = pages[i];
            m
        };
        let all = (0..2).flat_map(|i| [one(i), again(one(i)), again(one(i))]).collect();
        judge(&report(silent(), all), Baselines { fleet: Some(FleetSiblings::Group(&group)), ..Baselines::default() })
    };
    let (thp, base) = (Some(PageKind::Thp), Some(PageKind::Base));
    assert_eq!(codes(&judged([thp, thp], [60.0, 60.0])), ["fleet-group"]);
    assert!(codes(&judged([thp, thp], [60.0, 40.0])).contains(&"slower-than-fleet"));
    assert!(!codes(&judged([thp, base], [60.0, 40.0])).contains(&"slower-than-fleet"), "40 GB/s are usual with base pages");
    let half = judged([base, base], [60.0, 40.0]);
    let other = half.findings.iter().find(|f| f.code.word() == "fleet-other-pages").unwrap();
    assert!(other.severity == HealthStatus::Unknown && half.status >= HealthStatus::Unknown, "what was not compared did not pass");
    assert!(
        other.message.starts_with("1 of 2 numbers not compared") && other.message.ends_with("base here, and thp on its hosts"),
        "{other:?}"
    );
    assert!(codes(&half).contains(&"fleet-group"));
    assert!(codes(&judged([None, None], [60.0, 60.0])).contains(&"fleet-group"), "not known is not different");
}

#[test]
fn rules_are_the_users_word() {
    let rules = |strict: bool| Rules {
        strict,
        rules: vec![Rule {
            experiment: Experiment::Bandwidth,
            metric: None,
            mix: Some(Mix::AllReads),
            order: None,
            cpu_node: None,
            memory_node: None,
            local: Some(true),
            warn_below: Some(58.0),
            fail_below: Some(50.0),
            warn_above: None,
            fail_above: None,
        }],
    };
    let status = |gbs: f64, strict: bool, guest: bool| {
        let mut now = report(silent(), vec![node(0, gbs), again(node(0, gbs)), again(node(0, gbs))]);
        now.machine.identity.hypervisor = guest.then(|| "KVM".into());
        judge(&now, Baselines { rules: Some(&rules(strict)), ..Baselines::default() }).status
    };
    assert_eq!(status(60.0, false, false), HealthStatus::Ok);
    assert_eq!(status(55.0, false, false), HealthStatus::Warning);
    assert_eq!(status(45.0, false, false), HealthStatus::Failure);
    assert_eq!(status(45.0, false, true), HealthStatus::Warning);
    assert_eq!(status(45.0, true, true), HealthStatus::Failure);
    let none = report(silent(), vec![]);
    assert!(codes(&judge(&none, Baselines { rules: Some(&rules(false)), ..Baselines::default() })).contains(&"rule-without-cell"));
}

#[test]
fn suspicious_cells_are_planned_twice_within_the_time() {
    let results = vec![node(0, 60.0), node(1, 50.0)];
    let (plan, now) = (plan(&results), report(silent(), results));
    let again = confirm(&now, Baselines::default(), &plan, 14.0, cell_seconds).unwrap();
    let nodes: Vec<u32> = again.steps.iter().flat_map(|s| &s.cells).filter_map(|c| c.at.memory_node()).collect();
    assert_eq!(nodes, [1, 0, 1, 0], "of two that differ either may be wrong");
    assert!(again.steps.iter().flat_map(|s| &s.cells).all(|c| c.repeat));
    assert!(again.estimated_s <= 14.0);
    // Time for one of the two cells twice, and for none.
    let hurried = confirm(&now, Baselines::default(), &plan, 0.75 * again.estimated_s, cell_seconds).unwrap();
    assert_eq!(hurried.steps.len(), 2, "the worst first");
    assert_eq!(confirm(&now, Baselines::default(), &plan, 0.25 * again.estimated_s, cell_seconds), None);
    let well = report(silent(), vec![node(0, 60.0), node(1, 60.0)]);
    assert_eq!(confirm(&well, Baselines::default(), &plan, 14.0, cell_seconds), None);
}

/// Root reads Firecracker's name in ACPI's tables; a user of the same machine sees the clock of KVM.
#[test]
fn a_more_precise_name_of_the_hypervisor_is_no_other_machine() {
    let on = |hypervisor: Option<&str>, id: Option<&str>| {
        let mut report = report(silent(), vec![node(0, 60.0), node(1, 61.0)]);
        report.machine.identity.hypervisor = hypervisor.map(Into::into);
        report.run.host = Some(memgauge_model::result::Host { hostname: None, machine_id_hash: id.map(Into::into) });
        report
    };
    let told = |a: &Report, b: &Report| {
        let found = judge(a, Baselines { baseline: Some(b), ..Baselines::default() });
        found.findings.into_iter().find(|f| f.code.word() == "baseline-of-another-machine").map(|f| f.message)
    };
    let kvm = on(Some("KVM"), None);
    assert_eq!(told(&kvm, &on(Some("Firecracker"), None)), None);
    assert_eq!(told(&on(Some("Firecracker"), None), &kvm), None);
    assert_eq!(told(&kvm, &on(Some("unknown hypervisor"), None)), None);
    assert!(told(&kvm, &on(Some("Xen"), None)).is_some_and(|why| why.ends_with("its hypervisor is Xen, here it is KVM")));
    assert!(told(&kvm, &on(None, None)).is_some_and(|why| why.ends_with("its hypervisor is none, here it is KVM")));
    let mut unknown = on(None, None);
    unknown.machine.identity.hypervisor_unknown = Some("nothing says so".into());
    assert_eq!((told(&unknown, &kvm), told(&unknown, &on(None, None))), (None, None), "what is not known does not differ");
    // A later version knows the name of a design.
    let arm = |name: Option<&str>, part: &str| {
        let mut report = on(None, None);
        report.machine.identity.model_name = name.map(Into::into);
        report.machine.identity.model = [("implementer", "0x41"), ("part", part)].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        report
    };
    assert_eq!(told(&arm(Some("Cortex-A78AE"), "0xd42"), &arm(None, "0xd42")), None);
    assert!(told(&arm(Some("Cortex-A78AE"), "0xd42"), &arm(Some("Neoverse-N1"), "0xd0c")).is_some());
    // One machine by its id, whatever the names are.
    assert_eq!(told(&on(Some("KVM"), Some("a")), &on(Some("Hypervisor of a later version"), Some("a"))), None);
    assert!(told(&on(Some("KVM"), Some("a")), &on(None, Some("a"))).is_some(), "its disk was started as a guest");
}
