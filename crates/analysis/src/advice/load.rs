//! How much load to allow: below the knee of a loaded-latency curve.

use memgauge_model::axis::Axis;
use memgauge_model::experiment::{Experiment, Metric};
use memgauge_model::result::{CurveSummary, Report};
use memgauge_model::words::{Command, Verb};

use super::document::{Action, Role, Topic, Why};
use super::evidence::{Found, Results, TopicAdvice, longer, why_not};

/// The command that measures a curve.
fn command() -> Command {
    Command::new(Verb::Loaded).to("loaded.json")
}

/// Advises to stay below the knee of each curve.
pub(super) fn below_the_knee(results: &Results<'_>) -> TopicAdvice {
    let mut advice = TopicAdvice::default();
    for (name, report) in results.reports() {
        for curve in report.curves.iter().filter(|c| c.at.memory_dir.is_none() && c.at.load_nodes.is_none()) {
            of_curve(name, report, curve, &mut advice);
        }
    }
    if advice.recommendations.is_empty() && advice.gaps.is_empty() && results.any_machine(|_, allowed| allowed.len() > 1) {
        return TopicAdvice::gap(Topic::Load, Why::NotMeasured, command());
    }
    advice
}

fn of_curve<'a>(name: &'a str, report: &'a Report, curve: &CurveSummary, advice: &mut TopicAdvice) {
    let points = |metric: Metric| {
        let is_of_curve = move |f: &Found<'a>| {
            f.m.experiment == Experiment::LoadedLatency
                && f.m.metric == metric
                && f.m.at.delay_cycles.is_some()
                && f.m.at.without(Axis::DelayCycles) == curve.at
        };
        report.results.iter().map(|m| Found::new(name, report, m)).filter(is_of_curve).collect::<Vec<_>>()
    };
    let (latencies, bandwidths) = (points(Metric::Latency), points(Metric::Bandwidth));
    let again = || Some(longer(command()));
    let Some(knee) = &curve.knee else {
        advice.add_gap(Topic::Load, Why::NoKnee, &[], again());
        return;
    };
    let at_knee = |points: &[Found<'a>]| points.iter().copied().find(|f| f.m.at.delay_cycles == Some(knee.delay_cycles));
    let highest = bandwidths.iter().copied().filter(Found::is_usable).max_by(|a, b| a.value().total_cmp(&b.value()));
    let most_loaded = latencies.iter().copied().min_by_key(|f| f.m.at.delay_cycles);
    let (Some(latency), Some(bandwidth), Some(highest), Some(most_loaded)) =
        (at_knee(&latencies), at_knee(&bandwidths), highest, most_loaded)
    else {
        let seen: Vec<Found<'a>> = at_knee(&latencies).into_iter().chain(at_knee(&bandwidths)).collect();
        advice.add_gap(Topic::Load, why_not(&seen), &seen, again());
        return;
    };
    let needed = [latency, bandwidth, most_loaded];
    let unusable: Vec<Found<'a>> = needed.into_iter().filter(|f| !f.is_usable()).collect();
    let (Some(share), Some(growth), []) = (bandwidth.over(&highest), most_loaded.over(&latency), &unusable[..]) else {
        advice.add_gap(Topic::Load, why_not(&unusable), &unusable, again());
        return;
    };
    let action = Action::StayBelow { mix: curve.at.mix.unwrap_or_default(), gbs: bandwidth.value(), share, growth };
    let numbers = [(Role::Knee, bandwidth), (Role::Highest, highest), (Role::Knee, latency), (Role::HighestLoad, most_loaded)];
    advice.recommend(Topic::Load, action, &numbers, Vec::new());
}
