//! Reports of machines that do not exist, as realistic as hand-made ones get. `tests/results/*.json` are written from these.
#![allow(unreachable_pub, reason = "what the other files of this program use")]

mod build;
mod info;
pub mod interleave;
pub mod machines;
mod residency;
pub mod sweeps;

use std::collections::BTreeMap;

pub use info::info;
pub use residency::residency;

use build::{Curve, Lab, cpu, node, set};
use memgauge_analysis::conclusions::summary::summarise;
use memgauge_model::estimate::*;
use memgauge_model::experiment::LineState;
use memgauge_model::experiment::*;
use memgauge_model::note::{Code, Note, NoteCode, Severity};
use memgauge_model::result::*;
use memgauge_model::topology::{Cache, HmatAccess, MemorySideCache, NodeDevice, NodeDeviceKind};
use memgauge_model::traffic::{Mix, Rfo};
use memgauge_model::units::Bytes;

/// Every sample by name.
pub fn all() -> Vec<(&'static str, Report)> {
    let all = vec![
        ("vm-2-cpus", vm()),
        ("two-nodes", two_nodes()),
        ("cxl-hmat", cxl()),
        ("eight-nodes", eight_nodes()),
        ("interrupted", interrupted()),
        ("degraded", degraded()),
        ("info-cxl", info()),
        ("pmem", pmem()),
        ("scan", scan()),
        ("where", residency()),
    ];
    let summed_up = |(name, report)| (name, Report { summary: Some(summarise(&report)), ..report });
    all.into_iter().map(summed_up).collect()
}

/// One package, two CPUs of one core each, 4 KiB pages, a hypervisor.
pub fn vm() -> Report {
    let mut lab = Lab::new("AMD EPYC 9R14", "AuthenticAMD", Some("kvm"));
    lab.cpus = (0..2).map(|id| cpu(id, 0, 0, &[id])).collect();
    lab.nodes = vec![node(0, "0-1", Bytes(8_321_499_136))];
    lab.caches = vec![
        Cache { level: 1, size: Bytes::kib(32), line: Some(64), ways: Some(8), cpus: set("0") },
        Cache { level: 1, size: Bytes::kib(32), line: Some(64), ways: Some(8), cpus: set("1") },
        Cache { level: 2, size: Bytes::mib(1), line: Some(64), ways: Some(8), cpus: set("0") },
        Cache { level: 2, size: Bytes::mib(1), line: Some(64), ways: Some(8), cpus: set("1") },
        Cache { level: 3, size: Bytes::mib(32), line: Some(64), ways: Some(16), cpus: set("0-1") },
    ];
    lab.ghz = 3.69;
    lab.latency(0, 0, 0, 104.3, 147.6);
    for (mix, gbs, kernel, rfo) in [
        (Mix::AllReads, 41.72, "load-avx512", Rfo::No),
        (Mix::R4W1, 38.15, "r3w1-avx512", Rfo::Yes),
        (Mix::R3W1, 37.20, "r2w1-avx2", Rfo::Yes),
        (Mix::R2W1, 35.93, "r1w1-avx2", Rfo::Yes),
        (Mix::R1W1, 22.41, "store-avx512", Rfo::Yes),
        (Mix::NtWrite, 39.58, "nt-store-avx512", Rfo::No),
        (Mix::R2W1Nt, 40.22, "triad-nt-avx2", Rfo::No),
        (Mix::R1W1Nt, 39.87, "copy-nt-avx2", Rfo::No),
        (Mix::Copy, 33.54, "rep-movsb", Rfo::Unknown),
        (Mix::Fill, 29.06, "rep-stosb", Rfo::Unknown),
    ] {
        lab.bandwidth(Experiment::Bandwidth, None, None, "0-1", mix, gbs, kernel, rfo);
    }
    lab.curve(&Curve {
        cpu: 0,
        node: 0,
        cpus: "1",
        mix: Mix::AllReads,
        points: &[
            (20_000, 1.22, 104.6),
            (2_500, 3.41, 104.9),
            (1_200, 5.78, 105.6),
            (700, 8.62, 106.8),
            (450, 11.9, 108.9),
            (300, 15.3, 111.2),
            (200, 18.8, 115.0),
            (120, 22.1, 120.7),
            (60, 25.4, 128.3),
            (20, 27.3, 139.5),
            (0, 27.9, 146.2),
        ],
        knee: None,
        over_saturated: false,
    });
    lab.handoff(1, 0, 0, LineState::Hit, 24.1);
    lab.handoff(1, 0, 0, LineState::Hitm, 26.8);
    let mut report = lab.report();
    for m in report.results.iter_mut().filter(|m| m.at.mix == Some(Mix::Copy)) {
        m.evidence.noise.steal = Some(0.013);
        m.quality = Quality { level: QualityLevel::Degraded, reasons: vec![QualityReason::Steal, QualityReason::NotConverged] };
        m.estimate.converged = false;
        m.estimate.ci95_low = m.estimate.value.map(|v| v * 0.975);
    }
    report.notes.push(
        Note::warning(NoteCode::SmallPages, "pages are 4 KiB: full-random latency includes about 43 ns of TLB misses")
            .advise("run 'sudo sysctl vm.nr_hugepages=1024' to reserve 2 GiB of 2 MiB pages, then measure again"),
    );
    report
        .notes
        .push(Note::info(NoteCode::VirtualMachine, "caches and topology are what the hypervisor shows, and need not be the hardware's"));
    report
}

