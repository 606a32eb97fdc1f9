//! riscv64: the time counter and what is known of it, and cache flushing.

use std::arch::asm;

use crate::wide::Wide;

#[inline(always)]
pub(crate) fn ticks() -> u64 {
    let count: u64;
    // SAFETY: reads a register that Linux leaves open to programs.
    unsafe { asm!("rdtime {}", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count
}

#[inline(always)]
pub(crate) fn ticks_fenced() -> u64 {
    let count: u64;
    // Reading the time counts as device input, which the fences order against memory accesses.
    // SAFETY: reads a register that Linux leaves open to programs.
    unsafe { asm!("fence iorw, iorw", "rdtime {}", "fence iorw, iorw", out(reg) count, options(nostack, preserves_flags)) };
    count
}

/// Nothing shows programs whether there is one.
pub(crate) fn hypervisor_announced() -> Option<bool> {
    None
}

/// The kernel names the design of each core to programs.
pub(crate) fn core_type() -> Option<crate::core_type::CoreType> {
    None
}

pub(crate) fn counter_frequency() -> Option<f64> {
    None
}

pub(crate) fn invariant_counter() -> Result<&'static str, &'static str> {
    Err("riscv64 programs cannot read the rate of the time register")
}

/// Programs may drop lines only with an extension (Zicbom) that nothing here asks for.
pub(crate) const FLUSHES: bool = false;

#[inline(always)]
pub(crate) unsafe fn flush(_line: *const u8) {}

/// Prefetches are an extension (Zicbop) that nothing here asks for.
#[inline(always)]
pub(crate) fn prefetch(_line: *const u8) {}

// Vectors are used by the kernels only.
pub(crate) fn with_wide_registers<W: Wide>(work: W) -> W::Output {
    work.run()
}

#[inline(always)]
pub(crate) unsafe fn write_past_caches(to: *mut u64, words: &[u64]) {
    // SAFETY: the caller promises room for all words, which nobody else uses.
    unsafe { to.copy_from_nonoverlapping(words.as_ptr(), words.len()) };
}

#[inline(always)]
pub(crate) fn fence() {
    // A reading of the time is device input.
    // SAFETY: orders memory accesses and does nothing else.
    unsafe { asm!("fence iorw, iorw", options(nostack, preserves_flags)) };
}

pub(crate) const fn has_prefetch_control() -> bool {
    false
}
