//! Standard output, standard error and files: the only place of the program that writes.

use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use memgauge_core::conclusions::scan;
use memgauge_core::note::{Note, Severity};
use memgauge_core::plan::Plan;
use memgauge_core::result::{Report, SCHEMA_VERSION};
use memgauge_core::topology::Machine;
use memgauge_render::{Format, Json, Named, Text};

use crate::cli::{FormatArg, Output};
use crate::prefetch;

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

/// Where text goes that goes into no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Output,
    /// Standard error, where standard output is another program's.
    Error,
}

impl Stream {
    /// Writes all of it at once.
    fn print(self, bytes: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Output => print(bytes),
            Self::Error => Ok(io::stderr().lock().write_all(bytes)?),
        }
    }

    fn colours(self) -> bool {
        let terminal = match self {
            Self::Output => io::stdout().is_terminal(),
            Self::Error => io::stderr().is_terminal(),
        };
        terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
    }

    /// Columns of the terminal; 100 where there is none.
    fn width(self) -> usize {
        let size = match self {
            Self::Output => terminal_size::terminal_size_of(io::stdout()),
            Self::Error => terminal_size::terminal_size_of(io::stderr()),
        };
        size.map_or(NO_TERMINAL, |(width, _)| usize::from(width.0))
    }
}

/// Columns where there is no terminal.
const NO_TERMINAL: usize = 100;

/// Where a report goes, checked before anything is measured.
pub(crate) struct Sinks {
    stream: Stream,
    standard: Option<Box<dyn Format>>,
    files: Vec<(PathBuf, Box<dyn Format>)>,
}

impl Sinks {
    /// Decides the formats and checks that every file can be written, so that a minute's measuring is not lost to a typing error.
    pub(crate) fn open(output: &Output, stream: Stream) -> Result<Self, BadFile> {
        let standard = (!output.quiet).then(|| standard_format(output.format, stream));
        let mut files = Vec::new();
        for path in &output.output {
            let format = memgauge_render::for_path(&path.to_string_lossy())
                .ok_or_else(|| BadFile::new(path, "no format for this ending; use .txt, .json, .svg, .png or .pdf".into()))?;
            check_writable(path)?;
            files.push((path.clone(), format));
        }
        Ok(Self { stream, standard, files })
    }

    /// Writes the report everywhere; see [`Self::write_all`].
    pub(crate) fn write(&self, report: &Report) -> anyhow::Result<()> {
        self.write_all(&[Named { name: "", report }])
    }