/// Two packages of 16 cores; buffers are files on persistent memory of the second one.
pub fn pmem() -> Report {
    let mut lab = Lab::new("INTEL(R) XEON(R) PLATINUM 8380", "GenuineIntel", None);
    lab.packages(2, 16, 1);
    lab.pmem(1);
    lab.ghz = 3.4;
    lab.latency(0, 0, 1, 236.0, 318.4);
    lab.latency(1, 16, 1, 173.2, 241.9);
    for (mix, gbs, kernel, rfo) in [
        (Mix::AllReads, 52.6, "load-avx512", Rfo::No),
        (Mix::R2W1, 21.7, "r1w1-avx512", Rfo::Yes),
        (Mix::NtWrite, 14.2, "nt-store-avx512", Rfo::No),
    ] {
        lab.bandwidth(Experiment::Bandwidth, None, Some(1), "16-31", mix, gbs, kernel, rfo);
    }
    lab.curve(&Curve {
        cpu: 16,
        node: 1,
        cpus: "17-31",
        mix: Mix::AllReads,
        points: &[(20_000, 4.1, 174.0), (1_900, 18.9, 181.3), (800, 36.4, 224.8), (450, 48.0, 402.6), (0, 52.1, 988.5)],
        knee: Some(800),
        over_saturated: false,
    });
    let mut report = lab.report();
    // Where a file with DAX is, only its device tells.
    for m in &mut report.results {
        let nodes = BTreeMap::new();
        m.evidence.placement = Placement {
            method: Some(PlacementMethod::Device),
            source: Some(PlacementSource::Device),
            pages_by_node: nodes,
            ..m.evidence.placement.clone()
        };
    }
    for m in &mut report.results {
        m.samples = samples(m, 6, 4);
    }
    let cells = report.plan.iter_mut().flat_map(|p| &mut p.steps).flat_map(|s| &mut s.cells).map(|c| &mut c.at);
    let results = report.results.iter_mut().map(|m| &mut m.at);
    for at in results.chain(report.curves.iter_mut().map(|c| &mut c.at)).chain(cells) {
        at.memory = Some(MemoryPlace::Device { node: at.memory_node() });
    }
    report
}

/// Samples around a result's value: as many bursts of as many samples, three to an allocation, and the second burst left out.
pub fn samples(m: &Measurement, bursts: u32, per_burst: u32) -> Option<Box<Samples>> {
    let value = m.estimate.value?;
    let sample = |burst: u32, i: u32| {
        let wobble = f64::from((burst * per_burst + i) * 7919 % 1009) / 1009.0 - 0.5;
        format!("{:.5e}", value * (1.0 + wobble / 100.0)).parse().unwrap()
    };
    Some(Box::new(Samples {
        bursts: (0..bursts).map(|burst| (0..per_burst).map(|i| sample(burst, i)).collect()).collect(),
        allocations: (0..bursts).map(|burst| burst / 3).collect(),
        left_out: vec![1],
    }))
}

