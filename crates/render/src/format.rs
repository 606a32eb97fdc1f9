//! What an output format is.

use memgauge_core::result::Report;

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

/// A report with a name that tells it from others, such as the name of its file.
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
