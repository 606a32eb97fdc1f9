//! Short trials that decide how to measure: which kernel is the fastest for a traffic, and whether plain stores of whole lines read the line
//! first (read for ownership).
//!
//! Three kinds of stores run in turn over the same buffers: whole lines, parts of lines, and non-temporal ones. A core cannot avoid reading
//! a line of which it stores a part, and never reads for a non-temporal store. When memory limits all three, whole lines that are as slow
//! as parts are read first, and whole lines that are as fast as non-temporal ones are not (Intel's SpecI2M, Arm's write streaming;
//! Laukemann and others, arXiv 2409.08108).

use memgauge_core::plan::Traffic;
use memgauge_core::protocol::{RFO_KINDS, RFO_ROUNDS, RFO_WINDOWS, TRIAL_ROUNDS, TRIAL_WINDOWS};
use memgauge_core::result::{RfoEvidence, RfoReason, Trial};
use memgauge_core::stats;
use memgauge_core::traffic::{Access, Form, LineUse, Mix, Rfo, Width};
use memgauge_kernels::{self as kernels, Kernel};

use super::disturbance::BurstConditions;
use super::kernels::{ChosenKernels, Contest, TrialResult, candidates};
use super::loaders::{LoaderGroup, window_gbs};
use crate::burst::load::Load;
use crate::burst::runner::BurstShape;
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
    let tried: Vec<Trial> = candidates
        .iter()
        .zip(&rates)
        .filter_map(|(kernel, rates)| Some(Trial { kernel: kernel.name.into(), value: stats::median(rates)? }))
        .collect();
    let best = tried.iter().max_by(|a, b| a.value.total_cmp(&b.value)).map(|t| t.kernel.as_str());
    let kernel = candidates.iter().find(|k| best.is_none_or(|name| k.name == name)).copied();
    Ok((kernel.ok_or(CellError::NoKernel { mix: traffic.mix })?, tried))
}

/// Median GB/s of a short burst of loads.
pub(crate) fn burst_gbs(session: &mut Session<'_>, loads: Vec<(u32, Load)>, shape: BurstShape) -> Result<Option<f64>> {
    let burst = session.run_burst(None, loads, shape)?;
    let clock = session.context.clock;
    Ok(stats::median(&window_gbs(&burst, |t| clock.ns(t), shape)))
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
    let won = session.as_trial(|session| {
        compare(session, &candidates(traffic), traffic, Contest::DropSlow, |session, kernel| {
            let loads = group.loads_where(|_| kernel, |l| l.traffic == *traffic, 0)?;
            burst_gbs(session, loads, BurstShape::cell(TRIAL_WINDOWS))
        })
    })?;
    session.calibration.trials.push((key, won.clone()));
    Ok(won)
}

/// The maximum number of rounds: a round with a disturbed burst is repeated while there are not enough others.
const MAX_ROUNDS: usize = 15;
/// Rounds that must agree: on a busy machine each says something else.
const AGREEING: usize = 4;
/// Bandwidths within this factor of each other are the same: above what a short burst scatters.
const SAME: f64 = 1.12;
/// From this factor on they are different. Half of the bus's bytes would be a factor of two, but non-temporal stores have limits of their own:
/// on Zen 5 in a virtual machine they are 1.3 times as fast as stores that must read.
const DIFFERENT: f64 = 1.2;

/// GB/s of each kind of store in one round.
type Round = [Option<f64>; RFO_KINDS];

/// Finds out whether plain stores read first, with the first group that has such stores and large enough buffers; known from then on. Does
/// nothing where nothing depends on it.
pub(crate) fn calibrate_rfo(session: &mut Session<'_>, group: &LoaderGroup) -> Result {
    let mut traffics = group.loaders.iter().map(|l| &l.traffic);
    let depends = |t: &Traffic| t.mix.lines().1 > 0 && !t.mix.non_temporal() && t.form.line != LineUse::Part;
    let files = group.loaders.iter().any(|l| l.memory.any(|plan| plan.directory.is_some() || plan.shared));
    if session.calibration.rfo.is_some() || files || !traffics.any(depends) || !group.memory_sized(session.context.machine) {
        return Ok(());
    }
    let Some(stores) = stores_of_this_cpu() else {
        session.calibration.rfo = Some(RfoEvidence { rfo: Rfo::Unknown, reason: RfoReason::NoKernels, ..RfoEvidence::default() });
        return Ok(());
    };
    let rounds = session.as_trial(|session| measure_rounds(session, group, stores))?;
    session.calibration.rfo = Some(RfoEvidence { cpus: Some(group.cpus()), ..conclude(stores, &rounds) });
    Ok(())
}

fn measure_rounds(session: &mut Session<'_>, group: &LoaderGroup, stores: [&'static Kernel; RFO_KINDS]) -> Result<Vec<Round>> {
    let (mut rounds, mut disturbed): (Vec<Round>, Vec<Round>) = (Vec::new(), Vec::new());
    let (clock, shape) = (session.context.clock, BurstShape::cell(RFO_WINDOWS));
    for _ in 0..MAX_ROUNDS {
        let (mut round, mut undisturbed) = ([None; RFO_KINDS], true);
        for (kernel, gbs) in stores.into_iter().zip(&mut round) {
            let traffic = Traffic { mix: kernel.mix, kernels: vec![kernel.name.into()], form: kernel.form, ..Traffic::default() };
            let burst = session.run_burst(None, group.loads_of_traffic(kernel, &traffic)?, shape)?;
            undisturbed &= BurstConditions::judge_burst(&burst, None).undisturbed();
            *gbs = stats::median(&window_gbs(&burst, |t| clock.ns(t), shape));
            if session.interrupted() {
                return Err(CellError::Interrupted);
            }
        }
        if undisturbed { &mut rounds } else { &mut disturbed }.push(round);
        if rounds.len() == RFO_ROUNDS {
            break;
        }
    }
    if rounds.len() < AGREEING {
        // A busy machine: the rounds that there are must agree all the same.
        let missing = RFO_ROUNDS.saturating_sub(rounds.len());
        rounds.extend(disturbed.into_iter().rev().take(missing));
    }
    Ok(rounds)
}

