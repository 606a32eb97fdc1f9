//! Short trials that decide how to measure: which kernel is the fastest for a traffic, and whether plain stores of whole lines read the line
//! first (see [`stores`](crate::stores)).

use memgauge_kernels::Kernel;
use memgauge_model::estimate::NotMeasured;
use memgauge_model::plan::Traffic;
use memgauge_model::protocol::{MAX_NEIGHBOURS, MAX_TRIAL_REPEATS, RFO_WINDOWS, TRIAL_WINDOWS, WINDOW, trial_rounds};
use memgauge_model::result::{KernelTrial, RfoReason};
use memgauge_model::stats;
use memgauge_model::traffic::Width;

use super::disturbance::BurstConditions;
use super::loaders::{LoaderGroup, window_gbs};
use crate::burst::load::Load;
use crate::burst::result::BurstShape;
use crate::error::Result;
use crate::kernel_choice::{ChosenKernels, Contest, KnownTrial, TrialResult, candidates};
use crate::neighbours::NeighbourWatch;
use crate::session::Session;
use crate::stores::{self, Round, Stores, StoresRead};

/// A rate, and whether it is one of threads that were on their CPUs.
pub(crate) type TrialRate = Option<(f64, bool)>;

/// Bursts of one kernel differ by more than this share of the fastest only where something disturbed them.
const UNSTEADY: f64 = 0.2;

/// The clean rates of each candidate, and how many bursts may still be repeated.
struct Rounds<'k> {
    candidates: &'k [&'static Kernel],
    rates: Vec<Vec<f64>>,
    repeats: usize,
}

impl Rounds<'_> {
    /// Measures the kernels that contend once. A burst during which threads were off their CPUs is repeated.
    fn measure(
        &mut self,
        session: &mut Session<'_>,
        contenders: Vec<bool>,
        rate: &mut impl FnMut(&mut Session<'_>, &'static Kernel) -> Result<TrialRate>,
    ) -> Result {
        for ((kernel, rates), _) in self.candidates.iter().zip(&mut self.rates).zip(contenders).filter(|(_, contends)| *contends) {
            for _ in 0..=MAX_TRIAL_REPEATS {
                let measured = rate(session, kernel)?;
                if session.interrupted() {
                    return Err(NotMeasured::Interrupted);
                }
                if let Some((rate, true)) = measured {
                    rates.push(rate);
                    break;
                }
                if self.repeats == 0 {
                    break;
                }
                self.repeats -= 1;
            }
        }
        Ok(())
    }

    /// The fastest so far, by `value` of its rates. If none has a rate, it is the widest, which is mostly the fastest.
    fn best(&self, value: fn(&[f64]) -> Option<f64>) -> Option<usize> {
        let rated = self.rates.iter().enumerate().filter_map(|(index, rates)| Some((index, value(rates)?)));
        let best = rated.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index);
        // A string instruction has no width of its own.
        let width = |index: &usize| Some(self.candidates[*index].width).filter(|width| *width != Width::String);
        best.or_else(|| (0..self.candidates.len()).max_by_key(width))
    }

    fn unsteady(&self, index: usize) -> bool {
        let highest = highest(&self.rates[index]).unwrap_or(0.0);
        self.rates[index].iter().any(|rate| *rate < highest * (1.0 - UNSTEADY))
    }
}

fn highest(rates: &[f64]) -> Option<f64> {
    rates.iter().copied().max_by(f64::total_cmp)
}

