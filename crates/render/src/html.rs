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

pub(crate) use comparison::comparison_html;
use document::without_controls;

use crate::appearance::PageOptions;
use crate::format::{Format, Named, RenderError};

impl Format {
    /// A page that opens offline.
    pub const HTML: Self = Self::new("html", "html", " (a page)");
}

/// One page of all results.
pub(crate) fn results_html(results: &[Named<'_>], options: &PageOptions) -> Result<Vec<u8>, RenderError> {
    let page = match results {
        [only] => one::page(options, *only)?,
        _ => several::page(options, results)?,
    };
    Ok(without_controls(&page))
}
