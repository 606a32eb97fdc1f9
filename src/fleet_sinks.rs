//! Where answers about a fleet go: standard output and files, as text, JSON or CSV; slow hosts also as a figure.

use std::path::Path;

use memgauge_core::fleet::{FleetBaseline, FleetHistory, FleetOutliers};
use memgauge_fleet::Row;
use memgauge_render::{
    FILE_WIDTH, FigureOptions, Picture, RenderError, fleet_baseline_csv, fleet_baseline_text, fleet_history_csv, fleet_history_text,
    fleet_outliers_csv, fleet_outliers_figure, fleet_outliers_text, picture_for_path,
};
use serde::Serialize;

use crate::cli::fleet::{FleetFormat, FleetOutput};
use crate::console::Stream;
use crate::output_file::OutputFile;
use crate::sinks::{join_errors, open_files, prints, write_everywhere};

/// An answer about a fleet.
pub(crate) trait FleetAnswer: Serialize {
    /// In words and tables.
    fn text(&self, columns: usize, colour: bool, verbose: bool) -> String;
    /// As a table.
    ///
    /// # Errors
    /// When the writer refuses a row.
    fn csv(&self) -> Result<Vec<u8>, RenderError>;
    /// As a figure.
    ///
    /// # Errors
    /// When it has none, or none can be drawn.
    fn figure(&self, _picture: Picture) -> Result<Vec<u8>, RenderError> {
        Err(RenderError::NothingToDraw("this answer is text and tables".to_owned()))
    }
}

/// Slow hosts, and the values of all hosts for a figure of them.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Outliers<'a> {
    pub(crate) found: &'a FleetOutliers,
    #[serde(skip)]
    pub(crate) rows: &'a [Row],
    #[serde(skip)]
    pub(crate) figure: FigureOptions,
}

impl FleetAnswer for Outliers<'_> {
    fn text(&self, columns: usize, colour: bool, verbose: bool) -> String {
        fleet_outliers_text(self.found, columns, colour, verbose)
    }
    fn csv(&self) -> Result<Vec<u8>, RenderError> {
        fleet_outliers_csv(self.found)
    }
    fn figure(&self, picture: Picture) -> Result<Vec<u8>, RenderError> {
        fleet_outliers_figure(self.found, &memgauge_fleet::compared(self.rows, self.found), picture, &self.figure)
    }
}

impl FleetAnswer for FleetBaseline {
    fn text(&self, columns: usize, colour: bool, verbose: bool) -> String {
        fleet_baseline_text(self, columns, colour, verbose)
    }
    fn csv(&self) -> Result<Vec<u8>, RenderError> {
        fleet_baseline_csv(self)
    }
}

impl FleetAnswer for FleetHistory {
    fn text(&self, columns: usize, colour: bool, verbose: bool) -> String {
        fleet_history_text(self, columns, colour, verbose)
    }
    fn csv(&self) -> Result<Vec<u8>, RenderError> {
        fleet_history_csv(self)
    }
}

/// A format, and for text where it is read; `None`: in a file.
#[derive(Clone, Copy)]
enum Form {
    Text(Option<Stream>),
    Json,
    Csv,
    Figure(Picture),
}

impl Form {
    fn for_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "txt" => Some(Self::Text(None)),
            "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

/// Where an answer goes. Files are checked before anything is read.
pub(crate) struct FleetSinks<'a> {
    output: &'a FleetOutput,
    files: Vec<(OutputFile, Form)>,
}

impl<'a> FleetSinks<'a> {
    /// # Errors
    /// When a file has no format or cannot be created.
    pub(crate) fn open(output: &'a FleetOutput) -> anyhow::Result<Self> {
        let files = open_files(&output.output, "no format of this has this ending; use .txt, .json or .csv", Form::for_path)?;
        Ok(Self { output, files })
    }

    /// The same for an answer that has a figure.
    ///
    /// # Errors
    /// When a file has no format or cannot be created.
    pub(crate) fn open_with_figures(output: &'a FleetOutput) -> anyhow::Result<Self> {
        let form = |path: &Path| Form::for_path(path).or_else(|| picture_for_path(&path.to_string_lossy()).map(Form::Figure));
        let unknown = "no format of this has this ending; use .txt, .json, .csv, .svg, .png or .pdf";
        Ok(Self { output, files: open_files(&output.output, unknown, form)? })
    }

    /// # Errors
    /// Everything that could not be written, after the rest was.
    pub(crate) fn write(&self, answer: &impl FleetAnswer) -> anyhow::Result<()> {
        let standard = match self.output.format {
            FleetFormat::Text => Form::Text(Some(Stream::Output)),
            FleetFormat::Json => Form::Json,
            FleetFormat::Csv => Form::Csv,
        };
        let standard = prints(self.output.quiet, &self.output.output, matches!(standard, Form::Text(_))).then_some(standard);
        let render = |form: &Form| self.render(answer, *form);
        join_errors(write_everywhere(Stream::Output, standard.as_ref(), &self.files, render))
    }

    fn render(&self, answer: &impl FleetAnswer, form: Form) -> anyhow::Result<Vec<u8>> {
        Ok(match form {
            Form::Json => memgauge_render::json_text(answer)?,
            Form::Csv => answer.csv()?,
            Form::Figure(picture) => answer.figure(picture)?,
            Form::Text(None) => answer.text(FILE_WIDTH, false, true).into_bytes(),
            Form::Text(Some(stream)) => {
                let mut text = answer.text(stream.width(), stream.colours(), self.output.verbose);
                if self.output.quiet {
                    text.truncate(text.find('\n').map_or(text.len(), |end| end + 1));
                }
                text.into_bytes()
            }
        })
    }
}