    /// Writes several reports everywhere, each file with all of them, whole or not at all. What cannot be written keeps nothing else from being
    /// written. A reader that went away is no error.
    ///
    /// # Errors
    /// All that could not be written, after the rest was.
    pub(crate) fn write_all(&self, results: &[Named<'_>]) -> anyhow::Result<()> {
        let file = |(path, format): &(PathBuf, Box<dyn Format>)| write_file(path, || Ok(format.render_all(results)?));
        let mut failed: Vec<anyhow::Error> = self.files.iter().filter_map(|f| file(f).err()).collect();
        if let Some(format) = &self.standard {
            let printed = format.render_all(results).map_err(anyhow::Error::from).and_then(|bytes| self.stream.print(&bytes));
            failed.extend(printed.err().filter(|e| !is_broken_pipe(e)));
        }
        all_of(failed)
    }
}

/// One error of several, in the order in which they came.
fn all_of(mut failed: Vec<anyhow::Error>) -> anyhow::Result<()> {
    match failed.len() {
        0 => Ok(()),
        1 => Err(failed.swap_remove(0)),
        _ => Err(anyhow!("{}", failed.iter().map(|e| format!("{e:#}")).collect::<Vec<_>>().join("; "))),
    }
}

/// Whether a file can be made at this path, by making one beside it.
fn check_writable(path: &Path) -> Result<(), BadFile> {
    if path.is_dir() {
        return Err(BadFile::new(path, "is a folder; name a file in it".into()));
    }
    let beside = beside(path);
    fs::File::create(&beside).map_err(|e| BadFile::new(path, format!("cannot be written: {e}")))?;
    // It was created a moment ago; if it cannot be removed, the final rename replaces it.
    let _ = fs::remove_file(&beside);
    Ok(())
}

/// Writes a file under another name and renames it, so that it is there whole or not at all.
fn write_file(path: &Path, content: impl FnOnce() -> anyhow::Result<Vec<u8>>) -> anyhow::Result<()> {
    let beside = beside(path);
    let write = || -> anyhow::Result<()> {
        fs::write(&beside, content()?)?;
        Ok(fs::rename(&beside, path)?)
    };
    let written = write().with_context(|| format!("cannot write {}", path.display()));
    if written.is_err() {
        // A part of a file is of no use; where none was begun there is nothing to remove.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// The temporary name that a file is written under before it is renamed.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

fn standard_format(format: FormatArg, stream: Stream) -> Box<dyn Format> {
    match format {
        FormatArg::Text => Box::new(Text { width: stream.width(), colour: stream.colours() }),
        FormatArg::Json => Box::new(Json { pretty: true }),
    }
}

/// Prints what would be done, and writes it to files.
///
/// # Errors
/// [`BadFile`] for a file that is neither text nor JSON or cannot be made.
pub(crate) fn show_plan(plan: &Plan, machine: &Machine, output: &Output) -> anyhow::Result<()> {
    let json = || -> anyhow::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(plan)?;
        bytes.push(b'\n');
        Ok(bytes)
    };
    let text = |width: usize| -> anyhow::Result<Vec<u8>> { Ok(memgauge_render::plan_text(plan, machine, width).into_bytes()) };
    let mut files = Vec::new();
    for path in &output.output {
        let format = match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("txt") => FormatArg::Text,
            Some("json") => FormatArg::Json,
            _ => return Err(BadFile::new(path, "a plan is text or JSON; use .txt or .json".into()).into()),
        };
        check_writable(path)?;
        files.push((path, format));
    }
    let mut failed = Vec::new();
    for (path, format) in files {
        let content = || match format {
            FormatArg::Text => text(memgauge_render::FILE_WIDTH),
            FormatArg::Json => json(),
        };
        failed.extend(write_file(path, content).err());
    }
    if !output.quiet {
        let printed = match output.format {
            FormatArg::Text => text(Stream::Output.width()),
            FormatArg::Json => json(),
        };
        failed.extend(printed.and_then(|bytes| print(&bytes)).err().filter(|e| !is_broken_pipe(e)));
    }
    all_of(failed)
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
    // Those two are complained of elsewhere, and are no cells without a value.
    let other = |n: &&Note| n.code != scan::CORRUPTED && n.code != prefetch::NOT_RESTORED;
    for note in notes.iter().filter(|n| n.severity == Severity::Error).filter(other) {
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

#[cfg(test)]
mod tests {
    use memgauge_linux::sysfs;

    use super::*;

    fn sinks(files: &[&Path]) -> Sinks {
        let output = Output { format: FormatArg::Text, output: files.iter().map(|f| f.to_path_buf()).collect(), quiet: true };
        Sinks::open(&output, Stream::Output).unwrap()
    }

    fn report() -> Report {
        crate::blank_report(sysfs::read_machine(Path::new("/")).unwrap(), Path::new("/"))
    }

    /// A folder of this test's own.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("memgauge-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_file_that_fails_keeps_no_other_from_being_written() {
        let folder = folder("sinks");
        let gone = folder.join("gone");
        fs::create_dir(&gone).unwrap();
        let (first, second, third) = (gone.join("a.json"), folder.join("b.json"), folder.join("c.txt"));
        let sinks = sinks(&[&first, &second, &third]);
        // After the check: a folder is gone, and a name is taken by a folder.
        fs::remove_dir(&gone).unwrap();
        fs::create_dir(&second).unwrap();
        let said = format!("{:#}", sinks.write(&report()).unwrap_err());
        assert!(said.contains("a.json") && said.contains("b.json") && !said.contains("c.txt"), "{said}");
        assert!(fs::read_to_string(&third).unwrap().contains("CPUs"));
        let mut left: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort_unstable();
        assert_eq!(left, ["b.json", "c.txt"], "no temporary file is left");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn nothing_that_failed_is_no_error() {
        assert!(all_of(Vec::new()).is_ok());
        assert_eq!(all_of(vec![anyhow!("one")]).unwrap_err().to_string(), "one");
        assert_eq!(all_of(vec![anyhow!("one"), anyhow!("two").context("three")]).unwrap_err().to_string(), "one; three: two");
    }
}
