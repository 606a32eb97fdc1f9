//! A scan of three nodes as root: where its regions are in physical memory, how much it uses, and what it gives back.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use memgauge_model::experiment::Experiment;
use memgauge_model::note::NoteCode;
use memgauge_model::plan::Work;
use memgauge_model::result::{Measurement, Mismatch, PageKind, PlacementStatus, Report, WrongWordKind};
use memgauge_model::units::{Bytes, IdSet};

use crate::guest::{self, control_group, pool, pool_state};
use crate::job::{Job, Machine, PLAIN, tests};
use crate::memory::buffers;
use crate::program::{Ran, measured, memgauge, works};

pub(crate) const JOB: Job = Job {
    name: "scan",
    about: "memory scan: physical addresses in their nodes, margins, memory.max, pools, what memory keeps",
    optional: false,
    machine: Machine { qemu: super::hugepages::QEMU, ..PLAIN },
    tests: tests![
        regions_are_in_their_nodes,
        a_word_that_changed_is_placed,
        memory_without_cpus_up_to_its_margin,
        a_memory_limit_is_kept,
        pages_of_a_pool_are_given_back,
        processes_without_the_capability_get_no_addresses,
    ],
};

const HUGE_KIB: u64 = 2048;

/// Regions of a node, each measured, and with all pages found there.
fn regions(report: &Report, node: u32) -> Result<Vec<&Measurement>> {
    let regions: Vec<&Measurement> = measured(report)?.into_iter().filter(|m| m.at.memory_node() == Some(node)).collect();
    for (i, m) in regions.iter().enumerate() {
        ensure!(m.experiment == Experiment::MemoryScan && m.at.region == Some(i as u32), "{:?}", m.at);
        let placement = &m.evidence.placement;
        let nodes: IdSet = placement.pages_by_node.keys().copied().collect();
        ensure!(placement.status == PlacementStatus::Verified && nodes == IdSet::one(node), "{placement:?}");
    }
    Ok(regions)
}

/// The sysfs folder, below its node, of the memory block that contains a physical address.
fn block_of(node: u32, address: u64) -> Result<PathBuf> {
    let size = u64::from_str_radix(&guest::read("/sys/devices/system/memory/block_size_bytes")?, 16)?;
    Ok(PathBuf::from(format!("/sys/devices/system/node/node{node}/memory{}", address / size)))
}

fn regions_are_in_their_nodes() -> Result<()> {
    let report = memgauge("scan --size 8M --region 2M --passes 3 --integrity").measure()?;
    let mut firsts = Vec::new();
    for node in 0..3 {
        let regions = regions(&report, node)?;
        ensure!(regions.len() == 4, "{} regions of node {node}", regions.len());
        for m in regions {
            let physical = m.evidence.physical.as_ref().context("no physical address")?;
            let (Some(first), Some(low), Some(high)) = (physical.first, physical.low, physical.high) else {
                anyhow::bail!("root is not told where its pages are: {physical:?}");
            };
            ensure!(low <= first && first < high && high - low >= 2 << 20, "{physical:?}");
            for address in [first, low, high - 1] {
                ensure!(block_of(node, address)?.exists(), "{address:#x} is not in node {node}: {physical:?}");
            }
            firsts.push(first);
            let integrity = m.evidence.integrity.as_ref().context("nothing was compared")?;
            ensure!((integrity.patterns, integrity.mismatches) == (integrity.patterns_planned, 0), "{integrity:?}");
        }
    }
    firsts.sort_unstable();
    ensure!(firsts.windows(2).all(|w| w[0] < w[1]), "two regions begin with the same page: {firsts:x?}");
    ensure!(report.notes.iter().all(|n| n.code != NoteCode::ScanNoAddresses), "{:?}", report.notes);
    Ok(())
}

/// Another process changes a word: the result says where it is, and in which memory device.
fn a_word_that_changed_is_placed() -> Result<()> {
    let line = "scan --node 1 --size 16M --region 4M --passes 3 --integrity --patterns random --hold 3s";
    let running = memgauge(line).start()?;
    let offset = (1 << 20) + 8;
    let mut place = None;
    running.until("it has touched a region", |id| {
        place = buffers(id).into_iter().find(|buffer| buffer.bytes == 4 << 20).map(|buffer| buffer.start + offset);
        place.is_some()
    })?;
    let address = place.context("it has no place")?;
    // The first pattern is written by then, and compared after three seconds more.
    std::thread::sleep(Duration::from_secs(2));
    let memory = fs::File::options().read(true).write(true).open(format!("/proc/{}/mem", running.id()))?;
    let mut byte = [0];
    memory.read_exact_at(&mut byte, address)?;
    memory.write_all_at(&[byte[0] ^ 4], address)?;
    let ran = running.wait()?;
    ensure!(ran.status == Some(3), "exit status {:?}: {}", ran.status, ran.stderr);
    let words: Vec<&Mismatch> = ran.report()?.results.iter().filter_map(|m| m.evidence.integrity.as_ref()).flat_map(|i| &i.first).collect();
    let [word] = words[..] else { anyhow::bail!("one word expected: {words:?}") };
    ensure!((word.offset, word.address, word.written ^ word.read) == (offset, Some(address), 4), "{word:x?}");
    ensure!(word.kind() == WrongWordKind::Flipped && word.node == Some(1), "{word:x?}");
    let physical = word.physical.context("no physical address")?;
    ensure!(block_of(1, physical)?.exists() && physical % 4096 == address % 4096, "{word:x?}");
    // QEMU's firmware describes its memory devices and the addresses of their array (SMBIOS types 17 and 19).
    ensure!(!word.devices.is_empty() && word.devices_unknown.is_none(), "{word:x?}");
    ensure!(word.devices.iter().all(|device| device.contains("DIMM")), "{:?}", word.devices);
    Ok(())
}

