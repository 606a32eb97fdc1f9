//! Runs bursts, and keeps account of them: the time that was measured, and how fast cores ran.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memgauge_model::plan::{BufferPlan, Plan, Work};
use memgauge_model::units::IdSet;
use memgauge_os::memory::Buffer;

use crate::burst::chase::Chase;
use crate::burst::counters::{CounterTotals, RunCounters};
use crate::burst::exact::ExactHops;
use crate::burst::handover::{self, Transfer, TransferRun};
use crate::burst::load::Load;
use crate::burst::result::{BurstResult, BurstShape};
use crate::burst::threads::Threads;
use crate::burst::windows::Trace;
use crate::burst::workers::SchedulerNoise;
use crate::context::RunContext;
use crate::error::{Result, WorkerError, no_buffer};
use crate::neighbours::{NeighbourCpus, Others};
use crate::platform::Bursts;
use crate::time_budget::TimeBudget;

/// The core's clock has settled after this long at most (method: 100–500 ms).
const WARM_UP: Duration = Duration::from_millis(300);
/// The shortest time that shows whether the clock is steady: three windows of 20 ms.
const LEAST_WARM_UP: Duration = Duration::from_millis(60);
/// A core that worked so recently runs at the same clock still: governors look every few milliseconds, and lower it step by step.
const STAYS_WARM: Duration = Duration::from_millis(20);

/// Runs bursts, and keeps account of the time they took and of the frequencies that were seen.
pub(crate) struct BurstRunner<'a> {
    context: &'a RunContext<'a>,
    plan: &'a Plan,
    bursts: Box<dyn Bursts + 'a>,
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

impl<'a> BurstRunner<'a> {
    pub(crate) fn new(plan: &'a Plan, context: &'a RunContext<'a>) -> Self {
        Self {
            context,
            plan,
            bursts: context.platform.bursts(plan, context.cutoff(None)),
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
        self.begin_beside(&cpus, &nodes.collect());
    }

    /// From now on bursts are those of `cpus` on memory of `nodes`.
    pub(crate) fn begin_beside(&mut self, cpus: &IdSet, nodes: &IdSet) {
        let own = cpus.union(&self.plan.keep_awake);
        self.neighbours = self.context.platform.neighbours(cpus, &own, nodes);
        self.bursts.begin_cell(&self.neighbours);
    }

    /// Runs a chase and loaders together.
    pub(crate) fn run(
        &mut self,
        chase: Option<(u32, Chase)>,
        loads: Vec<(u32, Load)>,
        shape: BurstShape,
        timeout: Duration,
    ) -> Result<BurstResult> {
        let probe = chase.as_ref().map(|(cpu, _)| *cpu);
        let busy: IdSet = probe.into_iter().chain(loads.iter().map(|(cpu, _)| *cpu)).collect();
        let awake = self.kept_awake(&busy);
        let result = self.bursts.burst(chase, loads, &awake, shape, timeout)?;
        self.have_measured(&busy, shape.whole());
        result.check(probe)?;
        Ok(result)
    }

    /// Runs transfers at once.
    pub(crate) fn run_transfers(
        &mut self,
        transfers: &[Transfer<'_>],
        allocate: &mut dyn FnMut(&BufferPlan) -> Result<Arc<Buffer>>,
        run: Duration,
        windows: u64,
    ) -> Result<(Vec<TransferRun>, Others)> {
        let done = self.bursts.transfers(transfers, allocate, run, windows)?;
        self.have_measured(&handover::all_cpus(transfers), run);
        Ok(done)
    }

    /// These CPUs have measured for the time `length`: their clocks need no time to settle.
    fn have_measured(&mut self, cpus: &IdSet, length: Duration) {
        self.measuring += length;
        let now = self.context.now();
        self.warm.extend(cpus.iter().map(|cpu| (cpu, now)));
    }

    /// Reads all of a buffer on a CPU, so that its caches hold that and little else.
    pub(crate) fn read_all(&mut self, cpu: u32, buffer: &Arc<Buffer>, timeout: Duration) -> Result<(), WorkerError> {
        self.bursts.read_all(cpu, buffer, timeout)
    }

    /// Chases exactly `hops` hops. Returns what they took (`None` when the run is to end) and the chase to go on with.
    pub(crate) fn run_hops(
        &mut self,
        cpu: u32,
        chase: Chase,
        hops: u64,
        budget: &TimeBudget<'_>,
        scheduler: &mut SchedulerNoise,
    ) -> Result<(Option<ExactHops>, Chase)> {
        let awake = self.kept_awake(&IdSet::one(cpu));
        let done = self.bursts.hops(cpu, chase, hops, &awake, &|| budget.interrupted())?;
        scheduler.add(&done.scheduler);
        self.measuring += Duration::from_secs_f64(self.context.clock.ns(done.took.ticks) / 1e9);
        Ok(((done.took.hops() == hops).then_some(done.took), done.chase))
    }

    /// How long the clock of a core may take to settle: no longer than a cell measures, for in many guests it never seems steady.
    fn longest_warm_up(&self) -> Duration {
        Duration::try_from_secs_f64(self.plan.stop.budget_s).unwrap_or(WARM_UP).clamp(LEAST_WARM_UP, WARM_UP)
    }

    /// Waits until the clock of a core has settled, and returns its frequency in GHz.
    pub(crate) fn warm_up(&mut self, cpu: u32) -> Result<f64, WorkerError> {
        let settled = self.warm.get(&cpu).is_some_and(|since| self.context.now() - *since < STAYS_WARM);
        let ghz = self.bursts.warm_up(cpu, settled, self.longest_warm_up())?;
        self.core_ghz.insert(cpu, ghz);
        Ok(ghz)
    }

    /// Reads the frequencies of the cores that the plan compares, once those of all have settled. Without the threads for it there is none.
    pub(crate) fn read_all_cores(&mut self) {
        let cpus = &self.plan.compared_cores;
        if cpus.is_empty() || self.context.interrupted() {
            return;
        }
        for (cpu, ghz) in self.bursts.warm_up_all(cpus, self.longest_warm_up()) {
            let highest = self.all_cores_ghz.entry(cpu).or_insert(ghz);
            *highest = highest.max(ghz);
        }
    }

    /// Frequency of a core now; `None` when its CPU went away.
    pub(crate) fn ghz(&mut self, cpu: u32) -> Option<f64> {
        self.bursts.ghz(cpu)
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

    /// The threads of a cell on `cpus` that no model imitates.
    ///
    /// # Errors
    /// If a model stands in for the machine.
    pub(crate) fn threads(&mut self, cpus: &IdSet) -> Result<&mut Threads> {
        self.bursts.threads().ok_or_else(|| no_buffer(cpus.first().unwrap_or(0)))
    }

    /// Hardware counters, where they were asked for.
    pub(crate) fn counters(&mut self) -> Option<&mut RunCounters> {
        self.bursts.counters()
    }

    /// Adds what a worker counted in a burst; `per_unit` is the hops or lines in a unit of its trace's work.
    pub(crate) fn add_counts(&mut self, totals: &mut CounterTotals, cpu: u32, trace: &Trace, per_unit: u64) {
        if let Some((counters, count)) = self.bursts.counters().zip(trace.count.as_ref()) {
            totals.add(counters, cpu, count, per_unit);
        }
    }
}
