//! Runs bursts: hands the chase, the loaders and the threads that keep other packages awake to their workers, and collects what they did.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memgauge_core::neighbours::NeighbourCpus;
use memgauge_core::plan::{Plan, Work};
use memgauge_core::protocol::{SETTLE_HOPS, SETTLE_WINDOWS};
use memgauge_core::units::IdSet;
use memgauge_kernels as kernels;
use memgauge_os::memory::Buffer;
use memgauge_os::{clock, noise};

use super::chase::Chase;
use super::counters::{CounterSwitches, CounterTotals, RunCounters};
use super::exact::{ExactHops, settle_again};
use super::load::Load;
use super::result::{BurstResult, BurstShape, Conditions, Loaded};
use super::windows::{BLOCK_NS, Fences, Schedule, Trace, coverage, run_until_end};
use super::workers::{Finished, Job, SchedulerNoise, Workers};
use crate::context::{RunContext, TimeBudget, WORKER_TIMEOUT};
use crate::error::{CellError, Result, WorkerError};
use crate::neighbours::{NeighbourLook, Others};

/// A thread woken from sleep arrives within this time on an idle machine; threads that come later show as lack of coverage.
const LEAD: Duration = Duration::from_micros(400);
/// And this much more for each thread of a large group.
const LEAD_PER_THREAD: Duration = Duration::from_micros(20);
/// Reading a worker's counters before the burst takes this long at most, the memory controllers' on other packages included.
const LEAD_TO_READ: Duration = Duration::from_millis(1);
/// Hops of an exact chase between two checks whether the run was interrupted: a fifth of a second at 100 ns.
const HOPS_AT_A_TIME: u64 = 1 << 21;
/// The core's clock has settled after this long at most (method: 100–500 ms).
const WARM_UP: Duration = Duration::from_millis(300);
/// The shortest time in which it is seen that the clock is steady: three windows of 20 ms.
const LEAST_WARM_UP: Duration = Duration::from_millis(60);
/// A core that worked so recently runs at the same clock still: governors look every few milliseconds, and lower it step by step.
const STAYS_WARM: Duration = Duration::from_millis(20);

/// What a part of an exact chase took, and the chase to go on with; `None` from a CPU that was kept awake.
type ChasedHops = Option<(ExactHops, Chase)>;

enum JobResult {
    Chased(Box<(Trace, Chase)>),
    Loaded(Box<Loaded>),
    KeptAwake,
}

/// Tells others that a job has ended: when it returns, and also when it is dropped because it could not run.
pub(crate) struct EndFlag(Arc<AtomicBool>);

impl EndFlag {
    /// A flag to set on drop, and the same flag to wait for.
    pub(crate) fn new() -> (Self, Arc<AtomicBool>) {
        let ended = Arc::new(AtomicBool::new(false));
        (Self(ended.clone()), ended)
    }
}

impl Drop for EndFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Keeps a CPU busy without touching memory until something has ended.
fn keep_awake_until(ended: &AtomicBool) {
    while !ended.load(Ordering::Acquire) {
        kernels::dependent_adds(1000);
    }
}

/// Jobs that keep CPUs awake until something has ended.
pub(crate) fn keep_awake_jobs<T: 'static>(cpus: &IdSet, ended: &Arc<AtomicBool>) -> Vec<(u32, Job<Option<T>>)> {
    let job = |cpu| {
        let ended = ended.clone();
        let keep_awake: Job<Option<T>> = Box::new(move || {
            keep_awake_until(&ended);
            None
        });
        (cpu, keep_awake)
    };
    cpus.iter().map(job).collect()
}

/// The workers, their clock and their hardware counters.
pub(crate) struct BurstRunner<'a> {
    context: &'a RunContext<'a>,
    plan: &'a Plan,
    pub(crate) workers: Workers,
    /// Hardware counters, where they were asked for.
    pub(crate) counters: Option<RunCounters>,
    /// When each CPU was last seen to work at a frequency that had settled.
    warm: BTreeMap<u32, Instant>,
    /// Core frequency in GHz by CPU, as measured along the way.
    pub(crate) core_ghz: BTreeMap<u32, f64>,
    /// The same while all cores that the plan compares worked at once: the highest seen.
    pub(crate) all_cores_ghz: BTreeMap<u32, f64>,
    /// Time spent measuring so far.
    pub(crate) measuring: Duration,
    /// Of the CPUs and the memory of the cell in progress.
    pub(crate) neighbours: NeighbourCpus,
}

