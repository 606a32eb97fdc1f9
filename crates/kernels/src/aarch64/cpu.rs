//! aarch64: the time counter and what is known of it, and cache flushing.

use std::arch::asm;

use crate::wide::Wide;

#[inline(always)]
pub(crate) fn ticks() -> u64 {
    let count: u64;
    // SAFETY: reads a register that Linux leaves open to programs.
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count
}

#[inline(always)]
pub(crate) fn ticks_fenced() -> u64 {
    let count: u64;
    // `dsb ishld` waits for earlier loads' data, the first `isb` keeps the counter from being read before, the second holds later instructions back.
    // Without `nomem`, the compiler moves no memory access across either.
    // SAFETY: reads a register that Linux leaves open to programs.
    unsafe { asm!("dsb ishld", "isb", "mrs {}, cntvct_el0", "isb", out(reg) count, options(nostack, preserves_flags)) };
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
    let hz: u64;
    // SAFETY: reads a register that Linux leaves open to programs.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
    // Firmware sets it; 0 where it forgot.
    (hz != 0).then_some(hz as f64)
}

/// The architecture defines the generic timer's rate as fixed.
pub(crate) fn invariant_counter() -> Result<&'static str, &'static str> {
    Ok("cntvct")
}

/// Programs may drop lines from the caches.
pub(crate) const FLUSHES: bool = true;

#[inline(always)]
pub(crate) unsafe fn flush(line: *const u8) {
    // Linux lets programs clean and invalidate by address (SCTLR_EL1.UCI).
    // SAFETY: the caller promises a mapped line.
    unsafe { asm!("dc civac, {}", in(reg) line, options(nostack, preserves_flags)) };
}

#[inline(always)]
pub(crate) fn prefetch(line: *const u8) {
    // SAFETY: a prefetch neither faults nor changes anything but caches.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) line, options(nostack, preserves_flags, readonly)) };
}

// NEON is part of AArch64.
pub(crate) fn with_wide_registers<W: Wide>(work: W) -> W::Output {
    work.run()
}

#[inline(always)]
pub(crate) unsafe fn write_past_caches(to: *mut u64, words: &[u64]) {
    // Non-temporal pairs (`stnp`) are only a hint, so lines are dropped instead.
    // SAFETY: the caller promises room for all words, which nobody else uses.
    unsafe { to.copy_from_nonoverlapping(words.as_ptr(), words.len()) };
    for index in (0..words.len()).step_by(crate::LINE as usize / size_of::<u64>()) {
        // SAFETY: a line of these words.
        unsafe { flush(to.add(index).cast()) };
    }
}

#[inline(always)]
pub(crate) fn fence() {
    // SAFETY: orders memory accesses and does nothing else.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) };
}

pub(crate) const fn has_prefetch_control() -> bool {
    false
}
