//! An Arm machine whose nodes come from the device tree: no HMAT, one node without CPUs.

use anyhow::{Result, ensure};
use memgauge_model::experiment::Experiment;
use memgauge_model::units::IdSet;

use super::icount::kernels_pass_their_tests;
use crate::job::{Arch, Job, Machine, PLAIN, tests};
use crate::program::{is_matrix, memgauge};

pub(crate) const JOB: Job = Job {
    name: "arm",
    about: "aarch64, 3 nodes by device tree, one without CPUs, no HMAT; kernels' own tests",
    optional: false,
    machine: Machine {
        arch: Arch::Aarch64,
        qemu: &[
            "-machine virt",
            "-cpu max,pauth=off",
            "-smp 4,sockets=2,cores=2,threads=1",
            "-m 768M",
            "-object memory-backend-ram,id=m0,size=256M",
            "-object memory-backend-ram,id=m1,size=256M",
            "-object memory-backend-ram,id=m2,size=256M",
            "-numa node,nodeid=0,memdev=m0,cpus=0-1",
            "-numa node,nodeid=1,memdev=m1,cpus=2-3",
            "-numa node,nodeid=2,memdev=m2",
            "-numa dist,src=0,dst=1,val=20",
            "-numa dist,src=0,dst=2,val=40",
            "-numa dist,src=1,dst=2,val=40",
        ],
        kernel_tests: true,
        ..PLAIN
    },
    tests: tests![info_shows_the_nodes, latency_matrix, bandwidth_matrix, kernels_pass_their_tests],
};

fn info_shows_the_nodes() -> Result<()> {
    let report = memgauge("info").measure()?;
    let topology = &report.machine.topology;
    ensure!(report.machine.identity.arch == "aarch64", "{:?}", report.machine.identity);
    let cpus: Vec<IdSet> = topology.nodes.iter().map(|n| n.cpus.clone()).collect();
    ensure!(cpus == ["0-1".parse()?, "2-3".parse()?, IdSet::new()], "CPUs by node: {cpus:?}");
    for node in &topology.nodes {
        ensure!(node.hmat.is_empty() && node.stated_bytes() > 0, "{node:?}");
        let expected = |other: u32| match (node.id, other) {
            (a, b) if a == b => 10,
            (2, _) | (_, 2) => 40,
            _ => 20,
        };
        ensure!(node.distances.len() == 3 && node.distances.iter().all(|(&other, &d)| d == expected(other)), "{node:?}");
    }
    Ok(())
}

fn latency_matrix() -> Result<()> {
    is_matrix(&memgauge("latency --matrix --size 4M --time 40ms").measure()?, Experiment::IdleLatency, &"0-1".parse()?, &"0-2".parse()?)
}

fn bandwidth_matrix() -> Result<()> {
    is_matrix(
        &memgauge("bandwidth --matrix --size 4M --time 40ms").measure()?,
        Experiment::BandwidthMatrix,
        &"0-1".parse()?,
        &"0-2".parse()?,
    )
}
