//! Memory errors. Windows reports them in its event log only, record by record (WHEA-Logger), and has no counters of controllers or DIMMs.

use std::path::Path;

use memgauge_model::result::DimmErrors;

/// Corrected and uncorrected errors of all memory controllers: unknown, because Windows counts none.
pub const fn memory_errors(_root: &Path) -> Option<(u64, u64)> {
    None
}

/// Errors of each DIMM: Windows does not tell DIMMs apart.
pub const fn dimm_errors(_root: &Path) -> Vec<DimmErrors> {
    Vec::new()
}
