//! The verdict of a health check.

use serde::{Deserialize, Serialize};

/// The verdict of a health check.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// The worst of the findings.
    pub status: HealthStatus,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
    /// What the numbers were compared with: `siblings`, `limit`, `baseline`, `rules`.
    pub compared_with: Vec<String>,
    /// Number of results that were measured again because they looked wrong.
    pub measured_again: u32,
}

/// How healthy a machine's memory is, from good to bad. The worst finding decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HealthStatus {
    /// No problem was found.
    #[default]
    Ok,
    /// There was nothing to compare the numbers with.
    Unknown,
    /// Worse than it should be, or much worse but with another possible cause.
    Warning,
    /// The numbers say nothing about the machine.
    CouldNotMeasure,
    /// Much worse than it should be in three measurements, without another possible cause.
    Failure,
    /// Data was corrupted, or the kernel reported memory errors during the check.
    Incident,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Stable kebab-case word that scripts can rely on, such as `slower-than-siblings`.
    pub code: String,
    /// How bad it is. A finding with `ok` is an explanation only.
    pub severity: HealthStatus,
    /// What was found.
    pub message: String,
    /// What the reader can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    pub(crate) fn new(code: &str, severity: HealthStatus, message: impl Into<String>, advice: &str) -> Self {
        Self { code: code.into(), severity, message: message.into(), advice: (!advice.is_empty()).then(|| advice.to_owned()) }
    }
}
