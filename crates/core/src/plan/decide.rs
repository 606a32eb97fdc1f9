//! From what was asked to what will be done: the steps of each task.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::check::{check_cpus, check_directory, check_nodes};
use super::cost;
use super::load::{SEARCH_DELAYS, with_delay};
use super::sizes::Sizes;
use super::{Cell, Delays, KernelRow, Plan, Probe, Step, StopRule, Work, transfers};
use crate::directory::FileBacking;
use crate::note::Note;
use crate::prefetchers::{self, PrefetchRequest};
use crate::result::{ChaseOrder, Coordinates, Experiment, Table};
use crate::spec::{BandwidthShape, ChaseSpec, LatencyShape, Spec, Task, TransferShape};
use crate::topology::Machine;
use crate::traffic::Mix;
use crate::units::{Bytes, IdSet};

pub(super) mod chase;
mod transfer;

/// Half-width of the 95 % interval to stop at: the field's 1 % (Hoefler & Belli, SC'15, rule 5).
const DEFAULT_HALF_WIDTH: f64 = 0.01;
/// Seconds for one cell of a command that was asked for by name.
const COMMAND_BUDGET_S: f64 = 4.0;
/// Seconds for one cell of the suite: eight bursts, a little more than the fewest of which an interval exists, so that the smallest machine, with some
/// thirty cells and points, takes some fifteen seconds and no more where intervals stay wide.
const SUITE_BUDGET_S: f64 = 0.48;
/// Share of the time for the whole run that cells are planned for: the rest is for looking at the machine and for writing the result.
const WITHIN: f64 = 0.95;
/// Seconds for one cell of a large matrix.
const LARGE_MATRIX_BUDGET_S: f64 = 1.0;
/// Cells above which a matrix takes fewer allocations and less time for each.
const LARGE_MATRIX: usize = 36;
/// Fresh allocations for a latency cell that was asked for by name: with twelve, Student's factor is near its limit.
const ALLOCATIONS: u32 = 12;
/// Fresh allocations for a cell of the suite. Six is the fewest of which a non-parametric 95 % interval exists.
const SUITE_ALLOCATIONS: u32 = 6;
/// Fresh allocations in a large matrix: the least that shows a placement effect at all.
const FEW_ALLOCATIONS: u32 = 3;
/// Points of an adaptive curve: enough for gaps below 10 % of the peak.
const CURVE_POINTS: u32 = 12;
/// Arbitrary; printed with the plan so that a run can be repeated with the same orders.
const DEFAULT_SEED: u64 = 1;

/// Why no plan can be made. Every message names the thing and the way out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The request itself is wrong on this machine.
    #[error("{0}")]
    Request(String),
    /// The request is right, but this process may not have what it needs.
    #[error("{0}")]
    Unavailable(String),
}

/// Decides every default of `spec` for `machine`; `kernels` are those that can run there (none: planning for another instruction set).
///
/// # Errors
/// [`PlanError::Request`] when the request names what does not exist; [`PlanError::Unavailable`] when it names what this
/// process may not use, or needs more memory or CPUs than there are.
pub fn plan(spec: &Spec, machine: &Machine, kernels: &[KernelRow]) -> Result<Plan, PlanError> {
    let mut planner = Planner::new(spec, machine, kernels)?;
    planner.check_traffic()?;
    let mut steps = match spec.task {
        Task::Suite => planner.suite()?,
        Task::Latency(shape) => vec![planner.latency(shape)?],
        Task::Bandwidth(shape) => vec![planner.bandwidth(shape)?],
        Task::Loaded => planner.loaded()?,
        Task::C2c(shape) => vec![planner.c2c(shape)?],
        Task::Scan => vec![planner.scan()?],
        Task::Sweep(shape) => planner.sweep(shape)?,
        Task::Quick => planner.quick()?,
        Task::Prefetch => planner.prefetch()?,
    };
    let (stop, most_s) = if spec.task == Task::Quick { planner.quick_time() } else { planner.time(&mut steps) };
    let estimated_s = steps.iter().map(|s| s.estimated_s).sum();
    let keep_awake = planner.keep_awake()?;
    let directories = spec.memory_dir.iter().cloned().chain(planner.thread_directories()).collect();
    let at_once = steps.iter().flat_map(|s| &s.cells).map(|c| c.work.cpus().len()).max().unwrap_or(0);
    let mut notes: Vec<Note> = quota_note(machine, at_once).into_iter().chain(planner.notes).collect();
    if spec.task == Task::Prefetch || spec.prefetch != PrefetchRequest::Leave {
        notes.push(prefetchers::taint_note());
    }
    let mut seen = std::collections::BTreeSet::new();
    notes.retain(|n| seen.insert((n.code.clone(), n.message.clone())));
    Ok(Plan {
        steps,
        stop,
        seed: spec.seed.unwrap_or(DEFAULT_SEED),
        keep_awake,
        keep_awake_named: spec.keep_awake.is_some(),
        directories,
        estimated_s,
        most_s,
        within_s: spec.within.map(|t| t.as_secs_f64()),
        contents: spec.traffic.contents.clone(),
        start_signal: spec.start_signal.clone(),
        peak_gbs: spec.peak_gbs,
        counters: spec.counters,
        notes,
    })
}

