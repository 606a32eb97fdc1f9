//! Where results go, and what they say about the host.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::exit::UsageError;
use crate::host::{HostIdentity, Label};

/// Which format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    Text,
    Json,
}

/// Where results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Format of standard output
    #[arg(long, default_value = "text")]
    pub(crate) format: FormatArg,
    /// Also write to FILE; its ending chooses the format: .txt, .json, or .svg, .png, .pdf for figures; may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// Show no progress bar, and print nothing to standard output
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// What every command takes that makes a new result.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ReportOptions {
    #[command(flatten)]
    pub(crate) output: Output,
    /// Add a label of your own to the result, such as rack=12; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<Label>,
    /// Leave the hostname, the hashed machine ID and the names of other processes out of the result
    #[arg(long)]
    no_host_identity: bool,
}

impl ReportOptions {
    /// What the result says about the host.
    ///
    /// # Errors
    /// When a label occurs twice, or there are too many.
    pub(crate) fn identity(&self) -> Result<HostIdentity, UsageError> {
        HostIdentity::new(self.no_host_identity, self.labels.clone())
    }
}
