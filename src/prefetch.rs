//! Prefetchers for the time of a run, and the commands that show and switch them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::anyhow;
use memgauge_core::estimate::Estimate;
use memgauge_core::experiment::{Coordinates, Experiment, Metric, PrefetchRequest, Unit};
use memgauge_core::note::Note;
use memgauge_core::plan::{Cell, Plan, Step};
use memgauge_core::prefetchers::{self, Control, NoControl, PrefetchState, PrefetchStatus, Processor, Read};
use memgauge_core::result::{Evidence, Measurement, Quality, QualityLevel, Report, SetUp, Verdict};
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
use crate::output::{Sinks, Stream};
use crate::{blank_report, exit, output};

/// Code of the note that says that registers are not back.
pub(crate) const NOT_RESTORED: &str = "prefetch-not-restored";

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
    // Fields are dropped in this order: registers and lock first, then the guardian, who finds nothing left to do. The other way round it
    // would wait for the lock, and its end would be waited for.
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
    // From here on both are dropped in the order of its fields, however this ends.
    let mut hold = Hold { change, guardian, known, asked: spec.prefetch, found: None, notes: Vec::new() };
    hold.notes = hold.known.notes();
    hold.notes.extend(found_note(hold.change.found()));
    if compares {
        let values = hold.change.verify().map_err(|e| failure(&e))?;
        hold.found = Some(hold.known.state(PrefetchRequest::Leave, &ok(values)));
    }
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
        let mut done_s = 0.0;
        let mut parts = plan.steps.chunk_by(|a, b| state_of(a) == state_of(b)).map(|steps| {
            let part = part_of(plan, steps);
            let mut observer = Share { of: &mut *observer, done_s, part_s: part.estimated_s, whole_s: plan.estimated_s };
            done_s += part.estimated_s;
            match steps.first().and_then(state_of) {
                Some(state) => self.run_in(state, &part, setting, &mut observer),
                None => memgauge_engine::run(&part, setting, &mut observer),
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
    pub(crate) fn end(mut self, report: &mut Report) -> Option<anyhow::Error> {
        let asked = self.asked;
        report.notes.append(&mut self.notes);
        let mut state = match (self.found.take(), self.change.verify()) {
            (Some(found), _) => found,
            (None, Ok(values)) => self.known.state(asked, &ok(values)),
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
        if let Some(note) = memgauge_core::conclusions::prefetchers::contradicted(report.results.iter().filter(off)) {
            if asked == PrefetchRequest::Off {
                state.status = PrefetchStatus::Unknown;
                state.reason = Some(note.message.clone());
                state.advice.clone_from(&note.advice);
            }
            report.notes.push(note);
        }
        report.environment.prefetch = Some(state);
        // Whole until here: should anything above panic, both are dropped in the order of the fields.
        let Self { change, guardian, .. } = self;
        let restored = change.restore();
        guardian.dismiss();
        let error = restored.err()?;
        report.notes.push(Note::error(NOT_RESTORED, error.to_string()).advise(error.advice()));
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

/// Some steps of a plan, with their part of its time.
fn part_of(plan: &Plan, steps: &[Step]) -> Plan {
    let estimated_s = steps.iter().map(|s| s.estimated_s).sum();
    let share = if plan.estimated_s > 0.0 { estimated_s / plan.estimated_s } else { 1.0 };
    Plan { steps: steps.to_vec(), estimated_s, most_s: plan.most_s * share, ..plan.clone() }
}

/// Tells the progress of a part as that of the whole.
struct Share<'a> {
    of: &'a mut dyn Observer,
    /// Seconds of the parts before.
    done_s: f64,
    part_s: f64,
    whole_s: f64,
}

impl Observer for Share<'_> {
    fn cell(&mut self, step: &Step, cell: &Cell) {
        self.of.cell(step, cell);
    }

    fn progress(&mut self, share: f64) {
        self.of.progress(((self.done_s + share * self.part_s) / self.whole_s.max(1e-9)).min(1.0));
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
    one.timing.setup = match (one.timing.setup, two.timing.setup) {
        (Some(a), Some(b)) => Some(SetUp {
            buffers_s: a.buffers_s + b.buffers_s,
            chains_s: a.chains_s + b.chains_s,
            warm_up_s: a.warm_up_s + b.warm_up_s,
            trials_s: a.trials_s + b.trials_s,
        }),
        (a, b) => a.or(b),
    };
    one.core_ghz.extend(two.core_ghz);
    one.complete &= two.complete;
    one
}

/// Before a register is touched: a file that cannot be written is no reason to have changed one.
fn sinks(output: &Output) -> anyhow::Result<Sinks> {
    Ok(Sinks::open(output, Stream::Output)?)
}

/// `memgauge prefetch`, but for `compare`, which measures.
pub(crate) fn command(args: PrefetchArgs) -> anyhow::Result<ExitCode> {
    let place = place();
    match args.action {
        None => status(&place, &sinks(&args.output)?, Vec::new(), PrefetchRequest::Leave),
        Some(Action::Status(only)) => status(&place, &sinks(&only.output)?, Vec::new(), PrefetchRequest::Leave),
        Some(Action::Off(only)) => switch(&place, &sinks(&only.output)?, PrefetchRequest::Off),
        Some(Action::On(only)) => switch(&place, &sinks(&only.output)?, PrefetchRequest::On),
        Some(Action::Restore(only)) => restore(&place, &sinks(&only.output)?),
        Some(Action::Guard(guard)) => {
            guardian::serve(&place, &guard.id).map_err(|e| failure(&e))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Action::Compare(_)) => Err(anyhow!("compare measures, and is done elsewhere")),
    }
}

/// Reads every register and shows what they say.
fn status(place: &Place, to: &Sinks, notes: Vec<Note>, asked: PrefetchRequest) -> anyhow::Result<ExitCode> {
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
    to.write(&report)?;
    Ok(if unknown { ExitCode::from(exit::COULD_NOT_MEASURE) } else { ExitCode::SUCCESS })
}

/// Switches prefetchers until they are restored.
fn switch(place: &Place, to: &Sinks, asked: PrefetchRequest) -> anyhow::Result<ExitCode> {
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
fn restore(place: &Place, to: &Sinks) -> anyhow::Result<ExitCode> {
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

#[cfg(test)]
mod tests {
    use memgauge_core::result::Timing;

    use super::*;

    /// Remembers what it is told.
    #[derive(Default)]
    struct Told(Vec<f64>);

    impl Observer for Told {
        fn cell(&mut self, _: &Step, _: &Cell) {}

        fn progress(&mut self, share: f64) {
            self.0.push(share);
        }
    }

    #[test]
    fn parts_make_one_progress() {
        let mut told = Told::default();
        for (done_s, part_s) in [(0.0, 3.0), (3.0, 1.0)] {
            let mut share = Share { of: &mut told, done_s, part_s, whole_s: 4.0 };
            [0.0, 0.5, 1.0].into_iter().for_each(|s| share.progress(s));
        }
        assert_eq!(told.0, [0.0, 0.375, 0.75, 0.75, 0.875, 1.0]);
    }

    #[test]
    fn parts_have_their_parts_of_the_time() {
        let step = |estimated_s| Step { title: String::new(), experiment: Experiment::Bandwidth, cells: Vec::new(), estimated_s };
        let machine = sysfs::read_machine(Path::new("/")).unwrap();
        let plan = memgauge_core::planner::plan(&Spec::new(Task::Prefetch), &machine, &memgauge_kernels::rows()).unwrap();
        let plan = Plan { steps: vec![step(2.0), step(1.0), step(5.0)], estimated_s: 8.0, most_s: 16.0, ..plan };
        let part = part_of(&plan, &plan.steps[..2]);
        assert_eq!((part.steps.len(), part.estimated_s, part.most_s, part.seed), (2, 3.0, 6.0, plan.seed));
        // Real plans are the sum of their steps, of which both states have the same.
        let plan = memgauge_core::planner::plan(&Spec::new(Task::Prefetch), &machine, &memgauge_kernels::rows()).unwrap();
        let (on, off) = plan.steps.split_at(plan.steps.len() / 2);
        let sum = part_of(&plan, on).estimated_s + part_of(&plan, off).estimated_s;
        assert!((sum - plan.estimated_s).abs() < 1e-6 * sum, "{sum} {}", plan.estimated_s);
    }

    #[test]
    fn times_of_parts_are_added() {
        let outcome = |setup: Option<SetUp>| {
            let setup_s = setup.map_or(0.0, |s| s.buffers_s + s.chains_s + s.warm_up_s + s.trials_s);
            Outcome {
                results: Vec::new(),
                curves: Vec::new(),
                rfo: None,
                notes: Vec::new(),
                timing: Timing { setup_s, measuring_s: 1.0, total_s: 0.0, setup },
                core_ghz: BTreeMap::new(),
                complete: true,
            }
        };
        let one = SetUp { buffers_s: 1.0, chains_s: 2.0, warm_up_s: 4.0, trials_s: 8.0 };
        let two = SetUp { buffers_s: 16.0, chains_s: 32.0, warm_up_s: 64.0, trials_s: 128.0 };
        let timing = join(outcome(Some(one)), outcome(Some(two))).timing;
        let both = SetUp { buffers_s: 17.0, chains_s: 34.0, warm_up_s: 68.0, trials_s: 136.0 };
        assert_eq!((timing.setup, timing.setup_s, timing.measuring_s), (Some(both), 255.0, 2.0));
        assert_eq!(join(outcome(None), outcome(Some(two))).timing.setup, Some(two));
    }
}
