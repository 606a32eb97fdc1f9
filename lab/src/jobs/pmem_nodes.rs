//! Persistent memory at two nodes: the suite on ext4 and XFS, each on a namespace of its own, with a matrix of nodes and directories.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use memgauge_model::directory::FileBacking;
use memgauge_model::estimate::NotMeasured;
use memgauge_model::experiment::{ChaseOrder, Experiment, MemoryPlace};
use memgauge_model::result::{Measurement, PageKind, PlacementStatus, Report};
use memgauge_model::traffic::{Access, Mix};
use memgauge_model::units::IdSet;

use crate::guest;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "pmem-nodes",
    about: "the suite for persistent memory: ext4 and XFS with DAX on namespaces of two nodes",
    optional: false,
    machine: Machine {
        qemu: QEMU,
        // XFS is not made on less than 300 MB.
        kernel: &["memmap=384M!512M", "memmap=384M!1536M"],
        modules: &["nd_e820", "nd_pmem", "crc32c_generic", "ext4", "xfs"],
        tools: &["mke2fs", "mkfs.xfs"],
        ..PLAIN
    },
    tests: tests![file_systems, every_node_and_directory, named_node, nothing_is_left],
};

const QEMU: &[&str] = &[
    "-machine q35",
    "-cpu max,vendor=GenuineIntel",
    "-smp 2,sockets=2",
    "-m 2G",
    "-object memory-backend-ram,id=m0,size=1G",
    "-object memory-backend-ram,id=m1,size=1G",
    "-numa node,nodeid=0,memdev=m0,cpus=0",
    "-numa node,nodeid=1,memdev=m1,cpus=1",
    "-numa dist,src=0,dst=1,val=21",
];

/// Directory, file system, device. The devices are in the order of their addresses, and so of their nodes.
const PLACES: [(&str, &str, &str); 2] = [("/tmp/ext4", "ext4", "/dev/pmem0"), ("/tmp/xfs", "xfs", "/dev/pmem1")];
/// Short, with windows of the usual length: where the host takes a guest's CPUs, shorter ones are lost as a whole.
const SHORT: &str = "--size 4M --time 60ms";

fn file_systems() -> Result<()> {
    for (directory, kind, device) in PLACES {
        guest::appears(Path::new(device))?;
        if kind == "ext4" {
            guest::format(device)?;
        } else {
            // Shared extents and DAX exclude each other on this kernel.
            guest::call(&["/tools/mkfs.xfs", "-q", "-f", "-K", "-m", "reflink=0", device])?;
        }
        guest::mount(device, directory, kind, if kind == "xfs" { "dax=always" } else { "dax" })?;
    }
    Ok(())
}

/// The node of a device, as the kernel states it.
fn node(device: &str) -> Result<Option<u32>> {
    let name = device.trim_start_matches("/dev/");
    Ok(guest::read(Path::new("/sys/block").join(name).join("device/numa_node"))?.parse().ok())
}

