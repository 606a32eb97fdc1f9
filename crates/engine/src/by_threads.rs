//! Bursts by threads: hands the chase, the loaders and the threads that keep other packages awake to their workers, and collects what they
//! did.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use memgauge_kernels as kernels;
use memgauge_model::plan::BufferPlan;
use memgauge_model::protocol::{SETTLE_HOPS, SETTLE_WINDOWS};
use memgauge_model::units::IdSet;
use memgauge_os::clock;
use memgauge_os::memory::Buffer;

use crate::burst::chase::Chase;
use crate::burst::counters::{CounterSwitches, RunCounters};
use crate::burst::exact::{ExactHops, settle_again};
use crate::burst::handover::{self, Transfer, TransferRun};
use crate::burst::load::Load;
use crate::burst::result::{BurstResult, BurstShape, ChasedHops, Conditions, Loaded};
use crate::burst::threads::{EndFlag, LEAD, Threads, keep_awake_jobs, keep_awake_until};
use crate::burst::windows::{BLOCK_NS, Fences, Schedule, Trace, coverage, run_until_end};
use crate::burst::workers::{Finished, Job, SchedulerNoise};
use crate::cutoff::WORKER_TIMEOUT;
use crate::error::{Result, WorkerError, chase_lost};
use crate::neighbours::{NeighbourCpus, Others};
use crate::platform::Bursts;

/// Reading a worker's counters before the burst takes this long at most, the memory controllers' on other packages included.
const LEAD_TO_READ: Duration = Duration::from_millis(1);
/// Hops of an exact chase between two checks whether the run was interrupted: a fifth of a second at 100 ns.
const HOPS_AT_A_TIME: u64 = 1 << 21;

/// The hops and time of a part of an exact chase, and the chase to go on with; `None` from a CPU that was kept awake.
type ChasedPart = Option<(ExactHops, Chase)>;

enum JobResult {
    Chased(Box<(Trace, Chase)>),
    Loaded(Box<Loaded>),
    KeptAwake,
}

impl Bursts for Threads {
    fn begin_cell(&mut self, neighbours: &NeighbourCpus) {
        self.neighbours = neighbours.clone();
    }

    fn burst(
        &mut self,
        chase: Option<(u32, Chase)>,
        loads: Vec<(u32, Load)>,
        awake: &IdSet,
        shape: BurstShape,
        timeout: Duration,
    ) -> Result<BurstResult> {
        let busy: IdSet = chase.iter().map(|(cpu, _)| *cpu).chain(loads.iter().map(|(cpu, _)| *cpu)).collect();
        if let Some(counters) = &mut self.counters {
            counters.open(&mut self.workers, &busy)?;
        }
        // Counters of the memory controllers belong to the bandwidth, where there is one.
        let for_system = loads.first().map(|(cpu, _)| *cpu).or(chase.as_ref().map(|(cpu, _)| *cpu));
        let counters = busy.iter().filter_map(|cpu| Some((cpu, self.counters.as_ref()?.switched_by(cpu, Some(cpu) == for_system)?)));
        let counters: BTreeMap<u32, _> = counters.collect();
        let mut lead = Self::lead(busy.len() + awake.len());
        if !counters.is_empty() {
            lead += LEAD_TO_READ;
        }
        let clock = self.clock;
        let start = clock.now() + clock.to_ticks(lead);
        let windows = shape.windows + SETTLE_WINDOWS;
        let schedule = Schedule { clock, start, window: clock.to_ticks(shape.window), windows, counters: None };
        let jobs = burst_jobs(chase, loads, awake, counters, schedule);
        let length = shape.whole();
        let (finished, others) = self.run_jobs(jobs, &busy, length, length + timeout)?;
        Ok(BurstResult { others, ..collect(finished) })
    }

