//! Idle latency: a pointer chase alone, window-local and full-random or in the orders asked for, over fresh allocations.
//!
//! If the plan leaves the size of the buffer open, a search finds one that is large enough to measure memory and not a cache.

use std::sync::Arc;
use std::time::Duration;

use memgauge_analysis::conclusions::advise;
use memgauge_model::counters::WorkUnit;
use memgauge_model::directory::FileEvidence;
use memgauge_model::distribution::Recorder;
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::{ChaseOrder, Metric, PageRequest};
use memgauge_model::plan::{BufferPlan, IdleChase, Probe};
use memgauge_model::protocol::{COMPARISON_WINDOWS, MAX_COMPARISON_BURSTS, MAX_DOUBLINGS, MAX_REPEATS, MIN_BURST_WINDOWS, WINDOW};
use memgauge_model::result::{Evidence, Measurement, PageEvidence, Placement, Plateau, PrefetchEvidence};
use memgauge_model::stats;
use memgauge_model::units::Bytes;
use memgauge_os::memory::Buffer;

use super::disturbance::BurstSamples;
use super::sampling::{Axis, Sampler, Series, Workload, chase_window, hop_count, hop_ns, measure_until_sure};
use crate::burst::chase::Chase;
use crate::burst::counters::certain;
use crate::burst::result::{BurstShape, Conditions};
use crate::error::{Result, chase_lost};
use crate::measured::{Measured, Subject};
use crate::memory::combined_pages;
use crate::session::Session;

/// The rounds of an idle chase: in each a fresh allocation, chased in every order.
struct AllocationSampler<'a> {
    probe: &'a Probe,
    /// The minimum number of allocations.
    min: u32,
    /// One for each order.
    series: Vec<(ChaseOrder, Series)>,
    hops: Option<u64>,
    shape: BurstShape,
    made: u32,
    spent: Duration,
    /// Nanoseconds per hop of a sequential chase that nothing interrupted, for comparison.
    sequential_ns: Option<f64>,
    pages: Vec<(PageEvidence, Bytes)>,
    placements: Vec<Placement>,
    file: Option<FileEvidence>,
}

impl AllocationSampler<'_> {
    /// Bursts of a round that share the cell's budget: a fixed time is each order's.
    fn bursts(&self, session: &Session<'_>) -> u32 {
        let orders = if session.budget.stop.fixed_time { 1 } else { self.series.len() as u32 };
        orders * self.series.iter().map(|(_, s)| s.kinds()).max().unwrap_or(1)
    }
}

impl Sampler for AllocationSampler<'_> {
    fn sample_round(&mut self, session: &mut Session<'_>, round: u32) -> Result<Duration> {
        // If the first allocations did not suffice, bursts become longer.
        if round == self.min {
            self.shape.windows *= 2;
        }
        if round >= self.min && !session.budget.stop.fixed_time {
            // No longer than the budget that is left.
            let left = (session.budget.budget_s() - self.spent.as_secs_f64()).max(0.0);
            let windows = left / f64::from(self.bursts(session)) / self.shape.window.as_secs_f64();
            self.shape.windows = self.shape.windows.min(windows.ceil() as usize).max(MIN_BURST_WINDOWS);
        }
        let probe = self.probe;
        let buffer = session.chase_buffer(&probe.buffer, round)?;
        self.pages.push((buffer.pages().clone(), probe.buffer.bytes));
        self.file = buffer.file().cloned();
        if self.sequential_ns.is_none() && round < self.min {
            self.sequential_ns = sequential_ns(short_chase_ns(session, probe, ChaseOrder::Sequential, &buffer)?);
        }
        let mut repeating = Duration::ZERO;
        let mut sampled = round > 0;
        for (order, series) in &mut self.series {
            let ring = match session.ring(probe, *order, &buffer, u64::from(round)) {
                // An interruption does not discard earlier samples.
                Err(NotMeasured::Interrupted) if sampled => break,
                ring => ring?,
            };
            sampled = true;
            series.chase = Some(session.settle(probe.cpu, Chase::new(ring), *order, probe.buffer.bytes)?);
            if let Some(hops) = self.hops {
                series.sample_hops(session, hops, round)?;
            } else {
                // A disturbed burst is repeated at once, in the same memory, while there is time.
                for _ in 0..=MAX_REPEATS {
                    series.sample(session, self.shape, round)?;
                    let over = session.budget.stop.fixed_time || session.budget.cell_over(self.spent + repeating, true);
                    if !series.samples.last_disturbed() || over || series.samples.enough_undisturbed() || session.interrupted() {
                        break;
                    }
                    repeating += self.shape.counted();
                }
            }
            series.sample_batches(session, self.shape)?;
            if let Some(chase) = &series.chase {
                session.check_links(probe.cpu, chase.ring())?;
            }
        }
        // After the chase: pages that were moved meanwhile are found where they are now.
        self.placements.push(buffer.placement_now());
        // A chase keeps its buffer: dropped here, so that the next allocation finds the memory, or the pages of a small pool, free.
        self.series.iter_mut().for_each(|(_, series)| series.chase = None);
        self.made = round + 1;
        let time = repeating + self.shape.counted() * self.bursts(session);
        self.spent += time;
        Ok(time)
    }

    fn samples(&self) -> impl Iterator<Item = &BurstSamples> {
        self.series.iter().map(|(_, series)| &series.samples)
    }

    fn hops(&self) -> Option<(u64, u64)> {
        self.hops.map(|_| (self.made.into(), self.min.into()))
    }
}

