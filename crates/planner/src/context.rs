//! The planner's state: the request, the machine, the CPUs and nodes that may be measured, sizes, notes.

use std::collections::BTreeMap;

use memgauge_model::directory::{FileBacking, MemoryDir};
use memgauge_model::experiment::{Experiment, MemoryPlace};
use memgauge_model::interleave::Weights;
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::{Cell, Coarsened, KernelRow, Step, StopRule, shuffle};
use memgauge_model::spec::{Spec, Task};
use memgauge_model::tiers;
use memgauge_model::topology::Machine;
use memgauge_model::units::IdSet;
use memgauge_model::wording;
use memgauge_model::words;
use memgauge_model::words::{Knob, Way, Ways};

use crate::check::{PlanError, check_chase, check_cpus, check_directory, check_nodes, unavailable};
use crate::inherited::Inherited;
use crate::requested::Requested;
use crate::room::pool_room;
use crate::sizes::{IN_TURN, LEAST_BUFFER, Sizes, approximately};

/// Relative half-width of the 95 % interval at which a cell stops: 1 %, as is usual (Hoefler & Belli, SC'15, rule 5).
const DEFAULT_HALF_WIDTH: f64 = 0.01;
/// The same for a region of a scan, because weak regions are found by a difference of 5 % (`memgauge_analysis::conclusions::scan::WEAK_SHARE`).
const SCAN_HALF_WIDTH: f64 = 0.05;
/// The same for a point of a sweep, because levels differ by tens of per cent.
const SWEEP_HALF_WIDTH: f64 = 0.02;
/// The least in a virtual machine: neighbours on the host take cache and memory by turns, however quiet the guest is. On a quiet guest of a
/// shared host the budgets of a suite reached this in four of five cells, and 3 % in half of them (docs/benchmarks.md, *Intervals*).
const GUEST_HALF_WIDTH: f64 = 0.05;
/// The same for a cell of a health check: half of the smallest difference that counts.
const QUICK_HALF_WIDTH: f64 = 0.015;
/// Seconds for a cell of a health check: the fewest bursts for which an interval exists take 0.4 s.
const QUICK_BUDGET_S: f64 = 0.5;
/// Seconds for one point of a sweep. 73 sizes in two curves take less than 40 s, even if no point converges.
const SWEEP_BUDGET_S: f64 = 0.25;
/// The same if hardware events are counted: eight bursts of 41 windows take 0.34 s.
const SWEEP_COUNTED_BUDGET_S: f64 = 0.35;
/// Seconds for one cell of a command other than the suite.
const COMMAND_BUDGET_S: f64 = 4.0;
/// Seconds for one cell of the suite: eight bursts, a little more than the fewest for which an interval exists. The smallest machine, with
/// about thirty cells and points, then takes about fifteen seconds, even if intervals stay wide.
const SUITE_BUDGET_S: f64 = 0.48;
/// Seconds for one ratio of weights. A search measures dozens of ratios.
const INTERLEAVE_BUDGET_S: f64 = 1.0;
/// Seconds for one cell of a large matrix.
const LARGE_MATRIX_BUDGET_S: f64 = 1.0;
/// Above this number of cells a matrix uses fewer allocations and less time for each.
pub(super) const LARGE_MATRIX: usize = 36;
/// Arbitrary; printed with the plan so that a run can be repeated with the same orders.
pub(super) const DEFAULT_SEED: u64 = 1;

