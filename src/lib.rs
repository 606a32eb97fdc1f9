//! memgauge: parse, plan, run, render. Two programs share it: `memgauge` and the drop-in `mlc`.

mod cli;
mod count;
mod mlc;
mod output;
mod prefetch;
mod progress;
mod quick;
mod signals;

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use memgauge_core::conclusions::{advise, findings, levels, limit, scan};
use memgauge_core::note::Note;
use memgauge_core::plan::Plan;
use memgauge_core::planner::PlanError;
use memgauge_core::result::{HealthStatus, Moment, Report, SCHEMA_VERSION, Timing, Tool};
use memgauge_core::topology::Machine;
use memgauge_engine::{LoopError, Setting};
use memgauge_linux::clock::{self, Clock};
use memgauge_linux::directory::{self, DirectoryError};
use memgauge_linux::{environment, memory, sysfs};
use memgauge_render::Named;

use crate::cli::{Asked, Cli, InfoArgs, LoopRequest, RenderArgs, Request};
use crate::output::Stream;

/// Exit codes, as documented in `--help` and README.
mod exit {
    pub(crate) const MEASURED_IN_PART: u8 = 1;
    pub(crate) const INCIDENT: u8 = 3;
    pub(crate) const COULD_NOT_MEASURE: u8 = 4;
    pub(crate) const USAGE: u8 = 64;
    pub(crate) const INTERRUPTED: u8 = 130;
}

/// A suspension shorter than this is the jitter of reading two clocks.
const SUSPENSION: Duration = Duration::from_millis(10);

/// The drop-in under its own name.
pub fn mlc_main() -> ExitCode {
    mlc::main(std::env::args_os().skip(1))
}

/// The native program; a link or copy of it that is called `mlc` is the drop-in.
pub fn main() -> ExitCode {
    let called = std::env::args_os().next();
    if called.is_some_and(|name| Path::new(&name).file_name().is_some_and(|name| name == "mlc")) {
        return mlc_main();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error, exit::USAGE),
    };
    let asked = match cli.asked() {
        Ok(asked) => asked,
        Err(error) => {
            output::complain(&error);
            return ExitCode::from(exit::USAGE);
        }
    };
    let done = match asked {
        Asked::Measure(request) => measure(*request),
        Asked::Info(args) => info(args),
        Asked::Count(args) => count::count(*args),
        Asked::Loop(request) => run_loop(*request),
        Asked::Render(args) => render(args),
        Asked::Prefetch(args) => prefetch::command(args),
        Asked::Mlc(args) => return mlc::main(args.into_iter()),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(match error.downcast_ref::<PlanError>() {
                Some(PlanError::Request(_)) => exit::USAGE,
                _ if matches!(error.downcast_ref(), Some(DirectoryError::Request { .. })) => exit::USAGE,
                _ if error.is::<output::BadFile>() || error.is::<count::BadEvent>() => exit::USAGE,
                _ if matches!(error.downcast_ref(), Some(LoopError::Request(_))) => exit::USAGE,
                _ => exit::COULD_NOT_MEASURE,
            })
        }
    }
}

