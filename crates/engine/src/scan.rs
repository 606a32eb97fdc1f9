//! A scan: a node's free memory is taken region by region while enough of it stays free, then every region is read by all CPUs together,
//! some ten times, each time in another order. All regions exist at the same time, so every physical page that was free is in one of
//! them. They are given back when the scan ends, however it ends.

mod region;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use memgauge_analysis::conclusions::scan;
use memgauge_kernels::Kernel;
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::{Coordinates, Metric};
use memgauge_model::integrity::{self, BLOCK_BYTES, TestPattern, TestStep};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::Scan;
use memgauge_model::result::{Evidence, Incomplete, Integrity, Measurement, Noise, TrafficRates};
use memgauge_model::stats;
use memgauge_model::traffic::Rfo;
use memgauge_model::units::Bytes;
use memgauge_model::words;
use memgauge_model::words::Knob;
use memgauge_os::memory::{Buffer, MemoryWatch};

use crate::burst::result::Conditions;
use crate::burst::threads::{EndFlag, Threads, keep_awake_jobs};
use crate::burst::windows::coverage;
use crate::burst::workers::{Finished, Job, SchedulerNoise};
use crate::cutoff::WORKER_TIMEOUT;
use crate::error::Result;
use crate::experiment::disturbance::{BurstConditions, BurstSamples, GroupBy};
use crate::experiment::trials;
use crate::integrity::{EccWatch, MarchOptions, TestedBuffer, name_devices};
use crate::kernel_choice::{Contest, TrialResult, candidates};
use crate::measured::{Measured, Subject};
use crate::session::Session;
use region::RegionPass;

/// A pass over a region at this rate is slower than any memory: a thread that takes longer is lost.
const SLOWEST_BYTES_S: u64 = 20 << 20;
/// Growing stops when less than this part of the plan's margin would stay: the plan leaves all of it, by counters that are estimates.
const MARGIN_DIVISOR: u64 = 2;
/// Bytes that a trial of a kernel reads of a region: far longer than the start of its threads takes, and a part of the time that a scan may fill
/// with checks.
const TRIAL_BYTES: usize = 256 << 20;
/// Part of a scan's time that growing takes, for the progress bar.
const GROWING_SHARE: f64 = 0.25;
/// Part of a scan's time after which it takes no more regions, so that those it has are read: a host may need two seconds for each GiB that its
/// guest has not used before.
const GROWING_LIMIT: f64 = 0.75;

struct Region {
    buffer: Arc<Buffer>,
    /// The error of its memory for which it is not read any more.
    lost: Option<NotMeasured>,
    /// GB/s of each pass.
    passes: BurstSamples,
    coverage: Vec<f64>,
}

impl Region {
    /// The result of reading it; `None` if its memory has an error, which ends this region and no other.
    fn unless_lost<T>(&mut self, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Err(error) if error.is_of_memory() => {
                self.lost = Some(error);
                Ok(None)
            }
            other => other.map(Some),
        }
    }
}

struct Pass {
    gbs: f64,
    coverage: Option<f64>,
    conditions: BurstConditions,
}

/// When a thread's part of a pass began and ended; `None` of a thread that only keeps its package awake.
type Span = Option<(u64, u64)>;

