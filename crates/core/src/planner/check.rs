//! Whether what was asked by name exists, may be used and goes together.

use crate::directory::FileBacking;
use crate::experiment::PageRequest;
use crate::planner::error::PlanError;
use crate::spec::{Spec, Task};
use crate::topology::Machine;
use crate::units::{Bytes, IdSet};

/// The CPUs asked for, when all of them may be used.
pub(super) fn check_cpus(asked: &IdSet, machine: &Machine) -> Result<IdSet, PlanError> {
    let online = machine.topology.online();
    if asked.is_empty() {
        return Err(PlanError::Request(format!("--cpu names no CPU; online are {online}")));
    }
    for cpu in asked.iter() {
        if machine.topology.offline.contains(cpu) {
            return Err(PlanError::Request(format!(
                "CPU {cpu} is offline; online are {online} (echo 1 > /sys/devices/system/cpu/cpu{cpu}/online)"
            )));
        }
        if !online.contains(cpu) {
            return Err(PlanError::Request(format!("there is no CPU {cpu}; online are {online}")));
        }
        if !machine.allowed.cpus.contains(cpu) {
            return Err(PlanError::Unavailable(format!(
                "this process may not use CPU {cpu}; it may use {} (its affinity mask or cpuset leaves the others out: taskset -p, cpuset.cpus)",
                machine.allowed.cpus
            )));
        }
    }
    Ok(asked.clone())
}

/// A directory goes with what it can be asked together with.
pub(super) fn check_directory(spec: &Spec) -> Result<(), PlanError> {
    let Some(dir) = &spec.memory_dir else { return Ok(()) };
    let path = &dir.file.path;
    let request = |text: String| Err(PlanError::Request(text));
    if matches!(spec.task, Task::Suite | Task::C2c { .. } | Task::Scan) {
        return request("--memory-dir is for 'latency', 'bandwidth' and 'loaded'".into());
    }
    if spec.pages != PageRequest::Auto {
        return request(format!(
            "--pages {} does not go with --memory-dir: the file system at {path} chooses the pages of its files; leave --pages out",
            spec.pages.name()
        ));
    }
    match dir.file.backing {
        FileBacking::Dax if spec.nodes.is_some() => {
            request(format!("--node does not go with --memory-dir here: files in {path} are where their device is (DAX); leave --node out"))
        }
        FileBacking::PageCache if spec.nodes.is_some() => request(format!(
            "--node does not go with --memory-dir here: the page cache of {path} cannot be bound to a node; leave --node out, or give a directory of a tmpfs"
        )),
        _ => Ok(()),
    }
}

/// The nodes asked for, when all of them have memory that may be used.
pub(super) fn check_nodes(asked: &IdSet, machine: &Machine) -> Result<IdSet, PlanError> {
    let nodes: IdSet = machine.topology.nodes.iter().filter(|n| n.memory > Bytes(0)).map(|n| n.id).collect();
    if asked.is_empty() {
        return Err(PlanError::Request(format!("--node names no node; nodes with memory are {nodes}")));
    }
    for node in asked.iter() {
        match machine.topology.node(node) {
            None => return Err(PlanError::Request(format!("there is no node {node}; nodes with memory are {nodes}"))),
            Some(n) if n.memory == Bytes(0) => {
                return Err(PlanError::Request(format!("node {node} has CPUs but no memory; nodes with memory are {nodes}")));
            }
            Some(_) if !machine.allowed.nodes.contains(node) => {
                return Err(PlanError::Unavailable(format!(
                    "this process may not use the memory of node {node}; it may use {} (cpuset.mems of its control group)",
                    machine.allowed.nodes
                )));
            }
            Some(_) => {}
        }
    }
    Ok(asked.clone())
}
