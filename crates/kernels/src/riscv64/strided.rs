//! riscv64: traffic over lines that are one stride apart, and traffic that touches a part of each line (8 bytes).
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
            $accesses!($($operation "0", concat!("{", stringify!($s), "}"));+),
            $(concat!("add {", stringify!($s), "}, {", stringify!($s), "}, {stride}")),+)
    };
}

/// An operation on the first 8 bytes of the line at a place.
macro_rules! first {
    ($operation:ident $offset:expr, $pointer:expr) => {
        operation!($operation $offset, $pointer, " + 0" "t1")
    };
}

/// A kernel whose chunk moves its pointers on by `{stride}` after each line.
macro_rules! row {
    ($name:expr, $mix:ident, $accesses:ident, $use:ident of $touched:expr, [$($($operation:ident $s:ident),+ at $lines:tt;)+]) => {
        kernel!($name, $mix, form Strided $use of $touched,
            streams [$($($s stream!($operation $lines, $touched)),+),+], advance ["", ""],
            chunk concat!($(step!($accesses, $($operation $s),+ at $lines)),+), finish "",
            operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,])
    };
}

/// The kernel of a mix that touches whole lines.
macro_rules! strided {
    (() $mix:ident $stores:ident $head:literal $tail:literal { $($chunk:tt)+ }) => {
        row!(concat!($head, "-scalar", $tail, "-strided"), $mix, whole, Whole of LINE, [$($chunk)+])
    };
}

/// The kernel of a mix that touches a part of each line.
macro_rules! part_of_line {
    (() $mix:ident $stores:ident $head:literal $tail:literal { $($chunk:tt)+ }) => {
        row!(concat!($head, "-scalar-part"), $mix, first, Part of 8, [$($chunk)+])
    };
}

pub(super) const KERNELS: &[&[&[Kernel]]] =
    &[each_mix!(plain_mixes => strided_mixes (strided ())), each_mix!(part_mixes => part_of_line ())];
