//! Measures a plan, cell by cell.

use std::time::Instant;

use memgauge_analysis::conclusions::judge;
use memgauge_model::estimate::NotMeasured;
use memgauge_model::experiment::Experiment;
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::{Cell, Plan, Work};
use memgauge_model::result::{Incomplete, SetUp, Timing};
use memgauge_model::units::IdSet;
use memgauge_os::clock::ClockError;
use memgauge_os::start_signal::StartSignal;

use crate::context::{Observer, RunContext};
use crate::error::Result;
use crate::experiment::{interleave, latency, loaded, working_set};
use crate::measured::{Measured, Outcome, Subject};
use crate::noise::NoiseWatch;
use crate::scan;
use crate::session::Session;
use crate::transfer::{all_pairs, pair};

/// Measures everything in `plan`. A cell that fails costs that cell, not the run.
pub fn run(plan: &Plan, context: &RunContext<'_>, observer: &mut dyn Observer) -> Outcome {
    let started = context.now();
    let mut session = Session::new(plan, context, observer);
    let signal = StartGate { signal: plan.start_signal.as_deref().map(StartSignal::open) };
    let mut all = Measured::default();
    compare_clocks(&session).into_iter().for_each(|note| all.note(note));
    session.runner.read_all_cores();
    for step in &plan.steps {
        for cell in &step.cells {
            session.progress.begin_cell(step, cell);
            all.append(measure_cell(&mut session, &signal, step.experiment, cell));
            session.progress.end_cell();
        }
    }
    session.runner.read_all_cores();
    outcome(session, all, started)
}

fn outcome(session: Session<'_>, mut all: Measured, started: Instant) -> Outcome {
    session.progress.observer.progress(1.0);
    let elapsed = session.context.now() - started;
    let Session { runner, memory, set_up, calibration, plan, .. } = session;
    let incomplete = all.incomplete();
    if let Some(kept) = plan.kept_samples() {
        all.results.iter_mut().chain(&mut all.repeats).filter_map(|m| m.samples.as_mut()).for_each(|samples| samples.thin(kept));
    }
    judge::mark_drift(&mut all.results, &mut all.repeats);
    Outcome {
        timing: Timing {
            setup_s: elapsed.saturating_sub(runner.measuring).as_secs_f64(),
            measuring_s: runner.measuring.as_secs_f64(),
            total_s: 0.0,
            setup: Some(SetUp { buffers_s: memory.allocating.as_secs_f64(), chains_s: memory.writing_chains.as_secs_f64(), ..set_up }),
        },
        results: all.results,
        repeats: all.repeats,
        matrices: all.matrices,
        curves: all.curves,
        interleaves: all.interleaves,
        stores_read: calibration.stores.evidence,
        notes: all.notes,
        core_ghz: runner.core_ghz,
        all_cores_ghz: runner.all_cores_ghz,
        incomplete,
    }
}

/// Another program that says when each cell starts, where there is one.
struct StartGate {
    signal: Option<std::result::Result<StartSignal, memgauge_os::start_signal::StartSignalError>>,
}

impl StartGate {
    fn wait(&self, session: &Session<'_>) -> Result {
        match &self.signal {
            Some(Err(why)) => Err(NotMeasured::NoStartSignal { detail: why.to_string() }),
            Some(Ok(signal)) => match signal.wait(|| session.interrupted()) {
                Ok(true) => Ok(()),
                Ok(false) => Err(session.budget.interruption()),
                Err(why) => Err(NotMeasured::NoStartSignal { detail: why.to_string() }),
            },
            None => Ok(()),
        }
    }

    fn done(&self) {
        if let Some(Ok(signal)) = &self.signal {
            signal.done();
        }
    }
}

/// Results and failure of a cell.
fn measure_cell(session: &mut Session<'_>, start: &StartGate, experiment: Experiment, cell: &Cell) -> Measured {
    let subject = Subject { topology: &session.context.machine.topology, experiment, at: &cell.at };
    let mut measured = Measured::new(cell.repeat);
    let result = session.begin_time().and_then(|()| try_to_measure(session, start, subject, &cell.work, &mut measured));
    session.end_time();
    if let Err(error) = result {
        measured.fail(subject, &cell.work, &error);
    }
    if session.budget.stopped() {
        measured.cut_short(Incomplete::OutOfTime);
    }
    measured.show(&mut session.progress);
    measured
}

fn try_to_measure(session: &mut Session<'_>, start: &StartGate, subject: Subject<'_>, work: &Work, measured: &mut Measured) -> Result {
    if session.interrupted() {
        return Err(session.budget.interruption());
    }
    start.wait(session)?;
    session.runner.begin_cell(work);
    let result = match measure(session, subject, work, measured) {
        // Memory that went offline in the middle is more than too little of it.
        Err(error @ NotMeasured::NoMemory { .. }) => Err(check_allowed(session.context, work).err().unwrap_or(error)),
        result => result,
    };
    // Time is also out if work was not started because it would not have ended in time.
    let late = !session.budget.stopped();
    let result = if late && matches!(result, Err(NotMeasured::Interrupted)) { Err(NotMeasured::OutOfTime) } else { result };
    end_cell(session, &result, measured.moved());
    // The noise that was seen in a failed cell does not count.
    session.noise = NoiseWatch::default();
    start.done();
    result
}

