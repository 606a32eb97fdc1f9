use std::collections::BTreeMap;

use memgauge_model::experiment::{Coordinates, Experiment, MemoryPlace, Unit};
use memgauge_model::installed::{InstalledMemory, MemoryDevice};
use memgauge_model::note::NoteCode;
use memgauge_model::result::{Evidence, Quality, Tool, TrafficRates};
use memgauge_model::topology::{Allowed, Cache, Cpu, HmatAccess, Identity, Node};
use memgauge_model::traffic::Rfo;

use super::*;

mod verdict;

/// Two nodes of two CPUs with an L3 of 16 MiB each, four channels of DDR5-4800 (153.6 GB/s), and node 2 without CPUs.
pub(crate) fn machine() -> Machine {
    let cpu = |id: u32| Cpu {
        id,
        package: id / 2,
        die: None,
        cluster: None,
        core: id,
        siblings: IdSet::one(id),
        node: id / 2,
        kind: None,
        capacity: None,
        max_mhz: None,
    };
    let node = |id: u32, cpus: &str| Node { id, cpus: cpus.parse().unwrap(), memory: Some(Bytes::gib(64)), ..Node::default() };
    let l3 =
        |first: u32| Cache { level: 3, size: Bytes::mib(16), line: Some(64), ways: None, cpus: [first, first + 1].into_iter().collect() };
    let device = |channel: char| MemoryDevice {
        bank: Some(format!("P0 CHANNEL {channel}")),
        kind: Some("DDR5".into()),
        configured_mts: Some(4800),
        ..MemoryDevice::default()
    };
    let installed = InstalledMemory { devices: ('A'..='D').map(device).collect(), slots: 8, reason: None };
    let mut nodes = vec![node(0, "0-1"), node(1, "2-3"), node(2, "")];
    nodes[2].hmat = vec![HmatAccess { initiators: IdSet::one(0), read_bandwidth_mbs: Some(32_000), ..HmatAccess::default() }];
    Machine {
        identity: Identity { installed, ..Identity::default() },
        topology: Topology { cpus: (0..4).map(cpu).collect(), caches: vec![l3(0), l3(2)], nodes, ..Topology::default() },
        allowed: Allowed {
            cpus: "0-3".parse().unwrap(),
            nodes: "0-2".parse().unwrap(),
            memory: Some(Bytes::gib(100)),
            node_limited_by: Default::default(),
            memory_limited_by: "MemAvailable".into(),
            node_memory: BTreeMap::new(),
            isolated: IdSet::new(),
            cpu_quota: None,
            ..Allowed::default()
        },
    }
}

pub(crate) fn bandwidth(cpus: &str, node: Option<u32>, mix: Mix, gbs: f64, bus: Option<f64>) -> Measurement {
    let at = Coordinates {
        cpus: Some(cpus.parse().unwrap()),
        memory: Some(node.map_or(MemoryPlace::Own, MemoryPlace::Node)),
        mix: Some(mix),
        ..Coordinates::default()
    };
    let rates = TrafficRates { app_read_gbs: gbs, app_write_gbs: 0.0, bus_estimate_gbs: bus, rfo: Rfo::No, rfo_reason: None };
    Measurement {
        experiment: Experiment::Bandwidth,
        at,
        metric: Metric::Bandwidth,
        unit: Unit::GigabytesPerSecond,
        firmware: None,
        estimate: Estimate {
            value: Some(gbs),
            ci95_low: Some(gbs * 0.995),
            ci95_high: Some(gbs * 1.005),
            converged: true,
            ..Estimate::default()
        },
        distribution: None,
        counters: None,
        lines_in_flight: None,
        samples: None,
        evidence: Evidence { buffer: Bytes::mib(256), traffic: Some(rates), ..Evidence::default() },
        quality: Quality::default(),
        verdict: Verdict::default(),
    }
}

