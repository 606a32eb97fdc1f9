//! A workload and how it is sampled: its bursts, what they leave, and the loop that measures round by round until the intervals are narrow
//! or the time is over.

use std::time::Duration;

use memgauge_kernels::CHASE_UNROLL;
use memgauge_model::distribution::Recorder;
use memgauge_model::estimate::NotMeasured;
use memgauge_model::experiment::{ChaseOrder, Coordinates, Hops};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::Probe;
use memgauge_model::protocol::{
    MIN_BURSTS, MIN_SWEEP_BURSTS, SETTLE_WINDOWS, SWEEP_COUNTED_WINDOWS, SWEEP_WINDOW, SWEEP_WINDOWS, sweep_bursts,
};
use memgauge_model::result::Evidence;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_os::clock::Clock;

use super::disturbance::{BurstConditions, BurstSamples, GroupBy};
use super::loaders::{LoadTotals, LoaderGroup, window_gbs};
use crate::burst::chase::Chase;
use crate::burst::counters::CounterTotals;
use crate::burst::exact::ExactHops;
use crate::burst::load::{Load, lines_per_iteration};
use crate::burst::result::{BurstShape, Conditions, Loaded};
use crate::burst::slots::BurstWindows;
use crate::burst::windows::shortest_window;
use crate::error::{Result, chase_lost};
use crate::kernel_choice::ChosenKernels;
use crate::measured::Measured;
use crate::session::Session;

/// Something that is measured in rounds: bursts, allocations, or runs of transfers.
pub(crate) trait Sampler {
    /// Measures round number `round`. Returns the time that counts against the budget.
    fn sample_round(&mut self, session: &mut Session<'_>, round: u32) -> Result<Duration>;

    /// The samples so far, by result.
    fn samples(&self) -> impl Iterator<Item = &BurstSamples>;

    /// How much of a chase was made and how much is to be made, in hops or allocations, where a number of hops decides and not time.
    fn hops(&self) -> Option<(u64, u64)> {
        None
    }
}

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StopAfter {
    pub(crate) min_rounds: u32,
    /// The time for all rounds where it is not the plan's budget for a cell.
    pub(crate) budget: Option<Duration>,
    /// Go on where too many bursts were disturbed, while there is time.
    pub(crate) want_undisturbed: bool,
}

/// Measures until every interval is narrow enough, the budget is spent or the run is interrupted. Returns how many rounds that took.
pub(crate) fn measure_until_sure(
    session: &mut Session<'_>,
    stop: StopAfter,
    sampler: &mut impl Sampler,
    measured: &mut Measured,
) -> Result<u32> {
    let (mut spent, mut rounds) = (Duration::ZERO, 0);
    let (target, fixed_time) = (session.budget.stop.relative_half_width, session.budget.stop.fixed_time);
    loop {
        let started = session.context.now();
        spent += match sampler.sample_round(session, rounds) {
            // An interruption does not discard earlier samples.
            Err(NotMeasured::Interrupted) if sampler.samples().any(BurstSamples::any_samples) => return Ok(rounds),
            // Another process took the memory of the next allocation. A fault of memory that was measured is not such an error.
            Err(ref why @ NotMeasured::NoMemory { ref detail, .. })
                if !why.is_fault() && sampler.samples().any(BurstSamples::any_samples) =>
            {
                let planned = format!("{rounds} allocations were measured, where at least {} were planned: ", stop.min_rounds);
                let note = Note::warning(NoteCode::FewerAllocations, detail.what.clone().after(planned));
                measured.note(Note { advice: detail.advice.clone(), ..note });
                return Ok(rounds);
            }
            time => time?,
        };
        let took = session.context.now() - started;
        rounds += 1;
        let sampled = sampler.samples().any(BurstSamples::any_samples);
        let over = || stop.budget.map_or_else(|| session.budget.cell_over(spent, sampled), |budget| spent >= budget);
        let sure = || sampler.samples().all(|s| (!stop.want_undisturbed || s.enough_undisturbed()) && s.converged(target));
        let enough = match sampler.hops() {
            None => rounds >= stop.min_rounds && (over() || (!fixed_time && sure())),
            // A chase that gets no time at all is given up like any other, and so is one that never runs beside its loaders.
            Some((made, wanted)) if wanted > 0 && (made == 0 || !sampled) => over(),
            Some((made, wanted)) => made >= wanted,
        };
        // Do not begin a round that would not end in time.
        if session.interrupted() || enough || (sampled && session.budget.too_short_for(took)) {
            return Ok(rounds);
        }
    }
}

/// A workload: at most one latency probe, any number of loaders, and the axis along which points differ.
pub(crate) struct Workload<'a> {
    pub(crate) probe: Option<&'a Probe>,
    pub(crate) loaders: Option<&'a LoaderGroup>,
    pub(crate) axis: Axis,
}

