//! Pools of 2 MiB pages by node, transparent huge pages, fragmented memory; nothing of it changed afterwards.

use std::fs;

use anyhow::{Context, Result, ensure};
use memgauge_model::experiment::Experiment;
use memgauge_model::result::{PageEvidence, PageKind, PlacementStatus, Report};
use memgauge_model::units::{Bytes, IdSet};

use crate::fragment;
use crate::guest::{self, pool, pool_state};
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{is_matrix, measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "hugepages",
    about: "2 MiB pools by node, THP, fragmentation: used, refused with advice, left as they were",
    optional: false,
    machine: Machine { qemu: QEMU, ..PLAIN },
    tests: tests![
        pools_are_used_where_they_are,
        the_pool_by_name,
        a_pool_that_is_too_small,
        a_pool_for_some_of_the_loaders,
        what_the_advice_says_helps,
        a_killed_run_leaves_the_pool,
        transparent,
        transparent_switched_off,
        fragmented,
        a_gigabyte_page_without_pool,
    ],
};

/// Two packages of two CPUs with a node each, and a node without CPUs.
pub(crate) const QEMU: &[&str] = &[
    "-machine q35",
    "-cpu max,vendor=GenuineIntel",
    "-smp 4,sockets=2,cores=2,threads=1",
    "-m 1G",
    "-object memory-backend-ram,id=m0,size=384M",
    "-object memory-backend-ram,id=m1,size=384M",
    "-object memory-backend-ram,id=m2,size=256M",
    "-numa node,nodeid=0,memdev=m0",
    "-numa node,nodeid=1,memdev=m1",
    "-numa node,nodeid=2,memdev=m2",
    "-numa cpu,node-id=0,socket-id=0",
    "-numa cpu,node-id=1,socket-id=1",
    "-numa dist,src=0,dst=1,val=20",
    "-numa dist,src=0,dst=2,val=17",
    "-numa dist,src=1,dst=2,val=28",
];

/// Pages of the pools, in KiB.
const HUGE_KIB: u64 = 2048;
const HUGE: Bytes = Bytes::mib(2);

fn set_pool(node: u32, pages: u64) -> Result<()> {
    guest::write(pool(node, HUGE_KIB).join("nr_hugepages"), &pages.to_string())?;
    let state = pool_state(node, HUGE_KIB)?;
    ensure!(state == (pages, pages), "the guest has {state:?} pages in the pool of node {node} instead of {pages}");
    Ok(())
}

fn set_pools(pages: [u64; 3]) -> Result<()> {
    (0..3).zip(pages).try_for_each(|(node, pages)| set_pool(node, pages))
}

/// Every pool has this many pages, all free.
fn pools_are(pages: [u64; 3]) -> Result<()> {
    for (node, expected) in (0..3).zip(pages) {
        let state = pool_state(node, HUGE_KIB)?;
        ensure!(state == (expected, expected), "pool of node {node} afterwards: {state:?}");
    }
    Ok(())
}

/// All of a buffer is of this kind.
fn is_all(pages: &PageEvidence, kind: PageKind) -> Result<()> {
    let size = if kind == PageKind::Base { Bytes::kib(4) } else { HUGE };
    let least = if kind == PageKind::Thp { 0.9 } else { 1.0 };
    let right = pages.obtained == Some(kind) && pages.page == Some(size) && pages.share.is_some_and(|share| share >= least);
    ensure!(right, "{kind:?} expected: {pages:?}");
    Ok(())
}

fn only(report: &Report) -> Result<&PageEvidence> {
    let [m] = &measured(report)?[..] else { anyhow::bail!("one result expected") };
    ensure!(m.evidence.placement.status == PlacementStatus::Verified, "{:?}", m.evidence.placement);
    Ok(&m.evidence.pages)
}

fn pools_are_used_where_they_are() -> Result<()> {
    set_pools([4, 3, 0])?;
    let topology = memgauge("info").measure()?.machine.topology;
    let pools: Vec<(u64, u64)> =
        topology.nodes.iter().flat_map(|n| &n.pools).filter(|p| p.page == HUGE).map(|p| (p.total, p.free)).collect();
    ensure!(pools == [(4, 4), (3, 3), (0, 0)], "pools by node: {pools:?}");
    let report = memgauge("latency --matrix --cpu 0 --size 4M --time 40ms").measure()?;
    is_matrix(&report, Experiment::IdleLatency, &"0".parse()?, &"0-2".parse()?)?;
    for m in measured(&report)? {
        let kind = if m.at.memory_node() == Some(2) { PageKind::Thp } else { PageKind::Pool };
        is_all(&m.evidence.pages, kind).with_context(|| format!("{:?}", m.at))?;
    }
    pools_are([4, 3, 0])
}

fn the_pool_by_name() -> Result<()> {
    set_pools([4, 4, 2])?;
    let report = memgauge("bandwidth --matrix --pages 2m --size 4M --time 120ms --cpu 2").measure()?;
    is_matrix(&report, Experiment::BandwidthMatrix, &"1".parse()?, &"0-2".parse()?)?;
    for m in measured(&report)? {
        is_all(&m.evidence.pages, PageKind::Pool)?;
        // Two pages of 2 MiB: each was looked up once, and no other page was.
        ensure!(m.evidence.placement.pages_by_node.values().sum::<u64>() == 2, "{:?}", m.evidence.placement);
    }
    pools_are([4, 4, 2])
}

