//! riscv64: traffic over whole lines, one after the other, by the base instruction set. It has no non-temporal stores and no string
//! instructions, so those mixes are absent.
//!
//! Verified by `tests/` under QEMU's user-mode emulation only.

use crate::kernel::Kernel;
use crate::line::LINE;

/// The kernel of a mix.
macro_rules! sequential {
    // Additions of constants reach 2047, so pointers move on after each chunk.
    (() $mix:ident $stores:ident $head:literal $tail:literal { Load $a:ident at [0, 64, 128, 192, $($line:literal),+]; Store $b:ident at [0]; }) => {
        sequential!(own $mix, concat!($head, "-scalar", $tail), { Load $a at [0, 64, 128, 192, $($line),+]; Store $b at [0]; })
    };
    (() $mix:ident $stores:ident $head:literal $tail:literal $chunk:tt) => {
        sequential!(fixed $mix, concat!($head, "-scalar", $tail), $chunk)
    };
    ($advance:ident $mix:ident, $name:expr, { $($($operation:ident $s:ident),+ at $lines:tt;)+ }) => {
        in_order!($name, $mix, Whole, $advance, [$($($operation $s $lines),+),+],
            chunk concat!($(step!($advance, $($operation $s),+ at $lines)),+), finish "", line(walk) std::ptr::from_ref(walk.stored))
    };
}

/// Two streams: more pages open at once, more streams for the prefetchers to follow.
const MORE: &[&[Kernel]] = &[&[sequential!(() AllReads None "load" "-x2" { Load a, Load b at [0, 64]; })]];

pub(super) const KERNELS: &[&[&[Kernel]]] = &[each_mix!(plain_mixes => sequential_mixes (sequential ())), MORE];
