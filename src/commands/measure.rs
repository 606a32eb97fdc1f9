//! The commands that measure what a plan says.

use std::time::{Duration, Instant};

use anyhow::Context;
use memgauge_analysis::conclusions::scan;
use memgauge_model::distribution::least_batch;
use memgauge_model::experiment_table::PanelName;
use memgauge_model::result::{HealthStatus, Incomplete, Report};
use memgauge_model::spec::{Spec, Task};
use memgauge_model::wording::reasons;
use memgauge_os::clock::Clock;
use memgauge_os::noise::ProcessTimes;
use memgauge_os::{directory, memory};
use memgauge_render::{Document, PlannedRun};

use super::interleave;
use super::quick::{self, Deadlines};
use crate::cli::output::Output;
use crate::cli::request::Request;
use crate::console::{self, Program, Stream};
use crate::exit::{ExitStatus, UsageError};
use crate::machine;
use crate::prefetch::guard::PrefetchGuard;
use crate::quiet;
use crate::report;
use crate::run_folder::RunFolder;
use crate::runner::Runner;
use crate::signals::{self, Stop};
use crate::sinks::Sinks;
use crate::state_folder::StateFolder;

/// Plans, measures and writes the report.
pub(crate) fn measure(request: Request) -> anyhow::Result<ExitStatus> {
    let Request { mut spec, memory_dir, mut run, quick, state, history, pmem, apply_weights } = request;
    let identity = run.report.identity()?;
    // Before the machine is read: a check that still runs uses memory, and its time is not this run's.
    let state = state.map(|state| StateFolder::open(&state.folder, state.keep, state.lock_wait)).transpose()?;
    let own = (state.is_none() && history && !run.plan).then(|| StateFolder::open_own(run.report.output.to.quiet)).flatten();
    let earlier = state.as_ref().or(own.as_ref()).map(StateFolder::checks).unwrap_or_default();
    let mut begin = Instant::now();
    let folder = pmem.as_ref().and_then(|pmem| pmem.out.clone()).filter(|_| !run.plan).map(RunFolder::new);
    run.report.output.to.output.extend(folder.iter().flat_map(RunFolder::whole_results));
    let output = &run.report.output;
    let mut deadlines = quick.as_ref().map(|_| Deadlines::begin(begin, spec.within));
    let root = run.machine.as_deref().unwrap_or(machine::root());
    let machine = machine::read(root)?;
    spec.memory_dir = memory_dir.map(|path| directory::read(&path, root)).transpose().context("--memory-dir")?;
    if let (Some(pmem), Task::Pmem(task)) = (&pmem, &mut spec.task) {
        task.directories = pmem.directories.iter().map(|path| directory::read(path, root)).collect::<Result<_, _>>()?;
    }
    // Which kernels can run is known for this machine's CPUs only. The plan for another machine names none.
    let kernels = if run.machine.is_none() { memgauge_kernels::rows() } else { Vec::new() };
    let mut plan = memgauge_planner::plan(&spec, &machine, &kernels)?;
    // For --plan as well: whoever tries a command line with it learns of a file that cannot be read.
    let mut references = quick.map(|files| quick::read_references(files, earlier, state.is_some() || own.is_some())).transpose()?;
    if run.plan {
        if !PlannedRun::FORMATS.contains(&output.to.format) {
            return Err(UsageError("a plan has no values yet; use --format text or --format json".into()).into());
        }
        Sinks::open::<PlannedRun<'_>>(&output.to, Stream::Output)?.write(&PlannedRun { plan: &plan, machine: &machine })?;
        return Ok(ExitStatus::SUCCESS);
    }
    let experiments = plan.steps.iter().map(|step| step.experiment);
    let drawn = drawn(&spec, PanelName::of_experiments(experiments), output)?;
    output.check_figures(&drawn, "the plan has no measurement that a figure shows")?;
    let clock = Clock::calibrate(root);
    check_histogram(spec.task.histogram(), clock.step_ns())?;
    // Only now, so that a request that is refused leaves no folder behind.
    folder.as_ref().map(RunFolder::create).transpose()?;
    let mut sinks = Sinks::of_results(output, Stream::Output)?;
    state.iter().try_for_each(|state| sinks.add_scheduled(&state.result()))?;
    let stop = signals::watch().context("cannot install signal handlers")?;
    // The guardian is started first, because it must not inherit what comes next: this process offers itself to the out-of-memory killer.
    let mut guard = PrefetchGuard::begin(&spec, &mut plan, &machine)?;
    memory::prefer_out_of_memory_kill();
    let mut not_quiet = None;
    if let Some(longest) = run.wait_quiet {
        let waiting = machine::context(&machine, clock, stop.flag());
        not_quiet = quiet::wait(&waiting, &plan, longest, |text| {
            if !output.to.quiet {
                Program::MEMGAUGE.message(text);
            }
        });
        // The time of the run begins now.
        (begin, deadlines) = (Instant::now(), deadlines.map(|_| Deadlines::begin(Instant::now(), spec.within)));
    }
    if pmem.is_some() && !output.to.quiet {
        Program::MEMGAUGE.message(format_args!("this takes {}", memgauge_render::duration(&plan)));
    }
    let processes = ProcessTimes::read(root);
    let deadline = deadlines.map(|d| d.end(0)).or_else(|| spec.within.map(|within| begin + within));
    let mut report = report::blank(machine.clone(), root, &identity);
    report.environment.clock = Some(clock.report());
    let mut context = machine::context(&machine, clock, stop.flag());
    // The stamp at the end has its own time.
    let for_end = Duration::from_secs_f64(plan.stamp.as_ref().map_or(0.0, |stamp| stamp.at_most_s));
    let deadlines = deadlines.map(|deadlines| deadlines.before_stamp(for_end));
    context.deadline = if deadlines.is_some() { deadline } else { deadline.map(|end| end - for_end) };
    let mut runner = Runner::begin(context, &stop, output.to.quiet);
    runner.stamp(&plan, deadline, &mut report);
    runner.measure(&plan, guard.as_mut(), &mut report);
    // That of a health check follows its second round.
    if deadlines.is_none() {
        runner.stamp(&plan, deadline, &mut report);
    }
    report.plan = Some(plan);
    report.notes.extend(not_quiet);
    runner.conclude(&mut report);
    if let Some((references, deadlines)) = references.as_mut().zip(deadlines) {
        let references = references.for_report(&report);
        quick::confirm(&mut report, references, &mut runner, deadlines);
    }
    quiet::name_disturbers(&mut report, &processes, root, &identity);
    if !output.verbose {
        report.remove_trials();
    }
    let not_applied = apply_weights.then(|| interleave::apply_found(&mut report)).and_then(Result::err);
    let not_restored = guard.and_then(|guard| guard.end(&mut report));
    let not_written =
        [sinks.keep(&report).err(), folder.and_then(|folder| folder.write(&report).err()), state.and_then(|state| state.finish().err())];
    let interrupted = matches!(report.incomplete, Some(Incomplete::Signal { .. }));
    if let Some(own) = own.filter(|_| !interrupted && report.measured() > 0) {
        own.keep(&report, output.to.quiet);
    }
    let failures: Vec<anyhow::Error> = not_restored.into_iter().chain(not_applied).chain(not_written.into_iter().flatten()).collect();
    Ok(finish(&report, &stop, &failures, &sinks))
}

