//! Documents in the formats that tests ask for.

use std::path::Path;

use memgauge_analysis::comparison::Comparison;
use memgauge_analysis::fleet::{ComparedNumber, FleetOutliers};
use memgauge_model::plan::Plan;
use memgauge_model::result::Report;
use memgauge_model::topology::Machine;
use memgauge_render::{Appearance, Document, FigureOptions, Format, Outliers, Picture, PlannedRun, RenderError};

/// The format that a file's ending chooses.
pub(crate) fn format(path: &str) -> Format {
    Format::for_path(Path::new(path), Report::FORMATS).unwrap()
}

pub(crate) fn plan_text(plan: &Plan, machine: &Machine, width: usize) -> String {
    PlannedRun { plan, machine }.text(&Appearance { width, ..Appearance::default() })
}

pub(crate) fn comparison_text(comparison: &Comparison, width: usize, colour: bool, verbose: bool) -> String {
    comparison.text(&Appearance { width, colour, verbose, ..Appearance::default() })
}

pub(crate) fn comparison_csv(comparison: &Comparison) -> Result<Vec<u8>, RenderError> {
    comparison.render(Format::CSV, &Appearance::default())
}

pub(crate) fn comparison_html(comparison: &Comparison) -> Result<Vec<u8>, RenderError> {
    comparison.render(Format::HTML, &Appearance::default())
}

pub(crate) fn comparison_figure(comparison: &Comparison, picture: Picture, options: &FigureOptions) -> Result<Vec<u8>, RenderError> {
    comparison.render(Format::of_picture(picture), &Appearance { figure: options.clone(), ..Appearance::default() })
}

pub(crate) fn fleet_outliers_figure(
    found: &FleetOutliers,
    numbers: &[ComparedNumber],
    picture: Picture,
    options: &FigureOptions,
) -> Result<Vec<u8>, RenderError> {
    let outliers = Outliers { found, numbers: &|| numbers.to_vec() };
    outliers.render(Format::of_picture(picture), &Appearance { figure: options.clone(), ..Appearance::default() })
}