/// Drops the memory that no later cell may use. `moved` says whether pages of this cell were on other nodes than they should.
fn end_cell(session: &mut Session<'_>, result: &Result, moved: bool) {
    session.memory.end_cell();
    if result.as_ref().is_err_and(NotMeasured::damaged) {
        session.memory.forget();
    } else if moved {
        session.memory.forget_moved();
    }
}

fn measure(session: &mut Session<'_>, subject: Subject<'_>, work: &Work, measured: &mut Measured) -> Result {
    check_allowed(session.context, work)?;
    if work.loaders().is_empty() {
        session.memory.keep_loader_buffers(&[]);
    }
    match work {
        Work::Latency(chase) => latency::measure(session, subject, chase, measured),
        Work::Bandwidth(loading) => loaded::measure_bandwidth(session, subject, loading, measured),
        Work::Curve(curve) => loaded::measure_curve(session, subject, curve, measured),
        Work::Interleave(search) => interleave::measure(session, subject, search, measured),
        Work::Handoff(handoff) => pair::measure(session, subject, handoff, measured),
        Work::Transfers(transfers) => all_pairs::measure(session, subject, transfers, measured),
        Work::Scan(plan) => scan::measure(session, subject, plan, measured),
        Work::LatencySweep(sweep) => working_set::measure_latency(session, subject, sweep, measured),
        Work::BandwidthSweep(sweep) => working_set::measure_bandwidth(session, subject, sweep, measured),
    }
}

/// Stamps of several CPUs are compared with each other: a note when their clocks disagree.
fn compare_clocks(session: &Session<'_>) -> Option<Note> {
    let cells = session.plan.steps.iter().flat_map(|s| &s.cells);
    let cpus = cells.fold(IdSet::new(), |all, cell| all.union(&cell.work.cpus()));
    // Threads that did not run at the same time say nothing about their clocks: they get another chance.
    let check = || session.context.platform.compare_clocks(&cpus);
    let checked = (0..COMPARISONS).map(|_| check()).find(|checked| !matches!(checked, Err(ClockError::NotTested { .. })));
    checked.unwrap_or_else(check).err().map(|error| clock_note(&error))
}

/// How often clocks of CPUs are compared whose threads did not run at the same time.
const COMPARISONS: usize = 3;

/// The note on a comparison of clocks that failed. Only a stamp from the past is evidence against a clock.
fn clock_note(error: &ClockError) -> Note {
    match error {
        ClockError::Backwards { .. } => {
            Note::warning(NoteCode::ClocksNotComparable, format!("{error}: intervals between CPUs, such as coverage, are wrong"))
                .advise("check the kernel's log for an unstable TSC")
        }
        ClockError::NotTested { .. } => {
            Note::info(NoteCode::ClocksNotCompared, error.to_string()).advise("run again when the CPUs are idle")
        }
    }
}

