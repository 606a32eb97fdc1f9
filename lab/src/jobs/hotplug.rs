//! Memory that comes and goes while it is measured: blocks of a module that the machine can plug in and out.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memgauge_model::experiment::Experiment;
use memgauge_model::result::{Measurement, PlacementStatus, QualityLevel};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::wording::reasons;

use crate::guest;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::memory::{blocks, set_block};
use crate::program::{PATIENCE, Ran, Running, is_matrix, measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "hotplug",
    about: "blocks of a node's memory that go and come in the middle of runs, and a module that is pulled",
    optional: false,
    machine: Machine { qemu: QEMU, kernel: &["numa_balancing=disable"], ..PLAIN },
    tests: tests![
        comes_online_in_the_middle,
        a_part_goes_and_the_rest_has_room,
        all_of_it_goes_and_its_cells_are_lost,
        all_of_it_goes_while_it_is_touched,
        all_of_it_goes_and_comes_back,
        a_part_goes_under_a_scan,
        the_module_is_pulled_in_the_middle,
    ],
};

/// A node with CPUs, and one of a module of memory: two blocks, which no page of the kernel's own is in.
const QEMU: &[&str] = &[
    "-machine q35",
    "-cpu max,vendor=GenuineIntel",
    "-smp 2",
    "-m 768M,slots=2,maxmem=4G",
    "-object memory-backend-ram,id=m0,size=768M",
    "-object memory-backend-ram,id=m1,size=256M",
    "-numa node,nodeid=0,memdev=m0,cpus=0-1",
    "-numa node,nodeid=1",
    "-numa dist,src=0,dst=1,val=17",
    "-device pc-dimm,id=dimm1,memdev=m1,node=1",
];

/// The node of the module.
const NODE: u32 = 1;

