//! The memory of a run.

pub(crate) mod pages;
pub(crate) mod store;
