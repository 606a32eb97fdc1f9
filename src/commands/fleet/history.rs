//! `memgauge fleet history`: when the numbers of a host changed.

use memgauge_analysis::fleet::FleetHistory;
use memgauge_fleet::HostError;

use super::rows::read_rows;
use crate::cli::fleet::HistoryArgs;
use crate::console::Stream;
use crate::exit::{ExitStatus, UsageError};
use crate::sinks::Sinks;

/// Finds changes and shows them.
pub(crate) fn history(args: &HistoryArgs) -> anyhow::Result<ExitStatus> {
    let sinks = Sinks::open::<FleetHistory>(&args.output.to, Stream::Output)?.verbose(args.output.verbose);
    let history = memgauge_fleet::history(&read_rows(&args.fleet)?, &args.host, args.as_one).map_err(|error| {
        let advice = match error {
            HostError::Several { .. } => "; if they are one that was installed again or renamed, add --as-one",
            HostError::Unknown { .. } => "",
        };
        UsageError(format!("{}: {error}{advice}", args.fleet.display()))
    })?;
    sinks.write(&history)?;
    Ok(ExitStatus::SUCCESS)
}