/// The report of a scan, which must have taken all regions of its plan, or be incomplete and say that it stopped.
fn scanned(ran: Ran) -> Result<Report> {
    let report = ran.report.context("it wrote no result")?;
    let stopped = report.notes.iter().any(|n| n.code == NoteCode::ScanMemoryScarce);
    ensure!(ran.status == Some(i32::from(stopped)) && report.complete != stopped, "exit status {:?}: {}", ran.status, ran.stderr);
    Ok(report)
}

fn memory_without_cpus_up_to_its_margin() -> Result<()> {
    let report = scanned(memgauge("scan --node 2 --passes 1").run()?)?;
    let Some(Work::Scan(scan)) = works(&report)?.next() else { anyhow::bail!("no scan is planned") };
    // Node 0 is nearer than node 1.
    ensure!(scan.cpus == "0-1".parse()?, "read by CPUs {}", scan.cpus);
    let node = report.machine.topology.node(2).context("no node 2")?;
    let free = node.free.context("what is free is not known")?;
    ensure!(scan.margin.0 == node.stated_bytes() / 4, "margin {} of {:?}", scan.margin, node.memory);
    ensure!(scan.bytes().0 <= free.0 - scan.margin.0 && scan.bytes().0 >= free.0 / 2, "{} of {free} free", scan.bytes());
    let regions = regions(&report, 2)?;
    // Other processes may have used some meanwhile, which the report says.
    let stopped = report.notes.iter().any(|n| n.code == NoteCode::ScanMemoryScarce);
    ensure!(stopped || regions.len() == scan.regions as usize, "{} of {} regions", regions.len(), scan.regions);
    ensure!(report.plan.as_ref().is_some_and(|p| p.notes.iter().any(|n| n.code == NoteCode::ScanMargin)), "the small margin is not told");
    Ok(())
}

fn a_memory_limit_is_kept() -> Result<()> {
    let limited = || control_group("scan", &[("memory.max", "96M")]);
    let report = memgauge("scan --node 0 --region 4M --passes 2").in_group(&limited()?).run()?;
    let report = scanned(report)?;
    let taken: u64 = regions(&report, 0)?.iter().map(|m| m.evidence.buffer.0).sum();
    ensure!((32 << 20..=80 << 20).contains(&taken), "{} taken of 96 MiB", Bytes(taken));
    memgauge("scan --node 0 --size 100M").in_group(&limited()?).run()?.refused(4, &["memory.max", "--size"])
}

fn pages_of_a_pool_are_given_back() -> Result<()> {
    guest::write(pool(1, HUGE_KIB).join("nr_hugepages"), "8")?;
    let outcome = (|| {
        let report = memgauge("scan --node 1 --pages 2m --passes 2").measure()?;
        let regions = regions(&report, 1)?;
        ensure!(regions.len() == 8, "{} regions", regions.len());
        let of_pool = |m: &&Measurement| m.evidence.pages.obtained == Some(PageKind::Pool) && m.evidence.pages.share == Some(1.0);
        ensure!(regions.iter().all(of_pool), "{:?}", regions[0].evidence.pages);
        // One page: where it begins and ends is the whole of it.
        let whole = |m: &&Measurement| m.evidence.physical.as_ref().is_some_and(|p| p.contiguous == Some(true));
        ensure!(regions.iter().all(whole), "{:?}", regions[0].evidence.physical);
        ensure!(pool_state(1, HUGE_KIB)? == (8, 8), "the pool afterwards: {:?}", pool_state(1, HUGE_KIB)?);
        let mut running = memgauge("scan --node 1 --pages 2m --passes 10000").start()?;
        running.until("the pool is used up", |_| pool_state(1, HUGE_KIB).is_ok_and(|(_, free)| free == 0))?;
        running.kill()?;
        running.wait()?;
        ensure!(pool_state(1, HUGE_KIB)? == (8, 8), "the pool after a run that was killed: {:?}", pool_state(1, HUGE_KIB)?);
        memgauge("scan --node 0 --pages 2m").run()?.refused(4, &["pool"])
    })();
    guest::write(pool(1, HUGE_KIB).join("nr_hugepages"), "0")?;
    outcome
}

fn processes_without_the_capability_get_no_addresses() -> Result<()> {
    let report = memgauge("scan --node 0 --size 16M --region 4M --passes 1").without_root().measure()?;
    for m in regions(&report, 0)? {
        let physical = m.evidence.physical.as_ref().context("no evidence of addresses")?;
        ensure!(physical.first.is_none() && physical.reason.is_some(), "{physical:?}");
    }
    ensure!(report.notes.iter().any(|n| n.code == NoteCode::ScanNoAddresses && n.advice.is_some()), "{:?}", report.notes);
    Ok(())
}
