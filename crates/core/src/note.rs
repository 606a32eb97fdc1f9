//! What a reader should know besides the numbers: a stable code, what was seen, what to do about it.

use serde::{Deserialize, Serialize};

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Explains a number.
    Info,
    /// A number may not mean what its reader expects.
    Warning,
    /// Something that was asked could not be measured.
    Error,
}

/// The code of a scan that got less memory than planned. A scan whose time was over has `scan-stopped-growing`.
pub const SCAN_MEMORY_SCARCE: &str = "scan-memory-scarce";

/// One thing to know about a run. Text, JSON and every other format show the same notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Note {
    /// Stable kebab-case word that scripts can rely on, such as `small-pages`.
    pub code: String,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen.
    pub message: String,
    /// What the reader can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Note {
    fn new(severity: Severity, code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), severity, message: message.into(), advice: None }
    }
    /// A note that explains.
    pub fn info(code: &str, message: impl Into<String>) -> Self {
        Self::new(Severity::Info, code, message)
    }
    /// A note that warns.
    pub fn warning(code: &str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }
    /// A note that says what could not be measured.
    pub fn error(code: &str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }
    /// Adds what to do.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}
