//! x86-64.

mod cpu;
#[macro_use]
mod kernel;
mod line_use;
mod random;
mod stream;
mod strided;

use std::arch::asm;

use crate::kernel::{Kernel, joined, total};
use crate::text::CHASE_UNROLL;

pub(crate) use cpu::{counter_frequency, fence, flush, has_prefetch_control, invariant_counter, ticks, ticks_fenced};

pub(crate) const ISA: &str = "x86_64";

/// Kernels by form, and in each by width.
const LISTS: &[&[Kernel]] = &[
    stream::SSE2,
    stream::AVX2,
    stream::AVX512,
    stream::string::KERNELS,
    strided::SSE2,
    strided::AVX2,
    strided::AVX512,
    random::SSE2,
    random::AVX2,
    random::AVX512,
    line_use::SSE2,
    line_use::AVX2,
    line_use::AVX512,
];

pub(crate) const KERNELS: &[Kernel] = &joined::<{ total(LISTS) }>(LISTS);

/// Additions of [`dependent_adds`] between two of its branches.
const ADDS_UNROLL: u64 = 64;

#[inline]
pub(crate) fn dependent_adds(n: u64) -> u64 {
    let mut sum = 0;
    // Register to register: Golden Cove and its successors do additions of small constants while renaming, in no time at all.
    // SAFETY: touches no memory.
    unsafe {
        asm!(
            "test {rounds}, {rounds}",
            "jz 3f",
            ".p2align 6",
            "2:",
            ".rept 64",
            "add {sum}, {one}",
            ".endr",
            "sub {rounds}, {one}",
            "jnz 2b",
            "3:",
            "test {rest}, {rest}",
            "jz 5f",
            "4:",
            "add {sum}, {one}",
            "sub {rest}, {one}",
            "jnz 4b",
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
            "test {rounds}, {rounds}",
            "jz 3f",
            ".p2align 6",
            "2:",
            ".rept 64",
            "mov {at}, [{at}]",
            ".endr",
            "sub {rounds}, 1",
            "jnz 2b",
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
            "test {hops}, {hops}",
            "jz 3f",
            "2:",
            "mov {at}, [{at}]",
            "sub {hops}, 1",
            "jnz 2b",
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
            "test {left}, {left}",
            "jz 5f",
            ".p2align 6",
            "2:",
            "mov {hop}, {hops}",
            "lfence",
            "rdtsc",
            "lfence",
            "shl rdx, 32",
            "lea {began}, [rdx + rax]",
            "test {hop}, {hop}",
            "jz 4f",
            "3:",
            "mov {at}, [{at}]",
            "sub {hop}, 1",
            "jnz 3b",
            "4:",
            "lfence",
            "rdtsc",
            "shl rdx, 32",
            "add rdx, rax",
            "sub rdx, {began}",
            "mov [{out}], rdx",
            "add {out}, 8",
            "sub {left}, 1",
            "jnz 2b",
            "5:",
            at = inout(reg) at,
            left = inout(reg) batches.len() => _,
            hops = in(reg) hops,
            hop = out(reg) _,
            began = out(reg) _,
            out = inout(reg) batches.as_mut_ptr() => _,
            out("rax") _,
            out("rdx") _,
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
            "test {hops}, {hops}",
            "jz 3f",
            "2:",
            "mov {next}, [{at}]",
            "mov [{at} + 8], {hops}",
            "mov {at}, {next}",
            "sub {hops}, 1",
            "jnz 2b",
            "3:",
            at = inout(reg) at,
            hops = inout(reg) hops => _,
            next = out(reg) _,
            options(nostack),
        );
    }
    at
}
