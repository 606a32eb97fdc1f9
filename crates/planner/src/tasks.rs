//! The steps of each task, and how long they take.

mod bandwidth;
mod interleave;
mod latency;
mod loaded;
pub mod pmem;
mod prefetch;
pub mod quick;
mod scan;
mod sweep;
mod tiers;
mod transfer;

use memgauge_model::experiment::{Experiment, PrefetchRequest};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::{Cell, KernelRow, MIN_TRANSFER_S, Plan, StampPlan, Step, StopRule, Work};
use memgauge_model::prefetchers;
use memgauge_model::protocol::MANY_CELLS;
use memgauge_model::spec::{BandwidthShape, ChaseSpec, CurveSpec, LatencyShape, Spec, Task, TransferShape, TransferSpec};
use memgauge_model::topology::Machine;
use memgauge_model::units::IdSet;
use memgauge_model::words;
use memgauge_model::words::{Knob, Way};

use self::quick::FIRST_ROUND_SHARE;
use crate::check::{PlanError, check_cpus, check_pool, check_traffic, named, unavailable};
use crate::context::{DEFAULT_SEED, Planner};
use crate::requested::Requested;
use crate::stamp::{self, stamp};
use crate::{coarsen, cost};

/// The share of the time for the whole run that is planned for cells. The rest is for reading the machine's state and writing the result.
const WITHIN: f64 = 0.95;
/// Seconds of a run that are not its cells': reading the machine, calibrating the clock, comparing the clocks of the CPUs, writing the result.
const FRAME_S: f64 = 0.25;

/// Makes the plan for `spec` on `machine`. `kernels` are those that can run there; none if the plan is for another instruction set.
///
/// # Errors
/// [`PlanError::Request`] when the request names what does not exist; [`PlanError::Unavailable`] when it names what this
/// process may not use, or needs more memory or CPUs than there are.
pub fn plan(spec: &Spec, machine: &Machine, kernels: &[KernelRow]) -> Result<Plan, PlanError> {
    let mut planner = Planner::new(spec, requested(&spec.task), machine, kernels)?;
    check_traffic(spec, &planner.requested)?;
    let mut steps = match &spec.task {
        Task::Suite(_) => planner.suite()?,
        Task::Latency(latency) => vec![planner.latency(latency.shape)?],
        Task::Bandwidth(bandwidth) => vec![planner.bandwidth(&bandwidth.shape, &bandwidth.delays)?],
        Task::Loaded(loaded) => vec![planner.loaded(&loaded.curve)?],
        Task::Interleave(interleave) => vec![planner.interleave(interleave)?],
        Task::C2c(transfer) => vec![planner.c2c(transfer)?],
        Task::Scan(scan) => vec![planner.scan(scan)?],
        Task::Sweep(sweep) => planner.sweep(sweep)?,
        Task::Quick(_) => planner.quick()?,
        Task::Prefetch(_) => planner.prefetch()?,
        Task::Pmem(pmem) => planner.pmem(pmem)?,
        Task::Tiers(_) => planner.tiers()?,
    };
    check_pool(spec, machine, &steps)?;
    let stamp = spec.stamp.then(|| stamp(machine, kernels, spec.within)).flatten().map(Box::new);
    let stamps_s = stamp.as_ref().map_or(0.0, |stamp| stamp.both_s());
    let (stop, max_s) = planner.set_times(&mut steps, stamps_s);
    let estimated_s = steps.iter().map(|s| s.estimated_s).sum::<f64>() + stamps_s;
    let keep_awake = keep_awake(spec, machine)?;
    let traffic = planner.requested.traffic;
    let of_pmem = if let Task::Pmem(pmem) = &spec.task { pmem.directories.as_slice() } else { &[] };
    let directories = spec.memory_dir.iter().chain(of_pmem).cloned().chain(traffic.thread_directories()).collect();
    let at_once = steps.iter().flat_map(|s| &s.cells).map(|c| c.work.cpus().len()).max().unwrap_or(0);
    let mut notes: Vec<Note> = quota_note(machine, at_once).into_iter().chain(planner.notes).collect();
    if matches!(spec.task, Task::Prefetch(_)) || spec.prefetch != PrefetchRequest::Leave {
        notes.push(prefetchers::taint_note());
    }
    let mut seen = std::collections::BTreeSet::new();
    notes.retain(|n| seen.insert((n.code.clone(), n.message.to_string())));
    let mut plan = Plan {
        steps,
        stop,
        seed: spec.seed.unwrap_or(DEFAULT_SEED),
        keep_awake,
        keep_awake_named: spec.keep_awake.is_some(),
        compared_cores: if matches!(spec.task, Task::Quick(_)) { machine.topology.one_per_core(&planner.cpus) } else { IdSet::new() },
        directories,
        tiers: if matches!(spec.task, Task::Tiers(_)) { memgauge_model::tiers::kinds(machine) } else { Vec::new() },
        estimated_s,
        max_s,
        within_s: spec.within.map(|t| t.as_secs_f64()),
        coarsened: planner.coarsened,
        contents: traffic.contents.clone(),
        start_signal: spec.start_signal.clone(),
        peak_gbs: spec.peak_gbs,
        counters: spec.counters,
        stamp,
        notes,
    };
    if let Some(kept) = plan.kept_samples() {
        plan.notes.push(Note::info(
            NoteCode::SamplesThinned,
            format!("results keep {kept} samples of each burst: there are more than {MANY_CELLS} cells"),
        ));
    }
    Ok(plan)
}

