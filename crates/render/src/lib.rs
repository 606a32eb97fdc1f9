//! Results in, bytes out: one file or folder for each format behind the trait [`Format`].
//!
//! Nothing here measures, does I/O or reads a clock, so every format can be made later from a saved result.
#![forbid(unsafe_code)]

mod csv;
pub mod figure;
mod fleet_csv;
mod format;
mod groups;
mod html;
mod json;
mod limit;
pub mod mlc;
mod mlc_scan;
mod number;
mod openmetrics;
mod pages;
mod text;

pub use csv::{Csv, cause, comparison_csv, durable};
pub use figure::{FigureFormat, FigureOptions, FigureWidth, Picture, comparison_figure, fleet_outliers_figure};
pub use fleet_csv::{fleet_baseline_csv, fleet_history_csv, fleet_outliers_csv};
pub use format::{Format, Named, RenderError};
pub use html::{Html, comparison_html};
pub use json::{Json, ReadError, json_text, read};
pub use mlc_scan::mlc_scan;
pub use openmetrics::hosts::{HostValues, openmetrics_of_hosts};
pub use openmetrics::{OpenMetrics, same_label};
pub use text::{
    OneLine, Text, advice_line, advice_text, comparison_line, comparison_text, duration, fleet_baseline_text, fleet_history_text,
    fleet_outliers_text, plan_line, plan_of_run_text, plan_text, published_text,
};

/// Columns of text that is written to a file: fits a page and most terminals.
pub const FILE_WIDTH: usize = 100;

/// The format for the ending of a file name: `.json`, `.txt` for plain text, `.csv`, `.prom` for OpenMetrics, `.html` for a page, `.svg`, `.png`
/// or `.pdf` for figures. `None` for any other
/// ending.
pub fn for_path(path: &str) -> Option<Box<dyn Format>> {
    match ending(path)?.as_str() {
        "json" => Some(Box::new(Json)),
        "csv" => Some(Box::new(Csv)),
        "prom" => Some(Box::new(OpenMetrics)),
        "html" | "htm" => Some(Box::new(Html::default())),
        "txt" => Some(Box::new(Text { width: FILE_WIDTH, colour: false, verbose: true })),
        _ => figure_for_path(path, &FigureOptions::default()),
    }
}

/// The format of a figure for the ending of a file name: `.svg`, `.png` or `.pdf`. `None` for any other ending.
pub fn figure_for_path(path: &str, options: &FigureOptions) -> Option<Box<dyn Format>> {
    Some(Box::new(FigureFormat { picture: picture_for_path(path)?, options: options.clone() }))
}

/// The type of a figure's file by the ending of its name.
pub fn picture_for_path(path: &str) -> Option<Picture> {
    match ending(path)?.as_str() {
        "svg" => Some(Picture::Svg),
        "png" => Some(Picture::Png),
        "pdf" => Some(Picture::Pdf),
        _ => None,
    }
}

fn ending(path: &str) -> Option<String> {
    Some(path.rsplit_once('.')?.1.to_ascii_lowercase())
}