/// The nanoseconds of a sequential chase if nothing interrupted it: others are not comparable.
fn sequential_ns((ns, clean): (f64, bool)) -> Option<f64> {
    clean.then_some(ns)
}

pub(crate) fn measure(session: &mut Session<'_>, subject: Subject<'_>, idle: &IdleChase, measured: &mut Measured) -> Result {
    let workload = |probe, order| Workload { probe: Some(probe), loaders: None, axis: Axis::Allocation { min: idle.allocations, order } };
    workload(&idle.probe, ChaseOrder::WindowLocal).watch(session)?;
    let mut probe = idle.probe.clone();
    let plateau = if probe.buffer.derived { find_plateau(session, &mut probe)? } else { None };
    // By the size of the buffer that the search for the plateau may have changed.
    let orders = probe.orders(&idle.orders);
    let series: Vec<(ChaseOrder, Series)> =
        orders.iter().map(|&order| (order, workload(&probe, order).series(None, Vec::new(), idle.histogram))).collect();
    let axis = Axis::Allocation { min: idle.allocations, order: ChaseOrder::WindowLocal };
    let mut sampler = AllocationSampler {
        probe: &probe,
        min: idle.allocations,
        shape: session.shape(0),
        series,
        hops: idle.hops.map(|hops| hop_count(hops, &probe)),
        made: 0,
        spent: Duration::ZERO,
        sequential_ns: None,
        pages: Vec::new(),
        placements: Vec::new(),
        file: None,
    };
    let bursts = sampler.bursts(session);
    sampler.shape = axis.shape(session, bursts);
    measure_until_sure(session, axis.stop_after(), &mut sampler, measured)?;
    record(session, subject, sampler, plateau, measured);
    Ok(())
}

fn record(
    session: &mut Session<'_>,
    subject: Subject<'_>,
    sampler: AllocationSampler<'_>,
    plateau: Option<Plateau>,
    measured: &mut Measured,
) {
    let AllocationSampler { probe, series, hops, made, sequential_ns, pages, placements, file, .. } = sampler;
    let mut conditions = Conditions::default();
    for (_, series) in &series {
        conditions.add(&series.histogram_conditions);
        conditions.add(&series.samples.conditions());
    }
    let noise = session.unwatch(&conditions.scheduler);
    let common = Evidence {
        threads: 1,
        kernel: "chase".into(),
        buffer: probe.buffer.bytes,
        stride: Some(probe.stride),
        hops,
        allocations: session.memory.distinct_buffers(&probe.buffer, made),
        pages: combined_pages(pages.iter().map(|(p, bytes)| (p, *bytes))),
        file,
        placement: Placement::combined(placements),
        plateau,
        noise,
        ..Default::default()
    };
    let certain = certain(session.context.machine, probe.cpu, probe.buffer.bytes);
    let mut local: Option<Estimate> = None;
    for (order, series) in series {
        let mut estimate = series.samples.estimate_with_drift(0, session.budget.stop.relative_half_width);
        if estimate.value.is_none() && session.interrupted() {
            estimate.not_measured = Some(session.budget.interruption());
        }
        let full_random = order == ChaseOrder::FullRandom;
        let translation_ns = local.as_ref().filter(|_| full_random).and_then(|local| advise::translation_ns(local, &estimate));
        if order == ChaseOrder::WindowLocal {
            local = Some(estimate.clone());
        }
        let compared = estimate.value.zip(sequential_ns).filter(|_| order != ChaseOrder::Sequential);
        let mut evidence = Evidence {
            window: Some(chase_window(order, probe)),
            prefetch: compared
                .map(|(random, sequential_ns)| PrefetchEvidence { sequential_ns, random_over_sequential: random / sequential_ns }),
            translation_ns,
            ..common.clone()
        };
        // Chases of a number of hops have no bursts.
        if hops.is_none() {
            series.samples.write_disturbances(&mut evidence.noise);
        }
        (evidence.noise.left_out, evidence.noise.off_cpu) = (series.samples.left_out(), series.samples.off_cpu());
        evidence.noise.stalled = series.samples.stalled();
        let counters = session.counted(measured, &series.chase_counters, WorkUnit::Hop, certain);
        let samples = Some(series.samples.keep(0));
        let result = subject.judge(series.axis.coordinates(subject.at), Metric::Latency, estimate, evidence);
        measured.add(Measurement { distribution: series.histogram.and_then(Recorder::finish), counters, samples, ..result });
    }
}

