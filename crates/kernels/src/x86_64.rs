//! x86-64.

#[macro_use]
mod kernel;
mod blocks;
mod cpu;
mod line_use;
mod random;
mod stream;
mod strided;

use crate::kernel::Kernel;

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

/// A chase goes on at the label `$again` from a line that leads to itself.
macro_rules! lost {
    ($again:literal) => {
        recovers!(concat!("lea {at}, [rip + {cell}]\njmp ", $again))
    };
}

loops! {
    // Register to register: Golden Cove and its successors do additions of small constants while renaming, in no time at all.
    dependent_adds [
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
    ],
    chase [
        "test {rounds}, {rounds}",
        "jz 3f",
        ".p2align 6",
        "2:",
        "7:",
        ".rept 64",
        "mov {at}, [{at}]",
        ".endr",
        "8:",
        "sub {rounds}, 1",
        "jnz 2b",
        "3:",
        lost!("2b"),
    ],
    chase_exact [
        "test {hops}, {hops}",
        "jz 3f",
        "2:",
        "7:",
        "mov {at}, [{at}]",
        "8:",
        "sub {hops}, 1",
        "jnz 2b",
        "3:",
        lost!("2b"),
    ],
    // Fences as in `ticks_fenced`; what follows the second reading is not timed and needs no fence.
    chase_timed [
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
        "7:",
        "mov {at}, [{at}]",
        "8:",
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
        lost!("3b"),
    ] scratch [] overwrites [out("rax") _, out("rdx") _,],
    chase_store [
        "test {hops}, {hops}",
        "jz 3f",
        "2:",
        "7:",
        "mov {next}, [{at}]",
        "mov [{at} + 8], {hops}",
        "8:",
        "mov {at}, {next}",
        "sub {next}, {low}",
        "cmp {next}, {room}",
        "jb 4f",
        "lea {at}, [rip + {cell}]",
        "4:",
        "sub {hops}, 1",
        "jnz 2b",
        "3:",
        lost!("2b"),
    ],
}

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
