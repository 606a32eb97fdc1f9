//! `memgauge watch`: the state of the machine over minutes or days.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use memgauge_analysis::conclusions::others;
use memgauge_analysis::conclusions::watch::Watcher;
use memgauge_engine::RunContext;
use memgauge_model::experiment_table::PanelName;
use memgauge_model::plan::Plan;
use memgauge_model::properties::changed_settings;
use memgauge_model::result::{Condition, OthersScale, Report, Stamp, StateChange, Watch, WatchPoint};
use memgauge_model::spec::{Spec, Task};
use memgauge_os::clock::Clock;
use memgauge_os::memory;
use memgauge_render::{Appearance, Document, Format, watch_head, watch_json_line, watch_line};

use crate::cli::watch::WatchArgs;
use crate::console::{Program, Stream};
use crate::exit::{ExitStatus, UsageError};
use crate::machine;
use crate::metrics_server::MetricsServer;
use crate::output_file::OutputFile;
use crate::report;
use crate::runner::Runner;
use crate::signals::{self, Stop};
use crate::sinks::{Sinks, read_report};

/// Stamps take at most one hundredth of the time.
const ONE_IN: u32 = 100;
/// From one stamp to the next unless asked otherwise.
const EVERY: Duration = Duration::from_secs(20);

/// Takes stamps until the time is over or a signal comes, and tells changes of state.
pub(crate) fn watch(args: WatchArgs) -> anyhow::Result<ExitStatus> {
    let mut panels = PanelName::OF_WATCH.to_vec();
    panels.retain(|panel| *panel != PanelName::OTHERS || args.curve.is_some() || args.measure_curve);
    args.report.output.check_figures(&panels, "")?;
    let identity = args.report.identity()?;
    let root = machine::root();
    let machine = machine::read(root)?;
    let plan = memgauge_planner::stamp_of_watch(&machine, &memgauge_kernels::rows())?;
    let every = interval(args.every, plan.max_s)?;
    let mut report = report::blank(machine.clone(), root, &identity);
    let scale = args.curve.as_deref().map(|path| read_scale(path, &report)).transpose()?;
    let sinks = Sinks::of_results(&args.report.output, Stream::Output)?;
    let sinks = if args.prints_lines() { sinks.files_only() } else { sinks };
    let mut outputs = Outputs::open(&args)?;
    let stop = signals::watch().context("cannot install signal handlers")?;
    memory::prefer_out_of_memory_kill();
    let clock = Clock::calibrate(root);
    report.environment.clock = Some(clock.report());
    let runner = Runner::begin(machine::context(&machine, clock, stop.flag()), &stop, args.report.output.to.quiet);
    let measured = if args.measure_curve { Some(measure_scale(&runner, &mut report)) } else { None };
    if stop.interruption().is_some() {
        return Ok(status(&report, &stop, args.time));
    }
    let scale = measured.transpose()?.or(scale);
    outputs.begin(&report, every, args.time, plan.max_s)?;
    let times = Times { every, time: args.time };
    let watched = follow(times, &runner.context, &plan, Watcher::new(every.as_secs_f64(), scale), &mut report, &mut outputs);
    report::end(&mut report);
    // The result is kept even if an output failed.
    let kept = if report.watch.as_ref().is_some_and(|watch| watch.stamps > 0) { sinks.keep(&report) } else { Ok(()) };
    watched.and(kept)?;
    Ok(status(&report, &stop, args.time))
}

/// The time from one stamp to the next, if one takes at most `stamp_s`.
///
/// # Errors
/// When stamps so often would take more than their share of the time.
fn interval(asked: Option<Duration>, stamp_s: f64) -> Result<Duration, UsageError> {
    let least = Duration::from_secs_f64((stamp_s * f64::from(ONE_IN)).ceil());
    match asked {
        Some(asked) if asked < least => {
            let why = format!(
                "a stamp takes up to {stamp_s:.1} s here, and at most 1 % of the time: --every must be {} s or more",
                least.as_secs()
            );
            Err(UsageError(why))
        }
        asked => Ok(asked.unwrap_or(least.max(EVERY))),
    }
}

/// When stamps begin, and how long the watch lasts.
#[derive(Clone, Copy)]
struct Times {
    every: Duration,
    time: Option<Duration>,
}

/// The exit status: a watch without an end is ended by a signal.
fn status(report: &Report, stop: &Stop, time: Option<Duration>) -> ExitStatus {
    if stop.interruption().is_some() && time.is_some() {
        return ExitStatus::INTERRUPTED;
    }
    let seen = report.watch.as_ref().is_some_and(|watch| watch.points.iter().any(|point| !point.probes.is_empty()));
    if seen || stop.interruption().is_some() { ExitStatus::SUCCESS } else { ExitStatus::COULD_NOT_MEASURE }
}

/// Takes stamps, and writes what each of them shows.
///
/// # Errors
/// When one of the outputs cannot be written.
fn follow(
    times: Times,
    context: &RunContext<'_>,
    plan: &Plan,
    mut watcher: Watcher,
    report: &mut Report,
    outputs: &mut Outputs,
) -> anyhow::Result<()> {
    let end = times.time.map(|time| context.now() + time);
    // The machine as it was at the last stamp that shows a state.
    let mut settings = machine::now(report, &context.root);
    let mut written = Ok(());
    let mut due = context.now();
    memgauge_engine::stamps(plan, context, &mut |stamp| {
        let now = machine::now(report, &context.root);
        let (point, change) = watcher.see(&stamp, changed_settings(&settings, &now));
        if matches!(point.condition, Some(Condition::Quiet { .. })) {
            settings = now;
        }
        // One that took longer than planned does not have more of the time.
        due = (due + times.every).max(context.now() + Duration::from_secs_f64(stamp.took_s) * (ONE_IN - 1));
        keep_state(report, stamp);
        written = outputs.write(report, watcher.watch(), &point, change.as_ref());
        Some(due).filter(|due| written.is_ok() && end.is_none_or(|end| *due < end))
    });
    report.watch = Some(Box::new(watcher.into_watch()));
    written
}

