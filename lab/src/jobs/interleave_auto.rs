//! Weights that the kernel derives itself from what firmware claims of bandwidths: set by hand, and given back to the kernel.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};

use super::interleave::{
    JOURNAL, WEIGHTS, base_pages_are_where_the_kernel_puts_them, huge_pages_are_where_the_kernel_puts_them, kernel_weights,
};
use crate::guest;
use crate::job::{Job, Machine, PLAIN, Release, tests};
use crate::program::{memgauge, without_result};

pub(crate) const JOB: Job = Job {
    name: "interleave-auto",
    about: "the kernel's automatic weights: replaced by others, and automatic again, also after a kill (Linux 6.16 or later)",
    optional: true,
    machine: Machine { qemu: QEMU, kernel: &["numa_balancing=disable"], release: Release::NewKernel, ..PLAIN },
    tests: tests![
        derived_from_firmwares_claims,
        applied_and_automatic_again,
        killed_and_automatic_again,
        weights_by_hand_come_back_as_those,
        // Last, because it sets weights by hand.
        base_pages_are_where_the_kernel_puts_them,
        huge_pages_are_where_the_kernel_puts_them,
    ],
};

/// A node with CPUs, and two without, for which firmware claims a half and a quarter of its bandwidth.
const QEMU: &[&str] = &[
    "-machine q35,hmat=on",
    "-cpu max,vendor=GenuineIntel",
    "-smp 2",
    "-m 1280M",
    "-object memory-backend-ram,id=m0,size=768M",
    "-object memory-backend-ram,id=m1,size=256M",
    "-object memory-backend-ram,id=m2,size=256M",
    "-numa node,nodeid=0,memdev=m0,cpus=0-1,initiator=0",
    "-numa node,nodeid=1,memdev=m1,initiator=0",
    "-numa node,nodeid=2,memdev=m2,initiator=0",
    "-numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-latency,latency=100",
    "-numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=200",
    "-numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=access-latency,latency=300",
    "-numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=200G",
    "-numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=100G",
    "-numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=access-bandwidth,bandwidth=50G",
];

/// Whether the kernel derives the weights.
fn automatic() -> Result<bool> {
    Ok(guest::read(Path::new(WEIGHTS).join("auto"))? == "true")
}

/// The weights that this kernel derives, in its own mode.
fn derived() -> Result<BTreeMap<u32, u32>> {
    ensure!(automatic()?, "the kernel does not derive its weights");
    ensure!(!Path::new(JOURNAL).exists(), "{JOURNAL} is there already");
    kernel_weights()
}

fn derived_from_firmwares_claims() -> Result<()> {
    let weights = derived()?;
    ensure!(weights[&0] > weights[&1] && weights[&1] > weights[&2], "claims of 200, 100 and 50 GiB/s, and weights {weights:?}");
    let nodes = memgauge("info").measure()?.machine.topology.nodes;
    ensure!(nodes.iter().all(|node| node.interleave_weight == weights.get(&node.id).copied()), "{weights:?}: {nodes:?}");
    Ok(())
}

/// `--restore` gives the weights back to the kernel, which derives the same.
fn restores(derived: &BTreeMap<u32, u32>) -> Result<()> {
    let ran = without_result("interleave --restore").run()?;
    ensure!(ran.status == Some(0) && ran.stderr.contains("automatically again"), "{:?}: {}", ran.status, ran.stderr);
    ensure!(automatic()? && kernel_weights()? == *derived, "{:?} instead of {derived:?}, automatic: {}", kernel_weights()?, automatic()?);
    ensure!(!Path::new(JOURNAL).exists(), "{JOURNAL} stays");
    Ok(())
}

fn applied_and_automatic_again() -> Result<()> {
    let before = derived()?;
    for (given, expected) in [("0=5,1=2", [5, 2, before[&2]]), ("0=9,1=3,2=4", [9, 3, 4])] {
        let ran = without_result(&format!("interleave --apply {given}")).run()?;
        ensure!(ran.status == Some(0) && ran.stderr.contains("--restore"), "{:?}: {}", ran.status, ran.stderr);
        ensure!(kernel_weights()?.into_values().eq(expected), "{:?}", kernel_weights()?);
        ensure!(!automatic()?, "weights were written, and the kernel goes on deriving them");
    }
    restores(&before)
}

fn killed_and_automatic_again() -> Result<()> {
    let before = derived()?;
    let mut running = without_result("interleave --apply 0=5,1=2").start()?;
    running.until("it has written a weight", |_| guest::read(Path::new(WEIGHTS).join("node0")).is_ok_and(|weight| weight == "5"))?;
    // Too late to keep it from writing, or not: its journal is there.
    running.kill()?;
    running.wait()?;
    ensure!(Path::new(JOURNAL).exists() && !automatic()?, "killed after a write, it has left no journal");
    restores(&before)
}

/// After weights that an administrator had set are restored, the kernel does not derive weights again.
fn weights_by_hand_come_back_as_those() -> Result<()> {
    for (node, weight) in [(0, "7"), (1, "3"), (2, "2")] {
        guest::write(Path::new(WEIGHTS).join(format!("node{node}")), weight)?;
    }
    let ran = without_result("interleave --apply 0=5,1=2").run()?;
    ensure!(ran.status == Some(0), "{:?}: {}", ran.status, ran.stderr);
    let ran = without_result("interleave --restore").run()?;
    ensure!(ran.status == Some(0) && !ran.stderr.contains("automatically"), "{:?}: {}", ran.status, ran.stderr);
    ensure!(!automatic()? && kernel_weights()?.into_values().eq([7, 3, 2]), "{:?}, automatic: {}", kernel_weights()?, automatic()?);
    Ok(())
}
