//! Prefetchers that are switched during a run, and put back after it.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use memgauge_engine::{Heartbeat, Observer, Outcome, RunContext};
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::{Experiment, PrefetchRequest};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::{Cell, Plan, Step};
use memgauge_model::prefetchers::{self, Control, PrefetchState, PrefetchStatus};
use memgauge_model::result::{Evidence, Incomplete, Measurement, Quality, QualityLevel, Report, Verdict};
use memgauge_model::spec::{Spec, Task};
use memgauge_model::topology::Machine;
use memgauge_model::units::IdSet;
use memgauge_model::wording::reasons;
use memgauge_os::prefetch::Guardian;
use memgauge_os::prefetch::{ChangeKind, PrefetchChange, PrefetchError};
use memgauge_os::prefetch::{MsrError, MsrFault};

use super::controls::{PrefetchControls, found_notes, place, with_advice};
use crate::console::Program;

/// Registers that are being changed, and the guardian that restores them if this process is killed.
pub(crate) struct GuardedChange {
    // Fields are dropped in this order: the registers and their lock first, then the guardian, which finds nothing left to do. In the other
    // order the guardian would wait for the lock, and this process for the guardian.
    pub(crate) change: PrefetchChange,
    guardian: Guardian,
}

impl GuardedChange {
    /// Saves the registers and starts the guardian. Nothing is switched yet.
    ///
    /// # Errors
    /// When a register cannot be read or the guardian cannot be started.
    pub(crate) fn begin(controls: &BTreeMap<u32, Control>) -> Result<Self, PrefetchError> {
        let change = PrefetchChange::begin(place(), controls, ChangeKind::Run)?;
        let guardian = Guardian::start(&["prefetch", "guard", change.id()]).map_err(PrefetchError::Guardian)?;
        Ok(Self { change, guardian })
    }

    /// Puts the registers back and ends the guardian.
    ///
    /// # Errors
    /// When the registers could not be put back.
    pub(crate) fn end(self) -> Result<(), PrefetchError> {
        let Self { change, guardian } = self;
        let restored = change.restore();
        guardian.dismiss();
        restored
    }
}

/// Prefetchers that are switched during a run.
pub(crate) struct PrefetchGuard {
    change: Switching,
    controls: PrefetchControls,
    requested: PrefetchRequest,
    /// The state before the run, where the run measures several states.
    found: Option<PrefetchState>,
    notes: Vec<Note>,
}

/// How prefetchers are switched.
enum Switching {
    /// By their registers.
    Registers(Box<GuardedChange>),
    /// Not at all.
    None {
        /// Why.
        why: String,
    },
}

/// Whether no register could be read, so that nothing was tried.
fn out_of_reach(error: &PrefetchError) -> bool {
    match error {
        PrefetchError::Register(error) => matches!(
            error.fault,
            MsrFault::NoModule(_) | MsrFault::NotPermitted(..) | MsrFault::NoRegister | MsrFault::Refused(_) | MsrFault::Other(..)
        ),
        PrefetchError::Folder(..) | PrefetchError::Container(_) => true,
        _ => false,
    }
}

impl PrefetchGuard {
    /// Saves the registers, starts the guardian, and switches prefetchers, if `spec` requests it. Where a comparison cannot switch any,
    /// `plan` is changed: it measures the state that they are in.
    ///
    /// # Errors
    /// When some of them cannot be switched; the others are put back.
    pub(crate) fn begin(spec: &Spec, plan: &mut Plan, machine: &Machine) -> anyhow::Result<Option<Self>> {
        let compares = matches!(spec.task, Task::Prefetch(_));
        if !compares && spec.prefetch == PrefetchRequest::Leave {
            return Ok(None);
        }
        let controls = PrefetchControls::find(machine);
        let measured = plan.steps.iter().flat_map(|s| &s.cells).fold(IdSet::new(), |all, c| all.union(&c.work.cpus()));
        if let Some(why) = controls.missing(&measured).filter(|_| compares) {
            return Ok(Some(Self::as_found(controls, plan, why)));
        }
        controls.check(&measured)?;
        let guarded = match GuardedChange::begin(&controls.by_cpu) {
            Err(error) if compares && out_of_reach(&error) => {
                let why = format!("{error}; {}", error.advice());
                return Ok(Some(Self::as_found(controls, plan, why)));
            }
            begun => begun.map_err(|e| with_advice(&e))?,
        };
        Program::MEMGAUGE.message(&prefetchers::taint_note().message);
        let notes = controls.notes().into_iter().chain(found_notes(guarded.change.leftover())).collect();
        let mut guard = Self { change: Switching::Registers(Box::new(guarded)), controls, requested: spec.prefetch, found: None, notes };
        if compares {
            let values = guard.verify().map_err(|e| with_advice(&e))?;
            guard.found = Some(guard.controls.state(PrefetchRequest::Leave, &all_read(values)));
        }
        // A comparison begins with prefetchers on. They are switched off here, so that a machine that refuses does so before anything is
        // measured.
        let first = if compares { PrefetchRequest::Off } else { guard.requested };
        guard.set(first).map_err(|e| with_advice(&e))?;
        Ok(Some(guard))
    }

