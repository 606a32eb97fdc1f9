//! What is asked of the chase: who chases, where its buffer is, how far it goes.

use super::{PlanError, Planner};
use crate::directory::FileBacking;
use crate::distribution::BATCHES;
use crate::plan::Probe;
use crate::plan::check::{check_cpus, check_nodes};
use crate::result::ChaseOrder;
use crate::spec::{Hops, LatencyShape, Spec, Task, TransferShape};
use crate::topology::Machine;
use crate::units::IdSet;

/// What a hop takes before it is known: a load from DRAM. For estimates of time only.
const NS_PER_HOP: f64 = 100.0;
/// The longest name of a file, of which `shm_open` makes one.
const LONGEST_NAME: usize = 255;

/// Whether what was asked of the chase exists, may be used and goes together.
pub(super) fn check(spec: &Spec, machine: &Machine) -> Result<(), PlanError> {
    let request = |text: String| Err(PlanError::Request(text));
    let chase = &spec.chase;
    for (option, cpu) in [("the chase's CPU", chase.cpu), ("--touch-cpu", chase.touch)] {
        if let Some(cpu) = cpu {
            check_cpus(&IdSet::one(cpu), machine).map_err(|e| named(option, e))?;
        }
    }
    if let Some(node) = chase.node {
        check_nodes(&IdSet::one(node), machine).map_err(|e| named("--probe-node", e))?;
        if chase.touch.is_some() {
            return request("--probe-node and --touch-cpu both say where the chase's buffer is; leave one of them out".into());
        }
    }
    if chase.touch.is_some() && spec.nodes.is_some() && spec.task != Task::Loaded {
        return request("--node and --touch-cpu both say where the buffer is; leave one of them out".into());
    }
    if chase.touch.is_some() && matches!(spec.task, Task::Latency(LatencyShape::Matrix) | Task::C2c(TransferShape::NodeMatrix)) {
        return request("--touch-cpu places one buffer, and a matrix has one for each node; leave --matrix or --touch-cpu out".into());
    }
    let backing = spec.memory_dir.as_ref().map(|d| d.file.backing);
    if chase.node.is_some() && matches!(backing, Some(FileBacking::Dax | FileBacking::PageCache)) {
        return request("--probe-node does not go with this --memory-dir: its files are not placed by node; leave --probe-node out".into());
    }
    if chase.hops == Some(Hops::Count(0)) {
        return request("--hops 0 chases nothing; give a number of hops, or 'pass' for one pass over the buffer".into());
    }
    if chase.hops.is_some() && spec.time.is_some() {
        return request("--hops and --time both say how long to chase; leave one of them out".into());
    }
    if let Some(batch) = chase.histogram.filter(|batch| !BATCHES.contains(batch)) {
        return request(format!("a histogram of batches of {batch} hops cannot be had; batches of 1, 8 or 64 can"));
    }
    if spec.task == Task::Loaded && chase.orders.len() > 1 {
        return request("latency under load is one chase, in one order; name one --order".into());
    }
    match &spec.start_signal {
        Some(name) if !is_name(name) => request(format!(
            "'{name}' cannot name shared memory: give 1 to {LONGEST_NAME} characters without a slash, such as memgauge-start"
        )),
        _ => Ok(()),
    }
}

/// Whether `shm_open` takes it, with the slash in front that it wants.
fn is_name(name: &str) -> bool {
    let bare = name.strip_prefix('/').unwrap_or(name);
    (1..=LONGEST_NAME).contains(&bare.len()) && !bare.contains(['/', '\0']) && bare != "." && bare != ".."
}

/// Says which option an error is about.
pub(super) fn named(option: &str, error: PlanError) -> PlanError {
    match error {
        PlanError::Request(text) => PlanError::Request(format!("{option}: {text}")),
        PlanError::Unavailable(text) => PlanError::Unavailable(format!("{option}: {text}")),
    }
}

/// Hops of one chase over the probe's buffer.
fn hops_of(hops: Hops, probe: &Probe) -> u64 {
    match hops {
        Hops::Count(hops) => hops,
        Hops::OnePass => probe.buffer.bytes.0 / probe.stride.0,
    }
}

/// What one chase takes, roughly.
pub(in crate::plan) fn seconds(hops: Hops, probe: &Probe) -> f64 {
    hops_of(hops, probe) as f64 * NS_PER_HOP / 1e9
}

impl Planner<'_> {
    /// The orders asked for, each once.
    pub(super) fn orders(&self) -> Vec<ChaseOrder> {
        let mut orders: Vec<ChaseOrder> = Vec::new();
        for order in &self.spec.chase.orders {
            if !orders.contains(order) {
                orders.push(*order);
            }
        }
        orders
    }

    /// Where the chase's buffer is when no node is named: at the CPU that touches it, or else at the one that chases.
    pub(super) fn chase_home(&mut self, cpu: u32) -> u32 {
        match self.spec.chase.touch {
            // Nodes that are named may be those of the loaders.
            Some(touch) if self.device.is_none() && self.machine.allowed.nodes.contains(self.node_of(touch)) => self.node_of(touch),
            touch => self.home_of(touch.unwrap_or(cpu)),
        }
    }

    /// Fresh allocations of a chase of so many hops: as many as its time has room for, so that long chases are not multiplied.
    pub(super) fn allocations_of(&self, hops: Hops, probe: &Probe, most: u32) -> u32 {
        ((self.budget() / seconds(hops, probe)) as u32).clamp(1, most)
    }

    /// CPUs to keep busy: those named, or one of each package where there are several.
    pub(super) fn keep_awake(&self) -> Result<IdSet, PlanError> {
        match &self.spec.keep_awake {
            Some(asked) => check_cpus(asked, self.machine).map_err(|e| named("--keep-awake", e)),
            None if self.machine.topology.packages().len() > 1 => Ok(self.first_cpu_of_each_package()),
            None => Ok(IdSet::new()),
        }
    }
}