/// Control groups may change and CPUs go offline during a run: a cell that lost its CPUs or nodes is not measured elsewhere.
fn check_allowed(context: &RunContext<'_>, work: &Work) -> Result {
    let Some(now) = context.platform.allowed() else { return Ok(()) };
    let cpus = work.cpus().difference(&now.cpus);
    if !cpus.is_empty() {
        return Err(NotMeasured::CpusLost { cpus });
    }
    let buffers = work.buffers().into_iter().filter(|b| b.directory.is_none());
    let nodes: IdSet = buffers.flat_map(|b| b.nodes().iter().collect::<Vec<_>>()).filter(|&node| !now.nodes.contains(node)).collect();
    if !nodes.is_empty() {
        return Err(NotMeasured::NodesLost { nodes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use memgauge_testing::not_tested;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use memgauge_model::estimate::NotMeasured;
    use memgauge_model::plan::IdleChase;
    use memgauge_model::spec::{LatencyShape, LatencySpec, Spec, Task};
    use memgauge_os::clock::Clock;

    use memgauge_model::note::Severity;

    use super::*;
    use crate::context::Unobserved;

    #[test]
    fn only_a_stamp_from_the_past_is_evidence_against_a_clock() {
        let not_tested = clock_note(&ClockError::NotTested { a: 0, b: 1, why: "they did not run at the same time".into() });
        assert!(not_tested.severity == Severity::Info && !format!("{not_tested:?}").contains("TSC"), "{not_tested:?}");
        let backwards = clock_note(&ClockError::Backwards { earlier: 0, later: 1, ns: 400.0 });
        assert!(backwards.severity == Severity::Warning && format!("{backwards:?}").contains("TSC"), "{backwards:?}");
    }

    #[test]
    fn a_start_signal_that_does_not_come_is_waited_for_until_the_deadline() {
        let root = std::path::Path::new("/");
        let Ok(machine) = memgauge_os::topology::read_machine(root) else {
            not_tested!("no sysfs");
        };
        let mut plan = memgauge_planner::plan(&Spec::new(Task::latency(LatencyShape::One)), &machine, &[]).unwrap();
        plan.start_signal = Some(format!("memgauge-test-deadline-{}", std::process::id()));
        let (stop, deadline) = (std::sync::Arc::new(AtomicBool::new(false)), Some(Instant::now() + Duration::from_millis(100)));
        let context = RunContext { deadline, ..RunContext::new(&machine, Clock::calibrate(root), root.into(), &stop) };
        let outcome = run(&plan, &context, &mut Unobserved);
        assert!(outcome.incomplete == Some(Incomplete::OutOfTime) && !outcome.results.is_empty());
        assert!(
            outcome.results.iter().all(|m| m.estimate.not_measured == Some(NotMeasured::OutOfTime)),
            "{:?}",
            outcome.results[0].estimate
        );
        stop.store(true, Ordering::Relaxed);
        let context = RunContext { deadline: None, ..context };
        let outcome = run(&plan, &context, &mut Unobserved);
        assert!(outcome.results.iter().all(|m| m.estimate.not_measured == Some(NotMeasured::Interrupted)));
    }

    /// The thread may still store into the memory that it had when it was given up.
    #[test]
    fn memory_of_a_thread_that_was_given_up_is_not_used_again() {
        let root = std::path::Path::new("/");
        let Ok(machine) = memgauge_os::topology::read_machine(root) else {
            not_tested!("no sysfs");
        };
        let plan = memgauge_planner::plan(&Spec::new(Task::latency(LatencyShape::One)), &machine, &[]).unwrap();
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let (context, mut silent) = (RunContext::new(&machine, Clock::calibrate(root), root.into(), &stop), Unobserved);
        let mut session = Session::new(&plan, &context, &mut silent);
        let Some(Work::Latency(IdleChase { probe, .. })) = plan.steps[0].cells.first().map(|cell| &cell.work) else { panic!("{plan:?}") };
        let wanted = memgauge_model::plan::BufferPlan { bytes: memgauge_model::units::Bytes::mib(2), ..probe.buffer.clone() };
        let buffer = |session: &mut Session<'_>| session.memory.loader_buffer(&mut session.noise, probe.cpu, 0, &wanted).unwrap();
        let first = buffer(&mut session);
        end_cell(&mut session, &Ok(()), false);
        assert!(std::sync::Arc::ptr_eq(&first, &buffer(&mut session)), "the next cell has it again");
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let held = first.clone();
        let job: crate::burst::workers::Job<()> = Box::new(move || {
            let _ = wait.recv();
            drop(held);
        });
        let threads = session.runner.threads(&IdSet::one(probe.cpu)).unwrap();
        let given_up = threads.workers.run(vec![(probe.cpu, job)], Duration::from_millis(20)).map(|_| ());
        let given_up = given_up.map_err(NotMeasured::from);
        assert!(
            matches!(given_up, Err(NotMeasured::NoThread { failure: Some(memgauge_model::estimate::ThreadFailure::TimedOut), .. })),
            "{given_up:?}"
        );
        end_cell(&mut session, &given_up, false);
        assert!(!std::sync::Arc::ptr_eq(&first, &buffer(&mut session)), "a thread that was given up has it still");
        drop(release);
    }

    #[test]
    fn what_was_measured_before_the_end_is_kept() {
        let root = std::path::Path::new("/");
        let Ok(machine) = memgauge_os::topology::read_machine(root) else {
            not_tested!("no sysfs");
        };
        let mut latency = LatencySpec::default();
        latency.chase.buffer = Some(memgauge_model::units::Bytes::mib(16));
        let mut spec = Spec::new(Task::Latency(latency));
        let mut run_for = |seconds| {
            // Twelve bursts in each of two orders, each longer than the run: it ends within the first of them.
            spec.time = Some(Duration::from_secs(18 * seconds));
            let plan = memgauge_planner::plan(&spec, &machine, &[]).unwrap();
            let (stop, deadline) = (std::sync::Arc::new(AtomicBool::new(false)), Some(Instant::now() + Duration::from_secs(seconds)));
            let context = RunContext { deadline, ..RunContext::new(&machine, Clock::calibrate(root), root.into(), &stop) };
            run(&plan, &context, &mut Unobserved)
        };
        // A busy machine may need longer to begin.
        let began = |outcome: &Outcome| outcome.results[0].estimate.not_measured != Some(NotMeasured::OutOfTime);
        let outcome = [1, 4, 20].into_iter().map(&mut run_for).find(began).unwrap();
        let [first, second] = &outcome.results[..] else { panic!("{} results", outcome.results.len()) };
        assert!(first.estimate.value.is_some(), "{:?}", first.estimate);
        assert_eq!((second.estimate.value, &second.estimate.not_measured), (None, &Some(NotMeasured::OutOfTime)));
        assert_eq!(outcome.incomplete, Some(Incomplete::OutOfTime));
    }
}
