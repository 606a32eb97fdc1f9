//! The meaning of the measured numbers: trust, limits, levels, knees, findings. This module uses results and plans; they do not use it.

pub mod advise;
pub mod curve;
pub mod findings;
pub mod judge;
pub mod levels;
pub mod limit;
pub mod others;
pub mod persistent;
pub mod scan;
pub mod state;
pub mod summary;
pub mod tiers;
pub mod trend;
pub mod watch;