/// The axis along which points differ, or rounds of one point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Nothing.
    Nothing,
    /// The loaders' injection delay in core cycles.
    Delay(u32),
    /// The bytes that are used again and again.
    WorkingSet(Bytes),
    /// The allocation, a fresh one in each of at least `min` rounds, with the chase in this order.
    Allocation { min: u32, order: ChaseOrder },
}

impl Axis {
    /// The coordinates of a point in the table of the cell at `at`.
    pub(crate) fn coordinates(self, at: &Coordinates) -> Coordinates {
        let at = at.clone();
        match self {
            Self::Nothing => at,
            Self::Delay(cycles) => Coordinates { delay_cycles: Some(cycles), ..at },
            Self::WorkingSet(bytes) => Coordinates { working_set: Some(bytes), ..at },
            Self::Allocation { order, .. } => Coordinates { order: Some(order), ..at },
        }
    }

    /// The minimum number of rounds, and of undisturbed bursts.
    const fn min_rounds(self) -> u32 {
        match self {
            Self::Nothing | Self::Delay(_) => MIN_BURSTS,
            Self::WorkingSet(_) => MIN_SWEEP_BURSTS,
            Self::Allocation { min, .. } => min,
        }
    }

    /// No sample of its own yet.
    const fn samples(self) -> BurstSamples {
        let group_by = if matches!(self, Self::Allocation { .. }) { GroupBy::Allocation } else { GroupBy::Burst };
        BurstSamples::new(group_by, self.min_rounds())
    }

    /// When there are enough rounds. Disturbed bursts of an allocation are repeated at once, in the same memory, and those of a sweep not at
    /// all.
    pub(crate) const fn stop_after(self) -> StopAfter {
        StopAfter { min_rounds: self.min_rounds(), budget: None, want_undisturbed: matches!(self, Self::Nothing | Self::Delay(_)) }
    }

    /// The bursts. `kinds` counts the bursts of a round that share a fixed time: one, and one more where batches of hops are timed.
    pub(crate) fn shape(self, session: &mut Session<'_>, kinds: u32) -> BurstShape {
        if !matches!(self, Self::WorkingSet(_)) {
            return session.shape(session.budget.windows(self.min_rounds() * kinds));
        }
        let window = shortest_window(SWEEP_WINDOW, session.context.clock.overhead_ns());
        let windows = match () {
            () if session.budget.stop.fixed_time => session.budget.fixed_windows(f64::from(MIN_SWEEP_BURSTS), window),
            () if session.runner.counters().is_some_and(|counters| counters.can_count()) => SWEEP_COUNTED_WINDOWS,
            () => SWEEP_WINDOWS,
        };
        BurstShape { windows, window }
    }
}

