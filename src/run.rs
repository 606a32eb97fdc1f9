//! A run: it measures plans, one after the other, into one report.

use std::time::{Duration, Instant};

use memgauge_core::conclusions::{advise, findings, levels, limit};
use memgauge_core::note::Note;
use memgauge_core::plan::Plan;
use memgauge_core::result::Report;
use memgauge_engine::RunContext;
use memgauge_os::clock;

use crate::prefetch::guard::PrefetchGuard;
use crate::progress::Progress;
use crate::report;
use crate::signals::Stop;

/// A shorter suspension cannot be told from the jitter of reading two clocks.
const MIN_SUSPENSION: Duration = Duration::from_millis(10);

/// What all plans of a run share: what the engine needs, and what only the program knows.
pub(crate) struct Run<'a> {
    /// For the engine.
    pub(crate) context: RunContext<'a>,
    /// Which signal ended the run.
    pub(crate) stop: &'a Stop,
    /// Show no progress.
    pub(crate) quiet: bool,
    /// Nanoseconds for which the machine had been suspended when the run began.
    suspended_ns: u64,
}

impl<'a> Run<'a> {
    /// Begins a run.
    pub(crate) fn begin(context: RunContext<'a>, stop: &'a Stop, quiet: bool) -> Self {
        Self { context, stop, quiet, suspended_ns: clock::suspended_ns() }
    }

    /// Measures a plan and adds what came out to the report.
    pub(crate) fn measure(&self, plan: &Plan, guard: Option<&mut PrefetchGuard>, report: &mut Report) {
        let mut progress = Progress::new(plan, self.quiet);
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
        self.set_completeness(report);
        limit::attach(report);
        report::add_notes(report, limit::note(report));
        report::end(report);
    }

    /// Says why a report is incomplete. A run that was interrupted always is.
    pub(crate) fn set_completeness(&self, report: &mut Report) {
        if let Some(reason) = self.stop.reason() {
            report.complete = false;
            report.incomplete_reason = Some(reason);
        } else if !report.complete {
            let over = self.context.deadline.is_some_and(|end| Instant::now() >= end);
            let late = over || report.results.iter().any(|m| m.estimate.reason.as_deref() == Some(findings::LEFT_OUT));
            let why = if late { "the time for the whole run was over" } else { "some cells could not be measured" };
            report.incomplete_reason = Some(why.into());
        }
    }
}