/// Of the panels that the experiments may have, those that have data with these options.
///
/// # Errors
/// When one is asked for and the option that measures its data was not given.
fn drawn(spec: &Spec, mut kinds: Vec<PanelName>, output: &Output) -> Result<Vec<PanelName>, UsageError> {
    let needs =
        [(PanelName::MISSES, spec.counters, "--counters"), (PanelName::DISTRIBUTION, spec.task.histogram().is_some(), "--histogram")];
    for (kind, _, option) in needs.into_iter().filter(|(_, given, _)| !given) {
        if kinds.contains(&kind) && output.asks_for(kind) {
            return Err(UsageError(format!("the panel '{kind}' needs {option}; add it, or leave out --panel {kind}")));
        }
        kinds.retain(|other| *other != kind);
    }
    Ok(kinds)
}

/// Refuses a histogram that would show the steps of the clock, which are `step_ns` long.
fn check_histogram(batch: Option<u32>, step_ns: f64) -> Result<(), UsageError> {
    let least = least_batch(step_ns);
    let Some(batch) = batch.filter(|batch| least.is_none_or(|least| *batch < least)) else { return Ok(()) };
    let instead = least.map_or("leave --histogram out".to_owned(), |least| format!("give --histogram {least}"));
    let hops = if batch == 1 { "single hops".to_owned() } else { format!("batches of {batch} hops") };
    Err(UsageError(format!(
        "this machine's clock advances by {step_ns:.1} ns at a time: a histogram of {hops} would show these steps and not the memory; {instead}"
    )))
}