/// Two packages, a node each, 2 MiB pages of a pool, limits known.
pub fn two_nodes() -> Report {
    let mut lab = Lab::new("INTEL(R) XEON(R) GOLD 6526Y", "GenuineIntel", None);
    lab.packages(2, 16, 2);
    lab.pool();
    lab.ghz = 3.0;
    for (cpu_node, probe) in [(0, 0), (1, 16)] {
        for memory in 0..2 {
            let far = cpu_node != memory;
            lab.latency(cpu_node, probe, memory, if far { 186.4 } else { 112.7 }, if far { 191.0 } else { 116.9 });
            let reads = if far { 118.3 } else { 246.1 };
            let cpus = if cpu_node == 0 { "0-15" } else { "16-31" };
            lab.bandwidth(Experiment::BandwidthMatrix, Some(cpu_node), Some(memory), cpus, Mix::AllReads, reads, "load-avx512", Rfo::No);
        }
    }
    for (mix, gbs, rfo) in
        [(Mix::AllReads, 491.8, Rfo::No), (Mix::R2W1, 412.6, Rfo::No), (Mix::NtWrite, 279.4, Rfo::No), (Mix::R2W1Nt, 431.0, Rfo::No)]
    {
        lab.bandwidth(Experiment::Bandwidth, None, None, "0-63", mix, gbs, "best-avx512", rfo);
    }
    for n in [1u32, 2, 4, 8, 16, 32, 64] {
        let gbs = 491.8 * (1.0 - (-f64::from(n) / 14.0).exp());
        lab.bandwidth(Experiment::BandwidthRamp, None, None, &format!("0-{}", n - 1), Mix::AllReads, gbs, "load-avx512", Rfo::No);
    }
    lab.curve(&Curve {
        cpu: 0,
        node: 0,
        cpus: "1-15",
        mix: Mix::AllReads,
        points: &[
            (20_000, 9.4, 113.0),
            (4_000, 41.2, 114.8),
            (1_900, 80.7, 118.1),
            (1_200, 118.9, 123.5),
            (800, 160.2, 133.4),
            (600, 197.5, 151.7),
            (450, 226.8, 196.2),
            (300, 241.7, 284.9),
            (100, 245.9, 341.6),
            (0, 244.0, 352.3),
        ],
        knee: Some(600),
        over_saturated: true,
    });
    for (reader, holder, home, hit, hitm) in
        [(1, 0, 0, 58.2, 61.4), (32, 0, 0, 14.6, 15.0), (16, 0, 0, 131.8, 139.0), (16, 0, 1, 128.4, 147.3)]
    {
        lab.handoff(reader, holder, home, LineState::Hit, hit);
        lab.handoff(reader, holder, home, LineState::Hitm, hitm);
    }
    let mut report = lab.report();
    for m in report.results.iter_mut().filter(|m| m.method() == Method::Bandwidth) {
        let limit = if m.experiment == Experiment::BandwidthMatrix { 332.8 } else { 665.6 };
        m.verdict = Verdict {
            status: if m.at.mix == Some(Mix::NtWrite) { VerdictStatus::Warning } else { VerdictStatus::Ok },
            reason: VerdictReason::WithinLimit,
            limit: Some(limit),
            limit_source: Some(LimitSource::Smbios),
            limit_share: None,
        };
    }
    report
}

