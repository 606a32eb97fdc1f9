//! riscv64: traffic over the lines of a window in pseudo-random order, an [`Order`](crate::order::Order).
//!
//! Verified by `tests/` under QEMU's user-mode emulation only.

use crate::kernel::Kernel;
use crate::line::LINE;
use crate::order::STEP_LINES;

/// The next line's address to `{y}`.
macro_rules! next {
    () => {
        "add {y}, {end}, {at}\n ld {y}, 0({y})\n xor {y}, {y}, {turn}\n add {y}, {y}, {a}\n addi {at}, {at}, 8"
    };
}

/// Behind a burst at the table's end: all of it again, and the next turn of each block.
macro_rules! turn {
    () => {
        "bnez {at}, 7f\n mv {at}, {back}\n add {turn}, {turn}, {step}\n and {turn}, {turn}, {mask}\n 7:\n"
    };
}

/// Loads the next `$n` lines.
macro_rules! load {
    ($n:literal) => {
        times!($n, next!(), parts!("0,8,16,24,32,40,48,56", "ld t0, \\part({y})"))
    };
}

/// Stores the next `$n` lines.
macro_rules! store {
    ($n:literal) => {
        times!($n, next!(), line_by!("sd", "{y}"))
    };
}

/// A kernel over one window, of which a burst reads and writes so many bytes.
macro_rules! row {
    ($name:literal, $mix:ident, $read:literal, $write:literal, $burst:expr) => {
        kernel!($name, $mix, Scalar, || true, form Random Whole of LINE, streams [a = 0 both ($read, $write)], advance own,
            burst concat!($burst, turn!()), finish "", operands(walk) [
                line = in(reg) std::ptr::from_ref(walk.stored), end = in(reg) walk.entry.end, back = in(reg) walk.entry.back,
                at = inout(reg) walk.entry.at => _, turn = inout(reg) walk.entry.turn => _, mask = in(reg) walk.entry.mask,
                step = in(reg) STEP_LINES * LINE as usize, y = out(reg) _,
            ])
    };
}

pub(super) const KERNELS: &[Kernel] = &[
    row!("load-scalar-random", AllReads, 256, 0, load!(4)),
    row!("mix-9:1-scalar-random", R9W1, 512, 64, concat!(load!(8), store!(1))),
    row!("mix-4:1-scalar-random", R4W1, 192, 64, concat!(load!(3), store!(1))),
    row!("mix-3:1-scalar-random", R3W1, 128, 64, concat!(load!(2), store!(1))),
    row!("mix-2:1-scalar-random", R2W1, 128, 128, concat!(load!(2), store!(2))),
    row!("mix-3:2-scalar-random", R3W2, 64, 128, concat!(load!(1), store!(2))),
    row!("store-scalar-random", R1W1, 0, 256, store!(4)),
];
