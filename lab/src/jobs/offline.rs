//! Node numbers with a hole, second threads switched off, CPUs offline, and CPUs that go and come while a run goes on.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use memgauge_model::experiment::Experiment;
use memgauge_model::topology::Topology;
use memgauge_model::units::IdSet;

use crate::guest::{self, set_online};
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{is_matrix, lost_only, measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "offline",
    about: "nodes 0, 1 and 3; SMT off; CPUs offline, also in the middle of a run",
    optional: false,
    // Linux 6.1 takes CPU 0 offline only if a boot option allows it.
    machine: Machine { qemu: QEMU, kernel: &["cpu0_hotplug", "possible_cpus=8"], ..PLAIN },
    tests: tests![
        node_numbers_with_a_hole,
        a_node_in_the_hole_is_refused,
        second_threads_off,
        cpus_offline,
        a_cpu_that_is_offline_is_refused,
        all_back_online,
        a_cpu_that_goes_loses_its_cells_only,
        a_cpu_that_goes_while_it_measures_loses_its_cell,
        a_loader_that_goes_loses_its_cells_only,
        a_cpu_that_is_back_in_time_costs_nothing,
    ],
};

/// Linux numbers nodes in the order in which it finds them: CPUs plugged, CPUs that could be plugged, memory. Node 2 is that of a package
/// that is not plugged, so it never comes online.
const QEMU: &[&str] = &[
    "-machine q35",
    "-cpu max,vendor=GenuineIntel",
    "-smp 8,maxcpus=12,sockets=3,dies=1,cores=2,threads=2",
    "-m 1G",
    "-object memory-backend-ram,id=m0,size=384M",
    "-object memory-backend-ram,id=m1,size=384M",
    "-object memory-backend-ram,id=m3,size=256M",
    "-numa node,nodeid=0,memdev=m0",
    "-numa node,nodeid=1,memdev=m1",
    "-numa node,nodeid=2",
    "-numa node,nodeid=3,memdev=m3",
    "-numa cpu,node-id=0,socket-id=0",
    "-numa cpu,node-id=1,socket-id=1",
    "-numa cpu,node-id=2,socket-id=2",
    "-numa dist,src=0,dst=1,val=21",
    "-numa dist,src=0,dst=3,val=14",
    "-numa dist,src=1,dst=3,val=28",
    "-numa dist,src=0,dst=2,val=40",
    "-numa dist,src=1,dst=2,val=40",
    "-numa dist,src=2,dst=3,val=40",
];

fn topology() -> Result<Topology> {
    Ok(memgauge("info").measure()?.machine.topology)
}

fn ids(list: &str) -> Result<IdSet> {
    Ok(list.parse()?)
}

/// A matrix has these rows, and columns 0, 1 and 3.
fn a_matrix_has_rows(rows: &str) -> Result<()> {
    let bandwidth = memgauge("bandwidth --matrix --one-thread-per-core --size 1M --time 200ms").measure()?;
    is_matrix(&bandwidth, Experiment::BandwidthMatrix, &ids(rows)?, &ids("0-1,3")?)
}

fn node_numbers_with_a_hole() -> Result<()> {
    let topology = topology()?;
    let nodes: Vec<(u32, IdSet)> = topology.nodes.iter().map(|n| (n.id, n.cpus.clone())).collect();
    ensure!(nodes == [(0, ids("0-3")?), (1, ids("4-7")?), (3, IdSet::new())], "{nodes:?}");
    let expected = [[10, 21, 14], [21, 10, 28], [14, 28, 10]];
    for (node, row) in topology.nodes.iter().zip(expected) {
        // The kernel lists distances to online nodes only, in their order.
        ensure!(node.distances == [0, 1, 3].into_iter().zip(row).collect(), "node {}: {:?}", node.id, node.distances);
    }
    a_matrix_has_rows("0-1")
}

fn a_node_in_the_hole_is_refused() -> Result<()> {
    memgauge("latency --node 2 --size 1M").run()?.refused(64, &["there is no node 2", "0-1,3"])
}

fn second_threads_off() -> Result<()> {
    guest::write("/sys/devices/system/cpu/smt/control", "off")?;
    let topology = topology()?;
    ensure!(topology.online() == ids("0,2,4,6")? && topology.offline == ids("1,3,5,7")?, "{:?} {:?}", topology.online(), topology.offline);
    ensure!(topology.smt_active == Some(false) && topology.cpus.iter().all(|c| c.siblings == IdSet::one(c.id)), "{topology:?}");
    let report = memgauge("bandwidth --size 1M --time 200ms").measure()?;
    let m = measured(&report)?[0];
    ensure!(m.at.cpus == Some(ids("0,2,4,6")?) && m.evidence.threads == 4, "{:?}", m.at);
    Ok(())
}

