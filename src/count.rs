//! `memgauge count`: a program and its children, counted from start to end.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Instant;

use memgauge_core::counters::{
    Counters, CountingContext, EventEstimate, EventTotals, ExpectedEvents, MetricEstimate, ProgramCount, ProgramRun, Scope,
};
use memgauge_core::estimate::Estimate;
use memgauge_core::note::Note;
use memgauge_core::stats;
use memgauge_linux::perf::{self, Catalogue, Choice, Counting, EventSet, PerfError};
use memgauge_linux::{child, clock, sysfs};

use crate::cli::CountArgs;
use crate::output::Stream;
use crate::{blank_report, output};

/// An event on the command line that there is not.
#[derive(Debug, thiserror::Error)]
#[error("-e")]
pub(crate) struct BadEvent(#[from] PerfError);

/// Exit statuses of `env(1)` and shells for programs that do not start.
mod status {
    pub(super) const NOT_FOUND: u8 = 127;
    pub(super) const NOT_RUN: u8 = 126;
    /// Plus the signal's number.
    pub(super) const SIGNAL: i32 = 128;
}

/// An interval of a median is narrow when it is within this of it.
const NARROW: f64 = 0.01;

/// What is counted.
struct Wanted {
    set: EventSet,
    /// Why metrics have no events, when they have none.
    missing: Option<PerfError>,
}

pub(crate) fn count(args: CountArgs) -> anyhow::Result<ExitCode> {
    let root = Path::new("/");
    let machine = sysfs::read_machine(root)?;
    let sinks = output::Sinks::open(&args.output, Stream::Error)?;
    let wanted = wanted(&args, &Catalogue::read(root, &machine.identity, machine.allowed.cpus.first().unwrap_or(0)))?;
    let mut report = blank_report(machine, root);
    let (mut runs, mut sheets, mut elapsed, mut status) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut cut_short = None;
    for _ in 0..args.runs {
        let run = match run(&args.command, &wanted.set) {
            Ok(run) => run,
            Err(error) => {
                let code = not_started(&args.command, &error);
                if runs.is_empty() {
                    return Ok(ExitCode::from(code));
                }
                // What was counted before stands.
                status = if status == 0 { i32::from(code) } else { status };
                cut_short = Some("the program could not be started again");
                break;
            }
        };
        elapsed.push(run.elapsed_s);
        sheets.push(run.counters);
        let (ended, code) = ending(run.status);
        runs.push(ended);
        status = if status == 0 { code } else { status };
        if run.status.signal().is_some() {
            break;
        }
    }
    report.ended = clock::moment();
    report.complete = runs.len() == args.runs as usize;
    let ended = "the program was ended by a signal before its last run";
    report.incomplete_reason = (!report.complete).then(|| cut_short.unwrap_or(ended).to_owned());
    report.notes.extend(notes(&wanted, &sheets));
    report.program = Some(Box::new(summarise(&args.command, runs, &elapsed, &sheets)));
    sinks.write(&report)?;
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)))
}

fn wanted(args: &CountArgs, catalogue: &Catalogue) -> Result<Wanted, BadEvent> {
    let names = args.event_names();
    if !names.is_empty() {
        let mut set = EventSet::default();
        for name in names {
            let choice = catalogue.named(&name)?;
            // Units of the chip are counted machine-wide.
            if choice.on.is_empty() { set.groups.push(vec![choice]) } else { set.system.push(choice) }
        }
        return Ok(Wanted { set, missing: None });
    }
    let mut set = EventSet { groups: vec![catalogue.software()], system: Vec::new() };
    let missing = match catalogue.metrics() {
        Ok(metrics) => {
            set.groups.extend(metrics.groups);
            set.system = metrics.system;
            None
        }
        Err(error) => Some(error),
    };
    Ok(Wanted { set, missing })
}

struct Run {
    status: ExitStatus,
    elapsed_s: f64,
    counters: Counters,
}

