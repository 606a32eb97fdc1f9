//! Bandwidth: loaders alone, with the kernel that a short trial found fastest.

use std::sync::Arc;
use std::time::Duration;

use memgauge_core::plan::{Loader, Traffic};
use memgauge_core::result::{Coordinates, Evidence, Experiment, Metric, TrafficRates, Trial};
use memgauge_core::stats;
use memgauge_core::traffic::{Mix, Rfo};
use memgauge_core::units::{Bytes, IdSet};
use memgauge_kernels::{self as kernels, Kernel};
use memgauge_linux::memory::Buffer;

use crate::burst::Load;
use crate::pages::combined_pages;
use crate::session::{BURST_WINDOWS, BurstResult, CellError, Course, SETTLE_WINDOWS, Session, WINDOW, combined};

/// Bursts of a cell, at least: six is the fewest of which a non-parametric 95 % interval exists.
const LEAST_BURSTS: u32 = 6;
/// Rounds of a trial; each kernel runs once a round, so that a slow moment does not decide against one of them.
pub(crate) const TRIAL_ROUNDS: usize = 3;
/// Counted windows of a kernel in a round.
const TRIAL_WINDOWS: usize = 3;

/// The kernel that won a trial.
#[derive(Clone)]
pub(crate) struct Choice {
    pub(crate) kernel: &'static Kernel,
    pub(crate) tried: Vec<Trial>,
}

/// Loaders with their memory.
pub(crate) struct Crew {
    pub(crate) members: Vec<(u32, Arc<Buffer>, Bytes)>,
}

impl Crew {
    pub(crate) fn cpus(&self) -> IdSet {
        self.members.iter().map(|(cpu, ..)| *cpu).collect()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.members.iter().map(|(.., bytes)| bytes.0).sum()
    }

    /// A fresh load of every member.
    pub(crate) fn loads(&self, kernel: &'static Kernel, delay: u32) -> Vec<(u32, Load)> {
        let load = |(index, (cpu, buffer, bytes)): (usize, &(u32, Arc<Buffer>, Bytes))| {
            (*cpu, Load::new(kernel, buffer.clone(), bytes.0 as usize, delay, index))
        };
        self.members.iter().enumerate().map(load).collect()
    }
}

/// GB/s of all loaders in each counted window in which every one of them looked at the clock. Where CPUs are shared with others (a
/// host with fewer CPUs than its guests) there may be none: the whole burst is then the one sample, and its coverage says how much it is worth.
pub(crate) fn window_gbs(burst: &BurstResult, kernel: &Kernel, ns: impl Fn(u64) -> f64, windows: usize) -> Vec<f64> {
    let bytes = (kernel.read_per_step() + kernel.written_per_step()) as f64;
    let rate = |(ticks, steps): (u64, u64)| (steps > 0).then(|| steps as f64 * bytes / ns(ticks));
    // Bytes per nanosecond are GB/s.
    let common: Vec<f64> = (SETTLE_WINDOWS..SETTLE_WINDOWS + windows)
        .filter_map(|w| burst.loads.iter().map(|t| t.window(w).and_then(rate)).sum::<Option<f64>>())
        .collect();
    if !common.is_empty() {
        return common;
    }
    burst.loads.iter().map(|t| t.whole().and_then(rate)).sum::<Option<f64>>().into_iter().collect()
}

