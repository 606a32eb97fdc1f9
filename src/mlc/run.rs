//! A run of the drop-in: plans, measures and prints one section after the other.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Context, anyhow};
use memgauge_analysis::conclusions::scan;
use memgauge_engine::RunContext;
use memgauge_model::experiment::PageRequest;
use memgauge_model::note::{Note, NoteCode, Severity};
use memgauge_model::plan::{KernelRow, Plan};
use memgauge_model::result::Report;
use memgauge_model::spec::{Spec, Task};
use memgauge_model::topology::{Allowed, Machine};
use memgauge_model::wording::native::FrontEnd;
use memgauge_model::wording::{self, reasons};
use memgauge_os::clock::Clock;
use memgauge_os::directory::DirectoryError;
use memgauge_os::process::standard_output_was_closed;
use memgauge_os::{cpu, directory, memory};
use memgauge_planner::PlanError;
use memgauge_render::plan_of_run_text;

use super::letters::{self, CommandLine, Letters, Mode};
use super::live::Live;
use super::messages::{Doubts, message, of_error, of_note};
use super::prefetchers::{self, ChasePrefetchers};
use super::sections::{self, Inputs, Section, SectionKind, Translation};
use super::text::{banner, evidence, header, prefetchers_on};
use crate::console::{Program, Stream, failures, is_broken_pipe};
use crate::exit::{ExitStatus, UsageError};
use crate::host::HostIdentity;
use crate::input;
use crate::machine;
use crate::report;
use crate::runner::Runner;
use crate::signals::{self, Stop};

/// Width of a plan that `-v` prints.
const PLAN_WIDTH: usize = 100;

/// Answers a command line of mlc's, without the program's name.
pub(crate) fn run(args: &[OsString]) -> anyhow::Result<ExitStatus> {
    let banner = print(banner());
    let (mode, letters) = match letters::parse(args) {
        Ok(CommandLine::Usage) => {
            banner.and_then(|()| print(letters::usage()))?;
            return Ok(ExitStatus::SUCCESS);
        }
        Ok(CommandLine::Measure { mode, letters, ignored }) => {
            ignored.iter().for_each(|what| message(format_args!("ignored: {what}")));
            (mode, letters)
        }
        Err(error) => {
            message(&error);
            banner.and_then(|()| print(letters::usage()))?;
            return Ok(ExitStatus::USAGE);
        }
    };
    let words = || args.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let begun = banner.and_then(|()| if mode == Mode::Full { Ok(()) } else { print(format!("Command line parameters: {} \n\n", words())) });
    let outcome = begun.and_then(|()| measure(mode, &letters)).or_else(|error| {
        // A reader that went away did not get its results.
        if is_broken_pipe(&error) {
            message("standard output was closed before all was printed");
            return Ok(ExitStatus::COULD_NOT_MEASURE);
        }
        message(of_error(mode, &error));
        Ok(ExitStatus::from(&error))
    });
    if standard_output_was_closed() {
        message("standard output was closed when mlc was started: its tables are lost");
    }
    outcome
}

/// Writes to standard output at once, for a reader that follows. Who closed it before the start wants the traffic only.
fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    if standard_output_was_closed() {
        return Ok(());
    }
    Stream::Output.print(text.as_ref())
}

/// Files that options name. Each is read once: the translation is made twice where prefetchers can be switched off, and a pipe gives its
/// text once.
#[derive(Default)]
struct Files(RefCell<BTreeMap<PathBuf, String>>);

impl Files {
    fn read(&self, path: &Path) -> Result<String, String> {
        if let Some(text) = self.0.borrow().get(path) {
            return Ok(text.clone());
        }
        let text = input::read_text(path).map_err(|e| e.to_string())?;
        self.0.borrow_mut().insert(path.to_owned(), text.clone());
        Ok(text)
    }
}

/// Prefetchers that are switched off for chases.
struct Switched {
    prefetchers: ChasePrefetchers,
    /// The measurements for the time after they cannot be switched any more.
    otherwise: Translation,
}

