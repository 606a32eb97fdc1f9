//! Short trials that decide how to measure: which kernel is the fastest for a traffic, and whether plain stores of whole lines read the line
//! first (see [`stores`](super::stores)).

use memgauge_core::plan::Traffic;
use memgauge_core::protocol::{RFO_WINDOWS, TRIAL_ROUNDS, TRIAL_WINDOWS};
use memgauge_core::result::{KernelTrial, RfoReason};
use memgauge_core::stats;
use memgauge_kernels::Kernel;

use super::disturbance::BurstConditions;
use super::kernels::{ChosenKernels, Contest, TrialResult, candidates};
use super::loaders::{LoaderGroup, window_gbs};
use super::stores::{self, Round, Stores, StoresRead};
use crate::burst::load::Load;
use crate::burst::result::BurstShape;
use crate::error::{CellError, Result};
use crate::session::Session;

/// Measures each candidate once a round. Returns the one with the highest median rate, and the rates of all. A single candidate is not tried.
pub(crate) fn compare(
    session: &mut Session<'_>,
    candidates: &[&'static Kernel],
    traffic: &Traffic,
    contest: Contest,
    mut rate: impl FnMut(&mut Session<'_>, &'static Kernel) -> Result<Option<f64>>,
) -> Result<TrialResult> {
    let mut rates = vec![Vec::new(); candidates.len()];
    for round in 0..if candidates.len() > 1 { TRIAL_ROUNDS } else { 0 } {
        let contenders = contest.contenders(&rates, round);
        for ((kernel, rates), _) in candidates.iter().zip(&mut rates).zip(contenders).filter(|(_, contends)| *contends) {
            rates.extend(rate(session, kernel)?);
            if session.interrupted() {
                return Err(CellError::Interrupted);
            }
        }
    }
    let tried: Vec<KernelTrial> = candidates
        .iter()
        .zip(&rates)
        .filter_map(|(kernel, rates)| Some(KernelTrial { kernel: kernel.name.into(), value: stats::median(rates)? }))
        .collect();
    let best = tried.iter().max_by(|a, b| a.value.total_cmp(&b.value)).map(|t| t.kernel.as_str());
    let kernel = candidates.iter().find(|k| best.is_none_or(|name| k.name == name)).copied();
    Ok((kernel.ok_or(CellError::NoKernel { mix: traffic.mix })?, tried))
}

/// Median GB/s of a short burst of loads.
pub(crate) fn burst_gbs(session: &mut Session<'_>, loads: Vec<(u32, Load)>, shape: BurstShape) -> Result<Option<f64>> {
    let burst = session.run_burst(None, loads, shape)?;
    let clock = session.context.clock;
    Ok(stats::median(&window_gbs(&burst.loads, &burst.windows(&clock, shape), &clock)))
}

/// The fastest of the plan's kernels for each traffic of a group, by all loaders that make it.
pub(crate) fn choose_kernels(session: &mut Session<'_>, group: &LoaderGroup) -> Result<ChosenKernels> {
    let mut chosen = ChosenKernels { kernels: Vec::with_capacity(group.loaders.len()), tried: Vec::new() };
    for (index, loader) in group.loaders.iter().enumerate() {
        let earlier = group.loaders[..index].iter().position(|l| l.traffic == loader.traffic);
        let kernel = if let Some(earlier) = earlier {
            chosen.kernels[earlier]
        } else {
            let (kernel, tried) = fastest(session, group, &loader.traffic)?;
            if index == 0 {
                chosen.tried = tried;
            }
            kernel
        };
        chosen.kernels.push(kernel);
    }
    Ok(chosen)
}

fn fastest(session: &mut Session<'_>, group: &LoaderGroup, traffic: &Traffic) -> Result<TrialResult> {
    let key = group.trial_key(traffic, &session.context.machine.topology);
    if let Some((_, known)) = session.calibration.trials.iter().find(|(made, _)| *made == key) {
        return Ok(known.clone());
    }
    let mut kernels = candidates(traffic);
    // If none fits, the first of them says so.
    if kernels.iter().any(|kernel| group.fits(kernel, traffic)) {
        kernels.retain(|kernel| group.fits(kernel, traffic));
    }
    let won = session.as_trial(|session| {
        compare(session, &kernels, traffic, Contest::DropSlow, |session, kernel| {
            let loads = group.loads_where(|_| kernel, |l| l.traffic == *traffic, 0)?;
            burst_gbs(session, loads, BurstShape::cell(TRIAL_WINDOWS))
        })
    })?;
    session.calibration.trials.push((key, won.clone()));
    Ok(won)
}

/// What the plain stores of a group do. Measured where the class of the group is new: its traffic, CPUs, memory and kernel.
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
    // Taken out while the session measures, and put back whatever comes of it.
    let mut known = std::mem::take(&mut session.calibration.stores);
    let machine = session.context.machine;
    let found = group.stores_read(traffic, &machine.topology, kernel, &mut known, |stores| {
        session.as_trial(|session| compare_stores(session, group, stores))
    });
    session.calibration.stores = known;
    found
}

fn compare_stores(session: &mut Session<'_>, group: &LoaderGroup, stores: Stores) -> Result<Vec<Round>> {
    let (clock, shape) = (session.context.clock, BurstShape::cell(RFO_WINDOWS));
    stores::measure_rounds(stores, |kernel| {
        let burst = session.run_burst(None, group.loads_at_full_speed(kernel)?, shape)?;
        if session.interrupted() {
            return Err(CellError::Interrupted);
        }
        let windows = burst.windows(&clock, shape);
        let undisturbed = BurstConditions::judge_burst(&burst, &windows, None).undisturbed();
        Ok((stats::median(&window_gbs(&burst.loads, &windows, &clock)), undisturbed))
    })
}