/// Measures each candidate once a round, until bursts are clean. Returns the one with the highest median rate, and the rates of all. A single
/// candidate is not tried. If the winner's own bursts differ much, all run as many rounds again, and the best burst of each counts:
/// disturbances only slow a kernel down.
pub(crate) fn compare(
    session: &mut Session<'_>,
    candidates: &[&'static Kernel],
    traffic: &Traffic,
    contest: Contest,
    mut rate: impl FnMut(&mut Session<'_>, &'static Kernel) -> Result<TrialRate>,
) -> Result<TrialResult> {
    let mut rounds = Rounds { candidates, rates: vec![Vec::new(); candidates.len()], repeats: candidates.len() * contest.rounds() };
    let several = candidates.len() > 1;
    for round in 0..if several { contest.rounds() } else { 0 } {
        let contenders = contest.contenders(&rounds.rates, round);
        rounds.measure(session, contenders, &mut rate)?;
    }
    let mut value: fn(&[f64]) -> Option<f64> = stats::median;
    let mut best = rounds.best(value).ok_or(NotMeasured::NoKernel { mix: traffic.mix })?;
    if several && rounds.unsteady(best) {
        value = highest;
        for _ in 0..contest.rounds() {
            rounds.measure(session, vec![true; candidates.len()], &mut rate)?;
        }
        best = rounds.best(value).unwrap_or(best);
    }
    let tried = candidates
        .iter()
        .zip(&rounds.rates)
        .filter_map(|(kernel, rates)| Some(KernelTrial { kernel: kernel.name.into(), value: value(rates)? }));
    let busy = several && rounds.rates.iter().any(Vec::is_empty);
    Ok(TrialResult { kernel: candidates[best], tried: tried.collect(), busy })
}

/// Median GB/s of a short burst of loads.
pub(crate) fn burst_gbs(session: &mut Session<'_>, loads: Vec<(u32, Load)>, shape: BurstShape) -> Result<TrialRate> {
    let burst = session.run_burst(None, loads, shape)?;
    let clock = session.context.clock;
    let windows = burst.windows(&clock, shape);
    Ok(stats::median(&window_gbs(&burst.loads, &windows, &clock)).map(|gbs| (gbs, windows.clean)))
}

/// The fastest of the plan's kernels for each traffic of a group, by all loaders that make it.
pub(crate) fn choose_kernels(session: &mut Session<'_>, group: &LoaderGroup) -> Result<ChosenKernels> {
    let mut chosen = ChosenKernels { kernels: Vec::with_capacity(group.loaders.len()), tried: Vec::new(), busy: false };
    for (index, loader) in group.loaders.iter().enumerate() {
        let earlier = group.loaders[..index].iter().position(|l| l.traffic == loader.traffic);
        let kernel = if let Some(earlier) = earlier {
            chosen.kernels[earlier]
        } else {
            let won = fastest(session, group, &loader.traffic)?;
            if index == 0 {
                chosen.tried = won.tried;
            }
            chosen.busy |= won.busy;
            won.kernel
        };
        chosen.kernels.push(kernel);
    }
    Ok(chosen)
}

fn fastest(session: &mut Session<'_>, group: &LoaderGroup, traffic: &Traffic) -> Result<TrialResult> {
    let key = group.trial_key(traffic, &session.context.machine.topology);
    let known = session.calibration.trials.iter().position(|known| known.key == key);
    if let Some(known) = known.map(|at| &session.calibration.trials[at]).filter(|known| known.is_final()) {
        return Ok(known.won.clone());
    }
    let mut kernels = candidates(traffic);
    // If none fits, the first of them says so.
    if kernels.iter().any(|kernel| group.fits(kernel, traffic)) {
        kernels.retain(|kernel| group.fits(kernel, traffic));
    }
    let neighbours = NeighbourWatch::start(&session.context.root, &session.runner.neighbours);
    // The plan's budget decides, and not the time that remains: later cells use the outcome.
    let contest = Contest::DropSlow { rounds: trial_rounds(session.plan.stop.budget_s) };
    let mut won = session.as_trial(|session| {
        compare(session, &kernels, traffic, contest, |session, kernel| {
            let loads = group.loads_where(|_| kernel, |l| l.traffic == *traffic, 0)?;
            burst_gbs(session, loads, session.shape(TRIAL_WINDOWS))
        })
    })?;
    // They may have been busy while one kernel ran and idle while another one did.
    let busy = neighbours.finish(&session.context.root).and_then(|shares| shares.most()).is_some_and(|share| share > MAX_NEIGHBOURS);
    won.busy |= busy && kernels.len() > 1;
    let trials = &mut session.calibration.trials;
    let times = known.map_or(0, |at| trials.swap_remove(at).times) + 1;
    trials.push(KnownTrial { key, won: won.clone(), times });
    Ok(won)
}

/// Whether the plain stores of a group read lines first. Measures it if the group's class is new: its traffic, CPUs, memory and kernel.
pub(crate) fn stores_read(session: &mut Session<'_>, group: &LoaderGroup, chosen: &ChosenKernels) -> Result<StoresRead> {
    let Some(&kernel) = chosen.kernels.iter().find(|k| stores::must_be_measured(k)) else {
        return Ok(StoresRead::unknown(RfoReason::NoKernels));
    };
    let Some(traffic) = group.only_traffic().filter(|_| chosen.kernels.iter().all(|k| k.name == kernel.name)) else {
        return Ok(StoresRead::unknown(RfoReason::DifferentTraffic));
    };
    let plans = || group.loaders.iter().flat_map(|l| l.memory.plans());
    if plans().any(|plan| plan.directory.is_some() || plan.shared) {
        return Ok(StoresRead::unknown(RfoReason::Files));
    }
    if !group.memory_sized(session.context.machine) {
        return Ok(StoresRead::unknown(RfoReason::Caches));
    }
    let class = group.trial_key(traffic, &session.context.machine.topology);
    if let Some(known) = session.calibration.stores.find(&class, kernel) {
        return Ok(known);
    }
    let rounds = match stores::compared_with(kernel) {
        Some(compared) => Some((compared, session.as_trial(|session| compare_stores(session, group, compared))?)),
        None => None,
    };
    let found = group.conclude_stores(kernel, rounds);
    Ok(session.calibration.stores.add(class, kernel, found))
}

fn compare_stores(session: &mut Session<'_>, group: &LoaderGroup, stores: Stores) -> Result<Vec<Round>> {
    // Windows of the usual length however short cells are: every result of the run depends on what stores read.
    let (clock, shape) = (session.context.clock, BurstShape { windows: RFO_WINDOWS, window: WINDOW });
    stores::measure_rounds(stores, |kernel| {
        let burst = session.run_burst(None, group.loads_at_full_speed(kernel)?, shape)?;
        if session.interrupted() {
            return Err(NotMeasured::Interrupted);
        }
        let windows = burst.windows(&clock, shape);
        let undisturbed = BurstConditions::judge_burst(&burst, &windows, None).undisturbed();
        Ok((stats::median(&window_gbs(&burst.loads, &windows, &clock)), undisturbed))
    })
}
