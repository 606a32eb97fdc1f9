//! How many threads to use, from ramps; and whether second hardware threads of cores add bandwidth.

use std::collections::BTreeMap;

use memgauge_model::axis::Axis;
use memgauge_model::experiment::{Coordinates, Experiment, Metric};
use memgauge_model::topology::Topology;
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;
use memgauge_model::words::{Command, Knob, Verb};

use super::document::{Action, Doubt, Ratio, Role, Topic, Why};
use super::evidence::{Found, Results, TopicAdvice, longer, why_not};
use crate::conclusions::curve::furthest_below_line;

/// The share of the highest bandwidth that is enough.
pub(super) const ENOUGH: f64 = 0.95;

/// The command that measures a ramp.
pub(super) fn ramp_command() -> Command {
    Command::new(Verb::Bandwidth).with(Knob::Ramp).to("ramp.json")
}

/// Advises on the number of threads: the fewest of each ramp that give [`ENOUGH`] of its highest bandwidth.
pub(super) fn threads(results: &Results<'_>) -> TopicAdvice {
    let mut ramps: BTreeMap<(Coordinates, String), Vec<Found<'_>>> = BTreeMap::new();
    for found in results.measurements(&[Experiment::BandwidthRamp], Metric::Bandwidth) {
        let key = (found.m.at.without(Axis::Cpus), found.number(Role::All).result);
        ramps.entry(key).or_default().push(found);
    }
    let mut advice = TopicAdvice::default();
    for points in ramps.into_values() {
        ramp(points, &mut advice);
    }
    if advice.recommendations.is_empty() && advice.gaps.is_empty() && results.any_machine(|_, allowed| allowed.len() > 1) {
        return TopicAdvice::gap(Topic::Threads, Why::NotMeasured, ramp_command());
    }
    advice
}

/// One ramp: points that differ in their CPUs only.
fn ramp(mut points: Vec<Found<'_>>, advice: &mut TopicAdvice) {
    points.sort_by_key(Found::cpus);
    let (usable, left_out): (Vec<Found<'_>>, Vec<Found<'_>>) = points.iter().partition(|p| p.is_usable());
    let highest = usable.iter().copied().max_by(|a, b| a.value().total_cmp(&b.value()));
    // Without the largest number of threads, and without anything to compare with it, nothing can be said of them.
    let (Some(highest), Some(all)) = (highest, points.last().filter(|p| p.is_usable() && usable.len() > 1)) else {
        advice.add_gap(Topic::Threads, why_not(&left_out), &left_out, Some(longer(ramp_command())));
        return;
    };
    let Some(chosen) = usable.iter().position(|p| p.value() >= ENOUGH * highest.value()) else { return };
    let best = usable[chosen];
    let is_highest = best.cpus() == highest.cpus();
    let Some(share) = (if is_highest { Some(Ratio::ONE) } else { best.over(&highest) }) else { return };
    let gain_and_cost: Vec<(f64, f64)> = usable.iter().map(|p| (p.value(), f64::from(p.cpus()))).collect();
    let action = Action::UseThreads {
        mix: best.m.at.mix.unwrap_or_default(),
        threads: best.cpus(),
        of: all.cpus(),
        share,
        knee: furthest_below_line(&gain_and_cost).map(|knee| usable[knee].cpus()),
    };
    let fewer = chosen.checked_sub(1).map(|below| (Role::Fewer, usable[below]));
    let mut numbers = vec![(Role::Advised, best)];
    numbers.extend((!is_highest).then_some((Role::Highest, highest)));
    numbers.extend((all.cpus() > highest.cpus()).then_some((Role::All, *all)));
    numbers.extend(fewer);
    let mut doubts = Vec::new();
    if share.low < ENOUGH {
        doubts.push(Doubt::IntervalTooWide);
    }
    if !left_out.is_empty() {
        doubts.push(Doubt::PointsLeftOut { threads: left_out.iter().map(Found::cpus).collect() });
    }
    advice.recommend(Topic::Threads, action, &numbers, doubts);
}

/// Advises on second hardware threads: bandwidth of all threads of the same cores against one thread on each.
pub(super) fn second_threads(results: &Results<'_>) -> TopicAdvice {
    let shared = |topology: &Topology, cpus: &IdSet| topology.one_per_core(cpus).len() < cpus.len();
    let mut advice = TopicAdvice::default();
    if !results.any_machine(shared) {
        return advice;
    }
    let experiments = &[Experiment::BandwidthRamp, Experiment::BandwidthSearch, Experiment::Bandwidth];
    let all: Vec<Found<'_>> = results.measurements(experiments, Metric::Bandwidth).filter(|f| f.m.at.cpus.is_some()).collect();
    let mut by_mix: BTreeMap<Mix, (Found<'_>, Found<'_>)> = BTreeMap::new();
    for more in &all {
        let (Some(cpus), Some(mix)) = (&more.m.at.cpus, more.m.at.mix) else { continue };
        let firsts = more.topology().one_per_core(cpus);
        let rest = |f: &Found<'_>| f.m.at.without(Axis::Cpus);
        // In another file the machine may have been in another state.
        let is_pair = |less: &&Found<'_>| {
            std::ptr::eq(less.report, more.report)
                && less.m.at.cpus.as_ref() == Some(&firsts)
                && rest(less) == rest(more)
                && less.is_usable()
        };
        let Some(less) = all.iter().filter(|_| firsts.len() < cpus.len()).find(is_pair) else { continue };
        let is_larger = by_mix.get(&mix).is_none_or(|(known, _)| known.cpus() < more.cpus());
        if more.is_usable() && is_larger {
            by_mix.insert(mix, (*more, *less));
        }
    }
    for (mix, (more, less)) in by_mix {
        let Some(bandwidth) = more.over(&less) else { continue };
        match bandwidth.effect() {
            Some(effect) => {
                let action = Action::UseSecondThreads { mix, cores: less.cpus(), threads: more.cpus(), bandwidth, effect };
                advice.recommend(Topic::Smt, action, &[(Role::All, more), (Role::OnePerCore, less)], Vec::new());
            }
            None => advice.add_gap(Topic::Smt, Why::Open, &[more, less], command(results).map(longer)),
        }
    }
    if advice.recommendations.is_empty() && advice.gaps.is_empty() {
        advice.add_gap(Topic::Smt, Why::NotMeasured, &[], command(results));
    }
    advice
}

/// The command that measures one thread on each core, and all of them.
fn command(results: &Results<'_>) -> Option<Command> {
    let (_, report) = results.reports().next()?;
    let cpus = report.machine.default_cpus();
    let cores = report.machine.topology.one_per_core(&cpus).len();
    Some(Command::new(Verb::Bandwidth).set(Knob::Ramp, format!("{cores},{}", cpus.len())).to("smt.json"))
}