    /// A comparison that switches nothing, because of `why`.
    fn as_found(controls: PrefetchControls, plan: &mut Plan, why: String) -> Self {
        for step in &mut plan.steps {
            step.title = step.title.strip_suffix(" on").map_or_else(|| step.title.clone(), |title| format!("{title} as found"));
        }
        for cell in plan.steps.iter_mut().flat_map(|step| &mut step.cells) {
            cell.at.prefetch = cell.at.prefetch.filter(|state| *state != PrefetchRequest::On).or(Some(PrefetchRequest::Leave));
        }
        let taint = prefetchers::taint_note();
        plan.notes.retain(|note| note.code != taint.code);
        let found = PrefetchState { reason: Some(why.clone()), ..PrefetchState::default() };
        Self { change: Switching::None { why }, controls, requested: PrefetchRequest::Leave, found: Some(found), notes: Vec::new() }
    }

    fn verify(&self) -> Result<BTreeMap<u32, u64>, PrefetchError> {
        match &self.change {
            Switching::Registers(guarded) => guarded.change.verify(),
            Switching::None { .. } => Ok(BTreeMap::new()),
        }
    }

    fn set(&mut self, state: PrefetchRequest) -> Result<(), PrefetchError> {
        match &mut self.change {
            Switching::Registers(guarded) => guarded.change.set(state == PrefetchRequest::Off),
            Switching::None { .. } => Ok(()),
        }
    }

    /// Measures the plan. If its cells name states of the prefetchers, there is one outcome for each state, in turn.
    pub(crate) fn run(&mut self, plan: &Plan, context: &RunContext<'_>, observer: &mut dyn Observer, absorb: &mut dyn FnMut(Outcome)) {
        let state_of = |step: &Step| step.cells.first().and_then(|c| c.at.prefetch);
        let mut done_s = 0.0;
        for steps in plan.steps.chunk_by(|a, b| state_of(a) == state_of(b)) {
            let part = part_of(plan, steps);
            let mut observer = PartObserver { whole: &mut *observer, done_s, part_s: part.estimated_s, whole_s: plan.estimated_s };
            done_s += part.estimated_s;
            absorb(match (steps.first().and_then(state_of), &self.change) {
                (Some(state @ PrefetchRequest::Off), Switching::None { why }) => {
                    not_set(NotMeasured::PrefetchersNotSet { state, detail: why.clone() }, &part, context, &mut observer)
                }
                (Some(state), Switching::Registers(_)) => self.run_in(state, &part, context, &mut observer),
                _ => memgauge_engine::run(&part, context, &mut observer),
            });
        }
    }

    /// Measures in one state. If the registers are not in it before and after, the results are dropped.
    fn run_in(&mut self, state: PrefetchRequest, part: &Plan, context: &RunContext<'_>, observer: &mut dyn Observer) -> Outcome {
        // After an interruption nothing is switched any more.
        let set = if context.stop.load(Ordering::Relaxed) { Ok(()) } else { self.set(state) };
        let outcome = set.and_then(|()| {
            let outcome = memgauge_engine::run(part, context, observer);
            self.verify().map(|_| outcome)
        });
        outcome.unwrap_or_else(|error| {
            let why = NotMeasured::PrefetchersNotSet { state, detail: error.to_string() };
            let note = Note::error(NoteCode::PrefetchNotSet, reasons::not_measured(&why)).advise(error.advice());
            let mut outcome = not_set(why, part, context, observer);
            outcome.notes.push(note);
            outcome
        })
    }

    /// Puts the state into the report, and the registers back. Returns the error if they could not be put back.
    pub(crate) fn end(mut self, report: &mut Report) -> Option<anyhow::Error> {
        let requested = self.requested;
        report.notes.append(&mut self.notes);
        let mut state = match (self.found.take(), self.verify()) {
            (Some(found), _) => found,
            (None, Ok(values)) => self.controls.state(requested, &all_read(values)),
            (None, Err(error)) => {
                report.notes.push(
                    Note::warning(
                        NoteCode::PrefetchStateLost,
                        format!("{error}: no result here is sure to be one with prefetchers {}", requested.name()),
                    )
                    .advise(error.advice()),
                );
                let (reason, advice) = (Some(error.to_string()), Some(error.advice()));
                PrefetchState { requested, reason, advice, ..PrefetchState::default() }
            }
        };
        let off = |m: &&Measurement| m.at.prefetch.unwrap_or(requested) == PrefetchRequest::Off;
        if let Some(note) = memgauge_analysis::conclusions::advise::contradicted(report.measurements().filter(off)) {
            if requested == PrefetchRequest::Off {
                state.status = PrefetchStatus::Unknown;
                state.reason = Some(note.message.to_string());
                state.advice.clone_from(&note.advice);
            }
            report.notes.push(note);
        }
        report.environment.prefetch = Some(state);
        let Switching::Registers(guarded) = self.change else { return None };
        let error = guarded.end().err()?;
        report.notes.push(Note::error(NoteCode::PrefetchNotRestored, error.to_string()).advise(error.advice()));
        Some(with_advice(&error))
    }
}

