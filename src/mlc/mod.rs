//! The drop-in: mlc's command lines in, mlc's tables out, memgauge's engine between.
//!
//! Standard output holds the banner, the header lines and the tables, flushed section by section; all else goes to standard error.

mod files;
mod letters;
mod sections;

use std::ffi::OsString;
use std::fmt::Display;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use memgauge_core::conclusions::scan;
use memgauge_core::experiment::PageRequest;
use memgauge_core::note::Severity;
use memgauge_core::plan::{self, KernelRow, Plan, Work};
use memgauge_core::planner::PlanError;
use memgauge_core::result::{Measurement, Report};
use memgauge_core::spec::Spec;
use memgauge_core::topology::Machine;
use memgauge_core::units::Bytes;
use memgauge_linux::clock::Clock;
use memgauge_linux::{directory, memory, sysfs};
use memgauge_render::{mlc as text, plan_text};

use self::letters::{Asked, Letters, Mode};
use self::sections::{Here, Kind, Request, Section};
use crate::{With, exit, measured, output, signals};

/// The version whose command lines and text these are.
const VERSION: &str = "v3.11b";
/// Who speaks. Some parsers insist on the original's words; for them alone this can be replaced.
const SPEAKER: &str = "memgauge(compatible)";
const SPEAKER_VARIABLE: &str = "MEMGAUGE_MLC_BANNER";
const VERSION_VARIABLE: &str = "MEMGAUGE_MLC_VERSION";
const PREFETCHERS_ON: &str = "\
*** Unable to modify prefetchers (try executing 'modprobe msr')
*** So, enabling random access for latency measurements
";
/// Exit status for data that came back wrong, as natively.
const CORRUPTED: u8 = 3;
/// Width of a plan that `-v` prints.
const WIDTH: usize = 100;

/// Answers a command line of mlc's, without the program's name.
pub(crate) fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    match run(&args) {
        Ok(code) => ExitCode::from(code),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            tell(format_args!("{error:#}"));
            ExitCode::from(match error.downcast_ref::<PlanError>() {
                Some(PlanError::Request(_)) => exit::USAGE,
                _ if error.is::<Wrong>() => exit::USAGE,
                _ => exit::COULD_NOT_MEASURE,
            })
        }
    }
}

/// Something that the command line or a file named there says and that cannot be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Wrong(String);

/// Tells something on standard error.
fn tell(what: impl Display) {
    // When stderr is gone, there is nobody left to tell.
    let _ = writeln!(io::stderr().lock(), "mlc: {what}");
}

fn banner() -> String {
    let or = |variable: &str, default: &str| std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    format!("{} Memory Latency Checker - {}\n", or(SPEAKER_VARIABLE, SPEAKER), or(VERSION_VARIABLE, VERSION))
}

fn run(args: &[OsString]) -> anyhow::Result<u8> {
    output::print(banner().as_bytes())?;
    let (mode, letters) = match letters::parse(args) {
        Ok(Asked::Usage) => {
            output::print(letters::usage().as_bytes())?;
            return Ok(0);
        }
        Ok(Asked::Measure { mode, letters, ignored }) => {
            ignored.iter().for_each(|what| tell(format_args!("ignored: {what}")));
            (mode, letters)
        }
        Err(refusal) => {
            tell(&refusal);
            output::print(letters::usage().as_bytes())?;
            return Ok(exit::USAGE);
        }
    };
    if mode != Mode::Full {
        let words: Vec<_> = args.iter().map(|a| a.to_string_lossy()).collect();
        output::print(format!("Command line parameters: {} \n\n", words.join(" ")).as_bytes())?;
    }
    let root = Path::new("/");
    let machine = sysfs::read_machine(root)?;
    let kernels = memgauge_kernels::rows();
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| format!("{}: cannot be read: {e}", path.display()));
    let directory = |path: &Path| directory::read(path, root).map_err(|e| e.to_string());
    let here = Here { machine: &machine, kernels: &kernels, read: &read, directory: &directory };
    let request = sections::request(mode, &letters, &here).map_err(Wrong)?;
    request.notes.iter().for_each(tell);
    measure(mode, &letters, &request, &kernels)
}

/// How a run is going.
#[derive(Default)]
struct Tally {
    some: bool,
    missing: bool,
}