/// Why there is no full-random chase over so large a buffer: links number lines by 32 bits.
fn too_long(buffer: Bytes) -> String {
    format!("a full-random chase over {buffer} has more lines than can be numbered (2^32)")
}

/// Says when more CPUs work at once than this process's control group may use.
fn quota_note(machine: &Machine, at_once: usize) -> Option<Note> {
    let quota = machine.allowed.cpu_quota.filter(|q| *q < at_once as f64)?;
    let message = format!("this control group may use {quota:.2} CPUs' worth of time, and {at_once} CPUs work at once");
    Some(
        Note::warning("cpu-quota", message)
            .advise("raise cpu.max of the group, or name fewer CPUs with --cpu: a throttled thread measures the throttle"),
    )
}

pub(super) struct Planner<'a> {
    pub(super) spec: &'a Spec,
    pub(super) machine: &'a Machine,
    pub(super) kernels: &'a [KernelRow],
    /// CPUs to measure from.
    pub(super) cpus: IdSet,
    /// Memory nodes to measure.
    pub(super) nodes: IdSet,
    /// Buffers are on a device (DAX): its node, `None` within when the kernel does not state it.
    device: Option<Option<u32>>,
    pub(super) sizes: Sizes<'a>,
    pub(super) notes: Vec<Note>,
}

impl<'a> Planner<'a> {
    fn new(spec: &'a Spec, machine: &'a Machine, kernels: &'a [KernelRow]) -> Result<Self, PlanError> {
        let mut cpus = match &spec.cpus {
            Some(asked) => check_cpus(asked, machine)?,
            None => machine.allowed.cpus.clone(),
        };
        if cpus.is_empty() {
            return Err(PlanError::Unavailable("this process may use no online CPU; check its affinity (taskset -p) and cpuset".into()));
        }
        check_directory(spec)?;
        chase::check(spec, machine)?;
        let mut nodes = match &spec.nodes {
            Some(asked) => check_nodes(asked, machine)?,
            None => machine.allowed.nodes.clone(),
        };
        if nodes.is_empty() {
            return Err(PlanError::Unavailable("this process may use memory of no node; check cpuset.mems of its control group".into()));
        }
        if spec.one_thread_per_core {
            cpus = machine.topology.one_per_core(&cpus);
        }
        let backing = spec.memory_dir.as_ref().map(|d| d.file.backing);
        if backing == Some(FileBacking::PageCache) {
            // No policy binds the page cache: its pages are where they are touched first, so they need a CPU there.
            let touchable = |n: &u32| machine.topology.node(*n).is_some_and(|n| !n.cpus.intersection(&machine.allowed.cpus).is_empty());
            nodes = nodes.iter().filter(touchable).collect();
            if nodes.is_empty() {
                return Err(PlanError::Unavailable(
                    "the page cache can be placed on no node: this process may use no CPU of a node whose memory it may use; give a directory of a tmpfs".into(),
                ));
            }
        }
        // A node that is not online has no CPUs to touch from, and nothing to compare with.
        let device_node = || spec.memory_dir.as_ref()?.file.device_node.filter(|n| machine.topology.node(*n).is_some());
        let device = (backing == Some(FileBacking::Dax)).then(device_node);
        let notes: Vec<Note> = spec.memory_dir.iter().flat_map(|d| d.notes()).collect();
        Ok(Self { spec, machine, kernels, cpus, nodes, device, sizes: Sizes::new(spec, machine), notes })
    }

