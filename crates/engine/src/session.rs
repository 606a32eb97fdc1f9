//! The state of a run: threads, buffers that cells share, and what has been found so far.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use memgauge_core::conclusions::judge;
use memgauge_core::distribution::Distribution;
use memgauge_core::estimate::Estimate;
use memgauge_core::experiment::{Coordinates, Experiment, Metric, Unit};
use memgauge_core::note::Note;
use memgauge_core::plan::{BufferPlan, Cell, Plan, Probe, Work};
use memgauge_core::result::{Checksums, CurveSummary, Evidence, Measurement, Noise, Plateau, RfoEvidence, Timing, Trial};
use memgauge_core::traffic::Mix;
use memgauge_core::units::{Bytes, IdSet};
use memgauge_kernels::Kernel;
use memgauge_linux::clock::{self, Clock};
use memgauge_linux::cpu;
use memgauge_linux::memory::{Buffer, MemoryError};
use memgauge_linux::noise::NoiseProbe;
use memgauge_linux::start_signal::{StartSignal, StartSignalError};

use crate::buffers::{ChaseBuffers, Stages};
use crate::burst::BurstResult;
use crate::counting::Bench;
use crate::curve::Manner;
use crate::latency::Idle;
use crate::takes::Mark;
use crate::team::{Disturbance, Team, TeamError};
use crate::{Observer, Outcome, Setting};

/// A sample of latency or bandwidth is the mean over a window this long: some 50,000 hops of 100 ns, or 100 MB at 20 GB/s.
pub(crate) const WINDOW: Duration = Duration::from_millis(5);
/// Windows at the start of a burst that are run and not counted: pipelines, TLBs and the core's clock settle.
pub(crate) const SETTLE_WINDOWS: usize = 1;
/// Windows of a burst that count.
pub(crate) const BURST_WINDOWS: usize = 12;
/// A cell without any sample gets this many times its time before it is given up.
const WITHOUT_SAMPLE: f64 = 8.0;
/// A thread woken from sleep arrives within this time on an idle machine; those that come later show as lack of coverage.
pub(crate) const LEAD: Duration = Duration::from_micros(400);
/// And this much more for each thread of a large team.
pub(crate) const LEAD_PER_THREAD: Duration = Duration::from_micros(20);
/// A thread that has not come back this long after its burst should have ended is lost.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The core's clock has settled after this long at most (method: 100–500 ms).
const WARM_UP: Duration = Duration::from_millis(300);

/// A core that worked so recently runs at the same clock still: governors look every few milliseconds, and lower it step by step.
const STAYS_WARM: Duration = Duration::from_millis(20);

/// Why a cell has no value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CellError {
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Team(#[from] TeamError),
    #[error("interrupted before it was measured")]
    Interrupted,
    #[error("{}", memgauge_core::conclusions::findings::LEFT_OUT)]
    OutOfTime,
    #[error("{0}")]
    Cannot(String),
}

/// Observation of the machine around a cell.
pub(crate) struct Watch {
    cpu: u32,
    ghz_before: Option<f64>,
}

