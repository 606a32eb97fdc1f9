//! aarch64: blocks of lines in pseudo-random order: loaded, stored past the caches, or stored and made durable block by block.
//!
//! `dc cvap` and `dc cvadp` are written as the system instructions that they are, so that no assembler must know them. Non-temporal pairs
//! are only a hint, so they make nothing durable.
//!
//! Verified by `tests/` under QEMU's user-mode emulation only.

use memgauge_model::traffic::{LineUse, PersistMethod};

use crate::kernel::Kernel;
use crate::line::LINE;
use crate::order::STEP_LINES;

/// Whether the CPU can clean lines to the point of persistence.
fn has_cvap() -> bool {
    std::arch::is_aarch64_feature_detected!("dpb")
}

/// Whether it can clean them to the point of deep persistence.
fn has_cvadp() -> bool {
    std::arch::is_aarch64_feature_detected!("dpb2")
}

/// `$work` on the next line, whose address is in x9, and then the place of the one after it: in the same block or, after `$done`, in the
/// next one. The offsets are those of `Blocks`.
macro_rules! line {
    ($work:expr, $done:literal) => {
        concat!(
            "add x9, {a}, {to}\n",
            $work,
            "\n add {to}, {to}, #64\n subs {left}, {left}, #1\n b.ne 7f\n",
            $done,
            "ldr {to}, [{w}, #16]\n ldr x9, [{at}], #8\n eor {to}, {to}, x9\n ldr x9, [{w}, #32]\n mul {to}, {to}, x9\n",
            "ldr x9, [{w}, #8]\n cmp {at}, x9\n b.ne 6f\n",
            "ldr {at}, [{w}]\n ldr {left}, [{w}, #16]\n ldr x9, [{w}, #24]\n add {left}, {left}, {step}\n and {left}, {left}, x9\n",
            "str {left}, [{w}, #16]\n 6:\n ldr {left}, [{w}, #32]\n 7:"
        )
    };
}

/// A kernel whose chunk of four lines reads `$read` bytes and writes `$write`.
macro_rules! row {
    ($name:literal, $mix:ident, $supported:expr, $read:literal, $write:literal, $chunk:expr, $finish:literal) => {
        kernel!($name, $mix, Neon, $supported, form Blocks Whole of LINE, streams [a Stream::both(($read, $write))], advance ["", ""],
            chunk $chunk, finish $finish, operands(walk) [
                line = in(reg) std::ptr::from_ref(walk.stored), w = in(reg) &raw mut walk.blocks, at = inout(reg) walk.blocks.assume_init_ref().at => _,
                to = inout(reg) walk.blocks.assume_init_ref().to => _, left = inout(reg) walk.blocks.assume_init_ref().left => _,
                step = in(reg) STEP_LINES * LINE as usize,
            ])
    };
}

/// Stores lines and cleans each by `$clean`; a barrier follows each block.
macro_rules! persisted {
    ($name:literal, $method:ident, $supported:expr, $clean:literal) => {
        row!(
            $name,
            R1W1,
            $supported,
            0,
            256,
            times!(4, line!(concat!("stp q4, q5, [x9]\n stp q6, q7, [x9, #32]\n ", $clean), "dsb sy\n")),
            "dsb sy"
        )
        .with_line(LineUse::Persisted(PersistMethod::$method))
    };
}

/// The same, line by line: each is loaded when it is durable, and nothing overtakes that.
macro_rules! read_back {
    ($name:literal, $method:ident, $supported:expr, $clean:literal) => {
        row!(
            $name,
            R2W1,
            $supported,
            128,
            128,
            times!(
                2,
                line!(
                    concat!(
                        "stp q4, q5, [x9]\n stp q6, q7, [x9, #32]\n ",
                        $clean,
                        "\n dsb sy\n ldp q0, q1, [x9]\n ldp q0, q1, [x9, #32]\n dsb sy"
                    ),
                    ""
                )
            ),
            "dsb sy"
        )
        .with_line(LineUse::ReadBack(PersistMethod::$method))
    };
}

pub(super) const KERNELS: &[&[&[Kernel]]] = &[&[&[
    row!("load-neon-blocks", AllReads, || true, 256, 0, times!(4, line!("ldp q0, q1, [x9]\n ldp q0, q1, [x9, #32]", "")), ""),
    row!("nt-store-neon-blocks", NtWrite, || true, 0, 256, times!(4, line!("stnp q4, q5, [x9]\n stnp q6, q7, [x9, #32]", "")), ""),
    persisted!("persist-neon-cvap", Cvap, has_cvap, "sys #3, c7, c12, #1, x9"),
    persisted!("persist-neon-cvadp", Cvadp, has_cvadp, "sys #3, c7, c13, #1, x9"),
    read_back!("read-back-neon-cvap", Cvap, has_cvap, "sys #3, c7, c12, #1, x9"),
    read_back!("read-back-neon-cvadp", Cvadp, has_cvadp, "sys #3, c7, c13, #1, x9"),
]]];
