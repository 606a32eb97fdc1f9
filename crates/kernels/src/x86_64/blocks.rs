//! x86-64: blocks of lines in pseudo-random order: loaded, stored past the caches, or stored and made durable block by block.
//!
//! Vectors of 16 bytes are enough: such traffic is limited by memory, and non-temporal stores of one line are combined whatever their width.
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`.

use memgauge_model::traffic::{LineUse, PersistMethod};

use crate::kernel::Kernel;
use crate::line::LINE;
use crate::order::STEP_LINES;

use super::cpu::FEATURES;

/// Behind a line: the next one of its block or, after `$done`, the first one of the next block. The offsets are those of `Blocks`.
macro_rules! next {
    ($done:literal) => {
        concat!(
            "add {to}, 64\n sub {left}, 1\n jnz 7f\n",
            $done,
            "mov {to}, [{w} + 16]\n xor {to}, [{at}]\n imul {to}, [{w} + 32]\n add {at}, 8\n cmp {at}, [{w} + 8]\n jne 6f\n",
            "mov {at}, [{w}]\n mov {left}, [{w} + 16]\n add {left}, {step}\n and {left}, [{w} + 24]\n mov [{w} + 16], {left}\n",
            "6:\n mov {left}, [{w} + 32]\n 7:"
        )
    };
}

/// A kernel whose chunk of four lines reads and writes the bytes of `$traffic`.
macro_rules! row {
    ($name:literal, $mix:ident, $supported:expr, $traffic:tt, $chunk:expr) => {
        kernel!($name, $mix, sse2, $supported, form Blocks Whole of LINE, streams [a Stream::both($traffic)], advance ["", ""], chunk $chunk,
            finish "sfence\n",
            operands(walk) [
                line = in(reg) std::ptr::from_ref(walk.stored), w = in(reg) &raw mut walk.blocks, at = inout(reg) walk.blocks.assume_init_ref().at => _,
                to = inout(reg) walk.blocks.assume_init_ref().to => _, left = inout(reg) walk.blocks.assume_init_ref().left => _, step = const STEP_LINES * LINE as usize,
            ])
    };
}

/// Stores lines by `$store`; `$back` follows each, and a fence each block.
macro_rules! persisted {
    ($name:literal, $method:ident, $mix:ident, $supported:expr, $store:ident, $back:literal) => {
        row!($name, $mix, $supported, (0, 256), times!(4, whole!(sse2, $store "{a} + {to}"), $back, next!("sfence\n")))
            .with_line(LineUse::Persisted(PersistMethod::$method))
    };
}

/// The same, line by line: `mfence` waits for the line, which is then loaded, and nothing overtakes that.
macro_rules! read_back {
    ($name:literal, $method:ident, $mix:ident, $supported:expr, $store:ident, $back:literal) => {
        row!(
            $name,
            $mix,
            $supported,
            (128, 128),
            times!(
                2,
                whole!(sse2, $store "{a} + {to}"),
                $back,
                "mfence",
                whole!(sse2, Load "{a} + {to}"),
                "lfence",
                next!("")
            )
        )
        .with_line(LineUse::ReadBack(PersistMethod::$method))
    };
}

const WHOLE: &[Kernel] = &[
    row!("load-sse2-blocks", AllReads, || true, (256, 0), times!(4, whole!(sse2, Load "{a} + {to}"), next!(""))),
    row!("nt-store-sse2-blocks", NtWrite, || true, (0, 256), times!(4, whole!(sse2, NtStore "{a} + {to}"), next!(""))),
];

const PERSISTED: &[Kernel] = &[
    persisted!("persist-sse2-clwb", Clwb, R1W1, || FEATURES.clwb, Store, "clwb [{a} + {to}]"),
    persisted!("persist-sse2-clflushopt", Clflushopt, R1W1, || FEATURES.clflushopt, Store, "clflushopt [{a} + {to}]"),
    persisted!("persist-sse2-clflush", Clflush, R1W1, || true, Store, "clflush [{a} + {to}]"),
    persisted!("persist-sse2-nt-store", NtStore, NtWrite, || true, NtStore, ""),
];

const READ_BACK: &[Kernel] = &[
    read_back!("read-back-sse2-clwb", Clwb, R2W1, || FEATURES.clwb, Store, "clwb [{a} + {to}]"),
    read_back!("read-back-sse2-clflushopt", Clflushopt, R2W1, || FEATURES.clflushopt, Store, "clflushopt [{a} + {to}]"),
    read_back!("read-back-sse2-clflush", Clflush, R2W1, || true, Store, "clflush [{a} + {to}]"),
    read_back!("read-back-sse2-nt-store", NtStore, R1W1Nt, || true, NtStore, ""),
];

pub(super) const KERNELS: &[&[&[Kernel]]] = &[&[WHOLE, PERSISTED, READ_BACK]];
