//! A simulated machine: a model answers instead of worker threads, memory and the passing of time, and everything above (plans, rounds,
//! statistics, conclusions) is the program's own. For tests: the feature `simulate` switches it on.

pub(crate) mod model;

use std::sync::Arc;
use std::time::{Duration, Instant};

use memgauge_kernels::{CHASE_UNROLL, LINE};
use memgauge_model::plan::{BufferPlan, Plan};
use memgauge_model::protocol::{MAX_NEIGHBOURS, SETTLE_HOPS, SETTLE_WINDOWS};
use memgauge_model::result::{Neighbours, PageEvidence, PageKind};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_os::clock::{Clock, ClockError};
use memgauge_os::cpu::AllowedSets;
use memgauge_os::memory::{Buffer, MemoryError};

use crate::burst::chase::{self, ChainSpec, Chase, Ring, WindowExits};
use crate::burst::exact::time_hops;
use crate::burst::handover::{Transfer, TransferRun};
use crate::burst::load::{Load, Traversal, lines_per_iteration};
use crate::burst::pipeline::Pipeline;
use crate::burst::prefix::Prefix;
use crate::burst::result::{BurstResult, BurstShape, ChasedHops, Conditions, Loaded};
use crate::burst::windows::{BLOCK_NS, Fences, Mark, Schedule, Trace, run_by};
use crate::burst::workers::SchedulerNoise;
use crate::context::RunContext;
use crate::cutoff::Cutoff;
use crate::error::{ChainError, Result, WorkerError};
use crate::neighbours::{NeighbourCpus, Others};
use crate::noise::NoiseWatch;
use crate::platform::{Bursts, Platform};
use model::{ChaseWork, LoadWork, SimulatedMachine, TransferWork};

/// Time to map, touch and read back a buffer: 8 GB/s.
const TOUCH_NS_PER_BYTE: f64 = 0.125;
/// Time until a core's clock has settled.
const WARM_UP: Duration = Duration::from_millis(75);

impl<'a> RunContext<'a> {
    /// The same on a model of the machine.
    pub fn simulated(self, model: &'a dyn SimulatedMachine) -> Self {
        let platform = Simulated { model, clock: self.clock, began: Instant::now() };
        Self { platform: Box::new(platform), ..self }
    }
}

/// A machine for which a model answers.
#[derive(Clone, Copy)]
struct Simulated<'a> {
    model: &'a dyn SimulatedMachine,
    clock: Clock,
    began: Instant,
}

impl Platform for Simulated<'_> {
    fn now(&self) -> Instant {
        self.began + self.model.elapsed()
    }

    fn wait(&self, time: Duration) {
        self.model.pass(time);
    }

    fn bursts(&self, _: &Plan, _: Cutoff) -> Box<dyn Bursts + '_> {
        Box::new(*self)
    }

    /// Address space, which nobody touches.
    fn allocate(&self, plan: &BufferPlan, _: &Cutoff) -> Result<Buffer, MemoryError> {
        self.model.pass(Duration::from_nanos((plan.bytes.0 as f64 * TOUCH_NS_PER_BYTE) as u64));
        let page = Some(Bytes::mib(2));
        let pages = PageEvidence { requested: plan.pages, obtained: Some(PageKind::Thp), share: Some(1.0), page, reason: None };
        let buffer = Buffer::reserve(plan, pages)?;
        self.model.allocated(address(&buffer));
        Ok(buffer)
    }

    fn keeps_contents(&self) -> bool {
        false
    }

    /// A ring of one window, so that none of its lines is left over. Nobody follows it.
    fn write_chain(&self, buffer: &Arc<Buffer>, spec: &ChainSpec, _: &IdSet, _: &Cutoff) -> Result<Ring, ChainError> {
        let layout = chase::layout(buffer, &ChainSpec { window: spec.bytes, ..spec.clone() })?;
        Ok(Ring::new(buffer, layout, spec.offset_in_line))
    }

    fn write_prefix(&self, prefix: &Prefix<'_>, _: &mut Option<WindowExits>, cutoff: &Cutoff) -> Result<(Ring, Bytes), ChainError> {
        let spec = ChainSpec { bytes: prefix.size, ..prefix.whole.clone() };
        Ok((self.write_chain(prefix.buffer, &spec, prefix.cpus, cutoff)?, spec.window.min(prefix.size)))
    }

    fn allowed(&self) -> Option<AllowedSets> {
        None
    }

    fn compare_clocks(&self, _: &IdSet) -> Result<(), ClockError> {
        Ok(())
    }

    /// None that is looked at: the model says what others do in each burst.
    fn neighbours(&self, _: &IdSet, _: &IdSet, _: &IdSet) -> NeighbourCpus {
        NeighbourCpus::default()
    }

    fn watch(&self, _: &IdSet, _: &NeighbourCpus, ghz: f64) -> NoiseWatch {
        NoiseWatch::blind(ghz)
    }
}

