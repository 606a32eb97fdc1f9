//! `memgauge report`: one page of saved results.

use memgauge_render::{Format, Named, PageOptions};

use crate::cli::output::Destination;
use crate::cli::report::ReportArgs;
use crate::console::Stream;
use crate::exit::{ExitStatus, UsageError};
use crate::input::result_files;
use crate::sinks::{Sinks, read_report, unique_names};

/// Reads all results before it writes anything.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<ExitStatus> {
    match &args.output {
        None if Stream::Output.is_terminal() => {
            return Err(UsageError("the page would go to the terminal; name a file: -o report.html".into()).into());
        }
        Some(path) if Format::for_path(path, &[Format::HTML]).is_none() => {
            return Err(UsageError::file(path, "a report is a page of HTML; use .html, or 'memgauge render' for other formats").into());
        }
        _ => {}
    }
    let to = Destination { format: Format::HTML, output: args.output.iter().cloned().collect(), quiet: true };
    let page = PageOptions { title: args.title.clone(), data: !args.no_data };
    let sinks = Sinks::open::<[Named<'_>]>(&to, Stream::Output)?.pages(&page);
    let files = result_files(&args.files)?;
    let reports = files.iter().map(|file| read_report(file)).collect::<Result<Vec<_>, _>>()?;
    let names = unique_names(&files);
    let named: Vec<Named<'_>> = names.iter().zip(&reports).map(|(name, report)| Named { name, report }).collect();
    sinks.write(named.as_slice())?;
    Ok(ExitStatus::SUCCESS)
}