impl Workload<'_> {
    pub(crate) fn cpus(&self) -> IdSet {
        let loaders = self.loaders.map(LoaderGroup::cpus).unwrap_or_default();
        self.probe.map_or_else(|| loaders.clone(), |probe| loaders.union(&IdSet::one(probe.cpu)))
    }

    /// The CPU whose frequency is watched: the probe's, or the first loader's.
    pub(crate) fn watched_cpu(&self) -> u32 {
        self.probe.map_or_else(|| self.loaders.map_or(0, LoaderGroup::first_cpu), |probe| probe.cpu)
    }

    pub(crate) fn watch(&self, session: &mut Session<'_>) -> Result {
        session.watch(self.watched_cpu(), &self.cpus())
    }

    /// A series without samples yet. `batch_hops` asks for the distribution of batches of this number of hops.
    pub(crate) fn series(&self, chase: Option<Chase>, loads: Vec<(u32, Load)>, batch_hops: Option<u32>) -> Series {
        Series {
            cpu: self.watched_cpu(),
            probed: self.probe.is_some(),
            chase,
            loads,
            axis: self.axis,
            per_block: None,
            samples: self.axis.samples(),
            load_totals: LoadTotals::default(),
            chase_counters: CounterTotals::default(),
            histogram: batch_hops.and_then(Recorder::new),
            histogram_conditions: Conditions::default(),
            hops: 0,
        }
    }

    /// Samples a point at which nothing changes, until it is sure or, if `hops` is given, the chase has made that many.
    pub(crate) fn sample_point(
        &self,
        session: &mut Session<'_>,
        series: Series,
        hops: Option<u64>,
        measured: &mut Measured,
    ) -> Result<Series> {
        let shape = self.axis.shape(session, series.kinds());
        let mut stop_after = self.axis.stop_after();
        if matches!(self.axis, Axis::WorkingSet(_)) && !session.budget.stop.fixed_time {
            let burst_s = (shape.windows + SETTLE_WINDOWS) as f64 * shape.window.as_secs_f64();
            stop_after.min_rounds = sweep_bursts(session.budget.budget_s(), burst_s);
        }
        let mut point = PointSampler { series, shape, hops };
        measure_until_sure(session, stop_after, &mut point, measured)?;
        Ok(point.series)
    }
}

/// The chase and the loaders that run together in bursts, and the results of these so far.
pub(crate) struct Series {
    /// The chase's CPU, or the first loader's.
    pub(crate) cpu: u32,
    /// There is a probe, whose chase goes on from burst to burst.
    probed: bool,
    pub(crate) chase: Option<Chase>,
    loads: Vec<(u32, Load)>,
    pub(crate) axis: Axis,
    /// Bytes of a block whose nanoseconds the loaders' samples are, instead of GB/s.
    pub(crate) per_block: Option<Bytes>,
    pub(crate) samples: BurstSamples,
    pub(crate) load_totals: LoadTotals,
    /// The hardware counters of the chase.
    pub(crate) chase_counters: CounterTotals,
    pub(crate) histogram: Option<Recorder>,
    /// Of the bursts whose batches are in the histogram.
    pub(crate) histogram_conditions: Conditions,
    /// Hops of the chase in all bursts.
    hops: u64,
}

/// Quantities of a burst with a chase and loaders, in the order of their samples. A burst with one of the two has only that one's.
pub(crate) const LATENCY: usize = 0;
pub(crate) const BANDWIDTH: usize = 1;

impl Series {
    /// Kinds of bursts in a round.
    pub(crate) fn kinds(&self) -> u32 {
        1 + u32::from(self.histogram.is_some())
    }

    /// Takes samples for the time of `shape`, in one burst or in several, for this allocation. Ends early if the run is to end.
    pub(crate) fn sample(&mut self, session: &mut Session<'_>, shape: BurstShape, allocation: u32) -> Result {
        for (nth, burst) in shape.bursts().enumerate() {
            if nth > 0 && session.interrupted() {
                break;
            }
            self.sample_burst(session, burst, allocation)?;
        }
        Ok(())
    }