/// The kernels that are compared: of whole lines, of parts, and non-temporal ones.
fn stores_of_this_cpu() -> Option<[&'static Kernel; RFO_KINDS]> {
    let kernel = |mix: Mix, form: Form| move |k: &&Kernel| k.mix == mix && k.form == form && k.width != Width::String;
    let part = Form { access: Access::Strided, line: LineUse::Part };
    Some([
        // The widest, which is the likeliest to be taken for a whole line.
        kernels::available().filter(kernel(Mix::R1W1, Form::default())).max_by_key(|k| k.width)?,
        // The narrowest: the widest may store a whole line at once.
        kernels::available().filter(kernel(Mix::R1W1, part)).min_by_key(|k| k.width)?,
        kernels::available().filter(kernel(Mix::NtWrite, Form::default())).max_by_key(|k| k.width)?,
    ])
}

/// What the bandwidths of whole lines, parts and non-temporal stores say, in GB/s of lines, round by round.
fn conclude(stores: [&Kernel; RFO_KINDS], rounds: &[Round]) -> RfoEvidence {
    let median = |kind: usize| stats::median(&rounds.iter().filter_map(|r| r[kind]).collect::<Vec<_>>());
    let found: Vec<(Rfo, RfoReason)> = rounds
        .iter()
        .filter_map(|r| match *r {
            [Some(whole), Some(part), Some(nt)] if whole > 0.0 && part > 0.0 && nt > 0.0 => Some(decide(whole, part, nt)),
            _ => None,
        })
        .collect();
    let agreed = found.iter().find(|one| found.iter().filter(|other| other.0 == one.0).count() >= AGREEING);
    let (rfo, reason) = match agreed {
        _ if found.len() < AGREEING => (Rfo::Unknown, RfoReason::TooLittleTime),
        Some(agreed) => *agreed,
        None => (Rfo::Unknown, RfoReason::RoundsDisagree),
    };
    RfoEvidence {
        rfo,
        reason,
        kernels: stores.map(|k| k.name.to_owned()).to_vec(),
        whole_gbs: median(0),
        part_gbs: median(1),
        non_temporal_gbs: median(2),
        cpus: None,
    }
}

fn decide(whole: f64, part: f64, nt: f64) -> (Rfo, RfoReason) {
    let same = |a: f64, b: f64| a / b < SAME && b / a < SAME;
    if nt / part < DIFFERENT {
        return (Rfo::Unknown, RfoReason::NotMemoryBound);
    }
    match () {
        () if same(whole, part) => (Rfo::Yes, RfoReason::AsSlowAsParts),
        () if same(whole, nt) => (Rfo::No, RfoReason::AsFastAsNonTemporal),
        () => (Rfo::Unknown, RfoReason::Between),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_are_compared_with_what_must_read_and_what_does_not() {
        assert_eq!(decide(20.0, 21.0, 40.0).0, Rfo::Yes);
        assert_eq!(decide(39.0, 20.0, 40.0).0, Rfo::No);
        assert_eq!(decide(28.0, 20.0, 40.0).0, Rfo::Unknown, "some do");
        assert_eq!(decide(28.3, 29.4, 39.2).0, Rfo::Yes, "Zen 5 in a virtual machine");
        assert_eq!(decide(20.0, 20.0, 21.0).0, Rfo::Unknown, "no difference where there must be one");
        assert_eq!(decide(60.0, 20.0, 40.0).0, Rfo::Unknown);
    }

    #[test]
    fn a_part_is_less_than_a_line() {
        let Some([whole, part, nt]) = stores_of_this_cpu() else { return };
        assert!(part.width < Width::Avx512 || part.width == Width::Neon);
        assert_eq!((whole.mix, nt.mix), (Mix::R1W1, Mix::NtWrite));
    }

    #[test]
    fn rounds_must_agree() {
        let Some(stores) = stores_of_this_cpu() else { return };
        let (yes, no) = ([Some(10.0), Some(10.0), Some(20.0)], [Some(20.0), Some(10.0), Some(20.0)]);
        let concluded = |rounds: &[Round]| conclude(stores, rounds);
        assert_eq!((concluded(&[yes, yes, no, yes, yes]).rfo, concluded(&[yes; 5]).whole_gbs), (Rfo::Yes, Some(10.0)));
        assert_eq!(concluded(&[yes, no, no, no, no]).rfo, Rfo::No);
        assert_eq!(concluded(&[yes, no, yes, no, yes]).rfo, Rfo::Unknown);
        let starved = concluded(&[[None, Some(1.0), Some(2.0)]; 5]);
        assert_eq!((starved.rfo, starved.whole_gbs, starved.part_gbs), (Rfo::Unknown, None, Some(1.0)));
    }
}
