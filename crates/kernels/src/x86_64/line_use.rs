//! x86-64: sequential traffic that writes stored lines back to memory (CLWB, CLFLUSHOPT), or keeps a checksum of what it loads.
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`.

use crate::kernel::Kernel;
use crate::line::LINE;

use super::cpu::FEATURES;

/// Stores lines of stream `$s`, of which a burst has `$bytes` bytes, and writes each back by `$instruction`.
macro_rules! store_back {
    ($width:ident, $instruction:ident, $lines:literal, $s:literal, $bytes:literal) => {
        store_lines!($width, mov, $lines, $s, $bytes, concat!(stringify!($instruction), " [", line_at!($s, $bytes), "]"))
    };
}

/// A kernel that stores lines by `store_back!`.
macro_rules! written_back {
    ($width:ident, $name:literal, $mix:ident, $back:ident, $streams:tt, $burst:expr) => {
        kernel!(concat!($name, "-", $width!(name), "-", stringify!($back)), $mix, $width, || FEATURES.$back && ($width!(supported))(),
            form Sequential WrittenBack of LINE, streams $streams, advance fixed, burst $burst, finish "sfence\n",
            operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),])
    };
}

/// Every mix that stores lines, written back by one instruction.
#[rustfmt::skip] // It cannot indent calls inside a list.
macro_rules! each_mix {
    ($w:ident, $back:ident) => {
        [
            written_back!($w, "mix-9:1", R9W1, $back, [a = 0 read 512, b = 1 write 64],
                concat!(load_lines!($w, "0,64,128,192,256,320,384,448", "a", 512), store_back!($w, $back, "0", "b", 64))),
            written_back!($w, "mix-4:1", R4W1, $back, [a = 0 read 192, b = 1 write 64],
                concat!(load_lines!($w, "0,64,128", "a", 192), store_back!($w, $back, "0", "b", 64))),
            written_back!($w, "mix-3:1", R3W1, $back, [a = 0 read 128, b = 1 write 64],
                concat!(load_lines!($w, "0,64", "a", 128), store_back!($w, $back, "0", "b", 64))),
            written_back!($w, "mix-2:1", R2W1, $back, [a = 0 read 128, b = 1 write 128],
                concat!(load_lines!($w, "0,64", "a", 128), store_back!($w, $back, "0,64", "b", 128))),
            written_back!($w, "mix-3:2", R3W2, $back, [a = 0 read 64, b = 1 write 128],
                concat!(load_lines!($w, "0", "a", 64), store_back!($w, $back, "0,64", "b", 128))),
            written_back!($w, "store", R1W1, $back, [a = 0 write 256], store_back!($w, $back, "0,64,128,192", "a", 256)),
        ]
    };
}

/// Checksums: the slots hold the sum so far, so it is the line to begin with.
macro_rules! checked {
    ($w:ident) => {
        [kernel!(concat!("xor-", $w!(name)), AllReads, $w, $w!(supported), form Sequential Checked of LINE,
            streams [a = 0 read 256], advance fixed,
            burst lines!("0,64,128,192", slots!($w, concat!($w!(xor), slot_at!($w, line_at!("a", 256))))),
            finish store_slots!($w, mov, "{line}"),
            operands(walk) [line = in(reg) &raw mut walk.sum,])]
    };
}

pub(super) const KERNELS: &[&[Kernel]] = &[
    &each_mix!(sse2, clwb),
    &each_mix!(sse2, clflushopt),
    &checked!(sse2),
    &each_mix!(avx2, clwb),
    &each_mix!(avx2, clflushopt),
    &checked!(avx2),
    &each_mix!(avx512, clwb),
    &each_mix!(avx512, clflushopt),
    &checked!(avx512),
];
