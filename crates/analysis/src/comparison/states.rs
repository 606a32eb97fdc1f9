//! Runs in the same state of the machine, by their stamps.

use memgauge_model::result::{MachineState, ProbeComparison, Report, Stamp, StateVerdict};

use super::outcome::{ComparisonOptions, SidesState, StateOfSides};
use crate::conclusions::state::{compare, disturbances};

/// Fewer runs of each side do not show that commands made their states.
const RUNS_IN_TURN: usize = 3;

/// Which runs are compared, and what their stamps say.
pub(super) struct Sorted {
    /// Whether each run before counts, and each run after.
    pub(super) counts: (Vec<bool>, Vec<bool>),
    pub(super) state: Option<SidesState>,
}

/// Keeps the runs of the state that most runs of both sides have. If no state is on both sides, all runs are kept, and `state` says how the sides
/// differ. It is absent if the runs are not known to be of one machine, or a stamp cannot be compared with another. Runs whose state is not known,
/// because others used the machine or it changed meanwhile, count unless runs are in several states.
pub(super) fn sort(before: &[Report], after: &[Report], options: ComparisonOptions) -> Sorted {
    let all: Vec<&Report> = before.iter().chain(after).collect();
    let everything = |state| Sorted { counts: (vec![true; before.len()], vec![true; after.len()]), state };
    let of_one_machine = all.first().is_some_and(|first| all.iter().all(|run| run.is_of_same_machine(first)));
    let stamps: Vec<Option<&Stamp>> = all.iter().map(|run| stamp(run)).collect();
    let Some(states) = of_one_machine.then(|| states(&stamps)).flatten() else { return everything(None) };
    let (of_before, of_after) = states.split_at(before.len());
    let count = |side: &[Option<usize>], state: usize| side.iter().filter(|own| **own == Some(state)).count();
    let known = |side: &[Option<usize>]| side.iter().flatten().count();
    if known(of_before) == 0 || known(of_after) == 0 {
        return everything(None);
    }
    let last = states.iter().flatten().copied().max().unwrap_or(0);
    let common = (0..=last).filter(|state| count(of_before, *state) > 0 && count(of_after, *state) > 0);
    let weight = |state: &usize| (count(of_before, *state).min(count(of_after, *state)), count(&states, *state), usize::MAX - state);
    let plain = |state| everything(Some(SidesState { state, changes: Vec::new() }));
    match common.max_by_key(weight) {
        _ if last == 0 => plain(StateOfSides::Same),
        // Runs in turn are not left out: a change of the machine comes as often before one command as before the other.
        Some(_) if options.across || options.in_turn => plain(StateOfSides::Mixed),
        Some(state) => {
            let counts = |side: &[Option<usize>]| side.iter().map(|own| *own == Some(state)).collect();
            let sides = SidesState { state: StateOfSides::Sorted, changes: Vec::new() };
            Sorted { counts: (counts(of_before), counts(of_after)), state: Some(sides) }
        }
        None => {
            let first = |side: std::ops::Range<usize>| side.clone().filter_map(|run| stamps[run].filter(|_| states[run].is_some())).next();
            let pair = first(0..before.len()).zip(first(before.len()..all.len()));
            let changes = pair.map_or(Vec::new(), |(a, b)| changes(a, b));
            let enough = known(of_before).min(known(of_after)) >= RUNS_IN_TURN;
            let state = match options.in_turn {
                true if enough => StateOfSides::MadeByCommands,
                true => StateOfSides::Mixed,
                false => StateOfSides::Different,
            };
            everything(Some(SidesState { state, changes }))
        }
    }
}

/// The stamp that stands for a run: its first during which nobody else used the machine. `None` if there is none, or the run's own stamps differ.
fn stamp(run: &Report) -> Option<&Stamp> {
    let MachineState { stamps, compared } = run.state.as_deref()?;
    let changed = compared.as_ref().is_some_and(|compared| compared.verdict == StateVerdict::Another);
    stamps.iter().find(|stamp| !changed && disturbances(stamp).is_empty())
}