fn run(command: &[OsString], set: &EventSet) -> io::Result<Run> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let own = Counting::of_program(&set.groups);
    let system = Counting::of_system(set);
    let before = (own.read(), system.read());
    system.enable();
    let started = Instant::now();
    let status = child::run(Command::new(program).args(arguments))?;
    let elapsed_s = started.elapsed().as_secs_f64();
    system.disable();
    let after = (own.read(), system.read());
    let mut threads: Vec<Result<EventTotals, String>> = vec![Ok(EventTotals::default()); set.groups.iter().flatten().count()];
    let mut chip: Vec<Result<EventTotals, String>> = vec![Ok(EventTotals::default()); set.system.len()];
    own.add(&mut threads, &before.0, &after.0);
    system.add(&mut chip, &before.1, &after.1);
    let scope = if own.user_only() { Scope::User } else { Scope::UserAndKernel };
    // Cycles of user code alone over all of the time would be no frequency.
    let ran = set.groups.iter().flatten().position(|c: &Choice| c.event.name == "task-clock");
    let thread_s = ran.and_then(|i| threads[i].as_ref().ok()).filter(|_| scope == Scope::UserAndKernel).map_or(0.0, |t| t.raw as f64 / 1e9);
    threads.extend(chip);
    // A program that starts is loaded from memory: its first accesses miss the core's own caches.
    let certain = ExpectedEvents { loads: true, l1_missed: true, l2_missed: true, llc_missed: false };
    let account = CountingContext { scope, threads: 0, thread_s, wall_s: elapsed_s, work: None, expected: certain };
    Ok(Run { status, elapsed_s, counters: Counters::new(&account, &perf::counted(set.choices(), &threads)) })
}

fn ending(status: ExitStatus) -> (ProgramRun, i32) {
    match (status.code(), status.signal()) {
        (Some(code), _) => (ProgramRun::Exited(code), code),
        (None, signal) => (ProgramRun::Killed(signal.unwrap_or(0)), status::SIGNAL + signal.unwrap_or(0)),
    }
}

/// Tells why it did not start; the exit status of that.
fn not_started(command: &[OsString], error: &io::Error) -> u8 {
    let program = command.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    output::complain(&anyhow::anyhow!("cannot run {program}: {error}"));
    if error.kind() == io::ErrorKind::NotFound { status::NOT_FOUND } else { status::NOT_RUN }
}

/// One note for everything that is not counted.
fn notes(wanted: &Wanted, sheets: &[Counters]) -> Vec<Note> {
    let mut reasons: Vec<String> = wanted.missing.iter().map(ToString::to_string).collect();
    let gaps = sheets.first().map(Counters::gaps).unwrap_or_default();
    reasons.extend(gaps.iter().map(|(reason, events)| format!("{}: {reason}", events.join(", "))));
    if reasons.is_empty() {
        return Vec::new();
    }
    vec![Note::warning("counters-missing", format!("not counted: {}", reasons.join("; ")))]
}

fn summarise(command: &[OsString], runs: Vec<ProgramRun>, elapsed: &[f64], sheets: &[Counters]) -> ProgramCount {
    let estimate = |values: Vec<f64>, reason: Option<&String>| match values.is_empty() {
        true => Estimate { reason: reason.cloned(), ..Estimate::default() },
        false => stats::estimate(&[values], NARROW),
    };
    let first = sheets.first();
    let events = first.map_or(&[][..], |c| &c.events).iter().enumerate().map(|(i, e)| EventEstimate {
        event: e.event.clone(),
        unit: perf::counts_nanoseconds(&e.event.name).then(|| "ns".to_owned()),
        estimate: estimate(sheets.iter().filter_map(|c| c.events.get(i)?.value).collect(), e.reason.as_ref()),
    });
    let metrics = first.map_or(&[][..], |c| &c.metrics).iter().map(|m| MetricEstimate {
        metric: m.metric,
        formula: m.formula.clone(),
        unit: m.unit,
        estimate: estimate(sheets.iter().filter_map(|c| c.metric(m.metric)).collect(), m.reason.as_ref()),
    });
    ProgramCount {
        command: command.iter().map(|c| c.to_string_lossy().into_owned()).collect(),
        scope: first.map_or(Scope::User, |c| c.scope),
        runs,
        elapsed_s: stats::estimate(&[elapsed.to_vec()], NARROW),
        running: sheets.iter().filter_map(|c| c.running).reduce(f64::min),
        events: events.collect(),
        metrics: metrics.collect(),
    }
}
