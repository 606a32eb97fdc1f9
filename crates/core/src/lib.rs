//! Pure data and arithmetic: what was asked ([`spec`]), what the machine is ([`topology`]), what will be
//! done ([`plan`]), what came out ([`result`]).
//!
//! Nothing here does I/O, reads a clock or is `unsafe`; every part can be tested on a recorded machine.
#![forbid(unsafe_code)]

pub mod advise;
pub mod counters;
pub mod curve;
pub mod directory;
pub mod distribution;
pub mod findings;
pub mod installed;
pub mod judge;
pub mod levels;
pub mod limit;
pub mod loops;
pub mod metrics;
pub mod note;
pub mod pattern;
pub mod plan;
pub mod prefetchers;
pub mod result;
pub mod rounds;
pub mod scan;
pub mod spec;
pub mod stats;
pub mod topology;
pub mod traffic;
pub mod trend;
pub mod units;
pub mod wording;
