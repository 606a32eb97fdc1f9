//! `memgauge fleet history`: when the numbers of a host changed.

use super::rows::read_rows;
use crate::cli::fleet::HistoryArgs;
use crate::exit::{ExitStatus, UsageError};
use crate::fleet_sinks::FleetSinks;

/// Finds changes and shows them.
pub(crate) fn history(args: &HistoryArgs) -> anyhow::Result<ExitStatus> {
    let sinks = FleetSinks::open(&args.output)?;
    let history = memgauge_fleet::history(&read_rows(&args.fleet)?, &args.host).map_err(|unknown| {
        let similar = if unknown.similar.is_empty() { String::new() } else { format!("; it has {}", unknown.similar.join(", ")) };
        UsageError(format!("{} has no host '{}'{similar}", args.fleet.display(), args.host))
    })?;
    sinks.write(&history)?;
    Ok(ExitStatus::SUCCESS)
}
