//! Why no plan can be made.

/// Why no plan can be made. Every message names the thing and the way out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The request itself is wrong on this machine.
    #[error("{0}")]
    Request(String),
    /// The request is right, but this process may not have what it needs.
    #[error("{0}")]
    Unavailable(String),
}
