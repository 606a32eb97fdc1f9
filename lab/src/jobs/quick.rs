//! The health check on a machine with a node that is smaller than its sibling, and in little time.
//!
//! An emulated machine's times mean nothing, so verdicts on speed are tested on the simulated machine (tests/all/program.rs).

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use memgauge_model::experiment::Experiment;
use memgauge_model::result::{Finding, Health, HealthStatus, Report};

use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::memgauge;

pub(crate) const JOB: Job = Job {
    name: "quick",
    about: "a small node, and little time: verdicts that are warnings and never false failures",
    optional: false,
    machine: Machine { qemu: QEMU, ..PLAIN },
    tests: tests![a_small_node_is_found, time_ends_it],
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

/// A check of small buffers of base pages, which a small node always has, with samples for an interval also where half of the bursts do not
/// count.
const QUICK: &str = "quick --size 1M --pages 4k --time 120ms";

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
    health.findings.iter().find(|f| f.code.word() == code)
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

fn time_ends_it() -> Result<()> {
    let begun = Instant::now();
    let (report, health) = checked("quick --size 1M --time 20s --within 6s")?;
    // Two cells of 20 s would be more; an emulator starts slowly.
    ensure!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    ensure!(finding(&health, "left-out").is_some() && !report.complete, "{health:?}");
    Ok(())
}
