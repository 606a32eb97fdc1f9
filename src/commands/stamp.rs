//! `memgauge stamp`: the state of the machine now, against an earlier one, or around a program.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use memgauge_analysis::conclusions::state;
use memgauge_engine::RunContext;
use memgauge_model::plan::Plan;
use memgauge_model::properties::changed_settings;
use memgauge_model::result::{MachineState, Report, Stamp, StateVerdict};
use memgauge_model::wording::reasons;
use memgauge_os::clock::Clock;
use memgauge_os::{memory, program};
use memgauge_render::{Appearance, Document, Format};

use super::count::{exit_code, not_started};
use crate::cli::stamp::StampArgs;
use crate::console::{Program, Stream};
use crate::exit::{ExitStatus, UsageError};
use crate::machine;
use crate::report;
use crate::signals;
use crate::sinks::{Sinks, read_report};

/// Takes a stamp, or two around a program.
pub(crate) fn stamp(args: StampArgs) -> anyhow::Result<ExitStatus> {
    args.report.output.check_figures(&[], "a stamp is a few numbers: keep it with .json or .txt")?;
    let earlier = args.check.as_deref().map(read_stamp).transpose()?;
    let identity = args.report.identity()?;
    let root = machine::root();
    let machine = machine::read(root)?;
    let plan = memgauge_planner::stamp_alone(&machine, &memgauge_kernels::rows())?;
    let wraps = !args.command.is_empty();
    let output = &args.report.output;
    let sinks = match wraps {
        // A line says it, and standard error is the program's, too.
        true if output.to.format == Format::TEXT => Sinks::of_results(output, Stream::Error)?.files_only(),
        true => Sinks::of_results(output, Stream::Error)?,
        false => Sinks::of_results(output, Stream::Output)?,
    };
    let stop = signals::watch().context("cannot install signal handlers")?;
    // A program that is run would inherit this.
    if !wraps {
        memory::prefer_out_of_memory_kill();
    }
    let clock = Clock::calibrate(root);
    let mut report = report::blank(machine.clone(), root, &identity);
    report.environment.clock = Some(clock.report());
    let context = machine::context(&machine, clock, stop.flag());
    let first = memgauge_engine::stamp(&plan, &context).filter(|_| stop.interruption().is_none());
    let Some(first) = first else { return Ok(ExitStatus::INTERRUPTED) };
    if wraps {
        return around(&args, report, first, (&plan, &context), &sinks);
    }
    if first.probes.iter().all(|probe| probe.value.is_none()) {
        // An earlier file stays.
        let why = first.probes.iter().find_map(|probe| probe.not_measured.as_ref()).map(reasons::not_measured).unwrap_or_default();
        anyhow::bail!("no probe of the stamp could be measured: {why}");
    }
    let compared = earlier.map(|(with, earlier, before)| {
        let settings = changed_settings(&earlier, &report);
        state::compare(&before, &first, settings, Some(with))
    });
    let status = match compared.as_ref().map(|compared| compared.verdict) {
        None | Some(StateVerdict::Same) => ExitStatus::SUCCESS,
        Some(StateVerdict::Another) => ExitStatus::ANOTHER_STATE,
        Some(StateVerdict::Busy) => ExitStatus::BUSY,
        Some(StateVerdict::Unknown) => ExitStatus::COULD_NOT_MEASURE,
    };
    report.state = Some(Box::new(MachineState { stamps: vec![first], compared }));
    report::end(&mut report);
    sinks.keep(&report)?;
    Ok(status)
}

/// An earlier result, its name, and its last stamp.
fn read_stamp(path: &Path) -> Result<(String, Report, Stamp), UsageError> {
    let report = read_report(path)?;
    let none = || UsageError::file(path, "has no stamp; make one with memgauge stamp -o FILE");
    let stamp = report.state.as_ref().and_then(|state| state.stamps.last()).cloned().ok_or_else(none)?;
    Ok((path.display().to_string(), report, stamp))
}

/// Runs the program, takes another stamp, and says in a line whether the machine was in the same state.
fn around(
    args: &StampArgs,
    mut report: Report,
    first: Stamp,
    (plan, context): (&Plan, &RunContext<'_>),
    sinks: &Sinks,
) -> anyhow::Result<ExitStatus> {
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    let ended = match program::run(&mut command) {
        Ok(ended) => ended,
        Err(error) => return Ok(ExitStatus(not_started(&args.command, &error))),
    };
    let stamps: Vec<Stamp> = [Some(first), memgauge_engine::stamp(plan, context)].into_iter().flatten().collect();
    let compared = if let [before, after] = &stamps[..] {
        Some(state::compare(before, after, changed_settings(&report, &machine::now(&report, &context.root)), None))
    } else {
        None
    };
    report.state = Some(Box::new(MachineState { stamps, compared }));
    report::end(&mut report);
    let to = &args.report.output.to;
    if to.format == Format::TEXT && !to.quiet {
        Program::MEMGAUGE.message(report.line(&Appearance::default()).trim_end());
    }
    sinks.keep(&report)?;
    Ok(ExitStatus(exit_code(&ended)))
}
