//! The second half of a health check: what looks wrong is measured again, then the verdict follows.

use std::path::Path;
use std::time::{Duration, Instant};

use memgauge_analysis::conclusions::findings::{self, Baselines, FleetSiblings, History, Rules};
use memgauge_analysis::fleet::FleetBaseline;
use memgauge_fleet::{Fingerprint, group_for};
use memgauge_model::result::Report;
use memgauge_planner::cost;
use memgauge_planner::quick::{DEFAULT_WITHIN_S, ROUND_ENDS, SECOND_ROUND_SHARE};

use super::fleet;
use crate::cli::request::ReferenceFiles;
use crate::exit::UsageError;
use crate::input;
use crate::runner::Runner;
use crate::sinks::read_report;

/// When the rounds of a check end.
#[derive(Clone, Copy)]
pub(crate) struct Deadlines {
    begin: Instant,
    within: Duration,
    /// The time of the stamp after the second round.
    stamp: Duration,
}

impl Deadlines {
    /// The check begins at this time.
    pub(crate) fn begin(begin: Instant, within: Option<Duration>) -> Self {
        Self { begin, within: within.unwrap_or(Duration::from_secs_f64(DEFAULT_WITHIN_S)), stamp: Duration::ZERO }
    }

    /// The same where a stamp of this length follows the second round.
    pub(crate) const fn before_stamp(self, stamp: Duration) -> Self {
        Self { stamp, ..self }
    }

    /// When the first round (0) or the second round (1) ends.
    pub(crate) fn end(&self, round: usize) -> Instant {
        let end = self.begin + self.within.mul_f64(ROUND_ENDS[round]);
        if round == 0 { end } else { end - self.stamp }
    }

    /// Seconds for which a second round may be planned.
    fn left_s(&self, now: Instant) -> f64 {
        let left = self.end(1).saturating_duration_since(now).as_secs_f64();
        left.min(SECOND_ROUND_SHARE * self.within.as_secs_f64())
    }
}

/// Reads what the results are compared with, before anything is measured. `earlier`: the checks that are kept; `kept`: this one will be,
/// too.
///
/// # Errors
/// When one of the files cannot be read or is not what it should be.
pub(crate) fn read_references(files: ReferenceFiles, earlier: Vec<Report>, kept: bool) -> anyhow::Result<SavedReferences> {
    Ok(SavedReferences {
        baseline_file: files.against.as_ref().map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned()),
        baseline: files.against.map(|path| read_report(&path)).transpose()?,
        fleet: files.baseline.map(|path| fleet::read_baseline(&path)).transpose()?,
        rules: files.rules.map(|path| read_rules(&path)).transpose()?,
        earlier,
        history: History::default(),
        kept,
    })
}

/// What the results are compared with, as it was read.
pub(crate) struct SavedReferences {
    baseline: Option<Report>,
    baseline_file: Option<String>,
    fleet: Option<FleetBaseline>,
    rules: Option<Rules>,
    /// Earlier checks that are kept.
    earlier: Vec<Report>,
    /// Those of them that are of the machine.
    history: History,
    kept: bool,
}

impl SavedReferences {
    /// The references that count for a report: of the fleet, the hosts that are like its machine, and the earlier checks of it.
    pub(crate) fn for_report(&mut self, report: &Report) -> Baselines<'_> {
        self.history = findings::earlier_checks(report, std::mem::take(&mut self.earlier));
        let siblings = |fleet| group_for(fleet, &Fingerprint::from_report(report)).map_or(FleetSiblings::TooFew, FleetSiblings::Group);
        Baselines {
            baseline: self.baseline.as_ref(),
            baseline_file: self.baseline_file.as_deref(),
            rules: self.rules.as_ref(),
            fleet: self.fleet.as_ref().map(siblings),
            history: &self.history.checks,
            former: self.history.former.as_ref(),
            kept: self.kept,
        }
    }
}

fn read_rules(path: &Path) -> Result<Rules, UsageError> {
    input::parse_toml(&input::read_text(path)?).map_err(|why| UsageError::file(path, format_args!("is not a file of rules: {why}")))
}

/// Measures what looks wrong in `report` twice more, and sets its verdict.
pub(crate) fn confirm(report: &mut Report, references: Baselines<'_>, runner: &mut Runner<'_>, deadlines: Deadlines) {
    let left_s = deadlines.left_s(runner.context.now());
    let plan = report.plan.as_ref().and_then(|plan| findings::confirm(report, references, plan, left_s, cost::cell_seconds));
    if let Some(plan) = plan.filter(|_| runner.stop.interruption().is_none()) {
        runner.context.deadline = Some(deadlines.end(1));
        runner.measure(&plan, None, report);
    }
    if let Some(plan) = report.plan.take() {
        runner.stamp(&plan, Some(deadlines.end(1) + deadlines.stamp), report);
        report.plan = Some(plan);
    }
    // The signal may have come in either round.
    runner.judge(report);
    report.health = Some(findings::judge(report, references));
}

#[cfg(test)]
mod tests {
    use memgauge_engine::RunContext;
    use memgauge_model::result::Incomplete;
    use memgauge_os::clock::Clock;
    use memgauge_os::topology;

    use super::*;
    use crate::host::HostIdentity;
    use crate::report;
    use crate::signals::Stop;

    #[test]
    fn a_check_that_was_interrupted_is_not_complete() {
        let root = Path::new("/");
        let clock = Clock::calibrate(root);
        let machine = topology::read_machine(root).unwrap();
        let confirmed = |stop: &Stop| {
            let mut report = report::blank(machine.clone(), root, &HostIdentity::withheld());
            let context = RunContext::new(&machine, clock, root.to_path_buf(), stop.flag());
            let mut runner = Runner::begin(context, stop, true);
            confirm(&mut report, Baselines::default(), &mut runner, Deadlines::begin(Instant::now(), None));
            report
        };
        let report = confirmed(&Stop::raised(None));
        assert!(report.complete && report.incomplete.is_none() && report.health.is_some());
        let report = confirmed(&Stop::raised(Some(memgauge_os::signals::TERMINATE)));
        assert!(!report.complete && report.health.is_some());
        assert_eq!(report.incomplete, Some(Incomplete::Signal { name: memgauge_os::signals::name(memgauge_os::signals::TERMINATE) }));
    }
}
