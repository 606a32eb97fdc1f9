//! riscv64: sequential traffic that keeps a checksum of what it loads. None writes lines back: programs may do that only with the
//! Zicbom extension.
//!
//! Verified by `tests/` under QEMU's user-mode emulation only.

use crate::kernel::Kernel;
use crate::line::LINE;

/// Loads a word of stream `a` and combines it with the register of its place in the line.
macro_rules! xor {
    ($register:literal, $offset:literal) => {
        concat!("ld t0, 256 * \\burst + \\line + ", $offset, "({a})\n xor ", $register, ", ", $register, ", t0\n")
    };
}

pub(super) const KERNELS: &[Kernel] = &[
    // The stored line starts as the sum so far.
    kernel!("xor-scalar", AllReads, Scalar, || true, form Sequential Checked of LINE, streams [a = 0 read 256], advance fixed,
        burst lines!("0,64,128,192",
            xor!("t1", 0), xor!("t2", 8), xor!("t3", 16), xor!("t4", 24), xor!("t5", 32), xor!("t6", 40), xor!("a6", 48), xor!("a7", 56)),
        finish line_by!("sd", "{line}"),
        operands(walk) [line = in(reg) &raw mut walk.sum,]),
];
