//! Idle latency: a pointer chase alone, window-local and full-random or as asked, over fresh allocations.

use std::sync::Arc;
use std::time::Duration;

use memgauge_core::conclusions::advise;
use memgauge_core::counters::WorkUnit;
use memgauge_core::directory::MemoryDir;
use memgauge_core::distribution::Recorder;
use memgauge_core::experiment::{ChaseOrder, Coordinates, Experiment, Hops, Metric};
use memgauge_core::plan::{BufferPlan, Probe};
use memgauge_core::result::{Evidence, Placement, Plateau, PrefetchEvidence};
use memgauge_core::stats;
use memgauge_core::units::{Bytes, IdSet};
use memgauge_kernels as kernels;
use memgauge_linux::clock::Clock;
use memgauge_linux::memory::Buffer;

use crate::burst::{self, BurstResult, Chase, Trace};
use crate::counting::{Sheet, certain};
use crate::pages::combined_pages;
use crate::session::{BURST_WINDOWS, CellError, LEAD, PATIENCE, SETTLE_WINDOWS, Session, WINDOW};
use crate::takes::{Course, Mark, Takes};
use crate::team::{Done, Job};

/// Counted windows of a chase that is only compared with another one: evidence, not a result.
const GLANCE_WINDOWS: usize = 4;
/// Times that it is tried: a thread whose time quota is used up misses a whole burst, and the next one begins with a new quota.
const MOST_GLANCES: u32 = 5;
/// Half of a buffer agrees with the whole within this: well above noise, well below the step from a cache to memory.
const PLATEAU_TOLERANCE: f64 = 0.05;
/// Hops of an exact chase between two looks at whether the run was interrupted: a fifth of a second at 100 ns.
const LEG_HOPS: u64 = 1 << 21;
/// Times that a disturbed burst is repeated in the same memory.
const MOST_REPEATS: usize = 2;
/// Times that a derived buffer may be doubled in search of the plateau.
const MOST_DOUBLINGS: u32 = 3;

/// Nanoseconds per hop in each counted window of a chase's trace; of the whole burst where a CPU shared with others left no window.
pub(crate) fn hop_ns(trace: &Trace, clock: &Clock, windows: usize) -> Vec<f64> {
    let of = |(ticks, units)| ns_per_hop(clock, ticks, units);
    let samples: Vec<f64> = (SETTLE_WINDOWS..SETTLE_WINDOWS + windows).filter_map(|i| trace.window(i)).filter_map(of).collect();
    if samples.is_empty() { trace.whole().and_then(of).into_iter().collect() } else { samples }
}

/// The orders to chase in.
fn orders(idle: &Idle<'_>, probe: &Probe) -> Vec<Taken> {
    let both = [ChaseOrder::WindowLocal, ChaseOrder::FullRandom];
    let orders = match idle.orders {
        [] if probe.window < probe.buffer.bytes => &both,
        [] => &both[..1],
        asked => asked,
    };
    let taken = |&order| Taken {
        order,
        takes: Takes::by_allocation(idle.allocations as usize),
        recorder: idle.histogram.and_then(Recorder::new),
        sheet: Sheet::default(),
    };
    orders.iter().map(taken).collect()
}

/// Bytes that a chase is random in: in any other order than window-local, all of its buffer.
pub(crate) fn window_of(order: ChaseOrder, probe: &Probe) -> Bytes {
    if order == ChaseOrder::WindowLocal { probe.window } else { probe.buffer.bytes }
}

fn ns_per_hop(clock: &Clock, ticks: u64, units: u64) -> Option<f64> {
    (units > 0).then(|| clock.ns(ticks) / (units * kernels::CHASE_UNROLL as u64) as f64)
}

/// Doubles a size until the plateau is reached, and returns the last one that was measured, with what was seen there. `measure` says what it
/// saw and whether there is room for twice the size; `None` where the size cannot be had.
fn doubled<E>(from: Bytes, mut measure: impl FnMut(Bytes) -> Result<Option<(Plateau, bool)>, E>) -> Result<(Bytes, Option<Plateau>), E> {
    let (mut bytes, mut found) = (from, None);
    for doublings in 0..=MOST_DOUBLINGS {
        let next = Bytes(from.0 << doublings);
        let Some((plateau, room)) = measure(next)? else { break };
        (bytes, found) = (next, Some(plateau));
        if plateau.reached || !room {
            break;
        }
    }
    Ok((bytes, found))
}

