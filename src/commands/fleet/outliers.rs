//! `memgauge fleet outliers`: which hosts are slower than their siblings.

use memgauge_analysis::fleet::FleetOutliers;
use memgauge_render::Outliers;

use super::rows::read_rows;
use crate::cli::fleet::OutliersArgs;
use crate::console::Stream;
use crate::exit::ExitStatus;
use crate::sinks::Sinks;

/// Finds them and says so.
pub(crate) fn outliers(args: &OutliersArgs) -> anyhow::Result<ExitStatus> {
    args.figure.check_one(&args.output.to.output)?;
    let sinks = Sinks::open::<Outliers<'_>>(&args.output.to, Stream::Output)?.verbose(args.output.verbose).figures(&args.figure.options());
    let rows = read_rows(&args.fleet)?;
    let found = memgauge_fleet::outliers(&rows);
    sinks.write(&Outliers { found: &found, numbers: &|| memgauge_fleet::compared(&rows, &found) })?;
    Ok(status(&found))
}

fn status(found: &FleetOutliers) -> ExitStatus {
    match (found.slow.is_empty(), found.unknown.is_empty() && found.populations.is_empty()) {
        (false, _) => ExitStatus::WORSE,
        (true, false) => ExitStatus::INCONCLUSIVE,
        (true, true) => ExitStatus::SUCCESS,
    }
}
