//! Results in, bytes out: one file or folder for each format behind the trait [`Format`].
//!
//! Nothing here measures, does I/O or reads a clock, so every format can be made later from a saved result.
#![forbid(unsafe_code)]

pub mod figure;
mod format;
mod groups;
mod json;
pub mod mlc;
mod mlc_scan;
mod number;
mod pages;
mod text;

pub use figure::Picture;
pub use format::{Format, Named, RenderError};
pub use json::{Json, ReadError, read};
pub use mlc_scan::mlc_scan;
pub use text::{Text, plan_of_run_text, plan_text};

/// Columns of text that is written to a file: fits a page and most terminals.
pub const FILE_WIDTH: usize = 100;

/// The format for the ending of a file name: `.json`, `.txt` for plain text, `.svg`, `.png` or `.pdf` for figures. `None` for any other
/// ending.
pub fn for_path(path: &str) -> Option<Box<dyn Format>> {
    match path.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
        "json" => Some(Box::new(Json)),
        "txt" => Some(Box::new(Text { width: FILE_WIDTH, colour: false, verbose: true })),
        "svg" => Some(Box::new(Picture::Svg)),
        "png" => Some(Box::new(Picture::Png)),
        "pdf" => Some(Box::new(Picture::Pdf)),
        _ => None,
    }
}
