//! The clock for stamps and intervals, the frequency of cores, the date.
//!
//! - [`Clock`]: a monotonic clock that is cheap to read on every CPU, calibrated against one that no time service adjusts. It reports its
//!   frequency, resolution, cost and the error of its calibration, and can check that the CPUs agree.
//! - [`core_ghz`], [`warm_up`]: the frequency of the core that the caller runs on.
//! - [`moment`]: the date, with the monotonic time; [`suspended_ns`]: how long the machine has slept.
//!
//! The CPU's counter is used when it counts at one rate in every state of the CPU, and the system trusts it. Its frequency is measured
//! against the system's clock. The frequency that CPUID or CNTFRQ states is used only when it is within the error of the measurement.
//!
//! All of this is portable. Of the system it needs four things, in a module `clock`: `REFERENCE`, the name of a clock that no time service
//! adjusts; `reference_ns`, its time; `trusted_counter`, whether the system trusts the CPU's counter; and `suspended_ns`.

mod calibrated;
mod core_frequency;
mod cross_cpu;
mod date;

pub use calibrated::Clock;
pub use core_frequency::{core_ghz, warm_up};
pub use cross_cpu::{ClockError, ClockOffsets};
pub use date::moment;

pub use crate::system::clock::suspended_ns;
