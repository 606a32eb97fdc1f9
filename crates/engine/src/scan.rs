//! A scan: a node's free memory is taken region by region while enough of it stays free, then every region is read by all CPUs together,
//! some ten times, each time in another order. All regions exist at the same time, so every physical page that was free is in one of
//! them. They are given back when the scan ends, however it ends.

mod integrity;
mod sweep;

use std::sync::Arc;
use std::time::{Duration, Instant};

use memgauge_core::conclusions::scan;
use memgauge_core::estimate::Estimate;
use memgauge_core::experiment::{Coordinates, Experiment, Metric};
use memgauge_core::note::Note;
use memgauge_core::plan::{Scan, Traffic};
use memgauge_core::result::{Evidence, Integrity, Noise, TrafficRates, Trial};
use memgauge_core::stats;
use memgauge_core::traffic::Rfo;
use memgauge_core::units::Bytes;
use memgauge_kernels::{self as kernels, Kernel};
use memgauge_linux::memory::{Buffer, Scarcity};

use self::integrity::{Check, Found, PATTERNS};
use self::sweep::Sweep;
use crate::burst::{self, coverage};
use crate::crew::{TRIAL_ROUNDS, winner};
use crate::session::{CellError, LEAD, LEAD_PER_THREAD, PATIENCE, Session};
use crate::takes::{Mark, Takes};
use crate::team::{Disturbance, Done, Job};

/// A pass over a region at this rate is slower than any memory: a thread that takes longer is lost.
const SLOWEST_BYTES_S: u64 = 20 << 20;
/// Growing stops when less than this share of the plan's margin would stay: the plan leaves all of it, by counters that are estimates.
const MARGIN_SHARE: u64 = 2;
/// Parts of a scan's time that growing, reading and checking take, for the progress bar.
const GROWN: f64 = 0.25;

/// A region and what was found about it.
struct Region {
    buffer: Arc<Buffer>,
    /// GB/s of each pass.
    passes: Takes,
    coverage: Vec<f64>,
    checked: u32,
    found: Found,
}

/// One pass over one region.
struct Pass {
    gbs: f64,
    coverage: Option<f64>,
    mark: Mark,
}

enum Left {
    Read((u64, u64)),
    Kept,
}

