//! `memgauge render`: shows saved results.

use std::path::PathBuf;

use clap::Args;
use memgauge_core::experiment_table::PanelName;
use memgauge_render::Named;

use crate::cli::output::Output;
use crate::console::Stream;
use crate::exit::ExitStatus;
use crate::input::result_files;
use crate::sinks::{Sinks, read_report, unique_names};

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
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// Reads all files before it writes anything.
pub(crate) fn render(args: RenderArgs) -> anyhow::Result<ExitStatus> {
    // Which panels there are, the results say.
    args.output.check_figures(&PanelName::all(), "")?;
    let files = result_files(&args.files)?;
    let reports = files.iter().map(|file| read_report(file)).collect::<Result<Vec<_>, _>>()?;
    let names = unique_names(&files);
    let named: Vec<Named<'_>> = names.iter().zip(&reports).map(|(name, report)| Named { name, report }).collect();
    Sinks::of_results(&args.output, Stream::Output)?.write(named.as_slice())?;
    Ok(ExitStatus::SUCCESS)
}
