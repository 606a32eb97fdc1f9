//! Throttling by heat: Windows has no counts of it that users can read.

use std::path::Path;

/// How often heat has throttled cores and packages: unknown.
pub const fn thermal_throttles(_root: &Path) -> Option<u64> {
    None
}
