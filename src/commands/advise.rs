//! `memgauge advise`: what saved results advise.

use memgauge_analysis::advice::{Advice, advise as advise_on};
use memgauge_analysis::comparison::unlike;
use memgauge_model::result::Report;

use crate::cli::advise::AdviseArgs;
use crate::console::Stream;
use crate::exit::{ExitStatus, UsageError};
use crate::input::result_files;
use crate::sinks::{Sinks, read_report};

/// Reads all results before it writes anything.
pub(crate) fn advise(args: &AdviseArgs) -> anyhow::Result<ExitStatus> {
    let seen = args.seen_tokens_per_s()?;
    let sinks = Sinks::open::<Advice>(&args.to, Stream::Output)?;
    let files = result_files(&args.results)?;
    let reports = files.iter().map(|file| read_report(file)).collect::<Result<Vec<Report>, _>>()?;
    for (path, report) in files.iter().zip(&reports).skip(1) {
        if let Some(difference) = unlike(&reports[..1], std::slice::from_ref(report)) {
            let value = |values: &[String]| if values.is_empty() { "none".to_owned() } else { values.join(" | ") };
            let (first, this) = (value(&difference.before), value(&difference.after));
            let why =
                format!("is of another kind of machine ({this}) than {} ({first}); advise on one machine at a time", files[0].display());
            return Err(UsageError::file(path, why).into());
        }
    }
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let named: Vec<(&str, &Report)> = names.iter().map(String::as_str).zip(&reports).collect();
    let advice = advise_on(&named, &args.models(), seen);
    sinks.write(&advice)?;
    Ok(if advice.recommendations.is_empty() { ExitStatus::COULD_NOT_MEASURE } else { ExitStatus::SUCCESS })
}
