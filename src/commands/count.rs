//! `memgauge count`: a program and its children, counted from start to end.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use memgauge_model::counters::{
    Counters, CountingContext, EventEstimate, EventTotals, ExpectedEvents, MetricEstimate, ProgramCount, ProgramRun, Scope,
};
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::result::Incomplete;
use memgauge_model::stats;
use memgauge_model::topology::Cpu;
use memgauge_os::counters::{self, Catalogue, CounterError, EncodedEvent, EventSet, OpenCounters};
use memgauge_os::security::explained;
use memgauge_os::{program, topology};

use crate::cli::count::CountArgs;
use crate::console::{Program, Stream};
use crate::exit::{ExitStatus, UsageError};
use crate::report;
use crate::sinks::Sinks;

/// What `env(1)` and shells exit with when there is no such program.
const NOT_FOUND: u8 = 127;
/// What they exit with when it cannot be run.
const CANNOT_RUN: u8 = 126;
/// What shells add to the number of the signal that ended a program.
const SIGNAL: i32 = 128;

/// The interval of a median is narrow when it is within this share of it.
const NARROW: f64 = 0.01;

/// What to count.
struct Events {
    set: EventSet,
    /// Why there are no events for the metrics, when there are none.
    missing: Option<CounterError>,
}

/// All runs of the program.
#[derive(Default)]
struct CountedRuns {
    ended: Vec<ProgramRun>,
    counts: Vec<Counters>,
    elapsed_s: Vec<f64>,
    /// The first exit status that is not 0.
    status: u8,
    /// Why there are fewer runs than requested.
    incomplete: Option<Incomplete>,
}

/// Runs the program as often as requested. Its exit status becomes that of memgauge.
pub(crate) fn count(args: CountArgs) -> anyhow::Result<ExitStatus> {
    let root = Path::new("/");
    let machine = topology::read_machine(root)?;
    args.report.output.check_figures(&[], "counters are numbers without an axis: keep them with .json or .txt")?;
    let sinks = Sinks::of_results(&args.report.output, Stream::Error)?;
    let identity = args.report.identity()?;
    let cpu = machine.allowed.cpus.first().unwrap_or(0);
    let mut events = choose_events(&args, &Catalogue::read(root, &machine.identity, cpu))?;
    events.set = events.set.fitted(cpu);
    let one_kind = hybrid_note(&machine.topology.cpus, cpu).filter(|_| events.set.counts_one_kind_of_core());
    let mut report = report::blank(machine, root, &identity);
    let runs = CountedRuns::repeat(&args, &events.set);
    if runs.ended.is_empty() {
        return Ok(ExitStatus(runs.status));
    }
    report::end(&mut report);
    let status = runs.status;
    report.complete = runs.incomplete.is_none();
    report.incomplete.clone_from(&runs.incomplete);
    report.notes.extend(missing_note(&events, &runs.counts));
    report.notes.extend(one_kind);
    report.program = Some(Box::new(summarise(&args.command, runs)));
    sinks.keep(&report)?;
    Ok(ExitStatus(status))
}

impl CountedRuns {
    /// Runs the program until it cannot be started or a signal ends it.
    fn repeat(args: &CountArgs, set: &EventSet) -> Self {
        let mut runs = Self::default();
        for number in 1..=args.runs {
            let run = match CountedRun::start(&args.command, set) {
                Ok(run) => run,
                Err(error) => {
                    runs.set_status(not_started(&args.command, &error));
                    runs.incomplete = Some(Incomplete::ProgramNotRestarted);
                    break;
                }
            };
            runs.set_status(exit_code(&run.ended));
            runs.counts.push(run.counters);
            runs.elapsed_s.push(run.elapsed_s);
            let killed = matches!(run.ended, ProgramRun::Killed(_));
            runs.ended.push(run.ended);
            if killed {
                runs.incomplete = (number < args.runs).then_some(Incomplete::ProgramKilled);
                break;
            }
        }
        runs
    }

    const fn set_status(&mut self, status: u8) {
        if self.status == 0 {
            self.status = status;
        }
    }
}

