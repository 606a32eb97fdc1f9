//! Pure data and arithmetic. From the bottom up:
//!
//! 1. the types that everything shares: [`units`], [`traffic`], [`topology`], [`experiment`], [`estimate`], [`note`];
//! 2. the request ([`spec`]), the plan made from it ([`plan`], made by [`planner`]), and the results ([`result`]);
//! 3. what the results mean ([`conclusions`]), how those of several runs compare ([`comparison`]), what they advise
//!    ([`advice`]), and what was published about machines of the same kind ([`mod@reference`]).
//!
//! Nothing here does I/O, reads a clock or is `unsafe`, so every part can be tested on a recorded machine.
#![forbid(unsafe_code)]

pub mod advice;
pub mod comparison;
pub mod conclusions;
pub mod counters;
pub mod directory;
pub mod distribution;
pub mod encoding;
pub mod estimate;
pub mod experiment;
pub mod experiment_table;
pub mod fleet;
pub mod installed;
pub mod integrity;
pub mod interleave;
pub mod memory;
pub mod metrics;
pub mod microbench;
pub mod neighbours;
pub mod note;
pub mod pairing;
pub mod pattern;
pub mod persistent;
pub mod plan;
pub mod planner;
pub mod policy;
pub mod prefetchers;
pub mod printable;
pub mod protocol;
pub mod random;
pub mod reference;
pub mod reserve;
pub mod result;
pub mod significance;
pub mod spec;
pub mod stats;
pub mod tiers;
pub mod topology;
pub mod traffic;
pub mod units;
pub mod wording;
pub mod words;