    fn sample_burst(&mut self, session: &mut Session<'_>, shape: BurstShape, allocation: u32) -> Result {
        let chase = self.chase.take().map(|chase| (self.cpu, chase));
        if self.probed && chase.is_none() {
            return Err(chase_lost(self.cpu));
        }
        let mut burst = session.run_burst(chase, std::mem::take(&mut self.loads), shape)?;
        let clock = session.context.clock;
        let windows = burst.windows(&clock, shape);
        // The probe's, or the first loader's. The bursts of a sweep are short, and near enough to each other.
        let traces = burst.chase.iter().map(|(trace, _)| trace).chain(burst.loads.iter().map(|l| &l.trace));
        let ghz = traces.take(1).find_map(|trace| trace.ghz).filter(|_| !matches!(self.axis, Axis::WorkingSet(_)));
        let conditions = BurstConditions::judge_burst(&burst, &windows, ghz);
        self.load_totals.add(&burst.loads, &windows);
        for Loaded { cpu, trace, load } in &burst.loads {
            session.runner.add_counts(&mut self.load_totals.counters, *cpu, trace, lines_per_iteration(load.kernel()));
        }
        let mut samples = Vec::with_capacity(2);
        if !burst.loads.is_empty() {
            let gbs = window_gbs(&burst.loads, &windows, &clock);
            // Bytes by GB/s are nanoseconds.
            samples.push(match self.per_block {
                Some(block) => gbs.iter().filter(|gbs| **gbs > 0.0).map(|gbs| block.0 as f64 / gbs).collect(),
                None => gbs,
            });
        }
        self.loads = burst.take_loads();
        if self.probed {
            let Some((trace, chase)) = burst.chase else { return Err(chase_lost(self.cpu)) };
            session.runner.add_counts(&mut self.chase_counters, self.cpu, &trace, CHASE_UNROLL as u64);
            self.chase = Some(chase);
            self.hops += trace.whole().map_or(0, |(_, units)| units * CHASE_UNROLL as u64);
            let ns = hop_ns(&windows, &clock);
            // The chase's own lines are part of the bandwidth.
            let line = session.context.line().0 as f64;
            for gbs in &mut samples {
                gbs.iter_mut().zip(&ns).for_each(|(gbs, ns)| *gbs += line / ns);
            }
            samples.insert(LATENCY, ns);
        }
        self.samples.add(allocation, samples, conditions);
        Ok(())
    }

    /// Puts batches of hops into the histogram, if there is one, for the time of `shape`. Ends early if the run is to end.
    pub(crate) fn sample_batches(&mut self, session: &mut Session<'_>, shape: BurstShape) -> Result {
        for burst in shape.bursts() {
            if session.interrupted() {
                break;
            }
            self.sample_batches_of_burst(session, burst)?;
        }
        Ok(())
    }

    fn sample_batches_of_burst(&mut self, session: &mut Session<'_>, shape: BurstShape) -> Result {
        let Some(mut histogram) = self.histogram.take() else { return Ok(()) };
        let chase = self.chase.take().ok_or_else(|| chase_lost(self.cpu))?;
        let chase = chase.timing(histogram.batch_hops());
        let mut burst = session.run_burst(Some((self.cpu, chase)), std::mem::take(&mut self.loads), shape)?;
        let windows = burst.windows(&session.context.clock, shape);
        self.loads = burst.take_loads();
        self.histogram_conditions.add(&burst.conditions);
        let Some((_, chase)) = burst.chase else { return Err(chase_lost(self.cpu)) };
        let (chase, batches) = chase.into_parts();
        if let Some(batches) = batches {
            let (ticks, overhead) = batches.ticks();
            add_batches(&mut histogram, &windows, ticks, (overhead, session.context.clock.ns(1)));
        }
        (self.chase, self.histogram) = (Some(chase), Some(histogram));
        Ok(())
    }

    /// Makes exactly `hops` hops: one sample.
    pub(crate) fn sample_hops(&mut self, session: &mut Session<'_>, hops: u64, allocation: u32) -> Result {
        let Some(chase) = self.chase.take() else { return Err(chase_lost(self.cpu)) };
        let scheduler = &mut self.histogram_conditions.scheduler;
        let (took, chase) = session.runner.run_hops(self.cpu, chase, hops, &session.budget, scheduler)?;
        session.progress.report();
        self.chase = Some(chase);
        let judged = |t: ExactHops| BurstConditions::default().with_samples(t.clean(), t.left_out(), t.stalled());
        let conditions = took.map_or_else(BurstConditions::default, judged);
        let ns = took.and_then(|took| Some(took.ticks_per_hop()? * session.context.clock.ns(1)));
        self.samples.add(allocation, vec![ns.into_iter().collect()], conditions);
        Ok(())
    }