/// Reports what went wrong, and chooses the exit status. Where nobody sees a page, it says why there are no numbers or no verdict. A failure to restore registers or to write files hides nothing else.
fn finish(report: &Report, stop: &Stop, failures: &[anyhow::Error], sinks: &Sinks) -> ExitStatus {
    failures.iter().for_each(|error| Program::MEMGAUGE.error(error));
    let end = match stop.interruption() {
        _ if !failures.is_empty() => End::Failed,
        Some(_) => End::Interrupted,
        None => End::Reached,
    };
    if stop.interruption().is_none() && !report.complete && !sinks.shows_page() {
        Program::MEMGAUGE.not_measured(&report.notes);
        // Cells that got too little time have no notes of their own.
        if console::failures(&report.notes).next().is_none()
            && let Some(why) = &report.incomplete
        {
            // What the plan foresaw says how to get further.
            let foreseen = report
                .notes
                .iter()
                .find(|note| *why == Incomplete::OutOfTime && note.code == memgauge_model::note::NoteCode::WithinTooShort);
            let foreseen = foreseen.map(|note| format!("; {}", console::with_advice(note))).unwrap_or_default();
            let nothing = if report.measured() == 0 { "nothing was measured: " } else { "" };
            let reason = report.measurements().find_map(|m| m.estimate.not_measured.as_ref()).filter(|_| *why == Incomplete::CellsMissing);
            let reason = reason.map(|reason| format!(" ({})", reasons::not_measured(reason))).unwrap_or_default();
            Program::MEMGAUGE.message(format_args!("{nothing}{}{reason}{foreseen}", reasons::incomplete(why)));
        }
    }
    if report.measurements().any(scan::corrupted) {
        Program::MEMGAUGE.corrupted(&report.notes);
        return ExitStatus::INCIDENT;
    }
    let health = report.health.as_ref().map(|health| health.status);
    if sinks.is_quiet() && health == Some(HealthStatus::CouldNotMeasure) {
        let why = report.health.iter().flat_map(|health| &health.findings).filter(|found| found.severity == HealthStatus::CouldNotMeasure);
        why.for_each(|found| Program::MEMGAUGE.message(format_args!("no verdict: {}", found.message)));
    }
    exit_status(health, end, ExitStatus::measured(report.measured(), report.complete))
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Reached,
    Interrupted,
    /// Registers were not restored, or files not written.
    Failed,
}

/// The exit status of a run with this verdict on the machine, if it is a health check. A full disk does not hide that the machine is sick.
fn exit_status(health: Option<HealthStatus>, end: End, measured: ExitStatus) -> ExitStatus {
    match (end, health) {
        (End::Failed, Some(status @ (HealthStatus::Incident | HealthStatus::Failure))) => status.into(),
        (End::Failed, _) => ExitStatus::COULD_NOT_MEASURE,
        (End::Interrupted, _) => ExitStatus::INTERRUPTED,
        (End::Reached, health) => health.map_or(measured, ExitStatus::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sick_machine_is_told_even_where_its_result_cannot_be_written() {
        let all = [None, Some(HealthStatus::Ok), Some(HealthStatus::Warning), Some(HealthStatus::Failure), Some(HealthStatus::Incident)];
        let statuses = |end| all.map(|health| exit_status(health, end, ExitStatus::MEASURED_IN_PART).0);
        assert_eq!(statuses(End::Reached), [1, 0, 1, 2, 3]);
        assert_eq!(statuses(End::Failed), [4, 4, 4, 2, 3]);
        assert_eq!(statuses(End::Interrupted), [130; 5]);
    }

    #[test]
    fn a_coarse_clock_times_no_single_hops() {
        assert_eq!(
            [check_histogram(Some(1), 0.4), check_histogram(Some(8), 40.0), check_histogram(None, 1000.0)],
            [Ok(()), Ok(()), Ok(())]
        );
        let refusal = |batch, step_ns| check_histogram(Some(batch), step_ns).unwrap_err().0;
        assert!(refusal(1, 10.0).contains("by 10.0 ns at a time: a histogram of single hops"), "{}", refusal(1, 10.0));
        assert!(refusal(1, 10.0).ends_with("give --histogram 8"));
        assert!(refusal(8, 52.1).contains("batches of 8 hops") && refusal(8, 52.1).ends_with("give --histogram 64"));
        assert!(refusal(64, 1000.0).ends_with("leave --histogram out"));
    }
}
