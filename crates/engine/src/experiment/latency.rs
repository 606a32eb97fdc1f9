//! Idle latency: a pointer chase alone, window-local and full-random or in the orders asked for, over fresh allocations.

use std::sync::Arc;
use std::time::Duration;

use memgauge_core::conclusions::advise;
use memgauge_core::counters::WorkUnit;
use memgauge_core::directory::FileEvidence;
use memgauge_core::distribution::Recorder;
use memgauge_core::estimate::Estimate;
use memgauge_core::experiment::{ChaseOrder, Coordinates, Experiment as ExperimentKind, Hops, Metric};
use memgauge_core::plan::Probe;
use memgauge_core::protocol::MAX_REPEATS;
use memgauge_core::result::{Evidence, Noise, PageEvidence, Placement, Plateau, PrefetchEvidence};
use memgauge_core::units::Bytes;
use memgauge_os::memory::Buffer;

use super::plateau;
use super::sampler::{HopCount, Sampler, measure_until_sure};
use super::samples::{BurstSamples, Conditions};
use super::sampling::{Experiment, Series, Vary, chase_window, hop_count};
use crate::burst::chase::Chase;
use crate::burst::counters::certain;
use crate::burst::runner::BurstShape;
use crate::error::CellError;
use crate::memory::pages::combined_pages;
use crate::recorder::NewResult;
use crate::session::Session;

/// A chase alone, as the plan says it.
pub(crate) struct IdleChase<'a> {
    pub(crate) probe: &'a Probe,
    pub(crate) allocations: u32,
    /// None: window-local, and full-random where the buffer is larger than the window.
    pub(crate) orders: &'a [ChaseOrder],
    pub(crate) hops: Option<Hops>,
    pub(crate) histogram: Option<u32>,
}

impl IdleChase<'_> {
    /// The orders to chase in over this probe's buffer, whose size the search for the plateau may have changed.
    fn orders(&self, probe: &Probe) -> Vec<ChaseOrder> {
        match self.orders {
            [] if probe.window < probe.buffer.bytes => vec![ChaseOrder::WindowLocal, ChaseOrder::FullRandom],
            [] => vec![ChaseOrder::WindowLocal],
            orders => orders.to_vec(),
        }
    }
}

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
    /// Nanoseconds per hop of a sequential chase, for comparison.
    sequential_ns: Option<f64>,
    pages: Vec<(PageEvidence, Bytes)>,
    placements: Vec<Placement>,
    file: Option<FileEvidence>,
}

impl Sampler for AllocationSampler<'_> {
    fn sample_round(&mut self, session: &mut Session<'_>, round: u32) -> Result<Duration, CellError> {
        // Where the first allocations did not suffice, bursts are longer.
        if round == self.min {
            self.shape.windows *= 2;
        }
        let probe = self.probe;
        let buffer = session.chase_buffer(&probe.buffer, round)?;
        self.pages.push((buffer.pages().clone(), probe.buffer.bytes));
        self.file = buffer.file().cloned();
        if self.sequential_ns.is_none() {
            self.sequential_ns = Some(plateau::short_chase_ns(session, probe, probe.buffer.bytes, ChaseOrder::Sequential, &buffer)?);
        }
        let mut repeating = Duration::ZERO;
        for index in 0..self.series.len() {
            repeating += self.measure_order(session, round, index, &buffer, repeating)?;
        }
        // After the chase: pages that were moved meanwhile are found where they are now.
        self.placements.push(buffer.placement_now());
        self.made = round + 1;
        // The budget is the cell's: a fixed time is each order's.
        let orders = if session.budget.stop.fixed_time { 1 } else { self.series.len() as u32 };
        let kinds = self.series.iter().map(|(_, s)| s.kinds()).max().unwrap_or(1);
        let time = repeating + self.shape.counted() * orders * kinds;
        self.spent += time;
        Ok(time)
    }

    fn samples(&self) -> impl Iterator<Item = &BurstSamples> {
        self.series.iter().map(|(_, series)| &series.samples)
    }

    fn hops(&self) -> HopCount {
        match self.hops {
            None => HopCount::Unlimited,
            Some(_) if self.made >= self.min => HopCount::All,
            Some(_) => HopCount::Some,
        }
    }
}