/// Two packages with DRAM and two CXL memories without CPUs; firmware claims figures for each pair.
pub fn cxl() -> Report {
    let mut lab = cxl_lab();
    for (cpu_node, probe) in [(0, 0), (1, 16)] {
        for memory in 0..4 {
            let ns = [108.9, 189.6, 254.1, 338.7][(memory ^ cpu_node) as usize];
            lab.latency(cpu_node, probe, memory, ns, ns + 5.2);
            let gbs = [261.4, 121.0, 49.3, 31.8][(memory ^ cpu_node) as usize];
            let cpus = if cpu_node == 0 { "0-15,32-47" } else { "16-31,48-63" };
            lab.bandwidth(Experiment::BandwidthMatrix, Some(cpu_node), Some(memory), cpus, Mix::AllReads, gbs, "load-avx512", Rfo::No);
        }
    }
    lab.report()
}

fn cxl_lab() -> Lab {
    let mut lab = Lab::new("AMD EPYC 9135 16-Core Processor", "AuthenticAMD", None);
    lab.packages(2, 16, 2);
    lab.pool();
    lab.ghz = 4.12;
    for id in [2, 3] {
        let mut memory = node(id, "", Bytes::gib(128));
        memory.memory_side_caches = if id == 3 { vec![MemorySideCache { level: 1, size: Bytes::gib(4), line: Some(64) }] } else { vec![] };
        lab.nodes.push(memory);
    }
    let claims =
        [[(95, 280_000), (170, 130_000), (240, 56_000), (320, 32_000)], [(170, 130_000), (95, 280_000), (320, 32_000), (240, 56_000)]];
    for memory in 0..4usize {
        for (from, row) in claims.iter().enumerate() {
            let (ns, mbs) = row[memory];
            lab.nodes[memory].hmat.push(HmatAccess {
                class: 1,
                initiators: set(&from.to_string()),
                read_latency_ns: Some(ns),
                write_latency_ns: Some(ns),
                read_bandwidth_mbs: Some(mbs),
                write_bandwidth_mbs: Some(mbs),
                cxl_region: None,
            });
        }
    }
    for (from, row) in [(0u32, [10, 32, 20, 40]), (1, [32, 10, 40, 20]), (2, [20, 40, 10, 50]), (3, [40, 20, 50, 10])] {
        lab.nodes[from as usize].distances = (0..).zip(row).collect();
    }
    lab
}

/// The same machine where `tiers` compared its DRAM with its CXL memory, from the first package: alone, beside each other, together.
pub fn tiers() -> Report {
    let mut lab = cxl_lab();
    for (node, region) in [(2, "region0"), (3, "region1")] {
        let (name, qos_class) = (format!("dax{}.0", node - 2), Some(7));
        lab.nodes[node].devices = vec![NodeDevice { name, kind: NodeDeviceKind::Cxl, region: Some(region.into()), qos_class }];
    }
    for (node, tier) in [(0, 4), (1, 4), (2, 22), (3, 22)] {
        lab.nodes[node].memory_tier = Some(tier);
    }
    for memory in [0, 2] {
        let cpus = "0-15,32-47";
        let (ns, [reads, mixed]) = if memory == 0 { (108.9, [261.4, 232.0]) } else { (254.1, [49.3, 63.8]) };
        lab.latency(0, 0, memory, ns, ns + 5.2);
        lab.bandwidth(Experiment::BandwidthMatrix, Some(0), Some(memory), cpus, Mix::AllReads, reads, "load-avx512", Rfo::No);
        lab.bandwidth(Experiment::BandwidthMatrix, Some(0), Some(memory), cpus, Mix::R2W1, mixed, "r2w1-avx512", Rfo::Yes);
    }
    let loads = [(0, "0", 261.4, 108.9), (2, "2", 49.3, 254.1), (0, "2", 49.3, 109.6), (2, "0", 261.4, 256.3), (0, "0,2", 271.9, 109.1)];
    for (_, _, peak, idle) in loads {
        let points: Vec<(u32, f64, f64)> = [(0.04, 20_000), (0.49, 1_200), (0.81, 600), (0.985, 300), (1.0, 0)]
            .map(|(share, delay)| (delay, peak * share, idle + 7.0 * share / (1.031 - share)))
            .to_vec();
        lab.curve(&Curve { cpu: 0, node: 0, cpus: "1-15", mix: Mix::AllReads, points: &points, knee: Some(600), over_saturated: false });
    }
    let mut report = lab.report();
    let place = |at: &mut Coordinates, nth: usize| {
        let (memory, load_nodes, ..) = loads[nth];
        at.cpu_node = Some(0);
        at.memory = Some(MemoryPlace::Node(memory));
        at.load_nodes = Some(set(load_nodes));
    };
    report.curves.iter_mut().enumerate().for_each(|(nth, curve)| place(&mut curve.at, nth));
    // Of the load on both.
    report.curves[4].full_load_by_node = [(0, 223.4), (2, 48.5)].into();
    let points = report.results.iter_mut().filter(|m| m.experiment == Experiment::LoadedLatency);
    // Latency and bandwidth of five points each.
    points.enumerate().for_each(|(nth, m)| place(&mut m.at, nth / 10));
    let kinds = memgauge_model::tiers::kinds(&report.machine);
    report.plan.as_mut().unwrap().tiers = kinds;
    report
}