impl Bursts for Simulated<'_> {
    fn burst(
        &mut self,
        chase: Option<(u32, Chase)>,
        loads: Vec<(u32, Load)>,
        _: &IdSet,
        shape: BurstShape,
        _: Duration,
    ) -> Result<BurstResult> {
        let Self { model, clock, .. } = *self;
        let windows = shape.windows + SETTLE_WINDOWS;
        let chase_work = chase.as_ref().map(|(cpu, chase)| chase_work(*cpu, chase));
        let load_work: Vec<LoadWork> = loads.iter().map(|(cpu, load)| load_work(*cpu, load)).collect();
        let start = clock.to_ticks(model.elapsed());
        let rates = model.burst(chase_work, &load_work, windows, shape.window);
        model.pass(shape.whole());
        let busy = loads.len() + usize::from(chase.is_some());
        let (window, in_flight) = (clock.to_ticks(shape.window), model.hops_in_flight());
        // Right after a burst all of its threads read their frequencies.
        let thread = |cpu: u32| Thread {
            model,
            schedule: Schedule { clock, start, window, windows, counters: None },
            ghz: model.ghz(cpu, busy),
            away: &rates.away,
        };
        let loads = loads.into_iter().zip(rates.lines_per_ns).map(|((cpu, load), lines)| {
            let per_iteration = lines_per_iteration(load.kernel()) as f64;
            let step_ns: Vec<f64> = lines.into_iter().map(|rate| per_iteration / rate).collect();
            let thread = thread(cpu);
            let trace = if in_flight == 0 { thread.by_windows(&step_ns) } else { thread.by_blocks(&step_ns, 1, (Fences::Windows, 0)) };
            Loaded { cpu, trace, load }
        });
        let chased = |(cpu, chase): (u32, Chase)| {
            let thread = thread(cpu);
            let trace = if in_flight == 0 {
                thread.by_windows(&rates.hop_ns.iter().map(|ns| ns * CHASE_UNROLL as f64).collect::<Vec<_>>())
            } else {
                thread.by_blocks(&rates.hop_ns, CHASE_UNROLL, (Fences::Slots, in_flight))
            };
            (trace, chase)
        };
        Ok(BurstResult {
            loads: loads.collect(),
            chase: chase.map(chased),
            conditions: Conditions { coverage: Some(1.0), ..Conditions::default() },
            others: Others {
                steal: None,
                neighbours: rates.neighbours.map(|share| Neighbours { memory: Some(share), ..Neighbours::default() }),
                neighbours_busy: rates.neighbours.is_some_and(|share| share > MAX_NEIGHBOURS),
            },
        })
    }

    fn hops(&mut self, cpu: u32, chase: Chase, hops: u64, _: &IdSet, _: &dyn Fn() -> bool) -> Result<ChasedHops> {
        let Self { model, clock, .. } = *self;
        let rates = model.burst(Some(chase_work(cpu, &chase)), &[], 1, Duration::from_millis(1));
        let ns = rates.hop_ns.first().copied().unwrap_or_default();
        let start = clock.to_ticks(model.elapsed());
        let core = Pipeline::new(&clock, start, model.hops_in_flight(), model.ghz(cpu, 1));
        let (start_ns, cold) = (clock.ns(start), model.cold());
        let took = time_hops(&core, &clock, (SETTLE_HOPS, hops), &Cutoff::default(), |hops| {
            core.hop(hops, ns + while_cold(cold, core.done_ns() - start_ns));
        });
        model.pass(Duration::from_nanos((core.done_ns() - start_ns) as u64));
        Ok(ChasedHops { took, chase, scheduler: SchedulerNoise::default() })
    }

    fn transfers(
        &mut self,
        transfers: &[Transfer<'_>],
        _: &mut dyn FnMut(&BufferPlan) -> Result<Arc<Buffer>>,
        run: Duration,
        _: u64,
    ) -> Result<(Vec<TransferRun>, Others)> {
        let work = transfers.iter().map(|Transfer { plan, ring }| TransferWork {
            reader: plan.reader,
            holder: plan.holder,
            buffer: address(ring.buffer()),
            home: ring.buffer().node(),
            state: plan.state,
            lines: plan.window.0 / plan.stride.0,
        });
        let samples = self.model.transfers(&work.collect::<Vec<_>>(), run);
        self.model.pass(run);
        let done = samples.into_iter().zip(transfers).map(|(samples, transfer)| TransferRun {
            windows: samples.len() as u64,
            clean: true,
            samples,
            ring: Some(transfer.ring.clone()),
            ..TransferRun::default()
        });
        Ok((done.collect(), Others::default()))
    }

    fn read_all(&mut self, cpu: u32, buffer: &Arc<Buffer>, _: Duration) -> Result<(), WorkerError> {
        self.model.read_all(cpu, Bytes(buffer.len() as u64));
        Ok(())
    }

    fn warm_up(&mut self, cpu: u32, _: bool, _: Duration) -> Result<f64, WorkerError> {
        self.model.pass(WARM_UP);
        Ok(self.model.ghz(cpu, 1))
    }

    fn warm_up_all(&mut self, cpus: &IdSet, _: Duration) -> Vec<(u32, f64)> {
        cpus.iter().map(|cpu| (cpu, self.model.ghz(cpu, cpus.len()))).collect()
    }

    fn ghz(&mut self, cpu: u32) -> Option<f64> {
        Some(self.model.ghz(cpu, 1))
    }
}

