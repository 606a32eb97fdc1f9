//! Where results go: standard output and files. Saved results are read here, too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use memgauge_core::advice::Advice;
use memgauge_core::comparison::Comparison;
use memgauge_core::conclusions::scan;
use memgauge_core::plan::Plan;
use memgauge_core::result::Report;
use memgauge_core::topology::Machine;
use memgauge_os::process::standard_output_was_closed;
use memgauge_render::{Csv, Format, Html, Json, Named, OneLine, OpenMetrics, Picture, Text};

use crate::cli::advise::AdviseArgs;
use crate::cli::compare::{CompareArgs, ComparisonFormatArg};
use crate::cli::output::{FormatArg, Output, PlainFormat};
use crate::console::{Program, Stream, is_broken_pipe};
use crate::exit::UsageError;
use crate::input;
use crate::output_file::{OutputFile, save_elsewhere};

/// Where a report goes. Files are checked before anything is measured.
pub(crate) struct Sinks {
    stream: Stream,
    standard: Option<Box<dyn Format>>,
    /// Standard output has a line only, and files the result.
    one_line: bool,
    files: Vec<(OutputFile, Box<dyn Format>)>,
    /// One of the files is of a scheduled check: nobody may read standard output, so what files do not take goes to a file elsewhere.
    scheduled: bool,
}

impl Sinks {
    /// Chooses the formats and checks that every file can be written, so that a typing error does not cost a minute of measuring.
    ///
    /// # Errors
    /// When a file has no format or cannot be created.
    pub(crate) fn open(output: &Output, stream: Stream) -> anyhow::Result<Self> {
        let closed = stream == Stream::Output && standard_output_was_closed();
        // Whoever closed it wants the files alone, and standard error belongs to the program that was run.
        let prints = output.prints() && !(output.is_one_line() && (closed || stream == Stream::Error));
        let standard = prints.then(|| -> Box<dyn Format> {
            match (output.format, output.quiet) {
                (FormatArg::Text, false) => Box::new(Text { width: stream.width(), colour: stream.colours(), verbose: output.verbose }),
                (FormatArg::Text, true) => Box::new(OneLine),
                (FormatArg::Json, _) => Box::new(Json),
                (FormatArg::Csv, _) => Box::new(Csv),
                (FormatArg::OpenMetrics, _) => Box::new(OpenMetrics),
                (FormatArg::Html, _) => Box::new(Html::default()),
            }
        });
        if standard.is_some() && closed {
            return Err(UsageError("standard output is closed; open it, or give --quiet and -o FILE".into()).into());
        }
        let figure = output.figure.options();
        let files =
            open_files(&output.output, "no format has this ending; use .txt, .json, .csv, .prom, .html, .svg, .png or .pdf", |path| {
                let path = path.to_string_lossy();
                memgauge_render::figure_for_path(&path, &figure).or_else(|| memgauge_render::for_path(&path))
            })?;
        Ok(Self { stream, standard, one_line: output.is_one_line(), files, scheduled: false })
    }

    /// Adds the file of a scheduled check, which leaves standard output as it is. A full disk is no reason not to measure.
    ///
    /// # Errors
    /// When it cannot be created for another reason.
    pub(crate) fn add_scheduled(&mut self, path: &Path) -> anyhow::Result<()> {
        self.files.push((OutputFile::open_on_full_disk(path)?, Box::new(Json)));
        self.scheduled = true;
        Ok(())
    }

    /// Whether whoever reads standard error has a page of text before them, which says what could not be measured.
    pub(crate) fn shows_page(&self) -> bool {
        self.stream.is_terminal() && self.standard.as_ref().is_some_and(|format| format.name() == "text")
    }

    /// Whether at most a line goes to standard output, because the result is in files.
    pub(crate) fn is_quiet(&self) -> bool {
        self.one_line || self.standard.is_none()
    }

