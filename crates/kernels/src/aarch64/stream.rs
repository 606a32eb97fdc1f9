//! aarch64: traffic over whole lines, one after the other, with NEON load and store pairs (32 bytes), their non-temporal forms, and
//! `dc zva`.
//!
//! Verified by `tests/` under QEMU's user-mode emulation only (as Neoverse N1, which has 64-byte `dc zva`, and as `max`, which has not).
//!
//! Non-temporal pairs need no fence at the end: they are hints about caching and ordered like any store.

use std::arch::asm;

use crate::kernel::Kernel;
use crate::line::LINE;

/// Whether `dc zva` is allowed and zeroes 64 bytes, the alignment that streams have.
fn zva_64() -> bool {
    let id: u64;
    // SAFETY: reads an identification register open to programs.
    unsafe { asm!("mrs {}, dczid_el0", out(reg) id, options(nomem, nostack, preserves_flags)) };
    // Bit 4: prohibited. Bits 0 to 3: the logarithm of the block's 4-byte words.
    id & 0x1F == 4
}

/// The kernel of a mix.
macro_rules! sequential {
    // Loads reach 1008 bytes from their pointer, so it moves on after each chunk.
    (() $mix:ident $stores:ident $head:literal $tail:literal { Load $a:ident at [0, 64, 128, 192, $($line:literal),+]; Store $b:ident at [0]; }) => {
        sequential!(own $mix, concat!($head, "-neon", $tail), { Load $a at [0, 64, 128, 192, $($line),+]; Store $b at [0]; })
    };
    (() $mix:ident $stores:ident $head:literal $tail:literal $chunk:tt) => {
        sequential!(fixed $mix, concat!($head, "-neon", $tail), $chunk)
    };
    ($advance:ident $mix:ident, $name:expr, { $($($operation:ident $s:ident),+ at $lines:tt;)+ }) => {
        in_order!($name, $mix, Whole, $advance, [$($($operation $s $lines),+),+],
            chunk concat!($(step!($advance, $($operation $s),+ at $lines)),+), finish "", line(walk) std::ptr::from_ref(walk.stored))
    };
}

/// Kernels of mixes that have others, too.
const MORE: &[&[Kernel]] = &[&[
    // Two and four streams: more pages open at once, more streams for the prefetchers to follow.
    sequential!(() AllReads None "load" "-x2" { Load a, Load b at [0, 64]; }),
    sequential!(() AllReads None "load" "-x4" { Load a, Load b, Load c, Load d at [0]; }),
    sequential!(() R1W1 Plain "store" "-x2" { Store a, Store b at [0, 64]; }),
    // A prefetch beyond the stream's end is harmless: it never faults.
    in_order!("load-neon-prefetch", AllReads, Whole, fixed, [Load a [0, 64, 128, 192]],
        chunk concat!(
            lines!([0, 64, 128, 192], concat!("prfm pldl1keep, [", place!(fixed a [0, 64, 128, 192]), " + 4096]")),
            step!(fixed, Load a at [0, 64, 128, 192])),
        finish "", line(walk) std::ptr::from_ref(walk.stored)),
    in_order!("load-neon-ldnp", AllReads, Whole, fixed, [Load a [0, 64, 128, 192]],
        chunk lines!([0, 64, 128, 192],
            concat!("ldnp q0, q1, ", half!(first place!(fixed a [0, 64, 128, 192]))),
            concat!("ldnp q0, q1, ", half!(second place!(fixed a [0, 64, 128, 192])))),
        finish "", line(walk) std::ptr::from_ref(walk.stored)),
    kernel!("fill-zva", Fill, String, zva_64, form Sequential Whole of LINE, streams [a stream!(FillLine [0, 64, 128, 192], LINE)],
        advance [advance!(4, a [0, 64, 128, 192]), advance!(1, a [0, 64, 128, 192])],
        chunk lines!([0, 64, 128, 192], concat!("add x9, ", place!(fixed a [0, 64, 128, 192]), "\n dc zva, x9")),
        finish "", operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),]),
]];

pub(super) const KERNELS: &[&[&[Kernel]]] = &[each_mix!(sequential_mixes => sequential ()), MORE];
