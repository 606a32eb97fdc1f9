//! The clock for all timing, the error of its calibration, and the frequency of cores.
//!
//! The CPU's counter is used when it counts at one rate in every state of the CPU. On x86 it is used only when the kernel itself keeps time
//! with it, because the kernel watches the counter for drift between CPUs, and a hypervisor tells the kernel when not to use it. Its
//! frequency is measured against `CLOCK_MONOTONIC_RAW`. The frequency that CPUID or CNTFRQ states is used only when it is within the error of
//! the measurement.

mod calibrated;
mod core_frequency;
mod cross_cpu;
pub(crate) mod kernel_time;

pub use calibrated::Clock;
pub use core_frequency::{core_ghz, warm_up};
pub use cross_cpu::{ClockError, ClockOffsets};
pub use kernel_time::{moment, suspended_ns};
