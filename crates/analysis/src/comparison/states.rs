//! Runs in the same state of the machine, by their stamps.

use memgauge_model::result::{MachineState, ProbeComparison, Report, Stamp};

use super::outcome::{ComparisonOptions, SidesState, StateOfSides};
use crate::conclusions::state::compare;

/// The runs that are compared, and what their stamps say.
pub(super) struct Sorted<'r> {
    pub(super) before: Vec<&'r Report>,
    pub(super) after: Vec<&'r Report>,
    pub(super) state: Option<SidesState>,
}

/// Keeps the runs of the state that most runs of both sides have. If no state is on both sides, all runs are kept, and `state` says how the sides
/// differ. It is absent if a run has no stamp, or the sides are of two machines.
pub(super) fn sort<'r>(before: &'r [Report], after: &'r [Report], options: ComparisonOptions) -> Sorted<'r> {
    let all: Vec<&Report> = before.iter().chain(after).collect();
    let everything = |state| Sorted { before: before.iter().collect(), after: after.iter().collect(), state };
    let stamps: Option<Vec<&Stamp>> = all.iter().map(|run| stamp(run)).collect();
    let Some(stamps) = stamps.filter(|_| of_one_machine(&all)) else { return everything(None) };
    let states = states(&stamps);
    let (of_before, of_after) = states.split_at(before.len());
    let count = |side: &[usize], state: usize| side.iter().filter(|own| **own == state).count();
    let shared = |state: &usize| count(of_before, *state) > 0 && count(of_after, *state) > 0;
    let weight = |state: &usize| (count(of_before, *state).min(count(of_after, *state)), count(&states, *state), usize::MAX - state);
    let several = states.iter().any(|state| *state > 0);
    let common = (0..=states.iter().copied().max().unwrap_or(0)).filter(shared).max_by_key(weight);
    match common {
        _ if !several => everything(Some(SidesState { state: StateOfSides::Same, left_out: (0, 0), changes: Vec::new() })),
        Some(state) if !options.across => {
            let keep = |runs: &'r [Report], own: &[usize]| -> Vec<&'r Report> {
                runs.iter().zip(own).filter(|(_, own)| **own == state).map(|(run, _)| run).collect()
            };
            let (kept_before, kept_after) = (keep(before, of_before), keep(after, of_after));
            let left_out = ((before.len() - kept_before.len()) as u32, (after.len() - kept_after.len()) as u32);
            let state = SidesState { state: StateOfSides::Sorted, left_out, changes: Vec::new() };
            Sorted { before: kept_before, after: kept_after, state: Some(state) }
        }
        Some(_) => everything(Some(SidesState { state: StateOfSides::Mixed, left_out: (0, 0), changes: Vec::new() })),
        None => {
            let changes = changes(stamps[0], stamps[before.len()]);
            // Commands that ran in turn made these states: the machine itself does not change in step with them.
            let state = if options.in_turn { StateOfSides::MadeByCommands } else { StateOfSides::Different };
            everything(Some(SidesState { state, left_out: (0, 0), changes }))
        }
    }
}

/// The stamp that stands for a run: the first, unless the run was interrupted before its end.
fn stamp(run: &Report) -> Option<&Stamp> {
    run.state.as_deref().and_then(|MachineState { stamps, .. }| stamps.first())
}

/// Whether no two of them name different machines.
fn of_one_machine(runs: &[&Report]) -> bool {
    let mut ids = runs.iter().filter_map(|run| run.run.host.as_ref()?.machine_id_hash.as_ref());
    ids.next().is_none_or(|first| ids.all(|id| id == first))
}

/// The number of each run's state: that of the first run whose stamp it agrees with.
fn states(stamps: &[&Stamp]) -> Vec<usize> {
    let mut firsts: Vec<&Stamp> = Vec::new();
    let mut states = Vec::with_capacity(stamps.len());
    for &stamp in stamps {
        let known = firsts.iter().position(|first| changes(first, stamp).is_empty());
        if known.is_none() {
            firsts.push(stamp);
        }
        states.push(known.unwrap_or(firsts.len() - 1));
    }
    states
}

