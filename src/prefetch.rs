//! Hardware prefetchers: which CPUs have a register that controls them, and a guard that switches them during a run.

pub(crate) mod controls;
pub(crate) mod guard;
