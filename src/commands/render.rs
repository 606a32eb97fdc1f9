//! `memgauge render`: shows saved results.

use memgauge_render::Named;

use crate::cli::render::RenderArgs;
use crate::console::Stream;
use crate::exit::ExitStatus;
use crate::sinks::{Sinks, read_report, unique_names};

/// Reads all files before it writes anything.
pub(crate) fn render(args: RenderArgs) -> anyhow::Result<ExitStatus> {
    let reports = args.files.iter().map(|f| read_report(f)).collect::<Result<Vec<_>, _>>()?;
    let names = unique_names(&args.files);
    let named: Vec<Named<'_>> = names.iter().zip(&reports).map(|(name, report)| Named { name, report }).collect();
    Sinks::open(&args.output, Stream::Output)?.write_all(&named)?;
    Ok(ExitStatus::Success)
}
