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
mod several;
mod values;
mod view;

use memgauge_core::result::Report;

pub use comparison::comparison_html;

use crate::format::{Format, Named, RenderError};

/// A page of HTML: one result in full, or several beside each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Html {
    /// What the page is called; the name of the machine if absent.
    pub title: Option<String>,
    /// Whether the results are in the page as JSON, too, to be saved from it.
    pub data: bool,
}

impl Default for Html {
    fn default() -> Self {
        Self { title: None, data: true }
    }
}

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
        Ok(page.into_bytes())
    }
}
