//! The values of a fleet, or why there are none.

use std::path::Path;

use anyhow::anyhow;
use memgauge_fleet::Row;

use crate::exit::UsageError;

/// Every value of a fleet.
///
/// # Errors
/// When the folder is no fleet, cannot be read, or has no value.
pub(super) fn read_rows(folder: &Path) -> anyhow::Result<Vec<Row>> {
    if folder.is_file() {
        return Err(UsageError::file(folder, "is a file and not a fleet's folder").into());
    }
    let rows = memgauge_fleet::read(folder).map_err(|error| match error.is_usage() {
        true => anyhow::Error::from(UsageError(error.to_string())),
        false => error.into(),
    })?;
    if rows.is_empty() {
        return Err(anyhow!("{} holds no run yet; add results with memgauge fleet ingest {0} RESULTS", folder.display()));
    }
    Ok(rows)
}
