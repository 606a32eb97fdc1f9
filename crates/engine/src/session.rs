//! The state of a run. Each part has one duty; what is measured is in [`experiment`](crate::experiment), [`transfer`](crate::transfer) and
//! [`scan`](crate::scan).

use std::sync::Arc;
use std::time::Duration;

use memgauge_core::counters::{Counters, ExpectedEvents, WorkUnit};
use memgauge_core::experiment::{ChaseOrder, Experiment};
use memgauge_core::plan::{BufferPlan, Plan, Probe};
use memgauge_core::protocol;
use memgauge_core::result::{Noise, Plateau, SetUp};
use memgauge_core::units::{Bytes, IdSet};
use memgauge_os::memory::Buffer;

use crate::burst::chase::{Chase, Ring};
use crate::burst::counters::CounterTotals;
use crate::burst::load::Load;
use crate::burst::result::{BurstResult, BurstShape};
use crate::burst::runner::BurstRunner;
use crate::burst::windows::shortest_window;
use crate::burst::workers::SchedulerNoise;
use crate::context::{Observer, Progress, RunContext, TimeBudget};
use crate::cutoff::Cutoff;
use crate::error::{CellError, Result};
use crate::experiment::kernels::KnownTrial;
use crate::experiment::stores::KnownStores;
use crate::memory::MemoryStore;
use crate::noise::NoiseWatch;
use crate::recorder::Recorder;

pub(crate) struct Session<'a> {
    pub(crate) context: &'a RunContext<'a>,
    pub(crate) plan: &'a Plan,
    pub(crate) budget: TimeBudget<'a>,
    pub(crate) runner: BurstRunner<'a>,
    pub(crate) memory: MemoryStore<'a>,
    pub(crate) noise: NoiseWatch,
    pub(crate) recorder: Recorder<'a>,
    pub(crate) progress: Progress<'a>,
    /// Time spent on setting up, apart from memory.
    pub(crate) set_up: SetUp,
    pub(crate) calibration: Calibration,
    /// Results that the observer has.
    shown: usize,
}

/// What a cell has found out and later cells use.
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
        let first = plan.steps.first();
        let heartbeat = observer.heartbeat();
        Self {
            context,
            plan,
            budget: TimeBudget {
                context,
                stop: plan.stop,
                window: shortest_window(protocol::window(plan.stop.budget_s, plan.counters), context.clock.overhead_ns()),
                cell_end: None,
                fill_end: None,
            },
            runner: BurstRunner::new(plan, context),
            memory: MemoryStore::new(plan, context, heartbeat),
            noise: NoiseWatch::default(),
            recorder: Recorder::new(
                &context.machine.topology,
                first.map_or(Experiment::IdleLatency, |step| step.experiment),
                plan.kept_samples(),
            ),
            progress: Progress::new(observer, plan.estimated_s),
            set_up: SetUp::default(),
            calibration: Calibration::default(),
            shown: 0,
        }
    }

    /// Hands the observer what it does not have yet.
    pub(crate) fn show_results(&mut self) {
        let new = &self.recorder.results[self.shown..];
        if !new.is_empty() {
            self.progress.observer.measured(new);
            self.shown = self.recorder.results.len();
        }
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
            (_, chase) = burst.chase.ok_or(CellError::ChaseLost { cpu })?;
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

    /// What was counted for a measurement, where it was asked for.
    pub(crate) fn counted(&mut self, totals: &CounterTotals, unit: WorkUnit, certain: ExpectedEvents) -> Option<Box<Counters>> {
        let counters = self.runner.counters()?;
        let (counters, note) = counters.summarise(totals, &self.context.clock, unit, certain);
        note.into_iter().for_each(|note| self.recorder.note(note));
        Some(Box::new(counters))
    }
}