/// The probes that differ, the largest change first. Settings are not among them: they are what people change.
fn changes(before: &Stamp, after: &Stamp) -> Vec<ProbeComparison> {
    compare(before, after, Vec::new(), None).changes().into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use memgauge_model::result::{ProbeReading, StampProbe};
    use memgauge_model::traffic::Mix;
    use memgauge_model::units::IdSet;

    use super::*;
    use crate::comparison::{ComparisonVerdict, Inconclusive, compare as compare_runs};
    use crate::conclusions::limit::tests::{bandwidth, machine, report};

    fn run(latency_ns: f64) -> Report {
        let probe = StampProbe::MemoryLatency;
        let reading = ProbeReading {
            probe,
            unit: probe.unit().into(),
            value: Some(latency_ns),
            not_measured: None,
            rounds: vec![latency_ns; 5],
            cpus: IdSet::one(0),
            bytes: None,
            pages: None,
        };
        let stamps = vec![Stamp { probes: vec![reading], ..Stamp::default() }];
        Report { state: Some(Box::new(MachineState { stamps, compared: None })), ..report(machine(), Vec::new()) }
    }

    fn runs(latencies: &[f64]) -> Vec<Report> {
        latencies.iter().map(|ns| run(*ns)).collect()
    }

    #[test]
    fn runs_are_compared_within_the_state_that_most_of_both_sides_have() {
        let (before, after) = (runs(&[120.0, 142.0, 121.0, 120.5]), runs(&[141.0, 120.0, 121.5, 155.0]));
        let options = ComparisonOptions::default();
        let sorted = sort(&before, &after, options);
        let state = sorted.state.unwrap();
        assert_eq!((state.state, state.left_out), (StateOfSides::Sorted, (1, 2)));
        assert_eq!((sorted.before.len(), sorted.after.len()), (3, 2));
        let across = sort(&before, &after, ComparisonOptions { across: true, ..options });
        assert_eq!((across.state.unwrap().state, across.before.len()), (StateOfSides::Mixed, 4));
    }

    #[test]
    fn sides_without_a_common_state_say_in_what_they_differ() {
        let (before, after) = (runs(&[120.0, 121.0]), runs(&[142.0, 141.0]));
        let sorted = sort(&before, &after, ComparisonOptions::default());
        let state = sorted.state.unwrap();
        assert!(state.state == StateOfSides::Different && state.changes.len() == 1 && sorted.before.len() == 2, "{state:?}");
        let in_turn = sort(&before, &after, ComparisonOptions { in_turn: true, ..ComparisonOptions::default() });
        assert_eq!(in_turn.state.unwrap().state, StateOfSides::MadeByCommands);
        let again = runs(&[120.0]);
        assert_eq!(sort(&before, &again, ComparisonOptions::default()).state.unwrap().state, StateOfSides::Same);
    }

    #[test]
    fn nothing_is_shown_by_numbers_of_different_states_unless_that_is_asked_for() {
        let side = |state_ns: f64, gbs: f64| {
            let number = |gbs: f64| bandwidth("0", Some(0), Mix::AllReads, gbs, None);
            let with_number = |gbs: f64| Report { results: vec![number(gbs)], ..run(state_ns) };
            [0.999, 1.0, 1.001].map(|factor| with_number(gbs * factor)).to_vec()
        };
        let (before, after) = (side(120.0, 40.0), side(142.0, 30.0));
        let verdict = |across| {
            let options = ComparisonOptions { across, ..ComparisonOptions::default() };
            let compared = compare_runs(("before", &before), ("after", &after), options);
            (compared.verdict, compared.cells[0].open, compared.state.unwrap().state)
        };
        assert_eq!(verdict(false), (ComparisonVerdict::Inconclusive, Some(Inconclusive::AnotherState), StateOfSides::Different));
        assert_eq!(verdict(true), (ComparisonVerdict::Worse, None, StateOfSides::Different));
    }

    #[test]
    fn nothing_is_said_of_two_machines_or_of_runs_without_stamps() {
        let (mut before, mut after) = (runs(&[120.0]), runs(&[142.0]));
        let host = |id: &str| Some(memgauge_model::result::Host { hostname: None, machine_id_hash: Some(id.into()) });
        (before[0].run.host, after[0].run.host) = (host("a"), host("b"));
        assert!(sort(&before, &after, ComparisonOptions::default()).state.is_none());
        after[0].run.host = host("a");
        assert!(sort(&before, &after, ComparisonOptions::default()).state.is_some());
        after[0].state = None;
        assert!(sort(&before, &after, ComparisonOptions::default()).state.is_none());
    }
}