pub(super) struct Planner<'a> {
    pub(super) spec: &'a Spec,
    pub(super) requested: Requested<'a>,
    pub(super) machine: &'a Machine,
    pub(super) kernels: &'a [KernelRow],
    /// CPUs to measure from.
    pub(super) cpus: IdSet,
    /// Memory nodes to measure.
    pub(super) nodes: IdSet,
    /// The node of the device that the buffers are on (DAX). The inner `None` means that the kernel does not state the node.
    pub(super) device: Option<Option<u32>>,
    /// The place of memory for which no option names a node, if that is not each CPU's own node.
    pub(super) inherited: Option<Inherited>,
    pub(super) sizes: Sizes<'a>,
    pub(super) notes: Vec<Note>,
    /// The measurements that are coarser than usual because the time is short.
    pub(super) coarsened: Vec<Coarsened>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(spec: &'a Spec, requested: Requested<'a>, machine: &'a Machine, kernels: &'a [KernelRow]) -> Result<Self, PlanError> {
        let mut cpus = match &spec.cpus {
            Some(requested) => check_cpus(requested, machine)?,
            None => machine.default_cpus(),
        };
        if cpus.is_empty() {
            return unavailable(machine.identity.system.words().no_cpu_allowed);
        }
        check_directory(spec, machine)?;
        check_chase(spec, &requested, machine)?;
        let mut nodes = match &spec.nodes {
            Some(requested) => check_nodes(requested, machine)?,
            None => tiers::default_nodes(machine),
        };
        if nodes.is_empty() {
            return unavailable("this process may use memory of no node; check cpuset.mems of its control group");
        }
        if spec.one_thread_per_core {
            cpus = machine.topology.one_per_core(&cpus);
        }
        let short = if spec.nodes.is_none() { short_nodes(spec, &requested, machine, &cpus, &nodes) } else { Vec::new() };
        nodes = nodes.iter().filter(|node| short.iter().all(|(short, _)| short != node)).collect();
        let backing = spec.memory_dir.as_ref().map(|d| d.file.backing);
        let mut notes: Vec<Note> = spec.memory_dir.iter().flat_map(|d| d.notes()).collect();
        let inherited = Inherited::read(spec, &requested, machine, &mut notes);
        if backing == Some(FileBacking::PageCache) && inherited.is_none() {
            // No policy binds the page cache. Its pages are where they are first touched, so their node needs a CPU.
            let touchable = |n: &u32| machine.topology.node(*n).is_some_and(|n| !n.cpus.intersection(&machine.allowed.cpus).is_empty());
            nodes = nodes.iter().filter(touchable).collect();
            if nodes.is_empty() {
                return unavailable(
                    "the page cache can be placed on no node: this process may use no CPU of a node whose memory it may use; give a directory of a tmpfs",
                );
            }
        }
        // A node that is not online has no CPUs to touch from, and nothing to compare with.
        let device_node = || spec.memory_dir.as_ref()?.file.device_node.filter(|n| machine.topology.node(*n).is_some());
        let device = (backing == Some(FileBacking::Dax)).then(device_node);
        for note in requested.traffic.thread_directories().iter().flat_map(MemoryDir::notes) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        if machine.identity.may_be_virtual() && spec.confidence.is_none() && !matches!(spec.task, Task::Scan(_)) {
            let why = match machine.identity.is_virtual() {
                Some(_) => "neighbours share this virtual machine's host",
                None => "this may be a virtual machine, whose host neighbours share",
            };
            let message = format!("cells end at intervals of ±{:.0} %, because {why}", 100.0 * GUEST_HALF_WIDTH);
            let advice = words!["ask for narrower ones with ", Knob::Confidence, " 1%, where the host is yours"];
            notes.push(Note::info(NoteCode::GuestIntervals, message).advise(advice));
        }
        let amount = matches!(&spec.task, Task::Scan(scan) if scan.memory.is_some());
        if machine.allowed.memory.is_none() && requested.buffer().is_none() && !amount {
            let why = &machine.allowed.memory_limited_by;
            let message = format!("buffers have their usual sizes, because how much memory may be taken is not known: {why}");
            notes.push(Note::info(NoteCode::MemoryNotKnown, message));
        }
        for (node, why) in short {
            let note = Note::warning(NoteCode::NodeShortOfMemory, format!("node {node} is not measured: {why}"));
            notes.push(note.advise(Way::from("free memory there").or(Way::Smaller(Knob::Size))));
        }
        let left_out = machine.allowed.nodes.intersection(&tiers::gpu_nodes(machine)).difference(&nodes);
        if spec.nodes.is_none() && !left_out.is_empty() {
            let message = format!(
                "memory of a GPU is not measured ({}), because traffic there disturbs the GPU's programs",
                wording::nodes(&left_out)
            );
            notes.push(Note::info(NoteCode::GpuMemoryLeftOut, message).advise(Way::name("the nodes", Knob::Node).to("measure it")));
        }
        for nodes in machine.topology.shared_nodes() {
            let shared = nodes.iter().filter_map(|node| machine.topology.node(node)).fold(IdSet::new(), |all, n| all.union(&n.cpus));
            let message =
                format!("nodes {nodes} share CPUs {shared}: the memory of all of them is local there, and buffers are on them in turn");
            notes.push(Note::info(NoteCode::NodesShareCpus, message));
        }
        let turns = inherited.as_ref().and_then(|inherited| inherited.turns.clone());
        let sizes = Sizes::new(spec, requested, machine, turns);
        notes.extend(sizes.without_caches(&cpus));
        let isolated = cpus.intersection(&machine.allowed.isolated);
        if spec.cpus.is_none() && !isolated.is_empty() {
            let message = format!("isolated CPUs are measured, because their nodes have no others: {isolated}");
            notes.push(Note::info(NoteCode::IsolatedCpusUsed, message).advise(Way::name("other CPUs", Knob::Cpus).to("leave them alone")));
        }
        Ok(Self { spec, requested, machine, kernels, cpus, nodes, device, inherited, sizes, notes, coarsened: Vec::new() })
    }

    pub(super) fn stop_rule(&self, steps: &[Step]) -> StopRule {
        let large = steps.iter().any(|s| s.cells.len() > LARGE_MATRIX);
        let command_s = if large { LARGE_MATRIX_BUDGET_S } else { COMMAND_BUDGET_S };
        let (half_width, budget_s) = match self.spec.task {
            Task::Quick(_) => (QUICK_HALF_WIDTH, QUICK_BUDGET_S),
            Task::Sweep(_) if self.spec.counters => (SWEEP_HALF_WIDTH, SWEEP_COUNTED_BUDGET_S),
            Task::Sweep(_) => (SWEEP_HALF_WIDTH, SWEEP_BUDGET_S),
            Task::Suite(_) | Task::Pmem(_) | Task::Tiers(_) => (DEFAULT_HALF_WIDTH, SUITE_BUDGET_S),
            Task::Scan(_) => (SCAN_HALF_WIDTH, command_s),
            Task::Interleave(_) => (DEFAULT_HALF_WIDTH, INTERLEAVE_BUDGET_S),
            _ => (DEFAULT_HALF_WIDTH, command_s),
        };
        let guest = self.machine.identity.may_be_virtual();
        let half_width = if guest { half_width.max(GUEST_HALF_WIDTH) } else { half_width };
        StopRule {
            relative_half_width: self.spec.confidence.unwrap_or(half_width),
            budget_s: self.spec.time.or(self.spec.budget).map_or(budget_s, |t| t.as_secs_f64()),
            fixed_time: self.spec.time.is_some(),
        }
    }

    /// Nodes of the CPUs measured from: the rows of a matrix.
    pub(super) fn cpu_nodes(&self) -> IdSet {
        self.cpus.iter().map(|c| self.cpu_node(c)).collect()
    }

    pub(super) fn cpu_node(&self, cpu: u32) -> u32 {
        self.machine.topology.cpu(cpu).map_or(0, |c| c.node)
    }

    pub(super) fn cpus_on(&self, node: u32) -> IdSet {
        self.cpus.iter().filter(|&c| self.cpu_node(c) == node).collect()
    }

    /// The ways to give a measurement one more core.
    pub(super) fn another_core(&self) -> Ways {
        Way::from(format!("allow one ({})", self.cpu_limits())).either_or(Way::name("more", Knob::Cpus))
    }

    /// The mechanisms that limit this process to some CPUs, in words.
    pub(super) const fn cpu_limits(&self) -> &'static str {
        self.machine.identity.system.words().cpu_limits
    }

    /// The node of a CPU's memory if none is named: its own, or the nearest measured one if its own may not be used. Under an inherited
    /// memory policy the nearest of the policy's nodes, or [`IN_TURN`].
    pub(super) fn local_node(&mut self, cpu: u32) -> u32 {
        let own = self.cpu_node(cpu);
        if let Some(device) = self.device {
            return device.unwrap_or(own);
        }
        if let Some(Inherited { nodes, turns }) = &self.inherited {
            let nearest = || nodes.iter().min_by_key(|node| (*node != own, self.machine.topology.distance(own, *node)));
            return if turns.is_some() { IN_TURN } else { nearest().unwrap_or(own) };
        }
        if self.nodes.contains(own) {
            return own;
        }
        let near = self.nearest_memory(own);
        if self.spec.nodes.is_none() {
            let topology = &self.machine.topology;
            let bare = topology.node(own).is_some_and(|n| !n.has_memory());
            let allowed = self.machine.allowed.nodes.contains(own);
            let elsewhere = Way::name("CPUs of another node", Knob::Cpus);
            let (message, advice) = match self.machine.identity.system.words().node_limits {
                _ if bare => (
                    format!("node {own} has no memory; the nearest, node {near}, is used"),
                    Some(Way::from("look for missing or disabled DIMMs, or set fewer nodes per socket in the BIOS").or_else(elsewhere)),
                ),
                // A note says already why it is left out.
                _ if allowed => (format!("node {own} is short of memory; the nearest, node {near}, is used"), None),
                limits => (
                    format!("CPUs of node {own} may not use its memory; node {near} is used instead"),
                    Some(match limits {
                        Some(allow) => Way::from(allow).or(elsewhere),
                        None => elsewhere.into(),
                    }),
                ),
            };
            self.notes.push(Note { advice, ..Note::warning(NoteCode::NoLocalMemory, message) });
        }
        near
    }

    /// The measured node nearest to a node whose own memory is not measured. Nodes without memory that have several nearest ones take them by
    /// turns, as the kernel's own fallback does (`find_next_best_node`, mm/page_alloc.c).
    fn nearest_memory(&self, own: u32) -> u32 {
        let topology = &self.machine.topology;
        let nearest = |from: u32| -> Vec<u32> {
            let best = self.nodes.iter().map(|node| topology.distance(from, node)).min();
            self.nodes.iter().filter(|node| Some(topology.distance(from, *node)) == best).collect()
        };
        let near = nearest(own);
        let without = topology.nodes.iter().filter(|n| !n.cpus.is_empty() && !self.nodes.contains(n.id)).map(|n| n.id);
        let before = without.filter(|node| *node < own && nearest(*node) == near).count();
        near.get(before % near.len().max(1)).copied().unwrap_or(own)
    }

    /// The nodes of a CPU's local memory: all measured nodes that list it, or its [local node](Self::local_node).
    fn local_nodes(&mut self, cpu: u32) -> Vec<u32> {
        let shared = self.machine.topology.local_nodes(cpu).intersection(&self.nodes);
        if self.device.is_some() || self.inherited.is_some() || shared.len() < 2 {
            vec![self.local_node(cpu)]
        } else {
            shared.iter().collect()
        }
    }

    /// Each CPU with the nodes of its buffer. CPUs take their local nodes by turns; fewer CPUs than nodes have several nodes each, so that all
    /// of the memory is used.
    pub(super) fn own_homes(&mut self, cpus: &[u32]) -> Vec<(u32, Vec<u32>)> {
        let mut alike: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
        for &cpu in cpus {
            alike.entry(self.local_nodes(cpu)).or_default().push(cpu);
        }
        let turns = alike.iter().flat_map(|(nodes, cpus)| {
            cpus.iter().enumerate().map(|(turn, cpu)| {
                let own: Vec<u32> = nodes.iter().copied().skip(turn).step_by(cpus.len()).collect();
                (*cpu, if own.is_empty() { vec![nodes[turn % nodes.len()]] } else { own })
            })
        });
        let homes: BTreeMap<u32, Vec<u32>> = turns.collect();
        cpus.iter().filter_map(|cpu| Some((*cpu, homes.get(cpu)?.clone()))).collect()
    }

    /// The node of the buffers of CPUs that use local memory of `node`, as [`Self::loaders`] takes it; `None` if it shares its CPUs with
    /// other nodes, whose memory is as local.
    pub(super) fn local_to(&self, node: u32) -> Option<u32> {
        let cpu = self.machine.topology.node(node).and_then(|n| n.cpus.first());
        let shared = cpu.is_some_and(|cpu| self.machine.topology.local_nodes(cpu).intersection(&self.nodes).len() > 1);
        Some(node).filter(|_| !shared || self.device.is_some() || self.inherited.is_some())
    }

    /// The place of memory on `node`, and the weights of memory whose pages are on nodes in turn. Each CPU's own node if there is none, unless
    /// the inherited policy leaves some of these out.
    pub(super) fn memory_place(&self, node: Option<u32>) -> (Option<MemoryPlace>, Option<Weights>) {
        match (self.device, node) {
            (Some(node), _) => (Some(MemoryPlace::Device { node }), None),
            (None, Some(IN_TURN)) => (Some(MemoryPlace::Inherited), self.inherited.as_ref().and_then(|inherited| inherited.turns.clone())),
            (None, Some(node)) => (Some(MemoryPlace::Node(node)), None),
            (None, None) => (Some(if self.inherited.is_some() { MemoryPlace::Inherited } else { MemoryPlace::Own }), None),
        }
    }

    /// The node where the inherited policy puts the memory of all CPUs; [`IN_TURN`] if its pages are on several.
    pub(super) fn inherited_node(&self) -> Option<u32> {
        let Inherited { nodes, turns } = self.inherited.as_ref()?;
        if turns.is_some() { Some(IN_TURN) } else { nodes.first().filter(|_| nodes.len() == 1) }
    }

    /// The columns of a matrix: the measured nodes, or the one device (`None` if its node is not known).
    pub(super) fn columns(&self) -> Vec<Option<u32>> {
        self.device.map_or_else(|| self.nodes.iter().map(Some).collect(), |device| vec![device])
    }

    pub(super) fn budget(&self) -> f64 {
        self.stop_rule(&[]).budget_s
    }

    /// Shuffles the cells, so that drift does not look like an effect of topology, and repeats the first one at the end as a check.
    pub(super) fn step(&self, title: &str, experiment: Experiment, mut cells: Vec<Cell>) -> Step {
        let mut title = title.to_owned();
        if let Some(dir) = &self.spec.memory_dir {
            title = format!("{title}, files in {}", dir.file.label());
            for cell in &mut cells {
                cell.at.memory_dir = Some(dir.file.path.clone());
            }
        }
        debug_assert!(cells.iter().all(|cell| experiment.row().axes.wrong(&cell.at, false).is_empty()), "{experiment:?}: {cells:?}");
        if experiment.row().shuffled && cells.len() > 2 {
            shuffle(&mut cells, self.spec.seed.unwrap_or(DEFAULT_SEED));
            if let Some(first) = cells.first().cloned() {
                cells.push(Cell { repeat: true, ..first });
            }
        }
        // The time is filled in once all steps are known.
        Step { title, experiment, cells, estimated_s: 0.0 }
    }
}

