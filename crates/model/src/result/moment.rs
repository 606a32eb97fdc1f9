//! Points in time.

use serde::{Deserialize, Serialize};

/// A point in time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moment {
    /// UTC, RFC 3339; a label only.
    pub utc: String,
    /// `CLOCK_MONOTONIC_RAW` in nanoseconds.
    pub monotonic_ns: u64,
}
