//! One page that opens offline: results, or a comparison, as HTML with figures, tables, and the data itself.
//!
//! Nothing is loaded: style, script, figures and data are in the file, and its content security policy allows nothing else. The page reads
//! without script, which only adds sorting, a search and values under the pointer. Words are those of the text ([`crate::text`]).

mod comparison;
mod data;
mod document;
mod figures;
mod groups;
mod one;
mod options;
mod several;
mod values;
mod view;

use memgauge_core::result::Report;

pub use comparison::comparison_html;
use document::without_controls;
pub use options::Html;

use crate::format::{Format, Named, RenderError};

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn render(&self, report: &Report) -> Result<Vec<u8>, RenderError> {
        self.render_all(&[Named { name: "", report }])
    }

    /// One page of all of them.
    fn render_all(&self, results: &[Named<'_>]) -> Result<Vec<u8>, RenderError> {
        let page = match results {
            [only] => one::page(self, *only)?,
            _ => several::page(self, results)?,
        };
        Ok(without_controls(&page))
    }
}
