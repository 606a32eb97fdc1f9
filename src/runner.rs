//! The runner measures plans, one after the other, into one report.

use std::time::Duration;

use memgauge_core::conclusions::{advise, levels, limit, summary};
use memgauge_core::estimate::NotMeasured;
use memgauge_core::note::Note;
use memgauge_core::plan::Plan;
use memgauge_core::reference;
use memgauge_core::result::{Incomplete, Measurement, Report};
use memgauge_engine::RunContext;
use memgauge_os::clock;

use crate::prefetch::guard::PrefetchGuard;
use crate::progress::Progress;
use crate::report;
use crate::signals::Stop;

/// A shorter suspension cannot be told from the jitter of reading two clocks.
const MIN_SUSPENSION: Duration = Duration::from_millis(10);

/// Measures the plans of a run. It holds what they share: what the engine needs, and what only the program knows.
pub(crate) struct Runner<'a> {
    /// For the engine.
    pub(crate) context: RunContext<'a>,
    /// Which signal ended the run.
    pub(crate) stop: &'a Stop,
    /// Show no progress.
    pub(crate) quiet: bool,
    /// Nanoseconds for which the machine had been suspended when the run began.
    suspended_ns: u64,
}

impl<'a> Runner<'a> {
    /// Begins a run.
    pub(crate) fn begin(context: RunContext<'a>, stop: &'a Stop, quiet: bool) -> Self {
        Self { context, stop, quiet, suspended_ns: clock::suspended_ns() }
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
        report::add_notes(report, advise::notes(&report.results, &report.machine));
        let suspended = Duration::from_nanos(clock::suspended_ns().saturating_sub(self.suspended_ns));
        if suspended > MIN_SUSPENSION {
            report.notes.push(
                Note::warning("suspended", format!("the machine was suspended for {:.1} s during the run", suspended.as_secs_f64()))
                    .advise("measure again: the results from that time are distorted"),
            );
        }
        self.judge(report);
        report::add_notes(report, limit::note(report));
    }

    /// Judges and sums up what there is, and ends the report.
    pub(crate) fn judge(&self, report: &mut Report) {
        report.incomplete = self.incompleteness(report);
        report.complete = report.incomplete.is_none();
        limit::attach(report);
        report.summary = Some(summary::summarise(report));
        report.references = reference::references(report);
        report::end(report);
    }

    /// Why a report is incomplete. A run that was interrupted always is.
    fn incompleteness(&self, report: &Report) -> Option<Incomplete> {
        let over = || {
            self.context.deadline.is_some_and(|end| self.context.now() >= end)
                || report.measurements().any(|m| m.estimate.not_measured == Some(NotMeasured::OutOfTime))
        };
        match self.stop.interruption() {
            Some(interruption) => Some(interruption),
            None if report.complete => None,
            None if over() => Some(Incomplete::OutOfTime),
            None => Some(Incomplete::CellsMissing),
        }
    }
}
