//! aarch64.

#[macro_use]
mod kernel;
mod blocks;
mod chase;
mod cpu;
mod line_use;
mod random;
mod stream;
mod strided;

use crate::kernel::Kernel;

pub use chase::{chase, chase_exact, chase_store, chase_timed, dependent_adds};
pub(crate) use cpu::{
    FLUSHES, core_type, counter_frequency, fence, flush, has_prefetch_control, hypervisor_announced, invariant_counter, prefetch, ticks,
    ticks_fenced, with_wide_registers, write_past_caches,
};

pub(crate) const ISA: &str = "aarch64";

/// Every kernel.
pub(crate) fn kernels() -> Vec<Kernel> {
    [stream::KERNELS, strided::KERNELS, random::KERNELS, line_use::KERNELS, blocks::KERNELS].concat().concat().concat()
}

/// Where the program counter is in what a signal handler gets of a thread: `pc` of `uc_mcontext` in `ucontext_t`, behind the fault's address, 31 registers
/// and the stack pointer.
#[cfg(not(windows))]
pub(crate) const COUNTER_IN_CONTEXT: usize = 176 + 8 + 31 * 8 + 8;
/// Where it is in what an exception handler gets: `Pc` of `CONTEXT` (winnt.h).
#[cfg(windows)]
pub(crate) const COUNTER_IN_CONTEXT: usize = 0x108;
