//! A simulated machine below the sampling loop: a model answers instead of worker threads, memory and the passing of time, and everything
//! above (plans, rounds, statistics, conclusions) is the program's own. For tests: the feature `simulate` switches it on.

use std::time::Duration;

use memgauge_core::plan::BufferPlan;
use memgauge_core::protocol::{MAX_NEIGHBOURS, SETTLE_HOPS, SETTLE_WINDOWS};
use memgauge_core::result::{Neighbours, PageEvidence, PageKind};
use memgauge_core::units::Bytes;
use memgauge_kernels::CHASE_UNROLL;
use memgauge_os::clock::Clock;
use memgauge_os::memory::{Buffer, MemoryError};

use crate::burst::chase::Chase;
use crate::burst::exact::{ExactHops, time_hops};
use crate::burst::load::{Load, lines_per_step};
use crate::burst::pipeline::Pipeline;
use crate::burst::result::{BurstResult, BurstShape, Conditions, Loaded};
use crate::burst::windows::{BLOCK_NS, Fences, Schedule, Trace, run_by};
use crate::context::Cutoff;
use crate::model::{ChaseWork, LoadWork, SimulatedMachine};
use crate::neighbours::Others;

/// Time to map, touch and read back a buffer: 8 GB/s.
const TOUCH_NS_PER_BYTE: f64 = 0.125;

/// Address space for a plan's buffer, which nobody touches.
pub(crate) fn allocate(machine: &dyn SimulatedMachine, plan: &BufferPlan) -> Result<Buffer, MemoryError> {
    machine.pass(Duration::from_nanos((plan.bytes.0 as f64 * TOUCH_NS_PER_BYTE) as u64));
    let page = Some(Bytes::mib(2));
    let pages = PageEvidence { requested: plan.pages, obtained: Some(PageKind::Thp), share: Some(1.0), page, reason: None };
    Buffer::reserve(plan, pages)
}

/// Runs a chase and loaders together, as threads would.
pub(crate) fn burst(
    machine: &dyn SimulatedMachine,
    clock: &Clock,
    chase: Option<(u32, Chase)>,
    loads: Vec<(u32, Load)>,
    shape: BurstShape,
) -> BurstResult {
    let windows = shape.windows + SETTLE_WINDOWS;
    let chase_work = chase.as_ref().map(|(cpu, chase)| chase_work(*cpu, chase));
    let load_work = loads.iter().map(|(cpu, load)| LoadWork {
        cpu: *cpu,
        memory: load.buffer().shares(),
        bytes: Bytes(load.bytes() as u64),
        kernel: load.kernel(),
        delay: load.delay,
    });
    let start = clock.to_ticks(machine.elapsed());
    let rates = machine.burst(chase_work, &load_work.collect::<Vec<_>>(), windows, shape.window);
    machine.pass(shape.window * windows as u32);
    let busy = loads.len() + usize::from(chase.is_some());
    let (clock, window, in_flight) = (*clock, clock.to_ticks(shape.window), machine.hops_in_flight());
    // Right after a burst all of its threads read their frequencies.
    let thread = |cpu: u32| Thread {
        machine,
        schedule: Schedule { clock, start, window, windows, counters: None },
        ghz: machine.ghz(cpu, busy),
        away: &rates.away,
    };
    let loads = loads.into_iter().zip(rates.lines_per_ns).map(|((cpu, load), lines)| {
        let per_step = lines_per_step(load.kernel()) as f64;
        let step_ns: Vec<f64> = lines.into_iter().map(|rate| per_step / rate).collect();
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
    BurstResult {
        loads: loads.collect(),
        chase: chase.map(chased),
        conditions: Conditions { coverage: Some(1.0), ..Conditions::default() },
        others: Others {
            steal: None,
            neighbours: rates.neighbours.map(|share| Neighbours { memory: Some(share), ..Neighbours::default() }),
            neighbours_busy: rates.neighbours.is_some_and(|share| share > MAX_NEIGHBOURS),
        },
    }
}

/// A thread of a burst.
struct Thread<'a> {
    machine: &'a dyn SimulatedMachine,
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
        let mut marks = vec![Some((at, 0, 0))];
        marks.extend(unit_ns.iter().enumerate().map(|(index, ns)| {
            let on = 1.0 - self.away.get(index).copied().unwrap_or(0.0);
            (at, work, ran_ns) = (at + self.schedule.window, work + window_ns / ns * on, ran_ns + window_ns * on);
            Some((at, work as u64, ran_ns as u64))
        }));
        Trace { ghz: Some(self.ghz), ..Trace::of_windows_with_cpu_time(marks) }
    }

    /// Runs blocks as a real thread does, on a core that reads its clock `in_flight` hops early. A unit of work is `hops`, each of which takes
    /// the nanoseconds of its window.
    fn by_blocks(&self, hop_ns: &[f64], hops: usize, (fences, in_flight): (Fences, u32)) -> Trace {
        let Schedule { clock, start, window, .. } = self.schedule;
        let core = Pipeline::new(&clock, start, in_flight, self.ghz);
        let (start_ns, window_ns, cold) = (clock.ns(start), clock.ns(window), self.machine.cold());
        run_by(&core, &self.schedule, BLOCK_NS, fences, |units| {
            let since = core.done_ns() - start_ns;
            let ns = hop_ns.get((since / window_ns) as usize).or(hop_ns.last()).copied().unwrap_or(window_ns);
            core.hop(units * hops, ns + while_cold(cold, since));
        })
    }
}

/// What a hop takes longer so many nanoseconds after its thread was woken.
fn while_cold((more_ns, time): (f64, Duration), since_ns: f64) -> f64 {
    if since_ns < time.as_nanos() as f64 { more_ns } else { 0.0 }
}

/// A chase of exactly `hops` hops.
pub(crate) fn exact_hops(machine: &dyn SimulatedMachine, clock: &Clock, (cpu, chase): (u32, &Chase), hops: u64) -> ExactHops {
    let rates = machine.burst(Some(chase_work(cpu, chase)), &[], 1, Duration::from_millis(1));
    let ns = rates.hop_ns.first().copied().unwrap_or_default();
    let start = clock.to_ticks(machine.elapsed());
    let core = Pipeline::new(clock, start, machine.hops_in_flight(), machine.ghz(cpu, 1));
    let (start_ns, cold) = (clock.ns(start), machine.cold());
    let took = time_hops(&core, clock, (SETTLE_HOPS, hops), &Cutoff::never(), |hops| {
        core.hop(hops, ns + while_cold(cold, core.done_ns() - start_ns));
    });
    machine.pass(Duration::from_nanos((core.done_ns() - start_ns) as u64));
    took
}

fn chase_work(cpu: u32, chase: &Chase) -> ChaseWork {
    let (ring, spec) = (chase.ring(), chase.ring().spec());
    // The lines between those that it visits are not loaded.
    let bytes = Bytes(spec.bytes.0 / spec.stride.0.max(1) * spec.line.0);
    ChaseWork { cpu, memory: ring.buffer().shares(), bytes, order: spec.order }
}
