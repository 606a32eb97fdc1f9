//! Where results go: standard output and files. Saved results are read here, too.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use memgauge_core::plan::Plan;
use memgauge_core::result::Report;
use memgauge_core::topology::Machine;
use memgauge_render::{Format, Json, Named, Text};

use crate::cli::output::{FormatArg, Output};
use crate::console::{Stream, is_broken_pipe};
use crate::exit::UsageError;

/// Where a report goes. Files are checked before anything is measured.
pub(crate) struct Sinks {
    stream: Stream,
    standard: Option<Box<dyn Format>>,
    files: Vec<(PathBuf, Box<dyn Format>)>,
}

impl Sinks {
    /// Chooses the formats and checks that every file can be written, so that a typing error does not cost a minute of measuring.
    ///
    /// # Errors
    /// When a file has no format or cannot be created.
    pub(crate) fn open(output: &Output, stream: Stream) -> Result<Self, UsageError> {
        let standard = (!output.quiet).then(|| -> Box<dyn Format> {
            match output.format {
                FormatArg::Text => Box::new(Text { width: stream.width(), colour: stream.colours(), verbose: output.verbose }),
                FormatArg::Json => Box::new(Json),
            }
        });
        let files = open_files(&output.output, "no format has this ending; use .txt, .json, .svg, .png or .pdf", |path| {
            memgauge_render::for_path(&path.to_string_lossy())
        })?;
        Ok(Self { stream, standard, files })
    }

    /// Writes the report everywhere; see [`Self::write_all`].
    pub(crate) fn write(&self, report: &Report) -> anyhow::Result<()> {
        self.write_all(&[Named { name: "", report }])
    }

    /// Writes all reports to standard output and to every file. A file is written whole or not at all, and a file that fails does not keep
    /// the others from being written. A reader that went away is not an error.
    ///
    /// # Errors
    /// Everything that could not be written, after the rest was.
    pub(crate) fn write_all(&self, reports: &[Named<'_>]) -> anyhow::Result<()> {
        write_everywhere(self.stream, self.standard.as_ref(), &self.files, |format| Ok(format.render_all(reports)?))
    }
}

/// Chooses the format of every file by its ending, and checks that the file can be written.
fn open_files<F>(paths: &[PathBuf], unknown: &str, format: impl Fn(&Path) -> Option<F>) -> Result<Vec<(PathBuf, F)>, UsageError> {
    let open = |path: &PathBuf| {
        let format = format(path).ok_or_else(|| UsageError::file(path, unknown))?;
        check_writable(path)?;
        Ok((path.clone(), format))
    };
    paths.iter().map(open).collect()
}

/// Writes to every file, then to standard output.
fn write_everywhere<F>(
    stream: Stream,
    standard: Option<&F>,
    files: &[(PathBuf, F)],
    render: impl Fn(&F) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<()> {
    let mut failed: Vec<_> = files.iter().filter_map(|(path, format)| write_file(path, || render(format)).err()).collect();
    failed.extend(standard.and_then(|format| print(stream, render(format)).err()));
    join_errors(failed)
}

/// Prints what could be rendered. A reader that went away is not an error.
fn print(stream: Stream, rendered: anyhow::Result<Vec<u8>>) -> anyhow::Result<()> {
    match rendered.and_then(|bytes| Ok(stream.print(&bytes)?)) {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        printed => printed,
    }
}

/// One error that names all of them, in their order.
fn join_errors(mut errors: Vec<anyhow::Error>) -> anyhow::Result<()> {
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.swap_remove(0)),
        _ => Err(anyhow!("{}", errors.iter().map(|e| format!("{e:#}")).collect::<Vec<_>>().join("; "))),
    }
}

/// Checks that a file can be created at this path by creating one beside it.
fn check_writable(path: &Path) -> Result<(), UsageError> {
    if path.is_dir() {
        return Err(UsageError::file(path, "is a directory; name a file in it"));
    }
    let beside = beside(path);
    fs::File::create(&beside).map_err(|e| UsageError::file(path, format_args!("cannot be written: {e}")))?;
    // It was created just now; if it cannot be removed, the final rename replaces it.
    let _ = fs::remove_file(&beside);
    Ok(())
}

