//! The runner measures plans, one after the other, into one report.

use std::time::{Duration, Instant};

use memgauge_analysis::conclusions::{advise, curve, levels, limit, persistent, state, summary, tiers};
use memgauge_analysis::reference;
use memgauge_engine::RunContext;
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::Plan;
use memgauge_model::properties::changed_settings;
use memgauge_model::result::{DimmErrors, Incomplete, MachineState, Measurement, MemoryErrors, Report};
use memgauge_os::{clock, noise};

use crate::machine;
use crate::prefetch::guard::PrefetchGuard;
use crate::progress::Progress;
use crate::report;
use crate::signals::Stop;

/// A shorter suspension cannot be distinguished from the jitter of reading two clocks.
const MIN_SUSPENSION: Duration = Duration::from_millis(10);

/// Measures the plans of a run. It holds what they share: what the engine needs, and what only the program knows.
pub(crate) struct Runner<'a> {
    /// For the engine.
    pub(crate) context: RunContext<'a>,
    /// Which signal ended the run.
    pub(crate) stop: &'a Stop,
    /// Show no progress.
    pub(crate) quiet: bool,
    /// Nanoseconds that the machine had been suspended when the run began.
    suspended_ns: u64,
    /// The errors that memory controllers and their DIMMs had counted then.
    errors_before: Option<(u64, u64)>,
    dimms_before: Vec<DimmErrors>,
    /// How often heat had throttled cores and packages then.
    throttles_before: Option<u64>,
}

impl<'a> Runner<'a> {
    /// Begins a run.
    pub(crate) fn begin(context: RunContext<'a>, stop: &'a Stop, quiet: bool) -> Self {
        let (errors_before, dimms_before) = (noise::memory_errors(&context.root), noise::dimm_errors(&context.root));
        let throttles_before = noise::thermal_throttles(&context.root);
        Self { context, stop, quiet, suspended_ns: clock::suspended_ns(), errors_before, dimms_before, throttles_before }
    }

    /// Takes a stamp as `plan` has it, until `end`, and compares the first of the run with it.
    pub(crate) fn stamp(&mut self, plan: &Plan, end: Option<Instant>, report: &mut Report) {
        // Cells that had no time are judged by the end of the cells.
        let of_cells = std::mem::replace(&mut self.context.deadline, end);
        let stamp = memgauge_engine::stamp(plan, &self.context);
        self.context.deadline = of_cells;
        let Some(stamp) = stamp else { return };
        report.state.get_or_insert_with(|| Box::new(MachineState { stamps: Vec::new(), compared: None })).stamps.push(stamp);
        let Some([first, .., last]) = report.state.as_deref().map(|state| &state.stamps[..]) else { return };
        let settings = changed_settings(report, &machine::now(report, &self.context.root));
        let compared = state::compare(first, last, settings, None);
        state::mark(&compared, report);
        report.state.iter_mut().for_each(|state| state.compared = Some(compared.clone()));
    }

    /// Measures a plan and adds what came out to the report.
    pub(crate) fn measure(&self, plan: &Plan, guard: Option<&mut PrefetchGuard>, report: &mut Report) {
        self.measure_live(plan, guard, report, &mut |_| {});
    }

    /// The same; `live` gets results as they are measured.
    pub(crate) fn measure_live(
        &self,
        plan: &Plan,
        guard: Option<&mut PrefetchGuard>,
        report: &mut Report,
        live: &mut dyn FnMut(&[Measurement]),
    ) {
        let mut progress = Progress::new(plan, &self.context, self.quiet, live);
        report::add_notes(report, plan.notes.iter().cloned());
        match guard {
            Some(guard) => guard.run(plan, &self.context, &mut progress, &mut |outcome| report::absorb(report, outcome)),
            None => report::absorb(report, memgauge_engine::run(plan, &self.context, &mut progress)),
        }
        progress.finish();
    }

    /// Adds what follows from all results, and ends the report.
    pub(crate) fn conclude(&self, report: &mut Report) {
        report.levels = levels::summarise(&report.results, &report.machine);
        curve::add_bandwidth_by_node(report);
        report.best_writers = persistent::best_writers(&report.results);
        report.access_knees = persistent::access_knees(&report.results);
        report::add_notes(report, advise::notes(&report.results, &report.machine));
        report::add_notes(report, tiers::notes(report));
        let suspended = Duration::from_nanos(clock::suspended_ns().saturating_sub(self.suspended_ns));
        if suspended > MIN_SUSPENSION {
            report.notes.push(
                Note::warning(
                    NoteCode::Suspended,
                    format!("the machine was suspended for {:.1} s during the run", suspended.as_secs_f64()),
                )
                .advise("measure again: the results from that time are distorted"),
            );
        }
        self.judge(report);
        report::add_notes(report, limit::note(report));
    }