impl Session<'_> {
    /// Memory for loaders: what the last cell used where it is what this one wants.
    pub(crate) fn crew(&mut self, loaders: &[Loader]) -> Result<Crew, CellError> {
        self.shelf.retain(|cpu, (plan, _)| loaders.iter().any(|l| l.cpu == *cpu && l.buffer == *plan));
        let mut members = Vec::new();
        for loader in loaders {
            let buffer = match self.shelf.get(&loader.cpu) {
                Some((_, buffer)) => buffer.clone(),
                None => {
                    let buffer = self.allocate(&loader.buffer)?;
                    self.shelf.insert(loader.cpu, (loader.buffer.clone(), buffer.clone()));
                    buffer
                }
            };
            members.push((loader.cpu, buffer, loader.buffer.bytes));
        }
        Ok(Crew { members })
    }

    /// The fastest of the plan's kernels for this traffic by this crew.
    pub(crate) fn choose(&mut self, crew: &Crew, traffic: &Traffic) -> Result<Choice, CellError> {
        let candidates: Vec<&'static Kernel> =
            traffic.kernels.iter().filter_map(|name| kernels::find(name)).filter(|k| k.supported()).collect();
        let key = format!("{} {} {} {}", traffic.mix, traffic.kernels.join(" "), crew.cpus(), crew.bytes());
        if let Some(choice) = self.winners.get(&key) {
            return Ok(choice.clone());
        }
        let clock = self.clock();
        let mut rates = vec![Vec::new(); candidates.len()];
        let rounds = if candidates.len() > 1 { TRIAL_ROUNDS } else { 0 };
        for _ in 0..rounds {
            for (kernel, rates) in candidates.iter().zip(&mut rates) {
                let burst = self.burst(None, crew.loads(kernel, 0), TRIAL_WINDOWS)?;
                rates.extend(stats::median(&window_gbs(&burst, kernel, |t| clock.ns(t), TRIAL_WINDOWS)));
                if self.interrupted() {
                    return Err(CellError::Interrupted);
                }
            }
        }
        let tried: Vec<Trial> = candidates
            .iter()
            .zip(&rates)
            .filter_map(|(kernel, rates)| Some(Trial { kernel: kernel.name.into(), value: stats::median(rates)? }))
            .collect();
        let best = tried.iter().max_by(|a, b| a.value.total_cmp(&b.value)).map(|t| t.kernel.clone());
        let kernel = candidates.iter().find(|k| best.as_deref().is_none_or(|name| k.name == name)).copied();
        let kernel =
            kernel.ok_or_else(|| CellError::Cannot(format!("this CPU runs none of the kernels planned for the mix {}", traffic.mix)))?;
        let choice = Choice { kernel, tried };
        self.winners.insert(key, choice.clone());
        Ok(choice)
    }

    pub(crate) fn bandwidth(
        &mut self,
        experiment: Experiment,
        at: &Coordinates,
        loaders: &[Loader],
        traffic: &Traffic,
    ) -> Result<(), CellError> {
        let crew = self.crew(loaders)?;
        let first = loaders.first().map_or(0, |l| l.cpu);
        let watch = self.watch(first, &crew.cpus())?;
        let Choice { kernel, tried } = self.choose(&crew, traffic)?;
        let clock = self.clock();
        let windows = self.burst_windows(LEAST_BURSTS);
        let (mut groups, mut spent) = (Vec::new(), Duration::ZERO);
        let mut course = Course::default();
        let mut totals = vec![(0u64, 0u64); crew.members.len()];
        loop {
            let burst = self.burst(None, crew.loads(kernel, 0), windows)?;
            course.add(&burst);
            groups.push(window_gbs(&burst, kernel, |t| clock.ns(t), windows));
            for (total, trace) in totals.iter_mut().zip(&burst.loads) {
                let (ticks, steps) = trace.whole().unwrap_or_default();
                *total = (total.0 + ticks, total.1 + steps);
            }
            spent += WINDOW * windows as u32;
            let converged = stats::estimate(&groups, self.plan.stop.relative_half_width).converged;
            if self.interrupted()
                || (groups.len() >= LEAST_BURSTS as usize && self.enough(spent, groups.iter().any(|g| !g.is_empty()), converged))
            {
                break;
            }
        }
        let estimate = stats::estimate(&groups, self.plan.stop.relative_half_width);
        let rates = estimate.value.map(|gbs| traffic_rates(kernel, gbs));
        let mut evidence = crew_evidence(&crew, kernel, tried);
        evidence.fairness = fairness(&totals);
        evidence.traffic = rates;
        evidence.coverage = course.coverage;
        evidence.noise = self.unwatch(watch, &course.disturbance);
        self.push(experiment, at.clone(), Metric::Bandwidth, estimate, evidence);
        Ok(())
    }

    /// Counted windows of a burst: a fixed time is shared among the fewest bursts.
    pub(crate) fn burst_windows(&self, bursts: u32) -> usize {
        let fixed = (self.plan.stop.budget_s / f64::from(bursts) / WINDOW.as_secs_f64()).ceil() as usize;
        if self.plan.stop.fixed_time { fixed.max(1) } else { BURST_WINDOWS }
    }
}

