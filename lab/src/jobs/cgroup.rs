//! Control groups: a cpuset that leaves out CPUs and nodes, little memory, little CPU time, and a cpuset that shrinks while a run goes on.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use memgauge_model::experiment::Experiment;
use memgauge_model::note::Note;
use memgauge_model::plan::Plan;
use memgauge_model::result::{PlacementStatus, Report};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::wording::reasons;

use crate::guest::{self, control_group};
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{is_matrix, lost_only, measured, memgauge, with_result};

pub(crate) const JOB: Job = Job {
    name: "cgroup",
    about: "cpuset, memory.max, cpu.max: nothing outside is planned or touched, nobody is killed",
    optional: false,
    machine: Machine { qemu: super::numa::QEMU, ..PLAIN },
    tests: tests![
        only_what_the_cpuset_allows_is_planned,
        info_says_what_is_allowed,
        latency_matrix_inside,
        bandwidth_matrix_inside,
        pairs_inside,
        a_cpu_outside_is_refused,
        a_node_outside_is_refused,
        a_cpu_without_local_memory,
        buffers_shrink_to_the_memory_limit,
        stamps_are_inside_the_group,
        a_quota_of_cpu_time_is_told,
        a_cpuset_that_shrinks_loses_its_cells_only,
        a_node_that_leaves_the_cpuset_loses_its_cells_only,
    ],
};

const CPUS: &str = "1-2,5";
const NODES: &str = "0,2";
const CPUSET: &[(&str, &str)] = &[("cpuset.cpus", CPUS), ("cpuset.mems", NODES)];

/// The control group that a run is in, and the limits that are set anew for it.
fn group(limits: &[(&str, &str)]) -> Result<std::path::PathBuf> {
    control_group("job", &[CPUSET, &[("memory.max", "max"), ("cpu.max", "max")], limits].concat())
}

/// Nothing that a report says was planned or touched is outside.
fn is_inside(report: &Report) -> Result<()> {
    let (cpus, nodes): (IdSet, IdSet) = (CPUS.parse()?, NODES.parse()?);
    let allowed = &report.machine.allowed;
    ensure!(allowed.cpus == cpus && allowed.nodes == nodes, "allowed: {allowed:?}");
    ensure!(allowed.node_memory.keys().copied().collect::<IdSet>() == nodes, "{:?}", allowed.node_memory);
    is_planned_inside(report.plan.as_ref().context("a report without plan")?)?;
    for m in &report.results {
        let placement = &m.evidence.placement;
        let touched: IdSet = placement.pages_by_node.keys().copied().collect();
        ensure!(touched.is_subset(&nodes), "{:?}: {placement:?}", m.at);
        ensure!(m.estimate.value.is_none() || placement.status == PlacementStatus::Verified, "{:?}: {placement:?}", m.at);
    }
    ensure!(report.environment.core_ghz.keys().all(|&cpu| cpus.contains(cpu)), "{:?}", report.environment.core_ghz);
    Ok(())
}

fn is_planned_inside(plan: &Plan) -> Result<()> {
    let (cpus, nodes): (IdSet, IdSet) = (CPUS.parse()?, NODES.parse()?);
    for work in plan.steps.iter().flat_map(|step| &step.cells).map(|cell| &cell.work) {
        ensure!(work.cpus().is_subset(&cpus), "planned outside: {work:?}");
        for buffer in work.buffers() {
            ensure!(
                nodes.contains(buffer.node) && buffer.touch.is_subset(&cpus) && !buffer.touch.is_empty(),
                "planned outside: {buffer:?}"
            );
        }
    }
    ensure!(plan.keep_awake.is_subset(&cpus), "kept awake: {}", plan.keep_awake);
    Ok(())
}

fn only_what_the_cpuset_allows_is_planned() -> Result<()> {
    // The suite, `loaded` and `c2c` have every kind of work there is.
    for line in ["", "loaded", "c2c --matrix", "bandwidth --ramp", "latency --per-cpu"] {
        is_planned_inside(&memgauge(line).in_group(&group(&[])?).plan()?)?;
    }
    Ok(())
}

