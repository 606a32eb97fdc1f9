//! x86-64: traffic over lines that are one stride apart, and traffic that touches a part of each line.
//!
//! A line's place is a register that moves on by another: one dependent addition a line, a cycle, which no memory is faster than.
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`. AVX-512 has no parts:
//! one access is the whole line, and a core need not read a line that is stored in full.

use crate::kernel::Kernel;
use crate::line::LINE;

/// A step of a chunk: `$accesses` is `whole` for lines or `first` for a part of each. Lines of streams that are only loaded come one after the
/// other.
macro_rules! step {
    ($width:ident, $accesses:ident, Load $a:ident, Load $b:ident at $lines:tt) => {
        concat!(step!($width, $accesses, Load $a at $lines), step!($width, $accesses, Load $b at $lines))
    };
    ($width:ident, $accesses:ident, $($operation:ident $s:ident),+ at $lines:tt) => {
        lines!($lines,
            $accesses!($width, $($operation concat!("{", stringify!($s), "}")),+),
            $(concat!("add {", stringify!($s), "}, {stride}")),+)
    };
}

/// Operations on the first part of the lines at these places.
macro_rules! first {
    ($width:ident, $($operation:ident $place:expr),+) => {
        concat!(".irp slot,1\n", $(operation!($width, $operation part!($width, $place)), "\n",)+ ".endr\n")
    };
}

/// A kernel whose chunk moves its pointers on by `{stride}` after each line.
macro_rules! row {
    ($name:expr, $mix:ident, $w:ident, $accesses:ident, $use:ident of $touched:expr, finish $finish:expr,
     [$($($operation:ident $s:ident),+ at $lines:tt;)+]) => {
        kernel!($name, $mix, $w, $w!(supported), form Strided $use of $touched,
            streams [$($($s stream!($operation $lines, $touched)),+),+], advance ["", ""],
            chunk concat!($(step!($w, $accesses, $($operation $s),+ at $lines)),+), finish $finish,
            operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,])
    };
}

/// The kernel of a mix that touches whole lines.
macro_rules! strided {
    (($w:ident) $mix:ident $stores:ident $head:literal $tail:literal { $($chunk:tt)+ }) => {
        row!(concat!($head, "-", $w!(name), $tail, "-strided"), $mix, $w, whole, Whole of LINE, finish finish!($stores), [$($chunk)+])
    };
}

/// The kernel of a mix that touches a part of each line.
macro_rules! part_of_line {
    (($w:ident) $mix:ident $stores:ident $head:literal $tail:literal { $($chunk:tt)+ }) => {
        row!(concat!($head, "-", $w!(name), "-part"), $mix, $w, first, Part of $w!(bytes), finish "",
            [$($chunk)+])
    };
}

pub(super) const KERNELS: &[&[&[Kernel]]] = &[
    each_mix!(strided_mixes => strided (sse2)),
    each_mix!(strided_mixes => strided (avx2)),
    each_mix!(strided_mixes => strided (avx512)),
    each_mix!(part_mixes => part_of_line (sse2)),
    each_mix!(part_mixes => part_of_line (avx2)),
];
