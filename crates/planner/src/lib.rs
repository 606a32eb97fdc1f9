//! Makes a plan from a request and a machine. Every default is decided here, in one file for each measurement. [`cost`] says what it takes.
//!
//! Nothing here does I/O, reads a clock or is `unsafe`, so every plan can be tested on a recorded machine.
#![forbid(unsafe_code)]

mod bandwidth;
mod chase;
mod check;
mod coarsen;
mod context;
pub mod cost;
mod inherited;
mod interleave;
mod loaded;
mod loaders;
mod loops;
pub mod pmem;
mod prefetch;
pub mod quick;
mod requested;
mod room;
mod scan;
mod sizes;
mod sweep;
mod tasks;
mod threads;
mod tiers;
mod transfer;

pub use check::PlanError;
pub use loops::loop_size;
pub use tasks::plan;

#[cfg(test)]
mod tests;