    /// Judges and sums up what there is, and ends the report.
    pub(crate) fn judge(&self, report: &mut Report) {
        report.environment.memory_errors = self.memory_errors();
        let throttles = noise::thermal_throttles(&self.context.root).zip(self.throttles_before);
        report.environment.thermal_throttles = throttles.map(|(now, before)| now.saturating_sub(before));
        report.incomplete = self.incompleteness(report);
        report.complete = report.incomplete.is_none();
        limit::attach(report);
        report.summary = Some(summary::summarise(report));
        let references = reference::references(report);
        (report.references, report.no_reference) = (references.spans, references.none);
        report::end(report);
    }

    /// The errors that memory controllers have counted since the run began.
    fn memory_errors(&self) -> Option<MemoryErrors> {
        let (before, now) = (self.errors_before?, noise::memory_errors(&self.context.root)?);
        Some(MemoryErrors {
            corrected: now.0.saturating_sub(before.0),
            uncorrected: now.1.saturating_sub(before.1),
            dimms: DimmErrors::since(&self.dimms_before, &noise::dimm_errors(&self.context.root)),
        })
    }

    /// Why a report is incomplete. A run that was interrupted always is.
    fn incompleteness(&self, report: &Report) -> Option<Incomplete> {
        let time_is_over = || self.context.deadline.is_some_and(|end| self.context.now() >= end);
        match (self.stop.interruption(), &report.incomplete) {
            (Some(interruption), _) => Some(interruption),
            (None, Some(_)) if time_is_over() => Some(Incomplete::OutOfTime),
            (None, why) => why.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use memgauge_os::clock::Clock;
    use memgauge_os::topology;

    use super::*;
    use crate::host::HostIdentity;

    #[test]
    fn what_is_missing_when_the_time_is_over_is_missing_for_that() {
        let machine = topology::read_machine(Path::new("/")).unwrap();
        let stop = Stop::raised(None);
        let mut report = memgauge_render::read(include_bytes!("../tests/results/two-nodes.json")).unwrap();
        let why = |within: Option<Duration>, report: &Report| {
            let mut context = RunContext::new(&machine, Clock::calibrate(Path::new("/")), "/".into(), stop.flag());
            context.deadline = within.map(|within| context.now() + within);
            Runner::begin(context, &stop, true).incompleteness(report)
        };
        let (over, hour) = (Some(Duration::ZERO), Some(Duration::from_secs(3600)));
        assert_eq!((why(over, &report), why(hour, &report)), (None, None), "all is there");
        report.incomplete = Some(Incomplete::CellsMissing);
        assert_eq!(why(over, &report), Some(Incomplete::OutOfTime));
        assert_eq!(why(hour, &report), Some(Incomplete::CellsMissing));
        assert_eq!(why(None, &report), Some(Incomplete::CellsMissing), "without a time nothing was cut short by it");
    }

    #[test]
    fn memory_errors_are_those_of_the_whole_run() {
        let machine = topology::read_machine(Path::new("/")).unwrap();
        let root = std::env::temp_dir().join(format!("memgauge-run-errors-{}", std::process::id()));
        let controller = root.join("sys/devices/system/edac/mc/mc0");
        fs::create_dir_all(&controller).unwrap();
        let show = |corrected: u64| {
            fs::write(controller.join("ce_count"), format!("{corrected}\n")).unwrap();
            fs::write(controller.join("ue_count"), "2\n").unwrap();
        };
        show(5);
        let stop = Stop::raised(None);
        let context = RunContext::new(&machine, Clock::calibrate(Path::new("/")), root.clone(), stop.flag());
        let runner = Runner::begin(context, &stop, true);
        let mut report = report::blank(machine.clone(), &root, &HostIdentity::withheld());
        // No cell is being measured.
        show(6);
        runner.judge(&mut report);
        assert_eq!(report.environment.memory_errors, Some(MemoryErrors { corrected: 1, ..MemoryErrors::default() }));
        fs::remove_dir_all(&root).unwrap();
        runner.judge(&mut report);
        assert_eq!(report.environment.memory_errors, None, "no driver reports them any more");
    }
}