fn choose_events(args: &CountArgs, catalogue: &Catalogue) -> Result<Events, UsageError> {
    let names = args.event_names();
    if names.iter().any(String::is_empty) {
        return Err(UsageError(
            "-e: the name of an event is missing; give names with commas between them, such as page-faults,cycles".into(),
        ));
    }
    if !names.is_empty() {
        let mut set = EventSet::default();
        for name in names {
            let choice = catalogue.named(&name).map_err(|error| UsageError(format!("-e: {error}")))?;
            // Units outside the cores are counted for the whole machine.
            if choice.cpus.is_empty() { set.groups.push(vec![choice]) } else { set.system.push(choice) }
        }
        return Ok(Events { set, missing: None });
    }
    let mut set = EventSet { groups: vec![catalogue.software()], ..EventSet::default() };
    let missing = match catalogue.metrics() {
        Ok(metrics) => {
            set.groups.extend(metrics.groups);
            (set.system, set.uncounted) = ([metrics.system, metrics.mesh].concat(), metrics.uncounted);
            None
        }
        Err(error) => Some(error),
    };
    Ok(Events { set, missing })
}

/// One run of the program.
struct CountedRun {
    ended: ProgramRun,
    elapsed_s: f64,
    counters: Counters,
}

impl CountedRun {
    fn start(command: &[OsString], set: &EventSet) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let own = OpenCounters::for_program(&set.groups);
        let system = OpenCounters::for_system(set);
        let before = (own.read(), system.read());
        system.enable();
        let started = Instant::now();
        let ended = program::run(Command::new(program).args(arguments))?;
        let elapsed_s = started.elapsed().as_secs_f64();
        system.disable();
        let after = (own.read(), system.read());
        let mut threads: Vec<Result<EventTotals, String>> = vec![Ok(EventTotals::default()); set.groups.iter().flatten().count()];
        let mut chip: Vec<Result<EventTotals, String>> = vec![Ok(EventTotals::default()); set.system.len()];
        own.add(&mut threads, &before.0, &after.0);
        system.add(&mut chip, &before.1, &after.1);
        let scope = if own.user_only() { Scope::User } else { Scope::UserAndKernel };
        // Cycles of user code alone, divided by all of the time, are not a frequency.
        let ran = set.groups.iter().flatten().position(|c: &EncodedEvent| c.event.name == "task-clock");
        let thread_s =
            ran.and_then(|i| threads[i].as_ref().ok()).filter(|_| scope == Scope::UserAndKernel).map_or(0.0, |t| t.raw as f64 / 1e9);
        threads.extend(chip);
        // A program that starts is loaded from memory, so its first accesses miss the core's own caches.
        let certain = ExpectedEvents { loads: true, l1_missed: true, l2_missed: true, llc_missed: false };
        let account = CountingContext { scope, threads: 0, thread_s, wall_s: elapsed_s, work: None, expected: certain };
        Ok(Self { ended, elapsed_s, counters: Counters::new(&account, &counters::join_counts(set.events(), &threads)) })
    }
}

