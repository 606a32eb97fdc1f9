//! Experiments: at most one latency probe and any number of loaders, measured burst by burst.

pub(crate) mod disturbance;
pub(crate) mod interleave;
pub(crate) mod latency;
pub(crate) mod loaded;
pub(crate) mod loaders;
pub(crate) mod sampling;
pub(crate) mod trials;
pub(crate) mod working_set;
