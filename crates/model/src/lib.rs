//! The data that the whole of memgauge shares, and the arithmetic on it. From the bottom up:
//!
//! 1. quantities and words: [`units`], [`traffic`], [`mod@words`], [`note`];
//! 2. the machine: [`topology`], [`tiers`], [`installed`], [`policy`], [`directory`], [`persistent`];
//! 3. what requests, plans and results share: [`experiment`], its [`axis`] and its table ([`experiment_table`]), [`estimate`], [`protocol`];
//! 4. arithmetic: [`stats`], [`significance`], [`random`], [`pattern`], [`pairing`], [`distribution`], [`metrics`], [`counters`] and others;
//! 5. the request ([`spec`]), the plan ([`plan`]), and the results ([`result`]); all of it in words
//!    ([`wording`]), and places as [`columns`].
//!
//! `memgauge-planner` makes the plan, `memgauge-analysis` says what results mean.
//!
//! Nothing here does I/O, reads a clock or is `unsafe`, so every part can be tested on a recorded machine.
#![forbid(unsafe_code)]

pub mod axis;
pub mod columns;
pub mod counters;
pub mod directory;
pub mod distribution;
pub mod encoding;
pub mod estimate;
pub mod experiment;
pub mod experiment_table;
pub mod installed;
pub mod integrity;
pub mod interleave;
pub mod memory;
pub mod metrics;
pub mod microbench;
pub mod note;
pub mod pairing;
pub mod pattern;
pub mod persistent;
pub mod plan;
pub mod policy;
pub mod prefetchers;
pub mod printable;
pub mod properties;
pub mod protocol;
pub mod random;
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