impl Session<'_> {
    pub(crate) fn scan(&mut self, experiment: Experiment, at: &Coordinates, plan: &Scan) -> Result<(), CellError> {
        let mut regions = self.grow(plan)?;
        let first = plan.cpus.first().unwrap_or(0);
        let watch = self.watch(first, &plan.cpus)?;
        let choice = self.fastest_reader(plan, &regions);
        // What was measured before a failure or a signal is kept.
        let outcome = match &choice {
            Ok((kernel, _)) => self.read(plan, kernel, &mut regions),
            Err(_) => Ok(()),
        };
        let (kernel, tried) = choice?;
        let mut total = Disturbance::default();
        regions.iter().for_each(|r| total.add(&r.passes.course().disturbance));
        let noise = self.unwatch(watch, &total);
        let outcome = outcome.and_then(|()| if plan.integrity { self.check(plan, &mut regions) } else { Ok(()) });
        if let (Err(error), true) = (&outcome, regions.iter().all(|r| !r.passes.sampled())) {
            return Err(CellError::Cannot(error.to_string()));
        }
        let why = outcome.as_ref().err().map(ToString::to_string);
        let from = self.results.len();
        for (index, region) in regions.iter().enumerate() {
            let at = Coordinates { region: u32::try_from(index).ok(), ..at.clone() };
            let estimate = self.estimate(region, why.as_deref());
            let evidence = evidence(plan, kernel, &tried, region, &estimate, &noise);
            self.push(experiment, at, Metric::Bandwidth, estimate, evidence);
        }
        scan::judge(&mut self.results[from..]);
        match outcome {
            // The regions say so, each for itself.
            Err(CellError::Interrupted) => Ok(()),
            other => other,
        }
    }

    /// Takes region after region until the plan's number is reached or memory gets scarce.
    fn grow(&mut self, plan: &Scan) -> Result<Vec<Region>, CellError> {
        let node = plan.region.node;
        let margin = Bytes(plan.margin.0 / MARGIN_SHARE);
        let mut scarcity = Scarcity::watch(&self.setting.root, node, margin);
        let mut regions: Vec<Region> = Vec::new();
        let mut objection = None;
        while regions.len() < plan.regions as usize {
            if self.interrupted() {
                return Err(CellError::Interrupted);
            }
            // Pages of a pool are taken from no free memory; a plan for them has no margin.
            objection = (plan.margin.0 > 0).then(|| scarcity.objection(plan.region.bytes)).flatten();
            if objection.is_some() {
                break;
            }
            match self.allocate(&plan.region) {
                Ok(buffer) => regions.push(Region::new(buffer, plan.passes)),
                Err(error) if regions.is_empty() => return Err(error),
                Err(error) => {
                    objection = Some(error.to_string());
                    break;
                }
            }
            self.within(GROWN * regions.len() as f64 / f64::from(plan.regions.max(1)));
        }
        if let Some(why) = objection {
            if regions.is_empty() {
                return Err(CellError::Cannot(format!("no region of {} could be taken on node {node}: {why}", plan.region.bytes)));
            }
            let message = format!("{} of {} regions were taken on node {node}: {why}", regions.len(), plan.regions);
            self.note(Note::warning("scan-stopped-growing", message).advise("free memory there and scan again to reach the rest"));
        }
        Ok(regions)
    }

    /// The kernels of the plan that this CPU runs and that only read: several threads go over the same region.
    fn readers(traffic: &Traffic) -> Vec<&'static Kernel> {
        let reads = |k: &&'static Kernel| k.supported() && k.written_per_step() == 0;
        traffic.kernels.iter().filter_map(|name| kernels::find(name)).filter(reads).collect()
    }

    /// The fastest of the plan's kernels, each tried on several regions.
    fn fastest_reader(&mut self, plan: &Scan, regions: &[Region]) -> Result<(&'static Kernel, Vec<Trial>), CellError> {
        let candidates = Self::readers(&plan.traffic);
        let mut rates = vec![Vec::new(); candidates.len()];
        let rounds = if candidates.len() > 1 { TRIAL_ROUNDS } else { 0 };
        let mut next = (0..regions.len()).cycle();
        for _ in 0..rounds {
            for (kernel, rates) in candidates.iter().zip(&mut rates) {
                if self.interrupted() {
                    return Err(CellError::Interrupted);
                }
                let region = &regions[next.next().unwrap_or(0)];
                rates.push(self.pass(plan, kernel, &region.buffer)?.gbs);
            }
        }
        winner(&candidates, &rates, plan.traffic.mix)
    }

    /// All passes, each over all regions; and then some more over those of which passes were disturbed.
    fn read(&mut self, plan: &Scan, kernel: &'static Kernel, regions: &mut [Region]) -> Result<(), CellError> {
        let all = (u64::from(plan.passes) * regions.len() as u64).max(1) as f64;
        let mut done = 0u64;
        for pass in 0..plan.passes.saturating_add(memgauge_core::plan::more_passes(plan.passes)) {
            for index in memgauge_core::plan::pass_order(regions.len(), pass, self.plan.seed) {
                if self.interrupted() {
                    return Err(CellError::Interrupted);
                }
                let region = &mut regions[index];
                if pass >= plan.passes && region.passes.settled() {
                    continue;
                }
                let pass = self.pass(plan, kernel, &region.buffer)?;
                region.passes.add(0, vec![vec![pass.gbs]], pass.mark);
                region.coverage.extend(pass.coverage);
                done += 1;
                let checking = if plan.integrity { 0.5 } else { 1.0 };
                self.within(GROWN + (1.0 - GROWN) * checking * (done as f64 / all).min(1.0));
            }
        }
        Ok(())
    }

    /// One pass of all CPUs over one region.
    fn pass(&mut self, plan: &Scan, kernel: &'static Kernel, region: &Arc<Buffer>) -> Result<Pass, CellError> {
        let keepers = self.keepers(&plan.cpus);
        let sweep = Arc::new(Sweep::new(kernel, region.clone(), plan.cpus.len()));
        let clock = self.clock();
        let start = clock.now() + clock.ticks_of(LEAD + LEAD_PER_THREAD * (plan.cpus.len() + keepers.len()) as u32);
        let mut jobs: Vec<(u32, Job<Left>)> = Vec::new();
        // Told of when the last reader's job ends, or is dropped because it cannot run.
        let (ended, told) = burst::Ended::new();
        let ended = Arc::new(ended);
        for cpu in plan.cpus.iter() {
            let (sweep, ended) = (sweep.clone(), ended.clone());
            jobs.push((
                cpu,
                Box::new(move || {
                    let _ended = ended;
                    Left::Read(sweep.join(&clock, start))
                }),
            ));
        }
        drop(ended);
        for cpu in keepers.iter() {
            let told = told.clone();
            jobs.push((
                cpu,
                Box::new(move || {
                    burst::keep_awake_until(&told);
                    Left::Kept
                }),
            ));
        }
        let patience = PATIENCE + Duration::from_secs(sweep.bytes() / SLOWEST_BYTES_S);
        let before = self.stolen(&plan.cpus);
        let done = self.team.run_most(jobs, plan.cpus.len(), patience)?;
        let (mut spans, mut disturbance) = (Vec::new(), Disturbance::default());
        for Done { value, disturbance: own } in &done {
            if let Left::Read(span) = value {
                spans.push(*span);
                disturbance.add(own);
            }
        }
        let began = spans.iter().map(|s| s.0).min().unwrap_or(start);
        let ended = spans.iter().map(|s| s.1).max().unwrap_or(start);
        let ns = clock.ns(ended.saturating_sub(began).max(1));
        let length = Duration::from_nanos(ns as u64);
        self.spent(length);
        let (coverage, stolen) = (coverage(&spans), self.stolen_since(before, &plan.cpus, length));
        let mark = Mark::of_threads(plan.cpus.len(), disturbance, stolen, coverage, None);
        // Bytes per nanosecond are GB/s.
        Ok(Pass { gbs: sweep.bytes() as f64 / ns, coverage, mark })
    }

    /// Writes each pattern to all regions, and then compares all regions: between the two, more passes by than caches hold.
    fn check(&mut self, plan: &Scan, regions: &mut [Region]) -> Result<(), CellError> {
        let all = (2 * PATTERNS as usize * regions.len()).max(1) as f64;
        let mut done = 0u32;
        for pattern in 0..PATTERNS {
            for compare in [false, true] {
                for (index, region) in regions.iter_mut().enumerate() {
                    if self.interrupted() {
                        return Err(CellError::Interrupted);
                    }
                    let found = self.go_over(plan, region, index, pattern, compare)?;
                    region.found.add(found);
                    region.checked += u32::from(compare);
                    done += 1;
                    self.within(GROWN + (1.0 - GROWN) * (0.5 + 0.5 * f64::from(done) / all));
                }
            }
        }
        Ok(())
    }

    fn go_over(&mut self, plan: &Scan, region: &Region, index: usize, pattern: u32, compare: bool) -> Result<Found, CellError> {
        let check = Arc::new(Check::new(region.buffer.clone(), index, pattern, plan.cpus.len()));
        let mut jobs: Vec<(u32, Job<()>)> = Vec::new();
        for cpu in plan.cpus.iter() {
            let check = check.clone();
            jobs.push((cpu, Box::new(move || if compare { check.compare() } else { check.write() })));
        }
        let began = Instant::now();
        self.team.run(jobs, PATIENCE + Duration::from_secs(plan.region.bytes.0 / SLOWEST_BYTES_S))?;
        self.spent(began.elapsed());
        Ok(check.found())
    }

    /// A region's passes are as far apart as the scan is long, so what drifts is in their spread: they are one group of samples.
    fn estimate(&self, region: &Region, why: Option<&str>) -> Estimate {
        match (region.passes.sampled(), why) {
            (false, Some(why)) => Estimate { reason: Some(why.to_owned()), ..Estimate::default() },
            _ => stats::estimate(&region.passes.groups(0), self.plan.stop.relative_half_width),
        }
    }
}

