//! aarch64: sequential traffic that writes stored lines back to memory (`dc cvac`), or keeps a checksum of what it loads.
//!
//! Verified by `tests/` under QEMU's user-mode emulation only.

use crate::kernel::Kernel;
use crate::line::LINE;

/// Stores lines of stream `$s` and cleans each to memory, which Linux lets programs do (SCTLR_EL1.UCI).
macro_rules! store_back {
    ($lines:literal, $s:literal, $bytes:literal) => {
        lines!(
            $lines,
            store_lines!("stp", "\\line", $s, $bytes),
            concat!("add x9, {", $s, "}, #", $bytes, " * \\burst + \\line\n dc cvac, x9")
        )
    };
}

/// A kernel that stores lines by `store_back!`.
macro_rules! written_back {
    ($name:literal, $mix:ident, streams $streams:tt, burst $burst:expr) => {
        kernel!($name, $mix, Neon, || true, form Sequential WrittenBack of LINE, streams $streams, advance fixed,
            burst $burst, finish "dsb ish", operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),])
    };
}

pub(super) const KERNELS: &[Kernel] = &[
    // Loads reach 1008 bytes from their pointer, so it moves on after each burst.
    kernel!("mix-9:1-neon-cvac", R9W1, Neon, || true, form Sequential WrittenBack of LINE,
        streams [a = 0 read 512, b = 1 write 64], advance own,
        burst concat!(
            pairs!("0,64,128,192,256,320,384,448", "ldp q0, q1, [{a}, #\\line + \\part]"),
            "stp q4, q5, [{b}]\n stp q6, q7, [{b}, #32]\n dc cvac, {b}\n add {a}, {a}, #512\n add {b}, {b}, #64\n"),
        finish "dsb ish", operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),]),
    written_back!("mix-4:1-neon-cvac", R4W1, streams [a = 0 read 192, b = 1 write 64],
        burst concat!(pairs!("0,64,128", ldp!("a", 192)), store_back!("0", "b", 64))),
    written_back!("mix-3:1-neon-cvac", R3W1, streams [a = 0 read 128, b = 1 write 64],
        burst concat!(pairs!("0,64", ldp!("a", 128)), store_back!("0", "b", 64))),
    written_back!("mix-2:1-neon-cvac", R2W1, streams [a = 0 read 128, b = 1 write 128],
        burst concat!(pairs!("0,64", ldp!("a", 128)), store_back!("0,64", "b", 128))),
    written_back!("mix-3:2-neon-cvac", R3W2, streams [a = 0 read 64, b = 1 write 128],
        burst concat!(pairs!("0", ldp!("a", 64)), store_back!("0,64", "b", 128))),
    written_back!("store-neon-cvac", R1W1, streams [a = 0 write 256], burst store_back!("0,64,128,192", "a", 256)),
    // The stored line starts as the sum so far.
    kernel!("xor-neon", AllReads, Neon, || true, form Sequential Checked of LINE, streams [a = 0 read 256], advance fixed,
        burst lines!("0,64,128,192",
            "ldp q0, q1, [{a}, #256 * \\burst + \\line]", "eor v4.16b, v4.16b, v0.16b", "eor v5.16b, v5.16b, v1.16b",
            "ldp q2, q3, [{a}, #256 * \\burst + \\line + 32]", "eor v6.16b, v6.16b, v2.16b", "eor v7.16b, v7.16b, v3.16b"),
        finish "stp q4, q5, [{line}]\n stp q6, q7, [{line}, #32]",
        operands(walk) [line = in(reg) &raw mut walk.sum,]),
];
