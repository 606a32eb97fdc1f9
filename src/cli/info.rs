//! The arguments of `memgauge info`.

use std::path::PathBuf;

use clap::Args;

use super::output::{ReportOptions, text_only};

#[derive(Debug, Args)]
#[command(mut_args(text_only))]
pub(crate) struct InfoArgs {
    /// Show a recorded machine: a directory that holds its sys/ and proc/
    #[arg(long, value_name = "DIR")]
    pub(crate) machine: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}
