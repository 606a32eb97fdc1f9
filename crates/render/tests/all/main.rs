//! Every format, from results of machines that do not exist: one program, because each links everything that is rendered.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a panic in a test is its failure report; a test that is skipped prints why")]

mod asked;
mod comparison;
mod counters;
mod csv;
mod figures;
mod fleet;
mod golden;
mod goldens;
mod html;
mod json;
mod mlc;
mod noise;
mod openmetrics;
mod placement;
mod prefetch;
mod robust;
mod samples;
mod shown;
mod tiers;
