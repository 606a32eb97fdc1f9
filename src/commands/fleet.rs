//! `memgauge fleet`: the results of many hosts.

pub(crate) mod export;
pub(crate) mod ingest;

use crate::cli::fleet::FleetCommand;
use crate::exit::ExitStatus;

/// Does what a command of `memgauge fleet` asks for.
pub(crate) fn fleet(command: FleetCommand) -> anyhow::Result<ExitStatus> {
    match command {
        FleetCommand::Ingest(args) => ingest::ingest(&args),
        FleetCommand::Export(args) => export::export(&args),
    }
}
