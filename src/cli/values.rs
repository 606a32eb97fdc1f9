//! Values of options: pages, widths, formats, shares and rates.

use clap::ValueEnum;
use memgauge_core::experiment::PageRequest;
use memgauge_core::spec::WidthRequest;
use memgauge_core::traffic::Width;
use memgauge_core::units::ParseError;

/// Which pages, on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Pages {
    Auto,
    #[value(name = "4k")]
    Base,
    Thp,
    #[value(name = "2m")]
    Huge2M,
    #[value(name = "1g")]
    Huge1G,
}

impl From<Pages> for PageRequest {
    fn from(pages: Pages) -> Self {
        match pages {
            Pages::Auto => Self::Auto,
            Pages::Base => Self::Base,
            Pages::Thp => Self::Thp,
            Pages::Huge2M => Self::Huge2M,
            Pages::Huge1G => Self::Huge1G,
        }
    }
}

/// Which width, on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum WidthArg {
    Best,
    Scalar,
    Sse2,
    Avx2,
    Avx512,
    Neon,
    String,
}

impl From<WidthArg> for WidthRequest {
    fn from(width: WidthArg) -> Self {
        Self::Is(match width {
            WidthArg::Best => return Self::Best,
            WidthArg::Scalar => Width::Scalar,
            WidthArg::Sse2 => Width::Sse2,
            WidthArg::Avx2 => Width::Avx2,
            WidthArg::Avx512 => Width::Avx512,
            WidthArg::Neon => Width::Neon,
            WidthArg::String => Width::String,
        })
    }
}

/// Which format, on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    Text,
    Json,
}

/// The longest injection delay, in core cycles: some milliseconds between bursts, below which nothing measures as load.
pub(crate) const MOST_CYCLES: u32 = 10_000_000;

/// A share of one: `1%`, `0.5%` or `0.01`.
pub(super) fn parse_percent(text: &str) -> Result<f64, ParseError> {
    let fail = || ParseError { input: text.into(), expected: "a percentage above 0 and below 50, such as 1% or 0.5%" };
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text.trim(), 1.0),
    };
    let share = number.trim().parse::<f64>().map_err(|_| fail())? / scale;
    if share > 0.0 && share < 0.5 { Ok(share) } else { Err(fail()) }
}

/// A bandwidth in GB/s.
pub(super) fn parse_gbs(text: &str) -> Result<f64, ParseError> {
    let gbs = text.trim().parse::<f64>().ok().filter(|gbs| gbs.is_finite() && *gbs > 0.0);
    gbs.ok_or_else(|| ParseError { input: text.into(), expected: "a bandwidth in GB/s, such as 307.2" })
}