pub(crate) fn measure(session: &mut Session<'_>, subject: Subject<'_>, plan: &Scan, measured: &mut Measured) -> Result {
    let mut regions = grow(session, plan, measured)?;
    session.watch(plan.cpus.first().unwrap_or(0), &plan.cpus)?;
    let (mut test, begun) = if plan.integrity {
        let (test, begun) = session.unwatched(|session| Test::begin(session, plan, &mut regions));
        (Some(test), begun)
    } else {
        (None, Ok(()))
    };
    begun?;
    let won = fastest_reader(session, plan, &mut regions)?;
    let kernel = won.kernel;
    // A failure or a signal does not discard earlier passes.
    let outcome = read(session, plan, kernel, &mut regions);
    let mut scheduler = SchedulerNoise::default();
    regions.iter().for_each(|r| scheduler.add(&r.passes.conditions().scheduler));
    let noise = session.unwatch(&scheduler);
    let outcome = outcome.and_then(|()| test.as_mut().map_or(Ok(()), |test| test.rest(session, plan, &mut regions)));
    let compared_as_planned = test.as_ref().is_none_or(|test| test.compared_as_planned(plan));
    let mut checked = test.map(|test| test.finish(session, plan)).unwrap_or_default().into_iter();
    if outcome.is_err() && regions.iter().all(|r| r.lost.is_none() && !r.passes.any_samples()) {
        return outcome;
    }
    let why = outcome.as_ref().err().map(|error| match error {
        NotMeasured::Interrupted => session.budget.interruption(),
        error => error.clone(),
    });
    for (index, region) in regions.iter().enumerate() {
        let at = Coordinates { region: u32::try_from(index).ok(), ..subject.at.clone() };
        let why = match &region.lost {
            Some(error) => Some(error.clone()),
            None => why.clone().filter(|_| !region.passes.any_samples()),
        };
        let estimate = match why {
            Some(_) => Estimate { not_measured: why, ..Estimate::default() },
            None => region.passes.estimate(0, session.budget.stop.relative_half_width),
        };
        let evidence = Evidence { integrity: checked.next(), ..evidence(plan, &won, region, &estimate, &noise) };
        let samples = region.lost.is_none().then(|| region.passes.keep(0));
        let result = subject.judge(at, Metric::Bandwidth, estimate, evidence);
        measured.add(Measurement { samples, ..result });
    }
    scan::judge(&mut measured.results);
    match outcome {
        // Each region without a pass has the reason, and each result says how much of its memory was compared. Work that goes
        // beyond the plan may end anywhere.
        Err(NotMeasured::Interrupted) => {
            if !compared_as_planned {
                measured.cut_short(Incomplete::OutOfTime);
            }
            Ok(())
        }
        other => other,
    }
}

const FREE_MEMORY: &str = "free memory there and scan again to reach the rest";

/// Takes region after region until the plan's number is reached, or memory or time gets scarce.
fn grow(session: &mut Session<'_>, plan: &Scan, measured: &mut Measured) -> Result<Vec<Region>> {
    let node = plan.region.node;
    let margin = Bytes(plan.margin.0 / MARGIN_DIVISOR);
    let mut scarcity = MemoryWatch::start(&session.context.root, node, margin);
    let mut regions: Vec<Region> = Vec::new();
    let mut objection = None;
    let started = session.context.now();
    let end = session.budget.left().map(|left| started + left.mul_f64(GROWING_LIMIT));
    while regions.len() < plan.regions as usize {
        if session.interrupted() {
            return Err(NotMeasured::Interrupted);
        }
        // Another one would take as long as those before.
        let now = session.context.now();
        let next = (now - started) / regions.len().max(1) as u32;
        if !regions.is_empty() && end.is_some_and(|end| now + next > end) {
            let why = "the time given would not be enough to read more".to_owned();
            let advice = words!["give it more time with ", Knob::Within, " to reach the rest"];
            objection = Some((Incomplete::OutOfTime, NoteCode::ScanStoppedGrowing, why, advice));
            break;
        }
        // Pages of a pool are taken from no free memory; a plan for them has no margin.
        let shortage = (plan.margin.0 > 0).then(|| scarcity.shortage(plan.region.bytes)).flatten();
        if let Some(why) = shortage {
            objection = Some((Incomplete::CellsMissing, NoteCode::ScanMemoryScarce, why, FREE_MEMORY.into()));
            break;
        }
        match session.allocate(&plan.region) {
            Ok(buffer) => {
                // Passes are as far apart as the scan is long, so what drifts is in their spread: they are one group of samples.
                let passes = BurstSamples::new(GroupBy::Allocation, plan.passes);
                regions.push(Region { buffer, lost: None, passes, coverage: Vec::new() });
            }
            Err(error) if regions.is_empty() || matches!(error, NotMeasured::Interrupted) => return Err(error),
            Err(error) => {
                objection = Some((Incomplete::CellsMissing, NoteCode::ScanMemoryScarce, error.to_string(), FREE_MEMORY.into()));
                break;
            }
        }
        session.progress.within_cell(GROWING_SHARE * regions.len() as f64 / f64::from(plan.regions.max(1)));
    }
    if let Some((incomplete, code, why, advice)) = objection {
        if regions.is_empty() {
            return Err(NotMeasured::NoRegion { node, detail: why });
        }
        measured.cut_short(incomplete);
        let message = format!("{} of {} regions were taken on node {node}: {why}", regions.len(), plan.regions);
        measured.note(Note::warning(code, message).advise(advice));
    }
    Ok(regions)
}

