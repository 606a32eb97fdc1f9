//! The state of a run. Each part has one duty; what is measured is in [`experiment`](crate::experiment), [`transfer`](crate::transfer) and
//! [`scan`](crate::scan).

use std::sync::Arc;
use std::time::{Duration, Instant};

use memgauge_model::counters::{Counters, ExpectedEvents, WorkUnit};
use memgauge_model::estimate::NotMeasured;
use memgauge_model::experiment::ChaseOrder;
use memgauge_model::plan::{BufferPlan, Plan, Probe};
use memgauge_model::protocol;
use memgauge_model::result::{Noise, Plateau, SetUp};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_os::memory::Buffer;

use crate::burst::chase::{Chase, Ring};
use crate::burst::counters::CounterTotals;
use crate::burst::load::Load;
use crate::burst::result::{BurstResult, BurstShape};
use crate::burst::windows::shortest_window;
use crate::burst::workers::SchedulerNoise;
use crate::context::{Observer, Progress, RunContext};
use crate::cutoff::Cutoff;
use crate::error::{Result, chase_lost};
use crate::kernel_choice::KnownTrial;
use crate::measured::Measured;
use crate::memory::MemoryStore;
use crate::noise::NoiseWatch;
use crate::runner::BurstRunner;
use crate::stores::KnownStores;
use crate::time_budget::{Shares, TimeBudget};

pub(crate) struct Session<'a> {
    pub(crate) context: &'a RunContext<'a>,
    pub(crate) plan: &'a Plan,
    pub(crate) budget: TimeBudget<'a>,
    /// The end of the run, and how the time until then is shared among cells.
    shares: Option<(Instant, Shares)>,
    pub(crate) runner: BurstRunner<'a>,
    pub(crate) memory: MemoryStore<'a>,
    pub(crate) noise: NoiseWatch,
    pub(crate) progress: Progress<'a>,
    /// Time spent on setting up, apart from memory.
    pub(crate) set_up: SetUp,
    pub(crate) calibration: Calibration,
}

/// Findings of a cell that later cells use.
#[derive(Default)]
pub(crate) struct Calibration {
    /// Plateaus: the probe as planned, the bytes of its buffer then, and what was seen.
    pub(crate) plateaus: Vec<(Probe, Bytes, Option<Plateau>)>,
    /// The smallest buffer that was seen to be held by no cache. The last-level caches of a machine are alike.
    pub(crate) uncached: Option<Bytes>,
    pub(crate) trials: Vec<KnownTrial>,
    /// Whether plain stores read the line first.
    pub(crate) stores: KnownStores,
}

impl<'a> Session<'a> {
    pub(crate) fn new(plan: &'a Plan, context: &'a RunContext<'a>, observer: &'a mut dyn Observer) -> Self {
        let window = protocol::window(plan.stop.budget_s, plan.counters);
        let heartbeat = observer.heartbeat();
        // Cells that wait for another program take whatever time that program does.
        let deadline = context.deadline.filter(|_| plan.start_signal.is_none());
        Self {
            context,
            plan,
            budget: TimeBudget::new(context, plan.stop, shortest_window(window, context.clock.overhead_ns())),
            shares: deadline.map(|end| (end, Shares::new(plan))),
            runner: BurstRunner::new(plan, context),
            memory: MemoryStore::new(plan, context, heartbeat),
            noise: NoiseWatch::default(),
            progress: Progress::new(observer, plan.estimated_s),
            set_up: SetUp::default(),
            calibration: Calibration::default(),
        }
    }

    /// The next cell has its share of the run's time, or the plan's budget where the run has no end.
    ///
    /// # Errors
    /// If other cells need the time that is left.
    pub(crate) fn begin_time(&mut self) -> Result {
        self.budget.begin_cell(self.plan.stop);
        let Some((end, shares)) = &mut self.shares else { return Ok(()) };
        let now = self.context.now();
        let share = shares.next(end.saturating_duration_since(now).as_secs_f64()).ok_or(NotMeasured::OutOfTime)?;
        self.budget.stop.budget_s = share.budget_s;
        let after = |seconds| Some(now + Duration::from_secs_f64(seconds));
        (self.budget.cell_end, self.budget.fill_end) = (after(share.at_most_s), after(share.fill_s));
        // On a slow machine a buffer may take longer than the cell's share: the cell is measured all the same, at the cost of later ones.
        self.memory.end = Some(*end);
        Ok(())
    }

    /// The time of the cell is over.
    pub(crate) const fn end_time(&mut self) {
        (self.budget.cell_end, self.budget.fill_end, self.memory.end) = (None, None, None);
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.budget.interrupted()
    }

    /// So many windows of a cell or a trial.
    pub(crate) const fn shape(&self, windows: usize) -> BurstShape {
        BurstShape { windows, window: self.budget.window }
    }