impl AllocationSampler<'_> {
    /// Chases one allocation in one order. Returns the time of repeated bursts; `repeating` is that of the orders before.
    fn measure_order(
        &mut self,
        session: &mut Session<'_>,
        round: u32,
        index: usize,
        buffer: &Arc<Buffer>,
        repeating: Duration,
    ) -> Result<Duration, CellError> {
        let (order, series) = &mut self.series[index];
        series.chase = Some(Chase::new(session.ring(self.probe, self.probe.buffer.bytes, *order, buffer, u64::from(round))?));
        let mut repeated = Duration::ZERO;
        if let Some(hops) = self.hops {
            series.sample_hops(session, hops, round)?;
        } else {
            // A disturbed burst is repeated at once, in the same memory, while there is time.
            for _ in 0..=MAX_REPEATS {
                series.sample_burst(session, self.shape, round)?;
                let over = session.budget.stop.fixed_time || session.budget.cell_over(self.spent + repeating + repeated, true);
                if !series.samples.last_disturbed() || over || series.samples.enough_undisturbed() || session.interrupted() {
                    break;
                }
                repeated += self.shape.counted();
            }
        }
        if !session.interrupted() {
            series.sample_batches(session, self.shape)?;
        }
        Ok(repeated)
    }
}

pub(crate) fn measure(session: &mut Session<'_>, kind: ExperimentKind, at: &Coordinates, idle: &IdleChase<'_>) -> Result<(), CellError> {
    let experiment =
        |probe, order| Experiment { probe: Some(probe), loaders: None, vary: Vary::Allocation { min: idle.allocations, order } };
    experiment(idle.probe, ChaseOrder::WindowLocal).watch(session)?;
    let mut probe = idle.probe.clone();
    let plateau = if probe.buffer.derived { plateau::find(session, &mut probe)? } else { None };
    let orders = idle.orders(&probe);
    let series: Vec<(ChaseOrder, Series)> =
        orders.into_iter().map(|order| (order, experiment(&probe, order).series(None, Vec::new(), idle.histogram))).collect();
    let vary = Vary::Allocation { min: idle.allocations, order: ChaseOrder::WindowLocal };
    let mut sampler = AllocationSampler {
        probe: &probe,
        min: idle.allocations,
        shape: vary.shape(session, series.iter().map(|(_, s)| s.kinds()).max().unwrap_or(1)),
        series,
        hops: idle.hops.map(|hops| hop_count(hops, &probe)),
        made: 0,
        spent: Duration::ZERO,
        sequential_ns: None,
        pages: Vec::new(),
        placements: Vec::new(),
        file: None,
    };
    measure_until_sure(session, vary.stop_after(), &mut sampler)?;
    record(session, kind, at, sampler, plateau);
    Ok(())
}

fn record(session: &mut Session<'_>, kind: ExperimentKind, at: &Coordinates, sampler: AllocationSampler<'_>, plateau: Option<Plateau>) {
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
    let certain = certain(session.context.machine, probe.cpu, probe.buffer.bytes, true);
    let mut local: Option<Estimate> = None;
    for (order, series) in series {
        let estimate = series.samples.estimate_with_drift(0, session.budget.stop.relative_half_width);
        let full_random = order == ChaseOrder::FullRandom;
        let translation_ns = local.as_ref().filter(|_| full_random).and_then(|local| advise::translation_ns(local, &estimate));
        if order == ChaseOrder::WindowLocal {
            local = Some(estimate.clone());
        }
        let compared = estimate.value.zip(sequential_ns).filter(|_| order != ChaseOrder::Sequential);
        let evidence = Evidence {
            window: Some(chase_window(order, probe)),
            prefetch: compared
                .map(|(random, sequential_ns)| PrefetchEvidence { sequential_ns, random_over_sequential: random / sequential_ns }),
            translation_ns,
            noise: noise_of_order(&common.noise, &series, hops),
            ..common.clone()
        };
        let counters = session.counted(&series.chase_counters, WorkUnit::Hop, certain);
        let samples = Some(series.samples.keep(0));
        let result = NewResult::new(series.vary.coordinates(at), Metric::Latency, estimate, evidence);
        session.record(kind, NewResult { distribution: series.histogram.and_then(Recorder::finish), counters, samples, ..result });
    }
}

/// The noise of the cell, with the disturbances of one order's bursts; chases of a number of hops have no bursts.
fn noise_of_order(noise: &Noise, series: &Series, hops: Option<u64>) -> Noise {
    let mut noise = noise.clone();
    if hops.is_none() {
        series.samples.disturbances().write_to(&mut noise);
    }
    noise
}