/// Writes a file under another name and renames it, so that readers never see a part of it.
fn write_file(path: &Path, content: impl FnOnce() -> anyhow::Result<Vec<u8>>) -> anyhow::Result<()> {
    let beside = beside(path);
    let write = || -> anyhow::Result<()> {
        fs::write(&beside, content()?)?;
        Ok(fs::rename(&beside, path)?)
    };
    let written = write().with_context(|| format!("cannot write {}", path.display()));
    if written.is_err() {
        // A partial file is of no use. If none was created, there is nothing to remove.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// The temporary name of a file until it is renamed.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

/// Prints a plan and writes it to files.
///
/// # Errors
/// [`UsageError`] for a file that is neither text nor JSON or cannot be created.
pub(crate) fn show_plan(plan: &Plan, machine: &Machine, output: &Output) -> anyhow::Result<()> {
    let render = |(format, width): &(FormatArg, usize)| -> anyhow::Result<Vec<u8>> {
        match format {
            FormatArg::Text => Ok(memgauge_render::plan_text(plan, machine, *width).into_bytes()),
            FormatArg::Json => {
                let mut bytes = serde_json::to_vec_pretty(plan)?;
                bytes.push(b'\n');
                Ok(bytes)
            }
        }
    };
    let files = open_files(&output.output, "a plan is text or JSON; use .txt or .json", |path| {
        let format = match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "txt" => FormatArg::Text,
            "json" => FormatArg::Json,
            _ => return None,
        };
        Some((format, memgauge_render::FILE_WIDTH))
    })?;
    let standard = (!output.quiet).then(|| (output.format, Stream::Output.width()));
    write_everywhere(Stream::Output, standard.as_ref(), &files, render)
}

/// Reads a report that was saved as JSON; `-` is standard input.
///
/// # Errors
/// When it cannot be read, is not a report, or has another schema version.
pub(crate) fn read_report(path: &Path) -> Result<Report, UsageError> {
    let mut bytes = Vec::new();
    let read = match path.to_str() {
        Some("-") => io::stdin().lock().read_to_end(&mut bytes),
        _ => fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    read.map_err(|e| UsageError::file(path, e))?;
    memgauge_render::read(&bytes).map_err(|why| UsageError::file(path, why))
}

/// Names that tell reports apart: file names without their endings, or whole paths where those are not unique.
pub(crate) fn unique_names(paths: &[PathBuf]) -> Vec<String> {
    let stem = |p: &Path| p.file_stem().unwrap_or(p.as_os_str()).to_string_lossy().into_owned();
    let stems: BTreeSet<String> = paths.iter().map(|p| stem(p)).collect();
    let unique = stems.len() == paths.len();
    paths.iter().map(|p| if unique { stem(p) } else { p.to_string_lossy().into_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use memgauge_os::topology;

    use super::*;
    use crate::host::HostIdentity;
    use crate::report;

    fn sinks(files: &[&Path]) -> Sinks {
        let output =
            Output { format: FormatArg::Text, output: files.iter().map(|f| f.to_path_buf()).collect(), quiet: true, verbose: false };
        Sinks::open(&output, Stream::Output).unwrap()
    }

    fn blank() -> Report {
        report::blank(topology::read_machine(Path::new("/")).unwrap(), Path::new("/"), &HostIdentity::withheld())
    }

    /// A directory for one test.
    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("memgauge-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn a_file_that_fails_does_not_keep_others_from_being_written() {
        let directory = directory("sinks");
        let gone = directory.join("gone");
        fs::create_dir(&gone).unwrap();
        let (first, second, third) = (gone.join("a.json"), directory.join("b.json"), directory.join("c.txt"));
        let sinks = sinks(&[&first, &second, &third]);
        // After the check, one directory is removed, and another takes the name of a file.
        fs::remove_dir(&gone).unwrap();
        fs::create_dir(&second).unwrap();
        let message = format!("{:#}", sinks.write(&blank()).unwrap_err());
        assert!(message.contains("a.json") && message.contains("b.json") && !message.contains("c.txt"), "{message}");
        assert!(fs::read_to_string(&third).unwrap().contains("CPUs"));
        let mut left: Vec<_> = fs::read_dir(&directory).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort_unstable();
        assert_eq!(left, ["b.json", "c.txt"], "no temporary file is left");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn errors_are_joined_in_order() {
        assert!(join_errors(Vec::new()).is_ok());
        assert_eq!(join_errors(vec![anyhow!("one")]).unwrap_err().to_string(), "one");
        assert_eq!(join_errors(vec![anyhow!("one"), anyhow!("two").context("three")]).unwrap_err().to_string(), "one; three: two");
    }
}
