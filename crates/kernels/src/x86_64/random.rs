//! x86-64: traffic over the lines of a window in pseudo-random order, an [`Order`](crate::order::Order).
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`.

use crate::kernel::Kernel;
use crate::line::LINE;
use crate::order::STEP_LINES;

/// The next line's offset in the window to `{line}`, which held the line to store until that was in registers. `$entry` is the offset of
/// its entry.
macro_rules! next {
    ($entry:literal) => {
        concat!("mov {line}, {turn}\n xor {line}, [{end} + {at} + ", $entry, "]")
    };
}

/// A step of a chunk: what is stored comes behind what is loaded.
macro_rules! step {
    ($width:ident, Load at $lines:tt) => {
        lines!($lines, next!("\\line / 8"), whole!($width, Load "{a} + {line}"))
    };
    ($width:ident, $operation:ident at $lines:tt) => {
        lines!($lines, next!("{loaded} + \\line / 8"), whole!($width, $operation "{a} + {line}"))
    };
}

/// The kernel of a mix: loads and stores go to the same window.
macro_rules! random {
    (($w:ident) $mix:ident $stores:ident $head:literal $tail:literal { $($operation:ident $s:ident at $lines:tt;)+ }) => {
        // A window stays where it is.
        kernel!(concat!($head, "-", $w!(name), $tail, "-random"), $mix, $w, $w!(supported), form Random Whole of LINE,
            streams [a Stream::window(Mix::$mix)], advance ["", ""],
            chunk concat!(
                $(step!($w, $operation at $lines),)+
                // Behind them: the rest of the table, or all of it and the next turn of each block.
                "add {at}, {loaded} + {stored}\n jnz 7f\n mov {at}, {back}\n add {turn}, {step}\n and {turn}, {mask}\n 7:\n"),
            finish finish!($stores),
            operands(walk) [
                line = inout(reg) std::ptr::from_ref(walk.stored) => _, end = in(reg) walk.entry.end, back = in(reg) walk.entry.back,
                at = inout(reg) walk.entry.at => _, turn = inout(reg) walk.entry.turn => _, mask = in(reg) walk.entry.mask,
                step = const STEP_LINES * LINE as usize,
                // Bytes of the table's entries for what a chunk loads, and for what it stores.
                loaded = const Mix::$mix.chunk_lines().0 * size_of::<u64>() as u32,
                stored = const Mix::$mix.chunk_lines().1 * size_of::<u64>() as u32,
            ])
    };
}

pub(super) const KERNELS: &[&[&[Kernel]]] =
    &[each_mix!(random_mixes => random (sse2)), each_mix!(random_mixes => random (avx2)), each_mix!(random_mixes => random (avx512))];
