//! The caller's memory policy, as `numactl` sets it: every command's buffers are where it says, page by page, and matrices keep all nodes.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};
use memgauge_model::experiment::Experiment;
use memgauge_model::policy::PolicyMode;
use memgauge_model::result::{PlacementStatus, Report};
use memgauge_model::units::IdSet;

use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{Memgauge, drop_in, is_matrix, measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "inherited",
    about: "started under numactl's policies: bind, prefer, interleave; all commands, numa_maps page by page",
    optional: false,
    machine: Machine { qemu: super::hugepages::QEMU, kernel: &["numa_balancing=disable"], ..PLAIN },
    tests: tests![
        bound_to_a_node_without_cpus,
        bound_to_another_nodes_memory,
        preferred,
        interleaved,
        the_drop_in_bound,
        the_drop_in_interleaved,
        options_and_matrices_name_nodes,
    ],
};

/// linux/mempolicy.h.
const PREFERRED: libc::c_int = 1;
const BIND: libc::c_int = 2;
const INTERLEAVE: libc::c_int = 3;

/// Buffers of 4 MiB, or twice that where a mix writes, in base pages.
const BUFFER_PAGES: [u64; 2] = [1024, 2048];

/// Command lines that allocate, each with the number of buffers that it has at a time.
const COMMANDS: [(&str, usize); 7] = [
    ("latency --cpu 0 --size 4M --time 200ms", 1),
    ("bandwidth --cpu 0,2 --size 4M --time 200ms", 2),
    ("loaded --cpu 0-1 --size 4M --delay 0 --time 200ms", 2),
    ("c2c --cpu 0,2 --size 4M --time 300ms", 1),
    ("sweep --cpu 0 --min 1M --max 4M --points-per-octave 1 --time 100ms", 1),
    ("stream 4M --passes 40", 1),
    ("chase 4M --passes 4", 1),
];

/// The pages by node of every mapping of a process that is as large as a buffer, from numa_maps. Pages of the program's own file are where the
/// page cache has them.
fn buffers(id: u32) -> Vec<BTreeMap<u32, u64>> {
    let maps = fs::read_to_string(format!("/proc/{id}/numa_maps")).unwrap_or_default();
    let pages = |line: &str| -> BTreeMap<u32, u64> {
        let by_node = |word: &str| Some((word.strip_prefix('N')?.split_once('=')?.0.parse().ok()?, word.split_once('=')?.1.parse().ok()?));
        line.split(' ').filter_map(by_node).collect()
    };
    maps.lines().filter(|line| !line.contains(" file=")).map(pages).filter(|pages| BUFFER_PAGES.contains(&pages.values().sum())).collect()
}

/// Runs a command under a policy until it has `at_a_time` buffers, and to its end. All of their pages are on `nodes`, on several in equal parts.
fn follows(command: Memgauge, (mode, nodes): (libc::c_int, &IdSet), what: &str, at_a_time: usize) -> Result<(String, Option<Report>)> {
    let mask = nodes.iter().fold(0, |mask, node| mask | 1 << node);
    let running = command.under_policy(mode, mask).start()?;
    let mut found = Vec::new();
    // Pages of a turn are taken node by node, so that a new buffer is on the first of them for a moment.
    running.until(what, |id| {
        found = buffers(id).into_iter().filter(|pages| pages.len() >= nodes.len()).collect();
        found.len() >= at_a_time
    })?;
    let ran = running.wait()?;
    ensure!(ran.status == Some(0), "{what}: exit status {:?}: {}", ran.status, ran.stderr);
    for pages in &found {
        ensure!(pages.keys().copied().collect::<IdSet>() == *nodes, "{what}: {pages:?} instead of {nodes}");
        let (least, most) = (pages.values().min().context("no page")?, pages.values().max().context("no page")?);
        // A turn is a huge page.
        ensure!(nodes.len() == 1 || most - least <= 512, "{what}: {pages:?}");
    }
    Ok((ran.stderr, ran.report))
}