pub(crate) struct Session<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) setting: &'a Setting<'a>,
    observer: &'a mut dyn Observer,
    pub(crate) team: Team,
    /// What each cell waits for, where it is to wait.
    signal: Option<Result<StartSignal, StartSignalError>>,
    /// Loaders' first and second buffers, kept while the next cell wants the same.
    pub(crate) shelf: BTreeMap<(u32, u8), (BufferPlan, Arc<Buffer>)>,
    /// Chases' buffers.
    pub(crate) chase_buffers: ChaseBuffers,
    /// Plateaus found: the probe as planned, the bytes of its buffer then, and what was seen.
    pub(crate) plateaus: Vec<(Probe, Bytes, Option<Plateau>)>,
    /// What setting up was spent on so far.
    pub(crate) stages: Stages,
    /// When each CPU was last seen to work at a frequency that had settled.
    warm: BTreeMap<u32, Instant>,
    /// Kernels that won a trial, by what the trial depended on.
    pub(crate) winners: BTreeMap<String, (&'static Kernel, Vec<Trial>)>,
    pub(crate) results: Vec<Measurement>,
    pub(crate) curves: Vec<CurveSummary>,
    /// Whether plain stores read first, once it was measured.
    pub(crate) rfo: Option<RfoEvidence>,
    notes: Vec<Note>,
    core_ghz: BTreeMap<u32, f64>,
    measuring: Duration,
    done_s: f64,
    /// The estimate of the cell in progress, and how much of it is done where the cell tells.
    cell_s: f64,
    within_s: f64,
    began: Instant,
    /// A cell was cut short, and has results nevertheless.
    cut: bool,
    /// Hardware counters, where they were asked for.
    pub(crate) bench: Option<Bench>,
    /// The noise counters of the cell, or the part of it, that is watched.
    noise: Option<NoiseProbe>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(plan: &'a Plan, setting: &'a Setting<'a>, observer: &'a mut dyn Observer) -> Self {
        Self {
            plan,
            setting,
            observer,
            team: Team::default(),
            signal: plan.start_signal.as_deref().map(StartSignal::open),
            shelf: BTreeMap::new(),
            chase_buffers: ChaseBuffers::default(),
            plateaus: Vec::new(),
            stages: Stages::default(),
            warm: BTreeMap::new(),
            winners: BTreeMap::new(),
            results: Vec::new(),
            curves: Vec::new(),
            rfo: None,
            notes: Vec::new(),
            core_ghz: BTreeMap::new(),
            measuring: Duration::ZERO,
            done_s: 0.0,
            cell_s: 0.0,
            within_s: 0.0,
            began: Instant::now(),
            cut: false,
            bench: plan.counters.then(|| {
                let cpus = plan.steps.iter().flat_map(|s| &s.cells).find_map(|cell| cell.work.cpus().first());
                Bench::new(setting, cpus.unwrap_or(0))
            }),
            noise: None,
        }
    }

    pub(crate) fn run(mut self) -> Outcome {
        let mut complete = true;
        self.compare_clocks();
        for step in &self.plan.steps {
            let per_cell = step.estimated_s / step.cells.len().max(1) as f64;
            self.cell_s = per_cell;
            for cell in &step.cells {
                self.observer.cell(step, cell);
                self.observer.progress(self.share());
                if let Err(error) = self.cell(step.experiment, cell) {
                    complete = false;
                    self.unmeasured(step.experiment, cell, &error);
                }
                complete &= !self.setting.stop.load(Ordering::Relaxed);
                self.done_s += per_cell;
                self.within_s = 0.0;
            }
        }
        // Threads that got no time leave a cell, or a point of it, without a value.
        complete &= !self.cut && self.results.iter().all(|m| m.estimate.value.is_some());
        self.observer.progress(1.0);
        judge::mark_drift(&mut self.results);
        let setup = self.began.elapsed().saturating_sub(self.measuring);
        Outcome {
            timing: Timing {
                setup_s: setup.as_secs_f64(),
                measuring_s: self.measuring.as_secs_f64(),
                total_s: 0.0,
                setup: Some(self.stages.told()),
            },
            results: self.results,
            curves: self.curves,
            rfo: self.rfo,
            notes: self.notes,
            core_ghz: self.core_ghz,
            complete,
        }
    }

    fn cell(&mut self, experiment: Experiment, cell: &Cell) -> Result<(), CellError> {
        // A cell that is begun is measured: what it is expected to take must be left. The first one is begun in any case.
        if self.done_s > 0.0 && self.time_left().is_some_and(|left| left.as_secs_f64() < self.cell_s) {
            return Err(CellError::OutOfTime);
        }
        if self.interrupted() {
            return Err(CellError::Interrupted);
        }
        self.await_start()?;
        let done = self.work(experiment, cell);
        let late = self.time_left() == Some(Duration::ZERO) && !self.setting.stop.load(Ordering::Relaxed);
        let done = if late && matches!(done, Err(CellError::Interrupted)) { Err(CellError::OutOfTime) } else { done };
        self.end_of_cell();
        // A cell that failed may have left it.
        self.noise = None;
        if let Some(Ok(signal)) = &self.signal {
            signal.done();
        }
        done
    }

    /// Waits for the start signal, where there is one to wait for.
    fn await_start(&self) -> Result<(), CellError> {
        match &self.signal {
            Some(Err(why)) => Err(CellError::Cannot(why.to_string())),
            Some(Ok(signal)) if !signal.wait(|| self.interrupted()) => {
                Err(if self.setting.stop.load(Ordering::Relaxed) { CellError::Interrupted } else { CellError::OutOfTime })
            }
            _ => Ok(()),
        }
    }

    fn work(&mut self, experiment: Experiment, cell: &Cell) -> Result<(), CellError> {
        self.still_allowed(&cell.work)?;
        match &cell.work {
            Work::Latency { probe, allocations, orders, hops, histogram } => {
                self.shelf.clear();
                let idle = Idle { probe, allocations: *allocations, orders, hops: *hops, histogram: *histogram };
                self.latency(experiment, &cell.at, &idle)
            }
            Work::Bandwidth { loaders, traffic, delay } => self.bandwidth(experiment, &cell.at, loaders, traffic, *delay),
            Work::Curve { probe, loaders, traffic, delays, at_percent, order, hops, histogram } => {
                let manner = Manner { probe, order: *order, hops: *hops, histogram: *histogram, at_percent };
                self.curve(experiment, &cell.at, &manner, loaders, traffic, delays)
            }
            Work::Handoff(handoff) => {
                self.shelf.clear();
                self.handoff(experiment, &cell.at, handoff)
            }
            Work::Transfers(transfers) => {
                self.shelf.clear();
                self.transfers(experiment, transfers)
            }
            Work::Scan(scan) => {
                self.shelf.clear();
                self.scan(experiment, &cell.at, scan)
            }
            Work::LatencySweep(sweep) => {
                self.shelf.clear();
                self.latency_sweep(experiment, &cell.at, sweep)
            }
            Work::BandwidthSweep(sweep) => self.bandwidth_sweep(experiment, &cell.at, sweep),
        }
    }

    /// Stamps of several CPUs are compared with each other: says so when their clocks disagree.
    fn compare_clocks(&mut self) {
        let cpus = self.plan.steps.iter().flat_map(|s| &s.cells).fold(IdSet::new(), |all, cell| all.union(&cell.work.cpus()));
        if let Err(error) = self.clock().cross_cpu_check(&cpus) {
            self.note(
                Note::warning("clocks-not-comparable", format!("{error}: intervals between CPUs, such as coverage, may be wrong"))
                    .advise("if it happens again on an idle machine, check the kernel's log for an unstable TSC"),
            );
        }
    }

    /// Control groups may be changed and CPUs taken offline while a run goes on: a cell that lost its CPUs or nodes is not measured elsewhere.
    fn still_allowed(&self, work: &Work) -> Result<(), CellError> {
        let now = cpu::reread_allowed(&self.setting.root, &self.setting.machine.topology);
        let lost = work.cpus().difference(&now.cpus);
        if !lost.is_empty() {
            return Err(CellError::Cannot(format!("CPU {lost} went offline, or left this process's cpuset or affinity, during the run")));
        }
        let lost: IdSet =
            work.buffers().iter().filter(|b| b.directory.is_none()).map(|b| b.node).filter(|&node| !now.nodes.contains(node)).collect();
        if !lost.is_empty() {
            return Err(CellError::Cannot(format!("memory node {lost} went offline or left this process's cpuset during the run")));
        }
        Ok(())
    }

    /// Tells how much of the cell in progress is done, 0 to 1; for cells that take minutes.
    pub(crate) fn within(&mut self, share: f64) {
        self.within_s = self.cell_s * share;
        self.observer.progress(self.share());
    }

    fn share(&self) -> f64 {
        ((self.done_s + self.within_s) / self.plan.estimated_s.max(1e-9)).min(1.0)
    }

    /// Whether to end a cell that gives away what it has by then.
    pub(crate) fn cut_short(&mut self) -> bool {
        self.cut |= self.interrupted();
        self.interrupted()
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.setting.stop.load(Ordering::Relaxed) || self.time_left() == Some(Duration::ZERO)
    }

    /// Time until the run is to end, where it is to.
    fn time_left(&self) -> Option<Duration> {
        self.setting.deadline.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// How long to wait for threads that should be done: not far beyond the end of the run.
    pub(crate) fn patience(&self) -> Duration {
        self.time_left().map_or(PATIENCE, |left| PATIENCE.min(left + Duration::from_secs(1)))
    }

    pub(crate) fn clock(&self) -> Clock {
        self.setting.clock
    }

    /// Whether measuring of a cell should end after `spent`: its interval is narrow enough, or its time is over. Where it has no sample
    /// yet its time is longer: threads of an overcommitted machine may get no CPU for whole bursts.
    pub(crate) fn enough(&self, spent: Duration, sampled: bool, converged: bool) -> bool {
        let budget = self.plan.stop.budget_s * if sampled { 1.0 } else { WITHOUT_SAMPLE };
        spent.as_secs_f64() >= budget || (converged && !self.plan.stop.fixed_time)
    }

    pub(crate) fn note(&mut self, note: Note) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Data that was not what was written is worth more than a line in a table.
    pub(crate) fn tell_of_corruption(&mut self, evidence: &Evidence, at: &Coordinates) {
        let Some(Checksums { passes, mismatches }) = evidence.checksums.filter(|i| i.mismatches > 0) else { return };
        self.note(
            Note::error(
                memgauge_core::conclusions::scan::CORRUPTED,
                format!("{}: {mismatches} of {passes} passes read other data than was written", place(at)),
            )
            .advise("take the machine out of service, look at its log for memory errors, and test its memory"),
        );
    }

    /// Begins to watch the machine while all of `cpus` work: noise counters, and the frequency of `cpu` once it is flat.
    pub(crate) fn watch(&mut self, cpu: u32, cpus: &IdSet) -> Result<Watch, CellError> {
        // CPUs kept awake are busy by our doing as well.
        let cpus = &cpus.union(&self.keepers(cpus));
        let clock = self.clock();
        let warm = self.warm.get(&cpu).is_some_and(|since| since.elapsed() < STAYS_WARM);
        let begun = Instant::now();
        let ghz = self.team.run_on(cpu, move || if warm { clock::core_ghz(&clock) } else { clock::warm_up(&clock, WARM_UP) })?;
        self.stages.warming += begun.elapsed();
        self.core_ghz.insert(cpu, ghz);
        self.noise = Some(NoiseProbe::start(&self.setting.root, cpus));
        Ok(Watch { cpu, ghz_before: Some(ghz) })
    }

    /// Sets up something meanwhile: it runs on other CPUs than those watched as well, and what befalls them then does not count.
    pub(crate) fn aside<T>(&mut self, set_up: impl FnOnce(&mut Self) -> T) -> T {
        self.noise.iter_mut().for_each(NoiseProbe::set_aside);
        let done = set_up(self);
        self.noise.iter_mut().for_each(NoiseProbe::go_on);
        done
    }

    /// Notes that these CPUs have just worked: their clocks need no time to settle.
    pub(crate) fn worked(&mut self, cpus: &IdSet) {
        let now = Instant::now();
        self.warm.extend(cpus.iter().map(|cpu| (cpu, now)));
    }

    /// Ends watching.
    pub(crate) fn unwatch(&mut self, watch: Watch, disturbance: &Disturbance) -> Noise {
        let mut noise = self.noise.take().map(|probe| probe.finish(disturbance.switches)).unwrap_or_default();
        noise.migrations = Some(disturbance.migrations);
        noise.waited = disturbance.waited();
        noise.ghz_before = watch.ghz_before;
        noise.ghz_after = self.ghz_of(watch.cpu);
        noise
    }

    /// Seconds that the hypervisor has given to others, of the time of `cpus`. Without a hypervisor it is not looked at: the file that
    /// tells is long on large machines.
    pub(crate) fn stolen(&self, cpus: &IdSet) -> Option<f64> {
        self.setting.machine.identity.hypervisor.as_ref()?;
        memgauge_linux::noise::stolen_seconds(&self.setting.root, cpus)
    }

    /// Whether a burst was disturbed, and by what; with the frequency of `cpu`, one of its CPUs, right after it.
    pub(crate) fn mark(&mut self, burst: &BurstResult, cpu: u32) -> Mark {
        Mark::of(burst, self.ghz_of(cpu))
    }

    /// Share of the time of `cpus`, of which each ran for `length`, that the hypervisor gave to others since `before`.
    pub(crate) fn stolen_since(&self, before: Option<f64>, cpus: &IdSet, length: Duration) -> Option<f64> {
        let seconds = length.as_secs_f64() * cpus.len() as f64;
        self.stolen(cpus).zip(before).filter(|_| seconds > 0.0).map(|(now, then)| (now - then) / seconds)
    }

    /// Core frequency of a CPU now; `None` when it went away.
    pub(crate) fn ghz_of(&mut self, cpu: u32) -> Option<f64> {
        let clock = self.clock();
        self.team.run_on(cpu, move || clock::core_ghz(&clock)).ok()
    }

    /// CPUs to keep busy: those that were named, or those in packages where nothing is measured.
    pub(crate) fn keepers(&self, busy: &IdSet) -> IdSet {
        if self.plan.keep_awake_named {
            return self.plan.keep_awake.difference(busy);
        }
        let topology = &self.setting.machine.topology;
        let package = |cpu: u32| topology.cpu(cpu).map(|c| c.package);
        let measured: Vec<_> = busy.iter().map(package).collect();
        self.plan.keep_awake.iter().filter(|&cpu| !measured.contains(&package(cpu))).collect()
    }

    /// Time spent measuring so far.
    pub(crate) fn measuring(&self) -> Duration {
        self.measuring
    }

    /// Takes back what was added to it since: bursts that only decide how to measure are setting up.
    pub(crate) fn set_measuring(&mut self, time: Duration) {
        self.measuring = time;
    }

    /// Adds time that a cell spent measuring outside of [`Self::burst`].
    pub(crate) fn spent(&mut self, time: Duration) {
        self.measuring += time;
        self.observer.progress(self.share());
    }

    pub(crate) fn push(&mut self, experiment: Experiment, at: Coordinates, metric: Metric, estimate: Estimate, mut evidence: Evidence) {
        let unit = match metric {
            Metric::Latency => Unit::Nanoseconds,
            Metric::Bandwidth => Unit::GigabytesPerSecond,
        };
        if metric == Metric::Bandwidth {
            evidence.bytes_per_cycle = estimate.value.and_then(|gbs| judge::bytes_per_cycle(gbs, evidence.threads, &evidence.noise));
        }
        let quality = judge::quality(&estimate, &evidence);
        let verdict = memgauge_core::conclusions::verdict::unjudged(metric, &estimate);
        let firmware = self.claimed(experiment, &at);
        self.results.push(Measurement {
            experiment,
            at,
            metric,
            unit,
            firmware,
            estimate,
            distribution: None,
            evidence,
            quality,
            verdict,
            counters: None,
            lines_in_flight: None,
        });
    }

    /// Adds to the last result how its batches were distributed.
    pub(crate) fn attach_distribution(&mut self, distribution: Option<Distribution>) {
        if let Some(last) = self.results.last_mut() {
            last.distribution = distribution;
        }
    }

    /// What firmware claims of a cell that is one node's CPUs and one node's memory. Its bandwidth is that of reads.
    fn claimed(&self, experiment: Experiment, at: &Coordinates) -> Option<f64> {
        if at.memory_dir.is_some() {
            // Firmware speaks of the node's memory and not of a device there.
            return None;
        }
        let claim = self.setting.machine.topology.claim(at.cpu_node?, at.memory_node?)?;
        match experiment {
            Experiment::IdleLatency => claim.read_latency_ns.map(|ns| ns as f64),
            Experiment::Bandwidth | Experiment::MemoryScan if at.mix == Some(Mix::AllReads) => {
                claim.read_bandwidth_mbs.map(|mbs| mbs as f64 / 1e3)
            }
            _ => None,
        }
    }

    /// A result without value for a cell that failed, so that no cell goes missing silently.
    fn unmeasured(&mut self, experiment: Experiment, cell: &Cell, error: &CellError) {
        let metric = match cell.work {
            Work::Bandwidth { .. } | Work::BandwidthSweep(_) | Work::Scan(_) => Metric::Bandwidth,
            _ => Metric::Latency,
        };
        let mut reason = error.to_string();
        if !matches!(error, CellError::Interrupted | CellError::OutOfTime) {
            let note = Note::error("cell-not-measured", format!("{}: {error}", place(&cell.at)));
            match error {
                CellError::Memory(MemoryError { advice, .. }) => {
                    self.note(note.advise(advice));
                    reason = format!("{reason}; {advice}");
                }
                _ => self.note(note),
            }
        }
        let estimate = Estimate { reason: Some(reason), ..Default::default() };
        self.push(experiment, cell.at.clone(), metric, estimate, Evidence::default());
    }
}

/// Where a cell stands, for a message.
fn place(at: &Coordinates) -> String {
    let mut parts = Vec::new();
    let mut add = |name: &str, value: Option<String>| parts.extend(value.map(|v| format!("{name} {v}")));
    add("mix", at.mix.map(|m| m.to_string()));
    add("CPU", at.cpu.map(|c| c.to_string()));
    add("CPUs", at.cpus.as_ref().map(ToString::to_string));
    add("holder CPU", at.holder_cpu.map(|c| c.to_string()));
    add("memory node", at.memory_node.map(|n| n.to_string()));
    add("files in", at.memory_dir.clone());
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use memgauge_core::conclusions::findings::LEFT_OUT;
    use memgauge_core::plan::Step;
    use memgauge_core::spec::{LatencyShape, Spec, Task};

    use super::*;

    #[test]
    fn a_start_signal_that_does_not_come_is_waited_for_until_the_deadline() {
        struct Nobody;
        impl Observer for Nobody {
            fn cell(&mut self, _: &Step, _: &Cell) {}
            fn progress(&mut self, _: f64) {}
        }
        let root = std::path::Path::new("/");
        let Ok(machine) = memgauge_linux::sysfs::read_machine(root) else {
            eprintln!("skipped: no sysfs");
            return;
        };
        let mut plan = memgauge_core::planner::plan(&Spec::new(Task::Latency(LatencyShape::One)), &machine, &[]).unwrap();
        plan.start_signal = Some(format!("memgauge-test-deadline-{}", std::process::id()));
        let (stop, deadline) = (AtomicBool::new(false), Some(Instant::now() + Duration::from_millis(100)));
        let setting = Setting { machine: &machine, clock: Clock::calibrate(root), root: root.into(), stop: &stop, deadline };
        let outcome = Session::new(&plan, &setting, &mut Nobody).run();
        assert!(!outcome.complete && !outcome.results.is_empty());
        assert!(outcome.results.iter().all(|m| m.estimate.reason.as_deref() == Some(LEFT_OUT)), "{:?}", outcome.results[0].estimate);
        stop.store(true, Ordering::Relaxed);
        let setting = Setting { deadline: None, ..setting };
        let outcome = Session::new(&plan, &setting, &mut Nobody).run();
        assert!(outcome.results.iter().all(|m| m.estimate.reason.as_deref().is_some_and(|why| why.starts_with("interrupted"))));
    }
}
