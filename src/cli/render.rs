//! The arguments of `memgauge render`.

use std::path::PathBuf;

use clap::Args;

use super::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  memgauge render before.json                      show a saved result
  memgauge render before.json -q -o before.pdf     draw it
  memgauge render before.json -q -o before.csv     its values as a table
  memgauge render before.json after.json -q -o both.svg
  memgauge render before.json -q --panel bandwidth --figure-width 85mm -o b.pdf")]
pub(crate) struct RenderArgs {
    /// Results that memgauge wrote as JSON, or folders of them; - is standard input. Figures, pages, CSV and OpenMetrics show several results
    /// together; text and JSON show them one after another
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}
