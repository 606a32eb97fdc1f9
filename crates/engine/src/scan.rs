//! Scans of a node's free memory, region by region.

mod integrity;
pub(crate) mod passes;
mod reading;