/// What a crew's results have in common, once it has measured.
pub(crate) fn crew_evidence(crew: &Crew, kernel: &Kernel, tried: Vec<Trial>) -> Evidence {
    Evidence {
        threads: crew.members.len() as u32,
        kernel: kernel.name.into(),
        kernels_tried: tried,
        buffer: Bytes(crew.bytes()),
        allocations: 1,
        pages: combined_pages(crew.members.iter().map(|(_, b, bytes)| (b.pages(), *bytes))),
        file: crew.members.first().and_then(|(_, b, _)| b.file().cloned()),
        placement: combined(crew.members.iter().map(|(_, b, _)| b.placement_now())),
        ..Default::default()
    }
}

/// Splits a kernel's bandwidth by what it reads and writes.
pub(crate) fn traffic_rates(kernel: &Kernel, gbs: f64) -> TrafficRates {
    let (read, written) = (kernel.read_per_step() as f64, kernel.written_per_step() as f64);
    let share = read / (read + written);
    // Whether a plain store of a whole line, or a string instruction, reads the line first depends on the core and is not known here.
    let rfo = if kernel.mix == Mix::AllReads || kernel.mix.non_temporal() { Rfo::No } else { Rfo::Unknown };
    let bus_estimate_gbs = (rfo == Rfo::No).then_some(gbs);
    TrafficRates { app_read_gbs: gbs * share, app_write_gbs: gbs * (1.0 - share), bus_estimate_gbs, rfo }
}

/// Slowest loader's rate over the fastest's.
fn fairness(totals: &[(u64, u64)]) -> Option<f64> {
    if totals.len() < 2 || totals.iter().any(|(ticks, _)| *ticks == 0) {
        return None;
    }
    let rates = totals.iter().map(|(ticks, steps)| *steps as f64 / *ticks as f64);
    let (least, most) = rates.fold((f64::MAX, 0.0f64), |(least, most), r| (least.min(r), most.max(r)));
    (most > 0.0).then(|| least / most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burst::Trace;
    use crate::team::Disturbance;

    fn rates(traces: Vec<Trace>) -> Vec<f64> {
        let kernel = kernels::all().iter().find(|k| k.mix == Mix::AllReads).unwrap();
        let burst = BurstResult { chase: None, loads: traces, disturbance: Disturbance::default(), coverage: None };
        let bytes = kernel.read_per_step() as f64;
        window_gbs(&burst, kernel, |ticks| ticks as f64, 2).iter().map(|gbs| gbs / bytes).collect()
    }

    /// Ten steps a tick; windows of 100 ticks.
    fn steady() -> Vec<Option<(u64, u64)>> {
        (0..4).map(|w| Some((w * 100, w * 1000))).collect()
    }

    #[test]
    fn windows_in_which_all_looked_count() {
        assert_eq!(rates(vec![Trace::of(steady()), Trace::of(steady())]), [20.0, 20.0]);
        let mut late = steady();
        late[3] = None;
        assert_eq!(rates(vec![Trace::of(steady()), Trace::of(late)]), [20.0]);
    }

    #[test]
    fn threads_that_never_looked_together_leave_one_sample() {
        // On a host with fewer CPUs than its guest a thread may look only when it starts and when all is over.
        let rare = vec![Some((0, 0)), None, None, Some((400, 1000))];
        assert_eq!(rates(vec![Trace::of(steady()), Trace::of(rare)]), [12.5]);
        let never = vec![None, None, None, Some((400, 0))];
        assert!(rates(vec![Trace::of(steady()), Trace::of(never)]).is_empty());
    }
}