    pub(crate) fn run_burst(&mut self, chase: Option<(u32, Chase)>, loads: Vec<(u32, Load)>, shape: BurstShape) -> Result<BurstResult> {
        let result = self.runner.run(chase, loads, shape, self.budget.worker_timeout());
        self.progress.report();
        result
    }

    /// Adds time that was spent measuring outside of bursts.
    pub(crate) fn add_measuring(&mut self, time: Duration) {
        self.runner.measuring += time;
        self.progress.report();
    }

    /// Runs bursts that only decide how to measure: their time is set-up and not measuring.
    pub(crate) fn as_trial<T>(&mut self, trial: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (started, measuring) = (self.context.now(), self.runner.measuring);
        let result = trial(self)?;
        self.set_up.trials_s += (self.context.now() - started).as_secs_f64();
        self.runner.measuring = measuring;
        Ok(result)
    }

    /// Lets a chase run in `bytes` of new memory until it is as fast as it stays. That is set-up and not measuring.
    pub(crate) fn settle(&mut self, cpu: u32, mut chase: Chase, order: ChaseOrder, bytes: Bytes) -> Result<Chase> {
        let time = protocol::settling(order, bytes);
        if time.is_zero() {
            return Ok(chase);
        }
        let (started, measuring) = (self.context.now(), self.runner.measuring);
        let windows = time.as_secs_f64() / self.budget.window.as_secs_f64();
        for shape in self.shape(windows as usize).bursts() {
            if self.interrupted() {
                break;
            }
            let burst = self.run_burst(Some((cpu, chase)), Vec::new(), shape)?;
            (_, chase) = burst.chase.ok_or_else(|| chase_lost(cpu))?;
        }
        self.set_up.warm_up_s += (self.context.now() - started).as_secs_f64();
        self.runner.measuring = measuring;
        Ok(chase)
    }

    /// Begins to watch the machine while all of `cpus` work: noise counters, and the frequency of `cpu` once it has settled.
    pub(crate) fn watch(&mut self, cpu: u32, cpus: &IdSet) -> Result {
        let started = self.context.now();
        let ghz = self.runner.warm_up(cpu)?;
        self.set_up.warm_up_s += (self.context.now() - started).as_secs_f64();
        // CPUs kept awake are busy because of this process as well.
        let cpus = cpus.union(&self.runner.kept_awake(cpus));
        self.noise = self.context.platform.watch(&cpus, &self.runner.neighbours, ghz);
        Ok(())
    }

    pub(crate) fn unwatch(&mut self, scheduler: &SchedulerNoise) -> Noise {
        self.noise.finish(scheduler)
    }

    /// Sets something up while a cell is watched. It runs on other CPUs than those watched as well, so what happens there does not count.
    pub(crate) fn unwatched<T>(&mut self, set_up: impl FnOnce(&mut Self) -> T) -> T {
        self.noise.pause();
        let result = set_up(self);
        self.noise.resume();
        result
    }

    pub(crate) fn allocate(&mut self, plan: &BufferPlan) -> Result<Arc<Buffer>> {
        self.memory.allocate(&mut self.noise, plan)
    }

    pub(crate) fn chase_buffer(&mut self, plan: &BufferPlan, nth: u32) -> Result<Arc<Buffer>> {
        self.memory.chase_buffer(&mut self.noise, plan, nth)
    }

    /// A chain in the first bytes of the `nth` buffer of a chase.
    pub(crate) fn ring(&mut self, probe: &Probe, order: ChaseOrder, buffer: &Arc<Buffer>, nth: u64) -> Result<Ring> {
        self.memory.ring(&mut self.noise, probe, order, (buffer, nth))
    }

    /// An error where a pointer of a chase's chain is not what was written and its bursts could not show that ([`Ring::check_links`]).
    pub(crate) fn check_links(&mut self, cpu: u32, ring: &Ring) -> Result {
        self.look_at_links(|cutoff| ring.check_links(cpu, &|| cutoff.passed()))
    }

    /// An error where a pointer of a chase's chain is not what was written, whatever its bursts have shown.
    pub(crate) fn check_all_links(&mut self, cpu: u32, ring: &Ring) -> Result {
        self.look_at_links(|cutoff| ring.check_all_links(cpu, &|| cutoff.passed()))
    }

    fn look_at_links(&mut self, look: impl FnOnce(&Cutoff) -> Result) -> Result {
        if !self.context.platform.keeps_contents() {
            return Ok(());
        }
        self.unwatched(|session| {
            let cutoff = session.memory.cutoff();
            look(&cutoff)
        })
    }

    /// The counters of a measurement, where they were asked for. The first time, a note names those that could not be read.
    pub(crate) fn counted(
        &mut self,
        measured: &mut Measured,
        totals: &CounterTotals,
        unit: WorkUnit,
        certain: ExpectedEvents,
    ) -> Option<Box<Counters>> {
        let counters = self.runner.counters()?;
        let (counters, note) = counters.summarise(totals, &self.context.clock, unit, certain);
        note.into_iter().for_each(|note| measured.note(note));
        Some(Box::new(counters))
    }
}
