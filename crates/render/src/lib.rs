//! Documents in, bytes out: whatever is shown is a [`Document`], in one of the formats of [`Format`].
//!
//! Nothing here measures, does I/O or reads a clock, so every format can be made later from a saved result.
#![forbid(unsafe_code)]

use memgauge_analysis::advice::Advice;
use memgauge_analysis::comparison::Comparison;
use memgauge_analysis::fleet::{ComparedNumber, FleetBaseline, FleetHistory, FleetOutliers};
use memgauge_analysis::reference::PublishedValue;
use memgauge_model::plan::Plan;
use memgauge_model::result::Report;
use memgauge_model::topology::Machine;

mod appearance;
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
mod pivot;
mod text;

pub use appearance::{Appearance, FILE_WIDTH, FigureOptions, FigureWidth, PageOptions, Picture};
pub use csv::cause;
pub use format::{Document, Format, Named, RenderError};
pub use json::watch_json_line;
pub use json::{ReadError, json_text, read};
pub use mlc_scan::mlc_scan;
pub use openmetrics::hosts::{HostValues, openmetrics_of_hosts};
pub use openmetrics::same_label;
pub use text::{duration, plan_of_run_text, watch_head, watch_line};

/// Several results. Text and JSON show one after another, all other formats show them together.
impl Document for [Named<'_>] {
    const NAME: &'static str = "a result";
    const FORMATS: &'static [Format] =
        &[Format::TEXT, Format::JSON, Format::CSV, Format::OPENMETRICS, Format::HTML, Format::SVG, Format::PNG, Format::PDF];

    fn text(&self, appearance: &Appearance) -> String {
        self.iter().map(|result| text::report_text(result.report, appearance)).collect()
    }

    fn line(&self, _appearance: &Appearance) -> String {
        self.iter().map(|result| text::report_line(result.report)).collect()
    }

    fn json(&self) -> Result<Vec<u8>, RenderError> {
        let reports: Result<Vec<Vec<u8>>, RenderError> = self.iter().map(|result| json::report_json(result.report)).collect();
        Ok(reports?.concat())
    }

    fn other(&self, format: Format, appearance: &Appearance) -> Result<Vec<u8>, RenderError> {
        match format {
            Format::CSV => csv::results_csv(self),
            Format::OPENMETRICS => openmetrics::openmetrics(self),
            Format::HTML => html::results_html(self, &appearance.page),
            _ => figure_of::<Self>(format, |picture| figure::results_figure(self, picture, &appearance.figure)),
        }
    }
}

impl Document for Report {
    const NAME: &'static str = <[Named<'_>]>::NAME;
    const FORMATS: &'static [Format] = <[Named<'_>]>::FORMATS;

    fn text(&self, appearance: &Appearance) -> String {
        alone(self).text(appearance)
    }

    fn line(&self, appearance: &Appearance) -> String {
        alone(self).line(appearance)
    }

    fn json(&self) -> Result<Vec<u8>, RenderError> {
        alone(self).json()
    }

    fn other(&self, format: Format, appearance: &Appearance) -> Result<Vec<u8>, RenderError> {
        alone(self).other(format, appearance)
    }
}

/// A result that needs no name.
fn alone(report: &Report) -> [Named<'_>; 1] {
    [Named { name: "", report }]
}

/// A document as a figure, if the format is one.
fn figure_of<D: Document + ?Sized>(format: Format, draw: impl Fn(Picture) -> Result<Vec<u8>, RenderError>) -> Result<Vec<u8>, RenderError> {
    draw(format.picture().ok_or(RenderError::NoFormat(format.name(), D::NAME))?)
}

const TEXT_AND_JSON: &[Format] = &[Format::TEXT, Format::JSON];
const WITH_CSV: &[Format] = &[Format::TEXT, Format::JSON, Format::CSV];

/// A plan, and the machine that it is for.
#[derive(Debug, Clone, Copy)]
pub struct PlannedRun<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The machine that it is for.
    pub machine: &'a Machine,
}

impl Document for PlannedRun<'_> {
    const NAME: &'static str = "a plan";
    const FORMATS: &'static [Format] = TEXT_AND_JSON;

    fn text(&self, appearance: &Appearance) -> String {
        text::lay_out(&text::plan_blocks(self.plan, self.machine), appearance.width, false)
    }
    fn line(&self, _: &Appearance) -> String {
        text::plan_line(self.plan)
    }
    fn json(&self) -> Result<Vec<u8>, RenderError> {
        Ok(json_text(self.plan)?)
    }
}

impl Document for Comparison {
    const NAME: &'static str = "a comparison";
    const FORMATS: &'static [Format] = &[Format::TEXT, Format::JSON, Format::CSV, Format::HTML, Format::SVG, Format::PNG, Format::PDF];