/// Translates letters, with prefetchers off for chases where that is possible.
fn translate(
    mode: Mode,
    letters: &Letters,
    context: &RunContext<'_>,
    kernels: &[KernelRow],
) -> anyhow::Result<(Translation, Option<Switched>)> {
    let files = Files::default();
    let read = |path: &Path| files.read(path);
    let directory = |path: &Path| {
        let refused = |error: DirectoryError| of_error(mode, &error.into());
        directory::read(path, &context.root).map_err(refused)
    };
    let inputs = |prefetchers_off| Inputs { machine: context.machine, kernels, prefetchers_off, read: &read, directory: &directory };
    let with = |off| sections::translate(mode, letters, &inputs(off)).map_err(UsageError);
    let translation = with(false)?;
    if !translation.prefetchers_on || prefetchers::left_alone() {
        return Ok((translation, None));
    }
    let cpus = prefetchers::chasing_cpus(&translation, context.machine, kernels);
    // A section that cannot be planned is reported when it begins, and no register is touched for it.
    if cpus.is_empty() {
        return Ok((translation, None));
    }
    match ChasePrefetchers::begin(&cpus, context, kernels) {
        Ok(prefetchers) => Ok((with(true)?, Some(Switched { prefetchers, otherwise: translation }))),
        Err(why) => {
            message(format_args!("prefetchers stay on: {}", of_error(mode, &why)));
            Ok((translation, None))
        }
    }
}

fn measure(mode: Mode, letters: &Letters) -> anyhow::Result<ExitStatus> {
    let root = machine::root();
    widen_affinity(root);
    let machine = machine::read(root)?;
    let kernels = memgauge_kernels::rows();
    let stop = signals::watch_as_shells_count().context("cannot install signal handlers")?;
    let clock = Clock::calibrate(root);
    let context = machine::context(&machine, clock, stop.flag());
    let translated = translate(mode, letters, &context, &kernels);
    // A signal may have come during the wait for a writer of a pipe that an option names.
    if let (Err(_), Some(interruption)) = (&translated, stop.interruption()) {
        message(reasons::incomplete(&interruption));
        return Ok(stop.status());
    }
    let (mut translation, mut switched) = translated?;
    policy_message(&machine.allowed).iter().for_each(message);
    // The guardian was started before, because it must not inherit that this process offers itself to the out-of-memory killer.
    memory::prefer_out_of_memory_kill();
    translation.notes.iter().for_each(message);
    translation.suit_clock(clock.step_ns()).iter().for_each(message);
    // Its messages are the same, so they are dropped.
    switched.iter_mut().for_each(|switched| drop(switched.otherwise.suit_clock(clock.step_ns())));
    let runner = SectionRunner { mode, root, clock, stop: &stop, kernels: &kernels, verbose: letters.verbose };
    let measured = measure_sections(&translation, &runner, switched.as_mut());
    // Prefetchers are put back before anything else is reported, even if the measurement failed.
    let not_restored = switched.and_then(|switched| switched.prefetchers.end().err());
    not_restored.iter().for_each(|error| message(format_args!("{error:#}")));
    let status = measured?;
    Ok(if not_restored.is_some() && status != ExitStatus::INCIDENT { ExitStatus::COULD_NOT_MEASURE } else { status })
}

/// Adds the CPUs that an inherited mask leaves out, but a cpuset allows: the original sets its threads' affinity itself, whatever it inherits.
fn widen_affinity(root: &Path) {
    match cpu::widen_affinity(root) {
        Ok(None) => {}
        Ok(Some(back)) => {
            message(format_args!(
                "CPUs {back} are used although the CPU mask that mlc was started with (taskset, numactl) leaves them out"
            ));
        }
        Err(error) => message(format_args!("the CPU mask that mlc was started with stays: {error}")),
    }
}

/// Which memory is measured where no option names a node, if the caller's memory policy says so.
fn policy_message(allowed: &Allowed) -> Option<String> {
    let several = allowed.nodes.len() > 1;
    if let (true, None, Some(why)) = (several, &allowed.memory_policy, &allowed.memory_policy_unknown) {
        return Some(format!("it is not known which memory policy mlc was started with ({why}): memory is bound to each CPU's own node"));
    }
    let policy = allowed.inherited_policy()?;
    Some(format!(
        "memory policy that mlc was started with (numactl): {}; it places memory for which no option names a node, and matrices keep all nodes",
        wording::memory_policy(policy)
    ))
}

