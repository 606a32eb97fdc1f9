//! The health check on a machine with a node that is smaller than its sibling, and against results in which it was faster.
//!
//! An emulated machine's times mean nothing, so what is slower is made so in the result that it is compared with.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use memgauge_core::estimate::Estimate;
use memgauge_core::experiment::{Experiment, Metric};
use memgauge_core::result::{Finding, Health, HealthStatus, Measurement, QualityLevel, Report};

use crate::contract::SHARE;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::memgauge;

pub(crate) const JOB: Job = Job {
    name: "quick",
    about: "a small node, a slow node, and little time: verdicts that are warnings and never false failures",
    optional: false,
    machine: Machine { qemu: QEMU, ..PLAIN },
    tests: tests![a_small_node_is_found, a_slow_node_is_found_and_is_no_failure, an_equal_result_accuses_nobody, time_ends_it],
};

const QEMU: &[&str] = &[
    "-machine q35",
    "-cpu max,vendor=GenuineIntel,+invtsc",
    "-smp 4,sockets=2,dies=1,cores=2,threads=1",
    "-m 768M",
    "-object memory-backend-ram,id=m0,size=512M",
    "-object memory-backend-ram,id=m1,size=256M",
    "-numa node,nodeid=0,memdev=m0",
    "-numa node,nodeid=1,memdev=m1",
    "-numa cpu,node-id=0,socket-id=0",
    "-numa cpu,node-id=1,socket-id=1",
    "-numa dist,src=0,dst=1,val=21",
];

/// A check of small buffers in a short time a cell: of base pages, which a small node always has, so that two runs compare, and with samples
/// for an interval also where half of the bursts do not count.
const QUICK: &str = "quick --size 1M --pages 4k --time 120ms";

/// Checks until one is undisturbed enough to conclude something.
const TRIES: usize = 3;

/// A check's result and verdict, for any exit status.
fn checked(line: &str) -> Result<(Report, Health)> {
    let ran = memgauge(line).run()?;
    let report = ran.report.with_context(|| format!("{line}: no result; {}", ran.stderr))?;
    let health = report.health.clone().context("no verdict")?;
    let status = match health.status {
        HealthStatus::Ok => 0,
        HealthStatus::Warning | HealthStatus::Unknown => 1,
        HealthStatus::Failure => 2,
        HealthStatus::Incident => 3,
        HealthStatus::CouldNotMeasure => 4,
    };
    ensure!(ran.status == Some(status), "exit status {:?} for {:?}", ran.status, health.status);
    // A guest cannot see what its firmware and host do.
    ensure!(health.status != HealthStatus::Failure, "a failure on a virtual machine: {health:?}");
    Ok((report, health))
}

fn finding<'h>(health: &'h Health, code: &str) -> Option<&'h Finding> {
    health.findings.iter().find(|f| f.code == code)
}

/// A result of this machine, changed, as a file to compare with.
fn baseline(name: &str, mut report: Report, change: impl Fn(&mut Estimate, Option<u32>, Metric)) -> Result<PathBuf> {
    report.health = None;
    report.repeats.clear();
    for m in &mut report.results {
        // Its numbers are made up, and nobody compares with one that was unreliable.
        m.quality.level = QualityLevel::Good;
        change(&mut m.estimate, m.at.memory_node(), m.metric);
    }
    let path = Path::new(SHARE).join(name);
    fs::write(&path, serde_json::to_string(&report)?)?;
    Ok(path)
}

/// Every number of an estimate times `factor`, its interval made `spread` wide on either side.
fn scaled(e: &mut Estimate, factor: f64, spread: f64) {
    e.value = e.value.map(|v| v * factor);
    (e.ci95_low, e.ci95_high) = (e.value.map(|v| v * (1.0 - spread)), e.value.map(|v| v * (1.0 + spread)));
}

fn a_small_node_is_found() -> Result<()> {
    let (report, health) = checked(QUICK)?;
    ensure!(report.machine.identity.hypervisor.is_some(), "{:?}", report.machine.identity);
    let small = finding(&health, "node-memory-differs").with_context(|| format!("{health:?}"))?;
    ensure!(small.message.contains("node 1") && small.severity == HealthStatus::Warning && small.advice.is_some(), "{small:?}");
    let found: Vec<Experiment> = report.results.iter().map(|m| m.experiment).collect();
    for experiment in [Experiment::IdleLatency, Experiment::BandwidthMatrix, Experiment::LoadedLatency] {
        ensure!(found.contains(&experiment), "{experiment:?} is missing: {found:?}");
    }
    Ok(())
}

fn a_slow_node_is_found_and_is_no_failure() -> Result<()> {
    let (report, _) = checked(QUICK)?;
    // As if node 1 had had a thousand times its bandwidth: far beyond what an emulator's times wander.
    let before = baseline("fast.json", report, |e, node, metric| match (node, metric) {
        (Some(1), Metric::Bandwidth) => scaled(e, 1000.0, 0.01),
        (_, Metric::Bandwidth) => scaled(e, 0.001, 0.01),
        (_, Metric::Latency) => scaled(e, 1000.0, 0.01),
    })?;
    // An emulated machine shares the host's CPUs: what is measured may be unreliable, and then nothing is concluded from it.
    for _ in 0..TRIES {
        let (report, health) = checked(&format!("{QUICK} --against {}", before.display()))?;
        let slow = |all: &[Measurement]| -> Vec<bool> {
            let slow = all.iter().filter(|m| m.at.memory_node() == Some(1) && m.metric == Metric::Bandwidth);
            slow.map(Measurement::is_reliable).collect()
        };
        let (first, again) = (slow(&report.results), slow(&report.repeats));
        let worse: Vec<&Finding> = health.findings.iter().filter(|f| f.code == "worse-than-baseline").collect();
        ensure!(worse.iter().all(|f| f.message.contains("node 1")), "{health:?}");
        ensure!(worse.iter().all(|f| f.severity == HealthStatus::Warning), "no failure on a virtual machine: {worse:?}");
        // What is suspicious is measured twice more before it counts.
        ensure!(worse.is_empty() || (health.measured_again > 0 && again.len() >= 2), "{} measured again", again.len());
        if !worse.is_empty() {
            return Ok(());
        }
        ensure!(first.iter().chain(&again).any(|reliable| !reliable), "reliable, and not found: {health:?}");
    }
    Ok(())
}

fn an_equal_result_accuses_nobody() -> Result<()> {
    let (report, _) = checked(QUICK)?;
    let before = baseline("slow.json", report, |e, _, metric| scaled(e, if metric == Metric::Bandwidth { 0.001 } else { 1000.0 }, 0.01))?;
    let (_, health) = checked(&format!("{QUICK} --against {}", before.display()))?;
    ensure!(finding(&health, "worse-than-baseline").is_none(), "{health:?}");
    ensure!(health.compared_with.iter().any(|what| what == "baseline"), "{health:?}");
    Ok(())
}

fn time_ends_it() -> Result<()> {
    let begun = Instant::now();
    let (report, health) = checked("quick --size 1M --time 20s --within 6s")?;
    // Two cells of 20 s would be more; an emulator starts slowly.
    ensure!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    ensure!(finding(&health, "left-out").is_some() && !report.complete, "{health:?}");
    Ok(())
}
