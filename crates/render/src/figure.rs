//! Figures: the tables of results as pictures, in SVG, PNG and PDF.
//!
//! A [`Figure`] is a column of panels: charts, bars and heat maps. It is laid out by the widths of a bundled font and drawn into a
//! [`Scene`] of a few kinds of shapes, which three small writers turn into bytes. The same result always gives the same bytes.

mod axis;
mod bars;
mod chart;
mod fleet;
mod font;
pub(crate) mod frame;
mod guides;
mod heat;
mod histogram;
pub(crate) mod inline;
mod labels;
mod layout;
mod no_figure;
pub(crate) mod page_panel;
pub(crate) mod palette;
mod pdf;
mod png;
pub(crate) mod ratios;
pub(crate) mod results;
pub(crate) mod scene;
mod source;
pub(crate) mod svg;
mod working_set;

pub use crate::appearance::{FigureOptions, FigureWidth, Picture};
pub(crate) use fleet::fleet_outliers_figure;
pub use histogram::Histogram;
pub use layout::Figure;
pub(crate) use ratios::comparison_figure;
pub(crate) use results::results_figure;
pub use scene::{Area, Scene};
pub use working_set::{WorkingSet, WorkingSetLine, WorkingSetPoint};
