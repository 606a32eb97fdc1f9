//! Where results go: standard output and files. Saved results are read here, too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use memgauge_analysis::conclusions::scan;
use memgauge_model::result::Report;
use memgauge_os::process::standard_output_was_closed;
use memgauge_render::{Appearance, Document, FigureOptions, Format, PageOptions};

use crate::cli::output::{Destination, Output};
use crate::console::{Program, Stream, is_broken_pipe};
use crate::exit::UsageError;
use crate::input;
use crate::output_file::{OutputFile, save_elsewhere};

/// Where a document goes. Files are checked before anything is measured or read.
pub(crate) struct Sinks {
    stream: Stream,
    standard: Option<Format>,
    /// How it is shown on standard output.
    printed: Appearance,
    /// How it is shown in files.
    filed: Appearance,
    /// Standard output has a line only, and files the document.
    one_line: bool,
    files: Vec<(OutputFile, Format)>,
    /// One of the files is of a scheduled check: perhaps nobody reads standard output, so a result that its file does not take is saved elsewhere.
    scheduled: bool,
}

impl Sinks {
    /// Where new or saved results go.
    ///
    /// # Errors
    /// Those of [`Self::open`], and when results would go to a standard output that is closed.
    pub(crate) fn of_results(output: &Output, stream: Stream) -> anyhow::Result<Self> {
        let sinks = Self::open::<Report>(&output.to, stream)?;
        if sinks.standard.is_some() && stream == Stream::Output && standard_output_was_closed() {
            return Err(UsageError("standard output is closed; open it, or give --quiet and -o FILE".into()).into());
        }
        Ok(sinks.verbose(output.verbose).figures(&output.figure.options()))
    }

    /// Chooses the formats and checks that every file can be written, so that a typing error does not cost a minute of measuring.
    ///
    /// # Errors
    /// When the document does not have a format, or a file cannot be created.
    pub(crate) fn open<D: Document + ?Sized>(to: &Destination, stream: Stream) -> anyhow::Result<Self> {
        let closed = stream == Stream::Output && standard_output_was_closed();
        // A user who closed it wants the files alone, and standard error belongs to the program that was run.
        let prints = to.prints() && !(to.is_one_line() && (closed || stream == Stream::Error));
        let has = match D::FORMATS {
            [Format::TEXT, Format::JSON] => format!("{} is text or JSON", D::NAME),
            _ => format!("no format of {} has this ending", D::NAME),
        };
        let open = |path: &PathBuf| -> anyhow::Result<(OutputFile, Format)> {
            let format = Format::for_path(path, D::FORMATS);
            let format = format.ok_or_else(|| UsageError::file(path, format_args!("{has}; use {}", Format::endings(D::FORMATS))))?;
            Ok((OutputFile::open(path)?, format))
        };
        let files = to.output.iter().map(open).collect::<anyhow::Result<_>>()?;
        let filed = Appearance::default();
        let printed = Appearance { width: stream.width(), colour: stream.colours(), verbose: false, one_line: to.quiet, ..filed.clone() };
        let standard = prints.then_some(to.format);
        Ok(Self { stream, standard, printed, filed, one_line: to.is_one_line(), files, scheduled: false })
    }

    /// With everything explained on standard output, too.
    pub(crate) fn verbose(mut self, verbose: bool) -> Self {
        self.printed.verbose = verbose;
        self
    }

    /// Without anything on the stream.
    pub(crate) fn files_only(mut self) -> Self {
        self.standard = None;
        self
    }

    /// With figures that are drawn so.
    pub(crate) fn figures(mut self, options: &FigureOptions) -> Self {
        self.filed.figure = options.clone();
        self
    }

    /// With pages like this.
    pub(crate) fn pages(mut self, options: &PageOptions) -> Self {
        self.printed.page = options.clone();
        self.filed.page = options.clone();
        self
    }

    /// Adds the file of a scheduled check, which leaves standard output as it is. A full disk must not prevent the measurement.
    ///
    /// # Errors
    /// When it cannot be created for another reason.
    pub(crate) fn add_scheduled(&mut self, path: &Path) -> anyhow::Result<()> {
        self.files.push((OutputFile::open_on_full_disk(path)?, Format::JSON));
        self.scheduled = true;
        Ok(())
    }

