//! `memgauge fleet baseline`: what hosts of each kind measure.

use std::path::Path;

use anyhow::bail;
use memgauge_analysis::fleet::{FLEET_VERSION, FleetBaseline};

use super::rows::read_rows;
use crate::cli::fleet::BaselineArgs;
use crate::console::Stream;
use crate::exit::{ExitStatus, UsageError};
use crate::input;
use crate::sinks::Sinks;

/// Makes the baseline and shows it.
pub(crate) fn baseline(args: &BaselineArgs) -> anyhow::Result<ExitStatus> {
    let sinks = Sinks::open::<FleetBaseline>(&args.output.to, Stream::Output)?.verbose(args.output.verbose);
    let baseline = memgauge_fleet::baseline(&read_rows(&args.fleet)?);
    if baseline.groups.is_empty() {
        let hosts = baseline.hosts;
        bail!(
            "{}: there is no baseline: fewer than eight of the {hosts} hosts are alike and have a number of good quality",
            args.fleet.display()
        );
    }
    sinks.write(&baseline)?;
    Ok(ExitStatus::SUCCESS)
}

/// Reads a baseline that was saved as JSON, or makes one of a fleet's folder.
///
/// # Errors
/// When it cannot be read, or is not a baseline.
pub(crate) fn read_baseline(path: &Path) -> anyhow::Result<FleetBaseline> {
    if path.is_dir() {
        return Ok(memgauge_fleet::baseline(&read_rows(path)?));
    }
    let baseline: FleetBaseline = serde_json::from_slice(&input::read_result(path)?)
        .map_err(|why| UsageError::file(path, format_args!("is neither a fleet's folder nor a baseline: {why}")))?;
    if baseline.fleet_version != FLEET_VERSION {
        let found = baseline.fleet_version;
        let advice = "make it again with memgauge fleet baseline FLEET -o FILE.json";
        bail!(UsageError::file(path, format_args!("is a baseline of version {found}, and this memgauge reads {FLEET_VERSION}; {advice}")));
    }
    if let Some(value) = baseline.impossible() {
        bail!(UsageError::file(
            path,
            format_args!("is damaged: one of its numbers is {value:e}, which neither a latency nor a bandwidth is")
        ));
    }
    Ok(baseline)
}
