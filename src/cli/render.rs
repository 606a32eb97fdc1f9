//! `memgauge render`: its command line.

use std::path::PathBuf;

use clap::Args;

use super::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  memgauge render before.json                      show a saved result
  memgauge render before.json -q -o before.pdf     draw it
  memgauge render before.json after.json -q -o both.svg")]
pub(crate) struct RenderArgs {
    /// Results that memgauge wrote as JSON; - is standard input. Figures show several results together, named after their files; text and
    /// JSON show them one after another
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}
