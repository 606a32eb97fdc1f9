//! Two packages of two cores of two threads; four nodes, two of them without CPUs; HMAT; distances of their own.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use memgauge_model::experiment::{Experiment, Metric};
use memgauge_model::plan::{Loading, Work};
use memgauge_model::result::{PlacementStatus, QualityReason, Report, ShareMissed};
use memgauge_model::topology::Topology;
use memgauge_model::units::{Bytes, IdSet};

use crate::guest;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{is_matrix, measured, memgauge, mlc, works};

pub(crate) const JOB: Job = Job {
    name: "numa",
    about: "4 nodes, 2 without CPUs, HMAT: matrices, placement, siblings, LLC domains",
    optional: false,
    machine: Machine { qemu: QEMU, ..PLAIN },
    tests: tests![
        info_shows_nodes_and_distances,
        info_shows_hmat,
        info_shows_cores_and_caches,
        latency_matrix,
        bandwidth_matrix,
        bandwidth_round_robin_over_caches,
        one_thread_per_core,
        loaded,
        loaded_on_other_nodes,
        cache_to_cache,
        all_pairs,
        the_suite,
        files_of_tmpfs_follow_the_nodes,
        the_drop_ins_matrices,
        pages_that_move_are_noticed,
    ],
};

/// Only with an Intel vendor does QEMU's CPU have threads and the caches to share.
pub(crate) const QEMU: &[&str] = &[
    "-machine q35,hmat=on",
    "-cpu max,vendor=GenuineIntel,+invtsc",
    "-smp 8,sockets=2,dies=1,cores=2,threads=2",
    "-m 1536M",
    "-object memory-backend-ram,id=m0,size=512M",
    "-object memory-backend-ram,id=m1,size=512M",
    "-object memory-backend-ram,id=m2,size=256M",
    "-object memory-backend-ram,id=m3,size=256M",
    "-numa node,nodeid=0,memdev=m0,initiator=0",
    "-numa node,nodeid=1,memdev=m1,initiator=1",
    "-numa node,nodeid=2,memdev=m2,initiator=0",
    "-numa node,nodeid=3,memdev=m3,initiator=1",
    "-numa cpu,node-id=0,socket-id=0",
    "-numa cpu,node-id=1,socket-id=1",
    "-numa dist,src=0,dst=1,val=21",
    "-numa dist,src=0,dst=2,val=14",
    "-numa dist,src=0,dst=3,val=28",
    "-numa dist,src=1,dst=2,val=28",
    "-numa dist,src=1,dst=3,val=14",
    "-numa dist,src=2,dst=3,val=31",
    "-numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-latency,latency=80",
    "-numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=140",
    "-numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=access-latency,latency=250",
    "-numa hmat-lb,initiator=0,target=3,hierarchy=memory,data-type=access-latency,latency=310",
    "-numa hmat-lb,initiator=1,target=0,hierarchy=memory,data-type=access-latency,latency=140",
    "-numa hmat-lb,initiator=1,target=1,hierarchy=memory,data-type=access-latency,latency=80",
    "-numa hmat-lb,initiator=1,target=2,hierarchy=memory,data-type=access-latency,latency=310",
    "-numa hmat-lb,initiator=1,target=3,hierarchy=memory,data-type=access-latency,latency=250",
    "-numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=200G",
    "-numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=60G",
    "-numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=access-bandwidth,bandwidth=30G",
    "-numa hmat-lb,initiator=0,target=3,hierarchy=memory,data-type=access-bandwidth,bandwidth=20G",
    "-numa hmat-lb,initiator=1,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=60G",
    "-numa hmat-lb,initiator=1,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=200G",
    "-numa hmat-lb,initiator=1,target=2,hierarchy=memory,data-type=access-bandwidth,bandwidth=20G",
    "-numa hmat-lb,initiator=1,target=3,hierarchy=memory,data-type=access-bandwidth,bandwidth=30G",
];

/// The distances given to QEMU; 10 from a node to itself.
fn distance(from: u32, to: u32) -> u32 {
    match (from.min(to), from.max(to)) {
        (a, b) if a == b => 10,
        (0, 1) => 21,
        (0, 2) | (1, 3) => 14,
        (2, 3) => 31,
        _ => 28,
    }
}

fn topology() -> Result<Topology> {
    Ok(memgauge("info").measure()?.machine.topology)
}