/// What others had of CPUs before a burst.
pub(crate) struct Before {
    stolen: Option<f64>,
    neighbours: NeighbourLook,
}

impl<'a> BurstRunner<'a> {
    pub(crate) fn new(plan: &'a Plan, context: &'a RunContext<'a>) -> Self {
        #[cfg(feature = "simulate")]
        let simulated = context.model().is_some();
        #[cfg(not(feature = "simulate"))]
        let simulated = false;
        let counters = (plan.counters && !simulated).then(|| {
            let cpus = plan.steps.iter().flat_map(|s| &s.cells).find_map(|cell| cell.work.cpus().first());
            RunCounters::new(&context.root, context.machine, cpus.unwrap_or(0))
        });
        Self {
            context,
            plan,
            workers: Workers::default(),
            counters,
            warm: BTreeMap::new(),
            core_ghz: BTreeMap::new(),
            all_cores_ghz: BTreeMap::new(),
            measuring: Duration::ZERO,
            neighbours: NeighbourCpus::default(),
        }
    }

    /// From now on bursts are those of a cell that does this.
    pub(crate) fn begin_cell(&mut self, work: &Work) {
        let cpus = work.cpus();
        let nodes = work.buffers().into_iter().filter(|b| b.directory.is_none()).flat_map(|b| b.nodes().iter().collect::<Vec<_>>());
        let own = cpus.union(&self.plan.keep_awake);
        self.neighbours = NeighbourCpus::new(&self.context.machine.topology, &cpus, &own, &nodes.collect());
    }

    /// Runs a chase and loaders together.
    pub(crate) fn run(
        &mut self,
        chase: Option<(u32, Chase)>,
        loads: Vec<(u32, Load)>,
        shape: BurstShape,
        timeout: Duration,
    ) -> Result<BurstResult> {
        let windows = shape.windows + SETTLE_WINDOWS;
        #[cfg(feature = "simulate")]
        if let Some(model) = self.context.model() {
            self.measuring += shape.window * windows as u32;
            return Ok(crate::simulated::burst(model, &self.context.clock, chase, loads, shape));
        }
        let busy: IdSet = chase.iter().map(|(cpu, _)| *cpu).chain(loads.iter().map(|(cpu, _)| *cpu)).collect();
        let probe = chase.as_ref().map(|(cpu, _)| *cpu);
        let awake = self.kept_awake(&busy);
        if let Some(counters) = &mut self.counters {
            counters.open(&mut self.workers, &busy)?;
        }
        // What memory did belongs to the bandwidth, where there is one.
        let for_system = loads.first().map(|(cpu, _)| *cpu).or(chase.as_ref().map(|(cpu, _)| *cpu));
        let counters = busy.iter().filter_map(|cpu| Some((cpu, self.counters.as_ref()?.switched_by(cpu, Some(cpu) == for_system)?)));
        let counters: BTreeMap<u32, _> = counters.collect();
        let mut lead = self.lead(busy.len() + awake.len());
        if !counters.is_empty() {
            lead += LEAD_TO_READ;
        }
        let clock = self.context.clock;
        let start = clock.now() + clock.to_ticks(lead);
        let schedule = Schedule { clock, start, window: clock.to_ticks(shape.window), windows, counters: None };
        let jobs = burst_jobs(chase, loads, &awake, counters, schedule);
        let length = shape.window * windows as u32;
        let (finished, others) = self.run_jobs(jobs, &busy, length, length + timeout)?;
        let result = BurstResult { others, ..collect(finished) };
        result.check(probe)?;
        Ok(result)
    }

