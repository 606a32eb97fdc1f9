//! Loaded-latency curves: their summary, and where to measure the next point.
//!
//! The terms are those of P. Esmaili-Dokht et al., "A Mess of Memory System Benchmarking, Simulation and Application Profiling", MICRO'24:
//! unloaded latency, saturated region, and over-saturation, where bandwidth falls while load and latency still grow (the curve bends back).

mod delays;
mod knee;
mod share;

pub use delays::{IDLE_DELAY_CYCLES, next_delay};
pub use knee::{summarise, summarise_within};
pub use share::{MAX_TRIES, at_share, next_for_share};