fn every_node_and_directory() -> Result<()> {
    let directories = PLACES.map(|(directory, ..)| directory).join(" ");
    let (ran, page) = memgauge(&format!("pmem {directories} {SHORT}")).run_and_print()?;
    let report = ran.report()?;
    matrices(report, &page)?;
    // A guest whose CPUs are taken from it may have no burst in so short a time; nothing else may be missing.
    for m in report.measurements() {
        let reason = m.estimate.not_measured.as_ref();
        ensure!(
            m.estimate.value.is_some() || reason.is_some_and(NotMeasured::is_want_of_cpu_time),
            "{:?}: {reason:?} {}",
            m.at,
            ran.stderr
        );
    }
    let plan = report.plan.as_ref().context("no plan")?;
    for (index, (directory, kind, device)) in PLACES.into_iter().enumerate() {
        let home = node(device)?;
        ensure!(home == Some(index as u32), "{device} is at node {home:?}");
        let dir = plan.directories.iter().find(|d| d.file.path == directory).context("not in the plan")?;
        let behind = dir.persistent.as_ref().with_context(|| format!("{directory}: nothing behind it: {dir:?}"))?;
        ensure!(behind.provider.as_deref() == Some("e820") && behind.node == home, "{behind:?}");
        ensure!(behind.namespace.as_ref().is_some_and(|n| n.starts_with("namespace")) && behind.region.starts_with("region"), "{behind:?}");
        ensure!(behind.bytes.or(behind.region_bytes).is_some_and(|b| b.0 >= 300 << 20), "{behind:?}");
        ensure!(dir.file.volatile.as_ref().is_some_and(|why| why.contains("memmap=")), "{:?}", dir.file);
        for row in 0..2 {
            for experiment in [Experiment::IdleLatency, Experiment::Bandwidth, Experiment::AccessSize, Experiment::PersistLatency] {
                let here = |m: &&Measurement| {
                    m.experiment == experiment && m.at.memory_dir.as_deref() == Some(directory) && m.at.cpu_node == Some(row)
                };
                let found: Vec<_> = report.measurements().filter(here).collect();
                ensure!(!found.is_empty(), "{experiment:?} of {directory} from node {row} is missing");
                for m in found.into_iter().filter(|m| m.estimate.value.is_some()) {
                    let file = m.evidence.file.as_ref().with_context(|| format!("no file in the evidence of {:?}", m.at))?;
                    ensure!((file.backing, file.map_sync, &*file.filesystem) == (FileBacking::Dax, true, kind), "{file:?}");
                    ensure!(file.device_node == home && file.volatile == dir.file.volatile, "{file:?}");
                    ensure!(m.at.memory == Some(MemoryPlace::Device { node: home }), "{:?}", m.at);
                    ensure!(m.evidence.pages.obtained == Some(PageKind::Dax), "{:?}", m.evidence.pages);
                    ensure!(m.evidence.placement.status == PlacementStatus::Verified, "{:?}", m.evidence.placement);
                }
            }
        }
    }
    // If a cell has no value, not everything was tested.
    measured(report).map(drop)
}

/// The matrices of latency and reads have a row for each node and a column for each directory, which is called what it is.
fn matrices(report: &Report, page: &str) -> Result<()> {
    let page = page.split("Nodes and directories").nth(1).with_context(|| format!("no matrix: {page}"))?;
    matrix(report, page, "Idle latency in ns, window-local", |m| {
        m.experiment == Experiment::IdleLatency && m.at.order == Some(ChaseOrder::WindowLocal)
    })?;
    matrix(report, page, "All reads in GB/s, sequential", |m| {
        m.experiment == Experiment::Bandwidth && m.at.mix == Some(Mix::AllReads) && m.at.access == Some(Access::Sequential)
    })
}

/// A cell has a value where it was measured, and a dash where it was not.
fn matrix(report: &Report, page: &str, title: &str, keep: impl Fn(&Measurement) -> bool) -> Result<()> {
    let table = page.split(title).nth(1).with_context(|| format!("no {title}: {page}"))?;
    for (directory, ..) in PLACES {
        ensure!(table.contains(&format!("{directory} (volatile stand-in)")), "{directory}: {page}");
    }
    for row in 0..2 {
        let name = format!("node {row}");
        let cells = table.lines().find_map(|line| line.trim().strip_prefix(&name)).with_context(|| format!("{title}, {name}: {page}"))?;
        let with_value = report.results.iter().filter(|m| keep(m) && m.at.cpu_node == Some(row) && m.estimate.value.is_some()).count();
        let words: Vec<_> = cells.split_whitespace().map(|word| word.trim_start_matches('~')).collect();
        let values = words.iter().filter(|word| word.parse::<f64>().is_ok_and(|value| value > 0.0)).count();
        let dashes = words.iter().filter(|word| **word == "—").count();
        ensure!((values, values + dashes) == (with_value, PLACES.len()), "{title}, {name}: {cells}");
    }
    Ok(())
}

fn named_node() -> Result<()> {
    let plan = memgauge(&format!("pmem {} --node 1 {SHORT}", PLACES[0].0)).plan()?;
    let mut cells = plan.steps.iter().flat_map(|step| &step.cells);
    ensure!(cells.all(|cell| cell.work.cpus() == IdSet::one(1)), "another node would measure");
    memgauge(&format!("pmem {} --node 3 {SHORT}", PLACES[0].0)).run()?.refused(64, &["--node", "node 3"])
}

fn nothing_is_left() -> Result<()> {
    for (directory, ..) in PLACES {
        let names: Vec<_> = fs::read_dir(directory)?.flatten().map(|entry| entry.file_name()).filter(|name| name != "lost+found").collect();
        ensure!(names.is_empty(), "{directory}: {names:?}");
    }
    Ok(())
}
