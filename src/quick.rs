//! The health check's second half: what looks wrong is measured again, and the verdict follows.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use memgauge_core::conclusions::findings::{self, Rules};
use memgauge_core::planner::quick::{DEFAULT_WITHIN_S, ROUND_ENDS, SECOND_ROUND_SHARE};
use memgauge_core::result::{Health, HealthStatus, Report};
use memgauge_engine::Setting;
use memgauge_linux::clock::{self, Clock};

use crate::output::{self, BadFile};
use crate::progress::Progress;
use crate::signals::Stop;

/// Files to compare with, as named on the command line.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// A saved result.
    pub(crate) against: Option<PathBuf>,
    /// Rules.
    pub(crate) rules: Option<PathBuf>,
}

/// The clock of a check, which ends it.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    began: Instant,
    within: Duration,
}

impl Limit {
    /// Begins now.
    pub(crate) fn begin(within: Option<Duration>) -> Self {
        Self { began: Instant::now(), within: within.unwrap_or(Duration::from_secs_f64(DEFAULT_WITHIN_S)) }
    }

    /// When the first or the second round ends.
    pub(crate) fn end(&self, round: usize) -> Instant {
        self.began + self.within.mul_f64(ROUND_ENDS[round])
    }

    /// Seconds for which a second round may be planned.
    fn left_s(&self) -> f64 {
        let left = self.end(1).saturating_duration_since(Instant::now()).as_secs_f64();
        left.min(SECOND_ROUND_SHARE * self.within.as_secs_f64())
    }
}

/// The same, read.
pub(crate) struct Known {
    baseline: Option<Report>,
    rules: Option<Rules>,
}

impl References {
    /// Reads the files before anything is measured.
    ///
    /// # Errors
    /// When one of them cannot be read or is not what it should be.
    pub(crate) fn read(self) -> anyhow::Result<Known> {
        let rules = self.rules.map(|path| {
            let bad = |why: String| BadFile::new(&path, why);
            let text = std::fs::read_to_string(&path).map_err(|e| bad(e.to_string()))?;
            toml::from_str(&text).map_err(|e| bad(format!("is no file of rules: {}", e.to_string().trim())))
        });
        Ok(Known { baseline: self.against.map(|path| output::read_report(&path)).transpose()?, rules: rules.transpose()? })
    }
}

impl Known {
    fn references(&self) -> findings::References<'_> {
        findings::References { baseline: self.baseline.as_ref(), rules: self.rules.as_ref() }
    }
}

/// Where the second round takes place.
pub(crate) struct Run<'a> {
    pub(crate) clock: Clock,
    pub(crate) root: &'a Path,
    pub(crate) stop: &'a Stop,
    pub(crate) quiet: bool,
    pub(crate) limit: Limit,
}

/// Measures what looks wrong in `report` twice more and sets its verdict.
pub(crate) fn conclude(report: &mut Report, known: &Known, run: &Run<'_>) {
    let again = report.plan.as_ref().and_then(|plan| findings::confirm(report, known.references(), plan, run.limit.left_s()));
    if let Some(plan) = again.filter(|_| run.stop.reason().is_none()) {
        let machine = report.machine.clone();
        let (stop, deadline) = (run.stop.flag(), Some(run.limit.end(1)));
        let setting = Setting { machine: &machine, clock: run.clock, root: run.root.to_path_buf(), stop, deadline };
        let mut progress = Progress::new(&plan, run.quiet);
        let outcome = memgauge_engine::run(&plan, &setting, &mut progress);
        progress.finish();
        report.results.extend(outcome.results);
        for note in outcome.notes {
            if !report.notes.contains(&note) {
                report.notes.push(note);
            }
        }
        report.environment.core_ghz.extend(outcome.core_ghz);
        report.timing.setup_s += outcome.timing.setup_s;
        report.timing.measuring_s += outcome.timing.measuring_s;
        memgauge_core::conclusions::limit::attach(report);
        report.ended = clock::moment();
        report.timing.total_s = report.ended.monotonic_ns.saturating_sub(report.started.monotonic_ns) as f64 / 1e9;
    }
    // Whichever round the signal came in.
    if let Some(reason) = run.stop.reason() {
        report.complete = false;
        report.incomplete_reason = Some(reason);
    }
    let health: Health = findings::judge(report, known.references());
    report.health = Some(health);
}

/// The exit status that documents and schedulers know.
pub(crate) fn exit_code(status: HealthStatus) -> ExitCode {
    ExitCode::from(match status {
        HealthStatus::Ok | HealthStatus::Unknown => 0,
        HealthStatus::Warning => 1,
        HealthStatus::Failure => 2,
        HealthStatus::Incident => 3,
        HealthStatus::CouldNotMeasure => crate::exit::COULD_NOT_MEASURE,
    })
}

#[cfg(test)]
mod tests {
    use memgauge_linux::sysfs;

    use super::*;

    #[test]
    fn a_check_that_was_interrupted_is_not_complete() {
        let root = Path::new("/");
        let clock = Clock::calibrate(root);
        let concluded = |stop: &Stop| {
            let mut report = crate::blank_report(sysfs::read_machine(root).unwrap(), root);
            let known = Known { baseline: None, rules: None };
            conclude(&mut report, &known, &Run { clock, root, stop, quiet: true, limit: Limit::begin(None) });
            report
        };
        let report = concluded(&Stop::raised(None));
        assert!(report.complete && report.incomplete_reason.is_none() && report.health.is_some());
        let report = concluded(&Stop::raised(Some(signal_hook::consts::SIGTERM)));
        assert!(!report.complete && report.health.is_some());
        assert_eq!(report.incomplete_reason.as_deref(), Some("interrupted by SIGTERM"));
    }
}
