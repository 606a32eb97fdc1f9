//! A simulated machine below the sampling loop: a model answers instead of worker threads, memory and the passing of time, and everything
//! above (plans, rounds, statistics, conclusions) is the program's own. For tests: the feature `simulate` switches it on.

use std::time::Duration;

use memgauge_core::plan::BufferPlan;
use memgauge_core::protocol::SETTLE_WINDOWS;
use memgauge_core::result::{PageEvidence, PageKind};
use memgauge_core::units::Bytes;
use memgauge_kernels::CHASE_UNROLL;
use memgauge_os::clock::Clock;
use memgauge_os::memory::{Buffer, MemoryError};

use crate::burst::chase::Chase;
use crate::burst::load::{Load, lines_per_step};
use crate::burst::result::{BurstResult, BurstShape, Conditions, Loaded};
use crate::burst::windows::Trace;
use crate::model::{ChaseWork, LoadWork, SimulatedMachine};

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
    let window_ns = shape.window.as_nanos() as f64;
    let window = clock.to_ticks(shape.window);
    let busy = loads.len() + usize::from(chase.is_some());
    let trace = |cpu: u32, units: &mut dyn Iterator<Item = f64>| {
        let (mut at, mut work) = (start, 0.0);
        let mut marks = vec![Some((at, 0))];
        marks.extend(units.map(|units| {
            (at, work) = (at + window, work + units);
            Some((at, work as u64))
        }));
        // Right after a burst all of its threads read their frequencies.
        Trace { ghz: Some(machine.ghz(cpu, busy)), ..Trace::of_windows(marks) }
    };
    let loads = loads.into_iter().zip(rates.lines_per_ns).map(|((cpu, load), lines)| {
        let per_step = lines_per_step(load.kernel()) as f64;
        let trace = trace(cpu, &mut lines.into_iter().map(|rate| rate * window_ns / per_step));
        Loaded { cpu, trace, load }
    });
    BurstResult {
        loads: loads.collect(),
        chase: chase.map(|(cpu, chase)| (trace(cpu, &mut rates.hop_ns.into_iter().map(|ns| window_ns / ns / CHASE_UNROLL as f64)), chase)),
        conditions: Conditions { coverage: Some(1.0), ..Conditions::default() },
        steal: None,
    }
}

/// Nanoseconds per hop of a chase of exactly so many hops.
pub(crate) fn hop_ns(machine: &dyn SimulatedMachine, cpu: u32, chase: &Chase, hops: u64) -> f64 {
    let rates = machine.burst(Some(chase_work(cpu, chase)), &[], 1, Duration::from_millis(1));
    let ns = rates.hop_ns.first().copied().unwrap_or_default();
    machine.pass(Duration::from_nanos((ns * hops as f64) as u64));
    ns
}

fn chase_work(cpu: u32, chase: &Chase) -> ChaseWork {
    let (ring, spec) = (chase.ring(), chase.ring().spec());
    // The lines between those that it visits are not loaded.
    let bytes = Bytes(spec.bytes.0 / spec.stride.0.max(1) * spec.line.0);
    ChaseWork { cpu, memory: ring.buffer().shares(), bytes, order: spec.order }
}