/// A node of 1 GiB pages in which two regions are weak, and one whose addresses may not be known.
pub fn scan() -> Report {
    let mut lab = Lab::new("INTEL(R) XEON(R) PLATINUM 8470", "GenuineIntel", None);
    lab.packages(2, 16, 2);
    lab.pool();
    for number in 0..20 {
        let gbs = match number {
            7 => 61.8,
            8 => 63.1,
            n => 86.4 + f64::from(n * 7 % 11) / 3.0,
        };
        lab.region(number, 0, "0-15,32-47", gbs, Some(225 + u64::from(number)));
    }
    for number in 0..4 {
        lab.region(number, 1, "16-31,48-63", 87.0 + f64::from(number), None);
    }
    let mut report = lab.report();
    let (large, small) = report.results.split_at_mut(20);
    for m in large.iter_mut() {
        m.evidence.pages.page = Some(Bytes::gib(1));
    }
    memgauge_analysis::conclusions::scan::judge(large);
    memgauge_analysis::conclusions::scan::judge(small);
    report.notes = memgauge_analysis::conclusions::scan::notes(&report.results, report.machine.identity.system);
    report
}

/// A note whose code this version does not write.
fn of_another_version(severity: Severity, code: &str, message: &'static str) -> Note {
    Note { code: Code::Unknown(code.to_owned()), severity, message: message.into(), advice: None }
}

/// Four nodes a package, one mix, seen from every node.
pub fn eight_nodes() -> Report {
    let mut lab = Lab::new("AMD EPYC 9124 16-Core Processor", "AuthenticAMD", None);
    lab.packages(8, 4, 2);
    lab.pool();
    lab.ghz = 3.55;
    for c in &mut lab.cpus {
        c.package = c.node / 4;
    }
    for from in 0..8u32 {
        for to in 0..8u32 {
            let ns = if from == to {
                98.4
            } else if from / 4 == to / 4 {
                111.6 + f64::from((from ^ to) * 3)
            } else {
                203.3 + f64::from(to)
            };
            lab.latency(from, from * 4, to, ns, ns + 4.6);
            let gbs = if from == to {
                83.8
            } else if from / 4 == to / 4 {
                78.1
            } else {
                41.7
            };
            let cpus = format!("{}-{}", from * 4, from * 4 + 3);
            lab.bandwidth(Experiment::BandwidthMatrix, Some(from), Some(to), &cpus, Mix::AllReads, gbs, "load-avx512", Rfo::No);
        }
    }
    lab.report()
}