/// A chase alone, as the plan says it.
pub(crate) struct Idle<'a> {
    pub(crate) probe: &'a Probe,
    pub(crate) allocations: u32,
    /// None: window-local, and full-random where the buffer is larger than the window.
    pub(crate) orders: &'a [ChaseOrder],
    pub(crate) hops: Option<Hops>,
    pub(crate) histogram: Option<u32>,
}

/// What an idle chase in one order has left so far.
struct Taken {
    order: ChaseOrder,
    /// Samples by allocation.
    takes: Takes,
    recorder: Option<Recorder>,
    sheet: Sheet,
}

/// Hops that are asked for of a chase over this probe's buffer.
pub(crate) fn hops_of(hops: Hops, probe: &Probe) -> u64 {
    match hops {
        Hops::Count(hops) => hops,
        Hops::OnePass => probe.buffer.bytes.0 / probe.stride.0,
    }
}

/// Ticks of a part of an exact chase, and the chase to go on with; none of a CPU kept awake.
type Leg = Option<(u64, Chase)>;

impl Session<'_> {
    pub(crate) fn latency(&mut self, experiment: Experiment, at: &Coordinates, idle: &Idle<'_>) -> Result<(), CellError> {
        let watch = self.watch(idle.probe.cpu, &IdSet::one(idle.probe.cpu))?;
        let mut probe = idle.probe.clone();
        let plateau = if probe.buffer.derived { self.known_plateau(&mut probe)? } else { None };
        let hops = idle.hops.map(|hops| hops_of(hops, &probe));
        let mut taken = orders(idle, &probe);
        // A fixed time is shared among the allocations, and with the batches of a histogram; otherwise short bursts, longer when the first
        // allocations did not suffice.
        let shares = f64::from(idle.allocations) * if idle.histogram.is_some() { 2.0 } else { 1.0 };
        let fixed = self.plan.stop.budget_s / shares / WINDOW.as_secs_f64();
        let mut windows = if self.plan.stop.fixed_time { (fixed.ceil() as usize).max(1) } else { BURST_WINDOWS };
        let (mut spent, mut repeating, mut made) = (Duration::ZERO, Duration::ZERO, 0);
        let target = self.plan.stop.relative_half_width;
        let (mut pages, mut placements, mut sequential) = (Vec::new(), Vec::new(), None);
        let mut file;
        let mut course = Course::default();
        loop {
            let buffer = self.chase_buffer(&probe.buffer, made)?;
            pages.push((buffer.pages().clone(), probe.buffer.bytes));
            file = buffer.file().cloned();
            if sequential.is_none() {
                sequential = Some(self.glance(&probe, probe.buffer.bytes, ChaseOrder::Sequential, &buffer)?);
            }
            for Taken { order, takes, recorder, sheet } in &mut taken {
                let mut chase = self.chain(&probe, probe.buffer.bytes, *order, &buffer, u64::from(made))?;
                if let Some(hops) = hops {
                    let sample;
                    (sample, chase) = self.chase_hops(probe.cpu, chase, hops, &mut course)?;
                    takes.add(made, vec![sample.into_iter().collect()], Mark::default());
                } else {
                    // A disturbed burst is repeated at once, in the same memory, while there is time.
                    for _ in 0..=MOST_REPEATS {
                        let burst = self.burst(Some((probe.cpu, chase)), Vec::new(), windows)?;
                        let mark = self.mark(&burst, probe.cpu);
                        let Some((trace, moved_on)) = burst.chase else {
                            return Err(CellError::Cannot("the chase left no trace".into()));
                        };
                        self.tally_chase(sheet, probe.cpu, &trace);
                        takes.add(made, vec![hop_ns(&trace, &self.clock(), windows)], mark);
                        chase = moved_on;
                        let time = !self.plan.stop.fixed_time && !self.enough(spent + repeating, true, false);
                        if !takes.last_disturbed() || !time || takes.settled() || self.interrupted() {
                            break;
                        }
                        repeating += WINDOW * windows as u32;
                    }
                }
                if let (Some(recorder), false) = (recorder.as_mut(), self.interrupted()) {
                    let timed = self.burst(Some((probe.cpu, chase.timing(recorder.batch_hops()))), Vec::new(), windows)?;
                    course.add(&timed);
                    self.record(timed, recorder);
                }
            }
            // After the chase: pages that were moved meanwhile are found where they are now.
            placements.push(buffer.placement_now());
            // The budget is the cell's: a fixed time is each order's.
            let shares = if self.plan.stop.fixed_time { 1 } else { taken.len() as u32 };
            spent += std::mem::take(&mut repeating) + WINDOW * windows as u32 * shares * if idle.histogram.is_some() { 2 } else { 1 };
            made += 1;
            let converged = taken.iter().all(|t| t.takes.converged(0, target));
            let sampled = taken.iter().any(|t| t.takes.sampled());
            let enough = hops.is_some() || self.enough(spent, sampled, converged);
            if self.interrupted() || (made >= idle.allocations && enough) {
                break;
            }
            if made == idle.allocations {
                windows *= 2;
            }
        }
        for Taken { takes, .. } in &taken {
            course.befell(&takes.course().disturbance);
        }
        let noise = self.unwatch(watch, &course.disturbance);
        let certain = certain(self.setting.machine, probe.cpu, probe.buffer.bytes, true);
        let mut local = None;
        for Taken { order, takes, recorder, sheet } in taken {
            let estimate = takes.conclude(0, target);
            let mut noise = noise.clone();
            if hops.is_none() {
                takes.tell(&mut noise);
            }
            let translation_ns =
                local.as_ref().filter(|_| order == ChaseOrder::FullRandom).and_then(|l| advise::translation_ns(l, &estimate));
            if order == ChaseOrder::WindowLocal {
                local = Some(estimate.clone());
            }
            let prefetch = estimate
                .value
                .zip(sequential)
                .filter(|_| order != ChaseOrder::Sequential)
                .map(|(random, sequential_ns)| PrefetchEvidence { sequential_ns, random_over_sequential: random / sequential_ns });
            let evidence = Evidence {
                threads: 1,
                kernel: "chase".into(),
                buffer: probe.buffer.bytes,
                window: Some(window_of(order, &probe)),
                stride: Some(probe.stride),
                hops,
                allocations: self.distinct(&probe.buffer, made),
                pages: combined_pages(pages.iter().map(|(p, bytes)| (p, *bytes))),
                file: file.clone(),
                placement: Placement::combined(placements.iter().cloned()),
                prefetch,
                plateau,
                translation_ns,
                noise,
                ..Default::default()
            };
            self.push(experiment, Coordinates { order: Some(order), ..at.clone() }, Metric::Latency, estimate, evidence);
            self.attach_distribution(recorder.and_then(Recorder::finish));
            self.attach(&sheet, WorkUnit::Hop, certain);
        }
        Ok(())
    }

    /// Chases exactly so many hops: nanoseconds per hop, `None` when interrupted.
    fn chase_hops(&mut self, cpu: u32, mut chase: Chase, hops: u64, course: &mut Course) -> Result<(Option<f64>, Chase), CellError> {
        let clock = self.clock();
        let keepers = self.keepers(&IdSet::one(cpu));
        let (mut left, mut ticks) = (hops, 0);
        while left > 0 {
            if self.interrupted() {
                return Ok((None, chase));
            }
            let leg = left.min(LEG_HOPS);
            let start = clock.now() + clock.ticks_of(LEAD);
            let (ended, told) = burst::Ended::new();
            let mut jobs: Vec<(u32, Job<Leg>)> = vec![(
                cpu,
                Box::new(move || {
                    // Told of when this job ends, or is dropped because it cannot run.
                    let _ended = ended;
                    while clock.now() < start {
                        kernels::spin_hint();
                    }
                    Some(chase.exactly(leg, &clock))
                }),
            )];
            for cpu in keepers.iter() {
                let told = told.clone();
                jobs.push((
                    cpu,
                    Box::new(move || {
                        burst::keep_awake_until(&told);
                        None
                    }),
                ));
            }
            let mut done = self.team.run_most(jobs, 1, PATIENCE)?.into_iter();
            let Some(Done { value: Some((took, moved_on)), disturbance }) = done.next() else {
                return Err(CellError::Cannot("the chase left no trace".into()));
            };
            course.befell(&disturbance);
            self.spent(Duration::from_secs_f64(clock.ns(took) / 1e9));
            (chase, ticks, left) = (moved_on, ticks + took, left - leg);
        }
        Ok((Some(clock.ns(ticks) / hops as f64), chase))
    }

    /// Takes the batches of a burst into a histogram and gives back its chase.
    pub(crate) fn record(&self, burst: BurstResult, recorder: &mut Recorder) -> Option<Chase> {
        let (chase, batches) = burst.chase?.1.into_parts();
        if let Some(batches) = batches {
            let (ticks, overhead) = batches.ticks();
            recorder.add(ticks, overhead, self.clock().ns(1));
        }
        Some(chase)
    }

    /// A short chase over the first `bytes` of `buffer`: median nanoseconds per hop.
    fn glance(&mut self, probe: &Probe, bytes: Bytes, order: ChaseOrder, buffer: &Arc<Buffer>) -> Result<f64, CellError> {
        let mut chase = self.chain(probe, bytes, order, buffer, 0)?;
        let clock = self.clock();
        for _ in 0..MOST_GLANCES {
            let burst = self.burst(Some((probe.cpu, chase)), Vec::new(), GLANCE_WINDOWS)?;
            let Some((trace, moved_on)) = burst.chase else { break };
            if let Some(ns) = stats::median(&hop_ns(&trace, &clock, GLANCE_WINDOWS)) {
                return Ok(ns);
            }
            chase = moved_on;
        }
        Err(CellError::Cannot(format!("CPU {} got no time in {MOST_GLANCES} bursts; the machine is overloaded", probe.cpu)))
    }

    /// The plateau as this probe has found it before, or as it finds it now.
    fn known_plateau(&mut self, probe: &mut Probe) -> Result<Option<Plateau>, CellError> {
        if let Some((_, bytes, plateau)) = self.plateaus.iter().find(|(asked, ..)| asked == probe) {
            probe.buffer.bytes = *bytes;
            return Ok(*plateau);
        }
        let asked = probe.clone();
        let plateau = self.find_plateau(probe)?;
        self.plateaus.push((asked, probe.buffer.bytes, plateau));
        Ok(plateau)
    }

    /// Doubles the probe's buffer until half of it is as slow as all of it, so that what is measured is memory even where the machine's
    /// description of its caches is wrong, as it is in many virtual machines.
    fn find_plateau(&mut self, probe: &mut Probe) -> Result<Option<Plateau>, CellError> {
        if probe.buffer.bytes.0 / 2 < probe.window.0 {
            return Ok(None);
        }
        let asked = probe.buffer.bytes;
        let (bytes, found) = doubled::<CellError>(asked, |bytes| {
            probe.buffer.bytes = bytes;
            let buffer = match self.chase_buffer(&probe.buffer, 0) {
                // A pool or a node may not hold the larger buffer; the one before is the best there is.
                Err(_) if bytes > asked => return Ok(None),
                buffer => buffer?,
            };
            let half_ns = self.glance(probe, Bytes(bytes.0 / 2), ChaseOrder::WindowLocal, &buffer)?;
            let whole_ns = self.glance(probe, bytes, ChaseOrder::WindowLocal, &buffer)?;
            let reached = whole_ns <= half_ns * (1.0 + PLATEAU_TOLERANCE);
            let room = !self.interrupted() && self.fits(&probe.buffer, Bytes(bytes.0 * 2));
            Ok(Some((Plateau { half_ns, whole_ns, reached }, room)))
        })?;
        probe.buffer.bytes = bytes;
        Ok(found)
    }

    /// Whether a buffer of this size on this node, or in this directory, is within what this process may take.
    fn fits(&self, plan: &BufferPlan, bytes: Bytes) -> bool {
        let allowed = &self.setting.machine.allowed;
        let directory = self.plan.buffer_directory(plan);
        let in_memory = bytes <= allowed.memory && allowed.node_memory.get(&plan.node).is_none_or(|room| bytes <= *room);
        directory.is_none_or(|d| bytes.0 <= d.room()) && (in_memory || directory.is_some_and(MemoryDir::is_dax))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes measured and the one that is left, where the plateau is reached at `reached`, twice `last` has no room and `refused` cannot be had.
    fn search(reached: u64, last: u64, refused: u64) -> (Vec<u64>, u64, Option<bool>) {
        let mut measured = Vec::new();
        let (bytes, found) = doubled::<()>(Bytes(100), |bytes| {
            if bytes.0 == refused {
                return Ok(None);
            }
            measured.push(bytes.0);
            Ok(Some((Plateau { half_ns: 1.0, whole_ns: 2.0, reached: bytes.0 >= reached }, bytes.0 < last)))
        })
        .unwrap();
        (measured, bytes.0, found.map(|p| p.reached))
    }

    #[test]
    fn the_size_that_is_left_was_measured() {
        assert_eq!(search(100, 9999, 0), (vec![100], 100, Some(true)));
        assert_eq!(search(400, 9999, 0), (vec![100, 200, 400], 400, Some(true)));
        assert_eq!(search(9999, 9999, 0), (vec![100, 200, 400, 800], 800, Some(false)), "three doublings and no more");
        assert_eq!(search(9999, 200, 0), (vec![100, 200], 200, Some(false)));
        assert_eq!(search(9999, 9999, 400), (vec![100, 200], 200, Some(false)), "the one before");
    }
}
