//! Makes a plan from a request and a machine. Every default is decided here, in one file for each measurement. [`cost`] says what it takes.
//!
//! Nothing here does I/O, reads a clock or is `unsafe`, so every plan can be tested on a recorded machine.
#![forbid(unsafe_code)]

mod chase;
mod check;
mod coarsen;
mod context;
pub mod cost;
mod inherited;
mod loaders;
mod loops;
mod requested;
mod room;
mod sizes;
mod stamp;
mod tasks;
mod threads;

pub use check::PlanError;
pub use loops::loop_size;
pub use tasks::{plan, pmem, quick, stamp_alone, stamp_of_watch};

#[cfg(test)]
mod tests;
