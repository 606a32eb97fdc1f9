//! A persistent memory module that serves as ordinary memory: a node without CPUs about which firmware claims nothing.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use memgauge_model::experiment::{Coordinates, Experiment, Metric};
use memgauge_model::result::{Measurement, PlacementStatus};
use memgauge_model::tiers::{KindEvidence, MemoryKind};
use memgauge_model::topology::NodeDeviceKind;
use memgauge_model::units::{Bytes, IdSet};

use crate::guest;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::memory;
use crate::program::{is_matrix, measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "kmem",
    about: "an NVDIMM as memory of a node without CPUs and HMAT (dax, kmem)",
    optional: false,
    machine: Machine { qemu: QEMU, modules: &["nfit", "nd_pmem", "dax_pmem", "device_dax", "kmem"], ..PLAIN },
    tests: tests![
        before_it_is_memory,
        becomes_memory,
        info_shows_the_node,
        latency_matrix,
        bandwidth_matrix,
        loaded,
        tiers,
        info_shows_kinds_and_the_region,
        more_than_the_node_has,
        node_goes_away,
    ],
};

/// The second node is declared and empty: the module becomes its memory.
const QEMU: &[&str] = &[
    "-machine q35,nvdimm=on,nvdimm-persistence=cpu",
    "-cpu max,vendor=GenuineIntel",
    "-smp 2",
    "-m 512M,slots=2,maxmem=4G",
    "-object memory-backend-ram,id=m0,size=512M",
    "-numa node,nodeid=0,memdev=m0",
    "-numa node,nodeid=1",
    "-numa dist,src=0,dst=1,val=17",
    "-object memory-backend-ram,id=n1,size=384M",
    "-device nvdimm,memdev=n1,id=nv1,node=1",
];

/// The node without CPUs.
const NODE: u32 = 1;
const NODE_FOLDER: &str = "/sys/devices/system/node/node1";
const BLOCKS: &str = "/sys/devices/system/memory";

fn before_it_is_memory() -> Result<()> {
    let report = memgauge("info").measure()?;
    let (allowed, nodes) = (&report.machine.allowed.nodes, &report.machine.topology.nodes);
    ensure!(*allowed == IdSet::one(0), "memory may be used of {allowed} before there is any but node 0's: {nodes:?}");
    memgauge("latency --node 1 --size 4M").run()?.refused(64, &["node 1"])
}

/// Does the same as `ndctl create-namespace --mode devdax` and `daxctl reconfigure-device --mode system-ram`.
fn becomes_memory() -> Result<()> {
    let nd = Path::new("/sys/bus/nd");
    let namespace = "namespace0.0";
    guest::appears(&nd.join("devices").join(namespace))?;
    guest::write(nd.join("drivers/nd_pmem/unbind"), namespace)?;
    // The one that is not yet anything.
    let seed = guest::read(nd.join("devices/region0/dax_seed"))?;
    let device = nd.join("devices").join(&seed);
    for (file, value) in [("mode", "ram"), ("align", "2097152"), ("uuid", "8a2ee1cb-2c6b-4a3c-9d40-6f2d41a6f0b7"), ("namespace", namespace)]
    {
        guest::write(device.join(file), value)?;
    }
    guest::write(nd.join("drivers/dax_pmem/bind"), &seed)?;

    let dax = Path::new("/sys/bus/dax");
    guest::appears(&dax.join("devices/dax0.0"))?;
    let target = guest::read(dax.join("devices/dax0.0/target_node"))?;
    ensure!(target == NODE.to_string(), "the module would become memory of node {target}");
    guest::write(dax.join("drivers/device_dax/unbind"), "dax0.0")?;
    // This driver claims the device at once.
    guest::write(dax.join("drivers/kmem/new_id"), "dax0.0")?;
    // They are not the node's before they are online.
    for entry in fs::read_dir(BLOCKS)? {
        let state = entry?.path().join("state");
        if state.exists() && guest::read(&state)? == "offline" {
            guest::write(&state, "online_movable")?;
        }
    }
    ensure!(Path::new(NODE_FOLDER).exists(), "no node came of it");
    Ok(())
}