    /// Runs jobs that measure on `cpus` for `length`, and after them in the list jobs that keep other CPUs awake. Returns what they did, and
    /// what others had of CPUs meanwhile.
    pub(crate) fn run_jobs<T: Send + 'static>(
        &mut self,
        jobs: Vec<(u32, Job<T>)>,
        cpus: &IdSet,
        length: Duration,
        timeout: Duration,
    ) -> Result<(Vec<Finished<T>>, Others), WorkerError> {
        let before = self.look(cpus);
        let finished = self.workers.run_required(jobs, cpus.len(), timeout)?;
        let others = self.others_since(&before, cpus, length);
        self.measuring += length;
        // Their clocks need no time to settle.
        let now = self.context.now();
        self.warm.extend(cpus.iter().map(|cpu| (cpu, now)));
        Ok((finished, others))
    }

    /// Reads all of a buffer on a CPU, so that its caches hold that and little else.
    pub(crate) fn read_all(&mut self, cpu: u32, buffer: &Arc<Buffer>, timeout: Duration) -> Result<(), WorkerError> {
        #[cfg(feature = "simulate")]
        if let Some(model) = self.context.model() {
            model.drive_out(cpu);
            return Ok(());
        }
        let buffer = buffer.clone();
        // SAFETY: the buffer has as many bytes, is aligned to a page, was written when it was first touched, and nobody else uses it.
        let read: Job<u64> = Box::new(move || std::hint::black_box(unsafe { kernels::checksum_xor(buffer.as_ptr(), buffer.len()) }));
        self.workers.run_required(vec![(cpu, read)], 1, timeout).map(|_| ())
    }

    /// Time until so many threads that are woken now have arrived.
    pub(crate) fn lead(&self, threads: usize) -> Duration {
        LEAD + LEAD_PER_THREAD * threads as u32
    }

    /// Chases exactly so many hops. Returns what they took, `None` when the run is to end, and the chase to go on with.
    pub(crate) fn run_hops(
        &mut self,
        cpu: u32,
        mut chase: Chase,
        hops: u64,
        budget: &TimeBudget<'_>,
        scheduler: &mut SchedulerNoise,
    ) -> Result<(Option<ExactHops>, Chase)> {
        let clock = self.context.clock;
        #[cfg(feature = "simulate")]
        if let Some(model) = self.context.model() {
            return Ok((Some(crate::simulated::exact_hops(model, &clock, (cpu, &chase), hops)), chase));
        }
        let awake = self.kept_awake(&IdSet::one(cpu));
        let cutoff = self.context.cutoff(None);
        let (mut left, mut all, mut settle) = (hops, ExactHops::default(), SETTLE_HOPS);
        while left > 0 {
            if budget.interrupted() {
                return Ok((None, chase));
            }
            let part = left.min(HOPS_AT_A_TIME);
            let start = clock.now() + clock.to_ticks(LEAD);
            let (flag, ended) = EndFlag::new();
            let cutoff = cutoff.clone();
            let chase_part = move || {
                let _flag = flag;
                Schedule { clock, start, window: 0, windows: 0, counters: None }.wait_for_start();
                Some(chase.exactly(part, settle, &clock, &cutoff))
            };
            let mut jobs: Vec<(u32, Job<ChasedHops>)> = vec![(cpu, Box::new(chase_part))];
            jobs.extend(keep_awake_jobs(&awake, &ended));
            let mut finished = self.workers.run_required(jobs, 1, WORKER_TIMEOUT)?.into_iter();
            let Some(Finished { value: Some((took, moved)), scheduler: seen }) = finished.next() else {
                return Err(CellError::ChaseLost { cpu });
            };
            scheduler.add(&seen);
            self.measuring += Duration::from_secs_f64(clock.ns(took.ticks) / 1e9);
            (chase, left) = (moved, left - part);
            settle = settle_again(clock.ns(took.ticks));
            chase.check(cpu)?;
            if took.hops() < part {
                return Ok((None, chase));
            }
            all.add(&took);
        }
        Ok((Some(all), chase))
    }

    /// How long the clock of a core may take to settle: no longer than a cell measures, for in many guests it never seems steady.
    fn longest_warm_up(&self) -> Duration {
        Duration::try_from_secs_f64(self.plan.stop.budget_s).unwrap_or(WARM_UP).clamp(LEAST_WARM_UP, WARM_UP)
    }

    /// Waits until the clock of a core has settled, and returns its frequency in GHz.
    pub(crate) fn warm_up(&mut self, cpu: u32) -> Result<f64, WorkerError> {
        let clock = self.context.clock;
        let warm = self.warm.get(&cpu).is_some_and(|since| self.context.now() - *since < STAYS_WARM);
        #[cfg(feature = "simulate")]
        if let Some(model) = self.context.model() {
            model.pass(if warm { Duration::ZERO } else { WARM_UP / 4 });
            let ghz = model.ghz(cpu, 1);
            self.core_ghz.insert(cpu, ghz);
            return Ok(ghz);
        }
        let longest = self.longest_warm_up();
        let ghz = self.workers.run_on(cpu, move || if warm { clock::core_ghz(&clock) } else { clock::warm_up(&clock, longest) })?;
        self.core_ghz.insert(cpu, ghz);
        Ok(ghz)
    }

    /// Reads the frequencies of the cores that the plan compares, once those of all have settled. Without the threads for it there is none.
    pub(crate) fn read_all_cores(&mut self) {
        let (cpus, clock) = (&self.plan.compared_cores, self.context.clock);
        if cpus.is_empty() || self.context.interrupted() {
            return;
        }
        let longest = self.longest_warm_up();
        let job = |cpu| (cpu, Box::new(move || (cpu, clock::warm_up(&clock, longest))) as Job<(u32, f64)>);
        #[cfg(feature = "simulate")]
        if let Some(model) = self.context.model() {
            cpus.iter().for_each(|cpu| keep_highest(&mut self.all_cores_ghz, cpu, model.ghz(cpu, cpus.len())));
            return;
        }
        for Finished { value: (cpu, ghz), .. } in self.workers.run(cpus.iter().map(job).collect(), WORKER_TIMEOUT).unwrap_or_default() {
            keep_highest(&mut self.all_cores_ghz, cpu, ghz);
        }
    }

    /// Frequency of a core now; `None` when its CPU went away.
    pub(crate) fn ghz(&mut self, cpu: u32) -> Option<f64> {
        #[cfg(feature = "simulate")]
        if let Some(model) = self.context.model() {
            return Some(model.ghz(cpu, 1));
        }
        let clock = self.context.clock;
        self.workers.run_on(cpu, move || clock::core_ghz(&clock)).ok()
    }

    /// Seconds that the hypervisor has given to others, of the time of `cpus`. On metal nothing is read: the file is long on large machines.
    fn stolen(&self, cpus: &IdSet) -> Option<f64> {
        self.context.machine.identity.may_be_virtual().then(|| noise::stolen_seconds(&self.context.root, cpus)).flatten()
    }

    /// The time that others had so far on `cpus`, and on their neighbours.
    pub(crate) fn look(&self, cpus: &IdSet) -> Before {
        Before { stolen: self.stolen(cpus), neighbours: NeighbourLook::new(&self.context.root, &self.neighbours) }
    }

    /// The shares that others had since `before` on `cpus`, each in use for `length`, and on their neighbours.
    pub(crate) fn others_since(&self, before: &Before, cpus: &IdSet, length: Duration) -> Others {
        let seconds = length.as_secs_f64() * cpus.len() as f64;
        let steal = self.stolen(cpus).zip(before.stolen).filter(|_| seconds > 0.0).map(|(now, then)| (now - then) / seconds);
        let (neighbours, neighbours_busy) = before.neighbours.since(&self.context.root, &self.neighbours);
        Others { steal, neighbours, neighbours_busy }
    }

    /// CPUs to keep awake while `busy` measure: those that were named, or those in packages where nothing is measured.
    pub(crate) fn kept_awake(&self, busy: &IdSet) -> IdSet {
        if self.plan.keep_awake_named {
            return self.plan.keep_awake.difference(busy);
        }
        let topology = &self.context.machine.topology;
        let package = |cpu: u32| topology.cpu(cpu).map(|c| c.package);
        let measured: Vec<_> = busy.iter().map(package).collect();
        self.plan.keep_awake.iter().filter(|&cpu| !measured.contains(&package(cpu))).collect()
    }

    /// Adds what a worker counted in a burst; `per_unit` is the hops or lines in a unit of its trace's work.
    pub(crate) fn add_counts(&self, totals: &mut CounterTotals, cpu: u32, trace: &Trace, per_unit: u64) {
        if let Some((counters, count)) = self.counters.as_ref().zip(trace.count.as_ref()) {
            totals.add(counters, cpu, count, per_unit);
        }
    }
}