impl Region {
    fn new(buffer: Arc<Buffer>, passes: u32) -> Self {
        let passes = Takes::by_allocation(passes as usize);
        Self { buffer, passes, coverage: Vec::new(), checked: 0, found: Found::default() }
    }
}

fn evidence(plan: &Scan, kernel: &Kernel, tried: &[Trial], region: &Region, estimate: &Estimate, noise: &Noise) -> Evidence {
    let own = region.passes.course().disturbance;
    let mut noise = Noise { migrations: Some(own.migrations), involuntary_switches: own.switches, waited: own.waited(), ..noise.clone() };
    region.passes.tell(&mut noise);
    let Found { mismatches, first } = region.found.clone();
    Evidence {
        threads: plan.cpus.len() as u32,
        kernel: kernel.name.into(),
        kernels_tried: tried.to_vec(),
        buffer: plan.region.bytes,
        allocations: 1,
        pages: region.buffer.pages().clone(),
        placement: region.buffer.placement_now(),
        // Of the passes the median, as the number is: a pass lasts milliseconds, and one that began badly does not bear on it.
        coverage: stats::median(&region.coverage),
        // A scan only reads.
        traffic: estimate.value.map(|gbs| TrafficRates {
            app_read_gbs: gbs,
            app_write_gbs: 0.0,
            bus_estimate_gbs: Some(gbs),
            rfo: Rfo::No,
        }),
        physical: Some(region.buffer.physical()),
        integrity: (region.checked > 0).then_some(Integrity { patterns: region.checked, mismatches, first }),
        // The machine's counters are those of the whole scan, since passes over all regions follow each other; the threads' are the region's.
        noise,
        ..Evidence::default()
    }
}
