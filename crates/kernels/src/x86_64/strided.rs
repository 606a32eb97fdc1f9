//! x86-64: traffic over one line every so many bytes, and traffic that touches a part of each line.
//!
//! A line's place is a register that moves on by another: one dependent addition a line, a cycle, which no memory is faster than.
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`. AVX-512 has no parts:
//! one access is the whole line, and a core need not read a line of which all is stored.

use crate::kernel::Kernel;
use crate::line::LINE;

/// Moves stream `$s` on to its next line.
macro_rules! next {
    ($s:literal) => {
        concat!("add {", $s, "}, {stride}")
    };
}

/// Loads `$n` lines of stream `$s`.
macro_rules! load {
    ($width:ident, $n:literal, $s:literal) => {
        times!($n, parts!($width!(parts), load_part!($width, concat!("{", $s, "} + \\part"))), next!($s))
    };
}

/// Stores `$n` lines of stream `$s` by `$mov`.
macro_rules! store {
    ($width:ident, $mov:ident, $n:literal, $s:literal) => {
        times!($n, store_slots!($width, $mov, concat!("{", $s, "}")), next!($s))
    };
}

/// Loads the first part of `$n` lines of stream `$s`.
macro_rules! load_first {
    ($width:ident, $n:literal, $s:literal) => {
        times!($n, load_part!($width, concat!("{", $s, "}")), next!($s))
    };
}

/// Stores the first slot to `$n` lines of stream `$s`.
macro_rules! store_first {
    ($width:ident, $n:literal, $s:literal) => {
        times!($n, concat!($width!(mov), "[{", $s, "}], ", $width!(register), "1"), next!($s))
    };
}

/// A kernel whose burst moves its pointers on by `{stride}` after each line. Its name has the width in the middle.
macro_rules! row {
    ($width:ident, $head:literal $tail:literal, $mix:ident, $use:ident of $touched:expr, $streams:tt, $burst:expr $(, $finish:literal)?) => {
        kernel!(concat!($head, "-", $width!(name), $tail), $mix, $width, $width!(supported), form Strided $use of $touched,
            streams $streams, advance own, burst $burst, finish concat!($($finish)?),
            operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,])
    };
}

/// Every kernel of one width that touches whole lines.
#[rustfmt::skip] // It cannot indent calls inside a list.
macro_rules! strided {
    ($w:ident) => {
        [
            row!($w, "load" "-strided", AllReads, Whole of LINE, [a = 0 read 256], load!($w, 4, "a")),
            row!($w, "mix-9:1" "-strided", R9W1, Whole of LINE, [a = 0 read 512, b = 1 write 64],
                concat!(load!($w, 8, "a"), store!($w, mov, 1, "b"))),
            row!($w, "mix-4:1" "-strided", R4W1, Whole of LINE, [a = 0 read 192, b = 1 write 64],
                concat!(load!($w, 3, "a"), store!($w, mov, 1, "b"))),
            row!($w, "mix-3:1" "-strided", R3W1, Whole of LINE, [a = 0 read 128, b = 1 write 64],
                concat!(load!($w, 2, "a"), store!($w, mov, 1, "b"))),
            row!($w, "mix-3:1" "-x2-strided", R3W1X2, Whole of LINE, [a = 0 read 64, b = 1 read 64, c = 2 write 64],
                concat!(load!($w, 1, "a"), load!($w, 1, "b"), store!($w, mov, 1, "c"))),
            row!($w, "mix-2:1" "-strided", R2W1, Whole of LINE, [a = 0 read 128, b = 1 write 128],
                concat!(load!($w, 2, "a"), store!($w, mov, 2, "b"))),
            row!($w, "mix-3:2" "-strided", R3W2, Whole of LINE, [a = 0 read 64, b = 1 write 128],
                concat!(load!($w, 1, "a"), store!($w, mov, 2, "b"))),
            row!($w, "store" "-strided", R1W1, Whole of LINE, [a = 0 write 256], store!($w, mov, 4, "a")),
            row!($w, "nt-store" "-strided", NtWrite, Whole of LINE, [a = 0 write 256], store!($w, nt_mov, 4, "a"), "sfence\n"),
            row!($w, "mix-3:1-nt" "-strided", R3W1Nt, Whole of LINE, [a = 0 read 192, b = 1 write 64],
                concat!(load!($w, 3, "a"), store!($w, nt_mov, 1, "b")), "sfence\n"),
            row!($w, "mix-2:1-nt" "-strided", R2W1NtX1, Whole of LINE, [a = 0 read 128, b = 1 write 64],
                concat!(load!($w, 2, "a"), store!($w, nt_mov, 1, "b")), "sfence\n"),
            row!($w, "triad-nt" "-strided", R2W1Nt, Whole of LINE, [a = 0 read 64, b = 1 read 64, c = 2 write 64],
                concat!(
                    parts!($w!(parts),
                        load_part!($w, "{a} + \\part"), concat!($w!(add), "[{b} + \\part]"), store_loaded!($w, nt_mov, "{c} + \\part")),
                    next!("a"), "\n", next!("b"), "\n", next!("c"), "\n"),
                "sfence\n"),
            row!($w, "copy-nt" "-strided", R1W1Nt, Whole of LINE, [a = 0 read 128, b = 1 write 128],
                times!(2,
                    parts!($w!(parts), load_part!($w, "{a} + \\part"), store_loaded!($w, nt_mov, "{b} + \\part")),
                    next!("a"), next!("b")),
                "sfence\n"),
        ]
    };
}

/// Every kernel of one width that touches a part of each line.
#[rustfmt::skip] // As above.
macro_rules! part {
    ($w:ident) => {
        [
            row!($w, "load" "-part", AllReads, Part of $w!(bytes), [a = 0 read { $w!(bytes) * 4 }], load_first!($w, 4, "a")),
            row!($w, "mix-4:1" "-part", R4W1, Part of $w!(bytes), [a = 0 read { $w!(bytes) * 3 }, b = 1 write { $w!(bytes) }],
                concat!(load_first!($w, 3, "a"), store_first!($w, 1, "b"))),
            row!($w, "mix-3:1" "-part", R3W1, Part of $w!(bytes), [a = 0 read { $w!(bytes) * 2 }, b = 1 write { $w!(bytes) }],
                concat!(load_first!($w, 2, "a"), store_first!($w, 1, "b"))),
            row!($w, "mix-2:1" "-part", R2W1, Part of $w!(bytes), [a = 0 read { $w!(bytes) * 2 }, b = 1 write { $w!(bytes) * 2 }],
                concat!(load_first!($w, 2, "a"), store_first!($w, 2, "b"))),
            row!($w, "mix-3:2" "-part", R3W2, Part of $w!(bytes), [a = 0 read { $w!(bytes) }, b = 1 write { $w!(bytes) * 2 }],
                concat!(load_first!($w, 1, "a"), store_first!($w, 2, "b"))),
            row!($w, "store" "-part", R1W1, Part of $w!(bytes), [a = 0 write { $w!(bytes) * 4 }], store_first!($w, 4, "a")),
        ]
    };
}

pub(super) const KERNELS: &[&[Kernel]] = &[&strided!(sse2), &strided!(avx2), &strided!(avx512), &part!(sse2), &part!(avx2)];