    /// The evidence that the loaders' results share, including the evidence on their memory.
    pub(crate) fn load_evidence(&self, session: &Session<'_>, group: &LoaderGroup, chosen: &ChosenKernels) -> Evidence {
        let clock = session.context.clock;
        let memory = group.memory();
        let evidence = self.load_totals.evidence(group, chosen, |t| clock.ns(t));
        Evidence { pages: memory.pages, placement: memory.placement, file: memory.file, ..evidence }
    }

    /// Ends watching, and adds to the evidence what disturbed the bursts.
    pub(crate) fn unwatch(&self, session: &mut Session<'_>, evidence: &mut Evidence) {
        let mut conditions = self.samples.conditions();
        conditions.add(&self.histogram_conditions);
        evidence.coverage = conditions.coverage;
        evidence.noise = session.unwatch(&conditions.scheduler);
        self.samples.write_disturbances(&mut evidence.noise);
    }
}

/// Adds the batches of a burst during which its thread, the first, was on its CPU: others say nothing about memory. If no slots of this
/// burst are left, all its batches are kept for the case that no burst has any.
fn add_batches(histogram: &mut Recorder, windows: &BurstWindows, ticks: &[u64], (overhead, tick_ns): (u64, f64)) {
    if !windows.clean {
        return histogram.add_interrupted(ticks, overhead, tick_ns);
    }
    let timed = |batch: u64| ticks.len().min(batch as usize);
    for work in &windows.first_work {
        histogram.add(&ticks[timed(work.start)..timed(work.end)], overhead, tick_ns);
    }
}

/// A point at which nothing changes from burst to burst.
struct PointSampler {
    series: Series,
    shape: BurstShape,
    /// Hops that the chase makes, where that was asked for.
    hops: Option<u64>,
}

impl Sampler for PointSampler {
    fn sample_round(&mut self, session: &mut Session<'_>, _: u32) -> Result<Duration> {
        let started = session.context.now();
        let bursts = self.series.kinds();
        self.series.sample(session, self.shape, 0)?;
        self.series.sample_batches(session, self.shape)?;
        // Short bursts are charged the time that passed, their set-up included.
        let short = matches!(self.series.axis, Axis::WorkingSet(_));
        Ok(if short { session.context.now() - started } else { self.shape.counted() * bursts })
    }

    fn samples(&self) -> impl Iterator<Item = &BurstSamples> {
        std::iter::once(&self.series.samples)
    }

    fn hops(&self) -> Option<(u64, u64)> {
        self.hops.map(|wanted| (self.series.hops, wanted))
    }
}

/// Nanoseconds per hop in each window that counts. The chase is the first thread of its burst.
pub(crate) fn hop_ns(windows: &BurstWindows, clock: &Clock) -> Vec<f64> {
    let chased = windows.windows.iter().filter_map(|threads| threads.first());
    chased.map(|(ticks, units)| clock.ns(*ticks) / (units * CHASE_UNROLL as u64) as f64).collect()
}

/// Bytes that a chase is random in: in any other order than window-local, all of its buffer.
pub(crate) fn chase_window(order: ChaseOrder, probe: &Probe) -> Bytes {
    if order == ChaseOrder::WindowLocal { probe.window } else { probe.buffer.bytes }
}

/// How many hops are asked for of a chase over this probe's buffer.
pub(crate) fn hop_count(hops: Hops, probe: &Probe) -> u64 {
    match hops {
        Hops::Count(hops) => hops,
        Hops::OnePass => probe.buffer.bytes.0 / probe.stride.0,
    }
}

#[cfg(test)]
mod sampler_tests {
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    use memgauge_model::plan::{Cell, Step, StopRule};
    use memgauge_model::spec::{LatencyShape, Spec, Task};
    use memgauge_os::clock::Clock;
    use memgauge_os::memory::{MemoryError, MemoryErrorKind, MemoryFault, MemoryFaultKind};