    fn stop(&self, steps: &[Step]) -> StopRule {
        let suite = self.spec.task == Task::Suite;
        let default = match () {
            () if matches!(self.spec.task, Task::Sweep(_)) => super::sweep::POINT_BUDGET_S,
            () if suite => SUITE_BUDGET_S,
            () if steps.iter().any(|s| s.cells.len() > LARGE_MATRIX) => LARGE_MATRIX_BUDGET_S,
            () => COMMAND_BUDGET_S,
        };
        StopRule {
            relative_half_width: self.spec.confidence.unwrap_or(match self.spec.task {
                Task::Scan => super::scan::HALF_WIDTH,
                Task::Sweep(_) => super::sweep::HALF_WIDTH,
                _ => DEFAULT_HALF_WIDTH,
            }),
            budget_s: self.spec.time.or(self.spec.budget).map_or(default, |t| t.as_secs_f64()),
            fixed_time: self.spec.time.is_some(),
        }
    }

    /// When cells end, and the most that the whole may take; every step gets its estimate. Where the whole is to end in time, so is each cell.
    fn time(&mut self, steps: &mut [Step]) -> (StopRule, f64) {
        let mut stop = self.stop(steps);
        let (counters, within) = (self.spec.counters, self.spec.within.map(|t| t.as_secs_f64()));
        if let Some(within_s) = within.filter(|_| self.spec.time.or(self.spec.budget).is_none()) {
            stop.budget_s = cost::budget_within(steps, &stop, counters, WITHIN * within_s);
        }
        for transfers in steps.iter_mut().flat_map(|s| &mut s.cells).filter_map(|c| c.work.transfers_mut()) {
            transfers.each_s = transfers.each_s.min(stop.budget_s.max(transfers::LEAST_S));
        }
        let most_s = cost::fill(steps, &stop, counters);
        if let Some(within_s) = within.filter(|within_s| most_s > *within_s) {
            self.notes.push(
                Note::warning(
                    "within-too-short",
                    format!("this may take {most_s:.0} s, and ends after {within_s:.0} s: what is not measured by then is left out"),
                )
                .advise("name fewer CPUs, nodes, mixes or sizes, or give it more time with --within"),
            );
        }
        (stop, most_s)
    }

    fn first_cpu_of_each_package(&self) -> IdSet {
        let topology = &self.machine.topology;
        topology
            .packages()
            .iter()
            .filter_map(|p| self.machine.allowed.cpus.iter().find(|&c| topology.cpu(c).is_some_and(|c| c.package == p)))
            .collect()
    }

    /// Nodes of the CPUs measured from: the rows of a matrix.
    pub(super) fn cpu_nodes(&self) -> IdSet {
        self.cpus.iter().map(|c| self.node_of(c)).collect()
    }

    pub(super) fn node_of(&self, cpu: u32) -> u32 {
        self.machine.topology.cpu(cpu).map_or(0, |c| c.node)
    }

    pub(super) fn cpus_of(&self, node: u32) -> IdSet {
        self.cpus.iter().filter(|&c| self.node_of(c) == node).collect()
    }

    /// The node that a CPU's own memory comes from: its node, or the nearest measured one when that may not be used.
    pub(super) fn home_of(&mut self, cpu: u32) -> u32 {
        let own = self.node_of(cpu);
        if let Some(device) = self.device {
            return device.unwrap_or(own);
        }
        if self.nodes.contains(own) {
            return own;
        }
        let distances = self.machine.topology.node(own).map(|n| n.distances.clone()).unwrap_or_default();
        let near = self.nodes.iter().min_by_key(|n| distances.get(n).copied().unwrap_or(u32::MAX)).unwrap_or(own);
        if self.spec.nodes.is_none() {
            self.notes.push(
                Note::warning("no-local-memory", format!("CPUs of node {own} may not use its memory; node {near} is used instead"))
                    .advise("allow the node in cpuset.mems, or name CPUs of another node with --cpu"),
            );
        }
        near
    }

    /// A buffer's node as a coordinate: a device that does not state its node has none.
    pub(super) fn named(&self, node: u32) -> Option<u32> {
        self.device.unwrap_or(Some(node))
    }

    /// The columns of a matrix: the nodes measured, or the one device. `None`: its node is not known.
    pub(super) fn columns(&self) -> Vec<Option<u32>> {
        self.device.map_or_else(|| self.nodes.iter().map(Some).collect(), |device| vec![device])
    }