/// The fastest of the plan's kernels, each tried on several regions.
fn fastest_reader(session: &mut Session<'_>, plan: &Scan, regions: &mut [Region]) -> Result<TrialResult> {
    // Those that only read: several threads go over the same region.
    let mut readers = candidates(&plan.traffic);
    readers.retain(|k| k.written_per_iteration() == 0);
    let mut next = (0..regions.len()).cycle();
    trials::compare(session, &readers, &plan.traffic, Contest::KeepAll, |session, kernel| {
        for index in next.by_ref().take(regions.len()) {
            let region = &mut regions[index];
            if region.lost.is_none()
                && let Some(pass) = region.unless_lost(pass(session, plan, kernel, &region.buffer, TRIAL_BYTES))?
            {
                return Ok(Some((pass.gbs, pass.conditions.undisturbed())));
            }
        }
        Ok(None)
    })
}

/// Makes all passes, each over all regions, and then some more over the regions whose passes were disturbed.
fn read(session: &mut Session<'_>, plan: &Scan, kernel: &'static Kernel, regions: &mut [Region]) -> Result {
    let all = (u64::from(plan.passes) * regions.len() as u64).max(1) as f64;
    let mut done = 0u64;
    for pass_number in 0..plan.passes.saturating_add(memgauge_model::plan::more_passes(plan.passes)) {
        for index in memgauge_model::plan::pass_order(regions.len(), pass_number, session.plan.seed) {
            if session.interrupted() {
                return Err(NotMeasured::Interrupted);
            }
            let region = &mut regions[index];
            if region.lost.is_some() || pass_number >= plan.passes && region.passes.enough_undisturbed() {
                continue;
            }
            let Some(pass) = region.unless_lost(pass(session, plan, kernel, &region.buffer, usize::MAX))? else { continue };
            region.passes.add(0, vec![vec![pass.gbs]], pass.conditions);
            region.coverage.extend(pass.coverage);
            done += 1;
            let reading = if plan.integrity { 0.5 } else { 1.0 };
            session.progress.within_cell(GROWING_SHARE + (1.0 - GROWING_SHARE) * reading * (done as f64 / all).min(1.0));
        }
    }
    Ok(())
}