    /// Writes a new report everywhere, as [`Self::write_all`] does. An earlier result is kept where this one measured nothing, unless it has
    /// evidence of corrupted memory. If a file cannot be written, the report is put in another place.
    ///
    /// # Errors
    /// Everything that could not be written, and where the report is instead.
    pub(crate) fn write(&self, report: &Report) -> anyhow::Result<()> {
        let nothing = report.plan.is_some() && report.measured() == 0 && !report.measurements().any(scan::corrupted);
        let (kept, files): (Vec<_>, Vec<_>) = self.files.iter().partition(|(file, _)| nothing && file.replaces_content());
        for (file, _) in kept {
            Program::MEMGAUGE.message(format_args!("{}: the earlier file is kept, because nothing was measured", file.path().display()));
        }
        let mut written = write_everywhere(self.stream, None, files.iter().copied(), |format| Ok(format.render(report)?));
        let mut formats: Vec<&dyn Format> = files.iter().map(|(_, format)| format.as_ref()).collect();
        // One place that has the whole report as JSON is enough: all other formats can be rendered from it.
        let is_lost = |formats: &[&dyn Format], written: &[anyhow::Result<()>]| {
            let whole = |(format, written): (&&dyn Format, &anyhow::Result<()>)| format.name() == Json.name() && written.is_ok();
            written.iter().any(Result::is_err) && !formats.iter().zip(written).any(whole)
        };
        // What could not be written to a file takes the place of the line.
        let replaced = self.one_line && !self.scheduled && is_lost(&formats, &written);
        if let Some(standard) = self.standard.as_ref().filter(|_| !replaced) {
            formats.insert(0, standard.as_ref());
            written.insert(0, print(self.stream, standard.render(report).map_err(Into::into)));
        }
        let lost = is_lost(&formats, &written);
        join_errors(written).map_err(|error| if lost { anyhow!("{error:#}; {}", self.rescue(report)) } else { error })
    }

    /// Puts a report that could not be written in another place, and says where it is.
    fn rescue(&self, report: &Report) -> String {
        let Ok(bytes) = Json.render(report) else { return "the result is lost: it cannot be written as JSON".into() };
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

    /// Writes saved reports to standard output and to every file. A file is written whole or not at all, and a file that fails does not keep
    /// the others from being written. A reader that went away is not an error.
    ///
    /// # Errors
    /// Everything that could not be written, after the rest was.
    pub(crate) fn write_all(&self, reports: &[Named<'_>]) -> anyhow::Result<()> {
        join_errors(write_everywhere(self.stream, self.standard.as_ref(), &self.files, |format| Ok(format.render_all(reports)?)))
    }
}

/// Chooses the format of every file by its ending, and checks that the file can be written.
pub(crate) fn open_files<F>(paths: &[PathBuf], unknown: &str, format: impl Fn(&Path) -> Option<F>) -> anyhow::Result<Vec<(OutputFile, F)>> {
    let open = |path: &PathBuf| {
        let format = format(path).ok_or_else(|| UsageError::file(path, unknown))?;
        Ok((OutputFile::open(path)?, format))
    };
    paths.iter().map(open).collect()
}

/// Writes to every file, then to standard output. Returns what became of standard output, if anything goes there, and of each file.
pub(crate) fn write_everywhere<'a, F: 'a>(
    stream: Stream,
    standard: Option<&F>,
    files: impl IntoIterator<Item = &'a (OutputFile, F)>,
    render: impl Fn(&F) -> anyhow::Result<Vec<u8>>,
) -> Vec<anyhow::Result<()>> {
    let write = |file: &OutputFile, format| -> anyhow::Result<()> { Ok(file.write(&render(format)?)?) };
    let mut written: Vec<_> = files
        .into_iter()
        .map(|(file, format)| write(file, format).with_context(|| format!("cannot write {}", file.path().display())))
        .collect();
    written.splice(0..0, standard.map(|format| print(stream, render(format))));
    written
}

/// Prints what could be rendered. A reader that went away is not an error.
fn print(stream: Stream, rendered: anyhow::Result<Vec<u8>>) -> anyhow::Result<()> {
    match rendered.and_then(|bytes| stream.print(&bytes)) {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        printed => printed,
    }
}

/// One error that names all of them, in their order.
pub(crate) fn join_errors(written: Vec<anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut errors: Vec<_> = written.into_iter().filter_map(Result::err).collect();
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.swap_remove(0)),
        _ => Err(anyhow!("{}", errors.iter().map(|e| format!("{e:#}")).collect::<Vec<_>>().join("; "))),
    }
}

/// The format of a plan, by the ending of its file.
fn plain_format(path: &Path) -> Option<PlainFormat> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "txt" => Some(PlainFormat::Text),
        "json" => Some(PlainFormat::Json),
        _ => None,
    }
}

/// Prints a plan and writes it to files.
///
/// # Errors
/// [`UsageError`] for a format other than text and JSON, and for a file that cannot be created.
pub(crate) fn show_plan(plan: &Plan, machine: &Machine, output: &Output) -> anyhow::Result<()> {
    // The width of a terminal, or none in a file.
    let render = |(format, width): &(PlainFormat, Option<usize>)| -> anyhow::Result<Vec<u8>> {
        match (format, width) {
            (PlainFormat::Text, Some(_)) if output.quiet => Ok(memgauge_render::plan_line(plan).into_bytes()),
            (PlainFormat::Text, width) => {
                let width = width.unwrap_or(memgauge_render::FILE_WIDTH);
                Ok(memgauge_render::plan_text(plan, machine, width).into_bytes())
            }
            (PlainFormat::Json, _) => Ok(memgauge_render::json_text(plan)?),
        }
    };
    let standard = match output.format {
        FormatArg::Text => (PlainFormat::Text, Some(Stream::Output.width())),
        FormatArg::Json => (PlainFormat::Json, None),
        _ => return Err(UsageError("a plan has no values yet; use --format text or --format json".into()).into()),
    };
    let format = |path: &Path| Some((plain_format(path)?, None));
    let files = open_files(&output.output, "a plan is text or JSON; use .txt or .json", format)?;
    let standard = prints(output.quiet, &output.output, output.format == FormatArg::Text).then_some(standard);
    join_errors(write_everywhere(Stream::Output, standard.as_ref(), &files, render))
}