/// The exit status that says how the program ended.
pub(super) fn exit_code(ended: &ProgramRun) -> u8 {
    let code = match ended {
        ProgramRun::Exited(code) => *code,
        ProgramRun::Killed(signal) => SIGNAL + signal,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Reports why the program did not start, and returns the exit status that says so.
pub(super) fn not_started(command: &[OsString], error: &io::Error) -> u8 {
    let program = command.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    Program::MEMGAUGE.message(format_args!("cannot run {program}: {}", explained(error)));
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN }
}

/// Says on a hybrid machine which cores' events are counted: those of CPUs like `cpu`. The kernel lets an event wait while its thread is on
/// another kind of core, as it does while events take turns, so the count is scaled for that time.
fn hybrid_note(cpus: &[Cpu], cpu: u32) -> Option<Note> {
    let kind = cpus.iter().find(|c| c.id == cpu)?.kind.as_ref()?;
    let others: BTreeSet<&str> = cpus.iter().filter_map(|c| c.kind.as_deref()).filter(|other| other != kind).collect();
    let others = Vec::from_iter(others).join(" and ");
    (!others.is_empty()).then(|| {
        Note::warning(
            NoteCode::CountersOneKindOfCore,
            format!(
                "only the events of {kind} cores are counted: what ran on {others} cores is estimated as if it had run on {kind} cores"
            ),
        )
        .advise(format!("run the program on one kind of core (taskset), such as that of CPU {cpu}"))
    })
}

/// One note for everything that was not counted.
fn missing_note(events: &Events, counts: &[Counters]) -> Option<Note> {
    let mut reasons: Vec<String> = events.missing.iter().map(ToString::to_string).collect();
    let gaps = counts.first().map(Counters::gaps).unwrap_or_default();
    reasons.extend(gaps.iter().map(|(reason, events)| format!("{}: {reason}", events.join(", "))));
    reasons.extend(events.set.left_out());
    (!reasons.is_empty()).then(|| Note::warning(NoteCode::CountersMissing, format!("not counted: {}", reasons.join("; "))))
}

fn summarise(command: &[OsString], runs: CountedRuns) -> ProgramCount {
    let CountedRuns { ended, counts, elapsed_s, .. } = runs;
    let estimate = |values: Vec<f64>, reason: Option<&String>| match values.is_empty() {
        true => {
            let not_measured = reason.map(|why| NotMeasured::NotCounted { detail: why.clone() });
            Estimate { not_measured, ..Estimate::default() }
        }
        false => stats::estimate(&[values], NARROW),
    };
    let first = counts.first();
    let events = first.map_or(&[][..], |c| &c.events).iter().enumerate().map(|(i, e)| EventEstimate {
        event: e.event.clone(),
        unit: counters::counts_nanoseconds(&e.event.name).then(|| "ns".to_owned()),
        estimate: estimate(counts.iter().filter_map(|c| c.events.get(i)?.value).collect(), e.reason.as_ref()),
    });
    let metrics = first.map_or(&[][..], |c| &c.metrics).iter().map(|m| MetricEstimate {
        metric: m.metric,
        formula: m.formula.clone(),
        unit: m.unit,
        estimate: estimate(counts.iter().filter_map(|c| c.metric(m.metric)).collect(), m.reason.as_ref()),
    });
    ProgramCount {
        command: command.iter().map(|c| c.to_string_lossy().into_owned()).collect(),
        scope: first.map_or(Scope::User, |c| c.scope),
        runs: ended,
        elapsed_s: stats::estimate(&[elapsed_s], NARROW),
        running: counts.iter().filter_map(|c| c.running).reduce(f64::min),
        events: events.collect(),
        metrics: metrics.collect(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use memgauge_model::topology::Cpu;
    use memgauge_model::units::IdSet;

    use super::hybrid_note;
    use crate::cli::{Cli, Invocation};

    #[test]
    fn on_a_hybrid_machine_a_note_says_which_cores_are_counted() {
        let cpu = |id: u32, kind: Option<&str>| Cpu {
            id,
            package: 0,
            die: None,
            cluster: None,
            core: id,
            siblings: IdSet::default(),
            node: 0,
            kind: kind.map(str::to_owned),
            capacity: None,
            max_mhz: None,
        };
        let hybrid = [cpu(0, Some("performance")), cpu(1, Some("performance")), cpu(2, Some("efficiency"))];
        let note = hybrid_note(&hybrid, 0).unwrap();
        assert!(
            note.message.to_string().contains("performance cores are counted")
                && note.message.to_string().contains("ran on efficiency cores"),
            "{note:?}"
        );
        assert!(hybrid_note(&hybrid, 2).unwrap().message.to_string().starts_with("only the events of efficiency"));
        assert_eq!(hybrid_note(&hybrid[..2], 0), None);
        assert_eq!(hybrid_note(&[cpu(0, None), cpu(1, None)], 0), None, "all alike");
    }

    #[test]
    fn events_and_the_program_are_told_apart() {
        let line = ["memgauge", "count", "-e", "cpu/event=0xd1,umask=0x20/,page-faults", "-e", "cycles", "-r", "3", "--", "ls", "-e", "x"];
        let Ok(Invocation::Count(args)) = Cli::try_parse_from(line).unwrap().invocation() else { panic!("counts") };
        assert_eq!(args.event_names(), ["cpu/event=0xd1,umask=0x20/", "page-faults", "cycles"]);
        assert_eq!((args.runs, args.command), (3, ["ls", "-e", "x"].map(Into::into).to_vec()));
        assert!(Cli::try_parse_from(["memgauge", "count"]).is_err(), "a program is needed");
        assert!(Cli::try_parse_from(["memgauge", "count", "-r", "0", "--", "ls"]).is_err());
    }
}