fn measure(request: Request) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let Request { mut spec, memory_dir, output, planning, quick } = request;
    let limit = quick.as_ref().map(|_| quick::Limit::begin(spec.within));
    let root = planning.machine.as_deref().unwrap_or(Path::new("/"));
    let machine = sysfs::read_machine(root)?;
    spec.memory_dir = memory_dir.map(|path| directory::read(&path, root)).transpose()?;
    // Which kernels can run is known of this machine's CPUs only; another machine is planned without naming any.
    let kernels = if planning.machine.is_none() { memgauge_kernels::rows() } else { Vec::new() };
    let plan = memgauge_core::planner::plan(&spec, &machine, &kernels)?;
    if planning.plan {
        output::show_plan(&plan, &machine, &output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let sinks = output::Sinks::open(&output, Stream::Output)?;
    let references = quick.map(quick::References::read).transpose()?;
    let stop = signals::watch().context("cannot install signal handlers")?;
    // Before this process offers itself to the kernel's killer of processes: its guardian must not.
    let mut hold = prefetch::hold(&spec, &plan, &machine)?;
    memory::die_first();
    let clock = Clock::calibrate(root);
    let deadline = limit.map(|l| l.end(0)).or_else(|| spec.within.map(|within| begun + within));
    let with = With { clock, root, stop: &stop, quiet: output.quiet, deadline, hold: hold.as_mut() };
    let mut report = measured(plan, machine, with);
    if let Some((references, limit)) = references.as_ref().zip(limit) {
        quick::conclude(&mut report, references, &quick::Run { clock, root, stop: &stop, quiet: output.quiet, limit });
    }
    let left = hold.and_then(|hold| hold.end(&mut report));
    let unwritten = sinks.write(&report).err();
    // What went wrong with registers or files is told whatever else there is to tell, and hides nothing of it.
    let failed: Vec<anyhow::Error> = left.into_iter().chain(unwritten).collect();
    failed.iter().for_each(output::complain);
    if stop.reason().is_none() && !report.complete {
        output::complain_of_notes(&report.notes);
    }
    let incident = report.health.as_ref().is_some_and(|health| health.status == HealthStatus::Incident);
    if report.results.iter().any(scan::corrupted) {
        output::alarm(&report.notes);
        return Ok(ExitCode::from(exit::INCIDENT));
    }
    if !failed.is_empty() {
        return Ok(ExitCode::from(if incident { exit::INCIDENT } else { exit::COULD_NOT_MEASURE }));
    }
    if let Some(health) = report.health.as_ref().filter(|_| stop.reason().is_none()) {
        return Ok(quick::exit_code(health.status));
    }
    let measured = report.results.iter().any(|m| m.estimate.value.is_some());
    Ok(match (stop.reason(), report.complete, measured) {
        (Some(_), ..) => ExitCode::from(exit::INTERRUPTED),
        (None, true, _) => ExitCode::SUCCESS,
        (None, false, true) => ExitCode::from(exit::MEASURED_IN_PART),
        (None, false, false) => ExitCode::from(exit::COULD_NOT_MEASURE),
    })
}

/// What a plan is carried out with.
struct With<'a> {
    clock: Clock,
    root: &'a Path,
    stop: &'a signals::Stop,
    quiet: bool,
    /// When it ends, done or not.
    deadline: Option<Instant>,
    /// What switches prefetchers.
    hold: Option<&'a mut prefetch::Hold>,
}

/// Carries out a plan on this machine; everything that any output needs.
fn measured(plan: Plan, machine: Machine, with: With<'_>) -> Report {
    let With { clock, root, stop, quiet, deadline, hold } = with;
    let mut report = blank_report(machine, root);
    let suspended = clock::suspended_ns();
    report.environment.clock = Some(clock.report());
    let setting = Setting { machine: &report.machine, clock, root: root.to_path_buf(), stop: stop.flag(), deadline };
    let mut progress = progress::Progress::new(&plan, quiet);
    let outcome = match hold {
        Some(hold) => hold.run(&plan, &setting, &mut progress),
        None => memgauge_engine::run(&plan, &setting, &mut progress),
    };
    progress.finish();
    report.results = outcome.results;
    report.curves = outcome.curves;
    report.notes.extend(plan.notes.iter().cloned());
    report.notes.extend(outcome.notes);
    report.levels = levels::summarise(&report.results, &report.machine);
    report.notes.extend(advise::notes(&report.results, &report.machine));
    let suspended = Duration::from_nanos(clock::suspended_ns().saturating_sub(suspended));
    if suspended > SUSPENSION {
        report.notes.push(
            Note::warning("suspended", format!("the machine was suspended for {:.1} s during the run", suspended.as_secs_f64()))
                .advise("measure again: what was running then is distorted"),
        );
    }
    report.environment.core_ghz = outcome.core_ghz;
    report.complete = outcome.complete;
    let over = deadline.is_some_and(|end| Instant::now() >= end);
    let late = over || report.results.iter().any(|m| m.estimate.reason.as_deref() == Some(findings::LEFT_OUT));
    let why = if late { "the time for the whole run was over" } else { "some cells could not be measured" };
    report.incomplete_reason = stop.reason().or_else(|| (!outcome.complete).then(|| why.into()));
    report.environment.rfo = outcome.rfo;
    report.plan = Some(plan);
    limit::attach(&mut report);
    report.notes.extend(limit::note(&report));
    report.ended = clock::moment();
    let total_s = report.ended.monotonic_ns.saturating_sub(report.started.monotonic_ns) as f64 / 1e9;
    report.timing = Timing { total_s, ..outcome.timing };
    report
}

