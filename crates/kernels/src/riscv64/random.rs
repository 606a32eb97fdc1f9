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

/// The kernel of a mix: loads and stores go to the same window.
macro_rules! random {
    (() $mix:ident $stores:ident $head:literal $tail:literal { $($operation:ident $s:ident at $lines:tt;)+ }) => {
        // A window stays where it is.
        kernel!(concat!($head, "-scalar", $tail, "-random"), $mix, form Random Whole of LINE,
            streams [a Stream::window(Mix::$mix)], advance ["", ""],
            chunk concat!(
                $(lines!($lines, next!(), whole!($operation "0", "{y}")),)+
                // Behind a chunk at the table's end: all of it again, and the next turn of each block.
                "bnez {at}, 7f\n mv {at}, {back}\n add {turn}, {turn}, {step}\n and {turn}, {turn}, {mask}\n 7:\n"),
            finish "", operands(walk) [
                line = in(reg) std::ptr::from_ref(walk.stored), end = in(reg) walk.entry.end, back = in(reg) walk.entry.back,
                at = inout(reg) walk.entry.at => _, turn = inout(reg) walk.entry.turn => _, mask = in(reg) walk.entry.mask,
                step = in(reg) STEP_LINES * LINE as usize, y = out(reg) _,
            ])
    };
}

pub(super) const KERNELS: &[&[&[Kernel]]] = &[each_mix!(plain_mixes => random_mixes (random ()))];
