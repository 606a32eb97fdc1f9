//! Plan in, samples out. An experiment is at most one latency probe and any number of loaders (`experiment`): idle latency has no loaders,
//! bandwidth no probe, loaded latency both. Cache-to-cache transfers are the only second engine (`transfer`). A scan (`scan`) reads
//! each region once instead of for a time.
//!
//! Nothing here formats, and no default is chosen here: what the plan leaves open (which kernel is fastest, where a curve needs a point)
//! is decided by measuring, and the result says what was decided.

mod buffer_portions;
mod burst;
mod by_threads;
mod context;
mod cutoff;
mod error;
mod experiment;
mod integrity;
mod kernel_choice;
mod measured;
mod memory;
mod microbench;
mod neighbours;
mod noise;
mod platform;
mod run;
mod runner;
mod scan;
mod session;
#[cfg(feature = "simulate")]
mod simulated;
mod stamp;
mod stores;
mod this_machine;
mod time_budget;
mod transfer;

pub use context::{Observer, RunContext, Unobserved};
pub use cutoff::Heartbeat;
pub use measured::Outcome;
pub use microbench::{LoopError, run_loop};
pub use run::run;
#[cfg(feature = "simulate")]
pub use simulated::model::{BurstRates, ChaseWork, LoadWork, SimulatedMachine, TransferWork};
pub use stamp::{stamp, stamps};