    fn suite(&mut self) -> Result<Vec<Step>, PlanError> {
        let mut steps = vec![self.latency(LatencyShape::Matrix)?, self.bandwidth(BandwidthShape::Peak)?];
        if self.nodes.len() > 1 || self.cpu_nodes().len() > 1 {
            steps.push(self.bandwidth(BandwidthShape::Matrix)?);
        }
        if self.cpus.len() > 1 {
            steps.extend(self.loaded()?);
            steps.push(self.c2c(TransferShape::Representatives)?);
        } else {
            self.notes.push(
                Note::warning("one-cpu", "only one CPU may be used: latency under load and cache-to-cache transfers need two")
                    .advise("allow another CPU (taskset, cpuset) to measure them"),
            );
        }
        // The first cell once more, when everything else has run: slow drift shows as a difference.
        if let Some(first) = steps.first().and_then(|s| s.cells.first()).cloned() {
            let cell = Cell { at: Coordinates { repeat: true, ..first.at }, work: first.work };
            steps.push(Step {
                title: "Idle latency again, as a control of drift".into(),
                experiment: Experiment::IdleLatency,
                cells: vec![cell],
                estimated_s: 0.0,
            });
        }
        Ok(steps)
    }

    pub(super) fn budget(&self) -> f64 {
        self.stop(&[]).budget_s
    }

    fn latency(&mut self, shape: LatencyShape) -> Result<Step, PlanError> {
        let (orders, hops, histogram) = (self.orders(), self.spec.chase.hops, self.spec.chase.histogram);
        let several = self.spec.cpus.is_some() && self.cpus.len() > 1;
        let cpus: Vec<u32> = match shape {
            LatencyShape::Matrix => self.cpu_nodes().iter().filter_map(|n| self.cpus_of(n).first()).collect(),
            LatencyShape::PerCpu => self.cpus.iter().collect(),
            LatencyShape::One if several => self.cpus.iter().collect(),
            LatencyShape::One => self.cpus.first().into_iter().collect(),
        };
        let mut pairs = Vec::new();
        for cpu in cpus {
            let all =
                self.device.is_none() && self.spec.chase.touch.is_none() && (shape == LatencyShape::Matrix || self.spec.nodes.is_some());
            let nodes = if all { self.nodes.clone() } else { IdSet::one(self.chase_home(cpu)) };
            pairs.extend(nodes.iter().map(|node| (cpu, node)));
        }
        let table =
            if shape == LatencyShape::PerCpu || (shape == LatencyShape::One && several) { Table::PerCpu } else { Table::NodeMatrix };
        let allocations = match pairs.len() {
            n if n > LARGE_MATRIX => FEW_ALLOCATIONS,
            _ if self.spec.task == Task::Suite => SUITE_ALLOCATIONS,
            _ => ALLOCATIONS,
        };
        let mut cells = Vec::new();
        for (cpu, node) in pairs {
            let probe = self.probe(cpu, node, 0)?;
            let mut orders = orders.clone();
            if orders.is_empty() && self.sizes.too_long(probe.buffer.bytes) {
                self.notes.push(Note::info("no-full-random", format!("{}: the chase is window-local only", too_long(probe.buffer.bytes))));
                orders.push(ChaseOrder::WindowLocal);
            }
            let allocations = hops.map_or(allocations, |hops| self.allocations_of(hops, &probe, allocations));
            let at = Coordinates {
                table: Some(table),
                cpu_node: Some(self.node_of(cpu)),
                memory_node: self.named(node),
                cpu: Some(cpu),
                ..Default::default()
            };
            cells.push(Cell { at, work: Work::Latency { probe, allocations, orders, hops, histogram } });
        }
        let title = "Idle latency";
        Ok(self.step(title, Experiment::IdleLatency, cells))
    }

    pub(super) fn probe(&mut self, cpu: u32, node: u32, beside: u64) -> Result<Probe, PlanError> {
        let stride = self.sizes.stride()?;
        let mut buffer = self.sizes.probe_buffer(cpu, node, beside, &mut self.notes)?;
        if let Some(touch) = self.spec.chase.touch {
            buffer.touch = IdSet::one(touch);
        }
        if self.spec.chase.orders.contains(&ChaseOrder::FullRandom) && self.sizes.too_long(buffer.bytes) {
            return Err(PlanError::Request(format!("{}; give a smaller --size or another --order", too_long(buffer.bytes))));
        }
        let window = self.sizes.window(buffer.bytes, stride)?;
        Ok(Probe { cpu, buffer, stride, window })
    }

