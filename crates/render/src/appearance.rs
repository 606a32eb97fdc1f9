//! How documents are shown: how wide text is, how figures are drawn, what a page is like.

use std::str::FromStr;

use memgauge_model::experiment_table::PanelName;

/// How a document is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Appearance {
    /// Columns of text; fewer than 60 count as 60.
    pub width: usize,
    /// Whether text has ANSI colours.
    pub colour: bool,
    /// Whether text explains everything: legends, evidence, and reasons below each table.
    pub verbose: bool,
    /// Whether text is one line: the verdict, or the headline.
    pub one_line: bool,
    /// How figures are drawn.
    pub figure: FigureOptions,
    /// What a page of HTML is like.
    pub page: PageOptions,
}

/// Columns of text that is written to a file: fits a page and most terminals.
pub const FILE_WIDTH: usize = 100;

impl Default for Appearance {
    /// As in a file.
    fn default() -> Self {
        Self {
            width: FILE_WIDTH,
            colour: false,
            verbose: true,
            one_line: false,
            figure: FigureOptions::default(),
            page: PageOptions::default(),
        }
    }
}

/// A page of HTML: one result in full, or several beside each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageOptions {
    /// The title of the page; the name of the machine if absent.
    pub title: Option<String>,
    /// Whether the results are in the page as JSON, too, to be saved from it.
    pub data: bool,
}

impl Default for PageOptions {
    fn default() -> Self {
        Self { title: None, data: true }
    }
}

/// How a figure is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureOptions {
    /// Only these panels, in the order of the result; all of them if empty.
    pub panels: Vec<PanelName>,
    /// The width of the whole figure; as wide as it needs if absent. The size of text does not depend on it.
    pub width: Option<FigureWidth>,
    /// With titles, explanations and where the results come from. Notes on missing and doubtful values are always there.
    pub titles: bool,
}

impl Default for FigureOptions {
    fn default() -> Self {
        Self { panels: Vec::new(), width: None, titles: true }
    }
}

/// The file types of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picture {
    /// Vectors, with text as text.
    Svg,
    /// Pixels, two to a user unit; 300 to an inch where the width was asked for in units of length.
    Png,
    /// Vectors, with the font embedded; a page for each panel.
    Pdf,
}

impl Picture {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Svg, Self::Png, Self::Pdf];

    /// The ending of its files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
            Self::Pdf => "pdf",
        }
    }
}

/// The width of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FigureWidth {
    /// In 1/96 inch.
    units: f64,
    /// Stated in mm, cm or in, and not in px.
    length: bool,
}

/// User units of an inch, as in SVG and CSS.
pub(crate) const UNITS_PER_INCH: f64 = 96.0;

/// The narrowest and the widest figure, in millimetres: axes need the one, and no paper and no screen has the other.
const NARROWEST_MM: f64 = 60.0;
const WIDEST_MM: f64 = 2000.0;
const MM_PER_INCH: f64 = 25.4;

impl FigureWidth {
    /// In 1/96 inch.
    pub fn units(self) -> f64 {
        self.units
    }

    /// Whether it was stated as a length on paper.
    pub fn is_length(self) -> bool {
        self.length
    }
}

impl FromStr for FigureWidth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let inches = match unit.trim_start() {
            "mm" => 1.0 / MM_PER_INCH,
            "cm" => 10.0 / MM_PER_INCH,
            "in" => 1.0,
            "px" => 1.0 / UNITS_PER_INCH,
            _ => return Err("a width has a unit: 85mm, 8.5cm, 3.3in or 800px".to_owned()),
        };
        let inches =
            inches * number.parse::<f64>().map_err(|_| "a width is a number with a unit: 85mm, 8.5cm, 3.3in or 800px".to_owned())?;
        // 60 mm is not a little less by binary rounding.
        if !(NARROWEST_MM - 1e-6..=WIDEST_MM + 1e-6).contains(&(inches * MM_PER_INCH)) {
            let px = |mm: f64| (mm / MM_PER_INCH * UNITS_PER_INCH).ceil();
            return Err(format!(
                "a figure is {NARROWEST_MM} mm to {WIDEST_MM} mm wide ({:.0}px to {:.0}px): labels do not fit below, and paper ends above",
                px(NARROWEST_MM),
                px(WIDEST_MM)
            ));
        }
        Ok(Self { units: inches * UNITS_PER_INCH, length: !unit.contains("px") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_in_every_unit() {
        for (text, units) in [("85mm", 321.26), ("8.5cm", 321.26), ("3.5in", 336.0), ("800px", 800.0), (" 120 mm ", 453.54)] {
            let width: FigureWidth = text.parse().unwrap();
            assert!((width.units() - units).abs() < 0.01, "{text}: {width:?}");
            assert_eq!(width.is_length(), text != "800px");
        }
        for text in ["", "85", "mm", "85 m", "1e3mm", "10mm", "3000mm", "-85mm", "8.5.1cm", "NaNmm"] {
            assert!(text.parse::<FigureWidth>().is_err(), "{text}");
        }
    }
}
