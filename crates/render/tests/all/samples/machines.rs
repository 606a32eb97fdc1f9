//! Machines of any size, for figures.

use memgauge_core::experiment::{Experiment, LineState, MemoryPlace};
use memgauge_core::result::Report;
use memgauge_core::topology::Cache;
use memgauge_core::traffic::{Mix, Rfo};
use memgauge_core::units::Bytes;

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

/// Every pair of CPUs, two threads a core, eight cores a cache, half of the CPUs in each of two packages.
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
    let halves = |p: u32| lab.cpus.iter().filter(|c| c.package == p).map(|c| c.id).collect::<memgauge_core::units::IdSet>().to_string();
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
            let mut m = template.clone();
            m.at.cpu = Some(reader);
            m.at.holder_cpu = Some(holder);
            m.at.cpu_node = Some(u32::from(reader * 2 >= cpus));
            m.at.memory = m.at.cpu_node.map(MemoryPlace::Node);
            m.estimate.value = Some(ns);
            report.results.push(m);
        }
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