/// Sets all blocks of the module. The kernel may have put some of them online by itself.
fn set_all(online: bool) -> Result<()> {
    for (block, _) in blocks(NODE)?.into_iter().filter(|(_, is)| *is != online) {
        set_block(block, online)?;
    }
    // The kernel adds the node to what processes may use a moment after its memory is online, and memgauge refuses the node until then.
    let deadline = Instant::now() + PATIENCE;
    while online && !mems_allowed()?.contains(NODE) {
        ensure!(Instant::now() < deadline, "node {NODE} is online, and processes may not use it: {}", mems_allowed()?);
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The nodes that this process may use, and with it those that it starts.
fn mems_allowed() -> Result<IdSet> {
    let status = guest::read("/proc/self/status")?;
    let nodes = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:")).context("no Mems_allowed_list")?;
    Ok(nodes.trim().parse()?)
}

/// The state of one of the module's blocks.
fn first() -> Result<u32> {
    blocks(NODE)?.into_keys().next().context("node 1 has no blocks")
}

/// Waits until it has touched this much on the node of the module.
fn uses_the_node(running: &Running, bytes: u64) -> Result<()> {
    running.until("it has its buffers on node 1", |id| bytes_on_the_node(id) >= bytes)
}

/// Bytes of a process on the node of the module.
fn bytes_on_the_node(id: u32) -> u64 {
    let maps = std::fs::read_to_string(format!("/proc/{id}/numa_maps")).unwrap_or_default();
    4096 * maps.split_whitespace().filter_map(|word| word.strip_prefix("N1=")?.parse::<u64>().ok()).sum::<u64>()
}

/// Whether a process has told the kernel of memory that is to be on the node of the module.
fn has_a_rule_for_the_node(id: u32) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{id}/numa_maps")).unwrap_or_default();
    maps.split_whitespace().any(|word| ["prefer:1", "bind:1"].contains(&word))
}

/// All pages of it are on the node that was asked for.
fn is_there(m: &Measurement, node: u32) -> bool {
    let placement = &m.evidence.placement;
    let nodes: IdSet = placement.pages_by_node.keys().copied().collect();
    placement.status == PlacementStatus::Verified && nodes == IdSet::one(node)
}

/// Every value was measured on the node that it states, or is marked as not verified.
fn every_number_is_honest(ran: &Ran) -> Result<()> {
    for m in ran.report()?.measurements().filter(|m| m.estimate.value.is_some()) {
        let flagged = m.quality.level != QualityLevel::Good && m.evidence.placement.status != PlacementStatus::Verified;
        ensure!(
            m.at.memory_node().is_some_and(|node| is_there(m, node)) || flagged,
            "{:?}: {:?} {:?}",
            m.at,
            m.quality,
            m.evidence.placement
        );
    }
    Ok(())
}

/// Cells that began after the node had gone are lost, with that reason; those that began while the kernel was still emptying it found nothing
/// free there.
fn some_are_lost_with_the_node(ran: &Ran) -> Result<()> {
    let names_it = |text: &str| text.contains("memory node 1 went offline") || text.contains("node 1 has 0 MiB free");
    let whys = ran.report()?.measurements().filter_map(|m| m.estimate.not_measured.as_ref()).map(reasons::not_measured);
    let whys: Vec<String> = whys.collect();
    ensure!(!whys.is_empty(), "no cell is lost: {}", ran.stderr);
    ensure!(whys.iter().all(|why| names_it(why)), "{whys:?}");
    // Status 4 where all of them are.
    ensure!(matches!(ran.status, Some(1 | 4)) && names_it(&ran.stderr), "exit status {:?}: {}", ran.status, ran.stderr);
    ensure!(!ran.report()?.complete && ran.report()?.incomplete.is_some(), "{:?}", ran.report()?.incomplete);
    Ok(())
}

/// A run that does not know of the node goes on without it, and the next one has it.
fn comes_online_in_the_middle() -> Result<()> {
    set_all(false)?;
    memgauge("latency --node 1 --size 4M").run()?.refused(64, &["node 1"])?;
    let running = memgauge("bandwidth --matrix --size 8M --time 600ms").start()?;
    running.until("it measures", |_| !running.workers().is_empty())?;
    set_all(true)?;
    let ran = running.within(PATIENCE)?;
    ensure!(ran.status == Some(0), "exit status {:?}: {}", ran.status, ran.stderr);
    is_matrix(ran.report()?, Experiment::BandwidthMatrix, &IdSet::one(0), &IdSet::one(0))?;
    let machine = memgauge("info").measure()?.machine;
    let node = machine.topology.node(NODE).context("no node 1")?;
    ensure!(node.memory == Some(Bytes::mib(256)) && machine.allowed.nodes.contains(NODE), "{node:?} {:?}", machine.allowed);
    is_matrix(
        &memgauge("bandwidth --matrix --size 8M --time 100ms").measure()?,
        Experiment::BandwidthMatrix,
        &IdSet::one(0),
        &"0-1".parse()?,
    )
}

/// The kernel moves pages of the block to another node, though there is room on their own. The cell that ran says so, and the next ones are
/// on the node again.
fn a_part_goes_and_the_rest_has_room() -> Result<()> {
    let running = memgauge("bandwidth --cpu 0-1 --node 1 --mix all-reads,1:1,copy,fill --size 16M --time 800ms").start()?;
    let gone = uses_the_node(&running, 32 << 20).and_then(|()| set_block(first()?, false));
    let ran = running.within(PATIENCE)?;
    gone?;
    ensure!(ran.status == Some(0) && ran.report()?.complete, "exit status {:?}: {}", ran.status, ran.stderr);
    measured(ran.report()?)?;
    every_number_is_honest(&ran)?;
    let last = ran.report()?.results.last().context("no results")?;
    ensure!(is_there(last, NODE), "{:?}: {:?}", last.at, last.evidence.placement);
    let node = memgauge("info").measure()?.machine.topology.node(NODE).context("no node 1")?.clone();
    ensure!(node.memory == Some(Bytes::mib(128)), "{node:?}");
    set_block(first()?, true)
}

/// The kernel moves the pages to node 0. The cell that ran says so, and those after it are not measured elsewhere.
fn all_of_it_goes_and_its_cells_are_lost() -> Result<()> {
    for line in [
        "bandwidth --cpu 0-1 --node 1 --mix all-reads,1:1,copy --size 8M --time 700ms",
        "latency --cpu 0,1 --node 1 --size 8M --time 1s",
        "bandwidth --matrix --one-thread-per-core --mix all-reads,1:1,copy --size 8M --time 500ms",
    ] {
        let running = memgauge(line).start()?;
        let gone = uses_the_node(&running, 8 << 20).and_then(|()| set_all(false));
        let ran = running.within(PATIENCE).with_context(|| line.to_owned())?;
        gone.with_context(|| format!("{line}: exit status {:?}: {}", ran.status, ran.stderr))?;
        set_all(true)?;
        every_number_is_honest(&ran).context(line)?;
        some_are_lost_with_the_node(&ran).context(line)?;
    }
    Ok(())
}

/// The node goes while only a part of a buffer is touched: the kernel does not kill the process for want of a page on it, and results are kept.
fn all_of_it_goes_while_it_is_touched() -> Result<()> {
    const BYTES: u64 = 96 << 20;
    // If it is stopped too late, when all of the buffer is touched, it is tried again. Touching takes longest with small pages.
    for _ in 0..10 {
        let running = memgauge("latency --matrix --size 96M --time 100ms --pages 4k").start()?;
        let deadline = Instant::now() + PATIENCE;
        // A mapping has its rule before any of it is touched.
        while !has_a_rule_for_the_node(running.id()) {
            ensure!(Instant::now() < deadline, "it has no buffer for node 1");
            std::thread::sleep(Duration::from_millis(1));
        }
        running.stop(true)?;
        let touched = bytes_on_the_node(running.id());
        let gone = set_all(false);
        running.stop(false)?;
        let ran = running.within(PATIENCE)?;
        gone?;
        set_all(true)?;
        if touched >= BYTES {
            continue;
        }
        every_number_is_honest(&ran)?;
        some_are_lost_with_the_node(&ran)?;
        let kept = ran.report()?.results.iter().find(|m| m.at.memory_node() == Some(0)).context("no cell of node 0")?;
        ensure!(kept.estimate.value.is_some(), "{:?}", kept.estimate);
        return Ok(());
    }
    bail!("it was never stopped before all of its buffer was touched")
}

/// Buffers that the kernel has moved to node 0 are not taken for those of node 1 once that is back.
fn all_of_it_goes_and_comes_back() -> Result<()> {
    let running = memgauge("bandwidth --cpu 0 --node 1 --mix all-reads,1:1,copy,fill --size 8M --time 700ms").start()?;
    let gone = uses_the_node(&running, 8 << 20).and_then(|()| set_all(false));
    let back = set_all(true);
    let ran = running.within(PATIENCE)?;
    gone.and(back)?;
    every_number_is_honest(&ran)?;
    let last = ran.report()?.results.last().context("no results")?;
    ensure!(is_there(last, NODE), "{:?}: {:?}", last.at, last.evidence.placement);
    Ok(())
}

/// A scan holds most of the node: what does not fit in the rest of it goes to node 0, and no word of it changes on the way.
fn a_part_goes_under_a_scan() -> Result<()> {
    let running = memgauge("scan --node 1 --size 160M --region 8M --passes 6 --integrity --patterns random").start()?;
    let gone = uses_the_node(&running, 150 << 20).and_then(|()| set_block(first()?, false));
    let ran = running.within(PATIENCE)?;
    gone?;
    set_all(true)?;
    ensure!(ran.status == Some(0), "exit status {:?}: {}", ran.status, ran.stderr);
    every_number_is_honest(&ran)?;
    for m in &ran.report()?.results {
        let integrity = m.evidence.integrity.as_ref().context("nothing was compared")?;
        ensure!((integrity.patterns, integrity.mismatches) == (integrity.patterns_planned, 0), "{:?}: {integrity:?}", m.at);
    }
    let elsewhere = ran.report()?.results.iter().filter(|m| !is_there(m, NODE)).count();
    ensure!(elsewhere > 0 && elsewhere < ran.report()?.results.len(), "{elsewhere} regions elsewhere");
    Ok(())
}

/// The firmware's way of taking a module out, which takes the node away as well.
fn the_module_is_pulled_in_the_middle() -> Result<()> {
    let device = std::fs::read_dir("/sys/bus/acpi/devices")?.filter_map(|entry| Some(entry.ok()?.path()));
    let device = device.filter(|path| path.to_string_lossy().contains("PNP0C80")).find(|path| path.join("eject").exists());
    let device = device.context("no module of memory that can be ejected")?;
    let running = memgauge("bandwidth --cpu 0-1 --node 1 --mix all-reads,1:1,copy --size 8M --time 700ms").start()?;
    let pull = || -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while blocks(NODE).is_ok_and(|blocks| !blocks.is_empty()) {
            ensure!(Instant::now() < deadline, "the module is still there");
            // The kernel gives up where a page is in passing use. While it is at work, another request waits.
            let _ = guest::write(device.join("eject"), "1");
            std::thread::sleep(Duration::from_millis(500));
        }
        Ok(())
    };
    let pulled = uses_the_node(&running, 8 << 20).and_then(|()| pull());
    let ran = running.within(PATIENCE)?;
    pulled?;
    every_number_is_honest(&ran)?;
    some_are_lost_with_the_node(&ran)?;
    memgauge("latency --node 1 --size 4M").run()?.refused(64, &["node 1"])?;
    is_matrix(&memgauge("latency --matrix --size 4M --time 30ms").measure()?, Experiment::IdleLatency, &IdSet::one(0), &IdSet::one(0))
}