fn info_shows_the_node() -> Result<()> {
    shows_the_node(Bytes::mib(256), 17)
}

/// Node 1 has this much memory, this far away, and nothing else.
pub(crate) fn shows_the_node(memory: Bytes, distance: u32) -> Result<()> {
    ensure!(!Path::new(NODE_FOLDER).join("access0").exists(), "this machine was to have no HMAT");
    let machine = memgauge("info").measure()?.machine;
    let node = machine.topology.node(NODE).context("no node 1")?;
    ensure!(node.cpus.is_empty() && node.memory == Some(memory), "{node:?}");
    ensure!(node.free.is_some_and(|free| free.0 > 0 && free <= memory), "{node:?}");
    ensure!(node.distances == [(0, distance), (1, 10)].into(), "{node:?}");
    ensure!(node.hmat.is_empty() && node.memory_side_caches.is_empty(), "{node:?}");
    ensure!(machine.topology.cpus.iter().all(|c| c.node == 0), "{:?}", machine.topology.cpus);
    let may = machine.allowed.node_memory.get(&NODE).context("no memory of node 1 may be used")?;
    ensure!(machine.allowed.nodes == "0-1".parse()? && may.0 > 0 && *may < memory, "{:?}", machine.allowed);
    Ok(())
}

pub(crate) fn latency_matrix() -> Result<()> {
    matrix("latency", Experiment::IdleLatency)
}

pub(crate) fn bandwidth_matrix() -> Result<()> {
    matrix("bandwidth", Experiment::BandwidthMatrix)
}

fn matrix(command: &str, experiment: Experiment) -> Result<()> {
    let report = memgauge(&format!("{command} --matrix --size 1M --time 50ms")).measure()?;
    is_matrix(&report, experiment, &IdSet::one(0), &"0-1".parse()?)?;
    for m in measured(&report)? {
        ensure!(m.firmware.is_none(), "nobody claims {:?} of {:?}", m.firmware, m.at);
    }
    Ok(())
}

pub(crate) fn loaded() -> Result<()> {
    let report = memgauge("loaded --node 1 --size 1M --delay 5000 --time 120ms").measure()?;
    for m in measured(&report)? {
        let placement = &m.evidence.placement;
        let nodes: IdSet = placement.pages_by_node.keys().copied().collect();
        ensure!(placement.status == PlacementStatus::Verified && nodes == IdSet::one(NODE), "{:?}: {placement:?}", m.at);
    }
    Ok(())
}

fn tiers() -> Result<()> {
    compares_tiers(MemoryKind::Persistent, NodeDeviceKind::Nvdimm, "persistent memory as memory")
}