/// Half of a buffer agrees with the whole within this: well above noise, well below the step from a cache to memory.
const TOLERANCE: f64 = 0.05;

/// A short chase over the first bytes of `buffer`, as many as the probe says: median nanoseconds per hop, and whether nothing interrupted it.
fn short_chase_ns(session: &mut Session<'_>, probe: &Probe, order: ChaseOrder, buffer: &Arc<Buffer>) -> Result<(f64, bool)> {
    let mut chase = Chase::new(session.ring(probe, order, buffer, 0)?);
    let (clock, mut shape) = (session.context.clock, session.shape(COMPARISON_WINDOWS));
    let mut disturbed = None;
    for _ in 0..MAX_COMPARISON_BURSTS {
        let burst = session.run_burst(Some((probe.cpu, chase)), Vec::new(), shape)?;
        let windows = burst.windows(&clock, shape);
        let Some((_, moved)) = burst.chase else { return Err(chase_lost(probe.cpu)) };
        match stats::median(&hop_ns(&windows, &clock)) {
            Some(ns) if windows.clean => return Ok((ns, true)),
            Some(ns) => disturbed = Some(ns),
            // A thread that lost its CPU for all of a short burst may have it for some of a longer one.
            None => shape.window = shape.window.max(WINDOW),
        }
        chase = moved;
    }
    disturbed.map(|ns| (ns, false)).ok_or(NotMeasured::NoCpuTime { cpu: probe.cpu })
}

/// Sets the probe's buffer to a size on the plateau, as this probe has found it before or as it finds it now.
fn find_plateau(session: &mut Session<'_>, probe: &mut Probe) -> Result<Option<Plateau>> {
    if let Some((_, bytes, plateau)) = session.calibration.plateaus.iter().find(|(planned, ..)| planned == probe) {
        probe.buffer.bytes = *bytes;
        return Ok(*plateau);
    }
    let planned = probe.clone();
    let plateau = search(session, probe)?;
    session.calibration.plateaus.push((planned, probe.buffer.bytes, plateau));
    Ok(plateau)
}

/// Doubles the probe's buffer until half of it is as slow as all of it, so that what is measured is memory even where the machine's
/// description of its caches is wrong, as it is in many virtual machines.
fn search(session: &mut Session<'_>, probe: &mut Probe) -> Result<Option<Plateau>> {
    if probe.buffer.bytes.0 / 2 < probe.window.0 {
        return Ok(None);
    }
    let planned = probe.buffer.bytes;
    let (bytes, found) = double_until_plateau::<NotMeasured>(planned, |bytes| {
        let started = session.context.now();
        probe.buffer.bytes = bytes;
        let buffer = match session.chase_buffer(&probe.buffer, 0) {
            // A pool or a node may not hold the larger buffer; the one before is the best there is.
            Err(_) if bytes > planned => return Ok(None),
            buffer => buffer?,
        };
        let mut half = probe.clone();
        half.buffer.bytes = Bytes(bytes.0 / 2);
        let Some(plateau) = compare_halves(|part| {
            let probe = if part == Part::Half { &half } else { &*probe };
            short_chase_ns(session, probe, ChaseOrder::WindowLocal, &buffer)
        })?
        else {
            return Ok(None);
        };
        let plateau = if plateau.reached { drive_out(session, probe, &buffer, plateau)? } else { plateau };
        // Twice the size takes twice as long, and is to be measured afterwards.
        let time = !session.interrupted() && !session.budget.too_short_for(3 * (session.context.now() - started));
        let room = time && session.memory.fits(&probe.buffer, Bytes(bytes.0 * 2));
        Ok(Some((plateau, room)))
    })?;
    probe.buffer.bytes = bytes;
    Ok(found)
}