fn info_shows_nodes_and_distances() -> Result<()> {
    let topology = topology()?;
    let cpus: Vec<IdSet> = topology.nodes.iter().map(|n| n.cpus.clone()).collect();
    ensure!(cpus == ["0-3".parse()?, "4-7".parse()?, IdSet::new(), IdSet::new()], "CPUs by node: {cpus:?}");
    for node in &topology.nodes {
        ensure!(node.distances == (0..4).map(|to| (to, distance(node.id, to))).collect(), "{:?}", node.distances);
        // What the kernel keeps of the 256 and 512 MiB differs from node to node.
        let whole = if node.id < 2 { Bytes::mib(512) } else { Bytes::mib(256) };
        let memory = node.stated_bytes();
        ensure!(memory <= whole.0 && memory > whole.0 * 3 / 4, "memory of node {}: {:?}", node.id, node.memory);
    }
    Ok(())
}

fn info_shows_hmat() -> Result<()> {
    // The kernel shows the figures of the best initiators only.
    let expected = [(0, 0, 80, 200), (1, 1, 80, 200), (2, 0, 250, 30), (3, 1, 250, 30)];
    let topology = topology()?;
    for (node, initiator, ns, gib) in expected {
        let node = topology.node(node).context("a node is missing")?;
        ensure!(node.hmat.iter().map(|h| h.class).collect::<Vec<_>>() == [0, 1], "classes: {:?}", node.hmat);
        for access in &node.hmat {
            ensure!(access.initiators == IdSet::one(initiator), "node {}: {access:?}", node.id);
            ensure!((access.read_latency_ns, access.write_latency_ns) == (Some(ns), Some(ns)), "node {}: {access:?}", node.id);
            ensure!(access.read_bandwidth_mbs == Some(gib * 1024), "node {}: {access:?}", node.id);
        }
    }
    Ok(())
}

fn info_shows_cores_and_caches() -> Result<()> {
    let topology = topology()?;
    ensure!(topology.packages() == "0-1".parse()? && topology.smt_active == Some(true), "{topology:?}");
    for cpu in &topology.cpus {
        let first = cpu.id / 2 * 2;
        ensure!(cpu.siblings == [first, first + 1].into_iter().collect() && cpu.package == cpu.id / 4, "{cpu:?}");
        let sharers: Vec<(u8, usize)> = topology.cpu_caches(cpu.id).map(|c| (c.level, c.cpus.len())).collect();
        ensure!(sharers == [(1, 1), (2, 2), (3, 4)], "who shares the caches of CPU {}: {sharers:?}", cpu.id);
    }
    Ok(())
}

fn latency_matrix() -> Result<()> {
    let report = memgauge("latency --matrix --size 1M --time 30ms").measure()?;
    is_matrix(&report, Experiment::IdleLatency, &"0-1".parse()?, &"0-3".parse()?)?;
    for m in measured(&report)? {
        let row = m.at.cpu_node.context("no row")?;
        ensure!(report.machine.topology.cpu(m.at.cpu.context("no CPU")?).is_some_and(|c| c.node == row), "{:?}", m.at);
    }
    firmware_beside(&report, |ns| [80.0, 250.0].contains(&ns))
}

fn bandwidth_matrix() -> Result<()> {
    let report = memgauge("bandwidth --matrix --size 2M --time 250ms").measure()?;
    is_matrix(&report, Experiment::BandwidthMatrix, &"0-1".parse()?, &"0-3".parse()?)?;
    for m in measured(&report)? {
        let row: IdSet = if m.at.cpu_node == Some(0) { "0-3".parse()? } else { "4-7".parse()? };
        ensure!(m.at.cpus.as_ref() == Some(&row) && m.evidence.threads == 4, "{:?}", m.at);
    }
    // 200 and 30 GiB/s, which the kernel gives in MiB/s and calls MB/s.
    firmware_beside(&report, |gbs| [204.8, 30.72].contains(&gbs))
}

/// The value that firmware claims stands beside the measured one if firmware claims any, which it does for the best initiators only.
fn firmware_beside(report: &Report, right: impl Fn(f64) -> bool) -> Result<()> {
    for m in measured(report)? {
        let best = m.at.memory_node().map(|n| n % 2) == m.at.cpu_node;
        ensure!(m.firmware.is_some() == best && m.firmware.is_none_or(&right), "{:?}: firmware {:?}", m.at, m.firmware);
    }
    Ok(())
}

/// The CPUs of the loaders, as the plan adds them.
fn loaders(report: &Report) -> Result<Vec<u32>> {
    let work = works(report)?.next().context("a plan without cells")?;
    let Work::Bandwidth(Loading { loaders, .. }) = work else { anyhow::bail!("{work:?}") };
    Ok(loaders.iter().map(|l| l.cpu).collect())
}