/// The nodes on which there is too little memory for the buffers of a cell, and why. None if that is so of all nodes: then the request is refused
/// for a reason that is not one node's.
fn short_nodes(spec: &Spec, requested: &Requested<'_>, machine: &Machine, cpus: &IdSet, nodes: &IdSet) -> Vec<(u32, String)> {
    // Scans take what there is. Files are not bound by the free memory of a node alone.
    if matches!(spec.task, Task::Scan(_)) || spec.memory_dir.is_some() {
        return Vec::new();
    }
    let mut by_node: BTreeMap<u32, u64> = BTreeMap::new();
    for cpu in cpus.iter() {
        *by_node.entry(machine.topology.cpu(cpu).map_or(0, |c| c.node)).or_default() += 1;
    }
    // All CPUs of a node load, and one of them chases beside them. A buffer of a chase takes half of what there is.
    let buffers = match spec.task {
        Task::Latency(_) => 2,
        _ => by_node.values().copied().max().unwrap_or(0) + 1,
    };
    let needed = match (requested.buffer(), &spec.task) {
        (Some(size), Task::Latency(_)) => size.0,
        (Some(size), _) => size.0.saturating_mul(buffers - 1),
        (None, _) => LEAST_BUFFER.saturating_mul(buffers),
    };
    let room = |node: u32| {
        let pool = machine.topology.node(node).map_or(0, |node| pool_room(node, spec));
        Some(machine.allowed.node_memory.get(&node)?.0.saturating_add(pool))
    };
    let short: Vec<(u32, u64)> = nodes.iter().filter_map(|node| Some((node, room(node)?))).filter(|(_, room)| *room < needed).collect();
    if short.len() == nodes.len() {
        return Vec::new();
    }
    let why = |room| {
        format!(
            "{} of its memory may be taken, and the buffers of a measurement take at least {}",
            approximately(room),
            approximately(needed)
        )
    };
    short.into_iter().map(|(node, room)| (node, why(room))).collect()
}
