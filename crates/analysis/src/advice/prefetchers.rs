//! Whether prefetchers help, from `memgauge prefetch compare`.

use memgauge_model::axis::Axis;
use memgauge_model::experiment::{ChaseOrder, Experiment, Metric, PrefetchRequest};
use memgauge_model::note::NoteCode;
use memgauge_model::words::{Command, Verb};

use super::document::{Action, Effect, Ratio, Role, Topic, Why};
use super::evidence::{Found, Results, TopicAdvice, longer, why_not};

/// The command that measures with prefetchers on and off. It writes registers, which only root may.
pub(super) fn command() -> Command {
    Command::new(Verb::PrefetchCompare).as_root().to("prefetch.json")
}

/// Advises on prefetchers.
pub(super) fn on_or_off(results: &Results<'_>) -> TopicAdvice {
    let bandwidths: Vec<Found<'_>> = results.measurements(&[Experiment::PrefetchComparison], Metric::Bandwidth).collect();
    let is_random = |f: &Found<'_>| f.m.at.order == Some(ChaseOrder::WindowLocal);
    let latencies: Vec<Found<'_>> = results.measurements(&[Experiment::PrefetchComparison], Metric::Latency).filter(is_random).collect();
    let all: Vec<Found<'_>> = bandwidths.iter().chain(&latencies).copied().collect();
    if all.is_empty() {
        // Windows lets only drivers write these registers.
        return match results.are_of_linux() {
            true => TopicAdvice::gap(Topic::Prefetchers, Why::NotMeasured, command()),
            false => TopicAdvice::without_command(Topic::Prefetchers, Why::NotMeasured),
        };
    }
    if all.iter().any(|f| f.report.notes.iter().any(|note| note.code == NoteCode::PrefetchOffNotEffective)) {
        return TopicAdvice::gap(Topic::Prefetchers, Why::PrefetchersStillOn, command());
    }
    let mut advice = TopicAdvice::default();
    let (reading, chasing) = (off_and_on(&bandwidths), off_and_on(&latencies));
    let ratio = |pair: Option<(Found<'_>, Found<'_>)>| pair.and_then(|(off, on)| off.over(&on));
    let (bandwidth, latency) = (ratio(reading), ratio(chasing));
    let (bandwidth_effect, latency_effect) = (bandwidth.and_then(Ratio::effect), latency.and_then(Ratio::effect));
    let pairs = [reading, chasing].into_iter().flatten();
    let numbers: Vec<(Role, Found<'_>)> = pairs.flat_map(|(off, on)| [(Role::PrefetchersOn, on), (Role::PrefetchersOff, off)]).collect();
    let gains = bandwidth_effect == Some(Effect::More) || latency_effect == Some(Effect::Less);
    let loses = bandwidth_effect == Some(Effect::Less) || latency_effect == Some(Effect::More);
    // Prefetchers stay on if either loses without them. Otherwise both must be known, because the other one may lose, or gain.
    let sides = [(reading, bandwidth_effect, &bandwidths), (chasing, latency_effect, &latencies)];
    if !loses && sides.iter().any(|(_, effect, _)| effect.is_none()) {
        let missing: Vec<&Vec<Found<'_>>> = sides.iter().filter(|(pair, ..)| pair.is_none()).map(|(.., found)| *found).collect();
        let unusable: Vec<Found<'_>> = missing.iter().flat_map(|found| found.iter().copied()).collect();
        let why = match () {
            () if missing.is_empty() => Why::Open,
            () if missing.iter().any(|found| found.is_empty()) => Why::NotMeasured,
            () => why_not(&unusable),
        };
        let found: Vec<Found<'_>> = numbers.iter().map(|(_, f)| *f).chain(unusable).collect();
        advice.add_gap(Topic::Prefetchers, why, &found, Some(longer(command())));
        return advice;
    }
    let to = if gains && !loses { PrefetchRequest::Off } else { PrefetchRequest::On };
    let action = Action::SetPrefetchers { to, bandwidth, bandwidth_effect, latency, latency_effect };
    advice.recommend(Topic::Prefetchers, action, &numbers, Vec::new());
    advice
}

/// The first usable pair at the same coordinates, of the own node where it was measured.
pub(super) fn off_and_on<'a>(found: &[Found<'a>]) -> Option<(Found<'a>, Found<'a>)> {
    let of_state = |state| found.iter().copied().filter(move |f| f.m.at.prefetch == Some(state) && f.is_usable());
    let pairs = of_state(PrefetchRequest::Off).filter_map(|off| {
        let rest = |f: &Found<'a>| f.m.at.without(Axis::Prefetch);
        let on = of_state(PrefetchRequest::On).find(|on| std::ptr::eq(on.report, off.report) && rest(on) == rest(&off))?;
        Some((off, on))
    });
    let pairs: Vec<_> = pairs.collect();
    let is_own = |(off, _): &&(Found<'a>, Found<'a>)| off.m.at.cpu_node.is_some() && off.m.at.cpu_node == off.m.at.memory_node();
    pairs.iter().find(is_own).or(pairs.first()).copied()
}
