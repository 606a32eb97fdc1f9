//! A run of the drop-in: plans, measures and prints one section after the other.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::Path;

use anyhow::{Context, anyhow};
use memgauge_core::conclusions::scan;
use memgauge_core::experiment::PageRequest;
use memgauge_core::note::Severity;
use memgauge_core::plan::{KernelRow, Plan};
use memgauge_core::planner::PlanError;
use memgauge_core::result::Report;
use memgauge_core::spec::{Spec, Task};
use memgauge_core::topology::Machine;
use memgauge_core::wording::reasons;
use memgauge_engine::RunContext;
use memgauge_os::clock::Clock;
use memgauge_os::{directory, memory, topology};
use memgauge_render::plan_text;

use super::letters::{self, Invocation, Letters, Mode};
use super::sections::{self, Inputs, Section, Translation};
use super::text::{PREFETCHERS_ON, banner, body, evidence, header};
use crate::console::{Program, Stream, with_advice};
use crate::exit::{ExitStatus, UsageError};
use crate::host::HostIdentity;
use crate::input;
use crate::report;
use crate::runner::Runner;
use crate::signals::{self, Stop};

/// Width of a plan that `-v` prints.
const PLAN_WIDTH: usize = 100;

/// Answers a command line of mlc's, without the program's name.
pub(crate) fn run(args: &[OsString]) -> anyhow::Result<ExitStatus> {
    print(banner())?;
    let (mode, letters) = match letters::parse(args) {
        Ok(Invocation::Usage) => {
            print(letters::usage())?;
            return Ok(ExitStatus::SUCCESS);
        }
        Ok(Invocation::Measure { mode, letters, ignored }) => {
            ignored.iter().for_each(|what| message(format_args!("ignored: {what}")));
            (mode, letters)
        }
        Err(error) => {
            message(&error);
            print(letters::usage())?;
            return Ok(ExitStatus::USAGE);
        }
    };
    if mode != Mode::Full {
        let words: Vec<_> = args.iter().map(|a| a.to_string_lossy()).collect();
        print(format!("Command line parameters: {} \n\n", words.join(" ")))?;
    }
    let root = Path::new("/");
    let machine = topology::read_machine(root)?;
    let kernels = memgauge_kernels::rows();
    let read = |path: &Path| input::read_text(path).map_err(|e| e.to_string());
    let directory = |path: &Path| directory::read(path, root).map_err(|e| e.to_string());
    let inputs = Inputs { machine: &machine, kernels: &kernels, read: &read, directory: &directory };
    let translation = sections::translate(mode, &letters, &inputs).map_err(UsageError)?;
    translation.notes.iter().for_each(message);
    measure(mode, &letters, translation, &kernels)
}

/// Writes to standard output at once, for a reader that follows.
fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    Stream::Output.print(text.as_ref())
}

fn message(text: impl Display) {
    Program::MLC.message(text);
}

