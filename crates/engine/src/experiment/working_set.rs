//! Sweeps over working sets. Each CPU has one buffer, touched once, and every working set is a prefix of it. Chains of large working sets
//! share their windows and differ only in the order of these.

use std::collections::BTreeMap;

use memgauge_analysis::conclusions::{levels, limit};
use memgauge_kernels::Kernel;
use memgauge_model::counters::{Counters, WorkUnit};
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::Metric;
use memgauge_model::plan::{BandwidthSweep, BufferPlan, LatencySweep};
use memgauge_model::protocol::{SWEEP_TRIAL_WINDOWS, SWEEP_WINDOW};
use memgauge_model::result::{Evidence, Incomplete, Measurement, RfoReason};
use memgauge_model::units::Bytes;

use super::disturbance::BurstSamples;
use super::loaders::LoaderGroup;
use super::sampling::{Axis, Series, Workload};
use super::trials;
use crate::burst::chase::{ChainSpec, Chase};
use crate::burst::counters::certain;
use crate::burst::prefix::{Prefix, shares_windows};
use crate::burst::result::{BurstShape, Conditions};
use crate::burst::windows::shortest_window;
use crate::error::Result;
use crate::kernel_choice::{ChosenKernels, Contest, candidates};
use crate::measured::{Measured, Subject};
use crate::session::Session;
use crate::stores::StoresRead;

/// Lines that a burst touches before it chases, at most: 64 MiB of lines. Larger working sets leave the caches to chance whatever was done
/// before.
const MAX_TOUCHED: u64 = 1 << 20;
/// A kernel takes part where its whole steps fill at least this share of the working set.
const FILLED: f64 = 0.95;

struct Point {
    axis: Axis,
    estimate: Estimate,
    samples: BurstSamples,
    evidence: Evidence,
    counters: Option<Box<Counters>>,
}

pub(crate) fn measure_latency(session: &mut Session<'_>, subject: Subject<'_>, sweep: &LatencySweep, measured: &mut Measured) -> Result {
    let mut sweep = sweep.clone();
    let largest = sweep.sizes.last().map_or(0, |s| s.0);
    shorten(session, &mut sweep.sizes, &[&sweep.probe.buffer], measured);
    sweep.probe.buffer.bytes = Bytes(sweep.probe.buffer.bytes.0 / largest.max(1) * sweep.sizes.last().map_or(0, |s| s.0));
    let (sweep, probe) = (&sweep, &sweep.probe);
    let workload = |axis| Workload { probe: Some(probe), loaders: None, axis };
    workload(Axis::Nothing).watch(session)?;
    let buffer = session.allocate(&probe.buffer)?;
    let whole = ChainSpec {
        bytes: probe.buffer.bytes,
        window: probe.window,
        stride: probe.stride,
        line: session.context.line(),
        order: sweep.order,
        seed: session.plan.seed,
        even: true,
        offset_in_line: 0,
    };
    let mut exits = None;
    // Small chains overwrite the windows that large ones share, and writing these again takes longer than measuring a point.
    let line = session.context.line();
    let order = session.budget.point_order(sweep.sizes.len(), |index| shares_windows(sweep.range(sweep.sizes[index], line), &whole));
    let (points, outcome) = measure_sizes(session, &sweep.sizes, order, measured, |session, measured, size| {
        let range = sweep.range(size, line);
        let prefix = Prefix { buffer: &buffer, size: range, whole: &whole, cpus: &probe.buffer.touch };
        let (ring, window) = session.unwatched(|session| session.memory.write_prefix(&prefix, &mut exits))?;
        let layout = *ring.layout();
        let mut chase = Chase::new(ring);
        if layout.slots() as u64 <= MAX_TOUCHED {
            chase = chase.touching(layout);
        }
        let chase = session.settle(probe.cpu, chase, sweep.order, range)?;
        let workload = workload(Axis::WorkingSet(size));
        let series = workload.sample_point(session, workload.series(Some(chase), Vec::new(), None), None, measured)?;
        if let Some(chase) = &series.chase {
            session.check_links(probe.cpu, chase.ring())?;
        }
        let evidence = Evidence {
            threads: 1,
            kernel: "chase".into(),
            buffer: range,
            window: Some(window),
            stride: Some(probe.stride),
            allocations: 1,
            ..Default::default()
        };
        let certain = certain(session.context.machine, probe.cpu, size);
        let counters = session.counted(measured, &series.chase_counters, WorkUnit::Hop, certain);
        Ok(point(session, series, evidence, counters))
    });
    let (pages, file) = (buffer.pages().clone(), buffer.file().cloned());
    let memory = || Evidence { pages, placement: buffer.placement_now(), file, ..Evidence::default() };
    record(session, subject, Metric::Latency, points, memory, measured);
    outcome
}

