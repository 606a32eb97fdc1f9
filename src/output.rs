//! Standard output, standard error and files: the only place of the program that writes.

use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use memgauge_core::note::{Note, Severity};
use memgauge_core::plan::Plan;
use memgauge_core::result::{Report, SCHEMA_VERSION};
use memgauge_core::scan;
use memgauge_core::topology::Machine;
use memgauge_render::{Format, Json, Named, Text};

use crate::cli::{FormatArg, Output};

/// A file named on the command line that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}", path = .path.display())]
pub(crate) struct BadFile {
    path: PathBuf,
    why: String,
}

impl BadFile {
    pub(crate) fn new(path: &Path, why: String) -> Self {
        Self { path: path.to_path_buf(), why }
    }
}

/// Where a report goes, checked before anything is measured.
pub(crate) struct Sinks {
    standard: Option<Box<dyn Format>>,
    files: Vec<(PathBuf, Box<dyn Format>)>,
}

impl Sinks {
    /// Decides the formats and checks that every file can be written, so that a minute's measuring is not lost to a typing error.
    pub(crate) fn open(output: &Output) -> Result<Self, BadFile> {
        let standard = (!output.quiet).then(|| standard_format(output.format));
        let mut files = Vec::new();
        for path in &output.output {
            let bad = |why: String| BadFile { path: path.clone(), why };
            let format = memgauge_render::for_path(&path.to_string_lossy())
                .ok_or_else(|| bad("no format for this ending; use .txt, .json, .svg, .png or .pdf".into()))?;
            if path.is_dir() {
                return Err(bad("is a folder; name a file in it".into()));
            }
            let beside = beside(path);
            fs::File::create(&beside).map_err(|e| bad(format!("cannot be written: {e}")))?;
            // It was created a moment ago; if it cannot be removed, the final rename replaces it.
            let _ = fs::remove_file(&beside);
            files.push((path.clone(), format));
        }
        Ok(Self { standard, files })
    }

    /// Writes the report everywhere: files first, whole or not at all, so that a closed pipe does not lose them.
    pub(crate) fn write(&self, report: &Report) -> anyhow::Result<()> {
        self.write_all(&[Named { name: "", report }])
    }

    /// The same of several reports, each file with all of them.
    pub(crate) fn write_all(&self, results: &[Named<'_>]) -> anyhow::Result<()> {
        self.write_files(results)?;
        match &self.standard {
            Some(format) => print(&format.render_all(results)?),
            None => Ok(()),
        }
    }

    /// The same with standard error instead of standard output, which is the counted program's.
    pub(crate) fn write_on_stderr(&self, report: &Report) -> anyhow::Result<()> {
        let results = [Named { name: "", report }];
        self.write_files(&results)?;
        if let Some(format) = &self.standard {
            io::stderr().lock().write_all(&format.render_all(&results)?)?;
        }
        Ok(())
    }

    fn write_files(&self, results: &[Named<'_>]) -> anyhow::Result<()> {
        for (path, format) in &self.files {
            let beside = beside(path);
            let write = || -> anyhow::Result<()> {
                let bytes = format.render_all(results)?;
                fs::write(&beside, bytes)?;
                Ok(fs::rename(&beside, path)?)
            };
            write().with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

/// The temporary name that a file is written under before it is renamed.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

fn standard_format(format: FormatArg) -> Box<dyn Format> {
    match format {
        FormatArg::Text => Box::new(Text { width: terminal_width(), colour: colours() }),
        FormatArg::Json => Box::new(Json { pretty: true }),
    }
}

fn colours() -> bool {
    io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// Columns of the terminal; 100 where there is none.
fn terminal_width() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(100, |(width, _)| usize::from(width.0))
}

/// Prints what would be done.
pub(crate) fn show_plan(plan: &Plan, machine: &Machine, output: &Output) -> anyhow::Result<()> {
    match output.format {
        FormatArg::Text => print(memgauge_render::plan_text(plan, machine, terminal_width()).as_bytes()),
        FormatArg::Json => {
            let mut bytes = serde_json::to_vec_pretty(plan)?;
            bytes.push(b'\n');
            print(&bytes)
        }
    }
}

/// Writes to standard output, all of it at once.
pub(crate) fn print(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    Ok(stdout.flush()?)
}

/// Reads a report that was saved as JSON.
pub(crate) fn read_report(path: &Path) -> anyhow::Result<Report> {
    let bad = |why: String| BadFile { path: path.to_path_buf(), why };
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes).map_err(|e| bad(e.to_string()))?;
    } else {
        bytes = fs::read(path).map_err(|e| bad(e.to_string()))?;
    }
    let version = serde_json::from_slice::<serde_json::Value>(&bytes)
        .map_err(|e| bad(format!("is not JSON ({e}); render takes what memgauge wrote with --format json or -o FILE.json")))?
        .get("schema_version")
        .and_then(serde_json::Value::as_u64);
    match version {
        Some(version) if version == u64::from(SCHEMA_VERSION) => {}
        Some(version) => return Err(bad(format!("has schema version {version}; this program reads {SCHEMA_VERSION}")).into()),
        None => return Err(bad("is JSON, but no result of memgauge (no schema_version)".into()).into()),
    }
    Ok(serde_json::from_slice(&bytes).map_err(|e| bad(format!("is damaged: {e}")))?)
}

/// Names that tell results apart: their files' names without ending, or the whole paths where those are the same.
pub(crate) fn names(paths: &[PathBuf]) -> Vec<String> {
    let stem = |p: &Path| p.file_stem().unwrap_or(p.as_os_str()).to_string_lossy().into_owned();
    let stems: std::collections::BTreeSet<String> = paths.iter().map(|p| stem(p)).collect();
    let short = stems.len() == paths.len();
    paths.iter().map(|p| if short { stem(p) } else { p.to_string_lossy().into_owned() }).collect()
}

/// Whether standard output was closed by its reader, which is no error of ours.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}

/// Tells what went wrong.
pub(crate) fn complain(error: &anyhow::Error) {
    // When stderr is gone as well, there is nobody left to tell.
    let _ = writeln!(io::stderr().lock(), "memgauge: {error:#}");
}

/// Tells what is about to happen.
pub(crate) fn tell(what: &str) {
    // As in `complain`.
    let _ = writeln!(io::stderr().lock(), "memgauge: {what}");
}

/// Tells what could not be measured, for those who look at standard error only.
pub(crate) fn complain_of_notes(notes: &[Note]) {
    let mut stderr = io::stderr().lock();
    for note in notes.iter().filter(|n| n.severity == Severity::Error && n.code != scan::CORRUPTED) {
        let advice = note.advice.as_deref().map(|a| format!("; {a}")).unwrap_or_default();
        // As in `complain`.
        let _ = writeln!(stderr, "memgauge: not measured: {}{advice}", note.message);
    }
}

/// Tells that memory does not keep what is written to it, for those who look at standard error only.
pub(crate) fn alarm(notes: &[Note]) {
    let mut stderr = io::stderr().lock();
    for note in notes.iter().filter(|n| n.code == scan::CORRUPTED) {
        // As in `complain`.
        let _ = writeln!(stderr, "memgauge: {}", note.message);
    }
}

/// Prints clap's message: help and version to standard output with success, anything else to standard error.
pub(crate) fn usage(error: &clap::Error, code: u8) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(code) } else { ExitCode::SUCCESS }
}
