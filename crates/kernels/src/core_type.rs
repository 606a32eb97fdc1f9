//! The types of cores that CPUs name.

/// The types of cores on a machine that has several, as the CPU names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreType {
    /// Intel's Core, AMD's performance core.
    Performance,
    /// Intel's Atom, AMD's compact core.
    Efficiency,
}
