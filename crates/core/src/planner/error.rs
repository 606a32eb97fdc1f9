//! Why no plan can be made.

/// Why no plan can be made. Every message names the cause and what to do about it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The request itself is wrong on this machine.
    #[error("{0}")]
    Request(String),
    /// The request is valid, but this process may not use what it needs.
    #[error("{0}")]
    Unavailable(String),
}
