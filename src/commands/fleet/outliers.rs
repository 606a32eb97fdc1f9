//! `memgauge fleet outliers`: which hosts are slower than their siblings.

use memgauge_core::fleet::FleetOutliers;

use super::rows::read_rows;
use crate::cli::fleet::OutliersArgs;
use crate::exit::ExitStatus;
use crate::fleet_sinks::FleetSinks;

/// Finds them and says so.
pub(crate) fn outliers(args: &OutliersArgs) -> anyhow::Result<ExitStatus> {
    let sinks = FleetSinks::open(&args.output)?;
    let found = memgauge_fleet::outliers(&read_rows(&args.fleet)?);
    sinks.write(&found)?;
    Ok(status(&found))
}

fn status(found: &FleetOutliers) -> ExitStatus {
    match (found.slow.is_empty(), found.unknown.is_empty() && found.populations.is_empty()) {
        (false, _) => ExitStatus::WORSE,
        (true, false) => ExitStatus::INCONCLUSIVE,
        (true, true) => ExitStatus::SUCCESS,
    }
}
