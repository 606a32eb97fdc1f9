//! Values of options: pages, widths, orders, shares and rates.

use clap::ValueEnum;
use memgauge_core::result::ChaseOrder;
use memgauge_core::spec::{PageRequest, WidthRequest};
use memgauge_core::traffic::Width;
use memgauge_core::units::ParseError;

/// The longest injection delay in core cycles. It is some milliseconds: with longer pauses between bursts there is no load left to measure.
pub(crate) const MAX_DELAY_CYCLES: u32 = 10_000_000;

/// Which pages.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum PagesArg {
    Auto,
    #[value(name = "4k")]
    Base,
    Thp,
    #[value(name = "2m")]
    Huge2M,
    #[value(name = "1g")]
    Huge1G,
}

impl From<PagesArg> for PageRequest {
    fn from(pages: PagesArg) -> Self {
        match pages {
            PagesArg::Auto => Self::Auto,
            PagesArg::Base => Self::Base,
            PagesArg::Thp => Self::Thp,
            PagesArg::Huge2M => Self::Huge2M,
            PagesArg::Huge1G => Self::Huge1G,
        }
    }
}

/// Which width of loads and stores.
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

/// In which order a chase visits lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OrderArg {
    WindowLocal,
    FullRandom,
    Sequential,
}

impl From<OrderArg> for ChaseOrder {
    fn from(order: OrderArg) -> Self {
        match order {
            OrderArg::WindowLocal => Self::WindowLocal,
            OrderArg::FullRandom => Self::FullRandom,
            OrderArg::Sequential => Self::Sequential,
        }
    }
}

impl OrderArg {
    /// The order, unless it is the default.
    pub(super) fn not_default(self) -> Option<ChaseOrder> {
        (self != Self::WindowLocal).then(|| self.into())
    }
}

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
