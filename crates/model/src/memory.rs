//! Why memory could not be had for a buffer.

use serde::{Deserialize, Serialize};

use crate::plan::BufferPlan;
use crate::units::Bytes;
use crate::words;
use crate::words::{Knob, Problem, Verb, Way, Ways};

/// Why a buffer could not be allocated as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}")]
pub struct MemoryError {
    /// The kind of failure.
    pub kind: MemoryErrorKind,
    /// The node whose memory was wanted.
    pub node: u32,
    /// How much was wanted, where a buffer was.
    pub bytes: Option<Bytes>,
    /// The operation that failed, and its object.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to do about it.
    pub advice: Ways,
}

/// Why memory was not had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MemoryErrorKind {
    /// The size is zero or beyond the address space.
    Size,
    /// The node does not exist or may not be used.
    Node,
    /// The pages asked for are not available.
    Pages,
    /// There is not enough memory.
    Space,
    /// Pages cannot be put on the node.
    Placement,
    /// A file cannot be created or mapped in the directory asked for.
    File,
    /// The system refused for another reason.
    System,
    /// The caller gave up.
    Interrupted,
}

/// What to do where a node is not there.
pub fn see_nodes() -> Ways {
    Way::Say(words!["run '", Verb::Info, "' to see the nodes"]).and(Way::Choose("one".into(), Knob::Node))
}

impl MemoryError {
    /// An error of this buffer, with why and what to do.
    pub fn new(kind: MemoryErrorKind, plan: &BufferPlan, why: impl Into<String>, advice: impl Into<Ways>) -> Self {
        let what = match &plan.directory {
            Some(directory) => format!("cannot allocate {} in a file in {directory}", plan.bytes),
            None => format!("cannot allocate {} on node {} with pages '{}'", plan.bytes, plan.node, plan.pages.name()),
        };
        Self { kind, node: plan.node, bytes: Some(plan.bytes), what, why: why.into(), advice: advice.into() }
    }

    /// Whether something is wrong with the memory itself (its file or device, or a hardware error), and not only with how much of it is free.
    pub const fn is_fault(&self) -> bool {
        matches!(self.kind, MemoryErrorKind::File | MemoryErrorKind::System)
    }

    /// The buffer has a size that nothing can have.
    pub fn size(plan: &BufferPlan) -> Self {
        Self::new(
            MemoryErrorKind::Size,
            plan,
            "the size is zero or beyond the address space",
            words!["give ", Knob::Size, ", such as ", Knob::Size, " 512M"],
        )
    }

    /// The caller gave up.
    pub fn interrupted(plan: &BufferPlan) -> Self {
        Self::new(MemoryErrorKind::Interrupted, plan, "interrupted", "run again")
    }
}

impl From<MemoryError> for Problem {
    fn from(error: MemoryError) -> Self {
        Self { what: error.to_string().into(), advice: Some(error.advice) }
    }
}