/// The outcome of a part that was not measured, because prefetchers are not in the state that it wants.
fn not_set(why: NotMeasured, part: &Plan, context: &RunContext<'_>, observer: &mut dyn Observer) -> Outcome {
    let mut outcome = memgauge_engine::run(&Plan { steps: Vec::new(), ..part.clone() }, context, observer);
    let cells = part.steps.iter().flat_map(|step| step.cells.iter().map(|cell| unmeasured(step.experiment, cell, &why)));
    outcome.results = cells.collect();
    outcome.incomplete = Some(Incomplete::CellsMissing);
    outcome
}

/// The values of registers that could all be read.
fn all_read(values: BTreeMap<u32, u64>) -> BTreeMap<u32, Result<u64, MsrError>> {
    values.into_iter().map(|(cpu, value)| (cpu, Ok(value))).collect()
}

/// A cell without a value, and why.
pub(crate) fn unmeasured(experiment: Experiment, cell: &Cell, why: &NotMeasured) -> Measurement {
    let metric = cell.work.metric();
    Measurement {
        experiment,
        at: cell.at.clone(),
        metric,
        unit: metric.unit(),
        firmware: None,
        estimate: Estimate { not_measured: Some(why.clone()), ..Estimate::default() },
        distribution: None,
        samples: None,
        counters: None,
        lines_in_flight: None,
        evidence: Evidence::default(),
        quality: Quality { level: QualityLevel::None, reasons: Vec::new() },
        verdict: Verdict::default(),
    }
}

/// A plan of some of the steps, with their share of the time.
fn part_of(plan: &Plan, steps: &[Step]) -> Plan {
    let estimated_s = steps.iter().map(|s| s.estimated_s).sum();
    let share = if plan.estimated_s > 0.0 { estimated_s / plan.estimated_s } else { 1.0 };
    Plan { steps: steps.to_vec(), estimated_s, max_s: plan.max_s * share, ..plan.clone() }
}

/// Reports the progress of a part as progress of the whole.
struct PartObserver<'a> {
    whole: &'a mut dyn Observer,
    /// Seconds of the parts that are done.
    done_s: f64,
    part_s: f64,
    whole_s: f64,
}

impl Observer for PartObserver<'_> {
    fn cell(&mut self, step: &Step, cell: &Cell) {
        self.whole.cell(step, cell);
    }

    fn measured(&mut self, results: &[Measurement]) {
        self.whole.measured(results);
    }

    fn progress(&mut self, share: f64) {
        self.whole.progress(((self.done_s + share * self.part_s) / self.whole_s.max(1e-9)).min(1.0));
    }

    fn heartbeat(&self) -> Option<Heartbeat> {
        self.whole.heartbeat()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use memgauge_os::topology;

    use super::*;

    /// Keeps the progress that is reported to it.
    #[derive(Default)]
    struct Recorder(Vec<f64>);

    impl Observer for Recorder {
        fn cell(&mut self, _: &Step, _: &Cell) {}

        fn progress(&mut self, share: f64) {
            self.0.push(share);
        }
    }

    #[test]
    fn parts_make_one_progress() {
        let mut recorder = Recorder::default();
        for (done_s, part_s) in [(0.0, 3.0), (3.0, 1.0)] {
            let mut part = PartObserver { whole: &mut recorder, done_s, part_s, whole_s: 4.0 };
            [0.0, 0.5, 1.0].into_iter().for_each(|share| part.progress(share));
        }
        assert_eq!(recorder.0, [0.0, 0.375, 0.75, 0.75, 0.875, 1.0]);
    }

    #[test]
    fn parts_have_their_share_of_the_time() {
        let step = |estimated_s| Step { title: String::new(), experiment: Experiment::Bandwidth, cells: Vec::new(), estimated_s };
        let machine = topology::read_machine(Path::new("/")).unwrap();
        let plan = memgauge_planner::plan(&Spec::new(Task::prefetch()), &machine, &memgauge_kernels::rows()).unwrap();
        let plan = Plan { steps: vec![step(2.0), step(1.0), step(5.0)], estimated_s: 8.0, max_s: 16.0, ..plan };
        let part = part_of(&plan, &plan.steps[..2]);
        assert_eq!((part.steps.len(), part.estimated_s, part.max_s, part.seed), (2, 3.0, 6.0, plan.seed));
        // Real plans are the sum of their steps, of which both states have the same.
        let plan = memgauge_planner::plan(&Spec::new(Task::prefetch()), &machine, &memgauge_kernels::rows()).unwrap();
        let (on, off) = plan.steps.split_at(plan.steps.len() / 2);
        let sum = part_of(&plan, on).estimated_s + part_of(&plan, off).estimated_s;
        assert!((sum - plan.estimated_s).abs() < 1e-6 * sum, "{sum} {}", plan.estimated_s);
    }
}