/// `memgauge tiers` measures node 0's memory and that of node 1, which is of this kind because of this device, and its text says so.
pub(crate) fn compares_tiers(kind: MemoryKind, device: NodeDeviceKind, words: &str) -> Result<()> {
    let (report, text) = memgauge("tiers --size 1M --time 40ms --histogram").measure_and_print()?;
    let plan = report.plan.as_ref().context("no plan")?;
    let kinds: Vec<_> = plan.tiers.iter().map(|k| (k.node, k.kind, k.guessed)).collect();
    ensure!(kinds == [(0, MemoryKind::Dram, true), (NODE, kind, false)], "{:?}", plan.tiers);
    let Some(KindEvidence::Device(found)) = plan.tiers[1].evidence.first() else { bail!("{:?}", plan.tiers[1]) };
    ensure!(found.kind == device && found.name == "dax0.0" && found.region.is_some(), "{found:?}");
    let distance = |e: &KindEvidence| matches!(e, KindEvidence::Distance { from: 0, .. });
    ensure!(plan.tiers[1].evidence.iter().any(distance), "{:?}", plan.tiers[1]);
    let both: IdSet = "0-1".parse()?;
    for experiment in [Experiment::IdleLatency, Experiment::BandwidthMatrix] {
        let nodes: IdSet = measured(&report)?.iter().filter(|m| m.experiment == experiment).filter_map(|m| m.at.memory_node()).collect();
        ensure!(nodes == both, "{experiment:?} of nodes {nodes}");
    }
    // Each tier alone, and each beside load on the other. Together they need a third core.
    let mut loads: Vec<_> = report.curves.iter().map(|c| (c.at.memory_node(), c.at.load_nodes.clone())).collect();
    loads.sort();
    let expected = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(memory, load)| (Some(memory), Some(IdSet::one(load))));
    ensure!(loads == expected, "{loads:?}");
    for curve in &report.curves {
        let of_curve = |m: &&&Measurement| {
            let at = Coordinates { delay_cycles: None, ..m.at.clone() };
            m.experiment == Experiment::LoadedLatency && m.metric == Metric::Bandwidth && at == curve.at
        };
        let points = measured(&report)?;
        let points: Vec<_> = points.iter().filter(of_curve).collect();
        ensure!(points.len() >= 2, "{} points of {:?}", points.len(), curve.at);
        // Under emulation few points are reliable, and nothing is said of the others.
        ensure!(curve.peak_gbs.is_some() == points.iter().any(|m| m.is_reliable()), "{curve:?}");
    }
    let under_load = |m: &&Measurement| m.experiment == Experiment::LoadedLatency && m.metric == Metric::Latency;
    let without =
        measured(&report)?.into_iter().filter(under_load).find(|m| m.distribution.as_ref().is_none_or(|d| d.percentiles.is_empty()));
    ensure!(without.is_none(), "no percentiles under load: {:?}", without.map(|m| &m.at));
    for words in ["Tiers of memory", words, "dax0.0", "Latency of each tier by what is loaded", "distribution of batches"] {
        ensure!(text.contains(words), "'{words}' is missing in:\n{text}");
    }
    Ok(())
}

fn info_shows_kinds_and_the_region() -> Result<()> {
    let (report, text) = memgauge("info").measure_and_print()?;
    let kinds: Vec<_> = report.memory_kinds.iter().map(|k| (k.node, k.kind)).collect();
    ensure!(kinds == [(0, MemoryKind::Dram), (NODE, MemoryKind::Persistent)], "{:?}", report.memory_kinds);
    let [region] = &report.machine.topology.persistent[..] else { bail!("{:?}", report.machine.topology.persistent) };
    ensure!(region.provider.as_deref() == Some("ACPI.NFIT") && region.bytes == Some(Bytes::mib(384)), "{region:?}");
    ensure!(region.emulated.as_ref().is_some_and(|why| why.contains("QEMU")), "{region:?}");
    let [module] = &region.modules[..] else { bail!("{region:?}") };
    ensure!(module.name.starts_with("nmem") && module.serial.is_none(), "{module:?}");
    let [namespace] = &region.namespaces[..] else { bail!("{region:?}") };
    ensure!(namespace.device.as_deref() == Some("/dev/dax0.0") && namespace.memory_node == Some(NODE), "{namespace:?}");
    for words in
        ["Kinds of memory", "persistent memory as memory", "Persistent memory", "/dev/dax0.0, memory of node 1", "volatile stand-in"]
    {
        ensure!(text.contains(words), "'{words}' is missing in:\n{text}");
    }
    Ok(())
}

/// A buffer larger than the node is refused before anything is taken, even though the machine in all has enough.
pub(crate) fn more_than_the_node_has() -> Result<()> {
    let node = memgauge("info").measure()?.machine.topology.node(NODE).context("no node 1")?.memory.context("its size is not known")?;
    let ran = memgauge(&format!("latency --node 1 --size {}", node.0 + (1 << 20))).run()?;
    ensure!(ran.report.is_none(), "it measured all the same");
    ran.refused(4, &["node 1", "--size"])
}

/// Once its memory is taken away again, the node is gone, and asking for it says so.
fn node_goes_away() -> Result<()> {
    let own = memory::blocks(NODE)?;
    ensure!(!own.is_empty(), "node 1 has no blocks of memory");
    own.into_keys().try_for_each(|block| memory::set_block(block, false))?;
    let report = memgauge("latency --matrix --size 4M --time 30ms").measure()?;
    is_matrix(&report, Experiment::IdleLatency, &IdSet::one(0), &IdSet::one(0))?;
    memgauge("latency --node 1 --size 4M").run()?.refused(64, &["node 1"])
}
