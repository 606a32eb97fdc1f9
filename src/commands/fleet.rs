//! `memgauge fleet`: the results of many hosts.

pub(crate) mod baseline;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod ingest;
pub(crate) mod outliers;
mod rows;

pub(crate) use baseline::read_baseline;

use crate::cli::fleet::FleetCommand;
use crate::exit::ExitStatus;

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
