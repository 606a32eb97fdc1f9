//! aarch64: traffic over one line every so many bytes, and traffic that touches a part of each line (16 bytes).
//!
//! A line's place is a register that moves on by another: one dependent addition a line, a cycle, which no memory is faster than.
//!
//! Verified by `tests/` under QEMU's user-mode emulation only.

use crate::kernel::Kernel;
use crate::line::LINE;

/// Loads `$n` lines of stream `$s`.
macro_rules! load {
    ($n:literal, $s:literal) => {
        times!($n, concat!("ldp q0, q1, [{", $s, "}]\n ldp q0, q1, [{", $s, "}, #32]\n add {", $s, "}, {", $s, "}, {stride}"))
    };
}

/// Stores `$n` lines of stream `$s` by `$op`.
macro_rules! store {
    ($op:literal, $n:literal, $s:literal) => {
        times!($n, concat!($op, " q4, q5, [{", $s, "}]\n", $op, " q6, q7, [{", $s, "}, #32]\n add {", $s, "}, {", $s, "}, {stride}"))
    };
}

/// Loads the first 16 bytes of `$n` lines of stream `$s`.
macro_rules! load_first {
    ($n:literal, $s:literal) => {
        times!($n, concat!("ldr q0, [{", $s, "}]\n add {", $s, "}, {", $s, "}, {stride}"))
    };
}

/// Stores the first 16 bytes of `$n` lines of stream `$s`.
macro_rules! store_first {
    ($n:literal, $s:literal) => {
        times!($n, concat!("str q4, [{", $s, "}]\n add {", $s, "}, {", $s, "}, {stride}"))
    };
}

/// A kernel whose burst moves its pointers on by `{stride}` after each line.
macro_rules! row {
    ($name:literal, $mix:ident, $use:ident of $touched:expr, streams $streams:tt, burst $burst:expr) => {
        kernel!($name, $mix, Neon, || true, form Strided $use of $touched, streams $streams, advance own, burst $burst, finish "",
            operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,])
    };
}

pub(super) const KERNELS: &[Kernel] = &[
    row!("load-neon-strided", AllReads, Whole of LINE, streams [a = 0 read 256], burst load!(4, "a")),
    row!("mix-9:1-neon-strided", R9W1, Whole of LINE, streams [a = 0 read 512, b = 1 write 64],
        burst concat!(load!(8, "a"), store!("stp", 1, "b"))),
    row!("mix-4:1-neon-strided", R4W1, Whole of LINE, streams [a = 0 read 192, b = 1 write 64],
        burst concat!(load!(3, "a"), store!("stp", 1, "b"))),
    row!("mix-3:1-neon-strided", R3W1, Whole of LINE, streams [a = 0 read 128, b = 1 write 64],
        burst concat!(load!(2, "a"), store!("stp", 1, "b"))),
    row!("mix-3:1-neon-x2-strided", R3W1X2, Whole of LINE, streams [a = 0 read 64, b = 1 read 64, c = 2 write 64],
        burst concat!(load!(1, "a"), load!(1, "b"), store!("stp", 1, "c"))),
    row!("mix-2:1-neon-strided", R2W1, Whole of LINE, streams [a = 0 read 128, b = 1 write 128],
        burst concat!(load!(2, "a"), store!("stp", 2, "b"))),
    row!("mix-3:2-neon-strided", R3W2, Whole of LINE, streams [a = 0 read 64, b = 1 write 128],
        burst concat!(load!(1, "a"), store!("stp", 2, "b"))),
    row!("store-neon-strided", R1W1, Whole of LINE, streams [a = 0 write 256], burst store!("stp", 4, "a")),
    row!("nt-store-neon-strided", NtWrite, Whole of LINE, streams [a = 0 write 256], burst store!("stnp", 4, "a")),
    row!("mix-3:1-nt-neon-strided", R3W1Nt, Whole of LINE, streams [a = 0 read 192, b = 1 write 64],
        burst concat!(load!(3, "a"), store!("stnp", 1, "b"))),
    row!("mix-2:1-nt-neon-strided", R2W1NtX1, Whole of LINE, streams [a = 0 read 128, b = 1 write 64],
        burst concat!(load!(2, "a"), store!("stnp", 1, "b"))),
    row!("triad-nt-neon-strided", R2W1Nt, Whole of LINE, streams [a = 0 read 64, b = 1 read 64, c = 2 write 64],
        burst concat!(
            parts!("0,32",
                "ldp q0, q1, [{a}, #\\part]", "ldp q2, q3, [{b}, #\\part]",
                "add v0.4s, v0.4s, v2.4s", "add v1.4s, v1.4s, v3.4s",
                "stnp q0, q1, [{c}, #\\part]"),
            "add {a}, {a}, {stride}\n add {b}, {b}, {stride}\n add {c}, {c}, {stride}\n")),
    row!("copy-nt-neon-strided", R1W1Nt, Whole of LINE, streams [a = 0 read 128, b = 1 write 128],
        burst times!(2,
            parts!("0,32", "ldp q0, q1, [{a}, #\\part]", "stnp q0, q1, [{b}, #\\part]"),
            "add {a}, {a}, {stride}\n add {b}, {b}, {stride}\n")),
    row!("load-neon-part", AllReads, Part of 16, streams [a = 0 read 64], burst load_first!(4, "a")),
    row!("mix-4:1-neon-part", R4W1, Part of 16, streams [a = 0 read 48, b = 1 write 16],
        burst concat!(load_first!(3, "a"), store_first!(1, "b"))),
    row!("mix-3:1-neon-part", R3W1, Part of 16, streams [a = 0 read 32, b = 1 write 16],
        burst concat!(load_first!(2, "a"), store_first!(1, "b"))),
    row!("mix-2:1-neon-part", R2W1, Part of 16, streams [a = 0 read 32, b = 1 write 32],
        burst concat!(load_first!(2, "a"), store_first!(2, "b"))),
    row!("mix-3:2-neon-part", R3W2, Part of 16, streams [a = 0 read 16, b = 1 write 32],
        burst concat!(load_first!(1, "a"), store_first!(2, "b"))),
    row!("store-neon-part", R1W1, Part of 16, streams [a = 0 write 64], burst store_first!(4, "a")),
];
