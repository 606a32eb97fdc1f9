//! `memgauge fleet`: the results of many hosts.

pub(crate) mod baseline;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod ingest;
pub(crate) mod outliers;

use std::path::Path;

use anyhow::anyhow;
use memgauge_fleet::Row;

pub(crate) use baseline::read_baseline;

use crate::cli::fleet::FleetCommand;
use crate::exit::{ExitStatus, UsageError};

/// Does what a command of `memgauge fleet` asks for.
pub(crate) fn fleet(command: FleetCommand) -> anyhow::Result<ExitStatus> {
    match command {
        FleetCommand::Ingest(args) => ingest::ingest(&args),
        FleetCommand::Outliers(args) => outliers::outliers(&args),
        FleetCommand::Baseline(args) => baseline::baseline(&args),
        FleetCommand::History(args) => history::history(&args),
        FleetCommand::Export(args) => export::export(&args),
    }
}

/// Every value of a fleet.
///
/// # Errors
/// When the folder is no fleet, cannot be read, or has no value.
fn read_rows(folder: &Path) -> anyhow::Result<Vec<Row>> {
    let rows = memgauge_fleet::read(folder).map_err(|error| match error.is_usage() {
        true => anyhow::Error::from(UsageError(error.to_string())),
        false => error.into(),
    })?;
    if rows.is_empty() {
        return Err(anyhow!("{} holds no run yet; add results with memgauge fleet ingest {0} RESULTS", folder.display()));
    }
    Ok(rows)
}