pub(crate) fn report(machine: Machine, results: Vec<Measurement>) -> Report {
    let tool = Tool { name: "memgauge".into(), version: "0".into(), commit: None };
    let environment = Environment { root: true, ..Environment::default() };
    Report { environment, results, ..Report::of_machine(tool, machine) }
}

fn judged(machine: Machine, m: Measurement) -> Verdict {
    let mut report = report(machine, vec![m]);
    attach(&mut report);
    report.results.remove(0).verdict
}

#[test]
fn the_machines_limit_is_divided_among_nodes_with_cpus() {
    let machine = machine();
    let limits = Limits::new(&machine, None);
    let both: IdSet = "0-1".parse().unwrap();
    assert!((limits.for_nodes(&both, None).unwrap().gbs - 153.6).abs() < 1e-9);
    let half = limits.for_nodes(&IdSet::one(1), Some(1)).unwrap();
    assert!((half.gbs - 76.8).abs() < 1e-9);
    assert_eq!((half.source, half.share, half.doubtful), (LimitSource::Smbios, Some(LimitShare { nodes: 1, total: 2 }), false));
    assert_eq!(limits.for_nodes(&IdSet::one(1), Some(0)), None, "a link's limit is not known");
    let far = limits.for_nodes(&IdSet::one(2), Some(0)).unwrap();
    assert_eq!((far.gbs, far.source, far.doubtful), (32.0, LimitSource::Hmat, true));
    let stated = Limits::new(&machine, Some(200.0));
    let user = stated.for_nodes(&both, None).unwrap();
    assert_eq!((user.gbs, user.source), (200.0, LimitSource::User));
}

/// The machine as one package of four CPUs, with these nodes.
fn one_package(nodes: &[&str]) -> Machine {
    let mut machine = machine();
    machine.topology.cpus.iter_mut().for_each(|cpu| cpu.package = 0);
    let node =
        |(id, cpus): (usize, &&str)| Node { id: id as u32, cpus: cpus.parse().unwrap(), memory: Some(Bytes::gib(64)), ..Node::default() };
    machine.topology.nodes = nodes.iter().enumerate().map(node).collect();
    let home = |cpu: u32| machine.topology.nodes.iter().find(|n| n.cpus.contains(cpu)).unwrap().id;
    let homes: Vec<u32> = (0..4).map(home).collect();
    machine.topology.cpus.iter_mut().zip(homes).for_each(|(cpu, node)| cpu.node = node);
    machine
}

#[test]
fn nodes_that_share_cpus_share_the_limit() {
    let on_pages = |nodes: u32| {
        let mut m = bandwidth("0-3", None, Mix::AllReads, 140.0, Some(140.0));
        m.evidence.placement.pages_by_node = (0..nodes).map(|node| (node, 100)).collect();
        m
    };
    let emulated = one_package(&["0-3"; 8]);
    let whole = judged(emulated.clone(), on_pages(8));
    assert_eq!((whole.status, whole.limit, whole.limit_share), (VerdictStatus::Ok, Some(153.6), None));
    // A part of them, or one: what it can reach is not known, and it is not above a limit.
    assert_eq!(judged(emulated.clone(), on_pages(4)).reason, VerdictReason::LimitUnknown);
    assert_eq!(judged(emulated, bandwidth("0-3", Some(5), Mix::AllReads, 140.0, Some(140.0))).reason, VerdictReason::LimitUnknown);
    // A table that gives one node the CPUs of another as well.
    let broken = one_package(&["0-1", "0-3"]);
    assert_eq!(judged(broken, on_pages(2)).limit, Some(153.6));
}

#[test]
fn pages_in_turn_on_nodes_have_no_local_limit() {
    let mut m = bandwidth("0-3", None, Mix::AllReads, 60.0, Some(60.0));
    m.evidence.placement.pages_by_node = [(0, 100), (1, 100)].into();
    assert_eq!(judged(machine(), m.clone()).limit, Some(153.6), "each CPU on its own node");
    m.at.weights = Some("0=1,1=1".parse().unwrap());
    let spread = judged(machine(), m);
    assert_eq!(
        (spread.status, spread.reason, spread.limit),
        (VerdictStatus::Unknown, VerdictReason::LimitUnknown, None),
        "half of it is remote"
    );
}

