//! aarch64: traffic over lines that are one stride apart, and traffic that touches a part of each line (16 bytes).
//!
//! A line's place is a register that moves on by another: one dependent addition a line, a cycle, which no memory is faster than.
//!
//! Verified by `tests/` under QEMU's user-mode emulation only.

use crate::kernel::Kernel;
use crate::line::LINE;

/// A step of a chunk: `$accesses` is `whole` for lines or `first` for a part of each. Lines of streams that are only loaded come one after the
/// other.
macro_rules! step {
    ($accesses:ident, Load $a:ident, Load $b:ident at $lines:tt) => {
        concat!(step!($accesses, Load $a at $lines), step!($accesses, Load $b at $lines))
    };
    ($accesses:ident, $($operation:ident $s:ident),+ at $lines:tt) => {
        lines!($lines,
            $accesses!($($operation concat!("{", stringify!($s), "}, #0")),+),
            $(concat!("add {", stringify!($s), "}, {", stringify!($s), "}, {stride}")),+)
    };
}

/// An operation on the first 16 bytes of the line at `$place`.
macro_rules! first {
    (Load $place:expr) => {
        concat!("ldr q0, [", $place, "]")
    };
    (Store $place:expr) => {
        concat!("str q4, [", $place, "]")
    };
}

/// A kernel whose chunk moves its pointers on by `{stride}` after each line.
macro_rules! row {
    ($name:expr, $mix:ident, $accesses:ident, $use:ident of $touched:expr, [$($($operation:ident $s:ident),+ at $lines:tt;)+]) => {
        kernel!($name, $mix, Neon, || true, form Strided $use of $touched,
            streams [$($($s stream!($operation $lines, $touched)),+),+], advance ["", ""],
            chunk concat!($(step!($accesses, $($operation $s),+ at $lines)),+), finish "",
            operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,])
    };
}

/// The kernel of a mix that touches whole lines.
macro_rules! strided {
    (() $mix:ident $stores:ident $head:literal $tail:literal { $($chunk:tt)+ }) => {
        row!(concat!($head, "-neon", $tail, "-strided"), $mix, whole, Whole of LINE, [$($chunk)+])
    };
}

/// The kernel of a mix that touches a part of each line.
macro_rules! part_of_line {
    (() $mix:ident $stores:ident $head:literal $tail:literal { $($chunk:tt)+ }) => {
        row!(concat!($head, "-neon-part"), $mix, first, Part of 16, [$($chunk)+])
    };
}

pub(super) const KERNELS: &[&[&[Kernel]]] = &[each_mix!(strided_mixes => strided ()), each_mix!(part_mixes => part_of_line ())];
