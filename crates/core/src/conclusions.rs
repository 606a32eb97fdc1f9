//! What measured numbers mean: trust, limits, levels, knees, findings. Everything here reads results and plans; neither reads it.

pub mod advise;
pub mod curve;
pub mod findings;
pub mod judge;
pub mod levels;
pub mod limit;
pub mod prefetchers;
pub mod scan;
pub mod summary;
pub mod trend;
pub mod verdict;