/// Whether an answer goes to standard output: with `quiet`, and where it also goes to `files`, only a line of `text` does, and not to a standard
/// output that was closed on purpose.
pub(crate) fn prints(quiet: bool, files: &[PathBuf], text: bool) -> bool {
    !quiet || files.is_empty() || (text && !standard_output_was_closed())
}

/// The formats of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComparisonFormat {
    /// For a terminal, or for a file.
    Text(Option<Stream>),
    Json,
    Csv,
    Html,
    Figure(Picture),
}

impl ComparisonFormat {
    /// By the ending of a file's name.
    fn for_path(path: &Path) -> Option<Self> {
        let path = path.to_string_lossy();
        match path.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "txt" => Some(Self::Text(None)),
            "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            "html" | "htm" => Some(Self::Html),
            _ => memgauge_render::picture_for_path(&path).map(Self::Figure),
        }
    }
}

impl CompareArgs {
    /// What goes to standard output, if anything.
    fn standard(&self) -> Option<ComparisonFormat> {
        let format = match self.format {
            ComparisonFormatArg::Text => ComparisonFormat::Text(Some(Stream::Output)),
            ComparisonFormatArg::Json => ComparisonFormat::Json,
            ComparisonFormatArg::Csv => ComparisonFormat::Csv,
            ComparisonFormatArg::Html => ComparisonFormat::Html,
        };
        prints(self.quiet, &self.output, self.format == ComparisonFormatArg::Text).then_some(format)
    }

    /// A comparison in a format.
    fn render(&self, comparison: &Comparison, format: ComparisonFormat) -> anyhow::Result<Vec<u8>> {
        Ok(match format {
            ComparisonFormat::Json => memgauge_render::json_text(comparison)?,
            ComparisonFormat::Csv => memgauge_render::comparison_csv(comparison)?,
            ComparisonFormat::Html => memgauge_render::comparison_html(comparison)?,
            ComparisonFormat::Figure(picture) => memgauge_render::comparison_figure(comparison, picture, &self.figure.options())?,
            ComparisonFormat::Text(Some(_)) if self.quiet => memgauge_render::comparison_line(comparison).into_bytes(),
            ComparisonFormat::Text(stream) => {
                let width = stream.map_or(memgauge_render::FILE_WIDTH, Stream::width);
                let verbose = self.verbose || stream.is_none();
                memgauge_render::comparison_text(comparison, width, stream.is_some_and(Stream::colours), verbose).into_bytes()
            }
        })
    }
}

/// Where a comparison goes. Files are checked before anything is measured.
pub(crate) struct ComparisonSinks<'a> {
    args: &'a CompareArgs,
    files: Vec<(OutputFile, ComparisonFormat)>,
}

impl<'a> ComparisonSinks<'a> {
    /// # Errors
    /// When a file has no format or cannot be created.
    pub(crate) fn open(args: &'a CompareArgs) -> anyhow::Result<Self> {
        args.figure.check_one(&args.output)?;
        let unknown = "no format of a comparison has this ending; use .txt, .json, .csv, .html, .svg, .png or .pdf";
        Ok(Self { args, files: open_files(&args.output, unknown, ComparisonFormat::for_path)? })
    }

    /// # Errors
    /// Everything that could not be written, after the rest was.
    pub(crate) fn write(&self, comparison: &Comparison) -> anyhow::Result<()> {
        let render = |format: &ComparisonFormat| self.args.render(comparison, *format);
        join_errors(write_everywhere(Stream::Output, self.args.standard().as_ref(), &self.files, render))
    }
}

/// Where advice goes. Files are checked before anything is read.
pub(crate) struct AdviceSinks {
    quiet: bool,
    standard: Option<(PlainFormat, Option<Stream>)>,
    files: Vec<(OutputFile, (PlainFormat, Option<Stream>))>,
}

