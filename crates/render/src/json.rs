//! JSON: the result contract itself, written and read.

use std::borrow::Cow;
use std::io;

use memgauge_model::printable::escape_json;
use memgauge_model::result::{Report, SCHEMA_VERSION, StateChange, WatchPoint};
use memgauge_model::words::Knob;
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use crate::format::RenderError;

/// The report as JSON, by the contract in `schema/result.schema.json`.
pub(crate) fn report_json(report: &Report) -> Result<Vec<u8>, RenderError> {
    let mut bytes = Vec::new();
    let compact = report.compact();
    // A result of thousands has one line without blanks, which would be a fifth of the file: programs read it.
    let layout = Layout { max_depth: if compact.is_some() { MAX_DEPTH - 1 } else { MAX_DEPTH }, ..Layout::default() };
    serde::Serialize::serialize(compact.as_ref().unwrap_or(report), &mut Serializer::with_formatter(&mut bytes, layout))?;
    bytes.push(b'\n');
    Ok(clean(bytes))
}

/// A value as JSON that people can read, with an end of line.
///
/// # Errors
/// When it has no form in JSON.
pub fn json_text(value: &impl serde::Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(clean(bytes))
}

/// One line of JSON: a stamp of a watched machine, with the change that it shows.
///
/// # Errors
/// When it has no form in JSON.
pub fn watch_json_line(point: &WatchPoint, change: Option<&StateChange>) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(serde::Serialize)]
    struct Line<'a> {
        #[serde(flatten)]
        point: &'a WatchPoint,
        #[serde(skip_serializing_if = "Option::is_none")]
        change: Option<&'a StateChange>,
    }
    let mut bytes = serde_json::to_vec(&Line { point, change })?;
    bytes.push(b'\n');
    Ok(clean(bytes))
}

/// JSON without what a terminal would obey.
fn clean(bytes: Vec<u8>) -> Vec<u8> {
    match std::str::from_utf8(&bytes).map(escape_json) {
        Ok(Cow::Owned(clean)) => clean.into_bytes(),
        _ => bytes,
    }
}

/// Lists and objects nested deeper than this stand on one line. The report, its results and the fields of a result get lines of their own;
/// samples and evidence do not.
const MAX_DEPTH: usize = 3;

/// Lines and blanks so that people can read the file, and so that it stays small.
#[derive(Default)]
struct Layout {
    /// [`MAX_DEPTH`], or less.
    max_depth: usize,
    /// Lists and objects that are open.
    depth: usize,
    /// Whether the innermost of them is empty so far.
    empty: bool,
}

impl Layout {
    fn open<W: ?Sized + io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.empty = true;
        writer.write_all(bracket)
    }

    fn close<W: ?Sized + io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if !self.empty && self.depth < self.max_depth {
            self.line(writer)?;
        }
        self.empty = false;
        writer.write_all(bracket)
    }

    fn after_comma<W: ?Sized + io::Write>(&self, writer: &mut W, first: bool) -> io::Result<()> {
        match () {
            () if self.depth <= self.max_depth => self.line(writer),
            () if first || self.is_dense() => Ok(()),
            () => writer.write_all(b" "),
        }
    }

    /// Whether blanks are left out here.
    const fn is_dense(&self) -> bool {
        self.max_depth < MAX_DEPTH && self.depth > self.max_depth
    }

    fn line<W: ?Sized + io::Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for Layout {
    /// Of thousands of results seven digits: more than any clock resolves, and one more than samples have.
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let exact = self.max_depth == MAX_DEPTH || value.fract() == 0.0;
        let rounded = if exact { value } else { format!("{value:.6e}").parse().unwrap_or(value) };
        CompactFormatter.write_f64(writer, rounded)
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.empty = false;
        if !first {
            writer.write_all(b",")?;
        }
        // Lists of lists are samples and matrices: a blank for each number would be a seventh of the file.
        if self.depth > self.max_depth + 1 {
            return Ok(());
        }
        self.after_comma(writer, first)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.empty = false;
        if !first {
            writer.write_all(b",")?;
        }
        self.after_comma(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(if self.is_dense() { b":" } else { b": " })
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }
}

/// Why bytes are not a report that can be read. Each message is what follows the name of the file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// They are not JSON.
    #[error("is not JSON ({0}); give a file that memgauge wrote with {format} json or -o FILE.json", format = Knob::Format)]
    NotJson(serde_json::Error),
    /// They are JSON of something else.
    #[error("is JSON, but no result of memgauge (no schema_version)")]
    NoResult,
    /// Its schema is older than [`SCHEMA_VERSION`].
    #[error(
        "has schema version {0}, and this memgauge reads version {SCHEMA_VERSION}; render it with the memgauge that wrote it, or measure again"
    )]
    TooOld(u64),
    /// Its schema is newer.
    #[error("has schema version {0}, and this memgauge reads version {SCHEMA_VERSION}; a newer memgauge wrote it: update memgauge")]
    TooNew(u64),
    /// It has the right version and breaks the schema.
    #[error("is damaged: {0}")]
    Damaged(serde_json::Error),
}

/// The part that all versions have.
#[derive(Deserialize)]
struct Head {
    schema_version: u64,
}

/// Reads a report that was saved as JSON.
///
/// # Errors
/// When it is not a report, or has another schema version.
pub fn read(bytes: &[u8]) -> Result<Report, ReadError> {
    // The rest of the text is checked, and takes no memory: a report of another version may have any form.
    let version = match serde_json::from_slice(bytes) {
        Ok(Head { schema_version }) => schema_version,
        Err(error) if error.is_data() => return Err(ReadError::NoResult),
        Err(error) => return Err(ReadError::NotJson(error)),
    };
    match version {
        version if version < u64::from(SCHEMA_VERSION) => Err(ReadError::TooOld(version)),
        version if version > u64::from(SCHEMA_VERSION) => Err(ReadError::TooNew(version)),
        _ => {
            let mut report: Report = serde_json::from_slice(bytes).map_err(ReadError::Damaged)?;
            report.expand();
            match report.beyond_bounds() {
                Some(what) => Err(ReadError::Damaged(serde_json::Error::custom(what))),
                None => Ok(report),
            }
        }
    }
}