/// What is read to drive a chase's buffer out of all caches: twice the largest last-level cache of today, 504 MB.
const EVICTING: Bytes = Bytes::gib(1);
/// No more than this part of the memory that may be taken is read for that.
const EVICTING_ONE_IN: u64 = 8;
/// How often that is tried where other processes interrupt the chase.
const COLD_CHASES: u32 = 2;

/// Looks for a cache that the machine's description does not mention and that holds half of the buffer as well as all of it. If there is one,
/// a chase is slower right after the buffer was driven out of all caches. Done once in a run.
fn drive_out(session: &mut Session<'_>, probe: &Probe, buffer: &Arc<Buffer>, plateau: Plateau) -> Result<Plateau> {
    if session.calibration.uncached.is_some_and(|known| known <= probe.buffer.bytes) {
        return Ok(plateau);
    }
    let found = compare_cold(plateau, || cold_chase_ns(session, probe, buffer))?;
    if found.reached && found.cold_ns.is_some() {
        session.calibration.uncached = Some(probe.buffer.bytes);
    }
    Ok(found)
}

/// Compares what was seen with chases over the same buffer when it is in no cache. `cold_ns` returns nanoseconds per hop; `None` when it cannot
/// tell. A cache makes every such chase slower, and what else runs on the machine only some of them, so the fastest counts.
fn compare_cold<E>(plateau: Plateau, mut cold_ns: impl FnMut() -> Result<Option<f64>, E>) -> Result<Plateau, E> {
    let mut found = plateau;
    for _ in 0..COMPARISONS {
        let Some(ns) = cold_ns()? else { break };
        let fastest = found.cold_ns.map_or(ns, |before| before.min(ns));
        found = Plateau { cold_ns: Some(fastest), reached: fastest <= plateau.whole_ns * (1.0 + TOLERANCE), ..plateau };
        if found.reached {
            break;
        }
    }
    Ok(found)
}

/// Median nanoseconds per hop of a short chase whose buffer the caches no longer hold, because this CPU has read much else. It comes to no
/// line twice. `None` where memory or time does not allow it, or only interrupted chases would tell.
fn cold_chase_ns(session: &mut Session<'_>, probe: &Probe, buffer: &Arc<Buffer>) -> Result<Option<f64>> {
    let evicting = EVICTING.0.min(session.context.machine.allowed.room() / EVICTING_ONE_IN);
    let plan = BufferPlan { bytes: Bytes(evicting), pages: PageRequest::Auto, directory: None, derived: false, ..probe.buffer.clone() };
    let started = session.context.now();
    let Some(evict) = (evicting > 0 && session.memory.fits(&plan, plan.bytes)).then(|| session.allocate(&plan)).and_then(Result::ok) else {
        return Ok(None);
    };
    let shape = session.shape(COMPARISON_WINDOWS);
    for _ in 0..COLD_CHASES {
        if session.interrupted() || session.budget.too_short_for(3 * (session.context.now() - started)) {
            return Ok(None);
        }
        let chase = Chase::new(session.ring(probe, ChaseOrder::WindowLocal, buffer, 0)?);
        session.runner.read_all(probe.cpu, &evict, session.budget.worker_timeout())?;
        let burst = session.run_burst(Some((probe.cpu, chase)), Vec::new(), shape)?;
        let windows = burst.windows(&session.context.clock, shape);
        if windows.clean {
            return Ok(stats::median(&hop_ns(&windows, &session.context.clock)));
        }
    }
    Ok(None)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Half,
    Whole,
}

/// How often half of a buffer must be faster than the whole before that is a cache and not what else runs on the machine.
const COMPARISONS: u32 = 3;

/// Compares the latency of half of a buffer with that of all of it. `latency` returns nanoseconds per hop and whether nothing interrupted the
/// chase; `None` when only interrupted chases would decide.
fn compare_halves<E>(mut latency: impl FnMut(Part) -> Result<(f64, bool), E>) -> Result<Option<Plateau>, E> {
    let mut found = None;
    for _ in 0..COMPARISONS {
        let ((half_ns, half_clean), (whole_ns, whole_clean)) = (latency(Part::Half)?, latency(Part::Whole)?);
        if !half_clean || !whole_clean {
            return Ok(None);
        }
        let reached = whole_ns <= half_ns * (1.0 + TOLERANCE);
        found = Some(Plateau { half_ns, whole_ns, reached, cold_ns: None });
        if reached {
            break;
        }
    }
    Ok(found)
}

