//! JSON: the result contract itself.

use memgauge_core::result::Report;

use crate::format::{Format, RenderError};

/// The report as JSON, by the contract in `schema/result.schema.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json {
    /// Indented for people, instead of one line.
    pub pretty: bool,
}

impl Format for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn render(&self, report: &Report) -> Result<Vec<u8>, RenderError> {
        let mut bytes = if self.pretty { serde_json::to_vec_pretty(report)? } else { serde_json::to_vec(report)? };
        bytes.push(b'\n');
        Ok(bytes)
    }
}
