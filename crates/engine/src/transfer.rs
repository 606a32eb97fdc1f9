//! Cache-to-cache transfers: one pair of CPUs, or all pairs.

pub(crate) mod all_pairs;
pub(crate) mod pair;