/// One pass of all CPUs over one region, or over its first `most` bytes.
fn pass(session: &mut Session<'_>, plan: &Scan, kernel: &'static Kernel, region: &Arc<Buffer>, most: usize) -> Result<Pass> {
    let awake = session.runner.kept_awake(&plan.cpus);
    let reading = Arc::new(RegionPass::new(kernel, region.clone(), most, plan.cpus.len(), session.context.cutoff(None)));
    let clock = session.context.clock;
    let start = clock.now() + clock.to_ticks(Threads::lead(plan.cpus.len() + awake.len()));
    let mut jobs: Vec<(u32, Job<Span>)> = Vec::new();
    // Set when the last reader's job has ended.
    let (flag, ended) = EndFlag::new();
    let flag = Arc::new(flag);
    for cpu in plan.cpus.iter() {
        let (reading, flag) = (reading.clone(), flag.clone());
        let job: Job<Span> = Box::new(move || {
            let _flag = flag;
            Some(reading.run(&clock, start))
        });
        jobs.push((cpu, job));
    }
    drop(flag);
    jobs.extend(keep_awake_jobs(&awake, &ended));
    let timeout = WORKER_TIMEOUT + Duration::from_secs(reading.bytes() / SLOWEST_BYTES_S);
    let threads = session.runner.threads(&plan.cpus)?;
    let before = threads.look(&plan.cpus);
    let finished = threads.workers.run_required(jobs, plan.cpus.len(), timeout)?;
    if let Some(fault) = region.fault() {
        return Err(NotMeasured::MemoryFailed { cpu: plan.cpus.first().unwrap_or(0), fault });
    }
    // The rest of the region was not read.
    if session.interrupted() {
        return Err(NotMeasured::Interrupted);
    }
    let (mut spans, mut scheduler) = (Vec::new(), SchedulerNoise::default());
    for Finished { value, scheduler: own } in &finished {
        if let Some(span) = value {
            spans.push(*span);
            scheduler.add(own);
        }
    }
    let began = spans.iter().map(|s| s.0).min().unwrap_or(start);
    let ended = spans.iter().map(|s| s.1).max().unwrap_or(start);
    let ns = clock.ns(ended.saturating_sub(began).max(1));
    let length = Duration::from_nanos(ns as u64);
    session.add_measuring(length);
    let (coverage, others) = (coverage(&spans), session.runner.threads(&plan.cpus)?.others_since(&before, &plan.cpus, length));
    let conditions = BurstConditions::judge(plan.cpus.len(), Conditions { scheduler, coverage }, others, None);
    // Bytes per nanosecond are GB/s.
    Ok(Pass { gbs: reading.bytes() as f64 / ns, coverage, conditions })
}

/// A pattern is written again if the time that is left exceeds the time that it takes by one part in `ROOM`.
const ROOM: u32 = 8;

/// The patterns of a scan: what its regions hold now, and what was compared.
struct Test {
    buffers: Vec<TestedBuffer>,
    steps: Vec<TestStep>,
    /// Steps that were begun in all regions.
    begun: usize,
    ecc: EccWatch,
}

impl Test {
    /// Writes the first pattern, so that what bits do while regions are read is found as well.
    fn begin(session: &mut Session<'_>, plan: &Scan, regions: &mut [Region]) -> (Self, Result) {
        let cpus: Vec<u32> = plan.cpus.iter().collect();
        let buffers = regions.iter().map(|region| TestedBuffer::new(region.buffer.clone(), cpus.clone())).collect();
        let mut test = Self { buffers, steps: integrity::steps(&plan.patterns), begun: 0, ecc: EccWatch::begin(session) };
        let outcome = test.step(session, plan, regions);
        (test, outcome)
    }

    /// Compares in all regions what they hold and writes the next step, region by region.
    fn step(&mut self, session: &mut Session<'_>, plan: &Scan, regions: &mut [Region]) -> Result {
        let step = self.steps.get(self.begun);
        // Before the first comparison, passes read the regions, so the caches hold some of their lines.
        let drop_first = self.begun == 1;
        let hold = Duration::from_secs_f64(plan.hold_s);
        let how = MarchOptions { descending: step.is_some_and(|s| s.descending), drop_first, hold };
        let blocks = (plan.region.bytes.0 as usize).div_ceil(BLOCK_BYTES) as u64;
        for ((buffer, region), first_block) in self.buffers.iter_mut().zip(regions).zip((0..).step_by(blocks as usize)) {
            if region.lost.is_some() {
                continue;
            }
            let next = |_| step.map(|step| (step.words(session.plan.seed, first_block), Some(step.pattern)));
            let words = next(0);
            region.unless_lost(crate::integrity::march(session, std::slice::from_mut(buffer), how, |_| words.clone()))?;
        }
        self.begun += 1;
        Ok(())
    }