/// Node 0 is left with memory and no CPU online.
fn cpus_offline() -> Result<()> {
    set_online(2, false)?;
    set_online(0, false)?;
    let report = memgauge("info").measure()?;
    let topology = &report.machine.topology;
    ensure!(topology.online() == ids("4,6")? && topology.offline == ids("0-3,5,7")?, "{:?} {:?}", topology.online(), topology.offline);
    ensure!(topology.nodes.len() == 3 && topology.nodes[0].cpus.is_empty(), "{:?}", topology.nodes);
    ensure!(report.machine.allowed.cpus == ids("4,6")?, "{:?}", report.machine.allowed);
    let note = report
        .environment
        .limits
        .iter()
        .find(|n| n.code == memgauge_model::note::NoteCode::CpusOffline)
        .context("no note of CPUs offline")?;
    ensure!(note.message.to_string().contains("0-3,5,7"), "{note:?}");
    a_matrix_has_rows("1")
}

fn a_cpu_that_is_offline_is_refused() -> Result<()> {
    let ran = memgauge("latency --cpu 2,4 --size 1M").run()?;
    ran.refused(64, &["CPU 2 is offline", "4,6", "'memgauge info' says how to switch it on"])
}

/// As it is between these tests: nodes 0, 1 and 3, the first one without a CPU, second threads off.
fn all_back_online() -> Result<()> {
    set_online(0, true)?;
    set_online(2, true)?;
    guest::write("/sys/devices/system/cpu/smt/control", "on")?;
    let topology = topology()?;
    ensure!(topology.online() == ids("0-7")? && topology.offline.is_empty(), "{:?} {:?}", topology.online(), topology.offline);
    ensure!(topology.smt_active == Some(true) && topology.cpus.iter().all(|c| c.siblings.len() == 2), "{topology:?}");
    let report = memgauge("bandwidth --size 1M --time 400ms").measure()?;
    ensure!(measured(&report)?[0].evidence.threads == 8, "{:?}", report.results[0].evidence);
    Ok(())
}

fn a_cpu_that_goes_loses_its_cells_only() -> Result<()> {
    let running = memgauge("latency --cpu 1,2,5 --node 3 --size 1M --time 600ms").start()?;
    let lost = running.idle_of(&ids("1,2,5")?)?;
    set_online(lost, false)?;
    let ran = running.wait();
    set_online(lost, true)?;
    lost_only(&ran?, |at| at.cpu == Some(lost), &[&format!("CPU {lost}"), "offline"])
}

/// The CPU whose cell is being measured goes and stays away.
fn a_cpu_that_goes_while_it_measures_loses_its_cell() -> Result<()> {
    let running = memgauge("latency --cpu 2,6 --node 3 --size 1M --time 600ms").start()?;
    running.until("it measures on CPU 2", |_| running.workers() == IdSet::one(2))?;
    std::thread::sleep(Duration::from_millis(600));
    set_online(2, false)?;
    let ran = running.wait();
    set_online(2, true)?;
    lost_only(&ran?, |at| at.cpu == Some(2), &["CPU 2", "offline"])
}

/// The ramp's cells without the CPU that goes are measured.
fn a_loader_that_goes_loses_its_cells_only() -> Result<()> {
    let running = memgauge("bandwidth --ramp --cpu 0,4 --mix all-reads,1:1 --size 1M --time 500ms").start()?;
    running.idle_of(&ids("0,4")?)?;
    set_online(4, false)?;
    let ran = running.wait();
    set_online(4, true)?;
    lost_only(&ran?, |at| at.cpus.as_ref().is_some_and(|cpus| cpus.contains(4)), &["CPU 4", "offline"])
}

/// CPU 4 goes while CPU 0 measures, and is back before its own turn comes. Meanwhile it cannot keep its package awake.
fn a_cpu_that_is_back_in_time_costs_nothing() -> Result<()> {
    let running = memgauge("latency --cpu 0,4 --node 0 --size 1M --time 800ms").start()?;
    running.until("it measures on CPU 0", |_| running.workers().contains(0))?;
    std::thread::sleep(Duration::from_millis(300));
    set_online(4, false)?;
    set_online(4, true)?;
    let ran = running.wait()?;
    ensure!(ran.status == Some(0) && ran.report()?.complete, "exit status {:?}: {}", ran.status, ran.stderr);
    let back: Vec<_> = measured(ran.report()?)?.into_iter().filter(|m| m.at.cpu == Some(4)).collect();
    ensure!(!back.is_empty() && back.iter().all(|m| m.evidence.noise.migrations == Some(0)), "{back:?}");
    Ok(())
}
