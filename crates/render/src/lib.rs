//! Results in, bytes out: one file a format behind the trait [`Format`].
//!
//! Nothing here measures, does I/O or reads a clock, so that a saved result yields every format later.
#![forbid(unsafe_code)]

mod data;
pub mod figure;
pub mod mlc;
mod mlc_scan;
pub(crate) mod text;

use memgauge_core::result::Report;

pub use data::Json;
pub use figure::Picture;
pub use mlc_scan::mlc_scan;
pub use text::{Text, plan_text};

/// A format that a report can be written in.
pub trait Format {
    /// The name used on the command line, such as `text`.
    fn name(&self) -> &'static str;
    /// The whole report in this format.
    ///
    /// # Errors
    /// When the format cannot express the report.
    fn render(&self, report: &Report) -> Result<Vec<u8>, RenderError>;
    /// Several reports in this format: one after another, unless the format can show them together.
    ///
    /// # Errors
    /// When the format cannot express one of them.
    fn render_all(&self, results: &[Named<'_>]) -> Result<Vec<u8>, RenderError> {
        let mut bytes = Vec::new();
        for result in results {
            bytes.extend(self.render(result.report)?);
        }
        Ok(bytes)
    }
}

/// A report with a name that tells it from others, such as that of its file.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The name.
    pub name: &'a str,
    /// The report.
    pub report: &'a Report,
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The JSON writer refused it.
    #[error("the report cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A bitmap of it would not fit into memory.
    #[error("the figure of {width} x {height} units is too large for a bitmap; write .svg or .pdf")]
    TooLarge {
        /// In user units.
        width: f64,
        /// In user units.
        height: f64,
    },
}

/// Width in columns of text that goes to a file: what fits a page and most terminals.
pub const FILE_WIDTH: usize = 100;

/// The format that the ending of a file name asks for: `.json`, `.txt` for plain text, `.svg`, `.png` or `.pdf` for figures. `None` for
/// any other ending.
pub fn for_path(path: &str) -> Option<Box<dyn Format>> {
    match path.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
        "json" => Some(Box::new(Json { pretty: true })),
        "txt" => Some(Box::new(Text { width: FILE_WIDTH, colour: false })),
        "svg" => Some(Box::new(Picture::Svg)),
        "png" => Some(Box::new(Picture::Png)),
        "pdf" => Some(Box::new(Picture::Pdf)),
        _ => None,
    }
}
