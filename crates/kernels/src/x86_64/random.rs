//! x86-64: traffic over the lines of a window in pseudo-random order, an [`Order`](crate::order::Order).
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`.

use memgauge_core::traffic::{Access, Form, LineUse, Mix, Width};

use crate::kernel::{BURSTS_PER_STEP, Kernel, LINE, Stream, Walk, burst_lines};
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

/// A kernel whose burst takes its lines from an order; `advance own`, because a window stays where it is.
macro_rules! random_kernel {
    ($name:expr, $mix:ident, $width:ident, $supported:expr, streams $streams:tt, prepare $prepare:expr, burst $burst:expr, finish $finish:expr) => {
        kernel!($name, $mix, $width, $supported, form Random Whole of LINE, streams $streams, advance own,
            prepare $prepare, burst $burst, finish $finish,
            operands(walk) [
                line = inout(reg) std::ptr::from_ref(walk.stored) => _, end = in(reg) walk.entry.end, back = in(reg) walk.entry.back,
                at = inout(reg) walk.entry.at => _, turn = inout(reg) walk.entry.turn => _, mask = in(reg) walk.entry.mask,
                step = const STEP_LINES * LINE as usize,
            ])
    };
}

/// Kernels of one width.
pub(super) const PER_WIDTH: usize = 10;

/// Every kernel of one width.
#[rustfmt::skip] // It cannot indent calls inside a list.
macro_rules! random {
    ($list:ident, $suffix:literal, $width:ident, $supported:expr, parts $parts:literal, slots $slots:tt, loaded $loaded:literal,
     move $mov:literal, non_temporal $nt:literal, add $add:literal, xor $xor:literal, clean $clean:literal) => {
        pub(super) const $list: [Kernel; PER_WIDTH] = [
            random_kernel!(concat!("load-", $suffix, "-random"), AllReads, $width, $supported,
                streams [a = 0 both (256, 0)],
                prepare stored!($mov, $slots),
                burst concat!(
                    lines!("0,8,16,24", next!(), parts!($parts, concat!($mov, $loaded, ", [{a} + {line} + \\part]"))),
                    turn!(4)),
                finish $clean),
            random_kernel!(concat!("mix-9:1-", $suffix, "-random"), R9W1, $width, $supported,
                streams [a = 0 both (512, 64)],
                prepare stored!($mov, $slots),
                burst concat!(
                    lines!("0,8,16,24,32,40,48,56", next!(), parts!($parts, concat!($mov, $loaded, ", [{a} + {line} + \\part]"))),
                    lines!("64", next!(), from_slots!($mov, $slots, "{a} + {line}")),
                    turn!(9)),
                finish $clean),
            random_kernel!(concat!("mix-4:1-", $suffix, "-random"), R4W1, $width, $supported,
                streams [a = 0 both (192, 64)],
                prepare stored!($mov, $slots),
                burst concat!(
                    lines!("0,8,16", next!(), parts!($parts, concat!($mov, $loaded, ", [{a} + {line} + \\part]"))),
                    lines!("24", next!(), from_slots!($mov, $slots, "{a} + {line}")),
                    turn!(4)),
                finish $clean),
            random_kernel!(concat!("mix-3:1-", $suffix, "-random"), R3W1, $width, $supported,
                streams [a = 0 both (128, 64)],
                prepare stored!($mov, $slots),
                burst concat!(
                    lines!("0,8", next!(), parts!($parts, concat!($mov, $loaded, ", [{a} + {line} + \\part]"))),
                    lines!("16", next!(), from_slots!($mov, $slots, "{a} + {line}")),
                    turn!(3)),
                finish $clean),
            random_kernel!(concat!("mix-2:1-", $suffix, "-random"), R2W1, $width, $supported,
                streams [a = 0 both (128, 128)],
                prepare stored!($mov, $slots),
                burst concat!(
                    lines!("0,8", next!(), parts!($parts, concat!($mov, $loaded, ", [{a} + {line} + \\part]"))),
                    lines!("16,24", next!(), from_slots!($mov, $slots, "{a} + {line}")),
                    turn!(4)),
                finish $clean),
            random_kernel!(concat!("store-", $suffix, "-random"), R1W1, $width, $supported,
                streams [a = 0 both (0, 256)],
                prepare stored!($mov, $slots),
                burst concat!(
                    lines!("0,8,16,24", next!(), from_slots!($mov, $slots, "{a} + {line}")),
                    turn!(4)),
                finish $clean),
            random_kernel!(concat!("nt-store-", $suffix, "-random"), NtWrite, $width, $supported,
                streams [a = 0 both (0, 256)],
                prepare stored!($mov, $slots),
                burst concat!(
                    lines!("0,8,16,24", next!(), from_slots!($nt, $slots, "{a} + {line}")),
                    turn!(4)),
                finish concat!("sfence\n", $clean)),
            random_kernel!(concat!("mix-3:1-nt-", $suffix, "-random"), R3W1Nt, $width, $supported,
                streams [a = 0 both (192, 64)],
                prepare stored!($mov, $slots),
                burst concat!(
                    lines!("0,8,16", next!(), parts!($parts, concat!($mov, $loaded, ", [{a} + {line} + \\part]"))),
                    lines!("24", next!(), from_slots!($nt, $slots, "{a} + {line}")),
                    turn!(4)),
                finish concat!("sfence\n", $clean)),
            random_kernel!(concat!("mix-2:1-nt-", $suffix, "-random"), R2W1NtX1, $width, $supported,
                streams [a = 0 both (128, 64)],
                prepare stored!($mov, $slots),
                burst concat!(
                    lines!("0,8", next!(), parts!($parts, concat!($mov, $loaded, ", [{a} + {line} + \\part]"))),
                    lines!("16", next!(), from_slots!($nt, $slots, "{a} + {line}")),
                    turn!(3)),
                finish concat!("sfence\n", $clean)),
            random_kernel!(concat!("mix-1:1-nt-", $suffix, "-random"), R1W1Nt, $width, $supported,
                streams [a = 0 both (128, 128)],
                prepare stored!($mov, $slots),
                burst concat!(
                    lines!("0,8", next!(), parts!($parts, concat!($mov, $loaded, ", [{a} + {line} + \\part]"))),
                    lines!("16,24", next!(), from_slots!($nt, $slots, "{a} + {line}")),
                    turn!(4)),
                finish concat!("sfence\n", $clean)),
        ];
    };
}

widths!(random);