pub(crate) fn measure_bandwidth(
    session: &mut Session<'_>,
    subject: Subject<'_>,
    sweep: &BandwidthSweep,
    measured: &mut Measured,
) -> Result {
    let mut sweep = sweep.clone();
    shorten(session, &mut sweep.sizes, &sweep.loaders.iter().map(|l| &l.buffer).collect::<Vec<_>>(), measured);
    let largest = sweep.sizes.last().copied().unwrap_or(Bytes(0));
    sweep.loaders.iter_mut().for_each(|l| l.buffer.bytes = largest);
    let sweep = &sweep;
    let group = LoaderGroup::prepare(session, &sweep.loaders, &sweep.traffic)?;
    let workload = |axis| Workload { probe: None, loaders: Some(&group), axis };
    workload(Axis::Nothing).watch(session)?;
    let caches = levels::caches(&session.context.machine.topology, subject.at).iter().map(|c| c.size).collect();
    let mut kernels = LevelKernels { group: &group, sweep, caches, chosen: BTreeMap::new() };
    let order = session.budget.point_order(sweep.sizes.len(), |_| false);
    let (points, outcome) = measure_sizes(session, &sweep.sizes, order, measured, |session, measured, size| {
        let chosen = kernels.at(session, size)?;
        let loads = session.unwatched(|_| group.prefix_loads(|index| chosen.kernels[index], size))?;
        let workload = workload(Axis::WorkingSet(size));
        let mut series = workload.sample_point(session, workload.series(None, loads, None), None, measured)?;
        let (clock, machine) = (session.context.clock, session.context.machine);
        let mut evidence = series.load_totals.evidence(&group, &chosen, |t| clock.ns(t));
        evidence.buffer = Bytes(size.0 * group.buffers().len() as u64);
        let certain = group.certain(machine, &chosen, Some(size));
        let counters = session.counted(measured, &series.load_totals.counters, WorkUnit::Line, certain);
        let load_totals = std::mem::take(&mut series.load_totals);
        let mut point = point(session, series, evidence, counters);
        let in_memory = limit::memory_sized(&machine.topology, &group.cpus(), point.evidence.buffer);
        point.evidence.coverage = point.samples.conditions().coverage;
        let stores = match in_memory {
            true => session.unwatched(|session| trials::stores_read(session, &group, &chosen))?,
            false => StoresRead::unknown(RfoReason::Caches),
        };
        point.evidence.traffic = point.estimate.value.map(|gbs| load_totals.traffic(gbs, stores, in_memory));
        Ok(point)
    });
    record(session, subject, Metric::Bandwidth, points, || group.memory(), measured);
    outcome
}

/// Part of a sweep's time that its buffers may take.
const SET_UP_SHARE: f64 = 0.4;

/// Leaves out the largest sizes where this machine now takes too long to allocate the buffers for them.
fn shorten(session: &mut Session<'_>, sizes: &mut Vec<Bytes>, buffers: &[&BufferPlan], measured: &mut Measured) {
    let bytes: u64 = buffers.iter().map(|b| b.bytes.0).sum();
    let (Some(left), Some(largest)) = (session.budget.left(), sizes.last().copied()) else { return };
    let Some(rate) = buffers.first().and_then(|b| session.unwatched(|session| session.memory.allocation_rate(b))) else { return };
    let most = SET_UP_SHARE * left.as_secs_f64() * rate / (bytes as f64 / largest.0.max(1) as f64);
    let (before, smallest) = (sizes.len(), sizes.first().copied());
    sizes.retain(|size| size.0 as f64 <= most || Some(*size) == smallest);
    if sizes.len() < before {
        measured.cut_short(Incomplete::OutOfTime);
    }
}