/// Keeps the first stamp and the last.
fn keep_state(report: &mut Report, stamp: Stamp) {
    let state = report.state.get_or_insert_default();
    state.stamps.truncate(1);
    state.stamps.push(stamp);
}

/// The scale in a file, which must be of the machine that is watched.
fn read_scale(path: &Path, watched: &Report) -> Result<OthersScale, UsageError> {
    let report = read_report(path)?;
    let known = |report: &Report| report.run.host.as_ref().is_some_and(|host| host.machine_id_hash.is_some());
    if known(&report) && known(watched) && !report.is_of_same_machine(watched) {
        return Err(UsageError::file(path, "is a result of another machine; measure the curve on this one with memgauge loaded -o FILE"));
    }
    let none =
        || UsageError::file(path, "has no curve of latency under load with three points or more; make one with memgauge loaded -o FILE");
    others::scale(&report, Some(path.display().to_string())).ok_or_else(none)
}

/// Measures the curve that latency is read by.
///
/// # Errors
/// When it cannot be planned, or has fewer than three points.
fn measure_scale(runner: &Runner<'_>, report: &mut Report) -> anyhow::Result<OthersScale> {
    let spec = Spec::new(Task::loaded());
    let plan = memgauge_planner::plan(&spec, runner.context.machine, &memgauge_kernels::rows())?;
    runner.measure(&plan, None, report);
    report.plan = Some(plan);
    others::scale(report, None).context("the curve of latency under load could not be measured; try again, or give one with --curve FILE")
}

/// The outputs that are written during the watch.
struct Outputs {
    /// Lines of text for each change go to standard output.
    printed: Option<Appearance>,
    lines: Option<Lines>,
    textfile: Option<OutputFile>,
    server: Option<MetricsServer>,
    quiet: bool,
}

/// Where JSON lines go.
enum Lines {
    Standard,
    File(File),
}

impl Outputs {
    /// Opens all of them.
    ///
    /// # Errors
    /// When a file cannot be written, or the address cannot be used.
    fn open(args: &WatchArgs) -> anyhow::Result<Self> {
        let standard = args.prints_lines();
        let to = &args.report.output.to;
        if standard && to.format != Format::TEXT {
            return Err(UsageError("--lines - and --format both write to standard output; leave one out".into()).into());
        }
        let append = |path: &Path| {
            let file = OpenOptions::new().append(true).create(true).open(path);
            file.map_err(|error| UsageError::file(path, format_args!("cannot be written: {error}")))
        };
        let lines = match args.lines.as_deref() {
            None => None,
            Some(_) if standard => Some(Lines::Standard),
            Some(path) => Some(Lines::File(append(path)?)),
        };
        let textfile = args.textfile.as_deref().map(OutputFile::open).transpose()?;
        let listen = |address| {
            MetricsServer::listen(address)
                .map_err(|error| UsageError(format!("--listen {address}: {error}; choose another port or address")))
        };
        let server = args.listen.map(listen).transpose()?;
        let prints = to.format == Format::TEXT && !to.quiet && !standard;
        let printed =
            prints.then(|| Appearance { width: Stream::Output.width(), colour: Stream::Output.colours(), ..Appearance::default() });
        Ok(Self { printed, lines, textfile, server, quiet: to.quiet })
    }

    /// Says what will be done.
    fn begin(&self, report: &Report, every: Duration, time: Option<Duration>, stamp_s: f64) -> anyhow::Result<()> {
        if let Some(server) = self.server.as_ref().filter(|_| !self.quiet) {
            let others = if server.address().ip().is_loopback() { "" } else { ", for everyone who reaches this address" };
            Program::MEMGAUGE.message(format_args!("metrics are at http://{}/metrics{others}", server.address()));
        }
        let Some(appearance) = &self.printed else { return Ok(()) };
        let head = watch_head(report, stamp_s, every.as_secs_f64(), time.map(|time| time.as_secs_f64()), appearance);
        Stream::Output.print(head.as_bytes())
    }

    /// Writes what a stamp shows.
    fn write(&mut self, report: &Report, watch: &Watch, point: &WatchPoint, change: Option<&StateChange>) -> anyhow::Result<()> {
        if let (Some(appearance), Some(change)) = (&self.printed, change) {
            Stream::Output.print(watch_line(change, watch, appearance).as_bytes())?;
        }
        if let Some(lines) = &mut self.lines {
            let line = watch_json_line(point, change)?;
            match lines {
                Lines::Standard => Stream::Output.print(&line)?,
                // One call a line: others may append, too.
                Lines::File(file) => file.write_all(&line).context("cannot write --lines")?,
            }
        }
        if self.textfile.is_none() && self.server.is_none() {
            return Ok(());
        }
        // Metrics show the last stamp alone.
        let last = Watch { changes: Vec::new(), points: vec![point.clone()], states: Vec::new(), others: watch.others.clone(), ..*watch };
        let metrics = Report { watch: Some(Box::new(last)), ..report.clone() }.render(Format::OPENMETRICS, &Appearance::default())?;
        if let Some(file) = &self.textfile {
            file.write(&metrics).with_context(|| format!("cannot write {}", file.path().display()))?;
        }
        if let Some(server) = &self.server {
            server.show(metrics);
        }
        Ok(())
    }
}
