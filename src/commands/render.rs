//! `memgauge render`: shows saved results.

use memgauge_model::experiment_table::PanelName;
use memgauge_render::Named;

use crate::cli::render::RenderArgs;
use crate::console::Stream;
use crate::exit::ExitStatus;
use crate::input::result_files;
use crate::sinks::{Sinks, read_report, unique_names};

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
