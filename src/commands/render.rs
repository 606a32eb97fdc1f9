//! `memgauge render`: shows saved results.

use std::path::PathBuf;

use clap::Args;
use memgauge_render::Named;

use crate::cli::output::Output;
use crate::console::Stream;
use crate::exit::ExitStatus;
use crate::sinks::{Sinks, read_report, unique_names};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  memgauge render before.json                      show a saved result
  memgauge render before.json -q -o before.pdf     draw it
  memgauge render before.json after.json -q -o both.svg")]
pub(crate) struct RenderArgs {
    /// Results that memgauge wrote as JSON; - is standard input. Figures show several results together, named after their files; text and
    /// JSON show them one after another
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// Reads all files before it writes anything.
pub(crate) fn render(args: RenderArgs) -> anyhow::Result<ExitStatus> {
    let reports = args.files.iter().map(|f| read_report(f)).collect::<Result<Vec<_>, _>>()?;
    let names = unique_names(&args.files);
    let named: Vec<Named<'_>> = names.iter().zip(&reports).map(|(name, report)| Named { name, report }).collect();
    Sinks::open(&args.output, Stream::Output)?.write_all(&named)?;
    Ok(ExitStatus::SUCCESS)
}
