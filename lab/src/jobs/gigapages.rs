//! A pool of one 1 GiB page, on one of two nodes.

use anyhow::{Result, ensure};
use memgauge_core::result::{PageKind, PlacementStatus};
use memgauge_core::units::{Bytes, IdSet};

use crate::guest::pool_state;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "gigapages",
    about: "a 1 GiB page is used where there is one, and refused where there is none",
    optional: false,
    machine: Machine { qemu: QEMU, kernel: &["hugepagesz=1G", "hugepages=1:1"], ..PLAIN },
    tests: tests![used_where_there_is_one, refused_where_there_is_none],
};

/// An aligned gigabyte must be free on node 1, whose memory is above the hole for devices.
const QEMU: &[&str] = &[
    "-machine q35",
    "-cpu max,vendor=GenuineIntel",
    "-smp 2,sockets=2,cores=1,threads=1",
    "-m 5G",
    "-object memory-backend-ram,id=m0,size=2G",
    "-object memory-backend-ram,id=m1,size=3G",
    "-numa node,nodeid=0,memdev=m0",
    "-numa node,nodeid=1,memdev=m1",
    "-numa cpu,node-id=0,socket-id=0",
    "-numa cpu,node-id=1,socket-id=1",
];

/// Pages of the pool, in KiB.
const GIANT_KIB: u64 = 1 << 20;

/// Only once, because the kernel needs seconds to clear the page.
fn used_where_there_is_one() -> Result<()> {
    ensure!(pool_state(1, GIANT_KIB)? == (1, 1), "the guest has no page of 1 GiB on node 1: {:?}", pool_state(1, GIANT_KIB)?);
    let report = memgauge("bandwidth --cpu 0 --node 1 --pages 1g --size 256M --time 200ms").measure()?;
    let [m] = &measured(&report)?[..] else { anyhow::bail!("one result expected") };
    let pages = &m.evidence.pages;
    ensure!(pages.obtained == Some(PageKind::Pool) && pages.page == Some(Bytes::gib(1)) && pages.share == Some(1.0), "{pages:?}");
    let placement = &m.evidence.placement;
    let nodes: IdSet = placement.pages_by_node.keys().copied().collect();
    ensure!(placement.status == PlacementStatus::Verified && nodes == IdSet::one(1), "{placement:?}");
    ensure!(pool_state(1, GIANT_KIB)? == (1, 1), "the pool afterwards: {:?}", pool_state(1, GIANT_KIB)?);
    Ok(())
}

fn refused_where_there_is_none() -> Result<()> {
    let ran = memgauge("bandwidth --cpu 0 --node 0 --pages 1g --size 256M --time 200ms").run()?;
    let file = "/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages";
    ran.refused(4, &["0 free of 0", "1 are needed", file, "hugepagesz=1G"])
}
