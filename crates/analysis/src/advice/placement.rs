//! Placement of threads and memory: on the same node, or on several nodes in turn.

use memgauge_model::axis::Axis;
use memgauge_model::experiment::{ChaseOrder, Experiment, Metric};
use memgauge_model::interleave::{Goal, Weights};
use memgauge_model::result::{InterleaveSummary, Reference, Report};
use memgauge_model::topology::Topology;
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;
use memgauge_model::words::{Command, Knob, Verb};

use super::document::{Action, Effect, Ratio, Role, Topic, Why};
use super::evidence::{Found, Results, TopicAdvice, is_whole, longer, why_not};

/// A remote number, the local one of the same CPUs, and their ratio.
type RemoteAndLocal<'a> = (Found<'a>, Found<'a>, Ratio);

/// Whether at least two nodes have CPUs and memory.
pub(super) fn has_nodes(topology: &Topology, _: &IdSet) -> bool {
    topology.nodes.iter().filter(|n| is_whole(topology, n.id)).count() > 1
}

/// Advises whether threads and their memory should be on the same node.
pub(super) fn own_or_remote(results: &Results<'_>) -> TopicAdvice {
    let mut advice = TopicAdvice::default();
    if !results.any_machine(has_nodes) {
        return advice;
    }
    let is_random = |f: &Found<'_>| f.m.at.order == Some(ChaseOrder::WindowLocal);
    let latencies: Vec<Found<'_>> = results.measurements(&[Experiment::IdleLatency], Metric::Latency).filter(is_random).collect();
    let reads = |f: &Found<'_>| f.m.at.mix == Some(Mix::AllReads);
    let bandwidths: Vec<Found<'_>> = results.measurements(&[Experiment::BandwidthMatrix], Metric::Bandwidth).filter(reads).collect();
    let farthest = remote_over_own(&latencies).into_iter().max_by(|a, b| a.2.value.total_cmp(&b.2.value));
    let slowest = remote_over_own(&bandwidths).into_iter().min_by(|a, b| a.2.value.total_cmp(&b.2.value));
    let (latency, bandwidth) = (farthest.map(|p| p.2), slowest.map(|p| p.2));
    let (latency_effect, bandwidth_effect) = (latency.and_then(Ratio::effect), bandwidth.and_then(Ratio::effect));
    let numbers: Vec<(Role, Found<'_>)> =
        [farthest, slowest].into_iter().flatten().flat_map(|(other, own, _)| [(Role::Own, own), (Role::Other, other)]).collect();
    let found: Vec<Found<'_>> = numbers.iter().map(|(_, f)| *f).collect();
    let command = Command::new(Verb::Latency).with(Knob::Matrix).to("latency.json");
    if latency_effect.or(bandwidth_effect).is_some() {
        advice.recommend(
            Topic::Placement,
            Action::KeepLocal { latency, latency_effect, bandwidth, bandwidth_effect },
            &numbers,
            Vec::new(),
        );
    } else if !found.is_empty() {
        advice.add_gap(Topic::Placement, Why::Open, &found, Some(longer(command)));
    } else {
        let unusable: Vec<Found<'_>> = latencies.into_iter().chain(bandwidths).filter(|f| !f.is_usable()).collect();
        let why = if unusable.is_empty() { Why::NotMeasured } else { why_not(&unusable) };
        advice.add_gap(Topic::Placement, why, &unusable, Some(command));
    }
    advice
}

/// Each usable number of another node that has CPUs, with that of the own node from the same CPUs.
fn remote_over_own<'a>(found: &[Found<'a>]) -> Vec<RemoteAndLocal<'a>> {
    let nodes = |f: &Found<'_>| f.m.at.cpu_node.zip(f.m.at.memory_node());
    let usable: Vec<Found<'a>> = found.iter().copied().filter(Found::is_usable).collect();
    let own = |remote: &Found<'a>| {
        let same = |f: &&Found<'a>| {
            let rest = |f: &Found<'a>| f.m.at.without(Axis::Memory);
            std::ptr::eq(f.report, remote.report) && nodes(f).is_some_and(|(cpu, memory)| cpu == memory) && rest(f) == rest(remote)
        };
        usable.iter().find(same).copied()
    };
    let remote = usable.iter().filter(|f| nodes(f).is_some_and(|(cpu, memory)| cpu != memory && is_whole(f.topology(), memory)));
    remote.filter_map(|remote| own(remote).and_then(|own| Some((*remote, own, remote.over(&own)?)))).collect()
}