    fn text(&self, appearance: &Appearance) -> String {
        text::lay_out(&text::comparison_blocks(self, appearance.verbose), appearance.width, appearance.colour)
    }
    fn line(&self, _: &Appearance) -> String {
        text::comparison_line(self)
    }
    fn json(&self) -> Result<Vec<u8>, RenderError> {
        Ok(json_text(self)?)
    }
    fn other(&self, format: Format, appearance: &Appearance) -> Result<Vec<u8>, RenderError> {
        match format {
            Format::CSV => csv::comparison_csv(self),
            Format::HTML => html::comparison_html(self),
            _ => figure_of::<Self>(format, |picture| figure::comparison_figure(self, picture, &appearance.figure)),
        }
    }
}

impl Document for Advice {
    const NAME: &'static str = "advice";
    const FORMATS: &'static [Format] = TEXT_AND_JSON;

    fn text(&self, appearance: &Appearance) -> String {
        text::lay_out(&text::advice_blocks(self), appearance.width, appearance.colour)
    }
    fn line(&self, _: &Appearance) -> String {
        text::advice_line(self)
    }
    fn json(&self) -> Result<Vec<u8>, RenderError> {
        Ok(json_text(self)?)
    }
}

/// Published values.
#[derive(Debug)]
pub struct Published<'a> {
    /// The values.
    pub values: Vec<PublishedValue<'a>>,
    /// Each with its method and source.
    pub sources: bool,
}

impl Document for Published<'_> {
    const NAME: &'static str = "a list of published values";
    const FORMATS: &'static [Format] = TEXT_AND_JSON;

    fn text(&self, appearance: &Appearance) -> String {
        text::lay_out(&text::published_blocks(&self.values, self.sources), appearance.width, appearance.colour)
    }
    fn json(&self) -> Result<Vec<u8>, RenderError> {
        Ok(json_text(&self.values)?)
    }
}

/// Slow hosts of a fleet.
pub struct Outliers<'a> {
    /// What was found.
    pub found: &'a FleetOutliers,
    /// The values of all hosts, for a figure.
    pub numbers: &'a dyn Fn() -> Vec<ComparedNumber>,
}

impl Document for Outliers<'_> {
    const NAME: &'static str = "a list of slow hosts";
    const FORMATS: &'static [Format] = &[Format::TEXT, Format::JSON, Format::CSV, Format::SVG, Format::PNG, Format::PDF];

    fn text(&self, appearance: &Appearance) -> String {
        text::lay_out(&text::fleet_outliers_blocks(self.found, appearance.verbose), appearance.width, appearance.colour)
    }
    fn json(&self) -> Result<Vec<u8>, RenderError> {
        Ok(json_text(self.found)?)
    }
    fn other(&self, format: Format, appearance: &Appearance) -> Result<Vec<u8>, RenderError> {
        match format {
            Format::CSV => fleet_csv::fleet_outliers_csv(self.found),
            _ => figure_of::<Self>(format, |picture| {
                figure::fleet_outliers_figure(self.found, &(self.numbers)(), picture, &appearance.figure)
            }),
        }
    }
}

impl Document for FleetBaseline {
    const NAME: &'static str = "a baseline";
    const FORMATS: &'static [Format] = WITH_CSV;

    fn text(&self, appearance: &Appearance) -> String {
        text::lay_out(&text::fleet_baseline_blocks(self, appearance.verbose), appearance.width, appearance.colour)
    }
    fn json(&self) -> Result<Vec<u8>, RenderError> {
        Ok(json_text(self)?)
    }
    fn other(&self, format: Format, _: &Appearance) -> Result<Vec<u8>, RenderError> {
        match format {
            Format::CSV => fleet_csv::fleet_baseline_csv(self),
            _ => Err(RenderError::NoFormat(format.name(), Self::NAME)),
        }
    }
}

impl Document for FleetHistory {
    const NAME: &'static str = "a history";
    const FORMATS: &'static [Format] = WITH_CSV;

    fn text(&self, appearance: &Appearance) -> String {
        text::lay_out(&text::fleet_history_blocks(self, appearance.verbose), appearance.width, appearance.colour)
    }
    fn json(&self) -> Result<Vec<u8>, RenderError> {
        Ok(json_text(self)?)
    }
    fn other(&self, format: Format, _: &Appearance) -> Result<Vec<u8>, RenderError> {
        match format {
            Format::CSV => fleet_csv::fleet_history_csv(self),
            _ => Err(RenderError::NoFormat(format.name(), Self::NAME)),
        }
    }
}