#[test]
fn nodes_made_of_caches_have_the_channels_of_their_package() {
    let caches = one_package(&["0-1", "2-3"]);
    let all = judged(caches.clone(), bandwidth("0-3", None, Mix::AllReads, 130.0, Some(130.0)));
    assert_eq!((all.status, all.limit), (VerdictStatus::Ok, Some(153.6)));
    for node in [None, Some(1)] {
        let one = judged(caches.clone(), bandwidth("2-3", node, Mix::AllReads, 100.0, Some(100.0)));
        assert_eq!((one.status, one.reason, one.limit), (VerdictStatus::Unknown, VerdictReason::NotAllCores, Some(153.6)));
    }
    // A cache of the whole package: the nodes have channels of their own (SNC, NPS with several caches a node).
    let mut clusters = caches;
    clusters.topology.caches = vec![Cache { cpus: "0-3".parse().unwrap(), ..clusters.topology.caches[0].clone() }];
    let one = judged(clusters, bandwidth("2-3", None, Mix::AllReads, 70.0, Some(70.0)));
    assert_eq!((one.status, one.limit, one.limit_share), (VerdictStatus::Ok, Some(76.8), Some(LimitShare { nodes: 1, total: 2 })));
}

#[test]
fn all_cores_reading_are_judged_and_fail_where_nothing_else_is_to_blame() {
    let reads = |gbs: f64| judged(machine(), bandwidth("0-3", None, Mix::AllReads, gbs, Some(gbs)));
    assert_eq!(reads(130.0).status, VerdictStatus::Ok);
    assert_eq!((reads(115.0).status, reads(115.0).limit_source), (VerdictStatus::Warning, Some(LimitSource::Smbios)));
    assert_eq!((reads(50.0).status, reads(50.0).limit), (VerdictStatus::Failure, Some(153.6)));
    assert_eq!(reads(170.0).reason, VerdictReason::AboveLimit);
}

#[test]
fn virtual_unprivileged_and_disturbed_runs_warn_at_most() {
    let slow = || bandwidth("0-3", None, Mix::AllReads, 50.0, Some(50.0));
    let mut guest = machine();
    guest.identity.hypervisor = Some("KVM".into());
    assert_eq!(judged(guest, slow()).status, VerdictStatus::Warning);
    let mut unprivileged = report(machine(), vec![slow()]);
    unprivileged.environment.root = false;
    attach(&mut unprivileged);
    assert_eq!(unprivileged.results[0].verdict.status, VerdictStatus::Warning);
    let mut busy = slow();
    busy.quality = Quality { level: QualityLevel::Degraded, reasons: vec![QualityReason::BusyMachine] };
    assert_eq!(judged(machine(), busy).status, VerdictStatus::Warning);
    let mut disturbed = slow();
    disturbed.quality.level = QualityLevel::Unreliable;
    let verdict = judged(machine(), disturbed.clone());
    assert_eq!((verdict.status, verdict.reason), (VerdictStatus::Unknown, VerdictReason::Unreliable));
    disturbed.quality.level = QualityLevel::Degraded;
    assert_ne!(judged(machine(), disturbed).reason, VerdictReason::Unreliable);
    let mut numbered = machine();
    numbered.identity.installed.devices.iter_mut().for_each(|d| d.bank = None);
    let verdict = judged(numbered, slow());
    assert_eq!((verdict.status, verdict.limit_source), (VerdictStatus::Warning, Some(LimitSource::SmbiosUpperBound)));
}

