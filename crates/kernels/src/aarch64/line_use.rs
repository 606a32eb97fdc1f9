//! aarch64: sequential traffic that writes stored lines back to memory (`dc cvac`), or keeps a checksum of what it loads.
//!
//! Verified by `tests/` under QEMU's user-mode emulation only.

use crate::kernel::Kernel;
use crate::line::LINE;

/// Cleans the line that is counted to memory, which Linux lets programs do (SCTLR_EL1.UCI).
macro_rules! clean {
    (fixed $s:ident $lines:tt) => { concat!("add x9, ", place!(fixed $s $lines), "\n dc cvac, x9") };
    // The first line of a stream whose pointer moves on after each chunk.
    (own $s:ident [0]) => { concat!("dc cvac, {", stringify!($s), "}") };
}

/// The kernel of a mix whose stored lines are written back.
macro_rules! written_back {
    // Loads reach 1008 bytes from their pointer, so it moves on after each chunk.
    (() $mix:ident $stores:ident $head:literal $tail:literal { Load $a:ident at [0, 64, 128, 192, $($line:literal),+]; Store $b:ident at [0]; }) => {
        written_back!(own $mix, concat!($head, "-neon-cvac"), { Load $a at [0, 64, 128, 192, $($line),+]; Store $b at [0]; })
    };
    (() $mix:ident $stores:ident $head:literal $tail:literal { $(Load $a:ident at $loaded:tt;)? Store $b:ident at $stored:tt; }) => {
        written_back!(fixed $mix, concat!($head, "-neon-cvac"), { $(Load $a at $loaded;)? Store $b at $stored; })
    };
    ($advance:ident $mix:ident, $name:expr, { $(Load $a:ident at $loaded:tt;)? Store $b:ident at $stored:tt; }) => {
        in_order!($name, $mix, WrittenBack, $advance, [$(Load $a $loaded,)? Store $b $stored],
            chunk concat!(
                $(step!($advance, Load $a at $loaded),)?
                lines!($stored, whole!(Store place!($advance $b $stored)), clean!($advance $b $stored))),
            finish "dsb ish", line(walk) std::ptr::from_ref(walk.stored))
    };
}

/// Checksums: the stored line starts as the sum so far.
const CHECKED: &[&[Kernel]] = &[&[in_order!("xor-neon", AllReads, Checked, fixed, [Load a [0, 64, 128, 192]],
    chunk lines!([0, 64, 128, 192],
        concat!("ldp q0, q1, ", half!(first place!(fixed a [0, 64, 128, 192])), "eor v4.16b, v4.16b, v0.16b\n eor v5.16b, v5.16b, v1.16b"),
        concat!("ldp q2, q3, ", half!(second place!(fixed a [0, 64, 128, 192])), "eor v6.16b, v6.16b, v2.16b\n eor v7.16b, v7.16b, v3.16b")),
    finish "stp q4, q5, [{line}]\n stp q6, q7, [{line}, #32]", line(walk) &raw mut walk.sum)]];

pub(super) const KERNELS: &[&[&[Kernel]]] = &[each_mix!(written_back_mixes => written_back ()), CHECKED];
