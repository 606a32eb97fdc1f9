//! Weighted interleave: pages spread over nodes in fixed numbers, and the search for the numbers that serve a load best.

mod search;
mod weights;

#[cfg(test)]
mod tests;

pub use search::{Goal, Reading, Search, Trial};
pub use weights::{MAX_TOTAL, Weights};
