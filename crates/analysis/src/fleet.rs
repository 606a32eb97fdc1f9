//! Statements about many hosts: the contracts in `schema/fleet-outliers.schema.json`, `schema/fleet-baseline.schema.json` and
//! `schema/fleet-history.schema.json`. The crate `memgauge-fleet` makes them from a fleet's store.

mod baseline;
mod compared;
mod group;
mod history;
mod outliers;
pub mod robust;

pub use baseline::*;
pub use compared::*;
pub use group::*;
pub use history::*;
pub use outliers::*;

/// The version of the contracts; raised when a field changes its meaning or goes away.
pub const FLEET_VERSION: u32 = 1;

/// A host is flagged only if its robust z-score is above this (B. Iglewicz, D. Hoaglin, "How to Detect and Handle Outliers", 1993).
pub const MIN_ROBUST_Z: f64 = 3.5;
/// Differences up to this share count as none: what runs on one machine commonly differ by.
pub const MIN_DIFFERENCE: f64 = 0.03;
/// The share of flagged hosts that may be flagged by chance.
pub const FALSE_DISCOVERIES: f64 = 0.05;
/// With fewer hosts that are alike, a host is compared with a coarser group, or not judged.
pub const MIN_HOSTS: usize = 8;