fn measure(mode: Mode, letters: &Letters, mut translation: Translation, kernels: &[KernelRow]) -> anyhow::Result<ExitStatus> {
    let root = Path::new("/");
    let stop = signals::watch().context("cannot install signal handlers")?;
    memory::prefer_out_of_memory_kill();
    let runner = SectionRunner { root, clock: Clock::calibrate(root), stop: &stop, kernels, verbose: letters.verbose };
    translation.suit_clock(runner.clock.step_ns()).iter().for_each(message);
    if mode == Mode::Full && translation.prefetchers_on {
        print(PREFETCHERS_ON)?;
    }
    let (mut anything, mut missing) = (false, false);
    for section in &translation.sections {
        if stop.interruption().is_some() {
            break;
        }
        let header = |plans: &[Plan]| if mode == Mode::Full { String::new() } else { header(section.kind, &translation, plans) };
        let report = match runner.measure(section, &header) {
            Ok(report) => report,
            // Part of a full run may be impossible here: latency under load needs two cores.
            Err(error) if mode == Mode::Full && error.is::<PlanError>() => {
                message(format_args!("not measured: {error:#}"));
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
        if has_values(&report) {
            anything = true;
            print(format!("{}\n", body(section, &report)))?;
        }
        runner.explain(&report);
    }
    if let Some(interruption) = stop.interruption() {
        message(reasons::incomplete(&interruption));
        return Ok(ExitStatus::INTERRUPTED);
    }
    Ok(ExitStatus::measured(anything, anything && !missing))
}

fn has_values(report: &Report) -> bool {
    report.results.iter().any(|m| m.estimate.value.is_some())
}

/// Measures sections.
struct SectionRunner<'a> {
    root: &'a Path,
    clock: Clock,
    stop: &'a Stop,
    kernels: &'a [KernelRow],
    verbose: bool,
}

impl SectionRunner<'_> {
    /// Plans, prints the header, measures. If the pool has too few pages, other pages are used instead.
    fn measure(&self, section: &Section, header: &dyn Fn(&[Plan]) -> String) -> anyhow::Result<Report> {
        let mut specs = section.specs.clone();
        let pooled = specs.iter().any(|s| s.pages != PageRequest::Auto);
        let (plans, machine) = match self.plans(&specs) {
            Err(error) if pooled && matches!(error.downcast_ref(), Some(PlanError::Unavailable(_))) => {
                self.plans_without_pool(&mut specs, &error)?
            }
            planned => planned?,
        };
        print(header(&plans))?;
        let report = self.report(plans, &machine)?;
        if has_values(&report) || specs.iter().all(|s| s.pages == PageRequest::Auto) || self.stop.interruption().is_some() {
            return Ok(report);
        }
        let why = report.results.iter().find_map(|m| m.estimate.not_measured.as_ref()).map(reasons::not_measured).unwrap_or_default();
        let (plans, machine) = self.plans_without_pool(&mut specs, &why)?;
        self.report(plans, &machine)
    }

    fn plans(&self, specs: &[Spec]) -> anyhow::Result<(Vec<Plan>, Machine)> {
        let machine = topology::read_machine(self.root)?;
        let mut planned: Vec<_> = specs.iter().map(|spec| memgauge_core::planner::plan(spec, &machine, self.kernels)).collect();
        // A scan may find room in one kind of pages only.
        if specs.iter().all(|s| s.task == Task::Scan) && planned.iter().any(Result::is_ok) {
            planned.iter().filter_map(|p| p.as_ref().err()).for_each(message);
            planned.retain(Result::is_ok);
        }
        let plans = planned.into_iter().collect::<Result<Vec<_>, _>>()?;
        if self.verbose {
            // When standard error is closed, nobody can be told.
            plans.iter().for_each(|plan| drop(Stream::Error.print(plan_text(plan, &machine, PLAN_WIDTH).as_bytes())));
        }
        Ok((plans, machine))
    }

    fn plans_without_pool(&self, specs: &mut Vec<Spec>, why: &dyn Display) -> anyhow::Result<(Vec<Plan>, Machine)> {
        message(format_args!("warning: no pages of the pool ({why}); other pages are used"));
        // A scan of the pool's pages has one of other pages beside it.
        specs.retain(|s| s.task != Task::Scan || s.pages == PageRequest::Auto);
        specs.iter_mut().for_each(|s| s.pages = PageRequest::Auto);
        self.plans(specs)
    }

    /// One report for all plans. It names the first of them: they differ in their mixes and the sizes of their buffers only.
    fn report(&self, plans: Vec<Plan>, machine: &Machine) -> anyhow::Result<Report> {
        // The tables never say which host they come from.
        let mut report = report::blank(machine.clone(), self.root, &HostIdentity::withheld());
        report.environment.clock = Some(self.clock.report());
        let root = self.root.to_path_buf();
        let context = RunContext::new(machine, self.clock, root, self.stop.flag());
        let runner = Runner::begin(context, self.stop, false);
        // After an interruption, the engine gives every cell that is left a reason at once.
        plans.iter().for_each(|plan| runner.measure(plan, None, &mut report));
        report.plan = Some(plans.into_iter().next().ok_or_else(|| anyhow!("there is nothing to measure"))?);
        runner.conclude(&mut report);
        Ok(report)
    }

    /// Reports what could not be measured, and with `-v` how the rest was measured.
    fn explain(&self, report: &Report) {
        if self.stop.interruption().is_none() && !report.complete {
            Program::MLC.not_measured(&report.notes);
        }
        if self.verbose {
            let notes = report.notes.iter().filter(|n| n.severity != Severity::Error || report.complete);
            notes.for_each(|note| message(with_advice(note)));
            report.measurements().for_each(|m| message(evidence(m)));
        }
    }
}
