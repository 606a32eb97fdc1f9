//! Scans of a node's free memory, region by region.

pub(crate) mod cell;
mod integrity;
mod reading;
