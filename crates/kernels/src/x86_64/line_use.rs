//! x86-64: sequential traffic that writes stored lines back to memory (CLWB, CLFLUSHOPT), or keeps a checksum of what it loads.
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`.

use crate::kernel::Kernel;
use crate::line::LINE;

use super::cpu::FEATURES;

/// The kernel of a mix whose stored lines are written back by the instruction `$back`.
macro_rules! written_back {
    (($w:ident $back:ident) $mix:ident $stores:ident $head:literal $tail:literal {
        $(Load $a:ident at $loaded:tt;)? Store $b:ident at $stored:tt;
    }) => {
        in_order!(concat!($head, "-", $w!(name), "-", stringify!($back)), $mix, $w, || FEATURES.$back && ($w!(supported))(), WrittenBack,
            [$(Load $a $loaded,)? Store $b $stored],
            chunk concat!(
                $(step!($w, Load $a at $loaded),)?
                lines!($stored, whole!($w, Store place!($b $stored)), concat!(stringify!($back), " [", place!($b $stored), "]"))),
            finish "sfence\n", line(walk) std::ptr::from_ref(walk.stored))
    };
}

/// Checksums: the slots hold the sum so far, so it is the line to begin with.
macro_rules! checked {
    ($w:ident) => {
        &[&[in_order!(concat!("xor-", $w!(name)), AllReads, $w, $w!(supported), Checked, [Load a [0, 64, 128, 192]],
            chunk lines!([0, 64, 128, 192], slots!($w, concat!($w!(xor), part!($w, place!(a [0, 64, 128, 192]))))),
            finish slots!($w, operation!($w, Store part!($w, "{line}"))),
            line(walk) &raw mut walk.sum)]]
    };
}

pub(super) const KERNELS: &[&[&[Kernel]]] = &[
    each_mix!(written_back_mixes => written_back (sse2 clwb)),
    each_mix!(written_back_mixes => written_back (sse2 clflushopt)),
    checked!(sse2),
    each_mix!(written_back_mixes => written_back (avx2 clwb)),
    each_mix!(written_back_mixes => written_back (avx2 clflushopt)),
    checked!(avx2),
    each_mix!(written_back_mixes => written_back (avx512 clwb)),
    each_mix!(written_back_mixes => written_back (avx512 clflushopt)),
    checked!(avx512),
];
