//! Exit statuses of both programs, and the errors that the command line is to blame for.

use std::path::Path;
use std::process::ExitCode;

use memgauge_engine::LoopError;
use memgauge_model::result::HealthStatus;
use memgauge_model::words::Problem;
use memgauge_os::directory::DirectoryError;
use memgauge_planner::PlanError;

/// How a run ended: the number that the shell sees, as `--help` and the README document it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitStatus(pub(crate) u8);

impl ExitStatus {
    /// Everything was done; a health check found nothing wrong.
    pub(crate) const SUCCESS: Self = Self(0);
    /// Part of what was planned could not be measured.
    pub(crate) const MEASURED_IN_PART: Self = Self(1);
    /// A health check ended with a warning.
    const WARNING: Self = Self(1);
    /// A health check failed.
    const FAILURE: Self = Self(2);
    /// A comparison shows neither a difference nor that there is none.
    pub(crate) const INCONCLUSIVE: Self = Self(1);
    /// A comparison shows less bandwidth or more latency.
    pub(crate) const WORSE: Self = Self(2);
    /// The machine is in another state than it was.
    pub(crate) const ANOTHER_STATE: Self = Self(1);
    /// Others use the machine, so that its state is not known.
    pub(crate) const BUSY: Self = Self(2);
    /// Memory did not keep what was written to it, or reports errors.
    pub(crate) const INCIDENT: Self = Self(3);
    /// Nothing could be measured, or a result could not be written.
    pub(crate) const COULD_NOT_MEASURE: Self = Self(4);
    /// The command line, or a file that it names, is wrong.
    pub(crate) const USAGE: Self = Self(64);
    /// A signal ended the run.
    pub(crate) const INTERRUPTED: Self = Self(130);

    /// The status of a run that was not interrupted, with so many numbers.
    pub(crate) const fn measured(numbers: usize, complete: bool) -> Self {
        match (complete, numbers) {
            (true, _) => Self::SUCCESS,
            (false, 0) => Self::COULD_NOT_MEASURE,
            (false, _) => Self::MEASURED_IN_PART,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.0)
    }
}

impl From<HealthStatus> for ExitStatus {
    fn from(status: HealthStatus) -> Self {
        match status {
            HealthStatus::Ok => Self::SUCCESS,
            HealthStatus::Unknown => Self::MEASURED_IN_PART,
            HealthStatus::Warning => Self::WARNING,
            HealthStatus::Failure => Self::FAILURE,
            HealthStatus::Incident => Self::INCIDENT,
            HealthStatus::CouldNotMeasure => Self::COULD_NOT_MEASURE,
        }
    }
}

impl From<&anyhow::Error> for ExitStatus {
    fn from(error: &anyhow::Error) -> Self {
        if let Some(error) = error.downcast_ref::<clap::Error>() {
            // clap reports a request for help or the version as an error, too.
            return if error.use_stderr() { Self::USAGE } else { Self::SUCCESS };
        }
        if let Some(LoopError::Interrupted) = error.downcast_ref() {
            return Self::INTERRUPTED;
        }
        let usage = error.is::<UsageError>()
            || matches!(error.downcast_ref(), Some(PlanError::Request(_)))
            || matches!(error.downcast_ref(), Some(DirectoryError::Request { .. }))
            || matches!(error.downcast_ref(), Some(LoopError::Request(_)));
        if usage { Self::USAGE } else { Self::COULD_NOT_MEASURE }
    }
}

/// The problem that an error holds as data, and the place that it is about.
pub(crate) fn problem<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<(Option<&'e str>, &'e Problem)> {
    if let Some(error) = error.downcast_ref::<PlanError>() {
        return Some((None, error.problem()));
    }
    if let Some(DirectoryError::Request(place, problem) | DirectoryError::Unavailable(place, problem)) = error.downcast_ref() {
        return Some((Some(place), problem));
    }
    error.downcast_ref::<Problem>().map(|problem| (None, problem))
}

/// The command line, or a file that it names, asks for something that is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

impl UsageError {
    /// A file that cannot be used, and why.
    pub(crate) fn file(path: &Path, why: impl std::fmt::Display) -> Self {
        Self(format!("{}: {}", path.display(), shortened(&why.to_string())))
    }
}

/// Characters of a reason. The messages of parsers quote what they found, and a file may hold anything.
const MAX_REASON: usize = 300;

fn shortened(why: &str) -> String {
    match why.char_indices().nth(MAX_REASON) {
        Some((end, _)) => format!("{}…", &why[..end]),
        None => why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_documented_ones() {
        let health =
            [HealthStatus::Ok, HealthStatus::Warning, HealthStatus::Failure, HealthStatus::Incident, HealthStatus::CouldNotMeasure];
        assert_eq!(health.map(|status| ExitStatus::from(status).0), [0, 1, 2, 3, 4]);
        assert_eq!(ExitStatus::from(HealthStatus::Unknown).0, 1, "what was not found out is not success");
        let measured = [(7, true), (7, false), (0, false), (0, true)];
        assert_eq!(measured.map(|(numbers, complete)| ExitStatus::measured(numbers, complete).0), [0, 1, 4, 0]);
        assert_eq!([ExitStatus::USAGE, ExitStatus::INTERRUPTED].map(|status| status.0), [64, 130]);
    }

    #[test]
    fn errors_of_the_command_line_are_told_from_the_rest() {
        let status = |error: anyhow::Error| ExitStatus::from(&error);
        assert_eq!(status(UsageError("no".into()).into()), ExitStatus::USAGE);
        assert_eq!(status(anyhow::Error::from(UsageError("no".into())).context("while reading")), ExitStatus::USAGE);
        assert_eq!(status(PlanError::Request("no".into()).into()), ExitStatus::USAGE);
        assert_eq!(status(PlanError::Unavailable("no".into()).into()), ExitStatus::COULD_NOT_MEASURE);
        assert_eq!(status(anyhow::anyhow!("no")), ExitStatus::COULD_NOT_MEASURE);
    }
}
