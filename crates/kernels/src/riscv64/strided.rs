//! riscv64: traffic over one line every so many bytes, and traffic that touches a part of each line (8 bytes).
//!
//! Verified by `tests/` under QEMU's user-mode emulation only.

use crate::kernel::Kernel;
use crate::line::LINE;

/// Loads `$n` lines of stream `$s`.
macro_rules! load {
    ($n:literal, $s:literal) => {
        times!($n, parts!("0,8,16,24,32,40,48,56", concat!("ld t0, \\part({", $s, "})")), concat!("add {", $s, "}, {", $s, "}, {stride}"))
    };
}

/// Stores `$n` lines of stream `$s`.
macro_rules! store {
    ($n:literal, $s:literal) => {
        times!($n, line_by!("sd", concat!("{", $s, "}")), concat!("add {", $s, "}, {", $s, "}, {stride}"))
    };
}

/// Loads the first 8 bytes of `$n` lines of stream `$s`.
macro_rules! load_first {
    ($n:literal, $s:literal) => {
        times!($n, concat!("ld t0, 0({", $s, "})\n add {", $s, "}, {", $s, "}, {stride}"))
    };
}

/// Stores the first 8 bytes of `$n` lines of stream `$s`.
macro_rules! store_first {
    ($n:literal, $s:literal) => {
        times!($n, concat!("sd t1, 0({", $s, "})\n add {", $s, "}, {", $s, "}, {stride}"))
    };
}

/// A kernel whose burst moves its pointers on by `{stride}` after each line.
macro_rules! row {
    ($name:literal, $mix:ident, $use:ident of $touched:expr, streams $streams:tt, burst $burst:expr) => {
        kernel!($name, $mix, Scalar, || true, form Strided $use of $touched, streams $streams, advance own, burst $burst, finish "",
            operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,])
    };
}

pub(super) const KERNELS: &[Kernel] = &[
    row!("load-scalar-strided", AllReads, Whole of LINE, streams [a = 0 read 256], burst load!(4, "a")),
    row!("mix-9:1-scalar-strided", R9W1, Whole of LINE, streams [a = 0 read 512, b = 1 write 64],
        burst concat!(load!(8, "a"), store!(1, "b"))),
    row!("mix-4:1-scalar-strided", R4W1, Whole of LINE, streams [a = 0 read 192, b = 1 write 64],
        burst concat!(load!(3, "a"), store!(1, "b"))),
    row!("mix-3:1-scalar-strided", R3W1, Whole of LINE, streams [a = 0 read 128, b = 1 write 64],
        burst concat!(load!(2, "a"), store!(1, "b"))),
    row!("mix-3:1-scalar-x2-strided", R3W1X2, Whole of LINE, streams [a = 0 read 64, b = 1 read 64, c = 2 write 64],
        burst concat!(load!(1, "a"), load!(1, "b"), store!(1, "c"))),
    row!("mix-2:1-scalar-strided", R2W1, Whole of LINE, streams [a = 0 read 128, b = 1 write 128],
        burst concat!(load!(2, "a"), store!(2, "b"))),
    row!("mix-3:2-scalar-strided", R3W2, Whole of LINE, streams [a = 0 read 64, b = 1 write 128],
        burst concat!(load!(1, "a"), store!(2, "b"))),
    row!("store-scalar-strided", R1W1, Whole of LINE, streams [a = 0 write 256], burst store!(4, "a")),
    row!("load-scalar-part", AllReads, Part of 8, streams [a = 0 read 32], burst load_first!(4, "a")),
    row!("mix-4:1-scalar-part", R4W1, Part of 8, streams [a = 0 read 24, b = 1 write 8],
        burst concat!(load_first!(3, "a"), store_first!(1, "b"))),
    row!("mix-3:1-scalar-part", R3W1, Part of 8, streams [a = 0 read 16, b = 1 write 8],
        burst concat!(load_first!(2, "a"), store_first!(1, "b"))),
    row!("mix-2:1-scalar-part", R2W1, Part of 8, streams [a = 0 read 16, b = 1 write 16],
        burst concat!(load_first!(2, "a"), store_first!(2, "b"))),
    row!("mix-3:2-scalar-part", R3W2, Part of 8, streams [a = 0 read 8, b = 1 write 16],
        burst concat!(load_first!(1, "a"), store_first!(2, "b"))),
    row!("store-scalar-part", R1W1, Part of 8, streams [a = 0 write 32], burst store_first!(4, "a")),
];
