//! From what was asked to what will be done.

use super::{KernelRow, Plan};
use crate::spec::Spec;
use crate::topology::Machine;

/// Why no plan can be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// placeholder
    #[error("{0}")]
    Request(String),
}

/// Decides every default of `spec` for `machine`.
///
/// # Errors
/// When the request names what does not exist or may not be used.
pub fn plan(_spec: &Spec, _machine: &Machine, _kernels: &[KernelRow]) -> Result<Plan, PlanError> {
    Err(PlanError::Request("not yet".into()))
}