/// Two nodes, stopped half way: cells that were not reached have no value and say why.
pub fn interrupted() -> Report {
    let mut report = two_nodes();
    report.complete = false;
    report.incomplete = Some(Incomplete::Signal { name: "SIGINT".into() });
    report.results.retain(|m| !matches!(m.experiment, Experiment::BandwidthRamp | Experiment::LoadedLatency | Experiment::CacheToCache));
    report.curves.clear();
    for (i, m) in report.results.iter_mut().enumerate() {
        let why = if m.at.memory_node() == Some(1) && m.at.cpu_node == Some(0) && m.experiment == Experiment::IdleLatency {
            NotMeasured::NoMemory {
                failure: None,
                node: None,
                bytes: None,
                detail: "node 1 has 12 MiB free and the chase needs 840 MiB".into(),
            }
        } else if i > 10 {
            NotMeasured::Interrupted
        } else {
            continue;
        };
        m.estimate = Estimate { not_measured: Some(why), ..Estimate::default() };
        m.quality = Quality { level: QualityLevel::None, reasons: vec![] };
        m.evidence.traffic = None;
    }
    report
}

/// A container on a busy, hybrid machine: placement unverifiable, pages mixed, several modes, drift; every CPU and every pair.
pub fn degraded() -> Report {
    let mut lab = Lab::new("12th Gen Intel(R) Core(TM) i5-12600K", "GenuineIntel", None);
    lab.cpus =
        (0..6).map(|id| cpu(id, id / 2, 0, &[id / 2 * 2, id / 2 * 2 + 1])).chain((6..8).map(|id| cpu(id, id - 3, 0, &[id]))).collect();
    for c in &mut lab.cpus {
        c.kind = Some(if c.id < 6 { "performance" } else { "efficiency" }.into());
    }
    lab.nodes = vec![node(0, "0-7", Bytes::gib(32))];
    lab.caches = vec![
        Cache { level: 2, size: Bytes::kib(1280), line: Some(64), ways: Some(10), cpus: set("0-1") },
        Cache { level: 2, size: Bytes::kib(1280), line: Some(64), ways: Some(10), cpus: set("2-3") },
        Cache { level: 2, size: Bytes::kib(1280), line: Some(64), ways: Some(10), cpus: set("4-5") },
        Cache { level: 2, size: Bytes::mib(2), line: Some(64), ways: Some(16), cpus: set("6-7") },
        Cache { level: 3, size: Bytes::mib(20), line: Some(64), ways: Some(10), cpus: set("0-7") },
    ];
    lab.ghz = 4.9;
    lab.latency(0, 0, 0, 83.4, 97.2);
    for id in 0..8 {
        lab.latency_of_cpu(id, 0, if id < 6 { 83.0 + f64::from(id) * 0.2 } else { 109.7 });
    }
    for reader in 0..8 {
        for holder in (0..8).filter(|h| *h != reader) {
            let ns = if reader / 2 == holder / 2 {
                6.1
            } else if reader < 6 && holder < 6 {
                37.5
            } else {
                49.0
            };
            lab.pair(reader, holder, LineState::Hitm, ns + f64::from((reader * 3 + holder * 5) % 4) * 0.7);
        }
    }
    lab.handoff(2, 0, 0, LineState::Hit, 34.9);
    lab.handoff(2, 0, 0, LineState::Hitm, 27.1);
    lab.handoff(6, 0, 0, LineState::Hit, 46.0);
    lab.handoff(6, 0, 0, LineState::Hitm, 49.8);
    let again = lab.repeat_first(101.9);
    let mut report = lab.report();
    report.repeats.push(again);
    for m in report.results.iter_mut().chain(&mut report.repeats) {
        m.evidence.pages =
            PageEvidence { obtained: Some(PageKind::Thp), share: Some(0.64), page: Some(Bytes::mib(2)), ..Default::default() };
        m.evidence.placement = Placement {
            status: PlacementStatus::Unverified,
            method: Some(PlacementMethod::FirstTouch),
            problems: vec![PlacementProblem::NotReadBack { detail: "move_pages: operation not permitted".into() }],
            ..Default::default()
        };
        m.quality = Quality { level: QualityLevel::Degraded, reasons: vec![QualityReason::PlacementUnverified] };
        if m.experiment == Experiment::IdleLatencyPerCpu && m.at.cpu == Some(5) {
            m.quality.reasons.extend([QualityReason::BusyMachine, QualityReason::InvoluntarySwitches]);
            m.evidence.noise.others = Some(0.12);
            m.evidence.noise.involuntary_switches = Some(14);
        }
        if m.experiment == Experiment::CacheToCache && m.at.state == Some(LineState::Hitm) && m.at.cpu == Some(2) {
            m.estimate.modes = vec![Mode { value: 27.1, share: 0.7 }, Mode { value: 105.2, share: 0.3 }];
            m.quality.reasons.push(QualityReason::SeveralModes);
        }
    }
    let drifted = |m: &&mut Measurement| m.experiment == Experiment::IdleLatency && m.at.order == Some(ChaseOrder::WindowLocal);
    report.results.iter_mut().filter(drifted).for_each(|m| m.quality.reasons.push(QualityReason::Drift));
    report.notes.push(
        of_another_version(Severity::Warning, "placement-unverified", "this container may not ask where pages are")
            .advise("start it with --cap-add SYS_NICE, or read the numbers as placed by first touch"),
    );
    report.notes.push(
        of_another_version(Severity::Error, "pool", "asked-for 1 GiB pages: the pool of node 0 has none")
            .advise("reserve them at boot: hugepagesz=1G hugepages=4"),
    );
    report
}