    /// Makes the remaining steps and the last comparison. If a time for the whole run was given, writes patterns again while it lasts, in turn,
    /// those that still fit.
    fn rest(&mut self, session: &mut Session<'_>, plan: &Scan, regions: &mut [Region]) -> Result {
        let (first, started) = (self.begun, session.context.now());
        let mut in_turn = plan.patterns.iter().cycle();
        while self.begun <= self.steps.len() {
            if self.begun == self.steps.len() && self.begun > first {
                let each = (session.context.now() - started) / (self.begun - first) as u32;
                let room = session.budget.left_to_fill();
                let fits = |pattern: &&TestPattern| {
                    let time = each * (pattern.writes() + 1);
                    room.is_some_and(|room| room > time + time / ROOM)
                };
                let next = in_turn.by_ref().take(plan.patterns.len()).find(fits);
                self.steps.extend(next.iter().flat_map(|pattern| integrity::steps(&[**pattern])));
            }
            self.step(session, plan, regions)?;
            let elapsed = (session.context.now() - started).as_secs_f64();
            let share = session.budget.left_to_fill().map_or(self.begun as f64 / (self.steps.len() + 1) as f64, |room| {
                // Steps are added while the time lasts.
                elapsed / (elapsed + room.as_secs_f64()).max(1e-9)
            });
            session.progress.within_cell(GROWING_SHARE + (1.0 - GROWING_SHARE) * (0.5 + 0.5 * share));
        }
        Ok(())
    }

    /// Whether all that the plan has written was compared in every region, whatever was made again since.
    fn compared_as_planned(&self, plan: &Scan) -> bool {
        // The step after the last one compares what that one wrote.
        self.begun > integrity::steps(&plan.patterns).len()
    }

    /// The result of each region.
    fn finish(self, session: &Session<'_>, plan: &Scan) -> Vec<Integrity> {
        let (planned, ecc) = (self.steps.len() as u32, self.ecc.end(session));
        let each = self.buffers.into_iter().map(|mut buffer| {
            let compared = &self.steps[..(buffer.compared() as usize).min(self.steps.len())];
            let tested: BTreeSet<_> = compared.iter().filter(|step| step.last).map(|step| step.pattern).collect();
            let tested = plan.patterns.iter().copied().filter(|pattern| tested.contains(pattern)).collect();
            let mut integrity = Integrity { ecc: Some(ecc.clone()), ..buffer.take(planned, tested) };
            name_devices(session, &mut integrity);
            integrity
        });
        each.collect()
    }
}

fn evidence(plan: &Scan, won: &TrialResult, region: &Region, estimate: &Estimate, noise: &Noise) -> Evidence {
    // The machine's counters are those of the whole scan, since passes over all regions follow each other; the threads' are the region's.
    let mut noise = region.passes.conditions().scheduler.replace_in(noise);
    region.passes.write_disturbances(&mut noise);
    Evidence {
        threads: plan.cpus.len() as u32,
        kernel: won.kernel.name.into(),
        kernels_tried: won.tried.clone(),
        kernel_chosen_busy: won.busy,
        buffer: plan.region.bytes,
        allocations: 1,
        pages: region.buffer.pages().clone(),
        placement: region.buffer.placement_now(),
        // The median of the passes, as the number is: a pass lasts milliseconds, and one that began badly does not affect it.
        coverage: stats::median(&region.coverage),
        // A scan only reads.
        traffic: estimate.value.map(|gbs| TrafficRates {
            app_read_gbs: gbs,
            app_write_gbs: 0.0,
            bus_estimate_gbs: Some(gbs),
            rfo: Rfo::No,
            rfo_reason: None,
        }),
        physical: Some(region.buffer.physical()),
        noise,
        ..Evidence::default()
    }
}