    use super::super::disturbance::{BurstConditions, GroupBy};
    use super::*;
    use crate::context::{Observer, RunContext};

    const ROUND: Duration = Duration::from_millis(100);
    const MIN_ROUNDS: u32 = 6;

    /// Gives the sample of each round, where there is one.
    struct Scripted {
        samples: BurstSamples,
        sample: fn(u32) -> Option<f64>,
        hops: Option<(u64, u64)>,
        /// What goes wrong in a round.
        failure: fn(u32) -> Result,
    }

    impl Sampler for Scripted {
        fn sample_round(&mut self, _: &mut Session<'_>, round: u32) -> Result<Duration> {
            (self.failure)(round)?;
            self.samples.add(0, vec![(self.sample)(round).into_iter().collect()], BurstConditions::default());
            Ok(ROUND)
        }

        fn samples(&self) -> impl Iterator<Item = &BurstSamples> {
            std::iter::once(&self.samples)
        }

        fn hops(&self) -> Option<(u64, u64)> {
            self.hops
        }
    }

    /// The rounds that a sampler takes with a budget of ten; `budget` replaces the cell's.
    fn rounds(sample: fn(u32) -> Option<f64>, hops: Option<(u64, u64)>, fixed_time: bool, budget: Option<Duration>) -> u32 {
        let sampler = Scripted { samples: BurstSamples::new(GroupBy::Burst, MIN_ROUNDS), sample, hops, failure: |_| Ok(()) };
        measured(sampler, fixed_time, budget).0.unwrap()
    }

    /// The rounds, and the notes on them.
    fn measured(mut sampler: Scripted, fixed_time: bool, budget: Option<Duration>) -> (Result<u32>, Vec<Note>) {
        struct Silent;
        impl Observer for Silent {
            fn cell(&mut self, _: &Step, _: &Cell) {}
            fn progress(&mut self, _: f64) {}
        }
        let root = Path::new("/");
        let machine = memgauge_os::topology::read_machine(root).unwrap();
        let mut plan = memgauge_planner::plan(&Spec::new(Task::latency(LatencyShape::One)), &machine, &[]).unwrap();
        plan.stop = StopRule { relative_half_width: 0.01, budget_s: 10.0 * ROUND.as_secs_f64(), fixed_time };
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let context = RunContext::new(&machine, Clock::calibrate(root), root.into(), &stop);
        let mut silent = Silent;
        let mut session = Session::new(&plan, &context, &mut silent);
        let stop_after = StopAfter { min_rounds: MIN_ROUNDS, budget, want_undisturbed: true };
        let mut measured = Measured::default();
        let rounds = measure_until_sure(&mut session, stop_after, &mut sampler, &mut measured);
        (rounds, measured.notes)
    }

    fn failing(failure: fn(u32) -> Result) -> (Result<u32>, Vec<Note>) {
        let samples = BurstSamples::new(GroupBy::Allocation, MIN_ROUNDS);
        measured(Scripted { samples, sample: |_| Some(100.0), hops: None, failure }, false, None)
    }

    #[test]
    fn batches_of_interrupted_time_are_in_no_histogram() {
        // Batch 2 was interrupted in a burst that has slots left; another burst has none left.
        let clean = BurstWindows { clean: true, first_work: vec![0..2, 3..9], ..BurstWindows::default() };
        let ticks = [100, 100, 9000, 100, 100];
        let mut histogram = Recorder::new(1).unwrap();
        add_batches(&mut histogram, &clean, &ticks, (0, 1.0));
        add_batches(&mut histogram, &BurstWindows::default(), &[7000; 5], (0, 1.0));
        let found = histogram.finish().unwrap();
        assert_eq!((found.samples, found.max_ns.round(), found.lowest_mode_ns), (4, 100.0, None));
        let mut histogram = Recorder::new(1).unwrap();
        add_batches(&mut histogram, &BurstWindows::default(), &ticks, (0, 1.0));
        let found = histogram.finish().unwrap();
        assert!(found.samples == 5 && found.lowest_mode_ns.is_some_and(|ns| (ns - 100.0).abs() < 2.0), "{found:?}");
    }

