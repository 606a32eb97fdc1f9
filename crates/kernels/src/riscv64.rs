//! riscv64: the base instruction set only, 8 bytes at a time.

#[macro_use]
mod kernel;
mod line_use;
mod random;
mod stream;
mod strided;

use std::arch::asm;

use crate::kernel::Kernel;
use crate::wide::Wide;

pub(crate) const ISA: &str = "riscv64";

/// Every kernel.
pub(crate) fn kernels() -> Vec<Kernel> {
    [stream::KERNELS, strided::KERNELS, random::KERNELS, line_use::KERNELS].concat().concat().concat()
}

/// Where the program counter is in what a signal handler gets of a thread: `__gregs[REG_PC]` of `uc_mcontext` in `ucontext_t`.
pub(crate) const COUNTER_IN_CONTEXT: usize = 176;

/// A chase goes on at the label `$again` from a line that leads to itself.
macro_rules! lost {
    ($again:literal) => {
        recovers!(concat!("lla {at}, {cell}\nj ", $again))
    };
}

loops! {
    dependent_adds [
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
    ],
    chase [
        "beqz {rounds}, 3f",
        "2:",
        "7:",
        ".rept 64",
        "ld {at}, 0({at})",
        ".endr",
        "8:",
        "addi {rounds}, {rounds}, -1",
        "bnez {rounds}, 2b",
        "3:",
        lost!("2b"),
    ],
    chase_exact [
        "beqz {hops}, 3f",
        "2:",
        "7:",
        "ld {at}, 0({at})",
        "8:",
        "addi {hops}, {hops}, -1",
        "bnez {hops}, 2b",
        "3:",
        lost!("2b"),
    ],
    // Fences as in `ticks_fenced`; what follows the second reading is not timed and needs no fence.
    chase_timed [
        "beqz {left}, 5f",
        "2:",
        "mv {hop}, {hops}",
        "fence iorw, iorw",
        "rdtime {began}",
        "fence iorw, iorw",
        "beqz {hop}, 4f",
        "3:",
        "7:",
        "ld {at}, 0({at})",
        "8:",
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
        lost!("3b"),
    ] scratch [ended = out(reg) _,] overwrites [],
    chase_store [
        "beqz {hops}, 3f",
        "2:",
        "7:",
        "ld {next}, 0({at})",
        "sd {hops}, 8({at})",
        "8:",
        "mv {at}, {next}",
        "sub {next}, {next}, {low}",
        "bltu {next}, {room}, 4f",
        "lla {at}, {cell}",
        "4:",
        "addi {hops}, {hops}, -1",
        "bnez {hops}, 2b",
        "3:",
        lost!("2b"),
    ],
}

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