fn bandwidth_round_robin_over_caches() -> Result<()> {
    let report = memgauge("bandwidth --size 1M --time 400ms").measure()?;
    let order = loaders(&report)?;
    // Packages in turn, first threads before second ones.
    ensure!(order == [0, 4, 2, 6, 1, 5, 3, 7], "order of loaders: {order:?}");
    let placement = &measured(&report)?[0].evidence.placement;
    let nodes: IdSet = placement.pages_by_node.keys().copied().collect();
    ensure!(placement.status == PlacementStatus::Verified && nodes == "0-1".parse()?, "each CPU its own node: {placement:?}");
    Ok(())
}

fn one_thread_per_core() -> Result<()> {
    let report = memgauge("bandwidth --one-thread-per-core --size 1M --time 240ms").measure()?;
    ensure!(loaders(&report)? == [0, 4, 2, 6], "{:?}", loaders(&report)?);
    ensure!(measured(&report)?[0].evidence.threads == 4, "{:?}", report.results[0].evidence);
    Ok(())
}

fn loaded() -> Result<()> {
    let report = memgauge("loaded --node 2 --size 4M --delay 5000 --time 400ms").measure()?;
    for m in measured(&report)? {
        let nodes: IdSet = m.evidence.placement.pages_by_node.keys().copied().collect();
        ensure!(m.evidence.placement.status == PlacementStatus::Verified && nodes == IdSet::one(2), "{:?}", m.evidence.placement);
        // The sibling of the CPU that chases stays idle.
        ensure!(m.at.cpu == Some(0) && m.at.cpus == Some("2-7".parse()?), "{:?}", m.at);
    }
    Ok(())
}

/// The chase stays on node 0 while the memory of others is loaded.
fn loaded_on_other_nodes() -> Result<()> {
    for (nodes, cpus) in [("1", "4-7"), ("2", "2-3"), ("1,3", "4-7"), ("1-2", "2-7")] {
        let report = memgauge(&format!("loaded --load-node {nodes} --at 50% --size 1M --delay 0,5000 --time 240ms")).measure()?;
        for m in measured(&report)? {
            let placement = &m.evidence.placement;
            let on: IdSet = placement.pages_by_node.keys().copied().collect();
            let expected = IdSet::one(0).union(&nodes.parse()?);
            ensure!(placement.status == PlacementStatus::Verified && on == expected, "--load-node {nodes}: {placement:?}");
            ensure!(m.at.memory_node() == Some(0) && m.at.load_nodes == Some(nodes.parse()?), "{:?}", m.at);
            ensure!(m.at.cpu == Some(0) && m.at.cpus == Some(cpus.parse()?), "--load-node {nodes}: {:?}", m.at);
        }
        let shares = &report.curves.first().context("no curve")?.shares;
        // Under emulation few points are reliable, in latency and in bandwidth, and a share is one of these.
        let results = measured(&report)?;
        let delays = |metric: Metric| -> BTreeSet<Option<u32>> {
            results.iter().filter(|m| m.metric == metric && m.is_reliable()).map(|m| m.at.delay_cycles).collect()
        };
        let reliable = !delays(Metric::Latency).is_disjoint(&delays(Metric::Bandwidth));
        let unknown = (shares.len() == 1).then(|| shares[0].missed == Some(ShareMissed::NothingReliable));
        ensure!(unknown == Some(!reliable) && shares[0].latency.value.is_some() == reliable, "{shares:?}");
    }
    Ok(())
}

fn cache_to_cache() -> Result<()> {
    let report = memgauge("c2c --size 4M --time 300ms").measure()?;
    let pairs: IdSet = measured(&report)?.iter().filter_map(|m| m.at.holder_cpu).collect();
    // The sibling, another core of the package, a core of the other package.
    ensure!(pairs == [1, 2, 4].into_iter().collect(), "holders: {pairs}");
    let homes: IdSet = measured(&report)?.iter().filter(|m| m.at.holder_cpu == Some(4)).filter_map(|m| m.at.memory_node()).collect();
    ensure!(homes == "0-1".parse()?, "homes of lines between packages: {homes}");
    Ok(())
}