    #[test]
    fn allocations_that_were_measured_are_kept_where_there_is_no_memory_for_another() {
        let (rounds, notes) = failing(|round| if round == 4 { cannot_allocate(MemoryErrorKind::Space) } else { Ok(()) });
        assert_eq!((rounds.unwrap(), notes.len()), (4, 1));
        assert_eq!(
            (notes[0].code.word(), notes[0].advice.as_ref().map(ToString::to_string).as_deref()),
            ("fewer-allocations", Some("free memory on this node"))
        );
        assert!(
            notes[0].message.to_string().starts_with("4 allocations were measured, where at least 6 were planned: cannot allocate"),
            "{notes:?}"
        );
        let (none, notes) = failing(|_| cannot_allocate(MemoryErrorKind::Space));
        assert!(matches!(none, Err(NotMeasured::NoMemory { .. })) && notes.is_empty(), "{none:?}");
    }

    fn cannot_allocate(kind: MemoryErrorKind) -> Result {
        Err(NotMeasured::from(MemoryError {
            kind,
            node: 0,
            bytes: Some(Bytes::mib(512)),
            what: "cannot allocate 512 MiB on node 0".into(),
            why: "node 0 has 90 MiB free or reclaimable".into(),
            advice: "free memory on this node".into(),
        }))
    }

    #[test]
    fn allocations_do_not_outlive_a_fault_of_memory() {
        let failures: [fn(u32) -> Result; 4] = [
            |round| fault(round, MemoryFaultKind::Poisoned),
            |round| fault(round, MemoryFaultKind::Truncated),
            // The same, met while the next buffer was made: its file was truncated, or its pages are poisoned.
            |round| if round == 4 { cannot_allocate(MemoryErrorKind::File) } else { Ok(()) },
            |round| if round == 4 { cannot_allocate(MemoryErrorKind::System) } else { Ok(()) },
        ];
        for failure in failures {
            let (lost, notes) = failing(failure);
            assert!(matches!(lost, Err(NotMeasured::MemoryFailed { .. } | NotMeasured::NoMemory { .. })), "{lost:?}");
            assert!(notes.is_empty(), "{notes:?}");
        }
    }

    fn fault(round: u32, kind: MemoryFaultKind) -> Result {
        let fault = MemoryFault { kind, offset: 0, physical: None, directory: None };
        if round == 4 { Err(NotMeasured::MemoryFailed { cpu: 0, fault }) } else { Ok(()) }
    }

    #[test]
    fn sampling_ends_when_it_is_sure_or_its_time_is_over() {
        let steady: fn(u32) -> Option<f64> = |_| Some(100.0);
        let noisy: fn(u32) -> Option<f64> = |round| Some(if round.is_multiple_of(2) { 50.0 } else { 150.0 });
        let starved: fn(u32) -> Option<f64> = |_| None;
        assert_eq!(rounds(steady, None, false, None), MIN_ROUNDS);
        assert_eq!(rounds(steady, None, true, None), 10, "a fixed time is used up");
        assert_eq!(rounds(noisy, None, false, None), 10);
        assert_eq!(rounds(noisy, None, false, Some(8 * ROUND)), 8);
        assert_eq!(rounds(starved, None, false, None), 80, "without any sample there is more time");
    }

    #[test]
    fn a_number_of_hops_counts_instead_of_time() {
        let steady: fn(u32) -> Option<f64> = |_| Some(100.0);
        assert_eq!(rounds(steady, Some((7, 7)), false, None), 1);
        assert_eq!(rounds(steady, Some((0, 7)), false, None), 10, "a chase that gets no time is given up");
        let late: fn(u32) -> Option<f64> = |round| (round == 4).then_some(100.0);
        assert_eq!(rounds(late, Some((7, 7)), false, None), 5, "hops of bursts without a sample are not enough");
        assert_eq!(rounds(|_| None, Some((7, 7)), false, None), 80, "without any sample there is more time");
    }
}