fn all_follow(mode: libc::c_int, rule: PolicyMode, nodes: &str) -> Result<()> {
    let nodes: IdSet = nodes.parse()?;
    for (line, at_a_time) in COMMANDS {
        let (_, report) = follows(memgauge(line), (mode, &nodes), line, at_a_time)?;
        let report = report.context("no result")?;
        let policy = report.machine.allowed.memory_policy.as_ref().context("the policy is not known")?;
        ensure!(policy.mode == rule && policy.nodes == nodes, "{policy:?}");
        for m in measured(&report)? {
            let placement = &m.evidence.placement;
            ensure!(placement.status == PlacementStatus::Verified, "{line}: {:?}: {placement:?}", m.at);
            ensure!(placement.pages_by_node.keys().copied().collect::<IdSet>() == nodes, "{line}: {placement:?}");
        }
    }
    Ok(())
}

fn bound_to_a_node_without_cpus() -> Result<()> {
    all_follow(BIND, PolicyMode::Bind, "2")
}

fn bound_to_another_nodes_memory() -> Result<()> {
    let line = "bandwidth --cpu 0 --size 4M --time 200ms";
    follows(memgauge(line), (BIND, &IdSet::one(1)), line, 1).map(drop)
}

fn preferred() -> Result<()> {
    let line = "bandwidth --cpu 0,2 --size 4M --time 200ms";
    follows(memgauge(line), (PREFERRED, &IdSet::one(1)), line, 2).map(drop)
}

fn interleaved() -> Result<()> {
    all_follow(INTERLEAVE, PolicyMode::Interleave, "0,2")
}

/// The lines of public scripts, with smaller buffers and shorter times.
const LINES: [(&str, usize); 4] = [
    ("--idle_latency -c0 -b4m -t0.3", 1),
    ("--loaded_latency -R -d0 -b4m -t0.3 -k0-3", 3),
    ("--loaded_latency -T -R -d0 -b4m -t0.3", 2),
    ("--peak_injection_bandwidth -k0-3 -b4m -t0.3", 4),
];

fn the_drop_in_follows(mode: libc::c_int, nodes: &str, words: &str) -> Result<()> {
    for (line, at_a_time) in LINES {
        let (stderr, _) = follows(drop_in(line), (mode, &nodes.parse()?), line, at_a_time)?;
        ensure!(stderr.contains(words), "{line}: {stderr}");
    }
    Ok(())
}

fn the_drop_in_bound() -> Result<()> {
    the_drop_in_follows(BIND, "2", "bind to node 2")
}

fn the_drop_in_interleaved() -> Result<()> {
    the_drop_in_follows(INTERLEAVE, "0-1", "interleave over nodes 0-1")
}

fn options_and_matrices_name_nodes() -> Result<()> {
    let bound = |line: &str| memgauge(line).under_policy(BIND, 1 << 2);
    let report = bound("latency --matrix --cpu 0 --size 2M --time 40ms").measure()?;
    is_matrix(&report, Experiment::IdleLatency, &"0".parse()?, &"0-2".parse()?)?;
    let report = bound("bandwidth --cpu 0 --node 1 --size 2M --time 120ms").measure()?;
    ensure!(measured(&report)?.iter().all(|m| m.at.memory_node() == Some(1)), "{:?}", report.results);
    // The child is bound to node 2, and -j names node 1.
    let running = drop_in("--loaded_latency -T -j1 -R -d0 -b4m -t0.3 -k0").under_policy(BIND, 1 << 2).start()?;
    let mut found = Vec::new();
    running.until("its buffer is there", |id| {
        found = buffers(id);
        !found.is_empty()
    })?;
    ensure!(found.iter().all(|pages| pages.keys().eq([&1])), "{found:?}");
    let ran = running.wait()?;
    ensure!(ran.status == Some(0), "{:?}: {}", ran.status, ran.stderr);
    Ok(())
}
