//! Prefetchers for the time of a run, and the commands that show and switch them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::anyhow;
use memgauge_core::note::Note;
use memgauge_core::plan::{Plan, Step};
use memgauge_core::prefetchers::{self, Control, NoControl, PrefetchRequest, PrefetchState, PrefetchStatus, Processor, Read};
use memgauge_core::result::{
    Coordinates, Estimate, Evidence, Experiment, Measurement, Metric, Quality, QualityLevel, Report, Unit, Verdict,
};
use memgauge_core::spec::{Spec, Task};
use memgauge_core::topology::Machine;
use memgauge_core::units::IdSet;
use memgauge_engine::{Observer, Outcome, Setting};
use memgauge_linux::msr::{DEV_CPU, Msr, MsrError};
use memgauge_linux::prefetch::guardian::{self, Guardian};
use memgauge_linux::prefetch::{Change, FOLDER, Found, Kind, Place, PrefetchError};
use memgauge_linux::{clock, sysfs};

use crate::cli::Output;
use crate::cli::prefetch::{Action, PrefetchArgs};
use crate::{blank_report, exit, output};

/// For tests: a folder in place of `/dev/cpu`.
const MSR_ROOT: &str = "MEMGAUGE_MSR_ROOT";
/// For tests, with the folder above only, so that no real register is taken for another's: `VENDOR,FAMILY,MODEL[,announced]`.
const ACT_AS: &str = "MEMGAUGE_PREFETCH_AS";
/// For tests: a folder in place of `/run/memgauge`.
const RUNTIME: &str = "MEMGAUGE_RUNTIME_DIR";

fn place() -> Place {
    let path = |name: &str, otherwise: &str| std::env::var_os(name).map_or_else(|| PathBuf::from(otherwise), PathBuf::from);
    Place { msr: Msr::new(path(MSR_ROOT, DEV_CPU), "/"), folder: path(RUNTIME, FOLDER), root: "/".into() }
}

/// The register of every online CPU, or why it has none.
fn controls(machine: &Machine) -> BTreeMap<u32, Result<Control, NoControl>> {
    let acted = std::env::var_os(MSR_ROOT).and_then(|_| std::env::var(ACT_AS).ok());
    let Some(acted) = acted else { return prefetchers::controls(machine, memgauge_kernels::has_prefetch_control()) };
    let words: Vec<&str> = acted.split(',').collect();
    let number = |i: usize| words.get(i).and_then(|w| w.parse().ok());
    let cpu = Processor {
        arch: "x86_64",
        vendor: words.first().copied().unwrap_or_default(),
        family: number(1),
        model: number(2),
        kind: None,
        announced: words.contains(&"announced"),
        virtual_machine: false,
    };
    machine.topology.cpus.iter().map(|c| (c.id, prefetchers::control(&cpu))).collect()
}

fn failure(error: &PrefetchError) -> anyhow::Error {
    anyhow!("{error}; {}", error.advice())
}

/// Registers of all CPUs that have one.
struct Known {
    controls: BTreeMap<u32, Control>,
    /// Why others have none.
    without: BTreeMap<u32, NoControl>,
    offline: IdSet,
}

impl Known {
    fn of(machine: &Machine) -> Self {
        let mut known = Self { controls: BTreeMap::new(), without: BTreeMap::new(), offline: machine.topology.offline.clone() };
        for (cpu, control) in controls(machine) {
            match control {
                Ok(control) => drop(known.controls.insert(cpu, control)),
                Err(why) => drop(known.without.insert(cpu, why)),
            }
        }
        known
    }

    /// Whether all of these CPUs have a register.
    fn check(&self, cpus: &IdSet) -> anyhow::Result<()> {
        let without: IdSet = cpus.iter().filter(|cpu| self.without.contains_key(cpu)).collect();
        let Some(why) = without.first().and_then(|cpu| self.without.get(&cpu)) else { return Ok(()) };
        if self.controls.is_empty() {
            return Err(anyhow!(
                "prefetchers cannot be switched here: {why}; leave --prefetch out, and read random : sequential in the result"
            ));
        }
        let have: IdSet = self.controls.keys().copied().collect();
        Err(anyhow!("prefetchers of CPUs {without} cannot be switched: {why}; name others with --cpu: {have}"))
    }

