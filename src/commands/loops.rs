//! `memgauge stream` and `memgauge chase`: one loop in this thread.

use std::path::Path;

use anyhow::Context;
use memgauge_core::conclusions::scan;
use memgauge_core::note::{Note, Severity};
use memgauge_engine::RunContext;
use memgauge_os::clock::Clock;
use memgauge_os::{memory, topology};

use crate::cli::loops::LoopRequest;
use crate::console::{Program, Stream};
use crate::exit::ExitStatus;
use crate::report;
use crate::signals;
use crate::sinks::Sinks;

/// Runs the loop. After a signal, the passes until then are the result.
pub(crate) fn run_loop(request: LoopRequest) -> anyhow::Result<ExitStatus> {
    let root = Path::new("/");
    let LoopRequest { spec, report: options } = request;
    let identity = options.identity()?;
    let sinks = Sinks::open(&options.output, Stream::Output)?;
    let machine = topology::read_machine(root)?;
    let stop = signals::watch().context("cannot install signal handlers")?;
    let mut report = report::blank(machine.clone(), root, &identity);
    memory::prefer_out_of_memory_kill();
    let clock = Clock::calibrate(root);
    report.environment.clock = Some(clock.report());
    let context = RunContext::new(&machine, clock, root.to_path_buf(), stop.flag());
    let (measured, notes) = memgauge_engine::run_loop(&spec, &context)?;
    // The text is one line without notes.
    notes.iter().filter(|note| note.severity == Severity::Warning).for_each(|note| Program::MEMGAUGE.message(&note.message));
    report.notes.extend(notes);
    let corrupted = measured.evidence.proof.as_ref().is_some_and(|p| p.mismatches > 0);
    report.results = vec![measured];
    report.incomplete = stop.interruption();
    report.complete = report.incomplete.is_none();
    report::end(&mut report);
    if corrupted {
        report.notes.push(
            Note::error(scan::CORRUPTED, "what the loop read is not what was written".to_owned())
                .advise("take the machine out of service, look for memory errors in its log, and test its memory"),
        );
    }
    let written = sinks.write(&report);
    if !corrupted {
        return written.map(|()| if report.complete { ExitStatus::SUCCESS } else { ExitStatus::INTERRUPTED });
    }
    Program::MEMGAUGE.corrupted(&report.notes);
    if let Err(error) = written {
        Program::MEMGAUGE.error(&error);
    }
    Ok(ExitStatus::INCIDENT)
}
