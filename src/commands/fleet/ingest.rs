//! `memgauge fleet ingest`: results into a fleet's folder.

use anyhow::Context;
use memgauge_fleet::{IngestError, IngestEvent, IngestOptions, IngestOutcome, ingest as ingest_results};
use memgauge_render::{Appearance, Document};

use crate::cli::fleet::IngestArgs;
use crate::console::{Program, Stream};
use crate::exit::{ExitStatus, UsageError};
use crate::signals;

/// Reads the results and says what became of them.
pub(crate) fn ingest(args: &IngestArgs) -> anyhow::Result<ExitStatus> {
    let stop = signals::watch().context("cannot install signal handlers")?;
    let options = IngestOptions { copy: args.copy, batch: args.batch as usize };
    let mut told = false;
    let tell = |event| match event {
        IngestEvent::Waiting if !told => {
            told = true;
            Program::MEMGAUGE.message(format_args!("another ingest is writing to {}; waiting for it", args.fleet.display()));
        }
        IngestEvent::Committed { done, files } if Stream::Error.is_terminal() && !args.quiet => {
            Program::MEMGAUGE.message(format_args!("{done} of {files} files"));
        }
        IngestEvent::Waiting | IngestEvent::Committed { .. } => {}
    };
    let outcome = ingest_results(&args.fleet, &args.results, &options, stop.flag(), tell).map_err(|error| match error {
        IngestError::Store(error) if error.is_usage() => UsageError(error.to_string()).into(),
        error @ (IngestError::NoSuchPath { .. } | IngestError::NothingFound(_)) => UsageError(error.to_string()).into(),
        error @ IngestError::Store(_) => anyhow::Error::from(error),
    })?;
    let bytes = outcome.render(args.format, &Appearance { one_line: args.quiet, ..Appearance::default() })?;
    Stream::Output.print(&bytes)?;
    Ok(status(&outcome))
}

fn status(outcome: &IngestOutcome) -> ExitStatus {
    match outcome {
        outcome if outcome.interrupted => ExitStatus::INTERRUPTED,
        outcome if outcome.is_useless() => ExitStatus::COULD_NOT_MEASURE,
        outcome if outcome.unusable() > 0 => ExitStatus::MEASURED_IN_PART,
        _ => ExitStatus::SUCCESS,
    }
}