fn measure(mode: Mode, letters: &Letters, request: &Request, kernels: &[KernelRow]) -> anyhow::Result<u8> {
    let root = Path::new("/");
    let stop = signals::watch().context("cannot install signal handlers")?;
    memory::die_first();
    let clock = Clock::calibrate(root);
    let runner = Runner { root, clock, stop: &stop, kernels, verbose: letters.verbose };
    if mode == Mode::Full && request.prefetchers_on {
        output::print(PREFETCHERS_ON.as_bytes())?;
    }
    let mut tally = Tally::default();
    for section in &request.sections {
        if stop.reason().is_some() {
            break;
        }
        let head = |plans: &[Plan]| if mode == Mode::Full { String::new() } else { header(section.kind, request, plans) };
        match runner.section(section, &head) {
            Ok(report) => {
                if report.results.iter().any(scan::corrupted) {
                    output::alarm(&report.notes);
                    // A reader that went away hides neither the alarm nor the status.
                    let _ = output::print(b"Checksum mismatch. Data corruption detected. Exiting..\n");
                    return Ok(CORRUPTED);
                }
                let measured = report.results.iter().any(|m| m.estimate.value.is_some());
                tally.some |= measured;
                tally.missing |= !report.complete;
                if measured {
                    output::print(format!("{}\n", body(section, &report)).as_bytes())?;
                }
                runner.explain(&report);
            }
            // Part of a full run may be impossible here: latency under load needs two cores.
            Err(error) if mode == Mode::Full && error.is::<PlanError>() => {
                tell(format_args!("not measured: {error:#}"));
                tally.missing = true;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(match (stop.reason(), tally) {
        (Some(why), _) => {
            tell(why);
            exit::INTERRUPTED
        }
        (None, Tally { some: true, missing: false }) => 0,
        (None, Tally { some: true, missing: true }) => exit::MEASURED_IN_PART,
        (None, Tally { some: false, .. }) => exit::COULD_NOT_MEASURE,
    })
}

/// What measures a section.
struct Runner<'a> {
    root: &'a Path,
    clock: Clock,
    stop: &'a signals::Stop,
    kernels: &'a [KernelRow],
    verbose: bool,
}

impl Runner<'_> {
    /// Plans, prints what goes before, measures. Where the page pool has too little, pages of another kind do.
    fn section(&self, section: &Section, header: &dyn Fn(&[Plan]) -> String) -> anyhow::Result<Report> {
        let mut specs = section.specs.clone();
        let pooled = specs.iter().any(|s| s.pages != PageRequest::Auto);
        let (plans, machine) = match self.plans(&specs) {
            Err(error) if pooled && matches!(error.downcast_ref(), Some(PlanError::Unavailable(_))) => {
                self.without_pool(&mut specs, &error)?
            }
            planned => planned?,
        };
        output::print(header(&plans).as_bytes())?;
        let nothing = || anyhow::anyhow!("there is nothing to measure");
        let report = self.carry_out(plans, &machine).ok_or_else(nothing)?;
        let none = report.results.iter().all(|m| m.estimate.value.is_none());
        if none && specs.iter().any(|s| s.pages != PageRequest::Auto) && self.stop.reason().is_none() {
            let why = report.results.iter().find_map(|m| m.estimate.reason.clone()).unwrap_or_default();
            let (plans, machine) = self.without_pool(&mut specs, &why)?;
            return self.carry_out(plans, &machine).ok_or_else(nothing);
        }
        Ok(report)
    }

    fn plans(&self, specs: &[Spec]) -> anyhow::Result<(Vec<Plan>, Machine)> {
        let machine = sysfs::read_machine(self.root)?;
        let plans = specs.iter().map(|spec| memgauge_core::planner::plan(spec, &machine, self.kernels)).collect::<Result<Vec<_>, _>>()?;
        if self.verbose {
            for plan in &plans {
                let _ = write!(io::stderr().lock(), "{}", plan_text(plan, &machine, WIDTH));
            }
        }
        Ok((plans, machine))
    }

    fn without_pool(&self, specs: &mut [Spec], why: &dyn Display) -> anyhow::Result<(Vec<Plan>, Machine)> {
        tell(format_args!("warning: no pages of the pool ({why}); other pages are used"));
        specs.iter_mut().for_each(|s| s.pages = PageRequest::Auto);
        self.plans(specs)
    }

    /// One report of all plans.
    fn carry_out(&self, plans: Vec<Plan>, machine: &Machine) -> Option<Report> {
        let with = || With { clock: self.clock, root: self.root, stop: self.stop, quiet: false, deadline: None, hold: None };
        let run = |plan| measured(plan, machine.clone(), with());
        let join = |mut all: Report, plan: Report| {
            all.results.extend(plan.results);
            all.curves.extend(plan.curves);
            all.notes.extend(plan.notes);
            all.complete &= plan.complete;
            all
        };
        // After an interruption the engine gives a reason for each cell that is left, at once.
        plans.into_iter().map(run).reduce(join)
    }

    /// Tells what could not be measured, and with `-v` how the rest was.
    fn explain(&self, report: &Report) {
        if self.stop.reason().is_none() && !report.complete {
            output::complain_of_notes(&report.notes);
        }
        if self.verbose {
            for note in report.notes.iter().filter(|n| n.severity != Severity::Error || report.complete) {
                let advice = note.advice.as_deref().map(|a| format!("; {a}")).unwrap_or_default();
                tell(format_args!("{}{advice}", note.message));
            }
            report.results.iter().for_each(|m| tell(evidence(m)));
        }
    }
}

/// How a number came about, in a line.
fn evidence(m: &Measurement) -> String {
    let e = &m.evidence;
    let mut line = format!("{:?}", m.experiment).to_lowercase();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(line, ", {name} {value}");
        }
    };
    let of = |value: Option<f64>| value.map(|v| format!("{v:.2}"));
    add("CPU", m.at.cpu.map(|c| c.to_string()));
    add("holder", m.at.holder_cpu.map(|c| c.to_string()));
    add("node", m.at.memory_node.map(|n| n.to_string()));
    add("mix", m.at.mix.map(|x| x.to_string()));
    add("delay", m.at.delay_cycles.map(|d| d.to_string()));
    add("median", of(m.estimate.value));
    add("from", of(m.estimate.ci95_low));
    add("to", of(m.estimate.ci95_high));
    add("n", Some(m.estimate.n.to_string()));
    add("kernel", Some(e.kernel.clone()));
    add("buffers", Some(e.buffer.to_string()));
    add("pages", e.pages.obtained.map(|p| format!("{p:?}").to_lowercase()));
    add("placement", Some(format!("{:?}", e.placement.status).to_lowercase()));
    add("quality", Some(format!("{:?} {:?}", m.quality.level, m.quality.reasons).to_lowercase()));
    line
}

