//! The commands, one file each.

pub(crate) mod count;
pub(crate) mod info;
pub(crate) mod loops;
pub(crate) mod measure;
pub(crate) mod prefetch;
pub(crate) mod quick;
pub(crate) mod render;
