//! aarch64.

#[macro_use]
mod kernel;
mod line_use;
mod random;
mod stream;
mod strided;

use std::arch::asm;

use crate::kernel::{Kernel, joined, total};
use crate::text::CHASE_UNROLL;

pub(crate) const ISA: &str = "aarch64";

const LISTS: &[&[Kernel]] = &[stream::KERNELS, strided::KERNELS, random::KERNELS, line_use::KERNELS];

pub(crate) const KERNELS: &[Kernel] = &joined::<{ total(LISTS) }>(LISTS);

/// Additions of [`dependent_adds`] between two of its branches.
const ADDS_UNROLL: u64 = 64;

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

#[inline]
pub(crate) fn dependent_adds(n: u64) -> u64 {
    let mut sum = 0;
    // SAFETY: touches no memory.
    unsafe {
        asm!(
            "cbz {rounds}, 3f",
            ".p2align 6",
            "2:",
            ".rept 64",
            "add {sum}, {sum}, {one}",
            ".endr",
            "subs {rounds}, {rounds}, #1",
            "b.ne 2b",
            "3:",
            "cbz {rest}, 5f",
            "4:",
            "add {sum}, {sum}, {one}",
            "subs {rest}, {rest}, #1",
            "b.ne 4b",
            "5:",
            rounds = inout(reg) n / ADDS_UNROLL => _,
            rest = inout(reg) n % ADDS_UNROLL => _,
            sum = inout(reg) sum,
            one = in(reg) 1_u64,
            options(nomem, nostack),
        );
    }
    sum
}

#[inline]
pub(crate) unsafe fn chase(start: *const u8, hops: usize) -> *const u8 {
    let mut at = start;
    // SAFETY: reads what the caller promises to be readable.
    unsafe {
        asm!(
            "cbz {rounds}, 3f",
            ".p2align 6",
            "2:",
            ".rept 64",
            "ldr {at}, [{at}]",
            ".endr",
            "subs {rounds}, {rounds}, #1",
            "b.ne 2b",
            "3:",
            at = inout(reg) at,
            rounds = inout(reg) hops / CHASE_UNROLL => _,
            options(readonly, nostack),
        );
    }
    at
}

#[inline]
pub(crate) unsafe fn chase_exact(start: *const u8, hops: usize) -> *const u8 {
    let mut at = start;
    // SAFETY: reads what the caller promises to be readable.
    unsafe {
        asm!(
            "cbz {hops}, 3f",
            "2:",
            "ldr {at}, [{at}]",
            "subs {hops}, {hops}, #1",
            "b.ne 2b",
            "3:",
            at = inout(reg) at,
            hops = inout(reg) hops => _,
            options(readonly, nostack),
        );
    }
    at
}

pub(crate) unsafe fn chase_timed(start: *const u8, hops: usize, batches: &mut [u64]) -> *const u8 {
    let mut at = start;
    // Barriers as in `ticks_fenced`; what follows the second reading is not timed and needs no barrier.
    // SAFETY: reads what the caller promises to be readable and writes `batches`.
    unsafe {
        asm!(
            "cbz {left}, 5f",
            ".p2align 6",
            "2:",
            "mov {hop}, {hops}",
            "dsb ishld",
            "isb",
            "mrs {began}, cntvct_el0",
            "isb",
            "cbz {hop}, 4f",
            "3:",
            "ldr {at}, [{at}]",
            "subs {hop}, {hop}, #1",
            "b.ne 3b",
            "4:",
            "dsb ishld",
            "isb",
            "mrs {ended}, cntvct_el0",
            "sub {ended}, {ended}, {began}",
            "str {ended}, [{out}], #8",
            "subs {left}, {left}, #1",
            "b.ne 2b",
            "5:",
            at = inout(reg) at,
            left = inout(reg) batches.len() => _,
            hops = in(reg) hops,
            hop = out(reg) _,
            began = out(reg) _,
            ended = out(reg) _,
            out = inout(reg) batches.as_mut_ptr() => _,
            options(nostack),
        );
    }
    at
}

#[inline]
pub(crate) unsafe fn chase_store(start: *const u8, hops: usize) -> *const u8 {
    let mut at = start;
    // SAFETY: reads and writes what the caller promises to be readable and writable.
    unsafe {
        asm!(
            "cbz {hops}, 3f",
            "2:",
            "ldr {next}, [{at}]",
            "str {hops}, [{at}, #8]",
            "mov {at}, {next}",
            "subs {hops}, {hops}, #1",
            "b.ne 2b",
            "3:",
            at = inout(reg) at,
            hops = inout(reg) hops => _,
            next = out(reg) _,
            options(nostack),
        );
    }
    at
}

#[inline(always)]
pub(crate) unsafe fn flush(line: *const u8) {
    // Linux lets programs clean and invalidate by address (SCTLR_EL1.UCI).
    // SAFETY: the caller promises a mapped line.
    unsafe { asm!("dc civac, {}", in(reg) line, options(nostack, preserves_flags)) };
}

#[inline(always)]
pub(crate) fn fence() {
    // SAFETY: orders memory accesses and does nothing else.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) };
}

pub(crate) const fn has_prefetch_control() -> bool {
    false
}
