//! `memgauge prefetch`: shows and switches prefetchers. `memgauge prefetch compare` measures: see [`super::measure`].

use std::path::Path;

use anyhow::anyhow;
use memgauge_model::experiment::PrefetchRequest;
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::prefetchers::{self, PrefetchStatus};
use memgauge_model::wording::number_of;
use memgauge_model::words;
use memgauge_model::words::Verb;
use memgauge_os::prefetch::run_guardian;
use memgauge_os::prefetch::{ChangeKind, Leftover, PrefetchChange, PrefetchRegisters};
use memgauge_os::topology;

use crate::cli::output::ReportOptions;
use crate::cli::prefetch::PrefetchAction;
use crate::console::{Program, Stream};
use crate::exit::ExitStatus;
use crate::host::HostIdentity;
use crate::prefetch::controls::{PrefetchControls, found_notes, offline_note, place, with_advice};
use crate::report;
use crate::sinks::Sinks;

/// Shows or switches prefetchers, or guards a run that does.
pub(crate) fn prefetch(action: PrefetchAction) -> anyhow::Result<ExitStatus> {
    let place = place();
    // Files are checked before a register is written.
    let target = |options: ReportOptions| -> anyhow::Result<Target> {
        options.output.check_figures(&[], "'memgauge prefetch compare -o FILE.svg' draws a comparison")?;
        Ok(Target { sinks: Sinks::of_results(&options.output, Stream::Output)?, identity: options.identity()? })
    };
    match action {
        PrefetchAction::Status(options) => status(&place, &target(options)?, Vec::new(), PrefetchRequest::Leave),
        PrefetchAction::Off(options) => switch(&place, &target(options)?, PrefetchRequest::Off),
        PrefetchAction::On(options) => switch(&place, &target(options)?, PrefetchRequest::On),
        PrefetchAction::Restore(options) => restore(&place, &target(options)?),
        PrefetchAction::Guard { id } => guard(&id),
    }
}

/// Waits until the run that started this process ends, and puts back the registers that it could not.
pub(crate) fn guard(id: &str) -> anyhow::Result<ExitStatus> {
    run_guardian(&place(), id).map_err(|e| with_advice(&e))?;
    Ok(ExitStatus::SUCCESS)
}

/// Where the report goes, and what it says about the host.
struct Target {
    sinks: Sinks,
    identity: HostIdentity,
}

/// Reads and shows every register.
fn status(place: &PrefetchRegisters, target: &Target, notes: Vec<Note>, requested: PrefetchRequest) -> anyhow::Result<ExitStatus> {
    let machine = topology::read_machine(Path::new("/"))?;
    let controls = PrefetchControls::find(&machine);
    let state = controls.state(requested, &place.read(&controls.by_cpu));
    let unknown = state.status == PrefetchStatus::Unknown;
    let mut report = report::blank(machine, Path::new("/"), &target.identity);
    report.environment.prefetch = Some(state);
    report.notes.extend(notes);
    report.notes.extend(controls.notes());
    for kind in place.waiting() {
        report.notes.push(match kind {
            ChangeKind::Run => Note::warning(NoteCode::PrefetchRunJournal, "a run is changing prefetchers now, or was killed while it did")
                .advise(words!["if no run is in progress, run as root: ", Verb::PrefetchRestore]),
            ChangeKind::Kept => {
                Note::info(NoteCode::PrefetchKept, words!["prefetchers were switched by '", Verb::PrefetchOff, "' or 'on'"])
                    .advise(words![Verb::PrefetchRestore, ", as root, puts back the earlier state"])
            }
        });
    }
    report::end(&mut report);
    let written = target.sinks.keep(&report);
    if unknown && target.sinks.is_quiet() {
        let why = report.environment.prefetch.and_then(|state| state.reason).unwrap_or_else(|| "no register could be read".into());
        Program::MEMGAUGE.message(format_args!("the state of the prefetchers is not known: {why}"));
    }
    written.map(|()| if unknown { ExitStatus::COULD_NOT_MEASURE } else { ExitStatus::SUCCESS })
}

/// Switches prefetchers until `restore` or the next boot.
fn switch(place: &PrefetchRegisters, target: &Target, requested: PrefetchRequest) -> anyhow::Result<ExitStatus> {
    let machine = topology::read_machine(Path::new("/"))?;
    let controls = PrefetchControls::find(&machine);
    if controls.by_cpu.is_empty() {
        controls.check(&machine.topology.online())?;
    }
    Program::MEMGAUGE.message(&prefetchers::taint_note().message);
    let mut change = PrefetchChange::begin(place.clone(), &controls.by_cpu, ChangeKind::Kept).map_err(|e| with_advice(&e))?;
    let notes = found_notes(change.leftover());
    if let Err(error) = change.set(requested == PrefetchRequest::Off) {
        return Err(match change.restore() {
            Ok(()) => with_advice(&error),
            Err(left) => anyhow!("{error}; and {left}; {}", left.advice()),
        });
    }
    change.keep();
    status(place, target, notes, requested)
}

/// Puts back what the journals hold.
fn restore(place: &PrefetchRegisters, target: &Target) -> anyhow::Result<ExitStatus> {
    let found = place.restore().map_err(|e| with_advice(&e))?;
    let mut notes = Vec::new();
    let mut ended = ExitStatus::SUCCESS;
    for (found, what) in found.iter().zip(["a run that was killed", "'memgauge prefetch off' or 'on'"]) {
        match found {
            Leftover::Nothing => {}
            Leftover::EarlierBoot => notes.extend(found_notes(found)),
            Leftover::Restored(n) | Leftover::Partly(n, _) => {
                if *n > 0 {
                    notes.push(Note::info(
                        NoteCode::PrefetchRestored,
                        format!("what {what} had changed was put back: the registers of {}", number_of(*n as u64, "CPU", "CPUs")),
                    ));
                }
                if let Leftover::Partly(_, offline) = found {
                    notes.push(offline_note(what, offline));
                    ended = ExitStatus::MEASURED_IN_PART;
                }
            }
        }
    }
    if notes.is_empty() {
        notes.push(Note::info(NoteCode::PrefetchNothingToRestore, "there is no journal of a change, so there is nothing to restore"));
    }
    // A machine whose registers cannot be read does not change what was put back.
    status(place, target, notes, PrefetchRequest::Leave)?;
    Ok(ended)
}