    /// Whether the reader of standard error sees a page of text, which says what could not be measured.
    pub(crate) fn shows_page(&self) -> bool {
        self.stream.is_terminal() && self.standard == Some(Format::TEXT) && !self.printed.one_line
    }

    /// Whether at most a line goes to standard output, because the result is in files.
    pub(crate) fn is_quiet(&self) -> bool {
        self.one_line || self.standard.is_none()
    }

    /// Writes a new report everywhere, as [`Self::write`] does. An earlier result is kept where this one measured nothing, unless it has
    /// evidence of corrupted memory. If a file cannot be written, the report is put in another place.
    ///
    /// # Errors
    /// Everything that could not be written, and where the report is instead.
    pub(crate) fn keep(&self, report: &Report) -> anyhow::Result<()> {
        let nothing = report.plan.is_some() && report.measured() == 0 && !report.measurements().any(scan::corrupted);
        let (kept, files): (Vec<_>, Vec<_>) = self.files.iter().partition(|(file, _)| nothing && file.replaces_content());
        for (file, _) in kept {
            Program::MEMGAUGE.message(format_args!("{}: the earlier file is kept, because nothing was measured", file.path().display()));
        }
        let mut written = self.write_files(files.iter().copied(), report);
        let mut formats: Vec<Format> = files.iter().map(|(_, format)| *format).collect();
        // One place that has the whole report as JSON is enough: all other formats can be rendered from it.
        let is_lost = |formats: &[Format], written: &[anyhow::Result<()>]| {
            let whole = |(format, written): (&Format, &anyhow::Result<()>)| *format == Format::JSON && written.is_ok();
            written.iter().any(Result::is_err) && !formats.iter().zip(written).any(whole)
        };
        // A result that could not be written to a file is printed instead of the line.
        let replaced = self.one_line && !self.scheduled && is_lost(&formats, &written);
        if let Some(format) = self.standard.filter(|_| !replaced) {
            formats.insert(0, format);
            written.insert(0, self.print(report, format));
        }
        let lost = is_lost(&formats, &written);
        join_errors(written).map_err(|error| if lost { anyhow!("{error:#}; {}", self.rescue(report)) } else { error })
    }

    /// Puts a report that could not be written in another place, and says where it is.
    fn rescue(&self, report: &Report) -> String {
        let Ok(bytes) = report.json() else { return "the result is lost: it cannot be written as JSON".into() };
        // The user asked for silence, but not at the cost of the result.
        let unseen = self.one_line || self.standard.is_none();
        if unseen && !self.scheduled && self.stream == Stream::Output && self.stream.print(&bytes).is_ok() {
            return "the result was printed as JSON instead".into();
        }
        match save_elsewhere(&bytes) {
            Some(path) => format!("the result is in {} instead", path.display()),
            None => "the result is lost: no other directory takes it either".into(),
        }
    }

    /// Writes a document to standard output and to every file. A file is written whole or not at all, and a file that fails does not keep the
    /// others from being written. A reader that went away is not an error.
    ///
    /// # Errors
    /// Everything that could not be written, after the rest was.
    pub(crate) fn write<D: Document + ?Sized>(&self, document: &D) -> anyhow::Result<()> {
        let mut written = self.write_files(&self.files, document);
        written.splice(0..0, self.standard.map(|format| self.print(document, format)));
        join_errors(written)
    }

    /// Writes each file. Returns the outcome for each.
    fn write_files<'a, D: Document + ?Sized>(
        &self,
        files: impl IntoIterator<Item = &'a (OutputFile, Format)>,
        document: &D,
    ) -> Vec<anyhow::Result<()>> {
        let write = |file: &OutputFile, format| -> anyhow::Result<()> { Ok(file.write(&document.render(format, &self.filed)?)?) };
        let named =
            |(file, format): &(OutputFile, Format)| write(file, *format).with_context(|| format!("cannot write {}", file.path().display()));
        files.into_iter().map(named).collect()
    }

    /// Prints to the stream. A reader that went away is not an error.
    fn print<D: Document + ?Sized>(&self, document: &D, format: Format) -> anyhow::Result<()> {
        let rendered = document.render(format, &self.printed).map_err(anyhow::Error::from);
        match rendered.and_then(|bytes| self.stream.print(&bytes)) {
            Err(error) if is_broken_pipe(&error) => Ok(()),
            printed => printed,
        }
    }
}

