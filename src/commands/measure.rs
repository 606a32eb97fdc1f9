//! The commands that measure what a plan says.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use memgauge_core::conclusions::{findings::References, scan};
use memgauge_core::result::{HealthStatus, Report};
use memgauge_engine::RunContext;
use memgauge_os::clock::Clock;
use memgauge_os::{directory, memory, topology};

use super::quick::{self, Deadlines};
use crate::cli::request::Request;
use crate::console::{Program, Stream};
use crate::exit::ExitStatus;
use crate::prefetch::guard::PrefetchGuard;
use crate::report;
use crate::runner::Runner;
use crate::signals::{self, Stop};
use crate::sinks::{self, Sinks};

/// Plans, measures and writes the report.
pub(crate) fn measure(request: Request) -> anyhow::Result<ExitStatus> {
    let begin = Instant::now();
    let Request { mut spec, memory_dir, run, quick } = request;
    let identity = run.report.identity()?;
    let output = &run.report.output;
    let deadlines = quick.as_ref().map(|_| Deadlines::begin(begin, spec.within));
    let root = run.machine.as_deref().unwrap_or(Path::new("/"));
    let machine = topology::read_machine(root)?;
    spec.memory_dir = memory_dir.map(|path| directory::read(&path, root)).transpose()?;
    // Which kernels can run is known for this machine's CPUs only. The plan for another machine names none.
    let kernels = if run.machine.is_none() { memgauge_kernels::rows() } else { Vec::new() };
    let plan = memgauge_core::planner::plan(&spec, &machine, &kernels)?;
    if run.plan {
        sinks::show_plan(&plan, &machine, output)?;
        return Ok(ExitStatus::SUCCESS);
    }
    let sinks = Sinks::open(output, Stream::Output)?;
    let references = quick.map(quick::read_references).transpose()?;
    let stop = signals::watch().context("cannot install signal handlers")?;
    // The guardian is started first, because it must not inherit what comes next: this process offers itself to the out-of-memory killer.
    let mut guard = PrefetchGuard::begin(&spec, &plan, &machine)?;
    memory::prefer_out_of_memory_kill();
    let clock = Clock::calibrate(root);
    let deadline = deadlines.map(|d| d.end(0)).or_else(|| spec.within.map(|within| begin + within));
    let mut report = report::blank(machine.clone(), root, &identity);
    report.environment.clock = Some(clock.report());
    let mut context = RunContext::new(&machine, clock, root.to_path_buf(), stop.flag());
    context.deadline = deadline;
    let mut runner = Runner::begin(context, &stop, output.quiet);
    runner.measure(&plan, guard.as_mut(), &mut report);
    report.plan = Some(plan);
    runner.conclude(&mut report);
    if let Some(((baseline, rules), deadlines)) = references.as_ref().zip(deadlines) {
        let references = References { baseline: baseline.as_ref(), rules: rules.as_ref() };
        quick::confirm(&mut report, references, &mut runner, deadlines);
    }
    if !run.verbose {
        report.remove_trials();
    }
    let not_restored = guard.and_then(|guard| guard.end(&mut report));
    let not_written = sinks.write(&report).err();
    let failures: Vec<anyhow::Error> = not_restored.into_iter().chain(not_written).collect();
    Ok(finish(&report, &stop, &failures))
}

/// Reports what went wrong, and chooses the exit status. A failure to restore registers or to write files hides nothing else.
fn finish(report: &Report, stop: &Stop, failures: &[anyhow::Error]) -> ExitStatus {
    failures.iter().for_each(|error| Program::MEMGAUGE.error(error));
    let interrupted = stop.interruption().is_some();
    if !interrupted && !report.complete {
        Program::MEMGAUGE.not_measured(&report.notes);
    }
    if report.measurements().any(scan::corrupted) {
        Program::MEMGAUGE.corrupted(&report.notes);
        return ExitStatus::INCIDENT;
    }
    let health = report.health.as_ref().map(|health| health.status);
    match health {
        Some(HealthStatus::Incident) if !failures.is_empty() => ExitStatus::INCIDENT,
        _ if !failures.is_empty() => ExitStatus::COULD_NOT_MEASURE,
        _ if interrupted => ExitStatus::INTERRUPTED,
        Some(status) => status.into(),
        None => ExitStatus::measured(report.measured() > 0, report.complete),
    }
}