/// What is printed before a section of a single mode: buffer sizes, and whether prefetchers were left on.
fn header(kind: Kind, request: &Request, plans: &[Plan]) -> String {
    let mib = |bytes: Bytes| format!("{:.3}MiB", bytes.0 as f64 / f64::from(1 << 20));
    let works = || plans.iter().flat_map(|p| &p.steps).flat_map(|s| &s.cells).map(|c| &c.work);
    let prefetchers = if request.prefetchers_on { PREFETCHERS_ON } else { "" };
    match kind {
        Kind::LatencyMatrix | Kind::LatencyPerCpu | Kind::Idle => {
            let most = works().flat_map(Work::buffers).map(|b| b.bytes).max().unwrap_or_default();
            format!("Using buffer size of {}\n{prefetchers}", mib(most))
        }
        Kind::Peak | Kind::BandwidthMatrix | Kind::Loaded => {
            let (mut reads, mut writes) = (Bytes(0), Bytes(0));
            for work in works() {
                let (Work::Bandwidth { loaders, traffic, .. } | Work::Curve { loaders, traffic, .. }) = work else { continue };
                for loader in loaders {
                    let mix = loader.own.as_ref().map_or(traffic.mix, |own| own.traffic.mix);
                    // Streams have equal parts of a buffer; one of them is written.
                    let bytes = loader.buffer.bytes;
                    let (read, written) = match mix.lines() {
                        (_, 0) => (bytes, Bytes(0)),
                        (0, _) => (Bytes(0), bytes),
                        _ => (Bytes(bytes.0 / 2), Bytes(bytes.0 / 2)),
                    };
                    (reads, writes) = (reads.max(read), writes.max(written));
                }
            }
            let blank = if kind == Kind::BandwidthMatrix { "" } else { "\n" };
            format!(
                "Using buffer size of {}/thread for reads and an additional {}/thread for writes\n{prefetchers}{blank}",
                mib(reads),
                mib(writes)
            )
        }
        Kind::C2c | Kind::OneTransfer | Kind::Scan => String::new(),
    }
}

fn body(section: &Section, report: &Report) -> String {
    let pooled = report.plan.as_ref().is_some_and(|p| {
        p.steps
            .iter()
            .flat_map(|s| &s.cells)
            .flat_map(|c| c.work.buffers())
            .any(|b| matches!(b.pages, PageRequest::Huge2M | PageRequest::Huge1G))
    });
    let wording = text::Wording { large_pages: section.wording.large_pages && pooled, ..section.wording };
    let histograms: String = match section.wording.bucket_log2 {
        Some(log2) => histograms(report, log2),
        None => String::new(),
    };
    histograms
        + &match section.kind {
            Kind::LatencyMatrix => text::latency_matrix(report),
            Kind::LatencyPerCpu => text::latency_per_cpu(report),
            Kind::Idle => text::idle_latency(report),
            Kind::Peak => text::peak(report, wording),
            Kind::BandwidthMatrix => text::bandwidth_matrix(report, wording),
            Kind::Loaded => text::loaded(report, wording),
            Kind::C2c => text::cache_to_cache(report),
            Kind::OneTransfer => text::one_transfer(report),
            Kind::Scan => memgauge_render::mlc_scan(report),
        }
}

/// A histogram for each latency of which one was made.
fn histograms(report: &Report, log2: u32) -> String {
    let Some(hz) = report.environment.clock.as_ref().map(|clock| clock.hz) else { return String::new() };
    let all = report.results.iter().filter_map(|m| m.distribution.as_ref());
    all.map(|distribution| text::histogram(&distribution.by_cycles(log2, hz), log2)).collect()
}

#[cfg(test)]
mod tests;