    /// The node asked for, where a measurement has place for one only.
    pub(super) fn one_node(&self) -> Result<Option<u32>, PlanError> {
        if let Some(device) = self.device {
            return Ok(device);
        }
        match &self.spec.nodes {
            // In the suite nodes only narrow what is measured; each CPU uses the nearest of them.
            _ if self.spec.task == Task::Suite => Ok(None),
            Some(nodes) if nodes.len() > 1 => Err(PlanError::Request(format!(
                "--node names {nodes}, and this measures one node's memory at a time; name one, or use 'memgauge bandwidth --matrix'"
            ))),
            nodes => Ok(nodes.as_ref().and_then(IdSet::first)),
        }
    }

    fn bandwidth(&mut self, shape: BandwidthShape) -> Result<Step, PlanError> {
        if matches!(shape, BandwidthShape::Matrix | BandwidthShape::Ramp | BandwidthShape::Search) && !self.spec.delays.is_empty() {
            return Err(PlanError::Request(
                "--delay is for one CPU set and node at a time; leave it or --matrix, --ramp, --search out".into(),
            ));
        }
        let order = self.machine.topology.spread(&self.cpus);
        let fixed_node = if shape == BandwidthShape::Matrix { None } else { self.one_node()? };
        let mut cells = Vec::new();
        match shape {
            _ if !self.spec.traffic.threads.is_empty() => cells = self.threads_alone()?,
            BandwidthShape::One | BandwidthShape::Peak => {
                let default: &[Mix] = if shape == BandwidthShape::Peak { &Mix::PEAK } else { &[Mix::AllReads] };
                for mix in self.mixes(default)? {
                    let cell = self.bandwidth_cell(Table::PerMix, &order, None, fixed_node, mix)?;
                    cells.extend(self.delayed(cell));
                }
            }
            BandwidthShape::Search => {
                for mix in self.mixes(&Mix::PEAK)? {
                    for cpus in self.crews_to_try(&order) {
                        let cell = self.bandwidth_cell(Table::Search, &cpus, None, fixed_node, mix)?;
                        cells.extend(SEARCH_DELAYS.map(|delay| with_delay(cell.clone(), delay)));
                    }
                }
            }
            BandwidthShape::Matrix => {
                for mix in self.mixes(&[Mix::AllReads])? {
                    for row in self.cpu_nodes().iter() {
                        let cpus = self.machine.topology.spread(&self.cpus_of(row));
                        for column in self.columns() {
                            cells.push(self.bandwidth_cell(Table::NodeMatrix, &cpus, Some(row), column, mix)?);
                        }
                    }
                }
            }
            BandwidthShape::Ramp => {
                for mix in self.mixes(&[Mix::AllReads])? {
                    for n in ramp(order.len()) {
                        cells.push(self.bandwidth_cell(Table::Ramp, &order[..n], None, fixed_node, mix)?);
                    }
                }
            }
        }
        let title = match shape {
            _ if !self.spec.traffic.threads.is_empty() => "Bandwidth of given threads",
            BandwidthShape::One => "Bandwidth",
            BandwidthShape::Peak => "Peak bandwidth by mix",
            BandwidthShape::Matrix => "Bandwidth by node",
            BandwidthShape::Ramp => "Bandwidth by number of CPUs",
            BandwidthShape::Search => "Highest bandwidth by mix",
        };
        Ok(self.step(&self.titled(title), Experiment::Bandwidth, cells))
    }

    pub(super) fn bandwidth_cell(
        &mut self,
        table: Table,
        cpus: &[u32],
        row: Option<u32>,
        node: Option<u32>,
        mix: Mix,
    ) -> Result<Cell, PlanError> {
        let loaders = self.loaders(cpus, node, 0)?;
        let at = Coordinates {
            table: Some(table),
            cpu_node: row,
            memory_node: node,
            cpus: Some(cpus.iter().copied().collect()),
            mix: Some(mix),
            ..Default::default()
        };
        Ok(Cell { at, work: Work::Bandwidth { loaders, traffic: self.traffic(mix)?, delay: 0 } })
    }

