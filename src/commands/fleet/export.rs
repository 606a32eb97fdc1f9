//! `memgauge fleet export`: runs in the formats of other tools.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use memgauge_fleet::exports::{
    ExportError, ExportRun, chosen, hwloc, latest_runs, ocptv, openmetrics, superbench, superbench_baseline, with_rows,
};
use memgauge_fleet::{Store, StoreError, StoredRun};
use memgauge_model::result::Report;

use crate::cli::fleet::{ExportArgs, ExportFormat};
use crate::console::{Stream, is_broken_pipe};
use crate::exit::{ExitStatus, UsageError};
use crate::output_file::OutputFile;
use crate::sinks::read_report;

/// Where runs come from.
enum Source {
    Fleet(Store),
    Results(Vec<Report>),
}

/// Writes the runs.
pub(crate) fn export(args: &ExportArgs) -> anyhow::Result<ExitStatus> {
    let file = args.output.as_deref().map(OutputFile::open).transpose()?;
    let source = open(args)?;
    let bytes = render(args, source).map_err(|error| match error.downcast::<ExportError>() {
        Ok(error @ (ExportError::SeveralKinds(_) | ExportError::SeveralHosts(_) | ExportError::Host(_))) => {
            UsageError(error.to_string()).into()
        }
        Ok(error) => error.into(),
        Err(error) => error,
    })?;
    match file {
        Some(file) => file.write(&bytes).with_context(|| format!("cannot write {}", file.path().display()))?,
        None => match Stream::Output.print(&bytes) {
            Err(error) if !is_broken_pipe(&error) => return Err(error),
            _ => {}
        },
    }
    Ok(ExitStatus::SUCCESS)
}

fn open(args: &ExportArgs) -> anyhow::Result<Source> {
    match &args.from[..] {
        [folder] if folder.is_dir() => match Store::open(folder) {
            Ok(store) => Ok(Source::Fleet(store)),
            Err(error) => Err(usage(error)),
        },
        files => match files.iter().find(|file| file.is_dir()) {
            Some(folder) => bail!(UsageError::file(folder, "is a folder; name one fleet, or results only")),
            None => Ok(Source::Results(files.iter().map(|f| read_report(f)).collect::<Result<_, _>>()?)),
        },
    }
}

fn usage(error: StoreError) -> anyhow::Error {
    if error.is_usage() { UsageError(error.to_string()).into() } else { error.into() }
}

fn render(args: &ExportArgs, source: Source) -> anyhow::Result<Vec<u8>> {
    let word = args.fingerprint.as_deref();
    let runs = match source {
        Source::Fleet(store) => {
            let runs = latest_runs(&store, &args.host, word)?;
            if runs.is_empty() {
                bail!(nothing_chosen(args));
            }
            if args.format == ExportFormat::Hwloc {
                return Ok(hwloc(&read_report(&result_of(&store, one(&runs)?)?)?)?);
            }
            with_rows(&store, runs)?
        }
        Source::Results(reports) => {
            let all = reports.into_iter().map(|report| (ExportRun::from_report(&report), report)).collect();
            let chosen = chosen(all, |(run, _): &(ExportRun, Report)| &run.run, &args.host, word)?;
            if chosen.is_empty() {
                bail!(nothing_chosen(args));
            }
            if args.format == ExportFormat::Hwloc {
                return Ok(hwloc(&one(&chosen)?.1)?);
            }
            chosen.into_iter().map(|(run, _)| run).collect()
        }
    };
    Ok(match args.format {
        ExportFormat::Ocptv => ocptv(&runs)?,
        ExportFormat::Superbench => superbench(&runs)?,
        ExportFormat::SuperbenchBaseline => superbench_baseline(&runs)?,
        ExportFormat::Openmetrics => openmetrics(&runs)?,
        ExportFormat::Hwloc => bail!("hwloc is written from a result"),
    })
}

fn nothing_chosen(args: &ExportArgs) -> UsageError {
    let chosen = args.host.iter().chain(&args.fingerprint).map(|word| format!("'{word}'")).collect::<Vec<_>>();
    if chosen.is_empty() {
        return UsageError("the fleet is empty; memgauge fleet ingest adds runs to it".into());
    }
    UsageError(format!("no host is chosen by {}", chosen.join(", ")))
}

/// The only one of several.
fn one<T>(all: &[T]) -> Result<&T, ExportError> {
    match all {
        [one] => Ok(one),
        several => Err(ExportError::SeveralHosts(several.len())),
    }
}

/// The result of a run: the fleet's copy, or the file that was ingested.
fn result_of(store: &Store, run: &StoredRun) -> anyhow::Result<PathBuf> {
    let paths = run.copy.iter().map(|copy| store.folder().join(copy)).chain([PathBuf::from(&run.file)]);
    match paths.into_iter().find(|path| path.exists()) {
        Some(path) => Ok(path),
        None => {
            let file = Path::new(&run.file).display();
            bail!("the topology is in the result only, and {file} is gone; name the result itself, or ingest with --copy")
        }
    }
}