fn info_says_what_is_allowed() -> Result<()> {
    let report = memgauge("info").in_group(&group(&[])?).measure()?;
    ensure!(report.machine.topology.cpus.len() == 8 && report.machine.topology.nodes.len() == 4, "the whole machine is shown");
    ensure!(report.machine.allowed.cpus == CPUS.parse()? && report.machine.allowed.nodes == NODES.parse()?, "{:?}", report.machine.allowed);
    has_note(&report.environment.limits, "cpus-not-allowed", &["CPUs 0,3-4,6-7"])?;
    has_note(&report.environment.limits, "nodes-not-allowed", &["nodes 1,3"])?;
    has_note(&report.environment.limits, "no-local-memory", &["CPU 5"])
}

fn has_note(notes: &[Note], code: &str, words: &[&str]) -> Result<()> {
    let note = notes.iter().find(|n| n.code.word() == code).with_context(|| format!("no note {code} among {notes:?}"))?;
    for word in words {
        ensure!(note.message.to_string().contains(word), "'{word}' is missing in {note:?}");
    }
    Ok(())
}

fn latency_matrix_inside() -> Result<()> {
    let report = memgauge("latency --matrix --size 1M --time 30ms").in_group(&group(&[])?).measure()?;
    is_matrix(&report, Experiment::IdleLatency, &"0-1".parse()?, &NODES.parse()?)?;
    is_inside(&report)
}

fn bandwidth_matrix_inside() -> Result<()> {
    let report = memgauge("bandwidth --matrix --size 2M --time 200ms").in_group(&group(&[])?).measure()?;
    is_matrix(&report, Experiment::BandwidthMatrix, &"0-1".parse()?, &NODES.parse()?)?;
    for m in measured(&report)? {
        let row: IdSet = if m.at.cpu_node == Some(0) { "1-2".parse()? } else { "5".parse()? };
        ensure!(m.at.cpus.as_ref() == Some(&row), "{:?}", m.at);
    }
    is_inside(&report)
}

fn pairs_inside() -> Result<()> {
    let report = memgauge("c2c --matrix --size 2M --time 300ms --cpu 1,5").in_group(&group(&[])?).measure()?;
    measured(&report)?;
    is_inside(&report)
}

fn a_cpu_outside_is_refused() -> Result<()> {
    let line = "latency --cpu 1,7 --size 4M --time 40ms";
    memgauge(line).in_group(&group(&[])?).run()?.refused(4, &["CPU 7", CPUS, "cpuset"])
}

fn a_node_outside_is_refused() -> Result<()> {
    let line = "bandwidth --node 1 --size 4M --time 40ms";
    memgauge(line).in_group(&group(&[])?).run()?.refused(4, &["node 1", NODES, "cpuset.mems"])
}

/// CPU 5's own node 1 is not allowed: the nearest allowed one is used, and a note says so.
fn a_cpu_without_local_memory() -> Result<()> {
    let report = memgauge("bandwidth --cpu 5 --size 4M --time 100ms").in_group(&group(&[])?).measure()?;
    let placement = &measured(&report)?[0].evidence.placement;
    // Distances from node 1: 21 to node 0, 28 to node 2.
    ensure!(placement.pages_by_node.keys().copied().collect::<IdSet>() == IdSet::one(0), "{placement:?}");
    has_note(&report.notes, "no-local-memory", &["node 1", "node 0"])?;
    is_inside(&report)
}

/// How often a process of the group was killed for want of memory, or would have been.
fn kills(group: &Path) -> Result<u64> {
    let events = guest::read(group.join("memory.events"))?;
    let count = |name: &str| events.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap_or(0);
    Ok(count("oom ") + count("oom_kill "))
}