fn measure_sections(
    translation: &Translation,
    runner: &SectionRunner<'_>,
    mut switched: Option<&mut Switched>,
) -> anyhow::Result<ExitStatus> {
    let (mode, stop) = (runner.mode, runner.stop);
    if mode == Mode::Full && translation.prefetchers_on {
        print(prefetchers_on(translation.system))?;
    }
    let (mut anything, mut missing) = (false, false);
    let mut doubts = Doubts::default();
    // Prefetchers cannot be switched any more.
    let mut lost = false;
    for (index, planned) in translation.sections.iter().enumerate() {
        if stop.interruption().is_some() {
            break;
        }
        let (mut translation, mut section, mut off) = (translation, planned, None);
        if let Some(Switched { prefetchers, otherwise }) = switched.as_deref_mut().filter(|_| planned.chases()) {
            if !lost && let Err(why) = prefetchers.off() {
                lost = true;
                message(format_args!("prefetchers stay on from here: {}", of_error(mode, &why)));
                // Some may have been switched. If putting them back fails now, it is tried again at the end, which reports a failure.
                let _ = prefetchers.back();
                if mode == Mode::Full {
                    print(prefetchers_on(translation.system))?;
                }
            }
            if lost {
                let otherwise: &Translation = otherwise;
                (translation, section) = (otherwise, otherwise.sections.get(index).unwrap_or(planned));
            } else {
                off = Some(prefetchers);
            }
        }
        let header = |plans: &[Plan]| if mode == Mode::Full { String::new() } else { header(section.kind, translation, plans) };
        let report = match runner.measure_switched(section, &header, off) {
            Ok(report) => report,
            // Part of a full run may be impossible here: latency under load needs two cores.
            Err(error) if mode == Mode::Full && error.is::<PlanError>() => {
                message(format_args!("not measured: {}", of_error(mode, &error)));
                missing = true;
                continue;
            }
            Err(error) => return Err(error),
        };
        if report.measurements().any(scan::corrupted) {
            Program::MLC.corrupted(&report.notes);
            // A reader that went away changes neither the message above nor the status.
            let _ = print("Checksum mismatch. Data corruption detected. Exiting..\n");
            return Ok(ExitStatus::INCIDENT);
        }
        missing |= !report.complete;
        anything |= has_values(&report);
        doubts.add(report.measurements());
        runner.explain(section, &report);
    }
    doubts.lines().iter().for_each(message);
    if let Some(interruption) = stop.interruption() {
        message(reasons::incomplete(&interruption));
        return Ok(stop.status());
    }
    Ok(ExitStatus::measured(usize::from(anything), anything && !missing))
}

fn has_values(report: &Report) -> bool {
    report.results.iter().any(|m| m.estimate.value.is_some())
}

/// Measures sections.
struct SectionRunner<'a> {
    mode: Mode,
    root: &'a Path,
    clock: Clock,
    stop: &'a Stop,
    kernels: &'a [KernelRow],
    verbose: bool,
}