fn keep_highest(all: &mut BTreeMap<u32, f64>, cpu: u32, ghz: f64) {
    let highest = all.entry(cpu).or_insert(ghz);
    *highest = highest.max(ghz);
}

/// The jobs of a burst, those that measure before those that keep CPUs awake.
fn burst_jobs(
    chase: Option<(u32, Chase)>,
    loads: Vec<(u32, Load)>,
    awake: &IdSet,
    mut counters: BTreeMap<u32, CounterSwitches>,
    schedule: Schedule<'static>,
) -> Vec<(u32, Job<JobResult>)> {
    let mut jobs: Vec<(u32, Job<JobResult>)> = Vec::with_capacity(loads.len() + awake.len() + 1);
    // A chase that touches begins late, and so ends after the schedule.
    let (flag, ended) = EndFlag::new();
    let late = chase.as_ref().is_some_and(|(_, chase)| chase.touches());
    if let Some((cpu, chase)) = chase {
        let counters = counters.remove(&cpu);
        let job: Job<JobResult> = Box::new(move || {
            let _flag = flag;
            JobResult::Chased(Box::new(chase.run(&Schedule { counters: counters.as_ref(), ..schedule })))
        });
        jobs.push((cpu, job));
    }
    for (cpu, load) in loads {
        let counters = counters.remove(&cpu);
        let job: Job<JobResult> = Box::new(move || {
            let (trace, load) = load.run(&Schedule { counters: counters.as_ref(), ..schedule });
            JobResult::Loaded(Box::new(Loaded { cpu, trace, load }))
        });
        jobs.push((cpu, job));
    }
    for cpu in awake.iter() {
        let ended = late.then(|| ended.clone());
        let job: Job<JobResult> = Box::new(move || {
            // Busy without touching memory.
            run_until_end(&schedule, BLOCK_NS, Fences::Windows, |units| _ = kernels::dependent_adds(1000 * units as u64));
            ended.iter().for_each(|ended| keep_awake_until(ended));
            JobResult::KeptAwake
        });
        jobs.push((cpu, job));
    }
    jobs
}

