//! `memgauge report`: one page of saved results.

use memgauge_render::{Html, Named};

use crate::cli::report::ReportArgs;
use crate::exit::ExitStatus;
use crate::input::result_files;
use crate::sinks::{PageSink, read_report, unique_names};

/// Reads all results before it writes anything.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<ExitStatus> {
    let sink = PageSink::open(args.output.as_deref())?;
    let files = result_files(&args.files)?;
    let reports = files.iter().map(|file| read_report(file)).collect::<Result<Vec<_>, _>>()?;
    let names = unique_names(&files);
    let named: Vec<Named<'_>> = names.iter().zip(&reports).map(|(name, report)| Named { name, report }).collect();
    sink.write(&Html { title: args.title.clone(), data: !args.no_data }, &named)?;
    Ok(ExitStatus::SUCCESS)
}