/// The number of each run's state: that of the first run whose stamp it agrees with. `None` if two stamps cannot be compared.
fn states(stamps: &[Option<&Stamp>]) -> Option<Vec<Option<usize>>> {
    let mut firsts: Vec<&Stamp> = Vec::new();
    let mut states = Vec::with_capacity(stamps.len());
    for stamp in stamps {
        let Some(stamp) = stamp else {
            states.push(None);
            continue;
        };
        let mut own = None;
        for (state, first) in firsts.iter().enumerate() {
            match compare(first, stamp, Vec::new(), None).verdict {
                StateVerdict::Same => own = own.or(Some(state)),
                StateVerdict::Another => {}
                StateVerdict::Busy | StateVerdict::Unknown => return None,
            }
        }
        states.push(Some(own.unwrap_or_else(|| {
            firsts.push(stamp);
            firsts.len() - 1
        })));
    }
    Some(states)
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
        let mut run = Report { state: Some(Box::new(MachineState { stamps, compared: None })), ..report(machine(), Vec::new()) };
        run.run.host = Some(memgauge_model::result::Host { hostname: None, machine_id_hash: Some("a".into()) });
        run
    }

    fn runs(latencies: &[f64]) -> Vec<Report> {
        latencies.iter().map(|ns| run(*ns)).collect()
    }

    /// How many runs of each side count.
    fn counted(sorted: &Sorted) -> (usize, usize) {
        let count = |side: &[bool]| side.iter().filter(|counts| **counts).count();
        (count(&sorted.counts.0), count(&sorted.counts.1))
    }

    fn sorted(before: &[f64], after: &[f64], options: ComparisonOptions) -> (StateOfSides, (usize, usize)) {
        let sorted = sort(&runs(before), &runs(after), options);
        (sorted.state.as_ref().unwrap().state, counted(&sorted))
    }

    #[test]
    fn runs_are_compared_within_the_state_that_most_of_both_sides_have() {
        let (before, after) = ([120.0, 142.0, 121.0, 120.5], [141.0, 120.0, 121.5, 155.0]);
        let options = ComparisonOptions::default();
        assert_eq!(sorted(&before, &after, options), (StateOfSides::Sorted, (3, 2)));
        assert_eq!(sorted(&before, &after, ComparisonOptions { across: true, ..options }), (StateOfSides::Mixed, (4, 4)));
        assert_eq!(sorted(&before, &after, ComparisonOptions { in_turn: true, ..options }), (StateOfSides::Mixed, (4, 4)));
    }

    #[test]
    fn sides_without_a_common_state_say_in_what_they_differ() {
        let options = ComparisonOptions::default();
        let state = sort(&runs(&[120.0, 121.0]), &runs(&[142.0, 141.0]), options).state.unwrap();
        assert!(state.state == StateOfSides::Different && state.changes.len() == 1, "{state:?}");
        let in_turn = ComparisonOptions { in_turn: true, ..options };
        assert_eq!(sorted(&[120.0; 3], &[142.0; 3], in_turn).0, StateOfSides::MadeByCommands);
        assert_eq!(sorted(&[120.0], &[142.0], in_turn).0, StateOfSides::Mixed, "one round does not show who made it");
        assert_eq!(sorted(&[120.0, 121.0], &[120.0], options), (StateOfSides::Same, (2, 1)));
    }

    #[test]
    fn a_run_whose_state_is_not_known_counts_unless_runs_are_in_several_states() {
        let mut before = runs(&[120.0, 150.0, 120.0]);
        if let Some(state) = &mut before[1].state {
            state.stamps[0].noise.others = Some(0.4);
        }
        let sort = |before: &[Report], after: &[f64]| {
            let sorted = sort(before, &runs(after), ComparisonOptions::default());
            (sorted.state.as_ref().unwrap().state, counted(&sorted))
        };
        assert_eq!(sort(&before, &[120.0, 121.0]), (StateOfSides::Same, (3, 2)));
        assert_eq!(sort(&before, &[120.0, 142.0]), (StateOfSides::Sorted, (2, 1)));
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
    fn nothing_is_said_of_two_machines_or_of_stamps_that_cannot_be_compared() {
        let state = |before: &[Report], after: &[Report]| sort(before, after, ComparisonOptions::default()).state;
        let (before, after) = (runs(&[120.0]), runs(&[142.0]));
        assert!(state(&before, &after).is_some());
        let changed = |change: fn(&mut Report)| {
            let mut after = after.clone();
            change(&mut after[0]);
            after
        };
        let other = changed(|run| run.run.host = Some(memgauge_model::result::Host { hostname: None, machine_id_hash: Some("b".into()) }));
        let nameless = changed(|run| run.run.host = None);
        let without = changed(|run| run.state = None);
        let elsewhere = changed(|run| run.state.as_mut().unwrap().stamps[0].probes[0].cpus = IdSet::one(1));
        for after in [other, nameless, without, elsewhere] {
            assert!(state(&before, &after).is_none());
        }
        assert!(state(&before, &[]).is_none() && state(&[], &after).is_none());
    }
}