/// One error that names all of them, in their order.
fn join_errors(written: Vec<anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut errors: Vec<_> = written.into_iter().filter_map(Result::err).collect();
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.swap_remove(0)),
        _ => Err(anyhow!("{}", errors.iter().map(|e| format!("{e:#}")).collect::<Vec<_>>().join("; "))),
    }
}

/// Reads a report that was saved as JSON; `-` is standard input.
///
/// # Errors
/// When it cannot be read, is not a report, or has another schema version.
pub(crate) fn read_report(path: &Path) -> Result<Report, UsageError> {
    memgauge_render::read(&input::read_result(path)?).map_err(|why| UsageError::file(path, why))
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
    use std::fs;

    use memgauge_os::topology;

    use super::*;
    use crate::host::HostIdentity;
    use crate::report;

    fn sinks(files: &[&Path]) -> Sinks {
        let to = Destination { format: Format::TEXT, output: files.iter().map(|f| f.to_path_buf()).collect(), quiet: true };
        Sinks::open::<Report>(&to, Stream::Output).unwrap()
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
        let message = format!("{:#}", sinks.keep(&blank()).unwrap_err());
        assert!(message.contains("a.json") && message.contains("b.json") && !message.contains("c.txt"), "{message}");
        assert!(fs::read_to_string(&third).unwrap().contains("CPUs"));
        let mut left: Vec<_> = fs::read_dir(&directory).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort_unstable();
        assert_eq!(left, ["b.json", "c.txt"], "no temporary file is left");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn an_earlier_file_is_kept_only_from_a_run_that_found_nothing() {
        use memgauge_model::estimate::{Estimate, NotMeasured};
        let saved = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results/vm-2-cpus.json");
        let mut report = read_report(&saved).unwrap();
        let directory = directory("sinks-corrupted");
        let file = directory.join("node.json");
        fs::write(&file, "yesterday").unwrap();
        let no_value = |why| Estimate { not_measured: Some(why), ..Estimate::default() };
        report.results.iter_mut().for_each(|m| m.estimate = no_value(NotMeasured::OutOfTime));
        sinks(&[&file]).keep(&report).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "yesterday");
        // A finding of corrupted memory is written even so, because it is nowhere else.
        report.results[0].estimate = no_value(NotMeasured::Corrupted { cpu: Some(0), detail: "bit 3".into() });
        sinks(&[&file]).keep(&report).unwrap();
        assert_eq!(read_report(&file).unwrap().results[0].estimate, report.results[0].estimate);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_quiet_run_prints_its_line_also_where_the_result_goes_to_a_file() {
        let output = |format, quiet, files: &[&str]| Destination { format, output: files.iter().map(PathBuf::from).collect(), quiet };
        let prints = |to: Destination| (to.prints(), to.is_one_line());
        assert_eq!(prints(output(Format::TEXT, true, &["a.json"])), (true, true));
        assert_eq!(prints(output(Format::TEXT, true, &[])), (true, false));
        assert_eq!(prints(output(Format::TEXT, false, &["a.json"])), (true, false));
        assert_eq!(prints(output(Format::JSON, true, &["a.json"])), (false, false));
        let directory = directory("sinks-line");
        let sinks = sinks(&[&directory.join("a.json")]);
        assert_eq!((sinks.standard, sinks.printed.one_line, sinks.is_quiet()), (Some(Format::TEXT), true, true));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn errors_are_joined_in_order() {
        assert!(join_errors(vec![Ok(())]).is_ok());
        let joined = |errors: Vec<anyhow::Error>| join_errors(errors.into_iter().map(Err).collect()).unwrap_err().to_string();
        assert_eq!(joined(vec![anyhow!("one")]), "one");
        assert_eq!(joined(vec![anyhow!("one"), anyhow!("two").context("three")]), "one; three: two");
    }
}