fn collect(finished: Vec<Finished<JobResult>>) -> BurstResult {
    let mut result = BurstResult { chase: None, loads: Vec::new(), conditions: Conditions::default(), others: Others::default() };
    let mut spans = Vec::new();
    for Finished { value, scheduler } in finished {
        match value {
            JobResult::Chased(chased) => {
                spans.push(chased.0.span);
                result.chase = Some(*chased);
            }
            JobResult::Loaded(loaded) => {
                spans.push(loaded.trace.span);
                result.loads.push(*loaded);
            }
            // What the scheduler does to a thread that only keeps a package awake does not affect the numbers.
            JobResult::KeptAwake => continue,
        }
        result.conditions.scheduler.add(&scheduler);
    }
    result.conditions.coverage = coverage(&spans);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_kept_awake_for_a_thread_that_cannot_run_ends() {
        let cpu = memgauge_os::cpu::current_cpu().unwrap();
        let (flag, ended) = EndFlag::new();
        let jobs: Vec<(u32, Job<()>)> = vec![(1_000_000, Box::new(move || drop(flag))), (cpu, Box::new(move || keep_awake_until(&ended)))];
        let result = Workers::default().run(jobs, Duration::from_secs(20));
        assert!(matches!(result, Err(WorkerError::Pin { cpu: 1_000_000, .. })), "and not a thread that did not finish");
    }
}