/// Makes the plan of a stamp that was asked for, and of nothing else.
///
/// # Errors
/// [`PlanError::Unavailable`] if this machine can have no stamp, and those of [`plan`].
pub fn stamp_alone(machine: &Machine, kernels: &[KernelRow]) -> Result<Plan, PlanError> {
    only_stamp(machine, kernels, stamp::alone)
}

/// Makes the plan of each stamp of a watch.
///
/// # Errors
/// As [`stamp_alone`].
pub fn stamp_of_watch(machine: &Machine, kernels: &[KernelRow]) -> Result<Plan, PlanError> {
    only_stamp(machine, kernels, |stamp| stamp)
}

fn only_stamp(machine: &Machine, kernels: &[KernelRow], change: fn(StampPlan) -> StampPlan) -> Result<Plan, PlanError> {
    let spec = Spec { stamp: true, ..Spec::new(Task::latency(LatencyShape::One)) };
    let plan = plan(&spec, machine, kernels)?;
    let Some(stamp) = plan.stamp.map(|stamp| change(*stamp)) else { return unavailable(stamp::needs()) };
    let longest_s = stamp.at_most_s;
    Ok(Plan { steps: Vec::new(), estimated_s: longest_s, max_s: longest_s, notes: Vec::new(), stamp: Some(Box::new(stamp)), ..plan })
}

/// The requests of a task for its chases and loaders.
fn requested(task: &Task) -> Requested<'_> {
    match task {
        Task::Suite(suite) => Requested::sized(suite.buffer).loading(&suite.load),
        Task::Latency(latency) => {
            let names_nodes = latency.shape == LatencyShape::Matrix;
            Requested { chase: latency.chase, orders: &latency.orders, names_nodes, ..Requested::sized(None) }
        }
        Task::Bandwidth(bandwidth) => {
            Requested { names_nodes: bandwidth.shape == BandwidthShape::Matrix, ..Requested::sized(None).with_traffic(&bandwidth.traffic) }
        }
        Task::Loaded(loaded) => {
            Requested { chase: loaded.chase, orders: loaded.order.as_slice(), ..Requested::sized(None).with_traffic(&loaded.traffic) }
        }
        Task::Interleave(interleave) => Requested { names_nodes: true, ..Requested::sized(interleave.buffer).loading(&interleave.load) },
        Task::C2c(transfer) => {
            let (stride, touch, hops) = (transfer.stride, transfer.touch, transfer.hops);
            let sized = Requested::sized(transfer.buffer);
            let names_nodes = transfer.shape == TransferShape::NodeMatrix;
            Requested { chase: ChaseSpec { stride, touch, hops, ..sized.chase }, names_nodes, ..sized }
        }
        Task::Scan(scan) => Requested { width: scan.width, ..Requested::sized(None) },
        Task::Sweep(sweep) => {
            let chase = ChaseSpec { stride: sweep.stride, window: sweep.window, ..ChaseSpec::default() };
            Requested { chase, orders: sweep.order.as_slice(), ..Requested::sized(None).loading(&sweep.load) }
        }
        Task::Quick(quick) => Requested::sized(quick.buffer),
        Task::Prefetch(prefetch) => Requested { names_nodes: true, ..Requested::sized(prefetch.buffer) },
        Task::Pmem(pmem) => Requested { names_nodes: true, ..Requested::sized(pmem.file) },
        Task::Tiers(tiers) => {
            let sized = Requested::sized(tiers.buffer).loading(&tiers.load);
            let chase = ChaseSpec { hops: tiers.hops, histogram: tiers.histogram, ..sized.chase };
            Requested { chase, names_nodes: true, ..sized }
        }
    }
}

