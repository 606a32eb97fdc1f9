//! The programs as their users meet them. One test program, as each would be linked with all of memgauge: `cargo test --test all NAME::` runs the tests of
//! a file.
//!
//! Tests run beside each other in one process, so none changes its environment, its folder or its signals.
#![allow(clippy::unwrap_used, reason = "a panic in a helper is the failure report of its test")]
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a test says what it skips, its seed, or what it found")]

mod advise;
mod architecture;
mod build_script;
mod commands;
mod compare;
mod completions;
mod count;
mod disturbance;
mod examples;
mod faults;
mod files;
mod fleet;
mod history;
mod integrity;
mod kills;
mod limits;
mod mlc;
mod outliers;
mod pmem;
mod prefetch;
mod probe;
mod program;
mod recorded;
mod reference;
mod residency;
mod scan;
mod scheduled;
mod signals;
mod support;