    fn state(&self, asked: PrefetchRequest, values: &BTreeMap<u32, Result<u64, MsrError>>) -> PrefetchState {
        let mut read: BTreeMap<u32, Read> = self.without.iter().map(|(cpu, why)| (*cpu, Err(why.to_string()))).collect();
        let mut advice = None;
        for (cpu, value) in values {
            let value = value.as_ref().map_err(|error| {
                advice.get_or_insert(error.advice());
                error.to_string()
            });
            if let Some(control) = self.controls.get(cpu) {
                read.insert(*cpu, value.map(|v| (*control, *v)));
            }
        }
        let mut state = prefetchers::state(asked, &read);
        // A register that could not be read leaves nothing to claim of all CPUs.
        if let Some(error) = values.values().find_map(|v| v.as_ref().err()) {
            state.status = PrefetchStatus::Unknown;
            state.reason = Some(error.to_string());
            state.advice = advice.map(Into::into);
        }
        state
    }

    fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        if !self.offline.is_empty() {
            notes.push(
                Note::info(
                    "prefetch-cpus-offline",
                    format!(
                        "{}: registers there are neither read nor written, and nothing is said of prefetchers",
                        are(&self.offline, "offline")
                    ),
                )
                .advise("bring them online first, where they are to be switched as well"),
            );
        }
        let without: IdSet = self.without.keys().copied().collect();
        if let Some((_, why)) = self.without.iter().next().filter(|_| !self.controls.is_empty()) {
            notes.push(Note::info("prefetch-cpus-without-register", format!("{}: {why}", are(&without, "left alone"))));
        }
        notes
    }
}

/// Prefetchers switched for the time of a run.
pub(crate) struct Hold {
    // Fields are dropped in this order: registers first, then the guardian, who finds nothing left to do.
    change: Change,
    guardian: Guardian,
    known: Known,
    asked: PrefetchRequest,
    /// As they were found, where the run measures several states.
    found: Option<PrefetchState>,
    notes: Vec<Note>,
}

/// Saves the registers, starts the guardian, and switches prefetchers, where that was asked for.
///
/// # Errors
/// When they cannot all be switched; those that were are back then.
pub(crate) fn hold(spec: &Spec, plan: &Plan, machine: &Machine) -> anyhow::Result<Option<Hold>> {
    let compares = spec.task == Task::Prefetch;
    if !compares && spec.prefetch == PrefetchRequest::Leave {
        return Ok(None);
    }
    let known = Known::of(machine);
    let measured = plan.steps.iter().flat_map(|s| &s.cells).fold(IdSet::new(), |all, c| all.union(&c.work.cpus()));
    known.check(&measured)?;
    output::tell(&prefetchers::taint_note().message);
    let change = Change::begin(place(), &known.controls, Kind::Run).map_err(|e| failure(&e))?;
    let guardian = Guardian::start(&["prefetch", "guard", change.id()]).map_err(|e| failure(&PrefetchError::Guardian(e)))?;
    let mut notes = known.notes();
    notes.extend(found_note(change.found()));
    let found =
        compares.then(|| change.verify()).transpose().map_err(|e| failure(&e))?.map(|v| known.state(PrefetchRequest::Leave, &ok(v)));
    let mut hold = Hold { change, guardian, known, asked: spec.prefetch, found, notes };
    // A comparison begins with both on; that they can be switched off at all shows before a minute is measured.
    let first = if compares { PrefetchRequest::Off } else { hold.asked };
    hold.set(first).map_err(|e| failure(&e))?;
    Ok(Some(hold))
}

fn ok(values: BTreeMap<u32, u64>) -> BTreeMap<u32, Result<u64, MsrError>> {
    values.into_iter().map(|(cpu, value)| (cpu, Ok(value))).collect()
}

fn found_note(found: &Found) -> Option<Note> {
    match found {
        Found::Nothing => None,
        Found::EarlierBoot => {
            Some(Note::info("prefetch-journal-void", "a journal of an earlier boot was removed: that boot's registers are gone"))
        }
        Found::Restored(n) => Some(Note::info(
            "prefetch-restored-earlier",
            format!("a run that was killed had left prefetchers changed; the registers of {n} CPUs were put back first"),
        )),
    }
}

/// `CPU 3 is offline`, `CPUs 2-3 are offline`.
fn are(cpus: &IdSet, what: &str) -> String {
    if cpus.len() == 1 { format!("CPU {cpus} is {what}") } else { format!("CPUs {cpus} are {what}") }
}

impl Hold {
    fn set(&mut self, state: PrefetchRequest) -> Result<(), PrefetchError> {
        self.change.set(state == PrefetchRequest::Off)
    }

