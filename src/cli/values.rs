//! Values of options: names, shares and rates.

use std::ffi::OsStr;
use std::str::FromStr as _;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};
use memgauge_model::experiment::{ChaseOrder, LineState, PageRequest, PrefetchRequest};
use memgauge_model::spec::WidthRequest;
use memgauge_model::traffic::{Access, LineUse, Mix, Width};
use memgauge_model::units::ParseError;

/// The longest injection delay in core cycles. It is some milliseconds: with longer pauses between bursts there is no load left to measure.
pub(crate) const MAX_DELAY_CYCLES: u32 = 10_000_000;

/// Kinds of pages.
pub(super) const PAGES: [(&str, PageRequest); 5] = [
    ("auto", PageRequest::Auto),
    ("4k", PageRequest::Base),
    ("thp", PageRequest::Thp),
    ("2m", PageRequest::Huge2M),
    ("1g", PageRequest::Huge1G),
];

/// Widths of loads and stores.
pub(super) const WIDTHS: [(&str, WidthRequest); 7] = [
    ("best", WidthRequest::Best),
    ("scalar", WidthRequest::Is(Width::Scalar)),
    ("sse2", WidthRequest::Is(Width::Sse2)),
    ("avx2", WidthRequest::Is(Width::Avx2)),
    ("avx512", WidthRequest::Is(Width::Avx512)),
    ("neon", WidthRequest::Is(Width::Neon)),
    ("string", WidthRequest::Is(Width::String)),
];

/// Orders in which a chase visits lines.
pub(super) const ORDERS: [(&str, ChaseOrder); 3] =
    [("window-local", ChaseOrder::WindowLocal), ("full-random", ChaseOrder::FullRandom), ("sequential", ChaseOrder::Sequential)];

/// Orders in which loaders visit lines.
pub(super) const ACCESSES: [(&str, Access); 2] = [("sequential", Access::Sequential), ("random", Access::Random)];

/// What loaders do with a line.
pub(super) const LINE_USES: [(&str, LineUse); 4] =
    [("whole", LineUse::Whole), ("part", LineUse::Part), ("write-back", LineUse::WrittenBack), ("check", LineUse::Checked)];

/// States of prefetchers.
pub(super) const PREFETCH: [(&str, PrefetchRequest); 3] =
    [("leave", PrefetchRequest::Leave), ("off", PrefetchRequest::Off), ("on", PrefetchRequest::On)];

/// States of lines in the holder's cache.
pub(super) const STATES: [(&str, LineState); 2] = [("hit", LineState::Hit), ("hitm", LineState::Hitm)];

/// Parses one of the names in a table.
pub(super) fn one_of<T: Copy + Send + Sync + 'static>(table: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    let value = |text: &str| table.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    PossibleValuesParser::new(table.iter().map(|(name, _)| *name))
        .try_map(move |text| value(&text).ok_or(ParseError { input: text, expected: "one of the possible values" }))
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
    parse_above_0(text, "a bandwidth in GB/s, such as 307.2")
}

/// A finite number above 0.
pub(super) fn parse_above_0(text: &str, expected: &'static str) -> Result<f64, ParseError> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| ParseError { input: text.into(), expected })
}
/// Reads a mix, and prints all of them where `help` is asked for.
#[derive(Clone)]
pub(super) struct MixParser;

impl TypedValueParser for MixParser {
    type Value = Mix;

    fn parse_ref(&self, command: &Command, option: Option<&Arg>, value: &OsStr) -> Result<Mix, clap::Error> {
        if value == "help" {
            return Err(clap::Error::raw(ErrorKind::DisplayHelp, all_mixes()));
        }
        Mix::from_str.parse_ref(command, option, value)
    }
}

/// Every mix, a line each: its name, what the program does, what crosses the memory bus.
fn all_mixes() -> String {
    let row = |name: &str, program: &str, bus: &str| format!("  {name:<10}  {program:<40}  {bus}\n");
    let mut text = "Mixes. As in Intel MLC, names count what crosses the memory bus if a plain store reads its\n\
                    line first: 2:1 is 1 load : 1 store, and 1:1 is stores only. Others name what the program does.\n\n"
        .to_owned();
    text += &row("mix", "the program", "reads : writes on the bus");
    for mix in Mix::ALL {
        let bus = mix.bus_lines().map_or("depends on the instruction".to_owned(), |(reads, writes)| format!("{reads} : {writes}"));
        text += &row(mix.name(), mix.description(), &bus);
    }
    text
}
