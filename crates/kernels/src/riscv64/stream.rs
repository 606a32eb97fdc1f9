//! riscv64: the traffic kernels of the base instruction set. It has no non-temporal stores and no string instructions, so those mixes are absent.
//!
//! Verified by `tests/` under QEMU's user-mode emulation only.

use std::arch::asm;

use memgauge_core::traffic::{Mix, Width};

use crate::{BURSTS_PER_STEP, Kernel, LINE, Pointers, STORED_BYTE, Stream};

/// [`STORED_BYTE`] eight times.
const STORED: u64 = u64::from_ne_bytes([STORED_BYTE; 8]);

/// A kernel from the text of its burst. `streams` gives each stream's operand name, pointer, direction and bytes per burst.
///
/// Loads go to `t0`; `t1` holds what is stored.
macro_rules! kernel {
    ($name:literal, $mix:ident, streams [$($s:ident = $index:literal $access:ident $bytes:literal),+], burst $burst:expr) => {{
        unsafe fn run(p: &Pointers, steps: usize) {
            // SAFETY: touches what `Kernel::run` requires to be valid; every register written is declared.
            unsafe {
                asm!(
                    "beqz {n}, 3f",
                    "2:",
                    ".irp burst,0,1,2,3",
                    $burst,
                    ".endr",
                    $(concat!("addi {", stringify!($s), "}, {", stringify!($s), "}, 4 * ", $bytes),)+
                    "addi {n}, {n}, -1",
                    "bnez {n}, 2b",
                    "3:",
                    n = inout(reg) steps => _,
                    $($s = inout(reg) p[$index] => _,)+
                    out("t0") _, inout("t1") STORED => _,
                    options(nostack),
                );
            }
        }
        unsafe fn paced(p: &Pointers, steps: usize, delay: u32) {
            // SAFETY: touches what `Kernel::run` requires to be valid; every register written is declared.
            unsafe {
                asm!(
                    "beqz {n}, 5f",
                    "2:",
                    ".irp burst,0",
                    $burst,
                    ".endr",
                    $(concat!("addi {", stringify!($s), "}, {", stringify!($s), "}, ", $bytes),)+
                    // The count is 0 here, by the chain before: this delay starts when that one has ended.
                    "add {count}, {count}, {delay}",
                    "beqz {count}, 4f",
                    "3:",
                    "sub {count}, {count}, {one}",
                    "bnez {count}, 3b",
                    "4:",
                    // Adds 0, after the chain: the next burst has no address before.
                    $(concat!("add {", stringify!($s), "}, {", stringify!($s), "}, {count}"),)+
                    "addi {n}, {n}, -1",
                    "bnez {n}, 2b",
                    "5:",
                    n = inout(reg) steps * BURSTS_PER_STEP as usize => _,
                    $($s = inout(reg) p[$index] => _,)+
                    count = inout(reg) 0_u64 => _,
                    delay = in(reg) u64::from(delay),
                    one = in(reg) 1_u64,
                    out("t0") _, inout("t1") STORED => _,
                    options(nostack),
                );
            }
        }
        Kernel {
            name: $name,
            mix: Mix::$mix,
            width: Width::Scalar,
            streams: &[$(Stream::$access($bytes)),+],
            burst_lines: (0 $(+ $bytes)+) / LINE,
            supported: always,
            run,
            paced,
        }
    }};
}

/// The eight words of each line.
macro_rules! words {
    ($lines:literal, $($op:expr),+) => { each!($lines, "0,8,16,24,32,40,48,56", $($op),+) };
}

/// `$op` between a register and stream `$s`, of which a burst has `$bytes` bytes.
macro_rules! access {
    ($op:literal, $s:literal, $bytes:literal) => {
        concat!($op, ", ", $bytes, " * \\burst + \\line + \\part({", $s, "})")
    };
}

/// These instructions are part of every riscv64 Linux.
fn always() -> bool {
    true
}

pub(crate) const KERNELS: &[Kernel] = &[
    kernel!("load-scalar", AllReads, streams [a = 0 read 256], burst words!("0,64,128,192", access!("ld t0", "a", 256))),
    // Two streams: more pages open at once, more streams for the prefetchers to follow.
    kernel!("load-scalar-x2", AllReads, streams [a = 0 read 128, b = 1 read 128],
        burst words!("0,64", access!("ld t0", "a", 128), access!("ld t0", "b", 128))),
    kernel!("mix-4:1-scalar", R4W1, streams [a = 0 read 192, b = 1 write 64],
        burst concat!(words!("0,64,128", access!("ld t0", "a", 192)), words!("0", access!("sd t1", "b", 64)))),
    kernel!("mix-3:1-scalar", R3W1, streams [a = 0 read 128, b = 1 write 64],
        burst concat!(words!("0,64", access!("ld t0", "a", 128)), words!("0", access!("sd t1", "b", 64)))),
    kernel!("mix-2:1-scalar", R2W1, streams [a = 0 read 128, b = 1 write 128],
        burst concat!(words!("0,64", access!("ld t0", "a", 128)), words!("0,64", access!("sd t1", "b", 128)))),
    kernel!("store-scalar", R1W1, streams [a = 0 write 256], burst words!("0,64,128,192", access!("sd t1", "a", 256))),
    kernel!("copy-scalar", Copy, streams [a = 0 read 128, b = 1 write 128],
        burst words!("0,64", access!("ld t0", "a", 128), access!("sd t0", "b", 128))),
];
