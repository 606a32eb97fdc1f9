//! Bursts: threads that start together at a clock deadline, count their work into windows and stop at a deadline. No thread samples
//! another, so nothing disturbs what is measured.

pub(crate) mod absence;
pub(crate) mod chase;
pub(crate) mod counters;
pub(crate) mod exact;
pub(crate) mod handover;
pub(crate) mod load;
#[cfg(any(test, feature = "simulate"))]
pub(crate) mod pipeline;
pub(crate) mod prefix;
pub(crate) mod result;
pub(crate) mod slots;
pub(crate) mod threads;
pub(crate) mod windows;
pub(crate) mod workers;