    /// One curve a mix: the first CPU chases, the others, its SMT siblings left idle, load.
    fn loaded(&mut self) -> Result<Vec<Step>, PlanError> {
        let chaser = self.spec.chase.cpu.or_else(|| self.cpus.first()).unwrap_or(0);
        let siblings = self.machine.topology.cpu(chaser).map(|c| c.siblings.clone()).unwrap_or_default();
        let others = self.cpus.difference(&siblings).difference(&IdSet::one(chaser));
        if others.is_empty() && self.spec.traffic.threads.is_empty() {
            return Err(PlanError::Unavailable(format!(
                "latency under load needs a second core beside CPU {chaser}; allow one (taskset, cpuset) or name more with --cpu"
            )));
        }
        let loading = self.machine.topology.spread(&others);
        let fixed_node = self.one_node()?;
        let home = match (self.spec.chase.node, self.spec.chase.touch, fixed_node) {
            (Some(node), ..) => node,
            (None, None, Some(node)) => node,
            _ => self.chase_home(chaser),
        };
        let order = self.orders().first().copied();
        let mut cells = Vec::new();
        let threads = !self.spec.traffic.threads.is_empty();
        let mixes = if threads { vec![self.spec.traffic.threads[0].mix] } else { self.mixes(&[Mix::AllReads])? };
        for mix in mixes {
            let probe = self.probe(chaser, home, 0)?;
            let beside = probe.buffer.bytes.0;
            let load_nodes = self.spec.load_nodes.clone();
            let loaders = match &load_nodes {
                _ if threads => self.threads(beside, &IdSet::one(chaser))?,
                Some(nodes) => self.loaders_on(&loading, nodes, beside)?,
                None => self.loaders(&loading, fixed_node, beside)?,
            };
            let at = Coordinates {
                table: Some(Table::Curve),
                cpu: Some(chaser),
                cpus: Some(loaders.iter().map(|l| l.cpu).collect()),
                cpu_node: Some(self.node_of(chaser)),
                memory_node: self.named(home),
                load_nodes,
                order,
                mix: (!threads).then_some(mix),
                ..Default::default()
            };
            let delays = if self.spec.delays.is_empty() {
                Delays::Adaptive { points: CURVE_POINTS }
            } else {
                Delays::Cycles(self.spec.delays.clone())
            };
            let traffic = self.traffic(mix)?;
            let ChaseSpec { hops, histogram, .. } = self.spec.chase;
            let order = order.unwrap_or(ChaseOrder::WindowLocal);
            let at_percent = self.spec.at_percent.clone();
            cells.push(Cell { at, work: Work::Curve { probe, loaders, traffic, delays, at_percent, order, hops, histogram } });
        }
        let step = self.step(&self.titled("Latency under load"), Experiment::LoadedLatency, cells);
        Ok(vec![step])
    }

    /// Shuffles the cells, so that drift does not look like topology, and repeats the first of several at the end as a control.
    pub(super) fn step(&self, title: &str, experiment: Experiment, mut cells: Vec<Cell>) -> Step {
        let mut title = title.to_owned();
        if let Some(dir) = &self.spec.memory_dir {
            title = format!("{title}, files in {}", dir.file.path);
            for cell in &mut cells {
                cell.at.memory_dir = Some(dir.file.path.clone());
            }
        }
        let matrix = cells.first().is_some_and(|c| matches!(c.at.table, Some(Table::NodeMatrix | Table::PerCpu | Table::CpuPairs)));
        if matrix && cells.len() > 2 {
            shuffle(&mut cells, self.spec.seed.unwrap_or(DEFAULT_SEED));
            if let Some(first) = cells.first().cloned() {
                cells.push(Cell { at: Coordinates { repeat: true, ..first.at }, work: first.work });
            }
        }
        // What it takes is known once all steps are.
        Step { title, experiment, cells, estimated_s: 0.0 }
    }
}

/// 1, 2, 4 … and `n`.
fn ramp(n: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = std::iter::successors(Some(1), |c| Some(c * 2)).take_while(|c| *c < n).collect();
    counts.push(n);
    counts
}

/// Fisher and Yates, with a generator whose values do not depend on a library's version of "a random index".
fn shuffle(cells: &mut [Cell], seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for i in (1..cells.len()).rev() {
        // The remainder's bias is one in 2^60 here.
        cells.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
    }
}