impl SectionRunner<'_> {
    /// Measures a section. Prefetchers that are given are off, and put back after it.
    fn measure_switched(
        &self,
        section: &Section,
        header: &dyn Fn(&[Plan]) -> String,
        prefetchers: Option<&mut ChasePrefetchers>,
    ) -> anyhow::Result<Report> {
        let Some(prefetchers) = prefetchers else { return self.measure(section, header) };
        let report = self.measure(section, header);
        if let Err(error) = prefetchers.check() {
            message(format_args!("warning: these latencies may include prefetchers: {error:#}"));
        }
        // If putting them back fails now, it is tried again at the end, which reports a failure.
        let _ = prefetchers.back();
        report
    }

    /// Plans, prints the header, measures, prints. If the pool has too few pages, other pages are used instead.
    fn measure(&self, section: &Section, header: &dyn Fn(&[Plan]) -> String) -> anyhow::Result<Report> {
        let mut specs = section.specs.clone();
        let pooled = specs.iter().any(|s| s.pages != PageRequest::Auto);
        let (plans, machine) = match self.plans(&specs) {
            Err(error) if pooled && matches!(error.downcast_ref(), Some(PlanError::Unavailable(_))) => {
                self.plans_without_pool(&mut specs, &of_error(self.mode, &error))?
            }
            planned => planned?,
        };
        print(header(&plans))?;
        let report = self.report(section, plans, &machine)?;
        if has_values(&report) || specs.iter().all(|s| s.pages == PageRequest::Auto) || self.stop.interruption().is_some() {
            return Ok(report);
        }
        let why = report
            .results
            .iter()
            .find_map(|m| m.estimate.not_measured.as_ref())
            .map(|why| reasons::not_measured_as(&self.mode, why))
            .unwrap_or_default();
        let (plans, machine) = self.plans_without_pool(&mut specs, &why)?;
        self.report(section, plans, &machine)
    }

    fn plans(&self, specs: &[Spec]) -> anyhow::Result<(Vec<Plan>, Machine)> {
        let machine = machine::read(self.root)?;
        let mut planned: Vec<_> = specs.iter().map(|spec| memgauge_planner::plan(spec, &machine, self.kernels)).collect();
        // A scan may find room in one kind of pages only.
        if specs.iter().all(|s| matches!(s.task, Task::Scan(_))) && planned.iter().any(Result::is_ok) {
            planned.iter().filter_map(|p| p.as_ref().err()).for_each(|error| message(self.mode.problem(error.problem())));
            planned.retain(Result::is_ok);
        }
        let plans = planned.into_iter().collect::<Result<Vec<_>, _>>()?;
        if self.verbose {
            // If standard error is closed, the plan is not shown.
            plans.iter().for_each(|plan| drop(Stream::Error.print(plan_of_run_text(plan, &machine, PLAN_WIDTH).as_bytes())));
        }
        Ok((plans, machine))
    }

    fn plans_without_pool(&self, specs: &mut Vec<Spec>, why: &str) -> anyhow::Result<(Vec<Plan>, Machine)> {
        message(format_args!("warning: no huge pages ({why}); other pages are used"));
        // A scan of the pool's pages has one of other pages beside it.
        specs.retain(|s| !matches!(s.task, Task::Scan(_)) || s.pages == PageRequest::Auto);
        specs.iter_mut().for_each(|s| s.pages = PageRequest::Auto);
        self.plans(specs)
    }

    /// One report for all plans. It names the first of them: they differ in their mixes and the sizes of their buffers only.
    fn report(&self, section: &Section, plans: Vec<Plan>, machine: &Machine) -> anyhow::Result<Report> {
        // The tables never say which host they come from.
        let mut report = report::blank(machine.clone(), self.root, &HostIdentity::withheld());
        report.environment.clock = Some(self.clock.report());
        let context = machine::context(machine, self.clock, self.stop.flag());
        let runner = Runner::begin(context, self.stop, !self.verbose);
        report.plan = Some(plans.first().cloned().ok_or_else(|| anyhow!("there is nothing to measure"))?);
        let mut sound = true;
        let mut live = Live::begin(section, report.clone(), &plans, |bytes| print(bytes));
        for plan in &plans {
            if let Some(name) = &plan.start_signal {
                message(format_args!("waits until the shared-memory word /{} is 1", name.trim_start_matches('/')));
            }
            // After an interruption, the engine gives every cell that is left a reason at once.
            runner.measure_live(plan, None, &mut report, &mut |results| {
                sound &= !results.iter().any(scan::corrupted);
                if sound && !live.measured(results) {
                    // Nobody reads what would come.
                    self.stop.flag().store(true, Ordering::Relaxed);
                }
            });
        }
        runner.conclude(&mut report);
        // If data read was not the data written, that is reported instead of a table.
        let tables = has_values(&report) && !report.measurements().any(scan::corrupted);
        live.finish(tables.then_some(&report))?;
        Ok(report)
    }

    /// Reports what could not be measured, and with `-v` how the rest was measured.
    fn explain(&self, section: &Section, report: &Report) {
        let mode = self.mode;
        if self.stop.interruption().is_none() && !report.complete {
            failures(&report.notes).for_each(|note| message(format_args!("not measured: {}", of_note(mode, note))));
        }
        if section.kind == SectionKind::Scan {
            scan_messages(report).iter().for_each(message);
        }
        // A warning that changes the meaning of a number is always shown. The others are left out because a scan says above why it took no more,
        // unreliable results are counted below, one node needs no warning, and a size in KiB with -b is often meant for a cache.
        let told = |note: &Note| TOLD.iter().any(|code| note.code == *code);
        let shown = |note: &&Note| match note.severity {
            Severity::Warning => self.verbose || !told(note),
            Severity::Error => self.verbose && report.complete,
            // A script for persistent memory that is given a directory in DRAM must not take its numbers for the device's.
            Severity::Info => self.verbose || note.code == NoteCode::VolatileStandIn,
        };
        report.notes.iter().filter(shown).for_each(|note| message(of_note(mode, note)));
        if self.verbose {
            report.measurements().for_each(|m| message(evidence(m)));
        }
    }
}