/// Measures size after size in this order, until the run is interrupted or one fails. Returns the points measured, by size, and the reason if
/// some are missing.
fn measure_sizes(
    session: &mut Session<'_>,
    sizes: &[Bytes],
    order: Vec<usize>,
    measured: &mut Measured,
    mut measure: impl FnMut(&mut Session<'_>, &mut Measured, Bytes) -> Result<Point>,
) -> (Vec<Point>, Result) {
    let (mut points, mut failure) = (Vec::with_capacity(sizes.len()), None);
    for (done, index) in order.into_iter().enumerate() {
        session.budget.begin_point(sizes.len() - done);
        if session.interrupted() {
            measured.cut_short(Incomplete::OutOfTime);
            break;
        }
        session.progress.within_cell(done as f64 / sizes.len() as f64);
        match measure(session, measured, sizes[index]) {
            Ok(point) => points.push((index, point)),
            Err(NotMeasured::Interrupted) if !points.is_empty() => {
                measured.cut_short(Incomplete::OutOfTime);
                break;
            }
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    points.sort_by_key(|(index, _)| *index);
    let failure = failure.or_else(|| points.is_empty().then_some(NotMeasured::Interrupted));
    (points.into_iter().map(|(_, point)| point).collect(), failure.map_or(Ok(()), Err))
}

fn point(session: &Session<'_>, series: Series, evidence: Evidence, counters: Option<Box<Counters>>) -> Point {
    let estimate = series.samples.estimate(0, session.budget.stop.relative_half_width);
    Point { axis: series.axis, estimate, samples: series.samples, evidence, counters }
}

/// Ends watching the sweep, and records the points, each with what the scheduler did to its threads, and with what was seen of the machine
/// over the whole sweep. `memory` reads back where the memory is now.
fn record(
    session: &mut Session<'_>,
    subject: Subject<'_>,
    metric: Metric,
    points: Vec<Point>,
    memory: impl FnOnce() -> Evidence,
    measured: &mut Measured,
) {
    if points.is_empty() {
        return;
    }
    let mut all = Conditions::default();
    points.iter().for_each(|p| all.add(&p.samples.conditions()));
    let (noise, memory) = (session.unwatch(&all.scheduler), memory());
    for Point { axis, estimate, samples, evidence, counters } in points {
        let Evidence { pages, placement, file, .. } = memory.clone();
        let mut noise = samples.conditions().scheduler.replace_in(&noise);
        samples.write_disturbances(&mut noise);
        let evidence = Evidence { pages, placement, file, noise, ..evidence };
        let result = subject.judge(axis.coordinates(subject.at), metric, estimate, evidence);
        measured.add(Measurement { counters, samples: Some(samples.keep(0)), ..result });
    }
}

/// The kernels of a bandwidth sweep. They are tried once a cache level, at the size in its middle; a size that they do not fill has a trial of
/// its own.
struct LevelKernels<'a> {
    group: &'a LoaderGroup,
    sweep: &'a BandwidthSweep,
    /// Sizes of the caches.
    caches: Vec<Bytes>,
    /// By level what was chosen last.
    chosen: BTreeMap<usize, ChosenKernels>,
}

impl LevelKernels<'_> {
    fn level(&self, size: Bytes) -> usize {
        self.caches.iter().filter(|cache| **cache < size).count()
    }

    fn at(&mut self, session: &mut Session<'_>, size: Bytes) -> Result<ChosenKernels> {
        let level = self.level(size);
        // A choice by disturbed trials is made anew at the next size.
        let stands = |chosen: &ChosenKernels| !chosen.busy && chosen.kernels.iter().all(|k| fills(k, size));
        if let Some(chosen) = self.chosen.get(&level).filter(|chosen| stands(chosen)) {
            return Ok(chosen.clone());
        }
        let alike: Vec<Bytes> = self.sweep.sizes.iter().copied().filter(|s| self.level(*s) == level).collect();
        let middle = alike.get(alike.len() / 2).copied().unwrap_or(size);
        let chosen = self.choose(session, size, middle)?;
        self.chosen.insert(level, chosen.clone());
        Ok(chosen)
    }

    /// The fastest of the kernels that fill a working set of `size`, over one of `middle` bytes.
    fn choose(&self, session: &mut Session<'_>, size: Bytes, middle: Bytes) -> Result<ChosenKernels> {
        let mut candidates = candidates(&self.sweep.traffic);
        let filling: Vec<&'static Kernel> = candidates.iter().copied().filter(|k| fills(k, size) && fills(k, middle)).collect();
        if !filling.is_empty() {
            candidates = filling;
        }
        // Kernels without room for a step drop out as well.
        candidates.retain(|k| self.group.prefix_loads(|_| k, size).is_ok());
        let shape = BurstShape { windows: SWEEP_TRIAL_WINDOWS, window: shortest_window(SWEEP_WINDOW, session.context.clock.overhead_ns()) };
        let compare = |session: &mut Session<'_>| {
            trials::compare(session, &candidates, &self.sweep.traffic, Contest::KeepAll, |session, kernel| {
                let loads = self.group.prefix_loads(|_| kernel, middle)?;
                trials::burst_gbs(session, loads, shape)
            })
        };
        // The sweep is watched all the time, and its trials are none of its points.
        let won = session.unwatched(|session| session.as_trial(compare))?;
        Ok(ChosenKernels { kernels: vec![won.kernel; self.group.cpus().len()], tried: won.tried, busy: won.busy })
    }
}

fn fills(kernel: &Kernel, size: Bytes) -> bool {
    let step: u64 = kernel.streams.iter().map(|s| s.advance() as u64).sum();
    step > 0 && (size.0 / step * step) as f64 >= size.0 as f64 * FILLED
}