fn a_pool_that_is_too_small() -> Result<()> {
    set_pools([1, 4, 0])?;
    let line = "latency --cpu 0 --node 0 --size 4M --time 40ms";
    for m in measured(&memgauge(line).measure()?)? {
        is_all(&m.evidence.pages, PageKind::Thp)?;
    }
    let file = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
    memgauge(&format!("{line} --pages 2m")).run()?.refused(4, &["1 free of 1", "2 are needed", "echo 2", file])?;
    pools_are([1, 4, 0])
}

/// The first loader's buffer uses what is free, and none is left for the second's: the evidence must not claim the pool for both.
fn a_pool_for_some_of_the_loaders() -> Result<()> {
    set_pools([2, 0, 0])?;
    let report = memgauge("bandwidth --cpu 0-1 --node 0 --size 4M --time 200ms").measure()?;
    let pages = only(&report)?;
    ensure!(pages.share.is_some_and(|share| (0.4..=0.6).contains(&share)) && pages.reason.is_some(), "{pages:?}");
    pools_are([2, 0, 0])
}

fn what_the_advice_says_helps() -> Result<()> {
    set_pools([0, 0, 0])?;
    let line = "bandwidth --cpu 0 --node 2 --pages 2m --size 6M --time 100ms";
    let ran = memgauge(line).run()?;
    ran.refused(4, &["as root: echo 3 > /sys/devices/system/node/node2/hugepages/hugepages-2048kB/nr_hugepages"])?;
    set_pool(2, 3)?;
    is_all(only(&memgauge(line).measure()?)?, PageKind::Pool)?;
    pools_are([0, 0, 3])
}

fn a_killed_run_leaves_the_pool() -> Result<()> {
    set_pools([4, 0, 0])?;
    let mut running = memgauge("bandwidth --cpu 0 --node 0 --pages 2m --size 8M --time 20s").start()?;
    running.until("the pool is used up", |_| pool_state(0, HUGE_KIB).is_ok_and(|(_, free)| free == 0))?;
    running.kill()?;
    let ran = running.wait()?;
    ensure!(ran.status.is_none(), "it was killed, and exited with {:?}", ran.status);
    pools_are([4, 0, 0])
}

fn transparent() -> Result<()> {
    set_pools([4, 4, 4])?;
    for m in measured(&memgauge("latency --matrix --cpu 0 --pages thp --size 4M --time 30ms").measure()?)? {
        is_all(&m.evidence.pages, PageKind::Thp)?;
    }
    for m in measured(&memgauge("bandwidth --cpu 0 --node 1 --pages 4k --size 4M --time 100ms").measure()?)? {
        is_all(&m.evidence.pages, PageKind::Base)?;
    }
    pools_are([4, 4, 4])
}

fn transparent_switched_off() -> Result<()> {
    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    set_pools([0, 0, 0])?;
    guest::write(ENABLED, "never")?;
    let line = "bandwidth --cpu 0 --node 0 --size 4M --time 100ms";
    let outcome = (|| {
        memgauge(&format!("{line} --pages thp")).run()?.refused(4, &["'never'", "echo madvise", ENABLED])?;
        let report = memgauge(line).measure()?;
        ensure!(report.environment.thp.as_deref() == Some("never"), "{:?}", report.environment.thp);
        let pages = only(&report)?;
        is_all(pages, PageKind::Base)?;
        ensure!(pages.reason.as_ref().is_some_and(|why| why.contains("pool") && why.contains("'never'")), "{pages:?}");
        Ok(())
    })();
    guest::write(ENABLED, "always")?;
    outcome
}

/// Free memory of node 2 in single pages, which the kernel cannot put together.
fn fragmented() -> Result<()> {
    set_pools([0, 0, 0])?;
    // The kernel's own reserve is not in pieces: with THP it is some 11 huge pages a zone, and a process may take half of them.
    guest::write("/proc/sys/vm/min_free_kbytes", "1024")?;
    let _pieces = fragment::node(2)?;
    let buddies = guest::read("/proc/buddyinfo")?;
    let line = "bandwidth --cpu 0 --node 2 --size 32M --time 100ms";
    let report = memgauge(line).measure()?;
    let pages = only(&report)?;
    ensure!(
        pages.obtained == Some(PageKind::Base) && pages.share.is_some_and(|share| share > 0.5),
        "{pages:?}\n{buddies}\n{}",
        guest::read("/proc/buddyinfo")?
    );
    ensure!(pages.reason.as_ref().is_some_and(|why| why.contains("fragmented")), "{pages:?}");
    let placement = &report.results[0].evidence.placement;
    ensure!(placement.pages_by_node.keys().copied().collect::<IdSet>() == IdSet::one(2), "{placement:?}");
    memgauge(&format!("{line} --pages thp")).run()?.refused(4, &["fragmented", "compact_memory"])
}

fn a_gigabyte_page_without_pool() -> Result<()> {
    let ran = memgauge("bandwidth --cpu 0 --node 0 --pages 1g --size 4M --time 100ms").run()?;
    ran.refused(4, &["1 GiB pages has 0 free of 0", "hugepagesz=1G hugepages=1"])?;
    ensure!(fs::read_dir(pool(0, 1 << 20)).is_ok(), "the guest's CPU has no pages of 1 GiB");
    Ok(())
}
