//! Exit statuses of both programs, and the errors that the command line is to blame for.

use std::path::Path;
use std::process::ExitCode;

use memgauge_core::planner::PlanError;
use memgauge_core::result::HealthStatus;
use memgauge_engine::LoopError;
use memgauge_os::directory::DirectoryError;

/// How a run ended, as `--help` and the README document it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// 0: everything was done; a health check found nothing wrong.
    Success,
    /// 1: part of what was planned could not be measured.
    MeasuredInPart,
    /// 1: a health check ended with a warning.
    Warning,
    /// 2: a health check failed.
    Failure,
    /// 3: memory did not keep what was written to it, or reports errors.
    Incident,
    /// 4: nothing could be measured, or a result could not be written.
    CouldNotMeasure,
    /// 64: the command line, or a file that it names, is wrong.
    Usage,
    /// 130: a signal ended the run.
    Interrupted,
    /// The status of a program that was counted: its own, 126 or 127 when it did not start, 128 and the signal's number when one ended it.
    Program(u8),
}

impl ExitStatus {
    /// The number that the shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::MeasuredInPart | Self::Warning => 1,
            Self::Failure => 2,
            Self::Incident => 3,
            Self::CouldNotMeasure => 4,
            Self::Usage => 64,
            Self::Interrupted => 130,
            Self::Program(code) => code,
        }
    }

    /// The status of a run that was not interrupted: whether it measured anything, and whether it measured everything.
    pub(crate) const fn measured(anything: bool, everything: bool) -> Self {
        match (everything, anything) {
            (true, _) => Self::Success,
            (false, true) => Self::MeasuredInPart,
            (false, false) => Self::CouldNotMeasure,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}

impl From<HealthStatus> for ExitStatus {
    fn from(status: HealthStatus) -> Self {
        match status {
            HealthStatus::Ok | HealthStatus::Unknown => Self::Success,
            HealthStatus::Warning => Self::Warning,
            HealthStatus::Failure => Self::Failure,
            HealthStatus::Incident => Self::Incident,
            HealthStatus::CouldNotMeasure => Self::CouldNotMeasure,
        }
    }
}

impl From<&anyhow::Error> for ExitStatus {
    fn from(error: &anyhow::Error) -> Self {
        if let Some(error) = error.downcast_ref::<clap::Error>() {
            // clap reports a request for help or the version as an error, too.
            return if error.use_stderr() { Self::Usage } else { Self::Success };
        }
        let usage = error.is::<UsageError>()
            || matches!(error.downcast_ref(), Some(PlanError::Request(_)))
            || matches!(error.downcast_ref(), Some(DirectoryError::Request { .. }))
            || matches!(error.downcast_ref(), Some(LoopError::Request(_)));
        if usage { Self::Usage } else { Self::CouldNotMeasure }
    }
}

/// The command line, or a file that it names, asks for something that is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

impl UsageError {
    /// A file that cannot be used, and why.
    pub(crate) fn file(path: &Path, why: impl std::fmt::Display) -> Self {
        Self(format!("{}: {why}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_documented_ones() {
        let health =
            [HealthStatus::Ok, HealthStatus::Warning, HealthStatus::Failure, HealthStatus::Incident, HealthStatus::CouldNotMeasure];
        assert_eq!(health.map(|status| ExitStatus::from(status).code()), [0, 1, 2, 3, 4]);
        let measured = [(true, true), (true, false), (false, false), (false, true)];
        assert_eq!(measured.map(|(anything, everything)| ExitStatus::measured(anything, everything).code()), [0, 1, 4, 0]);
        assert_eq!([ExitStatus::Usage, ExitStatus::Interrupted, ExitStatus::Program(127)].map(ExitStatus::code), [64, 130, 127]);
    }

    #[test]
    fn errors_of_the_command_line_are_told_from_the_rest() {
        let status = |error: anyhow::Error| ExitStatus::from(&error);
        assert_eq!(status(UsageError("no".into()).into()), ExitStatus::Usage);
        assert_eq!(status(anyhow::Error::from(UsageError("no".into())).context("while reading")), ExitStatus::Usage);
        assert_eq!(status(PlanError::Request("no".into()).into()), ExitStatus::Usage);
        assert_eq!(status(PlanError::Unavailable("no".into()).into()), ExitStatus::CouldNotMeasure);
        assert_eq!(status(anyhow::anyhow!("no")), ExitStatus::CouldNotMeasure);
    }
}
