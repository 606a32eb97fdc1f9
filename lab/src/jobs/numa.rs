//! Two packages of two cores of two threads; four nodes, of which two have no CPUs; HMAT; distances of their own.

use anyhow::{Context, Result, ensure};
use memgauge_core::result::{Experiment, PlacementStatus, Report};
use memgauge_core::units::IdSet;

use crate::program::{measured, memgauge};
use crate::{Job, Machine, PLAIN, tests};

pub(crate) const JOB: Job = Job {
    name: "numa",
    about: "4 nodes, 2 without CPUs, HMAT: matrices, placement, siblings, LLC domains",
    optional: false,
    machine: Machine { qemu: QEMU, ..PLAIN },
    tests: tests![info_shows_the_machine, latency_matrix],
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

fn info_shows_the_machine() -> Result<()> {
    let report = memgauge("info").measure()?;
    let topology = &report.machine.topology;
    ensure!(topology.cpus.len() == 8 && topology.packages().len() == 2, "CPUs and packages: {topology:?}");
    Ok(())
}

/// Every row with CPUs to every node, each cell's pages verified on its node.
fn is_matrix(report: &Report, experiment: Experiment) -> Result<()> {
    let results = measured(report)?;
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for m in results.iter().filter(|m| m.experiment == experiment) {
        let column = m.at.memory_node.context("a cell without memory node")?;
        let placement = &m.evidence.placement;
        ensure!(placement.status == PlacementStatus::Verified, "{:?}: {placement:?}", m.at);
        ensure!(placement.pages_by_node.keys().copied().collect::<IdSet>() == IdSet::one(column), "{:?}: {placement:?}", m.at);
        pairs.push((m.at.cpu_node.context("a cell without CPU node")?, column));
    }
    pairs.sort_unstable();
    pairs.dedup();
    let expected: Vec<(u32, u32)> = (0..2).flat_map(|row| (0..4).map(move |column| (row, column))).collect();
    ensure!(pairs == expected, "cells {pairs:?}");
    Ok(())
}

fn latency_matrix() -> Result<()> {
    let report = memgauge("latency --matrix --size 4M --time 50ms").measure()?;
    is_matrix(&report, Experiment::IdleLatency)
}
