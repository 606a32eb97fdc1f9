//! `memgauge fleet outliers`: which hosts are slower than their siblings.

use memgauge_core::fleet::FleetOutliers;

use super::rows::read_rows;
use crate::cli::fleet::OutliersArgs;
use crate::exit::ExitStatus;
use crate::fleet_sinks::{FleetSinks, Outliers};

/// Finds them and says so.
pub(crate) fn outliers(args: &OutliersArgs) -> anyhow::Result<ExitStatus> {
    args.figure.check_one(&args.output.output)?;
    let sinks = FleetSinks::open_with_figures(&args.output)?;
    let rows = read_rows(&args.fleet)?;
    let found = memgauge_fleet::outliers(&rows);
    sinks.write(&Outliers { found: &found, rows: &rows, figure: args.figure.options() })?;
    Ok(status(&found))
}

fn status(found: &FleetOutliers) -> ExitStatus {
    match (found.slow.is_empty(), found.unknown.is_empty() && found.populations.is_empty()) {
        (false, _) => ExitStatus::WORSE,
        (true, false) => ExitStatus::INCONCLUSIVE,
        (true, true) => ExitStatus::SUCCESS,
    }
}
