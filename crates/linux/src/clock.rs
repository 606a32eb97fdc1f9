//! The clock that times, how well it is known, and the frequency of cores by it.
//!
//! The CPU's counter is used when it counts at one rate in every state of the CPU, and on x86 only when the kernel itself keeps time by
//! it, because the kernel watches it for drift between CPUs and hypervisors tell it when not to. Its frequency is measured against
//! `CLOCK_MONOTONIC_RAW`; what CPUID or CNTFRQ claim is believed only when the measurement cannot tell the two apart.

mod calibrated;
mod core_frequency;
mod cross_cpu;
mod kernel_time;

pub use calibrated::Clock;
pub use core_frequency::{core_ghz, warm_up};
pub use cross_cpu::{ClockError, ClockOffsets};
pub use kernel_time::{moment, suspended_ns};
