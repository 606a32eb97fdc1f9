//! From what was asked to what will be done: every default is decided here, one file a measurement.

mod bandwidth;
mod chase;
mod check;
mod context;
mod cost;
mod error;
mod loaded;
mod loaders;
mod prefetch;
pub mod quick;
mod scan;
mod sizes;
mod sweep;
mod tasks;
mod threads;
mod transfer;

pub use error::PlanError;
pub use tasks::plan;

#[cfg(test)]
mod tests;