/// CPUs to keep busy: those named, or one of each package if there are several packages.
fn keep_awake(spec: &Spec, machine: &Machine) -> Result<IdSet, PlanError> {
    if let Some(cpus) = &spec.keep_awake {
        return check_cpus(cpus, machine).map_err(|e| named(Knob::KeepAwake, e));
    }
    let packages = machine.topology.packages();
    if packages.len() < 2 {
        return Ok(IdSet::new());
    }
    let package = |cpu: u32| machine.topology.cpu(cpu).map(|c| c.package);
    let cpus = machine.default_cpus();
    Ok(packages.iter().filter_map(|p| cpus.iter().find(|&cpu| package(cpu) == Some(p))).collect())
}

/// Warns if more CPUs work at once than this process's control group may use.
fn quota_note(machine: &Machine, at_once: usize) -> Option<Note> {
    let quota = machine.allowed.cpu_quota.filter(|q| *q < at_once as f64)?;
    let (group, limit) = machine.identity.system.words().cpu_quota;
    let message = format!("this {group} may use {quota:.2} CPUs' worth of time, and {at_once} CPUs work at once");
    let throttled = words!["name fewer CPUs with ", Knob::Cpus, ": a throttled thread measures the throttle"];
    let advice = Way::from(format!("raise {limit}")).or(throttled);
    Some(Note::warning(NoteCode::CpuQuota, message).advise(advice))
}

impl Planner<'_> {
    fn suite(&mut self) -> Result<Vec<Step>, PlanError> {
        let mut steps = vec![self.latency(LatencyShape::Matrix)?, self.bandwidth(&BandwidthShape::Peak, &[])?];
        if self.nodes.len() > 1 || self.cpu_nodes().len() > 1 {
            steps.push(self.bandwidth(&BandwidthShape::Matrix, &[])?);
        }
        if self.cpus.len() > 1 {
            // Virtual machines of two CPUs often have one core.
            if self.machine.topology.one_per_core(&self.cpus).len() > 1 {
                steps.push(self.loaded(&CurveSpec::default())?);
            } else {
                let note = Note::warning(NoteCode::OneCore, "only one core may be used: latency under load needs two");
                self.notes.push(note.advise(format!("allow another core ({}) to measure it", self.cpu_limits())));
            }
            steps.push(self.c2c(&TransferSpec::default())?);
        } else {
            let note =
                Note::warning(NoteCode::OneCpu, "only one CPU may be used: latency under load and cache-to-cache transfers need two");
            self.notes.push(note.advise(format!("allow another CPU ({}) to measure them", self.cpu_limits())));
        }
        // The first cell runs again at the end, so that slow drift shows as a difference.
        if let Some(first) = steps.first().and_then(|s| s.cells.first()).cloned() {
            let (title, cells) = ("Idle latency again, as a control of drift".into(), vec![Cell { repeat: true, ..first }]);
            steps.push(Step { title, experiment: Experiment::IdleLatency, cells, estimated_s: 0.0 });
        }
        Ok(steps)
    }

    /// Sets the estimated time of every step. Returns when cells end, and the longest time of the whole. If the run has a time limit, what is
    /// measured becomes coarser until it fits. The stamps of the run take `stamps_s` of its time.
    fn set_times(&mut self, steps: &mut [Step], stamps_s: f64) -> (StopRule, f64) {
        let mut stop = self.stop_rule(steps);
        let quick = matches!(self.spec.task, Task::Quick(_));
        let within_s = if quick { Some(self.quick_within()) } else { self.spec.within.map(|t| t.as_secs_f64()) };
        let planned_s = within_s.map(|within_s| within_s * if quick { FIRST_ROUND_SHARE } else { WITHIN } - FRAME_S - stamps_s);
        if let Some(planned_s) = planned_s {
            stop.budget_s = self.fit(steps, &stop, planned_s);
        }
        for cell in steps.iter_mut().flat_map(|s| &mut s.cells) {
            if let Work::Transfers(transfers) = &mut cell.work {
                transfers.each_s = transfers.each_s.min(stop.budget_s.max(MIN_TRANSFER_S));
            }
        }
        let max_s = cost::fill(steps, &stop, self.spec.counters);
        if let Some(within_s) = within_s {
            self.notes.extend(coarsen::note(&self.coarsened, within_s));
        }
        if let (Some(within_s), Some(planned_s)) = (within_s, planned_s.filter(|planned_s| max_s > *planned_s)) {
            let least_s = max_s + within_s - planned_s;
            let message = format!(
                "even the coarsest plan may take {least_s:.1} s, and the run ends after {within_s:.0} s: the cells that say most are measured"
            );
            let advice = Way::from("name fewer CPUs, nodes, mixes or sizes").or(words!["give it more time with ", Knob::Within]);
            self.notes.push(Note::warning(NoteCode::WithinTooShort, message).advise(advice));
        }
        (stop, if quick { self.quick_within() } else { max_s + stamps_s })
    }
}
