//! aarch64.

#[macro_use]
mod kernel;
mod blocks;
mod line_use;
mod random;
mod stream;
mod strided;

use std::arch::asm;

use crate::kernel::Kernel;
use crate::wide::Wide;

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

/// A chase goes on at the label `$again` from a line that leads to itself.
macro_rules! lost {
    ($again:literal) => {
        recovers!(concat!("adrp {at}, {cell}\nadd {at}, {at}, :lo12:{cell}\nb ", $again))
    };
}

loops! {
    dependent_adds [
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
    ],
    chase [
        "cbz {rounds}, 3f",
        ".p2align 6",
        "2:",
        "7:",
        ".rept 64",
        "ldr {at}, [{at}]",
        ".endr",
        "8:",
        "subs {rounds}, {rounds}, #1",
        "b.ne 2b",
        "3:",
        lost!("2b"),
    ],
    chase_exact [
        "cbz {hops}, 3f",
        "2:",
        "7:",
        "ldr {at}, [{at}]",
        "8:",
        "subs {hops}, {hops}, #1",
        "b.ne 2b",
        "3:",
        lost!("2b"),
    ],
    // Barriers as in `ticks_fenced`; what follows the second reading is not timed and needs no barrier.
    chase_timed [
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
        "7:",
        "ldr {at}, [{at}]",
        "8:",
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
        lost!("3b"),
    ] scratch [ended = out(reg) _,] overwrites [],
    chase_store [
        "cbz {hops}, 3f",
        "2:",
        "7:",
        "ldr {next}, [{at}]",
        "str {hops}, [{at}, #8]",
        "8:",
        "mov {at}, {next}",
        "sub {next}, {next}, {low}",
        "cmp {next}, {room}",
        "b.lo 4f",
        "adrp {at}, {cell}",
        "add {at}, {at}, :lo12:{cell}",
        "4:",
        "subs {hops}, {hops}, #1",
        "b.ne 2b",
        "3:",
        lost!("2b"),
    ],
}

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