/// Two packages of two nodes each, every table that the drop-in prints; a search instead of one cell a mix. No root.
pub fn four_nodes() -> Report {
    let mut lab = Lab::new("INTEL(R) XEON(R) PLATINUM 8592+", "GenuineIntel", None);
    lab.packages(4, 4, 1);
    for c in &mut lab.cpus {
        c.package = c.node / 2;
    }
    let ns = |from: u32, to: u32| {
        if from == to {
            101.3
        } else if from / 2 == to / 2 {
            118.0
        } else {
            196.5
        }
    };
    for from in 0..4 {
        for to in 0..4 {
            lab.latency(from, from * 4, to, ns(from, to), ns(from, to) + 7.0);
            let cpus = format!("{}-{}", from * 4, from * 4 + 3);
            lab.bandwidth(
                Experiment::BandwidthMatrix,
                Some(from),
                Some(to),
                &cpus,
                Mix::AllReads,
                9.12345 * 100.0 / ns(from, to),
                "load-sse2",
                Rfo::No,
            );
            for (home, more) in [(from, 0.0), (to, 60.0)] {
                if from != to {
                    lab.handoff(to * 4, from * 4, home, LineState::Hitm, ns(from, to) + more);
                }
            }
        }
    }
    lab.handoff(1, 0, 0, LineState::Hit, 49.5);
    lab.handoff(1, 0, 0, LineState::Hitm, 55.4);
    for (mix, gbs) in
        [(Mix::AllReads, 300.0), (Mix::R3W1, 280.0), (Mix::R2W1, 260.0), (Mix::R1W1, 120.0), (Mix::R2W1Nt, 270.0), (Mix::NtWrite, 150.0)]
    {
        for (cpus, part) in [("0-15", 0.97), ("0-11", 1.0), ("0-7", 0.8)] {
            lab.bandwidth(Experiment::BandwidthSearch, None, None, cpus, mix, gbs * part, "sse2", Rfo::Unknown);
        }
    }
    lab.curve(&Curve {
        cpu: 0,
        node: 0,
        cpus: "1-15",
        mix: Mix::R2W1,
        points: &[(0, 260.004, 1329.264), (2, 259.1, 330.681), (100, 158.9926, 125.982), (20_000, 2.9321, 82.298)],
        knee: None,
        over_saturated: false,
    });
    let mut report = lab.report();
    for m in report.results.iter_mut().filter(|m| m.experiment == Experiment::LoadedLatency && m.metric == Metric::Bandwidth) {
        let loads = m.estimate.value.unwrap() - 0.5;
        m.evidence.traffic = Some(TrafficRates {
            app_read_gbs: loads / 2.0,
            app_write_gbs: loads / 2.0,
            bus_estimate_gbs: None,
            rfo: Rfo::Unknown,
            rfo_reason: None,
        });
        m.evidence.gbs_by_cpu = (1..16).map(|cpu| (cpu, loads / 15.0)).collect();
    }
    report
}
