//! A pool of one 1 GiB page, on one of two nodes.

use anyhow::{Context, Result, ensure};
use memgauge_model::result::{Measurement, PageKind, PlacementStatus};
use memgauge_model::units::{Bytes, IdSet};

use crate::guest::pool_state;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "gigapages",
    about: "a 1 GiB page is used where there is one, and refused where there is none",
    optional: false,
    machine: Machine { qemu: QEMU, kernel: &["hugepagesz=1G", "hugepages=1:1"], ..PLAIN },
    tests: tests![used_where_there_is_one, loops_use_it, refused_where_there_is_none],
};

/// Latency takes the page a dozen times, and the kernel clears it each time; a scan reads all of it.
pub(crate) const SCAN: Job = Job {
    name: "gigascan",
    about: "a 1 GiB page is used by latency and by a scan, which tells where it is",
    optional: true,
    machine: Machine { qemu: QEMU, kernel: &["hugepagesz=1G", "hugepages=1:1"], ..PLAIN },
    tests: tests![latency_in_the_page, a_scan_tells_where_it_is],
};

/// An aligned gigabyte must be free on node 1, whose memory is above the hole for devices.
const QEMU: &[&str] = &[
    "-machine q35",
    // Without the fast instruction for it, which is the slowest when it is emulated: the kernel clears a page in one second instead of eight.
    "-cpu max,vendor=GenuineIntel,erms=off,fsrm=off",
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

/// All of it is in the one page, on node 1, and the pool has it back.
fn is_in_the_page(m: &Measurement) -> Result<()> {
    let pages = &m.evidence.pages;
    ensure!(pages.obtained == Some(PageKind::Pool) && pages.page == Some(Bytes::gib(1)) && pages.share == Some(1.0), "{pages:?}");
    let placement = &m.evidence.placement;
    let nodes: IdSet = placement.pages_by_node.keys().copied().collect();
    ensure!(placement.status == PlacementStatus::Verified && nodes == IdSet::one(1), "{placement:?}");
    ensure!(pool_state(1, GIANT_KIB)? == (1, 1), "the pool afterwards: {:?}", pool_state(1, GIANT_KIB)?);
    Ok(())
}

fn used_where_there_is_one() -> Result<()> {
    ensure!(pool_state(1, GIANT_KIB)? == (1, 1), "the guest has no page of 1 GiB on node 1: {:?}", pool_state(1, GIANT_KIB)?);
    let report = memgauge("bandwidth --cpu 0 --node 1 --pages 1g --size 256M --time 100ms").measure()?;
    let [m] = &measured(&report)?[..] else { anyhow::bail!("one result expected") };
    is_in_the_page(m)
}

fn loops_use_it() -> Result<()> {
    for line in ["stream", "chase"] {
        let report = memgauge(&format!("{line} 1M --node 1 --pages 1g --passes 2")).measure()?;
        let [m] = &measured(&report)?[..] else { anyhow::bail!("{line}: one result expected") };
        is_in_the_page(m).context(line)?;
    }
    Ok(())
}

fn latency_in_the_page() -> Result<()> {
    let report = memgauge("latency --cpu 0 --node 1 --pages 1g --size 256M --time 100ms").measure()?;
    measured(&report)?.into_iter().try_for_each(is_in_the_page)
}

/// A region that is one page is in one piece of physical memory, at a multiple of its size.
fn a_scan_tells_where_it_is() -> Result<()> {
    let report = memgauge("scan --node 1 --pages 1g --size 1G --region 1G --passes 1").measure()?;
    let [m] = &measured(&report)?[..] else { anyhow::bail!("one region expected") };
    is_in_the_page(m)?;
    let physical = m.evidence.physical.as_ref().context("no addresses")?;
    let first = physical.first.context("no address")?;
    ensure!(physical.contiguous == Some(true) && first % Bytes::gib(1).0 == 0, "{physical:?}");
    ensure!(physical.low == Some(first) && physical.high == Some(first + Bytes::gib(1).0), "{physical:?}");
    Ok(())
}

/// Every command says which page is missing, and the command that reserves one.
fn refused_where_there_is_none() -> Result<()> {
    let file = "/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages";
    for line in ["bandwidth --cpu 0 --size 256M", "latency --cpu 0 --size 256M", "stream 16M", "chase 16M"] {
        let ran = memgauge(&format!("{line} --node 0 --pages 1g")).run()?;
        ran.refused(4, &["0 free of 0", "1 are needed", &format!("as root: echo 1 > {file}"), "hugepagesz=1G"]).context(line)?;
    }
    Ok(())
}
