//! `memgauge info`: its command line.

use std::path::PathBuf;

use clap::Args;

use super::output::ReportOptions;

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// Show a recorded machine: a directory that holds its sys/ and proc/
    #[arg(long, value_name = "DIR")]
    pub(crate) machine: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}
