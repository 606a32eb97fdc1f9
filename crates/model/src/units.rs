//! Units as types: bytes, id sets and durations, with the spellings that people type.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::printable::escape_controls;

/// A text that cannot be parsed, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is not {expected}", excerpt(input))]
pub struct ParseError {
    /// What was typed.
    pub input: String,
    /// The accepted form, with an example.
    pub expected: &'static str,
}

impl ParseError {
    pub(crate) fn new(input: &str, expected: &'static str) -> Self {
        Self { input: input.to_owned(), expected }
    }
}

/// Characters of a text that a message quotes: enough to find the place.
const QUOTED: usize = 80;

/// The beginning of a text, for a message that quotes it. Control characters are escaped: a terminal would obey them.
pub fn excerpt(text: &str) -> String {
    let mut quoted = escape_controls(&text.chars().take(QUOTED).collect::<String>());
    if text.chars().nth(QUOTED).is_some() {
        quoted.push('…');
    }
    quoted
}

/// An amount of memory.
///
/// `K`, `M`, `G`, `T` and `KiB` … are binary (1024), as is usual for memory; `KB`, `MB`, `GB`, `TB` are decimal. Upper and lower case are
/// the same; a plain number is bytes. `Display` prints the largest binary unit that is exact, which parses back to the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// `n` KiB.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }
    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }
    /// `n` GiB.
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }
}

const SIZE: &str = "a size such as 512M, 64KiB, 2G, 100MB or plain bytes";

impl FromStr for Bytes {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = || ParseError::new(text, SIZE);
        let t = text.trim();
        let split = t.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(t.len());
        let factor: u64 = match t[split..].trim_start().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(fail()),
        };
        // Whole numbers are exact beyond what floating-point numbers are.
        if let Ok(number) = t[..split].parse::<u64>() {
            return number.checked_mul(factor).map(Self).ok_or_else(fail);
        }
        let number: f64 = t[..split].parse().map_err(|_| fail())?;
        let bytes = (number * factor as f64).round();
        if factor > 1 && bytes >= 1.0 && bytes < u64::MAX as f64 { Ok(Self(bytes as u64)) } else { Err(fail()) }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        let text = match units.iter().find(|(size, _)| self.0 >= *size && self.0.is_multiple_of(*size)) {
            Some((size, unit)) => format!("{} {unit}", self.0 / size),
            None => format!("{} B", self.0),
        };
        f.pad(&text)
    }
}

/// A set of CPU or node numbers in the kernel's list form: `0-3,8,16-31:4` (the last: every fourth).
///
/// It holds ranges, so what a list costs depends on its length and not on the numbers in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IdSet(
    /// The first and the last number of each range, ascending. Between two ranges a number is missing.
    Vec<(u32, u32)>,
);

/// Numbers of CPUs and nodes are below this. Kernels are built for 8,192 CPUs and 1,024 nodes at most; a larger number is a typing error.
pub const MAX_ID: u32 = 1 << 16;
const ID_LIST: &str = "a list such as 0-3,8";
const SMALL_IDS: &str = "a list such as 0-3,8 of numbers below 65536";

impl IdSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self(Vec::new())
    }
    /// The set of one number.
    pub fn one(id: u32) -> Self {
        Self(vec![(id, id)])
    }
    /// The set of all numbers in these ranges, which may overlap.
    fn from_ranges(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        ranges.dedup_by(|next, last| {
            let joined = next.0 <= last.1.saturating_add(1);
            last.1 = if joined { last.1.max(next.1) } else { last.1 };
            joined
        });
        Self(ranges)
    }
    /// Whether `id` is in the set.
    pub fn contains(&self, id: u32) -> bool {
        self.0.get(self.0.partition_point(|range| range.1 < id)).is_some_and(|range| range.0 <= id)
    }
    /// Adds `id`. To add many numbers, collect them: that is faster.
    pub fn insert(&mut self, id: u32) {
        if !self.contains(id) {
            let mut ranges = std::mem::take(&mut self.0);
            ranges.push((id, id));
            *self = Self::from_ranges(ranges);
        }
    }
    /// The numbers, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.0.iter().flat_map(|&(low, high)| low..=high)
    }
    /// The lowest number.
    pub fn first(&self) -> Option<u32> {
        self.0.first().map(|range| range.0)
    }
    /// The highest number.
    pub fn last(&self) -> Option<u32> {
        self.0.last().map(|range| range.1)
    }
    /// How many numbers.
    pub fn len(&self) -> usize {
        self.0.iter().map(|(low, high)| (high - low) as usize + 1).sum()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Those in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut both, mut mine, mut theirs) = (Vec::new(), 0, 0);
        while let (Some(a), Some(b)) = (self.0.get(mine), other.0.get(theirs)) {
            let (low, high) = (a.0.max(b.0), a.1.min(b.1));
            if low <= high {
                both.push((low, high));
            }
            if a.1 <= b.1 { mine += 1 } else { theirs += 1 }
        }
        Self(both)
    }
    /// Those in this set and not in the other.
    pub fn difference(&self, other: &Self) -> Self {
        let (mut gaps, mut next) = (Vec::new(), Some(0));
        for &(low, high) in &other.0 {
            gaps.extend(next.filter(|&next| next < low).map(|next| (next, low - 1)));
            next = high.checked_add(1);
        }
        gaps.extend(next.map(|next| (next, u32::MAX)));
        self.intersection(&Self(gaps))
    }
    /// Those in either set.
    pub fn union(&self, other: &Self) -> Self {
        Self::from_ranges([self.0.as_slice(), &other.0].concat())
    }
    /// Whether every number of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.intersection(other) == *self
    }
}

