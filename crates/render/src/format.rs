//! Documents and formats: anything that is shown is a document, and a format turns it into bytes.

use std::path::Path;

use memgauge_model::result::Report;

use crate::appearance::{Appearance, Picture};

/// A format of output. Each is declared where it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    name: &'static str,
    ending: &'static str,
    note: &'static str,
}

impl Format {
    /// Aligned tables for people.
    pub const TEXT: Self = Self::new("text", "txt", "");
    /// Data for programs.
    pub const JSON: Self = Self::new("json", "json", "");
    /// A figure of vectors for a browser or an editor.
    pub const SVG: Self = Self::of_picture(Picture::Svg);
    /// A figure of pixels.
    pub const PNG: Self = Self::of_picture(Picture::Png);
    /// A figure of vectors for print.
    pub const PDF: Self = Self::of_picture(Picture::Pdf);

    /// A format by its name on the command line, the ending of its files, and what the list of endings says of it.
    pub(crate) const fn new(name: &'static str, ending: &'static str, note: &'static str) -> Self {
        Self { name, ending, note }
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The file type of a figure, which goes to files only.
    pub fn picture(self) -> Option<Picture> {
        Picture::ALL.into_iter().find(|picture| picture.name() == self.name)
    }

    /// Whether it is a figure.
    pub fn is_figure(self) -> bool {
        self.picture().is_some()
    }

    /// Figures of this file type.
    pub const fn of_picture(picture: Picture) -> Self {
        Self::new(picture.name(), picture.name(), "")
    }

    /// The one of `formats` that the ending of a file's name chooses.
    pub fn for_path(path: &Path, formats: &[Self]) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        let ending = if ending == "htm" { "html" } else { &ending };
        formats.iter().copied().find(|format| format.ending == ending)
    }

    /// The one of `formats` with this name.
    pub fn by_name(name: &str, formats: &[Self]) -> Option<Self> {
        formats.iter().copied().find(|format| format.name() == name)
    }

    /// The endings of files in these formats, as help lists them: `.txt, .json, or .svg, .png, .pdf for figures`.
    pub fn described_endings(formats: &[Self]) -> String {
        let ending = |format: &Self| format!(".{}{}", format.ending, format.note);
        let (figures, others): (Vec<Self>, Vec<Self>) = formats.iter().partition(|format| format.is_figure());
        let others: Vec<String> = others.iter().map(ending).collect();
        if figures.is_empty() {
            return either(&others);
        }
        format!("{}, or {} for figures", others.join(", "), figures.iter().map(ending).collect::<Vec<_>>().join(", "))
    }

    /// The endings alone: `.txt, .json or .csv`.
    pub fn endings(formats: &[Self]) -> String {
        either(&formats.iter().map(|format| format!(".{}", format.ending)).collect::<Vec<_>>())
    }
}

/// `a, b or c`.
fn either(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

/// Everything that can be shown. Nothing here measures or does I/O, so every format can be made later from what was saved.
pub trait Document {
    /// Its name in messages, such as `a plan`.
    const NAME: &'static str;
    /// The formats that it has.
    const FORMATS: &'static [Format];

    /// Text for people.
    fn text(&self, appearance: &Appearance) -> String;

    /// The same in one line.
    fn line(&self, appearance: &Appearance) -> String {
        let text = self.text(appearance);
        text.split_inclusive('\n').next().unwrap_or_default().to_owned()
    }

    /// JSON for programs.
    ///
    /// # Errors
    /// When the writer refuses it.
    fn json(&self) -> Result<Vec<u8>, RenderError>;

    /// Any other format that it has.
    ///
    /// # Errors
    /// When the format cannot express it.
    fn other(&self, format: Format, _appearance: &Appearance) -> Result<Vec<u8>, RenderError> {
        Err(RenderError::NoFormat(format.name(), Self::NAME))
    }

    /// The document in a format.
    ///
    /// # Errors
    /// When it does not have the format, or the format cannot express it.
    fn render(&self, format: Format, appearance: &Appearance) -> Result<Vec<u8>, RenderError> {
        match format {
            Format::TEXT if appearance.one_line => Ok(self.line(appearance).into_bytes()),
            Format::TEXT => Ok(self.text(appearance).into_bytes()),
            Format::JSON => self.json(),
            other => self.other(other, appearance),
        }
    }
}

/// A report with a name that tells it from others, such as the name of its file.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The name.
    pub name: &'a str,
    /// The report.
    pub report: &'a Report,
}

/// Why something could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// It does not have this format.
    #[error("{1} has no format '{0}'")]
    NoFormat(&'static str, &'static str),
    /// The JSON writer refused it.
    #[error("the report cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// It holds nothing that a figure shows.
    #[error("nothing to draw: {0}")]
    NothingToDraw(String),
    /// A panel was asked for that the figure does not have.
    #[error("the result has no panel '{asked}'; its panels: {has}")]
    NoPanel {
        /// The name that was asked for.
        asked: &'static str,
        /// The names of those that there are.
        has: String,
    },
    /// The CSV writer refused it.
    #[error("the report cannot be written as CSV: {0}")]
    Csv(#[from] csv::Error),
    /// The OpenMetrics writer refused it.
    #[error("the report cannot be written as OpenMetrics: {0}")]
    OpenMetrics(#[from] std::fmt::Error),
    /// The template of a page refused it.
    #[error("the report cannot be written as HTML: {0}")]
    Html(#[from] askama::Error),
    /// A bitmap of it would not fit into memory.
    #[error("the figure of {width} x {height} units is too large for a bitmap; write .svg or .pdf")]
    TooLarge {
        /// In user units.
        width: f64,
        /// In user units.
        height: f64,
    },
}