    /// Measures the plan; where its cells name states of the prefetchers, one state after the other.
    pub(crate) fn run(&mut self, plan: &Plan, setting: &Setting<'_>, observer: &mut dyn Observer) -> Outcome {
        let state_of = |step: &Step| step.cells.first().and_then(|c| c.at.prefetch);
        let mut parts = plan.steps.chunk_by(|a, b| state_of(a) == state_of(b)).map(|steps| {
            let part = Plan { steps: steps.to_vec(), ..plan.clone() };
            match steps.first().and_then(state_of) {
                Some(state) => self.run_in(state, &part, setting, observer),
                None => memgauge_engine::run(&part, setting, observer),
            }
        });
        let first = parts.next();
        let whole = first.map(|first| parts.fold(first, join));
        whole.unwrap_or_else(|| memgauge_engine::run(plan, setting, observer))
    }

    /// Measures in a state; where registers are not in it before and after, nothing that was measured stands.
    fn run_in(&mut self, state: PrefetchRequest, part: &Plan, setting: &Setting<'_>, observer: &mut dyn Observer) -> Outcome {
        // An interrupted run ends without switching anything any more.
        let set = if setting.stop.load(Ordering::Relaxed) { Ok(()) } else { self.set(state) };
        let mut outcome = match &set {
            Ok(()) => memgauge_engine::run(part, setting, observer),
            Err(_) => memgauge_engine::run(&Plan { steps: Vec::new(), ..part.clone() }, setting, observer),
        };
        let Err(error) = set.and_then(|()| self.change.verify().map(|_| ())) else { return outcome };
        let reason = format!("prefetchers were not {}: {error}", state.name());
        outcome.results = part.steps.iter().flat_map(|step| step.cells.iter().map(|c| unmeasured(step, &c.at, &reason))).collect();
        outcome.complete = false;
        outcome.notes.push(Note::error("prefetch-not-set", reason).advise(error.advice()));
        outcome
    }

    /// Says in the report what the state was, and puts the registers back. What went wrong with that is returned.
    pub(crate) fn end(self, report: &mut Report) -> Option<anyhow::Error> {
        let Self { change, guardian, known, asked, found, notes } = self;
        report.notes.extend(notes);
        let mut state = match (found, change.verify()) {
            (Some(found), _) => found,
            (None, Ok(values)) => known.state(asked, &ok(values)),
            (None, Err(error)) => {
                report.notes.push(
                    Note::warning("prefetch-state-lost", format!("{error}: nothing here holds for prefetchers {}", asked.name()))
                        .advise(error.advice()),
                );
                let (reason, advice) = (Some(error.to_string()), Some(error.advice().to_owned()));
                PrefetchState { asked, reason, advice, ..PrefetchState::default() }
            }
        };
        let off = |m: &&Measurement| m.at.prefetch.unwrap_or(asked) == PrefetchRequest::Off;
        if let Some(note) = prefetchers::contradicted(report.results.iter().filter(off)) {
            if asked == PrefetchRequest::Off {
                state.status = PrefetchStatus::Unknown;
                state.reason = Some(note.message.clone());
                state.advice.clone_from(&note.advice);
            }
            report.notes.push(note);
        }
        report.environment.prefetch = Some(state);
        let restored = change.restore();
        guardian.dismiss();
        let error = restored.err()?;
        report.notes.push(Note::error("prefetch-not-restored", error.to_string()).advise(error.advice()));
        Some(failure(&error))
    }
}

fn unmeasured(step: &Step, at: &Coordinates, reason: &str) -> Measurement {
    let latency = step.experiment == Experiment::IdleLatency;
    Measurement {
        experiment: step.experiment,
        at: at.clone(),
        metric: if latency { Metric::Latency } else { Metric::Bandwidth },
        unit: if latency { Unit::Nanoseconds } else { Unit::GigabytesPerSecond },
        firmware: None,
        estimate: Estimate { reason: Some(reason.to_owned()), ..Estimate::default() },
        distribution: None,
        counters: None,
        lines_in_flight: None,
        evidence: Evidence::default(),
        quality: Quality { level: QualityLevel::None, reasons: Vec::new() },
        verdict: Verdict::default(),
    }
}

