//! aarch64: traffic over the lines of a window in pseudo-random order, an [`Order`](crate::order::Order).
//!
//! Verified by `tests/` under QEMU's user-mode emulation only.

use crate::kernel::Kernel;
use crate::line::LINE;
use crate::order::STEP_LINES;

/// The next line's address to `{y}`.
macro_rules! next {
    () => {
        "ldr {y}, [{end}, {at}]\n eor {y}, {y}, {turn}\n add {y}, {y}, {a}\n add {at}, {at}, #8"
    };
}

/// The kernel of a mix: loads and stores go to the same window.
macro_rules! random {
    (() $mix:ident $stores:ident $head:literal $tail:literal { $($operation:ident $s:ident at $lines:tt;)+ }) => {
        // A window stays where it is.
        kernel!(concat!($head, "-neon", $tail, "-random"), $mix, Neon, || true, form Random Whole of LINE,
            streams [a Stream::window(Mix::$mix)], advance ["", ""],
            chunk concat!(
                $(lines!($lines, next!(), whole!($operation "{y}, #0")),)+
                // Behind a chunk at the table's end: all of it again, and the next turn of each block.
                "cbnz {at}, 7f\n mov {at}, {back}\n add {turn}, {turn}, {step}\n and {turn}, {turn}, {mask}\n 7:\n"),
            finish "", operands(walk) [
                line = in(reg) std::ptr::from_ref(walk.stored), end = in(reg) walk.entry.end, back = in(reg) walk.entry.back,
                at = inout(reg) walk.entry.at => _, turn = inout(reg) walk.entry.turn => _, mask = in(reg) walk.entry.mask,
                step = in(reg) STEP_LINES * LINE as usize, y = out(reg) _,
            ])
    };
}

pub(super) const KERNELS: &[&[&[Kernel]]] = &[each_mix!(random_mixes => random ())];
