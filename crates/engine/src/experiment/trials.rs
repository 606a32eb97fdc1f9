//! Short trials that find the fastest kernel for a traffic.

use memgauge_core::plan::Traffic;
use memgauge_core::protocol::{TRIAL_ROUNDS, TRIAL_WINDOWS};
use memgauge_core::stats;
use memgauge_kernels::Kernel;

use super::kernels::{ChosenKernels, Contest, TrialResult, candidates, winner};
use super::loaders::{LoaderGroup, window_gbs};
use crate::burst::load::Load;
use crate::burst::runner::BurstShape;
use crate::error::{CellError, Result};
use crate::session::Session;

/// Measures each candidate once a round and returns the fastest. A single candidate is not tried.
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
    winner(candidates, &rates, traffic.mix)
}

/// Median GB/s of a short burst of loads.
pub(crate) fn burst_gbs(session: &mut Session<'_>, loads: Vec<(u32, Load)>, shape: BurstShape) -> Result<Option<f64>> {
    let burst = session.run_burst(None, loads, shape)?;
    let clock = session.context.clock;
    Ok(stats::median(&window_gbs(&burst, |t| clock.ns(t), shape)))
}

/// The fastest of the plan's kernels for each traffic of a group, by all loaders that make it.
pub(crate) fn choose_kernels(session: &mut Session<'_>, group: &LoaderGroup) -> Result<ChosenKernels> {
    let mut winners: Vec<(&Traffic, &'static Kernel)> = Vec::new();
    let mut chosen = ChosenKernels { kernels: Vec::new(), tried: Vec::new() };
    for loader in &group.loaders {
        let known = winners.iter().find(|(traffic, _)| **traffic == loader.traffic).map(|(_, kernel)| *kernel);
        let kernel = match known {
            Some(kernel) => kernel,
            None => {
                let (kernel, tried) = fastest(session, group, &loader.traffic)?;
                if winners.is_empty() {
                    chosen.tried = tried;
                }
                winners.push((&loader.traffic, kernel));
                kernel
            }
        };
        chosen.kernels.push(kernel);
    }
    Ok(chosen)
}

fn fastest(session: &mut Session<'_>, group: &LoaderGroup, traffic: &Traffic) -> Result<TrialResult> {
    let key = group.trial_key(traffic);
    if let Some((_, known)) = session.calibration.trials.iter().find(|(made, _)| *made == key) {
        return Ok(known.clone());
    }
    let won = session.as_trial(|session| {
        compare(session, &candidates(traffic), traffic, Contest::DropSlow, |session, kernel| {
            let loads = group.loads_where(|_| kernel, |l| l.traffic == *traffic, 0)?;
            burst_gbs(session, loads, BurstShape::cell(TRIAL_WINDOWS))
        })
    })?;
    session.calibration.trials.push((key, won.clone()));
    Ok(won)
}