    fn hops(&mut self, cpu: u32, mut chase: Chase, hops: u64, awake: &IdSet, interrupted: &dyn Fn() -> bool) -> Result<ChasedHops> {
        let clock = self.clock;
        let (mut left, mut took, mut settle, mut scheduler) = (hops, ExactHops::default(), SETTLE_HOPS, SchedulerNoise::default());
        while left > 0 && !interrupted() {
            let part = left.min(HOPS_AT_A_TIME);
            let start = clock.now() + clock.to_ticks(LEAD);
            let (flag, ended) = EndFlag::new();
            let cutoff = self.cutoff.clone();
            let chase_part = move || {
                let _flag = flag;
                Schedule { clock, start, window: 0, windows: 0, counters: None }.wait_for_start();
                Some(chase.exactly(part, settle, &clock, &cutoff))
            };
            let mut jobs: Vec<(u32, Job<ChasedPart>)> = vec![(cpu, Box::new(chase_part))];
            jobs.extend(keep_awake_jobs(awake, &ended));
            let mut finished = self.workers.run_required(jobs, 1, WORKER_TIMEOUT)?.into_iter();
            let Some(Finished { value: Some((part_took, moved)), scheduler: seen }) = finished.next() else {
                return Err(chase_lost(cpu));
            };
            scheduler.add(&seen);
            settle = settle_again(clock.ns(part_took.ticks));
            chase = moved;
            chase.check(cpu)?;
            took.add(&part_took);
            if part_took.hops() < part {
                break;
            }
            left -= part;
        }
        Ok(ChasedHops { took, chase, scheduler })
    }

    fn transfers(
        &mut self,
        transfers: &[Transfer<'_>],
        allocate: &mut dyn FnMut(&BufferPlan) -> Result<Arc<Buffer>>,
        run: Duration,
        windows: u64,
    ) -> Result<(Vec<TransferRun>, Others)> {
        let jobs = handover::jobs(self.clock, transfers, allocate, run, windows)?;
        let cpus = handover::all_cpus(transfers);
        let (finished, others) = self.run_jobs(jobs, &cpus, run, run + handover::RUN_TIMEOUT)?;
        Ok((handover::collect(transfers, finished)?, others))
    }

    fn read_all(&mut self, cpu: u32, buffer: &Arc<Buffer>, timeout: Duration) -> Result<(), WorkerError> {
        let buffer = buffer.clone();
        // SAFETY: the buffer has as many bytes, is aligned to a page, was written when it was first touched, and nobody else uses it.
        let read: Job<u64> = Box::new(move || std::hint::black_box(unsafe { kernels::checksum_xor(buffer.as_ptr(), buffer.len()) }));
        self.workers.run_required(vec![(cpu, read)], 1, timeout).map(|_| ())
    }

    fn warm_up(&mut self, cpu: u32, settled: bool, longest: Duration) -> Result<f64, WorkerError> {
        let clock = self.clock;
        self.workers.run_on(cpu, move || if settled { clock::core_ghz(&clock) } else { clock::warm_up(&clock, longest) })
    }

    fn warm_up_all(&mut self, cpus: &IdSet, longest: Duration) -> Vec<(u32, f64)> {
        let clock = self.clock;
        let job = |cpu| (cpu, Box::new(move || (cpu, clock::warm_up(&clock, longest))) as Job<(u32, f64)>);
        let finished = self.workers.run(cpus.iter().map(job).collect(), WORKER_TIMEOUT).unwrap_or_default();
        finished.into_iter().map(|finished| finished.value).collect()
    }

    fn ghz(&mut self, cpu: u32) -> Option<f64> {
        let clock = self.clock;
        self.workers.run_on(cpu, move || clock::core_ghz(&clock)).ok()
    }

    fn counters(&mut self) -> Option<&mut RunCounters> {
        self.counters.as_mut()
    }

    fn threads(&mut self) -> Option<&mut Threads> {
        Some(self)
    }
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
            // A thread that only keeps a package awake may be interrupted: the numbers stay the same.
            JobResult::KeptAwake => continue,
        }
        result.conditions.scheduler.add(&scheduler);
    }
    result.conditions.coverage = coverage(&spans);
    result
}