/// Advises whether to put pages on several nodes in turn, from searches for weights.
pub(super) fn interleaved(results: &Results<'_>) -> TopicAdvice {
    let mut advice = TopicAdvice::default();
    if !results.any_machine(|topology, _| topology.nodes.iter().filter(|n| n.has_memory()).count() > 1) {
        return advice;
    }
    let searched = |metric| results.measurements(&[Experiment::Interleave], metric).collect::<Vec<Found<'_>>>();
    let (bandwidths, latencies) = (searched(Metric::Bandwidth), searched(Metric::Latency));
    let command = Command::new(Verb::Interleave).to("interleave.json");
    for (_, report) in results.reports() {
        for search in &report.interleaves {
            interleaved_by(search, report, (&bandwidths, &latencies), &mut advice, &command);
        }
    }
    if advice.recommendations.is_empty() && advice.gaps.is_empty() {
        return TopicAdvice::gap(Topic::Interleave, Why::NotMeasured, command);
    }
    advice
}

/// Advises from one search: whether several nodes in turn serve better than the nearest.
fn interleaved_by(
    search: &InterleaveSummary,
    report: &Report,
    (bandwidths, latencies): (&[Found<'_>], &[Found<'_>]),
    advice: &mut TopicAdvice,
    command: &Command,
) {
    let nearest = search.gains.iter().find(|gain| gain.over == Reference::NearestOnly).map(|gain| &gain.weights);
    // If the nearest node alone is best, it is compared with equal weights.
    let nearest_is_best = search.recommended.only_node().is_some();
    let equal = Weights::equal(search.nodes.iter().copied());
    let (weights, base) = if nearest_is_best { (equal.as_ref(), Some(&search.recommended)) } else { (Some(&search.recommended), nearest) };
    let (Some(weights), Some(base)) = (weights, base) else { return };
    let has_latency = |weights: &Weights| search.trial(weights).is_some_and(|trial| trial.latency_ns.is_some());
    // Weights that cannot serve the demand were judged by their bandwidth.
    let demand = match search.goal {
        Goal::LatencyAt(gbs) => Some(gbs).filter(|_| has_latency(weights) && has_latency(base)),
        Goal::Bandwidth => None,
    };
    let with = |weights: &Weights| {
        let is_it = |f: &&Found<'_>| {
            std::ptr::eq(f.report, report)
                && f.m.at.weights.as_ref() == Some(weights)
                && (f.m.at.cpus == search.at.cpus || search.at.cpus.is_none())
                && f.m.at.mix == search.at.mix
        };
        let bandwidths = bandwidths.iter().filter(is_it).copied();
        match demand {
            Some(gbs) => at_load(latencies.iter().filter(is_it).copied().zip(bandwidths), gbs),
            None => bandwidths.max_by(|a, b| a.value().total_cmp(&b.value())),
        }
    };
    let (Some(several), Some(one)) = (with(weights), with(base)) else { return };
    let usable = several.is_usable() && one.is_usable();
    let ratio = several.over(&one).filter(|_| usable);
    let gain = if demand.is_some() { Effect::Less } else { Effect::More };
    // One measurement of several must not say the opposite of what the search found with all of them.
    let effect = ratio.and_then(Ratio::effect).filter(|effect| !(nearest_is_best && *effect == gain));
    match ratio.zip(effect) {
        Some((ratio, effect)) => {
            let (mix, weights) = (search.at.mix, weights.clone());
            let action = match demand {
                Some(demand_gbs) => Action::InterleaveForLatency { mix, weights, demand_gbs, latency: ratio, effect },
                None => Action::InterleaveNodes { mix, weights, bandwidth: ratio, effect },
            };
            advice.recommend(Topic::Interleave, action, &[(Role::Interleaved, several), (Role::NearestOnly, one)], Vec::new());
        }
        None => {
            let why = if usable { Why::Open } else { why_not(&[several, one]) };
            advice.add_gap(Topic::Interleave, why, &[several, one], Some(longer(command.clone())));
        }
    }
}

/// Of latencies with the bandwidths that were measured beside them, the one whose bandwidth is closest to this.
fn at_load<'a>(points: impl Iterator<Item = (Found<'a>, Found<'a>)>, gbs: f64) -> Option<Found<'a>> {
    let measured = points.filter(|(latency, bandwidth)| latency.m.at == bandwidth.m.at && latency.m.estimate.value.is_some());
    let off = |bandwidth: &Found<'_>| (bandwidth.value() / gbs - 1.0).abs();
    measured.min_by(|a, b| off(&a.1).total_cmp(&off(&b.1))).map(|(latency, _)| latency)
}