/// Every two CPUs both ways, in each state, whether or not pairs are measured at once here; each reader's lines at home on its own node.
fn all_pairs() -> Result<()> {
    let report = memgauge("c2c --matrix --size 1M --time 150ms").measure()?;
    let results = measured(&report)?;
    let once: Vec<_> = report.results.iter().map(|m| (m.at.cpu, m.at.holder_cpu, m.at.state)).collect();
    let pairs: BTreeSet<_> = once.iter().copied().collect();
    ensure!(once.len() == 8 * 7 * 2 && pairs.len() == once.len(), "{} results, {} different ones", once.len(), pairs.len());
    ensure!(pairs.iter().all(|(reader, holder, _)| reader != holder), "a CPU is its own partner");
    for m in &results {
        let home = m.at.cpu.and_then(|cpu| report.machine.topology.cpu(cpu)).map(|c| c.node);
        ensure!(m.at.memory_node() == home && m.evidence.placement.status == PlacementStatus::Verified, "{:?}", m.at);
    }
    let told = |code: &str| report.notes.iter().any(|n| n.code.word() == code);
    ensure!(told("pairs-at-once") || told("pairs-one-by-one"), "no note says how pairs were measured: {:?}", report.notes);
    Ok(())
}

/// Everything once, from a CPU of each package: each experiment is there, and every cell is on the node planned.
fn the_suite() -> Result<()> {
    let report = memgauge("--cpu 0,4 --node 0,3 --mix all-reads --size 1M --time 60ms").measure()?;
    let found: BTreeSet<Experiment> = measured(&report)?.iter().map(|m| m.experiment).collect();
    use Experiment as E;
    let all = [E::IdleLatency, E::Bandwidth, E::BandwidthMatrix, E::LoadedLatency, E::CacheToCache];
    ensure!(found == all.into_iter().collect() && !report.curves.is_empty(), "{found:?}");
    for m in report.measurements() {
        ensure!(m.evidence.placement.status == PlacementStatus::Verified, "{:?}: {:?}", m.at, m.evidence.placement);
    }
    ensure!(!report.repeats.is_empty(), "no control of drift");
    Ok(())
}

/// Somebody migrates the pages of the process while it measures.
fn pages_that_move_are_noticed() -> Result<()> {
    let running = memgauge("bandwidth --cpu 0 --node 0 --size 16M --pages 4k --time 1s").start()?;
    running.until("its buffer is there", |id| resident(id) > Bytes::mib(16).0)?;
    std::thread::sleep(Duration::from_millis(300));
    // It takes seconds on an emulated machine, and the thread that measures waits meanwhile.
    guest::migrate_pages(running.id(), 0, 1)?;
    let report = running.wait()?.report.context("no result")?;
    let [m] = &measured(&report)?[..] else { anyhow::bail!("one result expected") };
    ensure!(m.evidence.placement.status == PlacementStatus::Wrong, "{:?}", m.evidence.placement);
    ensure!(m.quality.reasons.contains(&QualityReason::PlacementWrong), "{:?}", m.quality);
    Ok(())
}

fn resident(id: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{id}/statm")).unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).map_or(0, |pages| pages * 4096)
}

/// Memory policies bind pages of tmpfs as they bind others.
fn files_of_tmpfs_follow_the_nodes() -> Result<()> {
    guest::mount("tmpfs", "/tmp/tmpfs", "tmpfs", "size=100m")?;
    let report = memgauge("latency --matrix --cpu 0 --order window-local --size 1M --time 20ms --memory-dir /tmp/tmpfs").measure()?;
    is_matrix(&report, Experiment::IdleLatency, &"0".parse()?, &"0-3".parse()?)?;
    ensure!(measured(&report)?.iter().all(|m| m.evidence.file.is_some()), "no file is told of");
    Ok(())
}

/// Nodes without CPUs have columns but no rows; rows begin with their node's number and every cell is a number.
fn the_drop_ins_matrices() -> Result<()> {
    for (line, columns) in
        [("--latency_matrix -e -r -t0.03 -b1m", 4), ("--bandwidth_matrix -t0.1 -b1m", 4), ("--c2c_latency -t0.1 -b1m", 2)]
    {
        let text = mlc(line)?;
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|l| l.trim_start().starts_with(|c: char| c.is_ascii_digit()))
            .map(|l| l.split_whitespace().collect())
            .collect();
        // Transfers have a matrix for each home of the lines.
        ensure!(rows.len() == if columns == 4 { 2 } else { 4 }, "{text}");
        for (index, row) in rows.iter().enumerate() {
            let node = index % 2;
            ensure!(row.len() == columns + 1 && row[0] == node.to_string(), "row {index}: {row:?}\n{text}");
            for (column, cell) in row[1..].iter().enumerate() {
                let diagonal = columns == 2 && column == node;
                ensure!(if diagonal { *cell == "-" } else { cell.parse::<f64>().is_ok_and(|v| v > 0.0) }, "{cell}\n{text}");
            }
        }
    }
    Ok(())
}