/// `memgauge stream` and `memgauge chase`: one loop in this thread. A signal ends it as it ends any program: nothing is left behind.
fn run_loop(request: LoopRequest) -> anyhow::Result<ExitCode> {
    let root = Path::new("/");
    let LoopRequest { spec, output } = request;
    let sinks = output::Sinks::open(&output, Stream::Output)?;
    let mut report = blank_report(sysfs::read_machine(root)?, root);
    memory::die_first();
    let clock = Clock::calibrate(root);
    report.environment.clock = Some(clock.report());
    let never = AtomicBool::new(false);
    let setting = Setting { machine: &report.machine, clock, root: root.to_path_buf(), stop: &never, deadline: None };
    let (measured, note) = memgauge_engine::run_loop(&spec, &setting)?;
    report.notes.extend(note);
    let wrong = measured.evidence.proof.as_ref().is_some_and(|p| p.mismatches > 0);
    report.results = vec![measured];
    report.ended = clock::moment();
    report.timing.total_s = report.ended.monotonic_ns.saturating_sub(report.started.monotonic_ns) as f64 / 1e9;
    if wrong {
        report.notes.push(
            Note::error(scan::CORRUPTED, "what the loop read is not what was written".to_owned())
                .advise("take the machine out of service, look at its log for memory errors, and test its memory"),
        );
    }
    let written = sinks.write(&report);
    if wrong {
        output::alarm(&report.notes);
        if let Err(error) = written {
            output::complain(&error);
        }
        return Ok(ExitCode::from(exit::INCIDENT));
    }
    written.map(|()| ExitCode::SUCCESS)
}

fn info(args: InfoArgs) -> anyhow::Result<ExitCode> {
    let root = args.machine.as_deref().unwrap_or(Path::new("/"));
    let sinks = output::Sinks::open(&args.output, Stream::Output)?;
    let machine = sysfs::read_machine(root)?;
    let mut report = blank_report(machine, root);
    if args.machine.is_none() {
        report.environment.clock = Some(Clock::calibrate(root).report());
    }
    report.ended = clock::moment();
    sinks.write(&report)?;
    Ok(ExitCode::SUCCESS)
}

fn render(args: RenderArgs) -> anyhow::Result<ExitCode> {
    let reports = args.files.iter().map(|f| output::read_report(f)).collect::<anyhow::Result<Vec<_>>>()?;
    let names = output::names(&args.files);
    let named: Vec<Named<'_>> = names.iter().zip(&reports).map(|(name, report)| Named { name, report }).collect();
    output::Sinks::open(&args.output, Stream::Output)?.write_all(&named)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn blank_report(machine: Machine, root: &Path) -> Report {
    Report {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: "memgauge".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            commit: option_env!("MEMGAUGE_COMMIT").map(Into::into),
        },
        argv: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
        started: clock::moment(),
        ended: Moment::default(),
        complete: true,
        incomplete_reason: None,
        environment: environment::read_environment(root, &machine),
        machine,
        plan: None,
        results: Vec::new(),
        program: None,
        curves: Vec::new(),
        levels: Vec::new(),
        timing: Timing::default(),
        notes: Vec::new(),
        health: None,
    }
}