/// Doubles a size until the plateau is reached. Returns the last size that was measured, with what was seen there. `measure` returns what it
/// saw and whether there is room for twice the size; `None` where the size cannot be allocated.
fn double_until_plateau<E>(
    from: Bytes,
    mut measure: impl FnMut(Bytes) -> Result<Option<(Plateau, bool)>, E>,
) -> Result<(Bytes, Option<Plateau>), E> {
    let (mut bytes, mut found) = (from, None);
    for doublings in 0..=MAX_DOUBLINGS {
        let next = Bytes(from.0 << doublings);
        let Some((plateau, room)) = measure(next)? else { break };
        (bytes, found) = (next, Some(plateau));
        if plateau.reached || !room {
            break;
        }
    }
    Ok((bytes, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes measured and the one that is left, where the plateau is reached at `reached`, twice `last` has no room and `refused` cannot be allocated.
    fn search(reached: u64, last: u64, refused: u64) -> (Vec<u64>, u64, Option<bool>) {
        let mut measured = Vec::new();
        let (bytes, found) = double_until_plateau::<()>(Bytes(100), |bytes| {
            if bytes.0 == refused {
                return Ok(None);
            }
            measured.push(bytes.0);
            Ok(Some((Plateau { half_ns: 1.0, whole_ns: 2.0, cold_ns: None, reached: bytes.0 >= reached }, bytes.0 < last)))
        })
        .unwrap();
        (measured, bytes.0, found.map(|p| p.reached))
    }

    #[test]
    fn a_cache_is_faster_each_time_and_noise_is_not() {
        // Nanoseconds of half and whole in turn.
        let compared = |ns: &[f64], clean: bool| {
            let mut next = ns.iter();
            let found = compare_halves::<()>(|_| Ok((*next.next().unwrap(), clean))).unwrap();
            (found.map(|plateau| plateau.reached), ns.len() - next.len())
        };
        assert_eq!(compared(&[60.0, 90.0, 61.0, 90.0, 60.0, 89.0], true), (Some(false), 6), "a cache");
        assert_eq!(compared(&[90.0, 91.0], true), (Some(true), 2));
        assert_eq!(compared(&[90.0, 140.0, 92.0, 90.0], true), (Some(true), 4), "a neighbour was busy once");
        assert_eq!(compared(&[60.0, 3000.0], false), (None, 2), "nothing is decided by time off the CPU");
    }

    #[test]
    fn a_hidden_cache_makes_every_cold_chase_slower() {
        let seen = Plateau { half_ns: 131.3, whole_ns: 129.5, reached: true, cold_ns: None };
        let compared = |ns: &[Option<f64>]| {
            let mut next = ns.iter();
            let found = compare_cold::<()>(seen, || Ok(*next.next().unwrap())).unwrap();
            (found.reached, found.cold_ns, ns.len() - next.len())
        };
        assert_eq!(compared(&[Some(180.0), Some(178.0), Some(179.0)]), (false, Some(178.0), 3), "a cache");
        assert_eq!(compared(&[Some(180.0), Some(130.0)]), (true, Some(130.0), 2), "a neighbour was busy once");
        assert_eq!(compared(&[Some(130.0)]), (true, Some(130.0), 1));
        assert_eq!(compared(&[None]), (true, None, 1), "nothing is decided without a chase");
    }

    #[test]
    fn a_disturbed_sequential_chase_proves_nothing() {
        assert_eq!((sequential_ns((20.0, true)), sequential_ns((80.0, false))), (Some(20.0), None));
    }

    #[test]
    fn the_size_that_is_left_was_measured() {
        assert_eq!(search(100, 9999, 0), (vec![100], 100, Some(true)));
        assert_eq!(search(400, 9999, 0), (vec![100, 200, 400], 400, Some(true)));
        assert_eq!(search(9999, 9999, 0), (vec![100, 200, 400, 800, 1600, 3200], 3200, Some(false)), "five doublings and no more");
        assert_eq!(search(9999, 200, 0), (vec![100, 200], 200, Some(false)));
        assert_eq!(search(9999, 9999, 400), (vec![100, 200], 200, Some(false)), "the one before");
    }
}
