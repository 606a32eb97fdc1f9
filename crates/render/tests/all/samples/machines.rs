//! Machines of any size, for figures.

use memgauge_model::experiment::{Experiment, LineState, MemoryPlace};
use memgauge_model::result::{LimitSource, PairMatrix, Quality, Report, Verdict, VerdictReason, VerdictStatus};
use memgauge_model::topology::Cache;
use memgauge_model::traffic::{Mix, Rfo};
use memgauge_model::units::Bytes;

use super::build::{Curve, Lab, node};

/// Latency and bandwidth between `rows` nodes with CPUs and `columns` nodes with memory.
pub fn nodes(rows: u32, columns: u32) -> Report {
    let mut lab = Lab::new("Example", "GenuineIntel", None);
    lab.packages(rows, 2, 1);
    lab.nodes.extend((rows..columns).map(|n| node(n, "", Bytes::gib(64))));
    for c in &mut lab.cpus {
        c.package = c.node / 4;
    }
    for from in 0..rows {
        for to in 0..columns {
            let (a, b) = (f64::from(from), f64::from(to));
            let far = if from == to {
                0.0
            } else if from / 4 == to / 4 {
                18.0
            } else {
                96.0 + (a * 7.0 + b * 3.0) % 31.0
            };
            lab.latency(from, from * 2, to, 92.0 + far, 99.0 + far);
        }
    }
    let mut report = lab.report();
    report.results.retain(|m| m.at.cpu_node.is_some_and(|n| n < rows));
    report
}

/// Every pair of CPUs, two threads a core, eight cores a cache, half of the CPUs in each of two packages: a result each, or of many CPUs one
/// matrix, as `c2c --matrix` keeps them.
pub fn pairs(cpus: u32) -> Report {
    let mut lab = Lab::new("Example", "AuthenticAMD", None);
    lab.cpus = (0..cpus)
        .map(|id| {
            let siblings = [id / 2 * 2, id / 2 * 2 + 1].into_iter().filter(|s| *s < cpus).collect::<Vec<_>>();
            let package = if id * 2 < cpus { 0 } else { 1 };
            let mut cpu = super::build::cpu(id, id / 2, package, &siblings);
            cpu.package = package;
            cpu
        })
        .collect();
    let halves = |p: u32| lab.cpus.iter().filter(|c| c.package == p).map(|c| c.id).collect::<memgauge_model::units::IdSet>().to_string();
    lab.nodes = vec![node(0, &halves(0), Bytes::gib(64)), node(1, &halves(1), Bytes::gib(64))];
    lab.caches = (0..cpus.div_ceil(16))
        .map(|i| Cache {
            level: 3,
            size: Bytes::mib(32),
            line: Some(64),
            ways: Some(16),
            cpus: (i * 16..((i + 1) * 16).min(cpus)).collect(),
        })
        .collect();
    // The plan of a million cells is not what figures are made from.
    let mut report = lab.report();
    let template = {
        let mut lab = Lab::new("Example", "AuthenticAMD", None);
        lab.cpus = report.machine.topology.cpus.clone();
        lab.nodes = report.machine.topology.nodes.clone();
        lab.pair(0, 1, LineState::Hitm, 1.0);
        lab.report().results.remove(0)
    };
    let mut matrix = (cpus > 256).then(|| PairMatrix::new((0..cpus).collect(), LineState::Hitm, None));
    for reader in 0..cpus {
        for holder in (0..cpus).filter(|h| *h != reader) {
            let ns = if reader / 2 == holder / 2 {
                6.0
            } else if reader / 16 == holder / 16 {
                23.0
            } else if (reader * 2 < cpus) == (holder * 2 < cpus) {
                105.0
            } else {
                196.0
            };
            let ns = ns + f64::from((reader * 7 + holder * 11) % 9) * 0.6;
            if let Some(matrix) = &mut matrix {
                let estimate = memgauge_model::estimate::Estimate { value: Some(ns), ..Default::default() };
                matrix.set(reader, holder, &estimate, &Quality::default());
                continue;
            }
            let mut m = template.clone();
            m.at.cpu = Some(reader);
            m.at.holder_cpu = Some(holder);
            m.at.cpu_node = Some(u32::from(reader * 2 >= cpus));
            m.at.memory = m.at.cpu_node.map(MemoryPlace::Node);
            m.estimate.value = Some(ns);
            report.results.push(m);
        }
    }
    report.matrices.extend(matrix);
    report
}