impl AdviceSinks {
    /// # Errors
    /// When a file has no format or cannot be created.
    pub(crate) fn open(args: &AdviseArgs) -> anyhow::Result<Self> {
        let files = open_files(&args.output, "advice is text or JSON; use .txt or .json", |path| Some((plain_format(path)?, None)))?;
        let prints = prints(args.quiet, &args.output, args.format == PlainFormat::Text);
        Ok(Self { quiet: args.quiet, standard: prints.then_some((args.format, Some(Stream::Output))), files })
    }

    /// # Errors
    /// Everything that could not be written, after the rest was.
    pub(crate) fn write(&self, advice: &Advice) -> anyhow::Result<()> {
        let render = |(format, stream): &(PlainFormat, Option<Stream>)| -> anyhow::Result<Vec<u8>> {
            let width = stream.map_or(memgauge_render::FILE_WIDTH, Stream::width);
            Ok(match format {
                PlainFormat::Json => memgauge_render::json_text(advice)?,
                PlainFormat::Text if self.quiet && stream.is_some() => memgauge_render::advice_line(advice).into_bytes(),
                PlainFormat::Text => memgauge_render::advice_text(advice, width, stream.is_some_and(Stream::colours)).into_bytes(),
            })
        };
        join_errors(write_everywhere(Stream::Output, self.standard.as_ref(), &self.files, render))
    }
}

/// Where a page goes: a file, or standard output.
pub(crate) struct PageSink {
    file: Option<OutputFile>,
}

impl PageSink {
    /// Checks that the page can be written.
    ///
    /// # Errors
    /// When the file does not end in `.html` or cannot be created, or there is none and standard output is a terminal.
    pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return if Stream::Output.is_terminal() {
                Err(UsageError("the page would go to the terminal; name a file: -o report.html".into()).into())
            } else {
                Ok(Self { file: None })
            };
        };
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        if !matches!(ending.as_deref(), Some("html" | "htm")) {
            return Err(UsageError::file(path, "a report is a page of HTML; use .html, or 'memgauge render' for other formats").into());
        }
        Ok(Self { file: Some(OutputFile::open(path)?) })
    }

    /// # Errors
    /// When it cannot be made or written. A reader that went away is not an error.
    pub(crate) fn write(&self, page: &Html, results: &[Named<'_>]) -> anyhow::Result<()> {
        let bytes = page.render_all(results)?;
        match &self.file {
            Some(file) => file.write(&bytes).with_context(|| format!("cannot write {}", file.path().display())),
            None => print(Stream::Output, Ok(bytes)),
        }
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
    use crate::cli::output::FigureArgs;
    use crate::host::HostIdentity;
    use crate::report;

    fn sinks(files: &[&Path]) -> Sinks {
        let output = Output {
            format: FormatArg::Text,
            output: files.iter().map(|f| f.to_path_buf()).collect(),
            quiet: true,
            verbose: false,
            figure: FigureArgs::default(),
        };
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
    fn an_earlier_file_is_kept_only_from_a_run_that_found_nothing() {
        use memgauge_core::estimate::{Estimate, NotMeasured};
        let saved = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results/vm-2-cpus.json");
        let mut report = read_report(&saved).unwrap();
        let directory = directory("sinks-corrupted");
        let file = directory.join("node.json");
        fs::write(&file, "yesterday").unwrap();
        let no_value = |why| Estimate { not_measured: Some(why), ..Estimate::default() };
        report.results.iter_mut().for_each(|m| m.estimate = no_value(NotMeasured::OutOfTime));
        sinks(&[&file]).write(&report).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "yesterday");
        // What was found of corrupted memory is nowhere else.
        report.results[0].estimate = no_value(NotMeasured::Corrupted { cpu: Some(0), detail: "bit 3".into() });
        sinks(&[&file]).write(&report).unwrap();
        assert_eq!(read_report(&file).unwrap().results[0].estimate, report.results[0].estimate);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_quiet_run_prints_its_line_also_where_the_result_goes_to_a_file() {
        let output = |format, quiet, files: &[&str]| Output {
            format,
            output: files.iter().map(PathBuf::from).collect(),
            quiet,
            verbose: false,
            figure: FigureArgs::default(),
        };
        let prints = |output: Output| (output.prints(), output.is_one_line());
        assert_eq!(prints(output(FormatArg::Text, true, &["a.json"])), (true, true));
        assert_eq!(prints(output(FormatArg::Text, true, &[])), (true, false));
        assert_eq!(prints(output(FormatArg::Text, false, &["a.json"])), (true, false));
        assert_eq!(prints(output(FormatArg::Json, true, &["a.json"])), (false, false));
        let directory = directory("sinks-line");
        let sinks = sinks(&[&directory.join("a.json")]);
        assert_eq!((sinks.standard.as_ref().map(|format| format.name()), sinks.is_quiet()), (Some("line"), true));
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
