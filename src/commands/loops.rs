//! `memgauge stream` and `memgauge chase`: one loop in this thread, once for each size.

use std::path::Path;

use anyhow::Context;
use memgauge_engine::{LoopError, RunContext};
use memgauge_model::experiment_table::PanelName;
use memgauge_model::microbench::{LoopKind, LoopSpec};
use memgauge_model::note::{Note, NoteCode, Severity};
use memgauge_model::result::Incomplete;
use memgauge_os::clock::Clock;
use memgauge_os::{memory, topology};

use crate::cli::loops::LoopRequest;
use crate::console::{Program, Stream};
use crate::exit::ExitStatus;
use crate::report;
use crate::signals;
use crate::sinks::Sinks;

/// The panel of loops over several sizes.
fn drawn(specs: &[LoopSpec]) -> Vec<PanelName> {
    let panel = match specs.first().map(|spec| spec.kind) {
        Some(LoopKind::Stream) => PanelName::BANDWIDTH_BY_SIZE,
        _ => PanelName::LATENCY_BY_SIZE,
    };
    if specs.len() > 1 { vec![panel] } else { Vec::new() }
}

/// Runs the loops. After a signal, the passes until then are the result.
pub(crate) fn run_loop(request: LoopRequest) -> anyhow::Result<ExitStatus> {
    let root = Path::new("/");
    let LoopRequest { specs, report: options } = request;
    let identity = options.identity()?;
    let drawn = drawn(&specs);
    options.output.check_figures(&drawn, "one size is one number: name several, such as 4K-1G, or keep the number with .json or .txt")?;
    let sinks = Sinks::of_results(&options.output, Stream::Output)?;
    let machine = topology::read_machine(root)?;
    let stop = signals::watch().context("cannot install signal handlers")?;
    let mut report = report::blank(machine.clone(), root, &identity);
    memory::prefer_out_of_memory_kill();
    let clock = Clock::calibrate(root);
    report.environment.clock = Some(clock.report());
    let context = RunContext::new(&machine, clock, root.to_path_buf(), stop.flag());
    for spec in &specs {
        match memgauge_engine::run_loop(spec, &context) {
            Ok((measured, notes)) => {
                report.results.push(measured);
                report::add_notes(&mut report, notes);
            }
            // The sizes before are kept.
            Err(LoopError::Interrupted) if !report.results.is_empty() => {}
            Err(error) if report.results.is_empty() => return Err(error.into()),
            Err(error) => {
                let size = spec.size.map_or_else(String::new, |size| format!("{size}: "));
                report::add_notes(&mut report, [Note::error(NoteCode::LoopNotRun, format!("{size}{error}"))]);
            }
        }
        if stop.interruption().is_some() {
            break;
        }
    }
    // The text is a line for each size, without notes.
    let hardware = |note: &&Note| note.code == NoteCode::MemoryCorrupted;
    let warnings = report.notes.iter().filter(|note| note.severity >= Severity::Warning && !hardware(note));
    warnings.for_each(|note| Program::MEMGAUGE.message(&note.message));
    // The hardware said so, or what was read did.
    let failed = report.notes.iter().any(|note| hardware(&note));
    let wrong = report.results.iter().any(|m| m.evidence.proof.as_ref().is_some_and(|p| p.mismatches > 0));
    let corrupted = failed || wrong;
    report.incomplete = stop.interruption();
    if report.incomplete.is_none() && (failed || report.results.len() < specs.len()) {
        report.incomplete = Some(Incomplete::CellsMissing);
    }
    report.complete = report.incomplete.is_none();
    report::end(&mut report);
    if wrong {
        report.notes.push(
            Note::error(NoteCode::MemoryCorrupted, "what the loop read is not what was written".to_owned())
                .advise("take the machine out of service, look for memory errors in its log, and test its memory"),
        );
    }
    let written = sinks.keep(&report);
    if !corrupted {
        let status = match stop.interruption() {
            Some(_) => ExitStatus::INTERRUPTED,
            None if report.complete => ExitStatus::SUCCESS,
            None => ExitStatus::MEASURED_IN_PART,
        };
        return written.map(|()| status);
    }
    Program::MEMGAUGE.corrupted(&report.notes);
    if let Err(error) = written {
        Program::MEMGAUGE.error(&error);
    }
    Ok(ExitStatus::INCIDENT)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Invocation};

    #[test]
    fn loops_over_several_sizes_are_drawn() {
        let check = |line: &str| match Cli::try_parse_from(line.split(' ')).unwrap().invocation().unwrap() {
            Invocation::Loop(request) => request.report.output.check_figures(&drawn(&request.specs), "name several").map_err(|e| e.0),
            _ => panic!("{line} is a loop"),
        };
        assert_eq!(check("memgauge stream 4K-1M -o x.svg --panel bandwidth-by-size --figure-width 85mm"), Ok(()));
        assert_eq!(check("memgauge chase 4K,8K -o x.svg --no-title"), Ok(()));
        assert!(check("memgauge stream 4K -o x.svg").unwrap_err().contains("nothing to draw; name several"));
        assert!(check("memgauge chase 4K-1M -o x.svg --panel regions").unwrap_err().contains("it can have: latency-by-size"));
    }
}