/// The suite of one package with one node, 64 CPUs and four last-level caches; the limit is known.
pub fn server() -> Report {
    let mut lab = Lab::new("AMD EPYC 9354P 32-Core Processor", "AuthenticAMD", None);
    lab.packages(1, 32, 2);
    lab.caches = (0..4)
        .map(|i| {
            let cpus = (i * 8..i * 8 + 8).chain(i * 8 + 32..i * 8 + 40).collect();
            Cache { level: 3, size: Bytes::mib(64), line: Some(64), ways: Some(16), cpus }
        })
        .collect();
    lab.pool();
    lab.latency(0, 0, 0, 104.3, 109.6);
    for (i, mix) in Mix::PEAK.into_iter().enumerate() {
        let rfo = if matches!(mix, Mix::Copy | Mix::Fill) { Rfo::Unknown } else { Rfo::No };
        lab.bandwidth(Experiment::Bandwidth, None, None, "0-63", mix, 361.7 - 9.3 * i as f64, "best-avx512", rfo);
    }
    let points = [
        (20_000, 9.4, 105.0),
        (4_000, 41.2, 106.8),
        (1_900, 80.7, 110.1),
        (1_200, 118.9, 114.5),
        (800, 190.2, 123.4),
        (600, 267.5, 141.7),
        (450, 326.8, 186.2),
        (300, 351.7, 254.9),
        (0, 354.0, 322.3),
    ];
    lab.curve(&Curve { cpu: 0, node: 0, cpus: "1-63", mix: Mix::AllReads, points: &points, knee: Some(600), over_saturated: false });
    for (reader, hit, hitm) in [(32, 7.9, 8.2), (1, 21.6, 23.0), (8, 118.3, 126.4)] {
        lab.handoff(reader, 0, 0, LineState::Hit, hit);
        lab.handoff(reader, 0, 0, LineState::Hitm, hitm);
    }
    let mut report = lab.report();
    for m in report.results.iter_mut().filter(|m| m.experiment == Experiment::Bandwidth) {
        m.verdict = Verdict {
            status: VerdictStatus::Ok,
            reason: VerdictReason::WithinLimit,
            limit: Some(460.8),
            limit_source: Some(LimitSource::Smbios),
            limit_share: None,
        };
    }
    report
}

/// All pairs of two packages with 64 cores each, eight cores a cache, as `c2c --matrix` keeps them.
pub fn two_times_64() -> Report {
    let mut lab = Lab::new("AMD EPYC 7763 64-Core Processor", "AuthenticAMD", None);
    lab.packages(2, 64, 1);
    lab.caches = (0..16u32)
        .map(|i| Cache { level: 3, size: Bytes::mib(32), line: Some(64), ways: Some(16), cpus: (i * 8..i * 8 + 8).collect() })
        .collect();
    let mut report = lab.report();
    for (state, more) in [(LineState::Hit, 0.0), (LineState::Hitm, 7.0)] {
        let mut matrix = PairMatrix::new((0..128).collect(), state, None);
        for reader in 0..128u32 {
            for holder in (0..128).filter(|holder| *holder != reader) {
                let near = if reader / 8 == holder / 8 {
                    24.0
                } else if reader / 64 == holder / 64 {
                    112.0
                } else {
                    204.0
                };
                let ns = near + more + f64::from((reader * 7 + holder * 11) % 9) * 0.6;
                let (value, low, high) = (Some(ns), Some(ns * 0.99), Some(ns * 1.01));
                let estimate = memgauge_model::estimate::Estimate { value, ci95_low: low, ci95_high: high, ..Default::default() };
                matrix.set(reader, holder, &estimate, &Quality::default());
            }
        }
        report.matrices.push(matrix);
    }
    report
}

/// Latency by CPU, and bandwidth of 1, 2, 4 … CPUs.
pub fn cpus(cpus: u32) -> Report {
    let mut lab = Lab::new("Example", "ARM", None);
    let packages = if cpus >= 8 { 2 } else { 1 };
    lab.packages(packages, cpus / packages, 1);
    for id in 0..cpus {
        lab.latency_of_cpu(id, id / (cpus / packages), 95.0 + f64::from(id * 13 % 17) * 0.4 + if id == cpus / 3 { 21.0 } else { 0.0 });
    }
    let mut n = 1;
    while n <= cpus {
        let gbs = 900.0 * (1.0 - (-f64::from(n) / f64::from(cpus) * 3.0).exp());
        lab.bandwidth(Experiment::BandwidthRamp, None, None, &format!("0-{}", n - 1), Mix::AllReads, gbs, "load", Rfo::No);
        lab.bandwidth(Experiment::BandwidthRamp, None, None, &format!("0-{}", n - 1), Mix::R2W1, gbs * 0.81, "r1w1", Rfo::Yes);
        n *= 2;
    }
    lab.report()
}

/// A curve of each mix, all with a knee.
pub fn curves(mixes: &[Mix]) -> Report {
    let mut lab = Lab::new("Example", "GenuineIntel", None);
    lab.packages(1, 16, 1);
    for (i, mix) in mixes.iter().enumerate() {
        let less = 1.0 - 0.07 * i as f64;
        let points: Vec<(u32, f64, f64)> = [0.04, 0.17, 0.33, 0.49, 0.66, 0.81, 0.93, 0.985, 1.0, 0.998]
            .into_iter()
            .zip([20_000, 4_000, 1_900, 1_200, 800, 600, 450, 300, 100, 0])
            .map(|(u, delay)| (delay, 245.0 * less * u, 112.0 + 2.0 * i as f64 + 9.0 * u / (1.041 - u)))
            .collect();
        lab.curve(&Curve { cpu: 0, node: 0, cpus: "1-15", mix: *mix, points: &points, knee: Some(600), over_saturated: i == 1 });
    }
    lab.report()
}

/// Everything that several results share a panel for, scaled.
pub fn scaled(by: f64) -> Report {
    let mut report = super::two_nodes();
    for m in &mut report.results {
        let e = &mut m.estimate;
        for v in [&mut e.value, &mut e.ci95_low, &mut e.ci95_high] {
            *v = v.map(|v| v * by);
        }
    }
    for c in &mut report.curves {
        c.peak_gbs = c.peak_gbs.map(|v| v * by);
        if let Some(k) = &mut c.knee {
            k.bandwidth_gbs *= by;
            k.latency_ns *= by;
        }
    }
    report
}