/// A thread of a burst.
struct Thread<'a> {
    model: &'a dyn SimulatedMachine,
    schedule: Schedule<'static>,
    ghz: f64,
    /// The share of each window for which another thread had the CPU.
    away: &'a [f64],
}

impl Thread<'_> {
    /// Notes at the end of each window what it did, by the nanoseconds that a unit takes in each.
    fn by_windows(&self, unit_ns: &[f64]) -> Trace {
        let window_ns = self.schedule.clock.ns(self.schedule.window);
        let (mut at, mut work, mut ran_ns) = (self.schedule.start, 0.0, 0.0);
        let mark = |ticks, work, ran_ns| Mark { ticks, resumed: ticks, work, longest: 0, cpu_ns: Some(ran_ns) };
        let mut marks = vec![Some(mark(at, 0, 0))];
        marks.extend(unit_ns.iter().enumerate().map(|(index, ns)| {
            let on = 1.0 - self.away.get(index).copied().unwrap_or(0.0);
            (at, work, ran_ns) = (at + self.schedule.window, work + window_ns / ns * on, ran_ns + window_ns * on);
            // A thread looks at the clock when a unit is done: what it has begun since is of the next window, with its time.
            let begun_ns = if on > 0.0 { (work.fract() * ns).min(window_ns / 2.0 * on) } else { 0.0 };
            let begun_ticks = if on > 0.0 { self.schedule.clock.to_ticks(Duration::from_nanos((begun_ns / on) as u64)) } else { 0 };
            Some(mark(at - begun_ticks, work as u64, (ran_ns - begun_ns) as u64))
        }));
        Trace { span: (self.schedule.start, at), marks, slots: 1, ghz: Some(self.ghz), ..Trace::default() }
    }

    /// Runs blocks as a real thread does, on a core that reads its clock `in_flight` hops early. A unit of work is `hops`, each of which takes
    /// the nanoseconds of its window.
    fn by_blocks(&self, hop_ns: &[f64], hops: usize, (fences, in_flight): (Fences, u32)) -> Trace {
        let Schedule { clock, start, window, .. } = self.schedule;
        let core = Pipeline::new(&clock, start, in_flight, self.ghz);
        let (start_ns, window_ns, cold) = (clock.ns(start), clock.ns(window), self.model.cold());
        run_by(&core, &self.schedule, BLOCK_NS, fences, |units| {
            let since = core.done_ns() - start_ns;
            let ns = hop_ns.get((since / window_ns) as usize).or(hop_ns.last()).copied().unwrap_or(window_ns);
            core.hop(units * hops, ns + while_cold(cold, since));
        })
    }
}

/// The nanoseconds that a hop takes longer if its thread was woken `since_ns` nanoseconds before.
fn while_cold((more_ns, time): (f64, Duration), since_ns: f64) -> f64 {
    if since_ns < time.as_nanos() as f64 { more_ns } else { 0.0 }
}

/// Where a buffer is: no two that exist are at the same place.
fn address(buffer: &Buffer) -> usize {
    buffer.as_ptr().addr()
}

fn chase_work(cpu: u32, chase: &Chase) -> ChaseWork {
    let (ring, layout) = (chase.ring(), chase.ring().layout());
    let buffer = ring.buffer();
    ChaseWork { cpu, buffer: address(buffer), memory: buffer.shares(), bytes: layout.chased_bytes(), order: layout.order() }
}

fn load_work(cpu: u32, load: &Load) -> LoadWork {
    let Traversal { advance, steps, order, windows, block, buffer, .. } = &load.traversal;
    let bytes = match order {
        Some(order) => order.lines() * block * LINE as usize * windows,
        None => steps * advance.iter().sum::<usize>(),
    };
    LoadWork { cpu, buffer: address(buffer), memory: buffer.shares(), bytes: Bytes(bytes as u64), kernel: load.kernel(), delay: load.delay }
}