/// By their numbers, as in a dictionary.
impl Ord for IdSet {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl PartialOrd for IdSet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromIterator<u32> for IdSet {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> Self {
        Self::from_ranges(ids.into_iter().map(|id| (id, id)).collect())
    }
}

impl FromStr for IdSet {
    type Err = ParseError;
    /// The empty text is the empty set, as in sysfs.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = || ParseError::new(text, ID_LIST);
        let number = |t: &str| match t.parse::<u32>() {
            Ok(n) if n < MAX_ID && t.starts_with(|c: char| c.is_ascii_digit()) => Ok(n),
            Ok(_) if t.starts_with(|c: char| c.is_ascii_digit()) => Err(ParseError::new(text, SMALL_IDS)),
            _ => Err(fail()),
        };
        let mut ranges = Vec::new();
        if text.trim().is_empty() {
            return Ok(Self(ranges));
        }
        for part in text.trim().split(',') {
            let (range, step) = match part.split_once(':') {
                Some((range, step)) => (range, number(step)?),
                None => (part, 1),
            };
            let (low, high) = match range.split_once('-') {
                Some((low, high)) => (number(low)?, number(high)?),
                None => (number(range)?, number(range)?),
            };
            if step == 0 || low > high {
                return Err(fail());
            }
            match step {
                1 => ranges.push((low, high)),
                _ => ranges.extend((low..=high).step_by(step as usize).map(|id| (id, id))),
            }
            // A list with more ranges than there are ids names some ids again and again.
            if ranges.len() > MAX_ID as usize {
                return Err(fail());
            }
        }
        Ok(Self::from_ranges(ranges))
    }
}

impl fmt::Display for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |&(low, high): &(u32, u32)| if low == high { low.to_string() } else { format!("{low}-{high}") };
        f.pad(&self.0.iter().map(range).collect::<Vec<_>>().join(","))
    }
}

impl TryFrom<String> for IdSet {
    type Error = ParseError;
    /// Without steps: in a file of results a few characters would stand for thousands of ranges.
    fn try_from(text: String) -> Result<Self, ParseError> {
        if text.contains(':') { Err(ParseError::new(&text, ID_LIST)) } else { text.parse() }
    }
}

impl From<IdSet> for String {
    fn from(set: IdSet) -> Self {
        set.to_string()
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for IdSet {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IdSet".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "CPU or node numbers in the kernel's list form, such as 0-3,8",
            "pattern": "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$"
        })
    }
}

/// Parses a duration: `2`, `2s`, `0.5s`, `500ms`, `1m`, `1m30s`, `2h`. A plain number is seconds.
///
/// # Errors
/// When the text is none of these, or the duration is zero, negative, or longer than a day.
pub fn parse_duration(text: &str) -> Result<Duration, ParseError> {
    let fail = || ParseError::new(text, "a duration such as 2s, 500ms or 1m30s");
    let of_number = |c: char| c.is_ascii_digit() || c == '.';
    let (mut rest, mut seconds, mut parts) = (text.trim(), 0.0, 0);
    while parts == 0 || !rest.is_empty() {
        let end = rest.find(|c| !of_number(c)).unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().map_err(|_| fail())?;
        rest = rest[end..].trim_start();
        let end = rest.find(of_number).unwrap_or(rest.len());
        seconds += match rest[..end].trim_end() {
            "" if parts == 0 && rest.is_empty() => number,
            "s" => number,
            "ms" => number / 1e3,
            "us" | "µs" => number / 1e6,
            "m" | "min" => number * 60.0,
            "h" => number * 3600.0,
            _ => return Err(fail()),
        };
        rest = &rest[end..];
        parts += 1;
    }
    // Less than half a nanosecond is above zero as a number and zero as a duration.
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| fail())?;
    if duration.is_zero() || duration > Duration::from_secs(86_400) { Err(fail()) } else { Ok(duration) }
}

/// Whether a value is the default one, which serde leaves out of files.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