fn buffers_shrink_to_the_memory_limit() -> Result<()> {
    let group = group(&[("memory.max", "64M")])?;
    let report = memgauge("bandwidth --cpu 1-2 --time 200ms").in_group(&group).measure()?;
    is_inside(&report)?;
    has_note(&report.notes, "small-buffer", &["memory.max of control group /job", "64 MiB"])?;
    ensure!(report.machine.allowed.room() < Bytes::mib(64).0, "{:?}", report.machine.allowed);
    let evidence = &measured(&report)?[0].evidence;
    ensure!(evidence.buffer >= Bytes::mib(16) && evidence.buffer.0 <= report.machine.allowed.room(), "buffers of {}", evidence.buffer);
    let curve = memgauge("loaded --cpu 1-2 --delay 0 --time 200ms").in_group(&group).measure()?;
    is_inside(&curve)?;
    for m in measured(&curve)? {
        ensure!(m.evidence.buffer.0 <= curve.machine.allowed.room(), "buffers of {}", m.evidence.buffer);
    }
    ensure!(kills(&group)? == 0, "somebody was killed: {}", guest::read(group.join("memory.events"))?);
    Ok(())
}

fn stamps_are_inside_the_group() -> Result<()> {
    let report = with_result("latency --cpu 1 --size 1M --time 100ms").in_group(&group(&[("memory.max", "600M")])?).measure()?;
    is_inside(&report)?;
    let stamps = report.state.as_ref().map(|state| &state.stamps[..]).unwrap_or_default();
    ensure!(stamps.len() == 2, "{stamps:?}");
    let cpus = CPUS.parse::<IdSet>()?;
    ensure!(stamps.iter().flat_map(|stamp| &stamp.probes).all(|probe| probe.cpus.is_subset(&cpus)), "{stamps:?}");
    // Half of what this leaves of memory would not be enough for another buffer.
    let report = with_result("latency --cpu 1 --size 1M --time 100ms").in_group(&group(&[("memory.max", "64M")])?).measure()?;
    ensure!(report.state.is_none() && report.plan.is_some_and(|plan| plan.stamp.is_none()), "a stamp in 64 MiB");
    Ok(())
}

fn a_quota_of_cpu_time_is_told() -> Result<()> {
    let group = group(&[("cpu.max", "50000 100000")])?;
    // Half of a CPU that the host may give to other guests' CPUs: whether anything is measured does not matter.
    let ran = memgauge("latency --cpu 1 --size 1M --time 600ms").in_group(&group).run()?;
    let report = ran.report()?;
    ensure!(report.machine.allowed.cpu_quota == Some(0.5), "{:?}", report.machine.allowed.cpu_quota);
    has_note(&report.notes, "cpu-quota", &["0.50 CPUs"])?;
    is_inside(report)
}

fn a_cpuset_that_shrinks_loses_its_cells_only() -> Result<()> {
    let group = group(&[])?;
    let running = memgauge("latency --cpu 1,2,5 --node 0 --size 1M --time 600ms").in_group(&group).start()?;
    let lost = running.idle_of(&CPUS.parse()?)?;
    let left = CPUS.parse::<IdSet>()?.difference(&IdSet::one(lost));
    guest::write(group.join("cpuset.cpus"), &left.to_string())?;
    let ran = running.wait()?;
    lost_only(&ran, |at| at.cpu == Some(lost), &[&format!("CPU {lost}"), "taken from this process"])?;
    is_inside(ran.report()?)
}

fn a_node_that_leaves_the_cpuset_loses_its_cells_only() -> Result<()> {
    let group = group(&[])?;
    let running = memgauge("latency --matrix --size 1M --time 600ms").in_group(&group).start()?;
    running.idle_of(&CPUS.parse()?)?;
    guest::write(group.join("cpuset.mems"), "0")?;
    let ran = running.wait()?;
    let report = ran.report()?;
    ensure!(ran.status == Some(1) && !report.complete, "{:?}: {}", ran.status, ran.stderr);
    for m in &report.results {
        // The one that was being measured may have been lost or finished; all others of node 2 are lost, all of node 0 are there.
        ensure!(m.at.memory_node() != Some(0) || m.estimate.value.is_some(), "{:?}: {:?}", m.at, m.estimate.not_measured);
    }
    let lost: Vec<String> = report.results.iter().filter_map(|m| m.estimate.not_measured.as_ref()).map(reasons::not_measured).collect();
    ensure!(!lost.is_empty() && lost.iter().all(|why| why.contains("node 2")), "{lost:?}");
    Ok(())
}