#[test]
fn stores_are_judged_by_what_crossed_the_bus() {
    // 60 GB/s of stores that read first are 120 GB/s on the bus: 78 %.
    let stores = |bus| judged(machine(), bandwidth("0-3", None, Mix::R1W1, 60.0, bus));
    assert_eq!(stores(Some(120.0)).status, VerdictStatus::Ok);
    assert_eq!((stores(None).status, stores(None).reason), (VerdictStatus::Unknown, VerdictReason::BusBytesUnknown));
    assert_eq!(stores(Some(60.0)).status, VerdictStatus::Warning, "never a failure: nobody states what a mix must reach");
}

#[test]
fn a_part_of_the_machine_is_not_judged() {
    let reason = |m| judged(machine(), m).reason;
    assert_eq!(reason(bandwidth("0", Some(0), Mix::AllReads, 20.0, Some(20.0))), VerdictReason::NotAllCores);
    assert_eq!(
        reason(bandwidth("0-1", Some(1), Mix::AllReads, 20.0, Some(20.0))),
        VerdictReason::NotAllCores,
        "remote: node 1's own cores are idle"
    );
    let mut paced = bandwidth("0-3", None, Mix::AllReads, 20.0, Some(20.0));
    paced.at.delay_cycles = Some(100);
    assert_eq!(reason(paced), VerdictReason::NotAllLoad);
    let mut cached = bandwidth("0-3", None, Mix::AllReads, 900.0, None);
    cached.evidence.buffer = Bytes::mib(20);
    let verdict = judged(machine(), cached);
    assert_eq!((verdict.reason, verdict.limit), (VerdictReason::NotMemory, None), "a cache has another limit");
}

#[test]
fn buffers_are_memorys_when_they_are_twice_the_caches() {
    let topology = machine().topology;
    assert_eq!(cache_reach(&topology, &IdSet::one(3)), Bytes::mib(16));
    assert_eq!(cache_reach(&topology, &"0-3".parse().unwrap()), Bytes::mib(32));
    assert!(memory_sized(&topology, &"0-3".parse().unwrap(), Bytes::mib(64)));
    assert!(!memory_sized(&topology, &"0-3".parse().unwrap(), Bytes::mib(63)));
    assert!(!memory_sized(&Topology::default(), &IdSet::one(0), Bytes::mib(31)));
}

#[test]
fn a_note_says_where_the_limit_comes_from_or_why_there_is_none() {
    let note_for = |machine: Machine| {
        let mut report = report(machine, vec![bandwidth("0-1", Some(0), Mix::AllReads, 60.0, Some(60.0))]);
        attach(&mut report);
        note(&report)
    };
    let known = note_for(machine()).unwrap();
    assert_eq!(known.code, NoteCode::Limit);
    assert!(
        known.message.to_string().contains("4 channels × 4800 MT/s × 8 B = 153.6 GB/s")
            && known.message.to_string().contains("equal share"),
        "{}",
        known.message
    );
    let mut silent = machine();
    silent.identity.installed = InstalledMemory::unknown("only root may read the table");
    let unknown = note_for(silent).unwrap();
    assert_eq!(unknown.code, NoteCode::LimitUnknown);
    assert!(unknown.message.to_string().contains("only root may read") && unknown.advice.unwrap().to_string().contains("--limit"));
    assert_eq!(note(&report(machine(), vec![])), None);
}

#[test]
fn stacks_and_low_power_memory_have_a_limit_and_no_band() {
    let mut machine = machine();
    for device in &mut machine.identity.installed.devices {
        (device.kind, device.data_bits) = (Some("HBM2".into()), Some(1024));
        device.configured_mts = Some(3200);
    }
    let mut report = report(machine, vec![bandwidth("0-3", None, Mix::AllReads, 500.0, Some(500.0))]);
    attach(&mut report);
    let verdict = &report.results[0].verdict;
    assert_eq!((verdict.status, verdict.reason), (VerdictStatus::Unknown, VerdictReason::NoBandForThisMemory));
    assert_eq!(verdict.limit, Some(1638.4), "what share of it is reached is shown");
}
