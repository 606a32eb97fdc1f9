//! x86-64.

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

pub(crate) const ISA: &str = "x86_64";

/// Every kernel, by form and in each by width.
pub(crate) fn kernels() -> Vec<Kernel> {
    [stream::KERNELS, strided::KERNELS, random::KERNELS, line_use::KERNELS, blocks::KERNELS].concat().concat().concat()
}

/// Where the program counter is in what a signal handler gets of a thread: `gregs[REG_RIP]` of `uc_mcontext` in `ucontext_t`.
#[cfg(not(windows))]
pub(crate) const COUNTER_IN_CONTEXT: usize = 40 + 16 * 8;
/// Where it is in what an exception handler gets: `Rip` of `CONTEXT` (winnt.h).
#[cfg(windows)]
pub(crate) const COUNTER_IN_CONTEXT: usize = 0xF8;

#[cfg(test)]
mod tests {
    /// A loop that crosses 32 bytes takes two cycles on some cores, and the delay would be twice as long.
    #[test]
    fn no_delay_crosses_32_bytes() {
        for kernel in crate::all() {
            let start = kernel.paced as *const () as *const u8;
            // `sub` of two 64-bit registers, and a short `jnz` back to it.
            let is_loop = |at: &usize| {
                // SAFETY: every paced form has such a loop, and the search ends with it: what is read is the function's own code.
                let code = unsafe { start.add(*at).cast::<[u8; 5]>().read_unaligned() };
                code[0] & 0xFA == 0x48 && code[1] == 0x29 && code[3..] == [0x75, 0xFB]
            };
            let at = (0..4096).find(is_loop).unwrap_or_else(|| panic!("{} has no delay", kernel.name));
            assert!((start as usize + at) % 32 <= 32 - 5, "{}", kernel.name);
        }
    }
}