/// Warnings that only `-v` shows.
const TOLD: [NoteCode; 5] =
    [NoteCode::ScanStoppedGrowing, NoteCode::ScanMemoryScarce, NoteCode::OneNode, NoteCode::MachineBusy, NoteCode::SizeInCaches];

/// How much of a scan has no bandwidth or no address, which are `nan` in its rows.
fn scan_messages(report: &Report) -> Vec<String> {
    let work = report.plan.iter().flat_map(|p| &p.steps).flat_map(|s| &s.cells).map(|c| &c.work);
    let planned: usize = work.filter_map(|work| Some(work.scan()?.regions as usize)).sum();
    let regions: Vec<_> = report.results.iter().filter(|m| m.at.region.is_some()).collect();
    let (all, measured) = (planned.max(regions.len()), regions.iter().filter(|m| m.estimate.value.is_some()).count());
    let mut messages = Vec::new();
    if measured < all {
        let stopped = report.notes.iter().find(|n| n.code == NoteCode::ScanStoppedGrowing || n.code == NoteCode::ScanMemoryScarce);
        let why = stopped.map(|n| format!(": {}", of_note(Mode::Scan, n))).unwrap_or_default();
        messages.push(format!("warning: {measured} of {all} regions were measured{why}"));
    }
    if regions.iter().any(|m| m.evidence.physical.as_ref().is_none_or(|p| p.first.is_none())) {
        let who = report.machine.identity.system.words().no_addresses;
        messages.push(format!("addresses are 'nan' in rows: {who}"));
    }
    messages
}

#[cfg(test)]
mod tests {
    use memgauge_model::policy::{MemoryPolicy, PolicyMode};

    use super::*;

    #[test]
    fn the_callers_memory_policy_is_told() {
        let told = |memory_policy, why: Option<&str>| {
            let memory_policy_unknown = why.map(str::to_owned);
            policy_message(&Allowed { nodes: "0-2".parse().unwrap(), memory_policy, memory_policy_unknown, ..Allowed::default() })
        };
        let bound = MemoryPolicy { mode: PolicyMode::Bind, nodes: "2".parse().unwrap(), weights: None };
        assert!(told(Some(bound), None).is_some_and(|text| text.contains("bind to node 2")));
        assert_eq!(told(Some(MemoryPolicy::default()), None), None);
        assert!(told(None, Some("get_mempolicy: denied")).is_some_and(|text| text.contains("denied") && text.contains("own node")));
    }

    #[test]
    fn a_scan_says_what_its_rows_lack() {
        let whole = memgauge_render::read(include_bytes!("../../tests/results/scan.json")).unwrap();
        assert!(scan_messages(&whole).iter().all(|message| message.contains("addresses")), "all was measured");
        let mut part = whole.clone();
        let kept = part.results.len() - 11;
        part.results.truncate(kept);
        let all = whole.results.iter().filter(|m| m.at.region.is_some()).count();
        part.notes.push(memgauge_model::note::Note::warning(NoteCode::ScanMemoryScarce, "memory is scarce").advise("free some"));
        let messages = scan_messages(&part);
        assert!(messages[0].contains(&format!(" of {all} regions")), "{messages:?}");
        assert!(messages[0].ends_with(": memory is scarce; free some"), "{messages:?}");
        part.results.iter_mut().for_each(|m| m.evidence.physical = None);
        assert!(scan_messages(&part)[1].contains("only root"));
        part.machine.identity.system = memgauge_model::topology::OperatingSystem::Windows;
        assert!(scan_messages(&part)[1].contains("Windows shows no program"));
    }
}
