//! The commands, one file each.

pub(crate) mod advise;
pub(crate) mod compare;
pub(crate) mod count;
pub(crate) mod fleet;
pub(crate) mod info;
pub(crate) mod interleave;
pub(crate) mod loops;
pub(crate) mod measure;
pub(crate) mod prefetch;
pub(crate) mod quick;
pub(crate) mod reference;
pub(crate) mod render;
pub(crate) mod report;
pub(crate) mod residency;
pub(crate) mod stamp;
pub(crate) mod watch;