/// Two parts of one run.
fn join(mut one: Outcome, two: Outcome) -> Outcome {
    one.results.extend(two.results);
    one.curves.extend(two.curves);
    one.rfo = one.rfo.or(two.rfo);
    for note in two.notes {
        if !one.notes.contains(&note) {
            one.notes.push(note);
        }
    }
    one.timing.setup_s += two.timing.setup_s;
    one.timing.measuring_s += two.timing.measuring_s;
    one.core_ghz.extend(two.core_ghz);
    one.complete &= two.complete;
    one
}

/// `memgauge prefetch`, but for `compare`, which measures.
pub(crate) fn command(args: PrefetchArgs) -> anyhow::Result<ExitCode> {
    let place = place();
    match args.action {
        None => status(&place, &args.output, Vec::new(), PrefetchRequest::Leave),
        Some(Action::Status(only)) => status(&place, &only.output, Vec::new(), PrefetchRequest::Leave),
        Some(Action::Off(only)) => switch(&place, &only.output, PrefetchRequest::Off),
        Some(Action::On(only)) => switch(&place, &only.output, PrefetchRequest::On),
        Some(Action::Restore(only)) => restore(&place, &only.output),
        Some(Action::Guard(guard)) => {
            guardian::serve(&place, &guard.id).map_err(|e| failure(&e))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Action::Compare(_)) => Err(anyhow!("compare measures, and is done elsewhere")),
    }
}

/// Reads every register and shows what they say.
fn status(place: &Place, to: &Output, notes: Vec<Note>, asked: PrefetchRequest) -> anyhow::Result<ExitCode> {
    let sinks = output::Sinks::open(to)?;
    let machine = sysfs::read_machine(Path::new("/"))?;
    let known = Known::of(&machine);
    let state = known.state(asked, &place.read(&known.controls));
    let unknown = state.status == PrefetchStatus::Unknown;
    let mut report = blank_report(machine, Path::new("/"));
    report.environment.prefetch = Some(state);
    report.notes.extend(notes);
    report.notes.extend(known.notes());
    for kind in place.waiting() {
        report.notes.push(match kind {
            Kind::Run => Note::warning("prefetch-run-journal", "a run changes prefetchers at this moment, or was killed while it did")
                .advise("when no run goes on, as root: memgauge prefetch restore"),
            Kind::Kept => Note::info("prefetch-kept", "prefetchers were switched by 'memgauge prefetch off' or 'on'")
                .advise("as root: memgauge prefetch restore puts back what was before"),
        });
    }
    report.ended = clock::moment();
    sinks.write(&report)?;
    Ok(if unknown { ExitCode::from(exit::COULD_NOT_MEASURE) } else { ExitCode::SUCCESS })
}

/// Switches prefetchers until they are restored.
fn switch(place: &Place, to: &Output, asked: PrefetchRequest) -> anyhow::Result<ExitCode> {
    let machine = sysfs::read_machine(Path::new("/"))?;
    let known = Known::of(&machine);
    if known.controls.is_empty() {
        known.check(&machine.topology.online())?;
    }
    output::tell(&prefetchers::taint_note().message);
    let mut change = Change::begin(place.clone(), &known.controls, Kind::Kept).map_err(|e| failure(&e))?;
    let notes = found_note(change.found()).into_iter().collect();
    if let Err(error) = change.set(asked == PrefetchRequest::Off) {
        return Err(match change.restore() {
            Ok(()) => failure(&error),
            Err(left) => anyhow!("{error}; and {left}; {}", left.advice()),
        });
    }
    change.keep();
    status(place, to, notes, asked)
}

/// Undoes what journals say.
fn restore(place: &Place, to: &Output) -> anyhow::Result<ExitCode> {
    let found = place.restore().map_err(|e| failure(&e))?;
    let mut notes = Vec::new();
    for (found, what) in found.iter().zip(["a run that was killed", "'memgauge prefetch off' or 'on'"]) {
        match found {
            Found::Nothing => {}
            Found::EarlierBoot => notes.extend(found_note(found)),
            Found::Restored(n) => {
                notes.push(Note::info("prefetch-restored", format!("what {what} had changed was put back: the registers of {n} CPUs")));
            }
        }
    }
    if notes.is_empty() {
        notes.push(Note::info("prefetch-nothing-to-restore", "there is no journal of a change: nothing was to be put back"));
    }
    let shown = status(place, to, notes, PrefetchRequest::Leave)?;
    // Putting back succeeded, or there was nothing to do; a machine without registers is no failure of that.
    let _ = shown;
    Ok(ExitCode::SUCCESS)
}
