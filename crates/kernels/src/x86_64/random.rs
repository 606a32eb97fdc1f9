//! x86-64: traffic over the lines of a window in pseudo-random order, an [`Order`](crate::order::Order).
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`.

use crate::kernel::Kernel;
use crate::line::LINE;
use crate::order::STEP_LINES;

/// The next line's offset in the window to `{line}`, which held the line to store until that was in registers. `\line` is the offset of
/// its entry.
macro_rules! next {
    () => {
        "mov {line}, {turn}\n xor {line}, [{end} + {at} + \\line]"
    };
}

/// Behind `$lines` lines: the rest of the table, or all of it and the next turn of each block.
macro_rules! turn {
    ($lines:literal) => {
        concat!("add {at}, 8 * ", $lines, "\n jnz 7f\n mov {at}, {back}\n add {turn}, {step}\n and {turn}, {mask}\n 7:\n")
    };
}

/// Loads the next lines, whose entries have these offsets.
macro_rules! load {
    ($width:ident, $entries:literal) => {
        lines!($entries, next!(), parts!($width!(parts), load_part!($width, "{a} + {line} + \\part")))
    };
}

/// Stores the next lines, whose entries have these offsets, by `$mov`.
macro_rules! store {
    ($width:ident, $mov:ident, $entries:literal) => {
        lines!($entries, next!(), store_slots!($width, $mov, "{a} + {line}"))
    };
}

/// A kernel over one window, of which a burst of `$lines` lines reads and writes so many bytes. `advance own`, because a window stays
/// where it is.
macro_rules! row {
    ($width:ident, $name:literal, $mix:ident, $traffic:tt, $lines:literal, $burst:expr $(, $finish:literal)?) => {
        kernel!(concat!($name, "-", $width!(name), "-random"), $mix, $width, $width!(supported), form Random Whole of LINE,
            streams [a = 0 both $traffic], advance own, burst concat!($burst, turn!($lines)), finish concat!($($finish)?),
            operands(walk) [
                line = inout(reg) std::ptr::from_ref(walk.stored) => _, end = in(reg) walk.entry.end, back = in(reg) walk.entry.back,
                at = inout(reg) walk.entry.at => _, turn = inout(reg) walk.entry.turn => _, mask = in(reg) walk.entry.mask,
                step = const STEP_LINES * LINE as usize,
            ])
    };
}

/// Every kernel of one width.
#[rustfmt::skip] // It cannot indent calls inside a list.
macro_rules! random {
    ($w:ident) => {
        [
            row!($w, "load", AllReads, (256, 0), 4, load!($w, "0,8,16,24")),
            row!($w, "mix-9:1", R9W1, (512, 64), 9, concat!(load!($w, "0,8,16,24,32,40,48,56"), store!($w, mov, "64"))),
            row!($w, "mix-4:1", R4W1, (192, 64), 4, concat!(load!($w, "0,8,16"), store!($w, mov, "24"))),
            row!($w, "mix-3:1", R3W1, (128, 64), 3, concat!(load!($w, "0,8"), store!($w, mov, "16"))),
            row!($w, "mix-2:1", R2W1, (128, 128), 4, concat!(load!($w, "0,8"), store!($w, mov, "16,24"))),
            row!($w, "mix-3:2", R3W2, (64, 128), 3, concat!(load!($w, "0"), store!($w, mov, "8,16"))),
            row!($w, "store", R1W1, (0, 256), 4, store!($w, mov, "0,8,16,24")),
            row!($w, "nt-store", NtWrite, (0, 256), 4, store!($w, nt_mov, "0,8,16,24"), "sfence\n"),
            row!($w, "mix-3:1-nt", R3W1Nt, (192, 64), 4, concat!(load!($w, "0,8,16"), store!($w, nt_mov, "24")), "sfence\n"),
            row!($w, "mix-2:1-nt", R2W1NtX1, (128, 64), 3, concat!(load!($w, "0,8"), store!($w, nt_mov, "16")), "sfence\n"),
            row!($w, "mix-1:1-nt", R1W1Nt, (128, 128), 4, concat!(load!($w, "0,8"), store!($w, nt_mov, "16,24")), "sfence\n"),
        ]
    };
}

pub(super) const KERNELS: &[&[Kernel]] = &[&random!(sse2), &random!(avx2), &random!(avx512)];
