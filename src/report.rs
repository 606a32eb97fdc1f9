//! How a report is put together: its frame before anything is measured, and what the engine measured.

use std::path::Path;

use memgauge_engine::Outcome;
use memgauge_model::note::Note;
use memgauge_model::result::{Incomplete, Report, SetUp, Timing, Tool};
use memgauge_model::topology::Machine;
use memgauge_os::{clock, environment};

use crate::host::{self, HostIdentity};

/// A report that holds nothing but its circumstances.
pub(crate) fn blank(machine: Machine, root: &Path, identity: &HostIdentity) -> Report {
    let tool =
        Tool { name: "memgauge".into(), version: env!("CARGO_PKG_VERSION").into(), commit: option_env!("MEMGAUGE_COMMIT").map(Into::into) };
    Report {
        run: host::describe_run(root, identity),
        argv: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
        started: clock::moment(),
        environment: environment::read_environment(root, &machine),
        ..Report::of_machine(tool, machine)
    }
}

/// Adds everything that the engine measured. A run may have several outcomes: one a plan, or one a state of the prefetchers.
pub(crate) fn absorb(report: &mut Report, outcome: Outcome) {
    let Outcome { results, repeats, matrices, curves, interleaves, stores_read, notes, timing, core_ghz, all_cores_ghz, incomplete } =
        outcome;
    report.results.extend(results);
    report.repeats.extend(repeats);
    report.matrices.extend(matrices);
    report.curves.extend(curves);
    report.interleaves.extend(interleaves);
    report.environment.stores_read.extend(stores_read);
    add_notes(report, notes);
    add_timing(&mut report.timing, &timing);
    report.environment.core_ghz.extend(core_ghz);
    for (cpu, ghz) in all_cores_ghz {
        let highest = report.environment.all_cores_ghz.entry(cpu).or_insert(ghz);
        *highest = highest.max(ghz);
    }
    report.incomplete = Incomplete::join(report.incomplete.take(), incomplete);
    report.complete = report.incomplete.is_none();
}

/// Adds notes that the report does not have yet.
pub(crate) fn add_notes(report: &mut Report, notes: impl IntoIterator<Item = Note>) {
    for note in notes {
        if !report.notes.contains(&note) {
            report.notes.push(note);
        }
    }
}

/// Adds the parts. The total is set by [`end`].
fn add_timing(sum: &mut Timing, timing: &Timing) {
    sum.setup_s += timing.setup_s;
    sum.measuring_s += timing.measuring_s;
    sum.setup = match (sum.setup, timing.setup) {
        (Some(a), Some(b)) => Some(SetUp {
            buffers_s: a.buffers_s + b.buffers_s,
            chains_s: a.chains_s + b.chains_s,
            warm_up_s: a.warm_up_s + b.warm_up_s,
            trials_s: a.trials_s + b.trials_s,
        }),
        (a, b) => a.or(b),
    };
}

/// Sets the end of the run and its total time.
pub(crate) fn end(report: &mut Report) {
    report.ended = clock::moment();
    report.timing.total_s = report.ended.monotonic_ns.saturating_sub(report.started.monotonic_ns) as f64 / 1e9;
}

#[cfg(test)]
mod tests {
    use memgauge_model::experiment::LineState;
    use memgauge_model::note::NoteCode;
    use memgauge_model::result::{Measurement, PairMatrix, RfoEvidence};
    use memgauge_model::units::IdSet;
    use memgauge_os::topology;

    use super::*;

    fn empty() -> Report {
        let root = Path::new("/");
        blank(topology::read_machine(root).unwrap(), root, &HostIdentity::withheld())
    }

    /// A saved run of a machine with two nodes.
    fn saved() -> Report {
        memgauge_render::read(include_bytes!("../tests/results/two-nodes.json")).unwrap()
    }

    /// An outcome with something in every field, different for every CPU.
    fn outcome(cpu: u32, results: &[Measurement]) -> Outcome {
        let seconds = f64::from(cpu);
        Outcome {
            results: results.to_vec(),
            repeats: results.iter().take(1).cloned().collect(),
            matrices: vec![PairMatrix::new(vec![cpu], LineState::Hit, None)],
            curves: saved().curves,
            interleaves: Vec::new(),
            stores_read: vec![RfoEvidence { cpus: IdSet::one(cpu), ..RfoEvidence::default() }],
            notes: vec![Note::info(NoteCode::Limit, "the same"), Note::info(NoteCode::CpuQuota, format!("of CPU {cpu}"))],
            timing: Timing {
                setup_s: 4.0 * seconds,
                measuring_s: 8.0 * seconds,
                total_s: 0.0,
                setup: Some(SetUp { buffers_s: seconds, chains_s: 2.0 * seconds, warm_up_s: 0.5 * seconds, trials_s: 0.5 * seconds }),
            },
            core_ghz: [(cpu, 2.0 + seconds)].into(),
            all_cores_ghz: [(0, 2.0 + seconds)].into(),
            incomplete: (cpu == 2).then_some(Incomplete::CellsMissing),
        }
    }

    #[test]
    fn nothing_is_lost_when_two_outcomes_are_absorbed() {
        let results = saved().results;
        let (first, second) = results.split_at(results.len() / 2);
        assert!(!first.is_empty() && !saved().curves.is_empty());
        let mut report = empty();
        absorb(&mut report, outcome(1, first));
        assert!(report.complete);
        absorb(&mut report, outcome(2, second));
        assert_eq!(report.results, results);
        assert_eq!(report.repeats, [first[0].clone(), second[0].clone()]);
        assert_eq!(report.matrices.iter().map(|m| m.cpus[0]).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(report.curves, [saved().curves, saved().curves].concat());
        assert_eq!(report.environment.stores_read.iter().map(|e| e.cpus.clone()).collect::<Vec<_>>(), [IdSet::one(1), IdSet::one(2)]);
        assert_eq!(report.notes.iter().map(|n| n.message.to_string()).collect::<Vec<_>>(), ["the same", "of CPU 1", "of CPU 2"]);
        assert_eq!((report.timing.setup_s, report.timing.measuring_s), (12.0, 24.0));
        assert_eq!(report.timing.setup, Some(SetUp { buffers_s: 3.0, chains_s: 6.0, warm_up_s: 1.5, trials_s: 1.5 }));
        assert_eq!(report.environment.core_ghz, [(1, 3.0), (2, 4.0)].into());
        assert_eq!(report.environment.all_cores_ghz, [(0, 4.0)].into(), "the highest of a core's readings");
        assert_eq!((report.complete, &report.incomplete), (false, &Some(Incomplete::CellsMissing)));
        // A part that is whole does not hide one that is not.
        absorb(&mut report, outcome(3, &[]));
        assert!(!report.complete);
    }

    #[test]
    fn parts_of_the_set_up_are_kept_whichever_outcome_has_them() {
        let with = outcome(1, &[]);
        let setup = with.timing.setup;
        let without = || Outcome { timing: Timing { setup: None, ..outcome(1, &[]).timing }, ..outcome(1, &[]) };
        let mut report = empty();
        absorb(&mut report, without());
        absorb(&mut report, with);
        absorb(&mut report, without());
        assert_eq!((report.timing.setup, report.timing.setup_s), (setup, 12.0));
    }
}
