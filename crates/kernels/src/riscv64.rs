//! riscv64: the base instruction set only, 8 bytes at a time.

#[macro_use]
mod kernel;
mod line_use;
mod random;
mod stream;
mod strided;

use std::arch::asm;

use crate::kernel::{Kernel, joined, total};
use crate::text::CHASE_UNROLL;

pub(crate) const ISA: &str = "riscv64";

const LISTS: &[&[Kernel]] = &[stream::KERNELS, strided::KERNELS, random::KERNELS, line_use::KERNELS];

pub(crate) const KERNELS: &[Kernel] = &joined::<{ total(LISTS) }>(LISTS);

/// Additions of [`dependent_adds`] between two of its branches.
const ADDS_UNROLL: u64 = 64;

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

pub(crate) fn counter_frequency() -> Option<f64> {
    None
}

pub(crate) fn invariant_counter() -> Result<&'static str, &'static str> {
    Err("riscv64 programs cannot read the rate of the time register")
}

#[inline]
pub(crate) fn dependent_adds(n: u64) -> u64 {
    let mut sum = 0;
    // SAFETY: touches no memory.
    unsafe {
        asm!(
            "beqz {rounds}, 3f",
            "2:",
            ".rept 64",
            "add {sum}, {sum}, {one}",
            ".endr",
            "addi {rounds}, {rounds}, -1",
            "bnez {rounds}, 2b",
            "3:",
            "beqz {rest}, 5f",
            "4:",
            "add {sum}, {sum}, {one}",
            "addi {rest}, {rest}, -1",
            "bnez {rest}, 4b",
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
            "beqz {rounds}, 3f",
            "2:",
            ".rept 64",
            "ld {at}, 0({at})",
            ".endr",
            "addi {rounds}, {rounds}, -1",
            "bnez {rounds}, 2b",
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
            "beqz {hops}, 3f",
            "2:",
            "ld {at}, 0({at})",
            "addi {hops}, {hops}, -1",
            "bnez {hops}, 2b",
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
    // Fences as in `ticks_fenced`; what follows the second reading is not timed and needs no fence.
    // SAFETY: reads what the caller promises to be readable and writes `batches`.
    unsafe {
        asm!(
            "beqz {left}, 5f",
            "2:",
            "mv {hop}, {hops}",
            "fence iorw, iorw",
            "rdtime {began}",
            "fence iorw, iorw",
            "beqz {hop}, 4f",
            "3:",
            "ld {at}, 0({at})",
            "addi {hop}, {hop}, -1",
            "bnez {hop}, 3b",
            "4:",
            "fence iorw, iorw",
            "rdtime {ended}",
            "sub {ended}, {ended}, {began}",
            "sd {ended}, 0({out})",
            "addi {out}, {out}, 8",
            "addi {left}, {left}, -1",
            "bnez {left}, 2b",
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
            "beqz {hops}, 3f",
            "2:",
            "ld {next}, 0({at})",
            "sd {hops}, 8({at})",
            "mv {at}, {next}",
            "addi {hops}, {hops}, -1",
            "bnez {hops}, 2b",
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
pub(crate) unsafe fn flush(_line: *const u8) {}

#[inline(always)]
pub(crate) fn fence() {
    // SAFETY: orders memory accesses and does nothing else.
    unsafe { asm!("fence rw, rw", options(nostack, preserves_flags)) };
}

pub(crate) const fn has_prefetch_control() -> bool {
    false
}
